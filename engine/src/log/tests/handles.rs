//! Several handles on one store of real files. Locks belong to open files, so a handle stands for a process.

use super::*;
use crate::locks::steady;
use crate::log::recovery_scan::{CheckpointFile, read_checkpoint};
use crate::storage::{Access, FileStorage, SystemClock, SystemEntropy};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join("store").join(name)
    }

    fn storage(&self) -> FileStorage {
        FileStorage::new(self.0.path().join("store"))
    }

    fn open_with(&self, segment_bytes_max: u64) -> (Log, Recovery) {
        let options = LogOptions { segment_bytes_max, ..LogOptions::default() };
        let storage = Arc::new(self.storage());
        Log::create_or_open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options).unwrap()
    }

    fn open(&self) -> Log {
        self.open_with(64 << 20).0
    }
}

/// A thread that gave the write lock back let the next thread of its handle in too early, and then unlocked that one's lock: another handle
/// wrote at the same place, and the log was damaged.
#[test]
fn the_write_lock_of_one_thread_is_not_given_back_by_another() {
    let place = Place::new();
    let (log, other) = (place.open(), place.open());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..2000 {
                    let held = log.exclusive().unwrap();
                    let tail = other.tail.as_ref().unwrap();
                    let is_free = tail.lock(&*other.clock, std::time::Duration::ZERO).is_ok();
                    assert!(!is_free, "round {round}: two handles hold the write lock");
                    drop(held);
                }
            });
        }
    });
}

#[test]
fn threads_and_handles_lose_double_and_reorder_nothing_over_rolls() {
    let place = Place::new();
    let logs = [(); 4].map(|()| place.open_with(64 << 10).0);
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
        assert_eq!(log.refresh().unwrap().seq, Seq(400));
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
    let (log, recovery) = place.open_with(64 << 10);
    assert!(recovery.was_clean, "{recovery:?}");
    let report = log.verify().unwrap();
    assert!(report.is_sound() && report.torn_bytes == 0 && report.segments > 2, "{report:?}");
}

#[test]
fn what_is_placed_has_its_seq_and_shows_only_once_it_is_settled() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let prepared = |log: &Log, commit| log.prepare(&[event(log, commit, 0)]).unwrap();
    let first = one.place(prepared(&one, 0), &[]).unwrap();
    let second = one.place(prepared(&one, 1), &[]).unwrap();
    assert_eq!((first.appended().first_seq, second.appended().first_seq), (Seq(1), Seq(2)));
    assert_eq!((one.refresh().unwrap().seq, two.refresh().unwrap().seq), (Seq::ZERO, Seq::ZERO));
    // Another handle writes behind a commit that is not durable, and its sync covers both.
    let _ = append(&two, 2).unwrap();
    assert_eq!(one.refresh().unwrap().seq, Seq(4));
    one.settle(&second).unwrap();
    one.settle(&first).unwrap();
    assert_eq!(sound_listing(&one), sound_listing(&two));
    // A placed commit that is never settled is no loss for the next opening.
    let _ = one.place(prepared(&one, 3), &[]).unwrap();
    let third = place.open();
    assert_eq!(third.head().seq, Seq(5));
    assert!(third.verify().unwrap().is_sound());
}

/// A simulated clock may move while a sync takes its time and stand still afterwards: then a leader waited forever.
#[test]
fn waiting_for_others_ends_though_none_come_and_the_clock_stands_still() {
    let commit_delay = crate::log::commit_queue::CommitDelay::default();
    commit_delay.synced(std::time::Duration::from_millis(1));
    let mut looks = 0;
    let none_come = || {
        looks += 1;
        false
    };
    commit_delay.wait(none_come, std::time::Duration::default);
    assert!((1..5000).contains(&looks), "{looks}");
}

#[test]
fn a_condition_counts_what_is_written_and_not_yet_durable() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let on = |log: &Log, commit| log.prepare(&[event(log, commit, 0)]).unwrap();
    let condition = |number, basis| [Condition { stream: stream(number), basis }];
    let placed = one.place(on(&one, 0), &[]).unwrap();
    let moved = two.append(on(&two, 3), &condition(0, Seq::ZERO));
    assert!(matches!(moved, Err(LogError::HeadMoved { actual: Seq(1), .. })), "{moved:?}");
    // Another stream with the same slot did not move.
    let slot = [Condition { stream: stream(64), basis: Seq::ZERO }];
    assert_eq!(two.append(on(&two, 4), &slot).unwrap().first_seq, Seq(2));
    one.settle(&placed).unwrap();
    // The holder of the write lock sees the whole log.
    let held = two.exclusive().unwrap();
    let basis = two.head().seq;
    assert_eq!(basis, Seq(2));
    assert_eq!(held.append(on(&two, 5), &condition(0, basis)).unwrap().first_seq, Seq(3));
    assert!(one.append(on(&one, 6), &condition(0, Seq(2))).is_ok());
}

/// A hook that had nothing to record waited at its end for a lock that a stopped program held.
#[test]
fn a_handle_that_wrote_nothing_closes_while_another_holds_the_lock() {
    let place = Place::new();
    let one = place.open();
    let _ = append(&one, 0).unwrap();
    one.close().unwrap();
    let (two, three) = (place.open(), place.open());
    let held = three.exclusive().unwrap();
    // Without the look at the checkpoint it would wait for five seconds, and be refused.
    two.close().unwrap();
    let _ = held.append(three.prepare(&[event(&three, 1, 0)]).unwrap(), &[]).unwrap();
    three.close().unwrap();
    let page = place.open().read_page().unwrap();
    let CheckpointFile::Sound(checkpoint) = read_checkpoint(&place.open().segments).unwrap() else {
        panic!("no checkpoint")
    };
    assert_eq!(page.clean().map(|place| place.position), Some(checkpoint.written.position));
}

#[test]
fn a_poisoned_store_refuses_in_every_handle_until_it_is_opened_again() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let _ = append(&one, 0).unwrap();
    let _ = append(&two, 1).unwrap();
    let waiting = one.place(one.prepare(&[event(&one, 2, 0)]).unwrap(), &[]).unwrap();
    // As the handle does when its sync fails.
    let error = two.sync_failed(two.tail.as_ref().unwrap());
    assert!(matches!(error, LogError::Poisoned { .. }));
    assert!(matches!(one.settle(&waiting), Err(LogError::Poisoned { .. })), "no ack");
    for log in [&one, &two] {
        assert!(matches!(append(log, 3), Err(LogError::Poisoned { .. })));
        assert_eq!(log.refresh().unwrap().seq, Seq(4), "reads go on");
    }
    let three = place.open();
    assert_eq!(three.head().seq, Seq(4), "only what was confirmed");
    let _ = append(&three, 4).unwrap();
    for log in [&one, &two] {
        assert!(matches!(append(log, 5), Err(LogError::Poisoned { .. })));
        assert_eq!(log.refresh().unwrap().seq, Seq(6), "reads go on");
    }
    assert!(three.verify().unwrap().is_sound());
}

/// A handle that was not there when a sync failed, and looks again only after the store was opened anew, finds no poison any
/// more. It went on as if nothing had happened, with a file whose pages may never have been written. The epoch tells.
#[test]
fn a_handle_that_slept_through_a_failed_sync_refuses_too() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let _ = append(&one, 0).unwrap();
    let _ = append(&two, 1).unwrap();
    let _ = two.sync_failed(two.tail.as_ref().unwrap());
    let three = place.open();
    let _ = append(&three, 2).unwrap();
    assert!(matches!(append(&one, 3), Err(LogError::Poisoned { .. })));
    assert_eq!(one.refresh().unwrap().seq, Seq(6), "reads go on");
    assert_eq!(sound_listing(&one), sound_listing(&three));
    assert!(append(&place.open(), 4).is_ok());
}

#[test]
fn who_died_writing_is_repaired_and_who_died_syncing_is_not_waited_for() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let _ = append(&one, 0).unwrap();
    // A process died in the middle of a write: busy, and half a frame.
    let tail = one.tail.as_ref().unwrap();
    let end = one.head().position;
    tail.begin(Position(end.0 + 50), 1).unwrap();
    let segment = one.storage.open("log/000000000001.seg", Access::Write).unwrap();
    crate::storage::write_all(&*segment, &[0xaa; 100], end.offset(), &mut 0).unwrap();
    assert_eq!(append(&two, 1).unwrap().first_seq, Seq(3));
    assert!(place.path("quarantine").is_dir());
    // A process holds the sync lock and does nothing: other processes wait a second at most, then sync and publish.
    let turn = tail.lock_sync(&*one.clock, Duration::ZERO).unwrap();
    let placed = two.place(two.prepare(&[event(&two, 2, 0)]).unwrap(), &[]).unwrap();
    let _ = append(&two, 3).unwrap();
    two.settle(&placed).unwrap();
    assert_eq!(one.refresh().unwrap().seq, Seq(7));
    drop(turn);
    assert!(one.verify().unwrap().is_sound());
}

/// The page was put back as it had been a few commits before, by a copy over it. The process that wrote next
/// trusted it, and wrote over commits that had been acknowledged since.
#[test]
fn a_tail_of_the_past_costs_nothing_acknowledged() {
    for opened_before in [true, false] {
        let place = Place::new();
        let (one, two) = (place.open(), place.open());
        let _ = append(&one, 0).unwrap();
        let _ = append(&two, 1).unwrap();
        let old = std::fs::read(place.path("tail")).unwrap();
        let _ = append(&one, 2).unwrap();
        let _ = append(&one, 3).unwrap();
        std::fs::write(place.path("tail"), old).unwrap();
        // This handle knows nothing of the four events behind it.
        let two = if opened_before { two } else { place.open() };
        assert_eq!(append(&two, 4).unwrap().first_seq, Seq(9));
        assert_eq!(append(&one, 5).unwrap().first_seq, Seq(11));
        assert_eq!(two.refresh().unwrap().seq, Seq(12));
        assert_eq!(sound_listing(&one), sound_listing(&two));
        assert!(two.verify().unwrap().is_sound());
    }
}

/// The page is cut while commits wait for their sync: it is made anew from the log, which has those commits.
#[test]
fn a_tail_that_is_cut_is_made_anew() {
    for length in [0, 100, 700, 900] {
        let place = Place::new();
        let (one, two) = (place.open(), place.open());
        let _ = append(&one, 0).unwrap();
        let waiting = one.place(one.prepare(&[event(&one, 1, 0)]).unwrap(), &[]).unwrap();
        let tail = std::fs::OpenOptions::new().write(true).open(place.path("tail")).unwrap();
        tail.set_len(length).unwrap();
        one.settle(&waiting).unwrap();
        assert_eq!(append(&two, 2).unwrap().first_seq, Seq(4), "{length}");
        tail.set_len(length).unwrap();
        assert_eq!(one.refresh().unwrap().seq, Seq(3), "{length}: what is known stays");
        assert_eq!(append(&one, 3).unwrap().first_seq, Seq(6), "{length}");
        assert_eq!(place.open().head().seq, Seq(7));
        assert_eq!(tail.metadata().unwrap().len(), 4096);
        assert!(two.verify().unwrap().is_sound());
    }
}

/// The page is cut, and the writer ends: it left neither page nor checkpoint, and readers missed the last acknowledged commits. The
/// writer makes both anew now.
#[test]
fn who_ends_behind_a_tail_that_was_cut_leaves_all_that_it_acknowledged_to_readers() {
    for length in [0, 700] {
        let place = Place::new();
        let one = place.open();
        let _ = append(&one, 0).unwrap();
        let _ = append(&one, 1).unwrap();
        std::fs::OpenOptions::new().write(true).open(place.path("tail")).unwrap().set_len(length).unwrap();
        one.close().unwrap();
        let read_only = LogOptions { read_only: true, ..LogOptions::default() };
        let storage = Arc::new(place.storage().read_only());
        let (reader, recovery) =
            Log::open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), read_only).unwrap();
        assert_eq!((reader.head().seq, recovery.unconfirmed_event_count), (Seq(4), 0), "{length}");
        assert!(recovery.was_clean && place.path("checkpoint").is_file(), "{length}");
    }
}

/// The page is cut again while a handle has the lock and waits for the disk. The handle refused to write any more, though the log is
/// whole; and its acknowledged commits had no witness then.
#[test]
fn a_tail_that_is_cut_under_the_lock_ends_no_handle() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let _ = append(&one, 0).unwrap();
    let waiting = two.place(two.prepare(&[event(&two, 1, 0)]).unwrap(), &[]).unwrap();
    let mut writer = steady(&one.writer);
    let tail = one.tail.as_ref().unwrap();
    let lock = tail.lock(&*one.clock, one.options.lock_wait).unwrap();
    one.catch_up(tail, &mut writer, &tail.read().unwrap()).unwrap();
    std::fs::OpenOptions::new().write(true).open(place.path("tail")).unwrap().set_len(0).unwrap();
    one.make_durable(tail, &mut writer).unwrap();
    drop(lock);
    drop(writer);
    two.settle(&waiting).unwrap();
    assert_eq!((one.head().seq, place.open().head().seq), (Seq(3), Seq(3)));
    assert_eq!(append(&one, 2).unwrap().first_seq, Seq(4));
    assert_eq!(sound_listing(&one).len(), 5);
}

/// One handle placed a commit, the tail was cut, the commit's bytes were damaged, and another handle made log and tail anew without it.
/// By the new page the first handle took its commit for durable once other commits were in its place.
#[test]
fn what_was_given_up_behind_a_tail_that_was_cut_is_not_acknowledged() {
    use std::os::unix::fs::FileExt as _;
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let _ = append(&one, 0).unwrap();
    let waiting = one.place(one.prepare(&[event(&one, 1, 0)]).unwrap(), &[]).unwrap();
    let segment = std::fs::OpenOptions::new().write(true).open(place.path("log/000000000001.seg")).unwrap();
    segment.write_all_at(&[0x5a; 8], waiting.appended().position.offset() + 200).unwrap();
    std::fs::OpenOptions::new().write(true).open(place.path("tail")).unwrap().set_len(0).unwrap();
    assert_eq!(append(&two, 2).unwrap().first_seq, Seq(3));
    assert_eq!(append(&two, 5).unwrap().first_seq, Seq(5));
    assert!(matches!(one.settle(&waiting), Err(LogError::Poisoned { .. })));
    assert!(two.verify().unwrap().is_sound());
}

/// Another file under the name of the tail: two writers would hold two locks. A handle on the old one gets an error.
#[test]
fn a_tail_that_is_another_file_now_stops_who_has_the_old_one() {
    let place = Place::new();
    let (one, reader) = (place.open(), {
        let options = LogOptions { read_only: true, ..LogOptions::default() };
        Log::open(Arc::new(place.storage()), Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options)
            .unwrap()
            .0
    });
    let _ = append(&one, 0).unwrap();
    let waiting = one.place(one.prepare(&[event(&one, 1, 0)]).unwrap(), &[]).unwrap();
    // The old file is kept beside, so that it still has a name.
    std::fs::rename(place.path("tail"), place.path("tail.old")).unwrap();
    std::fs::copy(place.path("tail.old"), place.path("tail")).unwrap();
    let says = |error: LogError| {
        let text = error.to_string();
        assert!(text.contains("tail") && text.contains("reopen the store"), "{text}");
        error
    };
    assert!(matches!(says(append(&one, 2).unwrap_err()), LogError::Moved { .. }));
    // The first look finds the handle's own commit. The next one finds nothing new, and so looks at the name.
    let _ = one.refresh().unwrap();
    assert!(matches!(says(one.refresh().unwrap_err()), LogError::Moved { .. }));
    assert!(
        matches!(says(one.settle(&waiting).unwrap_err()), LogError::Replaced { .. }),
        "it may be there or not"
    );
    let two = place.open();
    assert_eq!(append(&two, 3).unwrap().first_seq, Seq(4), "it was there");
    assert_eq!(reader.refresh().unwrap().seq, Seq(5), "who only reads follows the name");
    assert!(two.verify().unwrap().is_sound());
    std::fs::remove_file(place.path("tail")).unwrap();
    assert!(matches!(says(append(&two, 4).unwrap_err()), LogError::Moved { .. }));
    assert_eq!(append(&place.open(), 5).unwrap().first_seq, Seq(6));
}

/// Commits of another process that are not durable are written again by the first append, so that its sync counts for
/// them. Bytes that were damaged meanwhile were written again as they were, and acknowledged with the commits behind them.
#[test]
fn what_is_not_durable_is_looked_at_before_it_is_built_upon() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let _ = append(&one, 0).unwrap();
    let waiting = one.place(one.prepare(&[event(&one, 1, 0)]).unwrap(), &[]).unwrap();
    let file = one.storage.open("log/000000000001.seg", Access::Write).unwrap();
    file.write_at(&[0xee; 40], waiting.appended().position.offset() + 200).unwrap();
    assert_eq!(append(&two, 2).unwrap().first_seq, Seq(3), "it is torn, and goes to quarantine");
    assert!(two.verify().unwrap().is_sound());
    // Another commit lies where it was.
    assert!(matches!(one.settle(&waiting), Err(LogError::Poisoned { .. })));
}

#[test]
fn followers_see_commits_of_other_handles() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
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

#[test]
fn damage_that_reading_meets_stops_appends() {
    let place = Place::new();
    let log = place.open();
    let first = append(&log, 0).unwrap();
    let _ = append(&log, 1).unwrap();
    let file = log.storage.open("log/000000000001.seg", Access::Write).unwrap();
    let rows = rows_of(&log, &first);
    let at = rows[0].place.offset + 20;
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[byte[0] ^ 1], at).unwrap();
    let _ = append(&log, 2).unwrap();
    assert!(matches!(log.body(&rows[0]), Err(LogError::Corrupt(_))));
    assert!(matches!(append(&log, 3), Err(LogError::Corrupt(_))), "the damage would be buried");
    assert_eq!(log.body(&rows[1]).unwrap(), text(0, 1), "the rest is readable");
}

#[test]
fn a_reader_sees_commits_and_writes_nothing() {
    let place = Place::new();
    let one = place.open();
    let _ = append(&one, 0).unwrap();
    let options = LogOptions { read_only: true, ..LogOptions::default() };
    let storage = Arc::new(place.storage());
    let (reader, _) =
        Log::open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options).unwrap();
    let _ = append(&one, 1).unwrap();
    assert_eq!(reader.refresh().unwrap().seq, Seq(4));
    assert!(matches!(append(&reader, 2), Err(LogError::ReadOnly { .. })));
    one.generation_changed();
    let _ = reader.refresh().unwrap();
    assert_eq!(
        reader.generation.load(std::sync::atomic::Ordering::SeqCst),
        1,
        "files that were replaced are let go"
    );
}

/// Other handles did not learn of a seal: each kept the old file open, and its space, until it ended.
#[test]
fn a_seal_makes_other_handles_let_go_of_the_old_file() {
    let place = Place::new();
    let (one, _) = place.open_with(SMALL);
    let (two, _) = place.open_with(SMALL);
    for commit in 0..12 {
        let _ = append(&one, commit).unwrap();
    }
    two.refresh().unwrap();
    let before = sound_listing(&two);
    assert!(two.segments.get(1).unwrap().unwrap().sealed.is_none());
    let sealed = one.seal(1, &|| false).unwrap();
    assert!(matches!(sealed, SealOutcome::Sealed(_)), "{sealed:?}");
    two.refresh().unwrap();
    assert!(two.segments.get(1).unwrap().unwrap().sealed.is_some(), "the new file is read");
    assert_eq!(sound_listing(&two), before);
}

/// A thread that begins a new segment syncs the old one. If the sync of another thread had just failed, this sync did not
/// fail: through one file a failure is told once. So lost commits were said to be durable.
#[test]
fn a_roll_after_another_threads_failed_sync_confirms_nothing() {
    let place = Place::new();
    let log = place.open();
    let _ = append(&log, 0).unwrap();
    let _ = log.place(log.prepare(&[event(&log, 1, 0)]).unwrap(), &[]).unwrap();
    let tail = log.tail.as_ref().unwrap();
    let mut writer = steady(&log.writer);
    let lock = tail.lock(&*log.clock, log.options.lock_wait).unwrap();
    let page = tail.read().unwrap();
    log.catch_up(tail, &mut writer, &page).unwrap();
    tail.poison();
    assert!(matches!(log.roll(tail, &mut writer), Err(LogError::Poisoned { .. })));
    assert_eq!(tail.read().unwrap().durable, page.durable);
    drop(lock);
}

/// A clock that panics once, when it is asked for the time: commits ask it while they are written.
struct Panicking(SystemClock, std::sync::atomic::AtomicBool);

impl crate::storage::Clock for Panicking {
    fn now(&self) -> Micros {
        assert!(!self.1.swap(false, std::sync::atomic::Ordering::SeqCst), "in the middle of a write");
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, time: Duration) {
        self.0.sleep(time);
    }
}

/// After a panic in the middle of a write the handle went on with its half changed state, and the callers behind the leader
/// waited for ever.
#[test]
fn after_a_panic_in_the_middle_of_a_write_the_handle_writes_no_more() {
    let place = Place::new();
    let clock = Arc::new(Panicking(SystemClock::new(), false.into()));
    let log = |clock| {
        let (storage, entropy) = (Arc::new(place.storage()), Arc::new(SystemEntropy));
        Log::create_or_open(storage, clock, entropy, LogOptions::default()).unwrap().0
    };
    let first = log(clock.clone());
    let _ = append(&first, 0).unwrap();
    clock.1.store(true, std::sync::atomic::Ordering::SeqCst);
    let panicked = std::thread::scope(|scope| scope.spawn(|| append(&first, 1)).join());
    assert!(panicked.is_err());
    for commit in 2..4 {
        assert!(matches!(append(&first, commit), Err(LogError::Poisoned { .. })));
    }
    assert!(matches!(first.exclusive().map(drop), Err(LogError::Poisoned { .. })));
    assert_eq!(sound_listing(&first).len(), 2);
    // A handle of its own, of this process or another, goes on.
    let second = log(Arc::new(Panicking(SystemClock::new(), false.into())));
    let _ = append(&second, 4).unwrap();
    assert_eq!(sound_listing(&second).len(), 4);
    assert_eq!(first.refresh().unwrap().seq, Seq(4));
}
