//! A shredded session does not come back by a merge, and does not stop it.

use std::path::PathBuf;
use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, PointRef, StreamInfo, fact};
use acpdb_engine::event::Role;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::keys::{FileKeyRing, KeyRing};
use acpdb_engine::store::{MergeOptions, MergeReport, ParcelSource, Take, VerifyOptions, verify_store};
use acpdb_engine::verify::Verdict;
use acpdb_engine::{Error, Store};
use acpdb_tests::merging::texts;
use tempfile::TempDir;

const PERSON: &str = "zebra of the meadow";

/// A store that tells only the lines of an export: histories and subjects are not looked up.
struct Lines<'a>(&'a Store);

impl ParcelSource for Lines<'_> {
    fn tell(&mut self, take: Take<'_>) -> Result<(), Error> {
        self.0.parcels(None, Seq::MAX, take).map(drop)
    }
}

struct Places {
    folder: TempDir,
    ring: Arc<dyn KeyRing>,
}

impl Places {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let ring = FileKeyRing::create(&folder.path().join("store.key")).unwrap();
        Self { folder, ring: Arc::new(ring) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sealed(&self, name: &str) -> Store {
        Store::builder(self.path(name)).keys(Arc::clone(&self.ring)).open().unwrap()
    }

    fn plain(&self, name: &str) -> Store {
        Store::builder(self.path(name)).open().unwrap()
    }

    fn assert_sound(&self, name: &str) {
        let report =
            verify_store(&self.path(name), &VerifyOptions { deep: true, ..VerifyOptions::default() });
        let report = report.unwrap();
        assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    }
}

fn session(name: &str) -> StreamInfo {
    StreamInfo::session("acpdb", name)
}

fn say(store: &Store, info: &StreamInfo, words: &str) {
    let entry = Entry::message(words, Role::User, words).origin(format!("msg:{words}"));
    let _ = store.append(info, vec![entry]).unwrap();
}

fn fork(store: &Store, name: &str, from: StreamId) {
    let at = store.stream_events(from, Seq(1), Seq::MAX).unwrap().last().unwrap().unwrap().seq;
    let forked = Entry::from(Fact::Forked(fact::Forked { from, at: PointRef::Seq(at) }))
        .origin(format!("fork:{name}"));
    let _ = store.append(&session(name), vec![forked]).unwrap();
}

/// All texts of a store that can be read.
fn words(store: &Store) -> Vec<String> {
    texts(store).unwrap().into_iter().map(|(_, text)| text).collect()
}

/// Merges in each way, twice. Nothing new comes of the second time, but the names.
fn merge(into: &Store, from: &Store) -> MergeReport {
    let first = into.merge(&mut from.clone(), MergeOptions::default()).unwrap();
    for source in [&mut from.clone() as &mut dyn ParcelSource, &mut Lines(from)] {
        let again = into.merge(source, MergeOptions::default()).unwrap();
        assert_eq!(
            (again.events_new, &again.shredded_here, again.left_out_count),
            (0, &first.shredded_here, 0),
            "{again:#?}"
        );
    }
    first
}

/// The whole merge used to stop: "stream .. was shredded".
#[test]
fn a_session_that_was_shredded_here_does_not_come_back_and_stops_nothing() {
    for told_by_lines in [false, true] {
        let places = Places::new();
        let (store, other) = (places.sealed("store"), places.plain("other"));
        say(&store, &session("one"), "secret plan");
        say(&store, &session("kept"), "kept before");
        let _ = merge(&other, &store);
        for info in ["one", "two", "kept"] {
            say(&other, &session(info), &format!("more of {info}"));
        }
        let _ = store.shred(session("one").id(), "tester", "asked to").unwrap();
        let source: &mut dyn ParcelSource =
            if told_by_lines { &mut Lines(&other) } else { &mut other.clone() };
        let report = store.merge(source, MergeOptions::default()).unwrap();
        assert_eq!(report.shredded_here, ["one"], "{report:#?}");
        assert_eq!((report.streams_new, report.left_out_count, report.told_otherwise_count), (1, 0, 0));
        assert_eq!(report.continued, ["kept"]);
        let _ = merge(&store, &other);
        assert_eq!(words(&store), ["kept before", "more of two", "more of kept"]);
        assert!(store.is_shredded(session("one").id()).unwrap());
        places.assert_sound("store");
        // The other store keeps its data: only its own people shred there.
        let report = merge(&other, &store);
        assert_eq!((report.events_new, report.shredded_here), (0, Vec::new()));
        assert!(words(&other).contains(&"secret plan".to_owned()));
    }
}

/// A fork and a subagent go on if they are here; they do not begin, as they could not by recording.
#[test]
fn what_came_from_a_shredded_session_goes_on_where_it_is_and_does_not_begin() {
    let places = Places::new();
    let (store, other) = (places.sealed("store"), places.plain("other"));
    let agent = |name: &str| StreamInfo { parent: Some((session("one").id(), None)), ..session(name) };
    say(&store, &session("one"), "secret plan");
    fork(&store, "fork", session("one").id());
    say(&store, &session("fork"), "fork before");
    say(&store, &agent("agent"), "agent before");
    let _ = merge(&other, &store);
    for info in [session("fork"), session("agent"), agent("late")] {
        say(&other, &info, &format!("{} after", info.name));
    }
    fork(&other, "late fork", session("one").id());
    fork(&other, "fork of the late", session("late").id());
    say(&other, &session("fork of the late"), "last of all");
    let _ = store.shred(session("one").id(), "tester", "asked to").unwrap();
    let mut report = merge(&store, &other);
    report.shredded_here.sort();
    assert_eq!(report.shredded_here, ["fork of the late", "late", "late fork", "one"]);
    report.continued.sort();
    assert_eq!((report.continued, report.left_out_count), (vec!["agent".to_owned(), "fork".to_owned()], 0));
    assert_eq!(words(&store), ["fork before", "agent before", "fork after", "agent after"]);
    places.assert_sound("store");
}

/// A branch that a merge made is a session of its own. If it was shredded, it is not made again. If the session that it goes on from was
/// shredded, the branch is known again, and no second one is made of it.
#[test]
fn branches_are_known_whichever_end_was_shredded() {
    for shreds_the_branch in [true, false] {
        let places = Places::new();
        let (store, other) = (places.sealed("store"), places.plain("other"));
        say(&store, &session("one"), "beginning");
        let _ = merge(&other, &store);
        say(&store, &session("one"), "here");
        say(&other, &session("one"), "there");
        let report = merge(&store, &other);
        let branch = report.branches[0].branch.clone();
        let gone = if shreds_the_branch { branch.as_str() } else { "one" };
        let _ = store.shred(session(gone).id(), "tester", "asked to").unwrap();
        let left: &[&str] = if shreds_the_branch { &["beginning", "here"] } else { &["there"] };
        assert_eq!(words(&store), left);
        say(&other, &session("one"), "there again");
        let report = merge(&store, &other);
        assert_eq!(report.shredded_here, ["one"], "{report:#?}");
        assert_eq!(words(&store), left);
        // A third store has both ends.
        let third = places.plain("third");
        let _ = merge(&third, &other);
        say(&third, &session("kept"), "kept");
        let _ = merge(&store, &third);
        assert_eq!(words(&store).len(), left.len() + 1);
        places.assert_sound("store");
    }
    // The other store made the branch as well, before.
    let places = Places::new();
    let (store, other, third) = (places.sealed("store"), places.plain("other"), places.plain("third"));
    say(&store, &session("one"), "beginning");
    for place in [&other, &third] {
        let _ = merge(place, &store);
    }
    say(&third, &session("one"), "there");
    say(&store, &session("one"), "here");
    let _ = merge(&other, &store);
    let made = merge(&other, &third).branches;
    assert_eq!(merge(&store, &other).streams_new, 1);
    let _ = store.shred(session("one").id(), "tester", "asked to").unwrap();
    say(&other, &session(&made[0].branch), "the branch goes on");
    let report = merge(&store, &other);
    assert_eq!((report.streams_new, report.branches), (0, Vec::new()));
    assert_eq!(
        (report.shredded_here, report.continued),
        (vec!["one".to_owned()], vec![made[0].branch.clone()])
    );
    assert_eq!(words(&store), ["there", "the branch goes on"]);
    places.assert_sound("store");
    // The way back, to a store that has the beginning of the branch, and to one that has neither.
    say(&store, &session(&made[0].branch), "it goes on here");
    let report = merge(&other, &store);
    assert_eq!((report.streams_new, report.continued), (0, vec![made[0].branch.clone()]));
    say(&store, &session(&made[0].branch), "here again");
    say(&other, &session(&made[0].branch), "there again");
    let report = merge(&other, &store);
    // Its beginning, its fork, and the new events.
    assert_eq!((report.branches.len(), report.events_new), (1, 3), "{report:#?}");
    let fourth = places.plain("fourth");
    let report = merge(&fourth, &store);
    assert_eq!((report.streams_new, report.left_out_count), (1, 0), "{report:#?}");
    assert_eq!(words(&fourth), words(&store));
    places.assert_sound("other");
}

/// Nothing about a subject that was shredded comes in, not even a session that this store never had.
#[test]
fn sessions_about_a_subject_that_was_shredded_here_stay_out() {
    let places = Places::new();
    let (store, other) = (places.sealed("store"), places.sealed("other"));
    let about = |name: &str| StreamInfo { subject: Some(PERSON.to_owned()), ..session(name) };
    say(&store, &about("one"), "one here");
    say(&other, &about("two"), "two there");
    let agent = StreamInfo { parent: Some((about("two").id(), None)), ..session("agent") };
    say(&other, &agent, "agent there");
    say(&other, &StreamInfo { subject: Some("walrus".to_owned()), ..session("three") }, "three there");
    let _ = store.shred_subject(PERSON, "tester", "asked to").unwrap();
    let report = store.merge(&mut other.clone(), MergeOptions::default()).unwrap();
    let mut names = report.shredded_here.clone();
    names.sort();
    assert_eq!(
        (names, report.left_out_count),
        (vec!["agent".to_owned(), "two".to_owned()], 0),
        "{report:#?}"
    );
    assert_eq!(words(&store), ["three there"]);
    assert_eq!(store.subject_of(session("three").id()).unwrap().as_deref(), Some("walrus"));
    places.assert_sound("store");
}

/// A lost key is damage, which a person mends: with a copy of the folder of keys, or by shredding its session.
#[test]
fn a_lost_key_stops_a_merge_by_its_name_until_it_is_back_or_its_session_is_shredded() {
    let places = Places::new();
    let (store, other) = (places.sealed("store"), places.plain("other"));
    say(&store, &session("one"), "one before");
    say(&store, &session("kept"), "kept before");
    let _ = merge(&other, &store);
    for name in ["one", "kept"] {
        say(&other, &session(name), &format!("{name} after"));
    }
    drop(store);
    let name = format!("{}.key", session("one").id().to_hex());
    std::fs::remove_file(places.path("store").join("keys").join(&name)).unwrap();
    let store = places.sealed("store");
    let error = store.merge(&mut other.clone(), MergeOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains(&name) && error.to_string().contains("copy of the folder keys"),
        "{error}"
    );
    let _ = store.shred(session("one").id(), "tester", "its key is lost").unwrap();
    let report = merge(&store, &other);
    assert_eq!((report.shredded_here, report.left_out_count), (vec!["one".to_owned()], 0));
    assert_eq!(words(&store), ["kept before", "kept after"]);
    places.assert_sound("store");
}
