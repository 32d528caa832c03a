//! `acpdb list`: texts in order, `seq<TAB>text`, one event a line. Programs read whole texts; on a terminal a line has the
//! beginning of a text, as wide as the room.

use acpdb_engine::Store;
use acpdb_engine::event::Recorded;
use acpdb_engine::ids::Seq;
use acpdb_query::{EventsQuestion, bodies};

use super::in_order::InOrder;
use super::lines::clipped;
use super::{Code, Escape, Failure, Global, Output, ask, escape, log};
use crate::args::List;
use crate::several::{self, ReadStores};

/// Columns up to the first tab stop.
const TAB: usize = 8;

pub(crate) fn run(global: &Global, args: &List, output: &mut Output) -> Result<Code, Failure> {
    ask::check(&args.ask.query, args.session.as_deref())?;
    let stores = ReadStores::open(global, output)?;
    let is_short = args.short || output.terminal && !args.full;
    let Some(store) = stores.only() else { return of_several(&stores, global, args, is_short, output) };
    let (session, filter) = ask::placed(store, &args.ask.query, args.session.as_deref(), output)?;
    let named = session.as_ref().map_or("", |session| session.name.as_str());
    let (after, digest) = args.ask.page(&["list", filter.text(), named])?;
    let to = super::at::end(store, global, session.as_ref())?;
    let question = EventsQuestion {
        filter,
        stream: session.map(|session| session.id),
        from: Seq(1),
        to,
        with_texts: true,
        limit: args.ask.limit,
        after,
        digest,
        ..EventsQuestion::default()
    };
    let mut rows = acpdb_query::events(store, question)?;
    let mut unreadable = 0_u64;
    let seen = log::each(&mut rows, output, &mut |recorded, output| {
        unreadable += print(store, None, &recorded, is_short, output)?;
        Ok(())
    })?;
    log::finish(&mut rows, seen, output, true)?;
    Ok(if seen.damaged + unreadable > 0 { Code::Damage } else { Code::Ok })
}

/// The texts of several stores.
fn of_several(
    stores: &ReadStores,
    global: &Global,
    args: &List,
    is_short: bool,
    output: &mut Output,
) -> Result<Code, Failure> {
    let filter = ask::filter(&args.ask.query)?;
    let moment = several::moment(global)?;
    let (after, digest) = args.ask.page(&["list", filter.text(), ""])?;
    let question = |store: &Store| {
        let to = several::end(store, moment)?;
        let question = EventsQuestion {
            filter: filter.clone(),
            from: Seq(1),
            with_texts: true,
            ..EventsQuestion::default()
        };
        Ok(to.map(|to| EventsQuestion { to: Some(to), ..question }))
    };
    let asked = InOrder { stores, reverse: false, last: None, limit: args.ask.limit, after, digest };
    let mut unreadable = 0;
    let code = asked.print(&question, output, &mut |recorded, names, output| {
        unreadable += print(&names.store, names.label.as_deref(), recorded, is_short, output)?;
        Ok(())
    })?;
    Ok(if unreadable > 0 { Code::Damage } else { code })
}

/// Prints one event. Returns 1 if a body of it is damaged: then no part of the event is printed.
fn print(
    store: &Store,
    label: Option<&str>,
    recorded: &Recorded,
    short: bool,
    output: &mut Output,
) -> Result<u64, Failure> {
    let shown = bodies::telling(&recorded.event.payload);
    let mut text = String::new();
    for body in shown {
        match store.body(body.id(recorded.seq)) {
            Ok(bytes) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&String::from_utf8_lossy(&bytes));
            }
            // An erasure is no damage: it was requested.
            Err(acpdb_engine::Error::Erased { detail, .. }) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&format!("[{detail}]"));
            }
            Err(error @ acpdb_engine::Error::Corrupt { .. }) => {
                output.left_out(&error.to_string());
                return Ok(1);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if output.json {
        let line = serde_json::json!({"schema": "acpdb.list/1", "seq": recorded.seq, "body": text});
        output.json_line(&several::with_store(line, label))?;
        return Ok(0);
    }
    let seq = recorded.seq.get();
    let seq = label.map_or_else(|| seq.to_string(), |label| format!("{label}:{seq}"));
    if short {
        // Long texts are cut before they are escaped: there may be megabytes of them.
        let end = text.char_indices().nth(output.width).map(|(end, _)| end);
        let head = escape(end.and_then(|end| text.get(..end)).unwrap_or(&text), Escape::Line);
        let head = clipped(&head, output.room(TAB).max(10)).into_owned();
        output.line(format!("{seq}\t{head}"))?;
    } else {
        let text = output.recorded(&text, Escape::Line).into_owned();
        output.line(format!("{seq}\t{text}"))?;
    }
    Ok(0)
}
