//! The keys of streams: made, found by their numbers, opened.
//!
//! ```text
//! keys/STREAM.key        data keys of a stream by rising numbers, wrapped by the ring or by a subject's key
//! keys/SUBJECT.subject   a subject's key, wrapped by the ring; the subject's name sealed under it
//! added to a stream      sealed under its newest key; envelopes and rows say which key opens them
//! ```
//!
//! A key is synced and in place before the first event that it seals. Cached keys belong to a generation of the files: adding or destroying a key
//! raises the generation. The store's own stream is not sealed: the key with its number is the private half of the store's secret.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use super::error::{Corruption, Fault, LogError};
use super::key_folder::{KeyFolder, key_name, subject_name};
use crate::codec::{
    BodyRow, DataKey, FIRST_KEY, Frame, Invalid, KeyFile, KeyFound, NONCE_BYTES, Part, SALT_BYTES,
    SubjectFile, WrappedKey, body_context, unpack,
};
use crate::ids::{StoreId, StreamId, SubjectId};
use crate::locks::steady;
use crate::storage::{Entropy, KeyRing, Storage};

/// The remedy at the end of a message about a file of keys that is missing or damaged.
pub const PUT_BACK: &str = "put it back from a copy of the folder keys";

/// The keys of one store that its ring opens.
pub(crate) struct KeyChain {
    pub(super) folder: KeyFolder,
    entropy: Arc<dyn Entropy>,
    pub(super) ring: Option<Arc<dyn KeyRing>>,
    /// Rings that wrapped keys before a rotation.
    older: Vec<Arc<dyn KeyRing>>,
    known: Mutex<Known>,
    /// Set once the store's own key was opened.
    opened: OnceLock<()>,
}

/// Keys that were opened.
#[derive(Default)]
struct Known {
    keys: FxHashMap<(StreamId, u32), DataKey>,
    /// The newest key of a stream, and the generation of files that was current before its file was read.
    newest: FxHashMap<StreamId, (u32, u32)>,
    subjects: FxHashMap<SubjectId, DataKey>,
}

/// The result of a look for a key.
pub(super) enum Found {
    Key(DataKey),
    Shredded,
    /// The key cannot be had; the reason.
    Not(String),
    /// Its file is damaged, or its subject's file is damaged or missing; the fault.
    Damaged(String),
    /// There is no file.
    None,
}

/// The key that wraps the keys of a stream.
#[derive(Clone, Copy)]
pub(super) enum Around<'a> {
    Ring(&'a dyn KeyRing),
    Subject(SubjectId, &'a DataKey),
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
        Self {
            folder: KeyFolder { storage, store, copies: Vec::new(), from_copies: Mutex::default() },
            entropy,
            ring,
            older: Vec::new(),
            known: Mutex::default(),
            opened: OnceLock::new(),
        }
    }

    /// With copies of the folder, for files that are not in it or are damaged, and the rings that may have wrapped their keys.
    pub(super) fn beside(mut self, copies: Vec<Arc<dyn Storage>>, older: Vec<Arc<dyn KeyRing>>) -> Self {
        (self.folder.copies, self.older) = (copies, older);
        self
    }

    /// Keeps a key that was opened or made. `generation` is given if the key is its stream's newest in that generation of files.
    pub(super) fn keep(&self, stream: StreamId, number: u32, key: &DataKey, generation: Option<u32>) {
        let mut known = steady(&self.known);
        known.keys.insert((stream, number), key.clone());
        if let Some(generation) = generation {
            known.newest.insert(stream, (number, generation));
        }
    }

    /// The keys of the same folder, opened by another ring.
    pub(super) fn with_ring(&self, ring: &Arc<dyn KeyRing>) -> Self {
        Self::new(
            Arc::clone(&self.folder.storage),
            Arc::clone(&self.entropy),
            self.folder.store,
            Some(Arc::clone(ring)),
        )
    }

    /// Whether there is a ring to open keys with.
    pub(crate) fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Whether a ring that is not here wraps the key of a stream, or that of its subject.
    pub(super) fn is_under_other_ring(&self, stream: StreamId) -> Result<bool, LogError> {
        let Ok(Some(file)) = self.folder.stream(stream)? else { return Ok(false) };
        let wrapped_by = match file.subject {
            None => file.ring,
            Some(subject) => match self.folder.subject(subject)? {
                Ok(Some(file)) => file.ring,
                Ok(None) | Err(_) => return Ok(false),
            },
        };
        let is_it = |ring: &Arc<dyn KeyRing>| ring.id(self.folder.store).is_ok_and(|id| id == wrapped_by);
        Ok(!self.ring.iter().chain(&self.older).any(is_it))
    }

    /// Forgets all keys: one of them may have been destroyed or rewrapped, or another added.
    pub(crate) fn forget(&self) {
        *steady(&self.known) = Known::default();
    }

    /// The error of a stream whose key cannot be had.
    pub(super) fn locked_out(&self, stream: StreamId, why: &str) -> LogError {
        LogError::Locked { path: self.folder.storage.path(&key_name(stream)), why: why.to_owned() }
    }

    /// The error of a stream whose own key file cannot be used. If the store's own key opens, this is damage of one stream, and the other streams
    /// still work.
    pub(super) fn lost(&self, stream: StreamId, found: &str) -> LogError {
        if stream == StreamId::STORE || !self.opens() {
            return self.locked_out(stream, &format!("{found}: {PUT_BACK}"));
        }
        LogError::corrupt(Corruption {
            part: Part::Secret,
            path: self.folder.storage.path(&key_name(stream)),
            segment: 0,
            offset: 0,
            seq_first: None,
            seq_last: None,
            expected: format!("the key of its stream ({PUT_BACK})"),
            found: found.to_owned(),
        })
    }

    /// Whether the store's own key opens. The answer yes is kept, since each event of a stream with a lost key asks.
    fn opens(&self) -> bool {
        self.opened.get().is_some() || self.own_key().is_ok()
    }

    /// The error for a result of a look for a stream's key that is not a usable key.
    pub(super) fn refusal(&self, stream: StreamId, found: Found) -> LogError {
        match found {
            Found::Not(why) => self.locked_out(stream, &why),
            Found::None => self.lost(stream, "there is no such file"),
            Found::Damaged(why) => self.lost(stream, &why),
            Found::Shredded => LogError::Shredded { stream },
            Found::Key(_) => self.locked_out(
                stream,
                "it does not open what it should; a copy that is older than the log lacks the newest keys",
            ),
        }
    }

    /// Whether the key of a stream or the key of its subject was destroyed.
    pub(crate) fn is_shredded(&self, stream: StreamId) -> Result<bool, LogError> {
        let Ok(Some(file)) = self.folder.stream(stream)? else { return Ok(false) };
        Ok(match file.subject {
            _ if file.is_shredded() => true,
            Some(subject) => {
                matches!(self.folder.subject(subject)?, Ok(Some(file)) if file.is_shredded())
            }
            None => false,
        })
    }

    /// The key that a ring wraps in a file.
    fn by_ring(
        &self,
        name: &str,
        wrapped_by: &[u8; 16],
        wrapped: &[u8],
        context: &[u8],
    ) -> Result<Found, LogError> {
        let Some(ring) = &self.ring else {
            let key = hex(wrapped_by);
            return Ok(Found::Not(format!("the store is sealed with key {key}, which was not given")));
        };
        let failed = |error: io::Error| LogError::Locked {
            path: self.folder.storage.path(name),
            why: format!("{} cannot be used: {error}", ring.name()),
        };
        let id = ring.id(self.folder.store).map_err(failed)?;
        // An older ring that cannot be used is as one that was not given: the file is reported.
        let fits = |older: &&Arc<dyn KeyRing>| older.id(self.folder.store).is_ok_and(|id| id == *wrapped_by);
        let fitting = if id == *wrapped_by { Some(ring) } else { self.older.iter().find(fits) };
        let Some(ring) = fitting else {
            let (wanted, given) = (hex(wrapped_by), hex(&id));
            let it = if steady(&self.folder.from_copies).contains(name) {
                "the one in a backup was left out: it"
            } else {
                "it"
            };
            return Ok(Found::Not(format!(
                "{it} is wrapped by key {wanted}, and {} is key {given}",
                ring.name()
            )));
        };
        Ok(match ring.unwrap(self.folder.store, wrapped, context).map_err(failed)? {
            Some(key) => Found::Key(DataKey::new(*key)),
            None => Found::Not(format!("{} does not open it", ring.name())),
        })
    }

    /// The key of a subject.
    pub(super) fn subject_key(&self, subject: SubjectId) -> Result<Found, LogError> {
        let name = subject_name(subject);
        let file = self.folder.subject(subject)?;
        // Another process may have destroyed a key that is known here.
        if matches!(&file, Ok(Some(file)) if file.is_shredded()) {
            return Ok(Found::Shredded);
        }
        if let Some(key) = steady(&self.known).subjects.get(&subject) {
            return Ok(Found::Key(key.clone()));
        }
        let file = match file {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(Found::None),
            Err(invalid) => return Ok(Found::Damaged(invalid.to_string())),
        };
        let context = SubjectFile::key_context(self.folder.store, subject);
        let found = self.by_ring(&name, &file.ring, &file.wrapped, &context)?;
        if let Found::Key(key) = &found {
            steady(&self.known).subjects.insert(subject, key.clone());
        }
        Ok(found)
    }

    /// One of the keys in a stream's file.
    pub(super) fn open(&self, file: &KeyFile, number: u32) -> Result<Found, LogError> {
        let Some(newest) = file.newest() else { return Ok(Found::Shredded) };
        let Some(wrapped) = file.wrapped(number) else {
            return Ok(Found::Not(format!(
                "its newest key is {newest}, and key {number} is needed: put back a newer copy of it"
            )));
        };
        let context = KeyFile::context(self.folder.store, file.stream, number, file.subject);
        let Some(subject) = file.subject else {
            return self.by_ring(&key_name(file.stream), &file.ring, wrapped, &context);
        };
        let place = self.folder.storage.path(&subject_name(subject));
        Ok(match self.subject_key(subject)? {
            Found::Key(key) => {
                let opened = key.open(&context, wrapped).map(zeroize::Zeroizing::new);
                match opened.and_then(|key| Some(DataKey::new(*key.first_chunk()?))) {
                    Some(key) => Found::Key(key),
                    None => Found::Not(format!("{} does not open it", place.display())),
                }
            }
            Found::None => {
                Found::Damaged(format!("the key of its subject, {}, is not there", place.display()))
            }
            Found::Damaged(why) => {
                Found::Damaged(format!("the key of its subject, {}: {why}", place.display()))
            }
            other => other,
        })
    }

    /// The file of a stream's keys, or the reason why there is none to use.
    pub(super) fn file(&self, stream: StreamId) -> Result<Result<KeyFile, Found>, LogError> {
        Ok(match self.folder.stream(stream)? {
            Ok(Some(file)) => Ok(file),
            Ok(None) => Err(Found::None),
            Err(invalid) => Err(damaged(&invalid)),
        })
    }

    /// The key of a stream with this number; without a number, the newest.
    fn load(&self, stream: StreamId, number: Option<u32>) -> Result<(u32, Found), LogError> {
        let file = match self.file(stream)? {
            Ok(file) => file,
            Err(found) => return Ok((0, found)),
        };
        // A file without keys has no key 0 either: `open` returns `Shredded`.
        let number = number.or(file.newest()).unwrap_or_default();
        Ok((number, self.open(&file, number)?))
    }

    /// The newest key of a stream.
    pub(super) fn newest(&self, stream: StreamId) -> Result<Found, LogError> {
        self.load(stream, None).map(|(_, found)| found)
    }

    /// The key of a stream with this number, for reading.
    fn key(&self, stream: StreamId, number: u32) -> Result<Found, LogError> {
        if let Some(key) = steady(&self.known).keys.get(&(stream, number)) {
            return Ok(Found::Key(key.clone()));
        }
        if self.ring.is_none() {
            return Ok(Found::Not("the store is sealed, and no key was given".to_owned()));
        }
        let (_, found) = self.load(stream, Some(number))?;
        if let Found::Key(key) = &found {
            steady(&self.known).keys.insert((stream, number), key.clone());
        }
        Ok(found)
    }

    /// A frame in which the events that their keys open are in plain.
    pub(crate) fn open_frame(&self, frame: Frame) -> Frame {
        frame.open(&mut |stream, number| match self.key(stream, number) {
            Ok(Found::Key(key)) => KeyFound::Key(key),
            Ok(Found::Shredded) => KeyFound::Shredded,
            Err(LogError::Io { .. }) => KeyFound::Unread,
            _ => KeyFound::Missing,
        })
    }

    /// The error that says why the key of a stream cannot be had.
    pub(crate) fn why_locked(&self, stream: StreamId) -> LogError {
        match self.load(stream, None) {
            // Without a ring no file is looked at before a read fails, so the caller could not tell that the stream was shredded.
            Ok((_, Found::Shredded)) => self.locked_out(stream, "it was destroyed"),
            Ok((_, found)) => self.refusal(stream, found),
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
            Found::Key(key) => key,
            Found::Shredded => return Err(Fault::Error(LogError::Erased { position: row.position })),
            Found::Not(why) if self.ring.is_some() => {
                return Err(Fault::Error(self.locked_out(row.stream, &why)));
            }
            _ => return Err(Fault::Error(self.why_locked(row.stream))),
        };
        let context = body_context(self.folder.store, row.stream, (row.key, row.codec), row.bytes, salt);
        let damaged = |expected: &str, found: String| {
            Fault::Invalid(Invalid::new(Part::Body, 0, expected.to_owned(), found), None)
        };
        let packed = key
            .open(&context, stored)
            .ok_or_else(|| damaged("a body sealed for this place", "one of another place".to_owned()))?;
        unpack(row.codec, &packed, row.bytes as usize).map_err(|found| damaged("a packed body", found))
    }

    /// The key that seals events added to a stream; made if the stream is new. Durable when it returns. `generation`: the generation of files that
    /// the caller saw before the call.
    pub(crate) fn key_to_append(
        &self,
        stream: StreamId,
        generation: u32,
    ) -> Result<(u32, DataKey), LogError> {
        {
            let known = steady(&self.known);
            if let Some((number, of)) = known.newest.get(&stream)
                && *of == generation
                && let Some(key) = known.keys.get(&(stream, *number))
            {
                return Ok((*number, key.clone()));
            }
        }
        let Some(ring) = &self.ring else { return Err(self.why_locked(StreamId::STORE)) };
        let (number, key) = match self.load(stream, None)? {
            (number, Found::Key(key)) => {
                // The process that made it may not have come to that, or not yet. Mostly nothing is left to sync.
                self.folder.sync_names()?;
                (number, key)
            }
            (_, Found::None) => {
                let _lock = self.folder.lock()?;
                self.check_ring(stream)?;
                match self.load(stream, None)? {
                    (number, Found::Key(key)) => (number, key),
                    (_, Found::None) => (FIRST_KEY, self.make(Around::Ring(&**ring), stream)?),
                    (_, found) => return Err(self.refusal(stream, found)),
                }
            }
            (_, found) => return Err(self.refusal(stream, found)),
        };
        self.keep(stream, number, &key, Some(generation));
        Ok((number, key))
    }

    /// Refuses if a key is no longer the newest of its stream.
    pub(crate) fn check_newest(&self, stream: StreamId, number: u32) -> Result<(), LogError> {
        match self.file(stream)? {
            Ok(file) if file.newest() == Some(number) && !self.is_shredded(stream)? => Ok(()),
            Ok(file) if file.newest().is_some() && !self.is_shredded(stream)? => {
                Err(LogError::KeyRotated { stream })
            }
            Ok(_) => Err(LogError::Shredded { stream }),
            Err(found) => Err(self.refusal(stream, found)),
        }
    }

    /// Refuses to make a key with a ring that is no longer the store's: another process may have wrapped all keys anew, and the old ring may be
    /// destroyed next. Call under the lock of the folder: the store's own key is the last that is wrapped anew.
    pub(crate) fn check_ring(&self, stream: StreamId) -> Result<(), LogError> {
        // The store's own key is made before all others.
        if stream == StreamId::STORE { Ok(()) } else { self.own_key().map(drop) }
    }

    /// The private half of the store's secret.
    pub(crate) fn own_key(&self) -> Result<DataKey, LogError> {
        match self.load(StreamId::STORE, None)? {
            (_, Found::Key(key)) => {
                // The only error is that the mark was set before.
                let _ = self.opened.set(());
                Ok(key)
            }
            _ => Err(self.why_locked(StreamId::STORE)),
        }
    }

    pub(super) fn random<const N: usize>(&self) -> Result<[u8; N], LogError> {
        let mut bytes = [0; N];
        let fill = self.entropy.fill(&mut bytes);
        fill.map_err(self.folder.io("draw random bytes for", super::key_folder::KEYS_DIR))?;
        Ok(bytes)
    }

    /// Makes the store's own key.
    pub(crate) fn make_own(&self) -> Result<DataKey, LogError> {
        let Some(ring) = &self.ring else { return Err(self.why_locked(StreamId::STORE)) };
        self.make(Around::Ring(&**ring), StreamId::STORE)
    }

    /// Makes the first key of a stream. The caller holds the lock, or is making the store.
    pub(super) fn make(&self, around: Around<'_>, stream: StreamId) -> Result<DataKey, LogError> {
        let key = DataKey::new(self.random()?);
        let file = self.wrapped(around, stream, &[(FIRST_KEY, key.clone())])?;
        self.folder.put(&key_name(stream), &self.encoded(&file)?)?;
        Ok(key)
    }

    /// A file of a stream with these keys.
    pub(super) fn wrapped(
        &self,
        around: Around<'_>,
        stream: StreamId,
        keys: &[(u32, DataKey)],
    ) -> Result<KeyFile, LogError> {
        let store = self.folder.store;
        let (ring, subject) = match around {
            Around::Ring(ring) => (ring.id(store).map_err(self.unusable(ring, stream))?, None),
            Around::Subject(subject, _) => ([0; 16], Some(subject)),
        };
        let mut file = KeyFile { store, stream, ring, subject, keys: Vec::with_capacity(keys.len()) };
        for (number, key) in keys {
            file.keys.push(WrappedKey { number: *number, bytes: self.wrap(around, stream, *number, key)? });
        }
        Ok(file)
    }

    pub(super) fn wrap(
        &self,
        around: Around<'_>,
        stream: StreamId,
        number: u32,
        key: &DataKey,
    ) -> Result<Vec<u8>, LogError> {
        let (store, nonce): (_, [u8; NONCE_BYTES]) = (self.folder.store, self.random()?);
        match around {
            Around::Ring(ring) => {
                let context = KeyFile::context(store, stream, number, None);
                ring.wrap(store, key.as_bytes(), &context, &nonce).map_err(self.unusable(ring, stream))
            }
            Around::Subject(subject, outer) => {
                let context = KeyFile::context(store, stream, number, Some(subject));
                let wrapped = outer.seal(&nonce, &context, key.as_bytes());
                wrapped.ok_or_else(|| self.locked_out(stream, "its key cannot be wrapped"))
            }
        }
    }

    fn unusable<'a>(
        &'a self,
        ring: &'a dyn KeyRing,
        stream: StreamId,
    ) -> impl Fn(io::Error) -> LogError + 'a {
        move |error| self.locked_out(stream, &format!("{} cannot be used: {error}", ring.name()))
    }

    pub(super) fn encoded(&self, file: &KeyFile) -> Result<Vec<u8>, LogError> {
        let failed = || {
            let most = crate::codec::STREAM_KEYS_MAX;
            self.locked_out(file.stream, &format!("a wrapped key is too long, or there are more than {most}"))
        };
        file.encode().ok_or_else(failed)
    }
}

fn damaged(invalid: &Invalid) -> Found {
    Found::Damaged(format!("its file is damaged: {invalid}"))
}
