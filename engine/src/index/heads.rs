//! The state that adding a frame needs: the watermark, and each stream's number and head. Pure.
//!
//! Absorbing rows updates this and collects the table rows that change, each once however many frames changed it, in
//! the order of their keys.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::ids::StreamId;

use super::layout::{self, Fault, Meta, Row};
use super::rows::Rows;
use super::{INDEX_VERSION, Identity, StreamEntry, Watermark};

/// Table rows that change, by key.
pub(super) type Changes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Watermark, streams and their numbers.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    identity: Identity,
    watermark: Watermark,
    frame_count: u64,
    /// By number.
    streams: Vec<StreamEntry>,
    numbers: FxHashMap<StreamId, u32>,
}

impl Heads {
    pub(super) fn new(identity: Identity) -> Self {
        Self {
            identity,
            watermark: Watermark::default(),
            frame_count: 0,
            streams: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }

    /// Takes over what an index holds. `streams` is in order of their numbers.
    pub(super) fn resume(meta: &Meta, streams: Vec<StreamEntry>) -> Result<Self, Fault> {
        let mut numbers = FxHashMap::default();
        for (number, entry) in (0_u32..).zip(&streams) {
            if numbers.insert(entry.stream, number).is_some() {
                return Err(Fault::new("a stream has two numbers"));
            }
        }
        Ok(Self {
            identity: meta.identity,
            watermark: meta.watermark,
            frame_count: meta.frame_count,
            streams,
            numbers,
        })
    }

    pub(super) const fn watermark(&self) -> Watermark {
        self.watermark
    }

    pub(super) fn number(&self, stream: StreamId) -> Option<u32> {
        self.numbers.get(&stream).copied()
    }

    pub(super) fn stream(&self, number: u32) -> Option<StreamId> {
        self.streams.get(number as usize).map(|entry| entry.stream)
    }

    pub(super) fn meta(&self) -> Meta {
        Meta {
            version: INDEX_VERSION,
            identity: self.identity,
            watermark: self.watermark,
            stream_count: u32::try_from(self.streams.len()).unwrap_or(u32::MAX),
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
    /// the place of an earlier one. Returns the streams whose rows are out of date; so is meta.
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
        let mut touched = BTreeSet::new();
        let watermark = self.watermark.seq;
        let new = || frames.iter().filter(move |rows| rows.place.last_seq > watermark);
        for rows in new() {
            put(layout::frame_row(rows.place));
            self.frame_count += 1;
            let mut numbers = Vec::with_capacity(rows.streams.len());
            for part in &rows.streams {
                let number = self.numbered(part.stream, || StreamEntry {
                    stream: part.stream,
                    first_seq: part.first_seq,
                    first_frame: rows.place,
                    event_count: 0,
                    frame_count: 0,
                    head: part.first_seq,
                });
                numbers.push(number);
                let Some(entry) = self.streams.get_mut(number as usize) else { continue };
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
            if let Some(entry) = self.streams.get(number as usize) {
                put(layout::stream_row(number, entry));
            }
        }
        put(self.meta().row());
    }

    fn numbered(&mut self, stream: StreamId, new: impl FnOnce() -> StreamEntry) -> u32 {
        *self.numbers.entry(stream).or_insert_with(|| {
            let number = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
            self.streams.push(new());
            number
        })
    }
}
