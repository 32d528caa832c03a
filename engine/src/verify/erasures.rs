//! The bodies and streams that a log records as erased.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::codec::{BodyRow, Frame, FrameCheck, Part};
use crate::event::{BodyAddress, Payload};
use crate::ids::{Position, Seq, StreamId};
use crate::log::{Log, LogError};

/// Addresses that the log records as erased after `after`, and the blocks that they name.
pub(crate) fn recorded_erasures(log: &Log, after: Seq) -> Result<Vec<BodyRow>, LogError> {
    let erased = recorded_addresses(log, after)?;
    Ok(rows_at(log, &erased)?.into_iter().flatten().collect())
}

/// The row of the block that each of these names, if it can be read.
pub(crate) fn rows_at(log: &Log, erased: &[ErasedBody]) -> Result<Vec<Option<BodyRow>>, LogError> {
    let mut rows = Vec::with_capacity(erased.len());
    // One erasure names texts that lie together.
    let mut last: Option<Frame> = None;
    for BodyAddress { seq, row } in erased.iter().map(|erased| erased.address) {
        let is_there = |frame: &Frame| frame.first_seq() <= seq && seq <= frame.last_seq();
        if !last.as_ref().is_some_and(is_there) {
            last = match log.locate(seq) {
                Ok(frame) => frame,
                Err(LogError::Corrupt(_)) => None,
                Err(error) => return Err(error),
            };
        }
        let event = last.as_ref().and_then(|frame| frame.event(seq));
        rows.push(event.and_then(|event| event.row(row as usize)));
    }
    Ok(rows)
}

/// A body that is on record as erased.
#[derive(Clone, Copy)]
pub(crate) struct ErasedBody {
    pub(crate) address: BodyAddress,
    /// The first event of the commit that records it.
    pub(crate) commit: Seq,
}

/// Bodies that the log records as erased after `after`. `verify` reports damaged frames.
pub(crate) fn recorded_addresses(log: &Log, after: Seq) -> Result<Vec<ErasedBody>, LogError> {
    let until = log.refresh()?;
    let mut addresses = Vec::new();
    for frame in log.frames_until(after.next(), until, FrameCheck::Checksum)? {
        let frame = match frame {
            Ok(frame) => frame,
            Err(LogError::Corrupt(_)) => continue,
            Err(error) => return Err(error),
        };
        for event in frame.events() {
            if event.seq <= after || event.envelope.kind != crate::log::ERASED {
                continue;
            }
            // An erasure that does not decode is a contradiction, which `verify` tells.
            if let Ok(recorded) = crate::codec::payload::recorded(&frame, &event)
                && let Payload::Erased(erased) = recorded.event.payload
            {
                let commit = frame.header().first_seq;
                addresses.extend(erased.bodies.into_iter().map(|address| ErasedBody { address, commit }));
            }
        }
    }
    Ok(addresses)
}

/// In an address, in place of a row: not a body of the event, but the key of its stream.
pub(crate) const SHREDDED_ROW: u32 = u32::MAX;

/// As [`SHREDDED_ROW`], but the key of the subject that the event's stream is about.
pub(crate) const SHREDDED_SUBJECT_ROW: u32 = u32::MAX - 1;

/// The streams that the log records as shredded after `after`: by their own keys (`row` [`SHREDDED_ROW`]), or with all streams about their subjects
/// ([`SHREDDED_SUBJECT_ROW`]).
pub(crate) fn recorded_shreds(log: &Log, after: Seq, row: u32) -> Result<BTreeSet<StreamId>, LogError> {
    shredded_streams(log, &recorded_addresses(log, after)?, row)
}

/// The streams that some of these records call shredded, as far as a log has their events.
pub(crate) fn shredded_streams(
    log: &Log,
    erased: &[ErasedBody],
    row: u32,
) -> Result<BTreeSet<StreamId>, LogError> {
    let mut streams = BTreeSet::new();
    let addresses = erased.iter().map(|erased| erased.address);
    for address in addresses.filter(|address| address.row == row) {
        match log.locate(address.seq) {
            Ok(Some(frame)) => {
                let stream = frame.event(address.seq).map(|event| event.envelope.stream);
                // In a salvaged store the event may be lost, and a note of the store's own stream in its place. That stream is never shredded.
                streams.extend(stream.filter(|stream| *stream != StreamId::STORE));
            }
            Ok(None) | Err(LogError::Corrupt(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(streams)
}

/// The bodies that a log records as erased, looked up when a zeroed or damaged body is met.
pub(super) struct Erasures<'a> {
    log: &'a Log,
    /// The positions of these bodies, up to a seq. Grows beside a live writer; only new events are read.
    known: RefCell<(Seq, BTreeSet<Position>)>,
    /// Without records that could not be read, what was erased would be taken for damage.
    failed: RefCell<Option<LogError>>,
}

impl<'a> Erasures<'a> {
    pub(super) fn new(log: &'a Log) -> Self {
        Self { log, known: RefCell::default(), failed: RefCell::default() }
    }

    /// The answer, or none and a note of the error.
    pub(super) fn told<T: Default>(&self, read: Result<T, LogError>) -> T {
        read.unwrap_or_else(|error| {
            // Other errors are found by the check itself.
            if matches!(error, LogError::Io { .. }) {
                self.failed.borrow_mut().get_or_insert(error);
            }
            T::default()
        })
    }

    /// The first error.
    pub(super) fn failed(&self) -> Option<LogError> {
        self.failed.borrow_mut().take()
    }

    /// Whether the erasure of a body is on record. A record that cannot be read accounts for nothing.
    fn has(&self, position: Position) -> bool {
        let head = self.told(self.log.refresh());
        let mut known = self.known.borrow_mut();
        let (until, places) = &mut *known;
        if *until < head.seq {
            let rows = self.told(recorded_erasures(self.log, *until));
            places.extend(rows.into_iter().map(|row| row.position));
            *until = head.seq;
        }
        places.contains(&position)
    }

    /// Whether an erasure on record accounts for the bytes in the place of a body: zeros always, a body half zeroed only
    /// as long as the erasure is under way.
    pub(super) fn account_for(&self, row: &BodyRow, part: Part) -> bool {
        if !self.has(row.position) {
            return false;
        }
        part == Part::BodyZeroed
            || self.told(self.log.is_erasing())
            // The erasure may have ended since.
            || matches!(self.log.body(row), Err(LogError::Erased { .. }))
    }
}
