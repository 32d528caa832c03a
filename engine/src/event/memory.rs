//! Memory items: facts, preferences, decisions, notes, and changes to them.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::cbor::{numbers, part, record};
use super::kind::{EventKind, NamedBody};
use super::{Body, Text};
use crate::ids::{ItemId, Micros, Signature};
use crate::text::words::word;

numbers! {
    /// The kind of a memory item.
    #[derive(Default)]
    pub enum MemoryKind {
        /// A statement that holds.
        #[default]
        Fact = 0,
        /// A wish of the user: category and key to value.
        Preference = 1,
        /// A choice that was made.
        Decision = 2,
        /// A remark.
        Note = 3,
    }
}

numbers! {
    /// How long an item lives.
    #[derive(Default)]
    pub enum Lifespan {
        /// Until its session ends.
        #[default]
        Session = 0,
        /// As long as the project.
        Project = 1,
        /// For ever.
        Permanent = 2,
    }
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

part!(MemorySource { 0 item, 1 start, 2 end });

/// A memory item was recorded.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemoryRecorded {
    /// Id of the item, unique in its stream.
    pub id: String,
    /// Its kind.
    pub kind: MemoryKind,
    /// Category: `tooling`, `personal`, `architecture`, ...
    pub category: Text,
    /// For a preference: its key.
    pub key: Option<Text>,
    /// For a fact or decision: its subject, if known.
    pub subject: Option<Text>,
    /// The value, fact, description or remark.
    pub value: Body,
    /// Signature of the value, case folded: an equal value reinforces the item.
    pub value_signature: Signature,
    /// For a decision: the reason.
    pub rationale: Option<Body>,
    /// For a decision: other choices that were considered.
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
    /// The record's own word for its status; it never decides whether the item is current.
    pub status: Option<Text>,
    /// Other fields of the record, JSON.
    pub extra: Option<Body>,
}

record!(MemoryRecorded {
    4 id, 5 kind, 6 category, 7 key, 8 subject, 9 value, 10 value_signature, 11 rationale,
    12 alternatives, 13 related_files, 14 confidence, 15 lifespan, 16 created, 17 source,
    18 replaces, 19 superseded_by, 20 status, 21 extra,
});

impl EventKind for MemoryRecorded {
    const HAS_TEXTS: bool = true;

    fn in_words(&self) -> String {
        let key = self.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
        format!("{} {} {}{key}", self.id, word(&self.kind), self.category)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, item, prose};

        Self {
            id: "p1".to_owned(),
            kind: MemoryKind::Preference,
            category: "tooling".into(),
            key: prose(4),
            subject: prose(5),
            value: body(0, 6),
            value_signature: Signature([8; 16]),
            rationale: Some(body(1, 5)),
            alternatives: vec![body(2, 5)],
            related_files: prose(6).into_iter().collect(),
            confidence: 80,
            lifespan: Lifespan::Project,
            created: Some(Micros(5)),
            source: Some(MemorySource { item: item(), start: 1, end: 9 }),
            replaces: vec!["p0".to_owned()],
            superseded_by: vec!["p2".to_owned()],
            status: prose(7),
            extra: Some(body(3, 2)),
        }
    }

    fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
        each(&mut self.category);
        let some = [&mut self.key, &mut self.subject, &mut self.status];
        some.into_iter().flatten().for_each(&mut *each);
        self.related_files.iter_mut().for_each(each);
    }

    fn bodies(&self) -> Vec<NamedBody> {
        let mut all = vec![NamedBody::telling("value", self.value)];
        all.extend(self.rationale.map(|body| NamedBody::beside("rationale", body)));
        all.extend(self.extra.map(|body| NamedBody::beside("extra", body)));
        all
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        let Self { value, rationale, alternatives, extra, .. } = self;
        each(value);
        alternatives.iter_mut().for_each(&mut *each);
        [rationale, extra].into_iter().flatten().for_each(each);
    }
}

/// One item took another's place.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemorySuperseded {
    /// Id of the older.
    pub old: String,
    /// Id of the newer.
    pub new: String,
    /// The reason.
    pub reason: Option<Body>,
}

record!(MemorySuperseded { 4 old, 5 new, 6 reason });

impl EventKind for MemorySuperseded {
    fn in_words(&self) -> String {
        format!("{} by {}", self.old, self.new)
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::body;

        Self { old: "a".to_owned(), new: "b".to_owned(), reason: Some(body(0, 4)) }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        self.reason.map(|body| NamedBody::beside("reason", body)).into_iter().collect()
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        self.reason.iter_mut().for_each(each);
    }
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

record!(MemoryReinforced { 4 id, 5 amount, 6 at });

impl EventKind for MemoryReinforced {
    fn in_words(&self) -> String {
        self.id.clone()
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self { id: "a".to_owned(), amount: 10, at: Some(Micros(1)) }
    }
}

/// An item no longer holds, and nothing takes its place.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemoryRetracted {
    /// Id of the item.
    pub id: String,
    /// The reason.
    pub reason: Option<Body>,
    /// When, if that is not when it was recorded.
    pub at: Option<Micros>,
}

record!(MemoryRetracted { 4 id, 5 reason, 6 at });

impl EventKind for MemoryRetracted {
    fn in_words(&self) -> String {
        self.id.clone()
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::body;

        Self { id: "a".to_owned(), reason: Some(body(0, 4)), at: Some(Micros(2)) }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        self.reason.map(|body| NamedBody::beside("reason", body)).into_iter().collect()
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        self.reason.iter_mut().for_each(each);
    }
}
