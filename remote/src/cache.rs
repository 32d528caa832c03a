//! Objects that are written once, kept on this disk: each is fetched once.
//!
//! Nothing there is believed: a file whose digest is another is fetched again, and what an object says is checked by who reads it.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use acpdb_engine::ids::StoreId;
use acpdb_engine::locks::steady;

use crate::error::ChainError;
use crate::names::ObjectName;
use crate::objects::get_settled;
use crate::remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped, within};

/// Bytes of the digest in front of an object.
const DIGEST_BYTES: usize = 32;

/// A remote of one store, whose objects are kept in a folder.
pub(crate) struct CachedRemote<'r> {
    real: &'r dyn Remote,
    store: StoreId,
    folder: PathBuf,
    used: Mutex<BTreeSet<String>>,
}

impl<'r> CachedRemote<'r> {
    /// Objects in a folder that is there.
    pub(crate) fn new(real: &'r dyn Remote, store: StoreId, folder: &Path) -> Self {
        Self { real, store, folder: folder.to_owned(), used: Mutex::default() }
    }

    /// The file of an object. Its name is a digest: no name of the prefix is one of a file.
    fn file_name(key: &str) -> String {
        blake3::hash(key.as_bytes()).to_hex().to_string()
    }

    /// The object as it is kept; `None`: it is not, or not as it was.
    pub(crate) fn kept(&self, key: &str) -> Option<Vec<u8>> {
        // A file that cannot be read is fetched anew.
        let bytes = std::fs::read(self.folder.join(Self::file_name(key))).ok()?;
        let (digest, object) = bytes.split_at_checked(DIGEST_BYTES)?;
        (digest == blake3::hash(object).as_bytes()).then(|| object.to_vec())
    }

    /// The object as the remote has it.
    pub(crate) fn real_get(&self, key: &str) -> Result<Option<Vec<u8>>, ChainError> {
        Ok(get_settled(self.real, key)?.map(|(object, _)| object))
    }

    fn keep(&self, key: &str, object: &[u8]) -> io::Result<()> {
        let (name, partial) = (
            self.folder.join(Self::file_name(key)),
            self.folder.join(format!("{}.partial", Self::file_name(key))),
        );
        let digest = blake3::hash(object);
        std::fs::write(&partial, [digest.as_bytes().as_slice(), object].concat())?;
        std::fs::rename(partial, name)
    }

    /// Lets go of all objects but those that were read since it was made.
    pub(crate) fn prune(&self) -> io::Result<()> {
        let used: BTreeSet<String> = steady(&self.used).iter().map(|key| Self::file_name(key)).collect();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if !entry.file_name().to_str().is_some_and(|name| used.contains(name)) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Remote for CachedRemote<'_> {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        self.real.create(key, bytes)
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        self.real.swap(key, bytes, was)
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        self.real.put(key, bytes, length)
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        if ObjectName::parse(self.store, key).is_none() {
            return self.real.get(key, range);
        }
        steady(&self.used).insert(key.to_owned());
        if let Some(object) = self.kept(key) {
            return Ok(Some((within(&object, range.as_ref()), ObjectTag::of(&object))));
        }
        let Some((object, tag)) = self.real.get(key, None)? else { return Ok(None) };
        match self.keep(key, &object) {
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                Err(RemoteError::Full { what: format!("keeping {key} in {}", self.folder.display()) })
            }
            Err(error) => Err(RemoteError::Refused {
                what: format!("keeping {key} in {}: {error}", self.folder.display()),
            }),
            Ok(()) => Ok(Some((within(&object, range.as_ref()), tag))),
        }
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.real.list(under, after)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.real.delete(key)
    }

    fn has_versions(&self) -> bool {
        self.real.has_versions()
    }

    fn calls_at_once(&self) -> usize {
        self.real.calls_at_once()
    }
}
