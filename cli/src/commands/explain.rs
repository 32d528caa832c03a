//! `acpdb explain ID`: the reason why an item is or is not in the current context.

use acpdb_engine::Store;
use acpdb_query::blame;

use super::lines::one_line;
use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, find, session, store_path};
use crate::args::Explain;

pub(crate) fn run(global: &Global, args: &Explain, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let found = match find::item(&store, &args.id, global.session.as_deref()) {
        Err(failure) if failure.code == Code::NotFound => match of_file(&store, global, args, output)? {
            Some(item) => find::item(&store, &item, global.session.as_deref())?,
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
    let changed = view.state().info(view.at()).and_then(|info| info.title.clone());
    let title = acpdb_query::titles::title_of(&store, &found.stream, changed.as_deref())?;
    let headline = explained.headline(&found.stream.host, title.as_deref());
    output.styled(describe::DIM, escape(&headline, EscapeLevel::Line))?;
    for (number, sentence) in explained.sentences.iter().enumerate() {
        let sentence = escape(sentence, EscapeLevel::Line);
        let style = if number == 0 { describe::BOLD } else { anstyle::Style::new() };
        output.styled(style, &sentence)?;
    }
    let item = &explained.row.item;
    if explained.is_restorable() {
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
    let session = session::named(store, global.session.as_deref())?;
    let mut streams = session::asked(store, session)?;
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.head));
    let is_only = streams.len() == 1;
    for stream in &streams {
        let at = global.at.as_deref();
        let Some(view) = find::view_among(store, global, stream, at, is_only)? else { continue };
        let Some((item, count)) = blame::newest_view(&view, &stream.name, &args.id) else { continue };
        let count = describe::count(count as u64, "call");
        let name = one_line(&args.id);
        output.note(format!("note: {count} on {name} in this session; acpdb blame {name} lists them"));
        return Ok(Some(item));
    }
    Ok(None)
}
