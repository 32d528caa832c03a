//! Acts on the context, serving, policy, and the store's own events.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::{Body, Text};
use crate::ids::{ItemId, Seq, Signature};

/// One item that an act hid.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hidden {
    /// The item.
    pub item: ItemId,
    /// Signature of the normalised pattern that found it; absent if it was named directly.
    pub pattern: Option<Signature>,
    /// What stands in its place, for a distillation.
    pub summary: Option<Body>,
}

/// Items were hidden on request.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Discarded {
    /// The targets as typed, a JSON array.
    pub targets: Body,
    /// What was hidden.
    pub items: Vec<Hidden>,
}

/// Items were hidden behind summaries on request.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Distilled {
    /// The targets as typed, a JSON array.
    pub targets: Body,
    /// What was hidden, each with its summary.
    pub items: Vec<Hidden>,
}

/// Items were shown again on request.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Restored {
    /// The targets as typed, a JSON array.
    pub targets: Body,
    /// What is shown again.
    pub items: Vec<ItemId>,
}

/// Items stay in the context until unpinned, whatever the rules say.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pinned {
    /// The items.
    pub items: Vec<ItemId>,
}

/// Items are subject to the rules again.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Unpinned {
    /// The items.
    pub items: Vec<ItemId>,
}

/// What was injected.
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
)]
#[serde(rename_all = "snake_case")]
pub enum InjectedKind {
    /// A reminder of the todo list.
    Reminder,
    /// A reflection, in automata mode.
    Reflection,
    /// Current memory.
    Memory,
    /// Something else of the host's.
    Other,
}

/// The host put a text into the context.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Injected {
    /// What it is; a newer reminder or reflection hides the earlier one.
    pub what: InjectedKind,
    /// The text.
    pub text: Body,
}

/// Why a served context was rebased.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(rename_all = "snake_case")]
pub enum RebaseCause {
    /// The provider's cache was cold.
    Cold,
    /// It pays within the horizon.
    Pays,
    /// The token budget.
    Budget,
    /// A user or the model asked.
    Asked,
}

/// From here on served contexts show what was concluded so far.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct ContextRebased {
    /// Number of the epoch that begins.
    pub epoch: u32,
    /// Why.
    pub why: RebaseCause,
    /// Pending items that are applied; empty means all.
    pub items: Vec<ItemId>,
}

/// A context was sent to the model.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct ContextServed {
    /// Key of the step it was sent for.
    pub step: String,
    /// Epoch it was made in.
    pub epoch: u32,
    /// Version of the renderer.
    pub renderer: u32,
    /// Digest of the bytes sent, keyed with the store's secret.
    pub digest: [u8; 32],
    /// Estimated tokens.
    pub tokens: u64,
    /// Format: `anthropic`, `openai`, ...
    pub format: String,
}

/// The policy in force from here on, whole. In the store's own stream: for all streams without one of their own.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PolicySet {
    /// The policy as JSON: a preset's name and every key with its value.
    pub policy: String,
    /// Why, if a reason was given.
    pub reason: Option<Text>,
}

/// A body, as an erasure names it.
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
)]
pub struct BodyAddress {
    /// The event that names it.
    pub seq: Seq,
    /// Its row within the event.
    pub row: u32,
}

/// Bodies were removed for good; their digests stay.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Erased {
    /// What was removed.
    pub bodies: Vec<BodyAddress>,
    /// Who asked.
    pub by: String,
    /// Why.
    pub reason: Text,
    /// Their contents, as digests keyed with the store's secret: they are refused when they come again.
    pub contents: Vec<[u8; 16]>,
}

/// A user looked at damage and chose to go on.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct DamageNoted {
    /// Segment.
    pub segment: u32,
    /// Byte offset in it.
    pub offset: u64,
    /// First seq that is lost.
    pub first: Seq,
    /// Last seq that is lost.
    pub last: Seq,
    /// What was said about it.
    pub note: String,
}
