use std::sync::Arc;

use proptest::prelude::*;
use rkyv::rancor::Failure;
use rkyv::util::AlignedVec;

use super::*;
use crate::fold::Policy;
use crate::fold::state::State;
use crate::ids::{Seq, StreamId};
use crate::testing::Script;

fn saved(world: &World) -> AlignedVec {
    rkyv::to_bytes::<Failure>(world).unwrap()
}

fn reread(world: &World) -> World {
    rkyv::from_bytes::<World, Failure>(&saved(world)).unwrap().revived().unwrap()
}

fn digests(world: &World, at: Seq) -> Vec<(StreamId, [u8; 32])> {
    world.streams().map(|(id, state)| (id, state.digest(at))).collect()
}

/// One of each step, so that every kind of row is in it.
const SCRIPT: &str =
    "1 read a ok\n1 user hello\n2 edit a ok\n2 grep x ok\n3 todowrite - ok\n3 read a ok\n4 make b fail";

#[test]
fn what_is_read_back_is_what_was_saved() {
    let played = Script::parse(SCRIPT).play(&Policy::default());
    let world = played.tape.world();
    let again = reread(world);
    assert_eq!(digests(&again, Seq::MAX), digests(world, Seq::MAX));
    assert_eq!(again.head(), world.head());
    assert_eq!(saved(&again).len(), saved(world).len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::testing::cases(64), ..ProptestConfig::default() })]

    /// A fold saved after any prefix, read back and folded on equals the whole fold, at the head and at every seq before it.
    #[test]
    fn a_saved_prefix_folded_on_is_the_whole_fold(
        numbers in prop::collection::vec(any::<u16>(), 0..40),
        preset in prop::sample::select(crate::fold::policy::PRESETS),
        cut in any::<prop::sample::Index>(),
    ) {
        let played = Script::from_numbers(&numbers).play(&Policy::preset(preset).unwrap());
        let events = played.tape.events();
        let cut = cut.index(events.len() + 1);
        let mut world = World::default();
        for recorded in &events[..cut] {
            world.apply(recorded);
        }
        let mut world = reread(&world);
        for recorded in &events[cut..] {
            world.apply(recorded);
        }
        for at in events.iter().map(|recorded| recorded.seq) {
            prop_assert_eq!(digests(&world, at), digests(played.tape.world(), at), "cut at {}, read at {}", cut, at);
        }
    }

    /// Any bytes can be read: reading them ends, with a world or without, and so does every question to a world that was read.
    #[test]
    fn no_bytes_make_reading_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in 0_usize..64,
    ) {
        let played = Script::parse(SCRIPT).play(&Policy::default());
        let mut bytes = saved(played.tape.world());
        for (place, with) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= with;
        }
        let length = if cut < 32 { bytes.len() } else { bytes.len() - cut };
        let read = rkyv::from_bytes::<World, Failure>(&bytes[..length]).ok();
        if let Some(world) = read.and_then(World::revived) {
            let _ = digests(&world, Seq::MAX);
            for (_, state) in world.streams() {
                for ix in state.items(Seq::MAX) {
                    let _ = state.item(ix, Seq::MAX);
                }
            }
        }
    }
}

/// Seqs are kept in half their bytes: a larger number is not saved, never saved wrongly.
#[test]
fn a_seq_that_does_not_fit_is_not_saved() {
    let kept = |seqs: &Vec<Seq>| {
        let bytes = rkyv::to_bytes::<Failure>(seqs).ok()?;
        Some(rkyv::from_bytes::<Vec<Seq>, Failure>(&bytes).unwrap())
    };
    let fits = vec![Seq::ZERO, Seq(1), Seq(u64::from(u32::MAX) - 1), Seq::MAX];
    assert_eq!(kept(&fits), Some(fits));
    for beyond in [u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX - 1] {
        assert_eq!(kept(&vec![Seq(1), Seq(beyond)]), None);
    }
}

/// A list that leads in a circle kept a reader for ever.
#[test]
fn a_circle_in_a_list_ends() {
    let played = Script::parse(SCRIPT).play(&Policy::default());
    let changes: [fn(&mut State); 3] = [
        |state| state.facts.items.iter_mut().for_each(|item| item.next = 0),
        |state| state.facts.calls.iter_mut().for_each(|call| call.previous_of_host = 0),
        |state| state.facts.calls.iter_mut().for_each(|call| call.previous_of_signature = 0),
    ];
    for change in changes {
        let mut world = played.tape.world().clone();
        let state = world.streams.values_mut().find(|state| !state.facts.calls.is_empty()).unwrap();
        change(Arc::make_mut(state));
        let world = reread(&world);
        let _ = digests(&world, Seq::MAX);
        for (_, state) in world.streams() {
            let called: usize =
                state.facts.calls.iter().map(|call| state.facts.calls_of_host(call.host_id).count()).sum();
            let said: usize =
                state.facts.messages.iter().map(|message| state.facts.items_of(message).count()).sum();
            assert!(called <= 100 && said <= 100);
        }
    }
    let mut world = played.tape.world().clone();
    world.streams.values_mut().for_each(|state| Arc::make_mut(state).id = StreamId([7; 16]));
    assert!(
        rkyv::from_bytes::<World, Failure>(&saved(&world)).unwrap().revived().is_none(),
        "another stream"
    );
}
