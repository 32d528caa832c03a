//! `acpdb log`: events as they were recorded, one a line.

use std::collections::VecDeque;
use std::time::Duration;

use acpdb_engine::Store;
use acpdb_engine::event::{KIND_LABELS, Payload, Recorded};
use acpdb_engine::ids::{Seq, StreamId};

use super::describe;
use crate::args::{Global, Log};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

/// How long one wait for the next commit lasts; each is followed by another.
const FOLLOW_WAIT: Duration = Duration::from_secs(60);

pub(crate) fn run(global: &Global, args: &Log, output: &mut Output) -> Result<Code, Failure> {
    if let Some(kind) = &args.kind {
        check_kind(kind)?;
    }
    let store = place::read(global, output)?;
    let from = match &args.from {
        Some(text) => text.parse().map_err(|error| Failure::usage(format!("--from: {error}")))?,
        None => Seq(1),
    };
    let to = if args.follow { store.head()? } else { end(&store, global)? };
    let stream = match &args.session {
        Some(session) => Some(super::sessions::find(&store, session)?.id),
        None => None,
    };
    let events = match stream {
        Some(stream) => store.stream_events(stream, from, to)?,
        None => store.events(from, to)?,
    };
    let names = describe::StreamNames::new(&store)?;
    let mut damaged = 0_u64;
    let mut held: VecDeque<Recorded> = VecDeque::new();
    let gather = args.last.is_some() || args.reverse;
    for recorded in events {
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(acpdb_engine::Error::Corrupt { detail }) => {
                damaged += 1;
                output.warn(detail);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if args.kind.as_ref().is_some_and(|kind| kind != recorded.event.payload.label()) {
            continue;
        }
        if !gather {
            print(&recorded, &names, output)?;
            continue;
        }
        held.push_back(recorded);
        if !args.reverse && args.last.is_some_and(|last| held.len() > last) {
            held.pop_front();
        }
    }
    let last = args.last.unwrap_or(usize::MAX);
    if args.reverse {
        for recorded in held.iter().rev().take(last) {
            print(recorded, &names, output)?;
        }
    } else {
        for recorded in &held {
            print(recorded, &names, output)?;
        }
    }
    if args.follow {
        follow(&store, args, stream, from.max(to.next()), names, output)?;
    }
    Ok(if damaged > 0 { Code::Damage } else { Code::Ok })
}

/// Prints what is recorded from `from` on, each commit as soon as it is durable. Ends with the reader, or by a signal.
fn follow(
    store: &Store,
    args: &Log,
    stream: Option<StreamId>,
    from: Seq,
    mut names: describe::StreamNames,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut commits = store.subscribe(from);
    loop {
        output.flush()?;
        let commit = match commits.next_within(FOLLOW_WAIT) {
            Ok(Some(commit)) => commit,
            Ok(None) => continue,
            Err(acpdb_engine::Error::Corrupt { detail }) => {
                output.warn(detail);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for recorded in &commit.events {
            let payload = &recorded.event.payload;
            if matches!(payload, Payload::SessionOpened(_) | Payload::SessionChanged(_)) {
                names = describe::StreamNames::new(store)?;
            }
            let other_kind = args.kind.as_ref().is_some_and(|kind| kind != payload.label());
            if !other_kind && stream.is_none_or(|stream| stream == recorded.event.stream) {
                print(recorded, &names, output)?;
            }
        }
    }
}

/// The last seq that a command with `--at` reads.
pub(crate) fn end(store: &Store, global: &Global) -> Result<Seq, Failure> {
    match &global.at {
        None => Ok(Seq::MAX),
        Some(text) => super::at::seq(store, text),
    }
}

fn check_kind(kind: &str) -> Result<(), Failure> {
    if KIND_LABELS.iter().any(|(_, label)| label == &kind) {
        return Ok(());
    }
    let near = KIND_LABELS.iter().map(|(_, label)| (strsim::jaro_winkler(label, kind), label));
    let near = near.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, label)| *label);
    let failure = Failure::usage(format!("there is no kind of event {kind:?}"));
    Err(match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure,
    })
}

fn print(recorded: &Recorded, names: &describe::StreamNames, output: &mut Output) -> Result<(), Failure> {
    if output.json {
        return output.json_line(&describe::event_json(recorded, names));
    }
    let name = names.short(recorded.event.stream);
    let kind = match &recorded.event.payload {
        Payload::Unknown { number, version, .. } => format!("unknown {number}.{version}"),
        payload => payload.label().to_owned(),
    };
    let seq = output.paint(describe::SEQ, &format!("{:>7}", recorded.seq.to_string()));
    let text = describe::payload(&recorded.event.payload);
    let text = output.recorded(&text, crate::output::Escape::Line).into_owned();
    let time = describe::time(recorded.event.host_time.unwrap_or(recorded.recorded_at));
    output.line(format!("{seq}  {time}  {name:<12} {kind:<20} {text}").trim_end())
}
