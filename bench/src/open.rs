//! A store of 100,000 events in 100 sessions: the time of one question in a fresh process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use acpdb_engine::Store;
use acpdb_engine::ids::StreamId;

use crate::measure::{self, median, own, spent};
use crate::report::{Report, Target};
use crate::session::Session;
use crate::{Options, Outcome};

const SESSION_COUNT: usize = 100;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let events = if options.quick { 10_000 } else { 100_000 };
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let calls = events / SESSION_COUNT * 10 / 31;
    let mut chosen = None;
    {
        let store = Store::builder(folder.path()).registry(acpdb_hosts::registry()).open()?;
        for number in 0..SESSION_COUNT {
            let mut session = Session::new(&format!("session-{number:03}"));
            // In parts, as a host records: a session is spread over several commits.
            for _ in 0..4 {
                session.record(&store, calls.div_ceil(4))?;
            }
            chosen = Some(session.info.id()).filter(|_| number == SESSION_COUNT / 2).or(chosen);
        }
        let _ = store.reindex()?;
        report.row("open: events in the store", float(store.head()?.get()), "events", Target::None);
    }
    let stream = chosen.ok_or("no session")?;
    let item = superseded(folder.path(), stream)?;
    for with_index in [true, false] {
        if !with_index {
            std::fs::remove_file(folder.path().join("index.redb"))?;
        }
        let label = if with_index { "with index" } else { "without index" };
        inside(folder.path(), stream, with_index, label, report)?;
        command(folder.path(), &item, label, report)?;
    }
    let output = Command::new(std::env::current_exe()?)
        .args(["child-view", &folder.path().to_string_lossy(), "session-050"])
        .output()?;
    let peak = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>()?;
    report.row("peak memory: view of one session, read only", peak, "MB", Target::AtMost(32.0));
    first_views(options, report)
}

const LONG_CALL_COUNT: usize = 600;

/// The first view of a session of 600 calls among others, each call a commit of its own: before and after any process has looked at
/// the session.
fn first_views(options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let open = || Store::builder(folder.path()).registry(acpdb_hosts::registry()).open();
    let store = open()?;
    let session_count = if options.quick { 10 } else { 50 };
    let mut streams = Vec::new();
    for number in 0..session_count {
        let mut session = Session::new(&format!("long-{number}"));
        for _ in 0..LONG_CALL_COUNT {
            let mut entries = Vec::new();
            session.call(&mut entries);
            let _ = store.append(&session.info, entries)?;
        }
        streams.push(session.info.id());
    }
    let _ = store.wait_for_index(Duration::from_secs(60));
    drop(store);
    for label in ["never looked at before", "looked at before"] {
        let mut next = streams.iter().copied();
        let viewed = median(session_count, || {
            let stream = next.next().ok_or("no more sessions")?;
            let store = open()?;
            let (view, time) = own(|| store.view(stream));
            let _ = view?;
            Ok(time)
        })?;
        let name = format!("first view of a session of {LONG_CALL_COUNT} calls, {label}");
        report.row(name, viewed * 1e3, "ms", Target::AtMost(1.0));
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn float(count: u64) -> f64 {
    count as f64
}

/// An item in the middle of a session that another item superseded.
fn superseded(folder: &Path, stream: StreamId) -> Outcome<String> {
    let store = crate::fold::open(folder)?;
    let view = store.view(stream)?;
    let state = view.state();
    let items: Vec<_> = state.items(view.at()).collect();
    let hidden =
        items.iter().filter_map(|ix| state.item(*ix, view.at())).find(|item| item.output.cause.is_some());
    Ok(hidden.ok_or("nothing is superseded")?.item.to_string())
}

fn inside(folder: &Path, stream: StreamId, index: bool, label: &str, report: &mut Report) -> Outcome<()> {
    let open = || Store::builder(folder).registry(acpdb_hosts::registry()).index(index).open();
    let opened = median(9, || {
        let (store, spent) = spent(open);
        let _ = store?;
        Ok(spent.cpu)
    })?;
    report.row(format!("open the store, {label}"), opened * 1e3, "ms", Target::AtMost(5.0));
    let viewed = median(9, || {
        let store = open()?;
        let (view, time) = own(|| store.view(stream));
        let _ = view?;
        Ok(time)
    })?;
    eprintln!("index: {}", open()?.info()?.index);
    report.row(
        format!("first view of one session of 1,000 events, {label}"),
        viewed * 1e3,
        "ms",
        Target::None,
    );
    let listed = median(5, || {
        let store = open()?;
        let (names, time) = own(|| store.stream_names());
        let _ = names?;
        Ok(time)
    })?;
    report.row(format!("names of all sessions, {label}"), listed * 1e3, "ms", Target::None);
    Ok(())
}

/// The whole process, on the clock: only the system sees its processor time.
fn command(folder: &Path, item: &str, label: &str, report: &mut Report) -> Outcome<()> {
    let program = std::env::current_exe()?.with_file_name("acpdb");
    if !program.exists() {
        eprintln!("skipped: {} is not built (cargo build --release -p acpdb-cli)", program.display());
        return Ok(());
    }
    let time = median(21, || {
        let mut command = Command::new(&program);
        command.arg("--db").arg(folder).args(["history", "--chain", item]).stdout(Stdio::null());
        let (status, spent) = spent(|| command.status());
        if status?.success() { Ok(spent.wall) } else { Err("acpdb history failed".into()) }
    })?;
    report.row(
        format!("acpdb history --chain, whole process, {label}"),
        time * 1e3,
        "ms",
        Target::AtMost(30.0),
    );
    Ok(())
}

/// Opens for reading, views one session, prints the peak of memory.
pub(crate) fn child(folder: &str, name: &str) -> Outcome<()> {
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).read_only().open()?;
    let view = store.view(store.find_stream(name)?.id)?;
    let count = view.state().current(view.at()).len();
    if count == 0 {
        return Err("an empty view".into());
    }
    println!("{}", measure::peak_mb());
    Ok(())
}
