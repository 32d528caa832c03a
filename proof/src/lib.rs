//! Signed checkpoints of a store, and proofs that need no store.
//!
//! ```text
//! engine: leaves ---> event::commitment ---> tree ---> checkpoint ---> note (Ed25519)
//!                            |                 |            |
//!                            +------------> file: one event, or two checkpoints, for readers without a store
//! ```
//!
//! Pure: bytes and texts come in and go out. There are no files, clocks and random numbers here; the command line decides where
//! keys and checkpoints are kept.
//!
//! Trees and proofs are those of RFC 6962 with SHA-256; checkpoints, notes and the file of an event are those of C2SP
//! (tlog-checkpoint, signed-note, tlog-proof). So tools that are not ours can check them.

pub mod checkpoint;
pub mod claims;
pub mod event;
pub mod events;
pub mod file;
pub mod note;
#[cfg(test)]
mod tests;
pub mod tiles;
pub mod tree;
pub mod witness;

use acpdb_engine::ids::{Seq, StoreId};

/// Why a proof, note or key is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// It cannot be read: cut, padded, or of another kind.
    #[error("{what}")]
    Malformed {
        /// The fault.
        what: &'static str,
    },
    /// A signature names the key, and the key did not make it.
    #[error("the signature is not that of the key that it names: the text was changed, or the signature was")]
    Signature,
    /// Signed by other keys.
    #[error("it is signed with another key ({found})")]
    OtherKey {
        /// Names and ids of the keys.
        found: String,
    },
    /// The store is not the store of the key, or of the other part.
    #[error("it is of another store, {found}")]
    OtherStore {
        /// That store.
        found: StoreId,
    },
    /// The tree has another event there.
    #[error(
        "event {seq} is not in the tree that was signed: the event was changed or moved, or the proof was"
    )]
    NotIncluded {
        /// The event.
        seq: Seq,
    },
    /// The tree has other events there: at least one of several events differs.
    #[error(
        "the events are not those of the tree that was signed: one was changed or moved, or the proof was"
    )]
    NotCovered,
    /// A witness says something that is not true.
    #[error("the witness {name} {what}")]
    Witness {
        /// The name of its key.
        name: String,
        /// The fault.
        what: &'static str,
    },
    /// Text and digest of a body disagree.
    #[error("body {row} of event {seq} is not the one that was recorded")]
    Body {
        /// The event.
        seq: Seq,
        /// Its row.
        row: u32,
    },
    /// One history is not the beginning of the other.
    #[error("the events up to {old} are not the beginning of those up to {new}: one history was rewritten")]
    NotConsistent {
        /// The end of the smaller tree.
        old: Seq,
        /// The end of the larger tree.
        new: Seq,
    },
    /// Two histories of the same length.
    #[error("two histories up to {seq} were signed: the store was forked, or one of them was rewritten")]
    Fork {
        /// The end of both.
        seq: Seq,
    },
    /// Signed for an earlier time than a smaller tree.
    #[error("the checkpoint at {seq} claims an earlier time than one of fewer events: it is backdated")]
    Backdated {
        /// Its end.
        seq: Seq,
    },
}

impl ProofError {
    pub(crate) const fn malformed(what: &'static str) -> Self {
        Self::Malformed { what }
    }
}

pub use checkpoint::{Checkpoint, origin, store_of};
pub use claims::{Claims, Judged};
pub use event::{EventOpening, commitment};
pub use events::EventsProof;
pub use file::{Checked, ConsistencyProof, EventProof};
pub use note::{Note, SignerKey, VerifierKey};
pub use tiles::{Tile, Tiled, Tiler};
pub use tree::{Cover, Frontier, Hash, RootBuilder};
pub use witness::{WitnessKey, WitnessPolicy};
