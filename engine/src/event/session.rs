//! Sessions, turns and hosts' changes to a context.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::cbor::{numbers, part, record};
use super::kind::{EventKind, NamedBody};
use super::{Body, Text};
use crate::ids::{ItemId, Seq, StreamId};
use crate::text::words::{count, word};

numbers! {
    /// The kind of a stream.
    #[derive(Default)]
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
}

/// The session that started this session, and the call that did it.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Parent {
    /// The parent's stream.
    pub stream: StreamId,
    /// The host's id of the call in it, if known.
    pub call: Option<String>,
}

part!(Parent { 0 stream, 1 call });

/// A stream began. Always the first event of its stream.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SessionOpened {
    /// Session, project or user.
    pub scope: Scope,
    /// The host program: `claude-code`, `opencode`, ...; `acpdb` for sessions made by hand.
    pub host: String,
    /// The host's id of the session, or the project's or user's name.
    pub name: String,
    /// The project's name, if the session has one; its memory lives in that project's stream.
    pub project: Option<String>,
    /// For a subagent: the session and the call that started it.
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

record!(SessionOpened {
    4 scope, 5 host, 6 name, 7 project, 8 parent, 9 cwd, 10 title, 11 host_version, 12 policy,
    13 key,
});

impl EventKind for SessionOpened {
    const HAS_TEXTS: bool = true;

    fn in_words(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        format!("{} {} {title}", self.host, self.name)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, prose, text};

        Self {
            scope: Scope::Session,
            host: "opencode".to_owned(),
            name: "ses_1".to_owned(),
            project: text("shop"),
            parent: Some(Parent { stream: StreamId([1; 16]), call: text("call_0") }),
            cwd: text("/w"),
            title: prose(1),
            host_version: text("1.0"),
            policy: Some(Seq(1)),
            key: body(0, 32),
        }
    }

    fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
        self.title.iter_mut().for_each(each);
    }
}

/// Fields of the stream changed. Absent fields keep their value.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SessionChanged {
    /// New title.
    pub title: Option<Text>,
    /// New working folder.
    pub cwd: Option<String>,
    /// New project.
    pub project: Option<String>,
    /// New host version.
    pub host_version: Option<String>,
    /// The host's id of the call that started it, where that was not known when it was opened.
    pub call: Option<String>,
}

record!(SessionChanged { 4 title, 5 cwd, 6 project, 7 host_version, 8 call });

impl EventKind for SessionChanged {
    const HAS_TEXTS: bool = true;

    fn in_words(&self) -> String {
        let title = self.title.as_ref().map(ToString::to_string);
        let fields =
            [("title", &title), ("cwd", &self.cwd), ("project", &self.project), ("call", &self.call)];
        let set =
            fields.iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}={value}")));
        set.collect::<Vec<_>>().join(" ")
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{prose, text};

        Self {
            title: prose(0),
            cwd: text("/v"),
            project: text("p"),
            host_version: text("2"),
            call: text("call_1"),
        }
    }

    fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
        self.title.iter_mut().for_each(each);
    }
}

/// A project goes by another name from here on: its folder was moved. Always in the store's own stream.
///
/// Folders below the old one go by the new one, too. A project that is renamed to itself goes by its own name again.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ProjectRenamed {
    /// The name that events of sessions bear.
    pub old: String,
    /// The name that it goes by.
    pub new: String,
}

record!(ProjectRenamed { 4 old, 5 new });

impl EventKind for ProjectRenamed {
    fn in_words(&self) -> String {
        format!("{} to {}", self.old, self.new)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self { old: "/w".to_owned(), new: "/v".to_owned() }
    }
}

/// The session ended. Nothing stops a host from going on: a later event reopens it.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SessionClosed {
    /// The reason, if the host said one.
    pub reason: Option<Text>,
}

record!(SessionClosed { 4 reason });

impl EventKind for SessionClosed {
    const HAS_TEXTS: bool = true;

    fn in_words(&self) -> String {
        self.reason.clone().unwrap_or_default().into()
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::prose;

        Self { reason: prose(0) }
    }

    fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
        self.reason.iter_mut().for_each(each);
    }
}

numbers! {
    /// The counter that advanced.
    #[derive(Default)]
    pub enum TurnKind {
        /// One step of the model: the turn of the rules.
        #[default]
        Step = 0,
        /// One prompt of the user: a second counter; the turn stays.
        Prompt = 1,
    }
}

/// A step of the model, or a prompt of the user, began. The only event that makes turns pass.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TurnStarted {
    /// Step or prompt.
    pub kind: TurnKind,
    /// The host's key of the step, such as a message id.
    pub key: String,
    /// The host's own number, where it counts: the turn becomes the larger of this and the present one. Absent: one more.
    pub number: Option<u32>,
}

record!(TurnStarted { 4 kind, 5 key, 6 number });

impl EventKind for TurnStarted {
    fn in_words(&self) -> String {
        let number = self.number.map(|number| format!(" {number}")).unwrap_or_default();
        format!("{}{number} {}", word(&self.kind), self.key)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self { kind: TurnKind::Prompt, key: "k".to_owned(), number: Some(4) }
    }
}

/// The part of a request before the messages: system prompt, tools, model, parameters. Absent fields keep their value.
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

record!(PromptSet { 4 system, 5 tools, 6 model, 7 params });

impl EventKind for PromptSet {
    fn in_words(&self) -> String {
        self.model.clone().unwrap_or_default()
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, text};

        Self { system: Some(body(0, 5)), tools: Some(body(1, 5)), model: text("m"), params: Some(body(2, 5)) }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        let mut all: Vec<_> =
            self.system.map(|body| NamedBody::telling("system", body)).into_iter().collect();
        all.extend(self.tools.map(|body| NamedBody::beside("tools", body)));
        all.extend(self.params.map(|body| NamedBody::beside("params", body)));
        all
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        let Self { system, tools, params, model: _ } = self;
        [system, tools, params].into_iter().flatten().for_each(each);
    }
}

numbers! {
    /// The cause of a replaced context.
    #[derive(Default)]
    pub enum ReplaceCause {
        /// The host summarised the context.
        #[default]
        Compaction = 0,
        /// The host set a new list of messages.
        Host = 1,
        /// The user cleared the conversation.
        Cleared = 2,
    }
}

/// The host replaced its context: items that `order` does not name leave it, the named ones stay, in that order.
///
/// Items recorded later follow. A compaction names none of the earlier ones; its summary is a message recorded after.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ContextReplaced {
    /// The cause.
    pub cause: ReplaceCause,
    /// Items that stay, in their new order.
    pub order: Vec<ItemId>,
    /// Tokens before, if the host said.
    pub tokens_before: Option<u64>,
}

record!(ContextReplaced { 4 cause, 5 order, 6 tokens_before });

impl EventKind for ContextReplaced {
    fn in_words(&self) -> String {
        format!("{}, {} kept", word(&self.cause), count(self.order.len() as u64, "item"))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::item;

        Self { cause: ReplaceCause::Host, order: vec![item()], tokens_before: Some(9) }
    }
}

/// The host put a text of its own in place of these outputs; the calls stay.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HostCleared {
    /// The calls (or parts) whose output was cleared.
    pub items: Vec<ItemId>,
    /// Calls named by the host's id, where the feed knows no item: the newest finished call of that id.
    pub calls: Vec<String>,
    /// The text that the model sees instead, if known.
    pub text: Option<Body>,
}

record!(HostCleared { 4 items, 5 calls, 6 text });

impl EventKind for HostCleared {
    fn in_words(&self) -> String {
        count((self.items.len() + self.calls.len()) as u64, "item")
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, item};

        Self { items: vec![item()], calls: vec!["c".to_owned()], text: Some(body(0, 3)) }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        self.text.map(|body| NamedBody::beside("text", body)).into_iter().collect()
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        self.text.iter_mut().for_each(each);
    }
}

/// Everything recorded in the stream after `to` left the active branch.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Rewound {
    /// The last seq that stays.
    pub to: Seq,
}

record!(Rewound { 4 to });

impl EventKind for Rewound {
    fn in_words(&self) -> String {
        format!("to {}", self.to)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self { to: Seq(5) }
    }
}

/// The stream continues another one, sharing its history up to `at`.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Forked {
    /// The stream whose history is shared.
    pub from: StreamId,
    /// The last seq of it that is shared.
    pub at: Seq,
}

record!(Forked { 4 from, 5 at });

impl EventKind for Forked {
    fn in_words(&self) -> String {
        format!("from {} at {}", self.from, self.at)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self { from: StreamId([2; 16]), at: Seq(6) }
    }
}

/// Any other record of a host: kept, counted, never part of a context.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HostRecorded {
    /// The host's own name for the kind of record.
    pub record: String,
    /// Its subject: a host id, if the record names one.
    pub about: Option<String>,
    /// The record, or the part of it that is in no other event. Absent if the stamp's wire form is the whole record.
    pub raw: Option<Body>,
}

record!(HostRecorded { 4 record, 5 about, 6 raw });

impl EventKind for HostRecorded {
    fn in_words(&self) -> String {
        self.record.clone()
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, text};

        Self { record: "summary".to_owned(), about: text("x"), raw: Some(body(0, 3)) }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        self.raw.map(|body| NamedBody::telling("raw", body)).into_iter().collect()
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        self.raw.iter_mut().for_each(each);
    }
}
