//! Where the bytes of a log are: by segment, and by kind of event.

use std::collections::BTreeMap;

use super::Log;
use super::error::LogError;
use crate::codec::{BODY_ROW_BYTES, ENVELOPE_BYTES};
use crate::ids::Position;
use crate::locks::steady;

/// One segment in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct SegmentSpace {
    /// Its number.
    pub segment: u32,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Length of its file.
    pub file_bytes: u64,
    /// Length of the segment: of its file, unpacked if it is sealed.
    pub log_bytes: u64,
    /// Frames.
    pub frames: u64,
    /// Events.
    pub events: u64,
    /// Headers and spines: everything but bodies.
    pub spine_bytes: u64,
    /// Bodies kept in it, equal ones counted each time they were written.
    pub bodies: u64,
    /// Their bytes.
    pub body_bytes: u64,
}

/// Events of one kind in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct KindSpace {
    /// Events.
    pub events: u64,
    /// Envelopes, payloads and rows.
    pub spine_bytes: u64,
    /// Bodies first written with them.
    pub bodies: u64,
    /// Bytes of these bodies.
    pub body_bytes: u64,
    /// Bodies that they name and an earlier event brought.
    pub shared: u64,
    /// Bytes of these shared bodies.
    pub shared_bytes: u64,
}

/// A log in figures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSpace {
    /// By segment.
    pub segments: Vec<SegmentSpace>,
    /// By kind, as numbered in envelopes.
    pub kinds: BTreeMap<u16, KindSpace>,
    /// Damaged stretches that are in no figure.
    pub damaged: u64,
}

impl Log {
    /// Counts bytes. Cost: one pass over all spines; bodies are not read.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn space(&self) -> Result<LogSpace, LogError> {
        let mut space = LogSpace::default();
        for number in self.segments.numbers()? {
            let Some(file) = self.segments.get(number)? else { continue };
            let fail = |error| LogError::io("inspect", file.path.clone(), error);
            let log_bytes = file.file.len().map_err(fail)?;
            let packed =
                file.sealed.as_ref().map(|sealed| sealed.packed_bytes()).transpose().map_err(fail)?;
            let segment = SegmentSpace {
                segment: number,
                sealed: packed.is_some(),
                file_bytes: packed.unwrap_or(log_bytes),
                log_bytes,
                ..SegmentSpace::default()
            };
            space.segments.push(segment);
        }
        let head = steady(&self.shared).head;
        for frame in self.frames(Position::default(), head) {
            let frame = match frame {
                Ok(frame) => frame,
                Err(LogError::Corrupt(_)) => {
                    space.damaged += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let header = frame.header();
            let place =
                space.segments.binary_search_by_key(&header.position.segment(), |segment| segment.segment);
            let Some(segment) = place.ok().and_then(|at| space.segments.get_mut(at)) else { continue };
            segment.frames += 1;
            segment.events += u64::from(header.event_count);
            segment.spine_bytes = segment.spine_bytes.saturating_add(header.bodies_start());
            let mut blocks = frame.blocks().peekable();
            for event in frame.events() {
                let kind = space.kinds.entry(event.envelope.kind).or_default();
                kind.events += 1;
                let spine = ENVELOPE_BYTES + event.payload.len() + event.row_count() * BODY_ROW_BYTES;
                kind.spine_bytes = kind.spine_bytes.saturating_add(spine as u64);
                for row in event.rows() {
                    let bytes = u64::from(row.stored_bytes);
                    if blocks.next_if(|block| block.place == row.place).is_some() {
                        kind.bodies += 1;
                        kind.body_bytes = kind.body_bytes.saturating_add(bytes);
                        segment.bodies += 1;
                        segment.body_bytes = segment.body_bytes.saturating_add(bytes);
                    } else {
                        kind.shared += 1;
                        kind.shared_bytes = kind.shared_bytes.saturating_add(bytes);
                    }
                }
            }
        }
        Ok(space)
    }
}
