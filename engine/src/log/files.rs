//! Names of the files, and segments opened for reading.
//!
//! A sealed segment is read by the same positions as before: a cursor finds out where the frame is now, and bodies are
//! unpacked as they are asked for. Whoever walks or looks something up need not know which kind a segment is.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rkyv::util::AlignedVec;

use super::error::LogError;
use super::lookup::{Source, Tables};
use super::sealed;
use super::segment_tables::MapFile;
use crate::codec::{
    BodyRow, FRAME_HEADER_BYTES, Frame, FrameCheck, FrameHeader, Invalid, Part, SEGMENT_HEADER_BYTES,
    SegmentHeader, Written, is_zero,
};
use crate::failpoints::{Failpoint, is_enabled};
use crate::ids::{Position, Seq, StoreId};
use crate::storage::{Access, Storage, StoredFile, read_up_to};

pub(crate) const STORE_FILE: &str = "acpdb.json";
/// What keys the log.
pub(crate) const SECRET: &str = "secret";
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const TAIL: &str = "tail";
/// Its lock is the turn to sync.
pub(crate) const SYNC: &str = "SYNC";
/// Its lock guards every change of a complete segment.
pub(crate) const SEAL: &str = "SEAL";
pub(crate) const LOG_DIR: &str = "log";
pub(crate) const QUARANTINE_DIR: &str = "quarantine";
/// Snapshots of folds: kept by others, removed when a body is erased.
pub(crate) const SNAP_DIR: &str = "snap";

/// Where positions in a segment end: no file of one is longer.
const SEGMENT_BYTES_MAX: u64 = (u32::MAX as u64 + 1) * Position::GRAIN_BYTES;
/// Segments kept open for reading at a time.
const OPEN_SEGMENT_COUNT_MAX: usize = 64;
/// What any reading begins with; windows grow as reading goes on.
const FIRST_WINDOW_BYTES: usize = 8 << 10;
/// What a scan reads at a time.
pub(crate) const SCAN_WINDOW_BYTES: usize = 256 << 10;
/// What a look at one frame reads at first.
pub(crate) const POINT_WINDOW_BYTES: usize = 4 << 10;

/// The name of a segment file.
pub(crate) fn segment_name(number: u32) -> String {
    format!("{LOG_DIR}/{number:012}.seg")
}

/// The name of the map of a segment.
pub(crate) fn map_name(number: u32) -> String {
    format!("{LOG_DIR}/{number:012}.map")
}

/// Whether the store may have put a file of this name into the folder of what was set aside, or of snapshots.
pub(crate) fn is_copy_name(directory: &str, file_name: &str) -> bool {
    let is_number = |text: &str, digits_min: usize| {
        text.len() >= digits_min && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    match directory {
        QUARANTINE_DIR => {
            let parts: Vec<&str> = file_name.strip_suffix(".torn").unwrap_or("").split('-').collect();
            matches!(parts.as_slice(), [segment, start, copy]
                if is_number(segment, 12) && is_number(start, 12) && is_number(copy, 1))
        }
        SNAP_DIR => {
            let name = file_name.strip_suffix(".tmp").unwrap_or(file_name);
            let name = name.strip_suffix(".ledger").unwrap_or(name);
            name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        }
        _ => false,
    }
}

/// The number of the segment that a file holds, by its name.
pub(crate) fn segment_number(file_name: &str) -> Option<u32> {
    let digits = file_name.strip_suffix(".seg").filter(|digits| digits.len() == 12)?;
    digits.parse().ok().filter(|number| *number > 0)
}

/// A segment open for reading.
pub(crate) struct SegmentFile {
    pub(crate) file: Box<dyn StoredFile>,
    pub(crate) path: PathBuf,
    /// Its header, or why it has none.
    pub(crate) header: Result<SegmentHeader, Invalid>,
    /// Where things are, if it is sealed.
    pub(crate) sealed: Option<Tables>,
}

impl SegmentFile {
    pub(crate) fn source(&self) -> Source<'_> {
        Source { file: &*self.file, path: &self.path }
    }
}

/// The segments of a store, opened as they are needed.
pub(crate) struct Segments {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) store: StoreId,
    open: Mutex<BTreeMap<u32, Arc<SegmentFile>>>,
    maps: Mutex<BTreeMap<u32, Arc<MapFile>>>,
}

impl Segments {
    pub(crate) fn new(storage: Arc<dyn Storage>, store: StoreId) -> Self {
        Self { storage, store, open: Mutex::default(), maps: Mutex::default() }
    }

    /// Numbers of the segments that exist, rising.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, LogError> {
        match self.storage.list(LOG_DIR) {
            Ok(names) => Ok(names.iter().filter_map(|name| segment_number(name)).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(LogError::io("list", self.storage.path(LOG_DIR), error)),
        }
    }

    pub(crate) fn path(&self, number: u32) -> PathBuf {
        self.storage.path(&segment_name(number))
    }

    /// Segment `number`, or `None` if there is no such file.
    pub(crate) fn get(&self, number: u32) -> Result<Option<Arc<SegmentFile>>, LogError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = open.get(&number) {
            return Ok(Some(segment.clone()));
        }
        let fail = |action, error| LogError::io(action, self.path(number), error);
        let file = match self.storage.open(&segment_name(number), Access::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail("open", error)),
        };
        let segment = Arc::new(self.open_file(number, file, self.path(number))?);
        let sound = segment.header.is_ok();
        if sound {
            if open.len() >= OPEN_SEGMENT_COUNT_MAX {
                open.pop_first();
            }
            open.insert(number, segment.clone());
        }
        Ok(Some(segment))
    }

    /// Reads what a file of a segment says of itself.
    pub(crate) fn open_file(
        &self,
        number: u32,
        file: Box<dyn StoredFile>,
        path: PathBuf,
    ) -> Result<SegmentFile, LogError> {
        let length = file.len().map_err(|error| LogError::io("inspect", path.clone(), error))?;
        if length > SEGMENT_BYTES_MAX {
            let text =
                format!("it has {length} bytes, and no position in a segment is beyond {SEGMENT_BYTES_MAX}");
            return Err(LogError::io("read", path, io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let count = read_up_to(&*file, &mut bytes, 0);
        let count = count.map_err(|error| LogError::io("read", path.clone(), error))?;
        let header = SegmentHeader::decode(bytes.get(..count).unwrap_or(&[])).and_then(|header| {
            if header.store == self.store && header.number == number {
                return Ok(header);
            }
            let found = format!("segment {} of store {}", header.number, header.store);
            let expected = format!("segment {number} of store {}", self.store);
            Err(Invalid { part: Part::SegmentHeader, offset: 12, expected, found })
        });
        let source = Source { file: &*file, path: &path };
        let layout = match &header {
            Ok(header) => header.sealed,
            Err(_) => sealed::last_record(source, number, self.store)?,
        };
        let sealed = layout.map(|layout| Tables::new(layout, layout.tables_offset()));
        Ok(SegmentFile { file, path, header, sealed })
    }

    /// The header of segment `number`, if the file and its header are sound.
    pub(crate) fn header(&self, number: u32) -> Result<Option<SegmentHeader>, LogError> {
        Ok(self.get(number)?.and_then(|segment| segment.header.clone().ok()))
    }

    /// A map that is open.
    pub(crate) fn known_map(&self, number: u32) -> Option<Arc<MapFile>> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Keeps a map open.
    pub(crate) fn keep_map(&self, number: u32, map: Arc<MapFile>) {
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        if maps.len() >= OPEN_SEGMENT_COUNT_MAX {
            maps.pop_first();
        }
        maps.insert(number, map);
    }

    /// Forgets one open file, because it was replaced.
    pub(crate) fn forget_one(&self, number: u32) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        self.maps.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }

    /// Forgets open files, so that replaced ones are seen.
    pub(crate) fn forget(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.maps.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The place right after a segment's header.
pub(crate) fn segment_start(header: &SegmentHeader) -> Written {
    Written {
        position: SegmentHeader::start(header.number),
        seq: Seq(header.first_seq.0.saturating_sub(1)),
        time: header.previous_time,
        link: header.previous,
        last_frame: 0,
    }
}

/// The place right after a frame.
pub(crate) fn after(header: &FrameHeader) -> Written {
    Written {
        position: header.end(),
        seq: header.last_seq(),
        time: header.time_max,
        link: header.link(),
        last_frame: u32::try_from(header.position.offset() / Position::GRAIN_BYTES).unwrap_or(0),
    }
}

/// Whether `header` continues the log at `place`.
pub(crate) fn continues(place: &Written, header: &FrameHeader) -> Result<(), Invalid> {
    let fail =
        |offset, expected: String, found: String| Err(Invalid { part: Part::Link, offset, expected, found });
    if is_enabled(Failpoint::AcceptZeroLength) && header.event_count == 0 {
        return Ok(());
    }
    if header.first_seq != place.seq.next() {
        return fail(24, format!("seq {}", place.seq.next()), format!("seq {}", header.first_seq));
    }
    if header.previous != place.link {
        return fail(72, format!("previous link {}", place.link), header.previous.to_string());
    }
    let highest = place.time.max(header.time);
    if header.time_max != highest {
        return fail(144, format!("the highest time {}", highest.0), header.time_max.0.to_string());
    }
    Ok(())
}

/// What a frame without events would be, for [`Bug::AcceptZeroLength`].
fn nothing_at(position: Position, store: StoreId) -> FrameHeader {
    FrameHeader {
        spine_bytes: 0,
        bodies_bytes: 0,
        event_count: 0,
        row_count: 0,
        first_seq: Seq::ZERO,
        time: crate::ids::Micros(0),
        time_max: crate::ids::Micros(0),
        position,
        durable: Position::default(),
        store,
        previous: crate::ids::Link::ZERO,
        spine_digest: crate::ids::Digest::ZERO,
        piece_count: 0,
        spine_checksum: 0,
    }
}

/// Why there is no frame at a position.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Only zeros, or the end of the file.
    Nothing,
    /// Bytes that are no sound frame; the header, if that much is sound.
    Invalid(Invalid, Option<Box<FrameHeader>>),
    /// The storage failed.
    Error(LogError),
}

/// Bytes that were read one after the other. Its memory is used again without being filled with zeros.
#[derive(Default)]
pub(crate) struct Stretch {
    memory: Vec<u8>,
    used: usize,
}

impl Stretch {
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

    /// The place of `length` bytes that were put into that room.
    fn take(&mut self, length: usize) -> Range<usize> {
        let start = self.used;
        self.used = start.saturating_add(length).min(self.memory.len());
        start..self.used
    }
}

/// Reads frames through a window, so that neighbours cost one read.
pub(crate) struct Cursor<'a> {
    pub(crate) segments: &'a Segments,
    current: Option<(u32, Arc<SegmentFile>)>,
    /// Keeps its length, so that nothing is filled with zeros before each reading; `held` bytes of it were read.
    window: Vec<u8>,
    window_start: u64,
    held: usize,
    /// Length of the next window, and of the longest.
    next_bytes: usize,
    window_bytes: usize,
    /// In a sealed segment: positions whose places were found, and those places. The last frame, and the one after it.
    pub(super) places: [(Position, u64); 2],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(segments: &'a Segments, window_bytes: usize) -> Self {
        let next_bytes = window_bytes.min(FIRST_WINDOW_BYTES);
        let places = [(Position::default(), 0); 2];
        Self {
            segments,
            current: None,
            window: Vec::new(),
            window_start: 0,
            held: 0,
            next_bytes,
            window_bytes,
            places,
        }
    }

    /// `length` bytes at `offset` of a segment; fewer at the end of the file, none if there is no such segment.
    pub(crate) fn bytes(&mut self, segment: u32, offset: u64, length: usize) -> Result<&[u8], LogError> {
        let bytes = self.rest(segment, offset, length)?;
        Ok(bytes.get(..length).unwrap_or(bytes))
    }

    /// What the window holds from `offset` on: at least `length` bytes, fewer only at the end of the file.
    pub(crate) fn rest(&mut self, segment: u32, offset: u64, length: usize) -> Result<&[u8], LogError> {
        self.enter(segment)?;
        let Some((_, file)) = &self.current else { return Ok(&[]) };
        let start = offset.checked_sub(self.window_start).and_then(|start| usize::try_from(start).ok());
        let held = start.is_some_and(|start| start.saturating_add(length) <= self.held);
        if !held {
            let mut wanted = length.max(self.next_bytes);
            if length > self.window_bytes {
                // A length from the disk may lie: no more memory than the file can fill.
                let fail = |error| LogError::io("inspect", self.segments.path(segment), error);
                let rest = file.file.len().map_err(fail)?.saturating_sub(offset);
                wanted = wanted.min(usize::try_from(rest).unwrap_or(usize::MAX));
            }
            if wanted > self.window.len() {
                self.window = vec![0; wanted];
            }
            self.held = 0;
            self.next_bytes = self.next_bytes.saturating_mul(4).min(self.window_bytes);
            self.window_start = offset;
            let window = self.window.get_mut(..wanted).unwrap_or_default();
            let count = read_up_to(&*file.file, window, offset);
            let count = count.map_err(|error| LogError::io("read", self.segments.path(segment), error))?;
            self.held = count;
        }
        let start = usize::try_from(offset.saturating_sub(self.window_start)).unwrap_or(usize::MAX);
        Ok(self.window.get(start..self.held).unwrap_or(&[]))
    }

    /// The first byte at or after `offset` of a segment that is in no hole of the file; `None`: none to its end. A file of
    /// many gigabytes may hold a few bytes: what was never written need not be read to know that it is zeros.
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
            self.places = [(Position::default(), 0); 2];
        }
        Ok(self.current.as_ref().map(|(_, file)| file.clone()))
    }

    /// The segment, if it is sealed.
    pub(crate) fn sealed(&mut self, segment: u32) -> Result<Option<Arc<SegmentFile>>, LogError> {
        Ok(self.enter(segment)?.filter(|file| file.sealed.is_some()))
    }

    /// The byte of the file where the frame that belongs to `position` begins.
    fn place(&mut self, position: Position) -> Result<u64, Fault> {
        let Some(file) = self.sealed(position.segment()).map_err(Fault::Error)? else {
            return Ok(position.offset());
        };
        let Some(tables) = &file.sealed else { return Ok(position.offset()) };
        let known = self.places.iter().find(|(known, _)| *known == position && position.0 != 0);
        if let Some((_, place)) = known {
            return Ok(*place);
        }
        if position >= tables.layout.end {
            return Err(Fault::Nothing);
        }
        let place = match tables.place(file.source(), position) {
            Ok(place) => place,
            Err(Fault::Error(error)) => return Err(Fault::Error(error)),
            // Without tables the frames themselves say where they belong.
            Err(_) => sealed::find_place(self, tables, position).map_err(Fault::Error)?,
        };
        let place = place.filter(|place| *place < tables.layout.salts_offset()).ok_or(Fault::Nothing)?;
        self.places = [(position, place), self.places[1]];
        Ok(place)
    }

    /// The header at `position`, checked to belong there.
    pub(crate) fn header(&mut self, position: Position) -> Result<FrameHeader, Fault> {
        let store = self.segments.store;
        let place = self.place(position)?;
        let bytes = self.bytes(position.segment(), place, FRAME_HEADER_BYTES).map_err(Fault::Error)?;
        if is_zero(bytes) {
            // Zeros that are there: behind the end of the file, this bug would find frames for ever.
            if is_enabled(Failpoint::AcceptZeroLength) && bytes.len() == FRAME_HEADER_BYTES {
                return Ok(nothing_at(position, store));
            }
            return Err(Fault::Nothing);
        }
        let header = match FrameHeader::decode(bytes) {
            Ok(header) => header,
            Err(mut invalid) => {
                // What belongs elsewhere is no part of this log, whoever wrote it.
                if invalid.part == Part::Newer && !FrameHeader::is_newer_at(bytes, position, store) {
                    invalid.part = Part::FrameHeader;
                }
                return Err(Fault::Invalid(invalid, None));
            }
        };
        if header.position != position || header.store != store {
            let invalid = Invalid {
                part: Part::FrameMisplaced,
                offset: 40,
                expected: format!("a frame of {position} of store {store}"),
                found: format!("one of {} of store {}", header.position, header.store),
            };
            return Err(Fault::Invalid(invalid, None));
        }
        if self.current.as_ref().is_some_and(|(_, file)| file.sealed.is_some()) {
            let next =
                place.saturating_add(FRAME_HEADER_BYTES as u64).saturating_add(u64::from(header.spine_bytes));
            self.places = [(position, place), (header.end(), next)];
        }
        Ok(header)
    }

    /// The frame at `position`, checked by itself; whether it continues the log is the caller's question.
    pub(crate) fn frame(&mut self, position: Position, check: FrameCheck) -> Result<Frame, Fault> {
        let header = self.header(position)?;
        let length = header.spine_bytes as usize;
        let offset = self.place(position)?.saturating_add(FRAME_HEADER_BYTES as u64);
        let spine = self.aligned(position.segment(), offset, length).map_err(Fault::Error)?;
        Frame::new(header, spine, check).map_err(|invalid| Fault::Invalid(invalid, Some(Box::new(header))))
    }

    /// `length` bytes of the spine of the frame at `position`, from byte `start` of the spine on; fewer only at the end of the
    /// file.
    pub(crate) fn spine_part(
        &mut self,
        position: Position,
        start: usize,
        length: usize,
    ) -> Result<AlignedVec<16>, Fault> {
        let offset = self.place(position)?.saturating_add((FRAME_HEADER_BYTES + start) as u64);
        self.aligned(position.segment(), offset, length).map_err(Fault::Error)
    }

    /// As [`Cursor::bytes`], aligned; what is longer than a window is read to where it stays.
    fn aligned(&mut self, segment: u32, offset: u64, length: usize) -> Result<AlignedVec<16>, LogError> {
        let mut aligned = AlignedVec::new();
        if length <= self.window_bytes {
            aligned.extend_from_slice(self.bytes(segment, offset, length)?);
            return Ok(aligned);
        }
        let Some(file) = self.enter(segment)? else { return Ok(aligned) };
        // A length from the disk may lie: no more memory than the file can fill.
        let fail = |action, error| LogError::io(action, self.segments.path(segment), error);
        let rest = file.file.len().map_err(|error| fail("inspect", error))?.saturating_sub(offset);
        aligned.resize(length.min(usize::try_from(rest).unwrap_or(usize::MAX)), 0);
        let count = read_up_to(&*file.file, &mut aligned, offset);
        let count = count.map_err(|error| fail("read", error))?;
        aligned.resize(count, 0);
        Ok(aligned)
    }

    /// A block, or as much of it as there is: salt and bytes, unpacked; `length` is that of both.
    pub(crate) fn block(&mut self, position: Position, length: usize) -> Result<Cow<'_, [u8]>, Fault> {
        if let Some(file) = self.sealed(position.segment()).map_err(Fault::Error)? {
            return sealed::block(&file, position, length).map(Cow::Owned);
        }
        self.bytes(position.segment(), position.offset(), length).map(Cow::Borrowed).map_err(Fault::Error)
    }

    /// All that follows the spine of a frame; `None` if the segment is sealed, where bodies lie elsewhere.
    fn stored_bodies(&mut self, frame: &Frame) -> Result<Option<&[u8]>, LogError> {
        let Some((segment, offset, length)) = self.bodies_place(frame)? else { return Ok(None) };
        self.bytes(segment, offset, length).map(Some)
    }

    /// The same, read to the end of `to`, of which it takes the place that is returned.
    pub(crate) fn add_bodies(
        &mut self,
        frame: &Frame,
        to: &mut Stretch,
    ) -> Result<Option<Range<usize>>, LogError> {
        let Some((segment, offset, length)) = self.bodies_place(frame)? else { return Ok(None) };
        if length <= self.window_bytes {
            let bytes = self.bytes(segment, offset, length)?;
            let room = to.room(bytes.len());
            room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            let count = bytes.len();
            return Ok(Some(to.take(count)));
        }
        let Some(file) = self.enter(segment)? else { return Ok(Some(to.take(0))) };
        // A length from the disk may lie: no more memory than the file can fill.
        let fail = |action, error| LogError::io(action, self.segments.path(segment), error);
        let rest = file.file.len().map_err(|error| fail("inspect", error))?.saturating_sub(offset);
        let length = length.min(usize::try_from(rest).unwrap_or(usize::MAX));
        let count = read_up_to(&*file.file, to.room(length), offset).map_err(|error| fail("read", error))?;
        Ok(Some(to.take(count)))
    }

    /// Segment, offset and length of all that follows the spine; `None`: sealed.
    fn bodies_place(&mut self, frame: &Frame) -> Result<Option<(u32, u64, usize)>, LogError> {
        let header = frame.header();
        let segment = header.position.segment();
        if self.sealed(segment)?.is_some() {
            return Ok(None);
        }
        let start = FRAME_HEADER_BYTES as u64 + u64::from(header.spine_bytes);
        Ok(Some((segment, header.position.offset().saturating_add(start), header.bodies_bytes as usize)))
    }

    /// Checks every body stored in a frame; calls `damaged` with each row whose bytes are not what its digest says.
    pub(crate) fn check_bodies(
        &mut self,
        frame: &Frame,
        mut damaged: impl FnMut(BodyRow, Invalid),
    ) -> Result<(), LogError> {
        if let Some(bodies) = self.stored_bodies(frame)? {
            frame.check_bodies(bodies, damaged);
            return Ok(());
        }
        let mut failed = None;
        frame.check_blocks(
            |row, length| match self.block(row.position, length) {
                Ok(block) => Ok(block.into_owned()),
                Err(Fault::Invalid(invalid, _)) => Err(invalid),
                Err(Fault::Nothing) => Ok(Vec::new()),
                Err(Fault::Error(error)) => {
                    failed = Some(error);
                    Ok(Vec::new())
                }
            },
            &mut damaged,
        );
        failed.map_or(Ok(()), Err)
    }
}
