//! Runs recorded vectors through the engine: `cargo run --example conformance -p acpdb-tests -- DIR [--profile P] [--verbose]`.
//!
//! One line for each field that differs, a summary at the end; exit code 1 if any vector fails, 2 if the arguments
//! make no sense.

use std::process::ExitCode;

use acpdb_tests::conformance::run_folder;

fn main() -> ExitCode {
    let mut folder = None;
    let mut profile = None;
    let mut verbose = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--verbose" => verbose = true,
            "--profile" => profile = arguments.next(),
            other if folder.is_none() && !other.starts_with('-') => folder = Some(other.to_owned()),
            other => {
                eprintln!("unknown argument `{other}`; usage: conformance DIR [--profile P] [--verbose]");
                return ExitCode::from(2);
            }
        }
    }
    let Some(folder) = folder else {
        eprintln!("usage: conformance DIR [--profile P] [--verbose]");
        return ExitCode::from(2);
    };
    match run_folder(folder.as_ref(), profile.as_deref()) {
        Ok(outcomes) => {
            let mut failed = 0;
            for outcome in &outcomes {
                if outcome.differences.is_empty() {
                    if verbose {
                        println!("ok   {} ({})", outcome.name, outcome.profile);
                    }
                    continue;
                }
                failed += 1;
                for difference in &outcome.differences {
                    println!("FAIL {difference}");
                }
            }
            println!("{} passed, {failed} failed", outcomes.len() - failed);
            if failed == 0 && !outcomes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
