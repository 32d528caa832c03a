//! Contexts that a model is sent: a step, its context as bytes, and the record of both.
//!
//! ```text
//! Step::begin(session, key) --context(renderer, options)--> bytes, recorded as sent
//! pending items, bounds of the cache, prices  --plan-->  wait, or rewrite from here on
//! a new output, texts the model still sees    --point-->  pointers in place of runs of lines
//! ```
//!
//! The store knows what holds; this crate decides what of it is sent, and when a conclusion is worth a rewrite of the provider's
//! cache. It stands above the store, and writes through its door alone. `plan`, `point` and `breakpoints` are pure functions over
//! figures and texts. The costs of other policies are in `acpdb-query`, the formats of providers in `acpdb-hosts`.

pub mod breakpoints;
mod budget;
mod injections;
mod label;
pub mod plan;
pub mod point;
mod pointing;
mod reminder;
mod served;
mod size_notice;
mod step;

#[cfg(test)]
mod tests;

pub use budget::{Obstacle, OverBudget, tokens_least};
pub use injections::{Injection, inject};
pub use label::label;
pub use plan::FlushPlan;
pub use reminder::{Reflection, Reminder};
pub use served::{PlainText, Rendered, Renderer, Served, ServedItem};
pub use size_notice::SizeNotice;
pub use step::{Context, ServeOptions, ServedAgain, Step, flush, plan_flush};
