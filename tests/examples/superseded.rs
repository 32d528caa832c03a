//! Superseded calls by rule and folder, of all recordings under a folder: `cargo run --example superseded -- DATA`.
//!
//! One line a folder, as `tests/scripts/superseded.py` prints it from the files alone.

use std::collections::BTreeMap;
use std::path::Path;

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_hosts::import;
use acpdb_tests::support::{Failure, bytes_of, events, folded, import_bytes};

fn main() -> Result<(), Failure> {
    let data = std::env::args().nth(1).ok_or("name the folder of the recordings")?;
    let mut folders: BTreeMap<String, Vec<std::path::PathBuf>> = BTreeMap::new();
    let mut open = vec![Path::new(&data).to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = folder.strip_prefix(&data)?.to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
            } else {
                folders.entry(name).or_default().push(path);
            }
        }
    }
    for (name, mut paths) in folders {
        if name.is_empty() || name.starts_with("memory") || name.starts_with("LICENSES") {
            continue;
        }
        paths.sort();
        let home = std::env::temp_dir().join(format!("acpdb-superseded-{}", std::process::id()));
        let store =
            Store::builder(home.join("store")).registry(acpdb_hosts::registry()).index(false).open()?;
        for path in &paths {
            let bytes = bytes_of(path)?;
            let head = bytes.get(..import::HEAD_BYTES).unwrap_or(&bytes);
            let format = import::detect(path, head).ok_or("an unknown format")?;
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let _ = import_bytes(&store, format, file.split('.').next().unwrap_or_default(), &bytes)?;
        }
        let world = folded(&events(&store)?);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, state) in world.streams() {
            for edge in state.edges(Seq::MAX) {
                *counts.entry(edge.rule.label()).or_default() += 1;
            }
        }
        let count = |rule: &str| counts.get(rule).copied().unwrap_or_default();
        println!("{name}: hash {} file {} todo {}", count("repeat"), count("file"), count("todo"));
        drop(store);
        std::fs::remove_dir_all(home)?;
    }
    Ok(())
}
