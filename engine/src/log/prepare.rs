//! A commit is made ready in the caller's thread: encoded, hashed, and in an encrypted store sealed.
//!
//! The keys that seal it are noted with the generation of files that was seen before the look for keys. So the writer sees whether the keys may have
//! changed since.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use super::error::LogError;
use super::keys::KeyChain;
use super::{Log, Prepared};
use crate::codec::{
    BODY_CHUNK_BYTES_MAX, DataKey, EncodeError, EncodedBody, EncodedEvent, FIRST_KEY, NONCE_BYTES,
    PayloadSeal, SALT_BYTES, SealedBody, body_context, body_nonce, encode_frame, encode_sealed_frame,
    pack_to_record,
};
use crate::ids::StreamId;

impl Log {
    /// Encodes and hashes a commit in the calling thread.
    ///
    /// # Errors
    /// [`LogError::Encode`] if the commit is over a limit.
    pub fn prepare(&self, events: &[EncodedEvent]) -> Result<Prepared, LogError> {
        match self.segments.keys() {
            Some(keys) => self.prepare_sealed(keys, events, &[]),
            None => Ok(Prepared { frame: encode_frame(events)?, keys: Vec::new(), generation: 0 }),
        }
    }

    /// As [`Log::prepare`], for a copy of events of which some can never be read again. `noise`: the ordinals of those events, rising, each with the
    /// number of the key that sealed the event. Their payloads are sealed under keys that are thrown away.
    ///
    /// # Errors
    /// As [`Log::prepare`].
    pub(crate) fn prepare_with_noise(
        &self,
        events: &[EncodedEvent],
        noise: &[(usize, u32)],
    ) -> Result<Prepared, LogError> {
        match self.segments.keys() {
            Some(keys) => self.prepare_sealed(keys, events, noise),
            None => self.prepare(events),
        }
    }

    /// As [`Log::prepare`], in an encrypted store: all streams but the store's own are sealed.
    fn prepare_sealed(
        &self,
        keys: &KeyChain,
        events: &[EncodedEvent],
        noise: &[(usize, u32)],
    ) -> Result<Prepared, LogError> {
        let generation = self.generation();
        let mut bodies = 0;
        let mut seal = PayloadSeal { store: self.store(), random: self.random()?, keys: Vec::new() };
        // The store's own key first: without it nothing is recorded at all.
        keys.key_to_append(StreamId::STORE, generation)?;
        let mut shared: HashMap<(StreamId, blake3::Hash), SealedBody> = HashMap::new();
        let mut sealed = Vec::with_capacity(events.len());
        let mut used = BTreeSet::new();
        for (ordinal, event) in events.iter().enumerate() {
            let stream = event.envelope.stream;
            if let Ok(index) = noise.binary_search_by_key(&ordinal, |(ordinal, _)| *ordinal) {
                let number = noise.get(index).map_or(FIRST_KEY, |(_, number)| *number);
                seal.keys.push(Some((number, DataKey::new(self.random()?))));
                sealed.push(event.clone());
                continue;
            }
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
