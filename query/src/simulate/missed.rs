//! Hidden texts that were used all the same, case by case: for people that judge the rules.

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
    /// The face that is hidden.
    pub face: Face,
    /// The rule or act that hid it.
    pub rule: String,
    /// Turns between the item and its use.
    pub age: u32,
    /// Estimated tokens of the hidden face.
    pub tokens: u64,
    /// The words.
    pub words: Vec<String>,
}
