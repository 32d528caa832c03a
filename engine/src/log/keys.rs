//! The keys of streams: found, made, rewrapped, destroyed.
//!
//! ```text
//! keys/STREAM.key   wrapped by the ring; made, synced and put in place before the first event that it seals
//! shredded          zeros over the wrapped key, synced -> a file without a key in its place, so that no other is ever made
//! rewrapped         a whole new file, synced, put in place: the name has the old wrapped key or the new one
//! ```
//!
//! The store's own stream stays in plain: a key of its number is the private half of the store's secret.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use super::error::{Corruption, LogError};
use super::fault::Fault;
use super::locking::locked;
use crate::codec::{
    BodyRow, DataKey, FIRST_KEY, Frame, Invalid, KEY_FILE_BYTES, KeyFile, KeyFound, NONCE_BYTES, Part,
    SALT_BYTES, body_context, unpack,
};
use crate::ids::{StoreId, StreamId};
use crate::storage::{Access, Entropy, KeyRing, Storage, StoredFile, read_file, sync, write_all, write_file};

/// The feature that a store with sealed streams names.
pub(crate) const ENCRYPTION: &str = "encryption";
/// The same as a bit in headers of segments.
pub(crate) const ENCRYPTION_BIT: u64 = 1;
/// The folder of wrapped keys.
pub(crate) const KEYS_DIR: &str = "keys";
/// Its lock guards every change in that folder.
const KEYS_LOCK: &str = "KEYS";
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);
const LOCK_TRIES: u32 = 2500;

pub(crate) fn key_name(stream: StreamId) -> String {
    let digits: String = stream.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{KEYS_DIR}/{digits}.key")
}

/// The stream whose key a file holds, by its name.
pub(crate) fn key_stream(file_name: &str) -> Option<StreamId> {
    let digits = file_name.strip_suffix(".key").filter(|digits| digits.len() == 32 && digits.is_ascii())?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(StreamId(bytes))
}

/// The id of the ring that wraps the key of a stream; nothing if there is no such file, it is damaged, or the stream was shredded.
fn ring_of(storage: &dyn Storage, stream: StreamId) -> Option<[u8; 16]> {
    // One that is damaged is told of where it is needed.
    let bytes = read_file(storage, &key_name(stream), KEY_FILE_BYTES).ok()??;
    KeyFile::ring_of(&bytes, stream)
}

/// The id of the ring that opens a store: it wraps the store's own key.
pub(crate) fn ring(storage: &dyn Storage) -> Option<[u8; 16]> {
    ring_of(storage, StreamId::STORE)
}

/// The ids of all rings that wrap keys of a store: first the one that opens it, then others that a rotation began with or left.
pub(crate) fn rings(storage: &dyn Storage) -> io::Result<Vec<[u8; 16]>> {
    let names = match storage.list(KEYS_DIR) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        names => names?,
    };
    let mut streams: Vec<StreamId> = names.iter().filter_map(|name| key_stream(name)).collect();
    streams.sort_by_key(|stream| (*stream != StreamId::STORE, *stream));
    let mut found = Vec::new();
    for stream in streams {
        found.extend(ring_of(storage, stream).filter(|ring| !found.contains(ring)));
    }
    Ok(found)
}

/// The keys of one store, as far as its ring opens them.
pub(crate) struct KeyChain {
    storage: Arc<dyn Storage>,
    entropy: Arc<dyn Entropy>,
    store: StoreId,
    ring: Option<Arc<dyn KeyRing>>,
    known: Mutex<FxHashMap<StreamId, (u32, DataKey)>>,
    /// Set once the store's own key was opened.
    opened: OnceLock<()>,
}

/// What a look for a key found.
enum Found {
    Key(u32, DataKey),
    Shredded,
    /// It cannot be had, and why.
    Not(String),
    /// Its file is not what it was.
    Damaged(String),
    /// There is no file.
    None,
}

struct KeysLock(Box<dyn StoredFile>);

impl Drop for KeysLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

fn hex(id: &[u8; 16]) -> String {
    id.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

impl KeyChain {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        entropy: Arc<dyn Entropy>,
        store: StoreId,
        ring: Option<Arc<dyn KeyRing>>,
    ) -> Self {
        Self { storage, entropy, store, ring, known: Mutex::default(), opened: OnceLock::new() }
    }

    /// Whether there is a ring to open keys with.
    pub(crate) fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Forgets all keys: one of them may have been destroyed or rewrapped.
    pub(crate) fn forget(&self) {
        locked(&self.known).clear();
    }

    fn io(&self, action: &'static str, name: &str) -> impl Fn(io::Error) -> LogError + use<> {
        let path = self.storage.path(name);
        move |error| LogError::io(action, path.clone(), error)
    }

    /// The error of a stream whose key cannot be had.
    fn locked_out(&self, stream: StreamId, why: &str) -> LogError {
        LogError::Locked { path: self.storage.path(&key_name(stream)), why: why.to_owned() }
    }

    /// The error of a stream whose own key file cannot be used. If the store itself opens, this is damage of one stream: all
    /// else goes on.
    fn lost(&self, stream: StreamId, found: &str) -> LogError {
        const REMEDY: &str = "put it back from a backup of the keys";
        if stream == StreamId::STORE || !self.opens() {
            return self.locked_out(stream, &format!("{found}: {REMEDY}"));
        }
        LogError::corrupt(Corruption {
            part: Part::Secret,
            path: self.storage.path(&key_name(stream)),
            segment: 0,
            offset: 0,
            seq_first: None,
            seq_last: None,
            expected: format!("the key of its stream ({REMEDY})"),
            found: found.to_owned(),
        })
    }

    /// Whether the store's own key opened. It is not looked for again: a lost key is met at each event of its stream.
    fn opens(&self) -> bool {
        self.opened.get().is_some() || self.own_key().is_ok()
    }

    fn file(&self, stream: StreamId) -> Result<Result<Option<KeyFile>, Invalid>, LogError> {
        let name = key_name(stream);
        let bytes = match read_file(&*self.storage, &name, KEY_FILE_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let found =
                    Invalid::new(Part::Secret, 0, format!("{KEY_FILE_BYTES} bytes"), error.to_string());
                return Ok(Err(found));
            }
            read => read.map_err(self.io("read", &name))?,
        };
        Ok(bytes.map(|bytes| KeyFile::decode(&bytes, self.store, stream)).transpose())
    }

    /// Whether the key of a stream was destroyed.
    pub(crate) fn is_shredded(&self, stream: StreamId) -> Result<bool, LogError> {
        Ok(matches!(self.file(stream)?, Ok(Some(file)) if file.is_shredded()))
    }

    fn load(&self, stream: StreamId) -> Result<Found, LogError> {
        let file = match self.file(stream)? {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(Found::None),
            Err(invalid) => return Ok(Found::Damaged(format!("its file is damaged: {invalid}"))),
        };
        if file.is_shredded() {
            return Ok(Found::Shredded);
        }
        let Some(ring) = &self.ring else {
            return Ok(Found::Not(format!(
                "the store is sealed with key {}, which was not given",
                hex(&file.ring)
            )));
        };
        let failed = |error: io::Error| LogError::Locked {
            path: self.storage.path(&key_name(stream)),
            why: format!("{} cannot be used: {error}", ring.name()),
        };
        let id = ring.id(self.store).map_err(failed)?;
        if id != file.ring {
            let (wanted, given) = (hex(&file.ring), hex(&id));
            return Ok(Found::Not(format!(
                "it is wrapped by key {wanted}, and {} is key {given}",
                ring.name()
            )));
        }
        let context = KeyFile::context(self.store, stream, file.key);
        Ok(match ring.unwrap(self.store, &file.wrapped, &context).map_err(failed)? {
            Some(key) => Found::Key(file.key, DataKey::new(*key)),
            None => Found::Not(format!("{} does not open it", ring.name())),
        })
    }

    /// The key of a stream with this number.
    fn key(&self, stream: StreamId, number: u32) -> Result<Found, LogError> {
        if let Some((_, key)) = locked(&self.known).get(&stream).filter(|(of, _)| *of == number) {
            return Ok(Found::Key(number, key.clone()));
        }
        if self.ring.is_none() {
            return Ok(Found::Not("the store is sealed, and no key was given".to_owned()));
        }
        let found = self.load(stream)?;
        match found {
            Found::Key(of, key) if of == number => {
                locked(&self.known).insert(stream, (of, key.clone()));
                Ok(Found::Key(of, key))
            }
            Found::Key(of, _) => {
                Ok(Found::Not(format!("it is key {of} of its stream, and key {number} is needed")))
            }
            found => Ok(found),
        }
    }

    /// A frame with what its keys open of it in plain.
    pub(crate) fn open_frame(&self, frame: Frame) -> Frame {
        frame.open(&mut |stream, number| match self.key(stream, number) {
            Ok(Found::Key(_, key)) => KeyFound::Key(key),
            Ok(Found::Shredded) => KeyFound::Shredded,
            _ => KeyFound::Missing,
        })
    }

    /// Why the key of a stream cannot be had.
    pub(crate) fn why_locked(&self, stream: StreamId) -> LogError {
        match self.load(stream) {
            Ok(Found::Not(why)) => self.locked_out(stream, &why),
            Ok(Found::None) => self.lost(stream, "there is no such file"),
            Ok(Found::Damaged(why)) => self.lost(stream, &why),
            Ok(_) => self.locked_out(stream, "it does not open what it should"),
            Err(error) => error,
        }
    }

    /// A sealed body in plain.
    pub(crate) fn open_body(
        &self,
        row: &BodyRow,
        salt: &[u8; SALT_BYTES],
        stored: &[u8],
    ) -> Result<Vec<u8>, Fault> {
        let key = match self.key(row.stream, row.key).map_err(Fault::Error)? {
            Found::Key(_, key) => key,
            Found::Shredded => return Err(Fault::Error(LogError::Erased { position: row.position })),
            _ => return Err(Fault::Error(self.why_locked(row.stream))),
        };
        let context = body_context(self.store, row.stream, (row.key, row.codec), row.bytes, salt);
        let damaged = |expected: &str, found: String| {
            Fault::Invalid(Invalid::new(Part::Body, 0, expected.to_owned(), found), None)
        };
        let packed = key
            .open(&context, stored)
            .ok_or_else(|| damaged("a body sealed for this place", "one of another place".to_owned()))?;
        unpack(row.codec, &packed, row.bytes as usize).map_err(|found| damaged("a packed body", found))
    }

    /// The key that seals what is added to a stream; made if the stream is new. Durable when it returns.
    pub(crate) fn key_to_append(&self, stream: StreamId) -> Result<(u32, DataKey), LogError> {
        if let Some((number, key)) = locked(&self.known).get(&stream) {
            return Ok((*number, key.clone()));
        }
        if self.ring.is_none() {
            return Err(self.why_locked(StreamId::STORE));
        }
        let _lock = self.lock()?;
        let (number, key) = match self.load(stream)? {
            Found::Key(number, key) => (number, key),
            Found::Shredded => return Err(LogError::Shredded { stream }),
            Found::Not(why) => return Err(self.locked_out(stream, &why)),
            Found::Damaged(why) => return Err(self.lost(stream, &why)),
            Found::None => (FIRST_KEY, self.make(stream)?),
        };
        locked(&self.known).insert(stream, (number, key.clone()));
        Ok((number, key))
    }

    /// The private half of the store's secret.
    pub(crate) fn own_key(&self) -> Result<DataKey, LogError> {
        match self.load(StreamId::STORE)? {
            Found::Key(_, key) => {
                let _ = self.opened.set(());
                Ok(key)
            }
            _ => Err(self.why_locked(StreamId::STORE)),
        }
    }

    /// Takes the lock of the folder of keys.
    fn lock(&self) -> Result<KeysLock, LogError> {
        let file = self.storage.open(KEYS_LOCK, Access::Create).map_err(self.io("open", KEYS_LOCK))?;
        for _ in 0..LOCK_TRIES {
            if file.try_lock().map_err(self.io("lock", KEYS_LOCK))? {
                return Ok(KeysLock(file));
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(LogError::Busy { process: 0, path: self.storage.path(KEYS_LOCK) })
    }

    fn random<const N: usize>(&self) -> Result<[u8; N], LogError> {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes).map_err(self.io("draw random bytes for", KEYS_DIR))?;
        Ok(bytes)
    }

    /// Makes the first key of a stream. The caller holds the lock, or is making the store.
    pub(crate) fn make(&self, stream: StreamId) -> Result<DataKey, LogError> {
        let Some(ring) = &self.ring else { return Err(self.why_locked(stream)) };
        let key = DataKey::new(self.random()?);
        self.put(&**ring, stream, FIRST_KEY, &key)?;
        Ok(key)
    }

    fn put(&self, ring: &dyn KeyRing, stream: StreamId, number: u32, key: &DataKey) -> Result<(), LogError> {
        let name = key_name(stream);
        let failed =
            |error: io::Error| self.locked_out(stream, &format!("{} cannot be used: {error}", ring.name()));
        let context = KeyFile::context(self.store, stream, number);
        let nonce: [u8; NONCE_BYTES] = self.random()?;
        let wrapped = ring.wrap(self.store, key.as_bytes(), &context, &nonce).map_err(failed)?;
        let ring = ring.id(self.store).map_err(failed)?;
        let file = KeyFile { store: self.store, stream, key: number, ring, wrapped };
        let bytes = file.encode().ok_or_else(|| self.locked_out(stream, "the wrapped key is too long"))?;
        write_file(&*self.storage, &name, &bytes).map_err(self.io("write", &name))
    }

    /// Destroys the key of a stream: its bytes become zeros where they lie, synced; then a file without a key takes the name. What was
    /// sealed with it is gone, and nothing is added to the stream any more. Done again it changes nothing.
    pub(crate) fn shred(&self, stream: StreamId) -> Result<(), LogError> {
        let _lock = self.lock()?;
        self.forget();
        let name = key_name(stream);
        let file = self.file(stream)?;
        if matches!(&file, Ok(Some(file)) if file.is_shredded()) {
            return Ok(());
        }
        for name in [name.clone(), format!("{name}.tmp")] {
            match self.storage.open(&name, Access::Write) {
                Ok(file) => {
                    let length =
                        usize::try_from(file.len().map_err(self.io("inspect", &name))?).unwrap_or(usize::MAX);
                    let zeros = vec![0; length.min(KEY_FILE_BYTES)];
                    write_all(&*file, &zeros, 0, &mut 0).map_err(self.io("zero", &name))?;
                    sync(&*file).map_err(self.io("sync", &name))?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.io("open", &name)(error)),
            }
        }
        let gone = KeyFile { store: self.store, stream, key: FIRST_KEY, ring: [0; 16], wrapped: Vec::new() };
        let bytes = gone.encode().unwrap_or_default();
        self.storage.create_dir(KEYS_DIR).map_err(self.io("create", KEYS_DIR))?;
        write_file(&*self.storage, &name, &bytes).map_err(self.io("write", &name))
    }

    /// The streams that have a file, rising.
    pub(crate) fn streams(&self) -> Result<Vec<StreamId>, LogError> {
        match self.storage.list(KEYS_DIR) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => {
                let names = listed.map_err(self.io("list", KEYS_DIR))?;
                Ok(names.iter().filter_map(|name| key_stream(name)).collect())
            }
        }
    }

    /// Wraps every key anew with another ring, the store's own last. Taken up again after a crash it goes on: keys that the other ring opens
    /// are left as they are. Returns how many were wrapped.
    pub(crate) fn rewrap(&self, to: &Arc<dyn KeyRing>) -> Result<u64, LogError> {
        let _lock = self.lock()?;
        let other =
            Self::new(Arc::clone(&self.storage), Arc::clone(&self.entropy), self.store, Some(Arc::clone(to)));
        let mut streams = self.streams()?;
        streams.sort_by_key(|stream| *stream == StreamId::STORE);
        let mut count = 0;
        for stream in streams {
            match self.load(stream)? {
                Found::Key(number, key) => {
                    self.zero_old(stream, || self.put(&**to, stream, number, &key))?;
                    count += 1;
                }
                Found::Not(why) => {
                    if !matches!(other.load(stream)?, Found::Key(..)) {
                        return Err(self.locked_out(stream, &why));
                    }
                }
                Found::Damaged(why) => return Err(self.lost(stream, &why)),
                Found::Shredded | Found::None => {}
            }
        }
        self.forget();
        Ok(count)
    }

    /// Puts a new file in place of a stream's; then the bytes of the old one, which has no name any more, become zeros.
    fn zero_old(&self, stream: StreamId, put: impl FnOnce() -> Result<(), LogError>) -> Result<(), LogError> {
        let name = key_name(stream);
        let old = self.storage.open(&name, Access::Write).map_err(self.io("open", &name))?;
        put()?;
        write_all(&*old, &[0; KEY_FILE_BYTES], 0, &mut 0).map_err(self.io("zero the old", &name))?;
        sync(&*old).map_err(self.io("sync the old", &name))
    }

    /// Copies all wrapped keys to another storage.
    pub(crate) fn copy_to(&self, target: &dyn Storage) -> Result<u64, LogError> {
        let fail = |action, path| move |error| LogError::io(action, path, error);
        target.create_dir(KEYS_DIR).map_err(fail("create", target.path(KEYS_DIR)))?;
        let mut count = 0;
        for stream in self.streams()? {
            let name = key_name(stream);
            let bytes = read_file(&*self.storage, &name, KEY_FILE_BYTES).map_err(self.io("read", &name))?;
            if let Some(bytes) = bytes {
                write_file(target, &name, &bytes).map_err(fail("write", target.path(&name)))?;
                count += 1;
            }
        }
        target.sync_dir("").map_err(fail("sync", target.path("")))?;
        Ok(count)
    }
}
