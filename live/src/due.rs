//! The text that a model gets when a session begins: todos that were left open, and remembered items of the project.

use std::fmt::Write as _;

use acpdb_engine::event::Scope;
use acpdb_engine::fold::memory::said_by_label;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::text::project_of;
use acpdb_engine::{Error, MemoryScope, Store, View};
use acpdb_query::todos::{TodoTexts, TodoWithText};

/// Most characters of the text: Claude Code passes on 10,000.
const CHARS_MAX: usize = 8_000;
/// Most todos that are named.
const TODO_COUNT_MAX: usize = 20;
/// Most remembered items that are named.
const MEMORY_COUNT_MAX: usize = 40;
/// Longest line.
const LINE_CHARS_MAX: usize = 400;

/// The text that is due in `project` at the start of `session`; `None` if there is none.
///
/// Cost: one look at the first event of each stream, a fold of the project's newest session, and its memory.
///
/// # Errors
/// If the store cannot be read.
pub fn text(store: &Store, project: &str, session: StreamId) -> Result<Option<String>, Error> {
    let mut text = String::new();
    if let Some((name, todos)) = open_todos(store, project, session)? {
        let name = line(&name);
        let _ = writeln!(text, "Open todos of the last session here ({name}), as its model wrote them:");
        for (content, status) in todos.iter().take(TODO_COUNT_MAX) {
            let _ = writeln!(text, "- {}", line(&format!("[{status}] {content}")));
        }
    }
    let remembered = remembered(store, project)?;
    if !remembered.is_empty() {
        let _ = writeln!(text, "Remembered of this project:");
        for item in remembered.iter().take(MEMORY_COUNT_MAX) {
            let _ = writeln!(text, "- {}", line(item));
        }
    }
    if text.is_empty() {
        return Ok(None);
    }
    let mut text = format!("[acpdb]\n{text}");
    if let Some((end, _)) = text.char_indices().nth(CHARS_MAX) {
        text.truncate(end);
        text.push_str("\n..");
    }
    Ok(Some(text))
}

fn line(text: &str) -> String {
    let flat: String = text
        .chars()
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .collect();
    match flat.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}..", flat.get(..end).unwrap_or_default()),
        None => flat,
    }
}

/// Decisions, preferences and facts that hold in the project.
fn remembered(store: &Store, project: &str) -> Result<Vec<String>, Error> {
    let memory = crate::if_there(store.memory(&MemoryScope::project(project), Seq::MAX))?;
    let Some(memory) = memory else { return Ok(Vec::new()) };
    Ok(memory.read(store.now(), |view| {
        let lines = view.current().into_iter().filter_map(|(_, item)| {
            let text = view.text(&item)?;
            let about = match (item.category(), item.key()) {
                ("", None) => String::new(),
                (category, None) => format!(" {category}"),
                (category, Some(key)) => format!(" {category}/{key}"),
            };
            let by = said_by_label(item.said_by()).map(|by| format!(", {by}")).unwrap_or_default();
            // By its id the model supersedes or forgets it.
            Some(format!("{} {}{about}{by}: {text}", item.id(), kind(item.kind())))
        });
        lines.collect()
    }))
}

fn kind(kind: acpdb_engine::event::MemoryKind) -> &'static str {
    acpdb_engine::fold::memory::kind_label(kind)
}

/// A session's name, and content and status of its open todos.
type OpenTodos = (String, Vec<(String, String)>);

/// The open todos of the session that was active last in the project.
fn open_todos(store: &Store, project: &str, session: StreamId) -> Result<Option<OpenTodos>, Error> {
    let mut names = store.stream_names()?;
    let moves = store.project_moves()?;
    let project = moves.project(project);
    names.retain(|name| {
        name.scope == Scope::Session
            && name.parent.is_none()
            && name.id != session
            && name.folder.as_deref().is_some_and(|folder| project_of(folder) == project)
    });
    let Some(last) = store.newest_of(names)? else { return Ok(None) };
    let view = store.view(last.id)?;
    let todos = todos(&view)?;
    Ok((!todos.is_empty()).then_some((last.name, todos)))
}

/// Content and status of each todo that is still open. In place of an erased or damaged content stands a text that says so.
///
/// # Errors
/// If the log cannot be read.
pub fn todos(view: &View) -> Result<Vec<(String, String)>, Error> {
    let list = view.state().todos().list(view.at());
    let Some(mut list) = list else { return Ok(Vec::new()) };
    list.items.retain(|item| item.is_open());
    let entries = TodoTexts::of_what_is_left(view).entries(&list)?.into_iter();
    let told = entries.filter_map(|TodoWithText { content, status, lost, .. }| {
        let content = Some(content).filter(|content| !content.is_empty());
        Some((content.or(lost)?, status))
    });
    Ok(told.collect())
}
