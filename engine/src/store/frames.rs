//! Frames kept in memory, for point reads and for the next fold; and events of a frame as their payloads say them: for that no body is
//! read, and no other frame is asked for.
//!
//! A bounded number of bytes is kept; when it is full, everything goes. What is kept was checked when it was read, and frames
//! never change, so nothing has to be looked up again. Large frames push nothing out: a few of them would fill it, and the
//! log reads parts of them at a time. Bodies that were read with a frame are not kept: any process may erase them meanwhile.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::codec::{EventRef, Frame, Sight, payload};
use crate::error::Error;
use crate::event::{Frequent, Recorded};
use crate::ids::{Position, Seq};
use crate::secret::Secret;

/// Most bytes of spines that are kept, however much memory there is.
const BYTES_MAX: usize = 16 << 20;
/// What a frame costs beside its spine.
const FRAME_COST_BYTES: usize = 512;

/// The cache.
#[derive(Debug, Default)]
pub(super) struct FrameCache {
    by_seq: BTreeMap<Seq, Frame>,
    by_position: FxHashMap<Position, Seq>,
    /// Parts of large frames, by their own first seq.
    parts: BTreeMap<Seq, Frame>,
    bytes: usize,
    /// Most bytes of spines that are kept.
    bytes_max: usize,
    /// The generation of files that its frames were read at.
    generation: u32,
}

impl FrameCache {
    /// A cache of at most so many bytes.
    pub(super) fn new(bytes_max: u64) -> Self {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(BYTES_MAX);
        Self { bytes_max, ..Self::default() }
    }

    /// Forgets all frames if files changed since they were read: a key may have been destroyed that opened what they show.
    pub(super) fn see_generation(&mut self, generation: u32) {
        if self.generation != generation {
            self.forget_all();
            self.generation = generation;
        }
    }

    /// Forgets all frames.
    pub(super) fn forget_all(&mut self) {
        *self = Self { bytes_max: self.bytes_max, generation: self.generation, ..Self::default() };
    }

    /// The frame that holds `seq`, or a part of it, if it is kept.
    pub(super) fn holding(&self, seq: Seq) -> Option<Frame> {
        [&self.by_seq, &self.parts].into_iter().find_map(|kept| {
            let (_, frame) = kept.range(..=seq).next_back()?;
            (seq <= frame.last_seq()).then(|| frame.clone())
        })
    }

    /// The frame at `position`, if it is kept.
    pub(super) fn at(&self, position: Position) -> Option<Frame> {
        self.by_seq.get(self.by_position.get(&position)?).cloned()
    }

    /// Keeps a frame that was asked for.
    pub(super) fn keep(&mut self, frame: &Frame) {
        if frame.is_large() {
            self.keep_if_room(frame);
            return;
        }
        let frame = frame.alone();
        self.make_room(cost(&frame));
        self.insert(frame);
    }

    /// Keeps a part of a large frame.
    pub(super) fn keep_part(&mut self, part: &Frame) {
        self.make_room(cost(part));
        let before = self.parts.insert(part.first_seq(), part.clone());
        self.count(cost(part), before.as_ref());
    }

    /// Keeps a frame that was come across, if there is room: it pushes nothing out.
    pub(super) fn keep_if_room(&mut self, frame: &Frame) {
        if self.bytes.saturating_add(cost(frame)) <= self.bytes_max {
            self.insert(frame.alone());
        }
    }

    fn make_room(&mut self, bytes: usize) {
        if self.bytes.saturating_add(bytes) > self.bytes_max {
            self.forget_all();
        }
    }

    fn insert(&mut self, frame: Frame) {
        let (seq, bytes) = (frame.first_seq(), cost(&frame));
        self.by_position.insert(frame.position(), seq);
        let before = self.by_seq.insert(seq, frame);
        self.count(bytes, before.as_ref());
    }

    fn count(&mut self, bytes: usize, before: Option<&Frame>) {
        self.bytes = self.bytes.saturating_add(bytes);
        // A frame costs what it cost when it was kept.
        self.bytes = self.bytes.saturating_sub(before.map_or(0, cost));
    }
}

fn cost(frame: &Frame) -> usize {
    frame.spine_bytes().saturating_add(FRAME_COST_BYTES)
}

/// Decodes one event of a frame as its payload says it: without the free texts, which stand in bodies, and with labels that
/// are sealed. For those who look at other things.
pub(super) fn bare(frame: &Frame, event: &EventRef<'_>) -> Result<Recorded, Error> {
    check_sight(event)?;
    payload::recorded(frame, event).map_err(|error| unreadable(event.seq, &error))
}

/// Whether an event can be read: what is sealed needs its key. One whose key was destroyed is like one of an unknown kind.
fn check_sight(event: &EventRef<'_>) -> Result<(), Error> {
    let (seq, stream) = (event.seq, event.envelope.stream);
    match event.sight {
        Sight::Clear | Sight::Shredded | Sight::Newer => Ok(()),
        Sight::NoKey => Err(Error::Locked {
            detail: format!("event {seq} is sealed, and the key of its stream {stream} is not at hand"),
        }),
        Sight::Forged => Err(Error::Corrupt {
            detail: format!(
                "event {seq} does not open with the key of its stream {stream}: it was altered or moved"
            ),
        }),
    }
}

/// An event of a frequent kind, borrowed from its frame.
pub(super) fn lend<'a>(event: &EventRef<'a>, secret: &Secret) -> Result<Option<Frequent<'a>>, Error> {
    check_sight(event)?;
    let envelope = event.envelope;
    let mut lent = payload::frequent(envelope.kind, envelope.version, event.payload)
        .map_err(|error| unreadable(event.seq, &error))?;
    if let Some(Frequent::Started(started)) = &mut lent {
        started.label = secret.open_label(started.label);
    }
    Ok(lent)
}

fn unreadable(seq: Seq, error: &payload::PayloadError) -> Error {
    Error::Corrupt { detail: format!("event {seq} cannot be read: {error}") }
}
