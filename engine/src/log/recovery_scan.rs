//! Finding the end of the log: the durable claims, the end of sound frames, the torn bytes after them.

use super::cursor::FrameCursor;
use super::error::{Corruption, FrameFault, LogError, sound};
use super::files::corruption;
use super::files::{
    CHECKPOINT, POINT_WINDOW_BYTES, SCAN_WINDOW_BYTES, Segments, after, continues, segment_begin,
    segment_start,
};
use crate::codec::{
    CHECKPOINT_BYTES, DamagedPart, DurablePoint, ENVELOPE_BYTES, FRAME_HEADER_BYTES, FRAME_MAGIC, FrameCheck,
    FrameHeader, Invalid, SegmentHeader, TailPage, WrittenPlace, is_zero,
};
use crate::ids::{Position, Seq};
use crate::storage::read_file;

/// The checkpoint file as it was found.
pub(crate) enum CheckpointFile {
    Sound(DurablePoint),
    Missing,
    Damaged(Corruption),
}

/// Reads the checkpoint.
pub(crate) fn read_checkpoint(segments: &Segments) -> Result<CheckpointFile, LogError> {
    let path = segments.storage.path(CHECKPOINT);
    let damaged = |offset, expected: String, found: String| {
        let part = DamagedPart::Checkpoint;
        let (segment, seq_first, seq_last) = (0, None, None);
        CheckpointFile::Damaged(Corruption {
            part,
            path: path.clone(),
            segment,
            offset,
            seq_first,
            seq_last,
            expected,
            found,
        })
    };
    match read_file(&*segments.storage, CHECKPOINT, CHECKPOINT_BYTES) {
        Ok(None) => Ok(CheckpointFile::Missing),
        Ok(Some(bytes)) => Ok(match DurablePoint::decode(&bytes) {
            Ok(found) if found.store == segments.store => CheckpointFile::Sound(found),
            Ok(found) => damaged(16, format!("store {}", segments.store), format!("store {}", found.store)),
            Err(invalid) => damaged(invalid.offset, invalid.expected, invalid.found),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Ok(damaged(0, format!("{CHECKPOINT_BYTES} bytes"), error.to_string()))
        }
        Err(error) => Err(LogError::io("read", path, error)),
    }
}

/// The end of the log, and the bytes beyond it.
#[derive(Debug)]
pub(crate) struct RecoveryScan {
    /// The end of sound frames, E.
    pub(crate) end: WrittenPlace,
    /// The highest durable claim, D.
    pub(crate) durable: Position,
    /// The last place that is not beyond D.
    pub(crate) durable_place: WrittenPlace,
    /// Sound frames beyond D: events that were never confirmed.
    pub(crate) unconfirmed_event_count: u64,
    /// Bytes that are not zero after E in its segment: first and last offset + 1.
    pub(crate) torn: Option<(u64, u64)>,
    /// Something below D is wrong.
    pub(crate) damage: Option<Corruption>,
}

/// The highest durable position that the tail, the checkpoint or the existence of a segment claims. A segment is
/// made only after all before it was synced.
pub(crate) fn claims(numbers: &[u32], page: &TailPage, checkpoint: Option<&DurablePoint>) -> Position {
    let tail = page.durable_end().position;
    // No segment and no checkpoint claim nothing.
    let segment = numbers.last().map(|number| SegmentHeader::start(*number)).unwrap_or_default();
    // As above.
    checkpoint.map(|checkpoint| checkpoint.written.position).unwrap_or_default().max(tail).max(segment)
}

/// The first segment that should be there and is not, if a later one is.
pub(crate) fn first_gap(numbers: &[u32]) -> Option<u32> {
    (1..).zip(numbers).find(|(expected, number)| expected != *number).map(|(expected, _)| expected)
}

/// As many events for each earlier segment are believed without a look at the lengths of files.
const UNASKED_EVENT_COUNT: u64 = 1 << 21;

/// Whether the log holds, right before `place`, the frame that `place` says is there.
pub(crate) fn is_anchored(segments: &Segments, place: &WrittenPlace) -> Result<bool, LogError> {
    let Some(header) = segments.header(place.position.segment())? else { return Ok(false) };
    if place.last_frame == 0 {
        return Ok(segment_start(&header) == *place && could_hold(segments, &header)?);
    }
    let offset = u64::from(place.last_frame) * Position::GRAIN_BYTES;
    let Some(position) = Position::new(place.position.segment(), offset) else { return Ok(false) };
    match FrameCursor::new(segments, POINT_WINDOW_BYTES).frame(position, FrameCheck::Checksum) {
        Ok(frame) => Ok(after(frame.header()) == *place),
        Err(FrameFault::Error(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether the files before a segment are long enough for the events that its header says are in them. A forged
/// header may begin at an immense seq; believing it would mean looking for all those events.
fn could_hold(segments: &Segments, header: &SegmentHeader) -> Result<bool, LogError> {
    let events = header.first_seq.before().0;
    // Segments are counted from 1.
    let earlier = u64::from(header.number).saturating_sub(1);
    if events <= earlier.saturating_mul(UNASKED_EVENT_COUNT) {
        return Ok(true);
    }
    let mut bytes = 0_u64;
    for number in segments.numbers()?.into_iter().filter(|number| *number < header.number) {
        if let Some(file) = segments.get(number)? {
            let length = file.file.len();
            let length = length.map_err(|error| LogError::io("inspect", file.path.clone(), error))?;
            bytes = bytes.saturating_add(length);
        }
    }
    // Spines of an encrypted store are packed.
    let least = if header.features.is_encrypted() { 1 } else { ENVELOPE_BYTES as u64 };
    Ok(bytes / least >= events)
}

/// A trusted place, not beyond `durable`, to start walking from: the highest there is.
fn anchor(
    segments: &Segments,
    numbers: &[u32],
    durable: Position,
    page: &TailPage,
    checkpoint: Option<&DurablePoint>,
) -> Result<Option<WrittenPlace>, LogError> {
    let checkpoint = checkpoint.map(|checkpoint| checkpoint.written);
    let mut places: Vec<WrittenPlace> = page.durable.into_iter().chain(checkpoint).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.position));
    for place in places {
        if place.position <= durable
            && place.position.segment() == durable.segment()
            && is_anchored(segments, &place)?
        {
            return Ok(Some(place));
        }
    }
    // A segment whose header is lost must not hide the segments before it.
    for number in numbers.iter().rev().filter(|number| **number <= durable.segment()) {
        if let Some(header) = segments.header(*number)?
            && could_hold(segments, &header)?
        {
            return Ok(Some(segment_start(&header)));
        }
    }
    Ok(None)
}

/// The damage of a segment that has no sound header.
fn lost_header(segments: &Segments, numbers: &[u32], segment: u32) -> Result<Corruption, LogError> {
    let position = segment_begin(segment);
    let newer = segments.get(segment)?.and_then(|file| file.header.clone().err());
    if let Some(invalid) = newer.filter(|invalid| invalid.part == DamagedPart::Newer) {
        return Ok(corruption(segments, position, FrameFault::Invalid(invalid, None)));
    }
    let exists = numbers.contains(&segment);
    let mut damage = corruption(segments, position, FrameFault::Nothing);
    damage.part = if exists { DamagedPart::SegmentHeader } else { DamagedPart::SegmentMissing };
    "a sound segment".clone_into(&mut damage.expected);
    if exists { "a damaged header" } else { "no file" }.clone_into(&mut damage.found);
    Ok(damage)
}

/// Walks from the highest trusted place to the end. Reads only.
///
/// With `confirmed_only` (after a failed sync) nothing beyond D is trusted, sound or not.
pub(crate) fn scan(
    segments: &Segments,
    numbers: &[u32],
    page: &TailPage,
    checkpoint: Option<&DurablePoint>,
    confirmed_only: bool,
) -> Result<RecoveryScan, LogError> {
    let mut durable = claims(numbers, page, checkpoint);
    let Some(mut place) = anchor(segments, numbers, durable, page, checkpoint)? else {
        let end = WrittenPlace::default();
        let first = durable.segment().max(1);
        let mut cursor = FrameCursor::new(segments, SCAN_WINDOW_BYTES);
        durable = durable.max(claim_without_header(&mut cursor, segments, first, Seq::ZERO)?);
        let damage = Some(lost_header(segments, numbers, first)?);
        return Ok(RecoveryScan {
            end,
            durable,
            durable_place: end,
            unconfirmed_event_count: 0,
            torn: None,
            damage,
        });
    };
    let mut cursor = FrameCursor::new(segments, SCAN_WINDOW_BYTES);
    let mut durable_place = place;
    let mut beyond: Vec<WrittenPlace> = Vec::new();
    let mut next = next_header(segments, numbers, place.position)?;
    let fault = loop {
        if confirmed_only && place.position >= durable {
            break None;
        }
        if let Some(header) = next.filter(|next| {
            next.previous_end == place.position
                && next.previous == place.link
                && segment_start(next).seq == place.seq
        }) {
            place = segment_start(&header);
            next = next_header(segments, numbers, place.position)?;
        } else {
            let whole = place.position >= durable;
            match strict(&mut cursor, &place, whole) {
                Ok(header) => {
                    durable = durable.max(header.durable);
                    place = after(&header);
                }
                Err(FrameFault::Error(error)) => return Err(error),
                Err(fault) => break Some(fault),
            }
        }
        beyond.push(place);
        let confirmed = beyond.iter().take_while(|place| place.position <= durable).count();
        durable_place = beyond.drain(..confirmed).next_back().unwrap_or(durable_place);
    };
    let torn = torn(&mut cursor, &place)?;
    if let (Some((_, torn_end)), false) = (torn, confirmed_only) {
        // A claim beyond this place: the torn bytes were durable.
        durable = durable.max(claim_from(&mut cursor, place.position, torn_end, place.seq)?);
    }
    let mut damage = None;
    if place.position < durable {
        let next = place.position.segment().saturating_add(1);
        let ends_here = matches!(fault, None | Some(FrameFault::Nothing)) && durable.segment() >= next;
        let mut found = if ends_here && segments.header(next)?.is_none() {
            durable = durable.max(claim_without_header(&mut cursor, segments, durable.segment(), place.seq)?);
            lost_header(segments, numbers, next)?
        } else {
            corruption(segments, place.position, fault.unwrap_or(FrameFault::Nothing))
        };
        found.seq_first = Some(place.seq.next());
        damage = Some(found);
    }
    // A newer program's frame is sound: neither torn nor damaged, and this program must not change it.
    if let Some((_, torn_end)) = torn
        && let Some((position, invalid)) = find_newer(&mut cursor, &place, torn_end)?
    {
        damage = Some(corruption(segments, position, FrameFault::Invalid(invalid, None)));
    }
    if let Some(gap) = first_gap(numbers) {
        let mut lost = corruption(segments, segment_begin(gap), FrameFault::Nothing);
        lost.part = DamagedPart::SegmentMissing;
        "the file".clone_into(&mut lost.expected);
        "no file".clone_into(&mut lost.found);
        damage = Some(lost);
    }
    let unconfirmed_event_count = place.seq.since(durable_place.seq);
    Ok(RecoveryScan { end: place, durable, durable_place, unconfirmed_event_count, torn, damage })
}

fn next_header(
    segments: &Segments,
    numbers: &[u32],
    position: Position,
) -> Result<Option<SegmentHeader>, LogError> {
    let number = position.segment().saturating_add(1);
    if numbers.contains(&number) { segments.header(number) } else { Ok(None) }
}

/// The header at `place` if a sound frame continues the log there; with `whole`, spine digest and bodies too.
pub(crate) fn strict(
    cursor: &mut FrameCursor<'_>,
    place: &WrittenPlace,
    whole: bool,
) -> Result<FrameHeader, FrameFault> {
    let header = cursor.header(place.position)?;
    let invalid = |invalid| FrameFault::Invalid(invalid, Some(Box::new(header)));
    continues(place, &header).map_err(invalid)?;
    if whole && header.event_count > 0 {
        let frame = cursor.frame(place.position, FrameCheck::Digest)?;
        let mut first = None;
        cursor
            .check_bodies(&frame, |_, found| first = first.take().or(Some(found)))
            .map_err(FrameFault::Error)?;
        if let Some(found) = first {
            return Err(invalid(found));
        }
    }
    Ok(header)
}

/// First and last offset (+ 1) of bytes after `place` in its segment that are not zero.
pub(crate) fn torn(
    cursor: &mut FrameCursor<'_>,
    place: &WrittenPlace,
) -> Result<Option<(u64, u64)>, LogError> {
    let mut offset = place.position.offset();
    let mut found: Option<(u64, u64)> = None;
    loop {
        let Some(data) = cursor.data_from(place.position.segment(), offset)? else { return Ok(found) };
        offset = data;
        let bytes = cursor.rest(place.position.segment(), offset, 1)?;
        if bytes.is_empty() {
            return Ok(found);
        }
        if !is_zero(bytes) {
            let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(0) as u64;
            let last = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64 + 1;
            let start = found.map_or(offset.saturating_add(first), |(start, _)| start);
            found = Some((start, offset.saturating_add(last)));
        }
        offset = offset.saturating_add(bytes.len() as u64);
    }
}

/// The highest durable claim of the frames of a segment, whose header may be lost.
fn claim_without_header(
    cursor: &mut FrameCursor<'_>,
    segments: &Segments,
    segment: u32,
    after_seq: Seq,
) -> Result<Position, LogError> {
    let Some(file) = segments.get(segment)? else { return Ok(Position::default()) };
    let length = file.file.len().map_err(|error| LogError::io("inspect", file.path.clone(), error))?;
    claim_from(cursor, SegmentHeader::start(segment), length, after_seq)
}

/// The highest durable claim of the frame headers from a place on.
fn claim_from(
    cursor: &mut FrameCursor<'_>,
    from: Position,
    until: u64,
    after_seq: Seq,
) -> Result<Position, LogError> {
    let mut claim = Position::default();
    let mut offset = from.offset();
    while let Some(header) = find_header(cursor, from.segment(), offset, until, after_seq)? {
        claim = claim.max(header.durable);
        offset = header.position.offset().saturating_add(Position::GRAIN_BYTES);
    }
    Ok(claim)
}

/// The first frame header at or after `place` that a newer program wrote.
fn find_newer(
    cursor: &mut FrameCursor<'_>,
    place: &WrittenPlace,
    until: u64,
) -> Result<Option<(Position, Invalid)>, LogError> {
    let segment = place.position.segment();
    let mut offset = place.position.offset();
    while let Some(candidate) = next_magic(cursor, segment, offset, until)? {
        match cursor.header(candidate) {
            Err(FrameFault::Invalid(invalid, _)) if invalid.part == DamagedPart::Newer => {
                return Ok(Some((candidate, invalid)));
            }
            Err(FrameFault::Error(error)) => return Err(error),
            Ok(_) | Err(_) => offset = candidate.offset().saturating_add(Position::GRAIN_BYTES),
        }
    }
    Ok(None)
}

/// The first place at or after `offset`, and before `until`, where a frame header may begin.
fn next_magic(
    cursor: &mut FrameCursor<'_>,
    segment: u32,
    mut offset: u64,
    until: u64,
) -> Result<Option<Position>, LogError> {
    while offset < until {
        // No header lies in a hole; the last piece of one may.
        let Some(data) = cursor.data_from(segment, offset)? else { return Ok(None) };
        offset = offset.max(data / Position::GRAIN_BYTES * Position::GRAIN_BYTES);
        let bytes = cursor.rest(segment, offset, FRAME_HEADER_BYTES)?;
        if bytes.len() < FRAME_HEADER_BYTES {
            return Ok(None);
        }
        let grains = (bytes.len() - FRAME_HEADER_BYTES) / 16 + 1;
        let candidate = bytes.chunks(16).take(grains).position(|chunk| chunk.starts_with(&FRAME_MAGIC));
        if let Some(grain) = candidate {
            let found = offset.saturating_add(grain as u64 * Position::GRAIN_BYTES);
            return Ok(Position::new(segment, found).filter(|_| found < until));
        }
        offset = offset.saturating_add(grains as u64 * Position::GRAIN_BYTES);
    }
    Ok(None)
}

/// The first sound frame header at or after `offset` that says it belongs right where it is.
///
/// Positions and the store id are part of a header, so a copy of a frame inside a body is not taken for one.
pub(crate) fn find_header(
    cursor: &mut FrameCursor<'_>,
    segment: u32,
    mut offset: u64,
    until: u64,
    after_seq: Seq,
) -> Result<Option<FrameHeader>, LogError> {
    while let Some(position) = next_magic(cursor, segment, offset, until)? {
        let header = sound(cursor.header(position))?.filter(|header| header.first_seq > after_seq);
        if header.is_some() {
            return Ok(header);
        }
        offset = position.offset().saturating_add(Position::GRAIN_BYTES);
    }
    Ok(None)
}
