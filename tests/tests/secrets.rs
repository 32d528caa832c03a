//! Secrets in every field, by every feed and verb: once they are erased, or taken out, nothing of the folder has them, and
//! the log gives nothing to test a guess against.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests: a failed step is a failed test"
)]

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use acpdb_engine::command::ContextAction;
use acpdb_engine::command::Target;
use acpdb_engine::command::memory::MemoryCommand;
use acpdb_engine::entry::{Entry, Fact, MemoryEntry, PartEntry, StreamInfo, TodoChangeEntry, fact};
use acpdb_engine::event::{BodyAddress, HostRecorded, InjectedKind, MemoryKind, Payload, Role};
use acpdb_engine::ids::{BodyId, Seq, StreamId};
use acpdb_engine::store::ErasedWhy;
use acpdb_engine::text::Label;
use acpdb_engine::verify::{Verdict, verify_folder};
use acpdb_engine::{Error, MemoryScope, Store};
use acpdb_hosts::export::{Exporter, Format as Wire};
use acpdb_hosts::import::ImportFormat;
use acpdb_hosts::redact::Rules;
use acpdb_serve::{ServeOptions, Step};
use acpdb_tests::support::{events, import_bytes};
use sha2::{Digest as _, Sha256};

const COUNT: usize = 49;

/// Secrets of a form that one rule knows; each stands in one field.
fn secret(number: usize) -> String {
    format!("canary-{:04}-kestrel", 7000 + number * 37)
}

fn rules() -> Rules {
    Rules::usual().unwrap().with("mine", "canary-[0-9]{4}-kestrel").unwrap()
}

fn open(folder: &Path, redacting: bool) -> Store {
    // Small segments, so that there are complete ones to seal.
    let builder = Store::builder(folder).registry(acpdb_hosts::registry()).segment_bytes_max(16 << 10);
    if redacting { builder.redactor(Arc::new(rules())).open().unwrap() } else { builder.open().unwrap() }
}

fn bytes(text: String) -> Arc<[u8]> {
    Arc::from(text.into_bytes())
}

/// Facts with a secret in each field that is free text, as a host would append them.
fn facts(s: &dyn Fn(usize) -> String) -> Vec<Entry> {
    let call = |id: &str, tool: &str, params: String| Entry::tool_started(id, tool, params);
    let mut all = vec![
        Entry::message("m1", Role::User, format!("my pin is {}", s(0))),
        Entry::message_parts("m2", Role::Assistant, vec![PartEntry::reasoning(s(1), None)]),
        call("c1", "bash", format!(r#"{{"command":"curl -H {}"}}"#, s(2))),
        Entry::tool_completed("c1", s(3)).details(format!(r#"{{"stderr":"{}"}}"#, s(4))),
        call("c2", "bash", format!(r#"{{"command":"cat <<EOF\n{}\nEOF"}}"#, s(5))),
        Entry::tool_failed("c2", s(6)),
        call("c3", "grep", format!(r#"{{"pattern":"{}","path":"/src","include":"{}"}}"#, s(7), s(8))),
        call("c4", "webfetch", format!(r#"{{"url":"https://x.example/?t={}"}}"#, s(9))),
        call("c5", "websearch", format!(r#"{{"query":"{}"}}"#, s(10))),
        call("c6", "bash", format!(r#"{{"command":"ls {}"}}"#, s(11))),
        call("c7", "glob", format!(r#"{{"pattern":"{}*.ts"}}"#, s(12))),
        call(
            "c8",
            "todowrite",
            format!(r#"{{"todos":[{{"content":"{}","status":"{}","priority":"{}"}}]}}"#, s(13), s(14), s(15)),
        ),
        Entry::tool_aborted("c8", s(16)),
        Entry::host_record("note", Some(bytes(s(17)))),
    ];
    let memory = MemoryEntry {
        id: "f1".to_owned(),
        kind: MemoryKind::Decision,
        category: s(18),
        key: Some(s(19)),
        subject: Some(s(20)),
        value: s(21),
        rationale: Some(s(22)),
        alternatives: vec![s(23)],
        related_files: vec![s(24)],
        status: Some(s(25)),
        extra: Some(bytes(format!(r#"{{"x":"{}"}}"#, s(26)))),
        ..MemoryEntry::default()
    };
    let change = |entry: String| TodoChangeEntry {
        id: "1".to_owned(),
        status: Some(s(27)),
        entry: Some(bytes(format!(r#"{{"content":"{entry}"}}"#))),
    };
    let facts = [
        Fact::Memory(memory),
        Fact::TodoChanged(fact::TodoChanged { change: change(s(28)) }),
        Fact::TodosReplaced(fact::TodosReplaced {
            list: bytes(format!(r#"[{{"content":"{}","status":"{}"}}]"#, s(29), s(30))),
        }),
        Fact::PromptSet(fact::PromptSet {
            system: Some(bytes(s(31))),
            tools: Some(bytes(format!(r#"[{{"name":"{}"}}]"#, s(32)))),
            model: None,
            params: Some(bytes(format!(r#"{{"stop":"{}"}}"#, s(33)))),
        }),
        Fact::SessionChanged(fact::SessionChanged { title: Some(s(34)), ..fact::SessionChanged::default() }),
        Fact::MemoryRetracted(fact::MemoryRetracted { id: "f1".to_owned(), reason: Some(s(35)), at: None }),
        Fact::Injected(fact::Injected { what: InjectedKind::Other, text: bytes(s(36)) }),
        Fact::HostCleared(fact::HostCleared {
            items: Vec::new(),
            calls: vec!["c1".to_owned()],
            text: Some(bytes(s(37))),
        }),
        Fact::SessionClosed(fact::SessionClosed { reason: Some(s(38)) }),
    ];
    all.extend(facts.map(Entry::from));
    all
}

/// Files of every host with a secret in each text and call.
fn files(s: &dyn Fn(usize) -> String) -> Vec<(ImportFormat, String)> {
    let claude = |uuid: u32, message: String, kind: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"0b1c2d3e-0000-4000-8000-{uuid:012}","sessionId":"cc","cwd":"/w","timestamp":"2026-01-02T03:04:05Z","message":{message}}}"#
        )
    };
    vec![
        (
            ImportFormat::ClaudeCode,
            [
                claude(1, format!(r#"{{"role":"user","content":"{}"}}"#, s(39)), "user"),
                claude(
                    2,
                    format!(
                        r#"{{"role":"assistant","id":"a1","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"echo {}"}}}}]}}"#,
                        s(40)
                    ),
                    "assistant",
                ),
            ]
            .join("\n"),
        ),
        (
            ImportFormat::Codex,
            format!(
                r#"{{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{{"id":"s1","cwd":"/w"}}}}
{{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{}"}}]}}}}
"#,
                s(41)
            ),
        ),
        (
            ImportFormat::GeminiCli,
            format!(
                r#"{{"sessionId":"g1","projectHash":"a","startTime":"2026-01-02T03:04:05Z","messages":[{{"id":"m1","type":"user","content":"{}"}}],"kind":"main"}}"#,
                s(42)
            ),
        ),
        (
            ImportFormat::CopilotCli,
            format!(
                r#"{{"type":"session.start","data":{{"sessionId":"k1","context":{{"cwd":"/w"}}}},"id":"e1"}}
{{"type":"user.message","data":{{"content":"{}"}},"id":"e4"}}
"#,
                s(43)
            ),
        ),
        (
            ImportFormat::OpenaiMessages,
            format!(r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#, s(44)),
        ),
        (
            ImportFormat::SweAgent,
            format!(
                r#"{{"environment":"main","trajectory":[{{"action":"echo {}","observation":"x","response":"r","thought":"t","state":"{{}}"}}],"history":[],"info":{{}}}}"#,
                s(45)
            ),
        ),
        (
            ImportFormat::MemoryPreferences,
            format!(
                r#"{{"ts":"2025-05-30T18:25:47Z","commit":"1","category":"tooling","key":"pm","value":"{}","previous":null}}"#,
                s(46)
            ),
        ),
        (
            ImportFormat::MemoryDecisions,
            format!(
                r#"{{"id":"p-1","title":"{}","status":"Final","category":"Process","created":"2001-07-07","replaces":[],"superseded_by":[]}}"#,
                s(47)
            ),
        ),
        (
            ImportFormat::Pi,
            format!(
                r#"{{"type":"session","version":3,"id":"p1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}}
{{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{{"role":"user","content":"{}","timestamp":1}}}}
"#,
                s(48)
            ),
        ),
    ]
}

fn info(s: &dyn Fn(usize) -> String) -> StreamInfo {
    StreamInfo { title: Some(s(34)), ..StreamInfo::session("opencode", "planted") }
}

/// Plants them all: appended, imported, and by the verbs that decide.
fn plant(store: &Store, s: &dyn Fn(usize) -> String) {
    let info = info(s);
    let _ = store.append(&info, facts(s)).unwrap();
    for (format, text) in files(s) {
        import_bytes(store, format, "planted", text.as_bytes()).unwrap();
    }
    let stream = info.id();
    distil(store, stream, s(0));
    let scope = MemoryScope { project: Some("shop".to_owned()), ..MemoryScope::session(stream) };
    let _ = store.append(&StreamInfo::project("shop"), Vec::new());
    let entry = MemoryEntry {
        kind: MemoryKind::Note,
        value: s(21),
        category: s(18),
        confidence: 100,
        ..MemoryEntry::default()
    };
    let _ = store.remember(&scope, &MemoryCommand::Add(entry)).unwrap();
    let unused =
        store.append(&info, vec![Entry::message("unused", Role::User, "of no use any more")]).unwrap();
    let _ = store.erase(unused.items[0].unwrap(), "me", &format!("it stood beside {}", s(5))).unwrap();
    let _ = store.update_tasks(stream, tasks(s, "in_progress").as_bytes()).unwrap();
    let _ = store.update_tasks(stream, tasks(s, "completed").as_bytes()).unwrap();
}

/// Hides the first message behind a summary.
fn distil(store: &Store, stream: StreamId, summary: String) {
    let item = store.view(stream).unwrap().history()[0].item;
    let targets = vec![(Target::Item(item), Some(summary))];
    let reply = store.context(stream, ContextAction::Distill, targets).unwrap();
    assert!(reply.last_seq.is_some(), "{}", reply.text);
}

fn tasks(s: &dyn Fn(usize) -> String, status: &str) -> String {
    format!(
        r#"{{"tasks":[{{"id":"t1","content":"{}","status":"{status}","result_summary":"a summary that is long enough {}"}}]}}"#,
        s(13),
        s(3)
    )
}

/// Files of the folder, but the one that is outside of the log on purpose.
fn files_of(folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_of(&path, into);
        } else if path.file_name().unwrap() != "secret" {
            into.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let number = chunk.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        (0..4)
            .rev()
            .map(move |place| char::from(SIGNS[(number >> (6 * place) & 63) as usize]))
            .collect::<String>()
    };
    bytes.chunks_exact(3).map(group).collect()
}

/// Every form in which a secret could stand in bytes.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut all = vec![secret.as_bytes().to_vec(), hex.to_uppercase().into_bytes(), hex.into_bytes(), wide];
    all.extend((0..3).map(|skip| base64(&secret.as_bytes()[skip..]).into_bytes()));
    // A telling half is as bad.
    all.push(secret.as_bytes()[..secret.len() - 4].to_vec());
    all
}

fn has(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Places that still hold a secret: the bytes of the folder, or texts that the engine reads out of it.
fn traces(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut all = BTreeMap::new();
    files_of(folder, &mut all);
    let store = Store::builder(folder).read_only().open().unwrap();
    for recorded in events(&store).unwrap() {
        let (seq, kind) = (recorded.seq, recorded.event.payload.label());
        let said = serde_json::to_vec(&recorded.event.payload).unwrap();
        all.insert(format!("{seq} {kind}"), said);
        for row in 0..store.body_count(seq).unwrap() {
            if let Ok(body) = store.body(BodyId { seq, first: row, chunks: 1 }) {
                all.insert(format!("{seq} {kind} row {row}"), body);
            }
        }
    }
    for number in 0..COUNT {
        for form in forms(&secret(number)) {
            let places = all.iter().filter(|(_, bytes)| has(bytes, &form)).map(|(place, _)| place);
            found.extend(places.map(|place| format!("secret {number} in {place}")));
        }
    }
    found
}

/// The bodies that a scan by our rules finds.
fn scanned(store: &Store) -> Vec<BodyAddress> {
    let rules = rules();
    let mut found = Vec::new();
    for recorded in events(store).unwrap() {
        let seq = recorded.seq;
        for row in 0..store.body_count(seq).unwrap() {
            let body = store.body(BodyId { seq, first: row, chunks: 1 });
            if body.is_ok_and(|body| !rules.find(&body).is_empty()) {
                found.push(BodyAddress { seq, row });
            }
        }
    }
    found
}

/// Eight of ten planted secrets outlived an erasure: in keys, patterns, titles, categories. Now they stand in bodies, and a
/// body goes.
#[test]
fn what_is_erased_is_nowhere_in_the_folder() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let store = open(&folder, false);
    plant(&store, &secret);
    let _ = store.seal(false).unwrap();
    assert!(traces(&folder).len() >= COUNT, "the test finds what is there");
    let report = store.erase_spans(&[], &scanned(&store), "me", "planted").unwrap();
    assert!(report.recorded.is_some());
    drop(store);
    assert_eq!(traces(&folder), Vec::<String>::new());
    // An erased text does not come back, from whichever source.
    let store = open(&folder, false);
    let _ = store.append(&StreamInfo::session("other", "s2"), again(&secret)).unwrap();
    for (format, text) in files(&secret) {
        import_bytes(&store, format, "again", text.as_bytes()).unwrap();
    }
    let scope = MemoryScope { project: Some("shop".to_owned()), session: None };
    let entry =
        MemoryEntry { kind: MemoryKind::Note, value: secret(21), confidence: 100, ..MemoryEntry::default() };
    let refused = store.remember(&scope, &MemoryCommand::Add(entry)).unwrap_err().to_string();
    assert!(refused.contains("was erased"), "{refused}");
    drop(store);
    let mut told = traces(&folder);
    // Records that are read for the first time may quote it within a longer text.
    told.retain(|trace| !trace.contains("host_recorded"));
    assert_eq!(told, Vec::<String>::new());
}

/// Bytes that are given back keep no secret: an erasure took equal bytes of others with it, and kept them from being stored again.
#[test]
fn what_is_given_back_leaves_what_others_rest_on() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let store = open(&folder, false);
    let session = |name: &str| store.session(StreamInfo::session("acpdb", name));
    let record = |text: &str| {
        let raw = Some(bytes(text.to_owned()));
        Entry::from(fact::HostRecorded { record: "r".into(), about: None, raw })
    };
    // Equal bodies of one commit are stored once.
    for (name, own) in [("a", "of a alone"), ("b", "of b alone")] {
        let _ = session(name).append([record(own), record("twice"), record("twice")]).unwrap();
    }
    let raws = |name: &str| {
        let events = store.stream_events(session(name).id(), Seq(1), Seq::MAX).unwrap();
        let mut raws = Vec::new();
        for recorded in events.map(Result::unwrap) {
            if let Payload::HostRecorded(HostRecorded { raw: Some(raw), .. }) = recorded.event.payload {
                let text = store.body(raw.id(recorded.seq)).map(|body| String::from_utf8(body).unwrap());
                raws.push((recorded.seq, raw, text.ok()));
            }
        }
        raws
    };
    let of_a = raws("a").into_iter().map(|(seq, raw, _)| BodyAddress { seq, row: raw.first });
    let of_a: Vec<_> = of_a.take(2).collect();
    let report = store.release_bodies(&of_a, "me", "not needed").unwrap();
    assert_eq!(
        report.hit.iter().map(|hit| (hit.why, hit.seq)).collect::<Vec<_>>(),
        [(ErasedWhy::Asked, of_a[0].seq)]
    );
    let texts = |name: &str| raws(name).into_iter().map(|(.., text)| text).collect::<Vec<_>>();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(texts("a"), [None, text("twice"), text("twice")]);
    assert_eq!(texts("b"), [text("of b alone"), text("twice"), text("twice")]);
    let _ = session("a").append([record("of a alone")]).unwrap();
    assert_eq!(texts("a").last(), Some(&text("of a alone")), "it may be stored again");
    assert!(store.release_bodies(&of_a, "me", "not needed").unwrap().hit.is_empty());
    assert_eq!(verify_folder(&folder, true).unwrap().verdict(), Verdict::Sound);
}

/// Texts that are, as a whole, an erased text.
fn again(s: &dyn Fn(usize) -> String) -> Vec<Entry> {
    vec![
        Entry::message("m1", Role::User, format!("my pin is {}", s(0))).origin("again:1"),
        Entry::message_parts("m2", Role::Assistant, vec![PartEntry::reasoning(s(1), None)]),
        Entry::tool_started("c1", "bash", format!(r#"{{"command":"curl -H {}"}}"#, s(2))),
        Entry::tool_completed("c1", s(3)),
        fact::SessionChanged { title: Some(s(34)), ..fact::SessionChanged::default() }.into(),
    ]
}

#[test]
fn what_is_taken_out_is_nowhere_in_the_folder() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let store = open(&folder, true);
    plant(&store, &secret);
    let step = Step::begin(&store.session(StreamInfo::session("opencode", "served")), secret(6)).unwrap();
    let _ = step.context(&Exporter::new(Wire::Anthropic), &ServeOptions::default()).unwrap();
    drop(store);
    assert_eq!(traces(&folder), Vec::<String>::new());
}

/// How many guesses an attacker makes.
const GUESS_COUNT: usize = 1_000_000;

/// Every unkeyed digest that was ever taken of content, of a guess.
fn digests(guess: &str, into: &mut dyn FnMut(u64)) {
    let mut put = |bytes: &[u8]| {
        if let Some(first) = bytes.first_chunk::<8>() {
            into(u64::from_le_bytes(*first));
        }
    };
    put(blake3::hash(guess.as_bytes()).as_bytes());
    put(&Sha256::digest(guess.as_bytes()));
    let canonical = format!(r#"{{"command":"curl -H {guess}"}}"#);
    put(blake3::hash(canonical.as_bytes()).as_bytes());
    put(&Sha256::digest(canonical.as_bytes()));
    let record = format!(r#"{{"role":"user","content":"{guess}"}}"#);
    put(blake3::hash(record.as_bytes()).as_bytes());
    let keyed = |key: &[u8; 32]| *blake3::keyed_hash(key, guess.as_bytes()).as_bytes();
    put(&keyed(&[0; 32]));
}

/// The digests that need a longer beginning, of the guesses that matter.
fn digests_of_facts(guess: &str, into: &mut dyn FnMut(u64)) {
    let derived = |context: &str, parts: &[&[u8]]| {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        u64::from_le_bytes(*hasher.finalize().as_bytes().first_chunk().unwrap())
    };
    let mut origin = blake3::Hasher::new_derive_key("acpdb 2026 origin v1");
    origin.update(guess.as_bytes());
    into(u64::from_le_bytes(*origin.finalize().as_bytes().first_chunk().unwrap()));
    let text = format!("my pin is {guess}");
    let none: &[u8] = &[];
    let count = 1_i64.to_le_bytes();
    let parts: [&[u8]; 9] =
        [b"message_recorded", &[1, 0, 0], &count, &[0], &[0], none, text.as_bytes(), &[0], none];
    into(derived("acpdb 2026 revision v1", &parts));
}

/// All 8 bytes that stand anywhere in the log, as they are and read from hex.
fn windows(folder: &Path) -> HashSet<u64> {
    let mut all = BTreeMap::new();
    files_of(&folder.join("log"), &mut all);
    let mut known = HashSet::new();
    for bytes in all.values() {
        known.extend(bytes.windows(8).map(|window| u64::from_le_bytes(window.try_into().unwrap())));
        for run in bytes.split(|byte| !byte.is_ascii_hexdigit()).filter(|run| run.len() >= 16) {
            for start in 0..=run.len() - 16 {
                let digits = std::str::from_utf8(&run[start..start + 16]).unwrap();
                known.insert(u64::from_str_radix(digits, 16).unwrap().swap_bytes());
            }
        }
    }
    known
}

/// A pin of four digits was found again from the key of a turn. Digests of content are keyed with a secret that is not in
/// the log: a dictionary that holds every planted secret finds none.
#[test]
fn a_dictionary_finds_nothing_in_the_log() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let store = open(&folder, false);
    plant(&store, &secret);
    let _ = store.erase_spans(&[], &scanned(&store), "me", "planted").unwrap();
    let labels: Vec<(u32, String)> = events(&store)
        .unwrap()
        .iter()
        .filter_map(|recorded| match &recorded.event.payload {
            Payload::ToolCallStarted(started) => Some((started.label, started.tool.clone())),
            _ => None,
        })
        .collect();
    drop(store);
    let known = windows(&folder);
    assert!(known.len() > 10_000, "{}", known.len());
    let planted: Vec<String> = (0..COUNT).map(secret).collect();
    let guesses = (0..GUESS_COUNT).map(|number| format!("canary-{number:07}")).chain(planted.clone());
    let mut hits = Vec::new();
    for guess in guesses {
        digests(&guess, &mut |digest| {
            if known.contains(&digest) {
                hits.push(guess.clone());
            }
        });
    }
    for guess in planted {
        digests_of_facts(&guess, &mut |digest| {
            if known.contains(&digest) {
                hits.push(guess.clone());
            }
        });
    }
    assert_eq!(hits, Vec::<String>::new());
    // The short hash is the one that agents type: it is shown as ever, and its bits are not those that the log holds.
    let bits = Label::of("bash", format!(r#"{{"command":"curl -H {}"}}"#, secret(2)).as_bytes()).bits();
    assert!(labels.iter().any(|(label, _)| *label == bits), "the store shows the hash");
    let without = std::fs::read(folder.join("secret")).unwrap();
    std::fs::remove_file(folder.join("secret")).unwrap();
    let store = Store::builder(&folder).read_only().open().unwrap();
    let sealed = events(&store).unwrap().into_iter().filter_map(|recorded| match recorded.event.payload {
        Payload::ToolCallStarted(started) => Some(started.label),
        _ => None,
    });
    assert!(sealed.into_iter().all(|label| label != bits), "without the secret it is not seen");
    let refused = Store::builder(&folder).open().unwrap().append(&StreamInfo::session("h", "s"), Vec::new());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("`secret`") && refused.contains("backup"), "{refused}");
    std::fs::write(folder.join("secret"), without).unwrap();
    assert!(
        Store::builder(&folder).open().unwrap().append(&StreamInfo::session("h", "s"), Vec::new()).is_ok()
    );
}

/// A stretch of a text goes, the rest stays; an erased title says so.
#[test]
fn a_part_of_a_text_is_erased() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let store = open(&folder, false);
    let info = StreamInfo::session("h", "s");
    let text = format!("before {} after", secret(1));
    let _ = store.append(&info, vec![Entry::message("m", Role::User, &text)]).unwrap();
    let item = store.view(info.id()).unwrap().history()[0].item;
    let span = 7..7 + secret(1).len();
    let backwards = std::ops::Range { start: 9, end: 7 };
    for wrong in [0..0, 5..999, backwards] {
        assert!(store.erase_span(info.id(), item, &wrong, "me", "x").is_err(), "{wrong:?}");
    }
    let report = store.erase_span(info.id(), item, &span, "me", "a part").unwrap();
    assert_eq!(report.hit.len(), 1);
    let view = store.view(info.id()).unwrap();
    let shown = view.history()[0].content[0].body;
    let shown = String::from_utf8(store.body(shown).unwrap()).unwrap();
    assert_eq!(shown, format!("before [{} bytes erased] after", secret(1).len()));
    drop(store);
    assert_eq!(traces(&folder), Vec::<String>::new());
    assert_eq!(Store::builder(&folder).open().unwrap().head().unwrap(), Seq(5));
}

/// A host tells a result twice: as the model reads it, and as its own display does. A stretch was erased in the first alone. Parameters
/// are another text.
#[test]
fn a_part_of_a_result_is_erased_in_its_details_and_records_too() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let store = open(&folder, false);
    let (info, hidden) = (StreamInfo::session("h", "s"), secret(1));
    let long = "x".repeat(300);
    let params = format!(r#"{{"command":"cat {}"}}"#, secret(60));
    let details = format!(r#"{{"stdout":"key\n{hidden}\nend {long}"}}"#);
    let told = Entry::tool_completed("c", format!("1 key\n2 {hidden}\n3 end")).details(details);
    let _ = store.append(&info, vec![Entry::tool_started("c", "bash", params), told]).unwrap();
    let line = |uuid: &str, kind: &str, message: &str, more: &str| {
        format!(
            r#"{{"sessionId":"t","cwd":"/w","version":"2.1.39","type":"{kind}","uuid":"{uuid}","message":{message}{more}}}"#
        )
    };
    let asked = r#"{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"d","name":"Read","input":{"file_path":"/w/a"}}]}"#;
    let got = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"d","content":"1 a\n2 {hidden}\n3 b"}}]}}"#
    );
    let more = format!(
        r#","toolUseResult":{{"type":"text","file":{{"filePath":"/w/a","content":"a\n{hidden}\nb","numLines":3,"startLine":1,"totalLines":3}}}}"#
    );
    let lines = [
        line("u1", "user", r#"{"role":"user","content":"read it"}"#, ""),
        line("u2", "assistant", asked, r#","parentUuid":"u1""#),
        line("u3", "user", &got, &format!(r#","parentUuid":"u2"{more}"#)),
    ];
    let _ = import_bytes(&store, ImportFormat::ClaudeCode, "t", lines.join("\n").as_bytes()).unwrap();
    for session in [info.clone(), StreamInfo::session("claude-code", "t")] {
        let history = store.view(session.id()).unwrap().history();
        let call = history.iter().find(|item| item.params.is_some()).unwrap();
        let text = String::from_utf8(store.body(call.content[0].body).unwrap()).unwrap();
        let start = text.find(&hidden).unwrap();
        let span = start..start + hidden.len();
        let would = store.erase_span_preview(session.id(), call.item, &span).unwrap();
        let report = store.erase_span(session.id(), call.item, &span, "me", "a part").unwrap();
        // An erased text belongs to no item any more, so the lists differ in that.
        let bytes =
            |report: &acpdb_engine::store::EraseReport| report.hit.iter().map(|hit| hit.bytes).sum::<u64>();
        assert_eq!((would.recorded, bytes(&would)), (None, bytes(&report)));
        let call =
            store.view(session.id()).unwrap().history().into_iter().find(|it| it.item == call.item).unwrap();
        let shown = String::from_utf8(store.body(call.content[0].body).unwrap()).unwrap();
        assert!(shown.contains("bytes erased]"), "{shown}");
        assert!(store.body(call.params.unwrap()).is_ok());
    }
    drop(store);
    assert_eq!(traces(&folder), Vec::<String>::new());
}

/// The text of a session's first item.
fn shown_first(store: &Store, info: &StreamInfo) -> String {
    let body = store.view(info.id()).unwrap().history()[0].content[0].body;
    String::from_utf8(store.body(body).unwrap()).unwrap()
}

/// Another process erases or seals, or the reason is too long: then the text is as it was.
#[test]
fn an_erasure_of_a_stretch_that_cannot_begin_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let wait = std::time::Duration::from_millis(20);
    let store = Store::builder(&folder).lock_wait(wait).open().unwrap();
    let info = StreamInfo::session("h", "s");
    let text = format!("before {} after", secret(1));
    let _ = store.append(&info, vec![Entry::message("m", Role::User, &text)]).unwrap();
    let item = store.view(info.id()).unwrap().history()[0].item;
    let (span, head) = (7..7 + secret(1).len(), store.head().unwrap());
    let error = store.erase_span(info.id(), item, &span, "me", &"x".repeat(5000)).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    let seal = std::fs::File::create(folder.join("SEAL")).unwrap();
    seal.lock().unwrap();
    let error = store.erase_span(info.id(), item, &span, "me", "x").unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    assert_eq!((store.head().unwrap(), shown_first(&store, &info)), (head, text));
    seal.unlock().unwrap();
    let _ = store.erase_span(info.id(), item, &span, "me", "x").unwrap();
    assert_eq!(traces(&folder), Vec::<String>::new());
}

/// Of two erasures of the same text at once, one is refused: its span may be of other bytes by now.
#[test]
fn two_stretches_of_a_text_are_not_erased_at_once() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let store = open(&folder, false);
    let info = StreamInfo::session("h", "s");
    let text = format!("one {}, two {}.", secret(1), secret(2));
    let _ = store.append(&info, vec![Entry::message("m", Role::User, &text)]).unwrap();
    let item = store.view(info.id()).unwrap().history()[0].item;
    let spans = [secret(1), secret(2)].map(|it| text.find(&it).map(|at| at..at + it.len()).unwrap());
    let seal = std::fs::File::create(folder.join("SEAL")).unwrap();
    seal.lock().unwrap();
    let stream = info.id();
    let erase = |span| {
        let store = store.clone();
        std::thread::spawn(move || store.erase_span(stream, item, &span, "me", "x").map(drop))
    };
    let both = spans.clone().map(erase);
    // Both have read the text by then, and wait.
    std::thread::sleep(std::time::Duration::from_millis(300));
    seal.unlock().unwrap();
    let done = both.map(|thread| thread.join().unwrap());
    let is_done = [done[0].is_ok(), done[1].is_ok()];
    assert!(is_done[0] != is_done[1], "{done:?}");
    let refused = done.into_iter().find_map(Result::err).unwrap();
    assert!(matches!(refused, Error::HeadMoved { .. }), "{refused:?}");
    let (gone, left) = if is_done[0] { (1, 2) } else { (2, 1) };
    let mark = format!("[{} bytes erased]", secret(gone).len());
    assert_eq!(shown_first(&store, &info), text.replace(&secret(gone), &mark));
    let found = traces(&folder);
    assert!(found.iter().all(|trace| trace.starts_with(&format!("secret {left} "))), "{found:?}");
}

/// A stretch that is as long as its mark is not erased again: its text, the same, would be erased as a whole.
#[test]
fn a_stretch_is_erased_once() {
    let home = tempfile::tempdir().unwrap();
    let store = open(&home.path().join("store"), false);
    let info = StreamInfo::session("h", "s");
    let _ = store.append(&info, vec![Entry::message("m", Role::User, "a 17 letters secret here")]).unwrap();
    let item = store.view(info.id()).unwrap().history()[0].item;
    let _ = store.erase_span(info.id(), item, &(2..19), "me", "x").unwrap();
    let head = store.head().unwrap();
    let error = store.erase_span(info.id(), item, &(2..19), "me", "x").unwrap_err();
    assert!(matches!(error, Error::Rejected(_)), "{error:?}");
    assert_eq!(
        (store.head().unwrap(), shown_first(&store, &info).as_str()),
        (head, "a [17 bytes erased] here")
    );
}

/// A text that an item had before it was revised goes, too, if it has the bytes. Other earlier texts stay.
#[test]
fn a_stretch_is_erased_in_earlier_texts() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let store = open(&folder, false);
    let info = StreamInfo::session("h", "s");
    let tell = |text: &str| {
        let entry = Entry::message("m", Role::User, text).origin("msg:m".to_owned());
        store.append(&info, vec![entry]).unwrap()
    };
    let texts = ["no secret".to_owned(), format!("it is {}", secret(1)), format!("it is {} now", secret(1))];
    for text in &texts {
        let _ = tell(text);
    }
    let item = store.view(info.id()).unwrap().history()[0].item;
    let report = store.erase_span(info.id(), item, &(6..6 + secret(1).len()), "me", "x").unwrap();
    assert_eq!(report.hit.len(), 2, "{report:?}");
    assert_eq!(shown_first(&store, &info), format!("it is [{} bytes erased] now", secret(1).len()));
    assert_eq!(store.body(BodyId { seq: item.seq, first: 0, chunks: 1 }).unwrap(), texts[0].as_bytes());
    assert_eq!(traces(&folder), Vec::<String>::new());
}
