//! A file that shows several events at once: a session, or a range.
//!
//! ```text
//! {"schema": "acpdb.events/1", "note": the signed checkpoint, "events": [the shown parts of each], "hashes": [base64, ..]}
//! ```
//!
//! One note, and the roots over all events that are not shown, from the left (see [`crate::tree::Cover`]): a session of a
//! thousand calls needs fewer hashes than a thousand proofs have. The file does not prove that its events are *all* events of a
//! session: all other events would have to be shown for that.

use acpdb_engine::ids::{Seq, StreamId};
use serde::{Deserialize, Serialize};

use crate::ProofError;
use crate::checkpoint::Checkpoint;
use crate::event::{self, EventOpening};
use crate::file::{Checked, hash_of};
use crate::note::{VerifierKey, base64};
use crate::tree::{Hash, verify_cover};

/// The name of the schema of such a file.
pub const SCHEMA: &str = "acpdb.events/1";

/// A proof that several events are in a signed tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsProof {
    /// The events, rising.
    pub openings: Vec<EventOpening>,
    /// The roots over all other events, from the left.
    pub hashes: Vec<Hash>,
    /// The signed checkpoint.
    pub note: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsText {
    schema: String,
    note: String,
    events: Vec<event::OpeningText>,
    hashes: Vec<String>,
}

/// The result of a checked proof of events.
#[derive(Debug, Clone)]
pub struct CheckedEvents<'k> {
    /// The checkpoint and its key.
    pub checked: Checked<'k>,
    /// The first event.
    pub first: Seq,
    /// The last event.
    pub last: Seq,
    /// The session, if all events are of one.
    pub stream: Option<StreamId>,
}

impl EventsProof {
    /// The file.
    ///
    /// # Errors
    /// None that can be met: all its parts are text.
    pub fn to_text(&self) -> Result<String, ProofError> {
        let text = EventsText {
            schema: SCHEMA.to_owned(),
            note: self.note.clone(),
            events: self.openings.iter().map(EventOpening::to_text).collect(),
            hashes: self.hashes.iter().map(|hash| base64(&hash.0)).collect(),
        };
        let json = serde_json::to_string(&text);
        Ok(json.map_err(|_| ProofError::malformed("the proof cannot be written as JSON"))? + "\n")
    }

    /// Reads the file. Only one form is accepted.
    ///
    /// # Errors
    /// [`ProofError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let cut =
            || ProofError::malformed("the proof of the events is cut, or padded, or of another version");
        let read: EventsText = serde_json::from_str(text).map_err(|_| cut())?;
        if read.schema != SCHEMA {
            return Err(cut());
        }
        let openings = read.events.iter().map(EventOpening::from_text).collect::<Result<_, ProofError>>()?;
        let hashes = read.hashes.iter().map(|hash| hash_of(hash)).collect::<Result<_, ProofError>>()?;
        let found = Self { openings, hashes, note: read.note };
        if found.to_text()? == text { Ok(found) } else { Err(cut()) }
    }

    /// Checks all of it. One of `keys` has to have signed the checkpoint.
    ///
    /// # Errors
    /// Any [`ProofError`] but those about two checkpoints.
    pub fn check<'k>(&self, keys: &'k [VerifierKey]) -> Result<CheckedEvents<'k>, ProofError> {
        let (checkpoint, key) = Checkpoint::open(&self.note, keys)?;
        let mut shown = Vec::new();
        let mut streams = Vec::new();
        for opening in &self.openings {
            let event = opening.read()?;
            if event.store != checkpoint.store {
                return Err(ProofError::OtherStore { found: event.store });
            }
            // Seq 0 is no event's; the index that it becomes is refused below.
            let index = event.seq.get().checked_sub(1).unwrap_or(u64::MAX);
            shown.push((index, event::hash(&opening.salt, &opening.event)));
            streams.push(event.envelope.stream);
        }
        if !verify_cover(&shown, checkpoint.seq.get(), &self.hashes, checkpoint.root) {
            return Err(ProofError::NotCovered);
        }
        let seq = |place: Option<&(u64, Hash)>| Seq(place.map_or(0, |(index, _)| index.saturating_add(1)));
        let stream = streams.first().copied().filter(|first| streams.iter().all(|stream| stream == first));
        let checked = Checked { checkpoint, key };
        Ok(CheckedEvents { checked, first: seq(shown.first()), last: seq(shown.last()), stream })
    }
}
