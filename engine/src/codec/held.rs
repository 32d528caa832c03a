//! The contents of a frame in memory: its bytes, the places of its events in them, and sealed payloads in plain.
//!
//! ```text
//! read:  .. neighbour | header | spine | bodies | header of a neighbour ..
//!                              ^-------^ kept as they are, without a copy, as long as the frame
//! ```
//!
//! Frames that are read one after the other share the bytes that were read. A frame that is kept for long takes a copy of its own.

use std::ops::Range;
use std::sync::Arc;

use rkyv::util::AlignedVec;

use super::cipher::DataKey;
use super::fields::align16;

/// Where the bytes of a frame are.
#[derive(Clone)]
pub(super) struct Held {
    read: Arc<AlignedVec<16>>,
    /// The spine. Begins at a multiple of 16.
    spine: Range<usize>,
    /// Up to here bodies of the frame follow a whole spine.
    end: usize,
}

impl Held {
    /// For bytes that are a spine and nothing else.
    pub(super) fn all(read: AlignedVec<16>) -> Self {
        let spine = 0..read.len();
        Self { end: spine.end, read: Arc::new(read), spine }
    }

    /// For bytes of which a part is the spine.
    pub(super) fn within(read: &Arc<AlignedVec<16>>, spine: Range<usize>, end: usize) -> Self {
        let end = end.min(read.len()).max(spine.end);
        Self { read: Arc::clone(read), spine, end }
    }

    pub(super) fn spine(&self) -> &[u8] {
        self.read.get(self.spine.clone()).unwrap_or(&[])
    }

    pub(super) fn bodies(&self) -> &[u8] {
        self.read.get(self.spine.end..self.end).unwrap_or(&[])
    }

    /// The spine in memory of its own.
    pub(super) fn alone(&self) -> Self {
        if self.read.len() == self.spine.len() {
            return self.clone();
        }
        let mut read = AlignedVec::with_capacity(self.spine.len());
        read.extend_from_slice(self.spine());
        Self::all(read)
    }
}

/// Events in a row, and where in the bytes in memory their envelopes, payloads and rows begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Ordinal of the first event in the frame.
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) envelopes: usize,
    pub(super) payloads: usize,
    pub(super) rows: usize,
    pub(super) row_count: usize,
}

impl Span {
    /// Ordinal of the first event behind it.
    pub(super) fn end(&self) -> u32 {
        self.first.saturating_add(self.count)
    }
}

/// The events at hand, in order: at least one run of them.
#[derive(Debug, Clone)]
pub(super) enum Spans {
    /// Most frames are small, and never need a list.
    One(Span),
    Many(Arc<[Span]>),
}

impl Spans {
    pub(super) fn of(spans: Vec<Span>) -> Self {
        match spans.as_slice() {
            [one] => Self::One(*one),
            _ => Self::Many(spans.into()),
        }
    }

    pub(super) fn list(&self) -> &[Span] {
        match self {
            Self::One(span) => std::slice::from_ref(span),
            Self::Many(spans) => spans,
        }
    }
}

/// Whether the payload of an event is in plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The payload is in plain: it was never sealed, or it was opened.
    Clear,
    /// Its key is not at hand.
    NoKey,
    /// Its key could not be read when the frame was read.
    Unread,
    /// Its key was destroyed.
    Shredded,
    /// Its key does not open it: it was altered or moved.
    Forged,
    /// Its form is one of a newer program.
    Newer,
}

/// A key of a stream.
#[derive(Debug, Clone)]
pub enum KeyFound {
    /// The key.
    Key(DataKey),
    /// The key cannot be had.
    Missing,
    /// The key cannot be read now.
    Unread,
    /// The key was destroyed.
    Shredded,
}

/// Opened payloads by the ordinals of their events, which rise.
#[derive(Default)]
pub(super) struct Opened {
    bytes: AlignedVec<16>,
    events: Vec<(u32, Sight, usize, usize)>,
    lacks_a_key: bool,
}

impl Opened {
    /// Opens the payload of an event.
    pub(super) fn open(&mut self, ordinal: u32, key: &DataKey, context: &[u8], sealed: &[u8]) {
        self.bytes.resize(align16(self.bytes.len()), 0);
        let start = self.bytes.len();
        let sight =
            if key.open_into(context, sealed, &mut self.bytes) { Sight::Clear } else { Sight::Forged };
        // Opened bytes are added, and none are taken away.
        let length = self.bytes.len().saturating_sub(start);
        self.events.push((ordinal, sight, start, length));
    }

    /// Takes note why the payload of an event stays sealed.
    pub(super) fn note(&mut self, ordinal: u32, sight: Sight) {
        self.lacks_a_key |= matches!(sight, Sight::NoKey | Sight::Unread);
        self.events.push((ordinal, sight, 0, 0));
    }

    /// Whether a payload stays sealed because its key could not be had.
    pub(super) const fn lacks_a_key(&self) -> bool {
        self.lacks_a_key
    }

    /// The payload of an event, which is `raw` if it stays sealed.
    pub(super) fn get<'a>(&'a self, ordinal: u32, raw: &'a [u8]) -> (Sight, &'a [u8]) {
        let found = self.events.binary_search_by_key(&ordinal, |event| event.0).ok();
        match found.and_then(|index| self.events.get(index)) {
            Some((_, Sight::Clear, start, length)) => {
                (Sight::Clear, self.bytes.get(*start..start.saturating_add(*length)).unwrap_or(&[]))
            }
            Some((_, sight, ..)) => (*sight, raw),
            None => (Sight::NoKey, raw),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(self.bytes.as_mut_slice());
    }
}
