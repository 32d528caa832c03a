//! `acpdb log`: events as they were recorded, one a line.

use std::time::Duration;

use acpdb_engine::Store;
use acpdb_engine::event::{KIND_LABELS, Payload, Recorded};
use acpdb_engine::ids::Seq;
use acpdb_query::{EventRows, EventsQuestion, Filter};

use super::in_order::{InOrder, StoreNames};
use super::{Code, Failure, Global, Output, ask, describe};
use crate::args::Log;
use crate::several::{self, ReadStores};
use crate::spread;

/// Time of one wait for the next commit; another wait follows.
const FOLLOW_WAIT: Duration = Duration::from_secs(60);

/// Terminals below this width show no times.
const NARROW: usize = 80;

pub(crate) fn run(global: &Global, args: &Log, output: &mut Output) -> Result<Code, Failure> {
    ask::check(&args.ask.query, args.session.as_deref())?;
    if let Some(kind) = &args.kind {
        check_kind(kind)?;
    }
    let stores = ReadStores::open(global, output)?;
    let Some(store) = stores.only() else { return of_several(&stores, global, args, output) };
    let (session, filter) = ask::placed(store, &args.ask.query, args.session.as_deref(), output)?;
    let filter = with_kind(filter, args)?;
    let from = match &args.from {
        Some(text) => text.parse().map_err(|error| Failure::usage(format!("--from: {error}")))?,
        None => Seq(1),
    };
    let asked = session.as_ref().map_or("", |session| session.name.as_str());
    let order = if args.reverse { "reverse" } else { "" };
    let (after, digest) = args.ask.page(&["log", filter.text(), asked, order])?;
    let to = if args.follow { Some(store.head()?) } else { super::at::end(store, global, session.as_ref())? };
    let question = EventsQuestion {
        filter,
        stream: session.map(|session| session.id),
        from,
        to,
        // The newest events are found from the end, and printed in order.
        reverse: args.reverse || args.last.is_some(),
        with_texts: false,
        limit: args.last.or(args.ask.limit),
        after,
        digest,
    };
    let names = StoreNames::new(store.clone(), None);
    let followed = EventsQuestion { reverse: false, limit: None, after: None, ..question.clone() };
    let mut rows = acpdb_query::events(store, question)?;
    let seen = if args.last.is_some() && !args.reverse {
        let mut held = Vec::new();
        let seen = each(&mut rows, output, &mut |recorded, _| {
            held.push(recorded);
            Ok(())
        })?;
        for recorded in held.iter().rev() {
            print(recorded, &names, output)?;
        }
        seen
    } else {
        each(&mut rows, output, &mut |recorded, output| print(&recorded, &names, output))?
    };
    finish(&mut rows, seen, output, args.last.is_none())?;
    if args.follow {
        follow(store, &followed, from.max(to.unwrap_or(Seq::ZERO).next()), names, output)?;
    }
    Ok(if seen.damaged > 0 { Code::Damage } else { Code::Ok })
}

fn with_kind(filter: Filter, args: &Log) -> Result<Filter, Failure> {
    match &args.kind {
        Some(kind) => Ok(filter.and(ask::filter(&[format!("kind:{kind}")])?)),
        None => Ok(filter),
    }
}

/// The events of several stores.
fn of_several(
    stores: &ReadStores,
    global: &Global,
    args: &Log,
    output: &mut Output,
) -> Result<Code, Failure> {
    if args.follow || args.from.is_some() {
        let option = if args.follow { "--follow" } else { "--from" };
        return Err(Failure::usage(format!("{option} is of one store, and there are several"))
            .hint("name one folder with --db"));
    }
    let filter = with_kind(ask::filter(&args.ask.query)?, args)?;
    let moment = several::moment(global)?;
    let order = if args.reverse { "reverse" } else { "" };
    let (after, digest) = args.ask.page(&["log", filter.text(), "", order])?;
    let (reverse, limit, last) = (args.reverse, args.ask.limit, args.last);
    let question = |store: &Store| {
        let to = several::end(store, moment)?;
        Ok(to.map(|to| EventsQuestion {
            filter: filter.clone(),
            from: Seq(1),
            to: Some(to),
            ..EventsQuestion::default()
        }))
    };
    let asked = InOrder { stores, reverse, last, limit, after, digest };
    asked.print(&question, output, &mut |recorded, names, output| print(recorded, names, output))
}

/// Prints the events from `from` on, each commit as soon as it is durable. Ends when the reader goes away, or by a signal.
fn follow(
    store: &Store,
    question: &EventsQuestion,
    from: Seq,
    mut names: StoreNames,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut commits = store.subscribe(from);
    loop {
        output.flush()?;
        let commit = match commits.next_within(FOLLOW_WAIT) {
            Ok(Some(commit)) => commit,
            Ok(None) => continue,
            Err(acpdb_engine::Error::Corrupt { detail, .. }) => {
                output.left_out(&detail);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let opens = |recorded: &Recorded| {
            matches!(recorded.event.payload, Payload::SessionOpened(_) | Payload::SessionChanged(_))
        };
        if commit.events.iter().any(opens) {
            names = StoreNames::new(store.clone(), None);
        }
        let (Some(first), Some(last)) = (commit.events.first(), commit.events.last()) else { continue };
        let question = EventsQuestion { from: first.seq, to: Some(last.seq), ..question.clone() };
        let mut rows = acpdb_query::events(store, question)?;
        // Damage was told; a follower has no end, and so no exit code for it.
        let _ = each(&mut rows, output, &mut |recorded, output| print(&recorded, &names, output))?;
    }
}

/// The numbers of events of an answer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    /// Those that are sound.
    pub(crate) sound: u64,
    /// Those that are damaged, and left out.
    pub(crate) damaged: u64,
}

/// Calls `take` with each event. Damage is told.
pub(crate) fn each(
    rows: &mut EventRows,
    output: &mut Output,
    take: &mut dyn FnMut(Recorded, &mut Output) -> Result<(), Failure>,
) -> Result<Seen, Failure> {
    let mut seen = Seen::default();
    spread::ahead(rows, |recorded| match recorded {
        Ok(recorded) => {
            seen.sound += 1;
            take(recorded, output)
        }
        Err(acpdb_engine::Error::Corrupt { detail, .. }) => {
            seen.damaged += 1;
            output.left_out(&detail);
            Ok(())
        }
        Err(error) => Err(error.into()),
    })?;
    Ok(seen)
}

/// Tells that no event matched, how much was searched, and the cursor of the next page.
pub(crate) fn finish(
    rows: &mut EventRows,
    seen: Seen,
    output: &mut Output,
    paged: bool,
) -> Result<(), Failure> {
    if seen.sound == 0 && seen.damaged == 0 {
        output.note("0 events matched");
    }
    ask::searched(rows.scanned(), output);
    let Some(cursor) = (if paged { rows.next_cursor() } else { None }) else { return Ok(()) };
    if output.json {
        return output.json_object("acpdb.page/1", &serde_json::json!({"next_cursor": cursor})).map(drop);
    }
    ask::more(Some(cursor), output);
    Ok(())
}

fn check_kind(kind: &str) -> Result<(), Failure> {
    if KIND_LABELS.iter().any(|(_, label)| label == &kind) {
        return Ok(());
    }
    // One of the kinds is always the nearest, however unlike it is.
    let near =
        acpdb_query::nearest(KIND_LABELS.iter().map(|(_, label)| *label), kind, -1.0).unwrap_or_default();
    let failure = Failure::usage(format!("there is no kind of event {kind:?}"));
    Err(failure.hint(format!("did you mean {near}?")))
}

fn print(recorded: &Recorded, names: &StoreNames, output: &mut Output) -> Result<(), Failure> {
    let label = names.label.as_deref();
    let names = &names.streams;
    if output.json {
        return output
            .json_line(&several::with_store(describe::event_json(recorded, names), label))
            .map(drop);
    }
    let name = names.short(recorded.event.stream);
    let kind = match &recorded.event.payload {
        Payload::Unknown { number, version, .. } => format!("unknown {number}.{version}"),
        payload => payload.label().to_owned(),
    };
    let seq = label.map_or_else(|| recorded.seq.to_string(), |label| format!("{label}:{}", recorded.seq));
    let seq = output.paint(describe::SEQ, &format!("{seq:>7}"));
    let text = recorded.event.payload.in_words();
    let text = output.recorded(&text, crate::output::Escape::Line).into_owned();
    // On a narrow terminal, the event counts more than its time.
    let time = match describe::time_if_any(names.time(recorded)) {
        _ if output.width < NARROW && !output.tabs => String::new(),
        time => format!("{time}  "),
    };
    output.line(super::lines::cut(&format!("{seq}  {time}{name:<12} {kind:<20} {text}"), output))
}
