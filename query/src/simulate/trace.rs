//! The trace of a simulation, whatever the simulation decided: enough to look for the best decisions afterwards.
//!
//! ```text
//! Context:  requests  0 ....... 1 ....... 2 ....      each with its time, and whether the cache was cold
//!           slots     [born at 0, sent 900][born at 1, sent 300, at 2 concluded: 20]
//!           pointers  slot 7 points to slot 3 and saves 250
//! ```
//!
//! Decisions reach into it in one place only: the pointers that an output was born with depend on the texts that were shown then.

use acpdb_engine::ids::Micros;

/// A request of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TracedRequest {
    /// The time when it was made, if that is known.
    pub at: Option<Micros>,
    /// Nothing could be read.
    pub cold: bool,
    /// Slots that were there before it.
    pub slots_before: usize,
    /// The first slot that could not stay as it was sent: the host or a request changed the slot.
    pub forced: Option<usize>,
    /// The slot at which the simulation cut.
    pub cut: Option<usize>,
}

/// A face in the order of the context.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TracedSlot {
    /// The request that it was first sent with.
    pub born: usize,
    /// Tokens as first sent, pointers included.
    pub sent: u64,
    /// Tokens as the fold concluded later, each with the first request that knew it.
    pub changes: Vec<(usize, u64)>,
    /// Slots that point to this one, and the tokens that each pointer saves.
    pub pointers: Vec<(usize, u64)>,
}

/// A context from its beginning to the host's next compaction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Traced {
    /// Tokens of the fixed prefix.
    pub prefix_tokens: u64,
    /// Its requests.
    pub requests: Vec<TracedRequest>,
    /// Its slots.
    pub slots: Vec<TracedSlot>,
}

impl Traced {
    /// The slot of this number, made if it is new.
    pub(super) fn slot(&mut self, place: usize) -> Option<&mut TracedSlot> {
        if self.slots.len() <= place {
            self.slots.resize_with(place.saturating_add(1), TracedSlot::default);
        }
        self.slots.get_mut(place)
    }

    /// Notes the tokens of a slot that the fold concludes before the next request.
    pub(super) fn conclude(&mut self, place: usize, tokens: u64) {
        let next = self.requests.len();
        let Some(slot) = self.slot(place) else { return };
        match slot.changes.last_mut() {
            Some((at, known)) if *at == next => *known = tokens,
            _ => slot.changes.push((next, tokens)),
        }
    }

    /// Notes that a slot is first sent, with the request that is being made.
    pub(super) fn bear(&mut self, place: usize, tokens: u64) {
        let next = self.requests.len();
        let Some(slot) = self.slot(place) else { return };
        *slot = TracedSlot { born: next, sent: tokens, ..TracedSlot::default() };
    }
}
