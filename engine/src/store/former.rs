//! A copy of a store that was made earlier and that nothing was written to, whose place a newer copy may take.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::storage::{Access, FileStorage, Storage, StoredFile};
use crate::vault::KEY;

/// Its lock is the write lock.
const TAIL: &str = "tail";
/// The names in a copy that was never opened to be written.
pub(super) const COPIED: [&str; 6] = ["acpdb.json", "checkpoint", KEY, "log", "secret", TAIL];

/// An older copy, closed to writers as long as this lives: what they recorded in it would go with it.
pub(super) struct FormerCopy {
    lock: Box<dyn StoredFile>,
}

impl FormerCopy {
    /// Takes the lock of what lies in a folder. `None`: it holds something else than these names, or is missing.
    ///
    /// # Errors
    /// [`Error::Busy`]: another process writes to it; [`Error::Io`].
    pub(super) fn of(folder: &Path, known: &[&str]) -> Result<Option<Self>, Error> {
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder).read_only());
        // A folder that is missing or closed is told of by the next step.
        let is_copy = || {
            // As above.
            let names = storage.list("").unwrap_or_default();
            !names.is_empty() && names.iter().all(|name| known.contains(&name.as_str()))
        };
        if !is_copy() {
            return Ok(None);
        }
        // A copy without its end is none.
        let Ok(lock) = storage.open(TAIL, Access::Read) else { return Ok(None) };
        let fail = |source| Error::Io { action: "lock", path: folder.join(TAIL), source };
        if !lock.try_lock().map_err(fail)? || !lock.is_current().map_err(fail)? {
            let place = crate::text::paths::shown(folder);
            let detail = format!("another process writes to the copy in {place}, or replaces it");
            return Err(Error::Busy { detail });
        }
        // It may have been opened before the lock was taken.
        Ok(is_copy().then_some(Self { lock }))
    }

    /// Refuses a folder in which something else lies now.
    pub(super) fn check_current(&self, action: &'static str, folder: &Path) -> Result<(), Error> {
        let fail = |source| Error::Io { action, path: folder.to_owned(), source };
        let is_current = self.lock.is_current().map_err(fail)?;
        // Without the name there is no copy to take the place of.
        if is_current { Ok(()) } else { Err(fail(std::io::ErrorKind::AlreadyExists.into())) }
    }
}
