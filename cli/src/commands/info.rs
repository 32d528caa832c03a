//! `acpdb info`: the content of the store, and its place.

use acpdb_engine::Store;
use serde_json::json;

use super::{Code, Failure, Global, Output, describe, store_path, table};
use crate::args::Info;

pub(crate) fn run(global: &Global, args: &Info, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "info")?;
    if args.hosts {
        return super::hosts::run(global, output);
    }
    let store = store_path::read(global, output)?;
    if args.space {
        return space(&store, output);
    }
    let info = store.info()?;
    if output.json {
        let value = describe::with(json!(info), json!({"schema": "acpdb.info/1"}));
        return output.json_line(&value);
    }
    let mut field = |name: &str, value: String| output.line(format!("{name:<10} {value}"));
    field("store", store.root().display().to_string())?;
    field("id", info.id.to_hex())?;
    field("format", info.format_version.to_string())?;
    field("head", format!("{}, {}", info.head, describe::count(info.head.get(), "event")))?;
    let sessions = describe::count(info.session_count, "session");
    field("streams", format!("{} ({sessions})", info.stream_count))?;
    field(
        "log",
        format!("{} in {}", describe::bytes(info.log_bytes), describe::count(info.segment_count, "segment")),
    )?;
    field("index", info.index.clone())?;
    if info.encrypted {
        field("encrypted", "all that it records, under one key; acpdb help encryption".to_owned())?;
    }
    if info.erasing {
        field("erasure", store_path::ERASING.to_owned())?;
    }
    if info.quarantine_bytes > 0 {
        field(
            "quarantine",
            format!("{}, set aside by recovery; may be deleted", describe::bytes(info.quarantine_bytes)),
        )?;
    }
    Ok(Code::Ok)
}

fn space(store: &Store, output: &mut Output) -> Result<Code, Failure> {
    let space = store.space()?;
    if output.json {
        let value = describe::with(json!(space), json!({"schema": "acpdb.space/1"}));
        return output.json_line(&value);
    }
    let percent = |thousandths: u64| format!("{}.{}%", thousandths / 10, thousandths % 10);
    output.line(format!(
        "log        {} on disk (sealed segments packed to {})",
        describe::bytes(space.log_bytes),
        percent(space.compression_ratio),
    ))?;
    output.line(format!(
        "bodies     {} recorded, {} without repeats ({})",
        describe::bytes(space.body_bytes_recorded),
        describe::bytes(space.body_bytes_unique),
        percent(space.dedupe_ratio),
    ))?;
    if space.damaged > 0 {
        output.line(format!(
            "damaged    {} in no figure; see acpdb verify",
            describe::count(space.damaged, "stretch")
        ))?;
    }
    let mut kinds: Vec<_> = space.kinds.iter().collect();
    kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.spine_bytes.saturating_add(kind.body_bytes)));
    let kind = kinds.into_iter().map(|(name, kind)| {
        let (spine, bodies) = (describe::bytes(kind.spine_bytes), describe::bytes(kind.body_bytes));
        vec![name.clone(), kind.events.to_string(), spine, bodies, describe::bytes(kind.shared_bytes)]
    });
    of_cells(&["kind", "events", "spine", "bodies", "repeated"], kind, output)?;
    let mut states: Vec<_> = space.states.iter().collect();
    states.sort_by_key(|(_, state)| std::cmp::Reverse(state.bytes));
    let state = states
        .into_iter()
        .map(|(name, state)| vec![name.clone(), state.faces.to_string(), describe::bytes(state.bytes)]);
    of_cells(&["state", "faces", "bytes"], state, output)?;
    let segment = space.segments.iter().map(|segment| {
        vec![
            format!("{}{}", segment.segment, if segment.sealed { " sealed" } else { "" }),
            describe::bytes(segment.file_bytes),
            describe::bytes(segment.log_bytes),
            segment.events.to_string(),
            describe::bytes(segment.spine_bytes),
            describe::bytes(segment.body_bytes),
        ]
    });
    of_cells(&["segment", "file", "unpacked", "events", "spines", "bodies"], segment, output)?;
    Ok(Code::Ok)
}

/// Prints a table of a name and numbers, below an empty line.
fn of_cells(
    headings: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    output: &mut Output,
) -> Result<(), Failure> {
    output.line("")?;
    let columns = headings.iter().enumerate().map(|(place, heading)| {
        let cell = move |cells: &Vec<String>| cells.get(place).cloned().unwrap_or_default();
        if place == 0 { table::text(heading, cell) } else { table::number(heading, cell) }
    });
    table::print(output, columns.collect(), &rows.collect::<Vec<_>>())
}
