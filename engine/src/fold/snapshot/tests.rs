use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::fold::Policy;
use crate::testing::Script;

fn reread(world: &World) -> World {
    let bytes = world.save(Vec::new()).unwrap();
    World::restore(&mut &bytes[..]).unwrap()
}

fn digests(world: &World, at: Seq) -> Vec<(StreamId, [u8; 32])> {
    world.streams().map(|(id, state)| (id, state.digest(at))).collect()
}

/// One of each step, so that every kind of row is in it.
const SCRIPT: &str =
    "1 read a ok\n1 user hello\n2 edit a ok\n2 grep x ok\n3 todowrite - ok\n3 read a ok\n4 make b fail";

/// The layout is not a format, but a program must know one that is not its own. If this fails, count up
/// [`LAYOUT_VERSION`], and bless the new bytes.
#[test]
fn the_layout_has_the_version_that_it_says() {
    let played = Script::parse(SCRIPT).play(&Policy::default());
    let bytes = played.tape.world().save(Vec::new()).unwrap();
    let layout =
        format!("version {LAYOUT_VERSION}: {} B {}", bytes.len(), &blake3::hash(&bytes).to_hex()[..16]);
    expect!["version 13: 13338 B 3c54cc247a0ce040"].assert_eq(&layout);
}

#[test]
fn what_is_read_back_is_what_was_saved() {
    let played = Script::parse(SCRIPT).play(&Policy::default());
    let world = played.tape.world();
    let again = reread(world);
    assert_eq!(digests(&again, Seq::MAX), digests(world, Seq::MAX));
    assert_eq!(again.head(), world.head());
    let bytes = world.save(Vec::new()).unwrap();
    assert_eq!(again.save(Vec::new()).unwrap().len(), bytes.len());
}

/// Seqs and lengths are kept in half their bytes: a larger number is not saved, never saved wrongly.
#[test]
fn what_does_not_fit_is_not_saved() {
    let kept = |seqs: &[Seq]| {
        let mut out = Out::behind(Vec::new());
        out.rows(seqs);
        out.finish().map(|bytes| In::new(&mut &bytes[..]).rows::<Seq>().unwrap())
    };
    let fits = [Seq::ZERO, Seq(1), Seq(u64::from(u32::MAX) - 1), Seq::MAX];
    assert_eq!(kept(&fits), Some(fits.to_vec()));
    for beyond in [u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX - 1] {
        assert_eq!(kept(&[Seq(1), Seq(beyond)]), None);
    }
    let length = |bytes| {
        let mut out = Out::behind(Vec::new());
        out.rows(&[crate::event::Body { bytes, ..Default::default() }]);
        let bytes = out.finish()?;
        Some(In::new(&mut &bytes[..]).rows::<crate::event::Body>().unwrap()[0].bytes)
    };
    assert_eq!((length(7), length(u64::from(u32::MAX))), (Some(7), Some(u64::from(u32::MAX))));
    assert_eq!(length(u64::from(u32::MAX) + 1), None);
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
            let _ = world.apply(recorded);
        }
        let mut world = reread(&world);
        for recorded in &events[cut..] {
            let _ = world.apply(recorded);
        }
        for at in events.iter().map(|recorded| recorded.seq) {
            prop_assert_eq!(digests(&world, at), digests(played.tape.world(), at), "cut at {}, read at {}", cut, at);
        }
    }

    /// Any bytes can be read: reading them ends, with a world or without.
    #[test]
    fn no_bytes_make_reading_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in 0_usize..64,
    ) {
        let played = Script::parse(SCRIPT).play(&Policy::default());
        let mut bytes = played.tape.world().save(Vec::new()).unwrap();
        for (place, with) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= with;
        }
        let length = bytes.len() - cut;
        let _ = World::restore(&mut &bytes[..length]);
    }
}
