//! What was hidden and used all the same, case by case: to be looked at by people who judge the rules.

use acpdb_engine::event::Face;
use acpdb_engine::ids::ItemId;
use serde::Serialize;

/// A hidden face that alone had shown words which the model wrote later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Missed {
    /// The host's id of the session.
    pub session: String,
    /// The turn in which the words were written.
    pub turn: u32,
    /// The item that has them.
    pub used_by: ItemId,
    /// The item that is hidden.
    pub item: ItemId,
    /// Which face of it.
    pub face: Face,
    /// What hid it.
    pub rule: String,
    /// Turns between the item and its use.
    pub age: u32,
    /// Estimated tokens of what is hidden.
    pub tokens: u64,
    /// The words.
    pub words: Vec<String>,
}
