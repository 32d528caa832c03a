//! The state that adding a frame needs: the watermark, and number and head of the streams that were asked about. Pure.
//!
//! Absorbing rows updates this and collects the table rows that change, each once however many frames changed it, in
//! the order of their keys.
//!
//! A stream is looked for in the table when it is first asked about. A stream without a row is believed to have no events only once all
//! rows of streams were read and counted: a lost row is a fault.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::ids::{Seq, StreamId};

use super::layout::{self, Fault, Meta, Row};
use super::lookup::{self, Sorted};
use super::rows::Rows;
use super::{INDEX_VERSION, Identity, NameEntry, StreamEntry, Watermark};

/// Table rows that change, by key.
pub(super) type Changes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Watermark, and the streams that are known so far, with their numbers.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    identity: Identity,
    watermark: Watermark,
    frame_count: u64,
    stream_count: u32,
    /// By number.
    streams: FxHashMap<u32, StreamEntry>,
    numbers: FxHashMap<StreamId, u32>,
    /// Whether all streams are known.
    is_whole: bool,
}

impl Heads {
    /// The heads of an empty index.
    pub(super) fn new(identity: Identity) -> Self {
        Self {
            identity,
            watermark: Watermark::default(),
            frame_count: 0,
            stream_count: 0,
            streams: FxHashMap::default(),
            numbers: FxHashMap::default(),
            is_whole: true,
        }
    }

    /// The heads of an index with these figures; no stream is known yet.
    pub(super) fn resume(meta: &Meta) -> Self {
        Self {
            watermark: meta.watermark,
            frame_count: meta.frame_count,
            stream_count: meta.stream_count,
            is_whole: false,
            ..Self::new(meta.identity)
        }
    }

    /// Reads these streams from the table.
    pub(super) fn learn(
        &mut self,
        rows: &dyn Sorted,
        streams: impl IntoIterator<Item = StreamId>,
    ) -> Result<(), Fault> {
        for stream in streams {
            if self.is_told(stream) {
                continue;
            }
            match lookup::number(rows, stream)? {
                Some(number) => self.learn_numbers(rows, [number])?,
                None => return self.learn_all(rows),
            }
            if self.number(stream).is_none() {
                return Err(Fault(format!("the number of {stream} is another stream's")));
            }
        }
        Ok(())
    }

    /// The same by their numbers.
    pub(super) fn learn_numbers(
        &mut self,
        rows: &dyn Sorted,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Result<(), Fault> {
        for number in numbers {
            if !self.streams.contains_key(&number)
                && let Some(entry) = lookup::stream(rows, number)?
            {
                self.put(number, entry)?;
            }
        }
        Ok(())
    }

    /// Reads all streams. Streams that were changed meanwhile are known, and newer than their rows.
    fn learn_all(&mut self, rows: &dyn Sorted) -> Result<(), Fault> {
        for (number, entry) in (0..).zip(lookup::streams(rows)?) {
            if !self.streams.contains_key(&number) {
                self.put(number, entry)?;
            }
        }
        self.is_whole = true;
        Ok(())
    }

    fn put(&mut self, number: u32, entry: StreamEntry) -> Result<(), Fault> {
        if self.numbers.insert(entry.stream, number).is_some() {
            return Err(Fault::new("a stream has two numbers"));
        }
        self.streams.insert(number, entry);
        Ok(())
    }

    pub(super) const fn watermark(&self) -> Watermark {
        self.watermark
    }

    pub(super) fn number(&self, stream: StreamId) -> Option<u32> {
        self.numbers.get(&stream).copied()
    }

    /// Whether the number of a stream is known, or that there is no such stream.
    pub(super) fn is_told(&self, stream: StreamId) -> bool {
        self.is_whole || self.numbers.contains_key(&stream)
    }

    /// The entries that were found by a name, with the streams' ids in place of their numbers.
    pub(super) fn named(&self, found: Vec<(u32, Seq)>) -> Result<Vec<NameEntry>, Fault> {
        let entry = |(number, seq)| {
            let entry = self.streams.get(&number).ok_or_else(|| Fault::new("a name names no stream"))?;
            Ok(NameEntry { stream: entry.stream, seq })
        };
        found.into_iter().map(entry).collect()
    }

    pub(super) fn meta(&self) -> Meta {
        Meta {
            version: INDEX_VERSION,
            identity: self.identity,
            watermark: self.watermark,
            stream_count: self.stream_count,
            frame_count: self.frame_count,
        }
    }

    /// Adds frames in order and returns the table rows that change, meta included. Frames at or below the watermark
    /// are skipped.
    ///
    /// # Errors
    /// If a frame does not follow the one before it; then nothing was added.
    pub(super) fn absorb(&mut self, frames: &[Rows]) -> Result<Changes, Fault> {
        let mut changes = Changes::new();
        let mut put = |row: Row| {
            changes.insert(row.0, row.1);
        };
        let touched = self.advance(frames, &mut put)?;
        self.settle(touched, put);
        Ok(changes)
    }

    /// Adds frames in order and gives the rows of their places and names to `put`, where a later row of the same key takes
    /// the place of an earlier one. Returns the streams whose rows are out of date; the meta row is out of date, too.
    ///
    /// # Errors
    /// If a frame does not follow the one before it; then nothing was added.
    pub(super) fn advance(
        &mut self,
        frames: &[Rows],
        put: &mut impl FnMut(Row),
    ) -> Result<BTreeSet<u32>, Fault> {
        let mut next = self.watermark.seq;
        for rows in frames.iter().filter(|rows| rows.place.last_seq > self.watermark.seq) {
            if rows.place.first_seq != next.next() {
                let found = rows.place.first_seq;
                return Err(Fault(format!("a frame begins at {found}, expected {}", next.next())));
            }
            next = rows.place.last_seq;
        }
        let watermark = self.watermark.seq;
        let new = || frames.iter().filter(move |rows| rows.place.last_seq > watermark);
        let mut streams = new().flat_map(|rows| &rows.streams);
        if streams.any(|part| !self.is_told(part.stream)) {
            return Err(Fault::new("a stream was not looked for"));
        }
        let mut touched = BTreeSet::new();
        for rows in new() {
            put(layout::frame_row(rows.place));
            self.frame_count += 1;
            let mut numbers = Vec::with_capacity(rows.streams.len());
            for part in &rows.streams {
                let number = self.numbered(part.stream, put, || StreamEntry {
                    stream: part.stream,
                    first_seq: part.first_seq,
                    first_frame: rows.place,
                    event_count: 0,
                    frame_count: 0,
                    head: part.first_seq,
                });
                numbers.push(number);
                let Some(entry) = self.streams.get_mut(&number) else { continue };
                put(layout::part_row(number, entry.frame_count, rows.place));
                entry.frame_count = entry.frame_count.saturating_add(1);
                entry.event_count = entry.event_count.saturating_add(part.event_count);
                entry.head = part.last_seq;
                touched.insert(number);
            }
            for name in &rows.names {
                if let Some(number) = numbers.get(name.stream) {
                    put(layout::name_row(name.kind, &name.text, *number, name.seq));
                }
            }
        }
        if let Some(last) = new().next_back() {
            let header = &last.header;
            self.watermark =
                Watermark { seq: header.last_seq(), end: Some(header.end()), link: header.link() };
        }
        Ok(touched)
    }

    /// The rows of these streams, and meta.
    pub(super) fn settle(&self, streams: impl IntoIterator<Item = u32>, mut put: impl FnMut(Row)) {
        for number in streams {
            if let Some(entry) = self.streams.get(&number) {
                put(layout::stream_row(number, entry));
            }
        }
        put(self.meta().row());
    }

    fn numbered(
        &mut self,
        stream: StreamId,
        put: &mut impl FnMut(Row),
        new: impl FnOnce() -> StreamEntry,
    ) -> u32 {
        *self.numbers.entry(stream).or_insert_with(|| {
            let number = self.stream_count;
            self.stream_count = number.saturating_add(1);
            self.streams.insert(number, new());
            put(layout::number_row(stream, number));
            number
        })
    }
}
