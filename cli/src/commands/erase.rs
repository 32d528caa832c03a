//! `acpdb erase`: zeroes an item's content for good, with all bodies equal to it.

use acpdb_engine::Store;
use acpdb_engine::ids::{ItemId, StreamId};
use acpdb_engine::store::ErasedWhy;
use acpdb_query::ErasureAnswer;
use serde::Serialize;

use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, store_path};
use crate::args::Erase;

/// The limits of each erasure; also in the help.
const NOT_COVERED: &str = "not covered: ids, names of tools, paths; \
     quotations inside other texts; copies outside of the store, such as backups and the host's own files";

/// The answer, with what this verb has beside it.
#[derive(Serialize)]
struct ShownErasure {
    schema: &'static str,
    #[serde(flatten)]
    answer: ErasureAnswer,
    not_covered: &'static str,
}

pub(crate) fn run(global: &Global, args: &Erase, output: &mut Output) -> Result<Code, Failure> {
    let open = if args.dry_run { store_path::read } else { store_path::write };
    let store = open(global, output)?;
    let by = args.by.clone().or_else(user).unwrap_or_else(|| "user".to_owned());
    let reason = args.reason.as_deref().unwrap_or_default();
    let report = if let Some(id) = &args.id {
        let (item, stream) = target(&store, id, global.session.as_deref())?;
        match (&args.span, args.dry_run) {
            (None, true) => store.erase_preview(item)?,
            (None, false) => store.erase(item, &by, reason)?,
            (Some(span), dry_run) => {
                let stream = stream.ok_or_else(|| Failure::usage("only a text of a session has spans"))?;
                if dry_run {
                    store.erase_span_preview(stream, item, &span.0)?
                } else {
                    store.erase_span(stream, item, &span.0, &by, reason)?
                }
            }
        }
    } else {
        let rules = crate::redaction::rules(&args.redact, true)?.unwrap_or_default();
        let found = super::scan::look(&store, global.session.as_deref(), &rules)?;
        for seq in found.kept() {
            output.note(format!("{seq} holds one in an id, a name or a path, which stays"));
        }
        let (texts, bodies) = found.by_piece(args.whole);
        if bodies.is_empty() && texts.is_empty() {
            output.line("the scan finds nothing that can be erased")?;
            return Ok(Code::Ok);
        }
        if !texts.is_empty() {
            let count = describe::count(texts.len() as u64, "text");
            let verb = if args.dry_run { "would get" } else { "got" };
            output.note(format!(
                "{count} {verb} a mark in the place of each secret; the rest stays, unless --whole is given"
            ));
        }
        if args.dry_run {
            store.erase_spans_preview(&texts, &bodies)?
        } else {
            store.erase_spans(&texts, &bodies, &by, reason)?
        }
    };
    if !args.dry_run {
        // The figures of its sessions do not hold any more.
        crate::kept::leave(&store);
    }
    let names = describe::StreamNames::new(&store);
    if output.json {
        let answer = ErasureAnswer::new(&store, &report, args.dry_run)?;
        return output.json_line(&ShownErasure {
            schema: "acpdb.erase/1",
            answer,
            not_covered: NOT_COVERED.trim_start_matches("not covered: "),
        });
    }
    let what = if args.from_scan { "what the scan finds".to_owned() } else { report.item.to_string() };
    if report.hit.is_empty() {
        output.line(format!("{what}: nothing left to erase"))?;
        return Ok(Code::Ok);
    }
    match report.recorded {
        Some(seq) => output.line(format!("{what}: erased, on record in {seq}"))?,
        None => output.line(format!("{what}: this would be erased"))?,
    }
    for content in &report.hit {
        let what = content.item.map_or_else(|| content.seq.to_string(), |item| item.to_string());
        let why = match content.why {
            ErasedWhy::Asked => "",
            ErasedWhy::Equal => "  says the same",
            ErasedWhy::Record => "  the host's record of it",
        };
        let event =
            if what == content.seq.to_string() { String::new() } else { format!(" in {}", content.seq) };
        let session = escape(&names.full(content.stream), EscapeLevel::Line).into_owned();
        let bytes = describe::bytes(content.bytes);
        output.line(format!("  {what}{event}  {bytes}  {session}{why}"))?;
    }
    for key in &report.keys_kept {
        output.line(format!("  its key stays: {}", escape(key, EscapeLevel::Line)))?;
    }
    output.note(NOT_COVERED);
    if args.dry_run {
        output.note("nothing was changed; without --dry-run it cannot be undone");
    }
    Ok(Code::Ok)
}

/// The item for an id: for a call's end the call, for an event without an item the event.
fn target(store: &Store, id: &str, session: Option<&str>) -> Result<(ItemId, Option<StreamId>), Failure> {
    let found = super::find::item(store, id, session);
    match found {
        Ok(found) => {
            let stream = store.event(found.item.seq)?.map(|recorded| recorded.event.stream);
            if let Some(stream) = stream.filter(|stream| *stream != found.view.stream()) {
                let origin = describe::StreamNames::new(store).full(stream);
                let failure =
                    Failure::usage(format!("{} is of session {origin}, which shares it", found.item));
                return Err(failure.hint("an erasure takes it from both: leave out --session"));
            }
            let item = found.ix.and_then(|ix| found.view.state().item_id(ix));
            Ok((item.unwrap_or(found.item), Some(found.view.stream())))
        }
        // Some events, such as those of the store's own stream, belong to no session that could be searched.
        Err(failure) => match id.parse::<ItemId>() {
            Ok(item) if session.is_none() && store.event(item.seq)?.is_some() => Ok((item, None)),
            _ => Err(failure),
        },
    }
}

/// The user's name on this machine.
fn user() -> Option<String> {
    ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| crate::settings::variable(name))
        .filter(|name| !name.is_empty())
}
