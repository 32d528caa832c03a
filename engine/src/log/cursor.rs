//! A cursor: reads headers, frames and bodies at positions, in windows that grow.
//!
//! Whether a segment is sealed is not known here: [`SegmentFile`] reads both forms by position and length.

use std::ops::Range;
use std::sync::Arc;

use rkyv::util::AlignedVec;

use super::error::{FrameFault, LogError};
use super::files::{FIRST_WINDOW_BYTES, LOOK_WINDOW_BYTES_MAX, SegmentFile, Segments, nothing_at};
use crate::codec::{
    BodyRow, DamagedPart, FRAME_HEADER_BYTES, Frame, FrameCheck, FrameHeader, Invalid, is_zero,
};
use crate::failpoints::failpoint;
use crate::ids::Position;
use crate::storage::{bytes_between, read_up_to};

/// Bytes that were read one after the other. Its memory is used again without being filled with zeros.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    memory: Vec<u8>,
    used: usize,
}

impl ReadBuffer {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.get(..self.used).unwrap_or(&[])
    }

    /// The same memory, with nothing in it.
    pub(crate) fn emptied(mut self) -> Self {
        self.used = 0;
        self
    }

    /// Room for `length` more bytes.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.used.saturating_add(length);
        if end > self.memory.len() {
            self.memory.resize(end, 0);
        }
        self.memory.get_mut(self.used..end).unwrap_or_default()
    }

    /// The range of `length` bytes that were put into that room.
    fn take(&mut self, length: usize) -> Range<usize> {
        let start = self.used;
        self.used = start.saturating_add(length).min(self.memory.len());
        start..self.used
    }
}

/// Reads frames through a window, so that neighbours cost one read.
pub(crate) struct FrameCursor<'a> {
    pub(crate) segments: &'a Segments,
    current: Option<(u32, Arc<SegmentFile>)>,
    /// Keeps its length, so that nothing is filled with zeros before each reading; `held` bytes of it were read. Frames share it: a window
    /// that is still in use is left to them. Begins at a multiple of 16 of the file.
    window: Arc<AlignedVec<16>>,
    /// Windows that frames still used when the next window was begun. Once those frames have gone, the windows are read into again.
    windows: Windows,
    window_start: u64,
    held: usize,
    /// Length of the next window, and of the longest.
    next_bytes: usize,
    window_bytes: usize,
    /// For looks at single frames: the length of a window at a place that does not continue the window before.
    look_bytes: Option<usize>,
}

impl<'a> FrameCursor<'a> {
    pub(crate) fn new(segments: &'a Segments, window_bytes: usize) -> Self {
        let next_bytes = window_bytes.min(FIRST_WINDOW_BYTES);
        Self {
            segments,
            current: None,
            window: Arc::default(),
            windows: Windows::default(),
            window_start: 0,
            held: 0,
            next_bytes,
            window_bytes,
            look_bytes: None,
        }
    }

    /// A cursor for looks at single frames. A look far from the one before reads `look_bytes`. Looks that follow each other
    /// through the file read more each time, so that neighbours share a read.
    pub(crate) fn for_looks(segments: &'a Segments, look_bytes: usize) -> Self {
        let cursor = Self::new(segments, LOOK_WINDOW_BYTES_MAX);
        Self { next_bytes: look_bytes, look_bytes: Some(look_bytes), ..cursor }
    }

    /// Reads into these windows, if no frame uses them any more.
    pub(super) fn reuse(&mut self, windows: Windows) {
        self.windows = windows;
    }

    /// Its windows, for the next cursor.
    pub(super) fn into_windows(mut self) -> Windows {
        self.windows.put(self.window);
        self.windows
    }

    /// `length` bytes at `offset` of a segment; fewer at the end of the file, none if there is no such segment.
    pub(crate) fn bytes(&mut self, segment: u32, offset: u64, length: usize) -> Result<&[u8], LogError> {
        let bytes = self.rest(segment, offset, length)?;
        Ok(bytes.get(..length).unwrap_or(bytes))
    }

    /// The window from `offset` on: at least `length` bytes, fewer only at the end of the file.
    pub(crate) fn rest(&mut self, segment: u32, offset: u64, length: usize) -> Result<&[u8], LogError> {
        self.enter(segment)?;
        let Some((_, file)) = &self.current else { return Ok(&[]) };
        let start = offset.checked_sub(self.window_start).and_then(|start| usize::try_from(start).ok());
        let held = start.is_some_and(|start| start.saturating_add(length) <= self.held);
        if !held {
            // Spines are read in place, so their bytes must be aligned.
            let lead = offset % Position::GRAIN_BYTES;
            let from = offset - lead;
            let length = length.saturating_add(usize::try_from(lead).unwrap_or(0));
            if let Some(look_bytes) = self.look_bytes
                && !self.continues(from)
            {
                self.next_bytes = look_bytes;
            }
            let mut wanted = length.max(self.next_bytes);
            if length > self.window_bytes {
                wanted = within(file, from, wanted)?;
            }
            self.held = 0;
            self.next_bytes = self.next_bytes.saturating_mul(4).min(self.window_bytes);
            self.window_start = from;
            let window = writable(&mut self.window, &mut self.windows, wanted);
            let count = read_up_to(&*file.file, window, from);
            let count = count.map_err(|error| LogError::io("read", self.segments.path(segment), error))?;
            self.held = count;
        }
        let start = bytes_between(self.window_start, offset);
        Ok(self.window.get(start..self.held).unwrap_or(&[]))
    }

    /// Whether `offset` lies in the window, or so near behind it that a window of this length would have held it.
    fn continues(&self, offset: u64) -> bool {
        let end = self.window_start.saturating_add(self.held as u64);
        (self.window_start..=end.saturating_add(self.held as u64)).contains(&offset)
    }

    /// The first byte at or after `offset` of a segment that is in no hole of the file; `None`: none to its end. A file of
    /// many gigabytes may hold a few bytes: a hole is known to be zeros without reading it.
    pub(crate) fn data_from(&mut self, segment: u32, offset: u64) -> Result<Option<u64>, LogError> {
        let Some(file) = self.enter(segment)? else { return Ok(None) };
        let found = file.file.data_from(offset);
        found.map_err(|error| LogError::io("inspect", self.segments.path(segment), error))
    }

    /// Opens a segment if it is not the one that is open.
    fn enter(&mut self, segment: u32) -> Result<Option<Arc<SegmentFile>>, LogError> {
        if self.current.as_ref().is_none_or(|(number, _)| *number != segment) {
            self.current = self.segments.get(segment)?.map(|file| (segment, file));
            self.held = 0;
        }
        Ok(self.current.as_ref().map(|(_, file)| file.clone()))
    }

    /// The header at `position`, checked to belong there.
    pub(crate) fn header(&mut self, position: Position) -> Result<FrameHeader, FrameFault> {
        let store = self.segments.store;
        let bytes = self
            .bytes(position.segment(), position.offset(), FRAME_HEADER_BYTES)
            .map_err(FrameFault::Error)?;
        if is_zero(bytes) {
            // Only zeros inside the file: behind its end, this bug would find frames for ever.
            if failpoint!(AcceptZeroLength) && bytes.len() == FRAME_HEADER_BYTES {
                return Ok(nothing_at(position, store));
            }
            return Err(FrameFault::Nothing);
        }
        let header = match FrameHeader::decode(bytes, store) {
            Ok(header) => header,
            Err(mut invalid) => {
                // A frame of another place is no part of this log.
                if invalid.part == DamagedPart::Newer && !FrameHeader::is_newer_at(bytes, position, store) {
                    invalid.part = DamagedPart::FrameHeader;
                }
                return Err(FrameFault::Invalid(invalid, None));
            }
        };
        if header.position != position {
            let invalid = Invalid {
                part: DamagedPart::FrameMisplaced,
                offset: 40,
                expected: format!("a frame of {position}"),
                found: format!("one of {}", header.position),
            };
            return Err(FrameFault::Invalid(invalid, None));
        }
        Ok(header)
    }

    /// The frame at `position`, checked by itself; the caller checks whether it continues the log.
    pub(crate) fn frame(&mut self, position: Position, check: FrameCheck) -> Result<Frame, FrameFault> {
        let header = self.header(position)?;
        let length = usize::try_from(header.content_bytes()).unwrap_or(usize::MAX);
        let segment = position.segment();
        let offset = position.offset().saturating_add(FRAME_HEADER_BYTES as u64);
        if length <= self.window_bytes {
            self.bytes(segment, offset, length).map_err(FrameFault::Error)?;
        }
        let start = offset.checked_sub(self.window_start).and_then(|start| usize::try_from(start).ok());
        let start = start.filter(|start| start.saturating_add(length) <= self.held);
        let frame = if let Some(start) = start {
            let bodies = header.bodies_bytes as usize;
            let end = start.saturating_add(length).saturating_add(bodies).min(self.held);
            Frame::within(header, &self.window, start, end, check)
        } else {
            let content = self.aligned(segment, offset, length).map_err(FrameFault::Error)?;
            Frame::new(header, content, check)
        };
        let frame = frame.and_then(|frame| self.segments.vault.open(frame));
        frame.map_err(|invalid| FrameFault::Invalid(invalid, Some(Box::new(header))))
    }

    /// As [`FrameCursor::bytes`], aligned; bytes longer than a window are read straight into the answer.
    fn aligned(&mut self, segment: u32, offset: u64, length: usize) -> Result<AlignedVec<16>, LogError> {
        let mut aligned = AlignedVec::new();
        if length <= self.window_bytes {
            aligned.extend_from_slice(self.bytes(segment, offset, length)?);
            return Ok(aligned);
        }
        let Some(file) = self.enter(segment)? else { return Ok(aligned) };
        aligned.resize(within(&file, offset, length)?, 0);
        let count = read_up_to(&*file.file, &mut aligned, offset);
        let count = count.map_err(|error| LogError::io("read", self.segments.path(segment), error))?;
        aligned.resize(count, 0);
        Ok(aligned)
    }

    /// Reads all that follows the content of a frame to the end of `to`; returns its range there.
    pub(crate) fn add_bodies(
        &mut self,
        frame: &Frame,
        to: &mut ReadBuffer,
    ) -> Result<Range<usize>, LogError> {
        let (segment, offset, length) = bodies_place(frame);
        if length <= self.window_bytes {
            let bytes = self.bytes(segment, offset, length)?;
            let room = to.room(bytes.len());
            room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            let count = bytes.len();
            return Ok(to.take(count));
        }
        let Some(file) = self.enter(segment)? else { return Ok(to.take(0)) };
        let length = within(&file, offset, length)?;
        let count = read_up_to(&*file.file, to.room(length), offset);
        let count = count.map_err(|error| LogError::io("read", self.segments.path(segment), error))?;
        Ok(to.take(count))
    }

    /// Checks every body stored in a frame; calls `damaged` with each row whose bytes do not fit its digest.
    pub(crate) fn check_bodies(
        &mut self,
        frame: &Frame,
        damaged: impl FnMut(BodyRow, Invalid),
    ) -> Result<(), LogError> {
        let (segment, offset, length) = bodies_place(frame);
        frame.check_bodies(self.bytes(segment, offset, length)?, damaged);
        Ok(())
    }
}

/// As many of `length` bytes as the file has from `from` on. A length from the disk may lie: no more memory is taken than the file can fill.
fn within(file: &SegmentFile, from: u64, length: usize) -> Result<usize, LogError> {
    let bytes = file.file.len().map_err(|error| LogError::io("inspect", file.path.clone(), error))?;
    // Past the end of the file there is nothing to read.
    Ok(length.min(usize::try_from(bytes.saturating_sub(from)).unwrap_or(usize::MAX)))
}

/// Segment, offset and length of all that follows the content.
fn bodies_place(frame: &Frame) -> (u32, u64, usize) {
    let header = frame.header();
    let (start, position) = (header.bodies_start(), header.position);
    let length = bytes_between(start, header.frame_bytes());
    (position.segment(), position.offset().saturating_add(start), length)
}

/// Windows of a reader of many frames. Fresh ones would be filled with zeros, in pages that the system has to find first.
#[derive(Default)]
pub(crate) struct Windows(Vec<Arc<AlignedVec<16>>>);

/// Most windows that are kept, and the least length of a window that is kept.
const WINDOW_COUNT_MAX: usize = 8;
const WINDOW_BYTES_MIN: usize = 64 << 10;

impl Windows {
    fn put(&mut self, window: Arc<AlignedVec<16>>) {
        if window.len() < WINDOW_BYTES_MIN {
            return;
        }
        if self.0.len() >= WINDOW_COUNT_MAX {
            self.0.remove(0);
        }
        self.0.push(window);
    }

    /// A window of at least `length` bytes that no frame uses any more.
    fn take(&mut self, length: usize) -> Option<Arc<AlignedVec<16>>> {
        let is_free = |window: &Arc<AlignedVec<16>>| window.len() >= length && Arc::strong_count(window) == 1;
        self.0.iter().position(is_free).map(|at| self.0.swap_remove(at))
    }
}

/// The first `length` bytes of a window, to be read into; of another one if frames still use this one.
fn writable<'w>(window: &'w mut Arc<AlignedVec<16>>, windows: &mut Windows, length: usize) -> &'w mut [u8] {
    if Arc::get_mut(window).is_none_or(|window| window.len() < length) {
        windows.put(std::mem::take(window));
        *window = windows.take(length).unwrap_or_else(|| {
            let mut fresh = AlignedVec::with_capacity(length);
            fresh.resize(length, 0);
            Arc::new(fresh)
        });
    }
    Arc::get_mut(window).and_then(|window| window.get_mut(..length)).unwrap_or_default()
}
