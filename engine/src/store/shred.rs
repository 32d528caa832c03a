//! Making a stream unreadable for good, by its key.
//!
//! ```text
//! note "erasing" -> Erased recorded: all bodies of the streams, their keys, their subject's -> keys destroyed -> bodies zeroed -> note away
//! ```
//!
//! Payloads and bodies lie sealed wherever they were copied to: in a backup, in sealed segments, in free blocks of the disk. With the key
//! gone all of them are noise. Links, digests and proofs are of the sealed bytes, and hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::codec::BodyRow;
use crate::error::Error;
use crate::event::BodyAddress;
use crate::ids::{Seq, StreamId};
use crate::locks::steady;
use crate::log::{ErasedFigures, LogError};
use crate::storage::{FileStorage, KeyRing};
use crate::verify::{SHREDDED_ROW, SHREDDED_SUBJECT_ROW, recorded_erasures};

use super::erase::erasure_drafts;
use super::{Inner, Store};

/// Most rounds of searching events that were recorded meanwhile.
const ROUND_COUNT_MAX: usize = 16;

/// The effect of shredding a stream.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct ShredReport {
    /// The stream.
    pub stream: StreamId,
    /// The event that records it.
    pub recorded: Seq,
    /// Events of the stream, whose payloads cannot be read any more.
    pub events: u64,
    /// Figures of the change on the disk.
    #[serde(flatten)]
    pub figures: ErasedFigures,
}

/// The effect of shredding a subject.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct SubjectShredReport {
    /// The first event that records it; `None` if there was nothing about the subject.
    pub recorded: Option<Seq>,
    /// The streams, rising.
    pub streams: Vec<ShreddedStream>,
    /// Figures of the change on the disk.
    #[serde(flatten)]
    pub figures: ErasedFigures,
}

/// A stream that was shredded with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct ShreddedStream {
    /// The stream.
    pub stream: StreamId,
    /// Its events, whose payloads cannot be read any more.
    pub events: u64,
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
    /// Wraps the keys of all streams anew with another key ring; data sealed with these keys stays as it is. Returns how many keys.
    /// Interrupted, it is called again and goes on: each key is wrapped by the old ring or by the new one, never by none.
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

    /// Gives a session, else all of them, another data key: later events are sealed under it, by whichever process, and earlier events stay
    /// readable under their own keys. Returns how many sessions got one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such stream; [`Error::Locked`] if the store is not encrypted, or a key is not at hand or was the 256th
    /// of its stream; [`Error::Busy`], [`Error::ReadOnly`], [`Error::Io`], [`Error::NoSpace`]. Sessions that got one keep it.
    pub fn rotate_data_keys(&self, stream: Option<StreamId>) -> Result<u64, Error> {
        let inner = &self.inner;
        inner.check_encrypted()?;
        inner.check_key_at_hand()?;
        let Some(stream) = stream else { return Ok(inner.log.add_keys(None)?) };
        if stream == StreamId::STORE || inner.stream_place(stream)?.is_none() {
            return Err(missing(stream));
        }
        if self.is_shredded(stream)? {
            return Err(LogError::Shredded { stream }.into());
        }
        Ok(inner.log.add_keys(Some(&[stream]))?)
    }

    /// Makes everything that a stream holds unreadable for good: its keys are destroyed, its bodies become zeros, and that is on record.
    /// Nothing can be recorded in the stream any more.
    ///
    /// These stay: that there were events, their kinds, times and lengths, and the stream's id. Copies of the wrapped keys, in a backup
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
        if stream == StreamId::STORE || inner.stream_place(stream)?.is_none() {
            return Err(missing(stream));
        }
        let mut found = Found::default();
        let figures = inner.shred_recorded((by, reason), &mut found, |inner, said, found| {
            inner.record_shredding(&BTreeSet::from([stream]), &BTreeSet::new(), said, found)
        })?;
        let recorded = found.recorded.ok_or_else(|| missing(stream))?;
        let events = found.events.get(&stream).copied().unwrap_or_default();
        Ok(ShredReport { stream, recorded, events, figures })
    }

    /// Shreds all sessions about a subject and the sessions that came from them, as one erasure: the subject's key is destroyed, with it the keys
    /// of them all, and its name. Nothing can be recorded about the subject any more.
    ///
    /// # Errors
    /// As [`Store::shred`]; [`Error::NotFound`] if there is no such subject, [`Error::Erased`] if it was shredded before.
    pub fn shred_subject(&self, subject: &str, by: &str, reason: &str) -> Result<SubjectShredReport, Error> {
        let inner = &self.inner;
        inner.check_writable()?;
        super::erase::check_reason(by, reason)?;
        let id = inner.known_subject(subject)?;
        let mut gone = BTreeSet::new();
        for stream in self.about(id)?.streams {
            if self.is_shredded(stream)? {
                gone.insert(stream);
            }
        }
        let mut found = Found::default();
        let figures = inner.shred_recorded((by, reason), &mut found, |inner, said, found| {
            for _ in 0..ROUND_COUNT_MAX {
                let mut about = self.about(id)?;
                about.streams.retain(|stream| !gone.contains(stream));
                let is_untold = found.recorded.is_none() && !about.named.is_empty();
                if !is_untold && about.streams.iter().all(|stream| found.events.contains_key(stream)) {
                    break;
                }
                inner.record_shredding(&about.streams, &about.named, said, found)?;
            }
            // No session about it was ever begun: there is nothing to put on record.
            if found.recorded.is_none() { inner.destroy_subject(id) } else { Ok(()) }
        })?;
        let streams = found.events.into_iter().map(|(stream, events)| ShreddedStream { stream, events });
        Ok(SubjectShredReport { recorded: found.recorded, streams: streams.collect(), figures })
    }
}

fn missing(stream: StreamId) -> Error {
    Error::NotFound { what: "stream", name: stream.to_string(), nearest: None }
}

/// The findings and the record of a shredding.
#[derive(Default)]
pub(super) struct Found {
    recorded: Option<Seq>,
    rows: Vec<BodyRow>,
    /// How many events each stream has.
    events: BTreeMap<StreamId, u64>,
    /// The last event of each stream that is on record.
    last: BTreeMap<StreamId, Seq>,
    /// The streams that were looked for, and up to where.
    streams: BTreeSet<StreamId>,
    until: Seq,
}

impl Found {
    /// Nothing yet, of a shredding that is on record.
    pub(super) fn of_record(seq: Seq) -> Self {
        Self { recorded: Some(seq), ..Self::default() }
    }
}

impl Inner {
    /// Carries out a shredding from the note to its end. `record` puts it on record.
    fn shred_recorded(
        &self,
        (by, reason): (&str, &str),
        found: &mut Found,
        record: impl Fn(&Self, (&str, &str), &mut Found) -> Result<(), Error>,
    ) -> Result<ErasedFigures, Error> {
        let (by, reason) = (self.cleaned(by), self.cleaned(reason));
        let erasing = self.log.begin_erasing()?;
        if let Err(error) = record(self, (&by, &reason), found) {
            self.give_up(erasing);
            return Err(error);
        }
        self.destroy_keys(erasing.after)?;
        // Sessions that began after the search, and before their subject's key was gone.
        record(self, (&by, &reason), found)?;
        self.destroy_keys(erasing.after)?;
        found.rows.extend(recorded_erasures(&self.log, erasing.after)?);
        let figures = erasing.zero(&found.rows)?;
        erasing.end()?;
        self.forget_plain();
        Ok(figures)
    }

    /// Records that streams are shredded, with all bodies that they have, until nothing new is found. `named`: streams whose subject goes
    /// too.
    pub(super) fn record_shredding(
        &self,
        streams: &BTreeSet<StreamId>,
        named: &BTreeSet<StreamId>,
        (by, reason): (&str, &str),
        found: &mut Found,
    ) -> Result<(), Error> {
        let mut is_subject_told = found.recorded.is_some();
        if found.streams != *streams {
            found.streams.clone_from(streams);
            found.until = Seq::ZERO;
        }
        for _ in 0..ROUND_COUNT_MAX {
            let head = self.log.refresh()?;
            let mut addresses = Vec::new();
            for frame in self.log.frames_from(found.until.next(), head)? {
                let frame = match frame {
                    Ok(frame) => frame,
                    Err(LogError::Corrupt(_)) => continue,
                    Err(error) => return Err(error.into()),
                };
                for event in frame.events().filter(|event| event.seq > found.until) {
                    let (stream, seq) = (event.envelope.stream, event.seq);
                    if !is_subject_told && named.contains(&stream) {
                        addresses.push(BodyAddress { seq, row: SHREDDED_SUBJECT_ROW });
                        is_subject_told = true;
                    }
                    let is_told = found.last.get(&stream).is_some_and(|last| *last >= seq);
                    if is_told || !streams.contains(&stream) {
                        continue;
                    }
                    found.last.insert(stream, seq);
                    let count = found.events.entry(stream).or_default();
                    *count += 1;
                    if *count == 1 {
                        addresses.push(BodyAddress { seq, row: SHREDDED_ROW });
                    }
                    for (row, place) in (0_u32..).zip(event.rows()) {
                        addresses.push(BodyAddress { seq, row });
                        found.rows.push(place);
                    }
                }
            }
            found.until = head.seq;
            if addresses.is_empty() {
                break;
            }
            let appended = self.append_drafts(&erasure_drafts(&addresses, Vec::new(), by, reason))?;
            found.recorded = found.recorded.or(Some(appended.first_seq));
        }
        Ok(())
    }

    /// Forgets the plain contents that this handle holds.
    fn forget_plain(&self) {
        self.forget_contents();
        self.cache().forget_all();
        steady(&self.folds).clear();
        steady(&self.writers).clear();
    }
}
