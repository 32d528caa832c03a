//! The questions, answered from sorted rows; one code for redb and for memory.
//!
//! Each answer comes from one snapshot and is checked against the counts in it, so that a row that went missing is a
//! fault and not a shorter answer.

use crate::ids::{Digest, Seq, StreamId};

use super::layout::{self, Fault, KEYS_END, META_KEY, Meta, Row};
use super::{Contents, FramePlace, NameKind, StreamEntry};

/// Sees a row; says whether to go on.
pub(super) type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> Result<bool, Fault>;

/// Rows in the order of their keys, frozen.
pub(super) trait Sorted {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault>;

    /// Visits rows from `from` up to, not including, `to`, ascending.
    fn scan(&self, from: &[u8], to: &[u8], visit: Visit<'_>) -> Result<(), Fault>;

    /// The last row from `from` up to and including `to`.
    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, Fault>;

    fn meta(&self) -> Result<Meta, Fault> {
        let value = self.get(&META_KEY)?.ok_or_else(no_meta)?;
        Meta::read(&value)
    }

    /// Visits rows from `from` up to, not including, `to`, descending.
    fn scan_back(&self, from: &[u8], to: &[u8], visit: Visit<'_>) -> Result<(), Fault>;

    /// All rows, for digests and comparisons.
    fn each(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Fault> {
        self.scan(&[], &KEYS_END, &mut |key, value| {
            visit(key, value);
            Ok(true)
        })
    }
}

pub(super) fn no_meta() -> Fault {
    Fault::new("its first row is missing")
}

/// The number of a stream.
pub(super) fn number(rows: &dyn Sorted, stream: StreamId) -> Result<Option<u32>, Fault> {
    let key = layout::number_key(stream);
    rows.get(&key)?.map(|value| layout::read_number(&key, &value)).transpose()
}

/// Stream `number`. A stream may get its number a moment before its first rows are committed.
pub(super) fn stream(rows: &dyn Sorted, number: u32) -> Result<Option<StreamEntry>, Fault> {
    let key = layout::stream_key(number);
    rows.get(&key)?.map(|value| layout::read_stream(&key, &value)).transpose()
}

pub(super) fn streams(rows: &dyn Sorted) -> Result<Vec<StreamEntry>, Fault> {
    let expected = rows.meta()?.stream_count;
    let mut all = Vec::new();
    rows.scan(&layout::stream_key(0), &layout::streams_end(), &mut |key, value| {
        let number = u32::try_from(all.len()).unwrap_or(u32::MAX);
        if key != layout::stream_key(number) {
            return Err(Fault(format!("the row of stream {number} is missing")));
        }
        all.push(layout::read_stream(key, value)?);
        Ok(true)
    })?;
    if all.len() == expected as usize {
        return Ok(all);
    }
    Err(Fault(format!("it has rows of {} streams, expected {expected}", all.len())))
}

/// Frames of stream `number` past `after`.
pub(super) fn frames_of(rows: &dyn Sorted, number: u32, after: Seq) -> Result<Vec<FramePlace>, Fault> {
    let Some(entry) = stream(rows, number)? else { return Ok(Vec::new()) };
    if entry.head <= after {
        return Ok(Vec::new());
    }
    let missing = || Fault(format!("rows of frames of stream {} are missing", entry.stream));
    let first = layout::part_key(number, Seq::ZERO);
    // A frame that begins at or before `after` may reach past it.
    let before = rows.last(&first, &layout::part_key(number, after))?;
    let mut next = before.is_none().then_some(0);
    let from = before.map_or(first, |(key, _)| key);
    let mut places: Vec<FramePlace> = Vec::new();
    rows.scan(&from, &layout::parts_end(number), &mut |key, value| {
        let (ordinal, place) = layout::read_part(key, value)?;
        if next.is_some_and(|next| next != ordinal) {
            return Err(missing());
        }
        next = ordinal.checked_add(1);
        if place.last_seq > after {
            places.push(place);
        }
        Ok(true)
    })?;
    if next == Some(entry.frame_count) { Ok(places) } else { Err(missing()) }
}

/// The last `limit` frames of stream `number`, oldest first.
pub(super) fn last_frames_of(rows: &dyn Sorted, number: u32, limit: usize) -> Result<Vec<FramePlace>, Fault> {
    let Some(entry) = stream(rows, number)? else { return Ok(Vec::new()) };
    let missing = || Fault(format!("rows of frames of stream {} are missing", entry.stream));
    let mut ordinals = (0..entry.frame_count).rev();
    let mut places = Vec::new();
    let limit = limit.min(entry.frame_count as usize);
    if limit == 0 {
        return Ok(places);
    }
    let from = layout::part_key(number, Seq::ZERO);
    rows.scan_back(&from, &layout::parts_end(number), &mut |key, value| {
        let (ordinal, place) = layout::read_part(key, value)?;
        if ordinals.next() != Some(ordinal) {
            return Err(missing());
        }
        places.push(place);
        Ok(places.len() < limit)
    })?;
    if places.len() < limit {
        return Err(missing());
    }
    places.reverse();
    Ok(places)
}

pub(super) fn contents(rows: &dyn Sorted) -> Result<Contents, Fault> {
    let watermark = rows.meta()?.watermark;
    let entries = streams(rows)?;
    let mut streams: Vec<_> = entries.into_iter().map(|entry| (entry, Vec::new())).collect();
    rows.scan(&layout::part_key(0, Seq::ZERO), &layout::all_parts_end(), &mut |key, value| {
        let (ordinal, place) = layout::read_part(key, value)?;
        let number = layout::part_number(key);
        match streams.get_mut(number as usize) {
            Some((_, places)) if places.len() == ordinal as usize => places.push(place),
            _ => return Err(Fault(format!("a row of a frame of stream {number} is missing"))),
        }
        Ok(true)
    })?;
    match streams.iter().find(|(entry, places)| places.len() != entry.frame_count as usize) {
        None => Ok(Contents { watermark, streams }),
        Some((entry, _)) => Err(Fault(format!("rows of frames of stream {} are missing", entry.stream))),
    }
}

pub(super) fn place_of(rows: &dyn Sorted, seq: Seq) -> Result<Option<FramePlace>, Fault> {
    if seq == Seq::ZERO || seq > rows.meta()?.watermark.seq {
        return Ok(None);
    }
    let found = rows.last(&layout::frame_key(Seq::ZERO), &layout::frame_key(seq))?;
    let place = found.map(|(key, value)| layout::read_frame(&key, &value)).transpose()?;
    match place {
        Some(place) if seq <= place.last_seq => Ok(Some(place)),
        _ => Err(Fault(format!("the row of the frame of {seq} is missing"))),
    }
}

/// Numbers of the streams that know a name, and the seq at which each last used it.
pub(super) fn names(
    rows: &dyn Sorted,
    kind: NameKind,
    text: &str,
    prefix: bool,
    limit: usize,
) -> Result<Vec<(u32, Seq)>, Fault> {
    let (from, to) = layout::name_range(kind, text, prefix);
    let mut found = Vec::new();
    rows.scan(&from, &to, &mut |key, value| {
        let (kept, number, seq) = layout::read_name(key, value)?;
        if found.len() < limit && (!prefix || layout::may_begin(&kept, text)) {
            found.push((number, seq));
        }
        Ok(found.len() < limit)
    })?;
    Ok(found)
}

/// Digest over all rows in order, and their tally.
pub(super) fn summary(rows: &dyn Sorted) -> Result<(Digest, Tally), Fault> {
    let mut hasher = blake3::Hasher::new_derive_key("acpdb 2026 index rows v1");
    let mut tally = Tally::default();
    rows.each(&mut |key, value| {
        tally.add(key, value);
        for bytes in [key, value] {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
    })?;
    Ok((Digest(*hasher.finalize().as_bytes()), tally))
}

pub(super) fn digest(rows: &dyn Sorted) -> Result<Digest, Fault> {
    Ok(summary(rows)?.0)
}

/// A digest of rows that does not depend on their order and can be kept while rows are put in and replaced: the sum of
/// the digests of each. It finds accidents; a forger that chooses rows could make two sums equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tally {
    count: u64,
    sums: [u64; 4],
}

impl Tally {
    /// How many rows it counts.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count = self.count.wrapping_add(1);
        self.sum(key, value, u64::wrapping_add);
    }

    pub(super) fn take_away(&mut self, key: &[u8], value: &[u8]) {
        self.count = self.count.wrapping_sub(1);
        self.sum(key, value, u64::wrapping_sub);
    }

    fn sum(&mut self, key: &[u8], value: &[u8], with: fn(u64, u64) -> u64) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(key.len() as u64).to_le_bytes()).update(key).update(value);
        let digest = hasher.finalize();
        let (words, _) = digest.as_bytes().as_chunks::<8>();
        for (sum, word) in self.sums.iter_mut().zip(words) {
            *sum = with(*sum, u64::from_le_bytes(*word));
        }
    }
}
