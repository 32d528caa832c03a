//! Reading a stream at a watermark: items, faces, placeholders, chains, reasons, figures.
//!
//! ```text
//! current(at) -> items in conversation order --item(ix, at)--> ItemView { input: FaceView, output: FaceView, .. }
//!                                             --placeholder(ix, face, at)--> the text instead, or how to make it
//! chain, edges, explain, visible, stats, log_lines: why it is so
//! ```
//!
//! Every read takes `at` and is a function of the state; nothing is cached and nothing is changed. Bodies are named,
//! never read: [`Placeholder::needs`] says which body a text is made from, [`render`] makes it.

mod chain;
mod digest;
mod explain;
mod item;
mod item_header;
mod lookup;
mod placeholder;
mod recorded;
mod served;
#[cfg(any(test, feature = "testing"))]
mod shortened;
mod stats;

pub use chain::{CHAIN_MEMBER_COUNT_MAX, Chain, ChainMember, EdgeView};
pub use explain::{Explanation, Protection, Rested, Visibility};
pub(in crate::fold) use item::FaceTokens;
pub use item::{CauseView, FaceView, ItemView};
pub use item_header::ItemHeader;
pub use lookup::{HashForm, TurnTokens};
pub use placeholder::{FaceState, Placeholder, Render, render};
pub use recorded::PartView;
pub use served::{PendingItem, ServedChange, ServedPlace};
#[cfg(any(test, feature = "testing"))]
pub use shortened::ShortenedView;
pub use stats::{KindStats, Stats, StatsKind};
