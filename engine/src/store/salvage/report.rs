//! The options of a salvage, and its report.

use std::path::PathBuf;
use std::sync::Arc;

use crate::event::BodyAddress;
use crate::ids::{Seq, StoreId};
use crate::log::{LostKey, Violation, Witness};
use crate::storage::KeyRing;

/// Options of a salvage.
#[derive(Clone, Default)]
pub struct SalvageOptions {
    /// Backups of the store.
    pub backups: Vec<PathBuf>,
    /// The ring that opens the store, if it is encrypted. It opens the new store as well.
    pub keys: Option<Arc<dyn KeyRing>>,
}

/// The report of [`salvage`](super::salvage).
#[derive(Clone, Debug, serde::Serialize)]
#[must_use]
pub struct Salvaged {
    /// Name of this shape.
    pub schema: &'static str,
    /// The store that was read.
    pub source: StoreId,
    /// The store that was made.
    pub store: StoreId,
    /// Its folder.
    #[serde(serialize_with = "crate::text::paths::serialize_shown")]
    pub path: PathBuf,
    /// Events copied.
    pub events: u64,
    /// Those of them that come out of damaged frames: the checksum of their piece holds, the digest of the frame cannot.
    pub events_by_checksum: u64,
    /// Those of them that come from a backup.
    pub events_from_backups: u64,
    /// Bodies copied.
    pub bodies: u64,
    /// Those of them that come from a backup.
    pub bodies_from_backups: u64,
    /// Events from backups, as ranges of seqs, in order, of which nothing in the source says that they are its own: they follow the last
    /// place that both have, and a copy that was written to by itself has others there.
    pub unconfirmed_events: Vec<(Seq, Seq)>,
    /// Events that are lost, as ranges of seqs, in order.
    pub lost_events: Vec<(Seq, Seq)>,
    /// Bodies that are lost, though the events that name them are not.
    pub lost_bodies: Vec<BodyAddress>,
    /// Files of keys that could not be taken over: what they open is lost. They are put back from a copy of the store's folder `keys`, and the
    /// salvage done again.
    pub lost_keys: Vec<LostKey>,
    /// Streams whose signature key was lost and made anew: a call is not recognised as a repeat of one before the damage.
    pub new_keys: u64,
    /// Last seq of the source that anything knows of.
    pub source_head: Seq,
    /// Whether anything but the log itself says that it ended there. Else there may have been more.
    pub source_head_is_known: bool,
    /// Witnesses that say something else of the source than its log and the backups.
    pub contradicting: Vec<Witness>,
    /// Last seq of the new store.
    pub head: Seq,
    /// Everything that was damaged in the source, in the order of its log.
    pub violations: Vec<Violation>,
}

impl Salvaged {
    /// Whether all that the source ever held is known to be in the new store.
    pub fn is_whole(&self) -> bool {
        self.lost_events.is_empty()
            && self.unconfirmed_events.is_empty()
            && self.lost_bodies.is_empty()
            && self.lost_keys.is_empty()
            && self.new_keys == 0
            && self.source_head_is_known
            && self.contradicting.is_empty()
    }
}
