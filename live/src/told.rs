//! What a host tells a hook, in words of no host.

use std::collections::BTreeMap;
use std::path::PathBuf;

use acpdb_engine::event::Outcome;

/// One event of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct Told {
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
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A session begins, or goes on.
    SessionStarted {
        /// Why it begins.
        source: Source,
    },
    /// The user said something.
    Prompted {
        /// The host's id of the prompt.
        id: Option<String>,
        /// The text.
        text: String,
    },
    /// A call ended.
    CallEnded(Call),
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
    /// The host asks what is to stand in the place of the conversation.
    FoldAsked(Asked),
    /// A row is about to be kept; the call that ended with it, if it is a result.
    RowAdded(Option<Call>),
    /// A part of the host asks whether its rows and folds are understood here.
    Greeted,
    /// The session ends.
    SessionEnded,
    /// Anything else.
    Other,
}

/// Why a session begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// It is new, or was emptied.
    New,
    /// It goes on where it ended.
    Resumed,
    /// Its context was made shorter.
    Compacted,
}

/// A conversation that is to be made shorter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Asked {
    /// Estimated tokens of its texts.
    pub tokens: u64,
    /// The user said in words what is to be kept: a model has to read them.
    pub has_words: bool,
    /// The conversation in the host's own shape.
    pub raw: serde_json::Value,
}

/// What stands in the place of parts of a conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folded {
    /// Parameters (as JSON) and result of calls, by their ids; those that stay are not there.
    pub calls: BTreeMap<String, Change>,
    /// Texts of the model's that are shown otherwise.
    pub texts: BTreeMap<String, String>,
}

/// What stands in the place of a call's parts.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Deserialize)]
pub struct Change {
    /// Its parameters, as JSON.
    pub input: Option<String>,
    /// Its result.
    pub output: Option<String>,
}

/// A call and its result.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// The host's id of the call, where it gives one.
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its parameters, as JSON.
    pub params: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The text that the model would see; `None` if the dialect cannot tell from what the host said.
    pub shown: Option<String>,
    /// The part of [`Call::shown`] that the tool made, without what the host puts around it.
    pub text: Option<String>,
    /// The result as the host gave it, as JSON, to be given back in the same shape.
    pub raw: serde_json::Value,
}

/// What the host is answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// A text for the model.
    pub context: Option<String>,
    /// What stands in for the result of the call.
    pub replacement: Option<String>,
    /// What stands in for the conversation.
    pub folded: Option<Folded>,
    /// The greeting is returned.
    pub is_greeting: bool,
}

impl Answer {
    /// Whether there is nothing to say.
    pub const fn is_empty(&self) -> bool {
        self.context.is_none() && self.replacement.is_none() && self.folded.is_none() && !self.is_greeting
    }
}
