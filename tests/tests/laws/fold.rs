//! Laws of the fold, on sessions with every kind of step, under every preset.

use acpdb_engine::command::{Command, ContextAction, Target};
use acpdb_engine::event::{Outcome, Payload, Recorded, samples};
use acpdb_engine::fold::{CauseView, FaceState, Policy, RuleKind, State, World};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::testing::Script;
use acpdb_engine::testing::script::Played;
use acpdb_engine::verify::{payload_round_trip, state_contradictions, world_contradictions};
use acpdb_tests::support::{cases, folded};
use proptest::prelude::*;

const PRESETS: [&str; 9] =
    ["acp", "balanced", "careful", "acp-head", "dcp", "dcp-supersede-reads", "economy", "calm", "safe"];

fn numbers() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 1..50)
}

fn played(numbers: &[u16], preset: usize) -> Played {
    let policy = Policy::preset(PRESETS[preset % PRESETS.len()]).unwrap();
    Script::from_numbers(numbers).play(&policy)
}

fn state(world: &World, stream: StreamId) -> &State {
    world.stream(stream).unwrap()
}

/// The rules for every superseder, judged from the events alone.
fn superseders_are_proper(events: &[Recorded], state: &State, at: Seq) -> Result<(), String> {
    for edge in state.edges(at) {
        let Some(new) = edge.new else { continue };
        let started = |item: acpdb_engine::ids::ItemId| {
            events.iter().find_map(|recorded| match &recorded.event.payload {
                Payload::ToolCallStarted(started) if recorded.seq == item.seq => Some(started.call.clone()),
                _ => None,
            })
        };
        let (Some(old_call), Some(new_call)) = (started(edge.old), started(new)) else {
            return Err(format!("{edge:?} is not between calls"));
        };
        let finished = |call: &str, before: Seq| {
            events.iter().take_while(|recorded| recorded.seq <= before).find_map(|recorded| {
                match &recorded.event.payload {
                    Payload::ToolCallFinished(it) if it.call == call => Some((recorded.seq, it.outcome)),
                    _ => None,
                }
            })
        };
        if !matches!(finished(&new_call, edge.seq), Some((_, Outcome::Completed))) {
            return Err(format!("{edge:?}: the superseder had not completed"));
        }
        let Some((_, outcome)) = finished(&old_call, edge.seq) else {
            return Err(format!("{edge:?}: the superseded call was pending"));
        };
        // `failed` and `retry` are the only ways for a failed call to be superseded.
        if outcome != Outcome::Completed && edge.rule != RuleKind::RETRY && !state.policy(edge.seq).failed {
            return Err(format!("{edge:?}: a failed call was superseded"));
        }
        if edge.seq <= edge.old.seq {
            return Err(format!("{edge:?}: it came about before the older call"));
        }
        if matches!(
            state.find(new).and_then(|ix| state.item(ix, at)).and_then(|item| item.output.cause),
            Some(CauseView::OffBranch { .. })
        ) {
            return Err(format!("{edge:?}: the superseder is off the branch"));
        }
    }
    Ok(())
}

/// No call leads back to itself along the edges that hide.
fn chains_end(state: &State, at: Seq) -> bool {
    let edges: Vec<_> = state.edges(at).into_iter().filter(|edge| !edge.released).collect();
    state.items(at).all(|ix| {
        let mut item = state.item_id(ix);
        let mut steps = 0;
        while let Some(next) = edges.iter().find(|edge| Some(edge.old) == item).and_then(|edge| edge.new) {
            item = Some(next);
            steps += 1;
            if steps > edges.len() {
                return false;
            }
        }
        true
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(30), failure_persistence: None, ..ProptestConfig::default() })]

    /// Laws 1 and 2: live = replay = split, and reading at a seq = folding up to it, for every seq.
    #[test]
    fn a_view_at_any_seq_is_the_fold_of_the_prefix(numbers in numbers(), preset in 0..6_usize, cut in any::<prop::sample::Index>()) {
        let played = played(&numbers, preset);
        let (tape, stream) = (&played.tape, played.tape.stream());
        let events = tape.events();
        let whole = folded(events);
        let cut = cut.index(events.len());
        let mut split = folded(&events[..cut]).clone();
        for recorded in &events[cut..] {
            split.apply(recorded);
        }
        let mut prefix = World::default();
        for recorded in events {
            prefix.apply(recorded);
            let at = recorded.seq;
            let fresh = state(&prefix, stream).digest(Seq::MAX);
            prop_assert_eq!(tape.state().digest(at), fresh, "live at {}", at);
            prop_assert_eq!(state(&whole, stream).digest(at), fresh, "replayed at {}", at);
            prop_assert_eq!(state(&split, stream).digest(at), fresh, "split after {} at {}", cut, at);
        }
    }

    /// Laws 4, 5, 7 and 11: no contradiction at any seq, nothing leaves history, each hidden face has its cause.
    #[test]
    fn nothing_contradicts_itself_at_any_seq(numbers in numbers(), preset in 0..6_usize) {
        let played = played(&numbers, preset);
        let live = played.tape.state();
        let mut known = 0;
        for recorded in played.tape.events() {
            let at = recorded.seq;
            prop_assert_eq!(world_contradictions(played.tape.world(), at), vec![]);
            prop_assert_eq!(superseders_are_proper(played.tape.events(), live, at), Ok(()));
            prop_assert!(chains_end(live, at), "a circle at {}", at);
            let items: Vec<_> = live.items(at).collect();
            prop_assert!(items.len() >= known, "an item left the history at {}", at);
            known = items.len();
            for ix in items {
                let item = live.item(ix, at).unwrap();
                for face in [&item.input, &item.output] {
                    if matches!(face.state, FaceState::Tombstone | FaceState::Summary | FaceState::Shortened) {
                        prop_assert!(face.cause.is_some(), "{} at {}", item.item, at);
                    }
                }
                if item.in_context {
                    prop_assert!(live.current(at).contains(&ix), "{} is in the context and not shown there", item.item);
                }
            }
        }
    }

    /// Law 6: a restore gives back the texts that a discard or a distill took, in their place.
    #[test]
    fn a_restore_undoes_a_discard(numbers in numbers(), call in any::<prop::sample::Index>(), distill in any::<bool>()) {
        let numbers: Vec<u16> = numbers.into_iter().filter(|number| number % 64 != 58).collect();
        let mut played = played(&numbers, 0);
        if played.calls.is_empty() {
            return Ok(());
        }
        let item = played.calls[call.index(played.calls.len())];
        let ix = played.tape.state().find(item).unwrap();
        let before = played.tape.head();
        let (was, order) = (played.tape.state().item(ix, before).unwrap(), played.tape.state().current(before));
        // Only an item that is whole and in the context can be hidden, and comes back whole.
        if was.output.state != FaceState::Whole || !was.in_context || was.output.cause.is_some() {
            return Ok(());
        }
        let act = |action, summary: Option<&str>| Command::Context {
            action,
            targets: vec![(Target::Item(item), summary.map(str::to_owned))],
            pin: false,
        };
        let hide = if distill { act(ContextAction::Distill, Some("short")) } else { act(ContextAction::Discard, None) };
        let hidden = played.tape.command(&hide).is_ok_and(|decision| !decision.drafts.is_empty());
        if !hidden {
            return Ok(());
        }
        let head = played.tape.head();
        prop_assert_ne!(played.tape.state().face(ix, acpdb_engine::event::Face::Output, head).state, FaceState::Whole);
        let _ = played.tape.command(&act(ContextAction::Restore, None)).unwrap();
        let head = played.tape.head();
        let now = played.tape.state().item(ix, head).unwrap();
        prop_assert_eq!(now.output, was.output);
        prop_assert_eq!(now.content, was.content);
        prop_assert_eq!(played.tape.state().current(head), order);
    }

    /// Law 9 for all that a session records: a decoded event equals the encoded one, and encodes alike again.
    #[test]
    fn what_is_decoded_is_what_was_encoded(numbers in numbers(), preset in 0..6_usize) {
        for recorded in played(&numbers, preset).tape.events() {
            prop_assert_eq!(payload_round_trip(&recorded.event.stamp, &recorded.event.payload), Ok(()));
        }
    }

    /// Law 9 for events that this program does not know: any bytes of an unknown kind come back as they were.
    #[test]
    fn unknown_kinds_survive(number in 3000_u16.., version in 1_u16.., bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        use acpdb_engine::codec::payload;
        let (_, decoded) = payload::decode(number, version, &bytes).unwrap();
        prop_assert_eq!(&decoded, &Payload::Unknown { number, version, bytes: bytes.clone() });
        let (again, encoded) = payload::encode(&acpdb_engine::event::Stamp::default(), &decoded).unwrap();
        prop_assert_eq!((again, encoded), (version, bytes));
    }
}

#[test]
fn one_event_of_every_kind_comes_back_as_it_was() {
    for payload in samples::payloads() {
        assert_eq!(payload_round_trip(&samples::stamp(), &payload), Ok(()), "{}", payload.label());
    }
}

/// Canary: a fold that is fed the events in a doctored order, or without one of them, has another digest.
#[test]
fn a_doctored_order_is_noticed() {
    let script = Script::parse(
        "1 read a ok
         2 read a ok
         3 edit a ok
         4 discard c2
         5 restore c2",
    );
    let played = script.play(&Policy::default());
    let events = played.tape.events();
    let digest = |events: &[Recorded]| state(&folded(events), played.tape.stream()).digest(Seq::MAX);
    let truth = played.tape.state().digest(Seq::MAX);
    assert_eq!(digest(events), truth);
    for at in 2..events.len() - 1 {
        let mut swapped = events.to_vec();
        let (one, two) = (swapped[at].event.clone(), swapped[at + 1].event.clone());
        swapped[at].event = two;
        swapped[at + 1].event = one;
        assert_ne!(digest(&swapped), truth, "events {at} and {} changed places", at + 1);
        let mut fewer = events.to_vec();
        fewer.remove(at);
        assert_ne!(digest(&fewer), truth, "event {at} is gone");
    }
}

/// Canary: edges of one session are not those of another, so a state that lies about its superseder is found out.
#[test]
fn an_improper_superseder_is_noticed() {
    let played = Script::parse("1 read a ok\n2 read a ok").play(&Policy::default());
    let events = played.tape.events();
    assert_eq!(superseders_are_proper(events, played.tape.state(), Seq::MAX), Ok(()));
    assert_eq!(state_contradictions(played.tape.state(), Seq::MAX), []);
    let mut doctored = events.to_vec();
    let last = doctored.last_mut().unwrap();
    let Payload::ToolCallFinished(finished) = &mut last.event.payload else {
        panic!("the last event is a finish")
    };
    finished.outcome = Outcome::Failed;
    assert!(superseders_are_proper(&doctored, played.tape.state(), Seq::MAX).is_err());
}
