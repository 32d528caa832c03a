//! A consistent copy of a log beside live writers.
//!
//! ```text
//! complete segments, whole -> durable head -> the last segment up to that head -> tail, checkpoint, secret -> store file
//! ```
//!
//! Writers are not held up and need not stop. The head is taken after the complete segments were copied: a body is
//! erased only in a complete segment and only after its erasure is on record, so every erasure that the copied segments
//! show is on record in the copy, too. If an erasure is under way during the copy, the copy may still hold some of its bodies, or
//! half of one. The copy then gets a note of its own, and the next opening ends the erasure there. The store file is copied last:
//! an interrupted copy is no store.
//!
//! Not here: whether the copy is sound. Run `verify` on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::erase::{ERASED, ERASING, note, read_note};
use super::error::LogError;
use super::files::{CHECKPOINT, LOG_DIR, SECRET, STORE_FILE, TAIL, segment_name};
use super::{Head, Log};
use crate::codec::{DurablePoint, PageCounts, SECRET_FILE_BYTES, STORE_FILE_BYTES_MAX, TailPage};
use crate::ids::{Seq, StoreId};
use crate::storage::{Access, Storage, bytes_between, read_file, read_up_to, sync, write_all, write_file};
use crate::vault::{KEY, KEY_FILE_BYTES, KeyUse};

const COPY_BYTES: usize = 1 << 20;

/// The files that a copy has beside its segments.
#[derive(Debug, Clone)]
pub struct CopyParts {
    /// The store.
    pub store: StoreId,
    /// The end of the copied log.
    pub head: Head,
    /// The bytes of the store file.
    pub store_file: Vec<u8>,
    /// The wrapped key of an encrypted store, if the copy gets it.
    pub key: Option<Vec<u8>>,
    /// The file of the store's secret, if the copy gets it: nothing can be appended to a copy without it.
    pub secret: Option<Vec<u8>>,
}

impl CopyParts {
    /// Writes the small files; the store file is the last.
    pub(crate) fn write(&self, target: &dyn Storage, erasing: Option<Seq>) -> Result<(), LogError> {
        let put = |name: &str, bytes: &[u8]| {
            let done = write_file(target, name, bytes);
            done.map_err(|error| LogError::io("write", target.path(name), error))
        };
        put(TAIL, &TailPage::encode(self.store, &self.head, PageCounts::default()))?;
        put(CHECKPOINT, &DurablePoint { store: self.store, written: self.head }.encode())?;
        if let Some(after) = erasing {
            put(ERASING, &note(after))?;
        }
        for (name, bytes) in [(KEY, &self.key), (SECRET, &self.secret)] {
            if let Some(bytes) = bytes {
                put(name, bytes)?;
            }
        }
        put(STORE_FILE, &self.store_file)
    }
}

/// Takes note, in a copy whose segments are older than its end, that erasures on record may have to be carried out.
pub(crate) fn note_erasures(target: &Arc<dyn Storage>) -> Result<(), LogError> {
    let log = Log::open_to_read(Arc::clone(target), KeyUse::Bytes)?;
    if log.erased_within(Seq::ZERO, log.head())? {
        let written = write_file(&**target, ERASING, &note(Seq::ZERO));
        written.map_err(|error| LogError::io("write", target.path(ERASING), error))?;
    }
    Ok(())
}

impl Log {
    /// Copies the log as it is at one durable head to an empty storage; returns that head. `progress` is told of
    /// every stretch copied, in bytes.
    ///
    /// Damage is copied as it lies. Cost: one read and one write of the log. Durable when it returns.
    ///
    /// # Errors
    /// [`LogError::Io`] and [`LogError::NoSpace`] of either side; files that were written before stay and are no store.
    pub fn copy_to(&self, target: &dyn Storage, mut progress: impl FnMut(u64)) -> Result<Head, LogError> {
        let fail = |action, path| move |error| LogError::io(action, path, error);
        for directory in ["", LOG_DIR] {
            target.create_dir(directory).map_err(fail("create", target.path(directory)))?;
        }
        let began_at = self.refresh()?.seq;
        let mut unfinished = read_note(&*self.storage)?;
        let mut copied = BTreeSet::new();
        let head = loop {
            let head = self.refresh()?;
            let active = head.position.segment();
            let numbers = self.segments.numbers()?;
            let complete: Vec<u32> =
                numbers.into_iter().filter(|number| *number < active && !copied.contains(number)).collect();
            if !complete.is_empty() {
                for number in complete {
                    self.copy_segment(target, number, u64::MAX, &mut progress)?;
                    copied.insert(number);
                }
                continue;
            }
            self.copy_segment(target, active, head.position.offset(), &mut progress)?;
            // If the segment was completed meanwhile, a body in it may have been erased since the head was taken.
            if self.refresh()?.position.segment() == active {
                break head;
            }
        };
        let sync_dir =
            |directory: &str| target.sync_dir(directory).map_err(fail("sync", target.path(directory)));
        sync_dir(LOG_DIR)?;
        unfinished = unfinished.or(read_note(&*self.storage)?);
        let is_unfinished = unfinished.is_some() || self.erased_within(began_at, head)?;
        let erasing = is_unfinished.then(|| unfinished.unwrap_or(began_at).min(began_at));
        let read = |name: &str, bytes_max| {
            read_file(&*self.storage, name, bytes_max).map_err(fail("read", self.storage.path(name)))
        };
        let key = read(KEY, KEY_FILE_BYTES)?.filter(|_| self.is_encrypted());
        // Without a secret the copy is as readable as the store.
        let secret = read(SECRET, SECRET_FILE_BYTES)?;
        let store_file = read(STORE_FILE, STORE_FILE_BYTES_MAX)?;
        let lost = || fail("read", self.storage.path(STORE_FILE))(std::io::ErrorKind::NotFound.into());
        let parts =
            CopyParts { store: self.store(), head, store_file: store_file.ok_or_else(lost)?, key, secret };
        parts.write(target, erasing)?;
        sync_dir("..")?;
        Ok(head)
    }

    /// Whether an erasure is recorded after `after`, up to `head`.
    fn erased_within(&self, after: Seq, head: Head) -> Result<bool, LogError> {
        for frame in self.frames_from(after.next(), head)? {
            let mut kinds = match &frame {
                // The kinds of sealed events are not known without the key.
                Ok(frame) if frame.is_closed() => return Ok(true),
                Ok(frame) => frame.events().filter(|event| event.seq > after),
                Err(LogError::Corrupt(_)) => continue,
                Err(error) => return Err(error.clone()),
            };
            if kinds.any(|event| event.envelope.kind == ERASED) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies the first `limit` bytes of a segment.
    fn copy_segment(
        &self,
        target: &dyn Storage,
        number: u32,
        limit: u64,
        progress: &mut impl FnMut(u64),
    ) -> Result<(), LogError> {
        let name = segment_name(number);
        let (from_path, to_path) = (self.storage.path(&name), target.path(&name));
        let from = self.storage.open(&name, Access::Read);
        let from = from.map_err(|error| LogError::io("open", from_path.clone(), error))?;
        let fail = |action| {
            let to_path = to_path.clone();
            move |error| LogError::io(action, to_path, error)
        };
        let to = target.open(&name, Access::Replace).map_err(fail("create"))?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut offset = 0_u64;
        while offset < limit {
            let data = from.data_from(offset);
            let data = data.map_err(|error| LogError::io("inspect", from_path.clone(), error))?;
            let Some(data) = data else {
                // A hole at the end: as long, and as empty.
                let length = from.len().map_err(|error| LogError::io("inspect", from_path.clone(), error))?;
                to.set_len(length.min(limit)).map_err(fail("write"))?;
                break;
            };
            offset = data.min(limit);
            let want = bytes_between(offset, limit).min(COPY_BYTES);
            let Some(window) = buffer.get_mut(..want) else { break };
            let count = read_up_to(&*from, window, offset)
                .map_err(|error| LogError::io("read", from_path.clone(), error))?;
            let bytes = window.get(..count).unwrap_or(&[]);
            if bytes.is_empty() {
                break;
            }
            write_all(&*to, bytes, offset, &mut 0).map_err(fail("write"))?;
            offset = offset.saturating_add(count as u64);
            progress(count as u64);
        }
        sync(&*to).map_err(fail("sync"))
    }
}
