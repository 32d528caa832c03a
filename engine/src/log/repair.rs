//! Finding the end of a log, and making it whole again after its last writer died, or after a sync failed.
//!
//! Only the stretch after the highest durable claim D is ever changed, and a copy of the zeroed bytes is kept. A
//! second repair finds nothing to do.

use std::io;
use std::sync::atomic::Ordering;

use super::create::{StoreFileState, identify};
use super::cursor::FrameCursor;
use super::error::{Corruption, LogError};
use super::files::{LOG_DIR, QUARANTINE_DIR, SCAN_WINDOW_BYTES, segment_name, segment_start};
use super::frames::{FrameWalk, WalkStep};
use super::recovery_scan::{CheckpointFile, RecoveryScan, read_checkpoint, scan};
use super::tail::TailState;
use super::{Head, Log};
use crate::codec::{
    FeatureBits, FrameCheck, PageCounts, SEGMENT_HEADER_BYTES, SegmentHeader, TailPage, WrittenPlace,
};
use crate::ids::{Position, Seq};
use crate::locks::steady;
use crate::storage::{Access, bytes_between, read_up_to, sync, write_all, write_file};

/// How many events the head of a damaged log may be beyond the last sound event, if only a witness beside the log says so.
const CLAIMED_COUNT_MAX: u64 = 1 << 16;

impl Log {
    /// Makes the tail of the log whole again. Call under the write lock.
    ///
    /// Rules 10 to 12 of the recovery in `docs/FORMAT.md`.
    /// `epoch`: the handle's epoch, if it has one.
    pub(crate) fn repair(
        &self,
        tail: &TailState,
        page: &TailPage,
        epoch: Option<u32>,
    ) -> Result<Repaired, LogError> {
        self.segments.forget();
        self.check_features()?;
        // Ending a poisoning excludes every other sync meanwhile. One that was under way may have ended well since the page was read.
        let locks = || tail.lock_out_syncs(&*self.clock, self.options.lock_wait);
        let poison_locks = page.poisoned.then(locks).transpose()?;
        let page = if poison_locks.is_some() { &tail.read()? } else { page };
        let own = page.store == Some(self.segments.store);
        let page = &if own { *page } else { TailPage::default() };
        // If the poison and the durable end beside it are of different moments, a power cut tore the page. The log behind that end is
        // judged as after any crash.
        let is_poisoned = page.poisoned && page.poison_is_whole;
        let found = self.recovery_scan(page, is_poisoned)?;
        if let Some(damage) = found.damage {
            steady(&self.shared).head = found.durable_place;
            self.note_damage(damage.clone(), found.durable)?;
            return Err(LogError::corrupt(damage));
        }
        let mut place = found.end;
        let number = place.position.segment();
        let name = segment_name(number);
        let fail = |action| move |error| LogError::io(action, self.segments.path(number), error);
        let file = self.storage.open(&name, Access::Write).map_err(fail("open"))?;
        // Rows of frames that are dropped must be gone before other frames take their places.
        self.drop_places(number)?;
        let mut torn_bytes = 0;
        if let Some((start, end)) = found.torn {
            // A torn stretch ends behind its start.
            torn_bytes = end.saturating_sub(start);
            self.quarantine(number, start, end)?;
            let zeroed = zero(&*file, start, end);
            // After a failed sync the disk may refuse this too; the next segment says to ignore the bytes that are left.
            if !is_poisoned {
                zeroed.map_err(fail("zero the torn end of"))?;
            }
        }
        if is_poisoned {
            // Best effort: nothing below relies on it.
            let _ = sync(&*file);
            place = self.start_segment(&place, true)?;
        } else {
            let start = if found.durable.segment() == number { found.durable.offset() } else { 0 };
            let start = start.max(SEGMENT_HEADER_BYTES as u64);
            rewrite(&*file, start, place.position.offset()).map_err(fail("rewrite the end of"))?;
            if start < place.position.offset() || torn_bytes > 0 {
                sync(&*file).map_err(|_| self.sync_failed(tail))?;
            }
            self.storage
                .sync_dir(LOG_DIR)
                .map_err(|error| LogError::io("sync", self.storage.path(LOG_DIR), error))?;
        }
        let mut epoch = if own { page.epoch } else { epoch.unwrap_or(0) };
        if tail.is_whole()? && own {
            // Other handles may wait for events that are given up here, and the next commit takes the positions of these events.
            let gives_up = page.written.is_some_and(|written| written.position > place.position);
            if gives_up && !page.poisoned {
                let _locks = poison_locks.is_none().then(locks).transpose()?;
                epoch = tail.raise_epoch(page)?;
            }
            tail.publish(&mut page.clone(), &place)?;
            if page.poisoned {
                tail.clear_poison()?;
                // The kernel may have written back the page while it was poisoned. If a repair found that page after a power cut, it would give up
                // events that are acknowledged from here on.
                tail.sync().map_err(|_| self.sync_failed(tail))?;
            }
        } else {
            // The lost page may have said that the torn bytes are written: a handle that waits for them must learn that they are lost.
            epoch = epoch.wrapping_add(u32::from(found.torn.is_some()));
            let generation = self.generation.load(Ordering::SeqCst).wrapping_add(1);
            let counts = PageCounts { epoch, generation, upgrades: self.upgrades.load(Ordering::SeqCst) };
            tail.write_page(self.segments.store, &place, counts)?;
        }
        drop(poison_locks);
        self.segments.forget();
        steady(&self.shared).head = place;
        let confirmed_event_count = found.unconfirmed_event_count;
        Ok(Repaired { place, torn_bytes, confirmed_event_count, epoch })
    }

    /// Refuses to go on if a newer program named a feature since this handle was opened. Reads the store's file itself, for when the page
    /// cannot be relied on.
    pub(super) fn check_features(&self) -> Result<(), LogError> {
        match identify(&*self.storage)? {
            StoreFileState::Store(file) if file.writes != self.writes => {
                Err(LogError::Upgraded { path: self.storage.path("") })
            }
            _ => Ok(()),
        }
    }

    /// Finds the end of the log in the files as they are now.
    pub(crate) fn recovery_scan(
        &self,
        page: &TailPage,
        confirmed_only: bool,
    ) -> Result<RecoveryScan, LogError> {
        let own = page.store == Some(self.segments.store);
        let page = if own { *page } else { TailPage::default() };
        let checkpoint = match read_checkpoint(&self.segments)? {
            CheckpointFile::Sound(checkpoint) => Some(checkpoint),
            CheckpointFile::Missing | CheckpointFile::Damaged(_) => None,
        };
        let numbers = self.segments.numbers()?;
        scan(&self.segments, &numbers, &page, checkpoint.as_ref(), confirmed_only)
    }

    /// Remembers that the log is damaged, and finds how far reading can go.
    pub(crate) fn note_damage(&self, damage: Corruption, durable: Position) -> Result<(), LogError> {
        let mut head = steady(&self.shared).head;
        let mut until = Head { position: durable.max(head.position), ..head };
        let mut sound = head.seq;
        if let CheckpointFile::Sound(checkpoint) = read_checkpoint(&self.segments)? {
            until.seq = until.seq.max(checkpoint.written.seq);
        }
        if let Some(written) = self.read_page()?.clean() {
            until.seq = until.seq.max(written.seq);
        }
        let from = SegmentHeader::start(damage.segment.max(1));
        let mut walk =
            FrameWalk::new(&self.segments, from, until, FrameCheck::Checksum, false, SCAN_WINDOW_BYTES);
        loop {
            match walk.step()? {
                WalkStep::Frame(frame) => sound = sound.max(frame.header().last_seq()),
                WalkStep::Damage(_) => {}
                WalkStep::End => break,
            }
        }
        head.position = until.position;
        // A witness may claim any seq: its checksum is no proof, and a loop over all seqs would not end. `verify` reports the
        // whole claim.
        let believed = Seq(sound.0.saturating_add(CLAIMED_COUNT_MAX));
        head.seq = sound.max(until.seq.min(believed));
        let mut shared = steady(&self.shared);
        shared.head = head;
        shared.damage.get_or_insert_with(|| Box::new(damage));
        Ok(())
    }

    /// Keeps a copy of bytes that are about to be zeroed.
    fn quarantine(&self, segment: u32, start: u64, end: u64) -> Result<(), LogError> {
        let fail = |error| LogError::io("write to", self.storage.path(QUARANTINE_DIR), error);
        self.storage.create_dir(QUARANTINE_DIR).map_err(fail)?;
        let mut copy = 0_u32;
        let file = loop {
            let name = format!("{QUARANTINE_DIR}/{segment:012}-{start:012}-{copy}.torn");
            match self.storage.open(&name, Access::CreateNew) {
                Ok(file) => break file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => copy = copy.saturating_add(1),
                Err(error) => return Err(fail(error)),
            }
        };
        let mut cursor = FrameCursor::new(&self.segments, SCAN_WINDOW_BYTES);
        let mut offset = start;
        while offset < end {
            // Holes stay holes in the copy.
            let Some(data) = cursor.data_from(segment, offset)?.filter(|data| *data < end) else { break };
            offset = data;
            let rest = bytes_between(offset, end);
            let bytes = cursor.bytes(segment, offset, rest.min(SCAN_WINDOW_BYTES))?;
            if bytes.is_empty() {
                break;
            }
            // `offset` begins at `start` and rises.
            write_all(&*file, bytes, offset.saturating_sub(start), &mut 0).map_err(fail)?;
            offset = offset.saturating_add(bytes.len() as u64);
        }
        sync(&*file).map_err(fail)?;
        self.storage.sync_dir(QUARANTINE_DIR).map_err(fail)?;
        self.storage.sync_dir("").map_err(fail)
    }

    /// Makes the segment after the one that holds `place`, durably, and returns where its first frame goes.
    pub(crate) fn start_segment(
        &self,
        place: &WrittenPlace,
        abandoned: bool,
    ) -> Result<WrittenPlace, LogError> {
        let number = place.position.segment().saturating_add(1);
        let header = SegmentHeader {
            store: self.segments.store,
            number,
            first_seq: place.seq.next(),
            previous_end: place.position,
            previous_time: place.time,
            previous: place.link,
            abandoned,
            features: FeatureBits::of(self.is_encrypted()),
            generation: 0,
            generation_torn: false,
        };
        let name = segment_name(number);
        self.drop_places(number)?;
        write_file(&*self.storage, &name, &header.encode())
            .map_err(|error| LogError::io("create", self.storage.path(&name), error))?;
        Ok(segment_start(&header))
    }
}

/// The outcome of a repair.
pub(crate) struct Repaired {
    pub(crate) place: WrittenPlace,
    pub(crate) torn_bytes: u64,
    pub(crate) confirmed_event_count: u64,
    /// The epoch from here on.
    pub(crate) epoch: u32,
}

/// Overwrites a stretch with zeros.
pub(crate) fn zero(file: &dyn crate::storage::StoredFile, start: u64, end: u64) -> io::Result<()> {
    let zeros = vec![0; SCAN_WINDOW_BYTES];
    let mut offset = start;
    while offset < end {
        // A range that was never written reads as zeros and takes no space.
        let Some(data) = file.data_from(offset)?.filter(|data| *data < end) else { break };
        offset = data;
        let rest = bytes_between(offset, end);
        let bytes = zeros.get(..rest.min(zeros.len())).unwrap_or(&zeros);
        write_all(file, bytes, offset, &mut 0)?;
        offset = offset.saturating_add(bytes.len() as u64);
    }
    Ok(())
}

/// Writes a stretch again as it is. A sync counts only for bytes made dirty since the file was opened here: the
/// error of an earlier, failed write-back may have been reported to a process that is gone.
pub(crate) fn rewrite(file: &dyn crate::storage::StoredFile, start: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; SCAN_WINDOW_BYTES];
    let mut offset = start;
    while offset < end {
        let rest = bytes_between(offset, end);
        let length = rest.min(buffer.len());
        let Some(bytes) = buffer.get_mut(..length) else { break };
        let count = read_up_to(file, bytes, offset)?;
        if count == 0 {
            break;
        }
        write_all(file, bytes.get(..count).unwrap_or(&[]), offset, &mut 0)?;
        offset = offset.saturating_add(count as u64);
    }
    Ok(())
}
