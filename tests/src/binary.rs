//! Where the program is that the tests run.
//!
//! `cargo test` makes tests of the program, not always the program itself, and an old one may lie around. So the tests
//! ask cargo to build it, with the settings that they were built with; that costs a look if it is there already.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `acpdb` program of this checkout, built if need be.
///
/// # Errors
/// In words: cargo cannot be run, or the program does not build.
pub fn binary() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(path) => Ok(path),
        Err(error) => Err(error.clone()),
    }
}

/// The folder of this checkout.
pub fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

fn build() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("ACPDB_TEST_BINARY").map(PathBuf::from) {
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!("ACPDB_TEST_BINARY: no {}", path.display()))
        };
    }
    // target/PROFILE/deps/this-test
    let own = std::env::current_exe().map_err(|error| format!("this test has no path: {error}"))?;
    let folder = own.parent().and_then(Path::parent).ok_or("this test is not in a target folder")?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // All default members, and an example for the packages on which only tests depend, as `cargo test` has them: other
    // features would mean to build most of it again.
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["build", "--quiet", "--bin", "acpdb", "--example", "conformance"]);
    let done = command
        .args(["--profile", profile])
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !done.status.success() {
        return Err(format!("acpdb does not build:\n{}", String::from_utf8_lossy(&done.stderr)));
    }
    let path = folder.join(format!("acpdb{}", std::env::consts::EXE_SUFFIX));
    if path.is_file() { Ok(path) } else { Err(format!("cargo did not make {}", path.display())) }
}
