//! Memory items: facts, preferences, decisions, notes, and what becomes of them.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::{Body, Text};
use crate::ids::{ItemId, Micros, Signature};

/// What a memory item is.
#[derive(
    Archive,
    Serialize,
    Deserialize,
    ToJson,
    FromJson,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Something that is so.
    #[default]
    Fact,
    /// How the user wants it: category and key to value.
    Preference,
    /// What was decided.
    Decision,
    /// A remark.
    Note,
}

/// How long an item lives.
#[derive(
    Archive,
    Serialize,
    Deserialize,
    ToJson,
    FromJson,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
)]
#[serde(rename_all = "snake_case")]
pub enum Lifespan {
    /// Until its session ends.
    #[default]
    Session,
    /// As long as the project.
    Project,
    /// For ever.
    Permanent,
}

/// Where an item comes from.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemorySource {
    /// The message part or call.
    pub item: ItemId,
    /// First byte of the text it rests on.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
}

/// A memory item was recorded.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemoryRecorded {
    /// Id of the item, unique in its stream.
    pub id: String,
    /// What it is.
    pub kind: MemoryKind,
    /// Category: `tooling`, `personal`, `architecture`, ...
    pub category: Text,
    /// For a preference: its key.
    pub key: Option<Text>,
    /// For a fact or decision: what it is about, where known.
    pub subject: Option<Text>,
    /// The value, fact, description or remark.
    pub value: Body,
    /// Signature of the value, case folded: equal values are reinforcement.
    pub value_signature: Signature,
    /// For a decision: why.
    pub rationale: Option<Body>,
    /// For a decision: what else was considered.
    pub alternatives: Vec<Body>,
    /// For a decision: files it concerns.
    pub related_files: Vec<Text>,
    /// Confidence in hundredths, 0 to 100.
    pub confidence: u8,
    /// How long it lives.
    pub lifespan: Lifespan,
    /// When it came about, if that is not when it was recorded.
    pub created: Option<Micros>,
    /// Where it comes from.
    pub source: Option<MemorySource>,
    /// Ids of items that it supersedes.
    pub replaces: Vec<String>,
    /// Ids of items that supersede it, as its own record says.
    pub superseded_by: Vec<String>,
    /// What the record itself calls its status; never decides whether it is current.
    pub status: Option<Text>,
    /// Whatever else the record said, JSON.
    pub extra: Option<Body>,
}

/// One item took another's place.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemorySuperseded {
    /// Id of the older.
    pub old: String,
    /// Id of the newer.
    pub new: String,
    /// Why.
    pub reason: Option<Body>,
}

/// An item was confirmed: confidence rises, decay starts anew.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemoryReinforced {
    /// Id of the item.
    pub id: String,
    /// By how many hundredths.
    pub amount: u8,
    /// When, if that is not when it was recorded.
    pub at: Option<Micros>,
}

/// An item no longer holds, and nothing takes its place.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemoryRetracted {
    /// Id of the item.
    pub id: String,
    /// Why.
    pub reason: Option<Body>,
    /// When, if that is not when it was recorded.
    pub at: Option<Micros>,
}
