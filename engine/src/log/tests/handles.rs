//! Several handles on one store of real files. Locks belong to open files and the page to whoever maps it, so a handle
//! stands for a process; each test runs with shared memory, without, and with both kinds beside each other.

use super::*;
use crate::storage::{Access, FileStorage, SystemClock, SystemEntropy};

const KINDS: [[bool; 4]; 3] = [[true; 4], [false; 4], [true, false, true, false]];

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn storage(&self, shared: bool) -> FileStorage {
        let storage = FileStorage::new(self.0.path().join("store"));
        if shared { storage } else { storage.without_shared_page() }
    }

    fn open_with(&self, shared: bool, segment_bytes_max: u64) -> (Log, Recovery) {
        let options = LogOptions { segment_bytes_max, ..LogOptions::default() };
        let storage = Arc::new(self.storage(shared));
        Log::create_or_open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options).unwrap()
    }

    fn open(&self, shared: bool) -> Log {
        self.open_with(shared, 64 << 20).0
    }
}

#[test]
fn threads_and_handles_lose_double_and_reorder_nothing_over_rolls() {
    for kinds in KINDS {
        let place = Place::new();
        let logs = kinds.map(|shared| place.open_with(shared, 64 << 10).0);
        std::thread::scope(|scope| {
            for thread in 0..8_u32 {
                let log = &logs[thread as usize % logs.len()];
                scope.spawn(move || {
                    let mut last = Seq::ZERO;
                    for round in 0..25 {
                        let appended = append(log, thread * 25 + round).unwrap();
                        assert!(appended.first_seq > last, "a thread's commits are in its order");
                        last = appended.last_seq();
                        assert!(log.head().seq >= last, "its own commits show");
                    }
                });
            }
        });
        let mut listings = logs.iter().map(|log| {
            assert_eq!(log.refresh().unwrap().seq, Seq(400), "{kinds:?}");
            sound_listing(log)
        });
        let first = listings.next().unwrap();
        assert!(listings.all(|listing| listing == first));
        let mut listed: Vec<String> = first.into_iter().map(|(_, text)| text).collect();
        listed.sort();
        let mut expected: Vec<String> =
            (0..200).flat_map(|commit| [shown(commit, 0), shown(commit, 1)]).collect();
        expected.sort();
        assert_eq!(listed, expected);
        for log in logs {
            log.close().unwrap();
        }
        let (log, recovery) = place.open_with(true, 64 << 10);
        assert!(recovery.was_clean, "{recovery:?}");
        let report = log.verify(true).unwrap();
        assert!(report.is_sound() && report.torn_bytes == 0 && report.segments > 3, "{report:?}");
    }
}

#[test]
fn what_is_placed_has_its_seq_and_shows_only_once_it_is_settled() {
    let place = Place::new();
    let (one, two) = (place.open(true), place.open(true));
    let prepared = |log: &Log, commit| log.prepare(&[event(log, commit, 0)]).unwrap();
    let first = one.place(prepared(&one, 0), &[]).unwrap();
    let second = one.place(prepared(&one, 1), &[]).unwrap();
    assert_eq!((first.appended().first_seq, second.appended().first_seq), (Seq(1), Seq(2)));
    assert_eq!((one.refresh().unwrap().seq, two.refresh().unwrap().seq), (Seq::ZERO, Seq::ZERO));
    // Another handle writes behind what is not durable, and its sync covers all.
    let _ = append(&two, 2).unwrap();
    assert_eq!(one.refresh().unwrap().seq, Seq(4));
    one.settle(&second).unwrap();
    one.settle(&first).unwrap();
    assert_eq!(sound_listing(&one), sound_listing(&two));
    // A placed commit that nobody settles is no loss for the next one to open.
    let _ = one.place(prepared(&one, 3), &[]).unwrap();
    let third = place.open(true);
    assert_eq!(third.head().seq, Seq(5));
    assert!(third.verify(true).unwrap().is_sound());
}

/// A simulated clock may move while a sync takes its time and stand still afterwards: then a leader waited forever.
#[test]
fn waiting_for_others_ends_though_nobody_comes_and_the_clock_stands_still() {
    let patience = crate::log::gather::Patience::default();
    patience.synced(std::time::Duration::from_millis(1));
    let mut looks = 0;
    let nobody = || {
        looks += 1;
        false
    };
    patience.gather(nobody, std::time::Duration::default);
    assert!((1..5000).contains(&looks), "{looks}");
}

#[test]
fn a_condition_counts_what_is_written_and_not_yet_durable() {
    let place = Place::new();
    let (one, two) = (place.open(true), place.open(true));
    let on = |log: &Log, commit| log.prepare(&[event(log, commit, 0)]).unwrap();
    let condition = |number, basis| [Condition { stream: stream(number), basis }];
    let placed = one.place(on(&one, 0), &[]).unwrap();
    let moved = two.append(on(&two, 3), &condition(0, Seq::ZERO));
    assert!(matches!(moved, Err(LogError::HeadMoved { actual: Seq(1), .. })), "{moved:?}");
    // Another stream with the same slot did not move.
    assert!(two.may_have_moved(stream(64), Seq::ZERO) && !two.may_have_moved(stream(1), Seq::ZERO));
    let slot = [Condition { stream: stream(64), basis: Seq::ZERO }];
    assert_eq!(two.append(on(&two, 4), &slot).unwrap().first_seq, Seq(2));
    one.settle(&placed).unwrap();
    // Whoever holds the log sees all of it.
    let held = two.exclusive().unwrap();
    let basis = two.head().seq;
    assert_eq!(basis, Seq(2));
    assert_eq!(held.append(on(&two, 5), &condition(0, basis)).unwrap().first_seq, Seq(3));
    assert!(one.append(on(&one, 6), &condition(0, Seq(2))).is_ok());
}

#[test]
fn a_poisoned_store_refuses_in_every_handle_until_it_is_opened_again() {
    for kinds in [[true, true], [true, false], [false, true], [false, false]] {
        let place = Place::new();
        let (one, two) = (place.open(kinds[0]), place.open(kinds[1]));
        let _ = append(&one, 0).unwrap();
        let _ = append(&two, 1).unwrap();
        let waiting = one.place(one.prepare(&[event(&one, 2, 0)]).unwrap(), &[]).unwrap();
        let durable = if kinds[0] { 4 } else { 5 };
        // What the handle does when its sync fails.
        let error = two.sync_failed(two.tail.as_ref().unwrap());
        assert!(matches!(error, LogError::Poisoned { .. }));
        if kinds[0] {
            assert!(matches!(one.settle(&waiting), Err(LogError::Poisoned { .. })), "{kinds:?}: no ack");
        }
        for log in [&one, &two] {
            assert!(matches!(append(log, 3), Err(LogError::Poisoned { .. })), "{kinds:?}");
            assert_eq!(log.refresh().unwrap().seq, Seq(durable), "{kinds:?}: reads go on");
        }
        let three = place.open(kinds[0]);
        assert_eq!(three.head().seq, Seq(durable), "{kinds:?}: only what was confirmed");
        let _ = append(&three, 4).unwrap();
        for log in [&one, &two] {
            assert!(matches!(append(log, 5), Err(LogError::Poisoned { .. })), "{kinds:?}");
            assert_eq!(log.refresh().unwrap().seq, Seq(durable + 2), "{kinds:?}: reads go on");
        }
        assert!(three.verify(true).unwrap().is_sound());
    }
}

#[test]
fn who_died_writing_is_repaired_and_who_died_syncing_is_not_waited_for() {
    for kinds in [[true, true], [true, false], [false, true]] {
        let place = Place::new();
        let (one, two) = (place.open(kinds[0]), place.open(kinds[1]));
        let _ = append(&one, 0).unwrap();
        // Died in the middle of a write: busy, and half a frame.
        let tail = one.tail.as_ref().unwrap();
        let end = one.head().position;
        tail.begin(Position(end.0 + 50), 1).unwrap();
        let segment = one.storage.open("log/000000000001.seg", Access::Write).unwrap();
        crate::storage::write_all(&*segment, &[0xaa; 100], end.offset(), &mut 0).unwrap();
        assert_eq!(append(&two, 1).unwrap().first_seq, Seq(3), "{kinds:?}");
        assert!(place.0.path().join("store/quarantine").is_dir(), "{kinds:?}");
        // Holds the turn to sync and does nothing: others wait a second at most, then sync for themselves.
        let turn = one.tail.as_ref().unwrap().try_lock_sync(true);
        let placed = two.place(two.prepare(&[event(&two, 2, 0)]).unwrap(), &[]).unwrap();
        let _ = append(&two, 3).unwrap();
        two.settle(&placed).unwrap();
        drop(turn);
        assert_eq!(one.refresh().unwrap().seq, Seq(7), "{kinds:?}");
        assert!(one.verify(true).unwrap().is_sound());
    }
}

#[test]
fn a_check_word_that_was_never_written_costs_nothing_acknowledged() {
    // Killed between the durable position and its check word: the page claims nothing any more.
    let place = Place::new();
    let (one, two) = (place.open(true), place.open(true));
    let _ = append(&one, 0).unwrap();
    let page = one.tail.as_ref().unwrap().shared().unwrap();
    page.store(crate::codec::word::DURABLE_CHECK, 5);
    assert_eq!(append(&two, 1).unwrap().first_seq, Seq(3));
    assert_eq!(one.refresh().unwrap().seq, Seq(4));
    page.store(crate::codec::word::DURABLE_CHECK, 5);
    assert_eq!(place.open(true).head().seq, Seq(4));
}

#[test]
fn followers_are_woken_by_commits_of_other_handles() {
    for kinds in [[true, true], [false, false], [false, true]] {
        let place = Place::new();
        let (one, two) = (place.open(kinds[0]), place.open(kinds[1]));
        std::thread::scope(|scope| {
            let follower = scope.spawn(|| {
                let mut seen = Vec::new();
                let mut after = Seq::ZERO;
                while after < Seq(20) {
                    let head = two.wait_for_commit(after, Duration::from_secs(20)).unwrap();
                    assert!(head.seq > after);
                    seen.extend((after.0 + 1)..=head.seq.0);
                    after = head.seq;
                }
                seen
            });
            for commit in 0..10 {
                let _ = append(&one, commit).unwrap();
            }
            assert_eq!(follower.join().unwrap(), (1..=20).collect::<Vec<_>>());
        });
        let head = two.wait_for_commit(Seq(20), Duration::from_millis(3)).unwrap();
        assert_eq!(head.seq, Seq(20), "nothing came");
    }
}

#[test]
fn damage_that_reading_meets_stops_appends() {
    let place = Place::new();
    let log = place.open(true);
    let first = append(&log, 0).unwrap();
    let _ = append(&log, 1).unwrap();
    let file = log.storage.open("log/000000000001.seg", Access::Write).unwrap();
    let at = first.rows[0].position.offset() + 20;
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[byte[0] ^ 1], at).unwrap();
    let _ = append(&log, 2).unwrap();
    assert!(matches!(log.body(&first.rows[0]), Err(LogError::Corrupt(_))));
    assert!(matches!(append(&log, 3), Err(LogError::Corrupt(_))), "the damage would be buried");
    assert_eq!(log.body(&first.rows[1]).unwrap(), text(0, 1), "the rest is readable");
}

#[test]
fn a_reader_maps_the_page_and_writes_nothing() {
    let place = Place::new();
    let one = place.open(true);
    let _ = append(&one, 0).unwrap();
    let options = LogOptions { read_only: true, ..LogOptions::default() };
    let storage = Arc::new(place.storage(true));
    let (reader, _) =
        Log::open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options).unwrap();
    let _ = append(&one, 1).unwrap();
    assert_eq!(reader.refresh().unwrap().seq, Seq(4));
    assert!(reader.shared_page().is_some());
    assert!(matches!(append(&reader, 2), Err(LogError::ReadOnly { .. })));
    one.generation_changed();
    let _ = reader.refresh().unwrap();
    assert_eq!(reader.generation.load(Ordering::SeqCst), 1, "files that were replaced are let go");
}

/// Sealing told nobody: whoever had the old file open kept it, and its space, until it ended.
#[test]
fn a_seal_makes_other_handles_let_go_of_the_old_file() {
    for kinds in [[true, true], [false, false], [true, false]] {
        let place = Place::new();
        let (one, _) = place.open_with(kinds[0], SMALL);
        let (two, _) = place.open_with(kinds[1], SMALL);
        for commit in 0..12 {
            let _ = append(&one, commit).unwrap();
        }
        two.refresh().unwrap();
        let before = sound_listing(&two);
        assert!(two.segments.get(1).unwrap().unwrap().sealed.is_none());
        let sealed = one.seal(1, &|| false).unwrap();
        assert!(matches!(sealed, SealOutcome::Sealed(_)), "{sealed:?}");
        // Without shared memory the page is looked at when something is new.
        let _ = append(&one, 12).unwrap();
        two.refresh().unwrap();
        assert!(two.segments.get(1).unwrap().unwrap().sealed.is_some(), "{kinds:?}: the new file is read");
        assert_eq!(sound_listing(&two)[..before.len()], before);
    }
}

/// A thread that begins a new segment syncs the old one. If the sync of another thread had just failed, this one did
/// not: through one file a failure is told once. So what was lost was said to be durable.
#[test]
fn a_roll_after_another_threads_failed_sync_confirms_nothing() {
    for shared in [true, false] {
        let place = Place::new();
        let log = place.open(shared);
        let _ = append(&log, 0).unwrap();
        let _ = log.place(log.prepare(&[event(&log, 1, 0)]).unwrap(), &[]).unwrap();
        let tail = log.tail.as_ref().unwrap();
        let mut writer = super::locked(&log.writer);
        let lock = tail.lock(&*log.clock, log.options.lock_wait).unwrap();
        let page = tail.read().unwrap();
        log.catch_up(tail, &mut writer, &page).unwrap();
        tail.poison();
        assert!(matches!(log.roll(tail, &mut writer), Err(LogError::Poisoned { .. })), "shared {shared}");
        assert_eq!(tail.read().unwrap().durable, page.durable, "shared {shared}");
        drop(lock);
    }
}
