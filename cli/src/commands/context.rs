//! `acpdb context [SESSION]`: the context that acpdb would show (current), that the host had (`--recorded`), or that was sent
//! through acpdb (`--served`).

use std::borrow::Cow;

use acpdb_engine::View;
use acpdb_engine::fold::{CauseView, FaceState, FaceView, ItemView};
use acpdb_query::context::{FaceText, MemoryRow};
use acpdb_query::sessions::sparkline;
use acpdb_query::{ContextItem, ContextOwner, Window};

use super::lines::{clip, clipped, one_line, standing, what};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, find, session, store_path};
use crate::args::ContextArgs;
use crate::output::is_plain;
use crate::spread;

/// Lines of a text that are shown without `--full`.
const TEXT_LINES: usize = 6;
/// Lines of a result that are shown without `--full`.
const RESULT_LINES: usize = 3;

pub(crate) fn run(global: &Global, args: &ContextArgs, output: &mut Output) -> Result<Code, Failure> {
    if let Some(act) = &args.act {
        return super::acts::run(global, act, output);
    }
    let store = store_path::read(global, output)?;
    let session = session::default_session_noted(&store, args.session.name(global), output)
        .map_err(|failure| perhaps_an_act(failure, args.session.name(global)))?;
    if args.served {
        return super::served::run(global, &store, &session, output);
    }
    let view = find::view(&store, global, &session)?;
    if let Some(format) = args.export.format {
        return super::export::run(&view, &args.export, args.recorded, format, output);
    }
    if view.not_understood() > 0 {
        let events = describe::count(view.not_understood(), "event");
        output.warn(format!(
            "not fully understood: a newer acpdb recorded {events} that this one does not know; update acpdb"
        ));
    }
    let layer = if args.recorded { ContextOwner::Recorded } else { ContextOwner::Current };
    let window = Window { last: if args.summary { Some(0) } else { args.last }, layer };
    if output.json {
        let context = acpdb_query::context(&store, &view, window, store.now())?;
        return output.json_object("acpdb.context/1", &context);
    }
    let (context, items) = acpdb_query::context_items(&store, &view, window, store.now())?;
    header(&context, &view, output)?;
    if args.summary {
        return Ok(Code::Ok);
    }
    let left_out = context.item_count - items.remaining();
    if left_out > 0 {
        output.styled(describe::DIM, format!("\n.. {} before", describe::count(left_out as u64, "item")))?;
    }
    let mut is_cut = false;
    spread::ahead(&mut items.without_words(), |item| {
        is_cut |= print(&item?, args.full, output)?;
        Ok(())
    })?;
    memory(&context.memory, output)?;
    if is_cut && output.terminal {
        output.note("texts are cut; acpdb context --full shows them whole");
    }
    Ok(Code::Ok)
}

/// `context discrad` names a session by the grammar, but the user most likely means an act.
fn perhaps_an_act(failure: Failure, session: Option<&str>) -> Failure {
    let Some(word) = session.filter(|_| failure.code == Code::NotFound) else { return failure };
    match near_act(word) {
        Some(act) => failure.hint(format!("did you mean context {act}?")),
        None => failure,
    }
}

/// The act that was most likely meant by a word.
pub(crate) fn near_act(word: &str) -> Option<&'static str> {
    acpdb_engine::text::likeness::nearest(["discard", "distill", "restore", "pin", "unpin"], word, 0.85)
}

fn header(context: &acpdb_query::CurrentContext, view: &View, output: &mut Output) -> Result<(), Failure> {
    let title = context.title.as_deref().map(|title| format!("  {}", one_line(title))).unwrap_or_default();
    let name = output.paint(describe::BOLD, &escape(&context.session, EscapeLevel::Line));
    let names = clip(&format!("  {}{title}", escape(&context.host, EscapeLevel::Line)), output.width);
    output.line(format!("{name}{names}"))?;
    let shown = describe::tokens(context.tokens_shown);
    let freed = if context.tokens_freed > 0 {
        let whole = describe::tokens(context.tokens_whole);
        let freed = describe::tokens(context.tokens_freed);
        format!(
            " of ~{whole}; ~{freed} freed, {} of {} items hidden or shortened",
            context.hidden_count, context.item_count
        )
    } else {
        format!(", {}", describe::count(context.item_count as u64, "item"))
    };
    let policy = escape(&context.policy, EscapeLevel::Line).into_owned();
    if context.layer == ContextOwner::Recorded {
        return output.line(format!(
            "turn {}, as of {} of the store, as recorded: ~{shown} tokens, {}",
            context.turn,
            context.at,
            describe::count(context.item_count as u64, "item")
        ));
    }
    output.line(format!(
        "turn {}, as of {} of the store, policy {policy}: ~{shown} tokens shown{freed}",
        context.turn, context.at
    ))?;
    still_whole(view, output)?;
    if context.tokens_by_turn.len() > 1 {
        let curve = sparkline(&context.tokens_by_turn);
        output.styled(describe::DIM, format!("over turns {curve}"))?;
    }
    Ok(())
}

/// Tells of items that `stats` counts as superseded and that are neither hidden nor shortened.
pub(crate) fn still_whole(view: &View, output: &mut Output) -> Result<(), Failure> {
    let is_still_whole = |item: &ItemView| {
        let faces = [&item.input, &item.output];
        let is_superseded = |face: &&FaceView| matches!(face.cause, Some(CauseView::Superseded { .. }));
        faces.iter().any(is_superseded)
            && faces.iter().all(|face| matches!(face.state, FaceState::Whole | FaceState::Absent))
    };
    let count = view.current().iter().filter(|item| is_still_whole(item)).count();
    if count == 0 {
        return Ok(());
    }
    let items = describe::count(count as u64, "superseded item");
    output.styled(describe::DIM, format!("{items} still whole: a placeholder would be no shorter"))
}

/// Prints an item. Returns true if a part of it was left out.
fn print(item: &ContextItem, full: bool, output: &mut Output) -> Result<bool, Failure> {
    let row = &item.row;
    let seq = output.paint(describe::SEQ, &row.item);
    let name = what(row);
    let hidden = !row.is_visible() && row.cause.is_some();
    let name = output.paint(if hidden { describe::DIM } else { describe::BOLD }, &name);
    let hash = row.hash.as_ref().map(|hash| format!("  {hash}")).unwrap_or_default();
    let stands = standing(row);
    let stands = if stands == "current" { String::new() } else { format!("  {stands}") };
    let stands = output.paint(if hidden { describe::BAD } else { describe::DIM }, &format!("{hash}{stands}"));
    output.line("")?;
    output.line(format!("{seq} t{} {name}{stands}", row.turn))?;
    let mut is_cut = false;
    if let Some(input) = &item.input {
        is_cut |= if full {
            face(input, "", usize::MAX, output)?
        } else {
            face(&on_one_line(input), "", 1, output)?
        };
    }
    if let Some(result) = &item.output {
        let lines = match (full, item.input.is_some()) {
            (true, _) => usize::MAX,
            (_, true) => RESULT_LINES,
            _ => TEXT_LINES,
        };
        let mark = if item.input.is_some() { "→ " } else { "" };
        is_cut |= face(result, mark, lines, output)?;
    }
    Ok(is_cut)
}

/// Parameters on one line: some hosts write them over several.
fn on_one_line(input: &FaceText) -> Cow<'_, FaceText> {
    let several = input.text.as_deref().filter(|text| text.contains('\n'));
    // Parameters that are not JSON are shown as they are.
    let value = several.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    match value {
        None => Cow::Borrowed(input),
        Some(value) => Cow::Owned(FaceText {
            state: input.state,
            text: Some(value.to_string()),
            problem: None,
            tokens: input.tokens,
            tokens_shown: input.tokens_shown,
        }),
    }
}

/// The beginning of a face: at most `line_count_max` lines, each as wide as the room; whole if there is no limit. Returns true if a
/// part was left out.
fn face(face: &FaceText, mark: &str, line_count_max: usize, output: &mut Output) -> Result<bool, Failure> {
    let style = match face.state {
        FaceState::Whole | FaceState::Shortened | FaceState::Absent => anstyle::Style::new(),
        FaceState::Summary => describe::GOOD,
        FaceState::Tombstone | FaceState::Gone => describe::DIM,
    };
    let text = match (&face.text, &face.problem) {
        (Some(text), _) => text.as_str(),
        (None, problem) => &format!("[{}]", problem.as_deref().unwrap_or("not readable")),
    };
    let mark = if face.state == FaceState::Summary { format!("{mark}summary: ") } else { mark.to_owned() };
    let full = line_count_max == usize::MAX;
    let text = text.trim_end();
    let mut is_cut = false;
    for (number, line) in text.lines().take(line_count_max).enumerate() {
        let lead = if number == 0 { mark.as_str() } else { "" };
        if full {
            let line = output.recorded(line, EscapeLevel::Text);
            output.line_of(&["  ", lead], style, &line)?;
            continue;
        }
        let width = output.room(4).max(10);
        if line.len() <= width && is_plain(line) {
            output.line_of(&["  ", lead], style, line)?;
            continue;
        }
        // Long lines are cut before they are escaped: there may be megabytes of them.
        let is_long = line.len() > output.width;
        let end = if is_long { line.char_indices().nth(output.width).map(|(end, _)| end) } else { None };
        let head = escape(end.and_then(|end| line.get(..end)).unwrap_or(line), EscapeLevel::Text);
        let head = if head.contains('\t') { Cow::Owned(head.replace('\t', "  ")) } else { head };
        let shown = clipped(&head, width);
        is_cut |= end.is_some() || shown != head;
        output.line_of(&["  ", lead], style, &shown)?;
    }
    if !full {
        // The text ends without a line feed. Most of the text is not shown, and it may have megabytes.
        let feed_count = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        // A text with fewer lines than the limit has none left.
        let left = (feed_count + 1).saturating_sub(line_count_max);
        if left == 0 {
            return Ok(is_cut);
        }
        is_cut = true;
        let more = describe::count(left as u64, "more line");
        output.styled(
            describe::DIM,
            format!("  … {more}, ~{} tokens in all", describe::tokens(face.tokens_shown)),
        )?;
    }
    Ok(is_cut)
}

fn memory(rows: &[MemoryRow], output: &mut Output) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    output.line("")?;
    output.styled(describe::BOLD, format!("memory: {}", describe::count(rows.len() as u64, "item")))?;
    for row in rows {
        let seq = output.paint(describe::SEQ, &row.seq.to_string());
        let value = row.value.as_deref().map_or_else(|| "[not readable]".to_owned(), one_line);
        let text = format!("{}: {value}", one_line(&row.heading()));
        let room = output.room(row.seq.to_string().len() + 10).max(10);
        output.line(format!("  {seq} {}  {:.2}", clip(&text, room), row.confidence))?;
    }
    Ok(())
}
