//! Records, calls, results and tokens of each recording, counted by a script that shares nothing with the importers, equal those of
//! its import. The project's own fixtures always, and the recordings that `ACPDB_RECORDINGS` names.

use std::path::{Path, PathBuf};
use std::process::Command;

use acpdb_tests::binary;

fn count(folder: &Path) {
    let program = binary::binary().unwrap_or_else(|error| panic!("{error}"));
    let script = binary::root().join("tests/count_recordings.py");
    let counted = Command::new("python3").arg(script).arg(program).arg(folder).output();
    let counted = counted.unwrap_or_else(|error| panic!("python3 is needed here: {error}"));
    let said = String::from_utf8_lossy(&counted.stdout);
    assert!(counted.status.success(), "{said}{}", String::from_utf8_lossy(&counted.stderr));
}

/// A tenth of the calls of one public collection were lost, and no count of the project's own knew it.
#[test]
fn fixtures_equal_an_independent_count() {
    count(&binary::root().join("tests/fixtures/hosts"));
}

#[test]
fn recordings_equal_an_independent_count() {
    if let Some(folder) = std::env::var_os("ACPDB_RECORDINGS").map(PathBuf::from) {
        count(&folder);
    }
}
