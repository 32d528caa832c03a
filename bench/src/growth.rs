//! Growth: the same kind of entry recorded again and again, its late cost beside its early cost.
//!
//! Each shape is recorded in four equal parts, each by a store opened anew, without sealing, which is done when there is time for
//! it. Nothing may cost more because much is there already: apart from noise and caches, the last part may take no more bytes or
//! time than the first.
//!
//! Costs that a process pays once are separate rows: its first commit to an existing session, with saved folds and without, and a
//! whole process of one commit, as a host's hook.

use std::path::Path;
use std::time::Duration;

use acpdb_engine::entry::{Entry, PartEntry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::{Atomicity, Batch, Store};

use crate::measure::{float, folder_bytes, spent};
use crate::report::{Report, Target};
use crate::session::Session;
use crate::{Options, Outcome};

const PART_COUNT: usize = 4;
/// Events of a commit of the largest shape.
const BATCH_EVENT_COUNT: usize = 1000;
/// Processes of one commit each.
const LIFE_COUNT: usize = 1000;

/// One shape: its name, its total count, a stream of it, and the way to record `count` after the first `done`.
struct Shape {
    name: &'static str,
    count: usize,
    stream: fn() -> StreamInfo,
    record: fn(&Store, usize, usize) -> Outcome<()>,
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let share = if options.quick { 20 } else { 1 };
    let shapes = [
        Shape { name: "pieces of one message", count: 1_000, stream: info, record: pieces },
        Shape { name: "one message told anew", count: 1_000, stream: info, record: revisions },
        Shape { name: "identical outputs of 100 kB", count: 10_000 / share, stream: info, record: outputs },
        Shape { name: "calls of one session", count: 10_000 / share, stream: session, record: calls },
        Shape { name: "calls of one session", count: 200_000 / share, stream: session, record: calls },
        Shape { name: "events of one store", count: 5_000_000 / share, stream: first, record: events },
    ];
    for shape in shapes {
        let folder = tempfile::tempdir_in(&options.scratch)?;
        measure(&shape, folder.path(), report)?;
    }
    Ok(())
}

fn open(folder: &Path, snapshots: bool) -> Outcome<Store> {
    let builder = Store::builder(folder).registry(acpdb_hosts::registry());
    Ok(builder.sealing(false).snapshots(snapshots).open()?)
}

/// Appends one more message to a stream; returns its processor time.
fn one_more(store: &Store, stream: &StreamInfo, name: &str) -> Outcome<f64> {
    let entry = Entry::message(name, Role::User, "one more").origin(name);
    let (done, took) = spent(|| store.append(stream, vec![entry]));
    if done?.event_count == 0 {
        return Err("nothing was recorded".into());
    }
    Ok(took.cpu)
}

fn measure(shape: &Shape, folder: &Path, report: &mut Report) -> Outcome<()> {
    let part = shape.count / PART_COUNT;
    let (mut bytes_before, mut parts, mut closing) = (0.0, Vec::new(), 0.0);
    for number in 0..PART_COUNT {
        let store = open(folder, true)?;
        let (done, _) = spent(|| (shape.record)(&store, number * part, 1));
        done?;
        let (done, took) = spent(|| (shape.record)(&store, number * part + 1, part - 1));
        done?;
        // Events that still have to be indexed are not charged to the first commit.
        let _ = store.wait_for_index(Duration::from_secs(60));
        closing = spent(|| drop(store)).1.cpu;
        let bytes = folder_bytes(&folder.join("log"))?;
        parts.push((bytes - bytes_before, took.cpu));
        bytes_before = bytes;
    }
    let stream = (shape.stream)();
    let saved = one_more(&open(folder, true)?, &stream, "saved")?;
    let logged = one_more(&open(folder, false)?, &stream, "logged")?;
    let mut lives = Vec::new();
    for number in 0..LIFE_COUNT {
        let (done, took) =
            spent(|| one_more(&open(folder, true)?, &stream, &format!("life {number}")).map(drop));
        done?;
        lives.push(took.cpu);
    }
    let longest = lives.iter().copied().fold(0.0, f64::max);
    let saved_bytes = folder.join(format!("snap/{}", stream.id().to_hex())).metadata();
    let saved_bytes = float(usize::try_from(saved_bytes.map_or(0, |file| file.len()))?);
    let mean = lives.iter().sum::<f64>() / float(lives.len());
    let count = float(part);
    let (Some((bytes, cpu)), Some((first_bytes, first_cpu))) = (parts.last(), parts.first()) else {
        return Err("no parts".into());
    };
    let name = format!("{} {}", shape.count, shape.name);
    report.row(format!("{name}: log bytes of one"), bytes / count, "B", Target::None);
    report.row(format!("{name}: processor time of one"), cpu / count * 1e6, "us", Target::None);
    report.row(format!("{name}: the first of a new process"), saved * 1e3, "ms", Target::None);
    report.row(format!("{name}: the same, nothing saved"), logged * 1e3, "ms", Target::None);
    report.row(format!("{name}: a process of one, {LIFE_COUNT} in a row"), mean * 1e3, "ms", Target::None);
    report.row(format!("{name}: the longest of these"), longest * 1e3, "ms", Target::None);
    report.row(format!("{name}: saved of the session"), saved_bytes / 1e6, "MB", Target::None);
    report.row(format!("{name}: closing the last part's process"), closing * 1e3, "ms", Target::None);
    report.row(
        format!("{name}: bytes, last to first quarter"),
        bytes / first_bytes,
        "x",
        Target::AtMost(1.25),
    );
    report.row(format!("{name}: time, last to first quarter"), cpu / first_cpu, "x", Target::AtMost(1.5));
    Ok(())
}

fn info() -> StreamInfo {
    StreamInfo::session("bench", "growth")
}

fn session() -> StreamInfo {
    Session::new("calls").info
}

fn first() -> StreamInfo {
    StreamInfo::session("bench", "session-0")
}

/// A streamed reply, each piece durable as it comes.
fn pieces(store: &Store, done: usize, count: usize) -> Outcome<()> {
    for number in done..done + count {
        let entry = if number == 0 {
            Entry::message_parts("m", Role::Assistant, vec![PartEntry::text("begins")])
        } else {
            let parts = vec![PartEntry::text(format!("piece {number} of a reply that streams in"))];
            acpdb_engine::entry::fact::MessageContinued { key: "m".to_owned(), parts }.into()
        };
        let _ = store.append(&info(), vec![entry.origin(format!("msg:m/{number}"))])?;
    }
    Ok(())
}

/// A host that tells its one message whole each time, with the same length: a revision each.
fn revisions(store: &Store, done: usize, count: usize) -> Outcome<()> {
    for number in done..done + count {
        let text = format!("the state of things after update {number:06}");
        let _ = store.append(&info(), vec![Entry::message("m", Role::Assistant, text).origin("msg:m")])?;
    }
    Ok(())
}

/// The same long output, again and again.
fn outputs(store: &Store, done: usize, count: usize) -> Outcome<()> {
    let output = Session::new("output").text(100_000);
    for number in done..done + count {
        let call = format!("call-{number}");
        let entries = vec![
            Entry::tool_started(&call, "Bash", r#"{"command":"make"}"#).origin(format!("{call}:start")),
            Entry::tool_completed(&call, output.as_str()).origin(format!("{call}:end")),
        ];
        let _ = store.append(&info(), entries)?;
    }
    Ok(())
}

/// One long session, a few calls a commit, and a look at its context now and then.
fn calls(store: &Store, done: usize, count: usize) -> Outcome<()> {
    let mut session = Session::new("calls");
    let mut entries = Vec::new();
    for _ in 0..done {
        session.call(&mut entries);
        entries.clear();
    }
    for number in 0..count {
        session.call(&mut entries);
        if entries.len() >= 100 || number + 1 == count {
            let batch = Batch { stream: session.info.clone(), entries: std::mem::take(&mut entries) };
            let _ = store.commit(&[batch], Atomicity::One)?;
        }
    }
    Ok(())
}

/// Short messages of a hundred sessions, a thousand a commit.
fn events(store: &Store, done: usize, count: usize) -> Outcome<()> {
    let mut next = done;
    while next < done + count {
        let until = (done + count).min(next + BATCH_EVENT_COUNT);
        let stream = StreamInfo::session("bench", format!("session-{}", next / BATCH_EVENT_COUNT % 100));
        let entries = (next..until).map(|number| {
            Entry::message(format!("m{number}"), Role::User, format!("message {number}"))
                .origin(format!("msg:m{number}"))
        });
        let batch = Batch { stream, entries: entries.collect() };
        let _ = store.commit(&[batch], Atomicity::One)?;
        next = until;
    }
    Ok(())
}
