//! Importers: whatever a file holds, an import ends, and says what it made of it.
//!
//! The first byte picks the format, the rest is the file. Errors are fine, panics are not; and the same bytes give
//! the same facts.
#![no_main]

use acpdb_hosts::import::{Batch, Format, Options, Sink, SinkStop, read};
use libfuzzer_sys::fuzz_target;

/// Keeps the facts, up to a number that no small input should reach.
struct Kept(Vec<Batch>);

impl Sink for Kept {
    fn batch(&mut self, batch: Batch) -> Result<(), SinkStop> {
        self.0.push(batch);
        if self.0.len() < 100_000 { Ok(()) } else { Err(SinkStop) }
    }
}

fn import(format: Format, file: &[u8]) -> Vec<Batch> {
    let mut kept = Kept(Vec::new());
    let _report = read(format, "fuzz", file, &Options::default(), &mut kept);
    kept.0
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, file)) = data.split_first() else { return };
    let format = Format::ALL[usize::from(*choice) % Format::ALL.len()];
    let first = import(format, file);
    assert!(first.windows(2).all(|pair| pair[0].offset <= pair[1].offset), "offsets never go back");
    assert_eq!(first, import(format, file), "the same bytes give the same facts");
});
