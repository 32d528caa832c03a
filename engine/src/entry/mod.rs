//! Facts as a host reports them, in its own words, before anything is digested.
//!
//! An [`Entry`] is one fact with its bytes: parameters as the host wrote them, texts as they were. The store turns it into an
//! event and its bodies (`command::record`): it computes signatures, keys, labels and token estimates, skips facts that it has
//! already (same origin, same content) and records a revision where the content changed.
//!
//! ```
//! use acpdb_engine::entry::Entry;
//!
//! let started = Entry::tool_started("call_1", "read", br#"{"filePath":"/src/app.ts"}"#.to_vec()).in_message("msg_1");
//! let finished = Entry::tool_completed("call_1", "1: fn main() {}").origin("call:call_1#1:finish");
//! # let _ = (started, finished);
//! ```
//!
//! This module only describes; it does no IO and computes nothing but the digest that tells a repeat from a change.

pub mod fact;

use std::sync::Arc;

use crate::event::{Actor, Lifespan, MemoryKind, Outcome, PartKind, Role, Scope, TurnKind};
use crate::ids::{ItemId, Micros, Seq, StreamId};

pub use fact::Fact;

/// Bytes of a body: cheap to clone, so that a wire form can share them with a part.
pub type Bytes = Arc<[u8]>;

/// A stream as a host names it, with the fields that open it if it is new.
///
/// ```
/// use acpdb_engine::StreamInfo;
///
/// let info = StreamInfo { project: Some("shop".into()), ..StreamInfo::session("my-agent", "run-1") };
/// assert_eq!(info.id(), StreamInfo::session("my-agent", "run-1").id()); // host and name decide
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamInfo {
    /// Session, project or user.
    pub scope: Scope,
    /// The host program; empty for projects and users.
    pub host: String,
    /// The host's id of the session, or the project's or user's name.
    pub name: String,
    /// Name of the project whose memory the session shares.
    pub project: Option<String>,
    /// For a subagent: the session and the call that started it.
    pub parent: Option<(StreamId, Option<String>)>,
    /// Working folder.
    pub cwd: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// Version of the host program.
    pub host_version: Option<String>,
    /// The host's time of the opening.
    pub host_time: Option<Micros>,
}

impl StreamInfo {
    /// A session of `host`.
    pub fn session(host: impl Into<String>, name: impl Into<String>) -> Self {
        Self { scope: Scope::Session, host: host.into(), name: name.into(), ..Self::default() }
    }

    /// A project.
    pub fn project(name: impl Into<String>) -> Self {
        let name = crate::text::project_of(&name.into()).into_owned();
        Self { scope: Scope::Project, name, ..Self::default() }
    }

    /// The store's user: a store is one person's, so there is one such stream, opened by the first permanent item.
    pub fn user() -> Self {
        Self { scope: Scope::User, name: "user".to_owned(), ..Self::default() }
    }

    /// Another branch of this session that its host writes to one recording: numbered from 2, in order of their beginnings.
    #[must_use]
    pub fn branch(&self, number: usize) -> Self {
        Self { name: format!("{}+{number}", self.name), ..self.clone() }
    }

    /// The id of its stream.
    pub fn id(&self) -> StreamId {
        crate::event::stream_id(self.scope, &self.host, &self.name)
    }
}

/// A part of a message or of an output.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::{Entry, PartEntry, Role};
///
/// let parts = vec![PartEntry::reasoning("the test fails first", None), PartEntry::text("I run the tests.")];
/// let receipt = session.append([Entry::step("step-1"), Entry::message_parts("m1", Role::Assistant, parts)])?;
/// assert_eq!(receipt.event_count, 3); // the session, the step, the message
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PartEntry {
    /// Its kind.
    pub kind: PartKind,
    /// Its content.
    pub bytes: Bytes,
    /// Media type, for media.
    pub media_type: Option<String>,
    /// The provider's signature or encrypted form.
    pub signature: Option<Bytes>,
}

impl PartEntry {
    /// A text.
    pub fn text(text: impl AsRef<[u8]>) -> Self {
        Self::of(PartKind::Text, text)
    }

    /// The model's reasoning, with the provider's signature if there is one.
    pub fn reasoning(text: impl AsRef<[u8]>, signature: Option<&[u8]>) -> Self {
        Self { signature: signature.map(Arc::from), ..Self::of(PartKind::Reasoning, text) }
    }

    /// An image or document, as the host stored it.
    pub fn media(bytes: impl AsRef<[u8]>, media_type: Option<String>) -> Self {
        Self { media_type, ..Self::of(PartKind::Media, bytes) }
    }

    /// Something that is kept and sent, not interpreted.
    pub fn opaque(bytes: impl AsRef<[u8]>) -> Self {
        Self::of(PartKind::Opaque, bytes)
    }

    /// A part of `kind`.
    pub fn of(kind: PartKind, bytes: impl AsRef<[u8]>) -> Self {
        Self { kind, bytes: Arc::from(bytes.as_ref()), media_type: None, signature: None }
    }
}

/// An item as a host can name it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ItemRef {
    /// By id.
    Id(ItemId),
    /// By the origin of the event that recorded it, and the part from 1. Unknown origins are left out.
    Origin(String, u32),
    /// The same of an event of another stream, whose history this one shares.
    Shared(StreamId, String, u32),
}

impl ItemRef {
    fn origin(&self) -> Option<&str> {
        match self {
            Self::Origin(origin, _) => Some(origin),
            Self::Id(_) | Self::Shared(..) => None,
        }
    }
}

/// The name of a session without the number of a branch of it; see [`StreamInfo::branch`].
pub fn without_branch(name: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once('+').filter(|(_, number)| is_number(number)).map_or(name, |(session, _)| session)
}

/// A point in the stream as a host can name it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PointRef {
    /// After this seq.
    Seq(Seq),
    /// Just after the event with this origin (and after nothing, if it is unknown).
    After(String),
    /// Just before the event with this origin (before everything, if it is unknown).
    Before(String),
}

/// A memory item as a host reports it.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct MemoryEntry {
    /// Its id; made by the store if empty.
    pub id: String,
    /// Its kind.
    pub kind: MemoryKind,
    /// Category; empty: the kind's default.
    pub category: String,
    /// For a preference: its key.
    pub key: Option<String>,
    /// Its subject, if known.
    pub subject: Option<String>,
    /// The value, fact, description or remark.
    pub value: String,
    /// The reason, for a decision.
    pub rationale: Option<String>,
    /// Other choices that were considered.
    pub alternatives: Vec<String>,
    /// Files it concerns.
    pub related_files: Vec<String>,
    /// Confidence in hundredths.
    pub confidence: u8,
    /// How long it lives; `None`: the kind's default.
    pub lifespan: Option<Lifespan>,
    /// When it came about.
    pub created: Option<Micros>,
    /// The part or call it comes from, with the byte range of the text.
    pub source: Option<(ItemId, u32, u32)>,
    /// Ids that it supersedes.
    pub replaces: Vec<String>,
    /// Ids that supersede it.
    pub superseded_by: Vec<String>,
    /// The record's own word for its status.
    pub status: Option<String>,
    /// Other fields of the record, JSON.
    pub extra: Option<Bytes>,
}

/// A change to one todo entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodoChangeEntry {
    /// The host's id of the entry.
    pub id: String,
    /// New status.
    pub status: Option<String>,
    /// New content: a JSON object with `content` and the host's other fields.
    pub entry: Option<Bytes>,
}

/// A piece of a host's own record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WirePiece {
    /// Bytes as they stand in the record.
    Literal(Vec<u8>),
    /// The bytes of a body, as they are.
    Raw(Bytes),
    /// The bytes of a body, escaped as a JSON string (without the quotes): `"`, `\`, the short escapes of C0, and
    /// `\u00xx` in lower case for the rest of C0.
    Escaped(Bytes),
    /// The record that has this origin in the same stream, in its newest revision: for hosts that keep a whole
    /// session in one JSON document.
    Record(String),
}

/// One fact as a host reports it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::{Entry, Role};
///
/// let entries = [
///     Entry::prompt("p1").origin("prompt:p1"), // an origin makes it idempotent
///     Entry::message("p1", Role::User, "what does main do?").origin("message:p1"),
/// ];
/// assert_eq!(session.append(entries.clone())?.event_count, 3); // the session, the prompt, the message
/// assert_eq!(session.append(entries)?.event_count, 0); // known already
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The fact that happened.
    pub fact: Fact,
    /// Canonical id of the fact, the same from every feed; without one it is recorded as often as it is given.
    pub origin: Option<String>,
    /// The host's own time.
    pub host_time: Option<Micros>,
    /// The actor; `None`: by the kind of fact.
    pub actor: Option<Actor>,
    /// The record it comes from, if it is the first fact of that record.
    pub wire: Vec<WirePiece>,
}

impl From<Fact> for Entry {
    fn from(fact: Fact) -> Self {
        Self { fact, origin: None, host_time: None, actor: None, wire: Vec::new() }
    }
}

impl Entry {
    /// A message with one text part.
    pub fn message(key: impl Into<String>, role: Role, text: impl AsRef<[u8]>) -> Self {
        Self::message_parts(key, role, vec![PartEntry::text(text)])
    }

    /// A message with these parts.
    pub fn message_parts(key: impl Into<String>, role: Role, parts: Vec<PartEntry>) -> Self {
        fact::MessageRecorded {
            key: key.into(),
            role,
            parts,
            parent: None,
            hidden_from_model: false,
            hidden_from_user: false,
        }
        .into()
    }

    /// A model step begins; the same key twice begins one step.
    pub fn step(key: impl Into<String>) -> Self {
        fact::TurnStarted { kind: TurnKind::Step, key: key.into(), number: None }.into()
    }

    /// A user's prompt begins.
    pub fn prompt(key: impl Into<String>) -> Self {
        fact::TurnStarted { kind: TurnKind::Prompt, key: key.into(), number: None }.into()
    }

    /// A tool was called with these parameter bytes (JSON as the host wrote it).
    pub fn tool_started(call: impl Into<String>, tool: impl Into<String>, params: impl AsRef<[u8]>) -> Self {
        fact::ToolStarted {
            call: call.into(),
            message: None,
            tool: tool.into(),
            params: Arc::from(params.as_ref()),
            provider_signature: None,
        }
        .into()
    }

    /// A call completed with a text.
    pub fn tool_completed(call: impl Into<String>, output: impl AsRef<[u8]>) -> Self {
        Self::tool_finished(call, Outcome::Completed, vec![PartEntry::text(output)])
    }

    /// A call failed with this error text.
    pub fn tool_failed(call: impl Into<String>, error: impl AsRef<[u8]>) -> Self {
        Self::tool_finished(call, Outcome::Failed, vec![PartEntry::text(error)])
    }

    /// A call was aborted, for this reason.
    pub fn tool_aborted(call: impl Into<String>, why: impl AsRef<[u8]>) -> Self {
        Self::tool_finished(call, Outcome::Aborted, vec![PartEntry::text(why)])
    }

    /// A call ended.
    pub fn tool_finished(call: impl Into<String>, outcome: Outcome, output: Vec<PartEntry>) -> Self {
        fact::ToolFinished { call: call.into(), outcome, output, details: None, todo_change: None }.into()
    }

    /// Something else that the host wrote.
    pub fn host_record(record: impl Into<String>, raw: Option<Bytes>) -> Self {
        fact::HostRecorded { record: record.into(), about: None, raw }.into()
    }

    /// Sets the canonical id of the fact.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Sets the host's own time.
    #[must_use]
    pub fn at(mut self, host_time: Option<Micros>) -> Self {
        self.host_time = host_time;
        self
    }

    /// Sets the actor.
    #[must_use]
    pub fn by(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Sets the record it comes from.
    #[must_use]
    pub fn wire(mut self, wire: Vec<WirePiece>) -> Self {
        self.wire = wire;
        self
    }

    /// Names the message that asked for a call. No effect on other facts.
    #[must_use]
    pub fn in_message(mut self, key: impl Into<String>) -> Self {
        if let Fact::ToolStarted(fact::ToolStarted { message, .. }) = &mut self.fact {
            *message = Some(key.into());
        }
        self
    }

    /// Adds the part of a result that the model never sees. No effect on other facts.
    #[must_use]
    pub fn details(mut self, raw: impl AsRef<[u8]>) -> Self {
        if let Fact::ToolFinished(fact::ToolFinished { details, .. }) = &mut self.fact {
            *details = Some(Arc::from(raw.as_ref()));
        }
        self
    }
}
