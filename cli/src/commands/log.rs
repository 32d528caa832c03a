//! `acpdb log`: events as they were recorded, or their texts, one a line.
//!
//! A line of a text is seq, tab, text. Programs get whole texts; on a terminal a line has the beginning of one, as wide as the room.

use std::time::Duration;

use acpdb_engine::Store;
use acpdb_engine::event::{Payload, Recorded};
use acpdb_engine::ids::Seq;
use acpdb_query::{EventRows, EventsQuestion, bodies};

use super::in_order::{InOrder, StoreNames};
use super::lines::clipped;
use super::{Code, EscapeLevel, Failure, Global, Output, ask, describe, escape};
use crate::args::LogArgs;
use crate::several::{self, ReadStores};
use crate::spread;

/// Time of one wait for the next commit; another wait follows.
const FOLLOW_WAIT: Duration = Duration::from_secs(60);

/// Terminals below this width show no times.
const NARROW: usize = 80;

/// Columns up to the first tab stop.
const TAB: usize = 8;

/// The part of an event that is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogForm {
    Event,
    Text,
    /// As much of the text as there is room for.
    Beginning,
}

impl LogForm {
    const fn of(args: &LogArgs, output: &Output) -> Self {
        match (args.texts, output.terminal && !args.full) {
            (false, _) => Self::Event,
            (true, false) => Self::Text,
            (true, true) => Self::Beginning,
        }
    }

    /// A question about texts has other pages than one about events.
    const fn name(self) -> &'static str {
        if matches!(self, Self::Event) { "log" } else { "texts" }
    }
}

pub(crate) fn run(global: &Global, args: &LogArgs, output: &mut Output) -> Result<Code, Failure> {
    let mut args = args.clone();
    args.ask.query.extend(args.kind.take().map(|kind| format!("kind:{kind}")));
    let args = &args;
    ask::check(&args.ask.query, global.session.as_deref())?;
    let stores = ReadStores::open(global, output)?;
    let Some(store) = stores.only() else { return of_several(&stores, global, args, output) };
    let (session, filter) = ask::placed(store, &args.ask.query, global.session.as_deref(), output)?;
    let form = LogForm::of(args, output);
    let asked = session.as_ref().map_or("", |session| session.name.as_str());
    let order = if args.reverse { "reverse" } else { "" };
    let (after, digest) = args.ask.page(&[form.name(), filter.text(), asked, order])?;
    let to = if args.follow { Some(store.head()?) } else { super::at::end(store, global, session.as_ref())? };
    let question = EventsQuestion {
        filter,
        stream: session.map(|session| session.id),
        from: Seq(1),
        to,
        // The newest events are found from the end, and printed in order.
        reverse: args.reverse || args.last.is_some(),
        with_texts: args.texts,
        limit: args.last.or(args.ask.limit),
        after,
        digest,
    };
    let names = StoreNames::new(store.clone(), None);
    let followed = EventsQuestion { reverse: false, limit: None, after: None, ..question.clone() };
    let mut rows = acpdb_query::events(store, question)?;
    let mut unread = 0;
    let seen = if args.last.is_some() && !args.reverse {
        let mut held = Vec::new();
        let seen = each(&mut rows, output, &mut |recorded, _| {
            held.push(recorded);
            Ok(())
        })?;
        for recorded in held.iter().rev() {
            unread += print(recorded, &names, form, output)?;
        }
        seen
    } else {
        each(&mut rows, output, &mut |recorded, output| {
            unread += print(&recorded, &names, form, output)?;
            Ok(())
        })?
    };
    finish(&mut rows, seen, output, args.last.is_none())?;
    if args.follow {
        follow(store, &followed, to.unwrap_or(Seq::ZERO).next(), names, form, output)?;
    }
    Ok(if seen.damaged + unread > 0 { Code::Damage } else { Code::Ok })
}

/// The events of several stores.
fn of_several(
    stores: &ReadStores,
    global: &Global,
    args: &LogArgs,
    output: &mut Output,
) -> Result<Code, Failure> {
    if args.follow {
        return Err(Failure::usage("--follow is of one store, and there are several")
            .hint("name one folder with --db"));
    }
    let (filter, form) = (ask::filter(&args.ask.query)?, LogForm::of(args, output));
    let moment = several::moment(global)?;
    let order = if args.reverse { "reverse" } else { "" };
    let (after, digest) = args.ask.page(&[form.name(), filter.text(), "", order])?;
    let (reverse, limit, last) = (args.reverse, args.ask.limit, args.last);
    let question = |store: &Store| {
        let to = several::end(store, moment)?;
        Ok(to.map(|to| EventsQuestion {
            filter: filter.clone(),
            from: Seq(1),
            to: Some(to),
            with_texts: args.texts,
            ..EventsQuestion::default()
        }))
    };
    let asked = InOrder { stores, reverse, last, limit, after, digest };
    let mut unread = 0;
    let code = asked.print(&question, output, &mut |recorded, names, output| {
        unread += print(recorded, names, form, output)?;
        Ok(())
    })?;
    Ok(if unread > 0 { Code::Damage } else { code })
}

/// Prints the events from `from` on, each commit as soon as it is durable. Ends when the reader goes away, or by a signal.
fn follow(
    store: &Store,
    question: &EventsQuestion,
    from: Seq,
    mut names: StoreNames,
    form: LogForm,
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
        let _ = each(&mut rows, output, &mut |recorded, output| {
            print(&recorded, &names, form, output).map(drop)
        })?;
    }
}

/// The numbers of events of an answer.
#[derive(Clone, Copy, Default)]
pub(crate) struct EventNumbers {
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
) -> Result<EventNumbers, Failure> {
    let mut seen = EventNumbers::default();
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
    seen: EventNumbers,
    output: &mut Output,
    paged: bool,
) -> Result<(), Failure> {
    if seen.sound == 0 && seen.damaged == 0 {
        output.note("0 events matched");
    }
    ask::searched(rows.scanned(), output);
    ask::next_page(if paged { rows.next_cursor() } else { None }, output)
}

/// Prints one event. Returns 1 if a text of it is damaged: then nothing of it is printed.
fn print(
    recorded: &Recorded,
    names: &StoreNames,
    form: LogForm,
    output: &mut Output,
) -> Result<u64, Failure> {
    let label = names.label.as_deref();
    let text = match form {
        LogForm::Event => None,
        LogForm::Text | LogForm::Beginning => match texts(&names.store, recorded)? {
            Ok(text) => Some(text),
            Err(damage) => {
                output.left_out(&damage);
                return Ok(1);
            }
        },
    };
    if output.json {
        let event = describe::event_json(recorded, &names.streams);
        let event = match text {
            Some(text) => describe::with(event, serde_json::json!({ "text": text })),
            None => event,
        };
        output.json_line(&several::with_store(event, label))?;
        return Ok(0);
    }
    if let Some(text) = text {
        let seq = recorded.seq.get();
        let seq = label.map_or_else(|| seq.to_string(), |label| format!("{label}:{seq}"));
        let text = if form == LogForm::Beginning {
            // Long texts are cut before they are escaped: there may be megabytes of them.
            let end = text.char_indices().nth(output.width).map(|(end, _)| end);
            let head = escape(end.and_then(|end| text.get(..end)).unwrap_or(&text), EscapeLevel::Line);
            clipped(&head, output.room(TAB).max(10)).into_owned()
        } else {
            output.recorded(&text, EscapeLevel::Line).into_owned()
        };
        return output.line(format!("{seq}\t{text}")).map(|()| 0);
    }
    let name = names.streams.short(recorded.event.stream);
    let kind = match &recorded.event.payload {
        Payload::Unknown { number, version, .. } => format!("unknown {number}.{version}"),
        payload => payload.label().to_owned(),
    };
    let seq = label.map_or_else(|| recorded.seq.to_string(), |label| format!("{label}:{}", recorded.seq));
    let seq = output.paint(describe::SEQ, &format!("{seq:>7}"));
    let text = recorded.event.payload.in_words();
    let text = output.recorded(&text, EscapeLevel::Line).into_owned();
    // On a narrow terminal, the event counts more than its time.
    let time = match describe::time_if_any(names.streams.time(recorded)) {
        _ if output.width < NARROW && !output.tabs => String::new(),
        time => format!("{time}  "),
    };
    output.line(super::lines::cut(&format!("{seq}  {time}{name:<12} {kind:<20} {text}"), output)).map(|()| 0)
}

/// The texts of an event, with a mark in place of an erased one; or the damage of one.
fn texts(store: &Store, recorded: &Recorded) -> Result<Result<String, String>, Failure> {
    let mut texts = Vec::new();
    for body in bodies::telling(&recorded.event.payload) {
        texts.push(match store.body(body.id(recorded.seq)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            // An erasure is no damage: it was requested.
            Err(acpdb_engine::Error::Erased { detail, .. }) => format!("[{detail}]"),
            Err(error @ acpdb_engine::Error::Corrupt { .. }) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error.into()),
        });
    }
    Ok(Ok(texts.join("\n")))
}
