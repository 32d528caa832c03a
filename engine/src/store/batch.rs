//! The facts that a commit is asked to record, and the receipt for them.

use crate::entry::{Entry, Fact, StreamInfo};
use crate::event::Scope;
use crate::ids::{ItemId, Micros, Seq};

/// Facts of one stream that belong together.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::{Atomicity, Batch, Entry, Role, StreamInfo};
///
/// let stream = StreamInfo { parent: Some((session.id(), None)), ..StreamInfo::session("my-agent", "sub-1") };
/// let batch = Batch { stream, entries: vec![Entry::message("m1", Role::User, "look for the cause")] };
/// assert_eq!(store.commit(&[batch], Atomicity::Split)?.event_count, 2); // the subagent's session, and its message
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    /// The stream; opened if it is new.
    pub stream: StreamInfo,
    /// Its facts, in order.
    pub entries: Vec<Entry>,
}

impl Batch {
    /// Whether facts of the batch may go to other streams than its own: a session's facts for memory.
    pub(super) fn is_moved(&self) -> bool {
        let is_memory = |entry: &Entry| matches!(entry.fact, Fact::Memory(_));
        self.stream.scope == Scope::Session && self.entries.iter().any(is_memory)
    }
}

/// The receipt for a commit. The commit is whole when you hold the receipt, and durable unless the store was opened with
/// [`Durability::Os`](crate::Durability::Os).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::{Entry, Role};
///
/// let receipt = session.append([Entry::message("m1", Role::User, "hello").origin("m1")])?;
/// assert_eq!((receipt.event_count, receipt.known_count), (2, 0));
/// assert_eq!(receipt.last_seq, store.head()?); // durable
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[must_use = "a receipt says what was recorded and what was known already"]
pub struct Receipt {
    /// First seq of the commit; [`Seq::ZERO`] if everything was known already.
    pub first_seq: Seq,
    /// Last seq of the commit.
    pub last_seq: Seq,
    /// Events recorded.
    pub event_count: u64,
    /// Entries that were known already and were skipped.
    pub known_count: u64,
    /// When the commit was recorded.
    pub recorded_at: Micros,
    /// First item of each entry, in order; for a revision the revised item; absent for an entry that was known. An entry
    /// that makes no item (the end of a call, a turn) names its event.
    pub items: Vec<Option<ItemId>>,
}

/// Whether a commit may become several.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::{Atomicity, Batch, Entry, Role, StreamInfo};
///
/// let batch = |name: &str| Batch {
///     stream: StreamInfo::session("my-agent", name),
///     entries: vec![Entry::message("m1", Role::User, "hello")],
/// };
/// // Both sessions, or none.
/// let _ = store.commit(&[batch("run-1"), batch("run-2")], Atomicity::One)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomicity {
    /// One commit, whole or not at all, whatever its facts refer to; too large is an error. A fact that names or revises
    /// another of the same call is drafted under the write lock, since only there the seqs of a commit are certain.
    One,
    /// Several commits in order, each whole or not at all: for imports, which can be repeated.
    Split,
}
