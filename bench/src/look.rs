//! The first hour of a user: lists, money, a page, an index, a search, as whole processes.
//!
//! A store of 900 sessions of uneven length, with times, models and usage; one session of 10,000 items, one of 5,000 events; and a
//! store with a gigabyte of texts. Beside each answer stands the machine's time for the least possible work: a process that starts
//! and ends, and a read of the same bytes. So ratios can be compared between machines.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use acpdb_engine::Store;
use acpdb_engine::ids::Micros;

use crate::measure::{first_row, float, median, spent};
use crate::report::{Report, Target};
use crate::session::Session;
use crate::{Options, Outcome};

/// The session of 10,000 items.
const BIG: &str = "big";
/// The session of 5,000 events whose page is made.
const PAGE: &str = "page";
/// 2026-01-01, in microseconds since 1970.
const BEGAN: i64 = 1_767_225_600_000_000;
/// Time between two sessions: eight hours, in microseconds.
const BETWEEN: i64 = 8 * 3_600_000_000;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let program = std::env::current_exe()?.with_file_name("acpdb");
    if !program.exists() {
        return Err(format!(
            "{} is not there; build it with cargo build --release -p acpdb-cli",
            program.display()
        )
        .into());
    }
    let idle = clock(Command::new(&program).arg("--version"))?;
    report.row("look: a process that starts and ends", idle * 1e3, "ms", Target::None);
    lists(options, &program, report)?;
    texts(options, &program, report)
}

/// Lists, money and pages over many sessions.
fn lists(options: &Options, program: &Path, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let count = if options.quick { 90 } else { 900 };
    let head = make(folder.path(), count)?;
    // First the cost in a store without kept figures, then the cost with them: an import keeps them, and so does `reindex`.
    let mut bare = Command::new(program);
    bare.arg("--db").arg(folder.path()).args(["sessions", "--all"]);
    report.row("look: sessions, nothing kept", clock(&mut bare)? * 1e3, "ms", Target::None);
    let mut reindex = Command::new(program);
    reindex.arg("--db").arg(folder.path()).arg("reindex").stdout(Stdio::null());
    if !reindex.status()?.success() {
        return Err("acpdb reindex failed".into());
    }
    report.row(format!("look: events in {count} sessions"), float(head), "events", Target::None);
    let page = folder.path().join("page.html");
    let index = folder.path().join("index.html");
    let (page, index) = (page.to_string_lossy().into_owned(), index.to_string_lossy().into_owned());
    let questions: [(&str, Vec<&str>, f64); 10] = [
        ("log of all kinds but none (a scan)", vec!["log", "kind:memory"], 0.0),
        ("sessions", vec!["sessions", "--all"], 150.0),
        ("sessions of one project", vec!["sessions", "project:project"], 150.0),
        ("cost", vec!["cost"], 300.0),
        ("cost by session", vec!["cost", "--by", "session"], 300.0),
        ("cost by model", vec!["cost", "--by", "model"], 300.0),
        ("context of 10,000 items", vec!["context", BIG], 50.0),
        ("context of 10,000 items as JSON", vec!["context", BIG, "--json"], 0.0),
        ("page of 5,000 events", vec!["export", "html", PAGE, "--force", "-o", &page], 400.0),
        ("index page", vec!["export", "html", "--all", "--force", "-o", &index], 3000.0),
    ];
    for (name, arguments, limit) in questions {
        let mut command = Command::new(program);
        command.arg("--db").arg(folder.path()).args(arguments);
        let time = clock(&mut command)?;
        let target = if limit > 0.0 { Target::AtMost(limit) } else { Target::None };
        report.row(format!("look: {name}"), time * 1e3, "ms", target);
        report.row(format!("look: {name}, processor"), processor(&mut command)? * 1e3, "ms", Target::None);
    }
    Ok(())
}

/// Makes sessions of some ten to several hundred calls; returns the number of events.
fn make(folder: &Path, count: usize) -> Outcome<usize> {
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).open()?;
    for number in 0..count {
        let began = BEGAN + i64::try_from(number)? * BETWEEN;
        let mut session =
            Session::billed(&format!("{number:08x}-0000-4000-8000-000000000000"), Micros(began));
        // Most are short, some are long: 10 to 400 calls, 55 on average.
        session.record(&store, 10 + 4000 / (10 + number * 7 % 200))?;
    }
    Session::new(BIG).record(&store, 9_200)?;
    Session::wordy(PAGE).record(&store, 1_600)?;
    let _ = store.reindex()?;
    let head = usize::try_from(store.head()?.get())?;
    store.close()?;
    Ok(head)
}

/// A search through much text.
fn texts(options: &Options, program: &Path, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let calls = if options.quick { 60 } else { 600 };
    let store = Store::builder(folder.path()).registry(acpdb_hosts::registry()).open()?;
    for number in 0..40 {
        let mut session = Session::of_length(&format!("texts-{number:02}"), 108);
        session.record(&store, calls)?;
    }
    let _ = store.reindex()?;
    store.close()?;
    let bytes = crate::measure::folder_bytes(&folder.path().join("log"))?;
    report.row("look: texts to search", bytes / 1e9, "GB", Target::None);
    let read = median(3, || {
        let (read, spent) = spent(|| read_all(&folder.path().join("log")));
        read?;
        Ok(spent.wall)
    })?;
    report.row("look: the same bytes, read by one thread", read * 1e3, "ms", Target::None);
    for (name, words) in [
        ("word that is nowhere", &["zyzzyva"][..]),
        ("regular expression that is nowhere", &["-e", "fn +name[0-9]{6}"][..]),
    ] {
        let mut command = Command::new(program);
        command.arg("--db").arg(folder.path()).arg("search").args(words);
        let time = median(3, || {
            let (ran, spent) = spent(|| command.stdout(Stdio::null()).stderr(Stdio::null()).status());
            // 1 is the answer of a search that finds nothing.
            if ran?.code() == Some(1) { Ok(spent.wall) } else { Err(format!("{command:?} failed").into()) }
        })?;
        report.row(format!("look: search, {name}"), time * 1e3, "ms", Target::AtMost(1000.0));
    }
    let first = median(5, || {
        let mut command = Command::new(program);
        command.arg("--db").arg(folder.path()).args(["search", "module"]);
        first_row(&mut command)
    })?;
    report.row("look: search, first result", first * 1e3, "ms", Target::AtMost(100.0));
    Ok(())
}

/// Reads the files of a folder.
fn read_all(folder: &Path) -> Outcome<()> {
    let mut room = vec![0; 1 << 20];
    for entry in std::fs::read_dir(folder)? {
        let mut file = match std::fs::File::open(entry?.path()) {
            Ok(file) => file,
            // A cache may be made anew meanwhile: its old file is gone.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        while file.read(&mut room)? > 0 {}
    }
    Ok(())
}

/// Seconds of processor time that a whole run of a program takes, over ten runs.
fn processor(command: &mut Command) -> Outcome<f64> {
    const RUN_COUNT: u32 = 10;
    let before = children_ticks()?;
    for _ in 0..RUN_COUNT {
        if !command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
            return Err(format!("{command:?} failed").into());
        }
    }
    // The system counts in hundredths of a second.
    Ok((children_ticks()? - before) / 100.0 / f64::from(RUN_COUNT))
}

/// Processor time of processes that ended, in hundredths of a second.
fn children_ticks() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in brackets, may hold blanks; after it, the two times are the 14th and 15th words.
    let (_, rest) = stat.rsplit_once(')').ok_or("no such file as was expected")?;
    let ticks = rest.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()?)
}

/// Seconds on the clock that a whole run of a program takes: the median of five runs.
fn clock(command: &mut Command) -> Outcome<f64> {
    median(5, || {
        let (ran, spent) = spent(|| command.stdout(Stdio::null()).stderr(Stdio::null()).status());
        if ran?.success() { Ok(spent.wall) } else { Err(format!("{command:?} failed").into()) }
    })
}
