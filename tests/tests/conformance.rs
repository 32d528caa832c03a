//! Every recorded vector passes: one engine, one meaning of each rule.

use acpdb_tests::conformance::{folder, run_folder};

#[test]
fn every_vector_passes() {
    let outcomes = run_folder(&folder(), None).unwrap();
    assert!(outcomes.len() >= 180, "{} vectors in {}", outcomes.len(), folder().display());
    let differences: Vec<String> = outcomes.into_iter().flat_map(|outcome| outcome.differences).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
