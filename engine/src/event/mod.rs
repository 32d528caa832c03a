//! Events: the closed set of kinds.
//!
//! ```text
//! Event = Envelope (kind, version, stream, origin, host time)  +  Stamp (actor, revision, wire)  +  one payload struct
//! ```
//!
//! A payload is a fact in the past tense. It holds the values that the fold needs without any body: ids, digests, keys, sizes,
//! token estimates, short labels. Long or private texts are *bodies*, named by [`Body`]: row numbers that count within the event.
//! So event bytes hold no seq, no time, no turn and no position, and the same fact encodes to the same bytes wherever it lands.
//!
//! Each kind is one struct, and beside it stand its keys in the log. A field is added with a new key, and no key, number or default
//! ever changes. Kinds that a program does not know decode to [`Payload::Unknown`] and are kept, counted and skipped.
//!
//! This module does no IO and knows neither the log nor the fold.

pub(crate) mod cbor;
mod context;
pub(crate) mod kind;
mod memory;
mod message;
#[cfg(any(test, feature = "testing"))]
pub mod samples;
mod session;
#[cfg(any(test, feature = "testing"))]
pub mod table;
mod text;
mod todo;
mod tool;
pub mod wire;

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use crate::ids::{ItemId, Micros, Origin, Seq, StreamId};
use crate::secret::first_16_of;

use cbor::{array, numbers, part, record};

#[cfg(any(test, feature = "testing"))]
pub use cbor::FieldRow;
pub use context::{
    BodyAddress, ContextRebased, ContextServed, DamageNoted, Discarded, Distilled, Erased, Hidden, Injected,
    InjectedKind, Pinned, PolicySet, RebaseCause, Restored, Unpinned,
};
pub use kind::NamedBody;
pub use memory::{
    Lifespan, MemoryKind, MemoryRecorded, MemoryReinforced, MemoryRetracted, MemorySource, MemorySuperseded,
};
pub use message::{
    ItemRevised, MessageAbandoned, MessageContinued, MessageFinished, MessageRecorded, PART_TIER, Report,
    SUM_TIER, TOTAL_TIER, Usage,
};
pub use session::{
    ContextReplaced, Forked, HostCleared, HostRecorded, Parent, ProjectRenamed, PromptSet, ReplaceCause,
    Rewound, Scope, SessionChanged, SessionClosed, SessionOpened, TurnKind, TurnStarted,
};
pub use text::{DAMAGED_TEXT, ERASED_TEXT, Text};
pub use todo::{
    TaskChanged, TaskEvicted, TaskFields, TaskStatus, TodoChange, TodoChanged, TodoHead, TodoList,
    TodoUpdate, TodosReplaced, Validation,
};
pub use tool::{
    FileChanged, FileChanger, Key, KeyKind, Outcome, Shown, SignatureForm, TodoRole, ToolCallFinished,
    ToolCallStarted, ToolClass,
};

/// A body that an event names: `chunks` rows of the event's body table, beginning at `first`.
///
/// Sizes and the token estimate stand here, so that a fold needs no body. An empty body has no rows.
#[derive(
    Archive, Serialize, Deserialize, ToJson, FromJson, Clone, Copy, PartialEq, Eq, Hash, Debug, Default,
)]
pub struct Body {
    /// First row, counted from 0 within the event.
    pub first: u32,
    /// Rows; a body longer than one chunk has several.
    pub chunks: u32,
    /// Length in bytes, all chunks together.
    pub bytes: u64,
    /// Estimated tokens (estimator version: [`Stamp::estimator`]).
    pub tokens: u32,
    /// Lines: line feeds + 1, 0 for an empty body.
    pub lines: u32,
}

array!(ItemId { seq, part });

array!(Body { first, chunks, bytes, tokens, lines });

impl Body {
    /// The body's id, given the seq of the event that names it.
    pub const fn id(&self, seq: Seq) -> crate::ids::BodyId {
        crate::ids::BodyId { seq, first: self.first, chunks: self.chunks }
    }
}

numbers! {
    /// The speaker of a message.
    ///
    /// ```
    /// use acpdb_engine::Role;
    ///
    /// assert_eq!(serde_json::to_string(&Role::Assistant)?, r#""assistant""#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Default)]
    pub enum Role {
        /// Instructions of the host.
        System = 0,
        /// The person, or the host in the person's place.
        #[default]
        User = 1,
        /// The model.
        Assistant = 2,
        /// A tool, in formats where results are messages.
        Tool = 3,
    }
}

numbers! {
    /// The kind of a part.
    #[derive(Default)]
    pub enum PartKind {
        /// Text.
        #[default]
        Text = 0,
        /// The model's reasoning, possibly with a provider's signature.
        Reasoning = 1,
        /// An image, audio or document.
        Media = 2,
        /// A tool call, in hosts that record it as part of the message only.
        Call = 3,
        /// A tool result, in hosts that record it as part of the message only.
        Result = 4,
        /// Something the host sends to the model that acpdb does not interpret.
        Opaque = 5,
    }
}

/// Tokens that a picture or a document counts at most. Providers do not bill its bytes: Anthropic scales a picture to about
/// 1,600 tokens (width * height / 750) at most, other providers to fewer.
const MEDIA_TOKENS_MAX: u32 = 1_600;

impl PartKind {
    /// The tokens that a part of this kind counts, by the estimate of its bytes as a text.
    pub const fn tokens(self, estimate: u32) -> u32 {
        match self {
            Self::Media if estimate > MEDIA_TOKENS_MAX => MEDIA_TOKENS_MAX,
            _ => estimate,
        }
    }

    /// A part's content, with the tokens that it counts.
    pub const fn counted(self, body: Body) -> Body {
        Body { tokens: self.tokens(body.tokens), ..body }
    }
}

impl Part {
    /// The tokens that it counts, by estimate.
    pub const fn tokens(&self) -> u32 {
        self.kind.tokens(self.body.tokens)
    }

    /// Its content, with the tokens that it counts.
    pub const fn counted(&self) -> Body {
        self.kind.counted(self.body)
    }
}

/// One part of a message or of an output; in a message it is an item.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Part {
    /// Its kind.
    pub kind: PartKind,
    /// Its content.
    pub body: Body,
    /// Media type, for media.
    pub media_type: Option<String>,
    /// The provider's signature or encrypted form, byte for byte.
    pub signature: Option<Body>,
    /// The task named by a task tag at the end of the text.
    pub task: Option<String>,
    /// A user text that contains `automata`, in any case.
    pub automata: bool,
}

part!(Part { 0 kind, 1 body, 2 media_type, 3 signature, 4 task, 5 automata });

numbers! {
    /// A side of an item. Calls have both; everything else has only an output.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
    /// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
    /// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
    /// # let read = session.append([
    /// #     acpdb_engine::Entry::step("step-1"),
    /// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
    /// #     acpdb_engine::Entry::tool_completed("call-1", &long),
    /// # ])?;
    /// # let item = read.items[1].ok_or("it is new")?;
    /// use acpdb_engine::{At, Face};
    ///
    /// let view = session.view()?;
    /// let call = view.history().into_iter().find(|it| it.item == item).ok_or("there")?;
    /// for (face, shown) in [(Face::Input, &call.input), (Face::Output, &call.output)] {
    ///     println!("{face:?}: {:?}, {} tokens", shown.state, shown.tokens);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Default)]
    pub enum Face {
        /// A call's parameters.
        Input = 0,
        /// A call's result; the content of any other item.
        #[default]
        Output = 1,
    }
}

numbers! {
    /// The actor behind an event.
    #[derive(Default)]
    pub enum Actor {
        /// The person.
        User = 0,
        /// The model.
        Assistant = 1,
        /// A tool.
        Tool = 2,
        /// The program that runs the agent.
        #[default]
        Host = 3,
        /// acpdb itself, by policy.
        Policy = 4,
    }
}

/// The fields that every event carries besides its payload.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stamp {
    /// The actor.
    pub actor: Actor,
    /// Version of the token estimator behind the event's token figures.
    pub estimator: u16,
    /// Digest of the content as the feed gave it: the same origin with the same revision is the same fact. 0: none.
    pub revision: u64,
    /// The host's own record, as a template whose long strings refer to other bodies of the event.
    pub wire: Option<Body>,
}

record!(Stamp { 0 actor, 1 estimator, 2 revision, 3 wire });

/// An event before it has a place in the log.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Canonical id of the fact; zero if none.
    pub origin: Origin,
    /// The host's own time, if it gave one.
    pub host_time: Option<Micros>,
    /// Actor, revision, wire form.
    pub stamp: Stamp,
    /// The fact that happened.
    pub payload: Payload,
}

/// An event with its place in the log.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use acpdb_engine::Seq;
///
/// for recorded in store.events(Seq::ZERO, Seq::MAX)? {
///     let recorded = recorded?;
///     println!("{} at {} us: {}", recorded.seq, recorded.recorded_at.get(), recorded.event.payload.label());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// Its number in the store.
    pub seq: Seq,
    /// Time of its commit, as the clock said. Clocks are set back: only seqs give the order.
    pub recorded_at: Micros,
    /// The event.
    pub event: Event,
}

/// The number of a kind that records a fact.
macro_rules! number_of {
    ($fact:ident $number:literal) => {
        $number
    };
}

/// Declares the payload enum, the numbers of its kinds, and the facts of hosts that they record, once.
macro_rules! kinds {
    ($( $number:literal $name:ident $label:literal $( from $fact:ident )? ),+ $(,)?) => {
        /// The payload of an event. One variant a kind, plus the kinds of newer programs.
        #[derive(Clone, PartialEq, Debug, ToJson)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Payload {
            $(
                #[doc = concat!("Kind ", stringify!($number), ", `", $label, "`.")]
                $name($name),
            )+
            /// A kind or version this program does not know: kept and counted, and in no answer.
            Unknown {
                /// Kind number.
                number: u16,
                /// Version of the kind.
                version: u16,
                /// Payload bytes as recorded.
                #[serde(skip)]
                bytes: Vec<u8>,
            },
        }

        impl Payload {
            /// Number of the kind in the log.
            pub const fn number(&self) -> u16 {
                match self {
                    $( Self::$name(_) => $number, )+
                    Self::Unknown { number, .. } => *number,
                }
            }

            /// Whether it is unknown although its kind is known: it is malformed, or a newer program added to it.
            pub(crate) fn is_unread(&self) -> bool {
                matches!(self, Self::Unknown { number, .. } if KIND_LABELS.iter().any(|(known, _)| known == number))
            }

            /// Name of the kind, as `--json` and `kind:` filters spell it.
            pub const fn label(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => $label, )+
                    Self::Unknown { .. } => "unknown",
                }
            }
        }

        $(
            impl From<$name> for Payload {
                fn from(payload: $name) -> Self {
                    Self::$name(payload)
                }
            }
        )+

        /// Calls a macro with every kind: `number Name "label"`.
        macro_rules! for_each_kind {
            ($callback:ident) => { $callback! { $( $number $name $label ),+ } };
        }
        pub(crate) use for_each_kind;

        /// Calls a macro with every kind that records a host's fact: `Fact Name`.
        macro_rules! for_each_fact {
            ($callback:ident) => { $callback! { $( $( $fact $name, )? )+ } };
        }
        pub(crate) use for_each_fact;

        /// Numbers of the kinds that record facts of hosts, in order. All other kinds record acts of acpdb or of a person.
        pub const TOLD_KINDS: &[u16] = &[ $( $( number_of!($fact $number), )? )+ ];

        /// Names of all kinds, in order of their numbers.
        pub const KIND_LABELS: &[(u16, &str)] = &[ $( ($number, $label) ),+ ];
    };
}

kinds! {
    1 SessionOpened "session_opened",
    2 SessionChanged "session_changed" from SessionChanged,
    3 SessionClosed "session_closed" from SessionClosed,
    4 TurnStarted "turn_started" from TurnStarted,
    5 PromptSet "prompt_set" from PromptSet,
    6 ContextReplaced "context_replaced" from ContextReplaced,
    7 HostCleared "host_cleared" from HostCleared,
    8 Rewound "rewound" from Rewound,
    9 Forked "forked" from Forked,
    10 HostRecorded "host_recorded" from HostRecorded,
    16 MessageRecorded "message_recorded" from MessageRecorded,
    17 MessageContinued "message_continued" from MessageContinued,
    18 MessageFinished "message_finished" from MessageFinished,
    19 MessageAbandoned "message_abandoned" from MessageAbandoned,
    20 ItemRevised "item_revised",
    32 ToolCallStarted "tool_call_started" from ToolStarted,
    33 ToolCallFinished "tool_call_finished" from ToolFinished,
    34 FileChanged "file_changed" from FileChanged,
    48 TodosReplaced "todos_replaced" from TodosReplaced,
    49 TodoChanged "todo_changed" from TodoChanged,
    50 TaskChanged "task_changed",
    51 TaskEvicted "task_evicted",
    64 MemoryRecorded "memory_recorded" from Memory,
    65 MemorySuperseded "memory_superseded" from MemorySuperseded,
    66 MemoryReinforced "memory_reinforced" from MemoryReinforced,
    67 MemoryRetracted "memory_retracted" from MemoryRetracted,
    80 Discarded "discarded",
    81 Distilled "distilled",
    82 Restored "restored",
    83 Pinned "pinned",
    84 Unpinned "unpinned",
    85 Injected "injected" from Injected,
    86 ContextRebased "context_rebased",
    87 ContextServed "context_served",
    96 PolicySet "policy_set",
    97 ProjectRenamed "project_renamed",
    112 Erased "erased",
    113 DamageNoted "damage_noted",
}

/// The stream that a host's session, a project or a user has, derived from its name so that every feed finds it.
///
/// `scope` keeps a project called `x` apart from a session called `x`; `host` keeps two hosts' ids apart and is empty
/// for projects and users, which all hosts share.
pub fn stream_id(scope: Scope, host: &str, name: &str) -> StreamId {
    // The key of this purpose is derived once: ids are asked for several times a commit.
    static BEGUN: std::sync::LazyLock<blake3::Hasher> =
        std::sync::LazyLock::new(|| blake3::Hasher::new_derive_key("acpdb 2026 stream id v1"));
    let mut hasher = BEGUN.clone();
    hasher.update(&[scope as u8]);
    StreamId(first_16_of(hasher, &[host.as_bytes(), name.as_bytes()]))
}
