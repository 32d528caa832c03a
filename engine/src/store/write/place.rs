//! Drafts become bytes: each event is encoded, its bodies are salted or shared, and the commit gets its place in the log.

use std::borrow::Cow;

use crate::codec::payload;
use crate::codec::{EncodedBody, EncodedEvent, Envelope};
use crate::command::draft::{CHUNK_BYTES_MAX, EventDraft};
use crate::entry::Bytes;
use crate::error::Error;
use crate::event::{Body, Event, Text};
use crate::failpoints::failpoint;
use crate::ids::{Seq, StreamId};
use crate::log::{Condition, Exclusive, LogError, Placed};

use super::super::Inner;
use super::super::kept::{BodyDedup, SHARE_BYTES_MIN, Stored};
use super::Again;

/// Gives a free text its rows behind those of the event.
pub(in crate::store) fn settle_text(text: &mut Text, rows: &mut Vec<Bytes>) {
    if text.settle_plain() {
        return;
    }
    let number = |rows: &Vec<Bytes>| u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let first = number(rows);
    rows.extend(text.as_bytes().chunks(CHUNK_BYTES_MAX).map(Bytes::from));
    // Rows were added.
    let chunks = number(rows).saturating_sub(first);
    text.settle(Body { first, chunks, ..Body::default() });
}

impl Inner {
    /// Asks for the place of drafted events in the log, as one commit, once. On condition that the streams of `conditions` did not
    /// move, and that nothing was erased since. `lock`: the write lock, if the caller holds it; else the commit waits in the queue,
    /// where those of other threads are written with it. `filtered`: the seq up to which erasures were filtered out of the drafts.
    pub(super) fn place_drafts(
        &self,
        lock: &mut Option<Exclusive<'_>>,
        drafts: &[EventDraft],
        conditions: &[Condition],
        filtered: Option<Seq>,
    ) -> Result<Result<Placed, Again>, Error> {
        // Taken first: a body that is looked up afterwards was stored after it, or is of a later basis.
        let basis = self.body_dedup().basis();
        let mut conditions = conditions.to_vec();
        // Commits with a condition on the store's own stream have a basis of their own, and share nothing.
        let may_share = !conditions.iter().any(|condition| condition.stream == StreamId::STORE);
        let mut events = Vec::with_capacity(drafts.len());
        let mut keys: Vec<Option<blake3::Hash>> = Vec::new();
        for draft in drafts {
            events.push(self.encode(draft, &mut keys, may_share)?);
        }
        let mut bodies = events.iter().flat_map(|event| &event.bodies);
        let shares = bodies.any(|body| matches!(body, EncodedBody::Existing { .. }));
        if may_share {
            let shared = (shares && !failpoint!(ShareErased)).then_some(basis);
            let oldest = shared.into_iter().chain(filtered).min();
            conditions.extend(oldest.map(|basis| Condition { stream: StreamId::STORE, basis }));
        }
        let prepared = self.log.prepare(&events)?;
        let placed = match lock {
            Some(lock) => lock.place(prepared, &conditions),
            None => self.log.place(prepared, &conditions),
        };
        match placed {
            Ok(placed) => {
                let mut body_dedup = self.body_dedup();
                let first_seq = placed.appended().first_seq;
                body_dedup.begin(first_seq.before());
                // The table may have begun anew since, after an erasure of a body that this commit names.
                let keys: &[_] = if first_seq > body_dedup.basis() { &keys } else { &[] };
                for (key, row) in keys.iter().zip(&placed.appended().rows) {
                    if let Some(key) = key {
                        let (digest, bytes, position) = (row.digest, row.bytes, row.position);
                        let stored = Stored { digest, bytes, position, form: row.form() };
                        body_dedup.put(*key, stored);
                    }
                }
                drop(body_dedup);
                Ok(Ok(placed))
            }
            Err(LogError::HeadMoved { stream: StreamId::STORE, .. }) if may_share => {
                // The table of stored bodies may name zeros now.
                self.body_dedup().clear();
                Ok(Err(Again::Erased))
            }
            Err(LogError::HeadMoved { .. }) => Ok(Err(Again::StreamMoved)),
            Err(error) => {
                // After a refusal to wait nothing was written, and the stored bodies are the same.
                if !matches!(error, LogError::Busy { .. }) {
                    self.body_dedup().clear();
                }
                Err(error.into())
            }
        }
    }

    fn encode(
        &self,
        draft: &EventDraft,
        keys: &mut Vec<Option<blake3::Hash>>,
        may_share: bool,
    ) -> Result<EncodedEvent, Error> {
        let Event { stream, origin, host_time, stamp, payload } = &draft.event;
        let mut rows = Cow::Borrowed(draft.bodies.as_slice());
        let mut payload = Cow::Borrowed(payload);
        if payload.may_have_texts() {
            let rows = rows.to_mut();
            payload.to_mut().texts_mut(&mut |text| settle_text(text, rows));
        }
        let payload = &*payload;
        let (version, bytes) = payload::encode(stamp, payload).map_err(|error| Error::TooLarge {
            what: "bytes of an event",
            actual: match error {
                payload::PayloadError::Invalid { bytes, .. }
                | payload::PayloadError::TooLarge { bytes, .. } => bytes as u64,
            },
            limit: crate::codec::EVENT_BYTES_MAX as u64,
        })?;
        let envelope = Envelope {
            kind: payload.number(),
            version,
            stream: *stream,
            origin: *origin,
            host_time: *host_time,
        };
        let mut bodies = Vec::with_capacity(rows.len());
        for body in rows.iter() {
            bodies.push(self.encode_body(body, keys, may_share));
        }
        Ok(EncodedEvent { envelope, payload: bytes, bodies })
    }

    fn encode_body(
        &self,
        body: &Bytes,
        keys: &mut Vec<Option<blake3::Hash>>,
        may_share: bool,
    ) -> EncodedBody {
        if body.len() < SHARE_BYTES_MIN {
            keys.push(None);
            return EncodedBody::New { bytes: body.clone(), salt: self.entropy.salt(), content: None };
        }
        let content = blake3::hash(body);
        let mut body_dedup = self.body_dedup();
        let key = BodyDedup::key(body.len(), &content);
        keys.push(Some(key));
        match body_dedup.get(&key).filter(|_| may_share) {
            Some(Stored { digest, bytes, position, form }) => {
                EncodedBody::Existing { digest, bytes, position, form }
            }
            None => {
                EncodedBody::New { bytes: body.clone(), salt: self.entropy.salt(), content: Some(content) }
            }
        }
    }
}
