//! Knows the tools of hosts: the effect of each, its files, and the place of its todo list.
//!
//! ```text
//! (host, tool, params) -> table line -> class, keys, params to resolve, volatile, todo role, todo list, shown params
//! ```
//!
//! Names are exact and case-sensitive per host: `Read` is a file tool of Claude Code, not of opencode. A name behind
//! `mcp__SERVER__` is another server's tool and not known here. A call may have several keys (a patch), each with its
//! own class; `null` and `""` are no key.
//!
//! The engine stores the answers with [`VERSION`]; it never asks twice. A host adds its own tools by wrapping this
//! registry in its own.

mod checks;
mod patch;
mod shell;
mod shown;
mod tables;
mod todos;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use acpdb_engine::event::{Key, KeyKind, TodoRole, ToolClass};
use acpdb_engine::registry::{Registry, ToolFacts};
use acpdb_engine::text::{Json, ParamPath};

use tables::{
    CLAUDE_CODE, CODEX, COPILOT_CLI, Does, GEMINI_CLI, GENERAL, OPENCODE, PI, SWE_AGENT, SearchParams,
    ToolRow,
};

/// Version of the tables. It goes up with every change of a table that changes an answer.
pub const VERSION: u32 = 6;

/// Longest key that is stored with a call, and the most of all keys together: keys are repeated in the event.
const KEY_BYTES_MAX: usize = 4 << 10;
const KEYS_BYTES_MAX: usize = 256 << 10;
/// Most keys of a call: each takes some 50 bytes of an event beside its text, and is compared with all before it.
const KEY_COUNT_MAX: usize = 4096;

/// Hosts whose tools are known by name, and those that have none.
const KNOWN: &[&str] = &[
    "acpdb",
    "claude-code",
    "codex",
    "copilot-cli",
    "gemini-cli",
    "opencode",
    "openai-messages",
    "pi",
    "swe-agent",
];

/// Prefix of tools that change single todos, with every host that has them.
const DELTA_PREFIX: &str = "tracker_";

/// Whether a host's own tools are known. Tools of other hosts are read like those of sessions made by hand.
pub fn is_known_host(host: &str) -> bool {
    KNOWN.contains(&host)
}

/// The hosts whose tools are known.
pub const fn known_hosts() -> &'static [&'static str] {
    KNOWN
}

/// The registry of all hosts that are known.
pub fn registry() -> Arc<dyn Registry> {
    Arc::new(HostRegistry)
}

/// Knows the tools of the hosts that can be imported, and of sessions made by hand (host `acpdb`, and any other).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostRegistry;

impl Registry for HostRegistry {
    fn version(&self) -> u32 {
        VERSION
    }

    fn tool(&self, host: &str, tool: &str, params: &Json) -> ToolFacts {
        match line(host, tool) {
            Some(line) => facts(line, params),
            None if tool.starts_with(DELTA_PREFIX) && !tables_of(host).is_empty() => {
                ToolFacts { todo: TodoRole::Delta, ..ToolFacts::default() }
            }
            None => ToolFacts::default(),
        }
    }

    fn todos_in_output(&self, host: &str, tool: &str, output: &[u8]) -> Option<Vec<u8>> {
        match line(host, tool)?.does {
            Does::TodosInOutput => {
                // An output that is no JSON lists no todos, nor does one that holds more than a line of JSON may.
                let text = crate::lines::text(output).ok()?;
                // As above.
                todos::normalised(&Json::parse(text.as_bytes()).ok()?, "content")
            }
            _ => None,
        }
    }
}

/// Tables of a host; the first that knows a name counts.
///
/// Sessions made by hand, and by hosts that are not known, have the general names, opencode's and Claude Code's, and those of
/// other hosts that mean one thing only. Plain lists of messages (`openai-messages`) come from agents of one's own.
fn tables_of(host: &str) -> &'static [&'static [ToolRow]] {
    match host {
        "opencode" => &[OPENCODE],
        "claude-code" => &[CLAUDE_CODE],
        "codex" => &[CODEX],
        "gemini-cli" => &[GEMINI_CLI],
        "copilot-cli" => &[COPILOT_CLI],
        "pi" => &[PI],
        "swe-agent" => &[SWE_AGENT],
        "openai-messages" => &[GENERAL],
        _ => &[GENERAL, OPENCODE, CLAUDE_CODE, GEMINI_CLI, CODEX],
    }
}

fn line(host: &str, tool: &str) -> Option<&'static ToolRow> {
    tables_of(host).iter().find_map(|table| table.iter().find(|line| line.name == tool))
}

fn facts(line: &ToolRow, params: &Json) -> ToolFacts {
    let mut facts = ToolFacts { shown: line.shown.to_vec(), ..ToolFacts::default() };
    match line.does {
        Does::Files(class, names) => {
            facts.class = class;
            if let Some(name) = first_with_text(params, names) {
                add_files(&mut facts, params, name, class);
            }
        }
        Does::Editor(act, name) => {
            let class = match text_at(params, act) {
                Some("view") => ToolClass::Read,
                Some("create") => ToolClass::Write,
                Some("str_replace" | "insert" | "undo_edit") => ToolClass::Edit,
                // An act of a later version: its effect is not known, and the file that it is about is.
                _ => ToolClass::Other,
            };
            facts.class = class;
            add_files(&mut facts, params, name, class);
            facts.shown = vec![act, name];
        }
        Does::Edits(name, more) => {
            facts.class = ToolClass::Edit;
            add_files(&mut facts, params, name, ToolClass::Edit);
            add_files(&mut facts, params, more, ToolClass::Edit);
            facts.shown = vec![name];
        }
        Does::Patch(names) => {
            facts.class = ToolClass::Edit;
            let text = names.iter().find_map(|name| Some((*name, text_at(params, name)?)));
            if let Some((name, text)) = text {
                for (class, path) in patch::files(text) {
                    add(&mut facts.keys, KeyKind::File, class, path, Vec::new());
                }
                if !name.is_empty() {
                    facts.shown = vec![name];
                }
            }
        }
        Does::Search(search) => add_search(&mut facts, params, &search),
        Does::Shell(name, folders) => add_command(&mut facts, params, name, folders),
        Does::Action(name) => {
            add_command(&mut facts, params, name, &[]);
            if let Some(file) = text_at(params, name).and_then(shown::opened) {
                add(&mut facts.keys, KeyKind::File, ToolClass::Other, file, Vec::new());
            }
        }
        Does::Url(name) => {
            if let Some(url) = text_at(params, name) {
                add(&mut facts.keys, KeyKind::Url, ToolClass::Other, url, Vec::new());
            }
            facts.shown = vec![name];
        }
        Does::Query(name) => {
            if let Some(query) = text_at(params, name) {
                let given = format!("search:{query}");
                add(&mut facts.keys, KeyKind::Url, ToolClass::Other, &given, Vec::new());
            }
            facts.shown = vec![name];
        }
        Does::TodosInOutput => facts.todo = TodoRole::Write,
        Does::Todos(name, content) => {
            facts.todo = TodoRole::Write;
            facts.todos = params.get(name).and_then(|list| todos::normalised(list, content));
        }
        Does::TodoRead => facts.todo = TodoRole::Read,
        Does::Tasks(name, fields) => {
            facts.todo = TodoRole::Delta;
            facts.tasks = params.get(name).and_then(|list| todos::tasks(list, fields));
        }
        Does::TodoDelta(name) => {
            facts.todo = TodoRole::Delta;
            if let Some(task) = text_at(params, name) {
                add(&mut facts.keys, KeyKind::Task, ToolClass::Other, task, Vec::new());
            }
        }
        Does::Poll => facts.volatile = true,
        Does::Plain => {}
    }
    facts
}

/// The first of `names` under which there is a text.
fn first_with_text(params: &Json, names: &[&'static str]) -> Option<&'static str> {
    names.iter().copied().find(|name| text_at(params, name).is_some())
}

/// The first text that is not empty at a path; the empty path means the params themselves.
fn text_at<'j>(params: &'j Json, path: &str) -> Option<&'j str> {
    params.at(ParamPath::new(path)).find(|text| !text.is_empty())
}

fn add_files(facts: &mut ToolFacts, params: &Json, path: &'static str, class: ToolClass) {
    for file in params.at(ParamPath::new(path)) {
        add(&mut facts.keys, KeyKind::File, class, file, Vec::new());
    }
    facts.file_params.push(path);
    if facts.shown.is_empty() {
        facts.shown.push(path);
    }
}

fn add_search(facts: &mut ToolFacts, params: &Json, search: &SearchParams) {
    facts.class = ToolClass::Search;
    let path = search.path.iter().find_map(|name| text_at(params, name)).unwrap_or_default();
    let pattern = if search.pattern.is_empty() { None } else { text_at(params, search.pattern) };
    let pattern = pattern.unwrap_or_default();
    let include: Vec<&str> = search.include.iter().filter_map(|name| text_at(params, name)).collect();
    let include = include.join(" ");
    let kind = search.kind;
    let given = match kind {
        "grep" => format!("grep:{path}:{pattern}:{include}"),
        "list" => format!("list:{path}"),
        _ => format!("{kind}:{path}:{pattern}"),
    };
    let fields = [kind, path, pattern, &include].map(str::to_owned).to_vec();
    add(&mut facts.keys, KeyKind::Search, ToolClass::Search, &given, fields);
    let path = first_with_text(params, search.path).or_else(|| search.path.first().copied());
    facts.shown = match kind {
        "grep" => std::iter::once(search.pattern).chain(search.include.iter().copied()).chain(path).collect(),
        "list" => path.into_iter().collect(),
        _ => std::iter::once(search.pattern).chain(path).collect(),
    };
}

fn add_command(facts: &mut ToolFacts, params: &Json, name: &'static str, folders: &[&str]) {
    // Some hosts give the words of the command line one by one.
    let words: Vec<&str>;
    let joined;
    let command = match params.get(name) {
        Some(Json::Arr(items)) => {
            words = items.iter().filter_map(Json::as_str).collect();
            joined = match words.as_slice() {
                [_, "-c" | "-lc", script] => (*script).to_owned(),
                words => words.join(" "),
            };
            joined.as_str()
        }
        Some(value) => value.as_str().unwrap_or_default(),
        None => return,
    };
    if command.is_empty() {
        return;
    }
    if let Some(patch) = shell::patch(command) {
        facts.class = ToolClass::Edit;
        for (class, path) in patch::files(patch) {
            add(&mut facts.keys, KeyKind::File, class, path, Vec::new());
        }
    }
    add(&mut facts.keys, KeyKind::Exec, ToolClass::Other, command, Vec::new());
    if let Some((given, operands)) = shell::state_query(command) {
        let mut fields = vec![given.clone()];
        fields.extend(operands);
        // The same question in another folder is another question.
        if let Some(folder) = folders.iter().find_map(|name| text_at(params, name)) {
            fields.push(format!("in {folder}"));
        }
        add(&mut facts.keys, KeyKind::State, ToolClass::Other, &given, fields);
    }
    if let Some(check) = checks::check(command) {
        let mut fields = vec![check.name.clone()];
        fields.extend(check.operands);
        let folder = folders.iter().find_map(|name| text_at(params, name));
        fields.extend(check.folder.as_deref().or(folder).map(|folder| format!("in {folder}")));
        add(&mut facts.keys, KeyKind::Check, ToolClass::Other, &check.name, fields);
    }
    // Last, so that the keys that were known before keep their places.
    let folder = folders.iter().find_map(|name| text_at(params, name));
    for file in shown::files(command, folder) {
        add(&mut facts.keys, KeyKind::File, ToolClass::Other, &file, Vec::new());
    }
}

/// Adds a key, unless it is empty, there already, or past the limits.
fn add(keys: &mut Vec<Key>, kind: KeyKind, class: ToolClass, given: &str, fields: Vec<String>) {
    let bytes =
        |given: &str, fields: &[String]| fields.iter().fold(given.len(), |sum, field| sum + field.len());
    if given.is_empty() || keys.len() >= KEY_COUNT_MAX || bytes(given, &fields) > KEY_BYTES_MAX {
        return;
    }
    let all: usize = keys.iter().map(|key| bytes(&key.given, &key.fields)).sum();
    let key = Key { kind, class, given: given.to_owned(), resolved: None, fields };
    if all <= KEYS_BYTES_MAX && !keys.contains(&key) {
        keys.push(key);
    }
}
