//! Tool calls: two events each, so that a crash in the middle leaves a trace.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::cbor::{array, numbers, part, record};
use super::kind::{EventKind, NamedBody, bodies_of, named_parts, tokens_of};
use super::{Body, Part, TaskFields, TodoList, TodoUpdate};
use crate::ids::Signature;
use crate::text::signature::is_masked;
use crate::text::words::{tokens, word};

numbers! {
    /// A tool's action on the things that its keys name.
    #[derive(Default)]
    pub enum ToolClass {
        /// Shows a file.
        Read = 0,
        /// Replaces a whole file.
        Write = 1,
        /// Changes part of a file.
        Edit = 2,
        /// Removes a file.
        Delete = 3,
        /// Lists or searches.
        Search = 4,
        /// Anything else.
        #[default]
        Other = 5,
    }
}

numbers! {
    /// The kind of thing that a key names. Keys of different kinds never meet.
    pub enum KeyKind {
        /// A file: its path.
        File = 0,
        /// A search: `glob:{path}:{pattern}` and the like; fields are compared one by one ([`Key::fields`]).
        Search = 1,
        /// A web address or web query.
        Url = 2,
        /// A command line.
        Exec = 3,
        /// A question about state: `bash:git:status` and its operands.
        State = 4,
        /// A task.
        Task = 5,
        /// A check that a command line runs: `cargo test` and its operands.
        Check = 6,
    }
}

/// A thing that a call is about.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// The kind of thing.
    pub kind: KeyKind,
    /// The call's action on it.
    pub class: ToolClass,
    /// As the call gave it; for a search or state key, as it prints.
    pub given: String,
    /// For a file: resolved against the session's folder by text alone, if that differs.
    pub resolved: Option<String>,
    /// For search and state keys: the fields that must all be equal. Empty for other kinds.
    pub fields: Vec<String>,
}

part!(Key { 0 kind, 1 class, 2 given, 3 resolved, 4 fields });

numbers! {
    /// Which parameters a signature covers, and how.
    pub enum SignatureForm {
        /// As given, without top-level nulls.
        NoNulls = 0,
        /// File paths resolved.
        Resolved = 1,
        /// File paths resolved, without top-level nulls.
        ResolvedNoNulls = 2,
    }
}

/// Sizes of the parameters as a placeholder shows them; the texts themselves come from the body.
#[derive(
    Archive, Serialize, Deserialize, ToJson, FromJson, Clone, Copy, PartialEq, Eq, Hash, Debug, Default,
)]
pub struct Shown {
    /// Bytes of `TOOL({k: "v"})`, without the arrow and the status.
    pub line_bytes: u32,
    /// Estimated tokens of the same.
    pub line_tokens: u32,
    /// Bytes of the parameters with their long strings set aside.
    pub object_bytes: u32,
    /// Estimated tokens of the same.
    pub object_tokens: u32,
}

array!(Shown { line_bytes, line_tokens, object_bytes, object_tokens });

numbers! {
    /// A tool's role in the todo rule.
    #[derive(Default)]
    pub enum TodoRole {
        /// No role.
        #[default]
        None = 0,
        /// Writes the whole list.
        Write = 1,
        /// Reads the list.
        Read = 2,
        /// Changes one entry: no rule touches it.
        Delta = 3,
    }
}

/// A tool was called.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ToolCallStarted {
    /// The host's id of the call; not unique.
    pub call: String,
    /// Key of the message that asked for it, if known.
    pub message: Option<String>,
    /// Name of the tool, as the host spells it.
    pub tool: String,
    /// The host's parameter bytes.
    pub params: Body,
    /// Estimated tokens of the canonical parameters.
    pub canonical_tokens: u32,
    /// First 24 bits of SHA-256 of the canonical parameters; with the tool's letter the short hash. In the log they are
    /// permuted with the store's secret.
    pub label: u32,
    /// Signature over tool and canonical parameters as given.
    pub signature: Signature,
    /// Further forms of the signature, those that differ, in order of their form.
    pub forms: Vec<(SignatureForm, Signature)>,
    /// The tool's action.
    pub class: ToolClass,
    /// The things that the call is about.
    pub keys: Vec<Key>,
    /// Equal parameters, but a new answer each time.
    pub volatile: bool,
    /// The tool's role in the todo rule.
    pub todo: TodoRole,
    /// The list that the call writes, if it stands in the parameters.
    pub todos: Option<TodoList>,
    /// Sizes of placeholders.
    pub shown: Shown,
    /// Version of the tool registry that gave class and keys.
    pub registry: u32,
    /// The provider's signature on the call, byte for byte.
    pub provider_signature: Option<Body>,
    /// The changes of tasks that the parameters ask for; they count once the call has completed.
    pub tasks: Vec<TaskFields>,
}

record!(ToolCallStarted {
    4 call, 5 message, 6 tool, 7 params, 8 canonical_tokens, 9 label, 10 signature, 11 forms,
    12 class, 13 keys, 14 volatile, 15 todo, 16 todos, 17 shown, 18 registry, 19 provider_signature,
    20 tasks,
});

impl EventKind for ToolCallStarted {
    fn in_words(&self) -> String {
        // Patterns and command lines are masks in the log; their words are in the parameters.
        let keys = self.keys.iter().map(|key| key.given.as_str()).filter(|key| !is_masked(key));
        let tool = std::iter::once(self.tool.as_str()).chain(keys).collect::<Vec<_>>().join(" ");
        format!("{tool} ~{} tokens", tokens(u64::from(self.params.tokens)))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, file_key, list, text};

        Self {
            call: "call_1".to_owned(),
            message: text("msg_1"),
            tool: "read".to_owned(),
            params: body(0, 25),
            canonical_tokens: 9,
            label: 0x00ab_cdef,
            signature: Signature([1; 16]),
            forms: vec![
                (SignatureForm::NoNulls, Signature([2; 16])),
                (SignatureForm::Resolved, Signature([3; 16])),
            ],
            class: ToolClass::Read,
            keys: vec![file_key()],
            volatile: true,
            todo: TodoRole::Write,
            todos: Some(list()),
            shown: Shown { line_bytes: 10, line_tokens: 4, object_bytes: 12, object_tokens: 5 },
            registry: 1,
            provider_signature: Some(body(2, 9)),
            tasks: vec![crate::event::TaskFields {
                id: "t1".to_owned(),
                content: Some(body(3, 4)),
                ..Default::default()
            }],
        }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        vec![NamedBody::telling("params", self.params)]
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        each(&mut self.params);
        self.todos.iter_mut().for_each(|list| each(&mut list.body));
        self.provider_signature.iter_mut().for_each(&mut *each);
        self.tasks.iter_mut().for_each(|task| task.bodies_mut(each));
    }
}

numbers! {
    /// How a call ended.
    #[derive(Default)]
    pub enum Outcome {
        /// It did its work.
        #[default]
        Completed = 0,
        /// It failed; the output is the error.
        Failed = 1,
        /// It was cancelled, refused or interrupted. Rules treat it as failed.
        Aborted = 2,
    }
}

/// A call ended. Pairs with the nearest earlier unanswered start of the same call id in the stream.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ToolCallFinished {
    /// The host's id of the call.
    pub call: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The result as the model sees it.
    pub output: Vec<Part>,
    /// The part of the result that the model never sees: exit codes, structured results.
    pub details: Option<Body>,
    /// The call's change to the todo list, if it stands in the result.
    pub todos: Option<TodoUpdate>,
}

record!(ToolCallFinished { 4 call, 5 outcome, 6 output, 7 details, 8 todos });

impl EventKind for ToolCallFinished {
    fn in_words(&self) -> String {
        format!("{}, call {} {}", word(&self.outcome), self.call, tokens_of(&self.output))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, change, part};

        Self {
            call: "call_1".to_owned(),
            outcome: Outcome::Failed,
            output: vec![part(0)],
            details: Some(body(2, 8)),
            todos: Some(TodoUpdate::Change(change())),
        }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        let mut all = named_parts(&self.output);
        all.extend(self.details.map(|body| NamedBody::beside("details", body)));
        all
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        bodies_of(&mut self.output, each);
        self.details.iter_mut().for_each(&mut *each);
        match &mut self.todos {
            Some(TodoUpdate::List(list)) => each(&mut list.body),
            Some(TodoUpdate::Change(change)) => change.entry.iter_mut().for_each(each),
            None => {}
        }
    }
}

numbers! {
    /// The cause of a file's change.
    #[derive(Default)]
    pub enum FileChanger {
        /// The person.
        #[default]
        User = 0,
        /// A command.
        Shell = 1,
        /// A subagent.
        Subagent = 2,
        /// The host program.
        Host = 3,
    }
}

/// A file changed and no call shows how. Supersedes nothing; earlier views of the file are stale.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct FileChanged {
    /// The file.
    pub key: Key,
    /// The cause of the change.
    pub by: FileChanger,
}

record!(FileChanged { 4 key, 5 by });

impl EventKind for FileChanged {
    fn in_words(&self) -> String {
        format!("{} by {}", self.key.given, word(&self.by))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::file_key;

        Self { key: file_key(), by: FileChanger::Shell }
    }
}
