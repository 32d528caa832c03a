//! `acpdb explain ID`: the reason why an item is or is not in the current context.

use acpdb_engine::Store;
use acpdb_engine::event::ToolClass;
use acpdb_query::blame;

use super::lines::{clip, one_line};
use super::{Code, Escape, Failure, Global, Output, describe, escape, find, session, store_path};
use crate::args::Explain;

/// Widest name of a call in the first line: a command may be long.
const WHAT_WIDTH: usize = 100;

pub(crate) fn run(global: &Global, args: &Explain, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let found = match find::item(&store, &args.id, args.session.as_deref()) {
        Err(failure) if failure.code == Code::NotFound => match of_file(&store, global, args, output)? {
            Some(item) => find::item(&store, &item, args.session.as_deref())?,
            None => return Err(failure),
        },
        found => found?,
    };
    let (view, ix) = find::target(&store, global, &found)?;
    let explained = acpdb_query::explain(&view, &found.stream.name, ix);
    let explained = explained
        .ok_or_else(|| Failure::not_found(format!("{} was not recorded yet at {}", found.item, view.at())))?;
    if !found.repeats.is_empty() {
        let older: Vec<String> = found.repeats.iter().rev().take(4).map(ToString::to_string).collect();
        let count = found.repeats.len() + 1;
        output.note(format!(
            "note: {} names {count} repeats of one call, this is the newest; before it: {}",
            args.id,
            older.join(", ")
        ));
    }
    if output.json {
        return output.json_object("acpdb.explain/1", &explained);
    }
    let row = &explained.row;
    let what = match (&row.tool, row.keys.first()) {
        (Some(tool), Some(key)) => format!("{} {}", one_line(tool), one_line(key)),
        (Some(tool), None) => one_line(tool),
        (None, _) => format!("{:?}", row.kind).to_lowercase(),
    };
    let (host, name) = (one_line(&found.stream.host), one_line(&found.stream.name));
    let session = match &found.stream.title {
        Some(title) => format!("\"{}\" ({host} {name})", one_line(title)),
        None => format!("{host} {name}"),
    };
    let what = clip(&what, WHAT_WIDTH);
    output.styled(describe::DIM, format!("{what}, turn {} of {session}", row.turn))?;
    for (number, sentence) in explained.sentences.iter().enumerate() {
        let sentence = escape(sentence, Escape::Line);
        let style = if number == 0 { describe::BOLD } else { anstyle::Style::new() };
        output.styled(style, &sentence)?;
    }
    let item = &explained.row.item;
    let is_restorable = explained.row.in_context
        && !explained.visible
        && matches!(explained.row.cause, Some(cause) if !matches!(cause, "erased" | "lost" | "cleared_by_host"));
    if is_restorable {
        output.line(format!("acpdb context restore {} shows it again", super::targets::bare(item)))?;
    }
    let is_gone = matches!(explained.row.cause, Some("erased" | "lost"));
    let whole = if is_gone { String::new() } else { format!(". Whole: acpdb show '{item}'") };
    output.styled(
        describe::DIM,
        format!(
            "~{} tokens recorded, ~{} shown, as of {}{whole}",
            describe::tokens(explained.row.tokens),
            describe::tokens(explained.row.tokens_shown),
            view.at()
        ),
    )?;
    Ok(Code::Ok)
}

/// The newest view of a file that a text names, else the newest call on it, in the newest session that has one.
fn of_file(
    store: &Store,
    global: &Global,
    args: &Explain,
    output: &mut Output,
) -> Result<Option<String>, Failure> {
    let session = session::named(store, args.session.as_deref())?;
    let mut streams = session::asked(store, session)?;
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.head));
    let is_only = streams.len() == 1;
    for stream in &streams {
        let at = global.at.as_deref();
        let Some(view) = find::view_among(store, global, stream, at, is_only)? else { continue };
        let Some(report) = blame::file(store, &view, &stream.name, &args.id)? else { continue };
        let newest = report.items.iter().rev();
        let view_of_it = newest.clone().find(|step| step.class == Some(ToolClass::Read));
        let Some(step) = view_of_it.or_else(|| newest.clone().next()) else { continue };
        let count = describe::count(report.items.len() as u64, "call");
        let name = one_line(&args.id);
        output.note(format!("note: {count} on {name} in this session; acpdb blame {name} lists them"));
        return Ok(Some(step.row.item.clone()));
    }
    Ok(None)
}
