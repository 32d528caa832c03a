//! The acpdb store: an append-only log of what an agent saw and did, folded into its current context and full history.
//!
//! ```text
//! ids secret text event registry entry travel fold propose serve command codec storage log index verify store
//! <---------------- pure -------------------------------->  <----------- shell ----------->
//! ```
//!
//! A module may use those to its left, never one to its right. The pure part does no IO and knows no clock, randomness
//! or threads. [`Store`] is where to begin.

pub mod codec;
pub mod command;
pub mod entry;
pub mod error;
pub mod event;
#[doc(hidden)]
pub mod failpoints;
pub mod fold;
pub mod ids;
pub mod index;
pub mod log;
pub mod propose;
pub mod registry;
pub mod secret;
pub mod serve;
pub mod storage;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod travel;
pub mod verify;

pub use error::Error;
pub use store::{
    ActReply, At, Atomicity, Batch, Builder, Commit, Durability, ERASE_REASON_BYTES_MAX, EraseReport,
    ErasedContent, ErasedWhy, Erasure, Events, Glimpse, HeadPlace, Memory, MemoryReceipt, MemoryScope,
    MergeOptions, MergeReport, Reading, Receipt, SealReport, SessionProposal, SessionSummary, ShownFace,
    Space, StateSpace, Store, StoreInfo, StreamName, Subscription, Ticket, VerifyOptions, View, verify_store,
};
