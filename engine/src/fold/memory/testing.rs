//! A session's, a project's and a user's memory, fed by hand: for the tests of memory, of its commands and of proposals.

use std::collections::BTreeMap;

use super::{LIFESPANS_INNER_FIRST, MemoryLayer, MemoryState, MemoryView, Moment, value_signature};
use crate::event::{Body, Event, Lifespan, MemoryKind, MemoryRecorded, Payload, Recorded, Stamp};
use crate::ids::{BodyId, Micros, Origin, Seq, StreamId};
use crate::text::Signer;

/// Microseconds of an hour.
pub const HOUR: i64 = 3_600_000_000;

/// Signs for all test streams.
pub fn signer() -> Signer {
    Signer::new([7; 32])
}

/// A record with a value in body 0.
pub fn record(id: &str, kind: MemoryKind, category: &str, value: &str) -> MemoryRecorded {
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
pub fn preference(id: &str, key: &str, value: &str) -> MemoryRecorded {
    MemoryRecorded { key: Some(key.into()), ..record(id, MemoryKind::Preference, "tooling", value) }
}

/// An event of a stream.
pub fn recorded(seq: u64, stream: StreamId, payload: impl Into<Payload>) -> Recorded {
    let event = Event {
        stream,
        origin: Origin::ZERO,
        host_time: None,
        stamp: Stamp::default(),
        payload: payload.into(),
    };
    Recorded { seq: Seq(seq), recorded_at: time(seq), event }
}

/// When an event of this seq was recorded.
fn time(seq: u64) -> Micros {
    Micros(i64::try_from(seq).map_or(i64::MAX, |seq| seq.saturating_mul(HOUR)))
}

/// The moment of an event of this seq in this store.
pub fn moment(seq: u64) -> Moment {
    Moment { at: time(seq), is_dated: false }
}

/// Three streams of memory, one hour between events.
#[derive(Default)]
pub struct Bench {
    /// The session's, the project's and the user's, by the number of their lifespan.
    pub states: [MemoryState; 3],
    /// Texts by their bodies.
    pub bodies: BTreeMap<BodyId, String>,
    /// The newest seq.
    pub seq: u64,
}

/// The stream of items of a lifespan.
pub fn stream(lifespan: Lifespan) -> StreamId {
    StreamId([lifespan as u8 + 1; 16])
}

impl Bench {
    /// Records into the stream of `lifespan`.
    #[expect(clippy::indexing_slicing, reason = "a lifespan is less than three")]
    pub fn push(&mut self, lifespan: Lifespan, payload: impl Into<Payload>, bodies: &[&str]) -> Seq {
        self.seq += 1;
        let seq = Seq(self.seq);
        for (first, text) in (0..).zip(bodies) {
            self.bodies.insert(BodyId { seq, first, chunks: 1 }, (*text).to_owned());
        }
        self.states[lifespan as usize].apply(&recorded(self.seq, stream(lifespan), payload));
        seq
    }

    /// Records an item with its text, into the stream of its lifespan.
    pub fn item(&mut self, record: MemoryRecorded, value: &str) -> Seq {
        let record = MemoryRecorded { value_signature: value_signature(&signer(), value), ..record };
        self.push(record.lifespan, record, &[value])
    }

    /// Reads as a session does, now.
    pub fn view<T>(&self, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
        self.view_at(time(self.seq), read)
    }

    /// Reads as a session does, at a time.
    #[expect(clippy::indexing_slicing, reason = "a lifespan is less than three")]
    pub fn view_at<T>(&self, now: Micros, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
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
