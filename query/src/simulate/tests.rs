//! Simulations of small sessions: the policy in force gives the context that was, sent texts stay, and the figures add up.

use acpdb_engine::entry::{Entry, PartEntry};
use acpdb_engine::event::{Payload, Role, TurnKind};
use acpdb_engine::fold::policy::FlushRule;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::testing::script::Played;
use acpdb_engine::testing::{Script, Tape};
use proptest::prelude::*;

use super::*;

fn recording(played: &Played) -> SessionRecording {
    let tape = &played.tape;
    SessionRecording::of(tape.stream(), tape.events().to_vec(), &|body| tape.body(body))
}

fn setup(policy: Option<Policy>, mode: ServeMode) -> Setup {
    Setup { name: String::new(), policy: policy.map(Arc::new), mode: Some(mode), prices: None }
}

/// Tokens of the context at each step, as the fold has them.
fn tokens_at_steps(played: &Played) -> Vec<u64> {
    let state = played.tape.state();
    let is_step = |seq: &Seq| {
        played.tape.events().iter().any(|recorded| {
            recorded.seq == *seq
                && matches!(&recorded.event.payload, Payload::TurnStarted(turn) if turn.kind == TurnKind::Step)
        })
    };
    let steps = (1..=played.tape.head().get()).map(Seq).filter(is_step);
    steps.map(|seq| state.tokens(seq).shown).collect()
}

/// The part that a rule left of reasoning counted as hidden: a word of its first line was missed, though the model saw it still.
#[test]
fn what_a_rule_leaves_of_a_text_is_seen() {
    let policy = r#"{"compress_reasoning":true,"compress_reasoning.max_tokens":40,"compress_reasoning.turns_min":1,
        "truncate":true,"truncate.max_tokens":40,"truncate.turns_min":1,"truncate.tools":["grep"]}"#;
    let mut tape = Tape::of_test_tools("left");
    let policy = Policy::from_json(policy).unwrap();
    tape.payload(acpdb_engine::event::PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
    let lines =
        |word: &str| (0..40).map(|n| format!("{word}_{n} is told here")).collect::<Vec<_>>().join("\n");
    tape.entry(Entry::step("s1"));
    let thought = vec![PartEntry::reasoning(lines("thought"), None)];
    tape.entry(Entry::message_parts("m1", Role::Assistant, thought));
    tape.entry(Entry::tool_started("c1", "grep", r#"{"pattern":"x"}"#));
    tape.entry(Entry::tool_completed("c1", lines("found")));
    tape.entry(Entry::step("s2"));
    tape.entry(Entry::step("s3"));
    tape.entry(Entry::message("m2", Role::Assistant, "thought_0 and thought_20, found_0 and found_20"));
    tape.entry(Entry::step("s4"));
    let recording = SessionRecording::of(tape.stream(), tape.events().to_vec(), &|body| tape.body(body));
    let outcome = run(&recording, &setup(None, ServeMode::Eager));
    let missed = outcome.missed.iter().map(|it| format!("{}: {}", it.rule, it.words.join(" ")));
    assert_eq!(missed.collect::<Vec<_>>(), ["compress_reasoning: thought_20", "truncate: found_20"]);
}

const EDITS: &str = "1 user what does a do?
    1 read a ok
    2 read b ok
    3 edit a ok
    4 read a ok
    5 write b ok
    6 turn
    7 turn";

#[test]
fn doing_nothing_costs_what_everything_costs() {
    let played = Script::parse(EDITS).play(&Policy::default());
    let recording = recording(&played);
    let nothing = run(&recording, &Setup::nothing(None));
    assert_eq!(nothing.requests.len(), 7);
    assert_eq!((nothing.hidden_count, nothing.pointed_count), (0, 0));
    assert!(nothing.requests.windows(2).all(|pair| pair[0].tokens <= pair[1].tokens));
    assert!(nothing.requests[0].cold && nothing.requests[0].read == 0);
    // Afterwards all tokens that were sent before are read.
    for pair in nothing.requests.windows(2) {
        assert_eq!(pair[1].read, pair[0].tokens);
    }
}

/// A session with pauses between its requests, in seconds.
fn paused(pauses: &[i64]) -> SessionRecording {
    let lines: Vec<String> = (1..=pauses.len()).map(|turn| format!("{turn} read f{turn} ok")).collect();
    let played = Script::parse(&lines.join("\n")).play(&Policy::default());
    let tape = &played.tape;
    let mut time = Micros(1_000_000_000_000);
    let mut pauses = pauses.iter();
    let mut events = tape.events().to_vec();
    for recorded in &mut events {
        if matches!(recorded.event.payload, Payload::TurnStarted(_)) {
            time = Micros(time.0 + pauses.next().copied().unwrap_or(0) * 1_000_000);
        }
        recorded.event.host_time = Some(time);
    }
    SessionRecording::of(tape.stream(), events, &|body| tape.body(body))
}

#[test]
fn a_cache_that_is_not_read_for_its_lifetime_is_cold() {
    let outcome = run(&paused(&[0, 1, 1, 400, 800, 2000, 1]), &Setup::nothing(Some(Prices::default())));
    let is_cold: Vec<bool> = outcome.requests.iter().map(|it| it.cold).collect();
    assert_eq!(is_cold, [true, false, false, true, true, true, false]);
}

#[test]
fn many_setups_at_once_are_each_alone() {
    let recording = paused(&[0, 1, 400, 1, 2]);
    let economy = Arc::new(Policy::preset("economy").unwrap());
    let acp = Arc::new(Policy::default());
    let mut setups = vec![Setup::nothing(None)];
    for policy in [&acp, &economy, &acp] {
        for mode in ServeMode::ALL {
            setups.push(Setup { policy: Some(Arc::clone(policy)), ..setup(None, *mode) });
        }
    }
    setups.push(setup(None, ServeMode::Batched));
    let alone: Vec<SimulationResult> = setups.iter().map(|setup| run(&recording, setup)).collect();
    assert_eq!(run_all(&recording, &setups), alone);
}

#[test]
fn the_policy_in_force_asked_for_by_name_is_what_is() {
    let played = Script::parse(EDITS).play(&Policy::default());
    let recording = recording(&played);
    for mode in ServeMode::ALL {
        let recorded = run(&recording, &setup(None, *mode));
        assert_eq!(recorded, run(&recording, &setup(Some(Policy::default()), *mode)));
    }
}

#[test]
fn eager_rewrites_what_batched_leaves() {
    let played = Script::parse(EDITS).play(&Policy::default());
    let recording = recording(&played);
    let rewrites = |policy: Policy, mode| {
        let outcome = run(&recording, &setup(Some(policy), mode));
        outcome.requests.iter().filter(|request| request.rewritten).count()
    };
    assert_eq!(rewrites(Policy::default(), ServeMode::Eager), 2);
    assert_eq!(rewrites(Policy::default(), ServeMode::AppendOnly), 0);
    let mut cold = Policy::default();
    cold.serve.rule = FlushRule::Cold;
    assert_eq!(rewrites(cold, ServeMode::Batched), 0);
}

proptest! {
    #[test]
    fn an_eager_simulation_of_what_is_in_force_sends_what_is_current(
        numbers in prop::collection::vec(any::<u16>(), 0..60),
    ) {
        let mut policy = Policy::default();
        policy.serve.pointing = false;
        let played = Script::from_numbers(&numbers).play(&policy);
        // Policies of the script have pointers, which make an output shorter than it is in the current context.
        prop_assume!(!played.tape.events().iter().any(|recorded| match &recorded.event.payload {
            Payload::PolicySet(set) => {
                Policy::from_json(&set.policy).is_ok_and(|policy| policy.serve.pointing)
            }
            _ => false,
        }));
        let recording = recording(&played);
        let outcome = run(&recording, &setup(None, ServeMode::Eager));
        let sent: Vec<u64> =
            outcome.requests.iter().map(|request| request.tokens - recording.prefix_tokens).collect();
        prop_assert_eq!(sent, tokens_at_steps(&played));
    }

    #[test]
    fn whatever_is_simulated_ends_and_reads_no_more_than_it_sends(
        numbers in prop::collection::vec(any::<u16>(), 0..60),
        preset in prop::sample::select(acpdb_engine::fold::policy::PRESETS),
    ) {
        let played = Script::from_numbers(&numbers).play(&Policy::default());
        let recording = recording(&played);
        let nothing = run(&recording, &Setup::nothing(None));
        for mode in ServeMode::ALL {
            let outcome = run(&recording, &setup(Policy::preset(preset), *mode));
            prop_assert_eq!(outcome.requests.len(), nothing.requests.len());
            for request in &outcome.requests {
                prop_assert!(request.read <= request.tokens);
                prop_assert!(request.price.is_finite() && request.price >= 0.0);
            }
            prop_assert!(outcome.needed_count <= outcome.hidden_count);
            check_parts(&outcome);
        }
    }
}

/// A cache that held the prefix since an earlier session, then lost half of the tokens that were sent, then had no report.
#[test]
fn a_cache_answers_as_it_did_when_the_session_was_recorded() {
    use acpdb_engine::entry::{Entry, fact};
    use acpdb_engine::event::{Report, Usage};
    let mut tape = acpdb_engine::testing::Tape::of_test_tools("told");
    for (key, usage) in [("s1", Some((1_000, 1_000))), ("s2", Some((2_151, 717))), ("s3", None)] {
        tape.entry(Entry::step(key));
        tape.entry(Entry::tool_started(key, "read", format!("{{\"filePath\":\"{key}\"}}")));
        if let Some((input, cache_read)) = usage {
            let usage = Usage {
                input: Some(input),
                cache_read: Some(cache_read),
                output: Some(9),
                ..Usage::default()
            };
            // Some hosts name the end by another key than the step.
            let key = if key == "s2" { "m2".to_owned() } else { key.to_owned() };
            tape.entry(fact::MessageFinished { key, report: Report { usage, ..Report::default() } });
        }
        tape.entry(Entry::tool_completed(key, "fn main() {}\n".repeat(200)));
    }
    let mut recording = SessionRecording::of(tape.stream(), tape.events().to_vec(), &|body| tape.body(body));
    let nothing = run(&recording, &Setup::nothing(None));
    let always: Vec<u64> = nothing.requests.iter().map(|request| request.read).collect();
    assert_eq!((recording.prefix_tokens, always[0], nothing.requests[1].tokens), (2_000, 0, 2_868));
    recording.answer_as_recorded(&nothing);
    let told = run(&recording, &Setup::nothing(None));
    let [first, second, third] = &*told.requests else { panic!("{told:?}") };
    assert_eq!(first.read, 1_000, "the prefix, as far as it was read");
    assert_eq!(second.read, second.tokens / 4, "a quarter of what was sent");
    assert_eq!(third.read, always[2], "nothing is told of it");
    assert!((recording.told_price(&told) - first.price - second.price).abs() < 1e-6);
    assert!(recording.told_price(&told) < told.price());
}

/// Claude's requests are longer than the estimate of their texts: 1.12 tokens for each, and 100 a step.
#[test]
fn requests_are_as_long_as_the_session_s_model_counts_them() {
    use acpdb_engine::entry::{Entry, fact};
    use acpdb_engine::event::{Report, Usage};
    let mut tape = acpdb_engine::testing::Tape::of_test_tools("sizes");
    for key in ["s1", "s2", "s3"] {
        tape.entry(Entry::step(key));
        tape.entry(Entry::tool_started(key, "read", format!("{{\"filePath\":\"{key}\"}}")));
        tape.entry(Entry::tool_completed(key, "fn main() {}\n".repeat(200)));
        let usage = Usage { input: Some(20_000), output: Some(9), ..Usage::default() };
        let model = Some("m-2".to_owned());
        tape.entry(fact::MessageFinished {
            key: key.into(),
            report: Report { usage, model, ..Report::default() },
        });
    }
    let told = |table: &str| {
        let mut recording =
            SessionRecording::of(tape.stream(), tape.events().to_vec(), &|body| tape.body(body));
        if !table.is_empty() {
            recording.count_as(&crate::cost::PriceTable::from_toml(table).unwrap());
        }
        run(&recording, &Setup::nothing(None)).requests.iter().map(|it| it.tokens).collect::<Vec<_>>()
    };
    let table = |rest: &str| {
        format!(
            "checked = \"today\"\n[provider.p]\nsource = \"s\"\nread = 0.1\nwrite = 1.0\nttl_seconds = 1\n{rest}\n\
             [[model]]\nprovider = \"p\"\nnames = [\"m-2\"]\ninput = 1.0\noutput = 1.0\n"
        )
    };
    let plain = told("");
    assert_eq!(told(&table("")), plain, "nothing is said of the model");
    let twice = told(&table("tokens = 2.0\nstep_tokens = 7"));
    for (step, (plain_tokens, tokens)) in plain.iter().zip(&twice).enumerate() {
        let shown = plain_tokens - plain[0];
        let expected = twice[0] + 2 * shown + 7 * step as u64;
        assert!(tokens.abs_diff(expected) <= 6, "step {step}: {tokens}, not {expected}");
    }
    assert_eq!(plain[0], 20_000, "the first request is as long as it was told");
    assert_eq!(twice[0], 20_000, "however its texts are counted");
}

#[test]
fn prompts_that_repeat_are_found_by_their_texts() {
    let long = "Look at the tests first, and say what fails. ".repeat(20);
    let mut tape = Tape::of_test_tools("repeats");
    // Prompts of the newest steps are young.
    for (step, said) in [&*long, "Go on.", &*long, "Go, on", "1", "2", "3", "4"].into_iter().enumerate() {
        tape.entry(Entry::message(format!("p{step}"), Role::User, said));
        tape.entry(Entry::step(format!("s{step}")));
        tape.entry(Entry::message(format!("a{step}"), Role::Assistant, "Done."));
    }
    let recording = SessionRecording::of(tape.stream(), tape.events().to_vec(), &|body| tape.body(body));
    let could = recording.host_could_by(&|body| tape.body(body), &run(&recording, &Setup::nothing(None)));
    assert_eq!(could.prompts_repeated, 1);
    assert!(could.repeated > 0.0, "{could:?}");
}

/// The parts of a price are the price, whatever is hidden and rewritten.
fn check_parts(outcome: &SimulationResult) {
    let parts = outcome.bill_parts();
    let old: f64 = {
        let old = &parts.old_items;
        let outputs = old.reads + old.searches + old.outputs;
        old.prompts + old.answers + old.reasoning + outputs + old.changes + old.inputs
    };
    let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * one.abs().max(1.0);
    assert!(near(parts.total(), outcome.price_with_fetches()), "{parts:?} {}", outcome.price_with_fetches());
    assert!(old <= parts.old + 1e-6, "{parts:?}");
    let least = [parts.prefix, parts.young, parts.old, parts.rewrites, parts.fetched];
    assert!(least.iter().all(|part| *part >= -1e-9), "{parts:?}");
}
