//! What-if: a recorded session under other policies and modes, with what each would have cost.
//!
//! ```text
//! Recording (events, lines, words: read once)  --run(setup)-->  Outcome: tokens of each request, price, rewrites, regret
//!                                              --run(nothing)-> what all prices are relative to
//! ```
//!
//! Nothing is recorded. A simulation folds the events anew under the policy asked for; before each request (a step of
//! the model) it decides as a host would, by the engine's own planner, and counts what a provider would bill for input.
//!
//! What it does not know: how the agent would have gone on had it seen less. The sessions are as they were recorded;
//! *needed* counts what it hid and the model used later all the same.

mod edits;
mod html;
mod missed;
mod prices;
mod recording;
mod report;
mod run;
mod trace;

use std::sync::Arc;

use acpdb_engine::fold::Policy;
use acpdb_engine::fold::policy::{Prices, ServeMode};
use serde::Serialize;

pub use html::{Chart, html};
pub use missed::Missed;
pub use prices::{PriceList, PriceListError};
pub use recording::Recording;
pub use report::{Row, row};
pub use run::{run, run_all, trace};
pub use trace::{Traced, TracedRequest, TracedSlot};

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Name, for people.
    pub name: String,
    /// The policy; `None`: those that the log records.
    pub policy: Option<Arc<Policy>>,
    /// The mode; `None`: the policy's.
    pub mode: Option<ServeMode>,
    /// The prices; `None`: the policy's.
    pub prices: Option<Prices>,
    /// Most requests that keep the cache warm while nothing is asked, each just before it would be cold.
    pub warm_requests_max: u32,
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
            warm_requests_max: 0,
        }
    }
}

/// One request of a simulated session.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Request {
    /// Its turn.
    pub turn: u32,
    /// Tokens sent, the fixed prefix included.
    pub tokens: u64,
    /// Of these, read from the cache.
    pub read: u64,
    /// What was sent before was changed.
    pub rewritten: bool,
    /// Nothing could be read: the cache was cold.
    pub cold: bool,
    /// What it cost.
    pub price: f64,
    /// What it cost with what had to be fetched again.
    pub price_with_fetches: f64,
}

/// What a simulation came to.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Outcome {
    /// Its requests, in order.
    pub requests: Vec<Request>,
    /// Faces that were hidden or shortened at some time, where that freed anything.
    pub hidden_count: u64,
    /// Of these: they alone showed identifiers that the model wrote later.
    pub needed_count: u64,
    /// Requests whose answer used such an identifier.
    pub affected_count: u64,
    /// Edits of files.
    pub edit_count: u64,
    /// Of these: most lines that they replaced stood nowhere in what was visible.
    pub blind_count: u64,
    /// Outputs that were sent with pointers.
    pub pointed_count: u64,
    /// Requests that kept the cache warm.
    pub warm_count: u64,
    /// What they cost.
    pub warm_price: f64,
    /// What the model used although it was hidden, case by case.
    pub missed: Vec<Missed>,
}

impl Outcome {
    /// What all requests cost, those that kept the cache warm among them.
    pub fn price(&self) -> f64 {
        self.requests.iter().map(|request| request.price).sum::<f64>() + self.warm_price
    }

    /// What they cost with what had to be fetched again.
    pub fn price_with_fetches(&self) -> f64 {
        self.requests.iter().map(|request| request.price_with_fetches).sum::<f64>() + self.warm_price
    }

    /// Tokens of all requests.
    pub fn tokens(&self) -> u64 {
        self.requests.iter().map(|request| request.tokens).sum()
    }
}

#[cfg(test)]
mod tests;
