//! How fast calls fold, and whether a long session stays flat: `cargo run --release --example fold_speed -p acpdb-tests`.
//!
//! Records sessions of growing length on a tape, then folds their events anew and prints calls a second.

use std::time::Instant;

use acpdb_engine::entry::Entry;
use acpdb_engine::fold::World;
use acpdb_engine::testing::Tape;

fn main() {
    for calls in [10_000_u32, 50_000, 200_000] {
        let mut tape = Tape::of_test_tools("speed");
        for number in 0..calls {
            if number % 3 == 0 {
                tape.entry(Entry::step(format!("s{number}")));
            }
            let tool = ["read", "read", "edit", "grep", "bash", "todowrite"]
                .get(number as usize % 6)
                .copied()
                .unwrap_or_default();
            let params = match tool {
                "grep" => format!(r#"{{"pattern":"p{}"}}"#, number % 977),
                "bash" => format!(r#"{{"command":"make {}"}}"#, number % 1009),
                _ => format!(r#"{{"filePath":"src/f{}.rs","offset":{}}}"#, number % 499, number % 7),
            };
            let call = format!("call_{number}");
            tape.entry(Entry::tool_started(call.as_str(), tool, params));
            tape.entry(Entry::tool_completed(call, "some output\n".repeat(20)));
        }
        let begin = Instant::now();
        let mut world = World::default();
        for recorded in tape.events() {
            world.apply(recorded);
        }
        let seconds = begin.elapsed().as_secs_f64();
        let edges =
            world.stream(tape.stream()).map_or(0, |state| state.edges(acpdb_engine::ids::Seq::MAX).len());
        println!("{calls} calls: {:.0} calls a second, {edges} edges", f64::from(calls) / seconds);
    }
}
