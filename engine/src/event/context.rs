//! Acts on the context, serving, policy, and the store's own events.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::cbor::{array, numbers, part, record};
use super::kind::{EventKind, NamedBody};
use super::{Actor, Body, Text};
use crate::ids::{ItemId, Seq, Signature};
use crate::text::words::{count, tokens, word};

/// The first items of a list, in words.
fn few(items: &[ItemId]) -> String {
    let shown: Vec<String> = items.iter().take(8).map(ToString::to_string).collect();
    let more = if items.len() > 8 { " .." } else { "" };
    format!("{}{more}", shown.join(" "))
}

/// One item that an act hid.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hidden {
    /// The item.
    pub item: ItemId,
    /// Signature of the normalised pattern that found it; absent if it was named directly.
    pub pattern: Option<Signature>,
    /// The summary that stands in its place, for a distillation.
    pub summary: Option<Body>,
}

part!(Hidden { 0 item, 1 pattern, 2 summary });

/// The answers of all kinds that hide items.
macro_rules! hides_items {
    () => {
        fn in_words(&self) -> String {
            count(self.items.len() as u64, "item")
        }

        fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
            each(&mut self.targets);
            let summaries = self.items.iter_mut().filter_map(|hidden| hidden.summary.as_mut());
            summaries.for_each(each);
        }
    };
}

/// Items were hidden on request.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Discarded {
    /// The targets as typed, a JSON array.
    pub targets: Body,
    /// The hidden items.
    pub items: Vec<Hidden>,
}

record!(Discarded { 4 targets, 5 items });

impl EventKind for Discarded {
    hides_items!();

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, hidden};

        Self { targets: body(0, 9), items: vec![hidden(None)] }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        vec![NamedBody::telling("targets", self.targets)]
    }
}

/// Items were hidden behind summaries on request.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Distilled {
    /// The targets as typed, a JSON array.
    pub targets: Body,
    /// The hidden items, each with its summary; those without one are behind the summary before them.
    pub items: Vec<Hidden>,
}

record!(Distilled { 4 targets, 5 items });

impl EventKind for Distilled {
    hides_items!();

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, hidden};

        Self { targets: body(0, 9), items: vec![hidden(Some(body(1, 7)))] }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        let mut all = vec![NamedBody::beside("targets", self.targets)];
        for hidden in &self.items {
            let name = || format!("summary of {}", hidden.item);
            all.extend(hidden.summary.map(|body| NamedBody::telling(name(), body)));
        }
        all
    }
}

/// Items were shown again on request.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Restored {
    /// The targets as typed, a JSON array.
    pub targets: Body,
    /// The items that are shown again.
    pub items: Vec<ItemId>,
}

record!(Restored { 4 targets, 5 items });

impl EventKind for Restored {
    fn in_words(&self) -> String {
        few(&self.items)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, item};

        Self { targets: body(0, 9), items: vec![item()] }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        vec![NamedBody::telling("targets", self.targets)]
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        each(&mut self.targets);
    }
}

/// Items stay in the context until unpinned: no rule hides them.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pinned {
    /// The items.
    pub items: Vec<ItemId>,
}

record!(Pinned { 4 items });

/// Events that name items, and say no more.
macro_rules! names_items {
    ($name:ident) => {
        impl EventKind for $name {
            fn in_words(&self) -> String {
                few(&self.items)
            }

            #[cfg(any(test, feature = "testing"))]
            fn sample() -> Self {
                use crate::event::samples::item;

                Self { items: vec![item()] }
            }
        }
    };
}

names_items!(Pinned);

/// Items are subject to the rules again.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Unpinned {
    /// The items.
    pub items: Vec<ItemId>,
}

record!(Unpinned { 4 items });

names_items!(Unpinned);

numbers! {
    /// The kind of an injected text.
    pub enum InjectedKind {
        /// A reminder of the todo list.
        Reminder = 0,
        /// A reflection, in automata mode.
        Reflection = 1,
        /// Current memory.
        Memory = 2,
        /// Another text of the host.
        Other = 3,
        /// A notice that the context has passed a size.
        Size = 4,
    }
}

/// The host put a text into the context.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Injected {
    /// Its kind; a newer reminder or reflection hides the earlier one.
    pub what: InjectedKind,
    /// The text.
    pub text: Body,
}

record!(Injected { 4 what, 5 text });

impl EventKind for Injected {
    fn in_words(&self) -> String {
        format!("{} ~{} tokens", word(&self.what), tokens(u64::from(self.text.tokens)))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::body;

        Self { what: InjectedKind::Reflection, text: body(0, 9) }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        vec![NamedBody::telling("text", self.text)]
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        each(&mut self.text);
    }
}

numbers! {
    /// The cause of a rebase.
    pub enum RebaseCause {
        /// The provider's cache was cold.
        Cold = 0,
        /// It pays within the horizon.
        Pays = 1,
        /// The token budget.
        Budget = 2,
        /// A user or the model asked.
        Asked = 3,
    }
}

/// From here on served contexts show conclusions that were pending.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct ContextRebased {
    /// Number of the epoch that begins.
    pub epoch: u32,
    /// The cause.
    pub why: RebaseCause,
    /// Pending items that are applied; empty means all.
    pub items: Vec<ItemId>,
}

record!(ContextRebased { 4 epoch, 5 why, 6 items });

impl EventKind for ContextRebased {
    fn in_words(&self) -> String {
        format!("epoch {} {}", self.epoch, word(&self.why))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::item;

        Self { epoch: 2, why: RebaseCause::Pays, items: vec![item()] }
    }
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

record!(ContextServed { 4 step, 5 epoch, 6 renderer, 7 digest, 8 tokens, 9 format });

impl EventKind for ContextServed {
    fn in_words(&self) -> String {
        format!("{} ~{} tokens", self.format, tokens(self.tokens))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self {
            step: "step_1".to_owned(),
            epoch: 2,
            renderer: 1,
            digest: [9; 32],
            tokens: 100,
            format: "anthropic".to_owned(),
        }
    }
}

/// The policy in force from here on, whole. In the store's own stream: for all streams without one of their own.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PolicySet {
    /// The policy as JSON: a preset's name and every key with its value.
    pub policy: String,
    /// The reason, if one was given.
    pub reason: Option<Text>,
}

record!(PolicySet { 4 policy, 5 reason });

impl EventKind for PolicySet {
    const HAS_TEXTS: bool = true;

    fn in_words(&self) -> String {
        // A policy without a name, or one that this version cannot read, is the writer's own.
        let policy = serde_json::from_str::<serde_json::Value>(&self.policy).ok();
        let preset =
            policy.as_ref().and_then(|policy| policy.get("preset")).and_then(serde_json::Value::as_str);
        let why = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{}{why}", preset.unwrap_or("custom"))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::prose;

        Self { policy: "{\"preset\":\"acp\"}".to_owned(), reason: prose(0) }
    }

    fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
        self.reason.iter_mut().for_each(each);
    }
}

/// A body, as an erasure names it.
#[derive(ToJson, FromJson, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BodyAddress {
    /// The event that names it.
    pub seq: Seq,
    /// Its row within the event.
    pub row: u32,
}

array!(BodyAddress { seq, row });

/// Bodies were removed for good; their digests stay.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Erased {
    /// The removed bodies.
    pub bodies: Vec<BodyAddress>,
    /// Name of the asker.
    pub by: String,
    /// The reason.
    pub reason: Text,
    /// Their contents, as digests keyed with the store's secret: they are refused when they come again.
    pub contents: Vec<[u8; 16]>,
}

record!(Erased { 4 bodies, 5 by, 6 reason, 7 contents });

impl Erased {
    /// The name in place of an asker's, for bodies that damage took.
    pub const DAMAGE: &str = "damage";

    /// Bodies that damage took. No person wanted them gone, so their contents are not refused, and no other store is asked to erase them.
    pub fn lost(bodies: Vec<BodyAddress>, reason: impl Into<Text>) -> Self {
        Self { bodies, by: Self::DAMAGE.to_owned(), reason: reason.into(), contents: Vec::new() }
    }

    /// Whether [`Erased::lost`] made this. `actor` is the event's actor: a person may be called anything, `damage` too.
    pub fn is_loss(&self, actor: Actor) -> bool {
        actor == Actor::Policy && self.by == Self::DAMAGE && self.contents.is_empty()
    }
}

impl EventKind for Erased {
    const HAS_TEXTS: bool = true;

    fn in_words(&self) -> String {
        format!("{} by {}: {}", count(self.bodies.len() as u64, "text"), self.by, self.reason)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self {
            bodies: vec![BodyAddress { seq: Seq(4), row: 1 }],
            by: "me".to_owned(),
            reason: "secret".into(),
            contents: vec![[7; 16]],
        }
    }

    fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
        each(&mut self.reason);
    }
}

/// A user looked at damage and chose to go on.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct DamageNoted {
    /// Segment.
    pub segment: u32,
    /// Byte offset in it.
    pub offset: u64,
    /// First seq that is lost.
    pub first: Seq,
    /// Last seq that is lost.
    pub last: Seq,
    /// A note about it.
    pub note: Text,
}

record!(DamageNoted { 4 segment, 5 offset, 6 first, 7 last, 8 note });

impl EventKind for DamageNoted {
    const HAS_TEXTS: bool = true;

    fn in_words(&self) -> String {
        self.note.to_string()
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self { segment: 2, offset: 4096, first: Seq(7), last: Seq(9), note: "flip".into() }
    }

    fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
        each(&mut self.note);
    }
}
