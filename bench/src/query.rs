//! A store of a million events: the cost of questions, as whole processes and inside one.
//!
//! One session has 10,000 items; the others share the rest. Process times are on the clock, from start to end, or to the
//! first line; memory is the peak that the system saw while the process ran.

use std::path::Path;
use std::process::{Command, Stdio};

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_query::kept::{self, Keeping};
use acpdb_query::{EventsQuestion, Filter};

use crate::measure::{first_row, float, median, spent};
use crate::report::{Report, Target};
use crate::session::Session;
use crate::{Options, Outcome};

/// The session of 10,000 items.
const BIG: &str = "big";
/// The folder of three sessions.
const RARE: &str = "/home/dev/rare";
/// A day in microseconds.
const DAY: i64 = 86_400_000_000;
/// The session of 5,000 events that is exported.
const EXPORTED: &str = "exported";

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let (sessions, calls) = if options.quick { (10, 1_000) } else { (100, 3_100) };
    let item = make(folder.path(), sessions, calls, options.quick, report)?;
    let program = std::env::current_exe()?.with_file_name("acpdb");
    if program.exists() {
        processes(&program, folder.path(), &item, report)?;
        exports(&program, folder.path(), report)?;
    } else {
        eprintln!("skipped: {} is not built (cargo build --release -p acpdb-cli)", program.display());
    }
    scans(folder.path(), report)?;
    across(folder.path(), report)
}

/// Makes the store; returns an item of the big session that is part of a chain.
fn make(folder: &Path, sessions: usize, calls: usize, quick: bool, report: &mut Report) -> Outcome<String> {
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).open()?;
    // 9,200 calls come with some 800 messages.
    let mut big = Session::new(BIG);
    big.record(&store, if quick { 1_000 } else { 9_200 })?;
    let mut exported = Session::wordy(EXPORTED);
    exported.record(&store, if quick { 500 } else { 1_600 })?;
    for number in 0..sessions {
        let mut session = Session::new(&format!("session-{number:03}"));
        session.record(&store, calls)?;
    }
    // A file that three of the sessions read.
    for number in [2, 5, 7] {
        let call = format!("rare-{number}");
        let start = Entry::tool_started(&call, "Read", r#"{"file_path":"/home/dev/rare/needle.rs"}"#);
        let entries = vec![start, Entry::tool_completed(&call, "found")];
        let _ = store.append(&Session::new(&format!("session-{number:03}")).info, entries)?;
    }
    // A project of three sessions.
    for number in 0..3_i64 {
        let info = StreamInfo {
            cwd: Some(RARE.to_owned()),
            ..StreamInfo::session("acpdb", format!("rare-{number}"))
        };
        let said = Entry::message("m", Role::User, "hello").at(Some(Micros(number * DAY)));
        let _ = store.append(&info, vec![said])?;
    }
    let _ = store.reindex()?;
    let head = usize::try_from(store.head()?.get())?;
    report.row("query: events in the store", float(head), "events", Target::None);
    let view = store.view(big.info.id())?;
    let state = view.state();
    report.row(
        "query: items of the big session",
        float(state.items(view.at()).count()),
        "items",
        Target::None,
    );
    let hidden = state.items(view.at()).filter_map(|ix| state.item(ix, view.at()));
    let found = hidden.skip(500).find(|item| item.output.cause.is_some());
    Ok(found.ok_or("nothing is superseded")?.item.to_string())
}

fn processes(program: &Path, folder: &Path, item: &str, report: &mut Report) -> Outcome<()> {
    let questions: [(&str, &[&str], Target); 9] = [
        ("history --chain", &["history", "--chain", item], Target::AtMost(20.0)),
        ("context of 10,000 items", &["context", BIG], Target::AtMost(50.0)),
        ("context --json of 10,000 items", &["context", BIG, "--json"], Target::None),
        ("diff of two points", &["diff", "t4000", "t8000", "-s", BIG], Target::AtMost(50.0)),
        (
            "history of one session, filtered",
            &["history", "-s", BIG, "tool:read", "state:superseded"],
            Target::None,
        ),
        ("log -n 20", &["log", "-n", "20"], Target::None),
        ("log, all of it", &["log"], Target::None),
        ("log filtered by tool and file", &["log", "tool:WebFetch", "kind:tool"], Target::None),
        ("sessions", &["sessions"], Target::None),
    ];
    for (name, arguments, target) in questions {
        let mut peak: f64 = 0.0;
        let time = median(5, || {
            let mut command = Command::new(program);
            command.arg("--db").arg(folder).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
            let (ran, spent) = spent(|| watch(&mut command));
            peak = peak.max(ran?);
            Ok(spent.wall)
        })?;
        report.row(format!("acpdb {name}"), time * 1e3, "ms", target);
        let memory =
            if name.starts_with("log") || name == "sessions" { Target::AtMost(64.0) } else { Target::None };
        report.row(format!("acpdb {name}, peak memory"), peak, "MB", memory);
    }
    let first = median(9, || {
        let mut command = Command::new(program);
        command.arg("--db").arg(folder).arg("log");
        first_row(&mut command)
    })?;
    report.row("acpdb log, first row", first * 1e3, "ms", Target::AtMost(15.0));
    Ok(())
}

/// A session as a file, by whole processes; the page beside the texts in it.
fn exports(program: &Path, folder: &Path, report: &mut Report) -> Outcome<()> {
    let out = tempfile::tempdir_in(folder)?;
    for (format, target) in
        [("html", Target::AtMost(500.0)), ("jsonl", Target::None), ("otlp-json", Target::None)]
    {
        let path = out.path().join(format);
        let command = |json: &[&str]| {
            let mut command = Command::new(program);
            command.arg("--db").arg(folder).args(["export", format, EXPORTED, "--force", "-o"]).arg(&path);
            command.args(json).stderr(Stdio::null());
            command
        };
        let mut peak: f64 = 0.0;
        let time = median(5, || {
            let (ran, spent) = spent(|| watch(&mut command(&[])));
            peak = peak.max(ran?);
            Ok(spent.wall)
        })?;
        report.row(format!("acpdb export {format}"), time * 1e3, "ms", target);
        report.row(format!("acpdb export {format}, peak memory"), peak, "MB", Target::AtMost(64.0));
        if format == "html" {
            let said: serde_json::Value = serde_json::from_slice(&command(&["--json"]).output()?.stdout)?;
            let size = |name: &str| said.get(name).and_then(serde_json::Value::as_f64).ok_or("no size");
            let ratio = size("bytes")? / size("text_bytes")?;
            report.row("acpdb export html, to its texts", ratio, "x", Target::AtMost(1.3));
        }
    }
    Ok(())
}

/// Runs a command to its end; returns the peak of its memory in MB, read every half millisecond.
fn watch(command: &mut Command) -> Outcome<f64> {
    let mut child = command.spawn()?;
    let path = format!("/proc/{}/status", child.id());
    let mut peak: f64 = 0.0;
    loop {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        peak = peak.max(kb.unwrap_or(0.0) / 1000.0);
        if let Some(status) = child.try_wait()? {
            return if status.success() { Ok(peak) } else { Err(format!("{command:?} failed").into()) };
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
}

/// Scans inside one process: the cost of a filter for each event that it looks at.
fn scans(folder: &Path, report: &mut Report) -> Outcome<()> {
    let store = crate::fold::open(folder)?;
    let now = Micros(0);
    for (name, text, target) in [
        ("kind and session", "kind:memory session:big", Target::None),
        ("kind", "kind:memory", Target::AtLeast(2.0)),
        ("tool", "tool:NotebookEdit", Target::AtLeast(2.0)),
        ("tool and file", "tool:read file:nowhere/**", Target::AtLeast(2.0)),
        ("tokens", "tokens:>1000000", Target::AtLeast(2.0)),
        ("text of parameters", "tool:bash text:nowhere", Target::None),
    ] {
        let filter = Filter::parse(text, now).map_err(crate::boxed)?;
        let mut looked = 0;
        let time = median(5, || {
            let question =
                EventsQuestion { filter: filter.clone(), from: Seq(1), ..EventsQuestion::default() };
            let (scanned, spent) = spent(|| -> Outcome<u64> {
                let mut rows = acpdb_query::events(&store, question)?;
                for row in rows.by_ref() {
                    let _ = row?;
                }
                Ok(rows.scanned().events)
            });
            looked = scanned?;
            Ok(spent.cpu)
        })?;
        let rate = float(usize::try_from(looked)?) / time / 1e6;
        report.row(format!("scan filtered by {name}"), rate, "M events/s", target);
    }
    Ok(())
}

/// Questions over all sessions: with the index, and by reading all events.
fn across(folder: &Path, report: &mut Report) -> Outcome<()> {
    let builder = || Store::builder(folder).registry(acpdb_hosts::registry()).read_only();
    let (known, unknown) = (builder().open()?, builder().index(false).open()?);
    for (name, text) in [
        ("every call on one file", "file:rare/needle.rs"),
        ("one call by its id", "call:rare-5"),
        ("calls on a file that is not there", "file:nowhere.rs"),
    ] {
        let filter = Filter::parse(text, Micros(0)).map_err(crate::boxed)?;
        let mut found = [0; 2];
        let mut times = [0.0; 2];
        for ((store, found), time) in [&known, &unknown].into_iter().zip(&mut found).zip(&mut times) {
            *time = median(5, || {
                let question = EventsQuestion { filter: filter.clone(), ..EventsQuestion::default() };
                let (rows, spent) = spent(|| -> Outcome<usize> {
                    Ok(acpdb_query::events(store, question)?.collect::<Result<Vec<_>, _>>()?.len())
                });
                *found = rows?;
                Ok(spent.wall)
            })?;
        }
        if found[0] != found[1] {
            return Err(format!("{text}: {} events with the index, {} without", found[0], found[1]).into());
        }
        report.row(format!("{name}, in all sessions"), times[0] * 1e3, "ms", Target::None);
        report.row(format!("{name}, without the index"), times[1] * 1e3, "ms", Target::None);
        report.row(format!("{name}, to that"), times[0] / times[1], "x", Target::AtMost(0.2));
    }
    sessions(folder, report)
}

/// Sessions of a project since a day, by a process that has just opened the store: with the index, and without.
fn sessions(folder: &Path, report: &mut Report) -> Outcome<()> {
    // The figures that an import leaves behind, for both.
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).open()?;
    let keeping = Keeping::due(&store)?.ok_or("nothing is due")?;
    let figures = keeping.wanting.iter().map(|name| Ok(keeping.figures(name)?.map(|row| (name.id, row))));
    let figures = figures.collect::<Outcome<Vec<_>>>()?.into_iter().flatten().collect();
    if !store.put_aside(kept::NAME, &keeping.bytes(figures).ok_or("nothing is kept")?) {
        return Err("the figures were not kept".into());
    }
    store.close()?;
    let filter = Filter::parse("project:rare since:1970-01-02", Micros(9 * DAY)).map_err(crate::boxed)?;
    let mut times = [0.0; 2];
    for (with_index, time) in [true, false].into_iter().zip(&mut times) {
        *time = median(5, || {
            let builder = Store::builder(folder).registry(acpdb_hosts::registry()).read_only();
            let store = builder.index(with_index).open()?;
            let (rows, spent) =
                spent(|| acpdb_query::sessions(&store, Seq::MAX, &filter).map(Iterator::count));
            match rows? {
                2 => Ok(spent.wall),
                count => Err(format!("{count} sessions match, and not 2").into()),
            }
        })?;
    }
    report.row("sessions of a project since a day", times[0] * 1e3, "ms", Target::None);
    report.row("sessions of a project since a day, without the index", times[1] * 1e3, "ms", Target::None);
    Ok(())
}
