//! `acpdb history`: everything that ever was, and the chain of what superseded what.

use acpdb_query::items::names;
use acpdb_query::{ChainReport, EdgeRow, ItemRow, Which};

use super::lines::{Widths, about, one_line, standing_painted};
use super::{describe, find, sessions};
use crate::args::{Global, History};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

/// Schema of what is printed for programs.
const SCHEMA: &str = "acpdb.history/1";
/// Columns for where an item stands.
const STANDING_WIDTH: usize = 34;

pub(crate) fn run(global: &Global, args: &History, output: &mut Output) -> Result<Code, Failure> {
    let session = args.session.as_deref();
    if let Some(key) = &args.memory {
        return super::memory::history(global, key, session, output);
    }
    if let Some(id) = &args.todo {
        return super::todo::history_of(global, id, session, output);
    }
    if let Some(id) = &args.chain {
        return of_chain(global, id, session, output);
    }
    let which = match (&args.file, &args.tool) {
        (Some(path), _) => Which::File(path),
        (None, Some(tool)) => Which::Tool(tool),
        (None, None) => Which::All,
    };
    let store = place::read(global, output)?;
    // A file or a tool may be asked for over all sessions; everything of all sessions is `acpdb log`.
    let streams = match (session, which) {
        (None, Which::File(_) | Which::Tool(_)) => {
            let all = store.stream_names()?.into_iter();
            all.filter(|stream| stream.scope == acpdb_engine::event::Scope::Session).collect()
        }
        _ => vec![sessions::default_session_noted(&store, session, output)?],
    };
    let mut found = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for stream in &streams {
        let view = match find::view(&store, global, stream) {
            // Over several sessions, one that has not come to a turn is none of them.
            Err(failure) if failure.code == Code::NotFound && streams.len() > 1 => continue,
            view => view?,
        };
        let mut rows = acpdb_query::items(&view, &stream.name, which);
        // A fork repeats what it shares with its parent.
        rows.retain(|row| streams.len() == 1 || known.insert(row.item.clone()));
        found.push((view, rows));
    }
    let all: Vec<&ItemRow> = found.iter().flat_map(|(_, rows)| rows).collect();
    if output.json {
        output.json_items(SCHEMA, &all)?;
        return Ok(Code::Ok);
    }
    if all.is_empty() {
        return Err(nothing(which, found.iter().flat_map(|(view, _)| names(view, which)).collect()));
    }
    let many = found.iter().filter(|(_, rows)| !rows.is_empty()).count() > 1;
    for (view, rows) in found.iter().filter(|(_, rows)| !rows.is_empty()) {
        if many && let Some(first) = rows.first() {
            output.line(output.paint(describe::BOLD, &one_line(&first.session)))?;
        }
        let widths = Widths::of(rows, output, STANDING_WIDTH);
        for row in rows {
            let line = widths.line(row, &about(view, row)?, output);
            output.line(format!("{line}  {}", standing_painted(row, output)).trim_end())?;
        }
    }
    Ok(Code::Ok)
}

/// Nothing was found: what is near?
fn nothing(which: Which<'_>, names: Vec<String>) -> Failure {
    let (what, asked) = match which {
        Which::All => return Failure::not_found("the session has no items at this point"),
        Which::File(path) => ("file", path),
        Which::Tool(tool) => ("tool", tool),
    };
    let failure = Failure::not_found(format!("no call names the {what} {asked:?}"));
    let near = names.into_iter().map(|name| (strsim::jaro_winkler(&name, asked), name));
    match near.filter(|(likeness, _)| *likeness > 0.7).max_by(|left, right| left.0.total_cmp(&right.0)) {
        Some((_, name)) => failure.hint(format!("did you mean {name}?")),
        None => failure,
    }
}

fn of_chain(global: &Global, id: &str, session: Option<&str>, output: &mut Output) -> Result<Code, Failure> {
    let store = place::read(global, output)?;
    let found = find::item(&store, id, session)?;
    let (view, ix) = find::target(&store, global, &found)?;
    let chain = acpdb_query::chain(&view, &found.stream.name, ix);
    let chain = chain
        .ok_or_else(|| Failure::not_found(format!("{} was not recorded yet at {}", found.item, view.at())))?;
    if output.json {
        output.json_object(SCHEMA, &chain)?;
        return Ok(Code::Ok);
    }
    let old: std::collections::BTreeSet<&str> =
        chain.edges.iter().filter(|edge| !edge.released).map(|edge| edge.old.as_str()).collect();
    let superseded = old.len();
    output.line(format!(
        "chain of {} in {}: {}, {superseded} superseded, ~{} tokens freed",
        output.paint(describe::SEQ, &chain.item),
        one_line(&chain.session),
        describe::count(chain.members.len() as u64, "member"),
        describe::tokens(chain.tokens_freed)
    ))?;
    draw(&chain, &|row| about(&view, row), output)?;
    if chain.edges.is_empty() {
        output.line("It superseded nothing, and nothing superseded it.")?;
    }
    Ok(Code::Ok)
}

/// A chain, oldest first: a line for each member, and below it the edges to newer ones.
pub(crate) fn draw(
    chain: &ChainReport,
    about: &dyn Fn(&ItemRow) -> Result<String, Failure>,
    output: &mut Output,
) -> Result<(), Failure> {
    let widths = Widths::of(&chain.members, output, 18);
    for (number, row) in chain.members.iter().enumerate() {
        let mark = if row.is_visible() {
            output.paint(describe::GOOD, "●")
        } else {
            output.paint(describe::DIM, "○")
        };
        let line = widths.line(row, &about(row)?, output);
        // What superseded it stands below.
        let is_old = chain.edges.iter().any(|edge| edge.old == row.item);
        let stands = if is_old && row.rule.is_some() { String::new() } else { standing_painted(row, output) };
        output.line(format!("{mark} {line}  {stands}").trim_end())?;
        let last = number + 1 == chain.members.len();
        let rail = if last { " " } else { "│" };
        for edge in chain.edges.iter().filter(|edge| edge.old == row.item) {
            let text = edge_words(edge, row);
            output.line(output.paint(describe::DIM, &format!("{rail}   {text}")))?;
        }
    }
    if chain.is_cut {
        output.line(output.paint(describe::DIM, "… and more, left out"))?;
    }
    Ok(())
}

fn edge_words(edge: &EdgeRow, old: &ItemRow) -> String {
    let by = edge.new.as_deref().map_or_else(|| format!("event {}", edge.seq), str::to_owned);
    // The edge that hides frees; further edges of the same item only add reasons.
    let hides = old.superseded_by == edge.new && old.rule == Some(edge.rule);
    let effect = match edge.tokens_freed {
        _ if edge.released => ", shown again on request".to_owned(),
        0 if !hides => ", already hidden".to_owned(),
        0 => ", nothing freed".to_owned(),
        freed => format!(", {} tokens freed", describe::tokens(freed)),
    };
    format!("└ {} by {by} in t{}{effect}", edge.rule.label(), edge.turn)
}
