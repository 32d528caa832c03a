//! The engine's questions about tools: a trait that `hosts` implements and hosts may extend.
//!
//! The answers are taken once, when a call is recorded, and stored in the event with the registry's version. A replay
//! never asks again, so a later registry cannot rewrite the past.

use std::fmt::Debug;

use crate::event::{Key, TodoRole, ToolClass};
use crate::text::json::Json;

/// A registry's facts about one call.
///
/// ```
/// use acpdb_engine::ToolFacts;
/// use acpdb_engine::event::{Key, KeyKind, ToolClass};
///
/// let key = Key {
///     kind: KeyKind::File,
///     class: ToolClass::Read,
///     given: "plan.md".into(),
///     resolved: None, // the engine resolves it
///     fields: Vec::new(),
/// };
/// let facts = ToolFacts { class: ToolClass::Read, keys: vec![key], file_params: vec!["path"], ..ToolFacts::default() };
/// assert!(!facts.volatile);
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ToolFacts {
    /// The tool's class.
    pub class: ToolClass,
    /// The things that the call is about. File keys are given as the call spells them; the engine resolves them.
    pub keys: Vec<Key>,
    /// Parameters that hold file paths, such as `filePath`, `paths[]` or `edits[].filePath`: resolved in the
    /// resolved forms of the signature. Patch text is not listed here.
    pub file_params: Vec<&'static str>,
    /// Equal parameters give a new answer each time.
    pub volatile: bool,
    /// The tool's part in the todo rule.
    pub todo: TodoRole,
    /// The whole todo list that the parameters hold: a JSON array of objects with `content` and `status`.
    pub todos: Option<Vec<u8>>,
    /// The changes of tasks that the parameters ask for, as [`crate::command::TaskUpdate`] reads them: `{"tasks": [{"id": .., "status": ..,
    /// "result_summary": ..}]}`. They count once the call has completed; a task that it completes goes behind the summary as given.
    pub tasks: Option<Vec<u8>>,
    /// Parameters that a tombstone shows, in order; empty: the first two canonical ones.
    pub shown: Vec<&'static str>,
}

/// Knows the tools of hosts. Exact, case-sensitive names per host.
///
/// ```
/// use acpdb_engine::answers::Json;
/// use acpdb_engine::event::ToolClass;
/// use acpdb_engine::{Registry, Store, ToolFacts};
///
/// #[derive(Debug)]
/// struct MyTools;
///
/// impl Registry for MyTools {
///     fn version(&self) -> u32 {
///         1 // goes up with every change of an answer: it is stored with each call
///     }
///
///     fn tool(&self, _host: &str, tool: &str, _params: &Json) -> ToolFacts {
///         let class = if tool == "open_document" { ToolClass::Read } else { ToolClass::Other };
///         ToolFacts { class, ..ToolFacts::default() }
///     }
///
///     fn todos_in_output(&self, _host: &str, _tool: &str, _output: &[u8]) -> Option<Vec<u8>> {
///         None
///     }
/// }
///
/// # let folder = tempfile::tempdir()?;
/// let store = Store::builder(folder.path().join("store")).registry(std::sync::Arc::new(MyTools)).open()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Registry: Send + Sync + Debug {
    /// Version of the registry's facts, stored with each call.
    fn version(&self) -> u32;

    /// The facts about a call of `tool` by `host` with these parameters. Unknown tools: the default.
    fn tool(&self, host: &str, tool: &str, params: &Json) -> ToolFacts;

    /// The todo list that stands in a completed call's output, if this tool puts it there: a JSON array of objects
    /// with `content` and `status`. `None` also if the output is not such a list.
    fn todos_in_output(&self, host: &str, tool: &str, output: &[u8]) -> Option<Vec<u8>>;
}

/// A registry that knows no tool: every call is of class `other`, without keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl Registry for NoTools {
    fn version(&self) -> u32 {
        0
    }

    fn tool(&self, _host: &str, _tool: &str, _params: &Json) -> ToolFacts {
        ToolFacts::default()
    }

    fn todos_in_output(&self, _host: &str, _tool: &str, _output: &[u8]) -> Option<Vec<u8>> {
        None
    }
}
