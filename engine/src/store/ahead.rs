//! Bodies that are read before they are asked for: a reader that asks for one body after the other asks for the next ones, too.
//!
//! ```text
//! body, body        read alone
//! body              with it those of the next events like it: neighbours in one read, checked on two threads
//! body, body, ..    taken
//! ```
//!
//! Only sound bodies are kept. One that is erased, locked or damaged is read again alone, which says why it has no bytes.

use rustc_hash::FxHashMap;

use crate::codec::{BodyRow, EventRef, Frame};
use crate::ids::{BodyId, Seq};
use crate::log::Log;

/// Bodies that are read alone, before reading ahead is worth it.
const ALONE_COUNT: usize = 2;
/// Most stored bytes that are read ahead.
const BYTES_MAX: usize = 4 << 20;

/// What was read ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Bodies that were asked for in vain.
    asked_count: usize,
    /// By the event and the row.
    bodies: FxHashMap<(Seq, u32), Vec<u8>>,
}

/// The rows that are read together.
#[derive(Default)]
pub(super) struct Rows {
    keys: Vec<(Seq, u32)>,
    rows: Vec<(Option<Frame>, BodyRow)>,
    bytes: usize,
}

impl Rows {
    /// Adds a row of an event, if there is room and the event has that row.
    pub(super) fn add(&mut self, frame: &Frame, event: &EventRef<'_>, row: u32) {
        let Some(place) = event.row(row as usize).filter(|_| self.has_room()) else { return };
        self.bytes = self.bytes.saturating_add(place.stored_bytes as usize);
        self.keys.push((event.seq, row));
        self.rows.push((Some(frame.clone()), place));
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < BYTES_MAX
    }
}

impl Ahead {
    /// The body, if it was read ahead. It is given once.
    pub(super) fn take(&mut self, id: BodyId) -> Option<Vec<u8>> {
        self.bodies.remove(&(id.seq, id.first))
    }

    /// Counts a body that was not there; says whether to read ahead now.
    pub(super) fn is_due(&mut self) -> bool {
        self.asked_count += 1;
        self.asked_count > ALONE_COUNT
    }

    /// Reads rows ahead, in place of those that were not taken.
    pub(super) fn read(&mut self, log: &Log, wanted: Rows) {
        self.asked_count = 0;
        self.bodies.clear();
        let read = log.bodies_of(&wanted.rows);
        // One without bytes is read alone when it is asked for, and says then why.
        let sound = wanted.keys.into_iter().zip(read).filter_map(|(key, body)| Some((key, body.ok()?)));
        self.bodies.extend(sound);
    }
}
