//! A text that damage took is lost, and no person wanted that: other stores keep theirs.

use std::path::PathBuf;

use acpdb_engine::entry::{Entry, PartEntry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::fold::{CauseView, FaceView};
use acpdb_engine::ids::BodyId;
use acpdb_engine::store::{MergeOptions, MergeReport, SalvageOptions, VerifyOptions, salvage, verify_store};
use acpdb_engine::verify::Verdict;
use acpdb_engine::{Error, Store};
use acpdb_tests::support::copy_folder;
use tempfile::TempDir;

struct Places(TempDir);

impl Places {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn store(&self, name: &str) -> Store {
        Store::builder(self.path(name)).open().unwrap()
    }

    /// The store with one bit of each of these texts flipped.
    fn damaged(&self, name: &str, words: &[&str]) -> Store {
        let path = self.path(name).join("log/000000000001.seg");
        let mut bytes = std::fs::read(&path).unwrap();
        for text in words {
            let place = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
            bytes[place] ^= 1;
        }
        std::fs::write(&path, bytes).unwrap();
        Store::builder(self.path(name)).read_only().open().unwrap()
    }

    fn copied(&self, from: &str, to: &str) {
        copy_folder(&self.path(from), &self.path(to)).unwrap();
    }

    /// The sound part of one store, as another.
    fn salvaged(&self, from: &str, to: &str) -> Store {
        let _ = salvage(&self.path(from), &self.path(to), &SalvageOptions::default(), &mut |_| ()).unwrap();
        self.assert_sound(to);
        self.store(to)
    }

    fn assert_sound(&self, name: &str) {
        let options = VerifyOptions { deep: true, ..VerifyOptions::default() };
        let report = verify_store(&self.path(name), &options).unwrap();
        assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    }
}

fn session() -> StreamInfo {
    StreamInfo::session("acpdb", "s")
}

const QUESTION: &str = "the zebra of the meadow, where is it now?";
const PARAMS: &str = r#"{"pattern":"gerenuk at the river"}"#;
const RESULT: &str = "the quagga of the plain was seen near the well";
const ANSWER: &str = "the okapi of the forest hides from all of us";

/// A session as a host tells it: a question, a call with its result, an answer of two parts.
fn told() -> Vec<Entry> {
    let parts = vec![PartEntry::text("a short beginning of it"), PartEntry::text(ANSWER)];
    vec![
        Entry::message("m1", Role::User, QUESTION).origin("msg:1"),
        Entry::tool_started("c1", "grep", PARAMS).origin("call:c1:start"),
        Entry::tool_completed("c1", RESULT).origin("call:c1:finish"),
        Entry::message_parts("m2", Role::Assistant, parts).origin("msg:2"),
    ]
}

/// The texts that a session shows, in order. A text that is gone is an empty one.
fn shown(store: &Store) -> Vec<String> {
    let view = store.view(session().id()).unwrap();
    let text = |face: &FaceView, body: BodyId| match face.cause {
        Some(CauseView::Lost { .. }) => String::new(),
        _ => view.text(body).unwrap_or_default(),
    };
    let mut shown = Vec::new();
    for item in view.current() {
        shown.extend(item.params.map(|params| text(&item.input, params)));
        shown.extend(item.content.iter().map(|part| text(&item.output, part.body)));
    }
    shown
}

fn merge(into: &Store, from: &Store) -> MergeReport {
    into.merge(&mut from.clone(), MergeOptions::default()).unwrap()
}

fn append(store: &Store, entries: Vec<Entry>) -> u64 {
    store.append(&session(), entries).unwrap().event_count
}

/// A store that was told the session, closed; returns the context that it shows.
fn whole(places: &Places, name: &str) -> Vec<String> {
    let store = places.store(name);
    let _ = append(&store, told());
    let whole = shown(&store);
    store.close().unwrap();
    whole
}

/// A merge took a text that damage had taken there for erased there. It asked for the erasure of the good text here, and carried it out with
/// `--erase`.
#[test]
fn a_good_text_is_not_erased_for_what_damage_took_elsewhere() {
    for is_merged in [false, true] {
        let places = Places::new();
        let whole = whole(&places, "one");
        places.copied("one", "bad");
        let bad = places.damaged("bad", &[QUESTION, PARAMS, RESULT, ANSWER]);
        let lost = if is_merged {
            let lost = places.store("lost");
            assert_eq!(merge(&lost, &bad).texts_lost, 4);
            lost
        } else {
            places.salvaged("bad", "lost")
        };
        assert_eq!(shown(&lost).iter().filter(|text| text.is_empty()).count(), 4);
        let one = places.store("one");
        let report = one.merge(&mut lost.clone(), MergeOptions { erase: true }).unwrap();
        assert!(report.erased_there.is_empty(), "{report:#?}");
        assert_eq!(shown(&one), whole);
        // A third store that took over the loss asks for no erasure either.
        let third = places.store("third");
        assert_eq!(merge(&third, &lost).texts_lost, 4);
        let report = one.merge(&mut third.clone(), MergeOptions { erase: true }).unwrap();
        assert!(report.erased_there.is_empty(), "{report:#?}");
        assert_eq!(shown(&one), whole);
        lost.close().unwrap();
        third.close().unwrap();
        places.assert_sound("lost");
        places.assert_sound("third");
    }
}

/// A text that a person erased is still told of, beside texts that damage took in the same store.
#[test]
fn an_erasure_is_told_of_beside_a_loss() {
    let places = Places::new();
    let _ = whole(&places, "one");
    places.copied("one", "bad");
    let bad = places.store("bad");
    let question = bad.view(session().id()).unwrap().current()[0].item;
    let _ = bad.erase(question, "me", "private").unwrap();
    bad.close().unwrap();
    let _ = places.damaged("bad", &[RESULT]);
    let saved = places.salvaged("bad", "saved");
    let one = places.store("one");
    let report = one.merge(&mut saved.clone(), MergeOptions { erase: true }).unwrap();
    assert_eq!(report.erased_there.len(), 1, "{report:#?}");
    let shown = shown(&one);
    assert!(
        !shown.iter().any(|text| text == QUESTION) && shown.iter().any(|text| text == RESULT),
        "{shown:?}"
    );
}

/// The record says which of the two it is, in words.
#[test]
fn a_lost_text_says_that_it_was_damaged() {
    let places = Places::new();
    let _ = whole(&places, "one");
    places.copied("one", "bad");
    let _ = places.damaged("bad", &[QUESTION]);
    let saved = places.salvaged("bad", "saved");
    let view = saved.view(session().id()).unwrap();
    let item = &view.current()[0];
    let Err(Error::Erased { detail, .. }) = view.body(item.content[0].body) else { panic!("it is gone") };
    assert!(detail.contains("was lost") && detail.contains("it was damaged in store"), "{detail}");
    let explained = acpdb_query::explain(&view, "s", item.ix).unwrap().sentences.join(" ");
    assert!(
        explained.contains("Lost: it was damaged in store") && !explained.contains("Erased by"),
        "{explained}"
    );
}
