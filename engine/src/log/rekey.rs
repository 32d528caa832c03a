//! Keys of streams while the log is open: changed, and no commit sealed under one that is no longer its stream's newest.
//!
//! ```text
//! change   SEAL { files of keys changed, synced -> write lock { generation raised } }
//! commit   generation seen -> keys looked for -> sealed -> write lock { generation another? keys still the newest? -> written }
//! ```
//!
//! So when a change returns, whatever gets its place from then on is sealed under the keys that it left.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::error::LogError;
use super::keys::KeyChain;
use super::{Log, Prepared};
use crate::codec::{
    BODY_CHUNK_BYTES_MAX, DataKey, EncodeError, EncodedBody, EncodedEvent, NONCE_BYTES, PayloadSeal,
    SALT_BYTES, SealedBody, body_context, body_nonce, encode_sealed_frame, pack_to_record,
};
use crate::ids::{StreamId, SubjectId};
use crate::locks::steady;
use crate::storage::{KeyRing, Storage};

impl Log {
    /// Why a stream cannot be read, in a store whose key is not at hand.
    pub(crate) fn why_locked(&self, stream: StreamId) -> LogError {
        match self.segments.keys() {
            Some(keys) => keys.why_locked(stream),
            None => LogError::NotAStore { path: self.storage.path("") },
        }
    }

    fn keys_to_change(&self) -> Result<Option<&KeyChain>, LogError> {
        self.check_process()?;
        if self.is_read_only() {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        }
        Ok(self.segments.keys())
    }

    /// Whether the store's own key is here: a copy may have none of its keys.
    pub(crate) fn has_own_key(&self) -> Result<bool, LogError> {
        let Some(keys) = self.segments.keys() else { return Ok(false) };
        Ok(!matches!(keys.folder.stream(StreamId::STORE)?, Ok(None)))
    }

    /// Wraps all keys anew with another ring. Returns how many.
    ///
    /// # Errors
    /// [`LogError::Locked`] if one of them can be opened by neither ring; [`LogError::Io`]. What was wrapped stays so; called again it goes on.
    pub fn rewrap_keys(&self, to: &Arc<dyn KeyRing>) -> Result<u64, LogError> {
        self.keys_to_change()?.map_or(Ok(0), |keys| keys.rewrap(to))
    }

    /// Gives streams, else all of them, a new key each. When it returns nothing is sealed under their older keys any more, by whichever process.
    /// Returns how many got one.
    ///
    /// # Errors
    /// [`LogError::Locked`] if the ring does not open a stream's newest key; [`LogError::Busy`], [`LogError::Io`]. Streams that got one keep it.
    pub fn add_keys(&self, streams: Option<&[StreamId]>) -> Result<u64, LogError> {
        let Some(keys) = self.keys_to_change()? else { return Ok(0) };
        let _seal = self.wait_for_seal_lock()?;
        let added = match streams {
            Some(streams) => keys.add_keys(streams),
            None => keys.add_keys(&keys.folder.streams()?),
        };
        // Also if it stopped half way.
        self.keys_changed()?;
        added
    }

    /// Destroys the keys of a stream, and tells all handles of any process to forget them. Durable when it returns. Call while erasing.
    ///
    /// # Errors
    /// [`LogError::Io`]; called again it goes on.
    pub fn shred_key(&self, stream: StreamId) -> Result<(), LogError> {
        let Some(keys) = self.keys_to_change()? else { return Ok(()) };
        keys.shred(stream)?;
        self.keys_changed()
    }

    /// Destroys the key of a subject. As [`Log::shred_key`].
    ///
    /// # Errors
    /// [`LogError::Io`]; called again it goes on.
    pub fn shred_subject_key(&self, subject: SubjectId) -> Result<(), LogError> {
        let Some(keys) = self.keys_to_change()? else { return Ok(()) };
        keys.shred_subject(subject)?;
        self.keys_changed()
    }

    /// Tells all handles of any process that keys changed. When it returns, no commit gets a place any more that was sealed under
    /// others. Call under the lock of SEAL.
    fn keys_changed(&self) -> Result<(), LogError> {
        let Some(tail) = &self.tail else { return Ok(()) };
        // The lock of a file does not tell threads apart. What it guards is not looked at, and a key that is destroyed has to be told
        // of even after a panic.
        let _writer = steady(&self.writer);
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        tail.raise_generation()
    }

    /// Whether the key of a stream was destroyed.
    ///
    /// # Errors
    /// [`LogError::Io`] if its file cannot be read.
    pub fn is_shredded(&self, stream: StreamId) -> Result<bool, LogError> {
        self.segments.keys().map_or(Ok(false), |keys| keys.is_shredded(stream))
    }

    /// Copies the wrapped keys to a copy of the store. Returns how many.
    ///
    /// # Errors
    /// [`LogError::Io`] and [`LogError::NoSpace`] of either side.
    pub fn copy_keys_to(&self, target: &dyn Storage) -> Result<u64, LogError> {
        self.segments.keys().map_or(Ok(0), |keys| keys.copy_to(target))
    }

    /// Makes the first key of a stream that is about a subject. `name`: of the subject, which is made if it is new. A stream that has a key is left as it
    /// is. Durable when it returns.
    ///
    /// # Errors
    /// [`LogError::SubjectShredded`], [`LogError::Locked`], [`LogError::Io`].
    pub(crate) fn begin_about(
        &self,
        stream: StreamId,
        subject: SubjectId,
        name: Option<&str>,
    ) -> Result<(), LogError> {
        self.keys_to_change()?.map_or(Ok(()), |keys| keys.begin_about(stream, subject, name))
    }

    /// As [`Log::prepare`], in a store whose streams are sealed: all but the store's own.
    pub(super) fn prepare_sealed(
        &self,
        keys: &KeyChain,
        events: &[EncodedEvent],
    ) -> Result<Prepared, LogError> {
        let generation = self.generation();
        let mut bodies = 0;
        let mut seal = PayloadSeal { store: self.store(), random: self.random()?, keys: Vec::new() };
        // The store's own key first: without it nothing is recorded at all.
        keys.key_to_append(StreamId::STORE, generation)?;
        let mut shared: HashMap<(StreamId, blake3::Hash), SealedBody> = HashMap::new();
        let mut sealed = Vec::with_capacity(events.len());
        let mut used = std::collections::BTreeSet::new();
        for event in events {
            let stream = event.envelope.stream;
            if stream == StreamId::STORE {
                seal.keys.push(None);
                sealed.push(event.clone());
                continue;
            }
            let (number, key) = keys.key_to_append(stream, generation)?;
            used.insert((stream, number));
            let mut event = event.clone();
            for body in &mut event.bodies {
                let EncodedBody::New { bytes, salt, content } = body else { continue };
                let content = content.unwrap_or_else(|| blake3::hash(bytes));
                let known = match shared.entry((stream, content)) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        bodies += 1;
                        let nonce = body_nonce(&seal.random, bodies);
                        new.insert(self.seal_body((stream, number, &key), bytes, salt, &nonce)?)
                    }
                };
                *body = EncodedBody::Sealed(known.clone());
            }
            seal.keys.push(Some((number, key)));
            sealed.push(event);
        }
        let frame = encode_sealed_frame(&sealed, &seal)?;
        Ok(Prepared { frame, keys: used.into_iter().collect(), generation })
    }

    fn seal_body(
        &self,
        (stream, number, key): (StreamId, u32, &DataKey),
        body: &[u8],
        salt: &[u8; SALT_BYTES],
        nonce: &[u8; NONCE_BYTES],
    ) -> Result<SealedBody, EncodeError> {
        let bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let (codec, packed) = pack_to_record(body);
        let context = body_context(self.store(), stream, (number, codec), bytes, salt);
        let too_large = EncodeError::TooLarge {
            what: "a body to be sealed",
            actual: body.len() as u64,
            limit: BODY_CHUNK_BYTES_MAX as u64,
        };
        let sealed = key.seal(nonce, &context, packed.as_deref().unwrap_or(body));
        let stored = sealed.ok_or(too_large)?.into();
        Ok(SealedBody { stored, bytes, codec, key: number, salt: *salt })
    }

    fn random<const N: usize>(&self) -> Result<[u8; N], LogError> {
        let mut bytes = [0; N];
        let fill = self.entropy.fill(&mut bytes);
        fill.map_err(|error| LogError::io("draw random bytes for", self.storage.path(""), error))?;
        Ok(bytes)
    }
}
