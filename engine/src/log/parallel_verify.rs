//! Checking the bodies of many frames on a second thread while the next frames are read.
//!
//! ```text
//! caller:  read frames 2 ......... | help with the rest of 1     | judge 1 | read frames 3 ..
//! second:  check bodies of frames 1 .......................... |            check bodies of frames 2 ..
//! ```
//!
//! Reading, and all that depends on order, is the caller's: a simulated disk sees the same calls in the same order every
//! time. The second thread only hashes bytes in memory. Where there is one processor, or little to do, the caller does it all.

use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use super::cursor::{FrameCursor, ReadBuffer};
use super::error::LogError;

use super::frames::{FrameWalk, WalkStep};
use crate::codec::{BodyRow, Frame, Invalid};
use crate::ids::Position;
use crate::locks::{steady, steady_into};

/// Bytes of bodies that are checked at a time.
const BATCH_BYTES: usize = 4 << 20;
/// From so many bytes on a second thread is worth its start: on a busy machine it may be a while until it begins.
const SHARED_BYTES_MIN: usize = 1 << 20;
/// Most items that a thread takes at a time.
const SHARE_COUNT_MAX: usize = 8;
/// Least number of shares, if there are as many items: so one thread does not take all of a few large ones.
const SHARES_MIN: usize = 8;

/// A row whose bytes do not fit its digest, and how they differ.
pub(super) type Damaged = (BodyRow, Invalid);

/// A frame whose bodies are to be checked.
pub(super) struct Unchecked {
    pub(super) frame: Frame,
    /// The range, in the batch's bytes, of all that follows the spine.
    bodies: Range<usize>,
}

impl Unchecked {
    fn check(&self, stored: &[u8]) -> Vec<Damaged> {
        let mut damaged = Vec::new();
        let bodies = stored.get(self.bodies.clone()).unwrap_or(&[]);
        self.frame.check_bodies(bodies, |row, invalid| damaged.push((row, invalid)));
        damaged
    }
}

/// The damaged bodies of one frame, in the order of its rows.
pub(super) fn check_alone(frame: &Frame, cursor: &mut FrameCursor<'_>) -> Result<Vec<Damaged>, LogError> {
    let mut damaged = Vec::new();
    cursor.check_bodies(frame, |row, invalid| damaged.push((row, invalid)))?;
    Ok(damaged)
}

/// Neighbouring frames of one segment, and the step that came after them.
#[derive(Default)]
pub(super) struct FrameBatch {
    pub(super) frames: Vec<Unchecked>,
    stored: ReadBuffer,
    /// The place of the walk after them, and its step there; `None`: the next frame.
    pub(super) place: Position,
    pub(super) met: Option<WalkStep>,
}

impl FrameBatch {
    /// Reads on until the segment ends, damage or the end of the walk is met, or the batch is full; into `room`, whose contents
    /// do not matter.
    pub(super) fn read(walk: &mut FrameWalk<'_>, room: ReadBuffer) -> Result<Self, LogError> {
        let segment = walk.place.position.segment();
        let mut batch = Self { stored: room.emptied(), ..Self::default() };
        loop {
            match walk.step()? {
                WalkStep::Frame(frame) => {
                    let bodies = walk.cursor().add_bodies(&frame, &mut batch.stored)?;
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

    /// Memory for another batch. New memory costs the system as much as all hashing.
    pub(super) fn into_room(self) -> ReadBuffer {
        self.stored
    }

    /// Checks the bodies of all frames while `meanwhile` runs. Returns the damaged rows by frame, and the result of `meanwhile`.
    pub(super) fn check_beside<T>(&self, meanwhile: impl FnOnce() -> T) -> (Vec<Vec<Damaged>>, T) {
        let stored = self.stored.bytes();
        beside(&self.frames, stored.len(), |unchecked| unchecked.check(stored), meanwhile)
    }
}

/// The results of `work` for the items, in their order, and the result of `meanwhile`, which runs at the same time. `bytes`: the size of
/// all items. From [`SHARED_BYTES_MIN`] on a second thread helps. Both take a few items at a time: on a busy machine a thread may
/// begin late, and nothing waits for it then. `work` must be pure: either thread may do it.
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
            // Past the end: all items are taken.
            let share = items.get(start..).unwrap_or_default();
            if share.is_empty() {
                return;
            }
            let made = share.iter().take(share_count).map(&work).collect();
            steady(&shares).push((start, made));
        }
    };
    let done = std::thread::scope(|scope| {
        // If no thread can be had, all is done here.
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
