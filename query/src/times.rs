//! The time of an event: by its host's clock, by its place among other events, or by its recording.
//!
//! ```text
//! the host gave one                          that
//! a person's act, or the store's own event   when it was recorded
//! a session without any time                 none
//! a fact that is recorded live, later than all that the host dated     when it was recorded
//! any other fact                             that of the last dated event before it (of the first, if there is none)
//! ```
//!
//! A host writes lines without a time between lines that have one. When such a file is imported, they were all recorded at the moment
//! of the import: that moment says nothing of when they happened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use acpdb_engine::event::{Payload, Recorded};
use acpdb_engine::ids::{Micros, Origin, Seq, StreamId};
use acpdb_engine::locks::steady;
use acpdb_engine::{
    Error, Store,
    store::{Glimpse, StreamName},
};

use crate::kinds::SESSION_OPENED;

/// The log's own knowledge about the time of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordingTimes {
    pub(crate) at: Micros,
    /// A host told of the event; it was not made by a person's act.
    pub(crate) is_told: bool,
}

impl From<&Recorded> for RecordingTimes {
    fn from(recorded: &Recorded) -> Self {
        let is_opening = matches!(recorded.event.payload, Payload::SessionOpened(_));
        Self { at: recorded.recorded_at, is_told: is_opening || recorded.event.origin != Origin::ZERO }
    }
}

impl From<&Glimpse<'_>> for RecordingTimes {
    fn from(glimpse: &Glimpse<'_>) -> Self {
        // It is told with the first fact of a session.
        let is_opening = glimpse.kind() == SESSION_OPENED;
        Self { at: glimpse.recorded_at(), is_told: is_opening || glimpse.origin() != Origin::ZERO }
    }
}

/// The time of an event of a stream, as far as it tells it itself: by its host's clock, else the time of recording. A clock that is ahead
/// tells no time later than that of recording.
pub(crate) fn own_time(recorded: &Recorded, stream: Option<&StreamName>) -> Option<Micros> {
    let is_undated = stream.is_some_and(|stream| stream.began.is_none());
    let recording = RecordingTimes::from(recorded);
    let told = recorded.event.host_time.map(|time| time.min(recorded.recorded_at));
    told.or((!is_undated || !recording.is_told).then_some(recording.at))
}

/// The times of events of a store. The times of a stream are gathered when an event without one is met, once.
#[derive(Clone, Debug)]
pub struct EventTimes {
    store: Store,
    lines: Arc<Mutex<HashMap<StreamId, Arc<DatedLine>>>>,
}

/// The dated events of a stream, as far as events without a time need them.
#[derive(Debug, Default)]
struct DatedLine {
    first: Option<Micros>,
    /// Each event without a time that follows one with a time: its seq, and that time.
    gaps: Vec<(Seq, Micros)>,
    /// The last dated event: its seq, and when it was recorded.
    last: Option<(Seq, Micros)>,
}

impl EventTimes {
    /// The times of a store's events.
    pub fn new(store: &Store) -> Self {
        Self { store: store.clone(), lines: Arc::default() }
    }

    /// The time of an event of a stream, as far as it is known. `stream`: `None` for the store's own.
    ///
    /// Cost: for an event without a time of its own, once a look at all envelopes of its stream.
    pub fn of(&self, recorded: &Recorded, stream: Option<&StreamName>) -> Option<Micros> {
        let is_undated = stream.is_some_and(|stream| stream.began.is_none());
        self.time(recorded.event.stream, recorded.seq, recorded.event.host_time, recorded.into(), is_undated)
    }

    pub(crate) fn time(
        &self,
        stream: StreamId,
        seq: Seq,
        host: Option<Micros>,
        recording: RecordingTimes,
        is_undated: bool,
    ) -> Option<Micros> {
        if host.is_some() || !recording.is_told || stream == StreamId::STORE {
            return host.or(Some(recording.at));
        }
        if is_undated {
            return None;
        }
        let line = self.line(stream);
        let (last, recorded) = line.last.unwrap_or_default();
        if line.last.is_none() || seq > last && recording.at > recorded {
            return Some(recording.at);
        }
        let before = line.gaps.partition_point(|(gap, _)| *gap <= seq).checked_sub(1);
        before.and_then(|place| line.gaps.get(place)).map(|(_, time)| *time).or(line.first)
    }

    fn line(&self, stream: StreamId) -> Arc<DatedLine> {
        if let Some(known) = steady(&self.lines).get(&stream) {
            return Arc::clone(known);
        }
        // A stream that cannot be read has no line; its reader tells of the damage.
        let line = Arc::new(self.gathered(stream).unwrap_or_default());
        steady(&self.lines).insert(stream, Arc::clone(&line));
        line
    }

    fn gathered(&self, stream: StreamId) -> Result<DatedLine, Error> {
        let found = Arc::new(Mutex::new((DatedLine::default(), None)));
        let seen = Arc::clone(&found);
        let look = move |glimpse: &Glimpse<'_>| {
            let mut found = steady(&seen);
            let (line, before) = &mut *found;
            if let Some(time) = glimpse.host_time() {
                line.first = line.first.or(Some(time));
                line.last = Some((glimpse.seq(), glimpse.recorded_at()));
                *before = Some(time);
            } else if let Some(time) = before.take() {
                line.gaps.push((glimpse.seq(), time));
            }
            false
        };
        for damaged in self.store.stream_events(stream, Seq(1), self.store.head()?)?.wanted(look) {
            match damaged {
                // Damage costs the time of the damaged event.
                Ok(_) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let mut found = steady(&found);
        Ok(std::mem::take(&mut found.0))
    }
}
