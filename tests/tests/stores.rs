//! A store is imported into another one as a host is: the same histories, nothing twice, by any way.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests: a failed step is a failed test"
)]

use std::sync::Arc;

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, PartEntry};
use acpdb_engine::event::Role;
use acpdb_engine::ids::ItemId;
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{Error, Store};
use acpdb_hosts::import::ImportFormat;
use acpdb_tests::apart::{Laptop, go_on, remembered, session, stories, texts};
use acpdb_tests::support::{cases, copy_folder, events, import_bytes, texts_of};
use proptest::prelude::*;

/// The bundled session of a host.
const RECORDING: &[u8] = include_bytes!("../../cli/assets/demo-session.jsonl");

fn numbers(most: usize) -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..most)
}

/// Numbers that stand for what hosts tell, each once.
fn told_once(most: usize) -> impl Strategy<Value = Vec<u16>> {
    let number = any::<u16>().prop_filter("it is told by a host, and once", |number| {
        let kind = number / 3 % 32;
        kind <= 16 || (18..=20).contains(&kind)
    });
    prop::collection::vec(number, 0..most)
}

/// The stories of a store, with memory.
fn told(laptop: &Laptop) -> Vec<String> {
    let mut all = stories(&laptop.store).unwrap();
    all.extend(remembered(&laptop.store).unwrap());
    all
}

fn sound(laptop: &Laptop) {
    laptop.store.sync().unwrap();
    let report = verify_storage(Arc::new(laptop.world.process(9)), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
}

/// Fails with the lines that only one of two tells.
fn same(one: &Laptop, other: &Laptop) {
    let (one, other) = (told(one), told(other));
    let only = |these: &[String], those: &[String]| {
        let lines: Vec<&str> = those.iter().flat_map(|story| story.lines()).collect();
        let odd = these.iter().flat_map(|story| story.lines()).filter(|line| !lines.contains(line));
        odd.map(str::to_owned).collect::<Vec<String>>()
    };
    let (left, right) = (only(&one, &other), only(&other, &one));
    let count = |all: &[String]| all.iter().map(|story| story.lines().count()).collect::<Vec<_>>();
    assert!(one == other, "{:?} {:?}\n{left:#?}\n{right:#?}", count(&one), count(&other));
}

fn laptops<const N: usize>() -> [Laptop; N] {
    let mut seed = 0;
    [(); N].map(|()| {
        seed += 1;
        Laptop::new(seed).unwrap()
    })
}

fn message(key: &str, text: &str) -> Vec<Entry> {
    vec![Entry::message(key, Role::User, text).origin(format!("msg:{key}"))]
}

fn says(laptop: &Laptop, text: &str) -> bool {
    texts(&laptop.store).unwrap().iter().any(|(_, one)| one.contains(text))
}

/// Where an item with this text is.
fn item(laptop: &Laptop, text: &str) -> ItemId {
    let all = events(&laptop.store).unwrap();
    let found = all.iter().find(|recorded| {
        let is_it = |body| laptop.store.body(body).is_ok_and(|bytes| bytes == text.as_bytes());
        texts_of(recorded).into_iter().any(is_it)
    });
    ItemId::first(found.unwrap().seq)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), failure_persistence: None, ..ProptestConfig::default() })]

    /// A new store tells what the other tells; again, and back, there is nothing new.
    #[test]
    fn a_store_that_imports_another_tells_the_same(all in numbers(60)) {
        let [from, into] = laptops();
        go_on(&from.store, "one", &all).unwrap();
        let first = into.import_with_memory(&from).unwrap();
        prop_assert_eq!(first.left_out_count, 0, "{:#?}", first);
        same(&from, &into);
        sound(&into);
        for (into, from) in [(&into, &from), (&from, &into)] {
            let again = into.import_with_memory(from).unwrap();
            prop_assert_eq!((again.events_new, again.other_words), (0, 0), "{:#?}", again);
        }
    }

    /// Memory of another store is told to later sessions only if it was asked for, now or later.
    #[test]
    fn memory_comes_in_only_on_request(all in numbers(60)) {
        let [from, into] = laptops();
        go_on(&from.store, "one", &all).unwrap();
        let first = into.store.import(&from.store).unwrap();
        prop_assert!(remembered(&into.store).unwrap().is_empty(), "{:#?}", first);
        let later = into.import_with_memory(&from).unwrap();
        prop_assert_eq!(later.left_out_count, 0, "{:#?}", later);
        same(&from, &into);
        sound(&into);
    }

    /// All that came over a third store is known.
    #[test]
    fn over_a_third_store_it_is_the_same(first in numbers(40), later in numbers(12)) {
        let [one, two, three] = laptops();
        go_on(&one.store, "one", &first).unwrap();
        let _ = two.import_with_memory(&one).unwrap();
        let _ = three.import_with_memory(&two).unwrap();
        same(&one, &three);
        let again = three.import_with_memory(&one).unwrap();
        prop_assert_eq!((again.events_new, again.other_words), (0, 0), "{:#?}", again);
        // And what is new later comes either way.
        go_on(&one.store, "later", &later).unwrap();
        let _ = two.import_with_memory(&one).unwrap();
        let _ = three.import_with_memory(&one).unwrap();
        let again = three.import_with_memory(&two).unwrap();
        prop_assert_eq!(again.events_new, 0, "{:#?}", again);
        same(&two, &three);
    }

    /// Two stores in one are what the recordings of their hosts are, which add nothing then.
    #[test]
    fn two_stores_in_one_are_what_their_hosts_told(one in told_once(30), other in told_once(30)) {
        let [left, right, both, whole] = laptops();
        go_on(&left.store, "left", &one).unwrap();
        go_on(&right.store, "right", &other).unwrap();
        let _ = both.import_with_memory(&left).unwrap();
        let _ = both.import_with_memory(&right).unwrap();
        go_on(&whole.store, "left", &one).unwrap();
        go_on(&whole.store, "right", &other).unwrap();
        same(&both, &whole);
        sound(&both);
    }
}

#[test]
fn what_came_with_a_store_is_known_when_its_host_tells_it() {
    let [from, into, alone] = laptops();
    let imported = import_bytes(&from.store, ImportFormat::ClaudeCode, "demo", RECORDING).unwrap();
    let _ = into.import_with_memory(&from).unwrap();
    let _ = import_bytes(&alone.store, ImportFormat::ClaudeCode, "demo", RECORDING).unwrap();
    same(&into, &alone);
    let again = import_bytes(&into.store, ImportFormat::ClaudeCode, "demo", RECORDING).unwrap();
    assert_eq!(again.event_count, 0, "{imported:?} {again:?}");
    sound(&into);
}

/// An erased text arrives as the word for it, and does not come back when the host tells its message here.
#[test]
fn an_erased_text_arrives_as_the_word_for_it() {
    let [from, into] = laptops();
    let info = session(0);
    let _ = from.store.append(&info, message("m1", "the blue heron")).unwrap();
    let _ = from.store.erase(item(&from, "the blue heron"), "me", "leaked").unwrap();
    let report = into.import_with_memory(&from).unwrap();
    assert_eq!((report.texts_erased, report.erasures, report.left_out_count), (1, 1, 0), "{report:#?}");
    assert!(says(&into, "[erased]"));
    let again = into.store.append(&info, message("m1", "the blue heron")).unwrap();
    assert_eq!((again.event_count, says(&into, "heron")), (0, false));
    // A store that has the text keeps it.
    let [has, _] = laptops();
    let _ = has.store.append(&info, message("m1", "the blue heron")).unwrap();
    assert_eq!(has.import_with_memory(&from).unwrap().events_new, 0);
    assert!(says(&has, "the blue heron"));
    sound(&into);
}

/// Of a fact with other words the store keeps its own, until the other tells words that follow them.
#[test]
fn later_words_come_in_and_other_words_do_not() {
    let [from, into] = laptops();
    let info = session(0);
    let parts = |texts: &[&str]| {
        let parts = texts.iter().map(PartEntry::text).collect();
        vec![Entry::message_parts("m", Role::Assistant, parts).origin("msg:m")]
    };
    let _ = from.store.append(&info, parts(&["a", "b"])).unwrap();
    let _ = into.import_with_memory(&from).unwrap();
    let _ = from.store.append(&info, parts(&["a", "c", "d"])).unwrap();
    let _ = from.store.append(&info, parts(&["a"])).unwrap();
    let _ = from.store.append(&info, parts(&["a", "last"])).unwrap();
    assert!(into.import_with_memory(&from).unwrap().events_new > 0);
    same(&from, &into);
    assert_eq!(into.import_with_memory(&from).unwrap().events_new, 0);
    let _ = into.store.append(&info, parts(&["here"])).unwrap();
    let report = into.import_with_memory(&from).unwrap();
    assert_eq!((report.events_new, report.other_words), (0, 1), "{report:#?}");
    assert!(says(&into, "here"));
}

/// A discard by a pattern is found by that pattern again, though patterns are signed with keys of their streams.
#[test]
fn acts_keep_their_patterns_and_policies_are_not_taken() {
    let [from, into] = laptops();
    let info = session(0);
    let _ = from.store.append(&info, message("m1", "words of mine\nand more of them")).unwrap();
    let words = Target::Auto("words of...more of them".to_owned());
    let _ = from.store.context(info.id(), ContextAction::Discard, vec![(words.clone(), None)]).unwrap();
    let policy = acpdb_engine::Policy::from_json("\"careful\"").unwrap();
    let _ = from.store.set_policy(None, &policy, Some("tried")).unwrap();
    let report = into.import_with_memory(&from).unwrap();
    assert_eq!((report.policies, report.erasures, report.acts_lost), (1, 0, 0), "{report:#?}");
    let reply = into.store.context(info.id(), ContextAction::Restore, vec![(words, None)]);
    assert!(reply.is_ok(), "{reply:?}");
}

#[test]
fn a_store_is_not_imported_into_itself_or_its_copy_and_damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let store = Store::builder(path("store")).open().unwrap();
    for text in ["one", "the second text", "three"] {
        let _ = store.append(&session(0), message(text, text)).unwrap();
    }
    store.close().unwrap();
    copy_folder(&path("store"), &path("copy")).unwrap();
    let copy = Store::builder(path("copy")).read_only().open().unwrap();
    for source in [&store, &copy] {
        let error = store.import(source).unwrap_err();
        assert!(
            matches!(&error, Error::Rejected(_)) && error.to_string().contains("a copy of it"),
            "{error}"
        );
    }
    let segment = path("copy/log/000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let text = b"the second text";
    let place = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[place] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let damaged = Store::builder(path("copy")).read_only().open().unwrap();
    let other = Store::builder(path("other")).open().unwrap();
    let report = other.import_with_memory(&damaged).unwrap();
    assert_eq!(report.left_out_count, 1, "{report:#?}");
    let all: Vec<String> = events(&other)
        .unwrap()
        .iter()
        .flat_map(texts_of)
        .map(|body| String::from_utf8(other.body(body).unwrap()).unwrap())
        .collect();
    assert_eq!(all, ["one", "three"]);
}
