//! Making a stream unreadable for good, by its key.
//!
//! ```text
//! note "erasing" -> Erased recorded: all bodies of the stream, and its key -> key destroyed -> bodies zeroed -> note away
//! ```
//!
//! Payloads and bodies lie sealed wherever they were copied to: in a backup, in sealed segments, in free blocks of the disk. With the key
//! gone all of them are noise. Links, digests and proofs are of the sealed bytes, and hold.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::codec::BodyRow;
use crate::error::Error;
use crate::event::BodyAddress;
use crate::ids::{Seq, StreamId};
use crate::log::{ErasedFigures, LogError};
use crate::storage::{FileStorage, KeyRing};
use crate::verify::{SHREDDED_ROW, recorded_erasures, recorded_shreds};

use super::{Inner, Store};

/// How often what was recorded meanwhile is looked through.
const ROUND_COUNT_MAX: usize = 16;

/// What shredding did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct ShredReport {
    /// The stream.
    pub stream: StreamId,
    /// The event that records it.
    pub recorded: Seq,
    /// Events of the stream, whose payloads cannot be read any more.
    pub events: u64,
    /// What changed on the disk.
    #[serde(flatten)]
    pub figures: ErasedFigures,
}

/// The id of the key ring that opens the store in a folder, without opening it. `None` if there is no store, or it is not encrypted. Cost: one
/// small file is read.
pub fn ring_id(folder: &Path) -> Option<[u8; 16]> {
    crate::log::ring_id(&FileStorage::new(folder))
}

/// The ids of all key rings that wrap keys of the store in a folder: the ring that opens the store first, then others while
/// [`Store::rotate_keys`] was interrupted. Nothing if there is no store, or it is not encrypted. Cost: a small file for each stream is read.
///
/// # Errors
/// If the folder cannot be read.
pub fn ring_ids(folder: &Path) -> std::io::Result<Vec<[u8; 16]>> {
    crate::log::ring_ids(&FileStorage::new(folder))
}

impl Store {
    /// Whether its streams are sealed.
    pub fn is_encrypted(&self) -> bool {
        self.inner.log.is_encrypted()
    }

    /// Whether a stream was shredded: nothing of it can be read, nothing can be recorded in it. Cost: one small file is read, in an encrypted
    /// store.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_shredded(&self, stream: StreamId) -> Result<bool, Error> {
        Ok(self.inner.log.is_shredded(stream)?)
    }

    /// Wraps the keys of all streams anew with another key ring; what is sealed with them stays as it is. Returns how many. Interrupted, it is
    /// called again and goes on: each key is wrapped by the old ring or by the new one, never by none.
    ///
    /// # Errors
    /// [`Error::Locked`] if neither ring opens a key, or the store is not encrypted; [`Error::ReadOnly`], [`Error::Io`], [`Error::NoSpace`].
    pub fn rotate_keys(&self, to: &Arc<dyn KeyRing>) -> Result<u64, Error> {
        self.inner.check_encrypted()?;
        Ok(self.inner.log.rewrap_keys(to)?)
    }

    /// Copies the wrapped keys into a backup of this store, which has none by itself. Returns how many.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::NoSpace`] of either side.
    pub fn backup_keys(&self, folder: &Path) -> Result<u64, Error> {
        Ok(self.inner.log.copy_keys_to(&FileStorage::new(folder))?)
    }

    /// Makes everything that a stream holds unreadable for good: its key is destroyed, its bodies become zeros, and that is on record.
    /// Nothing can be recorded in the stream any more.
    ///
    /// What stays: that there were events, of which kinds, when, how long, and the stream's id. Copies of the wrapped key, in a backup
    /// that was asked to have keys, are not reached.
    ///
    /// # Errors
    /// [`Error::Locked`] if the store is not encrypted or its key is not at hand, [`Error::NotFound`] if there is no such stream, and as
    /// [`Store::erase`].
    pub fn shred(&self, stream: StreamId, by: &str, reason: &str) -> Result<ShredReport, Error> {
        let inner = &self.inner;
        inner.check_writable()?;
        inner.check_encrypted()?;
        super::erase::check_reason(by, reason)?;
        let (by, reason) = (inner.cleaned(by), inner.cleaned(reason));
        let missing = || Error::NotFound { what: "stream", name: stream.to_string(), nearest: None };
        if stream == StreamId::STORE || inner.frames_of(&[stream], Seq::ZERO)?.0.is_empty() {
            return Err(missing());
        }
        let erasing = inner.log.begin_erasing()?;
        let mut found = Found { recorded: None, rows: Vec::new(), events: 0 };
        if let Err(error) = inner.record_shredding(stream, (&by, &reason), &mut found) {
            // After a failed sync it is not known whether it is on record: then the note stays, and the next opening looks.
            if found.recorded.is_none() && !matches!(error, Error::Poisoned) {
                erasing.give_up();
            }
            return Err(error);
        }
        inner.destroy_keys(erasing.after)?;
        found.rows.extend(recorded_erasures(&inner.log, erasing.after)?);
        let figures = erasing.zero(&found.rows)?;
        erasing.end()?;
        inner.forget_plain();
        let Found { recorded, events, .. } = found;
        Ok(ShredReport { stream, recorded: recorded.ok_or_else(missing)?, events, figures })
    }
}

struct Found {
    recorded: Option<Seq>,
    rows: Vec<BodyRow>,
    events: u64,
}

impl Inner {
    fn check_encrypted(&self) -> Result<(), Error> {
        if self.log.is_encrypted() {
            return Ok(());
        }
        let detail = format!("{} is not encrypted: its streams have no keys", self.root.display());
        Err(Error::Locked { detail })
    }

    /// Records that the stream is shredded, with all bodies that it has, until nothing new is found.
    fn record_shredding(
        &self,
        stream: StreamId,
        (by, reason): (&str, &str),
        found: &mut Found,
    ) -> Result<(), Error> {
        let mut after = Seq::ZERO;
        for _ in 0..ROUND_COUNT_MAX {
            let head = self.log.refresh()?;
            let mut addresses = Vec::new();
            for frame in self.log.frames_from(after.next(), head)? {
                let frame = match frame {
                    Ok(frame) => frame,
                    Err(LogError::Corrupt(_)) => continue,
                    Err(error) => return Err(error.into()),
                };
                let own = |seq: Seq, of: StreamId| seq > after && of == stream;
                for event in frame.events().filter(|event| own(event.seq, event.envelope.stream)) {
                    if found.events == 0 {
                        addresses.push(BodyAddress { seq: event.seq, row: SHREDDED_ROW });
                    }
                    found.events += 1;
                    for (row, place) in (0_u32..).zip(event.rows()) {
                        addresses.push(BodyAddress { seq: event.seq, row });
                        found.rows.push(place);
                    }
                }
            }
            if addresses.is_empty() {
                break;
            }
            let seq = self.record_addresses(&addresses, Vec::new(), by, reason)?;
            found.recorded = found.recorded.or(Some(seq));
            after = head.seq;
        }
        Ok(())
    }

    /// Destroys the keys of all streams whose shredding is recorded after `after`.
    pub(super) fn destroy_keys(&self, after: Seq) -> Result<(), Error> {
        if self.log.is_encrypted() {
            for stream in recorded_shreds(&self.log, after)? {
                self.log.shred_key(stream)?;
            }
        }
        Ok(())
    }

    /// Forgets what this handle holds in plain.
    fn forget_plain(&self) {
        self.forget_contents();
        *self.cache() = super::frames::FrameCache::default();
        self.folds.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
