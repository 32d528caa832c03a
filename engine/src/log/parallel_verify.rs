//! Checking the bodies of many frames on a second thread while the next frames are read.
//!
//! ```text
//! caller:  read frames 2 ......... | help with what is left of 1 | judge 1 | read frames 3 ..
//! helper:  check bodies of frames 1 .......................... |            check bodies of frames 2 ..
//! ```
//!
//! Reading, and all that depends on order, is the caller's: a simulated disk sees the same calls in the same order every
//! time. The helper only hashes what is in memory. Where there is one processor, or little to do, the caller does it all.

use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use super::cursor::{Cursor, Stretch};
use super::error::LogError;

use super::frames::{Step, Walk};
use crate::codec::{BodyRow, Frame, Invalid};
use crate::ids::Position;
use crate::locks::{steady, steady_into};

/// Bytes of bodies that are checked at a time.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes from which on a second thread is worth its beginning: on a busy machine it may be a while until it begins.
const SHARED_BYTES_MIN: usize = 1 << 20;
/// Most items that a thread takes at a time.
const SHARE_COUNT_MAX: usize = 8;
/// Shares that there are at least, where there are as many items: a few large ones are not all taken by one thread.
const SHARES_MIN: usize = 8;

/// A row whose bytes are not what its digest says, and what is wrong with them.
pub(super) type Damaged = (BodyRow, Invalid);

/// A frame whose bodies are to be checked.
pub(super) struct Unchecked {
    pub(super) frame: Frame,
    bodies: Bodies,
}

enum Bodies {
    /// Where in the batch's bytes all is that follows the spine, as it was written.
    Stored(Range<usize>),
    /// Of a sealed segment: unpacked and checked while they were read.
    Checked(Vec<Damaged>),
}

impl Unchecked {
    fn check(&self, stored: &[u8]) -> Vec<Damaged> {
        match &self.bodies {
            Bodies::Stored(place) => {
                let mut damaged = Vec::new();
                let bodies = stored.get(place.clone()).unwrap_or(&[]);
                self.frame.check_bodies(bodies, |row, invalid| damaged.push((row, invalid)));
                damaged
            }
            Bodies::Checked(damaged) => damaged.clone(),
        }
    }
}

/// The damaged bodies of one frame, in the order of its rows.
pub(super) fn check_alone(frame: &Frame, cursor: &mut Cursor<'_>) -> Result<Vec<Damaged>, LogError> {
    let mut damaged = Vec::new();
    cursor.check_bodies(frame, |row, invalid| damaged.push((row, invalid)))?;
    Ok(damaged)
}

/// Neighbouring frames of one segment, and what came after them.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) frames: Vec<Unchecked>,
    stored: Stretch,
    /// Where the walk was then, and what it met there; `None`: the next frame.
    pub(super) place: Position,
    pub(super) met: Option<Step>,
}

impl Batch {
    /// Reads on, up to the end of the segment, of what is sound, or of what is checked at a time; into `room`, whose contents
    /// do not matter.
    pub(super) fn read(walk: &mut Walk<'_>, room: Stretch) -> Result<Self, LogError> {
        let segment = walk.place.position.segment();
        let mut batch = Self { stored: room.emptied(), ..Self::default() };
        loop {
            match walk.step()? {
                Step::Frame(frame) => {
                    let bodies = match walk.cursor().add_bodies(&frame, &mut batch.stored)? {
                        Some(place) => Bodies::Stored(place),
                        None => Bodies::Checked(check_alone(&frame, walk.cursor())?),
                    };
                    batch.frames.push(Unchecked { frame, bodies });
                }
                other => batch.met = Some(other),
            }
            batch.place = walk.place.position;
            let is_full = batch.stored.bytes().len() >= BATCH_BYTES;
            if batch.met.is_some() || batch.place.segment() != segment || is_full {
                return Ok(batch);
            }
        }
    }

    /// Room for another batch. Memory that is new costs the system as much as all hashing.
    pub(super) fn into_room(self) -> Stretch {
        self.stored
    }

    /// Checks the bodies of all frames while `meanwhile` runs: what is damaged, by frame.
    pub(super) fn check_beside<T>(&self, meanwhile: impl FnOnce() -> T) -> (Vec<Vec<Damaged>>, T) {
        let stored = self.stored.bytes();
        beside(&self.frames, stored.len(), |unchecked| unchecked.check(stored), meanwhile)
    }
}

/// What `work` makes of each item, in their order, while `meanwhile` runs; and what that gives. `bytes`: what all items hold.
/// From [`SHARED_BYTES_MIN`] on a second thread helps. Both take a few items at a time: on a busy machine a thread may begin
/// late, and nothing waits for it then. `work` must be pure: which thread does it is not certain.
pub(super) fn beside<I: Sync, R: Send, T>(
    items: &[I],
    bytes: usize,
    work: impl Fn(&I) -> R + Sync,
    meanwhile: impl FnOnce() -> T,
) -> (Vec<R>, T) {
    if bytes < SHARED_BYTES_MIN || is_alone() {
        let done = meanwhile();
        return (items.iter().map(work).collect(), done);
    }
    let share_count = (items.len() / SHARES_MIN).clamp(1, SHARE_COUNT_MAX);
    let next = AtomicUsize::new(0);
    let shares: Mutex<Vec<(usize, Vec<R>)>> = Mutex::default();
    let help = || {
        loop {
            let start = next.fetch_add(share_count, Ordering::Relaxed);
            // Past the end: all is taken.
            let share = items.get(start..).unwrap_or_default();
            if share.is_empty() {
                return;
            }
            let made = share.iter().take(share_count).map(&work).collect();
            steady(&shares).push((start, made));
        }
    };
    let done = std::thread::scope(|scope| {
        // No thread to be had: all is done here.
        let name = "acpdb check".to_owned();
        let helper = std::thread::Builder::new().name(name).spawn_scoped(scope, help);
        let done = meanwhile();
        help();
        drop(helper);
        done
    });
    let mut shares = steady_into(shares);
    shares.sort_unstable_by_key(|(start, _)| *start);
    (shares.into_iter().flat_map(|(_, made)| made).collect(), done)
}

/// Whether there is one processor.
fn is_alone() -> bool {
    static ALONE: OnceLock<bool> = OnceLock::new();
    *ALONE.get_or_init(|| {
        std::thread::available_parallelism().is_ok_and(|count| count == NonZero::<usize>::MIN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_stand_in_the_order_of_the_items_on_one_thread_and_on_two() {
        let items: Vec<usize> = (0..1000).collect();
        for bytes in [0, SHARED_BYTES_MIN] {
            let (made, done) = beside(&items, bytes, |item| item + 1, || "done");
            assert_eq!((made, done), ((1..=1000).collect(), "done"));
            for few in 0..20 {
                assert_eq!(beside(&items[..few], bytes, |item| *item, || ()).0, items[..few]);
            }
        }
    }
}
