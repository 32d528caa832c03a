//! Bugs put in on purpose, and the checks that must catch them.
//!
//! Plants in this process: nothing else may run beside it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use acpdb_engine::codec::{EncodedEvent, Envelope};
use acpdb_engine::failpoints::{Failpoint, enable, is_enabled};
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::{Micros, Origin, Seq, StreamId};
use acpdb_engine::log::{Log, LogError, LogOptions};
use acpdb_engine::storage::{
    Fault, FaultKind, FixedClock, FixedEntropy, Part, SimStorage, SimWorld, Storage,
};
use acpdb_engine::testing::Script;
use acpdb_engine::{Receipt, Store};

use super::held::{Gate, held};
use super::life::{Setting, builder};
use super::places::places_hold;
use super::sabotage::Sabotage;
use super::script::session;
use super::{Dice, crash, faults};
use crate::naive::Mutation;
use crate::naive::compare::{of_engine, of_naive, session as naive_session};
use crate::support::{Failure, copy_folder};

/// Something to be caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// In the storage under the store.
    Below(Sabotage),
    /// In the engine itself.
    Within(Failpoint),
}

/// All of them, each with the check that is asked first, since it is known to catch it: the others take minutes to say nothing. All the
/// others are asked if that one is content.
pub const ALL: [(Planted, &str); 26] = [
    (Planted::Below(Sabotage::SkipSync), "crash images"),
    (Planted::Below(Sabotage::AckBeforeSync), "crash images"),
    (Planted::Below(Sabotage::PublishBeforeSync), "crash images"),
    (Planted::Below(Sabotage::NoDirectorySync), "crash images"),
    (Planted::Below(Sabotage::NoTailCut), "crash images"),
    (Planted::Below(Sabotage::NoRewrite), "crash images"),
    (Planted::Below(Sabotage::CutByTruncation), "crash images"),
    (Planted::Within(Failpoint::WrongPreviousLink), "crash images"),
    (Planted::Within(Failpoint::AcceptZeroLength), "an undone commit after a power cut"),
    (Planted::Within(Failpoint::IndexAheadOfLog), "index ahead"),
    (Planted::Within(Failpoint::TombstoneOnProtected), "naive fold"),
    (Planted::Within(Failpoint::RestoreForgets), "naive fold"),
    (Planted::Within(Failpoint::WatermarkOffByOne), "crash images"),
    (Planted::Within(Failpoint::PinsReadAsUnpins), "crash images"),
    (Planted::Within(Failpoint::DedupeByLength), "a failed sync beside another process"),
    (Planted::Within(Failpoint::PoisonWithoutEpoch), "a failed sync that was slept through"),
    (Planted::Within(Failpoint::CoveredReadLate), "a failed sync beside another process"),
    (Planted::Within(Failpoint::KnownTooEarly), "known by what is not durable"),
    (Planted::Within(Failpoint::RewriteUnchecked), "damage before the first append"),
    (Planted::Within(Failpoint::EpochUnread), "a failed sync that was slept through"),
    (Planted::Within(Failpoint::UndoUnsynced), "an undone commit after a power cut"),
    (Planted::Within(Failpoint::ReaderLooksOnce), "a reader beside a writer"),
    (Planted::Within(Failpoint::PlacesRunUnchecked), "places of frames"),
    (Planted::Within(Failpoint::PlacesAppended), "places of frames"),
    (Planted::Within(Failpoint::PlacesUnrepaired), "places of frames"),
    (Planted::Within(Failpoint::PlacesUncounted), "places of frames"),
];

/// A check and its name.
type Check = (&'static str, fn(Option<Sabotage>) -> Result<(), String>);

/// Quick ones: the soaks of many lives, of failing storage and of damage stand for themselves, without a bug.
const CHECKS: [Check; 14] = [
    ("places of frames", |_| places_hold().map_err(|error| error.to_string())),
    ("known by what is not durable", |_| known_beside_its_original().map_err(|error| error.to_string())),
    ("damage before the first append", |_| {
        damage_before_the_first_append().map_err(|error| error.to_string())
    }),
    ("a failed sync that was slept through", |_| slept_through().map_err(|error| error.to_string())),
    ("an undone commit after a power cut", |_| undone_and_cut().map_err(|error| error.to_string())),
    ("a reader beside a writer", |_| reader_beside()),
    ("crash images", |sabotage| crash_images(sabotage).map_err(|it| it.to_string())),
    ("naive fold", |_| naive_fold()),
    ("views of the past", |_| views_of_the_past()),
    ("erased is gone", |sabotage| erased_is_gone(sabotage).map_err(|error| error.to_string())),
    ("two commits that wait for one sync", |_| two_wait_for_one_sync().map_err(|error| error.to_string())),
    ("a failed sync beside another process", |_| failed_sync_beside()),
    ("erased and said again", |_| said_again().map_err(|error| error.to_string())),
    ("index ahead", |_| index_ahead().map_err(|error| error.to_string())),
];

/// The first check that catches it, with its words; `None` if all are content.
#[must_use]
pub fn caught(planted: Option<(Planted, &str)>) -> Option<(&'static str, String)> {
    let (sabotage, bug) = match planted {
        None => (None, None),
        Some((Planted::Below(sabotage), _)) => (Some(sabotage), None),
        Some((Planted::Within(bug), _)) => (None, Some(bug)),
    };
    enable(bug);
    let mut checks = CHECKS;
    checks.sort_by_key(|(name, _)| planted.is_none_or(|(_, first)| *name != first));
    let found = checks.iter().find_map(|(name, check)| {
        let outcome = catch_unwind(AssertUnwindSafe(|| check(sabotage)));
        let outcome = outcome.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            Err(format!("it panicked: {said}"))
        });
        outcome.err().map(|wrong| (*name, wrong))
    });
    enable(None);
    found
}

/// How many interleavings are tried. One in some hundreds meets these bugs, and which one changes with every call that the engine makes.
/// So where the bug is planted they are tried until it is met; without it a share shows that nothing is taken for one.
fn interleavings(bug: Failpoint) -> u64 {
    if is_enabled(bug) { 20_000 } else { 100 }
}

/// Lives of one and of several processes, some places of each. Every bug is met within the first of them; the soak `crash` stops
/// thousands of machines without one.
fn crash_images(sabotage: Option<Sabotage>) -> Result<(), super::Finding> {
    let within = |(planted, _): &(Planted, &str)| matches!(planted, Planted::Within(bug) if is_enabled(*bug));
    let any_bug = sabotage.is_some() || ALL.iter().any(within);
    let image_count = if any_bug { 700 } else { 150 };
    (5..10).try_for_each(|seed| crash::one_life(seed, image_count, sabotage, &mut crash::Tally::default()))
}

/// Every edge of generated sessions equals that of the naive implementation.
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

/// A view of any seq equals a fold of the events up to it, and restored items are shown.
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

/// An item that was discarded and restored reads as before.
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

/// A fact is on its way, and is recorded again: it is known then, and not durable, for its sync fails.
/// How long a repeat may take that waits for nothing.
const AT_ONCE: Duration = Duration::from_millis(300);

/// The sync of a fact is held back, fails at last, and two repeats of the fact come before: all three must fail.
fn known_beside_its_original() -> Result<(), Failure> {
    use acpdb_engine::entry::Entry;
    use acpdb_engine::event::Role;
    let process = SimWorld::new(1).process(1);
    let setting = Setting { segment_bytes_max: 1 << 20, goes_on: true, sabotage: None };
    let gate = Arc::new(Gate::default());
    let store = builder(&process, setting).storage(held(&process, &gate)).open()?;
    let _ = store.append(&session(0), vec![Entry::message("m1", Role::User, "hello")])?;
    process.plant(Fault { kind: FaultKind::SyncError, after: 0, once: true });
    gate.shut();
    // Without an origin a repeat is a new fact.
    let fact = || vec![Entry::message("m2", Role::User, "a fact").origin("m2")];
    let ticket = store.submit(&session(0), fact())?;
    let told = std::thread::scope(|scope| {
        let known = scope.spawn(|| store.append(&session(0), fact()));
        let again = scope.spawn(|| store.submit(&session(0), fact()).and_then(acpdb_engine::Ticket::wait));
        // A repeat that is told without waiting is told by now; the others wait for the sync, however long it takes.
        let until = Instant::now() + AT_ONCE;
        while Instant::now() < until && !(known.is_finished() && again.is_finished()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        gate.open();
        [
            ticket.wait(),
            known.join().unwrap_or_else(|_| Ok(Receipt::default())),
            again.join().unwrap_or_else(|_| Ok(Receipt::default())),
        ]
    });
    if told.iter().all(Result::is_err) {
        return Ok(());
    }
    Err(format!("the sync of a fact failed, and its original and two repeats are acknowledged: {told:?}")
        .into())
}

/// A log of a simulated process, and how to place an event of some bytes.
fn log_of(storage: &SimStorage) -> Result<Log, LogError> {
    let clock = Arc::new(FixedClock::new(Micros(1_700_000_000_000_000), 1));
    let entropy = Arc::new(FixedEntropy::new(u64::from(storage.process())));
    let options = LogOptions { segment_bytes_max: 8192, ..LogOptions::default() };
    Log::create_or_open(Arc::new(storage.clone()), clock, entropy, options).map(|(log, _)| log)
}

fn place(log: &Log, bytes: usize) -> Result<acpdb_engine::log::PlacedCommit, LogError> {
    let stream = StreamId([7; 16]);
    let envelope = Envelope { kind: 7, version: 1, stream, origin: Origin::ZERO, host_time: None };
    let event = EncodedEvent { envelope, payload: vec![5; bytes], bodies: Vec::new() };
    log.place(log.prepare(&[event])?, &[])
}

fn commit(log: &Log, bytes: usize) -> Result<Seq, LogError> {
    let placed = place(log, bytes)?;
    log.settle(&placed)?;
    Ok(placed.appended().first_seq)
}

/// Bytes that another process wrote and did not sync are damaged before this one appends for the first time.
fn damage_before_the_first_append() -> Result<(), Failure> {
    let world = SimWorld::new(1);
    let (one, two) = (log_of(&world.process(1))?, log_of(&world.process(2))?);
    commit(&one, 100)?;
    let waiting = place(&one, 300)?;
    let name = "log/000000000001.seg";
    let mut bytes = world.file(name).ok_or("no segment")?;
    let at = usize::try_from(waiting.appended().position.offset())?.saturating_add(200);
    bytes.iter_mut().skip(at).take(8).for_each(|byte| *byte ^= 0xff);
    world.set_file(name, bytes);
    let next = commit(&two, 100)?;
    let report = two.verify()?;
    if !report.is_sound() || next != Seq(2) {
        return Err(format!("it was built upon: {next}, {:?}", report.violations.first()).into());
    }
    match one.settle(&waiting) {
        Err(LogError::Poisoned { .. }) => Ok(()),
        other => Err(format!("what was given up is acknowledged: {other:?}").into()),
    }
}

/// A sync fails and the store is opened again while a handle looks elsewhere.
fn slept_through() -> Result<(), Failure> {
    let world = SimWorld::new(1);
    let (one, process) = (log_of(&world.process(1))?, world.process(2));
    let two = log_of(&process)?;
    commit(&one, 100)?;
    process.plant(Fault { kind: FaultKind::SyncError, after: 0, once: true });
    if commit(&two, 100).is_ok() {
        return Err("a failed sync is acknowledged".into());
    }
    let three = log_of(&world.process(3))?;
    commit(&three, 100)?;
    match commit(&one, 100) {
        Err(LogError::Poisoned { .. }) => Ok(()),
        other => Err(format!("it goes on as if nothing had happened: {other:?}").into()),
    }
}

/// A commit is in the file, and cannot be told on the page: it is undone, and said not to be recorded.
fn undone_and_cut() -> Result<(), Failure> {
    let mut undone = 0;
    for seed in 0..60 {
        let world = SimWorld::new(seed);
        let process = world.process(1);
        let log = log_of(&process)?;
        commit(&log, 100)?;
        // Busy, the frame, its row, the page.
        process.plant(Fault { kind: FaultKind::WriteError, after: 3, once: true });
        match commit(&log, 300) {
            Err(LogError::Io { .. }) => undone += 1,
            other => return Err(format!("the page could not be written: {other:?}").into()),
        }
        world.cut_power();
        let again = log_of(&world.process(2))?;
        if again.head().seq != Seq(1) {
            return Err(
                format!("seed {seed}: it is there after a power cut, head {}", again.head().seq).into()
            );
        }
    }
    if undone == 60 { Ok(()) } else { Err(format!("{undone} of 60 were undone").into()) }
}

/// One process opens the log for reading again and again while another one writes and begins segments.
fn reader_beside() -> Result<(), String> {
    let stage = |error: LogError| error.to_string();
    for seed in 0..interleavings(Failpoint::ReaderLooksOnce) {
        let world = SimWorld::new(seed);
        commit(&log_of(&world.process(9)).map_err(stage)?, 100).map_err(stage)?;
        let write = |storage: SimStorage| {
            let log = log_of(&storage).map_err(stage)?;
            (0..25).try_for_each(|round| commit(&log, 60 + round * 37 % 900).map(drop)).map_err(stage)
        };
        let read = |storage: SimStorage| {
            for _ in 0..12 {
                let options = LogOptions { read_only: true, ..LogOptions::default() };
                let clock = Arc::new(FixedClock::new(Micros(0), 1));
                let entropy = Arc::new(FixedEntropy::new(1));
                let (_, recovery) =
                    Log::open(Arc::new(storage.clone()), clock, entropy, options).map_err(stage)?;
                if let Some(damage) = recovery.damage {
                    return Err(format!("seed {seed}: {damage}"));
                }
            }
            Ok(())
        };
        let parts: Vec<(SimStorage, Part<'_, Result<(), String>>)> =
            vec![(world.process(1), Box::new(write)), (world.process(2), Box::new(read))];
        world.interleave(seed, parts).into_iter().collect::<Result<(), String>>()?;
    }
    Ok(())
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
    (0..interleavings(Failpoint::CoveredReadLate)).try_for_each(|seed| {
        let fault = Fault { kind: FaultKind::SyncError, after: 6 + seed % 16, once: true };
        faults::one_life(seed, fault, 2).map(drop).map_err(|wrong| format!("seed {seed}: {wrong}"))
    })
}

/// An erased text is in no file.
fn erased_is_gone(sabotage: Option<Sabotage>) -> Result<(), Failure> {
    use acpdb_engine::entry::Entry;
    use acpdb_engine::event::Role;
    let world = SimWorld::new(1);
    let setting = Setting { segment_bytes_max: 8192, goes_on: false, sabotage };
    let store = builder(&world.process(1), setting).open()?;
    let text = "words of this test alone";
    let said = store.append(&session(0), vec![Entry::message("m1", Role::User, text)])?;
    let item = said.items.first().copied().flatten().ok_or("no item")?;
    let _ = store.erase(item, "soak", "to see it gone")?;
    let disk: Arc<dyn Storage> = Arc::new(world.process(2));
    let places = acpdb_engine::testing::whereabouts(&disk, text.as_bytes())?;
    if places.is_empty() { Ok(()) } else { Err(format!("it is still in {places:?}").into()) }
}

/// A text begins as an erased one did, and is said by a handle that had stored the beginning before: it is stored anew.
fn said_again() -> Result<(), Failure> {
    use acpdb_engine::command::draft::CHUNK_BYTES_MAX;
    use acpdb_engine::entry::Entry;
    use acpdb_engine::event::Role;
    let folder = tempfile::tempdir()?;
    let open = || Store::builder(folder.path().join("store")).any_file_system().open();
    let (one, two) = (open()?, open()?);
    // The whole of the erased text is not stored again, even if rows are shared; this text shares one row and not all.
    let beginning = "x".repeat(CHUNK_BYTES_MAX);
    let say = |key: &str, text: String| {
        let said = two.append(&session(0), vec![Entry::message(key, Role::User, text)])?;
        Ok::<_, Failure>(said.items.first().copied().flatten().ok_or("no item")?)
    };
    let item = say("m1", format!("{beginning} and an end"))?;
    let _ = one.erase(item, "soak", "to see its beginning said again")?;
    let text = format!("{beginning} and another end");
    let again = say("m2", text.clone())?;
    let body = acpdb_engine::ids::BodyId { seq: again.seq, first: 0, chunks: 2 };
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
    // The index is opened by the first question that needs it.
    let is_whole = store.wait_for_index(Duration::from_secs(60));
    match store.index_notice() {
        Some(notice) if notice.contains("it knows events up to") && is_whole => Ok(()),
        notice => {
            Err(format!("an index that knows more than the log is used: {notice:?}, whole: {is_whole}")
                .into())
        }
    }
}
