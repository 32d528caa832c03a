//! `acpdb task`: tasks, their changes, the items that a completed task hid, and a note to work from.

use std::io::Read as _;

use acpdb_engine::command::Rejection;
use acpdb_engine::command::task::{TASK_UPDATE_BYTES_MAX, merge_json};
use acpdb_engine::event::{Face, MemoryKind, TaskStatus};
use acpdb_engine::fold::CauseView;
use acpdb_engine::ids::{BodyId, ItemId, Seq};
use acpdb_engine::{ActReply, Error, MemoryScope, View};
use acpdb_query::archive::{Scratchpad, archive_text};
use serde_json::{Value, json};

use super::lines::{clip, one_line};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, store_path};
use crate::args::{TaskAct, TaskArchiveArgs};

pub(crate) fn run(global: &Global, act: &TaskAct, output: &mut Output) -> Result<Code, Failure> {
    match act {
        TaskAct::List => list(global, output),
        TaskAct::Update => update(global, output),
        TaskAct::Archive(args) => archive(global, args, output),
        TaskAct::Scratchpad => scratchpad(global, output),
    }
}

/// A task with its texts.
struct TaskRow {
    id: String,
    seq: Seq,
    turn: u32,
    status: TaskStatus,
    content: String,
    /// The annotated summary of its eviction, else the given summary.
    summary: Option<String>,
    fields: Value,
    evicted: Option<Seq>,
    validation: Value,
}

const fn label(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in_progress",
        TaskStatus::Delegated => "delegated",
        TaskStatus::Completed => "completed",
    }
}

fn text(view: &View, body: BodyId) -> Result<String, Failure> {
    match view.text(body) {
        Err(acpdb_engine::Error::Erased { .. }) => Ok("[not readable]".to_owned()),
        other => Ok(other?),
    }
}

fn rows(view: &View) -> Result<(Vec<TaskRow>, Option<String>), Failure> {
    let state = view.state().tasks();
    let mut rows = Vec::new();
    for task in state.tasks(view.at()) {
        let extras = task.extras.iter().map(|extra| text(view, *extra)).collect::<Result<Vec<_>, _>>()?;
        let summary = task.eviction.and_then(|eviction| eviction.summary).or(task.summary);
        rows.push(TaskRow {
            id: task.id.to_owned(),
            seq: task.seq,
            turn: task.turn.get(),
            status: task.status,
            content: task.content.map(|body| text(view, body)).transpose()?.unwrap_or_default(),
            summary: summary.map(|body| text(view, body)).transpose()?,
            fields: merge_json(&extras),
            evicted: task.eviction.map(|eviction| eviction.seq),
            validation: json!(task.eviction.and_then(|eviction| eviction.validation.as_ref())),
        });
    }
    Ok((rows, state.active(view.at()).map(str::to_owned)))
}

fn list(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    let (_store, session, view) = super::find::opened(global, global.session.as_deref(), output)?;
    let (rows, active) = rows(&view)?;
    if output.json {
        let items = rows.iter().map(|row| {
            let more = json!({
                "id": row.id, "seq": row.seq, "turn": row.turn, "status": label(row.status), "content": row.content,
                "result_summary": row.summary, "evicted": row.evicted, "validation": row.validation,
            });
            describe::with(row.fields.clone(), more)
        });
        let items: Vec<Value> = items.collect();
        let value =
            json!({"schema": "acpdb.task/1", "session": session.name, "active": active, "items": items});
        return output.json_line(&value);
    }
    if rows.is_empty() {
        output.note(format!("session {} has no tasks", session.name));
    }
    for row in &rows {
        let (mark, style) = match row.status {
            TaskStatus::Completed => ('✓', describe::DIM),
            TaskStatus::InProgress => ('▶', describe::GOOD),
            TaskStatus::Delegated => ('»', anstyle::Style::new()),
            TaskStatus::Pending => ('○', anstyle::Style::new()),
        };
        let seq = output.paint(describe::SEQ, &row.seq.to_string());
        let name = output.paint(style, &format!("{mark} {}", one_line(&row.id)));
        let content = clip(&one_line(&row.content), output.room(40).max(20));
        output.line(format!("{seq}  t{:<4} {name}  {:<11}  {content}", row.turn, label(row.status)))?;
        if let Some(summary) = &row.summary {
            let summary = clip(&one_line(summary), output.room(8).max(20));
            output.styled(describe::DIM, format!("        {summary}"))?;
        }
    }
    Ok(Code::Ok)
}

fn update(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = store_path::write(global, output)?;
    let session = super::session::default_session_noted(&store, global.session.as_deref(), output)?;
    let mut json = Vec::new();
    // One byte over the limit, so that the engine refuses it as too long.
    let limit = TASK_UPDATE_BYTES_MAX as u64 + 1;
    let read = std::io::stdin().lock().take(limit).read_to_end(&mut json);
    read.map_err(Failure::io("read", "standard input"))?;
    let reply = match store.update_tasks(session.id, &json) {
        Err(Error::Rejected(rejection)) if output.json => {
            // A host passes the agent's reply on, in every case.
            let text = match &*rejection {
                Rejection::Task(rejection) => rejection.reply(),
                other => other.to_string(),
            };
            output.json_line(&super::acts::act_json(&ActReply { text, ..ActReply::default() }))?;
            return Err(Error::Rejected(rejection).into());
        }
        other => other?,
    };
    if output.json {
        output.json_line(&super::acts::act_json(&reply))?;
    } else {
        let text = output.recorded(&reply.text, EscapeLevel::Text).into_owned();
        output.line(text)?;
    }
    Ok(Code::Ok)
}

/// The items of a task that are hidden with it, as recorded, in order: item, tool, text.
fn evicted(view: &View, task: &str) -> Result<Vec<(ItemId, Option<String>, String)>, Failure> {
    let found: Vec<(ItemId, Option<String>, Vec<BodyId>)> = {
        let state = view.state();
        let items = state.items(view.at()).filter_map(|ix| state.item(ix, view.at()));
        let belongs = |item: &acpdb_engine::fold::ItemView| {
            let face = state.face(item.ix, Face::Output, view.at());
            let is_evicted = matches!(&face.cause, Some(CauseView::Evicted { task: by, .. }) if by == task);
            is_evicted || item.task.as_deref() == Some(task)
        };
        items
            .filter(belongs)
            .map(|item| {
                let bodies = item.content.iter().map(|part| part.body).collect();
                (item.item, item.tool.as_deref().map(str::to_owned), bodies)
            })
            .collect()
    };
    let mut all = Vec::new();
    for (item, tool, bodies) in found {
        let texts = bodies.into_iter().map(|body| text(view, body)).collect::<Result<Vec<_>, _>>()?;
        all.push((item, tool, texts.join("\n")));
    }
    Ok(all)
}

fn archive(global: &Global, args: &TaskArchiveArgs, output: &mut Output) -> Result<Code, Failure> {
    let (store, session, view) = super::find::opened(global, global.session.as_deref(), output)?;
    let (rows, _) = rows(&view)?;
    let Some(row) = rows.iter().find(|row| row.id == args.id) else {
        let failure = Failure::not_found(format!("session {} has no task {:?}", session.name, args.id));
        let near = acpdb_engine::text::likeness::nearest(rows.iter().map(|row| &row.id), &args.id, 0.7);
        return Err(failure.near(near, "acpdb task list shows them"));
    };
    let items = evicted(&view, &row.id)?;
    let evicted_at = row.evicted.map(|seq| store.event(seq)).transpose()?.flatten();
    let archived_at = evicted_at.map_or_else(|| store.now(), |event| event.recorded_at);
    if output.json {
        let items = items
            .iter()
            .map(|(item, tool, text)| json!({"item": item.to_string(), "tool": tool, "text": text}));
        return output.json_line(&json!({
            "schema": "acpdb.task_archive/1",
            "session": session.name,
            "task": row.id,
            "archived_at": describe::time(archived_at),
            "summary": row.summary,
            "items": items.collect::<Vec<_>>(),
        }));
    }
    let summary = row.summary.as_deref();
    let text = archive_text(archived_at, summary, items.iter().map(|(_, _, text)| text.as_str()));
    let text = output.recorded(&text, EscapeLevel::Text).into_owned();
    output.bytes(text.as_bytes())?;
    Ok(Code::Ok)
}

fn scratchpad(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    let (store, session, view) = super::find::opened(global, global.session.as_deref(), output)?;
    let (rows, _) = rows(&view)?;
    let memory = store.memory(&MemoryScope::session(session.id), view.at())?;
    let now = crate::clock::now();
    let (facts, decisions, notes) = memory.read(now, |memory| {
        let mut facts = Vec::new();
        let mut decisions = Vec::new();
        let mut notes = Vec::new();
        for (_, item) in memory.current() {
            let text = || memory.text(&item).unwrap_or_else(|| "[not readable]".to_owned());
            match item.kind() {
                MemoryKind::Fact if item.category() == "context" => facts.push(text()),
                MemoryKind::Decision => decisions.push(text()),
                MemoryKind::Note => notes.push(text()),
                _ => {}
            }
        }
        (facts, decisions, notes)
    });
    let completed = rows.iter().filter(|row| row.status == TaskStatus::Completed);
    let note = Scratchpad {
        tasks: completed.filter_map(|row| Some((row.id.as_str(), row.summary.as_deref()?))).collect(),
        facts: facts.iter().map(String::as_str).collect(),
        decisions: decisions.iter().map(String::as_str).collect(),
        notes: notes.iter().map(String::as_str).collect(),
    };
    let text = note.render();
    if output.json {
        let value = json!({"schema": "acpdb.scratchpad/1", "session": session.name, "text": text});
        output.json_line(&value)?;
    } else {
        let text = output.recorded(&text, EscapeLevel::Text).into_owned();
        output.bytes(text.as_bytes())?;
    }
    Ok(Code::Ok)
}
