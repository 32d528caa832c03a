//! The bodies that a log records as erased.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::codec::{BodyPlace, BodyRow, DamagedPart, Frame, FrameCheck};
use crate::event::{BodyAddress, Payload};
use crate::ids::Seq;
use crate::log::{Log, LogError};

/// Addresses that the log records as erased after `after`, and the blocks that they name.
pub(crate) fn recorded_erasures(log: &Log, after: Seq) -> Result<Vec<BodyRow>, LogError> {
    let erased = recorded_addresses(log, after)?;
    Ok(rows_at(log, &erased)?.into_iter().flatten().collect())
}

/// The row of the block that each of these names, if it can be read.
pub(crate) fn rows_at(log: &Log, erased: &[BodyAddress]) -> Result<Vec<Option<BodyRow>>, LogError> {
    let mut rows = Vec::with_capacity(erased.len());
    // One erasure names texts that lie together.
    let mut last: Option<Frame> = None;
    for BodyAddress { seq, row } in erased.iter().copied() {
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

/// Bodies that the log records as erased after `after`. `verify` reports damaged frames.
pub(crate) fn recorded_addresses(log: &Log, after: Seq) -> Result<Vec<BodyAddress>, LogError> {
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
                addresses.extend(erased.bodies);
            }
        }
    }
    Ok(addresses)
}

/// The bodies that a log records as erased, looked up when a zeroed or damaged body is met.
pub(super) struct ErasedBodies<'a> {
    log: &'a Log,
    /// The positions of these bodies, up to a seq. Grows beside a live writer; only new events are read.
    known: RefCell<(Seq, BTreeSet<BodyPlace>)>,
    /// Without records that could not be read, what was erased would be taken for damage.
    failed: RefCell<Option<LogError>>,
}

impl<'a> ErasedBodies<'a> {
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
    fn has(&self, place: BodyPlace) -> bool {
        let head = self.told(self.log.refresh());
        let mut known = self.known.borrow_mut();
        let (until, places) = &mut *known;
        if *until < head.seq {
            let rows = self.told(recorded_erasures(self.log, *until));
            places.extend(rows.into_iter().map(|row| row.place));
            *until = head.seq;
        }
        places.contains(&place)
    }

    /// Whether an erasure on record accounts for the bytes in the place of a body: zeros always, a body half zeroed only
    /// as long as the erasure is under way.
    pub(super) fn account_for(&self, row: &BodyRow, part: DamagedPart) -> bool {
        // The record of it is sealed.
        if self.log.is_closed() {
            return part == DamagedPart::BodyZeroed;
        }
        if !self.has(row.place) {
            return false;
        }
        part == DamagedPart::BodyZeroed
            || self.told(self.log.is_erasing())
            // The erasure may have ended since.
            || matches!(self.log.body(row), Err(LogError::Erased { .. }))
    }
}
