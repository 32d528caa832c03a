//! `acpdb explain ID`: the reason why an item is or is not in the current context.

use acpdb_engine::fold::Protection;

use super::{Code, Escape, Failure, Global, Output, describe, escape, find, store_path};
use crate::args::Explain;

pub(crate) fn run(global: &Global, args: &Explain, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let found = find::item(&store, &args.id, args.session.as_deref())?;
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
    for (number, sentence) in explained.sentences.iter().enumerate() {
        let sentence = escape(sentence, Escape::Line);
        let style = if number == 0 { describe::BOLD } else { anstyle::Style::new() };
        output.styled(style, &sentence)?;
    }
    let item = &explained.row.item;
    if explained.protection == Some(Protection::Pinned) && !explained.visible {
        output.line(format!("acpdb context restore {} shows it now", super::targets::bare(item)))?;
    }
    output.styled(
        describe::DIM,
        format!(
            "~{} tokens recorded, ~{} shown, as of {}. Whole: acpdb show '{item}'",
            describe::tokens(explained.row.tokens),
            describe::tokens(explained.row.tokens_shown),
            view.at()
        ),
    )?;
    Ok(Code::Ok)
}
