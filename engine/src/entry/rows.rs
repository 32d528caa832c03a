//! The bodies of an event that comes from another store.

use super::{Bytes, PartEntry};
use crate::event::{Body, Part};
use crate::secret::is_derived;

/// The rows of an event's bodies; a lost row is marked with its length.
pub(crate) struct Rows<'p> {
    pub(crate) all: Vec<Result<&'p Bytes, u32>>,
}

impl Rows<'_> {
    /// The rows of a body.
    pub(crate) const fn range(body: &Body) -> std::ops::Range<usize> {
        body.first as usize..(body.first as usize).saturating_add(body.chunks as usize)
    }

    /// The bytes of a body; `None` if some of them are not there.
    pub(crate) fn bytes(&self, body: &Body) -> Option<Bytes> {
        if body.chunks == 0 {
            return Some(Bytes::default());
        }
        let rows = self.all.get(Self::range(body))?;
        match rows {
            [Ok(one)] => Some((*one).clone()),
            rows => {
                let mut bytes = Vec::new();
                for row in rows {
                    // If one row is gone, there is no text.
                    bytes.extend_from_slice(row.as_ref().ok()?);
                }
                Some(bytes.into())
            }
        }
    }

    /// The bytes of an optional body; the outer `None` as in [`Rows::bytes`].
    #[expect(clippy::option_option, reason = "not named, and not there: two answers")]
    pub(super) fn optional(&self, body: Option<&Body>) -> Option<Option<Bytes>> {
        match body {
            None => Some(None),
            Some(body) => self.bytes(body).map(Some),
        }
    }

    /// Parts as a host tells them; `None` if some of their bytes are not there.
    pub(super) fn parts(&self, parts: &[Part]) -> Option<Vec<PartEntry>> {
        let part = |part: &Part| {
            Some(PartEntry {
                kind: part.kind,
                bytes: self.bytes(&part.body)?,
                media_type: part.media_type.clone(),
                signature: self.optional(part.signature.as_ref())?,
            })
        };
        parts.iter().map(part).collect()
    }

    /// An id in the fact's revision; `None` for an id that the other store derived: the id that this store would derive is not known.
    pub(super) fn id(id: &str) -> Option<String> {
        (!is_derived(id)).then(|| id.to_owned())
    }
}
