//! Long tests by hand and in CI: `cargo run --release -p acpdb-tests --example soak -- crash --images 100000 [--seed N]`.
//!
//! Prints what was done, and on failure what is wrong and the command that repeats it; exit code 1 then, 2 if the
//! arguments make no sense.

use std::process::ExitCode;
use std::time::Instant;

use acpdb_tests::soak::{crash, faults, flips, planted};

const USAGE: &str = "usage: soak crash [--images N] [--seed N] | flips [--step N] | faults [--step N] [--seed N] | planted [--skip N]";

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
        "planted" => return planted_bugs(arguments.number("skip", 0)),
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

/// Plants every bug, without the first `skip`, and says which check caught it. No bug at all is the first.
fn planted_bugs(skip: u64) -> ExitCode {
    // Panics are one way to catch a bug; what they print is not of interest.
    std::panic::set_hook(Box::new(|_| {}));
    let mut is_well = true;
    for planted in std::iter::once(None)
        .chain(planted::ALL.into_iter().map(Some))
        .skip(usize::try_from(skip).unwrap_or(usize::MAX))
    {
        let name = planted.map_or_else(|| "no bug".to_owned(), |planted| format!("{planted:?}"));
        let caught = planted::caught(planted);
        is_well &= caught.is_some() == planted.is_some();
        let caught = caught.map(|(check, wrong)| format!("caught by {check}: {wrong:.150}"));
        println!("{name}: {}", caught.as_deref().unwrap_or("all checks are content"));
    }
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
