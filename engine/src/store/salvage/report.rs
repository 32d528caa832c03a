//! The report of a salvage.

use std::path::PathBuf;

use crate::event::BodyAddress;
use crate::ids::{Seq, StoreId};
use crate::log::{Violation, Witness};

/// The report of [`salvage`](super::salvage).
#[derive(Clone, Debug, serde::Serialize)]
#[must_use]
pub struct Salvaged {
    /// Name of the report's schema.
    pub schema: &'static str,
    /// The store that was read.
    pub source: StoreId,
    /// The store that was made.
    pub store: StoreId,
    /// The folder of the new store.
    #[serde(serialize_with = "crate::text::paths::serialize_shown")]
    pub path: PathBuf,
    /// Events copied.
    pub events: u64,
    /// Bodies copied.
    pub bodies: u64,
    /// Events that are lost, as ranges of seqs, in order.
    pub lost_events: Vec<(Seq, Seq)>,
    /// Lost bodies of events that are not lost.
    pub lost_bodies: Vec<BodyAddress>,
    /// Streams whose signature key was lost and made anew. In them a call is not recognised as a repeat of a call before the damage.
    pub new_keys: u64,
    /// Whether the source's secret was lost. The new store has one of its own, so it does not know its events by their ids: a
    /// recording that was imported before is imported a second time.
    pub has_new_secret: bool,
    /// Last known seq of the source.
    pub source_head: Seq,
    /// Whether a witness says that the source ended there. If not, there may have been more events.
    pub source_head_is_known: bool,
    /// Witnesses that contradict the source's log.
    pub contradicting: Vec<Witness>,
    /// Last seq of the new store.
    pub head: Seq,
    /// All damage in the source, in the order of its log.
    pub violations: Vec<Violation>,
}

impl Salvaged {
    /// Whether all that the source ever held is known to be in the new store, and known by its ids.
    pub fn is_whole(&self) -> bool {
        self.lost_events.is_empty()
            && self.lost_bodies.is_empty()
            && self.new_keys == 0
            && !self.has_new_secret
            && self.source_head_is_known
            && self.contradicting.is_empty()
    }
}
