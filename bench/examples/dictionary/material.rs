//! Invented bodies of the kinds that agents produce: parameters, outputs of tools, source text, prose, hosts' records.

use crate::output::{listing, numbered, run};
use crate::record::{parameters, record};
use crate::text::{code, prose};
use crate::words::Dice;

/// All samples, always the same.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let mut dice = Dice(0x5eed_0ac9_db00_0001);
    let mut samples = Vec::new();
    for _ in 0..900 {
        samples.push(parameters(&mut dice).into_bytes());
        samples.push(record(&mut dice).into_bytes());
        samples.push(record(&mut dice).into_bytes());
        samples.push(prose(&mut dice).into_bytes());
        samples.push(run(&mut dice).into_bytes());
        samples.push(listing(&mut dice).into_bytes());
        samples.push(numbered(&mut dice).into_bytes());
        let lines = 8 + dice.roll(30);
        samples.push(code(&mut dice, lines).into_bytes());
    }
    samples
}
