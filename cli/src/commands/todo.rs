//! `acpdb todo`: the current list, its stuck entries, and the list at each of its changes.

use std::collections::HashMap;

use acpdb_engine::View;
use acpdb_engine::fold::todo::{IN_PROGRESS, TodoView};
use acpdb_engine::ids::{Seq, Turn};
use acpdb_query::todos::{self, TodoTexts, TodoWithText};
use serde_json::{Value, json};

use super::lines::{clip, one_line};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::TodoAct;

pub(crate) fn run(global: &Global, act: &TodoAct, output: &mut Output) -> Result<Code, Failure> {
    let (_, session, view) = super::find::opened(global, global.session.as_deref(), output)?;
    match act {
        TodoAct::List => list(&view, &session.name, output),
        TodoAct::Stuck => stuck(&view, &session.name, output),
        TodoAct::History => history(&view, &session.name, output),
    }
}

fn list(view: &View, name: &str, output: &mut Output) -> Result<Code, Failure> {
    let list = todos::list(view)?;
    if output.json {
        return output.json_object("acpdb.todo/1", &list.json(name));
    }
    let (Some(seq), Some(turn)) = (list.seq, list.turn) else {
        output.note(format!("session {name} has no todo list"));
        return Ok(Code::Ok);
    };
    let now = view.state().turn(view.at());
    let seq = output.paint(describe::SEQ, &seq.to_string());
    let count = describe::count(list.entries.len() as u64, "entry");
    output.line(format!("{seq} {turn} {count}"))?;
    for entry in &list.entries {
        print(entry, now, output)?;
    }
    if let Some(reminder) = list.reminder_due {
        output.note(format!("a reminder is due: not updated for {} turns", reminder.turns_since_update));
    }
    Ok(Code::Ok)
}

fn print(entry: &TodoWithText, now: Turn, output: &mut Output) -> Result<(), Failure> {
    let mark = mark(&entry.status);
    let style = match entry.status.as_str() {
        "completed" | "cancelled" => describe::DIM,
        IN_PROGRESS => describe::GOOD,
        _ => anstyle::Style::new(),
    };
    let ordinary = matches!(entry.status.as_str(), "pending" | IN_PROGRESS | "completed" | "cancelled");
    let said = [
        entry.id.as_ref().map(|id| format!("[{}]", one_line(id))),
        entry.priority.as_ref().map(|priority| one_line(priority)),
        (!ordinary).then(|| one_line(&entry.status)),
        entry
            .since
            .map(|since| format!("since {since} ({})", describe::count(now.since(since).into(), "turn"))),
    ];
    let tail: Vec<String> = said.into_iter().flatten().collect();
    let tail = if tail.is_empty() { String::new() } else { format!("  {}", tail.join("  ")) };
    let room = output.room(tail.chars().count() + 4).max(20);
    let content = clip(&one_line(&entry.content), room);
    let line = output.paint(style, &format!("{mark} {content}"));
    output.line(format!("  {line}{}", output.paint(describe::DIM, &tail)))
}

fn mark(status: &str) -> char {
    match status {
        "completed" => '✓',
        IN_PROGRESS => '▶',
        "cancelled" | "deleted" => '✗',
        "blocked" => '!',
        _ => '○',
    }
}

fn stuck(view: &View, name: &str, output: &mut Output) -> Result<Code, Failure> {
    let (limit, now, found, stuck) = {
        let state = view.state();
        let limit = state.policy(view.at()).reminder.stuck_task_turns;
        let now = state.turn(view.at());
        let stuck: Vec<_> = state.todos().stuck(view.at(), now, limit).collect();
        (limit, now, state.todos().list(view.at()), stuck)
    };
    let entries =
        found.as_ref().map(|list| TodoTexts::new(view).entries(list)).transpose()?.unwrap_or_default();
    let stuck: Vec<(&TodoWithText, u32)> = stuck
        .iter()
        .filter_map(|stuck| {
            Some((entries.iter().find(|entry| entry.position == stuck.position)?, stuck.turns))
        })
        .collect();
    if output.json {
        let items = stuck.iter().map(|(entry, turns)| describe::with(entry.json(), json!({"turns": turns})));
        return output.json_line(&json!({
            "schema": "acpdb.todo/1",
            "session": name,
            "turn": now,
            "stuck_task_turns": limit,
            "items": items.collect::<Vec<_>>(),
        }));
    }
    if stuck.is_empty() {
        output.note(format!("nothing has been in progress for {limit} turns or more"));
    }
    for (entry, _) in stuck {
        print(entry, now, output)?;
    }
    Ok(Code::Ok)
}

/// A version of the list.
struct TodoListRow {
    seq: Seq,
    turn: Turn,
    entries: Vec<TodoWithText>,
    /// A rewind took it off the branch.
    is_left: bool,
}

/// The mark of a version that was left behind.
const fn left_mark(is_left: bool) -> &'static str {
    if is_left { "  off branch" } else { "" }
}

/// The versions of the list up to the view's seq, with their entries.
fn versions(view: &View) -> Result<Vec<TodoListRow>, Failure> {
    let lists: Vec<(TodoView, bool)> = {
        let state = view.state();
        let lists = state.todos().history().filter(|list| list.seq <= view.at());
        lists
            .map(|list| {
                let is_left = state.is_left(list.seq, view.at());
                (list, is_left)
            })
            .collect()
    };
    let mut texts = TodoTexts::new(view);
    let version = |(list, is_left): &(TodoView, bool)| {
        Ok(TodoListRow { seq: list.seq, turn: list.turn, entries: texts.entries(list)?, is_left: *is_left })
    };
    lists.iter().map(version).collect()
}

/// The changes from one version to the next, an entry a line: its mark and content.
fn changes<'e>(before: &[TodoWithText], after: &'e [TodoWithText]) -> Vec<(&'static str, &'e TodoWithText)> {
    let key = |entry: &TodoWithText| entry.id.clone().unwrap_or_else(|| entry.content.clone());
    let old: HashMap<String, &TodoWithText> = before.iter().map(|entry| (key(entry), entry)).collect();
    after
        .iter()
        .filter_map(|entry| match old.get(&key(entry)) {
            None => Some(("added", entry)),
            Some(old) if old.status != entry.status => Some(("status", entry)),
            Some(old) if old.content != entry.content => Some(("content", entry)),
            Some(_) => None,
        })
        .collect()
}

fn history(view: &View, name: &str, output: &mut Output) -> Result<Code, Failure> {
    let versions = versions(view)?;
    if output.json {
        let items = versions.iter().map(|version| {
            let entries: Vec<Value> = version.entries.iter().map(TodoWithText::json).collect();
            json!({"seq": version.seq, "turn": version.turn, "off_branch": version.is_left, "items": entries})
        });
        return output.json_line(&json!({
            "schema": "acpdb.todo_history/1",
            "session": name,
            "items": items.collect::<Vec<_>>(),
        }));
    }
    if versions.is_empty() {
        output.note(format!("session {name} has no todo list"));
    }
    let mut before: &[TodoWithText] = &[];
    for TodoListRow { seq, turn, entries, is_left } in &versions {
        let seq = output.paint(describe::SEQ, &seq.to_string());
        let done = entries.iter().filter(|entry| entry.status == "completed").count();
        let mark = left_mark(*is_left);
        output.line(format!("{seq} {turn}  {done}/{} completed{mark}", entries.len()))?;
        for (_, entry) in changes(before, entries) {
            print(entry, *turn, output)?;
        }
        let gone = before
            .iter()
            .filter(|old| !entries.iter().any(|entry| entry.id == old.id && entry.content == old.content));
        let gone =
            gone.filter(|old| old.id.is_none() || !entries.iter().any(|entry| entry.id == old.id)).count();
        if gone > 0 {
            output.styled(describe::DIM, format!("  {gone} taken off the list"))?;
        }
        before = entries;
    }
    Ok(Code::Ok)
}

/// `acpdb history --todo ID`: the changes of one entry, over all sessions or one.
pub(crate) fn history_of(
    global: &Global,
    id: &str,
    session: Option<&str>,
    output: &mut Output,
) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let streams = super::session::asked(&store, super::session::named(&store, session)?)?;
    let mut found: Vec<(String, TodoListRow, TodoWithText)> = Vec::new();
    let mut names = Vec::new();
    for stream in streams {
        let at = global.at.as_deref();
        let Some(view) = super::find::view_among(&store, global, &stream, at, session.is_some())? else {
            continue;
        };
        let mut last: Option<TodoWithText> = None;
        for version in versions(&view)? {
            let Some(entry) = version.entries.iter().find(|entry| entry.is(id)).cloned() else {
                names.extend(version.entries.into_iter().filter_map(|entry| entry.id));
                continue;
            };
            let same = |old: &TodoWithText| {
                (&old.status, &old.content, &old.priority) == (&entry.status, &entry.content, &entry.priority)
            };
            if !last.as_ref().is_some_and(same) {
                last = Some(entry.clone());
                found.push((stream.name.clone(), version, entry));
            }
        }
    }
    if found.is_empty() {
        let failure = Failure::not_found(format!("no todo entry has the id or content {id:?}"));
        let near = acpdb_engine::text::likeness::nearest(names, id, 0.7);
        return Err(failure.near(near, "acpdb todo list shows the entries"));
    }
    if output.json {
        let items = found.iter().map(|(session, TodoListRow { seq, turn, is_left, .. }, entry)| {
            json!({"session": session, "seq": seq, "turn": turn, "off_branch": is_left, "items": [entry.json()]})
        });
        let items: Vec<Value> = items.collect();
        return output.json_items("acpdb.todo_history/1", &items);
    }
    let mut session = None;
    for (name, TodoListRow { seq, turn, is_left, .. }, entry) in &found {
        if session != Some(name) {
            output.styled(describe::BOLD, one_line(name))?;
            session = Some(name);
        }
        let seq = output.paint(describe::SEQ, &seq.to_string());
        let status = one_line(&entry.status);
        let left = left_mark(*is_left);
        let content = clip(&one_line(&entry.content), output.room(36 + left.len()).max(20));
        output.line(format!("  {seq} {turn:<5} {} {status:<12} {content}{left}", mark(&entry.status)))?;
    }
    Ok(Code::Ok)
}
