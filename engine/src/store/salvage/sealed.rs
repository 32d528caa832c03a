//! A salvage of an encrypted store: events and bodies that its keys open are sealed anew at their places in the new store.
//!
//! ```text
//! key at hand                         -> in plain in memory alone, sealed under the same key for the new store
//! stream shredded: file or record     -> noise: envelope and seq as they were, a payload of that length under a key that is thrown away
//! key file lost, damaged, of others   -> the events are lost, and the file is named
//! ```
//!
//! Records of shreddings name a stream by the seq of one of its events. So a noise event keeps its stream.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::codec::{EncodedEvent, EventRef, Frame, Sight};
use crate::error::Error;
use crate::event::BodyAddress;
use crate::ids::{Digest, StreamId};
use crate::log::{Log, LostKey, Shreds, TakenKeys};
use crate::verify::{ErasedBody, SHREDDED_ROW, SHREDDED_SUBJECT_ROW, shredded_streams};

use super::lost_body;

/// The shredded streams of an encrypted store, and their bodies. Empty for any other store.
pub(super) struct Sealed {
    /// The keys of the old store, which the new one has too.
    taken: TakenKeys,
    /// Streams that are on record as shredded, though their files of keys may not say so.
    recorded: BTreeSet<StreamId>,
    /// Streams of which an event did not open.
    locked: BTreeSet<StreamId>,
    /// Bodies of shredded streams that no record names.
    pub(super) gone: Vec<BodyAddress>,
}

impl Sealed {
    /// Gives the new store the keys of the old one. `records`: of erasures, in the old store.
    pub(super) fn take(source: &Log, target: &Log, records: &[ErasedBody]) -> Result<Self, Error> {
        let streams = shredded_streams(source, records, SHREDDED_ROW)?;
        let with_subjects = shredded_streams(source, records, SHREDDED_SUBJECT_ROW)?;
        let recorded = streams.union(&with_subjects).copied().collect();
        let taken = target.take_keys(source, &Shreds { streams, with_subjects })?;
        Ok(Self { taken, recorded, locked: BTreeSet::new(), gone: Vec::new() })
    }

    /// The runs of events of a frame that are copied.
    pub(super) fn legible(&mut self, frame: Frame) -> Vec<Frame> {
        let (legible, locked) = frame.legible(&self.recorded);
        self.locked.extend(locked);
        legible
    }

    /// The files of keys that could not be taken over.
    pub(super) fn lost_keys(&mut self, source: &Log) -> Result<Vec<LostKey>, Error> {
        let mut lost = std::mem::take(&mut self.taken.lost);
        for stream in self.locked.difference(&self.taken.shredded) {
            if !self.taken.told.contains(stream) {
                lost.push(source.key_fault(*stream)?);
            }
        }
        Ok(lost)
    }

    /// An event that can never be read again, and the number of the key that sealed it; `None` if it is not such an event.
    pub(super) fn noise(
        &mut self,
        event: &EventRef<'_>,
        erased: &FxHashSet<Digest>,
    ) -> Option<(u32, EncodedEvent)> {
        let form = event.sealed_form()?;
        if event.sight != Sight::Shredded && !self.taken.shredded.contains(&form.envelope.stream) {
            return None;
        }
        let mut bodies = Vec::with_capacity(event.row_count());
        for (row, place) in (0..).zip(event.rows()) {
            if !erased.contains(&place.digest) {
                self.gone.push(BodyAddress { seq: event.seq, row });
            }
            bodies.push(lost_body(&place));
        }
        // The sealed bytes are not copied, so that an old copy of the store's keys opens nothing here.
        let payload = vec![0; form.payload_bytes];
        Some((form.key, EncodedEvent { envelope: form.envelope, payload, bodies }))
    }
}
