//! Questions over views: the item that a text names, the items in the context, the items that superseded others, the reasons, and
//! the tokens that are saved by it.
//!
//! ```text
//! engine::View --find--> Found --chain | explain--> members, edges, reasons
//!      |--------- context | items | stats | half--> rows and figures
//! ```
//!
//! Every answer is a value that derives `Serialize` with the glossary's names; the caller renders it. Nothing here
//! writes, opens a file, reads a clock or knows a terminal. A view is frozen, so an answer is a function of the view.

pub mod archive;
mod bearers;
pub mod blame;
pub mod bodies;
pub mod chain;
pub mod context;
pub mod cost;
pub mod cursor;
pub mod diff;
pub mod erased;
pub mod events;
pub mod explain;
pub mod export;
pub mod facts;
pub mod filter;
pub mod find;
pub mod forks;
pub mod half;
pub mod items;
pub mod kept;
mod kinds;
mod lineage;
pub mod lost;
pub mod memory;
mod names;
mod params;
pub mod propose;
pub mod rows;
pub mod search;
pub mod served;
pub mod sessions;
pub mod simulate;
pub mod sound;
pub mod stats;
mod times;
pub mod titles;
pub mod todos;
pub mod undo;
pub mod when;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use bodies::Scanned;
pub use chain::{ChainEdge, ChainReport, chain};
pub use context::{
    ContextItem, ContextItems, ContextOwner, CurrentContext, MemoryRow, Window, context,
    items as context_items,
};
pub use cursor::{CursorError, PageCursor};
pub use diff::{DiffReport, DiffRow, ItemChange, diff};
pub use erased::{ErasureAnswer, ErasureRow};
pub use events::{EventRows, EventsQuestion, events};
pub use explain::{Explained, explain};
pub use facts::{may_hold, settled};
pub use filter::{Filter, ParseError};
pub use find::{FindError, FoundItem, ItemCandidate, find};
pub use forks::{ForkPlan, fork_plan};
pub use half::{HalfTime, half_time};
pub use items::{ItemRow, Which, items};
pub use rows::{ItemRows, item_rows};
pub use sessions::{SessionRow, SessionSketch, SessionsAsked, sessions};
pub use stats::{HostRow, KindRow, StatsReport, StatsSums, Tally, TallySums, stats};
pub use times::EventTimes;
