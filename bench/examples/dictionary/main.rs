//! Makes the dictionary that sealed segments are packed with (codec 1), or checks that it is what this makes.
//!
//! ```text
//! cargo run --release -p acpdb-bench --example dictionary               prints figures, writes dictionary-1.bin here
//! cargo run --release -p acpdb-bench --example dictionary -- --check    compares with engine/src/codec/dictionary-1.bin
//! ```
//!
//! All samples are invented by `material` from a fixed seed: no byte comes from a recorded session, so nothing that a user
//! wrote can be in it. The file that is checked in never changes; another dictionary would be another codec.

mod material;
mod output;
mod record;
mod text;
mod words;

use std::process::ExitCode;

/// Length of the dictionary.
const DICTIONARY_BYTES: usize = 112 << 10;
const FILE: &str = "dictionary-1.bin";

fn main() -> ExitCode {
    let samples = material::samples();
    let bytes: usize = samples.iter().map(Vec::len).sum();
    let made = match zstd::dict::from_samples(&samples, DICTIONARY_BYTES) {
        Ok(made) => made,
        Err(error) => {
            eprintln!("the dictionary cannot be made: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{} samples, {bytes} bytes; dictionary of {} bytes", samples.len(), made.len());
    if std::env::args().nth(1).as_deref() != Some("--check") {
        return match std::fs::write(FILE, &made) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("cannot write {FILE}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/src/codec/dictionary-1.bin");
    match std::fs::read(path) {
        Ok(kept) if kept == made => {
            println!("equal to {FILE} of the engine");
            ExitCode::SUCCESS
        }
        Ok(kept) => {
            eprintln!("{FILE} of the engine is another one ({} bytes)", kept.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cannot read {path}: {error}");
            ExitCode::FAILURE
        }
    }
}
