//! Cases that people meet when they merge, each a story.

use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, MemoryEntry};
use acpdb_engine::event::{MemoryKind, Role};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::storage::Crash;
use acpdb_engine::store::Redactor;
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{Error, Store, store::MergeOptions};
use acpdb_hosts::import::Format;
use acpdb_tests::merging::{Laptop, go_on, session, stories, texts};
use acpdb_tests::support::{events, import_bytes};

const SECRET: &str = "the pass phrase is blue heron at dawn";

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
        acpdb_tests::support::texts_of(recorded)
            .into_iter()
            .any(|body| laptop.store.body(body).is_ok_and(|bytes| bytes == text.as_bytes()))
    });
    ItemId::first(found.unwrap().seq)
}

fn sound(laptop: &Laptop) {
    laptop.store.sync().unwrap();
    let report = verify_storage(Arc::new(laptop.world.process(9)), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
}

/// A text that one store erased never comes back to it, not even in another event; the other store is told, and erases when
/// asked.
#[test]
fn an_erased_text_stays_erased_and_the_other_store_is_told() {
    let [one, other] = [1, 2].map(|seed| Laptop::new(seed).unwrap());
    let info = session(0);
    let _ = one.store.append(&info, message("m1", SECRET)).unwrap();
    let _ = other.merge(&one).unwrap();
    let _ = one.store.erase(item(&one, SECRET), "me", "leaked").unwrap();
    // It is told again, in another session of the other store.
    let _ = other.store.append(&session(1), message("m2", SECRET)).unwrap();
    let _ = one.merge(&other).unwrap();
    assert!(!says(&one, SECRET));
    sound(&one);
    let report = other.merge(&one).unwrap();
    assert!(says(&other, SECRET), "a merge does not erase unasked");
    assert_eq!(report.erased_there.len(), 2, "{report:#?}");
    let report = other.store.merge(&mut one.store.clone(), MergeOptions { erase: true }).unwrap();
    assert!(report.erased_there.iter().all(|erased| erased.done), "{report:#?}");
    assert!(!says(&other, SECRET));
    sound(&other);
    assert_eq!(stories(&one.store).unwrap(), stories(&other.store).unwrap());
    let report = other.merge(&one).unwrap();
    assert_eq!((report.events_new, report.erased_there.len()), (0, 0), "{report:#?}");
    // A store that never had it gets the event, and no text.
    let third = Laptop::new(3).unwrap();
    let report = third.merge(&one).unwrap();
    assert_eq!(report.texts_lost, 2, "{report:#?}");
    assert!(!says(&third, SECRET));
    sound(&third);
    assert_eq!(stories(&one.store).unwrap(), stories(&third.store).unwrap());
}

/// Titles and subjects of memory travel as words inside an event. An erased one used to travel as the word for an erased text alone: the
/// other store was told of nothing, and `--erase` said that all was erased while both stood in its log.
#[test]
fn erased_titles_and_subjects_of_memory_are_told_of_and_erased() {
    let [one, other] = [1, 2].map(|seed| Laptop::new(seed).unwrap());
    let (title, subject) = ("a title with the blue heron", "the heron of the subject");
    let info = acpdb_engine::entry::StreamInfo { title: Some(title.to_owned()), ..session(0) };
    let kept = acpdb_engine::entry::StreamInfo { title: Some("[erased]".to_owned()), ..session(1) };
    let memory = MemoryEntry {
        kind: MemoryKind::Decision,
        subject: Some(subject.to_owned()),
        value: SECRET.to_owned(),
        confidence: 100,
        ..MemoryEntry::default()
    };
    let entries = vec![message("m1", "a question").remove(0), Entry::from(Fact::from(memory))];
    let _ = one.store.append(&info, entries).unwrap();
    let _ = one.store.append(&kept, message("m2", "another one")).unwrap();
    let _ = other.merge(&one).unwrap();
    let speaks = |laptop: &Laptop, text: &str| {
        events(&laptop.store).unwrap().iter().any(|it| format!("{:?}", it.event.payload).contains(text))
    };
    let told: Vec<ItemId> = [title, subject]
        .iter()
        .map(|text| {
            let all = events(&one.store).unwrap();
            let found = all.iter().find(|it| format!("{:?}", it.event.payload).contains(text));
            ItemId::first(found.unwrap().seq)
        })
        .collect();
    for item in told {
        let _ = one.store.erase(item, "me", "leaked").unwrap();
    }
    assert!(!speaks(&one, title) && !speaks(&one, subject));
    let report = other.merge(&one).unwrap();
    assert!(speaks(&other, title) && speaks(&other, subject), "a merge does not erase unasked");
    assert_eq!(report.erased_there.len(), 2, "{report:#?}");
    let report = other.store.merge(&mut one.store.clone(), MergeOptions { erase: true }).unwrap();
    assert!(report.erased_there.iter().all(|erased| erased.done), "{report:#?}");
    assert!(!speaks(&other, title) && !speaks(&other, subject) && !says(&other, SECRET));
    sound(&other);
    let report = other.merge(&one).unwrap();
    assert_eq!((report.events_new, report.erased_there.len()), (0, 0), "{report:#?}");
}

/// Two stores that were told a message in different words, once each, keep their own words and say so. The other words used to be
/// passed over in silence. Once one of the two is told the message again, both show the newest words.
#[test]
fn words_that_only_the_other_store_has_are_told_of() {
    let [one, other] = [1, 2].map(|seed| Laptop::new(seed).unwrap());
    let info = session(0);
    let _ = one.store.append(&info, message("m", "the plan is A")).unwrap();
    let _ = other.store.append(&info, message("m", "the plan is B")).unwrap();
    for (into, from, own, strange) in
        [(&one, &other, "the plan is A", "the plan is B"), (&other, &one, "the plan is B", "the plan is A")]
    {
        let report = into.merge(from).unwrap();
        let named: Vec<ItemId> = report.told_otherwise.iter().map(|told| told.item).collect();
        assert_eq!(
            (report.events_new, named, report.told_otherwise_count),
            (0, vec![item(into, own)], 1),
            "{report:#?}"
        );
        assert!(says(into, own) && !says(into, strange));
    }
    let _ = other.store.append(&info, message("m", "the plan is C")).unwrap();
    for (into, from) in [(&one, &other), (&other, &one)] {
        let report = into.merge(from).unwrap();
        assert_eq!(report.told_otherwise, [], "{report:#?}");
        assert!(says(into, "the plan is C"));
    }
    sound(&one);
    let third = Laptop::new(3).unwrap();
    let fourth = Laptop::new(4).unwrap();
    for laptop in [&third, &fourth] {
        let _ = laptop.store.append(&info, message("n", "the same in both")).unwrap();
    }
    let report = third.merge(&fourth).unwrap();
    assert_eq!((report.events_new, report.told_otherwise_count), (0, 0), "{report:#?}");
}

/// A session that a store got by merge is known when its own host tells it.
#[test]
fn what_came_by_merge_is_known_to_an_import() {
    let file = include_bytes!("../../../cli/assets/demo-session.jsonl");
    let [one, other] = [1, 2].map(|seed| Laptop::new(seed).unwrap());
    let import = |laptop: &Laptop| import_bytes(&laptop.store, Format::ClaudeCode, "demo", file).unwrap();
    let first = import(&one);
    let _ = other.merge(&one).unwrap();
    let again = import(&other);
    assert_eq!((again.event_count, again.known_count), (0, first.event_count + first.known_count - 2));
    let report = one.merge(&other).unwrap();
    assert_eq!(report.events_new, 0, "{report:#?}");
    // Two stores that were told the same by the host have nothing to tell each other.
    let third = Laptop::new(3).unwrap();
    let _ = import(&third);
    let report = third.merge(&one).unwrap();
    assert_eq!((report.events_new, report.branches.len()), (0, 0), "{report:#?}");
}

/// A host goes on in the session that it knows; the other's way of it goes on in its branch, and no third comes about.
#[test]
fn both_ways_of_a_session_go_on() {
    let [one, other] = [1, 2].map(|seed| Laptop::new(seed).unwrap());
    let info = session(0);
    let say = |laptop: &Laptop, key: &str| {
        let _ = laptop.store.append(&info, message(key, key)).unwrap();
    };
    say(&one, "begin");
    let _ = other.merge(&one).unwrap();
    for round in 0..3 {
        say(&one, &format!("here {round}"));
        say(&other, &format!("there {round}"));
        for (into, from) in [(&one, &other), (&other, &one)] {
            let report = into.merge(from).unwrap();
            assert_eq!(report.branches.len(), usize::from(round == 0), "{report:#?}");
            assert_eq!(report.continued.len(), usize::from(round > 0), "{report:#?}");
        }
        assert_eq!(one.store.stream_names().unwrap().len(), 2);
        assert_eq!(stories(&one.store).unwrap(), stories(&other.store).unwrap());
    }
    let view = one.store.view(info.id()).unwrap();
    let text = view.current().last().unwrap().content[0].body;
    assert_eq!(view.text(text).unwrap(), "here 2");
}

/// Each laptop's host corrects one message in its own words: neither correction is taken for the other.
#[test]
fn a_fact_that_is_retold_in_other_words_goes_both_ways() {
    let [one, other] = [1, 2].map(|seed| Laptop::new(seed).unwrap());
    let info = session(0);
    let _ = one.store.append(&info, message("m1", "hello")).unwrap();
    let _ = other.merge(&one).unwrap();
    let _ = one.store.append(&info, message("m1", "hello there")).unwrap();
    let _ = other.store.append(&info, message("m1", "good day")).unwrap();
    for (into, from) in [(&one, &other), (&other, &one)] {
        let report = into.merge(from).unwrap();
        assert_eq!(report.branches.len(), 1, "{report:#?}");
    }
    for laptop in [&one, &other] {
        assert!(says(laptop, "hello there") && says(laptop, "good day"));
        sound(laptop);
    }
    assert_eq!(stories(&one.store).unwrap(), stories(&other.store).unwrap());
    for (into, from) in [(&one, &other), (&other, &one)] {
        assert_eq!(into.merge(from).unwrap().events_new, 0);
    }
    // The same words on both are one fact.
    let [one, other] = [1, 2].map(|seed| Laptop::new(seed).unwrap());
    for laptop in [&one, &other] {
        let _ = laptop.store.append(&info, message("m1", "hello")).unwrap();
        let _ = laptop.store.append(&info, message("m1", "hello there")).unwrap();
    }
    let report = one.merge(&other).unwrap();
    assert_eq!((report.events_new, report.branches.len()), (0, 0), "{report:#?}");
}

/// Two sessions that only share a name stay two.
#[test]
fn sessions_that_share_no_more_than_a_name_stay_apart() {
    let [one, other] = [1, 2].map(|seed| Laptop::new(seed).unwrap());
    let _ = one.store.append(&session(0), message("a", "of one")).unwrap();
    let _ = other.store.append(&session(0), message("b", "of the other")).unwrap();
    let report = one.merge(&other).unwrap();
    assert_eq!(report.branches[0].from, None);
    assert!(report.branches[0].branch.starts_with("alpha~"), "{report:#?}");
    let _ = other.merge(&one).unwrap();
    assert_eq!(stories(&one.store).unwrap(), stories(&other.store).unwrap());
}

#[derive(Debug)]
struct Blue;

impl Redactor for Blue {
    fn redact(&self, text: &[u8]) -> Option<(Vec<u8>, std::collections::BTreeMap<String, u64>)> {
        let text = String::from_utf8_lossy(text);
        text.contains("blue heron")
            .then(|| (text.replace("blue heron", "[bird]").into_bytes(), [("bird".to_owned(), 1)].into()))
    }
}

/// A merge is a way in like any other: secrets that the redactor takes out are not recorded.
#[test]
fn secrets_are_taken_out_on_the_way_in() {
    let one = Laptop::new(1).unwrap();
    let info = acpdb_engine::entry::StreamInfo { title: Some("of a blue heron".to_owned()), ..session(0) };
    let _ = one.store.append(&info, message("m1", SECRET)).unwrap();
    let world = acpdb_engine::storage::SimWorld::new(2);
    let builder = Store::builder("/sim").storage(Arc::new(world.process(1))).redactor(Arc::new(Blue));
    let other = Laptop { world, store: builder.open().unwrap() };
    let report = other.merge(&one).unwrap();
    assert_eq!(report.redacted, 1, "{report:#?}");
    assert!(!says(&other, "blue heron") && says(&other, "[bird]"));
    let title = other.store.stream_names().unwrap()[0].title.clone();
    assert_eq!(title.as_deref(), Some("of a [bird]"));
    assert_eq!(other.merge(&one).unwrap().events_new, 0);
}

/// A rule of one's own that also matches the name of a kind, as here that of a role.
#[derive(Debug)]
struct Greedy;

impl Redactor for Greedy {
    fn redact(&self, text: &[u8]) -> Option<(Vec<u8>, std::collections::BTreeMap<String, u64>)> {
        let text = String::from_utf8_lossy(text);
        let clean = text.replace("blue heron", "[bird]");
        let clean = if clean.eq_ignore_ascii_case("user") { "[who]".to_owned() } else { clean };
        (clean != text).then(|| (clean.into_bytes(), [("bird".to_owned(), 1)].into()))
    }
}

/// An event that made no sense once it was redacted was recorded as it had been, and counted as redacted.
#[test]
fn an_event_that_cannot_be_redacted_is_left_out_and_named() {
    let one = Laptop::new(1).unwrap();
    let _ = one.store.append(&session(0), message("the blue heron", "nothing else")).unwrap();
    let world = acpdb_engine::storage::SimWorld::new(2);
    let builder = Store::builder("/sim").storage(Arc::new(world.process(1))).redactor(Arc::new(Greedy));
    let other = Laptop { world, store: builder.open().unwrap() };
    let report = other.merge(&one).unwrap();
    assert!(report.left_out.iter().any(|what| what.contains("once redacted")), "{report:#?}");
    assert!(!says(&other, "nothing else"));
    other.store.close().unwrap();
    let files = other.world.files();
    let holds = |name: &String| {
        let bytes = other.world.file(name).unwrap_or_default();
        bytes.windows(b"blue heron".len()).any(|window| window == b"blue heron")
    };
    assert!(!files.iter().any(holds));
}

/// Every store that verifies is merged; parts that are left out are named, and a sound copy that comes later makes no
/// second session.
#[test]
fn a_damaged_store_gives_what_is_sound() {
    let one = Laptop::new(1).unwrap();
    let info = session(0);
    for number in 0..12 {
        let _ = one
            .store
            .append(&info, message(&format!("m{number}"), &format!("text {number}").repeat(40)))
            .unwrap();
    }
    one.store.close().unwrap();
    let name = one.world.files().into_iter().find(|name| name.starts_with("log/")).unwrap();
    let bytes = one.world.file(&name).unwrap();
    let needle = b"text 5text 5";
    let body = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    let mut found = [false, false];
    for (place, at) in [body + 3, body - 120].into_iter().enumerate() {
        let world = one.world.fork(7 + place as u64);
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        world.set_file(&name, bytes);
        let store = Store::builder("/sim").storage(Arc::new(world.process(1))).read_only().open().unwrap();
        let damaged = Laptop { world, store };
        let other = Laptop::new(20 + place as u64).unwrap();
        let report = other.merge(&damaged).unwrap();
        found[place] = report.left_out_count > 0 || report.texts_lost > 0;
        sound(&other);
        // The whole one, later.
        let report = other.merge(&one).unwrap();
        assert_eq!(report.branches, [], "{report:#?}");
        sound(&other);
    }
    assert_eq!(found, [true, true]);
}

/// A merge that is stopped anywhere is ended by the next one, and the store holds the same as after an unbroken merge.
#[test]
fn a_merge_that_is_stopped_is_ended_by_the_next() {
    let one = Laptop::new(1).unwrap();
    let numbers: Vec<u16> = (0..90_u16).map(|number| number.wrapping_mul(7919)).collect();
    go_on(&one.store, "one-", &numbers).unwrap();
    let whole = Laptop::new(2).unwrap();
    let _ = whole.merge(&one).unwrap();
    let expected = stories(&whole.store).unwrap();
    let mut stopped = 0;
    for at in (1..400).step_by(13) {
        let world = acpdb_engine::storage::SimWorld::new(at);
        drop(Laptop::on(world.clone(), 1).unwrap());
        let storage = world.process(2);
        storage.crash_at(at, if at % 2 == 0 { Crash::Kill } else { Crash::Power });
        let opened =
            Store::builder("/sim").storage(Arc::new(storage)).registry(acpdb_hosts::registry()).open();
        let merged = opened.and_then(|store| store.merge(&mut one.store.clone(), MergeOptions::default()));
        stopped += u32::from(merged.is_err());
        let again = Laptop::on(world, 3).unwrap();
        let _ = again.merge(&one).unwrap();
        assert_eq!(stories(&again.store).unwrap(), expected, "stopped at operation {at}");
        sound(&again);
    }
    assert!(stopped > 5, "{stopped}");
}

/// Without its secret a store cannot say which events another has.
#[test]
fn a_store_without_its_secret_tells_nothing() {
    let one = Laptop::new(1).unwrap();
    go_on(&one.store, "one-", &[1, 2, 3]).unwrap();
    one.store.close().unwrap();
    let world = one.world.fork(5);
    world.remove_file("secret");
    let store = Store::builder("/sim").storage(Arc::new(world.process(1))).read_only().open().unwrap();
    let told = store.parcels(None, Seq::MAX, &mut |_| Ok(()));
    assert!(matches!(told, Err(Error::ReadOnly { .. })), "{told:?}");
}
