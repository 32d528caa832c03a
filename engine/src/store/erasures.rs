//! The author and the reason of each erasure: asked for when a read comes upon zeros.
//!
//! The store's own stream records all erasures. It is read when first asked, and on from there; a store without erasures pays nothing.

use std::sync::{Arc, MutexGuard};

use crate::codec::BodyPlace;
use crate::error::Error;
use crate::event::{DAMAGED_TEXT, ERASED_TEXT, Payload};
use crate::ids::{Seq, StreamId};
use crate::index::FramePlace;
use crate::locks::renewed;
use crate::log::LogError;

use super::erasure_list::{Erasure, Erasures};
use super::fetch::bare;
use super::{Store, StoreInner};
use crate::secret::Withheld;
use crate::verify::recorded_erasures;

/// Frames with events past a seq, and the seq up to which these are all.
type PlacesAfter<'a> = dyn Fn(Seq) -> Result<(Vec<FramePlace>, Seq), Error> + 'a;

/// Number of the kind that records erasures.
pub(super) const ERASED: u16 = 112;

impl Store {
    /// The erasure that the event `seq` records; `None` if it is of another kind or there is none.
    ///
    /// # Errors
    /// If the event cannot be read.
    pub fn erasure(&self, seq: Seq) -> Result<Option<Erasure>, Error> {
        self.inner.erasure(seq)
    }
}

impl StoreInner {
    /// Reads the reason without asking whether the reason was erased, too: that question leads here, and may lead to the same event.
    pub(super) fn erasure(&self, seq: Seq) -> Result<Option<Erasure>, Error> {
        let Some(frame) = self.frame_of(seq)? else { return Ok(None) };
        let Some(event) = frame.event(seq).filter(|event| event.envelope.kind == ERASED) else {
            return Ok(None);
        };
        let recorded = bare(&frame, &event)?.event;
        let Payload::Erased(mut erased) = recorded.payload else { return Ok(None) };
        let is_loss = erased.is_loss(recorded.stamp.actor);
        if !erased.reason.fill_plain() {
            let body = erased.reason.body();
            let mut bytes = Vec::new();
            for row in body.first..body.first.saturating_add(body.chunks) {
                let read = event.row(row as usize).map(|row| self.log.body(&row));
                match read {
                    Some(Ok(part)) => bytes.extend(part),
                    Some(Err(LogError::Erased { .. })) => bytes.extend(ERASED_TEXT.as_bytes()),
                    Some(Err(LogError::Corrupt(_))) | None => bytes.extend(DAMAGED_TEXT.as_bytes()),
                    Some(Err(error)) => return Err(error.into()),
                }
            }
            erased.reason.fill(String::from_utf8_lossy(&bytes).into_owned());
        }
        Ok(Some(Erasure { seq, by: erased.by, reason: erased.reason.to_string(), is_loss }))
    }

    /// The error of a read of a row of zeros: the row was erased, with the author; zeros without a record of an erasure are damage.
    pub(super) fn erased(&self, seq: Seq, row: u32, place: BodyPlace) -> Error {
        let (detail, lost) = match self.erasure_of(seq, row) {
            Ok(Some(erasure)) => {
                let Erasure { seq: at, by, reason, is_loss } = &*erasure;
                let detail = if *is_loss {
                    format!("the content of {seq} was lost, as {at} says: {reason}")
                } else {
                    format!("the content of {seq} was erased in {at} by {by}: {reason}")
                };
                (detail, *is_loss)
            }
            Ok(None) => return self.log.zeroed(seq, place).into(),
            Err(_) => {
                (format!("the content of {seq} was erased, and the record of that cannot be read"), false)
            }
        };
        Error::Erased { detail, lost }
    }

    /// The erasure that removed a row.
    pub(super) fn erasure_of(&self, seq: Seq, row: u32) -> Result<Option<Arc<Erasure>>, Error> {
        let at = {
            let all = self.erasures(&|after| self.frames_of(&[StreamId::STORE], after))?;
            let Some(at) = all.by_row.get(&(seq, row)).copied() else { return Ok(None) };
            if let Some(known) = all.told.get(&at) {
                return Ok(Some(Arc::clone(known)));
            }
            at
        };
        let Some(erasure) = self.erasure(at)?.map(Arc::new) else { return Ok(None) };
        let mut all = renewed(&self.erasures, |known| *known = self.no_erasures());
        all.told.insert(at, Arc::clone(&erasure));
        Ok(Some(erasure))
    }

    /// The contents that were erased and must not be stored again, and the seq up to which these are all. Another process
    /// may have erased more just now: the seq is a condition of the commit that rests on these contents.
    pub(super) fn withheld(&self) -> Result<(Withheld, Seq), Error> {
        let known = self.erasures(&|after| self.known_frames_of(&[StreamId::STORE], after))?;
        Ok((known.withheld.clone(), known.watermark))
    }

    /// The newest event that records an erasure, as far as is known without going through the log; [`Seq::ZERO`] if there is none. Data
    /// made from the log before it, in memory or in a file, may hold an erased text: it is thrown away.
    pub(super) fn newest_erasure(&self) -> Result<Seq, Error> {
        Ok(self.erasures(&|after| self.known_frames_of(&[StreamId::STORE], after))?.newest)
    }

    /// Has bodies taken as erased whose erasure is on record and not carried out: its process was killed, or is still erasing.
    pub(super) fn withhold_pending(&self) -> Result<(), Error> {
        if let Some(after) = self.log.erasing_after()? {
            self.log.withhold(recorded_erasures(&self.log, after)?.into_iter());
        }
        Ok(())
    }

    fn no_erasures(&self) -> Erasures {
        Erasures::new(self.log.secret().clone())
    }

    /// All erasures in the frames that `places` gives after a seq. Cost: a read of the frames of the store's own stream
    /// that were not read yet.
    fn erasures(&self, places: &PlacesAfter<'_>) -> Result<MutexGuard<'_, Erasures>, Error> {
        let mut known = renewed(&self.erasures, |known| *known = self.no_erasures());
        let (after, mut newest) = (known.watermark, known.newest);
        let (places, watermark) = places(after)?;
        for place in places {
            if let Some(frame) = self.sound_frame_at(place.position)? {
                for event in frame.events().filter(|event| event.seq > after && event.envelope.kind == ERASED)
                {
                    newest = newest.max(event.seq);
                    let recorded = match bare(&frame, &event) {
                        Ok(recorded) => recorded,
                        // The next caller reads it again.
                        Err(error @ Error::Io { .. }) => return Err(error),
                        Err(error) => {
                            self.note_damage(format!("an erasure in {}: {error}", event.seq));
                            continue;
                        }
                    };
                    let Payload::Erased(erased) = recorded.event.payload else { continue };
                    known.withheld.extend(&erased.contents, erased.bodies.iter().map(|body| body.seq));
                    for body in erased.bodies {
                        // A row is erased once: its first record is the one to tell of.
                        known.by_row.entry((body.seq, body.row)).or_insert(event.seq);
                    }
                }
            }
        }
        if newest > known.newest {
            self.withhold_pending()?;
            known.newest = newest;
        }
        known.watermark = after.max(watermark);
        Ok(known)
    }
}
