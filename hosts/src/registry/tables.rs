//! The tools that are known, host by host: exact names, as each host spells them.
//!
//! To know a further tool, add one line. [`Does`] tells the meaning of the columns.

use acpdb_engine::event::ToolClass::{self, Delete, Edit, Read, Write};

/// A line of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolRow {
    pub(super) name: &'static str,
    pub(super) does: Does,
    /// Params that a tombstone shows; empty: those that give keys, else the first two.
    pub(super) shown: &'static [&'static str],
}

/// The effect of a tool, and the params that tell it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    /// Views or changes the files named by the first of these params that is there; `a[]` and `a[].b` name several.
    Files(ToolClass, &'static [&'static str]),
    /// Views, writes or changes the file that the second param names; the first one says which.
    Editor(&'static str, &'static str),
    /// Changes one file, and more named in a list of edits.
    Edits(&'static str, &'static str),
    /// Applies a patch: the text is one of these params; the empty name is the params themselves.
    Patch(&'static [&'static str]),
    /// Lists or searches.
    Search(SearchParams),
    /// Runs a command line; the second param names the folder it runs in.
    Shell(&'static str, &'static [&'static str]),
    /// Runs an action: a command line, or one that opens a file in the host's editor.
    Action(&'static str),
    /// Fetches an address.
    Url(&'static str),
    /// Asks the web.
    Query(&'static str),
    /// Writes the whole todo list, which stands in the output.
    TodosInOutput,
    /// Writes the whole todo list: the param, and the field of its items that is the content.
    Todos(&'static str, &'static str),
    /// Reads the todo list.
    TodoRead,
    /// Changes a single todo; the param names it.
    TodoDelta(&'static str),
    /// Changes tasks: the param that lists them, and what its entries call id, content, status and summary.
    Tasks(&'static str, [&'static str; 4]),
    /// Asks again about something that goes on: equal params, new answer.
    Poll,
    /// Gives a task to a subagent, or anything else worth showing, without keys.
    Plain,
}

/// The params of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchParams {
    /// How its key begins: `glob`, `grep` or `list`.
    pub(super) kind: &'static str,
    /// The path: the first of these params that is there.
    pub(super) path: &'static [&'static str],
    pub(super) pattern: &'static str,
    /// Params that select files; all that are there count.
    pub(super) include: &'static [&'static str],
}

const fn tool(name: &'static str, does: Does) -> ToolRow {
    ToolRow { name, does, shown: &[] }
}

const fn shown(name: &'static str, does: Does, shown: &'static [&'static str]) -> ToolRow {
    ToolRow { name, does, shown }
}

const fn search(
    kind: &'static str,
    path: &'static [&'static str],
    pattern: &'static str,
    include: &'static [&'static str],
) -> Does {
    Does::Search(SearchParams { kind, path, pattern, include })
}

/// The params by which tools of one's own name a file.
const FILE: &[&str] = &["filePath", "file_path", "path", "absolute_path", "target_file"];

/// Agents of one's own, and hosts that are not known. The names are those of tools that many of them have: of frameworks
/// (`LangChain`, Deep Agents), of the Model Context Protocol's server of files, of Anthropic's editor, of assistants in editors.
///
/// Names that mean one thing here and another there are left out: `search_files` looks for names or for texts, and `fetch` gives
/// a page or a part of it.
pub(super) const GENERAL: &[ToolRow] = &[
    tool("read", Does::Files(Read, FILE)),
    tool("read_file", Does::Files(Read, FILE)),
    tool("read_text_file", Does::Files(Read, FILE)),
    tool("read_multiple_files", Does::Files(Read, &["paths[]"])),
    tool("write", Does::Files(Write, FILE)),
    tool("write_file", Does::Files(Write, FILE)),
    tool("write_to_file", Does::Files(Write, FILE)),
    tool("create_file", Does::Files(Write, FILE)),
    tool("edit", Does::Files(Edit, FILE)),
    tool("edit_file", Does::Files(Edit, FILE)),
    tool("replace_in_file", Does::Files(Edit, FILE)),
    tool("apply_diff", Does::Files(Edit, FILE)),
    tool("delete_file", Does::Files(Delete, FILE)),
    tool("str_replace_editor", Does::Editor("command", "path")),
    tool("str_replace_based_edit_tool", Does::Editor("command", "path")),
    tool("glob", search("glob", &["path"], "pattern", &[])),
    tool("grep", search("grep", &["path"], "pattern", &["include", "glob", "type"])),
    tool("list_directory", search("list", &["path", "dir_path"], "pattern", &[])),
    tool("ls", search("list", &["path"], "pattern", &[])),
    shown("bash", Does::Shell("command", &["workdir", "cwd"]), &["command", "description"]),
    shown("shell", Does::Shell("command", &["workdir", "cwd"]), &["command"]),
    shown("execute", Does::Shell("command", &[]), &["command"]),
    shown("execute_bash", Does::Shell("command", &[]), &["command"]),
    shown("execute_command", Does::Shell("command", &["cwd"]), &["command"]),
    shown("run_command", Does::Shell("command", &["cwd"]), &["command"]),
    tool("web_search", Does::Query("query")),
    tool("write_todos", Does::Todos("todos", "description")),
    tool("SigmaTaskUpdate", Does::Tasks("todos", ["id", "content", "status", "result_summary"])),
];

/// opencode.
pub(super) const OPENCODE: &[ToolRow] = &[
    tool("read", Does::Files(Read, &["filePath"])),
    tool("write", Does::Files(Write, &["filePath"])),
    tool("edit", Does::Files(Edit, &["filePath"])),
    tool("multiedit", Does::Edits("filePath", "edits[].filePath")),
    tool("apply_patch", Does::Patch(&["patchText"])),
    tool("glob", search("glob", &["path"], "pattern", &[])),
    tool("grep", search("grep", &["path"], "pattern", &["include"])),
    tool("list", search("list", &["path"], "pattern", &[])),
    shown("bash", Does::Shell("command", &["workdir"]), &["command", "description"]),
    tool("webfetch", Does::Url("url")),
    tool("websearch", Does::Query("query")),
    tool("ddg-search_search", Does::Query("query")),
    tool("google_search", Does::Query("query")),
    tool("todowrite", Does::TodosInOutput),
    tool("todoread", Does::TodoRead),
    shown("task", Does::Plain, &["description"]),
];

/// Claude Code.
pub(super) const CLAUDE_CODE: &[ToolRow] = &[
    tool("Read", Does::Files(Read, &["file_path"])),
    tool("NotebookRead", Does::Files(Read, &["notebook_path"])),
    tool("Write", Does::Files(Write, &["file_path"])),
    tool("Edit", Does::Files(Edit, &["file_path"])),
    tool("MultiEdit", Does::Files(Edit, &["file_path"])),
    tool("NotebookEdit", Does::Files(Edit, &["notebook_path"])),
    tool("Glob", search("glob", &["path"], "pattern", &[])),
    tool("Grep", search("grep", &["path"], "pattern", &["glob", "type"])),
    tool("LS", search("list", &["path"], "pattern", &[])),
    shown("Bash", Does::Shell("command", &[]), &["command", "description"]),
    // The answer depends on the question about the page, so the address alone is no key.
    shown("WebFetch", Does::Plain, &["url"]),
    tool("WebSearch", Does::Query("query")),
    tool("TodoWrite", Does::Todos("todos", "content")),
    tool("TodoRead", Does::TodoRead),
    tool("TaskList", Does::TodoRead),
    tool("TaskCreate", Does::TodoDelta("")),
    tool("TaskUpdate", Does::TodoDelta("taskId")),
    shown("Task", Does::Plain, &["description"]),
    shown("Agent", Does::Plain, &["description"]),
    tool("TaskOutput", Does::Poll),
    tool("BashOutput", Does::Poll),
    tool("AgentOutputTool", Does::Poll),
];

/// Codex.
pub(super) const CODEX: &[ToolRow] = &[
    tool("apply_patch", Does::Patch(&["", "input", "patch"])),
    shown("shell_command", Does::Shell("command", &["workdir"]), &["command"]),
    shown("shell", Does::Shell("command", &["workdir"]), &["command"]),
    shown("exec_command", Does::Shell("cmd", &["workdir"]), &["cmd"]),
    tool("update_plan", Does::Todos("plan", "step")),
    tool("write_stdin", Does::Poll),
];

/// Gemini CLI.
pub(super) const GEMINI_CLI: &[ToolRow] = &[
    tool("read_file", Does::Files(Read, &["file_path", "absolute_path", "path"])),
    tool("read_many_files", Does::Files(Read, &["paths[]"])),
    tool("write_file", Does::Files(Write, &["file_path"])),
    tool("replace", Does::Files(Edit, &["file_path"])),
    tool("glob", search("glob", &["path", "dir_path"], "pattern", &[])),
    tool("grep_search", search("grep", &["path", "dir_path"], "pattern", &["include"])),
    tool("search_file_content", search("grep", &["path", "dir_path"], "pattern", &["include"])),
    tool("list_directory", search("list", &["path", "dir_path"], "pattern", &[])),
    shown(
        "run_shell_command",
        Does::Shell("command", &["directory", "dir_path"]),
        &["command", "description"],
    ),
    tool("google_web_search", Does::Query("query")),
    tool("write_todos", Does::Todos("todos", "description")),
];

/// Copilot CLI.
pub(super) const COPILOT_CLI: &[ToolRow] = &[
    tool("view", Does::Files(Read, &["path"])),
    tool("create", Does::Files(Write, &["path"])),
    tool("edit", Does::Files(Edit, &["path"])),
    tool("apply_patch", Does::Patch(&["", "input", "patch"])),
    tool("glob", search("glob", &["path"], "pattern", &[])),
    tool("grep", search("grep", &["path"], "pattern", &["glob", "type", "include"])),
    shown("bash", Does::Shell("command", &[]), &["command", "description"]),
    tool("read_bash", Does::Poll),
    tool("stop_bash", Does::Poll),
];

/// Pi.
pub(super) const PI: &[ToolRow] = &[
    tool("read", Does::Files(Read, &["path"])),
    tool("write", Does::Files(Write, &["path"])),
    tool("edit", Does::Files(Edit, &["path"])),
    tool("grep", search("grep", &["path"], "pattern", &["glob"])),
    tool("find", search("glob", &["path"], "pattern", &[])),
    tool("ls", search("list", &["path"], "pattern", &[])),
    shown("bash", Does::Shell("command", &[]), &["command"]),
];

/// SWE-agent: its actions are command lines.
pub(super) const SWE_AGENT: &[ToolRow] = &[shown("shell", Does::Action("command"), &["command"])];
