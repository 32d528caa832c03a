//! Asks every way that there is to ask about recorded sessions, and says where they do not agree:
//! `cargo run --example truth -p acpdb-tests -- FOLDER..`
//!
//! Every file below the folders that an importer knows goes into a store of its own in memory. One line for each kind of
//! complaint and session, a summary at the end; exit code 1 if there is any.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use acpdb_engine::Store;
use acpdb_engine::event::Scope;
use acpdb_engine::storage::SimWorld;
use acpdb_hosts::import;
use acpdb_tests::support::{Failure, bytes_of, fixed, import_bytes};
use acpdb_tests::truth::ask::testimony;
use acpdb_tests::truth::judge;

/// Complaints that are printed of a session.
const PRINTED: usize = 6;

fn main() -> ExitCode {
    let mut files = Vec::new();
    for folder in std::env::args().skip(1) {
        below(Path::new(&folder), &mut files);
    }
    files.sort();
    let (mut sessions, mut items, mut complained) = (0_u64, 0_u64, 0_u64);
    for file in &files {
        match judged(file) {
            Ok(found) => {
                for (session, count, complaints) in found {
                    sessions += 1;
                    items += count;
                    complained += u64::from(!complaints.is_empty());
                    for complaint in complaints.iter().take(PRINTED) {
                        println!(
                            "{} {session}: {}",
                            file.display(),
                            complaint.chars().take(300).collect::<String>()
                        );
                    }
                    if complaints.len() > PRINTED {
                        println!("{} {session}: and {} more", file.display(), complaints.len() - PRINTED);
                    }
                }
            }
            Err(error) => println!("{}: not read: {error}", file.display()),
        }
    }
    println!(
        "{} files, {sessions} sessions, {items} items; {complained} sessions with complaints",
        files.len()
    );
    if complained == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    if folder.is_file() {
        files.push(folder.to_owned());
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        below(&entry.path(), files);
    }
}

type Judged = Vec<(String, u64, Vec<String>)>;

fn judged(file: &Path) -> Result<Judged, Failure> {
    let bytes = bytes_of(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let head = bytes.get(..bytes.len().min(64 << 10)).unwrap_or_default();
    let Some(format) = import::detect(file, head) else { return Err("no format that is known".into()) };
    let world = SimWorld::new(1);
    let builder = Store::builder("/sim").storage(Arc::new(world.process(1))).index(false);
    let store = fixed(builder.registry(acpdb_hosts::registry()), 7).open()?;
    let _ = import_bytes(&store, format, &name, &bytes)?;
    let mut found = Vec::new();
    for stream in store.stream_names()?.into_iter().filter(|stream| stream.scope == Scope::Session) {
        let view = store.view(stream.id)?;
        let said = testimony(&store, &view, &stream, None)?;
        found.push((stream.name.clone(), said.explained.len() as u64, judge(&said)));
    }
    Ok(found)
}
