//! Measurements of acpdb: import, fold, memory, opening, questions.
//!
//! ```text
//! main -> import | intake | fold | memory | open | query | serve | price | growth | hook | proxy | remote | look | tree | digests | scale -> Report (name, measured, target, met or missed) -> stdout, a Markdown table
//!            '-> children of this program, for figures that only a fresh process shows: peak memory, cold starts
//! ```
//!
//! Where possible, it measures processor time, not time on the clock, and takes the median of several rounds. A missed target is a
//! row like any other: nothing here fails because a machine is slow, and no test looks at these figures.

mod compare;
mod digests;
mod fold;
mod growth;
mod hook;
mod import;
mod intake;
mod look;
mod measure;
mod memory;
mod open;
mod optimum;
mod price;
mod proxy;
mod query;
mod remote;
mod report;
mod serve;
mod session;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use report::Report;

/// Errors end the run and are shown; there is no caller to handle them.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "usage: acpdb-bench import|intake|fold|memory|open|query|serve|price|growth|hook|proxy|remote|look|tree|digests|all [--quick] [--data DIR] [--scratch DIR]\n\
       acpdb-bench scale [--events N] [--dir DIR] [--scratch DIR]\n\
       acpdb-bench compare [--events N] [--dir DIR] [--quick] [--only ENGINE,..] [--part commits,callers,loads] [--scratch DIR] [--docs]";

/// Boxes an error.
fn boxed(error: impl std::error::Error + 'static) -> Box<dyn std::error::Error> {
    Box::new(error)
}

/// The options of a run.
struct Options {
    /// Smaller sizes and fewer rounds.
    quick: bool,
    /// Recorded sessions to import: `--data`, else the folder in `ACPDB_RECORDINGS`. Empty: none.
    data: PathBuf,
    /// The folder in which stores are made.
    scratch: PathBuf,
    /// `compare` writes its tables into the comparison page.
    docs: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("acpdb-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Outcome<()> {
    let mut options = Options {
        quick: false,
        data: std::env::var_os("ACPDB_RECORDINGS").unwrap_or_default().into(),
        scratch: measure::scratch_folder(),
        docs: false,
    };
    let (mut events, mut folder, mut only, mut parts) = (None, None, None, None);
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--docs" => options.docs = true,
            "--data" => options.data = rest.next().ok_or("--data needs a folder")?.into(),
            "--scratch" => options.scratch = rest.next().ok_or("--scratch needs a folder")?.into(),
            "--events" => events = Some(rest.next().ok_or("--events needs a number")?.parse()?),
            "--dir" => folder = Some(rest.next().ok_or("--dir needs a folder")?.into()),
            "--only" => only = Some(rest.next().ok_or("--only needs names of engines")?.to_owned()),
            "--part" => parts = Some(rest.next().ok_or("--part needs commits, callers or loads")?.to_owned()),
            word => words.push(word.to_owned()),
        }
    }
    std::fs::create_dir_all(&options.scratch)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut report = Report::default();
    match words.as_slice() {
        ["import"] => import::run(&options, &mut report)?,
        ["intake"] => intake::run(&options, &mut report)?,
        ["fold"] => fold::run(&options, &mut report)?,
        ["memory"] => memory::run(&options, &mut report)?,
        ["open"] => open::run(&options, &mut report)?,
        ["serve"] => serve::run(&options, &mut report)?,
        ["price"] => price::run(&options, &mut report)?,
        ["query"] => query::run(&options, &mut report)?,
        ["remote"] => remote::run(&options, &mut report)?,
        ["hook"] => hook::run(&options, &mut report)?,
        ["proxy"] => proxy::run(&options, &mut report)?,
        ["growth"] => growth::run(&options, &mut report)?,
        ["look"] => look::run(&options, &mut report)?,
        ["tree"] => tree::run(&options, &mut report)?,
        ["digests"] => digests::run(&mut report)?,
        ["all"] => {
            import::run(&options, &mut report)?;
            fold::run(&options, &mut report)?;
            memory::run(&options, &mut report)?;
            open::run(&options, &mut report)?;
            serve::run(&options, &mut report)?;
            price::run(&options, &mut report)?;
            query::run(&options, &mut report)?;
        }
        ["scale"] => compare::scale(&options, events, folder, &mut report)?,
        ["compare"] => return compare::run(&options, events, folder, [only, parts]),
        ["child-compare", engine, store, count] => return compare::child(engine, store, count.parse()?),
        ["child-append", store, flush, caller, count] => {
            return compare::child_append(store, flush.parse()?, caller.parse()?, count.parse()?);
        }
        ["child-calls", store, caller, count] => {
            return compare::child_calls(store, caller.parse()?, count.parse()?);
        }
        ["profile", ask @ ("get" | "digest" | "last" | "chain" | "scan"), rounds, engine, count] => {
            return compare::profile(ask, rounds.parse()?, engine, count.parse()?);
        }
        ["profile", what, rounds] => return fold::profile(&options, what, rounds.parse()?, 10_000),
        ["profile", what, rounds, calls] => {
            return fold::profile(&options, what, rounds.parse()?, calls.parse()?);
        }
        ["child-import", store] => return import::child(&options, store),
        ["child-view", store, session] => return open::child(store, session),
        ["child-export", store, session] => return serve::child(store, session),
        _ => return Err(USAGE.into()),
    }
    report.print(&options);
    Ok(())
}
