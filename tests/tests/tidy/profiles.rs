//! A profile that inherits has the settings of each crate that the other names, unless it names the crate itself.

use std::io;

use super::report;
use super::source::files;

/// Sixteen crates of published programs were compiled with the little optimisation of `release`: `"*"` stands behind their names there.
#[test]
fn published_programs_are_optimised_in_all_crates() -> io::Result<()> {
    let all = files()?;
    let manifest = all.iter().find(|file| file.path == "Cargo.toml").and_then(|file| file.text.as_deref());
    let manifest: toml::Table = toml::from_str(manifest.unwrap_or_default()).map_err(io::Error::other)?;
    let of = |profile: &str| manifest.get("profile")?.get(profile)?.get("package")?.as_table();
    let (quick, published) =
        (of("release").cloned().unwrap_or_default(), of("dist").cloned().unwrap_or_default());
    assert!(!quick.is_empty() && !published.is_empty(), "Cargo.toml names crates in both profiles");
    let mut findings = Vec::new();
    for (name, settings) in quick.iter().filter(|(name, _)| *name != "acpdb-tests") {
        let number = |key| published.get(name)?.get(key)?.as_integer();
        if settings.get("opt-level").is_some() && number("opt-level") != Some(3) {
            findings.push(format!("Cargo.toml: `dist` compiles {name} at the level of `release`"));
        }
        let units = settings.get("codegen-units").and_then(toml::Value::as_integer);
        if units.is_some_and(|units| units > 4) && number("codegen-units") != Some(4) {
            findings.push(format!("Cargo.toml: `dist` compiles {name} in as many units as `release`"));
        }
    }
    report(findings, "name the crate in `[profile.dist.package]`, too.");
    Ok(())
}
