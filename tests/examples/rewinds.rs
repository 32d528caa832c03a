//! Rewinds that an import concludes, beside the sizes that the provider reported for the requests before and after
//! each.
//!
//! `cargo run -p acpdb-tests --example rewinds -- FOLDER..` prints a line for each rewind: the session, its seq, the size of the
//! last request before it and of the first after it, and the estimated size of the context at both. A request after a rewind is
//! smaller, or has grown by less than the rewind took back; where it is not, the rewind is doubtful, and the line says so.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use acpdb_engine::event::{Payload, Scope, Usage};
use acpdb_engine::ids::Seq;
use acpdb_engine::{At, Store, store::StreamName};
use acpdb_hosts::import;
use acpdb_tests::support::{bytes_of, import_bytes};

fn main() -> ExitCode {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if folders.is_empty() {
        println!("name folders of recordings");
        return ExitCode::from(2);
    }
    let (mut count, mut doubtful) = (0, 0);
    println!("{:>10} {:>10} {:>10} {:>10}  rewind", "before", "after", "held", "holds");
    for folder in folders {
        for path in files(&folder) {
            match told(&path) {
                Ok((all, bad)) => {
                    count += all;
                    doubtful += bad;
                }
                Err(error) => println!("{}: {error}", path.display()),
            }
        }
    }
    println!("{count} rewinds, {doubtful} doubtful");
    ExitCode::from(u8::from(doubtful > 0))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Imports a file into a store of its own, and tells of its rewinds: how many, and how many are doubtful.
fn told(path: &Path) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let bytes = bytes_of(path)?;
    let head = bytes.get(..bytes.len().min(import::HEAD_BYTES)).unwrap_or_default();
    let Some(format) = import::detect(path, head) else { return Ok((0, 0)) };
    let folder = tempfile::tempdir()?;
    let store = Store::builder(folder.path()).registry(acpdb_hosts::registry()).any_file_system().open()?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let _ = import_bytes(&store, format, &name, &bytes)?;
    let (mut count, mut doubtful) = (0, 0);
    for stream in store.stream_names()?.into_iter().filter(|name| name.scope == Scope::Session) {
        let (all, bad) = of_stream(&store, &stream)?;
        count += all;
        doubtful += bad;
    }
    Ok((count, doubtful))
}

fn of_stream(store: &Store, stream: &StreamName) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let mut requests = Vec::new();
    let mut rewinds = Vec::new();
    for recorded in store.stream_events(stream.id, Seq(1), stream.head)? {
        let recorded = recorded?;
        match &recorded.event.payload {
            Payload::MessageFinished(finished) => {
                requests.extend(size(&finished.report.usage).map(|size| (recorded.seq, size)));
            }
            Payload::Rewound(_) => rewinds.push(recorded.seq),
            _ => {}
        }
    }
    let mut doubtful = 0;
    for seq in &rewinds {
        let before = requests.iter().rev().find(|(at, _)| at < seq);
        let after = requests.iter().find(|(at, _)| at > seq);
        let holds = |at: Seq| -> Result<u64, acpdb_engine::Error> {
            let view = store.view_at(stream.id, &At::Seq(at))?;
            Ok(store.summary(stream.clone(), &view)?.map_or(0, |summary| summary.tokens_shown))
        };
        let (held, left) = (holds(Seq(seq.0.saturating_sub(1)))?, holds(*seq)?);
        let verdict = match (before, after) {
            (Some((_, before)), Some((at, after))) => {
                // The tokens added between the rewind and the request after it count for that request.
                let grown = holds(*at)?.saturating_sub(left);
                let taken = held.saturating_sub(left);
                let fits = *after <= before.saturating_add(grown.saturating_mul(2)).saturating_sub(taken / 2);
                if fits { "" } else { "DOUBTFUL" }
            }
            _ => "no request on both sides",
        };
        doubtful += u64::from(verdict == "DOUBTFUL");
        let shown = |found: Option<&(Seq, u64)>| found.map_or("-".to_owned(), |(_, size)| size.to_string());
        println!(
            "{:>10} {:>10} {held:>10} {left:>10}  {} #{} {verdict}",
            shown(before),
            shown(after),
            stream.name,
            seq.0
        );
    }
    Ok((rewinds.len() as u64, doubtful))
}

/// Tokens that a request had, whether read from a cache or not.
fn size(usage: &Usage) -> Option<u64> {
    let parts = [usage.input, usage.cache_read, usage.cache_write, usage.cache_write_long];
    let sum: u64 = parts.into_iter().flatten().sum();
    (sum > 0).then_some(sum)
}
