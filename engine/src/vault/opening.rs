//! The key of a store's folder: made, asked for, and wrapped anew.
//!
//! ```text
//! key   the wrapped key of an encrypted store, beside its log; without it, or without its ring, nothing in the store can be read
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::frames::Vault;
use super::key_file::{KEY_FILE_BYTES, KeyFile, WrapRandom};
use super::units::StoreKey;
use crate::ids::StoreId;
use crate::storage::{Entropy, FileStorage, KeyRing, Storage, read_file, write_file};

/// The file of the wrapped key.
pub(crate) const KEY: &str = "key";

/// The key of a store, as a caller gives it.
#[derive(Clone, Default)]
pub enum KeyUse {
    /// Nothing: an encrypted store is refused.
    #[default]
    None,
    /// This ring opens the store, which must be there and be encrypted.
    Ring(Arc<dyn KeyRing>),
    /// As [`KeyUse::Ring`]; a store that is made is encrypted, its key wrapped by this ring.
    Make(Arc<dyn KeyRing>),
    /// Nothing: of an encrypted store only the stored bytes are looked at.
    Bytes,
}

impl std::fmt::Debug for KeyUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Ring(ring) => write!(f, "Ring({})", ring.name()),
            Self::Make(ring) => write!(f, "Make({})", ring.name()),
            Self::Bytes => f.write_str("Bytes"),
        }
    }
}

impl KeyUse {
    /// The ring that was given.
    pub(crate) fn ring(&self) -> Option<&Arc<dyn KeyRing>> {
        match self {
            Self::Ring(ring) | Self::Make(ring) => Some(ring),
            Self::None | Self::Bytes => None,
        }
    }
}

/// The reason why a key cannot be had, in words that say what to do.
pub(crate) type Locked = String;

/// The vault that opens the frames of a store.
///
/// # Errors
/// If the storage or the ring cannot be read now. The inner error: the key cannot be had.
pub(crate) fn open_vault(
    storage: &dyn Storage,
    is_encrypted: bool,
    given: &KeyUse,
) -> io::Result<Result<Vault, Locked>> {
    let store = storage.path("");
    let store = store.display();
    let ring = match (is_encrypted, given) {
        (false, KeyUse::None | KeyUse::Bytes) => return Ok(Ok(Vault::Plain)),
        (false, KeyUse::Ring(ring) | KeyUse::Make(ring)) => {
            return Ok(Err(format!(
                "{store} is not encrypted, and a key was given: {}; leave it out, or make an encrypted store in another folder",
                ring.name()
            )));
        }
        (true, KeyUse::Bytes) => return Ok(Ok(Vault::Closed)),
        (true, KeyUse::None) => {
            if let Err(locked) = read_key_file(storage)? {
                return Ok(Err(locked));
            }
            return Ok(Err(format!(
                "{store} is encrypted, and no key was given; give its key file or its passphrase"
            )));
        }
        (true, KeyUse::Ring(ring) | KeyUse::Make(ring)) => ring,
    };
    let file = match read_key_file(storage)? {
        Ok(file) => file,
        Err(locked) => return Ok(Err(locked)),
    };
    Ok(unwrap(&file, &**ring, storage)?.map(|key| Vault::Open(Arc::new(key))))
}

/// The id of the ring's key that opens the store in a folder. `None`: there is no wrapped key that can be read.
#[must_use]
pub fn ring_id(folder: &Path) -> Option<[u8; 16]> {
    let storage = FileStorage::new(folder).read_only();
    // Opening the store reports what is wrong with the file.
    let file = read_key_file(&storage).ok()?.ok()?;
    Some(file.ring)
}

/// By what an encrypted store is told, without its key, from one that only bears its id: 32 hex digits. It stays when the key is wrapped anew.
/// `None`: the file of the wrapped key cannot be read.
pub(crate) fn key_mark(storage: &dyn Storage, store: StoreId) -> Option<String> {
    // As above.
    let file = read_key_file(storage).ok()?.ok()?;
    let mut hasher = blake3::Hasher::new_derive_key("acpdb 2026 mark of an encrypted store v1");
    hasher.update(store.as_bytes()).update(&file.key_id);
    Some(hasher.finalize().to_hex().chars().take(32).collect())
}

/// Why no ring can open an encrypted store: its wrapped key is gone. `None`: it is there.
pub(crate) fn key_fault(storage: &dyn Storage) -> Option<String> {
    match read_key_file(storage) {
        Ok(Ok(file)) if file.is_destroyed() => Some("the key of the store was destroyed".to_owned()),
        Ok(Ok(_)) => None,
        Ok(Err(locked)) => Some(locked),
        Err(error) => Some(format!("{} cannot be read: {error}", storage.path(KEY).display())),
    }
}

/// The file of the wrapped key, or why it cannot be had.
fn read_key_file(storage: &dyn Storage) -> io::Result<Result<KeyFile, Locked>> {
    let path = storage.path(KEY);
    let path = path.display();
    Ok(match read_file(storage, KEY, KEY_FILE_BYTES) {
        Ok(Some(bytes)) => KeyFile::decode(&bytes).map_err(|invalid| {
            format!("{path} is damaged: {invalid}; put it back from a backup of the store")
        }),
        Ok(None) => Err(format!(
            "{path} is missing: the key of the store is wrapped in it; put it back from a backup of the store"
        )),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(format!("{path} is damaged: {error}; put it back from a backup of the store"))
        }
        Err(error) => return Err(error),
    })
}

fn unwrap(file: &KeyFile, ring: &dyn KeyRing, storage: &dyn Storage) -> io::Result<Result<StoreKey, Locked>> {
    let store = storage.path("");
    let store = store.display();
    if let Some(key) = file.unwrap(ring)? {
        return Ok(Ok(key));
    }
    if file.is_destroyed() {
        return Ok(Err(format!(
            "the key of {store} was destroyed: nothing in the store can be read any more"
        )));
    }
    Ok(Err(format!("{} does not open {store}; give the key that the store was encrypted with", ring.name())))
}

/// Makes the key of a new store, wraps it and writes its file. Durable when it returns. A file that the ring opens stays: a making that was
/// interrupted left it, or a salvage put it there.
///
/// # Errors
/// If there are no random bytes, the ring cannot be had, or the file cannot be written.
pub(crate) fn make_key(storage: &dyn Storage, entropy: &dyn Entropy, ring: &dyn KeyRing) -> io::Result<()> {
    // A file that is no key, or that another ring opens, is none of this store: it has no frames yet.
    if let Ok(file) = read_key_file(storage)?
        && file.unwrap(ring)?.is_some()
    {
        return Ok(());
    }
    let file = KeyFile::wrap(&StoreKey::draw(entropy)?, ring, &WrapRandom::draw(entropy)?)?;
    write_file(storage, KEY, &file.encode())
}

/// How a rotation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rotated {
    /// The key is wrapped by the new ring now.
    Rotated,
    /// It was wrapped by the new ring before: an earlier rotation had ended.
    Already,
}

/// Wraps a store's key by another ring. The file changes as a whole, or not at all; it can be asked for again after a kill. The key stays: it opens
/// what it opened before, backups too. Call under the store's write lock.
///
/// # Errors
/// As [`open_vault`].
pub fn rotate_key(
    storage: &dyn Storage,
    entropy: &dyn Entropy,
    (old, new): (&dyn KeyRing, &dyn KeyRing),
) -> io::Result<Result<Rotated, String>> {
    let file = match read_key_file(storage)? {
        Ok(file) => file,
        Err(locked) => return Ok(Err(locked)),
    };
    let key = match unwrap(&file, old, storage)? {
        Ok(key) => key,
        // The new ring opens it: nothing is left to do.
        Err(_) if file.unwrap(new)?.is_some() => return Ok(Ok(Rotated::Already)),
        Err(locked) => return Ok(Err(locked)),
    };
    let file = KeyFile::wrap(&key, new, &WrapRandom::draw(entropy)?)?;
    write_file(storage, KEY, &file.encode())?;
    Ok(Ok(Rotated::Rotated))
}
