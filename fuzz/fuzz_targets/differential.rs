//! A generated session told to the engine and to the naive implementation: they agree on every edge, at every point tried.
#![no_main]

use acpdb_engine::fold::Policy;
use acpdb_engine::ids::Seq;
use acpdb_tests::naive::Mutation;
use acpdb_tests::naive::compare::{described, of_engine, of_naive, session};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|numbers: Vec<u16>| {
    let script = session(&numbers[..numbers.len().min(200)]);
    let played = script.play(&Policy::default());
    let head = played.tape.head().get();
    for at in [head, head / 2, head * 3 / 4] {
        let (engine, naive) = (of_engine(&played, Seq(at)), of_naive(&played, Seq(at), Mutation::None));
        assert_eq!(engine, naive, "at {at} of {}", described(&script.steps));
    }
});
