//! Frames by seq or by position, from the frames that are kept, else from the log; and events decoded from their frames alone.

use std::path::PathBuf;

use crate::codec::{EventRef, Frame, Sight, payload};
use crate::error::Error;
use crate::event::{Frequent, Recorded};
use crate::ids::{Position, Seq, StreamId};
use crate::log::{Looks, key_name, unread};
use crate::secret::Secret;

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

/// Decodes one event of a frame from its payload alone. Free texts, which stand in bodies, are left out, and labels stay
/// sealed. For callers that need neither.
pub(super) fn bare(frame: &Frame, event: &EventRef<'_>) -> Result<Recorded, Error> {
    check_sight(event)?;
    payload::recorded(frame, event).map_err(|error| unreadable(event.seq, &error))
}

/// Checks that an event can be read: a sealed event needs its key. An event whose key was destroyed counts as one of an unknown kind.
fn check_sight(event: &EventRef<'_>) -> Result<(), Error> {
    let (seq, stream) = (event.seq, event.envelope.stream);
    match event.sight {
        Sight::Clear | Sight::Shredded | Sight::Newer => Ok(()),
        Sight::NoKey => Err(Error::Locked {
            detail: format!("event {seq} is sealed, and the key of its stream {stream} is not at hand"),
        }),
        Sight::Unread => {
            Err(Error::Io { action: "read", path: PathBuf::from(key_name(stream)), source: unread() })
        }
        Sight::Forged => Err(Error::damaged_event(
            seq,
            format!("event {seq} does not open with the key of its stream {stream}: it was altered or moved"),
        )),
    }
}

/// An event of a frequent kind, borrowed from its frame.
pub(super) fn lend<'a>(event: &EventRef<'a>, secret: &Secret) -> Result<Option<Frequent<'a>>, Error> {
    check_sight(event)?;
    let envelope = event.envelope;
    let mut lent = payload::frequent(envelope.kind, envelope.version, event.payload)
        .map_err(|error| unreadable(event.seq, &error))?;
    if let Some(Frequent::Started(started)) = &mut lent {
        started.label = secret.open_label(started.label);
    }
    Ok(lent)
}

fn unreadable(seq: Seq, error: &payload::PayloadError) -> Error {
    Error::damaged_event(seq, format!("event {seq} cannot be read: {error}"))
}

impl Inner {
    /// An error of an event, with the cause if the event is sealed and its key is not at hand.
    pub(super) fn told(&self, error: Error, stream: StreamId) -> Error {
        match error {
            Error::Locked { .. } => self.log.why_locked(stream).into(),
            Error::Io { .. } => self.log.unread_key(stream).into(),
            error => error,
        }
    }

    /// Notes damage for a caller that goes on without the damaged part: an answer that leaves events out has to say so.
    pub(super) fn noted<T>(&self, read: Result<T, Error>) -> Result<T, Error> {
        if let Err(Error::Corrupt { detail, .. }) = &read {
            self.note_damage(detail.clone());
        }
        read
    }
}
