//! A copy of the store beside its writers, proven sound before it is called a backup.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::ids::Seq;
use crate::storage::{FileStorage, Storage};
use crate::vault::KEY;
use crate::verify::{Report, Verdict, verify_storage};

use super::Store;
use super::identity::{StoreIdentity, identity_of};
use super::unnamed::{Unnamed, check_outside};

const MAKE: &str = "make a backup in";
const SCHEMA: &str = "acpdb.backup/1";
/// The names in a copy that was never opened to be written.
const COPIED: [&str; 6] = ["acpdb.json", "checkpoint", KEY, "log", "secret", "tail"];

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
    /// Bytes copied; 0 if the folder held this very copy already.
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
    /// for again: what is left of the first copy is removed. A folder that holds a whole copy of this store, which was never written to, is no
    /// obstacle: the copy stays if it has everything, and else a newer one takes its place once that is verified.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder holds anything else, if another backup is filling it, or if reading or writing fails, the copy's too; [`Error::NoSpace`].
    pub fn backup(&self, folder: &Path, progress: &mut dyn FnMut(u64)) -> Result<Backup, Error> {
        check_outside(MAKE, folder, self.root())?;
        let former = self.former_copy(folder)?;
        let copy = match &former {
            Some(report) if self.is_all(report, folder)? => {
                let (head, report) = (report.head_seq, report.clone());
                return Ok(Backup { schema: SCHEMA, path: folder.to_owned(), head, bytes: 0, report });
            }
            Some(_) => Unnamed::begin_anew(MAKE, folder)?,
            None => Unnamed::begin(MAKE, folder)?,
        };
        let done = self.backup_storage(Arc::new(FileStorage::new(copy.path())), progress)?;
        if former.is_none() {
            copy.name()?;
        } else if done.report.verdict() == Verdict::Sound {
            copy.replace()?;
        } else {
            let why = "the store is damaged, and the sound copy there stays";
            let source = std::io::Error::new(std::io::ErrorKind::AlreadyExists, why);
            return Err(Error::Io { action: MAKE, path: folder.to_owned(), source });
        }
        Ok(Backup { path: folder.to_owned(), ..done })
    }

    /// The report of a copy of this store in a folder: sound, a beginning of this history, and never opened to be written. `None`: the folder holds no
    /// such copy.
    fn former_copy(&self, folder: &Path) -> Result<Option<Report>, Error> {
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder).read_only());
        // A folder that is missing or closed is told of by the next step.
        let names = storage.list("").unwrap_or_default();
        let is_copy = names.iter().all(|name| COPIED.contains(&name.as_str()));
        let is_same = |found: StoreIdentity| identity_of(self.root()).is_ok_and(|own| own == Some(found));
        // One that cannot be read is no copy.
        if names.is_empty() || !is_copy || !identity_of(folder).ok().flatten().is_some_and(is_same) {
            return Ok(None);
        }
        let report = verify_storage(storage, false)?;
        let here = self.head_place(Some(report.head_seq))?;
        let is_beginning =
            here.is_some_and(|here| (here.seq, here.link) == (report.head_seq, report.head_link));
        Ok(Some(report).filter(|report| report.verdict() == Verdict::Sound && is_beginning))
    }

    /// Whether a copy ends where this store does, and is opened by the same key.
    fn is_all(&self, report: &Report, folder: &Path) -> Result<bool, Error> {
        let head = self.head_place(None)?;
        // A store that is not encrypted has no such file.
        let key = |folder: &Path| std::fs::read(folder.join(KEY)).ok();
        Ok(head.is_some_and(|head| head.seq == report.head_seq) && key(folder) == key(self.root()))
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
        Ok(Backup { schema: SCHEMA, path, head: head.seq, bytes, report })
    }
}
