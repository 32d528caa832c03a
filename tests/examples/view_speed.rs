//! The cost of a view of a long session: `cargo run --release --example view_speed -p acpdb-tests`.
//!
//! After 10,000 calls: append and view, where each view is dropped at once, where one is held all the time, and where all are held.

use std::time::Instant;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::{Store, View};

const CALL_COUNT: u32 = 10_000;
const ROUND_COUNT: u32 = 200;

fn call(number: u32) -> Vec<Entry> {
    let tool = ["read", "read", "edit", "grep", "bash"].get(number as usize % 5).copied().unwrap_or_default();
    let params = match tool {
        "grep" => format!(r#"{{"pattern":"p{}"}}"#, number % 977),
        "bash" => format!(r#"{{"command":"make {}"}}"#, number % 1009),
        _ => format!(r#"{{"filePath":"src/f{}.rs","offset":{}}}"#, number % 499, number % 7),
    };
    let id = format!("call_{number}");
    vec![
        Entry::step(format!("s{number}")),
        Entry::tool_started(id.as_str(), tool, params),
        Entry::tool_completed(id, format!("some output of {number}\n").repeat(20)),
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let builder = Store::builder(folder.path().join("store"));
    let store = builder.registry(std::sync::Arc::new(acpdb_engine::testing::TestTools)).open()?;
    let info = StreamInfo::session("speed", "s1");
    let mut number = 0;
    while number < CALL_COUNT {
        let until = number + 64;
        let _ = store.append(&info, (number..until).flat_map(call).collect())?;
        number = until;
    }
    let mut held: Vec<View> = Vec::new();
    for (label, held_max) in [("none", 0), ("one", 1), ("all", usize::MAX)] {
        held.clear();
        let _ = store.view(info.id())?;
        let (mut views, mut seconds) = (0.0, 0.0);
        for _ in 0..ROUND_COUNT {
            let _ = store.append(&info, call(number))?;
            number += 1;
            let begin = Instant::now();
            let view = store.view(info.id())?;
            views += begin.elapsed().as_secs_f64();
            if held.len() < held_max {
                held.push(view);
            } else {
                drop(view);
            }
            seconds += begin.elapsed().as_secs_f64();
        }
        let micros = |seconds: f64| seconds / f64::from(ROUND_COUNT) * 1e6;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("unknown").trim();
        println!(
            "held: {label:4} view {:8.1} us, with its drop {:8.1} us, memory {memory}",
            micros(views),
            micros(seconds)
        );
    }
    Ok(())
}
