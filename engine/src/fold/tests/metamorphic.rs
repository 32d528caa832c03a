//! Changes of a session that must not change conclusions: other names, other work in between, more protection.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::laws::{Rules, presets, scripts, text_of};
use crate::entry::StreamInfo;
use crate::event::{Payload, PolicySet, Recorded, TurnKind};
use crate::fold::policy::PRESETS;
use crate::fold::{EdgeView, Policy, State, World};
use crate::ids::{Seq, StreamId};
use crate::testing::script::Played;
use crate::testing::{Script, Step};

/// Steps that ask for an act; whether it is done depends on hidden items.
const ACTS: [&str; 6] = ["restore", "keep", "discard", "distill", "pin", "unpin"];

fn folded(events: &[Recorded]) -> World {
    let mut world = World::default();
    for recorded in events {
        world.apply(recorded);
    }
    world
}

fn without(mut script: Script, verbs: &[&str]) -> Script {
    script.steps.retain(|step| !verbs.iter().any(|verb| step.what.starts_with(verb)));
    script
}

/// Edges by the names of their ends, in order; values that depend on the number of events are left out.
fn named_edges(played: &Played) -> Vec<String> {
    let name = |edge: &EdgeView| {
        let new = edge.new.map(|new| played.name(new));
        format!("{} {new:?} {:?} t{} {}", played.name(edge.old), edge.rule, edge.turn, edge.released)
    };
    played.tape.state().edges(Seq::MAX).iter().map(name).collect()
}

/// Gives other names to everything a host names: calls, messages, steps, and the session.
fn rename(events: &[Recorded], name: impl Fn(&str) -> String) -> (Vec<Recorded>, StreamId) {
    let info = StreamInfo::session("test", name("script"));
    let new = |text: &mut String| {
        if !text.is_empty() {
            *text = name(text);
        }
    };
    let mut events = events.to_vec();
    for recorded in &mut events {
        if recorded.event.stream != StreamId::STORE {
            recorded.event.stream = info.id();
        }
        match &mut recorded.event.payload {
            Payload::SessionOpened(it) => it.name.clone_from(&info.name),
            Payload::ToolCallStarted(it) => {
                new(&mut it.call);
                it.message.iter_mut().for_each(new);
            }
            Payload::ToolCallFinished(it) => new(&mut it.call),
            Payload::MessageRecorded(it) => new(&mut it.key),
            Payload::MessageContinued(it) => new(&mut it.key),
            Payload::MessageAbandoned(it) => new(&mut it.key),
            Payload::HostCleared(it) => it.calls.iter_mut().for_each(new),
            Payload::TurnStarted(it) if it.kind == TurnKind::Step => new(&mut it.key),
            Payload::TaskChanged(it) => it.message.iter_mut().for_each(new),
            Payload::TaskEvicted(it) => it.message.iter_mut().for_each(new),
            _ => {}
        }
    }
    (events, info.id())
}

fn conclusions(state: &State, at: Seq) -> (Vec<EdgeView>, Vec<crate::fold::Ix>, Vec<String>) {
    let faces = state.items(at).map(|ix| {
        let item = state.item(ix, at).unwrap();
        format!("{:?} {:?}", item.input.state, item.output.state)
    });
    (state.edges(at), state.current(at), faces.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::testing::cases(128), ..ProptestConfig::default() })]

    /// Names only name: longer ones, or names in the opposite order, change nothing.
    #[test]
    fn names_do_not_matter(script in scripts(64), Rules(policy) in presets()) {
        let played = script.play(&policy);
        let was = conclusions(played.tape.state(), Seq::MAX);
        let longer = |name: &str| format!("host/{name}.renamed");
        let turned = |name: &str| name.bytes().map(|byte| char::from(255 - byte)).collect::<String>();
        for (events, stream) in [rename(played.tape.events(), longer), rename(played.tape.events(), turned)] {
            let world = folded(&events);
            prop_assert_eq!(&conclusions(world.stream(stream).unwrap(), Seq::MAX), &was, "{}", text_of(&script));
        }
    }

    /// Calls of another tool with parameters and files of their own, in the same turns, change no edge.
    #[test]
    fn other_work_changes_no_edge(script in scripts(48), Rules(policy) in presets(), every in 1..5_usize) {
        let was = named_edges(&script.play(&policy));
        let mut longer = Script::default();
        for (place, step) in script.steps.iter().enumerate() {
            if place % every == 0 {
                longer.steps.push(Step { turn: step.turn, what: format!("aside {place}") });
            }
            longer.steps.push(step.clone());
        }
        prop_assert_eq!(named_edges(&longer.play(&policy)), was, "{}", text_of(&script));
    }

    /// In turns of their own they change no edge either, where no rule counts turns that go by.
    #[test]
    fn other_work_in_turns_of_its_own_changes_no_edge(script in scripts(48), preset in 0..PRESETS.len()) {
        let script = without(script, &["policy"]);
        let mut policy = Policy::preset(PRESETS[preset]).unwrap();
        let keys: serde_json::Value = serde_json::from_str(r#"{"file.edit_quiet_steps":0}"#).unwrap();
        policy.change(keys.as_object().unwrap()).unwrap();
        let turns = |edges: Vec<String>| -> Vec<String> {
            edges.into_iter().map(|edge| edge.split(' ').filter(|word| !word.starts_with('t')).collect::<Vec<_>>().join(" ")).collect()
        };
        let was = turns(named_edges(&script.play(&policy)));
        let mut longer = Script::default();
        let mut turn = 0;
        for (place, step) in script.steps.iter().enumerate() {
            if step.turn != turn {
                turn = step.turn;
                longer.steps.push(Step { turn: 2 * turn - 1, what: format!("aside {place}") });
            }
            longer.steps.push(Step { turn: 2 * turn, what: step.what.clone() });
        }
        prop_assert_eq!(turns(named_edges(&longer.play(&policy))), was, "{}", text_of(&script));
    }

    /// With every rule off nothing is superseded, though rules may run.
    #[test]
    fn no_rule_no_edge(script in scripts(64)) {
        let script = without(script, &["policy"]);
        let policy = Policy::from_json(
            r#"{"repeat":"off","file.write_clears":[],"file.edit_clears":[],"file.delete_clears":[],"file.read_clears":[],"file.search_clears":[],"todo":false}"#,
        ).unwrap();
        prop_assert!(policy.automatic);
        prop_assert!(script.play(&policy).tape.state().edges(Seq::MAX).is_empty(), "{}", text_of(&script));
    }

    /// A list of tools, a pattern of files, or pins: each item that is superseded with them is superseded without them.
    #[test]
    fn protection_only_takes_edges_away(script in scripts(64), preset in 0..PRESETS.len(), which in 0..3_usize) {
        let script = without(without(script, &["policy"]), &ACTS);
        let mut open = Policy::preset(PRESETS[preset]).unwrap();
        let change = |policy: &mut Policy, keys: &str| {
            let keys: serde_json::Value = serde_json::from_str(keys).unwrap();
            policy.change(keys.as_object().unwrap()).unwrap();
        };
        change(&mut open, r#"{"protected_tools":[],"protected_files":[]}"#);
        let mut guarded = open.clone();
        let mut pinned = script.clone();
        match which {
            0 => change(&mut guarded, r#"{"protected_tools":["re?d","edit"]}"#),
            1 => change(&mut guarded, r#"{"protected_files":["**/a"]}"#),
            _ => {
                let mut calls = 0;
                pinned.steps.clear();
                for step in &script.steps {
                    pinned.steps.push(step.clone());
                    if ["read", "edit", "write", "todowrite"].iter().any(|tool| step.what.starts_with(&format!("{tool} "))) {
                        let turn = step.turn;
                        calls += 1;
                        if calls % 2 == 0 {
                            // The newest call; it is named by its number among all calls.
                            let number = Script { steps: pinned.steps.clone() }.play(&open).calls.len();
                            pinned.steps.push(Step { turn, what: format!("pin c{number}") });
                        }
                    }
                }
            }
        }
        let olds = |script: &Script, policy: &Policy| -> BTreeSet<String> {
            let played = script.play(policy);
            played.tape.state().edges(Seq::MAX).iter().map(|edge| played.name(edge.old)).collect()
        };
        let (with, without) = (olds(&pinned, &guarded), olds(&script, &open));
        prop_assert!(with.is_subset(&without), "{:?} not in {:?} of\n{}", with, without, text_of(&pinned));
    }

    /// Folding stored events under the policy in force gives the present state; under another one, the state that it would have made.
    #[test]
    fn simulating_is_folding(script in scripts(64), Rules(policy) in presets(), Rules(other) in presets()) {
        let script = without(without(script, &["policy"]), &ACTS);
        let under = |played: &Played, policy: &Policy| {
            let mut events = played.tape.events().to_vec();
            for recorded in &mut events {
                if let Payload::PolicySet(set) = &mut recorded.event.payload {
                    *set = PolicySet { policy: policy.to_json(), reason: None };
                }
            }
            let world = folded(&events);
            let state = world.stream(played.tape.stream()).unwrap();
            state.digest(Seq::MAX)
        };
        let (one, two) = (script.play(&policy), script.play(&other));
        prop_assert_eq!(under(&one, &policy), one.tape.state().digest(Seq::MAX));
        prop_assert_eq!(under(&one, &other), two.tape.state().digest(Seq::MAX), "{}", text_of(&script));
    }
}
