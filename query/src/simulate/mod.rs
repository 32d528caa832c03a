//! What-if: a recorded session under other policies and modes, with the price of each.
//!
//! ```text
//! Recording (events, lines, words: read once)  --run(setup)-->  Outcome: tokens of each request, price, rewrites, regret
//!                                              --run(nothing)-> what all prices are relative to
//! ```
//!
//! Nothing is recorded. A simulation folds the events anew under the policy asked for; before each request (a step of the model) it
//! decides as a host would, by the engine's own planner, and counts the tokens of input that a provider would bill.
//!
//! It does not know how the agent would have gone on had it seen less. The sessions are as they were recorded; *needed* counts the
//! faces that it hid and that the model used later all the same.

mod edits;
mod missed;
mod parts;
mod prices;
mod recording;
mod report;
mod run;
mod trace;
mod untouched;

use std::sync::Arc;

use acpdb_engine::fold::Policy;
use acpdb_engine::fold::policy::{Prices, ServeMode};
use serde::Serialize;

pub use missed::Missed;
pub use parts::{BillParts, OldItems, YOUNG_STEP_COUNT};
pub use prices::{PriceList, PriceListError};
pub use recording::SessionRecording;
pub use report::{PolicyRow, row};
pub use run::{nothing_as_recorded, run, run_all, trace};
pub use trace::{Traced, TracedRequest, TracedSlot};
pub use untouched::HostCould;

/// The setup of a simulation.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Name, for people.
    pub name: String,
    /// The policy; `None`: the policies that the log records.
    pub policy: Option<Arc<Policy>>,
    /// The mode; `None`: the policy's.
    pub mode: Option<ServeMode>,
    /// The prices; `None`: the policy's.
    pub prices: Option<Prices>,
}

impl Setup {
    /// Doing nothing: no rule acts, all is sent.
    pub fn nothing(prices: Option<Prices>) -> Self {
        let policy = Policy { automatic: false, ..Policy::default() };
        Self {
            name: "nothing".to_owned(),
            policy: Some(Arc::new(policy)),
            mode: Some(ServeMode::AppendOnly),
            prices,
        }
    }
}

/// One request of a simulated session.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct SimulatedRequest {
    /// Its turn.
    pub turn: u32,
    /// Tokens sent, the fixed prefix included.
    pub tokens: u64,
    /// Tokens of these that were read from the cache.
    pub read: u64,
    /// A text that was sent before was changed.
    pub rewritten: bool,
    /// Nothing could be read: the cache was cold.
    pub cold: bool,
    /// Its price.
    pub price: f64,
    /// Its price with the outputs that had to be fetched again.
    pub price_with_fetches: f64,
}

/// The outcome of a simulation.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SimulationResult {
    /// Its requests, in order.
    pub requests: Vec<SimulatedRequest>,
    /// Faces that were hidden or shortened at some time, if that freed tokens.
    pub hidden_count: u64,
    /// Those of these faces that alone showed identifiers that the model wrote later.
    pub needed_count: u64,
    /// Requests whose answer used such an identifier.
    pub affected_count: u64,
    /// Edits of files.
    pub edit_count: u64,
    /// Those of these edits whose replaced lines mostly stood nowhere in the visible texts.
    pub blind_count: u64,
    /// Outputs that were sent with pointers.
    pub pointed_count: u64,
    /// The parts of the price.
    pub parts: BillParts,
    /// The price of the same requests without any cache, as a provider bills them that is told of no place to keep.
    pub price_without_cache: f64,
    /// Hidden faces that the model used all the same, case by case.
    pub missed: Vec<Missed>,
}

impl SimulationResult {
    /// The price of all requests.
    pub fn price(&self) -> f64 {
        self.requests.iter().map(|request| request.price).sum()
    }

    /// The same price, with the outputs that had to be fetched again.
    pub fn price_with_fetches(&self) -> f64 {
        self.requests.iter().map(|request| request.price_with_fetches).sum()
    }

    /// The parts of the price with the outputs that had to be fetched again.
    pub fn bill_parts(&self) -> BillParts {
        let fetched = self.price_with_fetches() - self.price();
        BillParts { fetched, ..self.parts }
    }

    /// Tokens of all requests.
    pub fn tokens(&self) -> u64 {
        self.requests.iter().map(|request| request.tokens).sum()
    }
}

#[cfg(test)]
mod tests;
