//! Where seqs and streams are in complete segments: the file `n.map` beside each.
//!
//! A handle that may write makes a missing map from its segment. A map may be deleted at any time. It names the link at the end of
//! its segment; a map of another segment is not used. A damaged or missing map costs the time to read the segment's
//! spines; answers stay the same.

use std::sync::Arc;

use super::Log;
use super::contents::Contents;
use super::error::{Fault, LogError, sound};
use super::files::{Segments, map_name};
use super::lookup::{MapFile, Source, TableStream, Tables, exactly};
use crate::codec::{FramePlace, MapRecord, RECORD_BYTES, SegmentHeader};
use crate::ids::{Position, Seq};
use crate::locks::steady;
use crate::storage::{Access, put_file, sync, write_all};

impl MapFile {
    /// Asks the tables. Damaged tables give no answer.
    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(Source<'_>, &Tables) -> Result<T, Fault>,
    ) -> Result<Option<T>, LogError> {
        sound(question(Source { file: &*self.file, path: &self.path }, &self.tables))
    }
}

/// A complete segment: its number and its seqs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompleteSegment {
    /// Its number.
    pub number: u32,
    /// Seq of its first event.
    pub first_seq: Seq,
    /// Seq of its last event.
    pub last_seq: Seq,
}

impl Segments {
    /// The tables of segment `number` that ends as `next` says; `None` if there are none to be used.
    pub(crate) fn tables(&self, number: u32, next: &SegmentHeader) -> Option<Arc<MapFile>> {
        if let Some(map) = self.known_map(number) {
            return Some(map);
        }
        let name = map_name(number);
        let path = self.storage.path(&name);
        // The log answers without a map that cannot be read.
        let Ok(file) = self.storage.open(&name, Access::Read) else { return None };
        let source = Source { file: &*file, path: &path };
        let Ok(record) = exactly(source, 0, RECORD_BYTES) else { return None };
        let Ok(record) = MapRecord::decode(&record) else { return None };
        let length = (RECORD_BYTES as u64).saturating_add(record.tables_bytes());
        let belongs = record.number == number
            && record.store == self.store
            && record.end == next.previous_end
            && record.last_seq.next() == next.first_seq
            && record.link == next.previous
            && file.len().is_ok_and(|actual| actual == length);
        if !belongs {
            return None;
        }
        let map = Arc::new(MapFile { file, path, tables: Tables::new(record, RECORD_BYTES as u64) });
        self.keep_map(number, map.clone());
        Some(map)
    }
}

impl Log {
    /// The complete segment that holds `seq`, if the segment and the one after it have sound headers.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn complete_segment(&self, seq: Seq) -> Result<Option<CompleteSegment>, LogError> {
        let last = self.head().position.segment();
        let (mut low, mut high) = (1_u32, last);
        // The first segment that begins after `seq`; a damaged header ends the search without an answer.
        while low < high {
            let middle = low.midpoint(high);
            match self.segments.header(middle)? {
                Some(header) if header.first_seq <= seq => low = middle.saturating_add(1),
                Some(_) => high = middle,
                None => return Ok(None),
            }
        }
        // 0 is no segment, and is passed over.
        for number in [low.saturating_sub(1), low] {
            if number == 0 || number >= last {
                continue;
            }
            let (Some(header), Some(next)) =
                (self.segments.header(number)?, self.segments.header(number.saturating_add(1))?)
            else {
                return Ok(None);
            };
            if header.first_seq <= seq && seq < next.first_seq && next.previous_end.segment() == number {
                let last_seq = next.first_seq.before();
                return Ok(Some(CompleteSegment { number, first_seq: header.first_seq, last_seq }));
            }
        }
        Ok(None)
    }

    /// The tables of a complete segment. Makes a missing map if this handle may write.
    pub(super) fn tables(&self, number: u32) -> Result<Option<Arc<MapFile>>, LogError> {
        let Some(next) = self.segments.header(number.saturating_add(1))? else { return Ok(None) };
        if let Some(tables) = self.segments.tables(number, &next) {
            return Ok(Some(tables));
        }
        if self.options.read_only || self.is_read_only() || !self.write_map(number)? {
            return Ok(None);
        }
        Ok(self.segments.tables(number, &next))
    }

    /// Makes the map of a complete segment that has no tables. Says whether there is one now; the log needs none.
    pub(crate) fn write_map(&self, number: u32) -> Result<bool, LogError> {
        let contents = match Contents::read(&self.segments, number, false, &|| false) {
            Ok(Some(contents)) => contents,
            Ok(None) => return Ok(false),
            Err(refused) => match refused.into_error() {
                None | Some(LogError::Corrupt(_)) => return Ok(false),
                Some(error) => return Err(error),
            },
        };
        Ok(self.put_map(number, &contents))
    }

    /// Writes the map of a segment with these contents. Says whether there is one now.
    pub(super) fn put_map(&self, number: u32, contents: &Contents) -> bool {
        let map = contents.map();
        let put = put_file(&*self.storage, &map_name(number), &|file| {
            write_all(file, &map, 0, &mut 0)?;
            sync(file)
        });
        // Without a map reading takes longer.
        put.unwrap_or(false)
    }

    /// Makes the maps that are missing, oldest first, at most `count` of them.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn write_maps(&self, count: usize) -> Result<(), LogError> {
        for number in self.unsealed()?.into_iter().take(count) {
            // Asking for the tables writes them.
            let _ = self.tables(number)?;
        }
        Ok(())
    }

    /// The position of the frame that holds `seq`, from the tables of a complete segment.
    pub(crate) fn table_position(&self, segment: u32, seq: Seq) -> Result<Option<Position>, LogError> {
        let Some(tables) = self.tables(segment)? else { return Ok(None) };
        Ok(tables.ask(|source, tables| tables.holding(source, seq))?.flatten())
    }

    /// A known position at or before the frame that holds `seq`: from the tables of a complete segment, else a remembered one.
    pub(super) fn start_before(&self, seq: Seq) -> Result<Position, LogError> {
        let remembered = steady(&self.map).range(..=seq).next_back().map(|(_, position)| *position);
        let active = self.head().position.segment();
        if let Some(position) = remembered.filter(|position| position.segment() == active) {
            return Ok(position);
        }
        if let Some(complete) = self.complete_segment(seq)? {
            if let Some(position) = self.table_position(complete.number, seq)? {
                return Ok(position);
            }
            let near = remembered.filter(|position| position.segment() == complete.number);
            return Ok(near.unwrap_or(SegmentHeader::start(complete.number)));
        }
        let numbers = self.segments.numbers()?;
        let mut start = Position::default();
        let (mut low, mut high) = (0, numbers.len());
        while low < high {
            let middle = low.midpoint(high);
            let Some(number) = numbers.get(middle) else { break };
            match self.segments.header(*number)? {
                Some(header) if header.first_seq <= seq => {
                    start = SegmentHeader::start(*number);
                    low = middle + 1;
                }
                // A damaged header says nothing: look below it.
                _ => high = middle,
            }
        }
        Ok(start)
    }

    /// The streams of a complete segment with the frames of their first events there; `None` without usable tables.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn segment_streams(&self, segment: u32) -> Result<Option<Vec<TableStream>>, LogError> {
        let Some(tables) = self.tables(segment)? else { return Ok(None) };
        tables.ask(|source, tables| tables.streams(source))
    }

    /// The frame of a complete segment that holds `seq`; `None` without usable tables.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn segment_frame(&self, segment: u32, seq: Seq) -> Result<Option<FramePlace>, LogError> {
        let Some(tables) = self.tables(segment)? else { return Ok(None) };
        Ok(tables.ask(|source, tables| tables.frame_of(source, seq))?.flatten())
    }
}
