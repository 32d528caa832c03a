//! Frames for readers of many events: the places of some streams, or the log from one seq on.
//!
//! ```text
//! some streams places (from the log) -> frame, frame, ..
//! all          position -> a chunk of frames -> position behind it -> ..
//! the newest   places: f1 .. f8 f9   read back: f9 (3 events), f8 (3) .. until there are enough   given: f8, f9, without the surplus of f8
//! ```
//!
//! The frames of the newest events are held between finding and giving, with the texts that were read with them, so that each is read
//! once. If there are very many, only their places are held, and the frames are read twice.
//!
//! A [`Glimpse`] is an event that was not decoded: filters look at its envelope and, in place, at its payload.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::codec::{EventRef, Frame};
use crate::error::Error;
use crate::event::{KIND_LABELS, Recorded};
use crate::ids::{BodyId, Micros, Origin, Position, Seq, StreamId};
use crate::index::FramePlace;
use crate::log::{Head, Looks, Windows};

use super::StoreInner;

/// Bytes of the log that are read ahead at first, so that the first row is there at once.
const CHUNK_BYTES_FIRST: u64 = 4 << 10;
/// Bytes of the log that are read ahead later: several of its windows.
const CHUNK_BYTES_MAX: u64 = 1 << 20;

/// Whether an event is worth decoding.
pub(super) type Wanted = Box<dyn FnMut(&Glimpse<'_>) -> bool + Send>;

/// An event as it stands in its frame, not decoded.
#[derive(Clone, Copy, Debug)]
pub struct Glimpse<'f> {
    inner: &'f StoreInner,
    frame: &'f Frame,
    event: EventRef<'f>,
}

impl<'f> Glimpse<'f> {
    pub(super) fn new(inner: &'f StoreInner, frame: &'f Frame, event: EventRef<'f>) -> Self {
        Self { inner, frame, event }
    }

    /// Its seq.
    pub fn seq(&self) -> Seq {
        self.event.seq
    }

    /// When it was recorded.
    pub fn recorded_at(&self) -> Micros {
        self.frame.time()
    }

    /// The host's own time, if it gave one.
    pub fn host_time(&self) -> Option<Micros> {
        self.event.envelope.host_time
    }

    /// Canonical id of the fact; zero if it has none, as acts have.
    pub fn origin(&self) -> Origin {
        self.event.envelope.origin
    }

    /// Number of its kind; names stand in [`crate::event::KIND_LABELS`].
    pub fn kind(&self) -> u16 {
        self.event.envelope.kind
    }

    /// Its stream.
    pub fn stream(&self) -> StreamId {
        self.event.envelope.stream
    }

    /// The event, decoded.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if its bytes are not those of its kind.
    pub fn decode(&self) -> Result<Recorded, Error> {
        self.inner.decode(self.frame, &self.event)
    }
}

/// A source of frames.
pub(super) enum LogFrames {
    /// Known places of frames.
    Places { inner: Arc<StoreInner>, places: VecDeque<FramePlace> },
    /// The log, from one place to its durable end.
    Log(LogSource),
    /// Frames at hand.
    Held { inner: Arc<StoreInner>, frames: VecDeque<Frame> },
}

impl LogFrames {
    /// The handle that reads.
    pub(super) fn inner(&self) -> &StoreInner {
        match self {
            Self::Places { inner, .. } | Self::Held { inner, .. } => inner,
            Self::Log(log) => &log.inner,
        }
    }
}

/// The log from one place on, a chunk of frames at a time.
pub(super) struct LogSource {
    inner: Arc<StoreInner>,
    /// The first chunk begins at a seq, the others where the one before ended.
    from: Seq,
    next: Option<Position>,
    until: Head,
    chunk_bytes: u64,
    ready: VecDeque<Result<Frame, Error>>,
    windows: Windows,
    done: bool,
}

impl LogSource {
    pub(super) fn new(inner: Arc<StoreInner>, from: Seq, until: Head) -> Self {
        let (ready, windows) = (VecDeque::new(), Windows::default());
        Self { inner, from, next: None, until, chunk_bytes: CHUNK_BYTES_FIRST, ready, windows, done: false }
    }

    /// Reads the next chunk. It ends behind a sound frame, where reading can go on.
    fn fill(&mut self) {
        let log = &self.inner.log;
        let frames = match self.next {
            Some(position) => Ok(log.frames(position, self.until)),
            None => log.frames_from(self.from, self.until),
        };
        let mut frames = match frames {
            Ok(frames) => frames.reusing(std::mem::take(&mut self.windows)),
            Err(error) => {
                self.done = true;
                self.ready.push_back(Err(error.into()));
                return;
            }
        };
        let mut bytes = 0_u64;
        loop {
            match frames.next() {
                Some(Ok(frame)) => {
                    let header = frame.header();
                    bytes = bytes.saturating_add(header.frame_bytes());
                    self.next = Some(header.end());
                    self.ready.push_back(Ok(frame));
                    if bytes >= self.chunk_bytes {
                        break;
                    }
                }
                Some(Err(error)) => self.ready.push_back(Err(error.into())),
                None => {
                    self.done = true;
                    break;
                }
            }
        }
        self.windows = frames.into_windows();
        self.chunk_bytes = self.chunk_bytes.saturating_mul(8).min(CHUNK_BYTES_MAX);
    }
}

impl Iterator for LogSource {
    type Item = Result<Frame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() && !self.done {
            self.fill();
        }
        self.ready.pop_front()
    }
}

impl Iterator for LogFrames {
    type Item = Result<Frame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Places { inner, places } => {
                let place = places.pop_front()?;
                Some(inner.frame_at(place.position))
            }
            Self::Log(log) => log.next(),
            Self::Held { frames, .. } => frames.pop_front().map(Ok),
        }
    }
}

/// Events of a store or of one stream, in order. Reads one frame at a time; memory stays flat.
///
/// Made by [`Store::events`](super::Store::events). A damaged frame is one error; the iterator goes on behind it.
pub struct Events {
    pub(super) inner: Arc<StoreInner>,
    pub(super) source: LogFrames,
    /// The frame at hand, and which of its events are wanted.
    pub(super) frame: Option<Frame>,
    pub(super) picked: VecDeque<Seq>,
    /// Only events of these, in order.
    pub(super) streams: Option<Vec<StreamId>>,
    pub(super) from: Seq,
    pub(super) to: Seq,
    pub(super) wanted: Option<Wanted>,
    /// Only events of these kinds.
    pub(super) kinds: Option<Vec<u16>>,
    pub(super) looked_at: u64,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("from", &self.from).field("to", &self.to).finish_non_exhaustive()
    }
}

impl Events {
    /// Only events that `wanted` accepts at a look: the others are not decoded.
    #[must_use]
    #[doc(hidden)]
    pub fn wanted(mut self, wanted: impl FnMut(&Glimpse<'_>) -> bool + Send + 'static) -> Self {
        self.wanted = Some(Box::new(wanted));
        self
    }

    /// Only events of these kinds, by their names as in [`KIND_LABELS`](crate::event::KIND_LABELS): the others are not decoded.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
    /// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
    /// use acpdb_engine::{Entry, Seq};
    ///
    /// let _ = session.append([Entry::step("s1"), Entry::tool_completed("call-1", "42")])?;
    /// let ends = store.events(Seq(1), Seq::MAX)?.kinds(&["tool_call_finished"]);
    /// assert_eq!(ends.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn kinds(mut self, labels: &[&str]) -> Self {
        let named = KIND_LABELS.iter().filter(|(_, label)| labels.contains(label));
        self.kinds = Some(named.map(|(number, _)| *number).collect());
        self
    }

    /// How many events were looked at so far.
    #[doc(hidden)]
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// The bytes of a body of the event that came last: without another look for it, and without another read where they came with the
    /// event, as short ones of small commits do. Bodies of other events are read as [`Store::body`](super::Store::body) does.
    ///
    /// # Errors
    /// As [`Store::body`](super::Store::body).
    pub fn body(&self, id: BodyId) -> Result<Vec<u8>, Error> {
        let inner = self.source.inner();
        match self.frame.as_ref().filter(|frame| (frame.first_seq()..=frame.last_seq()).contains(&id.seq)) {
            Some(frame) if id.chunks > 0 => inner.body_in(frame, id),
            _ => inner.body(id),
        }
    }

    /// Picks the wanted events of a frame. One event is decoded at a time: a frame may hold thousands.
    fn take(&mut self, frame: Frame) {
        for event in frame.events() {
            let stream = event.envelope.stream;
            let of_stream =
                self.streams.as_ref().is_none_or(|streams| streams.binary_search(&stream).is_ok());
            if !of_stream || event.seq < self.from || event.seq > self.to {
                continue;
            }
            self.looked_at += 1;
            if self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&event.envelope.kind)) {
                continue;
            }
            if self.wanted.as_mut().is_none_or(|wanted| wanted(&Glimpse::new(&self.inner, &frame, event))) {
                self.picked.push_back(event.seq);
            }
        }
        self.frame = Some(frame);
    }

    /// The next of the events that were picked.
    fn picked(&mut self) -> Option<Result<Recorded, Error>> {
        let seq = self.picked.pop_front()?;
        let frame = self.frame.as_ref()?;
        let decoded = self.inner.decode(frame, &frame.event(seq)?);
        if decoded.is_err() {
            // The rest of a frame with an event that cannot be read is left out.
            self.picked.clear();
        }
        Some(decoded)
    }
}

impl Iterator for Events {
    type Item = Result<Recorded, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(recorded) = self.picked() {
                return Some(self.source.inner().noted(recorded));
            }
            match self.source.next()? {
                Ok(frame) if frame.first_seq() > self.to => return None,
                Ok(frame) => self.take(frame),
                Err(error) => return Some(self.source.inner().noted(Err(error))),
            }
        }
    }
}

/// Most frames that are held, each of some 4 KiB.
pub(super) const HELD_COUNT_MAX: usize = 1024;

/// The frames that hold the newest `count` events of a stream, and the seq of the first of these events. At most `held_max` frames
/// are held.
pub(super) fn newest(
    inner: Arc<StoreInner>,
    (stream, count): (StreamId, usize),
    held_max: usize,
) -> Result<(LogFrames, Seq), Error> {
    let mut places = VecDeque::from(inner.last_frames_of(stream, count)?);
    let (mut held, mut unread) = (VecDeque::new(), places.len());
    let (mut found, mut first) = (0, Seq::MAX);
    let mut looks = Looks::WITH_TEXTS;
    for place in places.iter().rev() {
        if found >= count {
            break;
        }
        unread -= 1;
        let (frame, _) = inner.frame_once(&mut looks, place.position)?;
        let own: Vec<Seq> = seqs(&frame, stream).collect();
        // As long as too few are found, none is too many.
        let surplus = (found + own.len()).saturating_sub(count);
        first = own.get(surplus).copied().unwrap_or(first);
        found += own.len();
        if held.len() <= held_max {
            held.push_front(frame);
        }
    }
    drop(looks);
    if held.len() <= held_max {
        return Ok((LogFrames::Held { inner, frames: held }, first));
    }
    places.drain(..unread);
    Ok((LogFrames::Places { inner, places }, first))
}

fn seqs(frame: &Frame, stream: StreamId) -> impl Iterator<Item = Seq> + '_ {
    frame.events().filter(move |event| event.envelope.stream == stream).map(|event| event.seq)
}
