//! The other side of `bench.py`: the same appends and contexts, from Rust.
//!
//! `append FOLDER COUNT` appends messages one by one under `Durability::Os`, and makes a context of a megabyte a few times; then that as
//! data, and one of 2000 items. Prints nanoseconds of each, one a line: of the processor, of all threads, since other work of the machine
//! makes the time of a clock longer.

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::{Durability, Store};
use acpdb_hosts::export::{ExportChoices, Format, export};
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the processor that this process has had.
fn spent() -> i64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("give a folder")?;
    let count: i64 = arguments.next().ok_or("give a count")?.parse()?;
    let store = Store::builder(folder)
        .registry(acpdb_hosts::registry())
        .durability(Durability::Os)
        .index(false)
        .open()?;
    let session = store.session(StreamInfo::session("acpdb", "s1"));
    let text = "x".repeat(200);
    let _ = session.append([Entry::message("", Role::User, &text)])?;
    let begun = spent();
    for _ in 0..count {
        let _ = session.append([Entry::message("", Role::User, &text)])?;
    }
    println!("{}", (spent() - begun) / count);

    let large = store.session(StreamInfo::session("acpdb", "large"));
    let _ = large.append((0..64).map(|_| Entry::message("", Role::User, "y".repeat(16 << 10))))?;
    store.sync()?;
    let view = large.view()?;
    let _ = export(&view, Format::Anthropic, &ExportChoices::default())?;
    let begun = spent();
    for _ in 0..20 {
        let _ = export(&view, Format::Anthropic, &ExportChoices::default())?;
    }
    println!("{}", (spent() - begun) / 20);

    let rows = store.session(StreamInfo::session("acpdb", "rows"));
    let _ = rows.append((0..2000).map(|_| Entry::message("", Role::User, &text)))?;
    store.sync()?;
    for session in [large, rows] {
        let view = session.view()?;
        let mut best = i64::MAX;
        for _ in 0..20 {
            let begun = spent();
            let _ = acpdb_query::context(&store, &view, acpdb_query::Window::default(), store.now())?;
            best = best.min(spent() - begun);
        }
        println!("{best}");
    }
    Ok(())
}
