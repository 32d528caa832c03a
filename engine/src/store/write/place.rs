//! Drafts become bytes: each event is encoded, its bodies are salted, and the commit gets its place in the log.

use std::borrow::Cow;

use crate::codec::payload;
use crate::codec::{EncodedBody, EncodedEvent, Envelope};
use crate::command::draft::{CHUNK_BYTES_MAX, EventDraft};
use crate::entry::Bytes;
use crate::error::Error;
use crate::event::{Body, Event, Text};
use crate::ids::{Seq, StreamId};
use crate::log::{Condition, Exclusive, LogError, PlacedCommit};

use super::super::StoreInner;
use super::Redraft;

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

impl StoreInner {
    /// Asks for the place of drafted events in the log, as one commit, once. On condition that the streams of `conditions` did not
    /// move, and that nothing was erased since. `lock`: the write lock, if the caller holds it; else the commit waits in the queue,
    /// where those of other threads are written with it. `filtered`: the seq up to which erasures were filtered out of the drafts.
    pub(super) fn place_drafts(
        &self,
        lock: &mut Option<Exclusive<'_>>,
        drafts: &[EventDraft],
        conditions: &[Condition],
        filtered: Option<Seq>,
    ) -> Result<Result<PlacedCommit, Redraft>, Error> {
        let mut conditions = conditions.to_vec();
        // Commits with a condition on the store's own stream have a basis of their own.
        let is_own = conditions.iter().any(|condition| condition.stream == StreamId::STORE);
        if let Some(basis) = filtered.filter(|_| !is_own) {
            conditions.push(Condition { stream: StreamId::STORE, basis });
        }
        let events: Result<Vec<EncodedEvent>, Error> =
            drafts.iter().map(|draft| self.encode(draft)).collect();
        let prepared = self.log.prepare(&events?)?;
        let placed = match lock {
            Some(lock) => lock.place(prepared, &conditions),
            None => self.log.place(prepared, &conditions),
        };
        match placed {
            Ok(placed) => Ok(Ok(placed)),
            Err(LogError::HeadMoved { stream: StreamId::STORE, .. }) if !is_own => Ok(Err(Redraft::Erased)),
            Err(LogError::HeadMoved { .. }) => Ok(Err(Redraft::StreamMoved)),
            Err(error) => Err(error.into()),
        }
    }

    fn encode(&self, draft: &EventDraft) -> Result<EncodedEvent, Error> {
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
        let bodies =
            rows.iter().map(|body| EncodedBody::New { bytes: body.clone(), salt: self.entropy.salt() });
        let bodies = bodies.collect();
        Ok(EncodedEvent { envelope, payload: bytes, bodies })
    }
}
