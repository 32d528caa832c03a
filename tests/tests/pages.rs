//! The page of a session: recorded text stays text, each text is there once, and a browser can use it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "tests: a failed step is a failed test"
)]

#[path = "pages/browser.rs"]
mod browser;
#[path = "pages/faults.rs"]
mod faults;
#[path = "pages/index.rs"]
mod index;
#[path = "pages/structure.rs"]
mod structure;

use std::sync::Arc;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::Micros;
use acpdb_engine::storage::SimWorld;
use acpdb_engine::testing::TestTools;
use acpdb_engine::{Batch, Store};
use acpdb_query::export::page::{PageOptions, page};

/// An empty store in memory.
fn store() -> Store {
    let storage = Arc::new(SimWorld::new(7).process(1));
    Store::builder("/sim").storage(storage).registry(Arc::new(TestTools)).open().unwrap()
}

/// Records entries in the session `s1`.
fn record(store: &Store, entries: &[Entry]) {
    let stream = StreamInfo::session("acpdb", "s1");
    for entries in entries.chunks(2000) {
        let batch = Batch { stream: stream.clone(), entries: entries.to_vec() };
        let _ = store.commit(&[batch], acpdb_engine::Atomicity::Split).unwrap();
    }
}

/// A message of the user, and a call that has read a file.
fn exchange(number: usize, prompt: &str, file: &str, output: &str) -> Vec<Entry> {
    let call = format!("call-{number}");
    vec![
        Entry::step(""),
        Entry::message("", Role::User, prompt),
        Entry::tool_started(&call, "read", serde_json::json!({ "filePath": file }).to_string()),
        Entry::tool_completed(&call, output),
    ]
}

/// The page of the session `s1`.
fn rendered(store: &Store) -> String {
    rendered_with(store, &PageOptions::default())
}

fn rendered_with(store: &Store, options: &PageOptions) -> String {
    let session = store.find_stream("s1").unwrap();
    let mut out = Vec::new();
    let report = page(store, &store.view(session.id).unwrap(), Micros(0), options, &mut out).unwrap();
    assert!(report.items > 0);
    String::from_utf8(out).unwrap()
}
