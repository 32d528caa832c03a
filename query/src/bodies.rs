//! The bodies that tell the subject of an event, and the search for a text in them.

use acpdb_engine::event::{Body, Payload};
use acpdb_engine::ids::{BodyId, Seq};
use acpdb_engine::{Error, Store};

use crate::filter::Needle;

/// The amounts that a search or filter went through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Scanned {
    /// Events whose envelopes were looked at.
    pub events: u64,
    /// Bodies that were read.
    pub bodies: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Scanned {
    fn add_assign(&mut self, more: Self) {
        self.events += more.events;
        self.bodies += more.bodies;
        self.bytes += more.bytes;
    }
}

/// The bodies that tell the subject of an event; not details, signatures or wire forms.
pub fn telling(payload: &Payload) -> Vec<Body> {
    let named = payload.bodies().into_iter().filter(|named| named.is_telling);
    named.map(|named| named.body).filter(|body| body.bytes > 0).collect()
}

/// Estimated tokens of an event's bodies.
pub(crate) fn tokens(payload: &Payload) -> u64 {
    telling(payload).iter().map(|body| u64::from(body.tokens)).sum()
}

/// Whether one of an event's bodies holds a text. An erased body holds nothing.
pub(crate) fn holds(
    store: &Store,
    seq: Seq,
    payload: &Payload,
    needle: &Needle,
    scanned: &mut Scanned,
) -> Result<bool, Error> {
    let ids = telling(payload).into_iter().map(|body| body.id(seq));
    let holds =
        if matches!(payload, Payload::ToolCallStarted(_)) { Needle::is_in_params } else { Needle::is_in };
    any_holds(store, ids, |bytes| holds(needle, bytes), scanned)
}

/// Whether one of some bodies holds a thing.
pub(crate) fn any_holds(
    store: &Store,
    bodies: impl IntoIterator<Item = BodyId>,
    holds: impl Fn(&[u8]) -> bool,
    scanned: &mut Scanned,
) -> Result<bool, Error> {
    for id in bodies {
        let bytes = match store.body(id) {
            Ok(bytes) => bytes,
            Err(Error::Erased { .. }) => continue,
            Err(error) => return Err(error),
        };
        scanned.bodies += 1;
        scanned.bytes += bytes.len() as u64;
        if holds(&bytes) {
            return Ok(true);
        }
    }
    Ok(false)
}
