//! One event in the tree: a commitment that hides it, and the values that open the commitment.
//!
//! ```text
//! leaf = SHA-256("acpdb leaf v1\0\0\0" || salt, 32 || event)      the event's bytes: engine, `codec::LeafEvent`
//! ```
//!
//! The salt is keyed with a secret of the store, so a proof's other hashes tell nothing of the events beside it.

use acpdb_engine::codec::LeafEvent;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ProofError;
use crate::note::{base64, from_base64};
use crate::tree::{Hash, leaf_hash};

const DOMAIN: &[u8; 16] = b"acpdb leaf v1\0\0\0";
const SCHEMA: &str = "acpdb.opening/1";

/// The leaf of an event.
pub fn commitment(salt: &[u8; 32], event: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(DOMAIN).chain_update(salt).chain_update(event).finalize().into()
}

/// The hash of an event's leaf.
pub fn hash(salt: &[u8; 32], event: &[u8]) -> Hash {
    leaf_hash(&commitment(salt, event))
}

/// The shown parts of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOpening {
    /// The salt of its leaf.
    pub salt: [u8; 32],
    /// Its bytes.
    pub event: Vec<u8>,
    /// The bodies that are shown.
    pub bodies: Vec<ShownBody>,
}

/// A body that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownBody {
    /// Its row in the event.
    pub row: u32,
    /// The salt of its digest.
    pub salt: [u8; 16],
    /// The body.
    pub bytes: Vec<u8>,
}

/// An opening as JSON has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpeningText {
    schema: String,
    salt: String,
    event: String,
    bodies: Vec<BodyText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyText {
    row: u32,
    salt: String,
    bytes: String,
}

fn array<const N: usize>(text: &str) -> Result<[u8; N], ProofError> {
    from_base64(text)?.try_into().map_err(|_| ProofError::malformed("a salt of the proof has another length"))
}

impl EventOpening {
    /// The opening as JSON.
    ///
    /// # Errors
    /// None that can be met: all its parts are text.
    pub fn to_json(&self) -> Result<String, ProofError> {
        serde_json::to_string(&self.to_text())
            .map_err(|_| ProofError::malformed("the event cannot be written as JSON"))
    }

    pub(crate) fn to_text(&self) -> OpeningText {
        let body = |body: &ShownBody| BodyText {
            row: body.row,
            salt: base64(&body.salt),
            bytes: base64(&body.bytes),
        };
        OpeningText {
            schema: SCHEMA.to_owned(),
            salt: base64(&self.salt),
            event: base64(&self.event),
            bodies: self.bodies.iter().map(body).collect(),
        }
    }

    /// Reads the JSON of an opening.
    ///
    /// # Errors
    /// [`ProofError::Malformed`].
    pub fn parse(json: &[u8]) -> Result<Self, ProofError> {
        let wrong = || ProofError::malformed("what the proof shows of the event cannot be read");
        Self::from_text(&serde_json::from_slice(json).map_err(|_| wrong())?)
    }

    pub(crate) fn from_text(text: &OpeningText) -> Result<Self, ProofError> {
        if text.schema != SCHEMA {
            return Err(ProofError::malformed("what the proof shows of the event is of another version"));
        }
        let body = |body: &BodyText| {
            Ok(ShownBody { row: body.row, salt: array(&body.salt)?, bytes: from_base64(&body.bytes)? })
        };
        let bodies = text.bodies.iter().map(body).collect::<Result<_, ProofError>>()?;
        Ok(Self { salt: array(&text.salt)?, event: from_base64(&text.event)?, bodies })
    }

    /// Decodes the event, and checks that every shown body is a body of the event.
    ///
    /// # Errors
    /// [`ProofError::Malformed`], [`ProofError::Body`].
    pub fn read(&self) -> Result<LeafEvent<'_>, ProofError> {
        let event = LeafEvent::decode(&self.event)
            .ok_or_else(|| ProofError::malformed("the bytes of the event are not those of one"))?;
        let mut before = None;
        for body in &self.bodies {
            let row = event.rows.get(body.row as usize);
            // Each body at most once and in order: one form only.
            let is_next = before.is_none_or(|before| before < body.row);
            if !is_next || !row.is_some_and(|row| row.is_of(&body.salt, &body.bytes)) {
                return Err(ProofError::Body { seq: event.seq, row: body.row });
            }
            before = Some(body.row);
        }
        Ok(event)
    }
}
