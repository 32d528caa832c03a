//! Messages and calls that two stores were told in different words.
//!
//! A fact has one id in all stores, whatever its words: a host may tell the beginning of a text first, and all of it later. If one of
//! the stores was told it again, both show the newest words after a merge. If neither was, each keeps its own: a merge does not change
//! a session's texts. Then the report names the fact, since its other words are in the other store alone.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::event::Payload;
use crate::ids::{FactId, ItemId, Seq, StreamId};
use crate::log::LogError;
use crate::travel::{Parcel, Row};

use super::super::redact;
use super::NAMED_MAX;
use super::take::Taker;

/// Facts of the other store that were found so far, each with its item here.
pub(super) type Otherwise = BTreeMap<(StreamId, FactId), (StreamId, ItemId)>;

impl Taker<'_> {
    /// Compares an event of the other store with the one here that has its id.
    ///
    /// Cost: one look at the event here and its texts.
    pub(super) fn compare(&mut self, home: StreamId, seq: Seq, parcel: &Parcel) -> Result<(), Error> {
        let is_compared =
            matches!(parcel.event, Payload::MessageRecorded(_) | Payload::ToolCallStarted(_)) && parcel.told;
        let is_retold =
            || self.here.streams.get(&home).is_some_and(|lineage| lineage.retold.contains(&parcel.id));
        if !is_compared || parcel.bodies.is_empty() || is_retold() || self.says_the_same(seq, parcel)? {
            return Ok(());
        }
        // This store may have taken secrets out.
        if let Some(redactor) = self.inner.redactor.as_deref() {
            let mut redacted = parcel.clone();
            if redact::parcel(redactor, &mut redacted).is_err() || self.says_the_same(seq, &redacted)? {
                return Ok(());
            }
        }
        self.otherwise.insert((parcel.stream, parcel.id), (home, ItemId::first(seq)));
        Ok(())
    }

    /// The other store was told a fact again: its newest words arrive as a revision.
    pub(super) fn told_again_there(&mut self, parcel: &Parcel) {
        let Payload::ItemRevised(revised) = &parcel.event else { return };
        if let Some(fact) = parcel.named(revised.item.seq) {
            self.otherwise.remove(&(fact.stream, fact.id));
        }
    }

    /// Puts the facts that are left into the report.
    pub(super) fn tell_otherwise(&mut self) {
        for (home, item) in self.otherwise.values() {
            self.report.told_otherwise_count += 1;
            if self.report.told_otherwise.len() < NAMED_MAX {
                let lineage = self.here.streams.get(home);
                // A stream whose beginning is damaged has no name.
                let session = lineage.map(|lineage| lineage.name.clone()).unwrap_or_default();
                self.report.told_otherwise.push(super::ToldOtherwise { item: *item, session });
            }
        }
    }

    /// Whether the texts of a parcel are those of an event here. A text that is not there on one of the sides says nothing.
    fn says_the_same(&self, seq: Seq, parcel: &Parcel) -> Result<bool, Error> {
        let Some(frame) = self.inner.frame_of(seq)? else { return Ok(true) };
        let Some(event) = frame.event(seq) else { return Ok(true) };
        for (number, row) in (0_u32..).zip(&parcel.bodies) {
            let (Row::Bytes(there), Some(own)) = (row, event.row(number as usize)) else { continue };
            match self.inner.log.body(&own) {
                Ok(here) if here[..] != there[..] => return Ok(false),
                Ok(_)
                | Err(
                    LogError::Corrupt(_)
                    | LogError::Erased { .. }
                    | LogError::Shredded { .. }
                    | LogError::SubjectShredded,
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}
