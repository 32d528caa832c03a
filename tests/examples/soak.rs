//! Long tests by hand and in CI: `cargo run --release -p acpdb-tests --example soak -- crash --images 100000 [--seed N]`.
//!
//! Prints how much was tested, and on failure the fault and the command that repeats it; exit code 1 then, 2 if the
//! arguments make no sense, 77 if a part could not be done here, which it names.

use std::process::{Command, ExitCode};
use std::time::Instant;

use acpdb_tests::binary::binary;
use acpdb_tests::crowd;
use acpdb_tests::cuts::disk::Kind;
use acpdb_tests::cuts::{self, End};
use acpdb_tests::soak::{crash, faults, flips, planted};

const USAGE: &str = "usage: soak crash [--images N] [--seed N] | flips [--step N] | faults [--step N] [--seed N] | planted [--parts N --part I]\n       \
     soak power [--rounds N] [--seed N] | kill [--rounds N] [--seed N] | crowd [--rounds N] [--again N] [--seed N]";

/// A part was not done, and the rest is well. A run without root ended as a success, and `.ci/run` counted it as one.
const SKIPPED: u8 = 77;

struct Arguments {
    what: String,
    numbers: Vec<(String, u64)>,
}

impl Arguments {
    fn parse() -> Option<Self> {
        let mut arguments = std::env::args().skip(1);
        let what = arguments.next()?;
        let mut numbers = Vec::new();
        while let Some(name) = arguments.next() {
            let value = arguments.next()?.replace('_', "").parse().ok()?;
            numbers.push((name.strip_prefix("--")?.to_owned(), value));
        }
        Some(Self { what, numbers })
    }

    fn size(&self, name: &str, otherwise: u64) -> usize {
        usize::try_from(self.number(name, otherwise)).unwrap_or(usize::MAX)
    }

    fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.numbers.iter().find(|(known, _)| known == name).map_or(otherwise, |(_, value)| *value)
    }
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let seed = arguments.number("seed", 1);
    let begun = Instant::now();
    let outcome = match arguments.what.as_str() {
        "crash" => crash::many_lives(seed, arguments.number("images", 100_000), None).map(|tally| {
            format!(
                "{} images of machines that stopped at {} operations of {} lives ({} of them again during recovery): \
                 0 acknowledged events lost, 0 wrong events shown",
                tally.images, tally.moments, tally.lives, tally.again
            )
        }),
        "flips" => flips::all(seed, arguments.size("step", 1)).map(|tally| {
            format!(
                "{} bits flipped, {} lengths cut to, {} sectors and {} files damaged: all reported, 0 wrong events \
                 shown, at most the touched commit lost",
                tally.flips, tally.cuts, tally.sectors, tally.files
            )
        }),
        "faults" => faults::every_operation(seed, arguments.size("step", 1)).map(|tally| {
            format!(
                "{} faults of storage met, {} of them in one of two processes: 0 false acknowledgements",
                tally.faults, tally.beside
            )
        }),
        "kill" => return stops(&[End::Kill], &arguments),
        "power" => return power(&arguments),
        "crowd" => return crowded(&arguments),
        "planted" => return planted_bugs(arguments.size("parts", 1).max(1), arguments.size("part", 0)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(done) => {
            println!("{done}; seed {seed}, {:.1} s", begun.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!("FAILED: {finding}");
            println!(
                "repeat: cargo run --release -p acpdb-tests --example soak -- {} --seed {}",
                arguments.what, finding.seed
            );
            ExitCode::FAILURE
        }
    }
}

/// Plants every bug, and says which check caught it, in how many seconds. No bug at all is the first.
///
/// Each of `parts` processes takes every `parts`th bug, this one from the `part`th on: one process has one bug at a time.
fn planted_bugs(parts: usize, part: usize) -> ExitCode {
    // Panics are one way to catch a bug; their messages are not of interest.
    std::panic::set_hook(Box::new(|_| {}));
    let mut is_well = true;
    for planted in std::iter::once(None).chain(planted::ALL.into_iter().map(Some)).skip(part).step_by(parts) {
        let begun = Instant::now();
        let name = planted.map_or_else(|| "no bug".to_owned(), |(bug, _)| format!("{bug:?}"));
        let caught = planted::caught(planted);
        is_well &= caught.is_some() == planted.is_some();
        let caught = caught.map(|(check, wrong)| format!("caught by {check}: {wrong:.150}"));
        let said = caught.as_deref().unwrap_or("all checks are content");
        println!("{name} ({:.1} s): {said}", begun.elapsed().as_secs_f64());
    }
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Cuts the power under the program, on every kind of file system that can be made here.
///
/// Mounts belong to the mount namespace of this process and its children, so that nothing of them stays however it ends.
fn power(arguments: &Arguments) -> ExitCode {
    const OWN: &str = "ACPDB_SOAK_OWN_MOUNTS";
    if std::env::var_os(OWN).is_none() {
        let mut command = Command::new("unshare");
        let own = std::env::current_exe().unwrap_or_default();
        command.args(["--mount", "--propagation", "private"]).arg(own).args(std::env::args_os().skip(1));
        return match command.env(OWN, "1").status() {
            Ok(status) if status.success() => ExitCode::SUCCESS,
            Ok(status) if status.code() == Some(i32::from(SKIPPED)) => ExitCode::from(SKIPPED),
            Ok(status) if status.code() == Some(1) && !may_mount() => {
                skipped("power: mounting is not allowed here")
            }
            Ok(_) => ExitCode::FAILURE,
            Err(error) => skipped(&format!("power: unshare: {error}")),
        };
    }
    let kinds = [Kind::Ext4, Kind::Xfs];
    let able = kinds.into_iter().filter(|kind| match cuts::can(*kind) {
        Ok(()) => true,
        Err(why) => {
            skipped(&format!("power on {}: {why}", kind.name()));
            false
        }
    });
    let ends: Vec<End> = able.map(End::Power).collect();
    let outcome = stops(&ends, arguments);
    if outcome == ExitCode::SUCCESS && ends.len() < kinds.len() { ExitCode::from(SKIPPED) } else { outcome }
}

/// Has processes, handles and threads meet on stores of real files; in a process that is one of them, plays its part.
fn crowded(arguments: &Arguments) -> ExitCode {
    let (rounds, again, seed) =
        (arguments.number("rounds", 100), arguments.number("again", 1), arguments.number("seed", 1));
    if let Some(folder) = std::env::var_os(crowd::FOLDER) {
        let number = std::env::var(crowd::MEMBER).ok().and_then(|number| number.parse().ok()).unwrap_or(0);
        let played = crowd::member::play(crowd::Setting::of(seed), folder.into(), number);
        return played.map_or_else(
            |wrong| {
                eprintln!("{wrong}");
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        );
    }
    let begun = Instant::now();
    match crowd::many(rounds, again, seed) {
        Ok(tally) => {
            println!(
                "{} stores, {} processes, {} of them killed, {} acts: of {} acknowledged events 0 lost or doubled, 0 wrong \
                 events shown; seed {seed}, {:.1} s",
                tally.rounds,
                tally.processes,
                tally.kills,
                tally.acts,
                tally.acked,
                begun.elapsed().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!("FAILED: {finding}");
            println!(
                "repeat: cargo run --release -p acpdb-tests --example soak -- crowd --rounds 1 --again 50 --seed {}",
                finding.seed
            );
            ExitCode::FAILURE
        }
    }
}

fn may_mount() -> bool {
    Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success())
}

fn skipped(why: &str) -> ExitCode {
    println!("skipped: {why}");
    ExitCode::from(SKIPPED)
}

/// Stops the program itself, so often in each way.
fn stops(ends: &[End], arguments: &Arguments) -> ExitCode {
    let (rounds, seed) = (arguments.number("rounds", 100), arguments.number("seed", 1));
    let binary = match binary() {
        Ok(binary) => binary,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for end in ends {
        let begun = Instant::now();
        let name = match end {
            End::Kill => "kill".to_owned(),
            End::Power(kind) => format!("power on {}", kind.name()),
        };
        match cuts::many(binary, *end, rounds, seed) {
            Ok(tally) => println!(
                "{name}: {} stops, {} of them while opening again, {} other commands and {} erasures beside: of {} \
                 acknowledged events 0 lost; seed {seed}, {:.1} s",
                tally.stops,
                tally.again,
                tally.beside,
                tally.erased,
                tally.acked,
                begun.elapsed().as_secs_f64()
            ),
            Err(finding) => {
                println!("FAILED: {name}: {finding}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
