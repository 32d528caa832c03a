//! `acpdb diff`, `blame`: the changes between points, the cause of a change.

use acpdb_engine::store::StreamName;
use acpdb_engine::{Error, Store, View};
use acpdb_query::blame::{self, FileBlame, ItemBlame};
use acpdb_query::diff::DiffRow;
use acpdb_query::when::WhenError;
use acpdb_query::{FindError, ItemChange};

use super::lines::{Widths, about, behind, joined, one_line, standing};
use super::{Code, Failure, Global, Output, describe, find, session, store_path};
use crate::args::{Blame, Diff};

/// Columns for the change of an item.
const CHANGE_WIDTH: usize = 30;

/// A session at a point. A text that is no point may be the name of a session.
fn point(
    store: &Store,
    session: &StreamName,
    text: &str,
) -> Result<(View, acpdb_query::when::FoundPoint), Failure> {
    acpdb_query::when::view(store, session, Some(text), super::at::now()).map_err(|error| {
        let is_unread = matches!(error, WhenError::Unreadable { .. });
        let failure = find::point_failure(error);
        // If this look-up fails too, the first failure is the one to tell.
        match session::by_place(store, text.trim()) {
            Ok(Some(_)) if is_unread => failure.hint(format!("did you mean --session {}?", text.trim())),
            _ => failure,
        }
    })
}

pub(crate) fn diff(global: &Global, args: &Diff, output: &mut Output) -> Result<Code, Failure> {
    if global.at.is_some() {
        return Err(Failure::usage("diff takes two points, and no --at"));
    }
    let store = store_path::read(global, output)?;
    let session = session::default_session_noted(&store, global.session.as_deref(), output)?;
    let ((from, first), (to, second)) =
        (point(&store, &session, &args.from)?, point(&store, &session, &args.to)?);
    for found in [first, second] {
        global.clocks.used(&found);
        if let Some(note) = found.note {
            output.note(format!("note: {note}"));
        }
    }
    let report = acpdb_query::diff(&from, &to, &session.name);
    if output.json {
        return output.json_object("acpdb.diff/1", &report);
    }
    let backwards = if report.from > report.to { ", backwards in time" } else { "" };
    output.line(format!(
        "{} from {} (turn {}) to {} (turn {}){backwards}",
        output.paint(describe::BOLD, &one_line(&report.session)),
        output.paint(describe::SEQ, &report.from.to_string()),
        report.from_turn,
        output.paint(describe::SEQ, &report.to.to_string()),
        report.to_turn
    ))?;
    output.line(format!(
        "context: ~{} -> ~{} tokens",
        describe::tokens(report.tokens_before),
        describe::tokens(report.tokens_after)
    ))?;
    if report.items.is_empty() {
        output.line("nothing changed in the context")?;
        return Ok(Code::Ok);
    }
    let latest = if report.from > report.to { &from } else { &to };
    for sum in &report.sums {
        let rows: Vec<&DiffRow> = report.items.iter().filter(|row| row.change == sum.change).collect();
        let plain: Vec<_> = rows.iter().map(|row| row.row.clone()).collect();
        let why = |row: &DiffRow| match row.change {
            ItemChange::Came | ItemChange::Restored | ItemChange::Revised => String::new(),
            _ => standing(&row.row),
        };
        let reserve = behind(rows.iter().map(|row| why(row).into()), CHANGE_WIDTH, output) + 2;
        let widths = Widths::of(&plain, output, reserve);
        output.line("")?;
        let heading = format!("{} {}, {} tokens", meaning(sum.change), sum.count, signed(sum.tokens));
        output.styled(describe::BOLD, &heading)?;
        for row in rows {
            let (mark, style) = match row.change {
                ItemChange::Came | ItemChange::Restored => ("+", describe::GOOD),
                ItemChange::Revised => ("~", describe::DIM),
                _ => ("-", describe::BAD),
            };
            let line = widths.line(&row.row, &about(latest, &row.row)?, output);
            let gap = if output.tabs { "\t" } else { " " };
            let line = format!("{}{gap}{line}", output.paint(style, mark));
            output.line(joined(&[&line, &why(row)], output))?;
        }
    }
    Ok(Code::Ok)
}

const fn meaning(change: ItemChange) -> &'static str {
    match change {
        ItemChange::Came => "came:",
        ItemChange::Passed => "came and hidden already:",
        ItemChange::Superseded => "superseded:",
        ItemChange::Hidden => "hidden or shortened:",
        ItemChange::Restored => "shown again:",
        ItemChange::Went => "left the context:",
        ItemChange::Revised => "shown with other text:",
    }
}

fn signed(tokens: i64) -> String {
    let sign = if tokens < 0 { "-" } else { "+" };
    format!("{sign}{}", describe::tokens(tokens.unsigned_abs()))
}

pub(crate) fn blame(global: &Global, args: &Blame, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let session = session::named(&store, global.session.as_deref())?;
    // A text that names an item is its id; otherwise it is a file, which may have any name.
    let found = acpdb_query::find(&store, &args.what, session.as_ref());
    match found {
        Ok(found) => {
            let (view, ix) = find::target(&store, global, &found)?;
            let report = blame::item(&store, &view, &found.stream.name, ix)?;
            let report = report.ok_or_else(|| Failure::not_found(format!("{} is not there", found.item)))?;
            return of_item(&report, output);
        }
        Err(FindError::NotFound { .. }) => {}
        Err(error) => return Err(find::failure(error)),
    }
    let streams = session::asked(&store, session)?;
    let mut reports = Vec::new();
    for stream in &streams {
        let at = global.at.as_deref();
        if let Some(view) = find::view_among(&store, global, stream, at, streams.len() == 1)? {
            reports.extend(blame::file(&store, &view, &stream.name, &args.what)?);
        }
    }
    if reports.is_empty() {
        let error = Error::NotFound { what: "file or item", name: args.what.clone(), nearest: None };
        return Err(Failure::from(error).hint("acpdb history --file PATH suggests what is near"));
    }
    if output.json {
        return output.json_items("acpdb.blame/1", &reports);
    }
    for report in &reports {
        of_file(report, output)?;
    }
    Ok(Code::Ok)
}

fn of_item(report: &ItemBlame, output: &mut Output) -> Result<Code, Failure> {
    if output.json {
        return output.json_object("acpdb.blame/1", report);
    }
    for step in &report.items {
        let actor = format!("{:?}", step.actor).to_lowercase();
        let seq = output.paint(describe::SEQ, &format!("{:>7}", step.seq.to_string()));
        let head =
            format!("{}  t{:<4} {actor:<9} {:<20}", describe::time_if_any(step.time), step.turn, step.event);
        output.line(format!("{seq}  {head}").trim_end())?;
        output.line(format!("         {}", one_line(&step.says)))?;
    }
    Ok(Code::Ok)
}

fn of_file(report: &FileBlame, output: &mut Output) -> Result<(), Failure> {
    output.styled(describe::BOLD, one_line(&report.session))?;
    if report.files.len() > 1 {
        let files: Vec<String> = report.files.iter().map(|file| one_line(file)).collect();
        output.line(format!("{} files: {}", files.len(), files.join(", ")))?;
    }
    let plain: Vec<_> = report.items.iter().map(|step| step.row.clone()).collect();
    let stands = plain.iter().map(|row| standing(row).into());
    let widths = Widths::of(&plain, output, behind(stands, CHANGE_WIDTH, output) + 12);
    for step in &report.items {
        let day = step.time.map_or_else(|| describe::NO_TIME.to_owned(), describe::day);
        let is_last = report.last_write.as_ref() == Some(&step.row.item);
        let mark = if is_last { "*" } else { " " };
        let key = step.row.keys.first().map(|key| one_line(key)).unwrap_or_default();
        let line = widths.line(&step.row, &key, output);
        let (behind, gap, day) =
            if output.tabs { ("\t", "\t", day) } else { ("", " ", format!("{day:<11}")) };
        let line = format!("{mark}{behind}{day}{gap}{line}");
        output.line(joined(&[&line, &standing(&step.row)], output))?;
    }
    match &report.last_write {
        Some(write) => output.line(format!("last written by {write} (*)"))?,
        None => output.line("never written here")?,
    }
    match (report.visible.is_empty(), report.stale.is_empty()) {
        (true, _) => output.line("nothing of it is current")?,
        (false, true) => output.line(format!("current: {}", report.visible.join(", ")))?,
        (false, false) => output.line(format!(
            "current: {}; older than the last write: {}",
            report.visible.join(", "),
            report.stale.join(", ")
        ))?,
    }
    Ok(())
}
