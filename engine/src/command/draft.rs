//! An event before it has a place in the log, and its bodies: made one after the other, one row each on disk.

use crate::entry::{Bytes, WirePiece};
use crate::event::{Actor, Body, Event, Payload, Stamp, wire};
use crate::ids::{Origin, StreamId};
use crate::secret::Secret;
use crate::text::tokens;

/// An event that is not yet in the log, with the bytes of its bodies, one a row.
#[derive(Clone, PartialEq, Debug)]
pub struct EventDraft {
    /// The event.
    pub event: Event,
    /// Its bodies, in order of their rows.
    pub bodies: Vec<Bytes>,
}

impl EventDraft {
    /// An event with its bodies.
    pub fn new(event: Event, bodies: Bodies) -> Self {
        Self { event, bodies: bodies.into_rows() }
    }

    /// Drafts an event for a command. A command knows neither stream nor actor: [`EventDraft::said_in`] sets both.
    pub fn of(payload: impl Into<Payload>, bodies: Bodies) -> Self {
        let stamp = Stamp { estimator: tokens::ESTIMATOR_VERSION, ..Stamp::default() };
        let (stream, origin, payload) = (StreamId::STORE, Origin::ZERO, payload.into());
        Self::new(Event { stream, origin, host_time: None, stamp, payload }, bodies)
    }

    /// An event of the store's own stream that rests on nothing and counts no tokens.
    pub fn of_store(payload: impl Into<Payload>, actor: Actor) -> Self {
        let stamp = Stamp { actor, ..Stamp::default() };
        let (stream, origin, payload) = (StreamId::STORE, Origin::ZERO, payload.into());
        Self::new(Event { stream, origin, host_time: None, stamp, payload }, Bodies::default())
    }

    /// The same event as one of `stream`, by `actor`.
    #[must_use]
    pub fn said_in(mut self, stream: StreamId, actor: Actor) -> Self {
        self.event.stream = stream;
        self.event.stamp.actor = actor;
        self
    }
}

/// Most bytes that one row of a body table may hold; longer bodies are lists of rows.
pub const CHUNK_BYTES_MAX: usize = 16 << 20;

/// Bodies shorter than this are not worth a comparison with the others of their event.
const SHARE_BYTES_MIN: usize = 64;

/// The bodies of one event, in order of their rows.
#[derive(Debug, Default)]
pub struct Bodies {
    rows: Vec<Bytes>,
    named: Vec<(Bytes, Body)>,
}

/// Lines of a text: line feeds + 1, 0 for an empty one.
pub fn line_count(bytes: &[u8]) -> u32 {
    if bytes.is_empty() {
        return 0;
    }
    let feeds = memchr::memchr_iter(b'\n', bytes).count();
    u32::try_from(feeds).unwrap_or(u32::MAX).saturating_add(1)
}

impl Bodies {
    /// Adds a body that the model may see: its tokens and lines are counted.
    pub fn add(&mut self, bytes: &Bytes) -> Body {
        let body = self.place(bytes);
        Body { tokens: tokens::estimate(bytes), lines: line_count(bytes), ..body }
    }

    /// As [`Bodies::add`], for bytes that are not shared yet.
    pub fn add_copied(&mut self, bytes: impl AsRef<[u8]>) -> Body {
        self.add(&Bytes::from(bytes.as_ref()))
    }

    /// Adds a body that the model never sees: nothing is counted.
    pub fn add_uncounted(&mut self, bytes: &Bytes) -> Body {
        self.place(bytes)
    }

    /// Adds the wire form of the host's record, reusing the rows of bodies that are there.
    pub fn add_wire(&mut self, pieces: &[WirePiece], secret: &Secret) -> Option<Body> {
        if pieces.is_empty() {
            return None;
        }
        let mut template = Vec::new();
        for piece in pieces {
            match piece {
                WirePiece::Literal(bytes) => wire::push(&mut template, &wire::TemplatePiece::Literal(bytes)),
                WirePiece::Raw(bytes) | WirePiece::Escaped(bytes) => {
                    let body = self.place(bytes);
                    let escaped = matches!(piece, WirePiece::Escaped(_));
                    let named = wire::TemplatePiece::Body { first: body.first, rows: body.chunks, escaped };
                    wire::push(&mut template, &named);
                }
                WirePiece::Record(origin) => {
                    wire::push(&mut template, &wire::TemplatePiece::Record(secret.origin(origin)));
                }
            }
        }
        Some(self.place(&Bytes::from(template)))
    }

    /// The bodies, one a row.
    pub fn into_rows(self) -> Vec<Bytes> {
        self.rows
    }

    fn place(&mut self, bytes: &Bytes) -> Body {
        if bytes.is_empty() {
            return Body::default();
        }
        if bytes.len() >= SHARE_BYTES_MIN
            && let Some((_, body)) = self.named.iter().find(|(known, _)| known == bytes)
        {
            return *body;
        }
        let first = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if bytes.len() <= CHUNK_BYTES_MAX {
            self.rows.push(bytes.clone());
        } else {
            self.rows.extend(bytes.chunks(CHUNK_BYTES_MAX).map(Bytes::from));
        }
        let chunks = u32::try_from(self.rows.len()).unwrap_or(u32::MAX) - first;
        let body = Body { first, chunks, bytes: bytes.len() as u64, tokens: 0, lines: 0 };
        self.named.push((bytes.clone(), body));
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_long_bodies_share_a_row_and_empty_ones_have_none() {
        let long: Bytes = vec![b'a'; 100].into();
        let mut bodies = Bodies::default();
        let first = bodies.add(&long);
        let again = bodies.add_uncounted(&Bytes::from(vec![b'a'; 100]));
        assert_eq!((first.first, again.first, again.chunks), (0, 0, 1));
        assert_eq!(bodies.add(&Bytes::from(Vec::new())).chunks, 0);
        let pieces = [WirePiece::Literal(b"{".to_vec()), WirePiece::Escaped(long)];
        let wire = bodies.add_wire(&pieces, &Secret::default()).unwrap();
        assert_eq!((wire.first, bodies.into_rows().len()), (1, 2));
    }

    #[test]
    fn a_long_body_is_a_list_of_chunks() {
        let mut bodies = Bodies::default();
        let body = bodies.add_uncounted(&Bytes::from(vec![0; CHUNK_BYTES_MAX + 1]));
        assert_eq!((body.chunks, body.bytes), (2, CHUNK_BYTES_MAX as u64 + 1));
    }

    #[test]
    fn lines_are_line_feeds_and_one_more() {
        assert_eq!(
            [line_count(b""), line_count(b"a"), line_count(b"a\n"), line_count(b"a\nb")],
            [0, 1, 2, 2]
        );
    }
}
