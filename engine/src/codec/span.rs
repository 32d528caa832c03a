//! Where the events of a frame, or of some of its pieces, are in the bytes at hand.

use std::sync::Arc;

/// Which events a piece has, and where in the bytes at hand their envelopes, payloads and rows begin.
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

/// The pieces at hand: neighbours, in order, at least one.
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
