//! Frames by seq or by position, from the frames that are kept, else from the log; and events decoded from their frames alone.

use crate::codec::{EventRef, Frame, payload};
use crate::error::Error;
use crate::event::Recorded;
use crate::ids::{Position, Seq};
use crate::log::Looks;

use super::StoreInner;

impl StoreInner {
    /// The frame that holds `seq`.
    pub(super) fn frame_of(&self, seq: Seq) -> Result<Option<Frame>, Error> {
        let held = self.cache().holding(seq);
        if held.is_some() {
            return Ok(held);
        }
        let Some(frame) = self.log.locate(seq)? else { return Ok(None) };
        self.cache().keep(&frame);
        Ok(Some(frame))
    }

    /// The frame at a position, from the cache or the log.
    pub(super) fn frame_at(&self, position: Position) -> Result<Frame, Error> {
        let held = self.cache().at(position);
        if let Some(frame) = held {
            return Ok(frame);
        }
        let mut looks = Looks::WITHOUT_TEXTS;
        let frame = looks.frame_at(&self.log, position)?;
        self.cache().keep(&frame);
        Ok(frame)
    }

    /// As [`StoreInner::frame_at`]; of a damaged frame the damage is noted, and there is none.
    pub(super) fn sound_frame_at(&self, position: Position) -> Result<Option<Frame>, Error> {
        match self.frame_at(position) {
            Err(Error::Corrupt { detail, .. }) => {
                self.note_damage(detail);
                Ok(None)
            }
            frame => frame.map(Some),
        }
    }

    /// As [`StoreInner::frame_at`], for a caller that goes from frame to frame.
    pub(super) fn frame_by<'a>(&'a self, looks: &mut Looks<'a>, position: Position) -> Result<Frame, Error> {
        let (frame, is_held) = self.frame_once(looks, position)?;
        if !is_held {
            self.cache().keep(&frame);
        }
        Ok(frame)
    }

    /// As [`StoreInner::frame_by`], for a caller that keeps the frames: a frame that has to be read is not put into the cache, and comes
    /// with the bodies that were read with it. Returns also whether the cache held the frame.
    pub(super) fn frame_once<'a>(
        &'a self,
        looks: &mut Looks<'a>,
        position: Position,
    ) -> Result<(Frame, bool), Error> {
        let held = self.cache().at(position);
        Ok(match held {
            Some(frame) => (frame, true),
            None => (looks.frame_at(&self.log, position)?, false),
        })
    }
}

/// Decodes one event of a frame from its payload alone. Free texts, which stand in bodies, are left out, and labels stay
/// sealed. For callers that need neither.
pub(super) fn bare(frame: &Frame, event: &EventRef<'_>) -> Result<Recorded, Error> {
    payload::recorded(frame, event).map_err(|error| unreadable(event.seq, &error))
}

/// An event whose payload is malformed, in words.
pub(super) fn unreadable(seq: Seq, error: &payload::PayloadError) -> Error {
    Error::damaged_event(seq, format!("event {seq} cannot be read: {error}"))
}

impl StoreInner {
    /// Notes damage for a caller that goes on without the damaged part: an answer that leaves events out has to say so.
    pub(super) fn noted<T>(&self, read: Result<T, Error>) -> Result<T, Error> {
        if let Err(Error::Corrupt { detail, .. }) = &read {
            self.note_damage(detail.clone());
        }
        read
    }
}
