//! The source of a todo's text.

use serde::Serialize;

use crate::ids::BodyId;

/// A source of one item's text. Later sources overlay earlier ones, field by field.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(rename_all = "snake_case")]
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum TodoSource {
    /// Element `index` of the JSON array of a list.
    List {
        /// The list.
        body: BodyId,
        /// Index of the element, from 0.
        index: u32,
    },
    /// A JSON object of its own.
    Change {
        /// The object.
        body: BodyId,
    },
}
