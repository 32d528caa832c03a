//! The other side of `bench.py`: the same appends and contexts, from Rust.
//!
//! `append FOLDER COUNT` appends messages one by one under `Durability::Os`, and makes a context of a megabyte a few times; then that as
//! data, and one of 2000 items. Prints nanoseconds of each, one a line.

use std::time::Instant;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::{Durability, Store};
use acpdb_hosts::export::{ExportChoices, Format, export};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("give a folder")?;
    let count: u32 = arguments.next().ok_or("give a count")?.parse()?;
    let store = Store::builder(folder)
        .registry(acpdb_hosts::registry())
        .durability(Durability::Os)
        .index(false)
        .open()?;
    let session = store.session(StreamInfo::session("acpdb", "s1"));
    let text = "x".repeat(200);
    let _ = session.append([Entry::message("", Role::User, &text)])?;
    let begun = Instant::now();
    for _ in 0..count {
        let _ = session.append([Entry::message("", Role::User, &text)])?;
    }
    println!("{}", begun.elapsed().as_nanos() / u128::from(count));

    let large = store.session(StreamInfo::session("acpdb", "large"));
    let _ = large.append((0..64).map(|_| Entry::message("", Role::User, "y".repeat(16 << 10))))?;
    store.sync()?;
    let view = large.view()?;
    let _ = export(&view, Format::Anthropic, &ExportChoices::default())?;
    let begun = Instant::now();
    for _ in 0..20 {
        let _ = export(&view, Format::Anthropic, &ExportChoices::default())?;
    }
    println!("{}", begun.elapsed().as_nanos() / 20);

    let rows = store.session(StreamInfo::session("acpdb", "rows"));
    let _ = rows.append((0..2000).map(|_| Entry::message("", Role::User, &text)))?;
    store.sync()?;
    for session in [large, rows] {
        let view = session.view()?;
        let mut best = u128::MAX;
        for _ in 0..20 {
            let begun = Instant::now();
            let _ = acpdb_query::context(&store, &view, acpdb_query::Window::default(), store.now())?;
            best = best.min(begun.elapsed().as_nanos());
        }
        println!("{best}");
    }
    Ok(())
}
