//! Finds out which store a folder holds, and makes a store.

use std::io;
use std::sync::Arc;

use super::error::{Corruption, LogError};
use super::files::{CHECKPOINT, LOG_DIR, SECRET, STORE_FILE, Segments, TAIL, segment_name, segment_start};
use super::tail::TailState;
use super::{Log, LogOptions};
use crate::codec::{
    DamagedPart, DurablePoint, ENCRYPTED, FORMAT_VERSION, FeatureBits, Invalid, PageCounts,
    SECRET_FILE_BYTES, SEGMENT_HEADER_BYTES, STORE_FILE_BYTES_MAX, SecretFile, SegmentHeader, StoreFile,
    StoreFileError,
};
use crate::ids::{Link, Position, Seq, StoreId};
use crate::secret::Secret;
use crate::storage::{Access, Clock, Entropy, KeyRing, Storage, read_file, read_up_to, write_file};
use crate::vault::{KeyUse, Rotated, StoreKey, Vault, make_key, rotate_key};

/// The contents of the store file.
pub(crate) enum StoreFileState {
    Store(StoreFile),
    Missing,
    Damaged(Invalid),
}

/// Reads the store file.
pub(crate) fn identify(storage: &dyn Storage) -> Result<StoreFileState, LogError> {
    let path = || storage.path(STORE_FILE);
    let bytes = match read_file(storage, STORE_FILE, STORE_FILE_BYTES_MAX) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(StoreFileState::Missing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(StoreFileState::Missing),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let invalid = Invalid {
                part: DamagedPart::StoreFile,
                offset: 0,
                expected: format!("at most {STORE_FILE_BYTES_MAX} bytes"),
                found: error.to_string(),
            };
            return Ok(StoreFileState::Damaged(invalid));
        }
        Err(error) => return Err(LogError::io("read", path(), error)),
    };
    match StoreFile::decode(&bytes) {
        Ok(file) => Ok(StoreFileState::Store(file)),
        Err(StoreFileError::Newer { found }) => {
            let found = format!("has format version {found} (this program reads up to {FORMAT_VERSION})");
            Err(LogError::NewerFormat { found, path: path() })
        }
        Err(StoreFileError::Former { found }) => Err(former(storage, found)),
        Err(StoreFileError::Needs { names }) => Err(LogError::NewerFormat {
            found: format!("needs the features {}", names.join(", ")),
            path: path(),
        }),
        Err(StoreFileError::Invalid(invalid)) => Ok(StoreFileState::Damaged(invalid)),
    }
}

/// The refusal of a store that was made before the first release.
fn former(storage: &dyn Storage, version: u32) -> LogError {
    LogError::FormerFormat { found: format!("has format version {version}"), path: storage.path("") }
}

/// The store id that the other files agree on, if the log holds anything worth keeping.
pub(crate) fn identity_from_log(
    storage: &Arc<dyn Storage>,
    even_if_empty: bool,
) -> Result<Option<StoreId>, LogError> {
    let segments = Segments::new(storage.clone(), StoreId::ZERO);
    let mut holds_frames = even_if_empty;
    let mut store = None;
    for number in segments.numbers()? {
        let Some(file) = segments.get(number)? else { continue };
        let mut bytes = vec![0; SEGMENT_HEADER_BYTES + 16];
        let count = read_up_to(&*file.file, &mut bytes, 0);
        let count = count.map_err(|error| LogError::io("read", segments.path(number), error))?;
        if let Some(version) = SegmentHeader::former(bytes.get(..count).unwrap_or(&[])) {
            return Err(former(&**storage, version));
        }
        holds_frames |= count > SEGMENT_HEADER_BYTES || number > 1;
        if store.is_none() {
            store = SegmentHeader::decode(bytes.get(..count).unwrap_or(&[])).ok().map(|header| header.store);
        }
    }
    // A checkpoint that cannot be read adds nothing to the facts of the segments.
    let checkpoint = read_file(&**storage, CHECKPOINT, 4096).ok().flatten();
    // A damaged checkpoint adds nothing either.
    if let Some(checkpoint) = checkpoint.and_then(|bytes| DurablePoint::decode(&bytes).ok()) {
        holds_frames |= checkpoint.written.seq > Seq::ZERO;
        store = store.or(Some(checkpoint.store));
    }
    Ok(if holds_frames { store.or(Some(StoreId::ZERO)) } else { None })
}

impl Log {
    /// Replaces this store's secret by another store's, for a store that takes over the other's events. For a store in which nothing was recorded.
    /// This handle keeps its old secret.
    pub fn take_secret(&self, secret: &Secret) -> Result<(), LogError> {
        // That of an encrypted store follows from its key.
        if self.is_encrypted() {
            return Ok(());
        }
        let file = SecretFile { store: self.store(), key: *secret.as_bytes() };
        write_file(&**self.storage(), SECRET, &file.encode())
            .map_err(|error| LogError::io("write", self.storage().path(SECRET), error))
    }

    /// The secret in its file, if it can be read.
    pub(crate) fn filed_secret(&self) -> Option<Secret> {
        // The caller takes another secret, or makes one.
        read_secret(&**self.storage(), self.store(), &self.segments.vault).ok()?.ok()
    }
}

/// The store's secret, or the reason why it cannot be had.
///
/// # Errors
/// If its file cannot be read now.
pub(crate) fn read_secret(
    storage: &dyn Storage,
    store: StoreId,
    vault: &Vault,
) -> io::Result<Result<Secret, String>> {
    use io::ErrorKind::{InvalidData, InvalidInput, PermissionDenied};
    if vault.is_encrypted() {
        return Ok(vault.key().map(StoreKey::secret).ok_or_else(|| "the key was not given".to_owned()));
    }
    Ok(match read_file(storage, SECRET, SECRET_FILE_BYTES) {
        Ok(Some(bytes)) => match SecretFile::decode(&bytes, store) {
            Ok(file) => Ok(Secret::new(file.key)),
            Err(invalid) => Err(invalid.to_string()),
        },
        Ok(None) => Err("it is missing".to_owned()),
        Err(error) if !matches!(error.kind(), InvalidData | InvalidInput | PermissionDenied) => {
            return Err(error);
        }
        Err(error) => Err(format!("it cannot be read: {error}")),
    })
}

pub(crate) fn store_file_damage(storage: &dyn Storage, invalid: Option<Invalid>) -> Corruption {
    let missing = Invalid {
        part: DamagedPart::StoreFile,
        offset: 0,
        expected: "the file".to_owned(),
        found: "no file".to_owned(),
    };
    let invalid = invalid.unwrap_or(missing);
    Corruption {
        part: DamagedPart::StoreFile,
        path: storage.path(STORE_FILE),
        segment: 0,
        offset: invalid.offset,
        seq_first: None,
        seq_last: None,
        expected: invalid.expected,
        found: invalid.found,
    }
}

pub(crate) type OpenedTail = (Option<Box<dyn crate::storage::StoredFile>>, bool);

/// Opens the tail for writing; `None` if the caller does not want that, or it is not allowed. Also returns whether the disk is read-only.
pub(crate) fn open_tail(storage: &dyn Storage, read_only: bool) -> Result<OpenedTail, LogError> {
    let access = if read_only { Access::Write } else { Access::Create };
    match storage.open(TAIL, access) {
        Ok(_) if read_only => Ok((None, false)),
        Ok(file) => Ok((Some(file), false)),
        Err(error) => match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Ok((None, true)),
            io::ErrorKind::PermissionDenied => Ok((None, false)),
            _ if read_only => Ok((None, false)),
            _ => Err(LogError::io("open", storage.path(TAIL), error)),
        },
    }
}

/// Makes a store. The store file comes last: while it is missing and the log is empty, making can begin again.
pub(crate) fn make(
    storage: &Arc<dyn Storage>,
    clock: &dyn Clock,
    entropy: &Arc<dyn Entropy>,
    options: &LogOptions,
) -> Result<StoreFile, LogError> {
    let fail = |action, name: &str| LogError::of(action, &**storage, name);
    storage.create_dir("").map_err(fail("create", ""))?;
    storage.create_dir(LOG_DIR).map_err(fail("create", LOG_DIR))?;
    let file = storage.open(TAIL, Access::Create).map_err(fail("create", TAIL))?;
    let tail = TailState::new(storage.clone(), file);
    let _lock = tail.lock(clock, options.lock_wait)?;
    if let StoreFileState::Store(file) = identify(&**storage)? {
        return Ok(file);
    }
    let mut id = [0; 16];
    entropy.fill(&mut id).map_err(fail("draw random bytes for", ""))?;
    let store = options.identity.as_ref().map_or(StoreId(id), |(store, _)| *store);
    let ring = if let KeyUse::Make(ring) = &options.keys { Some(ring) } else { None };
    if let Some(ring) = ring {
        make_key(&**storage, &**entropy, &**ring).map_err(fail("make the key of", ""))?;
    }
    let now = clock.now();
    let header = SegmentHeader {
        store,
        number: 1,
        first_seq: Seq(1),
        previous_end: Position::default(),
        previous_time: now,
        previous: Link::ZERO,
        abandoned: false,
        features: FeatureBits::of(ring.is_some()),
        generation: 0,
        generation_torn: false,
    };
    let start = segment_start(&header);
    write_file(&**storage, &segment_name(1), &header.encode()).map_err(fail("create", &segment_name(1)))?;
    tail.write_page(store, &start, PageCounts::default())?;
    let checkpoint = DurablePoint { store, written: start };
    write_file(&**storage, CHECKPOINT, &checkpoint.encode()).map_err(fail("create", CHECKPOINT))?;
    if ring.is_none() {
        let mut key = [0; 32];
        entropy.fill(&mut key).map_err(fail("draw random bytes for", ""))?;
        let key = options.identity.as_ref().map_or(key, |(_, secret)| **secret);
        write_file(&**storage, SECRET, &SecretFile { store, key }.encode())
            .map_err(fail("create", SECRET))?;
    }
    let needs = ring.map(|_| ENCRYPTED.to_owned()).into_iter().collect();
    let file = StoreFile { store, created: now, needs, writes: Vec::new() };
    write_file(&**storage, STORE_FILE, &file.encode()).map_err(fail("create", STORE_FILE))?;
    // Makes the name of the store's own folder durable.
    storage.sync_dir("..").map_err(fail("sync the directory of", ""))?;
    Ok(file)
}

/// Wraps the key of the store in a folder by another ring, under the write lock. Durable when it returns.
///
/// # Errors
/// [`LogError::NotAStore`], [`LogError::Locked`] if the store is not encrypted or neither ring opens it, [`LogError::Busy`], [`LogError::Io`].
pub(crate) fn rewrap_key(
    storage: &Arc<dyn Storage>,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
    rings: (&dyn KeyRing, &dyn KeyRing),
) -> Result<Rotated, LogError> {
    let path = || storage.path("");
    match identify(&**storage)? {
        StoreFileState::Store(file) if file.is_encrypted() => {}
        StoreFileState::Store(_) => {
            let detail = format!("{} is not encrypted, and has no key", path().display());
            return Err(LogError::Locked { detail });
        }
        StoreFileState::Missing => return Err(LogError::NotAStore { path: path() }),
        StoreFileState::Damaged(invalid) => {
            return Err(LogError::corrupt(store_file_damage(&**storage, Some(invalid))));
        }
    }
    let file = storage.open(TAIL, Access::Create);
    let file = file.map_err(|error| LogError::io("open", storage.path(TAIL), error))?;
    let tail = TailState::new(storage.clone(), file);
    let _lock = tail.lock(clock, LogOptions::default().lock_wait)?;
    let rotated = rotate_key(&**storage, entropy, rings);
    let rotated = rotated.map_err(|error| LogError::io("wrap the key of", path(), error))?;
    rotated.map_err(|detail| LogError::Locked { detail })
}
