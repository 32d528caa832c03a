//! Engine and naive implementation agree on every edge of thousands of sessions, and a broken rule is noticed.

use acpdb_engine::fold::Policy;
use acpdb_engine::ids::Seq;
use acpdb_tests::naive::Mutation;
use acpdb_tests::naive::compare::{described, of_engine, of_naive, session};
use acpdb_tests::support::cases;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn runner(count: u32) -> TestRunner {
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn engine_and_naive_implementation_agree_on_every_edge() {
    let numbers = prop::collection::vec(any::<u16>(), 1..90);
    let mut edge_count = 0_usize;
    let mut released_count = 0_usize;
    let counts = std::cell::RefCell::new((&mut edge_count, &mut released_count));
    let agree = runner(cases(1000)).run(&numbers, |numbers| {
        let script = session(&numbers);
        let played = script.play(&Policy::default());
        let head = played.tape.head();
        // The end, and some points on the way there.
        for at in [head.get(), head.get() / 2, head.get() * 3 / 4, head.get() - head.get().min(1)] {
            let (engine, naive) = (of_engine(&played, Seq(at)), of_naive(&played, Seq(at), Mutation::None));
            if at == head.get() {
                let mut counts = counts.borrow_mut();
                *counts.0 += engine.len();
                *counts.1 += engine.iter().filter(|edge| edge.released).count();
            }
            prop_assert_eq!(engine, naive, "at {} of {}", at, described(&script.steps));
        }
        Ok(())
    });
    agree.unwrap();
    println!("{} sessions, {edge_count} edges, {released_count} released", cases(1000));
    // A comparison of nothing with nothing proves nothing.
    let least = cases(1000) as usize;
    assert!(
        edge_count > least && released_count * 50 > least,
        "{edge_count} edges, {released_count} released"
    );
}

/// Canary: each rule, broken in the naive implementation, shows as a difference.
#[test]
fn a_broken_rule_is_noticed() {
    for mutation in [
        Mutation::SameTurn,
        Mutation::FailedSupersedes,
        Mutation::NoProtectedFiles,
        Mutation::RestoreDoesNothing,
        Mutation::NoCompaction,
        Mutation::EditsClearNothing,
        Mutation::NoRewind,
    ] {
        let numbers = prop::collection::vec(any::<u16>(), 40..90);
        // That it is found is enough; how small it can be made is not asked.
        let config =
            Config { max_shrink_iters: 0, cases: 400, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let found = runner.run(&numbers, |numbers| {
            let played = session(&numbers).play(&Policy::default());
            let head = played.tape.head();
            prop_assert_eq!(of_engine(&played, head), of_naive(&played, head, mutation));
            Ok(())
        });
        assert!(found.is_err(), "{mutation:?} was not noticed");
    }
}
