//! Puts a file in the place of an older file of the user.
//!
//! ```text
//! a new file beside it, with its mode and owner -> bytes -> sync -> rename -> sync of the folder
//! ```
//!
//! A reader sees the old file or the new one, whole. A link is followed: the file that it leads to is replaced, and the link
//! stays, for settings are often links into a folder that is kept under version control.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, fchown, lchown};
use std::path::{Path, PathBuf};

use acpdb_engine::storage::effective_user;

/// Links that are followed one after the other.
const LINK_COUNT_MAX: usize = 40;

/// The mode of the new file.
#[derive(Clone, Copy, Debug)]
pub enum FileMode<'a> {
    /// The mode of the file that it replaces; without such a file, the usual mode of the user's files.
    Kept,
    /// The mode of the file that it replaces; without such a file, the new one is for its owner alone.
    Private,
    /// The mode of another file.
    Of(&'a Path),
}

/// Puts `bytes` in the place of the file at `path`, and makes its folder if need be. Durable when it returns.
///
/// # Errors
/// If it cannot be written; then the old file stays.
pub fn replace(path: &Path, bytes: &[u8], mode: FileMode<'_>) -> io::Result<()> {
    let path = followed(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    make_folder(folder)?;
    let owner = owner_of(&path)?;
    let permissions = match mode {
        FileMode::Of(other) => Some(std::fs::metadata(other)?.permissions()),
        FileMode::Kept | FileMode::Private => permissions_of(&path)?,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let other = path.with_file_name(name);
    // A file of this name is from a program that was stopped here and had the same number. A link of this name goes, and is not followed.
    let _ = std::fs::remove_file(&other);
    let is_private = permissions.is_some() || matches!(mode, FileMode::Private);
    let done = write(&other, bytes, (permissions, owner), is_private);
    let done = done.and_then(|()| std::fs::rename(&other, &path));
    if done.is_err() {
        // The returned error tells more than the failed removal of this file.
        let _ = std::fs::remove_file(&other);
    }
    done.and_then(|()| File::open(folder)?.sync_all())
}

/// Makes a folder, and those above it, where they are missing. Whatever the mask, others may not write in them.
///
/// # Errors
/// If one cannot be made.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    for folder in missing.into_iter().rev() {
        let owner = owner_of(folder)?;
        // With a loose mask others could have put their files there.
        match DirBuilder::new().mode(0o755).create(folder) {
            Ok(()) => owner.map_or(Ok(()), |(user, group)| lchown(folder, Some(user), Some(group)))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    Err(io::ErrorKind::NotADirectory.into())
}

/// To whom a new file or folder belongs that the superuser writes for another user: to the owner of the file that it replaces, or of the nearest
/// folder above it that is there. `None`: the writer is no superuser, and owns what it writes.
fn owner_of(path: &Path) -> io::Result<Option<(u32, u32)>> {
    if effective_user() != 0 {
        return Ok(None);
    }
    let whole = std::path::absolute(path)?;
    // A folder that cannot be looked at is passed over: the file is refused below it.
    let there = whole.ancestors().find_map(|path| path.metadata().ok());
    Ok(there.map(|there| (there.uid(), there.gid())))
}

/// The mode that a new file gets, and its owner; `None`: the usual ones.
type FileMarks = (Option<Permissions>, Option<(u32, u32)>);

fn write(path: &Path, bytes: &[u8], (permissions, owner): FileMarks, is_private: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // Hosts run what these files say: with a loose mask others could have written them.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_private { 0o600 } else { 0o644 });
    let mut file = options.open(path)?;
    owner.map_or(Ok(()), |(user, group)| fchown(&file, Some(user), Some(group)))?;
    // The mode is set before the bytes are in the file: settings may hold texts that others are not to read.
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn permissions_of(path: &Path) -> io::Result<Option<Permissions>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The file that a path leads to, whether it is there or not.
pub(crate) fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINK_COUNT_MAX {
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let target = std::fs::read_link(&path)?;
                path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
            }
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("links lead from one to the other without an end"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Under a mask of 0 every user could write the plug-in that a host runs.
    #[test]
    fn a_new_file_can_be_written_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugin.js");
        replace(&path, b"new", FileMode::Kept).unwrap();
        assert_eq!(mode(&path) & 0o022, 0);
    }

    /// `sudo acpdb attach` left settings that their owner could not write any more. Only the superuser can see what this test looks at.
    #[test]
    fn what_the_superuser_writes_for_a_user_belongs_to_that_user() {
        if effective_user() != 0 {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("home")).unwrap();
        lchown(at("home"), Some(54_321), Some(54_322)).unwrap();
        std::fs::write(at("own"), "old").unwrap();
        replace(&at("home/.host/deep/settings"), b"new", FileMode::Private).unwrap();
        replace(&at("own"), b"new", FileMode::Kept).unwrap();
        lchown(at("own"), Some(54_323), Some(54_324)).unwrap();
        replace(&at("own"), b"newer", FileMode::Kept).unwrap();
        for (name, owner) in [
            ("home/.host", (54_321, 54_322)),
            ("home/.host/deep", (54_321, 54_322)),
            ("home/.host/deep/settings", (54_321, 54_322)),
            ("own", (54_323, 54_324)),
        ] {
            let about = std::fs::metadata(at(name)).unwrap();
            assert_eq!((about.uid(), about.gid()), owner, "{name}");
        }
    }

    #[test]
    fn folders_that_are_made_are_open_to_their_owner_alone_for_writing() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        make_folder(&deep).unwrap();
        make_folder(&deep).unwrap();
        for name in ["a", "a/b", "a/b/c"] {
            assert_eq!(mode(&folder.path().join(name)) & 0o022, 0, "{name}");
        }
        std::fs::write(folder.path().join("file"), "x").unwrap();
        for name in ["file", "file/below"] {
            assert!(make_folder(&folder.path().join(name)).is_err(), "{name}");
        }
    }

    /// `acpdb config set` put a file in the place of a link into a folder of settings, and gave it another mode.
    #[test]
    fn a_link_is_followed_and_the_mode_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (link, target, before) in [("a", "real", Some(0o640)), ("b", "not/there/yet", None)] {
            if let Some(mode) = before {
                std::fs::write(at(target), "old").unwrap();
                std::fs::set_permissions(at(target), Permissions::from_mode(mode)).unwrap();
            }
            symlink(target, at(link)).unwrap();
            replace(&at(link), b"new", FileMode::Private).unwrap();
            assert!(at(link).symlink_metadata().unwrap().is_symlink(), "{link}");
            assert_eq!(std::fs::read_to_string(at(target)).unwrap(), "new");
            assert_eq!(mode(&at(target)), before.unwrap_or(0o600), "{target}");
        }
        symlink("around", at("around")).unwrap();
        assert!(replace(&at("around"), b"new", FileMode::Kept).is_err());
        replace(&at("copy"), b"x", FileMode::Of(&at("real"))).unwrap();
        assert_eq!(mode(&at("copy")), 0o640);
        replace(&at("copy"), b"x", FileMode::Of(&at("b"))).unwrap();
        assert_eq!(mode(&at("copy")), 0o600, "also where a file was there that more could read");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 6, "nothing else is left");
    }
}
