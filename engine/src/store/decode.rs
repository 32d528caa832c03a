//! Events decoded from their frames alone.

use std::path::PathBuf;

use crate::codec::{EventRef, Frame, Sight, payload};
use crate::error::Error;
use crate::event::{Frequent, Recorded};
use crate::ids::{Seq, StreamId};
use crate::log::{key_name, unread};
use crate::secret::Secret;

use super::Inner;

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
