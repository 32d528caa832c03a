//! `acpdb show ID`: one event whole, the host's own record, or one body.

use std::io::IsTerminal as _;

use acpdb_engine::event::{NamedBody, Payload, Recorded};
use acpdb_engine::ids::BodyId;
use acpdb_engine::{Error, Store};
use serde_json::json;

use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, store_path};
use crate::args::ShowArgs;

pub(crate) fn run(global: &Global, args: &ShowArgs, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let found = super::find::item(&store, &args.id, global.session.as_deref())?;
    let seq = found.item.seq;
    let recorded = store.event(seq)?.ok_or_else(|| Failure::not_found(format!("there is no event {seq}")))?;
    if let Some(row) = args.body {
        let count = store.body_count(seq)?;
        if row >= count {
            let last = count.checked_sub(1).map_or_else(String::new, |last| format!("; the last is {last}"));
            return Err(Failure::not_found(format!("{seq} has no body {row}{last}")));
        }
        let bytes = store.body(BodyId { seq, first: row, chunks: 1 })?;
        return raw(&bytes, output);
    }
    if args.raw {
        let record = store.record(&recorded)?.ok_or_else(|| {
            Failure::not_found(format!(
                "{seq} has no record of a host: it was not imported, or another event of the record has it"
            ))
        })?;
        return raw(&record, output);
    }
    if output.json {
        let value = describe::event_json(&recorded, &describe::StreamNames::new(&store));
        let bodies: serde_json::Map<String, serde_json::Value> = recorded
            .event
            .payload
            .bodies()
            .into_iter()
            .map(|it| Ok((it.name.into_owned(), body_json(&store, it.body.id(seq))?)))
            .collect::<Result<_, Failure>>()?;
        return output.json_line(&describe::with(value, json!({"schema": "acpdb.show/1", "bodies": bodies})));
    }
    text(&store, &recorded, output)?;
    if matches!(recorded.event.payload, Payload::ToolCallStarted(_))
        && let Some(finish) = found.finish
        && let Some(finished) = store.event(finish)?
    {
        output.line("")?;
        text(&store, &finished, output)?;
    }
    Ok(Code::Ok)
}

/// A body's text; for an erased body, the record of its erasure.
fn body_json(store: &Store, body: BodyId) -> Result<serde_json::Value, Failure> {
    match store.body(body) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into()),
        Err(Error::Erased { detail, .. }) => Ok(serde_json::json!({ "erased": detail })),
        Err(error) => Err(error.into()),
    }
}

/// The bytes without changes; on a terminal with hostile characters escaped.
fn raw(bytes: &[u8], output: &mut Output) -> Result<Code, Failure> {
    if std::io::stdout().is_terminal() {
        let text = String::from_utf8_lossy(bytes);
        output.line(escape(&text, EscapeLevel::Text))?;
    } else {
        output.bytes(bytes)?;
    }
    Ok(Code::Ok)
}

fn text(store: &Store, recorded: &Recorded, output: &mut Output) -> Result<(), Failure> {
    let event = &recorded.event;
    let seq = output.paint(describe::SEQ, &recorded.seq.to_string());
    let kind = output.paint(describe::BOLD, event.payload.label());
    let names = describe::StreamNames::new(store);
    output.line(format!("{seq} {kind}"))?;
    let mut field = |name: &str, value: String| output.line(format!("  {name:<12} {value}"));
    field("session", escape(&names.full(event.stream), EscapeLevel::Line).into_owned())?;
    field("recorded at", describe::time(recorded.recorded_at))?;
    if let Some(time) = event.host_time {
        field("host time", describe::time(time))?;
    }
    field("actor", format!("{:?}", event.stamp.actor).to_lowercase())?;
    let words = event.payload.in_words();
    if !words.trim().is_empty() {
        field("says", escape(words.trim(), EscapeLevel::Line).into_owned())?;
    }
    for NamedBody { name, body, .. } in event.payload.bodies() {
        if body.bytes == 0 {
            continue;
        }
        let found = store.body(body.id(recorded.seq));
        let heading = format!(
            "{name} ({}, ~{} tokens)",
            describe::bytes(body.bytes),
            describe::tokens(body.tokens.into())
        );
        output.styled(describe::DIM, &heading)?;
        let bytes = match found {
            Ok(bytes) => bytes,
            Err(Error::Erased { detail, .. }) => {
                output.line(escape(&format!("[{detail}]"), EscapeLevel::Line))?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let text = String::from_utf8_lossy(&bytes);
        let text = output.recorded(&text, EscapeLevel::Text).into_owned();
        output.line(text.trim_end_matches('\n'))?;
    }
    Ok(())
}
