//! A folder that gets its name once it is whole: a part of a store would pass for a sound one.
//!
//! ```text
//! NAME.partial, held by a lock -> filled -> renamed to NAME
//! killed                       -> NAME.partial, held by no process: the next run empties it and begins again
//! NAME holds an older copy     -> filled, then the two change names, and the older one is removed
//! ```

use std::fs::{DirBuilder, File};
use std::io::{Error as IoError, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::former::FormerCopy;
use crate::error::Error;

/// The names in a copy that was interrupted: only these are removed.
const NAMES: [&str; 11] = [
    "SEAL",
    "SYNC",
    "acpdb.json",
    "checkpoint",
    "erasing",
    "key",
    "log",
    "quarantine",
    "secret",
    "snap",
    "tail",
];

/// A new folder without its name. Dropped, it is removed.
pub(super) struct Unnamed {
    action: &'static str,
    into: PathBuf,
    partial: PathBuf,
    /// The older copy in `into`.
    former: Option<FormerCopy>,
    /// Held as long as this one is filled.
    held: File,
    is_named: bool,
}

impl Unnamed {
    /// Makes the folder beside the one that it will be: `into` must be missing, an empty folder, or the older copy whose place it takes.
    ///
    /// # Errors
    /// [`Error::Io`]: there is something else in `into`, its folder cannot be written, or another process fills the same one.
    pub(super) fn begin(
        action: &'static str,
        into: &Path,
        former: Option<FormerCopy>,
    ) -> Result<Self, Error> {
        let fail = |path: &Path, source| Error::Io { action, path: path.to_owned(), source };
        // Links are left out.
        let named = into.canonicalize().unwrap_or_else(|_| into.to_owned());
        if former.is_none() {
            check_free(&named).map_err(|source| fail(into, source))?;
        }
        let mut name =
            named.file_name().ok_or_else(|| fail(into, ErrorKind::InvalidInput.into()))?.to_owned();
        name.push(".partial");
        let partial = named.with_file_name(name);
        let held = hold(&partial).map_err(|error| fail(&partial, error))?;
        Ok(Self { action, into: named, partial, former, held, is_named: false })
    }

    /// Where to fill it.
    pub(super) fn path(&self) -> &Path {
        &self.partial
    }

    /// Gives it its name. An older copy loses it in the same step, and is removed: at no time is the name without a whole copy. Durable when it
    /// returns.
    ///
    /// # Errors
    /// [`Error::Io`]: the name was taken meanwhile, the file system cannot exchange names, or the folder cannot be written.
    pub(super) fn name(mut self) -> Result<(), Error> {
        self.held.sync_all().map_err(|error| self.fail(&self.partial, error))?;
        if let Some(former) = &self.former {
            former.check_current(self.action, &self.into)?;
            // Dropped, this removes what has its first name now: the older copy, whose lock is held until then.
            exchange(&self.partial, &self.into).map_err(|error| self.fail(&self.into, error))?;
        } else {
            std::fs::rename(&self.partial, &self.into).map_err(|error| self.fail(&self.into, error))?;
            self.is_named = true;
        }
        self.sync_above()
    }

    /// The error of a copy that must not take the place of the older one. It is removed.
    pub(super) fn refused(self, why: &'static str) -> Error {
        self.fail(&self.into, IoError::new(ErrorKind::AlreadyExists, why))
    }

    fn fail(&self, path: &Path, source: IoError) -> Error {
        Error::Io { action: self.action, path: path.to_owned(), source }
    }

    fn sync_above(&self) -> Result<(), Error> {
        let folder = self.into.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| self.fail(folder, error))
    }
}

/// Lets two folders change names in one step.
fn exchange(left: &Path, right: &Path) -> Result<(), IoError> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        let here = rustix::fs::CWD;
        Ok(rustix::fs::renameat_with(here, left, here, right, rustix::fs::RenameFlags::EXCHANGE)?)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    {
        // Other systems have no such step.
        let _ = (left, right);
        Err(ErrorKind::Unsupported.into())
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.is_named && !std::thread::panicking() {
            // A folder that cannot be removed now is removed by the next run.
            let _ = std::fs::remove_dir_all(&self.partial);
        }
    }
}

/// Refuses to make a store in a folder that is only read.
pub(super) fn check_outside(action: &'static str, into: &Path, read: &Path) -> Result<(), Error> {
    let read = resolved(read)?;
    if !resolved(into)?.starts_with(&read) {
        return Ok(());
    }
    let why = format!("it lies in {}, which is only read", crate::text::paths::shown(&read));
    let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
    Err(Error::Io { action, path: into.to_owned(), source })
}

/// A path without links and steps up. Parts that do not exist yet are taken as they are.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, Error> {
    let fail = |source| Error::Io { action: "resolve", path: path.to_owned(), source };
    let mut resolved = PathBuf::new();
    for component in std::path::absolute(path).map_err(fail)?.components() {
        if component == std::path::Component::ParentDir {
            resolved.pop();
            continue;
        }
        resolved.push(component);
        // A part that does not exist yet is not a link.
        resolved = resolved.canonicalize().unwrap_or(resolved);
    }
    Ok(resolved)
}

/// Refuses a name that cannot become the folder's.
fn check_free(into: &Path) -> Result<(), IoError> {
    let about = match into.metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !about.is_dir() {
        return Err(IoError::new(ErrorKind::AlreadyExists, "there is a file of this name"));
    }
    if into.read_dir()?.next().is_some() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    // A folder above that cannot be looked at is reported when the new one is made in it.
    let is_mount =
        into.parent().and_then(|above| above.metadata().ok()).is_some_and(|above| above.dev() != about.dev());
    if is_mount {
        let why = "a disk is mounted there, which cannot get its name at the end; name a folder in it";
        return Err(IoError::new(ErrorKind::InvalidInput, why));
    }
    Ok(())
}

/// Makes the folder, or empties one that an interrupted run left, and holds it.
fn hold(partial: &Path) -> Result<File, IoError> {
    if let Some(above) = partial.parent().filter(|above| !above.as_os_str().is_empty()) {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(partial) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let taken = |why: &str| IoError::new(ErrorKind::AlreadyExists, why.to_owned());
    if !partial.symlink_metadata()?.is_dir() {
        return Err(taken("it is no folder"));
    }
    let held = File::open(partial)?;
    if held.try_lock().is_err() {
        return Err(ErrorKind::ResourceBusy.into());
    }
    let (mine, there) = (held.metadata()?, partial.symlink_metadata()?);
    if (mine.dev(), mine.ino()) != (there.dev(), there.ino()) {
        // Another run gave it its name between the two.
        return Err(ErrorKind::ResourceBusy.into());
    }
    let mut left = Vec::new();
    for entry in partial.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().map(|name| name.strip_suffix(".tmp").unwrap_or(name));
        if !name.is_some_and(|name| NAMES.contains(&name)) {
            return Err(taken("something else than an interrupted copy is in it"));
        }
        left.push(entry);
    }
    for entry in left {
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(held)
}
