//! An erased text is nowhere: not in any file of the store, plain or packed, not after a crash at any step, not in
//! copies; and the rest is as it was.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed step is a failed test"
)]

#[path = "erase/again.rs"]
mod again;

use std::sync::{Arc, Mutex};

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, Fact, MemoryEntry, StreamInfo, WirePiece, fact};
use acpdb_engine::event::{Payload, Role};
use acpdb_engine::fold::CauseView;
use acpdb_engine::ids::{BodyId, ItemId, Seq};
use acpdb_engine::keys::KeyUse;
use acpdb_engine::storage::{Crash, Fault, FaultKind, FileStorage, Moment, SimWorld, Storage};
use acpdb_engine::store::salvage_storage;
use acpdb_engine::testing::whereabouts;
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{At, Error, Store, store::ErasedWhy};
use acpdb_hosts::import::ImportFormat;
use acpdb_serve::{PlainText, ServeOptions, Step};
use acpdb_tests::support::{fixed, import_bytes, line_of, lines, texts_of};

const SEGMENT_BYTES: u64 = 4096 + 3000;
/// Nothing that packing changes, and nothing that any key or id holds.
const SECRET: &str = "xq7Zp0vLk3WnRt9yBd2mHs5f";

fn open_with(world: &SimWorld, process: u32, read_only: bool) -> Result<Store, Error> {
    let builder = Store::builder("/sim")
        .storage(Arc::new(world.process(process)))
        .registry(acpdb_hosts::registry())
        .segment_bytes_max(SEGMENT_BYTES)
        .lock_wait(std::time::Duration::from_millis(3));
    let builder = if read_only { builder.read_only() } else { builder };
    fixed(builder, u64::from(process)).open()
}

fn open(world: &SimWorld, process: u32) -> Store {
    open_with(world, process, false).unwrap()
}

fn session(number: u32) -> StreamInfo {
    StreamInfo::session("opencode", format!("s{number}"))
}

/// A result that is long, packs well, and holds the secret.
fn output() -> String {
    format!("token = {SECRET}\n{}", "and so on, ".repeat(80))
}

fn call(name: &str, output: &str) -> Vec<Entry> {
    vec![
        Entry::tool_started(name, "read", format!(r#"{{"filePath":"src/{name}.rs"}}"#)),
        Entry::tool_completed(name, output),
    ]
}

fn message(number: u32) -> Vec<Entry> {
    vec![Entry::message(format!("m{number}"), Role::User, format!("message {number} {}", "y".repeat(400)))]
}

fn item_of(store: &Store, session: &StreamInfo, call: &str) -> ItemId {
    let view = store.view(session.id()).unwrap();
    view.history().into_iter().find(|item| item.call.as_deref() == Some(call)).unwrap().item
}

fn storage(world: &SimWorld) -> Arc<dyn Storage> {
    Arc::new(world.process(90))
}

fn found_in(world: &SimWorld) -> Vec<String> {
    whereabouts(&storage(world), SECRET.as_bytes()).unwrap()
}

fn assert_sound(world: &SimWorld, context: &str) {
    let report = verify_storage(storage(world), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{context}: {report:#?}");
}

/// A store in which a call of the first session, and one of the second, gave the secret.
fn filled(sealed: bool, in_last_segment: bool) -> SimWorld {
    let world = SimWorld::new(7);
    let store = open(&world, 1);
    let before = if in_last_segment { 8 } else { 2 };
    for number in 0..before {
        let _ = store.append(&session(0), message(number)).unwrap();
    }
    let _ = store.append(&session(0), call("c1", &output())).unwrap();
    let _ = store.append(&session(1), call("c2", &output())).unwrap();
    for number in before..10 {
        let _ = store.append(&session(0), message(number)).unwrap();
    }
    let _ = store.append(&session(0), call("c3", "harmless")).unwrap();
    if sealed {
        let _ = store.seal(true).unwrap();
    }
    store.close().unwrap();
    world
}

#[test]
fn what_is_erased_is_nowhere_and_the_rest_is_as_it_was() {
    for (sealed, last) in [(false, false), (false, true), (true, false)] {
        let context = format!("sealed {sealed}, in the last segment {last}");
        let world = filled(sealed, last);
        assert!(!found_in(&world).is_empty(), "{context}: the search finds it while it is there");
        let (store, reader) = (open(&world, 2), open_with(&world, 3, true).unwrap());
        let before = lines(&reader).unwrap();
        let held = reader.view(session(0).id()).unwrap();
        let item = item_of(&store, &session(0), "c1");
        let changes = world.change_count();
        let preview = store.erase_preview(item).unwrap();
        assert_eq!(world.change_count(), changes, "{context}: a preview changes nothing");
        let report = store.erase(item, "ada", "it leaked").unwrap();
        assert_eq!(report.hit, preview.hit, "{context}");
        let told: Vec<_> = report.hit.iter().map(|hit| (hit.item, hit.why)).collect();
        let equal = item_of(&store, &session(1), "c2");
        assert_eq!(
            told,
            [(Some(item), ErasedWhy::Asked), (Some(item), ErasedWhy::Asked), (Some(equal), ErasedWhy::Equal)],
            "{context}"
        );
        assert_eq!(found_in(&world), [""; 0], "{context}");
        assert_sound(&world, &context);
        // A reader, with a handle from before or a new one, gets the name and the reason; the rest is as it was.
        let record = report.recorded.unwrap();
        for (who, reader) in [("open before", &reader), ("anew", &open_with(&world, 4, true).unwrap())] {
            let view = reader.view(session(0).id()).unwrap();
            let erased = view.history().into_iter().find(|found| found.item == item).unwrap();
            assert_eq!(erased.output.cause, Some(CauseView::Erased { seq: record }), "{context}, {who}");
            let said = reader.body(erased.content[0].body).unwrap_err();
            let Error::Erased { detail, .. } = &said else { panic!("{said}") };
            assert!(detail.ends_with(&format!("was erased in {record} by ada: it leaked")), "{detail}");
            let ix = view.state().find(item).unwrap();
            let explained = acpdb_query::explain(&view, "s0", ix).unwrap().sentences.join(" ");
            assert!(explained.contains("Erased by ada: it leaked"), "{explained}");
        }
        let kept = readable(&reader);
        let expected = before.iter().filter(|line| !line.contains(SECRET) && !line.contains("src/c1.rs"));
        assert_eq!(kept, expected.cloned().collect::<Vec<_>>(), "{context}");
        // A view held since before shows nothing of it either: its texts are gone.
        let gone = held.history().into_iter().find(|found| found.item == item).unwrap();
        assert!(matches!(held.body(gone.content[0].body), Err(Error::Erased { .. })), "{context}");
        // A second time there is nothing left.
        let again = store.erase(item, "ada", "again").unwrap();
        assert!(again.recorded.is_none() && again.hit.is_empty(), "{context}: {again:?}");
        store.close().unwrap();
        assert!(open(&world, 5).recovery().was_clean, "{context}");
    }
}

/// The lines of a store without those of erased events and of the record itself.
fn readable(store: &Store) -> Vec<String> {
    let mut kept = Vec::new();
    for recorded in store.events(Seq(1), Seq::MAX).unwrap() {
        let recorded = recorded.unwrap();
        if recorded.event.payload.label() != "erased" {
            kept.extend(line_of(store, &recorded).ok());
        }
    }
    kept
}

/// A context of a session with an erased item: shown with a placeholder or an empty place, never with an error.
#[test]
fn an_erased_item_leaves_the_context_whole() {
    let world = filled(true, false);
    let store = open(&world, 2);
    let (item, stream) = (item_of(&store, &session(0), "c1"), session(0).id());
    let summary = Some(format!("the token is {SECRET}"));
    let target = (Target::Call("c1".to_owned()), summary);
    let _ = store.context(stream, ContextAction::Distill, vec![target]).unwrap();
    let distilled = store.head().unwrap();
    let _ = store.erase(item, "ada", "it leaked").unwrap();
    let left = found_in(&world);
    assert_eq!(left.len(), 1, "a summary is a text of its own: {left:?}");
    let _ = store.erase(ItemId::first(distilled), "ada", "the summary, too").unwrap();
    assert_eq!(found_in(&world), [""; 0]);
    let view = store.view(stream).unwrap();
    let now = acpdb_engine::ids::Micros(1_800_000_000_000_000);
    let window = acpdb_query::Window::default();
    let context = acpdb_query::context(&store, &view, window, now).unwrap();
    let texts: Vec<_> = context.items.iter().map(|item| format!("{item:?}")).collect();
    assert!(texts.iter().all(|text| !text.contains(SECRET)));
    // The past is asked for: it knows no erasure, and has no bytes.
    let past = store.view_at(stream, &At::Seq(distilled)).unwrap();
    let gone = past.history().into_iter().find(|found| found.item == item).unwrap();
    assert!(matches!(past.body(gone.content[0].body), Err(Error::Erased { .. })));
    assert_sound(&world, "with an erased summary");
}

/// `explain` said of an erased item that it is served whole: so it was, in the last context before.
#[test]
fn what_was_served_before_an_erasure_is_not_told_as_served() {
    let world = filled(true, false);
    let store = open(&world, 2);
    let (item, handle) = (item_of(&store, &session(0), "c1"), store.session(session(0)));
    let serve = |key: &str| {
        let step = Step::begin(&handle, key).unwrap();
        step.context(&PlainText, &ServeOptions::default()).unwrap()
    };
    let told = || {
        let found = acpdb_query::find(&store, &item.to_string(), None).unwrap();
        let explained = acpdb_query::explain(&found.view, "s0", found.ix.unwrap()).unwrap();
        explained.sentences.iter().filter(|said| said.contains("served")).cloned().collect::<Vec<_>>()
    };
    let first = serve("k1");
    assert_eq!(told(), [format!("It is served whole since turn 1 (context {}).", first.seq)]);
    let _ = store.erase(item, "ada", "it leaked").unwrap();
    assert_eq!(told(), [""; 0]);
    let second = serve("k2");
    assert_eq!(told(), [format!("It is no longer served since turn 2 (context {}).", second.seq)]);
}

/// Moments recorded during an act.
type Moments = Vec<Moment>;

fn moments_of(world: &SimWorld, act: impl FnOnce()) -> Moments {
    let kept: Arc<Mutex<Moments>> = Arc::default();
    let into = Arc::clone(&kept);
    world.record(move |moment| into.lock().unwrap().push(moment));
    act();
    world.stop_recording();
    std::mem::take(&mut *kept.lock().unwrap())
}

/// Opens a stopped machine: if the erasure is on record it is carried out to the end, else nothing of it happened.
fn judge(image: &SimWorld, context: &str) -> bool {
    assert_sound(image, &format!("{context}: before any process recovers"));
    // Once it is on record no reader shows it, though the bytes are still there: `show`, `list` and `merge` did.
    let reader = open_with(image, 49, true).unwrap();
    let is_erased = |store: &Store| {
        let events = store.events(Seq(1), Seq::MAX).unwrap();
        events.map(Result::unwrap).any(|event| event.event.payload.label() == "erased")
    };
    if is_erased(&reader) {
        assert!(readable(&reader).iter().all(|line| !line.contains(SECRET)), "{context}: a reader shows it");
    }
    drop(reader);
    let store = open(image, 50);
    let lines = readable(&store).len();
    let events: Vec<_> = store.events(Seq(1), Seq::MAX).unwrap().map(Result::unwrap).collect();
    let recorded = events.iter().any(|event| event.event.payload.label() == "erased");
    drop(store);
    let found = found_in(image);
    assert_eq!(recorded, found.is_empty(), "{context}: {found:?}");
    assert_eq!(lines, if recorded { events.len() - 4 } else { events.len() }, "{context}");
    assert_sound(image, &format!("{context}: after recovery"));
    let changes = image.change_count();
    drop(open(image, 51));
    assert_eq!(image.change_count(), changes, "{context}: a second opening has nothing to do");
    recorded
}

#[test]
fn an_erasure_that_is_cut_off_anywhere_is_ended_by_the_next_opening() {
    for (sealed, last) in [(false, true), (true, false)] {
        let world = filled(sealed, last);
        let store = open(&world, 2);
        let item = item_of(&store, &session(0), "c1");
        let moments = moments_of(&world, || drop(store.erase(item, "ada", "it leaked").unwrap()));
        assert!(moments.len() > 20, "{}", moments.len());
        let (mut done, mut not) = (0, 0);
        for (number, moment) in moments.iter().enumerate() {
            for (variant, crash) in [Crash::Kill, Crash::Power, Crash::Power].into_iter().enumerate() {
                let seed = (number * 7 + variant) as u64;
                let image = moment.image(crash, seed);
                let context = format!("sealed {sealed}: {crash:?} before {number} ({})", moment.operation);
                let again = variant == 1 && number % 4 == 0;
                let resumed = again.then(|| moment.image(crash, seed));
                if judge(&image, &context) {
                    done += 1;
                } else {
                    not += 1;
                }
                let Some(resumed) = resumed else { continue };
                // And cut off again in the middle of ending it.
                let moments = moments_of(&resumed, || drop(open(&resumed, 49)));
                for (step, moment) in moments.iter().enumerate().step_by(5) {
                    let image = moment.image(Crash::Power, step as u64);
                    judge(&image, &format!("{context}, then before {step} of the next opening"));
                }
            }
        }
        assert!(done > 30 && not > 10, "{done} were on record, {not} were not");
    }
}

/// A crash between the mark and the erasure's record left a text which says that bytes are gone, and the log with these bytes.
#[test]
fn an_erased_stretch_that_is_cut_off_anywhere_goes_with_its_mark() {
    let world = filled(false, true);
    let store = open(&world, 2);
    let said = format!("my token is {SECRET}, keep it");
    let info = session(2);
    let _ = store.append(&info, vec![Entry::message("m", Role::User, &said)]).unwrap();
    for call in ["c1", "c2"] {
        let _ = store.erase(item_of(&store, &session(u32::from(call == "c2")), call), "ada", "it leaked");
    }
    assert_eq!(found_in(&world).len(), 1, "only in the message");
    let item = store.view(info.id()).unwrap().history()[0].item;
    let span = 12..12 + SECRET.len();
    let marked = said.replace(SECRET, &format!("[{} bytes erased]", SECRET.len()));
    let shown = |store: &Store| {
        let body = store.view(info.id()).unwrap().history()[0].content[0].body;
        String::from_utf8(store.body(body).unwrap()).unwrap()
    };
    let moments =
        moments_of(&world, || drop(store.erase_span(info.id(), item, &span, "ada", "it leaked").unwrap()));
    let (mut done, mut not) = (0, 0);
    for (number, moment) in moments.iter().enumerate() {
        for (variant, crash) in [Crash::Kill, Crash::Power].into_iter().enumerate() {
            let image = moment.image(crash, (number * 7 + variant) as u64);
            let context = format!("{crash:?} before {number} ({})", moment.operation);
            let reader = open_with(&image, 49, true).unwrap();
            assert!([&said, &marked].contains(&&shown(&reader)), "{context}");
            drop(reader);
            let store = open(&image, 50);
            let is_marked = shown(&store) == marked;
            drop(store);
            assert_eq!(found_in(&image).is_empty(), is_marked, "{context}: {:?}", found_in(&image));
            assert_sound(&image, &context);
            *(if is_marked { &mut done } else { &mut not }) += 1;
        }
    }
    assert!(done > 10 && not > 5, "{done} were on record, {not} were not");
}

/// A process was killed after it had written the record of an erasure, and before the record counted. Another one, which had the store
/// open, took up the note, found nothing on record and removed the note; its next commit put the record in force, and the bytes stayed.
#[test]
fn a_record_that_a_killed_process_wrote_is_carried_out_by_the_process_that_takes_up_the_note() {
    let template = filled(false, true);
    {
        let store = open(&template, 2);
        let _ = store.erase(item_of(&store, &session(0), "c3"), "ada", "no harm").unwrap();
    }
    let (mut done, mut not) = (0, 0);
    for call in 0..120 {
        let world = template.fork(call);
        let other = open(&world, 3);
        let process = Arc::new(world.process(2));
        let builder = Store::builder("/sim").storage(process.clone()).registry(acpdb_hosts::registry());
        let store = fixed(builder.segment_bytes_max(SEGMENT_BYTES), 2).open().unwrap();
        let item = item_of(&store, &session(0), "c1");
        process.crash_at(process.operation_count() + call, Crash::Kill);
        let is_done = store.erase(item, "ada", "it leaked").is_ok();
        drop(store);
        let nothing = other.erase(item_of(&other, &session(0), "c3"), "ada", "again").unwrap();
        assert!(nothing.hit.is_empty(), "call {call}");
        let _ = other.append(&session(0), message(99)).unwrap();
        let records = acpdb_tests::support::events(&other).unwrap();
        let count = records.iter().filter(|it| matches!(it.event.payload, Payload::Erased(_))).count();
        assert!(count == 2 || count == 1 && !is_done, "call {call}: {count}");
        assert_eq!(found_in(&world).is_empty(), count == 2, "call {call}: {:?}", found_in(&world));
        assert_sound(&world, &format!("call {call}"));
        *(if count == 2 { &mut done } else { &mut not }) += 1;
    }
    assert!(done > 10 && not > 5, "{done} were on record, {not} were not");
}

/// A process was killed between the zeros of a salt and those of its text. Handles that did not know of the erasure yet called the text damaged, and
/// appended nothing any more.
#[test]
fn a_half_zeroed_text_is_erased_for_handles_that_were_open_before() {
    for sealed in [false, true] {
        let template = filled(sealed, false);
        let mut begun = 0;
        for call in 100.. {
            let world = template.fork(call);
            let other = open(&world, 3);
            let texts: Vec<BodyId> =
                other.events(Seq(1), Seq::MAX).unwrap().flat_map(|it| texts_of(&it.unwrap())).collect();
            let process = Arc::new(world.process(2));
            let builder = Store::builder("/sim").storage(process.clone()).registry(acpdb_hosts::registry());
            let store = fixed(builder.segment_bytes_max(SEGMENT_BYTES), 2).open().unwrap();
            let item = item_of(&store, &session(0), "c1");
            process.crash_at(process.operation_count() + call, Crash::Kill);
            let is_done = store.erase(item, "ada", "it leaked").is_ok();
            drop(store);
            let read = |text: &BodyId| match other.body(*text) {
                Ok(_) => false,
                Err(Error::Erased { .. }) => true,
                Err(error) => panic!("sealed {sealed}, call {call}: {error}"),
            };
            let gone = texts.iter().filter(|text| read(text)).count();
            let mut many = other.bodies(&texts).into_iter();
            assert!(many.all(|text| matches!(text, Ok(_) | Err(Error::Erased { .. }))), "{call}");
            let _ = other.append(&session(0), message(99)).unwrap();
            if is_done {
                break;
            }
            begun += u32::from(gone > 0);
        }
        assert!(begun > 2, "sealed {sealed}: {begun}");
    }
}

/// Copies made of a store in the middle of an erasure end it in themselves.
#[test]
fn neither_a_backup_nor_a_salvaged_copy_keeps_what_is_on_record_as_erased() {
    let world = filled(true, false);
    let store = open(&world, 2);
    let item = item_of(&store, &session(0), "c1");
    let moments = moments_of(&world, || drop(store.erase(item, "ada", "it leaked").unwrap()));
    let mut unfinished = 0;
    for (number, moment) in moments.iter().enumerate() {
        let image = moment.image(Crash::Kill, 1);
        let source = open_with(&image, 60, true).unwrap();
        let recorded = source
            .events(Seq(1), Seq::MAX)
            .unwrap()
            .any(|event| event.unwrap().event.payload.label() == "erased");
        if !recorded {
            continue;
        }
        unfinished += u32::from(!found_in(&image).is_empty());
        let copy = SimWorld::new(8);
        let backup = source.backup_storage(Arc::new(copy.process(1)), &mut |_| ()).unwrap();
        assert_eq!(backup.report.verdict(), Verdict::Sound, "before {number}: {:#?}", backup.report);
        drop(open(&copy, 2));
        assert_eq!(found_in(&copy), [""; 0], "a backup made before {number} ({})", moment.operation);
        let saved = SimWorld::new(9);
        let into = Arc::new(saved.process(1));
        let _ = salvage_storage(storage(&image), into, &KeyUse::None, &mut |_| ()).unwrap();
        assert_eq!(found_in(&saved), [""; 0], "salvaged before {number} ({})", moment.operation);
        assert_sound(&saved, "salvaged");
    }
    assert!(unfinished > 5, "{unfinished}");
}

/// A host's record quotes its texts: short ones literally, escaped as the host escapes.
#[test]
fn the_hosts_record_goes_with_its_text() {
    let world = SimWorld::new(5);
    let store = open(&world, 1);
    let record = |id: &str, text: &str| {
        serde_json::json!({
            "type": "user", "uuid": id, "sessionId": "s", "timestamp": "2026-01-02T03:04:05Z", "cwd": "/w",
            "message": { "role": "user", "content": text },
        })
        .to_string()
    };
    let secret = format!("mein Schlüssel:\n\"{SECRET}\"");
    let jsonl = [record("u1", "hello"), record("u2", &secret), record("u3", "bye")].join("\n");
    let _ = import_bytes(&store, ImportFormat::ClaudeCode, "s.jsonl", jsonl.as_bytes()).unwrap();
    let stream =
        store.stream_names().unwrap().into_iter().find(|name| name.host == "claude-code").unwrap().id;
    let view = store.view(stream).unwrap();
    let holds = |item: &acpdb_engine::fold::ItemView| {
        item.content.iter().any(|part| view.text(part.body).is_ok_and(|text| text.contains(SECRET)))
    };
    let item = view.history().into_iter().find(holds).unwrap().item;
    let report = store.erase(item, "ada", "it leaked").unwrap();
    assert_eq!(found_in(&world), [""; 0], "{report:#?}");
    let said: Vec<_> =
        view.history().iter().filter_map(|item| view.text(item.content[0].body).ok()).collect();
    assert_eq!(said, ["hello", "bye"]);
}

/// A free text (a title, a subject) that was erased before was left out of an event, and the host's record of the event quoted it.
#[test]
fn the_record_of_an_event_goes_if_its_free_text_was_erased_before() {
    let world = filled(false, false);
    let store = open(&world, 2);
    let item = item_of(&store, &session(0), "c1");
    let _ = store.erase(item, "ada", "it leaked").unwrap();
    let memory = |value: &str, subject: &str| {
        let memory = MemoryEntry {
            value: value.to_owned(),
            subject: Some(subject.to_owned()),
            ..MemoryEntry::default()
        };
        let wire = vec![WirePiece::Literal(format!("{{\"subject\":{subject:?}}}").into_bytes())];
        Entry { wire, ..Entry::from(Fact::Memory(memory)) }
    };
    let has_record = |entry: Entry| {
        let receipt = store.append(&session(0), vec![entry]).unwrap();
        store.event(receipt.last_seq).unwrap().unwrap().event.stamp.wire.is_some()
    };
    assert!(has_record(memory("first", "harmless")));
    assert!(!has_record(memory("second", &output())));
    assert_eq!(found_in(&world), [""; 0]);
    assert_sound(&world, "with the same content as a free text");
}

/// The real thing: files, an index, snapshots, a quarantine; texts of every kind.
#[test]
fn nothing_of_it_is_left_in_a_folder() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("store");
    let builder = || Store::builder(&path).registry(acpdb_hosts::registry()).any_file_system();
    let store = builder().segment_bytes_max(1 << 16).open().unwrap();
    let todos = format!(r#"{{"todos":[{{"content":"rotate {SECRET}","status":"pending"}}]}}"#);
    let entries = vec![
        Entry::message("m1", Role::User, format!("my key is {SECRET}")),
        Entry::tool_started("c1", "mcp__shop__login", format!(r#"{{"token":"{SECRET}"}}"#)),
        Entry::tool_completed("c1", format!("{SECRET}\n")),
        Entry::tool_started("c2", "todowrite", todos),
        Entry::tool_completed("c2", "ok"),
    ];
    let receipt = store.append(&session(0), entries).unwrap();
    for number in 0..200 {
        let _ = store.append(&session(0), message(number)).unwrap();
    }
    let _ = store.reindex().unwrap();
    let _ = store.seal(true).unwrap();
    assert!(store.save_snapshot(session(0).id()).unwrap());
    std::fs::create_dir_all(path.join("quarantine")).unwrap();
    std::fs::write(path.join("quarantine").join("000000000001-000000004096-0.torn"), SECRET).unwrap();
    let mut removed = 0;
    for item in receipt.items.iter().flatten() {
        removed += store.erase(*item, "ada", "it leaked").unwrap().figures.files_removed;
    }
    assert!(removed >= 2, "a snapshot and torn bytes: {removed}");
    drop(store);
    let files: Arc<dyn Storage> = Arc::new(FileStorage::new(&path));
    let left = whereabouts(&files, SECRET.as_bytes()).unwrap();
    assert_eq!(left, [""; 0]);
    let report = acpdb_engine::verify::verify_folder(&path, true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    let store = builder().open().unwrap();
    assert!(store.damage_met().is_empty());
    let count = store.view(session(0).id()).unwrap().history().len();
    assert_eq!(count, 203);
}

/// A handle holds titles and memory in its process. A handle of another process lived through the erasure, showed the title,
/// and wrote it into the folder again when it saved them.
#[test]
fn what_another_handle_holds_in_memory_is_made_anew() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("store");
    let open = || Store::builder(&path).registry(acpdb_hosts::registry()).any_file_system().open().unwrap();
    let live = open();
    for number in 0..300 {
        let _ = live.append(&session(0), message(number)).unwrap();
    }
    let title = fact::SessionChanged { title: Some(format!("the key {SECRET}")), ..Default::default() };
    let titled = live.append(&session(0), vec![title.into()]).unwrap().last_seq;
    let title_of = |store: &Store| {
        let view = store.view(session(0).id()).unwrap();
        view.state().info(Seq::MAX).map(|info| format!("{:?}", info.title)).unwrap()
    };
    assert!(title_of(&live).contains(SECRET));
    let _ = open().erase(ItemId::first(titled), "ada", "it leaked").unwrap();
    assert!(!title_of(&live).contains(SECRET));
    assert!(live.save_snapshot(session(0).id()).unwrap());
    let _ = live.append(&session(0), message(301)).unwrap();
    drop(live);
    let files: Arc<dyn Storage> = Arc::new(FileStorage::new(&path));
    assert_eq!(whereabouts(&files, SECRET.as_bytes()).unwrap(), [""; 0]);
    let report = acpdb_engine::verify::verify_folder(&path, true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
}

/// A command line was a key, as a path is, and stayed readable after its call was erased. Now a sign stands for it; a path
/// stays, and the caller of the erasure is told so.
#[test]
fn paths_stay_and_are_named_and_command_lines_go() {
    let world = SimWorld::new(5);
    let store = open(&world, 1);
    let command = format!("curl -H 'token: {SECRET}' shop");
    let params = serde_json::json!({ "command": command }).to_string();
    let entries = vec![
        Entry::tool_started("c1", "bash", params),
        Entry::tool_completed("c1", "done"),
        Entry::tool_started("c2", "read", r#"{"filePath":"/w/a.rs"}"#),
    ];
    let receipt = store.append(&session(0), entries).unwrap();
    let report = store.erase(receipt.items[0].unwrap(), "ada", "it leaked").unwrap();
    assert_eq!(found_in(&world).len(), 0);
    assert_eq!(report.keys_kept, Vec::<String>::new());
    let report = store.erase(receipt.items[2].unwrap(), "ada", "it leaked").unwrap();
    assert_eq!(report.keys_kept, ["/w/a.rs"]);
}

/// The key with which a stream's facts are recognised again is a body like others. Once it was erased, nothing could be
/// appended to the stream by the process that opened the store anew: no signature could be made. Facts signed with it are
/// recognised no more; life goes on with a key that was never stored.
#[test]
fn a_stream_whose_key_was_erased_goes_on() {
    let world = filled(false, false);
    let store = open(&world, 2);
    let opened = ItemId::first(Seq(2));
    let beside = open(&world, 3);
    let _ = beside.append(&session(0), call("c7", "read before")).unwrap();
    let report = store.erase(opened, "ada", "whose key it is does not matter").unwrap();
    assert!(report.hit.iter().any(|hit| hit.seq == Seq(2) && hit.bytes >= 32), "{report:?}");
    assert_sound(&world, "the key is erased");
    drop(store);
    for (number, store) in [beside, open(&world, 4), open(&world, 5)].into_iter().enumerate() {
        let say =
            |name: &str| store.append(&session(0), call(&format!("{name}{number}"), "read after")).unwrap();
        let (one, two) = (say("one"), say("two"));
        assert_eq!((one.event_count, two.event_count), (2, 2), "handle {number}");
        let again = store.append(&session(0), message(1)).unwrap();
        assert_eq!(again.items.len(), 1, "handle {number}");
        let view = store.view(session(0).id()).unwrap();
        assert!(view.history().iter().any(|item| item.call.as_deref() == Some(&format!("two{number}"))));
    }
    assert_sound(&world, "life went on");
    let reader = open_with(&world, 6, true).unwrap();
    assert!(!readable(&reader).is_empty());
    // The keys of other streams are as they were: facts known there stay known.
    let other = open(&world, 7);
    let before = other.head().unwrap();
    let _ = other.append(&session(1), call("c9", "new")).unwrap();
    assert_eq!(other.head().unwrap(), Seq(before.0 + 2));
}

/// A reason that is the text itself was found as equal content in each record, so sixteen were made, and the last one kept it.
#[test]
fn a_reason_that_is_the_text_itself_is_not_recorded() {
    let world = filled(false, true);
    let store = open(&world, 2);
    let (info, before) = (session(0), store.head().unwrap());
    let report = store.erase(item_of(&store, &info, "c1"), &output(), &output()).unwrap();
    assert_eq!(report.recorded, Some(before.next()));
    assert_eq!((found_in(&world), store.head().unwrap()), (Vec::new(), before.next()));
}

#[test]
fn what_cannot_be_erased_is_refused_and_nothing_is_recorded() {
    let world = filled(false, false);
    let store = open(&world, 2);
    let head = store.head().unwrap();
    let no_such = ItemId::first(Seq(9999));
    assert!(matches!(store.erase(no_such, "ada", "x"), Err(Error::NotFound { .. })));
    let item = item_of(&store, &session(0), "c1");
    let endless = "x".repeat(5000);
    assert!(matches!(store.erase(item, "ada", &endless), Err(Error::TooLarge { limit: 4096, .. })));
    let reader = open_with(&world, 3, true).unwrap();
    assert!(matches!(reader.erase(item, "ada", "x"), Err(Error::ReadOnly { .. })));
    assert_eq!(store.head().unwrap(), head);
    assert!(!world.files().iter().any(|name| name == "erasing"));
}

/// A full disk refused an erasure before it was on record, yet the note that one is under way stayed, and no message said so.
/// The note stays only as long as there is something on record to be done.
#[test]
fn an_erasure_that_a_full_disk_refuses_leaves_no_note() {
    let template = filled(false, true);
    let (mut refused, mut done) = (0, 0);
    for after in 0..40 {
        let world = template.fork(after);
        let process = Arc::new(world.process(2));
        let builder = Store::builder("/sim").storage(process.clone()).registry(acpdb_hosts::registry());
        let store = fixed(builder.segment_bytes_max(SEGMENT_BYTES), 2).open().unwrap();
        let item = item_of(&store, &session(0), "c1");
        process.plant(Fault { kind: FaultKind::NoSpace, after, once: false });
        let erased = store.erase(item, "ada", "it leaked");
        let is_pending = storage(&world).open("erasing", acpdb_engine::storage::Access::Read).is_ok();
        let reader = open_with(&world, 3, true).unwrap();
        let events = acpdb_tests::support::events(&reader).unwrap();
        let is_recorded = events.iter().any(|it| matches!(it.event.payload, Payload::Erased(_)));
        match erased {
            Ok(_) => {
                done += 1;
                assert!(!is_pending && is_recorded, "after {after}");
            }
            Err(Error::Poisoned) => {}
            Err(error) => {
                refused += u32::from(!is_recorded);
                assert_eq!(is_pending, is_recorded, "after {after}: {error}");
            }
        }
    }
    assert!(refused > 2 && done > 2, "{refused} refused, {done} done");
}

/// Calls to the storage fail while an erasure is under way: then it is on record and carried out, by the next opening at the latest, or
/// neither.
#[test]
fn an_erasure_that_meets_a_fault_is_on_record_and_done_or_neither() {
    let template = filled(false, true);
    let (mut done, mut not) = (0, 0);
    let kinds = FaultKind::ALL.into_iter().filter(|kind| *kind != FaultKind::SyncLies);
    for (kind, after) in kinds.flat_map(|kind| (0..42).step_by(7).map(move |after| (kind, after))) {
        let context = format!("{kind:?} after {after}");
        let world = template.fork(after);
        let other = open(&world, 3);
        let process = Arc::new(world.process(2));
        let builder = Store::builder("/sim").storage(process.clone()).registry(acpdb_hosts::registry());
        let store = fixed(builder.segment_bytes_max(SEGMENT_BYTES), 2).open().unwrap();
        let item = item_of(&store, &session(0), "c1");
        process.plant(Fault { kind, after, once: true });
        let is_done = store.erase(item, "ada", "it leaked").is_ok();
        drop(store);
        // After a failed sync every process begins anew.
        let beside = other.append(&session(0), message(99));
        assert!(matches!(beside, Ok(_) | Err(Error::Poisoned)), "{context}: {beside:?}");
        let store = open(&world, 4);
        let _ = store.append(&session(0), message(98)).unwrap();
        let records = acpdb_tests::support::events(&store).unwrap();
        let is_recorded = records.iter().any(|it| matches!(it.event.payload, Payload::Erased(_)));
        assert!(is_recorded || !is_done, "{context}");
        assert_eq!(found_in(&world).is_empty(), is_recorded, "{context}: {:?}", found_in(&world));
        assert_sound(&world, &context);
        *(if is_recorded { &mut done } else { &mut not }) += 1;
    }
    assert!(done > 10 && not > 5, "{done} were on record, {not} were not");
}

/// A saved fold that could not be opened for writing, as by a process with too many files, was removed without being zeroed, and
/// the erasure said that it was done: a program that had the file open still had the text.
#[test]
fn a_copy_that_cannot_be_zeroed_is_not_passed_over() {
    let mut refused = 0;
    for after in 0.. {
        let world = filled(false, false);
        let store = open(&world, 2);
        assert!(store.save_snapshot(session(0).id()).unwrap());
        let item = item_of(&store, &session(0), "c1");
        drop(store);
        let process = world.process(4);
        let builder = Store::builder("/sim").storage(Arc::new(process.clone()));
        let store = fixed(builder.registry(acpdb_hosts::registry()), 4).open().unwrap();
        let other = world.process(5);
        let copies: Vec<_> = other
            .list("snap")
            .unwrap()
            .iter()
            .map(|name| other.open(&format!("snap/{name}"), acpdb_engine::storage::Access::Read).unwrap())
            .collect();
        assert!(!copies.is_empty());
        process.plant(Fault { kind: FaultKind::OpenError, after, once: true });
        let answer = store.erase(item, "me", "leaked");
        let was_met = process.was_hit();
        process.heal();
        if answer.is_ok() {
            for copy in &copies {
                let mut bytes = vec![1; usize::try_from(copy.len().unwrap()).unwrap()];
                copy.read_at(&mut bytes, 0).unwrap();
                assert!(bytes.iter().all(|byte| *byte == 0), "open {after}: a copy is as it was");
            }
        } else {
            refused += 1;
        }
        if !was_met {
            break;
        }
    }
    assert!(refused > 0, "no fault was met");
}
