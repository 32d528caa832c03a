//! The suite is tested: every bug that is planted must be caught, and without one everything must be content.
//!
//! One test, as a planted bug is in the whole process. The list of all, with what catches each, is in `docs/TESTING.md`;
//! the example `soak -- planted` prints it.

use acpdb_tests::soak::planted::{ALL, caught};

#[test]
#[ignore = "minutes unless optimised: `cargo run --release -p acpdb-tests --example soak -- planted` does the same"]
fn every_planted_bug_is_caught() {
    // Panics are one way to be caught; what they print is not of interest.
    std::panic::set_hook(Box::new(|_| {}));
    let content = caught(None);
    let missed: Vec<_> = ALL.into_iter().filter(|bug| caught(Some(*bug)).is_none()).collect();
    drop(std::panic::take_hook());
    assert!(content.is_none(), "without a bug: {content:?}");
    assert!(missed.is_empty(), "nobody noticed {missed:?}");
}
