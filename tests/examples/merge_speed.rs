//! How long a merge takes: `cargo run --release -p acpdb-tests --example merge_speed -- 100000`.
//!
//! Makes a store of so many events in a temporary folder, merges it into an empty one, merges it again, and reads it from a file
//! of lines.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that fails is none")]

use std::time::Instant;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::{Atomicity, Batch, Store, store::MergeOptions};
use acpdb_hosts::registry::HostRegistry;
use std::sync::Arc;

/// Events of one session.
const SESSION_EVENTS: u64 = 3_000;

fn open(folder: &std::path::Path) -> Store {
    Store::builder(folder).registry(Arc::new(HostRegistry)).any_file_system().open().unwrap()
}

fn main() {
    let wanted: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let folder = tempfile::tempdir().unwrap();
    let source = open(&folder.path().join("source"));
    for session in 0..wanted.div_ceil(SESSION_EVENTS) {
        let entries = (0..SESSION_EVENTS.min(wanted) / 3).flat_map(|number| {
            let (call, file) = (format!("c{session}-{number}"), number % 50);
            [
                Entry::step(format!("s{number}")).origin(format!("step:{number}")),
                Entry::tool_started(&call, "Read", format!(r#"{{"file_path":"/src/{file}.rs"}}"#))
                    .origin(format!("call:{call}:start")),
                Entry::tool_completed(&call, format!("line {number} of {session}\n").repeat(60))
                    .origin(format!("call:{call}:finish")),
            ]
        });
        let stream = StreamInfo::session("claude-code", format!("session-{session}"));
        let batch = Batch { stream, entries: entries.collect() };
        let _ = source.commit(&[batch], Atomicity::Split).unwrap();
    }
    let target = open(&folder.path().join("target"));
    for what in ["merge", "merge again"] {
        let start = Instant::now();
        let report = target.merge(&mut source.clone(), MergeOptions::default()).unwrap();
        let (new, known) = (report.events_new, report.events_known);
        println!("{what}: {:.2} s, {new} events new, {known} known", start.elapsed().as_secs_f64());
    }
}
