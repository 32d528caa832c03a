//! `acpdb list`: texts in order, `seq<TAB>text`, one event a line. Programs read whole texts; on a terminal a line has the
//! beginning of a text, as wide as the room.

use acpdb_engine::Store;
use acpdb_engine::event::Recorded;
use acpdb_engine::ids::Seq;
use acpdb_query::{EventsQuestion, bodies};

use super::lines::clipped;
use super::{Code, Escape, Failure, Global, Output, ask, escape, log, store_path};
use crate::args::List;

/// Columns up to the first tab stop.
const TAB: usize = 8;

pub(crate) fn run(global: &Global, args: &List, output: &mut Output) -> Result<Code, Failure> {
    ask::check(&args.ask.query, args.session.as_deref())?;
    let store = store_path::read(global, output)?;
    let (session, filter) = ask::placed(&store, &args.ask.query, args.session.as_deref(), output)?;
    let named = session.as_ref().map_or("", |session| session.name.as_str());
    let (after, digest) = args.ask.page(&["list", filter.text(), named])?;
    let to = super::at::end(&store, global, session.as_ref())?;
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
    let mut rows = acpdb_query::events(&store, question)?;
    let mut unreadable = 0_u64;
    let seen = log::each(&mut rows, output, &mut |recorded, output| {
        unreadable += print(&store, &recorded, args.short || output.terminal && !args.full, output)?;
        Ok(())
    })?;
    log::finish(&mut rows, seen, output, true)?;
    Ok(if seen.damaged + unreadable > 0 { Code::Damage } else { Code::Ok })
}

/// Prints one event. Returns 1 if a body of it is damaged: then no part of the event is printed.
fn print(store: &Store, recorded: &Recorded, short: bool, output: &mut Output) -> Result<u64, Failure> {
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
        output.json_line(&line)?;
    } else if short {
        // Long texts are cut before they are escaped: there may be megabytes of them.
        let end = text.char_indices().nth(output.width).map(|(end, _)| end);
        let head = escape(end.and_then(|end| text.get(..end)).unwrap_or(&text), Escape::Line);
        let head = clipped(&head, output.room(TAB).max(10)).into_owned();
        output.line(format!("{}\t{head}", recorded.seq.get()))?;
    } else {
        let text = output.recorded(&text, Escape::Line).into_owned();
        output.line(format!("{}\t{text}", recorded.seq.get()))?;
    }
    Ok(0)
}
