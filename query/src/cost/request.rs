//! One request to a model, by what was told of it.

use std::sync::Arc;

use acpdb_engine::event::{PART_TIER, SUM_TIER, TOTAL_TIER, Usage};
use acpdb_engine::ids::{Micros, Seq, StreamId};

/// A request, as its provider and its host told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct BilledRequest {
    /// Its stream.
    pub stream: StreamId,
    /// The event that told of it.
    pub seq: Seq,
    /// The time, as far as it is known.
    pub at: Option<Micros>,
    /// The model.
    pub model: Option<Arc<str>>,
    /// The service tier.
    pub tier: Option<Arc<str>>,
    /// Tokens.
    pub usage: Usage,
    /// The cost that the host tells, in dollars.
    pub host_says: Option<f64>,
}

impl BilledRequest {
    /// Whether it is a request of its own, and no part of another one or sum of some.
    pub fn counts(&self) -> bool {
        let tier = self.tier.as_deref().unwrap_or_default();
        !tier.ends_with(PART_TIER) && !matches!(tier, TOTAL_TIER | SUM_TIER)
    }

    /// Whether it is a host's sum of a session.
    pub(super) fn is_sum(&self) -> bool {
        self.tier.as_deref() == Some(SUM_TIER)
    }
}
