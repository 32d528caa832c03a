//! The one door to the files below a store's folder: no name leads out of it.
//!
//! ```text
//! folder -> handle -> openat2(NO_SYMLINKS | NO_MAGICLINKS | BENEATH), or one openat(NOFOLLOW) a part
//!                       |- a folder:  list, sync, the place where a file is made, renamed, removed
//!                       '- a file:    looked at, opened without waiting, looked at again
//! ```
//!
//! A store's folder may come from an untrusted source: unpacked from an archive, cloned with a project. Only regular files below it are
//! opened. A link, a pipe, a device or a socket is refused by its name before it is opened, and checked again after. So
//! opening never waits for another program, and never takes over a terminal. A file that is opened for writing, emptied or removed
//! has one name only and belongs to the user or to the folder's owner, so that no file outside changes through a second name.
//!
//! Not here: links on the way to the folder, and the folder's owner.

use std::fs::File;
use std::io;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reading; must exist.
    Read,
    /// For reading and writing; must exist.
    Write,
    /// For reading and writing; made if it does not exist.
    Create,
    /// For reading and writing; must not exist.
    CreateNew,
    /// For reading and writing; emptied if it exists, made if not.
    Replace,
}

/// For folders that are only passed through.
#[cfg(target_os = "linux")]
const PASSING: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASSING: OFlags = OFlags::RDONLY;
/// How often a name is looked up again while another program renames it.
#[cfg(target_os = "linux")]
const LOOKUP_COUNT_MAX: usize = 16;

/// A folder, open for as long as one call takes.
#[derive(Debug)]
pub(super) struct Beneath {
    root: OwnedFd,
}

/// A folder below: the root itself or another one.
enum Folder<'a> {
    Root(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Folder<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(folder) => *folder,
            Self::Below(folder) => folder.as_fd(),
        }
    }
}

impl Beneath {
    /// Enters a folder, wherever its path leads.
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        let flags = PASSING | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = again(|| rustix::fs::open(root, flags, Mode::empty()))?;
        Ok(Self { root })
    }

    /// Opens a file.
    pub(super) fn file(&self, name: &str, access: Access) -> io::Result<File> {
        let (folder, own) = self.folder_of(name)?;
        match look(&folder, own)? {
            Some(found) => check_regular(&found)?,
            None if matches!(access, Access::Read | Access::Write) => return Err(Errno::NOENT.into()),
            None => {}
        }
        let mut flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        flags |= match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
            // Emptied below, once it is known to be ours.
            Access::Create | Access::Replace => OFlags::RDWR | OFlags::CREATE,
            Access::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
        let opened = if access == Access::Read {
            quietly(|quiet| again(|| rustix::fs::openat(&folder, own, flags | quiet, mode)))
        } else {
            again(|| rustix::fs::openat(&folder, own, flags, mode))
        };
        let file = match opened {
            Ok(file) => file,
            Err(Errno::LOOP | Errno::MLINK) => return Err(refused("a symbolic link")),
            Err(error) => return Err(error.into()),
        };
        let found = rustix::fs::fstat(&file)?;
        check_regular(&found)?;
        if access != Access::Read {
            self.check_own(&found)?;
        }
        let file = File::from(file);
        if access == Access::Replace {
            file.set_len(0)?;
        }
        Ok(file)
    }

    /// Makes a folder; no error if there is one.
    pub(super) fn create_dir(&self, name: &str) -> io::Result<()> {
        let (folder, own) = self.folder_of(name)?;
        match again(|| rustix::fs::mkdirat(&folder, own, Mode::RWXU)) {
            Err(Errno::EXIST) => self.folder(name, PASSING).map(|_| ()),
            result => Ok(result?),
        }
    }

    /// Names in a folder that are text, in no order.
    pub(super) fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let folder = self.readable(directory)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder)? {
            // Names that are not UTF-8 are not ours.
            let name = entry?.file_name().to_str().map(str::to_owned);
            names.extend(name.into_iter().filter(|name| name != "." && name != ".."));
        }
        Ok(names)
    }

    /// Makes the names of a folder durable.
    pub(super) fn sync_dir(&self, directory: &str) -> io::Result<()> {
        let folder = self.readable(directory)?;
        Ok(again(|| rustix::fs::fsync(&folder))?)
    }

    /// Puts a regular file under another name, in the place of a file which may be changed.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from_folder, from) = self.folder_of(from)?;
        let (to_folder, to) = self.folder_of(to)?;
        if let Some(found) = look(&from_folder, from)? {
            check_regular(&found)?;
        }
        if let Some(found) = look(&to_folder, to)?
            && FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        {
            self.check_own(&found)?;
        }
        Ok(again(|| rustix::fs::renameat(&from_folder, from, &to_folder, to))?)
    }

    /// Lets two files that may be changed change names.
    pub(super) fn exchange(&self, left: &str, right: &str) -> io::Result<()> {
        let (left_folder, left) = self.folder_of(left)?;
        let (right_folder, right) = self.folder_of(right)?;
        for (folder, name) in [(&left_folder, left), (&right_folder, right)] {
            let Some(found) = look(folder, name)? else { return Err(io::ErrorKind::NotFound.into()) };
            check_regular(&found)?;
            self.check_own(&found)?;
        }
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            match again(|| rustix::fs::renameat_with(&left_folder, left, &right_folder, right, flags)) {
                // A file system or a kernel that knows of no such thing.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                result => return Ok(result?),
            }
        }
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes away the name of a file, if that file may be changed.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let (folder, own) = self.folder_of(name)?;
        if let Some(found) = look(&folder, own)? {
            check_regular(&found)?;
            self.check_own(&found)?;
        }
        Ok(again(|| rustix::fs::unlinkat(&folder, own, AtFlags::empty()))?)
    }

    /// Whether the disk takes no writes at all.
    pub(super) fn is_on_read_only_disk(&self) -> bool {
        rustix::fs::fstatvfs(&self.root)
            .is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
    }

    /// The folder that holds `name`, and the name's last part.
    fn folder_of<'n>(&self, name: &'n str) -> io::Result<(Folder<'_>, &'n str)> {
        let (folder, own) = name.rsplit_once('/').unwrap_or(("", name));
        check_part(own)?;
        if folder.is_empty() {
            return Ok((Folder::Root(self.root.as_fd()), own));
        }
        Ok((Folder::Below(self.folder(folder, PASSING)?), own))
    }

    /// A folder to be listed or synced.
    fn readable(&self, name: &str) -> io::Result<OwnedFd> {
        if name.is_empty() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened =
                quietly(|quiet| again(|| rustix::fs::openat(&self.root, ".", flags | quiet, Mode::empty())));
            return Ok(opened?);
        }
        self.folder(name, OFlags::RDONLY)
    }

    /// Opens a folder below.
    fn folder(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        name.split('/').try_for_each(check_part)?;
        let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        let opened = self.in_one_step(name, flags).unwrap_or_else(|| self.step_by_step(name, flags));
        #[cfg(not(target_os = "linux"))]
        let opened = self.step_by_step(name, flags);
        opened.map_err(|error| match error {
            Errno::LOOP | Errno::XDEV | Errno::NOTDIR | Errno::MLINK => self.explain(name, error),
            error => error.into(),
        })
    }

    /// The kernel follows the name; `None` where it cannot.
    #[cfg(target_os = "linux")]
    fn in_one_step(&self, name: &str, flags: OFlags) -> Option<Result<OwnedFd, Errno>> {
        use rustix::fs::ResolveFlags;
        static IS_ABSENT: AtomicBool = AtomicBool::new(false);
        const RESOLVE: ResolveFlags =
            ResolveFlags::NO_SYMLINKS.union(ResolveFlags::BENEATH).union(ResolveFlags::NO_MAGICLINKS);
        if IS_ABSENT.load(Ordering::Relaxed) {
            return None;
        }
        for _ in 0..LOOKUP_COUNT_MAX {
            match rustix::fs::openat2(&self.root, name, flags, Mode::empty(), RESOLVE) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::NOSYS) => {
                    IS_ABSENT.store(true, Ordering::Relaxed);
                    return None;
                }
                // A sandbox that does not know the call answers so.
                Err(Errno::PERM) => return None,
                result => return Some(result),
            }
        }
        None
    }

    /// Follows the name part by part.
    fn step_by_step(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (before, last) =
            name.rsplit_once('/').map_or((None, name), |(before, last)| (Some(before), last));
        let mut at: Option<OwnedFd> = None;
        let step = |at: Option<&OwnedFd>, part: &str, flags: OFlags| {
            let from = at.map_or(self.root.as_fd(), AsFd::as_fd);
            again(|| rustix::fs::openat(from, part, flags | OFlags::NOFOLLOW, Mode::empty()))
        };
        for part in before.into_iter().flat_map(|before| before.split('/')) {
            at = Some(step(at.as_ref(), part, PASSING | OFlags::DIRECTORY | OFlags::CLOEXEC)?);
        }
        step(at.as_ref(), last, flags)
    }

    /// Says which part of a name that was not followed is a link.
    fn explain(&self, name: &str, error: Errno) -> io::Error {
        let mut at: Option<OwnedFd> = None;
        for part in name.split('/') {
            let from = at.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            let Ok(found) = rustix::fs::statat(from, part, AtFlags::SYMLINK_NOFOLLOW) else { break };
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Symlink => return refused(&format!("{part}, a symbolic link")),
                FileType::Directory => {}
                _ => break,
            }
            let flags = PASSING | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(next) = rustix::fs::openat(from, part, flags, Mode::empty()) else { break };
            at = Some(next);
        }
        error.into()
    }

    /// Refuses to change a file that has another name, or an owner other than the user and the folder's owner.
    fn check_own(&self, found: &Stat) -> io::Result<()> {
        if found.st_nlink > 1 {
            let text = format!(
                "it has {} names (hard links), and writing would change what the others name; copy the store instead",
                found.st_nlink
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let user = rustix::process::geteuid().as_raw();
        if found.st_uid != user && found.st_uid != rustix::fs::fstat(&self.root)?.st_uid {
            let text =
                format!("it belongs to user {}, as neither this process nor the store does", found.st_uid);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(())
    }
}

/// A part of a name that can only name something in its folder.
fn check_part(part: &str) -> io::Result<()> {
    if matches!(part, "" | "." | "..") || part.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{part:?} is no name in a store")));
    }
    Ok(())
}

/// The kind of file under a name, without following links; `None` if there is none.
fn look(folder: impl AsFd, own: &str) -> io::Result<Option<Stat>> {
    match again(|| rustix::fs::statat(&folder, own, AtFlags::SYMLINK_NOFOLLOW)) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn check_regular(found: &Stat) -> io::Result<()> {
    Err(refused(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something else",
    }))
}

fn refused(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("not a regular file but {what}, which no store holds"),
    )
}

/// Again after an interruption.
fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Opens for reading without changing the access time, where the process may ask for that.
fn quietly<T>(mut open: impl FnMut(OFlags) -> Result<T, Errno>) -> Result<T, Errno> {
    #[cfg(target_os = "linux")]
    {
        match open(OFlags::NOATIME) {
            Err(Errno::PERM) => {}
            result => return result,
        }
    }
    open(OFlags::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn text<T>(result: io::Result<T>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// Makes `store/` with a folder, a file and things that are neither, and beside it a file that no name may reach.
    fn world() -> (tempfile::TempDir, Beneath) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("store/log")).unwrap();
        std::fs::create_dir(at("outside")).unwrap();
        std::fs::write(at("outside/bait"), "bait").unwrap();
        std::fs::write(at("store/log/own"), "own").unwrap();
        symlink("../outside", at("store/away")).unwrap();
        symlink("log", at("store/near")).unwrap();
        symlink("../../outside/bait", at("store/log/bait")).unwrap();
        symlink("own", at("store/log/alias")).unwrap();
        std::fs::hard_link(at("outside/bait"), at("store/log/twin")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("store/log/pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let beneath = Beneath::new(&at("store")).unwrap();
        (folder, beneath)
    }

    /// A link below the store led an erasure to a stranger's files. No part of a name is followed now, in either way of asking the
    /// kernel.
    #[test]
    fn no_part_of_a_name_is_followed() {
        let (folder, beneath) = world();
        for access in [Access::Read, Access::Write, Access::Create, Access::Replace] {
            for name in ["away/bait", "near/own", "log/bait", "log/alias"] {
                assert!(text(beneath.file(name, access)).contains("symbolic link"), "{name} {access:?}");
            }
        }
        for name in ["away", "near"] {
            assert!(text(beneath.list(name)).contains("symbolic link"), "{name}");
            assert!(text(beneath.sync_dir(name)).contains("symbolic link"), "{name}");
            assert!(text(beneath.create_dir(name)).contains("symbolic link"), "{name}");
            assert!(text(beneath.create_dir(&format!("{name}/new"))).contains("symbolic link"), "{name}");
            assert!(beneath.remove(&format!("{name}/own")).is_err());
            assert!(beneath.rename("log/own", &format!("{name}/moved")).is_err());
        }
        assert!(text(beneath.remove("log/bait")).contains("symbolic link"));
        assert_eq!(std::fs::read(folder.path().join("outside/bait")).unwrap(), b"bait");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for name in ["away", "near"] {
            assert!(beneath.step_by_step(name, flags).is_err(), "{name}");
        }
        assert!(beneath.step_by_step("log", flags).is_ok());
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_names() {
        let (_folder, beneath) = world();
        for name in
            ["", ".", "..", "../outside/bait", "log/../own", "/etc/passwd", "log//own", "log/", "a\0b"]
        {
            assert!(beneath.file(name, Access::Read).is_err(), "{name:?}");
            assert!(beneath.remove(name).is_err(), "{name:?}");
        }
        for name in [".", "..", "log/..", "/", "/tmp"] {
            assert!(beneath.list(name).is_err(), "{name:?}");
        }
    }

    /// A pipe in the place of a file blocked its opener for ever. It is refused by its name now.
    #[test]
    fn what_is_no_file_is_refused_without_waiting_for_it() {
        let (_folder, beneath) = world();
        for access in [Access::Read, Access::Write, Access::Create, Access::Replace] {
            assert!(text(beneath.file("log/pipe", access)).contains("named pipe"));
            assert!(text(beneath.file("log", access)).contains("a folder"));
        }
        assert!(text(beneath.remove("log/pipe")).contains("named pipe"));
    }

    #[test]
    fn a_file_with_another_name_is_read_and_never_changed() {
        let (folder, beneath) = world();
        assert!(beneath.file("log/twin", Access::Read).is_ok());
        for access in [Access::Write, Access::Create, Access::Replace] {
            assert!(text(beneath.file("log/twin", access)).contains("2 names"), "{access:?}");
        }
        assert!(text(beneath.remove("log/twin")).contains("2 names"));
        // A file outside lost its name so, when a checkpoint was put in its place.
        assert!(text(beneath.rename("log/own", "log/twin")).contains("2 names"));
        assert_eq!(std::fs::read(folder.path().join("outside/bait")).unwrap(), b"bait");
    }

    #[test]
    fn files_are_made_listed_renamed_and_removed() {
        let (_folder, beneath) = world();
        beneath.create_dir("new").unwrap();
        beneath.create_dir("new").unwrap();
        let _file = beneath.file("new/a", Access::CreateNew).unwrap();
        assert_eq!(
            beneath.file("new/a", Access::CreateNew).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(beneath.file("new/b", Access::Read).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(beneath.file("none/b", Access::Create).unwrap_err().kind(), io::ErrorKind::NotFound);
        beneath.rename("new/a", "new/b").unwrap();
        assert_eq!(beneath.list("new").unwrap(), ["b"]);
        beneath.sync_dir("new").unwrap();
        beneath.sync_dir("").unwrap();
        beneath.remove("new/b").unwrap();
        assert_eq!(beneath.remove("new/b").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
