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

use crate::codec::{EncodedEvent, EventRef, Sight};
use crate::error::Error;
use crate::event::BodyAddress;
use crate::ids::StreamId;
use crate::log::{Log, LostKey, Shreds};

use super::lost_body;
use super::recorded::Recorded;

/// The shredded streams of an encrypted store, and their bodies. Empty for any other store.
pub(super) struct Sealed {
    /// Streams that were shredded.
    shredded: BTreeSet<StreamId>,
    /// Bodies of shredded streams that no record names.
    pub(super) gone: Vec<BodyAddress>,
}

impl Sealed {
    /// Gives the new store the keys of the old one. `locked`: streams of which an event did not open. Also returns the files that could not be taken
    /// over, and those that were taken from a backup.
    pub(super) fn take(
        source: &Log,
        target: &Log,
        shreds: &Shreds,
        locked: &BTreeSet<StreamId>,
    ) -> Result<(Self, Vec<LostKey>, Vec<String>), Error> {
        let taken = target.take_keys(source, shreds)?;
        let mut lost = taken.lost;
        for stream in locked.difference(&taken.shredded).filter(|stream| !taken.told.contains(stream)) {
            lost.push(source.key_fault(*stream)?);
        }
        Ok((Self { shredded: taken.shredded, gone: Vec::new() }, lost, taken.from_copies))
    }

    /// An event that can never be read again, and the number of the key that sealed it; `None` if it is not such an event.
    pub(super) fn noise(&mut self, event: &EventRef<'_>, recorded: &Recorded) -> Option<(u32, EncodedEvent)> {
        let form = event.sealed_form()?;
        if event.sight != Sight::Shredded && !self.shredded.contains(&form.envelope.stream) {
            return None;
        }
        let mut bodies = Vec::with_capacity(event.row_count());
        for (row, place) in (0..).zip(event.rows()) {
            if !recorded.erased.contains(&place.digest) {
                self.gone.push(BodyAddress { seq: event.seq, row });
            }
            bodies.push(lost_body(&place));
        }
        // The sealed bytes are not copied, so that an old copy of the store's keys opens nothing here.
        let payload = vec![0; form.payload_bytes];
        Some((form.key, EncodedEvent { envelope: form.envelope, payload, bodies }))
    }
}
