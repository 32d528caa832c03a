//! The events of a session: its own, and before them those of the history that it shares as a fork.
//!
//! ```text
//! parent   1 2 3 4 5 . . 8        forked at 4 in 6
//! fork               6 7          its events: 1 2 3 4, then 6 7
//! ```

use acpdb_engine::event::{Payload, Recorded};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::{Error, Store};

use crate::kinds::{FORKED, MESSAGE_RECORDED};
use crate::sound::sound;

/// A stream whose events are part of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineageStream {
    /// The stream.
    pub(crate) stream: StreamId,
    /// Its last seq that counts.
    pub(crate) to: Seq,
    /// The event in which it was forked from the part before it; [`Seq::ZERO`] if it was not.
    pub(crate) forked: Seq,
}

/// The streams whose events make up a session up to `to`, the oldest first.
///
/// Cost: a look at the first events of each.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn lineage(store: &Store, stream: StreamId, to: Seq) -> Result<Vec<LineageStream>, Error> {
    let mut line: Vec<LineageStream> = Vec::new();
    let mut next = Some((stream, to));
    while let Some((stream, to)) = next.take() {
        // A fork also has its history at a point from before it began. A stream that recorded an item first shares nothing.
        let first = store.stream_events(stream, Seq(1), Seq::MAX)?;
        let first = first.wanted(|glimpse| glimpse.kind() == FORKED || glimpse.kind() >= MESSAGE_RECORDED);
        let first = sound(first).next().transpose()?;
        let mut part = LineageStream { stream, to, forked: Seq::ZERO };
        if let Some(Recorded { seq, event, .. }) = first
            && let Payload::Forked(forked) = event.payload
        {
            // A copy of a history shares nothing; a circle would have no end.
            let is_known = stream == forked.from || line.iter().any(|part| part.stream == forked.from);
            if forked.at > Seq::ZERO && !is_known {
                part.forked = seq;
                next = Some((forked.from, to.min(forked.at)));
            }
        }
        line.push(part);
    }
    line.reverse();
    Ok(line)
}

/// The events of a session up to `to`, in order. Damaged events are left out.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn events(
    store: &Store,
    stream: StreamId,
    to: Seq,
) -> Result<impl Iterator<Item = Result<Recorded, Error>> + use<>, Error> {
    let parts = lineage(store, stream, to)?.into_iter();
    let parts = parts.map(|part| store.stream_events(part.stream, Seq(1), part.to));
    Ok(sound(parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten()))
}

#[cfg(test)]
mod tests;
