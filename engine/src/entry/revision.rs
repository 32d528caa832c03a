//! Digest of a fact's content, to tell a repeat from a change.
//!
//! What counts is what the feed says, never what acpdb derives from it: no signature, key, label or registry version. Wire
//! forms, times and actors do not count either, so a hook and a transcript that tell the same fact agree. The encoding
//! below is part of the format: a change to it would make every re-imported fact look revised. It is keyed with the store's
//! secret, or a short text could be found by guessing.

use super::{Bytes, Entry, Fact, ItemRef, PartEntry, PointRef, TodoChangeEntry, WirePiece, fact};
use crate::secret::{Revision, Secret};

/// Takes the fields of a fact, each with its length, in a fixed order.
pub(crate) struct Fields {
    revision: Revision,
}

impl Fields {
    pub(super) fn tag(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes(bytes)
    }

    pub(super) fn number(&mut self, number: i64) -> &mut Self {
        self.tag(&number.to_le_bytes())
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.revision.take(bytes);
        self
    }

    /// Absent and empty are told apart.
    pub(super) fn option(&mut self, value: Option<&[u8]>) -> &mut Self {
        self.tag(&[u8::from(value.is_some())]);
        self.bytes(value.unwrap_or_default())
    }

    pub(super) fn text_option(&mut self, value: Option<&String>) -> &mut Self {
        self.option(value.map(String::as_bytes))
    }

    pub(super) fn bytes_option(&mut self, value: Option<&Bytes>) -> &mut Self {
        self.option(value.map(|bytes| &**bytes))
    }

    pub(super) fn list(&mut self, texts: &[String]) -> &mut Self {
        self.number(i64::try_from(texts.len()).unwrap_or(i64::MAX));
        for text in texts {
            self.text(text);
        }
        self
    }

    pub(super) fn parts(&mut self, parts: &[PartEntry]) -> &mut Self {
        self.number(i64::try_from(parts.len()).unwrap_or(i64::MAX));
        for part in parts {
            self.tag(&[part.kind as u8]).text_option(part.media_type.as_ref());
            self.bytes(&part.bytes).bytes_option(part.signature.as_ref());
        }
        self
    }

    pub(super) fn items(&mut self, items: &[ItemRef]) -> &mut Self {
        for item in items {
            match item {
                ItemRef::Id(id) => {
                    self.tag(b"id").number(id.seq.get().cast_signed()).number(i64::from(id.part));
                }
                ItemRef::Origin(origin, part) => {
                    self.text(origin).number(i64::from(*part));
                }
            }
        }
        self
    }

    pub(super) fn point(&mut self, point: &PointRef) -> &mut Self {
        match point {
            PointRef::Seq(seq) => self.tag(b"seq").number(seq.get().cast_signed()),
            PointRef::After(origin) => self.tag(b"after").text(origin),
            PointRef::Before(origin) => self.tag(b"before").text(origin),
        }
    }

    pub(super) fn change(&mut self, change: &TodoChangeEntry) -> &mut Self {
        self.text(&change.id).text_option(change.status.as_ref()).bytes_option(change.entry.as_ref())
    }
}

/// The digest. Equal facts give equal digests; never 0.
pub(crate) fn revision_of(entry: &Entry, secret: &Secret) -> u64 {
    let mut fields = Fields { revision: secret.begin_revision() };
    entry.fact.revision(&mut fields);
    // A record that became no other fact has only its wire form to be told apart by.
    if matches!(entry.fact, Fact::HostRecorded(fact::HostRecorded { raw: None, .. })) {
        for piece in &entry.wire {
            match piece {
                WirePiece::Literal(bytes) => fields.tag(b"literal").bytes(bytes),
                WirePiece::Raw(bytes) => fields.tag(b"raw").bytes(bytes),
                WirePiece::Escaped(bytes) => fields.tag(b"escaped").bytes(bytes),
                WirePiece::Record(origin) => fields.tag(b"record").text(origin),
            };
        }
    }
    fields.revision.finish()
}
