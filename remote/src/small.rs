//! Small files of a store at a remote, read at a time: the mark of the prefix, and what lies below `meta`.

use std::collections::BTreeMap;

use acpdb_engine::codec::{SECRET_FILE_BYTES, STORE_FILE_BYTES_MAX, StoreFile};
use acpdb_engine::ids::StoreId;
use acpdb_engine::log::{CopyParts, Head};
use acpdb_engine::vault::KEY_FILE_BYTES;

use crate::ahead::AheadRemote;
use crate::error::ChainError;
use crate::names::{PREFIX_MARK, meta_key};
use crate::objects::get_settled;
use crate::remote::ObjectTag;

/// Small files of a store, by name, with the length that each has at most.
pub(crate) const SMALL_FILES: [(&str, usize); 3] =
    [("acpdb.json", STORE_FILE_BYTES_MAX), ("secret", SECRET_FILE_BYTES), ("key", KEY_FILE_BYTES)];

/// Small files as they were there when they were read, by their keys.
pub(crate) struct SmallThere {
    found: BTreeMap<String, (Vec<u8>, ObjectTag)>,
}

impl SmallThere {
    /// The keys of all of them.
    pub(crate) fn keys(store: StoreId) -> Vec<String> {
        let files = SMALL_FILES.iter().map(|(name, _)| meta_key(store, name));
        std::iter::once(PREFIX_MARK.to_owned()).chain(files).collect()
    }

    /// Reads them all. Cost: one round trip, where calls at a time are worth it.
    pub(crate) fn read(remote: &AheadRemote<'_>) -> Result<Self, ChainError> {
        let keys = Self::keys(remote.store());
        remote.expect_keys(keys.clone());
        Self::read_expected(remote)
    }

    /// [`SmallThere::read`], of which the remote was told before.
    pub(crate) fn read_expected(remote: &AheadRemote<'_>) -> Result<Self, ChainError> {
        let mut found = BTreeMap::new();
        for key in Self::keys(remote.store()) {
            if let Some(there) = get_settled(remote, &key)? {
                found.insert(key, there);
            }
        }
        Ok(Self { found })
    }

    /// The object of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&(Vec<u8>, ObjectTag)> {
        self.found.get(key)
    }

    /// The parts of a copy. The head of the log is known once all pieces are there.
    pub(crate) fn parts(&self, store: StoreId) -> Result<CopyParts, ChainError> {
        let [store_file, secret, key] = SMALL_FILES.map(|(name, bytes_max)| {
            let key = meta_key(store, name);
            match self.get(&key) {
                Some((bytes, _)) if bytes.len() > bytes_max => {
                    let what = format!("it has {} bytes, at most {bytes_max} are allowed", bytes.len());
                    Err(ChainError::Unsound { key, what })
                }
                found => Ok(found.map(|(bytes, _)| bytes.clone())),
            }
        });
        let (store_file, secret, key) = (store_file?, secret?, key?);
        let store_file =
            store_file.ok_or_else(|| ChainError::Missing { key: meta_key(store, "acpdb.json") })?;
        if !StoreFile::decode(&store_file).is_ok_and(|file| file.store == store) {
            let what = "it is no store file of this store".to_owned();
            return Err(ChainError::Unsound { key: meta_key(store, "acpdb.json"), what });
        }
        Ok(CopyParts { store, head: Head::default(), store_file, key, secret })
    }
}
