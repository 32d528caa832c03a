//! What was recorded, in the form the rules read: items, calls, keys, results, messages, acts.
//!
//! ```text
//! event --take in--> Item (one a part)  --call-->  Call (tool, keys, signature)  --keys-->  KeyFact
//!                    Finish, Revision, Act: what later events said about items
//! ```
//!
//! Facts are immutable and only grow; they are shared by every branch of the stream. What is *concluded* from them
//! stands elsewhere: the present in [`core`](super::core), everything ever concluded in [`history`](super::history).

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::few::Few;
use super::names::{Name, Names};
use crate::event::{
    Body, Face, InjectedKind, KeyKind, Outcome, Part, PartKind, Role, Shown, SignatureForm, TodoList,
    TodoRole, TodoUpdate, ToolClass,
};
use crate::ids::{ItemId, Micros, Seq, Signature, Turn};

/// Index of an item within its stream, in the order of recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ix(pub(crate) u32);

impl Ix {
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// A vector index as a number; streams hold far fewer than 2^32 of anything.
pub(crate) fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// "None" for packed indices.
pub(crate) const NONE: u32 = u32::MAX;

/// What an item is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: ItemId,
    pub(crate) kind: ItemKind,
    pub(crate) role: Role,
    pub(crate) turn: Turn,
    pub(crate) recorded_at: Micros,
    /// Params of a call, else the content.
    pub(crate) body: Body,
    pub(crate) media_type: Option<Name>,
    pub(crate) provider_signature: Option<Body>,
    /// Index into `messages`, or [`NONE`].
    pub(crate) message: u32,
    /// Index into `calls`, or [`NONE`].
    pub(crate) call: u32,
    pub(crate) injected: Option<InjectedKind>,
    pub(crate) task: Option<Name>,
    /// Hidden from the model by the host itself.
    pub(crate) hidden: bool,
}

/// What a call is.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) host_id: Name,
    pub(crate) tool: Name,
    pub(crate) canonical_tokens: u32,
    pub(crate) label: u32,
    /// Digits of the signature that its hash shows beyond the label, in the form with a letter and in the bare one.
    pub(crate) digits: (u8, u8),
    pub(crate) signature: Signature,
    /// Interned signatures: as given, without nulls, resolved, both.
    pub(crate) compared: [u32; 4],
    pub(crate) class: ToolClass,
    /// Range in `keys`.
    pub(crate) keys: (u32, u32),
    pub(crate) volatile: bool,
    pub(crate) todo: TodoRole,
    pub(crate) todos: Option<Arc<TodoList>>,
    pub(crate) shown: Shown,
}

/// What a key compares as: equal identities, equal keys. One for the text as given, one as resolved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KeyId(pub(crate) u32);

/// A key of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyFact {
    pub(crate) kind: KeyKind,
    pub(crate) class: ToolClass,
    pub(crate) given: Name,
    pub(crate) resolved: Option<Name>,
    pub(crate) id_given: KeyId,
    pub(crate) id_resolved: KeyId,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    pub(crate) seq: Seq,
    pub(crate) recorded_at: Micros,
    pub(crate) host_id: Name,
    pub(crate) outcome: Outcome,
    pub(crate) output: Box<[Part]>,
    pub(crate) details: Option<Body>,
    pub(crate) todos: Option<Arc<TodoUpdate>>,
    pub(crate) task: Option<Name>,
    /// The item of its own that it becomes when no call waits for it; [`NONE`] until then.
    pub(crate) orphan: u32,
}

/// A face as the host rewrote it.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) seq: Seq,
    pub(crate) item: ItemId,
    pub(crate) face: Face,
    pub(crate) parts: Box<[Part]>,
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) key: Name,
    pub(crate) role: Role,
    pub(crate) hidden: bool,
    /// Its parts and calls, in order of recording.
    pub(crate) items: Vec<Ix>,
}

/// One hidden item of an act.
#[derive(Clone, Debug)]
pub(crate) struct ActItem {
    pub(crate) item: ItemId,
    pub(crate) pattern: Option<Signature>,
    pub(crate) summary: Option<Body>,
}

/// An act on the context.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) seq: Seq,
    pub(crate) items: Vec<ActItem>,
}

/// A completed task's eviction, or the rolling prune of an active one.
#[derive(Clone, Debug)]
pub(crate) struct Eviction {
    pub(crate) seq: Seq,
    pub(crate) task: Name,
    pub(crate) summary: Option<Body>,
}

/// Everything recorded in a stream, as the rules read it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Facts {
    pub(crate) names: Names,
    /// In the order of recording, so sorted by id.
    pub(crate) items: Vec<Item>,
    pub(crate) calls: Vec<Call>,
    pub(crate) keys: Vec<KeyFact>,
    key_ids: FxHashMap<(KeyKind, Name), KeyId>,
    /// Keys of several fields.
    key_ids_of_fields: FxHashMap<KeyKind, FxHashMap<Box<[Name]>, KeyId>>,
    key_count: u32,
    pub(crate) finishes: Vec<Finish>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) messages: Vec<Message>,
    pub(crate) message_by_key: FxHashMap<Name, u32>,
    pub(crate) acts: Vec<Act>,
    pub(crate) evictions: Vec<Eviction>,
    /// User texts that switch automata mode on.
    pub(crate) automata: FxHashSet<u32>,
    signatures: FxHashMap<Signature, u32>,
    /// Signatures that share a label, in order: with its letter (20 bits), and bare (24 bits).
    labels: FxHashMap<(Option<char>, u32), Few<Signature>>,
    /// Calls by interned signature as given.
    pub(crate) by_signature: FxHashMap<u32, Few<Ix>>,
    /// Calls by the host's id.
    pub(crate) by_host_id: FxHashMap<Name, Few<Ix>>,
}

impl Facts {
    pub(crate) fn item(&self, ix: Ix) -> Option<&Item> {
        self.items.get(ix.at())
    }

    pub(crate) fn call(&self, ix: Ix) -> Option<&Call> {
        self.calls.get(self.item(ix)?.call as usize)
    }

    pub(crate) fn keys_of(&self, call: &Call) -> &[KeyFact] {
        self.keys.get(call.keys.0 as usize..call.keys.1 as usize).unwrap_or_default()
    }

    pub(crate) fn find(&self, id: ItemId) -> Option<Ix> {
        let found = self.items.binary_search_by_key(&id, |item| item.id).ok()?;
        Some(Ix(index(found)))
    }

    /// The text of the tool's name.
    pub(crate) fn tool(&self, ix: Ix) -> &str {
        self.call(ix).map(|call| self.names.text(call.tool)).unwrap_or_default()
    }

    pub(crate) fn next_ix(&self) -> Ix {
        Ix(index(self.items.len()))
    }

    /// The identity of a key's fields.
    pub(crate) fn key_id(&mut self, kind: KeyKind, fields: &[Name]) -> KeyId {
        let next = KeyId(self.key_count);
        let id = if let [name] = fields {
            *self.key_ids.entry((kind, *name)).or_insert(next)
        } else {
            let ids = self.key_ids_of_fields.entry(kind).or_default();
            if let Some(id) = ids.get(fields) {
                return *id;
            }
            ids.insert(Box::from(fields), next);
            next
        };
        self.key_count = self.key_count.saturating_add(u32::from(id == next));
        id
    }

    pub(crate) fn find_key(&self, kind: KeyKind, text: &str) -> Option<KeyId> {
        let name = self.names.find(text)?;
        self.key_ids.get(&(kind, name)).copied()
    }

    /// A number for a signature.
    pub(crate) fn signature(&mut self, signature: Signature) -> u32 {
        let next = index(self.signatures.len());
        *self.signatures.entry(signature).or_insert(next)
    }

    /// Interns a key of a call or of a changed file.
    pub(crate) fn key(&mut self, key: &crate::event::Key) -> KeyFact {
        let given = self.names.intern(&key.given);
        let resolved = key.resolved.as_deref().map(|text| self.names.intern(text));
        let id_given = if key.fields.is_empty() {
            self.key_id(key.kind, &[given])
        } else {
            let fields: Vec<Name> = key.fields.iter().map(|field| self.names.intern(field)).collect();
            self.key_id(key.kind, &fields)
        };
        let id_resolved = match resolved {
            Some(resolved) => self.key_id(key.kind, &[resolved]),
            None => id_given,
        };
        KeyFact { kind: key.kind, class: key.class, given, resolved, id_given, id_resolved }
    }

    /// Gives the call its place under its label; returns how many digits of its signature make it unique.
    ///
    /// Fixed at birth: the first signature under a label shows none, a later one as many as it takes.
    pub(crate) fn digits(&mut self, letter: Option<char>, bits: u32, signature: Signature) -> u8 {
        let under = self.labels.entry((letter, bits)).or_default();
        let known = under.as_slice();
        let mine = known.iter().position(|other| *other == signature);
        let earlier = known.get(..mine.unwrap_or(known.len())).unwrap_or_default();
        let digits = if earlier.is_empty() {
            0
        } else {
            earlier.iter().map(|other| shared_digits(other, &signature) + 1).max().unwrap_or(1)
        };
        if mine.is_none() {
            under.push(signature);
        }
        digits
    }

    /// Makes an item of a result that no call waits for.
    pub(crate) fn orphan(&mut self, number: u32, turn: Turn) -> Ix {
        let ix = self.next_ix();
        let Some(finish) = self.finishes.get_mut(number as usize) else { return ix };
        finish.orphan = ix.0;
        self.items.push(Item {
            id: ItemId::first(finish.seq),
            kind: ItemKind::Result,
            role: Role::Tool,
            turn,
            recorded_at: finish.recorded_at,
            body: Body::default(),
            media_type: None,
            provider_signature: None,
            message: NONE,
            call: NONE,
            injected: None,
            task: finish.task,
            hidden: false,
        });
        ix
    }

    /// What was recorded up to `at`, for a fork.
    pub(crate) fn until(&self, at: Seq) -> Self {
        let mut facts = self.clone();
        facts.items.truncate(self.items.partition_point(|item| item.id.seq <= at));
        let item_count = index(facts.items.len());
        let calls = facts.items.iter().filter(|item| item.call != NONE).count();
        facts.calls.truncate(calls);
        facts.finishes.retain(|finish| finish.seq <= at);
        facts.revisions.retain(|revision| revision.seq <= at);
        facts.acts.retain(|act| act.seq <= at);
        facts.evictions.retain(|eviction| eviction.seq <= at);
        facts.automata.retain(|ix| *ix < item_count);
        for message in &mut facts.messages {
            message.items.retain(|ix| ix.0 < item_count);
        }
        let used = facts.messages.iter().rposition(|message| !message.items.is_empty());
        facts.messages.truncate(used.map_or(0, |last| last + 1));
        let message_count = index(facts.messages.len());
        facts.message_by_key.retain(|_, number| *number < message_count);
        for calls in facts.by_signature.values_mut().chain(facts.by_host_id.values_mut()) {
            calls.retain(|ix| ix.0 < item_count);
        }
        facts.by_signature.retain(|_, calls| !calls.is_empty());
        facts.by_host_id.retain(|_, calls| !calls.is_empty());
        facts.labels.clear();
        for place in 0..facts.calls.len() {
            let Some(call) = facts.calls.get(place) else { continue };
            let label = crate::text::Label::from_bits(facts.names.text(call.tool), call.label);
            let signature = call.signature;
            facts.digits(Some(label.letter()), label.bits() >> 4, signature);
            facts.digits(None, label.bits(), signature);
        }
        facts
    }

    /// The message with this key, new if need be.
    pub(crate) fn message(&mut self, key: &str, role: Role) -> u32 {
        let is_named = !key.is_empty();
        let key = self.names.intern(key);
        let next = index(self.messages.len());
        // Messages without a key are messages of their own, not parts of one.
        let number = if is_named { *self.message_by_key.entry(key).or_insert(next) } else { next };
        if number == next {
            self.messages.push(Message { key, role, hidden: false, items: Vec::new() });
        }
        number
    }

    /// Whether any call has this label.
    pub(crate) fn knows_label(&self, letter: Option<char>, bits: u32) -> bool {
        self.labels.contains_key(&(letter, bits))
    }

    /// The signatures under a label, in order of first use.
    pub(crate) fn signatures_under(&self, letter: Option<char>, bits: u32) -> &[Signature] {
        self.labels.get(&(letter, bits)).map(Few::as_slice).unwrap_or_default()
    }

    pub(crate) fn calls_with(&self, signature: Signature) -> &[Ix] {
        let calls = self.signatures.get(&signature).and_then(|number| self.by_signature.get(number));
        calls.map(Few::as_slice).unwrap_or_default()
    }
}

/// Leading hex digits that two signatures share.
fn shared_digits(a: &Signature, b: &Signature) -> u8 {
    let mut shared = 0_u8;
    for (x, y) in a.as_bytes().iter().zip(b.as_bytes()) {
        if x == y {
            shared = shared.saturating_add(2);
        } else {
            return if x >> 4 == y >> 4 { shared.saturating_add(1) } else { shared };
        }
    }
    shared
}

/// Which of a call's signatures a form names: index into [`Call::compared`].
pub(crate) const fn form_index(form: SignatureForm) -> usize {
    match form {
        SignatureForm::NoNulls => 1,
        SignatureForm::Resolved => 2,
        SignatureForm::ResolvedNoNulls => 3,
    }
}

/// What the parts of an output add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) tokens: u64,
    pub(crate) lines: u64,
}

impl Size {
    pub(crate) fn of(parts: &[Part]) -> Self {
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
