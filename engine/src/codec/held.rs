//! The contents of a frame in memory: its bytes, and the places of its events in them.
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
