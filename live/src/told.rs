//! Events that a host tells a hook, in a form that belongs to no host.

use std::collections::BTreeMap;
use std::path::PathBuf;

use acpdb_engine::event::Outcome;

/// One event of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostEvent {
    /// The host's id of the session.
    pub session: String,
    /// The event's name, as the host spells it.
    pub name: String,
    /// The working folder.
    pub cwd: Option<PathBuf>,
    /// The host's own recording, as far as it is written.
    pub transcript: Option<PathBuf>,
    /// The subagent that it is about.
    pub agent: Option<String>,
    /// The event.
    pub event: HostEventKind,
}

/// The kinds of events.
#[derive(Clone, PartialEq, Debug)]
pub enum HostEventKind {
    /// A session begins, or goes on.
    SessionStarted {
        /// Why it begins.
        source: SessionStart,
    },
    /// The user sent a prompt.
    Prompted {
        /// The host's id of the prompt.
        id: Option<String>,
        /// The text.
        text: String,
    },
    /// A call ended.
    CallEnded(CallWithResult),
    /// All calls that the model made at once ended.
    BatchEnded,
    /// The model's answer is complete.
    Stopped {
        /// The model's last text, where the host gives it.
        said: Option<String>,
    },
    /// A subagent ended.
    AgentStopped {
        /// The subagent's own recording.
        transcript: Option<PathBuf>,
    },
    /// The host is about to make the context shorter.
    Compacting,
    /// The host asks for a shorter conversation.
    FoldAsked(PruneRequest),
    /// A row is about to be kept; the call that ended with it, if it is a result.
    RowAdded(Option<CallWithResult>),
    /// A part of the host asks whether its rows and folds are understood here.
    Greeted,
    /// The session ends.
    SessionEnded,
    /// Any other event.
    Other,
}

/// Why a session begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionStart {
    /// It is new, or was emptied.
    New,
    /// It goes on where it ended.
    Resumed,
    /// Its context was made shorter.
    Compacted,
}

/// A conversation that is to be made shorter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PruneRequest {
    /// Estimated tokens of its texts.
    pub tokens: u64,
    /// Whether the user asked in words to keep something: a model has to read them.
    pub has_words: bool,
    /// The conversation in the host's own shape.
    pub raw: serde_json::Value,
}

/// New contents of parts of a conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folded {
    /// New parameters (as JSON) and results of calls, by their ids; calls that stay are left out.
    pub calls: BTreeMap<String, CallChange>,
    /// Texts of the model's that are shown otherwise.
    pub texts: BTreeMap<String, String>,
}

/// New contents of a call's parts.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Deserialize)]
pub struct CallChange {
    /// Its parameters, as JSON.
    pub input: Option<String>,
    /// Its result.
    pub output: Option<String>,
}

/// A call and its result.
#[derive(Clone, PartialEq, Debug)]
pub struct CallWithResult {
    /// The host's id of the call, where it gives one.
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its parameters, as JSON.
    pub params: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The text that the model would see; `None` if the dialect cannot tell it from the host's JSON.
    pub shown: Option<String>,
    /// The part of [`CallWithResult::shown`] that the tool made, without the text that the host puts around it.
    pub text: Option<String>,
    /// The result as the host gave it, as JSON, to be given back in the same shape.
    pub raw: serde_json::Value,
}

/// The answer to a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostReply {
    /// A text for the model.
    pub context: Option<String>,
    /// The text in place of the call's result.
    pub replacement: Option<String>,
    /// The changes that make the conversation shorter.
    pub folded: Option<Folded>,
    /// Whether the greeting is returned.
    pub is_greeting: bool,
}

impl HostReply {
    /// Whether there is nothing to say.
    pub const fn is_empty(&self) -> bool {
        self.context.is_none() && self.replacement.is_none() && self.folded.is_none() && !self.is_greeting
    }
}
