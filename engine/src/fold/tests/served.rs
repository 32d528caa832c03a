//! The served context: changes that wait, changes that cannot wait, and that sent text never changes in between.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::laws::{presets, scripts, text_of};
use crate::event::Face;
use crate::fold::{Policy, State};
use crate::ids::Seq;
use crate::testing::script::Played;
use crate::testing::{Script, Step};

/// The sent context of a stream at `at`: every item, every face, and the placeholder by which it is shown.
fn sent(state: &State, at: Seq) -> Vec<String> {
    let line = |place: &crate::fold::ServedPlace| {
        let face = |face: Face| {
            let moment = place.at(face);
            let placeholder = state.placeholder(place.ix, face, moment);
            format!("{:?} {:?}", state.face(place.ix, face, moment).state, placeholder.map(|it| it.render))
        };
        format!("{:?} {} | {}", state.item_id(place.ix), face(Face::Input), face(Face::Output))
    };
    state.served_places(at).iter().map(line).collect()
}

fn check(script: &str, expected: &Expect) {
    let played = Script::parse(script).play(&Policy::default());
    let state = played.tape.state();
    let mut report = String::new();
    for (seq, context) in state.served(Seq::MAX) {
        report.push_str(&format!("{} epoch {}:", state.turn(*seq), context.epoch));
        for place in state.served_places(*seq) {
            let item = state.item_id(place.ix).unwrap();
            let shown = state.face(place.ix, Face::Output, place.output_at).state;
            report.push_str(&format!(" {} {}", played.name(item), format!("{shown:?}").to_lowercase()));
        }
        report.push('\n');
    }
    for item in state.pending(Seq::MAX) {
        report.push_str(&format!("pending {} gains {}\n", played.name(item.item), item.gain()));
    }
    expected.assert_eq(&report);
}

#[test]
fn what_was_sent_stays_until_a_rebase() {
    check(
        "1 read a ok
         1 serve
         2 write a ok
         2 serve
         3 flush
         3 serve",
        &expect![[r#"
            t1 epoch 0: c1 whole
            t2 epoch 0: c1 whole c2 whole
            t3 epoch 1: c1 tombstone c2 whole
        "#]],
    );
}

#[test]
fn what_was_never_sent_is_hidden_at_once() {
    check(
        "1 read a ok
         2 write a ok
         2 serve",
        &expect![[r#"
            t2 epoch 0: c1 tombstone c2 whole
        "#]],
    );
}

#[test]
fn a_rebase_of_one_item_leaves_the_others() {
    check(
        "1 read a ok
         1 read b ok
         1 serve
         2 write a ok
         2 write b ok
         2 serve
         3 flush c2
         3 serve",
        &expect![[r#"
            t1 epoch 0: c1 whole c2 whole
            t2 epoch 0: c1 whole c2 whole c3 whole c4 whole
            t3 epoch 1: c1 whole c2 tombstone c3 whole c4 whole
            pending c1 gains 459
        "#]],
    );
}

#[test]
fn what_someone_asks_to_see_is_seen_at_once() {
    check(
        "1 read a ok
         2 write a ok
         2 serve
         3 restore c1
         3 serve
         4 discard c1
         4 serve",
        &expect![[r#"
            t2 epoch 0: c1 tombstone c2 whole
            t3 epoch 0: c1 whole c2 whole
            t4 epoch 0: c1 whole c2 whole
            pending c1 gains 444
        "#]],
    );
}

#[test]
fn a_host_that_replaces_its_context_is_followed_at_once() {
    check(
        "1 read a ok
         1 serve
         2 clear c1
         2 serve
         3 compact
         3 read b ok
         3 serve",
        &expect![[r#"
            t1 epoch 0: c1 whole
            t2 epoch 0: c1 tombstone
            t3 epoch 0: c2 whole
        "#]],
    );
}

#[test]
fn the_model_is_known_to_have_lost_an_item_when_it_was_sent_without_it() {
    let script = "1 read a ok
         1 serve
         2 write a ok
         2 serve
         5 flush
         6 serve";
    let played = Script::parse(script).play(&Policy::default());
    let changes = played.tape.state().served_changes(played.ix("c1").unwrap(), Seq::MAX);
    let seen: Vec<String> =
        changes.iter().map(|change| format!("from turn {} {:?}", change.turn, change.state)).collect();
    expect![[r#"
        [
            "from turn t1 Whole",
            "from turn t6 Tombstone",
        ]
    "#]]
    .assert_debug_eq(&seen);
}

/// A batch hid one output of a task, and the output that bears the summary went along at once. The record of the bearer had it
/// as whole all the same; it says now how the context shows it.
#[test]
fn the_bearer_of_a_summary_is_known_to_have_gone_along() {
    let script = "1 task T start
         2 read a open
         2 read b ok
         3 finish c1 ok
         3 serve
         4 task T done
         4 serve
         5 flush c2
         5 serve";
    check(
        script,
        &expect![[r#"
            t3 epoch 0: c1 whole c2 whole
            t4 epoch 0: c1 whole c2 whole
            t5 epoch 1: c1 summary c2 tombstone
        "#]],
    );
    let played = Script::parse(script).play(&Policy::default());
    let state = played.tape.state();
    let seen = |name: &str| {
        let changes = state.served_changes(played.ix(name).unwrap(), Seq::MAX);
        changes.iter().map(|change| format!("{} {:?}", change.turn, change.state)).collect::<Vec<_>>()
    };
    assert_eq!(seen("c1"), ["t3 Whole", "t5 Summary"]);
    assert_eq!(seen("c2"), ["t3 Whole", "t5 Tombstone"]);
}

/// A later call had hidden the read of a completed task, too. The task went on, and the read became a tombstone at once, though the model had never
/// been sent the summary.
#[test]
fn a_task_that_goes_on_changes_nothing_that_was_sent_whole() {
    let script = Script::parse(
        "1 task T start
         1 read a ok
         1 serve
         1 task T done
         1 serve
         1 read a ok
         1 serve
         1 task T start
         1 serve
         2 flush
         2 serve",
    );
    let played = script.play(&Policy::preset("dcp").unwrap());
    let state = played.tape.state();
    let seen = state.served_changes(played.ix("c1").unwrap(), Seq::MAX);
    let seen: Vec<_> = seen.iter().map(|change| format!("{} {:?}", change.turn, change.state)).collect();
    assert_eq!(seen, ["t1 Whole", "t2 Tombstone"]);
    assert_prefixes(&script, &played);
}

/// Verbs that change sent text without a rebase: the host or a request asked for it.
const AT_ONCE: &[&str] = &["restore", "keep", "clear", "compact", "order", "rewind", "erase", "finish"];

fn with_serves(script: &Script, flushes: &[bool]) -> Script {
    let mut steps = Vec::new();
    for (step, flush) in script.steps.iter().zip(flushes.iter().chain(std::iter::repeat(&false))) {
        let serve = |what: &str| Step { turn: step.turn, what: what.to_owned() };
        steps.push(step.clone());
        if *flush {
            steps.push(serve("flush"));
        }
        steps.push(serve("serve"));
    }
    Script { steps }
}

/// Between two rebases each served context begins with the one before it. A completed task that goes on shows again what it hid, and takes back nothing
/// that was sent whole.
fn assert_prefixes(script: &Script, played: &Played) {
    let state = played.tape.state();
    let (mut at_once, mut goes_on) = (false, false);
    let mut before: Vec<String> = Vec::new();
    let mut served = state.served(Seq::MAX).iter();
    for step in &script.steps {
        let verb = step.what.split(' ').next().unwrap_or_default();
        at_once |= AT_ONCE.contains(&verb) || verb == "flush";
        goes_on |= verb == "task" && !step.what.ends_with("done");
        if verb != "serve" {
            continue;
        }
        let (seq, _) = served.next().unwrap();
        let now = sent(state, *seq);
        let stays = |(one, other): (&String, &String)| {
            one == other || goes_on && !one.ends_with("Whole None | Whole None")
        };
        let begins = now.len() >= before.len() && before.iter().zip(&now).all(stays);
        assert!(at_once || begins, "at {seq}:\n{before:#?}\n{now:#?}\n{}", text_of(script));
        before = now;
        (at_once, goes_on) = (false, false);
    }
}

proptest! {
    #[test]
    fn each_served_context_begins_with_the_one_before(
        script in scripts(60),
        flushes in prop::collection::vec(prop::bool::weighted(0.1), 60),
        policy in presets(),
    ) {
        let script = with_serves(&script, &flushes);
        let played = script.play(&policy.0);
        assert_prefixes(&script, &played);
    }

    #[test]
    fn a_served_context_of_the_past_is_that_of_the_prefix(
        script in scripts(40),
        flushes in prop::collection::vec(prop::bool::weighted(0.1), 40),
        policy in presets(),
    ) {
        let script = with_serves(&script, &flushes);
        let played = script.play(&policy.0);
        let head = played.tape.head();
        for seq in (1..=head.get()).step_by(7).map(Seq) {
            let world = played.tape.refold(seq);
            if let Some(then) = world.stream(played.tape.stream()) {
                prop_assert_eq!(sent(then, seq), sent(played.tape.state(), seq), "{}", text_of(&script));
                prop_assert_eq!(then.pending(seq), played.tape.state().pending(seq));
            }
        }
    }

    /// The changes of an item, asked of the item, agree with the contexts that were sent; batches of some items too.
    #[test]
    fn an_item_is_known_to_have_been_sent_as_it_stood_in_the_context(
        script in scripts(60),
        flushes in prop::collection::vec(prop::option::weighted(0.3, 1..12_u32), 60),
        policy in presets(),
    ) {
        let mut script = with_serves(&script, &flushes.iter().map(Option::is_some).collect::<Vec<_>>());
        let asked = script.steps.iter_mut().filter(|step| step.what == "flush");
        for (step, call) in asked.zip(flushes.iter().flatten()) {
            step.what = format!("flush c{call}");
        }
        let played = script.play(&policy.0);
        let state = played.tape.state();
        let mut known = std::collections::BTreeMap::new();
        for (seq, _) in state.served(Seq::MAX) {
            for place in state.served_places(*seq) {
                let changes = known.entry(place.ix).or_insert_with(|| state.served_changes(place.ix, Seq::MAX));
                let said = changes.iter().rev().find(|change| change.seq <= *seq).map(|change| change.state);
                let sent = state.face(place.ix, Face::Output, place.output_at).state;
                prop_assert_eq!(said, Some(sent), "{:?} in {}\n{}", place, seq, text_of(&script));
            }
        }
    }

    #[test]
    fn a_rebase_of_everything_leaves_nothing_pending(script in scripts(60), policy in presets()) {
        let mut script = with_serves(&script, &[]);
        script.steps.push(Step { turn: 100_000, what: "flush".to_owned() });
        let played = script.play(&policy.0);
        let state = played.tape.state();
        prop_assert_eq!(state.pending(Seq::MAX), Vec::new(), "{}", text_of(&script));
    }
}
