//! Bugs put in on purpose, and the checks that must catch them.
//!
//! Plants in this process: whoever runs this must run nothing else beside it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use acpdb_engine::Store;
use acpdb_engine::codec::{EncodedEvent, Envelope};
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::{Micros, Origin, Seq, StreamId};
use acpdb_engine::log::{Log, LogOptions};
use acpdb_engine::planted::{Bug, plant};
use acpdb_engine::storage::{Fault, FaultKind, FixedClock, FixedEntropy, SimWorld, Storage};
use acpdb_engine::testing::Script;

use super::life::{Setting, builder};
use super::sabotage::Sabotage;
use super::script::session;
use super::{Dice, crash, faults, flips};
use crate::naive::Mutation;
use crate::naive::compare::{of_engine, of_naive, session as naive_session};
use crate::support::{Failure, copy_folder};

/// Something to be caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// In the storage under the store.
    Below(Sabotage),
    /// In the engine itself.
    Within(Bug),
}

/// All of them.
pub const ALL: [Planted; 18] = [
    Planted::Below(Sabotage::SkipSync),
    Planted::Below(Sabotage::AckBeforeSync),
    Planted::Below(Sabotage::PublishBeforeSync),
    Planted::Below(Sabotage::NoDirectorySync),
    Planted::Below(Sabotage::NoTailCut),
    Planted::Below(Sabotage::NoRewrite),
    Planted::Below(Sabotage::CutByTruncation),
    Planted::Within(Bug::WrongPreviousLink),
    Planted::Within(Bug::AcceptZeroLength),
    Planted::Within(Bug::IndexAheadOfLog),
    Planted::Within(Bug::TombstoneOnProtected),
    Planted::Within(Bug::RestoreForgets),
    Planted::Within(Bug::WatermarkOffByOne),
    Planted::Within(Bug::UpcastToWrongKind),
    Planted::Within(Bug::DedupeByLength),
    Planted::Within(Bug::PoisonWithoutEpoch),
    Planted::Within(Bug::ShareErased),
    Planted::Within(Bug::CoveredReadLate),
];

/// A check and its name.
type Check = (&'static str, fn(Option<Sabotage>) -> Result<(), String>);

const CHECKS: [Check; 11] = [
    ("crash images", |sabotage| crash_images(sabotage).map_err(|it| it.to_string())),
    ("naive fold", |_| naive_fold()),
    ("views of the past", |_| views_of_the_past()),
    ("erased is gone", |sabotage| erased_is_gone(sabotage).map_err(|error| error.to_string())),
    ("two commits that wait for one sync", |_| two_wait_for_one_sync().map_err(|error| error.to_string())),
    ("a failed sync beside another process", |_| failed_sync_beside()),
    ("erased and said again", |_| said_again().map_err(|error| error.to_string())),
    ("index ahead", |_| index_ahead().map_err(|error| error.to_string())),
    ("crash images of many lives", |sabotage| many_lives(sabotage).map_err(|it| it.to_string())),
    ("failing storage", |_| faults::every_operation(3, 5).map(drop).map_err(|it| it.to_string())),
    ("damage", |_| flips::all(1, 997).map(drop).map_err(|it| it.to_string())),
];

/// The first check that catches it and what it said; `None` if all are content.
#[must_use]
pub fn caught(planted: Option<Planted>) -> Option<(&'static str, String)> {
    let (sabotage, bug) = match planted {
        None => (None, None),
        Some(Planted::Below(sabotage)) => (Some(sabotage), None),
        Some(Planted::Within(bug)) => (None, Some(bug)),
    };
    plant(bug);
    let found = CHECKS.iter().find_map(|(name, check)| {
        let outcome = catch_unwind(AssertUnwindSafe(|| check(sabotage)));
        let outcome = outcome.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            Err(format!("it panicked: {said}"))
        });
        outcome.err().map(|wrong| (*name, wrong))
    });
    plant(None);
    found
}

/// Lives of one and of several processes, some places of each.
fn crash_images(sabotage: Option<Sabotage>) -> Result<(), super::Finding> {
    (5..10).try_for_each(|seed| crash::one_life(seed, 700, sabotage, &mut crash::Tally::default()))
}

/// Fewer places of more lives, for what only some orders of steps between processes show.
fn many_lives(sabotage: Option<Sabotage>) -> Result<(), super::Finding> {
    (100..180).try_for_each(|seed| crash::one_life(seed, 120, sabotage, &mut crash::Tally::default()))
}

/// Every edge of generated sessions is what the naive implementation says.
fn naive_fold() -> Result<(), String> {
    let mut dice = Dice::new(2);
    for _ in 0..150 {
        let numbers: Vec<u16> = (0..60).map(|_| u16::try_from(dice.below(65_536)).unwrap_or(0)).collect();
        let played = naive_session(&numbers).play(&Policy::default());
        let head = played.tape.head();
        let (engine, naive) = (of_engine(&played, head), of_naive(&played, head, Mutation::None));
        if engine != naive {
            return Err(format!("{engine:?} is not {naive:?}"));
        }
    }
    Ok(())
}

/// A view of any seq is what a fold of the events up to it concludes, and what is restored is shown.
fn views_of_the_past() -> Result<(), String> {
    let mut dice = Dice::new(3);
    for _ in 0..60 {
        let numbers: Vec<u16> = (0..50).map(|_| u16::try_from(dice.below(65_536)).unwrap_or(0)).collect();
        let played = Script::from_numbers(&numbers).play(&Policy::default());
        let stream = played.tape.stream();
        for seq in 1..=played.tape.head().get() {
            let refolded = played.tape.refold(Seq(seq));
            let Some(then) = refolded.stream(stream) else { continue };
            if then.digest(Seq::MAX) != played.tape.state().digest(Seq(seq)) {
                return Err(format!("the view of {seq} is not the fold up to it"));
            }
        }
    }
    restored().map_err(|error| error.to_string())
}

/// What is discarded and restored reads as before.
fn restored() -> Result<(), Failure> {
    use acpdb_engine::command::{ContextAction, Target};
    use acpdb_engine::entry::Entry;
    let world = acpdb_engine::storage::SimWorld::new(1);
    let store = Store::builder("/sim")
        .storage(Arc::new(world.process(1)))
        .registry(acpdb_hosts::registry())
        .open()?;
    let stream = session(0);
    let _ = store.append(
        &stream,
        vec![
            Entry::step("one"),
            Entry::tool_started("c1", "read", r#"{"filePath":"a"}"#),
            Entry::tool_completed("c1", "text ".repeat(50)),
        ],
    )?;
    let before = crate::support::shown(&store, stream.id(), store.head()?)?;
    let target = || vec![(Target::Call("c1".to_owned()), None)];
    let _ = store.context(stream.id(), ContextAction::Discard, target())?;
    let hidden = crate::support::shown(&store, stream.id(), store.head()?)?;
    let _ = store.context(stream.id(), ContextAction::Restore, target())?;
    let after = crate::support::shown(&store, stream.id(), store.head()?)?;
    if before == after && before != hidden {
        Ok(())
    } else {
        Err(format!("{before:?}, discarded {hidden:?}, restored {after:?}").into())
    }
}

/// The sync that two commits wait for fails; the file says so once. Neither is acknowledged, though the next sync would succeed.
fn two_wait_for_one_sync() -> Result<(), Failure> {
    let process = SimWorld::new(1).process(1);
    let clock = FixedClock::new(Micros(1_700_000_000_000_000), 0);
    let entropy = FixedEntropy::new(7);
    let storage: Arc<dyn Storage> = Arc::new(process.clone());
    let (log, _) = Log::create_or_open(storage, Arc::new(clock), Arc::new(entropy), LogOptions::default())?;
    let place = || {
        let stream = StreamId([7; 16]);
        let envelope = Envelope { kind: 7, version: 1, stream, origin: Origin::ZERO, host_time: None };
        let event = EncodedEvent { envelope, payload: vec![0; 64], bodies: Vec::new() };
        log.place(log.prepare(&[event])?, &[])
    };
    log.settle(&place()?)?;
    let (first, second) = (place()?, place()?);
    process.plant(Fault { kind: FaultKind::SyncError, after: 0, once: true });
    let acknowledged = [log.settle(&first).is_ok(), log.settle(&second).is_ok()];
    if acknowledged == [false, false] {
        return Ok(());
    }
    Err(format!("a sync failed, and of the two commits before it are acknowledged: {acknowledged:?}").into())
}

/// One process fails to sync and starts anew while the other one waits for its commit to become durable.
fn failed_sync_beside() -> Result<(), String> {
    // Which turns the two take, and so whether one of them waits just then, is the seed's choice.
    (0..2000_u64).try_for_each(|seed| {
        let fault = Fault { kind: FaultKind::SyncError, after: 6 + seed % 16, once: true };
        faults::one_life(seed, fault, 2).map(drop).map_err(|wrong| format!("seed {seed}: {wrong}"))
    })
}

/// What is erased is in no file.
fn erased_is_gone(sabotage: Option<Sabotage>) -> Result<(), Failure> {
    use acpdb_engine::entry::Entry;
    use acpdb_engine::event::Role;
    let world = SimWorld::new(1);
    let setting = Setting { segment_bytes_max: 8192, goes_on: false, sabotage };
    let store = builder(&world.process(1), setting).open()?;
    let text = "words that nobody else says";
    let said = store.append(&session(0), vec![Entry::message("m1", Role::User, text)])?;
    let item = said.items.first().copied().flatten().ok_or("no item")?;
    let _ = store.erase(item, "soak", "to see it gone")?;
    let disk: Arc<dyn Storage> = Arc::new(world.process(2));
    let places = acpdb_engine::testing::whereabouts(&disk, text.as_bytes())?;
    if places.is_empty() { Ok(()) } else { Err(format!("it is still in {places:?}").into()) }
}

/// What was erased and is said again, by somebody who had it stored before, is stored anew.
fn said_again() -> Result<(), Failure> {
    use acpdb_engine::entry::Entry;
    use acpdb_engine::event::Role;
    let folder = tempfile::tempdir()?;
    let open = || Store::builder(folder.path().join("store")).any_file_system().open();
    let (one, two) = (open()?, open()?);
    let text = "the same words ".repeat(30);
    let say = |key: &str| two.append(&session(0), vec![Entry::message(key, Role::User, text.clone())]);
    let item = say("m1")?.items.first().copied().flatten().ok_or("no item")?;
    let _ = one.erase(item, "soak", "to see it said again")?;
    let again = say("m2")?.items.first().copied().flatten().ok_or("no item")?;
    let body = acpdb_engine::ids::BodyId { seq: again.seq, first: 0, chunks: 1 };
    if two.body(body)? == text.as_bytes() { Ok(()) } else { Err("another text".into()) }
}

/// An index of a log that has since lost its end is not used.
fn index_ahead() -> Result<(), Failure> {
    use acpdb_engine::entry::Entry;
    use acpdb_engine::event::Role;
    let folder = tempfile::tempdir()?;
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    let open = |path: &std::path::Path| Store::builder(path).any_file_system().open();
    let say = |store: &Store, number: usize| {
        store.append(
            &session(0),
            vec![Entry::message(format!("m{number}"), Role::User, format!("text {number}"))],
        )
    };
    let store = open(&whole)?;
    for number in 0..4 {
        let _ = say(&store, number)?;
    }
    store.close()?;
    copy_folder(&whole, &cut)?;
    for number in 4..8 {
        let _ = say(&store, number)?;
    }
    let _ = store.reindex()?;
    drop(store);
    std::fs::copy(whole.join("index.redb"), cut.join("index.redb"))?;
    let store = open(&cut)?;
    let names = store.stream_names()?.len();
    match store.index_notice() {
        Some(notice) if notice.contains("kept and not used") && names == 1 => Ok(()),
        notice => {
            Err(format!("an index that knows more than the log is used: {notice:?}, {names} streams").into())
        }
    }
}
