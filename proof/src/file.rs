//! Files for readers without a store: one event, or two checkpoints of one history.
//!
//! ```text
//! one event: C2SP tlog-proof                     two checkpoints: JSON
//!   c2sp.org/tlog-proof@v1                         {"schema": "acpdb.consistency/1", "old": note, "new": note,
//!   extra base64(the event's shown parts)           "hashes": [base64, ..]}
//!   index 811
//!   base64 hash, one a line
//!                                                every byte is accounted for: the file is written back as it was
//!   the signed checkpoint
//! ```

use acpdb_engine::ids::Seq;
use serde::{Deserialize, Serialize};

use crate::ProofError;
use crate::checkpoint::Checkpoint;
use crate::event::{self, EventOpening};
use crate::note::{VerifierKey, base64, from_base64};
use crate::tree::{Hash, PROOF_HASH_COUNT_MAX, verify_consistency, verify_inclusion};

/// The first line of an event's proof.
pub const EVENT_PROOF: &str = "c2sp.org/tlog-proof@v1";
const SCHEMA: &str = "acpdb.consistency/1";

/// The checkpoint of a checked file, and the key that signed it.
#[derive(Debug, Clone)]
pub struct Checked<'k> {
    /// The checkpoint; the larger one if the file has two.
    pub checkpoint: Checkpoint,
    /// The key that signed it.
    pub key: &'k VerifierKey,
}

/// A proof that an event is in a signed tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventProof {
    /// The event.
    pub opening: EventOpening,
    /// Its leaf, from 0.
    pub index: u64,
    /// The hashes of the proof, from the leaf to the root.
    pub hashes: Vec<Hash>,
    /// The signed checkpoint.
    pub note: String,
}

pub(crate) fn hash_of(text: &str) -> Result<Hash, ProofError> {
    let bytes = from_base64(text)?.try_into();
    bytes.map(Hash).map_err(|_| ProofError::malformed("a hash of the proof has another length"))
}

impl EventProof {
    /// The file.
    ///
    /// # Errors
    /// As [`EventOpening::to_json`].
    pub fn to_text(&self) -> Result<String, ProofError> {
        let extra = base64(self.opening.to_json()?.as_bytes());
        let mut text = format!("{EVENT_PROOF}\nextra {extra}\nindex {}\n", self.index);
        for hash in &self.hashes {
            text.push_str(&base64(&hash.0));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.note);
        Ok(text)
    }

    /// Reads the file. Only one form is accepted.
    ///
    /// # Errors
    /// [`ProofError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let cut = || ProofError::malformed("the proof of the event is cut, or padded");
        let (head, note) = text.split_once("\n\n").ok_or_else(cut)?;
        let mut lines = head.split('\n');
        let mut field = |name: &str| lines.next().and_then(|line| line.strip_prefix(name)).ok_or_else(cut);
        if !field(EVENT_PROOF)?.is_empty() {
            return Err(cut());
        }
        let opening = EventOpening::parse(&from_base64(field("extra ")?)?)?;
        let index = field("index ")?.parse().map_err(|_| cut())?;
        let hashes: Vec<Hash> =
            lines.take(PROOF_HASH_COUNT_MAX + 1).map(hash_of).collect::<Result<_, ProofError>>()?;
        let found = Self { opening, index, hashes, note: note.to_owned() };
        if found.hashes.len() > PROOF_HASH_COUNT_MAX || found.to_text()? != text {
            Err(cut())
        } else {
            Ok(found)
        }
    }

    /// Checks all of it. One of `keys` has to have signed the checkpoint.
    ///
    /// # Errors
    /// Any [`ProofError`] but those about two checkpoints.
    pub fn check<'k>(&self, keys: &'k [VerifierKey]) -> Result<Checked<'k>, ProofError> {
        let (checkpoint, key) = Checkpoint::open(&self.note, keys)?;
        let event = self.opening.read()?;
        if event.store != checkpoint.store {
            return Err(ProofError::OtherStore { found: event.store });
        }
        let leaf = event::hash(&self.opening.salt, &self.opening.event);
        let size = checkpoint.seq.get();
        let is_placed = self.index.checked_add(1) == Some(event.seq.get());
        if is_placed && verify_inclusion(self.index, size, leaf, &self.hashes, checkpoint.root) {
            Ok(Checked { checkpoint, key })
        } else {
            Err(ProofError::NotIncluded { seq: event.seq })
        }
    }
}

/// A proof that the history of one checkpoint is the beginning of the history of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsistencyProof {
    /// The signed checkpoint of the smaller tree.
    pub old: String,
    /// The signed checkpoint of the larger tree.
    pub new: String,
    /// The proof.
    pub hashes: Vec<Hash>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    schema: String,
    old: String,
    new: String,
    hashes: Vec<String>,
}

impl ConsistencyProof {
    /// The file.
    ///
    /// # Errors
    /// None that can be met: all its parts are text.
    pub fn to_text(&self) -> Result<String, ProofError> {
        let hashes = self.hashes.iter().map(|hash| base64(&hash.0)).collect();
        let text =
            FileText { schema: SCHEMA.to_owned(), old: self.old.clone(), new: self.new.clone(), hashes };
        let json = serde_json::to_string(&text);
        Ok(json.map_err(|_| ProofError::malformed("the proof cannot be written as JSON"))? + "\n")
    }

    /// Reads the file. Only one form is accepted.
    ///
    /// # Errors
    /// [`ProofError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let cut =
            || ProofError::malformed("the proof of consistency is cut, or padded, or of another version");
        let read: FileText = serde_json::from_str(text).map_err(|_| cut())?;
        if read.hashes.len() > PROOF_HASH_COUNT_MAX || read.schema != SCHEMA {
            return Err(cut());
        }
        let hashes = read.hashes.iter().map(|hash| hash_of(hash)).collect::<Result<_, ProofError>>()?;
        let found = Self { old: read.old, new: read.new, hashes };
        if found.to_text()? == text { Ok(found) } else { Err(cut()) }
    }

    /// Checks all of it. One of `keys` has to have signed each checkpoint. Gives the larger checkpoint and the end of the smaller one.
    ///
    /// # Errors
    /// Any [`ProofError`] but those about an event.
    pub fn check<'k>(&self, keys: &'k [VerifierKey]) -> Result<(Seq, Checked<'k>), ProofError> {
        let (old, _) = Checkpoint::open(&self.old, keys)?;
        let (new, key) = Checkpoint::open(&self.new, keys)?;
        old.agrees_with(&new)?;
        if verify_consistency(old.seq.get(), new.seq.get(), old.root, new.root, &self.hashes) {
            Ok((old.seq, Checked { checkpoint: new, key }))
        } else {
            Err(ProofError::NotConsistent { old: old.seq, new: new.seq })
        }
    }
}
