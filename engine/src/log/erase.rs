//! Erasing: salts and bytes of bodies become zeros: in place, or by a new file where the segment is sealed (`erase_sealed`).
//!
//! ```text
//! SEAL { note "erasing" -> Erased recorded (by the caller) -> roll -> checkpoint -> zeros, synced -> quarantine, snapshots -> note away }
//! ```
//!
//! A spine holds only the salted digest of a body, so every link, digest and seal still verifies. The note `erasing` is durable before
//! the erasure is recorded, and is removed after the last zero. If a process dies between, the next opening finds the note and ends the
//! erasure.
//!
//! Not here: the choice of bodies, the origin of the request and its reason; the event has them.

use std::collections::BTreeMap;
use std::io;

use super::Log;
use super::error::LogError;
use super::files::{LOG_DIR, QUARANTINE_DIR, SNAP_DIR, is_copy_name, segment_name};
use super::repair::zero;
use super::seal_lock::SealLock;
use crate::codec::{BodyRow, SALT_BYTES, generation_offset, generation_record};
use crate::ids::Seq;
use crate::storage::{Access, Storage, read_file, sync, write_all, write_file};

/// Exists while an erasure is under way; its text is the seq after which the erasure is recorded.
pub(crate) const ERASING: &str = "erasing";
/// Number of the kind of event that records an erasure.
pub(crate) const ERASED: u16 = 112;
const NOTE_BYTES_MAX: usize = 64;

/// The right to change complete segments, held for as long as an erasure takes.
pub struct Erasing<'a> {
    log: &'a Log,
    _lock: SealLock,
    /// The erasures to be carried out are recorded after this seq.
    pub after: Seq,
    /// Whether the note is of this erasure alone: there was none before.
    is_fresh: bool,
}

/// Counts of zeroed bodies and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct ErasedFigures {
    /// Bodies whose salt and bytes were zeroed; equal ones counted each time they were stored.
    pub blocks: u64,
    /// Files in the log that changed.
    pub segments: u64,
    /// Files of quarantine and snapshots that were removed because they may have held copies.
    pub files_removed: u64,
}

/// The text of a note: bodies whose erasure is recorded after this seq may not be zeroed yet.
pub(crate) fn note(after: Seq) -> Vec<u8> {
    format!("{}\n", after.get()).into_bytes()
}

/// The seq that a note names, if an erasure is under way.
pub(crate) fn read_note(storage: &dyn Storage) -> Result<Option<Seq>, LogError> {
    let bytes = read_file(storage, ERASING, NOTE_BYTES_MAX);
    let bytes = bytes.map_err(|error| LogError::io("read", storage.path(ERASING), error))?;
    // A note that cannot be read says only that there is something to do: then every erasure on record is carried out again.
    Ok(bytes.map(|bytes| {
        Seq(std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0))
    }))
}

impl Log {
    /// Whether an erasure was begun and has not ended; its bodies may be half zeroed.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn is_erasing(&self) -> Result<bool, LogError> {
        Ok(read_note(&*self.storage)?.is_some())
    }

    /// The seq after which erasures are on record that may not be carried out yet; `None` if all are.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub(crate) fn erasing_after(&self) -> Result<Option<Seq>, LogError> {
        read_note(&*self.storage)
    }

    /// Begins an erasure: takes SEAL and leaves the note. An earlier erasure that did not end is taken up again with it.
    ///
    /// # Errors
    /// [`LogError::Busy`] if another process seals or erases for longer than the wait, [`LogError::ReadOnly`],
    /// [`LogError::NoSpace`], [`LogError::Io`].
    pub fn begin_erasing(&self) -> Result<Erasing<'_>, LogError> {
        if self.is_read_only() {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        }
        let lock = self.wait_for_seal_lock()?;
        if let Some(after) = read_note(&*self.storage)? {
            return self.take_up(lock, after);
        }
        let after = self.refresh()?.seq;
        let erasing = Erasing { log: self, _lock: lock, after, is_fresh: true };
        match write_file(&*self.storage, ERASING, &note(after)) {
            Ok(()) => Ok(erasing),
            Err(error) => {
                // No room for the note, or none for its name.
                let _ = self.storage.remove(&format!("{ERASING}.tmp"));
                erasing.give_up();
                Err(LogError::io("write", self.storage.path(ERASING), error))
            }
        }
    }

    /// Takes up an unfinished erasure, if there is one and no other process works on it.
    ///
    /// # Errors
    /// As [`Log::begin_erasing`]; [`LogError::Busy`] only if another process writes for longer than the wait.
    pub fn resume_erasing(&self) -> Result<Option<Erasing<'_>>, LogError> {
        if self.is_read_only() || read_note(&*self.storage)?.is_none() {
            return Ok(None);
        }
        let Some(lock) = self.seal_lock()? else { return Ok(None) };
        // The owner may have ended the erasure before the lock was free.
        read_note(&*self.storage)?.map(|after| self.take_up(lock, after)).transpose()
    }

    fn take_up(&self, lock: SealLock, after: Seq) -> Result<Erasing<'_>, LogError> {
        // The process that died may have written its record, which counts for nothing yet. The next commit, of any process, would put it in
        // force when the note is gone.
        drop(self.exclusive()?);
        Ok(Erasing { log: self, _lock: lock, after, is_fresh: false })
    }
}

impl Erasing<'_> {
    /// Zeroes the bodies of these rows, whose erasure is recorded and durable, and all copies of them that the log keeps
    /// beside: ends of segments that were given up after a failed sync, torn bytes set aside, snapshots. Durable when it
    /// returns.
    ///
    /// # Errors
    /// [`LogError::Io`], [`LogError::NoSpace`], [`LogError::Poisoned`]; the rest is done when the erasure is taken up again.
    pub fn zero(&self, rows: &[BodyRow]) -> Result<ErasedFigures, LogError> {
        let log = self.log;
        let mut figures = ErasedFigures::default();
        let mut blocks: BTreeMap<u32, BTreeMap<u64, u32>> = BTreeMap::new();
        for row in rows {
            blocks.entry(row.place.segment).or_default().insert(row.place.offset, row.stored_bytes);
        }
        if let Some((last, _)) = blocks.last_key_value()
            && *last >= log.refresh()?.position.segment()
        {
            log.begin_segment()?;
        }
        log.write_checkpoint()?;
        // The note may come from a process that died before the note's name was durable.
        let storage = &log.storage;
        storage.sync_dir("").map_err(|error| LogError::io("sync", storage.path(""), error))?;
        for (number, blocks) in &blocks {
            self.zero_in(*number, blocks)?;
            figures.segments += 1;
            figures.blocks += blocks.len() as u64;
        }
        self.zero_leftovers()?;
        figures.files_removed = self.remove_copies()?;
        log.segments.forget();
        // Other handles close the file that a sealed segment replaced.
        log.generation_changed();
        Ok(figures)
    }

    /// Zeroes the bytes after the end of segments that were given up: commits that were never acknowledged, and may have the same
    /// texts as acknowledged ones.
    fn zero_leftovers(&self) -> Result<(), LogError> {
        let log = self.log;
        let active = log.refresh()?.position.segment();
        for number in log.segments.numbers()?.into_iter().filter(|number| *number < active) {
            let Some(next) = log.segments.header(number.saturating_add(1))?.filter(|next| next.abandoned)
            else {
                continue;
            };
            let Some(segment) = log.segments.get(number)?.filter(|segment| segment.sealed.is_none()) else {
                continue;
            };
            if next.previous_end.segment() != number {
                continue;
            }
            let fail = |action| move |error| LogError::io(action, log.segments.path(number), error);
            let length = segment.file.len().map_err(fail("inspect"))?;
            let start = next.previous_end.offset();
            if start < length {
                let file = log.storage.open(&segment_name(number), Access::Write).map_err(fail("open"))?;
                zero(&*file, start, length).map_err(fail("zero the end of"))?;
                sync(&*file).map_err(fail("sync"))?;
            }
        }
        Ok(())
    }

    fn zero_in(&self, number: u32, blocks: &BTreeMap<u64, u32>) -> Result<(), LogError> {
        let log = self.log;
        log.segments.forget_one(number);
        let Some(segment) = log.segments.get(number)? else { return Ok(()) };
        if let Some(sealed) = &segment.sealed {
            return log.erase_sealed(number, &segment, sealed, blocks);
        }
        let name = segment_name(number);
        let fail = |action| move |error| LogError::io(action, log.segments.path(number), error);
        let file = log.storage.open(&name, Access::Write).map_err(fail("open"))?;
        for (start, bytes) in blocks {
            let end = start.saturating_add(SALT_BYTES as u64).saturating_add(u64::from(*bytes));
            zero(&*file, *start, end).map_err(fail("zero a body in"))?;
        }
        sync(&*file).map_err(fail("sync"))?;
        // Only now: a program that copied the file before this has to copy it again. After a crash before it, the erasure is taken up again.
        if let Ok(header) = &segment.header {
            let generation = header.generation.saturating_add(1);
            let record = generation_record(number, generation);
            write_all(&*file, &record, generation_offset(generation), &mut 0)
                .map_err(fail("note the erasure in"))?;
            sync(&*file).map_err(fail("sync"))?;
        }
        drop(file);
        // A later reader finds the expected zeros.
        log.segments.forget_one(number);
        Ok(())
    }

    /// Removes files that nothing needs and that may hold copies: torn bytes set aside, snapshots. Files of other names are
    /// not the store's and stay as they are.
    fn remove_copies(&self) -> Result<u64, LogError> {
        let storage = &self.log.storage;
        let mut removed = 0;
        for directory in [QUARANTINE_DIR, SNAP_DIR] {
            let fail = |action| move |error| LogError::io(action, storage.path(directory), error);
            let names = match storage.list(directory) {
                Ok(names) => names,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
                {
                    continue;
                }
                Err(error) => return Err(fail("list")(error)),
            };
            for name in names.iter().filter(|name| is_copy_name(directory, name)) {
                let name = format!("{directory}/{name}");
                let fail = |action| LogError::of(action, &**storage, &name);
                // Zeros first: another program may have the file open, and a disk may keep the blocks of removed files.
                match storage.open(&name, Access::Write) {
                    Ok(file) => {
                        let length = file.len().map_err(fail("inspect"))?;
                        zero(&*file, 0, length).map_err(fail("zero"))?;
                        sync(&*file).map_err(fail("sync"))?;
                    }
                    // Not a file of the store's own, such as a symbolic link: the name goes.
                    Err(error)
                        if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {}
                    Err(error) => return Err(fail("open")(error)),
                }
                match storage.remove(&name) {
                    Ok(()) => removed += 1,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(fail("remove")(error)),
                }
            }
            storage.sync_dir(directory).map_err(fail("sync"))?;
        }
        storage.sync_dir(LOG_DIR).map_err(|error| LogError::io("sync", storage.path(LOG_DIR), error))?;
        Ok(removed)
    }

    /// Gives up an erasure that is not on record: its note is removed, unless an earlier erasure left the note.
    ///
    /// If the note cannot be removed it stays; the next opening finds nothing to do and removes it.
    pub fn give_up(self) {
        let storage = &self.log.storage;
        if self.is_fresh && storage.remove(ERASING).is_ok() {
            // A note that comes back after a power cut is removed by the next opening.
            let _ = storage.sync_dir("");
        }
    }

    /// Ends the erasure: the note goes, durably.
    ///
    /// # Errors
    /// [`LogError::Io`]; then the erasure will be taken up again and find everything zeroed.
    pub fn end(self) -> Result<(), LogError> {
        let storage = &self.log.storage;
        match storage.remove(ERASING) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(LogError::io("remove", storage.path(ERASING), error));
            }
            _ => {}
        }
        storage.sync_dir("").map_err(|error| LogError::io("sync", storage.path(""), error))
    }
}
