//! Frames by seq or by position: from the frames that are kept, else from the log.

use crate::codec::Frame;
use crate::error::Error;
use crate::ids::{Position, Seq, StreamId};
use crate::log::Looks;

use super::Inner;

/// A frame, or parts of one.
pub(super) enum Parts {
    One(Option<Frame>),
    Some(std::vec::IntoIter<Frame>),
}

impl Iterator for Parts {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        match self {
            Self::One(frame) => frame.take(),
            Self::Some(parts) => parts.next(),
        }
    }
}

impl Inner {
    /// The frame that holds `seq`; of a large frame perhaps only a part.
    pub(super) fn frame_of(&self, seq: Seq) -> Result<Option<Frame>, Error> {
        self.frame_told(seq, || self.known_place(seq))
    }

    /// As [`Inner::frame_of`]. `place` tells where the frame begins; it is called if no cache holds the frame.
    pub(super) fn frame_told(
        &self,
        seq: Seq,
        place: impl FnOnce() -> Option<Position>,
    ) -> Result<Option<Frame>, Error> {
        let held = self.cache().holding(seq);
        if held.is_some() {
            return Ok(held);
        }
        if let Some(part) = self.log.part_holding(seq)? {
            self.cache().keep_part(&part);
            return Ok(Some(part));
        }
        // The index only says where to look. A frame that is damaged, or another one, is the log's to report.
        let told = place().and_then(|position| self.log.part_at(position, seq).ok().flatten());
        let Some(frame) = told.map_or_else(|| self.log.locate(seq), |frame| Ok(Some(frame)))? else {
            return Ok(None);
        };
        if frame.is_whole() {
            self.cache().keep(&frame);
        } else {
            self.cache().keep_part(&frame);
        }
        Ok(Some(frame))
    }

    /// The frame at a position, from the cache or the log.
    pub(super) fn frame_at(&self, position: Position) -> Result<Frame, Error> {
        let held = self.cache().at(position);
        if let Some(frame) = held {
            return Ok(frame);
        }
        let frame = self.log.frame_at(position)?;
        self.cache().keep(&frame);
        Ok(frame)
    }

    /// The frame at a position, or the part of a large one in which the first event of a stream is.
    pub(super) fn first_part_of(&self, position: Position, stream: StreamId) -> Result<Frame, Error> {
        let held = self.cache().at(position);
        if let Some(frame) = held {
            return Ok(frame);
        }
        let frame = self.log.first_part_of(position, stream)?;
        if frame.is_whole() {
            self.cache().keep(&frame);
        }
        Ok(frame)
    }

    /// The events of `streams` past `after` in the frame at a position: the frame itself, or parts of a large one. The
    /// frame and the parts may hold others, too.
    pub(super) fn parts_of(
        &self,
        position: Position,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<Parts, Error> {
        let mut looks = Looks::WITHOUT_TEXTS;
        self.parts_by(&mut looks, position, streams, after)
    }

    /// As [`Inner::parts_of`]; of a damaged frame the damage is noted, and there are no parts.
    pub(super) fn sound_parts_of(
        &self,
        position: Position,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<Parts, Error> {
        match self.parts_of(position, streams, after) {
            Err(Error::Corrupt { detail, .. }) => {
                self.note_damage(detail);
                Ok(Parts::One(None))
            }
            parts => parts,
        }
    }

    /// As [`Inner::parts_of`], for a caller that goes from frame to frame.
    pub(super) fn parts_by<'a>(
        &'a self,
        looks: &mut Looks<'a>,
        position: Position,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<Parts, Error> {
        let (parts, is_held) = self.parts_once(looks, position, streams, after)?;
        if let [whole] = parts.as_slice()
            && !is_held
            && !whole.is_large()
        {
            self.cache().keep(whole);
        }
        Ok(Parts::Some(parts.into_iter()))
    }

    /// As [`Inner::parts_by`], for a caller that keeps the frames: a frame that has to be read is not put into the cache, and comes
    /// with the bodies that were read with it. Returns also whether the cache held the frame.
    pub(super) fn parts_once<'a>(
        &'a self,
        looks: &mut Looks<'a>,
        position: Position,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<(Vec<Frame>, bool), Error> {
        let held = self.cache().at(position);
        Ok(match held {
            Some(frame) if !frame.is_large() => (vec![frame], true),
            Some(frame) => (self.log.parts_in(&frame, streams, after), true),
            None => (looks.parts_of(&self.log, position, streams, after)?, false),
        })
    }
}
