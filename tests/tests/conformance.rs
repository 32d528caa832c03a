//! Every recorded vector passes: one engine, one meaning of each rule.

use std::path::Path;

use acpdb_tests::conformance::run_folder;

#[test]
fn every_vector_passes() {
    let beside = |folder: &Path| folder.join("shared/conformance");
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(beside).find(|path| path.is_dir());
    let Some(folder) = found else {
        println!("skipped: no shared/conformance beside the repository");
        return;
    };
    let outcomes = run_folder(&folder, None).unwrap();
    assert!(!outcomes.is_empty(), "no vectors in {}", folder.display());
    let differences: Vec<String> = outcomes.into_iter().flat_map(|outcome| outcome.differences).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
