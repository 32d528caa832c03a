//! The cost of scale: the same rows of a small store and of a large one, and the growth of each.
//!
//! ```text
//! a week of a host:            sessions come and go in one process -> its memory after an hour, a day, half a week, a week
//! a small store, a large one:  load | commits | reads | open, first view, names | bytes    -> each row twice, and their ratio
//! 1 process, 64 processes:     calls a second, of all
//! ```
//!
//! Sessions end after 200 calls, as real ones do, so a larger store has more of them. Times are processor time of one run: other
//! load changes them little, and their ratios less.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use acpdb_engine::ids::Seq;
use acpdb_engine::{Entry, Store};

use super::engine::Engine as _;
use super::own::{StoreEngine, info};
use super::stages::{folder_bytes, load};
use super::work::{ENDING_CALL_COUNT, Sink, Work};
use crate::measure::{anonymous_mb, float, own, peak_mb, spent, together};
use crate::report::{Report, Target};
use crate::session::Session;
use crate::{Options, Outcome};

/// Events of a call.
const CALL_EVENT_COUNT: u64 = 3;
const EVENT_COUNT: u64 = 10_000_000;
const QUICK_EVENT_COUNT: u64 = 600_000;
/// Calls of the small store.
const SMALL_CALL_COUNT: u64 = 30_000;
/// Calls at the end of a load that are measured, and commits of one call after them.
const LAST_CALL_COUNT: u64 = 20_000;
const COMMIT_COUNT: u64 = 2000;
/// The limit of flat figures: noise and caches cause no more growth.
const FLAT: Target = Target::AtMost(1.5);

const PROCESS_COUNT: usize = 64;
const PROCESS_CALL_COUNT: usize = 50;

/// A week in hours: all that fills up in a host is full after three days.
const HOUR_COUNT: usize = 168;
/// Sessions of an hour, and their calls. A host keeps little of them, so that a week is long in comparison.
const HOUR_SESSION_COUNT: usize = 20;
const SESSION_CALL_COUNT: usize = 100;
const HOST_MEMORY_MAX: u64 = 8 << 20;

pub(crate) fn run(
    options: &Options,
    events: Option<u64>,
    folder: Option<PathBuf>,
    report: &mut Report,
) -> Outcome<()> {
    let events = events.unwrap_or(if options.quick { QUICK_EVENT_COUNT } else { EVENT_COUNT });
    let folder = std::path::absolute(folder.unwrap_or_else(|| PathBuf::from(".")))?;
    report.grown_in(&folder);
    // First: memory that a process has freed stays its own, and would hide the memory that a host keeps.
    week(options, report)?;
    let mut stores = Vec::new();
    for calls in [SMALL_CALL_COUNT, events / CALL_EVENT_COUNT] {
        let own = tempfile::tempdir_in(&folder)?;
        stores.push((calls, rows_of(own.path(), calls)?));
    }
    let [(small, before), (large, after)] = stores.as_slice() else { return Err("two stores".into()) };
    for (was, is) in before.iter().zip(after) {
        report.row(format!("{}: {small} calls", was.name), was.value, was.unit, Target::None);
        report.row(format!("{}: {large} calls", is.name), is.value, is.unit, Target::None);
        report.row(format!("{}: growth", is.name), is.value / was.value, "x", is.growth);
    }
    processes(options, report)
}

/// A figure of one store, and how much it may grow.
struct Row {
    name: &'static str,
    value: f64,
    unit: &'static str,
    growth: Target,
}

/// Mean processor time of this thread, in microseconds.
fn mean(count: usize, work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let (done, seconds) = own(work);
    done?;
    Ok(seconds / float(count.max(1)) * 1e6)
}

fn rows_of(folder: &Path, calls: u64) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    let mut add = |name, value, unit, growth| rows.push(Row { name, value, unit, growth });
    let work = Work::of_ending_sessions();
    // Sealing by a thread meanwhile would count as a cost of recording, in large stores alone: sealing has a row of its own.
    let mut engine = StoreEngine::open_unsealing(folder)?;
    eprintln!("{calls} calls are recorded");
    let first = calls.saturating_sub(LAST_CALL_COUNT);
    let _ = load(&mut engine, &work, 0, first)?;
    let (done, took) = spent(|| load(&mut engine, &work, first, calls));
    let _ = done?;
    let count = float(usize::try_from(calls - first)?);
    add("a call in bulk, processor time of all threads", took.cpu / count * 1e6, "us", FLAT);
    let (done, took) = spent(|| -> Outcome<()> {
        for number in calls + 1..=calls + COMMIT_COUNT {
            engine.append(&[work.event(number)])?;
        }
        Ok(())
    });
    done?;
    let commit_count = float(usize::try_from(COMMIT_COUNT)?);
    add("a commit of one call, processor time of all threads", took.cpu / commit_count * 1e6, "us", FLAT);
    // No row asks about this session before its first view is measured.
    let mut session = Session::new("viewed");
    for _ in 0..ENDING_CALL_COUNT {
        let mut entries = Vec::new();
        session.call(&mut entries);
        let _ = engine.store.append(&session.info, entries)?;
    }
    engine.settle()?;
    // A host seals when it is idle. Without sealing here, the figures would depend on the idle time.
    let (sealed, sealing) = spent(|| engine.store.seal(true));
    let sealed = sealed?;
    if sealed.left > 0 || sealed.busy || !sealed.damage.is_empty() {
        return Err(format!("{} segments were not sealed", sealed.left).into());
    }
    let asked = calls + COMMIT_COUNT;
    let all = asked + ENDING_CALL_COUNT;
    add("sealing, processor time a call", sealing.cpu / float(usize::try_from(all)?) * 1e6, "us", FLAT);
    let mut sink = Sink::touching();
    for (is_measured, round) in [(false, 7), (true, 8)] {
        for (name, asks) in work.asks(asked, 400, round) {
            let name = match name {
                "get" => "one output, anywhere",
                "last 200" => "the last 200 of a session",
                // Half of these asks are the first about their session, which is then folded.
                "chain" => "a chain of 20, of sessions that may be new",
                _ => continue,
            };
            let time =
                mean(asks.len(), || asks.iter().try_for_each(|ask| engine.ask(*ask, &mut sink).map(drop)))?;
            if is_measured {
                add(name, time, "us", FLAT);
            }
        }
    }
    let newest = engine.store.head()?.get();
    let from = Seq(newest.saturating_sub(CALL_EVENT_COUNT * LAST_CALL_COUNT));
    let scanned = usize::try_from(LAST_CALL_COUNT)?;
    let time = mean(scanned, || StoreEngine::outputs(engine.store.events(from, Seq::MAX)?, &mut sink))?;
    add("outputs of the last 20,000 calls, each", time, "us", FLAT);
    let (names, time) = own(|| engine.store.stream_names());
    let session_count = names?.len();
    add("names of all sessions, each", time / float(session_count) * 1e6, "us", FLAT);
    add("names of all sessions", time * 1e3, "ms", Target::None);
    let ((), closing) = spent(|| drop(engine));
    add("closing", closing.cpu * 1e3, "ms", Target::None);
    let bytes = folder_bytes(folder)?;
    add("disk, a call, sealed", float(usize::try_from(bytes / all)?), "B", FLAT);
    let views = ["first view of a session of 200 calls", "the same, looked at before"];
    for (name, is_first) in views.into_iter().zip([true, false]) {
        let (engine, opening) = spent(|| StoreEngine::open_unsealing(folder));
        let engine = engine?;
        if is_first {
            add("open, and its head", opening.cpu * 1e3, "ms", FLAT);
        }
        let (view, time) = spent(|| engine.store.view(session.info.id()));
        let _ = view?;
        add(name, time.cpu * 1e3, "ms", FLAT);
    }
    let middle = all / ENDING_CALL_COUNT / 2;
    let output = Command::new(std::env::current_exe()?)
        .args(["child-view", &folder.join("store").to_string_lossy(), &format!("session-{middle}")])
        .output()?;
    let peak = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>()?;
    add("peak memory of a process that views a session", peak, "MB", FLAT);
    Ok(rows)
}

/// Calls of a process, each a commit.
pub(crate) fn child(folder: &str, caller: usize, count: usize) -> Outcome<()> {
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).open()?;
    let session = info(u32::try_from(caller)?);
    std::io::Write::write_all(&mut std::io::stdout(), b".")?;
    std::io::Write::flush(&mut std::io::stdout())?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    for number in 0..count {
        let call = format!("call-{number}");
        let params = format!(r#"{{"file_path":"/src/{number}.rs"}}"#);
        let start = Entry::tool_started(&call, "Read", params).origin(format!("{call}:start"));
        let end = Entry::tool_completed(&call, "so much was read").origin(format!("{call}:end"));
        let _ = store.append(&session, vec![Entry::step(format!("step-{number}")), start, end])?;
    }
    Ok(())
}

/// Records by `count` processes at the same time: calls a second of all. Fails if a call is lost.
fn recorded_by(scratch: &Path, count: usize) -> Outcome<f64> {
    let folder = tempfile::tempdir_in(scratch)?;
    let root = folder.path().join("store");
    drop(Store::builder(&root).open()?);
    let program = std::env::current_exe()?;
    let seconds = together((0..count).map(|caller| {
        let mut command = Command::new(&program);
        command.args(["child-calls", &root.to_string_lossy(), &caller.to_string()]);
        command.arg(PROCESS_CALL_COUNT.to_string());
        command
    }))?;
    let store = Store::builder(&root).read_only().open()?;
    let ends = store.events(Seq(1), Seq::MAX)?.kinds(&["tool_call_finished"]).count();
    if ends != count * PROCESS_CALL_COUNT {
        return Err(format!("{ends} calls of {}", count * PROCESS_CALL_COUNT).into());
    }
    Ok(float(ends) / seconds)
}

fn processes(options: &Options, report: &mut Report) -> Outcome<()> {
    let one = recorded_by(&options.scratch, 1)?;
    let many = recorded_by(&options.scratch, PROCESS_COUNT)?;
    report.row("calls a second of one process, opening and closing included", one, "/s", Target::None);
    report.row(format!("the same of {PROCESS_COUNT} processes together"), many, "/s", Target::None);
    report.row(format!("{PROCESS_COUNT} processes to one"), many / one, "x", Target::AtLeast(1.0));
    Ok(())
}

/// A host that runs for a week: each hour brings new sessions, whose calls are recorded and viewed.
fn week(options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let builder = Store::builder(folder.path()).registry(acpdb_hosts::registry());
    let store = builder.memory_max(HOST_MEMORY_MAX).open()?;
    let session_count = if options.quick { HOUR_SESSION_COUNT / 4 } else { HOUR_SESSION_COUNT };
    let mut memory = Vec::new();
    for hour in 0..HOUR_COUNT {
        for number in 0..session_count {
            let mut session = Session::new(&format!("hour-{hour}-{number}"));
            let stream = session.info.id();
            for _ in 0..SESSION_CALL_COUNT {
                let mut entries = Vec::new();
                session.call(&mut entries);
                let _ = store.append(&session.info, entries)?;
                let view = store.view(stream)?;
                let _ = view.state().current(view.at()).len();
            }
            store.newest_events(stream, 100)?.try_for_each(|event| event.map(drop))?;
        }
        // Background work is part of a host's memory, too.
        store.wait_for_index(Duration::from_secs(60));
        memory.push(anonymous_mb());
    }
    let at = |hour: usize| memory.get(hour - 1).copied().unwrap_or(f64::NAN);
    let calls = float(HOUR_COUNT * session_count * SESSION_CALL_COUNT);
    report.row("a host's week: calls, each followed by a view", calls, "calls", Target::None);
    for hour in [1, 12, 24, HOUR_COUNT / 2, HOUR_COUNT] {
        report.row(format!("a host's memory after hour {hour}"), at(hour), "MB", Target::None);
    }
    let growth = at(HOUR_COUNT) / at(HOUR_COUNT / 2);
    report.row("its growth in the second half of the week", growth, "x", Target::AtMost(1.1));
    report.row("its peak", peak_mb(), "MB", Target::None);
    Ok(())
}
