//! The kinds of facts that a host reports: a struct for each kind, with the kind's answers in one block beside the struct.
//!
//! ```text
//! Entry { fact } --revision--> seen before?  --clean--> no secrets  --draft--> the event's payload and its bodies
//! ```
//!
//! The list of kinds stands in `event`: a row that says `from X` makes `X` a kind of fact. A new kind needs its struct here,
//! its event's struct in `event`, the row, and its part in the fold.
//!
//! This module computes nothing: a `Drafter` gives the values that take keys, a registry or seqs.

/// Says which fields hold ids, once for reading and once for renaming them.
macro_rules! ids {
    ($( $field:ident ),*) => {
        fn ids(&self, each: &mut dyn FnMut(&str)) {
            $( self.$field.each_text(each); )*
            let _ = each; // a kind without ids never calls it
        }

        fn ids_mut(&mut self, each: &mut dyn FnMut(&mut String)) {
            $( self.$field.each_text_mut(each); )*
            let _ = each; // a kind without ids never calls it
        }
    };
}

/// The fields of a fact and of the event that records it, each once, with its form. From it come the event of a fact, the fact behind an
/// event, the ids, and the texts that are cleaned. A kind with a field of no such form says these itself.
///
/// ```text
/// id         an id that the log keeps             raw    bytes aside, which the model never sees
/// memory_id  the same, of a memory item           aside  the same, of JSON
/// same       a value                              parts  parts with their bodies
/// time       a time                               items  ids of items
/// name       a text that stands in the event      point  a point of the own stream
/// title      the same, where it can be erased     change a change of a todo entry
/// text       a text aside, as a body
/// bytes      bytes aside;  json: the same, of JSON
/// ```
macro_rules! fields {
    ($kept:ident { $( $field:ident : $form:ident ),* $(,)? }) => {
        type Kept = event::$kept;

        fn ids(&self, each: &mut dyn FnMut(&str)) {
            $( form!($form ids self.$field, each); )*
            let _ = each; // as above
        }

        fn ids_mut(&mut self, each: &mut dyn FnMut(&mut String)) {
            $( form!($form ids_mut self.$field, each); )*
            let _ = each; // as above
        }

        fn clean(&mut self, cleaner: &mut dyn Cleaner) {
            $( form!($form clean self.$field, cleaner); )*
            let _ = cleaner; // as above
        }

        fn draft(&self, drafter: &mut dyn Drafter) -> event::$kept {
            let _ = &drafter; // as above
            event::$kept { $( $field: form!($form draft self.$field, drafter, self), )* }
        }

        fn tell(kept: &event::$kept, teller: &mut dyn ForeignValues) -> Self {
            let _ = &teller; // as above
            Self { $( $field: form!($form tell kept.$field, teller), )* }
        }
    };
}

/// The part of each form: where the fact becomes an event, where it is told again, and for its ids and texts.
macro_rules! form {
    (parts draft $value:expr, $drafter:ident, $fact:ident) => { $drafter.parts(&$value, $fact.speaker()) };
    ($form:ident draft $value:expr, $drafter:ident, $fact:ident) => { form!($form draft $value, $drafter) };

    (name draft $value:expr, $drafter:ident) => { $value.clone() };
    (title draft $value:expr, $drafter:ident) => { $value.as_ref().map(event::Text::from) };
    (text draft $value:expr, $drafter:ident) => { $value.as_ref().map(|text| $drafter.text(text)) };
    (bytes draft $value:expr, $drafter:ident) => { $value.as_ref().map(|bytes| $drafter.body(bytes)) };
    (json draft $value:expr, $drafter:ident) => { form!(bytes draft $value, $drafter) };
    (raw draft $value:expr, $drafter:ident) => { $value.as_ref().map(|bytes| $drafter.uncounted(bytes)) };
    (aside draft $value:expr, $drafter:ident) => { form!(raw draft $value, $drafter) };
    (items draft $value:expr, $drafter:ident) => { $drafter.items(&$value) };
    (point draft $value:expr, $drafter:ident) => { $drafter.point(&$value) };
    (change draft $value:expr, $drafter:ident) => { $drafter.todo_change(&$value) };
    ($form:ident draft $value:expr, $drafter:ident) => { $value.clone() };

    (title tell $value:expr, $teller:ident) => { $value.as_ref().map(ToString::to_string) };
    (text tell $value:expr, $teller:ident) => { $value.as_ref().map(|body| $teller.text(body)) };
    (bytes tell $value:expr, $teller:ident) => { $value.as_ref().map(|body| $teller.bytes(body)) };
    (json tell $value:expr, $teller:ident) => { $value.as_ref().map(|body| $teller.json(body)) };
    (raw tell $value:expr, $teller:ident) => { form!(bytes tell $value, $teller) };
    (aside tell $value:expr, $teller:ident) => { form!(json tell $value, $teller) };
    (parts tell $value:expr, $teller:ident) => { $teller.parts(&$value) };
    (items tell $value:expr, $teller:ident) => { $teller.items(&$value) };
    (point tell $value:expr, $teller:ident) => { $teller.point(None, $value) };
    (change tell $value:expr, $teller:ident) => { $teller.todo_change(&$value) };
    (memory_id tell $value:expr, $teller:ident) => { $teller.memory_id(&$value) };
    (time tell $value:expr, $teller:ident) => { $teller.time($value) };
    ($form:ident tell $value:expr, $teller:ident) => { $value.clone() };

    (id ids $value:expr, $each:ident) => { $value.each_text($each) };
    (id ids_mut $value:expr, $each:ident) => { $value.each_text_mut($each) };
    (memory_id $of:ident $value:expr, $each:ident) => { form!(id $of $value, $each) };

    (name clean $value:expr, $cleaner:ident) => { $value.each_text_mut(&mut |text| $cleaner.text(text)) };
    (title clean $value:expr, $cleaner:ident) => { form!(name clean $value, $cleaner) };
    (text clean $value:expr, $cleaner:ident) => { form!(name clean $value, $cleaner) };
    (bytes clean $value:expr, $cleaner:ident) => { $value.iter_mut().for_each(|bytes| $cleaner.bytes(bytes)) };
    (raw clean $value:expr, $cleaner:ident) => { form!(bytes clean $value, $cleaner) };
    (json clean $value:expr, $cleaner:ident) => { $value.iter_mut().for_each(|json| $cleaner.json(json)) };
    (aside clean $value:expr, $cleaner:ident) => { form!(json clean $value, $cleaner) };
    (parts clean $value:expr, $cleaner:ident) => { $cleaner.parts(&mut $value) };
    (change clean $value:expr, $cleaner:ident) => { $value.clean($cleaner) };

    // All others have no ids, and no texts.
    ($form:ident $of:ident $value:expr, $each:ident) => {};
}

#[expect(
    missing_docs,
    reason = "fields are those of the event's kind: ids, names and texts as the host has them"
)]
mod memory;
#[expect(missing_docs, reason = "as above")]
mod message;
#[expect(missing_docs, reason = "as above")]
mod session;
#[expect(missing_docs, reason = "as above")]
mod todo;
#[expect(missing_docs, reason = "as above")]
mod turn;

use super::{Bytes, Entry, ItemRef, MemoryEntry as Memory, PartEntry, PointRef, TodoChangeEntry, WirePiece};
use crate::event::{
    Actor, Body, Key, MemoryRecorded, Part, Payload, Role, TodoChange, TodoList, TodoUpdate, ToolCallStarted,
    for_each_fact,
};
use crate::ids::{ItemId, Micros, Seq, StreamId};
use crate::secret::{ContentDigest, Secret, fact_id};

// All names: a kind is named in the list of `event` alone.
pub use memory::*;
pub use message::*;
pub use session::*;
pub use todo::*;
pub use turn::*;

/// The questions to a kind of fact.
pub(crate) trait HostFact: Sized {
    /// The event that records it.
    type Kept;

    /// Whether the fact names items, points or ids that are others in another store.
    const IS_PLACED: bool = false;

    /// Calls `each` with every id of the fact that the log keeps: ids of messages, calls, steps, entries, memory items and facts.
    fn ids(&self, each: &mut dyn FnMut(&str));

    /// As [`HostFact::ids`], to rename them. Both are written by `ids!`.
    fn ids_mut(&mut self, each: &mut dyn FnMut(&mut String));

    /// Gives its content to its revision. The order and the words are part of the format.
    fn revision(&self, fields: &mut FactFields);

    /// Takes secrets out of its texts. Ids are not among them: [`HostFact::ids_mut`] has those.
    fn clean(&mut self, cleaner: &mut dyn Cleaner);

    /// The event that records it. Bodies get their rows in the order in which they are added.
    fn draft(&self, drafter: &mut dyn Drafter) -> Self::Kept;

    /// The fact behind an event of another store.
    fn tell(kept: &Self::Kept, teller: &mut dyn ForeignValues) -> Self;

    /// The actor, if the host does not say one.
    fn actor(&self) -> Actor {
        Actor::Host
    }

    /// The speaker in its parts, if the fact says one.
    fn role(&self) -> Option<Role> {
        None
    }

    /// The speaker that its parts may quote.
    fn speaker(&self) -> Option<Role> {
        self.role()
    }

    /// Calls `each` with the origin of every other fact of the stream whose seq its event needs.
    fn needs(&self, _each: &mut dyn FnMut(&str)) {}
}

/// Gives the values that a fact needs to become an event.
pub(crate) trait Drafter {
    /// Adds a body that the model may see: its tokens and lines are counted.
    fn body(&mut self, bytes: &Bytes) -> Body;

    /// Adds a body that the model never sees: nothing is counted.
    fn uncounted(&mut self, bytes: &Bytes) -> Body;

    /// Adds a text as a body.
    fn text(&mut self, text: &str) -> Body {
        self.body(&Bytes::from(text.as_bytes()))
    }

    /// Adds the bodies of parts. `role` is the speaker.
    fn parts(&mut self, parts: &[PartEntry], role: Option<Role>) -> Vec<Part>;

    /// Ids of items. Unknown ones are left out.
    fn items(&self, items: &[ItemRef]) -> Vec<ItemId>;

    /// Seq of a point in the stream.
    fn point(&self, point: &PointRef) -> Seq;

    /// Key of a file that was written.
    fn file(&self, path: &str) -> Key;

    /// A call, with the registry's answers about it.
    fn call(&mut self, call: &ToolStarted) -> ToolCallStarted;

    /// The change that a call's end makes to the todo list.
    fn todo_update(&mut self, call: &ToolFinished) -> Option<TodoUpdate>;

    /// A todo list; `None` if the bytes are no list.
    fn todo_list(&mut self, list: &Bytes) -> Option<TodoList>;

    /// A change of a todo entry.
    fn todo_change(&mut self, change: &TodoChangeEntry) -> TodoChange;

    /// A memory item, with an id if it has none.
    fn memory(&mut self, memory: &Memory) -> MemoryRecorded;
}

/// Gives the values that an event of another store needs to become a fact of this one.
pub(crate) trait ForeignValues {
    /// The bytes of a body; of an erased one the word for it.
    fn bytes(&mut self, body: &Body) -> Bytes;

    /// As [`ForeignValues::bytes`], of JSON, which stays JSON.
    fn json(&mut self, body: &Body) -> Bytes;

    /// As [`ForeignValues::bytes`], of a list in JSON, which stays a list.
    fn list(&mut self, body: &Body) -> Bytes;

    /// As [`ForeignValues::bytes`], as text.
    fn text(&mut self, body: &Body) -> String {
        String::from_utf8_lossy(&self.bytes(body)).into_owned()
    }

    /// The bytes of parts.
    fn parts(&mut self, parts: &[Part]) -> Vec<PartEntry>;

    /// A change of a todo entry.
    fn todo_change(&mut self, change: &TodoChange) -> TodoChangeEntry;

    /// Items as they stand here. Those that are not here are left out.
    fn items(&mut self, items: &[ItemId]) -> Vec<ItemRef>;

    /// A point of a stream as it stands here; `None` is the event's own stream.
    fn point(&mut self, stream: Option<StreamId>, point: Seq) -> PointRef;

    /// The id that a memory item has here.
    fn memory_id(&mut self, id: &str) -> String;

    /// A memory item with the ids of here.
    fn memory(&mut self, memory: &MemoryRecorded) -> Memory;

    /// A time; where there is none, the time of the recording.
    fn time(&self, time: Option<Micros>) -> Option<Micros>;
}

/// Takes secrets out of texts in place.
pub(crate) trait Cleaner {
    /// Takes secrets out of a text.
    fn text(&mut self, text: &mut String);

    /// Takes secrets out of a body.
    fn bytes(&mut self, bytes: &mut Bytes);

    /// Takes secrets out of a body of JSON, which stays JSON.
    fn json(&mut self, json: &mut Bytes);

    /// Takes secrets out of parts. A provider would not accept its signature with a byte changed: signatures stay.
    fn parts(&mut self, parts: &mut [PartEntry]) {
        for part in parts {
            self.bytes(&mut part.bytes);
            if let Some(text) = &mut part.media_type {
                self.text(text);
            }
        }
    }

    /// Takes secrets out of optional texts.
    fn texts(&mut self, texts: &mut [&mut Option<String>]) {
        for text in texts.iter_mut().filter_map(|text| text.as_mut()) {
            self.text(text);
        }
    }
}

/// A field that holds texts.
trait TextField {
    fn each_text(&self, each: &mut dyn FnMut(&str));
    fn each_text_mut(&mut self, each: &mut dyn FnMut(&mut String));
}

impl TextField for String {
    fn each_text(&self, each: &mut dyn FnMut(&str)) {
        each(self);
    }

    fn each_text_mut(&mut self, each: &mut dyn FnMut(&mut String)) {
        each(self);
    }
}

impl TextField for Option<String> {
    fn each_text(&self, each: &mut dyn FnMut(&str)) {
        if let Some(text) = self {
            each(text);
        }
    }

    fn each_text_mut(&mut self, each: &mut dyn FnMut(&mut String)) {
        self.iter_mut().for_each(each);
    }
}

impl TextField for Vec<String> {
    fn each_text(&self, each: &mut dyn FnMut(&str)) {
        for text in self {
            each(text);
        }
    }

    fn each_text_mut(&mut self, each: &mut dyn FnMut(&mut String)) {
        self.iter_mut().for_each(each);
    }
}

macro_rules! facts {
    ($( $name:ident $kept:ident ),+ $(,)?) => {
        /// A fact with its bytes: a struct of [`fact`](self) for each kind, named as the event that records it (but for
        /// [`ToolStarted`], [`ToolFinished`] and [`MemoryEntry`](super::MemoryEntry)).
        ///
        /// ```
        /// use acpdb_engine::entry::{Entry, Fact, fact};
        ///
        /// let entry: Entry = fact::MessageAbandoned { key: "msg_1".into() }.into();
        /// assert!(matches!(&entry.fact, Fact::MessageAbandoned(abandoned) if abandoned.key == "msg_1"));
        /// ```
        #[derive(Clone, PartialEq, Hash, Debug)]
        pub enum Fact {
            $(
                #[doc = concat!("Recorded as [`", stringify!($kept), "`](crate::event::", stringify!($kept), ").")]
                $name($name),
            )+
        }

        $(
            impl From<$name> for Fact {
                fn from(fact: $name) -> Self {
                    Self::$name(fact)
                }
            }

            impl From<$name> for Entry {
                fn from(fact: $name) -> Self {
                    Fact::$name(fact).into()
                }
            }
        )+

        impl Fact {
            /// As [`HostFact::ids`].
            pub(crate) fn ids(&self, each: &mut dyn FnMut(&str)) {
                match self {
                    $( Self::$name(fact) => fact.ids(each), )+
                }
            }

            /// As [`HostFact::ids_mut`].
            pub(crate) fn ids_mut(&mut self, each: &mut dyn FnMut(&mut String)) {
                match self {
                    $( Self::$name(fact) => fact.ids_mut(each), )+
                }
            }

            /// As [`HostFact::revision`].
            pub(crate) fn revision(&self, fields: &mut FactFields) {
                match self {
                    $( Self::$name(fact) => fact.revision(fields), )+
                }
            }

            /// As [`HostFact::clean`].
            pub(crate) fn clean(&mut self, cleaner: &mut dyn Cleaner) {
                match self {
                    $( Self::$name(fact) => fact.clean(cleaner), )+
                }
            }

            /// As [`HostFact::draft`].
            pub(crate) fn draft(&self, drafter: &mut dyn Drafter) -> Payload {
                match self {
                    $( Self::$name(fact) => fact.draft(drafter).into(), )+
                }
            }

            /// As [`HostFact::tell`], with [`HostFact::IS_PLACED`]; `None` of a kind that is no fact of a host.
            pub(crate) fn tell(payload: &Payload, teller: &mut dyn ForeignValues) -> Option<(Self, bool)> {
                match payload {
                    $( Payload::$kept(kept) => {
                        Some((<$name as HostFact>::tell(kept, teller).into(), <$name as HostFact>::IS_PLACED))
                    } )+
                    _ => None,
                }
            }

            /// As [`HostFact::actor`].
            pub(crate) fn actor(&self) -> Actor {
                match self {
                    $( Self::$name(fact) => fact.actor(), )+
                }
            }

            /// As [`HostFact::role`].
            pub(crate) fn role(&self) -> Option<Role> {
                match self {
                    $( Self::$name(fact) => fact.role(), )+
                }
            }

            /// As [`HostFact::needs`].
            pub(crate) fn needs(&self, each: &mut dyn FnMut(&str)) {
                match self {
                    $( Self::$name(fact) => fact.needs(each), )+
                }
            }
        }
    };
}
for_each_fact!(facts);

// --- revisions -----------------------------------------------------------------------------------------------------------

// The digest of a fact's content, to tell a repeat from a change.
//
// The digest covers values that the feed gives, and none that acpdb derives from them: no signature, key, label or registry
// version. Wire forms, times and actors do not count either, so a hook and a transcript that tell the same fact agree. The
// encoding below is part of the format: a change to it would make every re-imported fact look revised. It is keyed with the
// store's secret, or a short text could be found by guessing.

/// Takes the fields of a fact, each with its length, in a fixed order.
pub(crate) struct FactFields {
    revision: ContentDigest,
}

impl FactFields {
    fn tag(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes(bytes)
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.tag(&number.to_le_bytes())
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.revision.take(bytes);
        self
    }

    /// Absent and empty are told apart.
    fn option(&mut self, value: Option<&[u8]>) -> &mut Self {
        self.tag(&[u8::from(value.is_some())]);
        self.bytes(value.unwrap_or_default())
    }

    fn text_option(&mut self, value: Option<&String>) -> &mut Self {
        self.option(value.map(String::as_bytes))
    }

    fn bytes_option(&mut self, value: Option<&Bytes>) -> &mut Self {
        self.option(value.map(|bytes| &**bytes))
    }

    fn list(&mut self, texts: &[String]) -> &mut Self {
        self.number(i64::try_from(texts.len()).unwrap_or(i64::MAX));
        for text in texts {
            self.text(text);
        }
        self
    }

    fn parts(&mut self, parts: &[PartEntry]) -> &mut Self {
        self.number(i64::try_from(parts.len()).unwrap_or(i64::MAX));
        for part in parts {
            self.tag(&[part.kind as u8]).text_option(part.media_type.as_ref());
            self.bytes(&part.bytes).bytes_option(part.signature.as_ref());
        }
        self
    }

    fn items(&mut self, items: &[ItemRef]) -> &mut Self {
        for item in items {
            match item {
                ItemRef::Id(id) => {
                    self.tag(b"id").number(id.seq.get().cast_signed()).number(i64::from(id.part));
                }
                ItemRef::Origin(origin, part) => {
                    self.text(origin).number(i64::from(*part));
                }
                ItemRef::Shared(stream, origin, part) => {
                    self.tag(b"shared").bytes(&stream.0).text(origin).number(i64::from(*part));
                }
            }
        }
        self
    }

    fn point(&mut self, point: &PointRef) -> &mut Self {
        match point {
            PointRef::Seq(seq) => self.tag(b"seq").number(seq.get().cast_signed()),
            PointRef::After(origin) => self.tag(b"after").text(origin),
            PointRef::Before(origin) => self.tag(b"before").text(origin),
        }
    }

    fn change(&mut self, change: &TodoChangeEntry) -> &mut Self {
        self.text(&change.id).text_option(change.status.as_ref()).bytes_option(change.entry.as_ref())
    }
}

/// The digest. Equal facts give equal digests; never 0.
pub(crate) fn revision_of(entry: &Entry, secret: &Secret) -> u64 {
    let mut fields = FactFields { revision: secret.begin_revision() };
    entry.fact.revision(&mut fields);
    // Only its wire form tells a record that became no other fact from another such record.
    if matches!(entry.fact, Fact::HostRecorded(HostRecorded { raw: None, .. })) {
        for piece in &entry.wire {
            match piece {
                WirePiece::Literal(bytes) => fields.tag(b"literal").bytes(bytes),
                WirePiece::Raw(bytes) => fields.tag(b"raw").bytes(bytes),
                WirePiece::Escaped(bytes) => fields.tag(b"escaped").bytes(bytes),
                WirePiece::Record(origin) => fields.tag(b"record").bytes(&fact_id(origin).0),
            };
        }
    }
    fields.revision.finish()
}
