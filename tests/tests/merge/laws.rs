//! Merging is idempotent, commutative and associative, as far as sessions, contexts, chains and memory go.

use acpdb_engine::entry::{Entry, MemoryEntry};
use acpdb_engine::event::{MemoryKind, Role};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::travel::Piece;
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{MemoryCommand, MemoryScope, Store};
use acpdb_tests::merging::{Laptop, go_on, remembered, session, stories, texts};
use acpdb_tests::support::cases;
use proptest::prelude::*;
use std::sync::Arc;

fn numbers(most: usize) -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..most)
}

/// The stories of a store, with memory.
fn told(laptop: &Laptop) -> Vec<String> {
    let mut all = stories(&laptop.store).unwrap();
    // A branch and the session that it went on from may be told alike.
    all.dedup();
    all.extend(remembered(&laptop.store).unwrap());
    all
}

fn sound(laptop: &Laptop) {
    laptop.store.sync().unwrap();
    let report = verify_storage(Arc::new(laptop.world.process(9)), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
}

/// Stores that begin alike and go on apart.
fn apart(common: &[u16], each: &[&[u16]]) -> Vec<Laptop> {
    let first = Laptop::new(1).unwrap();
    go_on(&first.store, "common", common).unwrap();
    let mut all = vec![first.clone()];
    for seed in 2..=each.len() as u64 {
        let other = Laptop::new(seed).unwrap();
        let _ = other.merge(&first).unwrap();
        all.push(other);
    }
    for (laptop, (place, numbers)) in all.iter().zip(each.iter().enumerate()) {
        go_on(&laptop.store, &format!("of{place}-"), numbers).unwrap();
    }
    all
}

/// Fails with the lines that only one of two tells.
fn same(one: &Laptop, other: &Laptop) {
    let (one, other) = (told(one), told(other));
    let only = |these: &[String], those: &[String]| {
        let lines: Vec<&str> = those.iter().flat_map(|story| story.lines()).collect();
        let strange = these.iter().filter(|story| !those.contains(story));
        let odd = strange.flat_map(|story| story.lines()).filter(|line| !lines.contains(line));
        odd.map(str::to_owned).collect::<Vec<String>>()
    };
    let (left, right) = (only(&one, &other), only(&other, &one));
    let count = |all: &[String]| all.iter().map(|story| story.lines().count()).collect::<Vec<_>>();
    assert!(one == other, "{:?} {:?}\n{left:#?}\n{right:#?}", count(&one), count(&other));
}

/// The events that are packed of one stream, or of all, each with its stream.
fn packed(store: &Store, only: Option<StreamId>) -> Vec<(StreamId, String)> {
    let mut all = Vec::new();
    let only = only.map(|only| [only]);
    let count = store.parcels(only.as_ref().map(<[_; 1]>::as_slice), Seq::MAX, &mut |piece| {
        if let Piece::Parcel(parcel) = piece {
            all.push((parcel.stream, serde_json::to_string(&parcel).unwrap()));
        }
        Ok(())
    });
    assert_eq!(count.unwrap(), all.len() as u64);
    all
}

/// An item of a project's memory names the sentence that says it, which is of another stream.
#[test]
fn what_is_packed_alone_names_events_of_other_streams() {
    let laptop = Laptop::new(1).unwrap();
    go_on(&laptop.store, "one-", &[1, 2, 3]).unwrap();
    let said = Entry::message("said", Role::User, "always run the tests").origin("msg:said");
    let said = laptop.store.append(&session(1), vec![said]).unwrap().items[0].unwrap();
    let entry = MemoryEntry {
        kind: MemoryKind::Decision,
        value: "run the tests".to_owned(),
        source: Some((said, 0, 20)),
        ..MemoryEntry::default()
    };
    let scope = MemoryScope::project("shop");
    let kept = laptop.store.remember(&scope, &MemoryCommand::Add(entry)).unwrap();
    let alone = packed(&laptop.store, Some(kept.stream));
    let whole = packed(&laptop.store, None);
    let share: Vec<_> = whole.into_iter().filter(|(stream, _)| *stream == kept.stream).collect();
    assert_eq!(alone, share);
    let of = format!(r#""stream":"{}""#, session(1).id());
    assert!(alone.iter().any(|(_, parcel)| parcel.contains(&of)), "{alone:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), failure_persistence: None, ..ProptestConfig::default() })]

    /// A new store that takes in another tells the same; again adds nothing, and giving it back adds nothing.
    #[test]
    fn a_store_that_takes_in_another_tells_the_same(common in numbers(60)) {
        let all = apart(&common, &[&[], &[]]);
        same(&all[0], &all[1]);
        sound(&all[1]);
        for (one, other) in [(0, 1), (1, 0), (0, 0)] {
            let report = all[one].merge(&all[other]).unwrap();
            prop_assert_eq!((report.events_new, report.branches.len()), (0, 0), "{:#?}", report);
        }
    }

    /// Two that went on apart hold the same after merging both ways, whichever went first, and nothing is lost.
    #[test]
    fn two_that_merge_both_ways_hold_the_same(common in numbers(30), one in numbers(20), other in numbers(20)) {
        let all = apart(&common, &[&one, &other]);
        let before = [told(&all[0]), told(&all[1])];
        let _ = all[0].merge(&all[1]).unwrap();
        let _ = all[1].merge(&all[0]).unwrap();
        same(&all[0], &all[1]);
        sound(&all[0]);
        sound(&all[1]);
        for (place, before) in before.iter().enumerate() {
            // Each goes on with its own sessions: they are told as before, or go on.
            prop_assert!(told(&all[place]).len() >= before.iter().filter(|it| it.contains("current")).count());
        }
        for (one, other) in [(0, 1), (1, 0)] {
            let report = all[one].merge(&all[other]).unwrap();
            prop_assert_eq!((report.events_new, report.branches.len()), (0, 0), "{:#?}", report);
        }
    }

    /// A sealed store that shredded one of its sessions takes in a store that has it: no text of that session alone is there again, whatever the two
    /// did before and after, and a second merge adds nothing.
    #[test]
    fn no_text_of_a_shredded_session_comes_back(
        common in numbers(30), one in numbers(20), two in numbers(20), later in numbers(12), is_merged in any::<bool>(), which in any::<u16>(),
    ) {
        let (sealed, other) = (Laptop::sealed(1).unwrap(), Laptop::new(2).unwrap());
        go_on(&sealed.store, "common", &common).unwrap();
        let _ = other.merge(&sealed).unwrap();
        go_on(&sealed.store, "of1-", &one).unwrap();
        go_on(&other.store, "of2-", &two).unwrap();
        if is_merged {
            let _ = sealed.merge(&other).unwrap();
        }
        go_on(&other.store, "later", &later).unwrap();
        let (here, there) = (texts(&sealed.store).unwrap(), texts(&other.store).unwrap());
        let sessions: Vec<StreamId> = sealed.store.stream_names().unwrap().iter().map(|name| name.id).collect();
        prop_assume!(!sessions.is_empty());
        let gone = sessions[usize::from(which) % sessions.len()];
        let elsewhere = |text: &String| here.iter().chain(&there).any(|(stream, other)| *stream != gone && other == text);
        let own: Vec<&String> = here.iter().filter(|(stream, _)| *stream == gone).map(|(_, text)| text).collect();
        let own: Vec<&String> = own.into_iter().filter(|text| !elsewhere(text)).collect();
        let _ = sealed.store.shred(gone, "tester", "asked to").unwrap();
        let _ = sealed.merge(&other).unwrap();
        let again = sealed.merge(&other).unwrap();
        prop_assert_eq!((again.events_new, again.branches.len()), (0, 0), "{:#?}", again);
        for (_, text) in texts(&sealed.store).unwrap() {
            prop_assert!(!own.contains(&&text), "{text:?}");
        }
        let _ = other.merge(&sealed).unwrap();
        let again = other.merge(&sealed).unwrap();
        prop_assert_eq!((again.events_new, again.branches.len()), (0, 0), "{:#?}", again);
        sound(&sealed);
        sound(&other);
    }

    /// Three, in any order of merges that brings everything everywhere.
    #[test]
    fn three_in_any_order_hold_the_same(
        common in numbers(20), one in numbers(12), two in numbers(12), three in numbers(12), order in 0..6_usize,
    ) {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let all = apart(&common, &[&one, &two, &three]);
        let [a, b, c] = orders[order];
        for (into, from) in [(a, b), (a, c), (b, c), (b, a), (c, a)] {
            let _ = all[into].merge(&all[from]).unwrap();
        }
        same(&all[0], &all[1]);
        same(&all[1], &all[2]);
        // And into a store that knew nothing.
        let fresh = Laptop::new(9).unwrap();
        let _ = fresh.merge(&all[c]).unwrap();
        same(&fresh, &all[c]);
        sound(&fresh);
    }

    /// The parcels of one session are its share of the parcels of all, to the last reference.
    #[test]
    fn one_session_is_packed_as_among_all(common in numbers(40), one in numbers(20), other in numbers(20)) {
        let all = apart(&common, &[&one, &other]);
        let _ = all[0].merge(&all[1]).unwrap();
        let store = &all[0].store;
        let whole = packed(store, None);
        for name in store.stream_names().unwrap() {
            let alone = packed(store, Some(name.id));
            let streams: std::collections::BTreeSet<StreamId> = alone.iter().map(|(stream, _)| *stream).collect();
            let share: Vec<_> = whole.iter().filter(|(stream, _)| streams.contains(stream)).cloned().collect();
            prop_assert!(streams.contains(&name.id));
            prop_assert_eq!(alone, share);
        }
    }
}
