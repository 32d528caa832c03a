//! Sessions of 100 to 200,000 calls: folding them cold, and the cost of one more call.

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Recorded, Role};
use acpdb_engine::fold::World;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::{Atomicity, Batch, Builder, Store};

use crate::measure::{float, median, middle, own, spent};
use crate::report::{Report, Target as Goal};
use crate::session::Session;
use crate::{Options, Outcome};

const PAIR_COUNT: usize = 100;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let sizes: &[usize] =
        if options.quick { &[100, 1000, 10_000] } else { &[100, 1000, 10_000, 50_000, 200_000] };
    let mut pairs = Vec::new();
    for size in sizes {
        pairs.push(session(options, report, *size)?);
    }
    if let (Some(first), Some(last)) = (pairs.get(1), pairs.last()) {
        report.row("two more calls: largest session to 1,000 calls", last / first, "x", Goal::None);
    }
    context_action(options, report)?;
    patterns(options, report)
}

fn builder(folder: &std::path::Path) -> Builder {
    Store::builder(folder).registry(acpdb_hosts::registry()).index(false)
}

pub(crate) fn open(folder: &std::path::Path) -> Outcome<Store> {
    Ok(builder(folder).snapshots(false).open()?)
}

fn session(options: &Options, report: &mut Report, size: usize) -> Outcome<f64> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let mut session = Session::new("fold");
    let stream = session.info.id();
    session.record(&open(folder.path())?, size)?;
    let rounds = if size > 20_000 { 3 } else { 7 };

    let cold = median(rounds, || {
        let (view, spent) = spent(|| open(folder.path())?.view(stream).map_err(crate::boxed));
        let _ = view?;
        Ok(spent.cpu)
    })?;
    let goal = if size == 10_000 { Goal::AtMost(10.0) } else { Goal::None };
    report.row(format!("open and cold fold of {size} calls from the log"), cold * 1e3, "ms", goal);

    snapshot(folder.path(), stream, size, rounds, report)?;

    let store = open(folder.path())?;
    let decoded = median(rounds, || {
        let (count, spent) = spent(|| store.stream_events(stream, Seq(1), Seq::MAX).map(Iterator::count));
        let _ = count?;
        Ok(spent.cpu)
    })?;
    report.row(format!("of which decoding, {size} calls"), decoded * 1e3, "ms", Goal::None);

    let events: Vec<Recorded> = store.events(Seq(1), Seq::MAX)?.collect::<Result<_, _>>()?;
    let applied = median(rounds, || Ok(spent(|| folded(&events)).1.cpu))?;
    let goal = if size >= 1000 { Goal::AtLeast(1.0) } else { Goal::None };
    let rate = float(size) / applied / 1e6;
    report.row(format!("apply only, {size} calls ({} events)", events.len()), rate, "M calls/s", goal);

    let two = two_more(&store, &mut session, &events)?;
    report.row(format!("two more calls after {size}"), two * 1e6, "us", Goal::AtMost(50.0));
    if size == 10_000 {
        append(&store, &mut session, report)?;
    }
    Ok(two)
}

/// Opening from a saved fold.
fn snapshot(
    folder: &std::path::Path,
    stream: StreamId,
    size: usize,
    rounds: usize,
    report: &mut Report,
) -> Outcome<()> {
    let store = builder(folder).open()?;
    let _ = store.view(stream)?;
    // Time of this thread alone: another thread may read the index at the same time.
    let (saved, saving) = own(|| store.save_snapshot(stream));
    let _ = saved?;
    drop(store);
    let files = std::fs::read_dir(folder.join("snap"))?.filter_map(|file| file.ok()?.metadata().ok());
    let bytes: usize = files.filter_map(|file| usize::try_from(file.len()).ok()).sum();
    let opened = median(rounds, || {
        let (view, spent) = spent(|| builder(folder).open()?.view(stream).map_err(crate::boxed));
        let _ = view?;
        Ok(spent.cpu)
    })?;
    let goal = match size {
        10_000 => Goal::AtMost(5.0),
        200_000 => Goal::AtMost(60.0),
        _ => Goal::None,
    };
    report.row(format!("open from a snapshot of {size} calls"), opened * 1e3, "ms", goal);
    report.row(format!("saving a snapshot of {size} calls"), saving * 1e3, "ms", Goal::None);
    report.row(format!("a snapshot of {size} calls, each"), float(bytes) / float(size), "B", Goal::None);
    Ok(())
}

/// One piece of work many times, for a profiler: `cold`, `snapshot` or `apply` of `calls` calls, or `append` of one.
pub(crate) fn profile(options: &Options, what: &str, rounds: usize, calls: usize) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let mut session = Session::new("fold");
    let stream = session.info.id();
    session.record(&open(folder.path())?, calls)?;
    let store = open(folder.path())?;
    let events: Vec<Recorded> = store.events(Seq(1), Seq::MAX)?.collect::<Result<_, _>>()?;
    let _ = store.view(stream)?;
    if what == "snapshot" {
        let _ = store.save_snapshot(stream)?;
    }
    for _ in 0..rounds {
        match what {
            "snapshot" => drop(builder(folder.path()).open()?.view(stream)?),
            "cold" => drop(open(folder.path())?.view(stream)?),
            "apply" => drop(folded(&events)),
            _ => {
                let mut entries = Vec::new();
                session.call(&mut entries);
                let keep = entries.len().saturating_sub(2);
                let _ = store.append(&session.info, entries.split_off(keep))?;
                let _ = store.view(stream)?;
            }
        }
    }
    Ok(())
}

/// The fold of `events`.
#[inline(never)]
pub(crate) fn folded(events: &[Recorded]) -> World {
    let mut world = World::default();
    for event in events {
        world.apply(event);
    }
    world
}

/// Processor time of folding two more calls, the median of pairs.
fn two_more(store: &Store, session: &mut Session, events: &[Recorded]) -> Outcome<f64> {
    let mut world = folded(events);
    let before = store.head()?;
    session.record(store, PAIR_COUNT * 2)?;
    let more: Vec<Recorded> = store.events(before.next(), Seq::MAX)?.collect::<Result<_, _>>()?;
    let chunk = more.len().div_ceil(PAIR_COUNT);
    let times = more.chunks(chunk).map(|pair| {
        let ((), time) = own(|| {
            for event in pair {
                world.apply(event);
            }
        });
        time
    });
    Ok(middle(times.collect()))
}

/// One more call on an open store, from the host's bytes to the view that shows its effects.
fn append(store: &Store, session: &mut Session, report: &mut Report) -> Outcome<()> {
    let stream = session.info.id();
    let _ = store.view(stream)?;
    let (mut appends, mut views) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let mut entries = Vec::new();
        session.call(&mut entries);
        let keep = entries.len().saturating_sub(2);
        let entries: Vec<Entry> = entries.split_off(keep);
        let (receipt, time) = own(|| store.append(&session.info, entries));
        let _ = receipt?;
        appends.push(time);
        let (view, time) = own(|| store.view(stream));
        let _ = view?;
        views.push(time);
    }
    let (append, view) = (middle(appends), middle(views));
    let files = "files and locks of a commit included";
    report.row(format!("one more call after 10,000: append ({files})"), append * 1e6, "us", Goal::None);
    report.row("one more call after 10,000: read back and fold for a view", view * 1e6, "us", Goal::None);
    report.row("one more call after 10,000: both", (append + view) * 1e6, "us", Goal::AtMost(20.0));
    Ok(())
}

/// A session of `count` messages and nothing else.
fn messages(folder: &std::path::Path, count: usize) -> Outcome<(Store, StreamId)> {
    let store = open(folder)?;
    let mut texts = Session::new("messages");
    let info = StreamInfo::session("test", "messages");
    let mut entries = Vec::new();
    for number in 0..count {
        let text = format!("Message {number} begins. {}", texts.text(300));
        entries.push(Entry::message(format!("m{number}"), Role::Assistant, text));
    }
    let _ = store.commit(&[Batch { stream: info.clone(), entries }], Atomicity::Split)?;
    Ok((store, info.id()))
}

fn context_action(options: &Options, report: &mut Report) -> Outcome<()> {
    let count = if options.quick { 5000 } else { 50_000 };
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let (store, stream) = messages(folder.path(), count)?;
    let view = store.view(stream)?;
    let all: Vec<_> = {
        let state = view.state();
        state.current(view.at()).into_iter().filter_map(|ix| state.item_id(ix)).collect()
    };
    let mut starts = (0..all.len().saturating_sub(500)).step_by(499).cycle();
    let time = median(7, || {
        let start = starts.next().unwrap_or(0);
        let targets = all.iter().skip(start).take(500).map(|item| (Target::from(*item), None)).collect();
        let (reply, spent) = spent(|| store.context(stream, ContextAction::Discard, targets));
        let _ = reply?;
        Ok(spent.cpu)
    })?;
    report.row(
        format!("context action on 500 targets among {count} items"),
        time * 1e3,
        "ms",
        Goal::AtMost(20.0),
    );
    Ok(())
}

fn patterns(options: &Options, report: &mut Report) -> Outcome<()> {
    let count = if options.quick { 5000 } else { 50_000 };
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let (store, stream) = messages(folder.path(), count)?;
    let _ = store.view(stream)?;
    let mut number = 0;
    let time = median(5, || {
        number += 7;
        let target = format!("Message {} begins....no such end", count - number);
        let targets = vec![(Target::Auto(target), None)];
        let (reply, spent) = spent(|| store.context(stream, ContextAction::Discard, targets));
        let _ = reply?;
        Ok(spent.cpu)
    })?;
    report.row(format!("pattern search over {count} messages"), time * 1e3, "ms", Goal::AtMost(100.0));
    Ok(())
}
