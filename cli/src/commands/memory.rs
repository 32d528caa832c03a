//! `acpdb memory`: facts, preferences and decisions of a project or session, and their history.
//!
//! The scope: `--session` (its own memory and its project's), `--project`, else the only project.

use std::collections::BTreeSet;

use acpdb_engine::command::memory::{MemoryCommand, MemoryRef, confidence_hundredths, parse_lifespan};
use acpdb_engine::entry::MemoryEntry;
use acpdb_engine::event::{MemoryKind, Payload};
use acpdb_engine::fold::memory::{MemoryStatus, kind_label};
use serde_json::json;

use super::lines::{clip, one_line};
use super::memory_rows::{RememberedItem, RowWords as _};
use super::memory_scope::{
    GivenScope, ScopeMemory, by_edge, by_key, each_store, miss, said, whose, whose_new,
};
use super::table::{self, text};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::{MemoryAct, MemoryAdd, MemoryArgs, MemoryKey, MemoryList, MemoryRetract, MemorySupersede};
use crate::several::{self, ReadStores};

/// Schema of items that are printed for programs.
const SCHEMA: &str = "acpdb.memory/1";

pub(crate) fn run(global: &Global, memory: &MemoryArgs, output: &mut Output) -> Result<Code, Failure> {
    let asked = &GivenScope { project: memory.project.as_deref(), session: global.session.as_deref() };
    match &memory.act {
        MemoryAct::Add(args) => add(global, asked, args, output),
        MemoryAct::Get(args) => get(global, asked, args, output),
        MemoryAct::List(args) => list(global, asked, args, output),
        MemoryAct::Supersede(args) => supersede(global, asked, args, output),
        MemoryAct::Retract(args) => retract(global, asked, args, output),
        MemoryAct::Restore(args) => restore(global, asked, args, output),
        MemoryAct::History(args) => super::memory_history::of_scope(global, asked, args, output),
        MemoryAct::Propose(_) if asked.project.is_some() => {
            Err(Failure::usage("proposals are of the messages of a session: --session, and no --project"))
        }
        MemoryAct::Propose(args) => super::memory_learn::propose(global, args, output),
        MemoryAct::Insights => super::memory_learn::insights(global, asked, output),
        MemoryAct::Import(args) => super::memory_file::import(global, asked.project, args, output),
        MemoryAct::Export(args) => {
            let stores = ReadStores::One(store_path::read(global, output)?);
            let (rows, _) = everyones(&stores, global, asked, args, output)?;
            super::memory_file::export(&rows.into_iter().map(|(_, _, row)| row).collect::<Vec<_>>(), output)
        }
    }
}

fn kind(text: &str) -> Result<MemoryKind, Failure> {
    let kinds = [MemoryKind::Fact, MemoryKind::Preference, MemoryKind::Decision, MemoryKind::Note];
    kinds.into_iter().find(|kind| kind_label(*kind).eq_ignore_ascii_case(text)).ok_or_else(|| {
        let near = acpdb_engine::text::likeness::nearest(kinds.map(kind_label), text, 0.7);
        let failure = Failure::usage(format!("{text:?} is no kind of memory"));
        failure.near(near, "kinds: fact, preference, decision, note")
    })
}

/// The item that the arguments describe.
fn entry(args: &MemoryAdd) -> Result<MemoryEntry, Failure> {
    let kind = kind(&args.kind)?;
    let refused = |error: acpdb_engine::command::memory::MemoryRejection| Failure::usage(error.to_string());
    let (mut key, mut value) = (None, args.text.join(" "));
    if kind == MemoryKind::Preference {
        let (name, rest) = match args.text.as_slice() {
            [one] => one.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())),
            [first, rest @ ..] => Some((first.clone(), rest.join(" "))),
            [] => None,
        }
        .ok_or_else(|| Failure::usage("a preference is KEY VALUE, such as: package_manager pnpm"))?;
        (key, value) = (Some(name), rest);
    }
    let confidence: f64 = args.confidence.trim().parse().map_err(|_| {
        Failure::usage(format!("--confidence: {:?} is no number from 0 to 1", args.confidence))
    })?;
    let lifespan = args.lifespan.as_deref().map(parse_lifespan).transpose().map_err(refused)?;
    Ok(MemoryEntry {
        kind,
        category: args.category.clone().unwrap_or_default(),
        key,
        subject: args.subject.clone(),
        value,
        rationale: args.rationale.clone(),
        alternatives: args.alternatives.clone(),
        related_files: args.files.clone(),
        confidence: confidence_hundredths(confidence).map_err(refused)?,
        lifespan,
        replaces: args.replaces.clone(),
        ..MemoryEntry::default()
    })
}

fn add(
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemoryAdd,
    output: &mut Output,
) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = store_path::open(global, output)?;
    let mut entry = entry(args)?;
    let scope = whose_new(&store, asked, output)?;
    entry = acpdb_query::memory::placed(&store, &scope, entry)?;
    if entry.replaces.iter().any(|old| old.starts_with('#')) {
        // A project that does not exist yet has nothing to replace.
        if let Ok(opened) = ScopeMemory::of(&store, global, &scope) {
            entry.replaces.iter().try_for_each(|old| here(&opened, old))?;
        }
    }
    let receipt = store.remember(&scope, &MemoryCommand::Add(entry))?;
    let what = if receipt.item.is_some() { "recorded" } else { "known already: reinforced" };
    said(&store, global, &scope, &receipt, (what, by_edge), output)
}

fn get(
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemoryKey,
    output: &mut Output,
) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let opened = ScopeMemory::new(&store, global, asked, output)?;
    let rows = opened.rows();
    let found = opened.named(&rows, &args.key);
    let holding: Vec<&&RememberedItem> = found.iter().filter(|row| row.holds()).collect();
    let row = match (holding.as_slice(), found.last()) {
        ([only], _) => **only,
        ([first, ..], _) => {
            let places: Vec<String> = holding.iter().map(|row| row.place()).collect();
            let failure =
                Failure::usage(format!("{:?} names {} items: {}", args.key, places.len(), places.join(", ")));
            return Err(failure.hint(format!("give the category, too: {}", first.place())));
        }
        // An id means that very item, in any standing.
        ([], Some(last)) if last.id == args.key || last.item.to_string() == args.key => {
            output.note(format!("note: {} does not hold: it is {}", last.id, last.stands()));
            last
        }
        ([], Some(last)) => {
            let failure = Failure::not_found(format!(
                "{:?} has no current value: {} is {}",
                args.key,
                last.id,
                last.stands()
            ));
            return Err(failure.hint(format!("acpdb memory history {} shows what became of it", args.key)));
        }
        ([], None) => return Err(miss(&rows, &args.key)),
    };
    if output.json {
        output.json_items(SCHEMA, &[row])?;
    } else {
        let value = row.value.as_deref().unwrap_or("[not readable]");
        let value = output.recorded(value, crate::output::EscapeLevel::Text).into_owned();
        output.line(value)?;
    }
    Ok(Code::Ok)
}

/// The rows for the arguments.
fn listed(opened: &ScopeMemory<'_>, args: &MemoryList) -> Vec<RememberedItem> {
    let mut rows = opened.rows();
    rows.retain(|row| {
        (args.all || row.holds())
            && args.kind.as_ref().is_none_or(|kind| kind.eq_ignore_ascii_case(row.label()))
    });
    rows
}

/// A row with the place of its store, and with its project where there are several.
type PlacedItem = (usize, Option<String>, RememberedItem);

/// The rows for the arguments. An item of no project stands once in its store.
fn everyones(
    stores: &ReadStores,
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemoryList,
    output: &Output,
) -> Result<(Vec<PlacedItem>, Code), Failure> {
    let (found, code) = each_store(stores, global, asked, output, |_, scopes, open| {
        let mut rows: Vec<(Option<String>, RememberedItem)> = Vec::new();
        for (project, scope) in scopes {
            rows.extend(listed(&open(&scope)?, args).into_iter().map(|row| (project.clone(), row)));
        }
        let mut seen = BTreeSet::new();
        rows.retain(|(_, row)| seen.insert((row.stream, row.item)));
        Ok(rows)
    })?;
    let placed = |(place, rows): (usize, Vec<(Option<String>, RememberedItem)>)| {
        rows.into_iter().map(move |(project, row)| (place, project, row))
    };
    Ok((found.into_iter().flat_map(placed).collect(), code))
}

fn list(
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemoryList,
    output: &mut Output,
) -> Result<Code, Failure> {
    if let Some(given) = &args.kind {
        kind(given)?;
    }
    let stores = ReadStores::open(global, output)?;
    let (rows, code) = everyones(&stores, global, asked, args, output)?;
    if output.json {
        let row = |(place, project, row): &PlacedItem| {
            let of = project.as_ref().map_or(json!({}), |project| json!({"project": project}));
            Ok(several::with_store(describe::with(describe::timed(row, &[])?, of), stores.label(*place)))
        };
        let rows = rows.iter().map(row).collect::<Result<Vec<_>, Failure>>()?;
        output.json_items(SCHEMA, &rows)?;
        return Ok(code);
    }
    if rows.is_empty() {
        output.note(if args.all {
            "nothing is remembered"
        } else {
            "nothing that is remembered holds; --all shows everything"
        });
        return Ok(code);
    }
    let room = output.room(76).max(20);
    // A program gets whole cells.
    let whole = output.tabs;
    let short = |text: &str, width| if whole { text.to_owned() } else { clip(text, width) };
    let columns = vec![
        text("store", |(place, ..): &PlacedItem| stores.label(*place).unwrap_or_default().to_owned())
            .ranked(0)
            .shown_if(stores.only().is_none()),
        text("project", |(_, project, _): &PlacedItem| {
            short(&one_line(project.as_deref().unwrap_or_default()), 32)
        })
        .ranked(1)
        .shown_if(rows.iter().any(|(_, project, _)| project.is_some()))
        .cut_to(table::TEXT_WIDTH_MIN),
        text("id", |(.., row): &PlacedItem| short(&one_line(&row.id), 24))
            .ranked(0)
            .cut_to(table::TEXT_WIDTH_MIN),
        text("kind", |(.., row): &PlacedItem| row.label().to_owned()).ranked(4).cut_to(table::TEXT_WIDTH_MIN),
        text("category/key", |(.., row): &PlacedItem| short(&row.place(), 32))
            .ranked(3)
            .cut_to(table::TEXT_WIDTH_MIN),
        text("value", |(.., row): &PlacedItem| short(&row.text(), room))
            .ranked(2)
            .cut_to(table::TEXT_WIDTH_MIN),
        text("since", |(.., row): &PlacedItem| row.day()).ranked(5).cut_to(table::TEXT_WIDTH_MIN),
        text("standing", |(.., row): &PlacedItem| short(&row.stands(), 32))
            .ranked(0)
            .cut_to(table::TEXT_WIDTH_MIN),
    ];
    table::print(output, columns, &rows)?;
    Ok(code)
}

/// Refuses `#seq` of an item in another project's or session's memory.
fn here(opened: &ScopeMemory<'_>, text: &str) -> Result<(), Failure> {
    let MemoryRef::Item(item) = MemoryRef::from(text) else { return Ok(()) };
    let Some(event) = opened.store.event(item.seq)? else { return Ok(()) };
    let is_memory = matches!(event.event.payload, Payload::MemoryRecorded(_));
    if !is_memory || opened.read(|view| view.by_item(item).is_some()) {
        return Ok(());
    }
    let name = describe::StreamNames::new(opened.store).full(event.event.stream);
    Err(Failure::usage(format!(
        "{item} is a memory item of {}; links stay within one project",
        one_line(&name)
    )))
}

/// An item as a user types it: an id, `#seq`, or the key of a current preference.
fn reference(opened: &ScopeMemory<'_>, text: &str) -> Result<MemoryRef, Failure> {
    let rows = opened.rows();
    let found = opened.named(&rows, text);
    let by_name = found.iter().any(|row| row.id == text || row.item.to_string() == text);
    if by_name {
        return Ok(MemoryRef::from(text));
    }
    let holding: Vec<&&RememberedItem> = found.iter().filter(|row| row.holds()).collect();
    match holding.as_slice() {
        [only] => Ok(MemoryRef::Item(only.item)),
        [] => {
            here(opened, text)?;
            Err(miss(&rows, text))
        }
        many => {
            let ids: Vec<&str> = many.iter().map(|row| row.id.as_str()).collect();
            Err(Failure::usage(format!("{text:?} names {} items: {}", ids.len(), ids.join(", "))))
        }
    }
}

fn supersede(
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemorySupersede,
    output: &mut Output,
) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = store_path::write(global, output)?;
    let scope = whose(&store, asked, output)?;
    let opened = ScopeMemory::of(&store, global, &scope)?;
    let (old, new) = (reference(&opened, &args.old)?, reference(&opened, &args.new)?);
    let command = MemoryCommand::Supersede { old, new, reason: args.reason.clone() };
    let receipt = store.remember(&scope, &command)?;
    said(&store, global, &scope, &receipt, ("holds now", by_edge), output)
}

fn retract(
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemoryRetract,
    output: &mut Output,
) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = store_path::write(global, output)?;
    let scope = whose(&store, asked, output)?;
    let item = reference(&ScopeMemory::of(&store, global, &scope)?, &args.id)?;
    let command = MemoryCommand::Retract { item, reason: args.reason.clone() };
    let receipt = store.remember(&scope, &command)?;
    said(&store, global, &scope, &receipt, ("retracted", by_edge), output)
}

/// Makes an item hold again: an item by id or `#seq`, or the last of a key's values that does not hold.
fn restore(
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemoryKey,
    output: &mut Output,
) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = store_path::write(global, output)?;
    let scope = whose(&store, asked, output)?;
    let opened = ScopeMemory::of(&store, global, &scope)?;
    let rows = opened.rows();
    let found = opened.named(&rows, &args.key);
    let is_hidden =
        |row: &&&RememberedItem| matches!(row.standing, MemoryStatus::Superseded | MemoryStatus::Retracted);
    let hidden = found.iter().rev().find(is_hidden);
    let Some(row) = hidden.or(found.last()) else { return Err(miss(&rows, &args.key)) };
    let command = MemoryCommand::Restore { item: MemoryRef::Item(row.item) };
    let receipt = store.remember(&scope, &command)?;
    said(&store, global, &scope, &receipt, ("holds again", by_key), output)
}
