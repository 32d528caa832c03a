//! A fork shares its parent's history up to a point: it goes on as the parent would have, and neither shows in the other.

use proptest::prelude::*;

use super::laws::{Rules, presets, text_of};
use crate::entry::StreamInfo;
use crate::event::{Face, Forked, Payload, PolicySet, Recorded, Rewound};
use crate::fold::{CauseView, FaceState, Policy, State, World};
use crate::ids::{ItemId, Seq, StreamId};
use crate::testing::{Script, Step, Tape};

/// Events that both sides have in the middle: nothing in the one stream, the fork and the parent's own life in the other.
const NOTES: u64 = 10;

/// Two worlds with equal seqs: one stream throughout, and one that is left for its fork in the middle.
struct Pair {
    one: Vec<Recorded>,
    two: Vec<Recorded>,
    parent: StreamId,
    child: StreamId,
    /// The event that forks.
    forked: Seq,
}

impl Pair {
    /// Whether the one stream rewinds at this seq.
    fn is_rewind(&self, seq: Seq) -> bool {
        let is_it =
            |event: &&Recorded| event.seq == seq && matches!(event.event.payload, Payload::Rewound(_));
        self.one.iter().any(|event| is_it(&event))
    }
}

/// Plays `script` once; from the first `note` on a fork takes over. The parent goes on, before and after the fork.
fn pair(script: &Script, policy: &Policy) -> Pair {
    let played = script.play(policy);
    let one = played.tape.events().to_vec();
    let parent = played.tape.stream();
    let mut info = StreamInfo::session("test", "branch");
    info.parent = Some((parent, None));
    let child = info.id();
    let first = one.iter().find(|recorded| matches!(recorded.event.payload, Payload::HostRecorded(_)));
    let first = first.unwrap().seq.0;
    let forked = Seq(first + 6);
    let life = Script::parse("900 read a ok\n901 edit a ok").play(policy);
    let mut life = life.tape.events().iter().filter(|recorded| {
        matches!(
            recorded.event.payload,
            Payload::TurnStarted(_) | Payload::ToolCallStarted(_) | Payload::ToolCallFinished(_)
        )
    });
    let opening = crate::command::record::opening(&info, [9; 32]).event;
    let two = one.iter().cloned().map(|mut recorded| {
        let place = recorded.seq.0.checked_sub(first);
        match place {
            Some(3) => recorded.event.payload = Payload::Rewound(Rewound { to: Seq(first / 2) }),
            Some(5) => recorded.event = opening.clone(),
            Some(6) => {
                recorded.event.stream = child;
                recorded.event.payload = Payload::Forked(Forked { from: parent, at: Seq(first - 1) });
            }
            Some(0..NOTES) => {
                if let Some(own) = life.next() {
                    recorded.event.payload = own.event.payload.clone();
                }
            }
            Some(_) if recorded.event.stream == parent => recorded.event.stream = child,
            _ => {}
        }
        recorded
    });
    Pair { two: two.collect(), one, parent, child, forked }
}

fn folded<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> World {
    let mut world = World::default();
    for recorded in events {
        world.apply(recorded);
    }
    world
}

/// The visible state, but for a fork's own: its name, its rewinds and forks, and its figures turn by turn, which
/// know nothing of the turns that the parent took back.
fn seen(state: &State, at: Seq) -> Vec<String> {
    let mut parts = Vec::new();
    state.each_visible(at, &mut |part, json| {
        if !matches!(part, "info" | "served" | "turns") {
            parts.push(format!("{part} {}", String::from_utf8_lossy(&json)).replace("script", "branch"));
        }
    });
    parts.push(format!("{:?}", state.tokens(at)));
    parts
}

/// Leaves out since when an item is hidden, if it is erased, or was hidden before the fork or by a rewind. A rewind begins anew causes
/// that had ended after its point, and a fork has never heard of those before it. The same goes for the policy of that moment.
fn without_moments(text: &str, pair: &Pair) -> String {
    let number = |rest: &str| rest.find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| end);
    let (mut plain, mut rest, mut is_older) = (String::new(), text, false);
    while let Some(place) = rest.find(r#""cause":""#) {
        let (before, after) = rest.split_at(place);
        plain.push_str(before);
        let Some((name, tail)) = after.split_once(r#"","seq":"#).filter(|(name, _)| name.len() < 30) else {
            plain.push_str(&after[..1]);
            rest = &after[1..];
            continue;
        };
        plain.push_str(name);
        let end = number(tail);
        let seq: u64 = tail[..end].parse().unwrap();
        let is_moved = seq < pair.forked.get() || pair.is_rewind(Seq(seq));
        let is_past = name.ends_with("erased") || is_moved && !name.ends_with("superseded");
        rest = if is_past { &tail[end..] } else { tail };
        if is_past {
            is_older = true;
            if let Some(turn) = rest.strip_prefix(r#","turn":"#) {
                rest = &turn[number(turn)..];
            }
        }
    }
    plain.push_str(rest);
    if is_older && let Some((kept, _)) = plain.rsplit_once(r#","policy":"#) {
        plain.truncate(kept.len());
    }
    plain
}

fn first_difference(one: &[String], two: &[String]) -> Option<String> {
    let differs = one.iter().zip(two).find(|(one, two)| one != two);
    let differs = differs.map(|(one, two)| format!("one stream: {one}\nfork:       {two}"));
    differs.or_else(|| (one.len() != two.len()).then(|| "lengths".to_owned()))
}

/// The first seq at which a fork differs from its parent, which goes on in the same way.
fn difference(script: &Script, policy: &Policy) -> Option<String> {
    let pair = pair(script, policy);
    let (one, two) = (folded(&pair.one), folded(&pair.two));
    let (one, two) = (one.stream(pair.parent).unwrap(), two.stream(pair.child).unwrap());
    pair.one.iter().filter(|recorded| recorded.seq >= pair.forked).find_map(|recorded| {
        let at = recorded.seq;
        let plain = |state: &State| -> Vec<String> {
            seen(state, at).iter().map(|text| without_moments(text, &pair)).collect()
        };
        let difference = first_difference(&plain(one), &plain(two))?;
        Some(format!("at {at} of\n{}{difference}", text_of(script)))
    })
}

/// A script whose `note`s stand after `cut` steps.
fn scripts() -> impl Strategy<Value = Script> {
    let numbers = prop::collection::vec(any::<u16>(), 1..40);
    (numbers, any::<prop::sample::Index>(), any::<bool>()).prop_map(|(numbers, cut, rewinds)| {
        let mut script = Script::from_numbers(&numbers);
        if rewinds {
            // More rewinds: nested, before the fork, and followed by a compaction.
            for (place, step) in script.steps.iter_mut().enumerate().skip(3) {
                match place % 7 {
                    3 => step.what = format!("rewind c{}", 1 + place / 4),
                    6 => step.what = "compact".to_owned(),
                    _ => {}
                }
            }
        }
        let cut = cut.index(script.steps.len() + 1);
        let turn = cut.checked_sub(1).map_or(1, |last| script.steps[last].turn);
        let notes = (0..NOTES).map(|_| Step { turn, what: "note".to_owned() });
        script.steps.splice(cut..cut, notes);
        script
    })
}

/// Sessions a law is tried on.
const CASES: u32 = 20;

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::testing::cases(CASES), ..ProptestConfig::default() })]

    /// A fork that goes on equals the parent that goes on; the parent's steps after the point do not show.
    #[test]
    fn a_fork_goes_on_as_the_parent_would_have(script in scripts(), Rules(policy) in presets()) {
        if let Some(difference) = difference(&script, &policy) {
            prop_assert!(false, "{}", difference);
        }
    }

    /// Reading a fork at a seq equals folding up to there, and no step of the fork changes the parent.
    #[test]
    fn a_fork_reads_and_ends_at_its_own_events(script in scripts(), Rules(policy) in presets()) {
        let pair = pair(&script, &policy);
        let whole = folded(&pair.two);
        let mut prefix = World::default();
        for recorded in &pair.two {
            prefix.apply(recorded);
            let at = recorded.seq;
            for (stream, since) in [(pair.parent, Seq(1)), (pair.child, pair.forked)] {
                let then = (at >= since).then(|| prefix.stream(stream)).flatten();
                let Some(then) = then else { continue };
                let now = whole.stream(stream).unwrap();
                if let Some(difference) = first_difference(&seen(then, at), &seen(now, at)) {
                    prop_assert!(false, "at {} of\n{}{}", at, text_of(&script), difference);
                }
                prop_assert_eq!(then.digest(Seq::MAX), now.digest(at));
            }
            prop_assert_eq!(crate::verify::world_contradictions(&prefix, at), vec![], "{}", text_of(&script));
        }
        let alone = folded(pair.two.iter().filter(|recorded| recorded.event.stream != pair.child));
        let (alone, beside) = (alone.stream(pair.parent).unwrap(), whole.stream(pair.parent).unwrap());
        prop_assert_eq!(alone.digest(Seq::MAX), beside.digest(Seq::MAX));
    }
}

fn face(state: &State, item: ItemId) -> (FaceState, Option<CauseView>) {
    let view = state.face(state.find(item).unwrap(), Face::Output, Seq::MAX);
    (view.state, view.cause)
}

/// The words about a task are those since it began. A fork folds the past anew and knows all its messages by then: it took the
/// newest message for the one in which the task had begun, and words that the parent hid stayed in the fork.
#[test]
fn the_words_about_a_task_begin_in_a_fork_where_they_began() {
    let notes = "1 note\n".repeat(10);
    for steps in ["1 task T0 start\n1 say words 4", "1 say words 2\n1 task T0 start\n1 say words 4"] {
        let script = Script::parse(&format!("{steps}\n1 say words 3\n{notes}1 task T0 done"));
        assert_eq!(difference(&script, &Policy::default()), None);
    }
}

/// A fork of a session that had been rewound showed the lost branch as part of its context, since the branch's items were known
/// and nothing hid them.
#[test]
fn what_was_off_the_branch_is_off_it_in_a_fork() {
    let notes = "2 note\n".repeat(10);
    let script = Script::parse(&format!("1 read a ok\n2 read b ok\n2 rewind c1\n{notes}3 read a ok"));
    let pair = pair(&script, &Policy::default());
    let world = folded(&pair.two);
    let child = world.stream(pair.child).unwrap();
    let lost =
        child.items(Seq::MAX).find(|ix| child.tool(*ix).is_some() && !child.is_in_context(*ix, Seq::MAX));
    let lost = child.item(lost.unwrap(), Seq::MAX).unwrap();
    assert_eq!((lost.keys.first().map(AsRef::as_ref), lost.output.state), (Some("b"), FaceState::Gone));
    assert_eq!(child.edges(Seq::MAX).len(), 1);
}

/// A fork made after an erasure took the erased bodies for readable.
#[test]
fn what_was_erased_is_erased_in_a_fork() {
    let notes = "2 note\n".repeat(10);
    let script = Script::parse(&format!("1 read a ok\n2 erase c1\n{notes}3 read b ok"));
    let pair = pair(&script, &Policy::default());
    let world = folded(&pair.two);
    let child = world.stream(pair.child).unwrap();
    let first = child.item(child.current(Seq::MAX)[0], Seq::MAX).unwrap();
    assert!(matches!(first.input.cause, Some(CauseView::Erased { seq }) if seq == pair.forked), "{first:?}");
}

/// A fork learns of an erasure when it begins, so a cause that the parent met later came first there: the figures of the two differed.
#[test]
fn figures_of_what_was_erased_are_the_same_in_a_fork() {
    let notes = "1 note\n".repeat(10);
    for acts in ["1 erase c1\n1 discard c1", "1 discard c1\n1 erase c1"] {
        let script = Script::parse(&format!("1 read a ok\n{acts}\n{notes}1 read b ok"));
        assert_eq!(difference(&script, &Policy::default()), None);
        let pair = pair(&script, &Policy::default());
        let figures = folded(&pair.one).stream(pair.parent).unwrap().stats(Seq::MAX);
        assert_eq!(figures.of(crate::fold::StatsKind::Erased).count, 1);
    }
}

/// A fork went on under the store's policy of the point it shares, though the store had another one by then.
#[test]
fn a_fork_is_under_the_policy_of_its_store() {
    let mut tape = Tape::of_test_tools("parent");
    let set = |policy: &str| PolicySet { policy: Policy::from_json(policy).unwrap().to_json(), reason: None };
    tape.payload_in(StreamId::STORE, set(r#"{"automatic":false}"#), Vec::new());
    let at = tape.head();
    tape.payload_in(StreamId::STORE, set(r#""careful""#), Vec::new());
    let info = StreamInfo::session("test", "child");
    let child = info.id();
    tape.payload_in(child, crate::command::record::opening(&info, [1; 32]).event.payload, Vec::new());
    let forked = tape.payload_in(child, Forked { from: tape.stream(), at }, Vec::new());
    let state = tape.world().stream(child).unwrap();
    assert_eq!(**state.policy(Seq::MAX), Policy::preset("careful").unwrap());
    assert!(!state.policy(at).automatic);
    assert!(forked > at);
}

/// Restoring in a fork is the fork's affair.
#[test]
fn a_restore_in_a_fork_leaves_the_parent_alone() {
    let notes = "2 note\n".repeat(10);
    let script = Script::parse(&format!("1 read a ok\n2 read a ok\n{notes}3 restore c1"));
    let mut pair = pair(&script, &Policy::default());
    // The parent stays as it was: no life of its own here.
    pair.two.retain(|recorded| recorded.event.stream == pair.child || recorded.seq < Seq(pair.forked.0 - 6));
    let world = folded(&pair.two);
    let (parent, child) = (world.stream(pair.parent).unwrap(), world.stream(pair.child).unwrap());
    let first = parent.item_id(parent.items(Seq::MAX).next().unwrap()).unwrap();
    assert_eq!(face(parent, first).0, FaceState::Tombstone);
    assert_eq!(face(child, first), (FaceState::Whole, None));
    let ended = |state: &State| state.edges(Seq::MAX).iter().map(|edge| edge.released).collect::<Vec<_>>();
    assert_eq!((ended(parent), ended(child)), (vec![false], vec![true]));
}
