//! Machines stopped at every operation of a store's life: acknowledged commits are there, the rest whole or not at all.
//!
//! The lives, the auditor and the judge are in `acpdb_tests::soak`; here they run for some seconds. The example `soak`
//! runs them for as long as one likes: `cargo run --release -p acpdb-tests --example soak -- crash --images 1000000`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests: a failed step is a failed test"
)]

use acpdb_engine::storage::SimWorld;
use acpdb_tests::soak::Dice;
use acpdb_tests::soak::auditor::Auditor;
use acpdb_tests::soak::crash::{judge, many_lives};
use acpdb_tests::soak::life::{Actor, Setting};
use acpdb_tests::soak::script::script;
use acpdb_tests::support::cases;

#[test]
fn a_machine_that_stops_anywhere_loses_nothing_acknowledged() {
    match many_lives(11, u64::from(cases(3_000)), None) {
        Ok(tally) => assert!(tally.again > 100 && tally.moments > 100, "{tally:?}"),
        Err(finding) => panic!("{finding}"),
    }
}

/// The judge is judged: with one acknowledged frame taken out of the durable bytes, or one line that the auditor knows
/// and the log does not, it must not be content.
#[test]
fn a_lost_commit_is_noticed() {
    let setting = Setting { segment_bytes_max: 4096 + 3000, goes_on: false, sabotage: None };
    let steps = script(&mut Dice::new(3), "a", 9);
    let world = SimWorld::new(3);
    let auditor = Auditor::default();
    let storage = world.process(1);
    let actor = Actor { storage, auditor: auditor.clone(), setting, opened: Vec::new(), steps: &steps };
    actor.live().unwrap();
    judge(&world.fork(1), &auditor.now(), setting, &mut Dice::new(1)).unwrap();
    let cut = world.fork(1);
    let last = cut.files().into_iter().filter(|name| name.starts_with("log/")).max().unwrap();
    let mut bytes = cut.file(&last).unwrap();
    let end = bytes.len();
    bytes[end - 64..].fill(0);
    cut.set_file(&last, bytes);
    assert!(judge(&cut, &auditor.now(), setting, &mut Dice::new(1)).is_err(), "damaged and not noticed");
    let next = auditor.now().last_acked() + 1;
    auditor.acknowledged(next, &vec!["message_recorded never".to_owned()].into());
    let wrong = judge(&world.fork(1), &auditor.now(), setting, &mut Dice::new(1)).unwrap_err();
    assert!(wrong.contains("lost though acknowledged"), "{wrong}");
}

#[test]
fn places_are_those_of_the_frames_whatever_became_of_their_file() {
    acpdb_tests::soak::places::places_hold().unwrap();
}
