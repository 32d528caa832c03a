//! The bytes of a frame in memory.
//!
//! ```text
//! read:  .. neighbour | header | content | bodies | header of a neighbour ..
//!                              ^---------^ kept as it is, without a copy, as long as the frame
//! ```
//!
//! Frames that are read one after the other share the bytes that were read. A frame that is kept for long takes a copy of its own.

use std::ops::Range;
use std::sync::Arc;

use rkyv::util::AlignedVec;

/// Where the bytes of a frame are.
#[derive(Clone)]
pub(super) struct FrameBytes {
    read: Arc<AlignedVec<16>>,
    content: Range<usize>,
    /// Up to here bodies of the frame follow.
    end: usize,
    /// The content of a sealed frame with its spine opened, in memory of its own.
    opened: Option<Arc<AlignedVec<16>>>,
}

impl FrameBytes {
    /// For bytes that are a content and nothing else.
    pub(super) fn all(read: AlignedVec<16>) -> Self {
        let content = 0..read.len();
        Self { end: content.end, read: Arc::new(read), content, opened: None }
    }

    /// For bytes of which a part is the content.
    pub(super) fn within(read: &Arc<AlignedVec<16>>, content: Range<usize>, end: usize) -> Self {
        let end = end.min(read.len()).max(content.end);
        Self { read: Arc::clone(read), content, end, opened: None }
    }

    pub(super) fn content(&self) -> &[u8] {
        if let Some(opened) = &self.opened {
            return opened;
        }
        self.read.get(self.content.clone()).unwrap_or(&[])
    }

    /// The same bytes, of which the content is known in another form.
    pub(super) fn with_opened(self, content: AlignedVec<16>) -> Self {
        Self { opened: Some(Arc::new(content)), ..self }
    }

    pub(super) const fn is_opened(&self) -> bool {
        self.opened.is_some()
    }

    pub(super) fn bodies(&self) -> &[u8] {
        self.read.get(self.content.end..self.end).unwrap_or(&[])
    }

    /// The content in memory of its own.
    pub(super) fn alone(&self) -> Self {
        if self.opened.is_some() {
            let nothing = Self::all(AlignedVec::new());
            return Self { opened: self.opened.clone(), ..nothing };
        }
        if self.read.len() == self.content.len() {
            return self.clone();
        }
        let mut read = AlignedVec::with_capacity(self.content.len());
        read.extend_from_slice(self.content());
        Self::all(read)
    }
}
