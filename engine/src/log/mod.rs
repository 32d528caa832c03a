//! The log: append whole commits durably, read them forward, find the end again after a crash.
//!
//! ```text
//! prepare (caller's thread) -> queue -> leader: write lock { catch up, conditions, one write } -> one fdatasync -> ack
//! open  -> tail clean? yes: done.  no: write lock { walk from the highest durable claim D to the end E;
//!                                          quarantine and zero torn bytes; rewrite and sync [D, E) }
//! read  -> frames up to the durable head; damage is reported and stepped over, never served
//! ```
//!
//! An event is an envelope and opaque bytes here; its meaning is decided above. Nothing is acknowledged, and
//! nothing is shown to another handle, before a successful sync covers it. Damage below the highest durable claim
//! is never cut and never repaired: the log opens, refuses appends, and reads around it. `docs/FORMAT.md` has the
//! bytes and the rules of recovery.
//!
//! Complete segments that are cold are sealed (`seal`): packed, under the same name. They are read by position and length as before
//! (`unpacked`). A file of places beside each segment says which frames hold a stream (`places`).
//!
//! Not here: the meaning of events, which commits are allowed (beyond "did this stream move"), lookups by anything but
//! seq, position and stream.

mod append;
mod backup;
mod bodies;
mod commit_queue;
mod complete_places;
mod contents;
mod create;
mod cursor;
mod erase;
mod erase_sealed;
mod error;
mod files;
mod frames;
mod group_commit;
mod handle;
mod open;
mod packed_check;
mod parallel_verify;
mod pieces;
mod place_run;
mod place_writer;
mod places;
mod places_check;
mod places_file;
mod places_state;
mod prepare;
mod primitives;
mod reading;
mod recovery_scan;
mod repair;
mod seal;
mod seal_lock;
mod seal_writer;
mod settle;
mod space;
mod tail;
#[cfg(test)]
mod tests;
mod unpacked;
mod verify;
mod witness;

pub use crate::codec::WrittenPlace as Head;
pub use append::Exclusive;
pub use backup::CopyParts;
pub(crate) use backup::note_erasures;
pub(crate) use create::{StoreFileState, identify, read_secret, rewrap_key, store_file_damage};
pub(crate) use cursor::Windows;
pub(crate) use erase::{ERASED, ERASING};
pub use erase::{ErasedFigures, Erasing};
pub use error::{Corruption, LogError};
#[cfg(any(test, feature = "testing"))]
pub(crate) use files::is_copy_name;
pub(crate) use files::{SECRET, STORE_FILE};
pub use frames::Frames;
pub use handle::{Appended, Condition, Log, LogOptions, Prepared, Recovery};
use handle::{LeaderState, ReadState};
pub use pieces::{CopyTarget, LogPiece, SegmentFacts, follow, piece_offset};
pub use place_run::StreamPlace;
pub use places::CompleteSegment;
pub(crate) use reading::Looks;
pub use seal::{SealFigures, SealOutcome};
pub use settle::PlacedCommit;
pub use space::{KindSpace, LogSpace, SegmentSpace};
pub use verify::{LogReport, Violation};
pub use witness::{Witness, WitnessKind, WitnessStatus};
