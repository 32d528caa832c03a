//! Serving: when a conclusion is worth a rewrite of the provider's cache, which texts need not be sent twice, and the words of reminders and figures.
//!
//! ```text
//! pending items, bounds of the cache, prices  --plan-->  wait, or rewrite from here on
//! a new output, texts the model still sees    --point-->  pointers in place of runs of lines
//! ```
//!
//! Pure functions over figures and texts. Pending items stand in the fold; recorded and sent ones, in the store;
//! the costs of other policies, in `query`.

pub mod breakpoints;
mod figures;
pub mod plan;
pub mod point;
pub mod reminder;
