//! A session's, a project's and a user's memory, fed by hand: for the tests of memory, of its commands and of proposals.

use std::collections::BTreeMap;

use super::{LIFESPANS_INNER_FIRST, MemoryLayer, MemoryState, MemoryView, Moment, value_signature};
use crate::event::{Body, Event, Lifespan, MemoryKind, MemoryRecorded, Payload, Recorded, Stamp};
use crate::ids::{BodyId, Micros, Origin, Seq, StreamId};
use crate::text::Signer;

pub(crate) const HOUR: i64 = 3_600_000_000;

/// Signs for all test streams.
pub(crate) fn signer() -> Signer {
    Signer::new([7; 32])
}

/// A record with a value in body 0.
pub(crate) fn record(id: &str, kind: MemoryKind, category: &str, value: &str) -> MemoryRecorded {
    MemoryRecorded {
        id: id.to_owned(),
        kind,
        category: category.into(),
        value: Body { first: 0, chunks: 1, bytes: value.len() as u64, tokens: 1, lines: 1 },
        value_signature: value_signature(&signer(), value),
        confidence: 80,
        lifespan: Lifespan::Project,
        ..MemoryRecorded::default()
    }
}

/// A preference.
pub(crate) fn preference(id: &str, key: &str, value: &str) -> MemoryRecorded {
    MemoryRecorded { key: Some(key.into()), ..record(id, MemoryKind::Preference, "tooling", value) }
}

/// An event of a stream.
pub(crate) fn recorded(seq: u64, stream: StreamId, payload: impl Into<Payload>) -> Recorded {
    let event = Event {
        stream,
        origin: Origin::ZERO,
        host_time: None,
        stamp: Stamp::default(),
        payload: payload.into(),
    };
    Recorded { seq: Seq(seq), recorded_at: Micros(i64::try_from(seq).unwrap() * HOUR), event }
}

/// When this store says something with an event of this seq.
pub(crate) fn moment(seq: u64) -> Moment {
    Moment { at: Micros(i64::try_from(seq).unwrap() * HOUR), is_dated: false }
}

/// Three streams of memory, one hour between events.
#[derive(Default)]
pub(crate) struct Bench {
    pub(crate) states: [MemoryState; 3],
    pub(crate) bodies: BTreeMap<BodyId, String>,
    pub(crate) seq: u64,
}

/// The stream of items of a lifespan.
pub(crate) fn stream(lifespan: Lifespan) -> StreamId {
    StreamId([lifespan as u8 + 1; 16])
}

impl Bench {
    /// Records into the stream of `lifespan`.
    pub(crate) fn push(&mut self, lifespan: Lifespan, payload: impl Into<Payload>, bodies: &[&str]) -> Seq {
        self.seq += 1;
        let seq = Seq(self.seq);
        for (first, text) in (0..).zip(bodies) {
            self.bodies.insert(BodyId { seq, first, chunks: 1 }, (*text).to_owned());
        }
        self.states[lifespan as usize].apply(&recorded(self.seq, stream(lifespan), payload));
        seq
    }

    /// Records an item with its text, into the stream of its lifespan.
    pub(crate) fn item(&mut self, record: MemoryRecorded, value: &str) -> Seq {
        let record = MemoryRecorded { value_signature: value_signature(&signer(), value), ..record };
        self.push(record.lifespan, record, &[value])
    }

    /// Reads as a session does, now.
    pub(crate) fn view<T>(&self, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
        self.view_at(Micros(i64::try_from(self.seq).unwrap() * HOUR), read)
    }

    /// Reads as a session does, at a time.
    pub(crate) fn view_at<T>(&self, now: Micros, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
        let texts = |body: BodyId| self.bodies.get(&body).cloned();
        let layers = LIFESPANS_INNER_FIRST.into_iter().map(|records| MemoryLayer {
            stream: stream(records),
            records,
            memory: &self.states[records as usize],
            signer: signer(),
            until: Seq::MAX,
        });
        read(&MemoryView::new(layers.collect(), Seq::MAX, now, &texts))
    }
}
