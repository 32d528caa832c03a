//! `acpdb erase`: zeroes an item's content for good, with all bodies equal to it.

use acpdb_engine::Store;
use acpdb_engine::ids::{ItemId, Seq, StreamId};
use acpdb_engine::store::{ErasedWhy, StreamName};
use serde_json::json;

use super::{Code, Escape, Failure, Global, Output, describe, escape, store_path};
use crate::args::Erase;

/// The limits of each erasure; also in the help.
const NOT_COVERED: &str = "not covered: ids, names of tools, paths; \
     quotations inside other texts; copies outside of the store, such as backups and the host's own files";

/// The limits of shredding.
const NOT_SHREDDED: &str = "not covered: backups made with --keys, exports, the host's own files, and what was remembered for the project or \
     the user (acpdb memory list)";

pub(crate) fn run(global: &Global, args: &Erase, output: &mut Output) -> Result<Code, Failure> {
    if args.shred {
        return shred(global, args, output);
    }
    let open = if args.dry_run { store_path::read } else { store_path::write };
    let store = open(global, output)?;
    let by = args.by.clone().or_else(user).unwrap_or_else(|| "user".to_owned());
    let reason = args.reason.as_deref().unwrap_or_default();
    let report = if let Some(id) = &args.id {
        let (item, stream) = target(&store, id, args)?;
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
        let found = super::scan::look(&store, args.session.as_deref(), &rules)?;
        for seq in found.kept() {
            output.note(format!("{seq} holds one in an id, a name or a path, which stays"));
        }
        let bodies = found.bodies();
        if bodies.is_empty() {
            output.line("the scan finds nothing that can be erased")?;
            return Ok(Code::Ok);
        }
        if args.dry_run {
            store.erase_bodies_preview(&bodies)?
        } else {
            store.erase_bodies(&bodies, &by, reason)?
        }
    };
    if !args.dry_run {
        // The figures of its sessions do not hold any more.
        crate::kept::leave(&store);
    }
    let names = describe::StreamNames::new(&store);
    if output.json {
        let value = json!({
            "schema": "acpdb.erase/1",
            "item": report.item.to_string(),
            "dry_run": args.dry_run,
            "recorded": report.recorded,
            "hit": report.hit.iter().map(|hit| json!({
                "seq": hit.seq,
                "item": hit.item.map(|item| item.to_string()),
                "session": names.full(hit.stream),
                "why": hit.why,
                "bodies": hit.bodies,
                "bytes": hit.bytes,
            })).collect::<Vec<_>>(),
            "keys_kept": report.keys_kept,
            "blocks": report.figures.blocks,
            "segments": report.figures.segments,
            "files_removed": report.figures.files_removed,
            "not_covered": NOT_COVERED.trim_start_matches("not covered: "),
        });
        return output.json_line(&value);
    }
    if report.hit.is_empty() {
        output.line(format!("{}: nothing left to erase", report.item))?;
        return Ok(Code::Ok);
    }
    match report.recorded {
        Some(seq) => output.line(format!("{}: erased, on record in {seq}", report.item))?,
        None => output.line(format!("{}: this would be erased", report.item))?,
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
        let session = escape(&names.full(content.stream), Escape::Line).into_owned();
        let bytes = describe::bytes(content.bytes);
        output.line(format!("  {what}{event}  {bytes}  {session}{why}"))?;
    }
    for key in &report.keys_kept {
        output.line(format!("  its key stays: {}", escape(key, Escape::Line)))?;
    }
    output.note(NOT_COVERED);
    if args.dry_run {
        output.note("nothing was changed; without --dry-run it cannot be undone");
    }
    Ok(Code::Ok)
}

/// Erases a whole session by destroying its key.
fn shred(global: &Global, args: &Erase, output: &mut Output) -> Result<Code, Failure> {
    let open = if args.dry_run { store_path::read } else { store_path::write };
    let store = open(global, output)?;
    if !store.is_encrypted() {
        let failure =
            Failure::usage(format!("{} is not encrypted: its sessions have no keys", store.root().display()));
        return Err(failure.hint("acpdb erase ID zeroes what one item says, in this folder"));
    }
    let by = args.by.clone().or_else(user).unwrap_or_else(|| "user".to_owned());
    let reason = args.reason.as_deref().unwrap_or_default();
    let rows = match &args.subject {
        Some(subject) => shred_subject(&store, subject, (&by, reason), args.dry_run)?,
        None => {
            shred_session(&store, args.session.as_deref().unwrap_or_default(), (&by, reason), args.dry_run)?
        }
    };
    if output.json {
        let value = json!({ "dry_run": args.dry_run, "subject": args.subject, "items": rows });
        return output.json_object("acpdb.shred/1", &value);
    }
    if rows.is_empty() {
        let done = if args.dry_run { "would be destroyed" } else { "is destroyed" };
        output.line(format!("no session is left about it; its key {done}"))?;
    }
    for row in &rows {
        let shown = escape(&row.session, Escape::Line);
        let events = describe::count(row.events, "event");
        output.line(match row.recorded {
            Some(seq) => {
                format!("{shown}: shredded, on record in {seq}: its {events} cannot be read any more")
            }
            None => format!("{shown}: {events} would be unreadable for good"),
        })?;
    }
    output.note(NOT_SHREDDED);
    if args.dry_run {
        output.note("nothing was changed; without --dry-run it cannot be undone");
    }
    Ok(Code::Ok)
}

/// Shreds a session with its subagents, one after the other.
fn shred_session(
    store: &Store,
    session: &str,
    (by, reason): (&str, &str),
    is_dry: bool,
) -> Result<Vec<Shredded>, Failure> {
    let mut rows = Vec::new();
    for name in with_subagents(store, super::session::find(store, session)?)? {
        rows.push(if is_dry {
            dry(store, name)?
        } else {
            let done = store.shred(name.id, by, reason)?;
            let recorded = Some(done.recorded);
            Shredded { session: name.name, stream: name.id, events: done.events, recorded }
        });
    }
    Ok(rows)
}

/// Shreds all sessions about a subject, at once.
fn shred_subject(
    store: &Store,
    subject: &str,
    (by, reason): (&str, &str),
    is_dry: bool,
) -> Result<Vec<Shredded>, Failure> {
    let about = store.streams_about(subject)?;
    // Read before the names are gone.
    let names: Vec<StreamName> =
        store.stream_names()?.into_iter().filter(|name| about.contains(&name.id)).collect();
    if is_dry {
        return names.into_iter().map(|name| dry(store, name)).collect();
    }
    let done = store.shred_subject(subject, by, reason)?;
    let rows = names.into_iter().filter_map(|name| {
        let stream = done.streams.iter().find(|stream| stream.stream == name.id)?;
        let recorded = done.recorded;
        Some(Shredded { session: name.name, stream: name.id, events: stream.events, recorded })
    });
    Ok(rows.collect())
}

fn dry(store: &Store, name: StreamName) -> Result<Shredded, Failure> {
    let events = store.stream_events(name.id, Seq(1), Seq::MAX)?.count() as u64;
    Ok(Shredded { session: name.name, stream: name.id, events, recorded: None })
}

/// A session whose key was destroyed, or would be without `--dry-run`.
#[derive(serde::Serialize)]
struct Shredded {
    session: String,
    stream: StreamId,
    events: u64,
    /// The event that records the destruction.
    recorded: Option<Seq>,
}

/// A session after all subagents that it started: their prompts are of the session, and after an interruption the session still has
/// its name.
fn with_subagents(store: &Store, session: StreamName) -> Result<Vec<StreamName>, Failure> {
    let names = store.stream_names()?;
    let mut found = vec![session];
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|name| name.id) {
        let children = names.iter().filter(|name| name.parent == Some(parent));
        let new: Vec<StreamName> =
            children.filter(|name| found.iter().all(|known| known.id != name.id)).cloned().collect();
        found.extend(new);
        next += 1;
    }
    found.reverse();
    Ok(found)
}

/// The item for an id: for a call's end the call, for an event without an item the event.
fn target(store: &Store, id: &str, args: &Erase) -> Result<(ItemId, Option<StreamId>), Failure> {
    let found = super::find::item(store, id, args.session.as_deref());
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
            Ok(item) if args.session.is_none() && store.event(item.seq)?.is_some() => Ok((item, None)),
            _ => Err(failure),
        },
    }
}

/// The user's name on this machine.
fn user() -> Option<String> {
    ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| crate::store_path::variable(name))
        .filter(|name| !name.is_empty())
}
