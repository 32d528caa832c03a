//! What a host tells a hook, in words of no host.

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
}

impl Answer {
    /// Whether there is nothing to say.
    pub const fn is_empty(&self) -> bool {
        self.context.is_none() && self.replacement.is_none()
    }
}
