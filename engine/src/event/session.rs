//! Sessions, turns and what hosts do to a context.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::{Body, Text};
use crate::ids::{ItemId, Seq, StreamId};

/// What a stream is.
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
#[repr(u8)]
pub enum Scope {
    /// One conversation.
    #[default]
    Session = 0,
    /// A project: memory that its sessions share.
    Project = 1,
    /// A user: memory that outlives projects.
    User = 2,
}

/// The session that started this one, and the call it did so by.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Parent {
    /// The parent's stream.
    pub stream: StreamId,
    /// The host's id of the call in it, if known.
    pub call: Option<String>,
}

/// A stream began. Always the first event of its stream.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SessionOpened {
    /// Session, project or user.
    pub scope: Scope,
    /// The host program: `claude-code`, `opencode`, ...; `acpdb` for sessions made by hand.
    pub host: String,
    /// The host's id of the session, or the project's or user's name.
    pub name: String,
    /// The project's name, if the session has one; its memory lives in that project's stream.
    pub project: Option<String>,
    /// For a subagent: where it was started.
    pub parent: Option<Parent>,
    /// Working folder, to resolve relative paths.
    pub cwd: Option<String>,
    /// A title for people.
    pub title: Option<Text>,
    /// Version of the host program, if known.
    pub host_version: Option<String>,
    /// The policy event in force, if known.
    pub policy: Option<Seq>,
    /// 32 random bytes that key the stream's signatures.
    pub key: Body,
}

/// Something about the stream is known better now. Absent fields keep their value.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SessionChanged {
    /// New title.
    pub title: Option<Text>,
    /// New working folder.
    pub cwd: Option<String>,
    /// New project.
    pub project: Option<String>,
    /// New host version.
    pub host_version: Option<String>,
}

/// The session ended. Nothing stops a host from going on: a later event reopens it.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SessionClosed {
    /// Why, if the host said.
    pub reason: Option<Text>,
}

/// What advanced.
#[derive(
    Archive, Serialize, Deserialize, ToJson, FromJson, Clone, Copy, PartialEq, Eq, Hash, Debug, Default,
)]
#[serde(rename_all = "snake_case")]
pub enum TurnKind {
    /// One step of the model: the turn of the rules.
    #[default]
    Step,
    /// One prompt of the user: a second counter; the turn stays.
    Prompt,
}

/// A step of the model, or a prompt of the user, began. The only event that makes turns pass.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TurnStarted {
    /// Step or prompt.
    pub kind: TurnKind,
    /// The host's key of the step, such as a message id.
    pub key: String,
    /// The host's own number, where it counts: the turn becomes the larger of this and the present one. Absent: one more.
    pub number: Option<u32>,
}

/// What stands before the messages: system prompt, tools, model, parameters. Absent fields keep their value.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PromptSet {
    /// System prompt.
    pub system: Option<Body>,
    /// Tool definitions, JSON as the host sends it.
    pub tools: Option<Body>,
    /// Model name.
    pub model: Option<String>,
    /// Further request parameters, JSON.
    pub params: Option<Body>,
}

/// Why a context was replaced.
#[derive(
    Archive, Serialize, Deserialize, ToJson, FromJson, Clone, Copy, PartialEq, Eq, Hash, Debug, Default,
)]
#[serde(rename_all = "snake_case")]
pub enum ReplaceCause {
    /// The host summarised what was there.
    #[default]
    Compaction,
    /// The host set a new list of messages.
    Host,
    /// The user cleared the conversation.
    Cleared,
}

/// The host replaced its context: items that `order` does not name leave it, the named ones stay, in that order.
///
/// Items recorded later follow. A compaction names none of the earlier ones; its summary is a message recorded after.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ContextReplaced {
    /// Why.
    pub cause: ReplaceCause,
    /// Items that stay, in their new order.
    pub order: Vec<ItemId>,
    /// Tokens before, if the host said.
    pub tokens_before: Option<u64>,
}

/// The host put a text of its own in place of these outputs; the calls stay.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HostCleared {
    /// The calls (or parts) whose output was cleared.
    pub items: Vec<ItemId>,
    /// Calls named by the host's id, where the feed knows no item: the newest finished call of that id.
    pub calls: Vec<String>,
    /// What the model sees instead, if known.
    pub text: Option<Body>,
}

/// Everything recorded in the stream after `to` left the active branch.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Rewound {
    /// The last seq that stays.
    pub to: Seq,
}

/// The stream continues another one, sharing its history up to `at`.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Forked {
    /// The stream whose history is shared.
    pub from: StreamId,
    /// The last seq of it that is shared.
    pub at: Seq,
}

/// Whatever else a host wrote: kept, counted, never part of a context.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HostRecorded {
    /// The host's own name for the kind of record.
    pub record: String,
    /// What it is about: a host id, if it names one.
    pub about: Option<String>,
    /// The record, or what of it is in no other event. Absent when the stamp's wire form is all there is.
    pub raw: Option<Body>,
}
