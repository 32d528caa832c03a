//! Serving: when a conclusion is worth a rewrite of the provider's cache, what need not be sent twice at all, and what reminders and figures say.
//!
//! ```text
//! pending items, bounds of the cache, prices  --plan-->  wait, or rewrite from here on
//! a new output, texts the model still sees    --point-->  pointers in place of runs of lines
//! ```
//!
//! Pure functions over figures and texts. What is pending stands in the fold; what is recorded and sent, in the store;
//! what another policy would have cost, in `query`.

pub mod breakpoints;
mod figures;
pub mod plan;
pub mod point;
pub mod reminder;
