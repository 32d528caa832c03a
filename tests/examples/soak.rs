//! Long tests by hand and in CI: `cargo run --release -p acpdb-tests --example soak -- crash --images 100000 [--seed N]`.
//!
//! Prints what was done, and on failure what is wrong and the command that repeats it; exit code 1 then, 2 if the
//! arguments make no sense.

use std::process::ExitCode;
use std::time::Instant;

use acpdb_tests::soak::crash;

const USAGE: &str = "usage: soak crash [--images N] [--seed N]";

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
        "crash" => crash::many_lives(seed, arguments.number("images", 100_000)).map(|tally| {
            format!(
                "{} images of machines that stopped at {} operations of {} lives ({} of them again during recovery): \
                 0 acknowledged events lost, 0 wrong events shown",
                tally.images, tally.moments, tally.lives, tally.again
            )
        }),
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
