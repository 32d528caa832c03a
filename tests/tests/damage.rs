//! Damage of every kind is reported and never shown, and storage that fails acknowledges nothing falsely.
//!
//! The checks are in `acpdb_tests::soak`; here they take samples. The example `soak` takes everything:
//! `cargo run --release -p acpdb-tests --example soak -- flips`, and `-- faults`.

#![allow(clippy::panic, reason = "tests: a failed step is a failed test")]

use acpdb_tests::soak::{faults, flips};
use acpdb_tests::support::cases;

#[test]
fn damage_of_every_kind_is_reported_and_never_shown() {
    let step = 600 / (cases(3) as usize).clamp(1, 600);
    match flips::all(1, step | 1) {
        Ok(tally) => assert!(tally.flips > 200 && tally.cuts > 100 && tally.sectors > 80, "{tally:?}"),
        Err(finding) => panic!("{finding}"),
    }
}

#[test]
fn storage_that_fails_at_any_operation_acknowledges_nothing_falsely() {
    let samples = cases(4).clamp(1, 44);
    match faults::every_operation(2, 44 / samples as usize) {
        Ok(tally) => {
            let samples = u64::from(samples);
            assert!(tally.faults > 25 * samples && tally.beside > 12 * samples, "{tally:?}");
        }
        Err(finding) => panic!("{finding}"),
    }
}
