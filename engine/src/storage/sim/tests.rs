//! The simulation keeps its promises: it forgets, tears, tells of errors once, and takes turns by the seed.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::storage::{Access, Clock, Storage, StoredFile, sync, write_all};

fn page_file(storage: &SimStorage) {
    let file = storage.open("tail", Access::Create).unwrap();
    write_all(&*file, &[0; 4096], 0, &mut 0).unwrap();
    sync(&*file).unwrap();
    storage.sync_dir("").unwrap();
}

fn put(file: &dyn StoredFile, word: u64, value: u64) {
    write_all(file, &value.to_le_bytes(), word * 8, &mut 0).unwrap();
}

fn word(file: &dyn StoredFile, word: u64) -> u64 {
    let mut bytes = [0; 8];
    assert_eq!(file.read_at(&mut bytes, word * 8).unwrap(), 8);
    u64::from_le_bytes(bytes)
}

/// A process may read half of a write that another process makes at once, but never half of a word.
#[test]
fn records_tear_between_processes_and_words_do_not() {
    const WORDS: usize = 8;
    let mut mixed = 0;
    for seed in 0..40 {
        let world = SimWorld::new(seed);
        page_file(&world.process(9));
        let write = |storage: SimStorage| {
            let file = storage.open("tail", Access::Write).unwrap();
            for value in 1..=20_u8 {
                write_all(&*file, &[value; WORDS * 8], 64, &mut 0).unwrap();
            }
            0
        };
        let read = |storage: SimStorage| {
            let file = storage.open("tail", Access::Read).unwrap();
            let mut mixed = 0;
            for _ in 0..20 {
                let mut bytes = [0; WORDS * 8];
                assert_eq!(file.read_at(&mut bytes, 64).unwrap(), bytes.len());
                let (words, _) = bytes.as_chunks::<8>();
                assert!(words.iter().all(|word| word.iter().all(|byte| *byte == word[0])), "{bytes:?}");
                mixed += u64::from(words.iter().any(|word| *word != words[0]));
            }
            mixed
        };
        let parts: Vec<(SimStorage, Part<'_, u64>)> =
            vec![(world.process(1), Box::new(write)), (world.process(2), Box::new(read))];
        mixed += world.interleave(seed, parts)[1];
    }
    assert!(mixed > 20, "{mixed}");
}

#[test]
fn a_power_cut_keeps_any_version_of_a_word() {
    let mut kept = BTreeSet::new();
    for seed in 0..200 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        page_file(&storage);
        let page = storage.open("tail", Access::Write).unwrap();
        (1..=3).for_each(|value| put(&*page, 0, value));
        world.cut_power();
        kept.insert(world.file("tail").unwrap()[0]);
    }
    assert_eq!(kept, BTreeSet::from([0, 1, 2, 3]));
}

#[test]
fn each_open_file_is_told_once_of_a_failed_write_back() {
    let world = SimWorld::new(1);
    let (one, two) = (world.process(1), world.process(2));
    let open = |storage: &SimStorage| storage.open("a", Access::Create).unwrap();
    let (left, right) = (open(&one), open(&two));
    write_all(&*left, b"lost", 0, &mut 0).unwrap();
    one.plant(Fault { kind: FaultKind::SyncError, after: 0, once: true });
    assert!(left.sync_data().is_err());
    assert!(left.sync_data().is_ok(), "once");
    assert!(right.sync_data().is_err(), "it was open");
    assert!(open(&two).sync_data().is_ok(), "it was opened after the failure was reported");
    world.fail_write_back("a", false);
    let late = open(&two);
    assert!(late.sync_data().is_err(), "the failure was not reported before");
    assert!(open(&two).sync_data().is_ok());
}

#[test]
fn a_lying_sync_keeps_nothing_until_an_honest_one() {
    let mut lost = 0;
    for seed in 0..40 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        let file = storage.open("a", Access::Create).unwrap();
        storage.sync_dir("").unwrap();
        write_all(&*file, &[7; 512], 0, &mut 0).unwrap();
        storage.plant(Fault { kind: FaultKind::SyncLies, after: 0, once: true });
        sync(&*file).unwrap();
        let cut = world.fork(seed);
        cut.cut_power();
        lost += usize::from(cut.file("a").unwrap() != [7; 512]);
        sync(&*file).unwrap();
        world.cut_power();
        assert_eq!(world.file("a").unwrap(), [7; 512]);
    }
    assert!(lost > 5, "{lost}");
}

/// Three processes that count in a word of a file under a lock: nothing is lost, and the order of turns follows from the seed.
fn count_together(seed: u64) -> (u64, u64, Vec<u64>) {
    let world = SimWorld::new(seed);
    page_file(&world.process(9));
    let count = |storage: SimStorage| {
        let file = storage.open("tail", Access::Write).unwrap();
        let clock = storage.clock();
        for _ in 0..10 {
            while !file.try_lock().unwrap() {
                clock.sleep(Duration::from_micros(20));
            }
            let value = word(&*file, 0);
            put(&*file, 0, value + 1);
            file.unlock().unwrap();
        }
        word(&*file, 0)
    };
    let parts: Vec<(SimStorage, Part<'_, u64>)> =
        (0..3).map(|number| (world.process(number), Box::new(count) as Box<_>)).collect();
    let ended_with = world.interleave(seed, parts);
    let file = world.file("tail").unwrap();
    (u64::from_le_bytes(file[..8].try_into().unwrap()), world.trace(), ended_with)
}

#[test]
fn processes_take_turns_as_the_seed_says() {
    let mut traces = BTreeSet::new();
    for seed in 0..20 {
        let (sum, trace, seen) = count_together(seed);
        assert_eq!(sum, 30);
        assert_eq!((sum, trace, seen), count_together(seed), "seed {seed} repeats");
        traces.insert(trace);
    }
    assert_eq!(traces.len(), 20, "and no two are alike");
}

#[test]
fn sleeping_takes_virtual_time_and_lets_others_go_on() {
    let world = SimWorld::new(3);
    page_file(&world.process(9));
    let sleeper = |storage: SimStorage| {
        let file = storage.open("tail", Access::Write).unwrap();
        let mut looks = 0;
        while word(&*file, 2) == 0 {
            storage.clock().sleep(Duration::from_secs(3600));
            looks += 1;
        }
        looks
    };
    let worker = |storage: SimStorage| {
        let file = storage.open("tail", Access::Write).unwrap();
        storage.clock().sleep(Duration::from_secs(60));
        put(&*file, 2, 1);
        0
    };
    let parts: Vec<(SimStorage, Part<'_, u64>)> =
        vec![(world.process(1), Box::new(sleeper)), (world.process(2), Box::new(worker))];
    assert_eq!(world.interleave(5, parts), [1, 0], "the sleeper looked before and after");
    assert!(world.process(1).clock().elapsed() > Duration::from_secs(3600));
}

#[test]
fn a_power_cut_ends_who_waits() {
    let world = SimWorld::new(3);
    page_file(&world.process(9));
    let waiter = |storage: SimStorage| {
        let file = storage.open("tail", Access::Write).unwrap();
        while file.try_lock().is_ok() {
            storage.clock().sleep(Duration::from_secs(3600));
        }
        storage.is_dead()
    };
    let cutter = |storage: SimStorage| {
        storage.crash_at(3, Crash::Power);
        while storage.create_dir("log").is_ok() {}
        storage.is_dead()
    };
    let parts: Vec<(SimStorage, Part<'_, bool>)> =
        vec![(world.process(1), Box::new(waiter)), (world.process(2), Box::new(cutter))];
    assert_eq!(world.interleave(5, parts), [true, true]);
}

#[test]
fn a_recording_has_a_moment_for_every_operation_that_matters() {
    let world = SimWorld::new(1);
    let storage = world.process(1);
    let moments = Arc::new(Mutex::new(Vec::new()));
    let recorded = moments.clone();
    world.record(move |moment| recorded.lock().unwrap().push(moment));
    storage.create_dir("log").unwrap();
    let file = storage.open("log/a", Access::Create).unwrap();
    assert_eq!(file.len().unwrap(), 0);
    assert!(file.is_current().unwrap());
    write_all(&*file, b"hello", 0, &mut 0).unwrap();
    sync(&*file).unwrap();
    storage.sync_dir("log").unwrap();
    world.stop_recording();
    let moments = moments.lock().unwrap();
    let said: Vec<&str> = moments.iter().map(|moment| moment.operation.as_str()).collect();
    let expected = ["make directory log", "create log/a", "ask length log/a", "write log/a", "sync log/a"];
    assert_eq!(said, expected.map(|what| format!("process 1: {what}")));
    let torn: BTreeSet<Vec<u8>> =
        (0..100).map(|seed| moments[3].image(Crash::Kill, seed).file("log/a").unwrap()).collect();
    assert!(torn.len() == 6 && torn.iter().all(|part| b"hello".starts_with(part)), "{torn:?}");
    assert_eq!(moments[4].image(Crash::Kill, 1).file("log/a").unwrap(), b"hello");
    assert!((0..50).any(|seed| moments[4].image(Crash::Power, seed).file("log/a").is_none()));
}

/// Bytes had been written past the end of a file that was then cut. They made the file long again when it was synced.
#[test]
fn a_file_that_was_cut_stays_cut_when_it_is_synced() {
    for seed in 0..8 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        let file = storage.open("file", Access::Create).unwrap();
        write_all(&*file, &[7; 5000], 3000, &mut 0).unwrap();
        file.set_len(1000).unwrap();
        sync(&*file).unwrap();
        storage.sync_dir("").unwrap();
        world.cut_power();
        assert_eq!(world.file("file").unwrap(), vec![0; 1000]);
    }
}
