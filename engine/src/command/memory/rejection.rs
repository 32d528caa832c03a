//! Reasons to refuse commands on memory: each says what to change.

use super::MemoryRef;
use crate::fold::memory::MemoryStatus;
use crate::ids::ItemId;

/// Why a command on memory is refused. Nothing is recorded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryRejection {
    /// The value is empty or white space.
    #[error("a {kind} needs a value; give a text that is not blank")]
    EmptyValue {
        /// Kind of the item that was to be added.
        kind: &'static str,
    },
    /// A preference without a key.
    #[error("a preference needs a key, such as package_manager")]
    EmptyKey,
    /// A key on an item that is not a preference.
    #[error("a {kind} has no key; only preferences do")]
    UnexpectedKey {
        /// Kind of the item that was to be added.
        kind: &'static str,
    },
    /// A name with control characters.
    #[error("the {what} {given:?} has control characters; leave them out")]
    ControlCharacters {
        /// Id, key, category or subject.
        what: &'static str,
        /// The name.
        given: String,
    },
    /// A text over its limit.
    #[error("the {what} has {bytes} bytes; at most {max} fit")]
    TooLong {
        /// Which text.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A list over its limit.
    #[error("{count} {what} were given; at most {max} fit")]
    TooMany {
        /// Which list.
        what: &'static str,
        /// How many.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// Confidence is no number from 0 to 1.
    #[error("confidence {given} is not between 0 and 1")]
    ConfidenceOutOfRange {
        /// The confidence, as given.
        given: f64,
    },
    /// No such lifespan.
    #[error("unknown lifespan '{given}'; use session, project or permanent")]
    UnknownLifespan {
        /// The lifespan, as given.
        given: String,
    },
    /// No such category.
    #[error("unknown {kind} category '{given}'; did you mean '{nearest}'? known: {}", known.join(", "))]
    UnknownCategory {
        /// Kind of the item that was to be added.
        kind: &'static str,
        /// The category, as given.
        given: String,
        /// The known category that is most like it.
        nearest: &'static str,
        /// All known categories.
        known: &'static [&'static str],
    },
    /// The id is taken.
    #[error("id '{id}' is taken by {item}; leave the id out or choose another")]
    IdTaken {
        /// The id.
        id: String,
        /// The item that has it.
        item: ItemId,
    },
    /// No such item in this view.
    #[error("no memory item {item} here; items of other projects cannot be named")]
    UnknownItem {
        /// The item, as given.
        item: MemoryRef,
    },
    /// Several items are called so.
    #[error("{item} names {} items: {}; give the id of one", ids.len(), ids.join(", "))]
    Ambiguous {
        /// The item, as given.
        item: MemoryRef,
        /// Ids of the items.
        ids: Vec<String>,
    },
    /// The id was recorded again since. Links and reinforcements go by id, and mean its newest version.
    #[error("{item} is an older version of {newest}; name that one")]
    OlderVersion {
        /// The item, as given.
        item: MemoryRef,
        /// The newest version.
        newest: ItemId,
    },
    /// The two items live in different streams.
    #[error(
        "{old} ({old_lifespan}) and {new} ({new_lifespan}) live apart; record the new item with lifespan {old_lifespan}"
    )]
    OtherScope {
        /// The older.
        old: MemoryRef,
        /// Its lifespan.
        old_lifespan: &'static str,
        /// The newer.
        new: MemoryRef,
        /// Its lifespan.
        new_lifespan: &'static str,
    },
    /// An item cannot take its own place.
    #[error("{item} cannot supersede itself")]
    SupersedesItself {
        /// The item.
        item: MemoryRef,
    },
    /// The edge would close a circle.
    #[error("{old} already took the place of {new}, directly or through others; restore {new} first")]
    Cycle {
        /// The older.
        old: MemoryRef,
        /// The newer.
        new: MemoryRef,
    },
    /// Nothing hides the item.
    #[error("{item} is {standing}; there is nothing to restore")]
    NothingToRestore {
        /// The item.
        item: MemoryRef,
        /// Its standing.
        standing: MemoryStatus,
    },
    /// The item was retracted before.
    #[error("{item} is already retracted")]
    AlreadyRetracted {
        /// The item.
        item: MemoryRef,
    },
    /// The view has no stream at all.
    #[error("there is no stream to record memory in; open a session or project first")]
    NoStream,
}
