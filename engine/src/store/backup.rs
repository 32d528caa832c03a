//! A copy of the store beside its writers, proven sound before it is called a backup.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::ids::Seq;
use crate::storage::{FileStorage, Storage};
use crate::verify::{Report, Verdict, verify_storage};

use super::Store;
use super::unnamed::Unnamed;

const MAKE: &str = "make a backup in";

/// The result of [`Store::backup`].
#[derive(Clone, Debug, serde::Serialize)]
#[must_use]
pub struct Backup {
    /// Name of this shape.
    pub schema: &'static str,
    /// Its folder.
    #[serde(serialize_with = "crate::text::paths::serialize_shown")]
    pub path: PathBuf,
    /// Its last seq: everything durable when the copy was made.
    pub head: Seq,
    /// Bytes copied.
    pub bytes: u64,
    /// The report of a verification of the copy. It is not sound only if the store itself is damaged.
    pub report: Report,
}

impl Store {
    /// Copies the store to a folder that is empty or does not exist, while others go on writing, and verifies the copy.
    ///
    /// The copy is the store as of one durable head; opening it is restoring it. The index is not copied: it is made
    /// anew. Cost: a read and a write of the log, then a verification. Durable when it returns. `progress` is told of
    /// every stretch copied, in bytes.
    ///
    /// The copy is made under the name `folder` with `.partial` behind it, and gets its own name once it is verified. After a kill it can be asked
    /// for again: what is left of the first copy is removed.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder is not empty, if another backup is filling it, or if reading or writing fails, the copy's too; [`Error::NoSpace`].
    pub fn backup(&self, folder: &Path, progress: &mut dyn FnMut(u64)) -> Result<Backup, Error> {
        let copy = Unnamed::begin(MAKE, folder)?;
        let done = self.backup_storage(Arc::new(FileStorage::new(copy.path())), progress)?;
        copy.name()?;
        Ok(Backup { path: folder.to_owned(), ..done })
    }

    /// [`Store::backup`], to any storage.
    ///
    /// # Errors
    /// As [`Store::backup`].
    #[doc(hidden)]
    pub fn backup_storage(
        &self,
        target: Arc<dyn Storage>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Backup, Error> {
        let path = target.path("");
        if target.list("").is_ok_and(|names| !names.is_empty()) {
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(Error::Io { action: MAKE, path, source });
        }
        let mut bytes = 0_u64;
        let head = self.inner.log.copy_to(&*target, |count| {
            bytes = bytes.saturating_add(count);
            progress(count);
        })?;
        let report = verify_storage(target, false)?;
        if report.verdict() == Verdict::Unreadable {
            // Nothing is known of such a copy: it gets no name.
            let source = std::io::Error::other(report.not_proven.join("; "));
            return Err(Error::Io { action: "verify", path, source });
        }
        Ok(Backup { schema: "acpdb.backup/1", path, head: head.seq, bytes, report })
    }
}
