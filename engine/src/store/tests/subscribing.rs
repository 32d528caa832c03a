//! Subscribers see each commit once, in order, whichever process writes and whenever they begin.

use std::time::Duration;

use tempfile::TempDir;

use super::super::*;
use crate::event::Role;

const LONG: Duration = Duration::from_secs(3600);

fn open(folder: &TempDir) -> Store {
    // Small segments, so that commits lie in many.
    Store::builder(folder.path().join("store")).segment_bytes_max(16 << 10).open().unwrap()
}

fn say(store: &Store, session: &str, texts: usize) -> Receipt {
    let entries = (0..texts).map(|n| Entry::message("", Role::User, format!("{session} says {n} at length")));
    store.append(&StreamInfo::session("acpdb", session), entries.collect()).unwrap()
}

/// First and last seq of each commit.
fn drain(subscription: &mut Subscription) -> Vec<(u64, u64)> {
    let commits = std::iter::from_fn(|| subscription.next_within(Duration::ZERO).unwrap());
    commits.map(|commit| (commit.events[0].seq.get(), commit.last_seq().get())).collect()
}

fn sizes(store: &Store) -> Vec<(u64, u64)> {
    let until = store.inner.log.refresh().unwrap();
    let frames = store.inner.log.frames(crate::ids::Position::default(), until);
    let headers = frames.map(|frame| *frame.unwrap().header());
    headers.map(|header| (header.first_seq.get(), header.last_seq().get())).collect()
}

#[test]
fn every_commit_comes_once_in_order_from_any_seq_over_rolls_and_a_reopen() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    for number in 0..60 {
        let _ = say(&store, ["a", "b", "c"][number % 3], 1 + number * 7 % 5);
    }
    let all = sizes(&store);
    assert!(store.inner.log.head().position.segment() > 2, "too small to roll");
    assert_eq!(drain(&mut store.subscribe(Seq::ZERO)), all);
    let head = store.head().unwrap().get();
    for from in 1..=head {
        // The first commit may begin in the middle.
        let expected: Vec<_> = all
            .iter()
            .filter(|commit| commit.1 >= from)
            .map(|commit| (commit.0.max(from), commit.1))
            .collect();
        assert_eq!(drain(&mut store.subscribe(Seq(from))), expected, "from {from}");
    }

    // Interleaved with appends, and continued after a reopen.
    let mut early = store.subscribe(Seq(head + 1));
    assert_eq!(drain(&mut early), []);
    let mut seen = Vec::new();
    for number in 0..40 {
        let _ = say(&store, "d", 1 + number % 4);
        if number % 3 == 0 {
            seen.extend(drain(&mut early));
        }
    }
    let next = early.next_seq();
    drop((early, store));
    let store = open(&folder);
    let _ = say(&store, "e", 3);
    seen.extend(drain(&mut store.subscribe(next)));
    assert_eq!(seen, sizes(&store)[all.len()..]);
}

#[test]
fn a_waiting_subscriber_is_given_commits_of_other_threads_and_handles() {
    const COMMIT_COUNT: usize = 40;
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let mut subscription = store.subscribe(Seq(2));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            // The second thread writes through a handle of its own, as another process would.
            let handle = if writer == 0 { store.clone() } else { open(&folder) };
            scope.spawn(move || {
                for number in 0..COMMIT_COUNT {
                    let _ = say(&handle, &format!("w{writer}"), 1 + number % 3);
                }
            });
        }
        let mut seen = Vec::new();
        while seen.len() < COMMIT_COUNT * 2 {
            let commit = subscription.next_within(LONG).unwrap().expect("there is more");
            seen.push((commit.events[0].seq.get(), commit.last_seq().get()));
        }
        assert_eq!(seen, sizes(&store)[1..]);
    });
    assert!(subscription.next_within(Duration::ZERO).unwrap().is_none());
}

/// A subscriber that came to damage at the end of the log told of it again and again, or left out the events behind it.
#[test]
fn damage_is_told_of_once_and_stepped_over() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let receipts: Vec<Receipt> = (0..6).map(|_| say(&store, "a", 2)).collect();
    drop(store);
    let path = folder.path().join("store/log/000000000001.seg");
    let bytes = std::fs::read(&path).unwrap();
    for damaged in [2, 5] {
        let (mut bytes, mut found) = (bytes.clone(), 0);
        let text = b"a says 1 at length";
        for at in 0..bytes.len() - text.len() {
            if bytes[at..].starts_with(text) {
                if found == damaged {
                    // The spine lies before the bodies.
                    bytes[at - 120] ^= 1;
                    break;
                }
                found += 1;
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let store = open(&folder);
        let mut subscription = store.subscribe(Seq(2));
        let (mut lasts, mut errors) = (Vec::new(), 0);
        loop {
            match subscription.next_within(Duration::ZERO) {
                Ok(Some(commit)) => lasts.push(commit.last_seq()),
                Ok(None) => break,
                Err(Error::Corrupt { .. }) => errors += 1,
                Err(error) => panic!("{error}"),
            }
        }
        let mut expected: Vec<Seq> = receipts.iter().map(|receipt| receipt.last_seq).collect();
        expected.remove(damaged);
        assert_eq!((lasts, errors), (expected, 1), "commit {damaged}");
    }
}
