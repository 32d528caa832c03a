//! Sealing: a complete segment is written once more, smaller, and takes the place of the old file.
//!
//! ```text
//! SEAL { read and check the old file -> n.seg.tmp -> sync -> read it back and compare all of it -> rename -> sync directory }
//! ```
//!
//! Headers and spines stay the same byte for byte, so links, positions and digests stay valid; bodies are packed one by
//! one, equal ones once. A crash at any step leaves the old file or the new one, and perhaps a temporary file that the next
//! holder of SEAL removes. Handles that have the old file open read on in it. A damaged segment is not sealed, so
//! that no guess becomes permanent.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::cursor::Cursor;
use super::error::{Fault, LogError};
use super::files::{
    LOG_DIR, SCAN_WINDOW_BYTES, SegmentFile, Segments, after, continues, map_name, segment_begin,
    segment_name, segment_start,
};
use super::files::{corruption, damaged};
use super::{Log, sealed, sealed_blocks};
use crate::codec::{BLOCK_ROW_BYTES, CODEC_NONE, FRAME_ROW_BYTES, STREAM_ROW_BYTES};
use crate::codec::{
    BlockRow, BodyRow, FRAME_HEADER_BYTES, Frame, FrameCheck, FrameRow, Invalid, Packer, Part, RecordKind,
    SALT_BYTES, SEALED_BYTES_MAX, SEGMENT_HEADER_BYTES, SealedLayout, SegmentHeader, StreamRow, Written,
    align16, check_block, encode_table, is_zero,
};
use crate::ids::{Position, StreamId};
use crate::storage::{Access, StoredFile, bytes_between, sync, write_all};

/// The outcome of sealing one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[must_use]
pub enum SealOutcome {
    /// The segment is sealed now.
    Sealed(SealFigures),
    /// The segment was sealed before, or is not complete, or has no events, or is too long to be sealed.
    NotNeeded,
    /// Another process is sealing or erasing.
    Busy,
    /// Sealing was told to stop before the end; nothing changed.
    Stopped,
}

/// Figures of sealing one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct SealFigures {
    /// The segment.
    pub segment: u32,
    /// Length of the file before.
    pub bytes_before: u64,
    /// Length of the file now.
    pub bytes_after: u64,
    /// Bodies, equal ones counted each time.
    pub bodies: u64,
    /// Bytes of all bodies.
    pub body_bytes: u64,
    /// Bodies that are stored, equal ones once.
    pub bodies_stored: u64,
    /// Bytes stored for them.
    pub stored_bytes: u64,
}

/// The contents of a segment, found by walking it.
pub(crate) struct Contents {
    pub(crate) header: SegmentHeader,
    end: Written,
    frames: Vec<FrameRow>,
    blocks: Vec<BodyRow>,
    streams: BTreeMap<StreamId, StreamContents>,
    spines_bytes: u64,
}

#[derive(Default)]
struct StreamContents {
    first: u32,
    last: u32,
    event_count: u32,
    frames: Vec<u32>,
}

/// Why a segment was not rewritten.
pub(crate) enum Refused {
    Stopped,
    Error(LogError),
}

impl Refused {
    pub(crate) fn into_error(self) -> Option<LogError> {
        match self {
            Self::Stopped => None,
            Self::Error(error) => Some(error),
        }
    }
}

impl From<LogError> for Refused {
    fn from(error: LogError) -> Self {
        Self::Error(error)
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Contents {
    /// Walks a complete segment and checks all but its bodies. `None`: not complete, or without frames.
    pub(crate) fn read(
        segments: &Segments,
        number: u32,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, Refused> {
        let (Some(header), Some(next)) =
            (segments.header(number)?, segments.header(number.saturating_add(1))?)
        else {
            return Ok(None);
        };
        let (start, end) = (segment_start(&header), next.previous_end);
        if end.segment() != number || end <= start.position {
            return Ok(None);
        }
        let mut found = Self {
            header,
            end: start,
            frames: Vec::new(),
            blocks: Vec::new(),
            streams: BTreeMap::new(),
            spines_bytes: 0,
        };
        let mut cursor = Cursor::new(segments, SCAN_WINDOW_BYTES);
        while found.end.position < end {
            if stop() {
                return Err(Refused::Stopped);
            }
            let position = found.end.position;
            let frame = cursor.frame(position, FrameCheck::Digest).and_then(|frame| {
                continues(&found.end, frame.header()).map_err(|invalid| Fault::Invalid(invalid, None))?;
                Ok(frame)
            });
            match frame {
                Ok(frame) => found.add(&frame),
                Err(fault) => return Err(damaged(segments, position, fault).into()),
            }
        }
        if found.end.position != end || found.end.link != next.previous {
            let invalid = Invalid {
                part: Part::Link,
                offset: 0,
                expected: format!("link {} at the end of segment {number}", next.previous),
                found: found.end.link.to_string(),
            };
            return Err(damaged(segments, end, Fault::Invalid(invalid, None)).into());
        }
        Ok(Some(found))
    }

    fn add(&mut self, frame: &Frame) {
        let header = frame.header();
        let ordinal = narrow(self.frames.len() as u64);
        let first = header.first_seq.since(self.header.first_seq);
        let place = (SEGMENT_HEADER_BYTES as u64).saturating_add(self.spines_bytes);
        self.frames.push(FrameRow {
            grain: narrow(header.position.0 & 0xffff_ffff),
            seq: narrow(first),
            place: narrow(place / Position::GRAIN_BYTES),
        });
        self.spines_bytes = self
            .spines_bytes
            .saturating_add(FRAME_HEADER_BYTES as u64)
            .saturating_add(u64::from(header.spine_bytes));
        self.blocks.extend(frame.blocks());
        for event in frame.events() {
            let delta = narrow(event.seq.since(self.header.first_seq));
            let known = self.streams.entry(event.envelope.stream).or_default();
            if known.event_count == 0 {
                known.first = delta;
            }
            known.last = delta;
            known.event_count = known.event_count.saturating_add(1);
            if known.frames.last() != Some(&ordinal) {
                known.frames.push(ordinal);
            }
        }
        self.end = after(header);
    }

    fn layout(&self) -> SealedLayout {
        let postings: usize = self.streams.values().map(|stream| stream.frames.len()).sum();
        SealedLayout {
            number: self.header.number,
            store: self.header.store,
            end: self.end.position,
            spines_bytes: self.spines_bytes,
            stored_bytes: 0,
            frame_count: narrow(self.frames.len() as u64),
            block_count: narrow(self.blocks.len() as u64),
            stream_count: narrow(self.streams.len() as u64),
            posting_count: narrow(postings as u64),
            first_seq: self.header.first_seq,
            last_seq: self.end.seq,
            digest: [0; 32],
        }
    }

    /// The map of the segment as it is.
    pub(crate) fn map(&self) -> Vec<u8> {
        let layout = SealedLayout { block_count: 0, digest: *self.end.link.as_bytes(), ..self.layout() };
        let mut bytes = layout.encode(RecordKind::Map).to_vec();
        bytes.extend(self.tables(&[], true));
        bytes
    }

    /// The tables, with these rows of blocks.
    fn tables(&self, blocks: &[u8], in_map: bool) -> Vec<u8> {
        let mut rows = Vec::with_capacity(self.frames.len().saturating_mul(FRAME_ROW_BYTES));
        for row in &self.frames {
            FrameRow { place: if in_map { row.grain } else { row.place }, ..*row }.encode(&mut rows);
        }
        let mut out = encode_table(FRAME_ROW_BYTES, &rows);
        out.extend(encode_table(BLOCK_ROW_BYTES, blocks));
        rows.clear();
        let mut postings = Vec::new();
        let mut posting = 0;
        for (stream, known) in &self.streams {
            let posting_count = narrow(known.frames.len() as u64);
            let row = StreamRow {
                stream: *stream,
                first: known.first,
                last: known.last,
                event_count: known.event_count,
                posting,
                posting_count,
            };
            row.encode(&mut rows);
            posting = posting.saturating_add(posting_count);
            known.frames.iter().for_each(|frame| postings.extend_from_slice(&frame.to_le_bytes()));
        }
        out.extend(encode_table(STREAM_ROW_BYTES, &rows));
        postings.resize(postings.len().next_multiple_of(8), 0);
        out.extend(encode_table(8, &postings));
        out
    }
}

/// Bytes that go to the new file, one after the other.
struct Output<'a> {
    file: &'a dyn StoredFile,
    at: u64,
    buffer: Vec<u8>,
}

impl Output<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= SCAN_WINDOW_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        write_all(self.file, &self.buffer, self.at, &mut 0)?;
        self.at = self.at.saturating_add(self.buffer.len() as u64);
        self.buffer.clear();
        Ok(())
    }
}

impl Log {
    /// Numbers of the segments that are complete and not sealed, rising.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn unsealed(&self) -> Result<Vec<u32>, LogError> {
        let last = self.head().position.segment();
        let mut found = Vec::new();
        for number in self.segments.numbers()?.into_iter().filter(|number| *number < last) {
            if self.segments.get(number)?.is_some_and(|file| file.sealed.is_none()) {
                found.push(number);
            }
        }
        Ok(found)
    }

    /// Seals one segment if it is complete. `stop` is asked now and then; once it says so nothing is changed.
    ///
    /// Durable when it returns. Cost: three passes over the segment, about a second for 64 MiB; memory for its tables.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if the segment is damaged (it stays as it is), [`LogError::ReadOnly`], [`LogError::NoSpace`],
    /// [`LogError::Io`].
    pub fn seal(&self, number: u32, stop: &dyn Fn() -> bool) -> Result<SealOutcome, LogError> {
        if self.options.read_only || self.is_read_only() {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        }
        if number >= self.head().position.segment() {
            return Ok(SealOutcome::NotNeeded);
        }
        let Some(_lock) = self.seal_lock()? else { return Ok(SealOutcome::Busy) };
        self.segments.forget_one(number);
        let Some(old) =
            self.segments.get(number)?.filter(|file| file.sealed.is_none() && file.header.is_ok())
        else {
            return Ok(SealOutcome::NotNeeded);
        };
        let name = segment_name(number);
        let temporary = format!("{name}.tmp");
        let bytes_before =
            old.file.len().map_err(|error| LogError::io("inspect", old.path.clone(), error))?;
        if bytes_before > SEALED_BYTES_MAX {
            return Ok(SealOutcome::NotNeeded);
        }
        let made = self.write_sealed(number, &temporary, stop);
        let mut figures = match made {
            Ok(Some(figures)) => figures,
            Ok(None) => return Ok(SealOutcome::NotNeeded),
            Err(refused) => {
                // If it stays, the next holder of the lock removes it.
                let _ = self.storage.remove(&temporary);
                return match refused {
                    Refused::Stopped => Ok(SealOutcome::Stopped),
                    Refused::Error(error) => Err(error),
                };
            }
        };
        let fail = |action, name: &str| {
            let path = self.storage.path(name);
            move |error| LogError::io(action, path, error)
        };
        self.storage.rename(&temporary, &name).map_err(fail("rename", &temporary))?;
        self.storage.sync_dir(LOG_DIR).map_err(fail("sync", LOG_DIR))?;
        self.segments.forget_one(number);
        self.generation_changed();
        // The tables are in the footer now; if the map stays it is not looked at.
        let _ = self.storage.remove(&map_name(number));
        self.generation_changed();
        figures.bytes_before = bytes_before;
        Ok(SealOutcome::Sealed(figures))
    }

    /// Writes the sealed form of a segment to a temporary file, syncs it, reads it back and compares.
    fn write_sealed(
        &self,
        number: u32,
        temporary: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<SealFigures>, Refused> {
        let fail = |action| {
            let path = self.storage.path(temporary);
            move |error| Refused::Error(LogError::io(action, path, error))
        };
        let Some(contents) = Contents::read(&self.segments, number, stop)? else { return Ok(None) };
        let file = self.storage.open(temporary, Access::Replace).map_err(fail("create"))?;
        let mut layout = contents.layout();
        let mut figures = SealFigures { segment: number, ..SealFigures::default() };
        let mut cursor = Cursor::new(&self.segments, SCAN_WINDOW_BYTES);
        let mut output = Output { file: &*file, at: 0, buffer: Vec::new() };
        // The header comes last, when all sizes are known.
        output.put(&[0; SEGMENT_HEADER_BYTES]).map_err(fail("write"))?;
        for row in &contents.frames {
            let position = Position(u64::from(number) << 32 | u64::from(row.grain));
            let bytes = self.header_and_spine(&mut cursor, position)?;
            output.put(&bytes).map_err(fail("write"))?;
        }
        let mut stored = Output { file: &*file, at: layout.stored_offset(), buffer: Vec::new() };
        let (mut packer, mut blocks, mut seen) = (Packer::new(), Vec::new(), HashMap::new());
        let mut stored_bytes = 0_u64;
        for block in &contents.blocks {
            if stop() {
                return Err(Refused::Stopped);
            }
            let row = self.pack(&mut cursor, block, &mut packer, &mut seen, stored_bytes)?;
            output.put(&row.salt).map_err(fail("write"))?;
            if let Some(bytes) = &row.bytes {
                stored.put(bytes).map_err(fail("write"))?;
                stored_bytes = stored_bytes.saturating_add(bytes.len() as u64);
                figures.bodies_stored += 1;
            }
            row.row.encode(&mut blocks);
            figures.bodies += 1;
            figures.body_bytes = figures.body_bytes.saturating_add(u64::from(block.stored_bytes));
        }
        if stored_bytes > SEALED_BYTES_MAX {
            return Ok(None);
        }
        layout.stored_bytes = stored_bytes;
        figures.stored_bytes = stored_bytes;
        output.flush().map_err(fail("write"))?;
        stored.flush().map_err(fail("write"))?;
        let padding =
            bytes_between(layout.stored_offset().saturating_add(stored_bytes), layout.tables_offset());
        stored.put(&vec![0; padding]).map_err(fail("write"))?;
        stored.put(&contents.tables(&blocks, false)).map_err(fail("write"))?;
        stored.flush().map_err(fail("write"))?;
        let mut header = SegmentHeader { sealed: Some(layout), ..contents.header };
        write_all(&*file, &header.encode(), 0, &mut 0).map_err(fail("write"))?;
        let path = self.storage.path(temporary);
        let source = super::lookup::Source { file: &*file, path: &path };
        let digest = sealed::digest(source, &layout);
        layout.digest = digest.map_err(|fault| damaged(&self.segments, Position::default(), fault))?;
        header.sealed = Some(layout);
        write_all(&*file, &header.encode(), 0, &mut 0).map_err(fail("write"))?;
        write_all(&*file, &layout.encode(RecordKind::Sealed), stored.at, &mut 0).map_err(fail("write"))?;
        sync(&*file).map_err(fail("sync"))?;
        drop(file);
        let made = self.storage.open(temporary, Access::Read).map_err(fail("open"))?;
        let made = self.segments.open_file(number, made, self.storage.path(temporary))?;
        self.compare(&contents, &made, stop)?;
        figures.bytes_after = layout.file_bytes();
        Ok(Some(figures))
    }

    fn header_and_spine(&self, cursor: &mut Cursor<'_>, position: Position) -> Result<Vec<u8>, LogError> {
        let header = cursor.header(position);
        let header = header.map_err(|fault| damaged(&self.segments, position, fault))?;
        let length = FRAME_HEADER_BYTES.saturating_add(header.spine_bytes as usize);
        Ok(cursor.bytes(position.segment(), position.offset(), length)?.to_vec())
    }

    /// How one block is stored.
    fn pack(
        &self,
        cursor: &mut Cursor<'_>,
        block: &BodyRow,
        packer: &mut Packer,
        seen: &mut HashMap<blake3::Hash, BlockRow>,
        next: u64,
    ) -> Result<Packed, LogError> {
        let length = SALT_BYTES.saturating_add(align16(block.stored_bytes as usize));
        let position = block.position;
        let bytes = cursor.bytes(position.segment(), position.offset(), length)?;
        let grain = narrow(position.0 & 0xffff_ffff);
        let mut row = BlockRow {
            grain,
            // Of a sealed body, sealing a segment sees the stored bytes alone.
            bytes: block.stored_bytes,
            stored_at: narrow(next),
            stored_bytes: 0,
            checksum: 0,
            codec: 0,
        };
        // A block without a whole salt fails the check, so its salt is never used.
        let salt = bytes.first_chunk::<SALT_BYTES>().copied().unwrap_or_default();
        match check_block(bytes, block) {
            Ok(()) => {}
            Err(invalid) if invalid.part == Part::BodyZeroed => return Ok(Packed { row, salt, bytes: None }),
            Err(invalid) => {
                return Err(damaged(&self.segments, position, Fault::Invalid(invalid, None)));
            }
        }
        let body =
            bytes.get(SALT_BYTES..).and_then(|rest| rest.get(..block.stored_bytes as usize)).unwrap_or(&[]);
        let content = blake3::hash(body);
        if let Some(known) = seen.get(&content) {
            row = BlockRow { grain, ..*known };
            return Ok(Packed { row, salt, bytes: None });
        }
        let (codec, shorter) = if block.is_sealed() { (CODEC_NONE, None) } else { packer.pack(body) };
        let stored = shorter.unwrap_or_else(|| body.to_vec());
        row.codec = codec;
        row.stored_bytes = narrow(stored.len() as u64);
        row.checksum = crc32c::crc32c(&stored);
        seen.insert(content, row);
        Ok(Packed { row, salt, bytes: Some(stored) })
    }

    /// Reads the new file as any reader would and compares all of it with the old one.
    fn compare(
        &self,
        contents: &Contents,
        made: &SegmentFile,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Refused> {
        let number = contents.header.number;
        let differs = |position: Position, what: &str| {
            let invalid = Invalid::new(Part::Footer, 0, format!("{what} as in the old file"), "another");
            let mut damage = corruption(&self.segments, position, Fault::Invalid(invalid, None));
            damage.path.clone_from(&made.path);
            Refused::Error(LogError::corrupt(damage))
        };
        let expected = SegmentHeader {
            // If the header cannot be read, it differs from the expected one, and the seal is refused.
            sealed: made.header.as_ref().ok().and_then(|header| header.sealed),
            generation_torn: false,
            ..contents.header
        };
        let start = segment_begin(number);
        let (Ok(header), Some(tables)) = (&made.header, &made.sealed) else {
            return Err(differs(start, "a header"));
        };
        if *header != expected || !sealed::check_file(&self.segments, made)?.is_empty() {
            return Err(differs(start, "a whole file"));
        }
        let fault = |position, fault| match fault {
            Fault::Error(error) => Refused::Error(error),
            _ => differs(position, "bytes"),
        };
        let mut cursor = Cursor::new(&self.segments, SCAN_WINDOW_BYTES);
        for row in &contents.frames {
            let position = Position(u64::from(number) << 32 | u64::from(row.grain));
            let old = self.header_and_spine(&mut cursor, position)?;
            let place = tables.place(made.source(), position).map_err(|found| fault(position, found))?;
            let Some(place) = place else { return Err(differs(position, "a frame")) };
            let new = super::lookup::exactly(made.source(), place, old.len());
            if new.map_err(|found| fault(position, found))? != old {
                return Err(differs(position, "a frame"));
            }
        }
        for block in &contents.blocks {
            if stop() {
                return Err(Refused::Stopped);
            }
            let position = block.position;
            let length = SALT_BYTES.saturating_add(align16(block.stored_bytes as usize));
            let new = sealed_blocks::block(made, position, length).map_err(|found| fault(position, found))?;
            if cursor.bytes(number, position.offset(), length)? != new {
                return Err(differs(position, "a body"));
            }
            let zeroed = is_zero(&new);
            if !zeroed && check_block(&new, block).is_err() {
                return Err(differs(position, "a body"));
            }
        }
        Ok(())
    }
}

/// A block as it will be stored: its row, its salt, and bytes that are not stored yet.
struct Packed {
    row: BlockRow,
    salt: [u8; SALT_BYTES],
    bytes: Option<Vec<u8>>,
}
