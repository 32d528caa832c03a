//! Erasures that are on record, as far as they were read.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ids::Seq;
use crate::secret::{Secret, Withheld};

/// An erasure as it is on record.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Erasure {
    /// The event that records it.
    pub seq: Seq,
    /// Name of the person or program that asked for it.
    pub by: String,
    /// The reason.
    pub reason: String,
    /// No person asked for it: damage took the bytes.
    #[serde(skip)]
    pub is_loss: bool,
}

/// Erasures by the row that they removed, up to a watermark.
#[derive(Debug, Default)]
pub(super) struct Erasures {
    pub(super) watermark: Seq,
    /// The newest event that records an erasure. Data made from the log before it may hold an erased text.
    pub(super) newest: Seq,
    /// The event that records the erasure of a row.
    pub(super) by_row: FxHashMap<(Seq, u32), Seq>,
    /// The erasures that such events record, as far as they were asked for.
    pub(super) told: FxHashMap<Seq, Arc<Erasure>>,
    /// Contents that must not be stored again.
    pub(super) withheld: Withheld,
}

impl Erasures {
    pub(super) fn new(secret: Secret) -> Self {
        Self { withheld: Withheld::new(secret), ..Self::default() }
    }
}
