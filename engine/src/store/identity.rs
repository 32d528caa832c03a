//! Which store a folder holds, by its files alone: nothing is opened, locked or recovered.
//!
//! A store's id stands in proofs that are handed to others, so an id alone does not tell a store from one that was made to look like it.
//! The mark is derived from the store's secret, or from the random id of an encrypted store's key; neither leaves its folder.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::ids::StoreId;
use crate::log::{LogError, STORE_FILE, StoreFileState, identify, read_secret, store_file_damage};
use crate::storage::{FileStorage, Storage};
use crate::vault::{Vault, key_mark};

/// The store in a folder, as its files name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreIdentity {
    /// The id.
    pub store: StoreId,
    /// Derived from the store's secret, or from the id of its key, as 32 hex digits; `None` if neither can be read.
    pub mark: Option<String>,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
}

/// Name of a store's folder inside a project.
pub(super) const PROJECT_FOLDER: &str = ".acpdb";

/// Whether a folder has a store's file, whatever is in it.
#[must_use]
pub fn is_store(folder: &Path) -> bool {
    folder.join(STORE_FILE).symlink_metadata().is_ok()
}

/// Reads which store a folder holds; `None` if there is no `acpdb.json` in it. Cost: two small files.
///
/// # Errors
/// [`Error::Corrupt`] if the store file is damaged, [`Error::NewerFormat`], [`Error::Io`].
pub fn identity_of(folder: &Path) -> Result<Option<StoreIdentity>, Error> {
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder).read_only());
    let store = match identify(&*storage)? {
        StoreFileState::Missing => return Ok(None),
        StoreFileState::Damaged(invalid) => {
            let damage = store_file_damage(&*storage, Some(invalid));
            return Err(LogError::Corrupt(Box::new(damage)).into());
        }
        StoreFileState::Store(file) if file.is_encrypted() => {
            let mark = key_mark(&*storage, file.store);
            return Ok(Some(StoreIdentity { store: file.store, mark, is_encrypted: true }));
        }
        StoreFileState::Store(file) => file.store,
    };
    let secret = read_secret(&*storage, store, &Vault::Plain).map_err(|source| Error::Io {
        action: "read the secret of",
        path: folder.to_owned(),
        source,
    })?;
    // Without its secret a store has no mark.
    let mark = secret.ok().map(|secret| secret.mark(store));
    Ok(Some(StoreIdentity { store, mark, is_encrypted: false }))
}

#[cfg(test)]
mod tests {
    use crate::Store;

    use super::*;

    #[test]
    fn a_copy_has_the_mark_and_a_store_that_only_bears_the_id_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["mine", "theirs"] {
            Store::builder(at(name)).any_file_system().open().unwrap().close().unwrap();
        }
        let mine = identity_of(&at("mine")).unwrap().unwrap();
        assert!(mine.mark.is_some());
        std::fs::copy(at("mine/acpdb.json"), at("theirs/acpdb.json")).unwrap();
        let theirs = identity_of(&at("theirs")).unwrap().unwrap();
        assert_eq!((theirs.store, theirs.mark), (mine.store, None), "the secret is another store's");
        std::fs::copy(at("mine/secret"), at("theirs/secret")).unwrap();
        assert_eq!(identity_of(&at("theirs")).unwrap(), Some(mine));
        assert_eq!(identity_of(&at("nowhere")).unwrap(), None);
        std::fs::write(at("mine/acpdb.json"), "{}").unwrap();
        assert!(matches!(identity_of(&at("mine")), Err(Error::Corrupt { .. })));
    }
}
