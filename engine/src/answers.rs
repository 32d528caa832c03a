//! The parts of answers: of views, explanations, chains, receipts and reports.

pub use crate::command::ingest_state::OpenCall;
pub use crate::command::memory::{MemoryRef, MemoryRejection};
pub use crate::command::{ContextRejection, Rejection};
pub use crate::error::Damage;
pub use crate::fold::memory::{
    Confidence, MemoryAt, MemoryChain, MemoryEdge, MemoryInsights, MemoryItem, MemoryLayer, MemoryView,
};
pub use crate::fold::{
    CauseView, ChainMember, EdgeView, FaceState, FaceView, ItemKind, KindStats, PartView, PendingItem,
    Placeholder, Protection, Rested, RuleKind, ShortenKind, Stats, StatsKind, Status, Visibility,
};
pub use crate::log::Recovery;
pub use crate::store::{
    Backup, EraseReport, ErasedContent, ErasedWhy, Erasure, Events, MemoryReceipt, Remembered, Resumed,
    SealReport, SessionSummary, ShownFace, Space, StateSpace, StoreFork, StoreImport, StoreInfo, StoreMember,
    Stores, StreamName, Transaction, VerifyOptions, stores_in,
};
pub use crate::text::{HashTarget, Json, Label};
pub use crate::verify::{Contradiction, Verdict, VerifyReport, verify_folder};
