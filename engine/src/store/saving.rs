//! When snapshots are saved: one rule for folds and for ingest states, and the moments of saving.
//!
//! Saving costs the write of a whole file; not saving costs the next process the events since.
//!
//! - A handle that goes on saves once an eighth is new: so all saving together costs no more than eight times the last one.
//! - A fold or ingest state that leaves the memory, or is closed with its handle, is saved once the events since the last time are as
//!   many as the square root of all. For a chain of processes of one commit each, both costs then grow no faster than that root.

use std::sync::{Arc, Mutex};

use rkyv::util::AlignedVec;

use super::StoreInner;
use super::kept::{FoldSlot, Loaded, StreamWriter};
use super::saved::{Footing, SavedName, archived, put};
use crate::ids::StreamId;
use crate::locks::steady;

/// When something may be saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SaveMoment {
    /// The handle goes on with the fold or ingest state.
    GoesOn,
    /// The fold or ingest state leaves the memory of this process.
    Leaves,
}

/// Fewer new events are not saved by a handle that goes on: saving these takes half a millisecond, folding them anew about as long.
const GOES_ON_COUNT_MIN: u64 = 512;
/// Fewer new events than one in so many of all are not saved, either.
const GOES_ON_SHARE: u64 = 8;
/// Fewer new events are not saved when the memory is left: they are read as fast as a saved fold.
const LEAVES_COUNT_MIN: u64 = 256;

/// Whether so many events are new that they are worth saving.
pub(super) const fn is_due(moment: SaveMoment, event_count: u64, saved_count: u64) -> bool {
    // The saved events are a part of the known ones.
    let new = event_count.saturating_sub(saved_count);
    match moment {
        SaveMoment::GoesOn => new >= GOES_ON_COUNT_MIN && new >= event_count / GOES_ON_SHARE,
        // A product past the largest number is past any count.
        SaveMoment::Leaves => new >= LEAVES_COUNT_MIN && new.saturating_mul(new) >= event_count,
    }
}

impl Loaded {
    const fn is_due(&self, moment: SaveMoment) -> bool {
        is_due(moment, self.event_count, self.saved_count)
    }
}

impl StreamWriter {
    /// Whether so many of the stream's known events are in no file that they are worth saving.
    pub(super) const fn is_due(&self, moment: SaveMoment) -> bool {
        is_due(moment, self.ingest_state.event_count, self.saved_count)
    }
}

impl StoreInner {
    /// Saves a fold in a thread of its own if that is due and nothing else is being saved.
    pub(super) fn save_later(&self, stream: StreamId, slot: &Arc<FoldSlot>, fold: &Arc<Loaded>) {
        let snapshots = &self.snapshots;
        if !snapshots.are_kept() || !fold.is_due(SaveMoment::GoesOn) {
            return;
        }
        let mut running = steady(&snapshots.running);
        if running.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let Some(footing) = self.footing_to_save(fold.watermark) else { return };
        let (storage, store) = (Arc::clone(&snapshots.storage), snapshots.store);
        let (slot, fold) = (Arc::clone(slot), Arc::clone(fold));
        let save = move || {
            // A disk that is full, or another process that saves, costs the next process time alone.
            let name = SavedName::fold(stream);
            let write = |archive: &[u8]| put(&*storage, store, &name, footing, archive).unwrap_or(false);
            save_fold(&slot, fold, footing, &write);
        };
        // No thread to be had: no snapshot.
        *running = std::thread::Builder::new().name("acpdb snapshot".to_owned()).spawn(save).ok();
    }

    /// Saves what is due of a stream that leaves the memory: its fold, its ingest state, or both.
    pub(super) fn save_leaving(
        &self,
        stream: StreamId,
        fold: Option<&FoldSlot>,
        writer: Option<&Mutex<StreamWriter>>,
    ) {
        if !self.snapshots.are_kept() {
            return;
        }
        if let Some(slot) = fold {
            let newest = slot.lock();
            if newest.is_due(SaveMoment::Leaves)
                && let Some(footing) = self.footing_to_save(newest.watermark)
                && let Some(archive) = fold_archive(&newest)
            {
                self.put_saved(&SavedName::fold(stream), footing, &archive);
            }
        }
        // A writer that a panic left half done is not saved.
        if let Some(mut writer) = writer.and_then(|writer| writer.lock().ok())
            && writer.is_due(SaveMoment::Leaves)
        {
            self.save_ingest_state(stream, &mut writer);
        }
    }

    /// Saves all that is due now: the store is being closed.
    pub(super) fn save_all(&self) {
        self.snapshots.finish();
        let folds = steady(&self.folds).list();
        let mut writers: rustc_hash::FxHashMap<_, _> = steady(&self.writers).list().into_iter().collect();
        for (stream, slot) in folds {
            let writer = writers.remove(&stream);
            self.save_leaving(stream, Some(&slot), writer.as_deref());
        }
        for (stream, writer) in writers {
            self.save_leaving(stream, None, Some(&writer));
        }
    }

    /// Saves the ingest state of a stream. `false` if it could not be saved, or is of no use yet.
    pub(super) fn save_ingest_state(&self, stream: StreamId, writer: &mut StreamWriter) -> bool {
        let Some(footing) = self.footing_to_save(writer.watermark) else { return false };
        let Some(archive) = archived(&writer.ingest_state.save()) else { return false };
        let written = self.put_saved(&SavedName::ingest_state(stream), footing, &archive);
        if written {
            writer.saved_count = writer.ingest_state.event_count;
        }
        written
    }

    /// Saves an ingest state that was just read, if it took many events: the handle may be killed.
    pub(super) fn save_read(&self, stream: StreamId, writer: &mut StreamWriter) {
        // Commits of this handle that are not durable yet are in no file.
        let is_read = writer.placed.is_none();
        if self.snapshots.are_kept() && is_read && writer.is_due(SaveMoment::GoesOn) {
            self.save_ingest_state(stream, writer);
        }
    }
}

/// A fold as an archive; `None` if it is too large to be saved, or must not be.
pub(super) fn fold_archive(fold: &Loaded) -> Option<AlignedVec<16>> {
    // Events that were left out may be mended one day; a saved fold would hide that for ever.
    (!fold.has_gaps && !fold.bare).then(|| archived(fold)).flatten()
}

/// Saves a fold, and notes in its slot that it did.
fn save_fold(slot: &FoldSlot, fold: Arc<Loaded>, footing: Footing, write: &dyn Fn(&[u8]) -> bool) {
    let (archive, event_count) = (fold_archive(&fold), fold.event_count);
    // The next fold need not copy it while it is written.
    drop(fold);
    // A fold that is too large is not tried again until it has grown by as much as any other.
    if archive.is_none_or(|archive| write(&archive)) {
        let mut newest = slot.lock();
        if newest.watermark >= footing.seq {
            Arc::make_mut(&mut newest).saved_count = event_count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_saving() {
        let table = [
            // events in all, of these saved: is it due, while the handle goes on, and when it leaves?
            (0, 0, false, false),
            (255, 0, false, false),
            (256, 0, false, true),
            (511, 0, false, true),
            (512, 0, true, true),
            (1000, 512, false, true),
            (1024, 512, true, true),
            (40_000, 39_800, false, false),
            (40_000, 39_700, false, true),
            (40_000, 36_000, false, true),
            (40_000, 35_000, true, true),
            (1_000_000, 999_100, false, false),
            (1_000_000, 999_000, false, true),
        ];
        for (event_count, saved_count, goes_on, leaves) in table {
            let due = |moment| is_due(moment, event_count, saved_count);
            let found = (due(SaveMoment::GoesOn), due(SaveMoment::Leaves));
            assert_eq!(found, (goes_on, leaves), "{event_count} events, {saved_count} saved");
        }
        assert!(is_due(SaveMoment::Leaves, u64::MAX, 0));
    }
}
