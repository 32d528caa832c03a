//! Which streams know a name: a session's, a call's, a file's, a memory item's. For questions that cross sessions.
//!
//! ```text
//! Frame -> rows_of -> Rows -> (kind, name, stream) -> newest seq: redb, or a map in memory as the judge
//! ```
//!
//! The log is the truth and the index a cache: `index.redb` may be deleted at any time, is rebuilt from frames, and a
//! rebuilt index equals the live one row by row. It holds names, never contents, and no places: those are beside the segments. Rows are keyed by
//! the streams' ids, so that they mean the same in any order of making.
//!
//! Nothing here can fail a caller. An index that is damaged, of another store or version, or that knows what the log does not hold, is
//! removed and begun anew. An index that another process holds is [`Bypassed`]: then answers come from the log, slower. redb can
//! panic on damaged files, so every call into it is contained (see [`panic_is_contained`]). Every row carries a
//! checksum over key and value. Only a lost name goes unnoticed in a file too large to be checked at open, so a name that is not found is
//! a hint, not a proof.
//!
//! Not here: anything that needs the fold (which item superseded which), and bodies.

mod backend;
mod file;
mod files;
mod frames;
mod indexer;
mod layout;
mod lookup;
mod memory;
mod owner;
mod rebuild;
mod rows;
#[cfg(test)]
mod tests;

use crate::codec::FORMAT_VERSION;
use crate::ids::{Link, Position, Seq, StoreId, StreamId};
use crate::log::Log;

pub use crate::codec::FramePlace;
pub use file::panic_is_contained;
pub use files::{INDEX_NAME, IndexOptions, Unchanged};
pub use frames::{FrameSource, SourceFault};
pub use indexer::{Indexer, IndexerOptions};
pub use memory::MemoryIndex;
pub use owner::{Index, IndexState};
pub use rebuild::{LiveComparison, Rebuilt, reindex};
pub(crate) use rows::SESSION_OPENED;
pub use rows::{IndexRows, as_kept, from_its_end, rows_of};

/// Version of the rows. An index of any other version is removed and rebuilt.
pub const INDEX_VERSION: u32 = 6;
/// Longest name in the index, in bytes. Of a longer one the beginning is kept; of a file, the end.
pub const NAME_BYTES_MAX: usize = 512;

/// How far an index has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermark {
    /// Everything up to this seq is indexed; [`Seq::ZERO`] if nothing is.
    pub seq: Seq,
    /// The last frame that is indexed.
    pub last: Option<Position>,
    /// The end of that frame; the next one follows it.
    pub end: Option<Position>,
    /// Link of that frame: a witness of the log as it was.
    pub link: Link,
}

/// The kind of thing that a name names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum NameKind {
    /// A stream, as its host calls it.
    Session = 1,
    /// A tool call, by the host's id: its start, and its end.
    Call = 2,
    /// A tool call, by its short label such as `r_a1b2c`.
    Label = 3,
    /// A file that a call or a change was about, as given and as resolved, each [from its end](from_its_end).
    File = 4,
    /// A memory item, by its id and by `category/key`.
    Memory = 5,
}

impl NameKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Session, Self::Call, Self::Label, Self::File, Self::Memory];
}

/// A stream that knows a name, and its newest event that bears the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameEntry {
    /// The stream that knows it.
    pub stream: StreamId,
    /// The newest event of the stream that bears it.
    pub seq: Seq,
}

/// Which store an index belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The store's id.
    pub store: StoreId,
    /// The store's format version.
    pub format: u32,
}

impl Identity {
    pub(crate) fn of(log: &Log) -> Self {
        Self { store: log.store(), format: FORMAT_VERSION }
    }
}

/// When rows reach the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexDurability {
    /// Some time later, or with the next [`IndexDurability::Immediate`]. A crash takes them back to the last one; so may the end of
    /// the handle.
    None,
    /// Before `apply` returns, with all rows before them.
    Immediate,
}

/// The index is not used, for this reason. Answers come from the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Bypassed {
    /// The reason, for a person: one line without a full stop.
    pub reason: String,
}
