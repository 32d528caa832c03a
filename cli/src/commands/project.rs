//! `acpdb project`: the projects of the store, and a new name for one whose folder was moved.

use std::collections::BTreeMap;

use acpdb_engine::Store;
use acpdb_engine::event::Scope;
use acpdb_engine::text::{is_within, project_of};
use serde_json::json;

use super::lines::one_line;
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::{ProjectAct, ProjectRename, project_at};

pub(crate) fn run(global: &Global, act: &ProjectAct, output: &mut Output) -> Result<Code, Failure> {
    match act {
        ProjectAct::Rename(args) => rename(global, args, output),
        ProjectAct::List => list(global, output),
    }
}

/// The sessions and the memory that go by a name.
#[derive(Default)]
struct ProjectRow {
    sessions: u64,
    has_memory: bool,
    names_before: Vec<String>,
}

/// The projects of sessions and of memory. Subagents belong to their session.
fn rows(store: &Store) -> Result<BTreeMap<String, ProjectRow>, Failure> {
    let mut rows: BTreeMap<String, ProjectRow> = BTreeMap::new();
    for name in store.stream_names()? {
        let Some(folder) = name.folder.filter(|_| name.scope == Scope::Session && name.parent.is_none())
        else {
            continue;
        };
        rows.entry(project_of(&folder).into_owned()).or_default().sessions += 1;
    }
    for name in store.project_names()? {
        rows.entry(name).or_default().has_memory = true;
    }
    let moves = store.project_moves()?;
    for (from, _) in moves.iter() {
        let now = moves.project(from).into_owned();
        rows.entry(now).or_default().names_before.push(from.to_owned());
    }
    Ok(rows)
}

fn list(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = store_path::read(global, output)?;
    let rows = rows(&store)?;
    if output.json {
        let told = |(name, row): (&String, &ProjectRow)| {
            json!({
                "project": name, "sessions": row.sessions, "has_memory": row.has_memory,
                "names_before": row.names_before,
            })
        };
        return output.json_items("acpdb.projects/1", &rows.iter().map(told).collect::<Vec<_>>());
    }
    if rows.is_empty() {
        output.note("no session names its folder, and nothing is remembered of a project");
    }
    for (name, row) in &rows {
        let memory = if row.has_memory { ", with memory" } else { "" };
        let sessions = describe::count(row.sessions, "session");
        output.line(format!("{}  {sessions}{memory}", output.paint(describe::BOLD, &one_line(name))))?;
        for before in &row.names_before {
            output.styled(describe::DIM, format!("    was {}", one_line(before)))?;
        }
    }
    Ok(Code::Ok)
}

fn rename(global: &Global, args: &ProjectRename, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = store_path::open(global, output)?;
    let before = rows(&store)?;
    let known = |name: &str| before.contains_key(name);
    let (old, new) = (project_at(&args.old, &known), project_at(&args.new, &known));
    let moves = store.project_moves()?;
    let below = |name: &String| is_within(name, &old);
    let sessions: u64 = before.iter().filter(|(name, _)| below(name)).map(|(_, row)| row.sessions).sum();
    let is_told = before.keys().any(below) || moves.iter().any(|(from, _)| from == old);
    if !is_told {
        let near = acpdb_engine::text::likeness::nearest(before.keys().cloned(), &old, 0.75);
        let failure = Failure::not_found(format!("no project is called {}", one_line(&old)));
        return Err(failure.near(near, "acpdb project list shows them"));
    }
    let is_one = old != new && before.get(&new).is_some_and(|row| row.sessions > 0 || row.has_memory);
    let seq = store.rename_project(&old, &new)?;
    if output.json {
        return output.json_line(&json!({
            "schema": "acpdb.project_rename/1", "seq": seq, "from": old, "to": new, "sessions": sessions,
        }));
    }
    let (from, to) = (one_line(&old), one_line(&new));
    if old == new {
        output.line(format!("{seq} {from} goes by its own name"))?;
        return Ok(Code::Ok);
    }
    let count = describe::count(sessions, "session");
    output.line(format!("{seq} {from} goes by {to} from here on: {count}"))?;
    if is_one {
        output.note(format!(
            "{to} had sessions or memory before; `acpdb project rename {from} {from}` separates them"
        ));
    }
    Ok(Code::Ok)
}
