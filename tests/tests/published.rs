//! Requirements of a registry and its readers: every published crate says what it is, and the files that they look for are there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed step is a failed test"
)]

use std::path::{Path, PathBuf};

use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn manifest(path: &Path) -> Table {
    std::fs::read_to_string(path)
        .unwrap()
        .parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fields of a package's metadata that are missing or too long for a registry.
fn findings(package: &Table, workspace: &Table, folder: &Path) -> Vec<String> {
    let value = |field: &str| -> Option<Value> {
        let own = package.get(field)?;
        let is_inherited = own.get("workspace").and_then(Value::as_bool) == Some(true);
        if is_inherited { workspace.get(field).cloned() } else { Some(own.clone()) }
    };
    let mut found = Vec::new();
    for field in [
        "description",
        "license",
        "repository",
        "homepage",
        "documentation",
        "rust-version",
        "edition",
        "version",
    ] {
        if value(field).and_then(|it| it.as_str().map(str::is_empty)) != Some(false) {
            found.push(format!("{field} is missing"));
        }
    }
    for (field, most) in [("keywords", 5), ("categories", 5)] {
        let list = value(field).and_then(|it| it.as_array().cloned()).unwrap_or_default();
        if list.is_empty() || list.len() > most {
            found.push(format!("{field} has {} entries, of 1 to {most}", list.len()));
        }
        if list.iter().filter_map(Value::as_str).any(|word| field == "keywords" && word.len() > 20) {
            found.push(format!("{field} has one that is longer than 20 letters"));
        }
    }
    let readme = value("readme").and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_default();
    if readme.is_empty() || !folder.join(&readme).is_file() {
        found.push(format!("readme {readme:?} is not there"));
    }
    let metadata = package.get("metadata");
    if metadata.and_then(|it| it.get("docs")).and_then(|it| it.get("rs")).is_none() {
        found.push("metadata for docs.rs is missing".to_owned());
    }
    found
}

#[test]
fn every_published_crate_says_what_it_is() {
    let whole = manifest(&root().join("Cargo.toml"));
    let workspace = whole["workspace"]["package"].as_table().unwrap();
    let mut published = Vec::new();
    for member in whole["workspace"]["members"].as_array().unwrap() {
        let folder = root().join(member.as_str().unwrap());
        let manifest = manifest(&folder.join("Cargo.toml"));
        let package = manifest["package"].as_table().unwrap();
        if package.get("publish").and_then(Value::as_bool) == Some(false) {
            continue;
        }
        let name = package["name"].as_str().unwrap();
        assert_eq!(findings(package, workspace, &folder), Vec::<String>::new(), "{name}");
        published.push(name.to_owned());
    }
    published.sort();
    assert_eq!(
        published,
        [
            "acpdb",
            "acpdb-cli",
            "acpdb-engine",
            "acpdb-hosts",
            "acpdb-live",
            "acpdb-proof",
            "acpdb-query",
            "acpdb-remote",
            "acpdb-serve"
        ]
    );
    // A path alone means nothing to a registry.
    let version = workspace["version"].as_str();
    for (name, dependency) in whole["workspace"]["dependencies"].as_table().unwrap() {
        if dependency.get("path").is_some() {
            assert_eq!(dependency.get("version").and_then(Value::as_str), version, "{name}");
        }
    }
    let cli = manifest(&root().join("cli/Cargo.toml"));
    assert!(cli["package"]["metadata"]["binstall"]["pkg-url"].as_str().unwrap().contains("{ target }"));
}

/// The check can fail.
#[test]
fn a_missing_field_is_found() {
    let package: Table =
        "name = \"x\"\nversion = \"1.0.0\"\nkeywords = []\nlicense.workspace = true".parse().unwrap();
    let workspace: Table = "license = \"MIT\"".parse().unwrap();
    let found = findings(&package, &workspace, Path::new("."));
    assert!(
        found.contains(&"description is missing".to_owned())
            && found.iter().any(|it| it.starts_with("keywords")),
        "{found:?}"
    );
    assert!(!found.contains(&"license is missing".to_owned()), "{found:?}");
}

#[test]
fn what_readers_look_for_is_there() {
    let files = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "Containerfile",
        "docs/STABILITY.md",
        ".github/workflows/release.yml",
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".ci/dev",
    ];
    for file in files {
        assert!(std::fs::metadata(root().join(file)).is_ok_and(|file| file.len() > 100), "{file}");
    }
    let changes = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(changes.contains("\n## [Unreleased]\n"));
    let promised = std::fs::read_to_string(root().join("docs/STABILITY.md")).unwrap();
    let whole = manifest(&root().join("Cargo.toml"));
    let oldest = whole["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(promised.contains(&format!("({oldest})")), "the oldest Rust is {oldest}");
}

/// Runners that are there, by the page of github.com/actions/runner-images: macOS 13 went in December 2025 (its issue 13046), macOS 14 in November 2026
/// (13518); the last one with a processor of Intel stays until August 2027.
const RUNNERS: [&str; 5] =
    ["ubuntu-latest", "ubuntu-22.04", "ubuntu-22.04-arm", "macos-15", "macos-15-intel"];

/// Lines of commands in pages and workflows hold no key: every user of the machine sees the arguments of a program.
#[test]
fn keys_of_providers_never_stand_in_arguments() {
    for name in ["docs/host.sh", "docs/LIVE.md", ".github/workflows/release.yml", ".github/workflows/ci.yml"]
    {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        for line in text.lines() {
            let is_argument =
                ["--header", "-H ", "--token", "--data", "-u "].iter().any(|word| line.contains(word));
            let has_key = ["_API_KEY", "_TOKEN\"", "secrets."].iter().any(|word| line.contains(word));
            // A file that the shell makes of the key's text is read by the program, and is no argument.
            assert!(!(is_argument && has_key) || line.contains("@<("), "{name}: {line}");
        }
    }
}

/// A release could not finish, since a runner of its list was retired; each of its actions was named by a tag, which can be moved; and jobs that
/// run the build scripts of dependencies could sign.
#[test]
fn workflows_name_actions_by_digest_and_only_the_job_that_signs_has_an_identity() {
    for name in ["release.yml", "ci.yml"] {
        let text = std::fs::read_to_string(root().join(".github/workflows").join(name)).unwrap();
        for line in
            text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: "))
        {
            let (_, version) = line.split_once('@').unwrap();
            let digest = version.split(' ').next().unwrap_or_default();
            assert!(
                digest.len() == 40 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{name}: {line}"
            );
        }
        let labels = text.split(|c: char| !c.is_ascii_alphanumeric() && !".-".contains(c));
        let is_runner =
            |label: &&str| ["macos-", "ubuntu-", "windows-"].iter().any(|os| label.starts_with(os));
        for label in labels.filter(is_runner) {
            assert!(
                RUNNERS.contains(&label),
                "{name} wants {label}: see github.com/actions/runner-images whether it is still there"
            );
        }
        let mut job = "";
        for line in text.lines() {
            if line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(':') {
                job = line.trim();
            }
            assert!(!line.contains("id-token: write") || job == "sign:", "{name}: {job}");
        }
    }
}

/// `attach pi` wrote an older extension than the one in the repository: its index of what a compaction took never came.
#[test]
fn the_plugins_that_attach_writes_are_those_of_the_repository() {
    for (ours, carried) in [("plugins/opencode/index.js", "opencode.js"), ("plugins/pi/index.ts", "pi.ts")] {
        let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
        assert!(
            read(ours) == read(&format!("live/assets/{carried}")),
            "copy {ours} to live/assets/{carried}"
        );
    }
}
