//! The rows of [`Facts`](super::Facts): one type for each thing that can be recorded, and the tables that help to find them.
//!
//! Tables that can be made of the rows are not saved: they are made at their first use. A session that is only read never makes them.

use std::sync::Arc;

use super::{Facts, swap};
use crate::event::{
    Body, Face, Hidden, InjectedKind, KeyKind, Outcome, PartKind, Role, Shown, TaskChanged, TaskEvicted,
    TodoRole, TodoUpdate, ToolClass,
};
use crate::fold::number::{KeyId, NONE, Name};
use crate::ids::{ItemId, Micros, Seq, Turn};

/// The kind of an item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum ItemKind {
    /// A tool call, with two faces.
    Call,
    /// A result whose call was never recorded.
    Result,
    /// A part of a message: text.
    Text,
    /// A part of a message: reasoning.
    Reasoning,
    /// A part of a message: image, audio, document.
    Media,
    /// A part of a message that is kept and sent, not interpreted.
    Opaque,
    /// A text that the host injected: a reminder, a reflection, memory.
    Injected,
}

/// An item.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct ItemFact {
    pub(crate) id: ItemId,
    pub(crate) recorded_at: Micros,
    /// Params of a call, else the content.
    pub(crate) body: Body,
    pub(crate) turn: Turn,
    /// Index into `messages`, or [`NONE`].
    pub(crate) message: u32,
    /// The next item of the message, or [`NONE`].
    pub(in crate::fold) next: u32,
    /// Index into `calls`, or [`NONE`].
    pub(crate) call: u32,
    /// Index into `extras`, or [`NONE`].
    pub(crate) extra: u32,
    pub(crate) kind: ItemKind,
    pub(crate) role: Role,
    /// Hidden from the model by the host itself.
    pub(crate) hidden: bool,
    /// A user text that switches automata mode on.
    pub(crate) automata: bool,
}

impl ItemFact {
    /// An item of the model, in no message.
    pub(crate) const fn new(seq: Seq, recorded_at: Micros, turn: Turn, kind: ItemKind, body: Body) -> Self {
        Self {
            id: ItemId::first(seq),
            recorded_at,
            body,
            turn,
            message: NONE,
            next: NONE,
            call: NONE,
            extra: NONE,
            kind,
            role: Role::Assistant,
            hidden: false,
            automata: false,
        }
    }
}

/// Rare fields of items and parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Extra {
    pub(crate) media_type: Option<Name>,
    pub(crate) signature: Option<Body>,
    pub(crate) injected: Option<InjectedKind>,
    pub(crate) task: Option<Name>,
}

/// A part of an output.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct PartFact {
    pub(crate) body: Body,
    /// Index into `extras`, or [`NONE`].
    pub(crate) extra: u32,
    pub(crate) kind: PartKind,
}

/// A range of a vector: index of the first, and of the one behind the last.
pub(crate) type Range = (u32, u32);

/// The fixed properties of a call.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct CallFact {
    pub(crate) host_id: Name,
    pub(crate) tool: Name,
    pub(crate) canonical_tokens: u32,
    pub(crate) label: u32,
    /// Interned signatures: as given, without nulls, resolved, both.
    pub(crate) compared: [u32; 4],
    /// Range in `keys`.
    pub(crate) keys: Range,
    /// Index into `todo_lists`, or [`NONE`].
    pub(crate) todos: u32,
    /// The call before it with the same host's id, or [`NONE`].
    pub(in crate::fold) previous_of_host: u32,
    /// The call before it with the same signature as given, or [`NONE`].
    pub(in crate::fold) previous_of_signature: u32,
    pub(crate) shown: Shown,
    pub(crate) class: ToolClass,
    pub(crate) volatile: bool,
    pub(crate) todo: TodoRole,
}

/// A key of a call.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct KeyFact {
    pub(crate) kind: KeyKind,
    pub(crate) class: ToolClass,
    pub(crate) given: Name,
    pub(crate) resolved: Option<Name>,
    pub(crate) id_given: KeyId,
    pub(crate) id_resolved: KeyId,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Finish {
    pub(crate) seq: Seq,
    pub(crate) recorded_at: Micros,
    pub(crate) host_id: Name,
    /// Range in `parts`.
    pub(crate) output: Range,
    pub(crate) task: Option<Name>,
    /// Index into `finish_extras`, or [`NONE`].
    pub(crate) extra: u32,
    /// The item of its own that the finish becomes when no call waits for it; [`NONE`] until then.
    pub(crate) orphan: u32,
    pub(crate) outcome: Outcome,
}

/// Rare fields of results.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct FinishExtra {
    pub(crate) details: Option<Body>,
    #[rkyv(with = rkyv::with::Map<rkyv::with::Unshare>)]
    pub(crate) todos: Option<Arc<TodoUpdate>>,
}

/// A face as the host rewrote it.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct FaceRevision {
    pub(crate) seq: Seq,
    pub(crate) item: ItemId,
    pub(crate) face: Face,
    /// Range in `parts`.
    pub(crate) parts: Range,
}

/// A message.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct MessageFact {
    pub(crate) key: Name,
    /// The message's first item in order of recording, and the last; [`NONE`] without any.
    pub(super) first: u32,
    pub(super) last: u32,
    /// The first event that named the message.
    pub(crate) since: Seq,
    pub(crate) role: Role,
    pub(crate) hidden: bool,
}

/// An act on the context.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct ActFact {
    pub(crate) seq: Seq,
    pub(crate) items: Vec<Hidden>,
}

/// A completed task's eviction, or the rolling prune of an active one.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct EvictionFact {
    pub(crate) seq: Seq,
    pub(crate) task: Name,
    pub(crate) summary: Option<Body>,
}

/// The changes of tasks that a call's parameters ask for, and the ends of those that it completes, each with its eviction.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct TaskCall {
    pub(crate) seq: Seq,
    pub(crate) change: TaskChanged,
    pub(crate) ends: Vec<(TaskEvicted, u32)>,
}

/// Sums over the parts of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) tokens: u64,
    pub(crate) lines: u64,
}

impl Size {
    pub(crate) fn of(parts: &[PartFact]) -> Self {
        let mut size = Self::default();
        for part in parts {
            size.bytes = size.bytes.saturating_add(part.body.bytes);
            size.tokens = size.tokens.saturating_add(u64::from(part.body.tokens));
            size.lines = size.lines.saturating_add(u64::from(part.body.lines));
        }
        size
    }

    pub(crate) fn of_body(body: &Body) -> Self {
        Self { bytes: body.bytes, tokens: u64::from(body.tokens), lines: u64::from(body.lines) }
    }
}

/// The item kind of a message part.
pub(crate) const fn kind_of(part: PartKind) -> ItemKind {
    match part {
        PartKind::Text => ItemKind::Text,
        PartKind::Reasoning => ItemKind::Reasoning,
        PartKind::Media => ItemKind::Media,
        // Parts of these kinds stand for calls that a host records apart; they are kept and sent.
        PartKind::Call | PartKind::Result | PartKind::Opaque => ItemKind::Opaque,
    }
}

impl Facts {
    pub(super) fn message_of(&self) -> &Vec<u32> {
        self.message_of.get_or_init(|| {
            let mut known = Vec::new();
            let named = |message: &&MessageFact| !self.names.text(message.key).is_empty();
            for (number, message) in (0..).zip(&self.messages).filter(|(_, message)| named(message)) {
                swap(&mut known, message.key.at(), number);
            }
            known
        })
    }

    pub(super) fn newest_of_host(&self) -> &Vec<u32> {
        self.newest_of_host.get_or_init(|| self.newest(|call| call.host_id.0))
    }

    pub(super) fn newest_of_signature(&self) -> &Vec<u32> {
        self.newest_of_signature.get_or_init(|| self.newest(|call| call.compared[0]))
    }

    /// The newest call by a number that calls have.
    fn newest(&self, number: fn(&CallFact) -> u32) -> Vec<u32> {
        let mut newest = Vec::new();
        for (ix, item) in (0..).zip(&self.items) {
            if let Some(call) = self.calls.get(item.call as usize) {
                swap(&mut newest, number(call) as usize, ix);
            }
        }
        newest
    }
}
