//! Recorded sessions: nothing is lost between the file and the store.
//!
//! They are not part of the project: `ACPDB_RECORDINGS=FOLDER cargo test -p acpdb-tests --test data -- --ignored`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::cast_possible_truncation,
    reason = "tests: a failed step is a failed test"
)]

#[path = "data/truth.rs"]
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use acpdb_engine::event::Payload;
use acpdb_engine::fold::memory::MemoryStatus;
use acpdb_engine::fold::{ItemKind, RuleKind, Status};
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::verify::{Verdict, verify_folder, world_contradictions};
use acpdb_engine::{MemoryScope, Store};
use acpdb_hosts::import::ImportFormat;
use acpdb_tests::support::{bytes_of, events, folded, import_bytes, recordings};
use serde_json::Value;

/// The files of a folder of recordings, with the name an importer is given: the first part of the file's name.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder: PathBuf = recordings().join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().split('.').next().unwrap().to_owned();
    paths.iter().map(|path| (name(path), bytes_of(path).unwrap())).collect()
}

/// A row of the table in the recordings' README, in its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Row {
    files: usize,
    sessions: u64,
    records: u64,
    calls: u64,
    calls_sub: u64,
    failed: u64,
    without_result: u64,
    todo_snapshots: u64,
    todo_changes: u64,
}

fn row(numbers: [u64; 9]) -> Row {
    let [files, sessions, records, calls, calls_sub, failed, without_result, todo_snapshots, todo_changes] =
        numbers;
    let files = files as usize;
    Row { files, sessions, records, calls, calls_sub, failed, without_result, todo_snapshots, todo_changes }
}

fn open(path: &std::path::Path) -> Store {
    Store::builder(path).registry(acpdb_hosts::registry()).open().unwrap()
}

/// All that a store answers about its sessions, as JSON.
fn answers(store: &Store) -> Vec<String> {
    let mut out: Vec<String> =
        store.sessions(Seq::MAX).unwrap().iter().map(|it| serde_json::to_string(it).unwrap()).collect();
    for stream in store.stream_names().unwrap() {
        let view = store.view(stream.id).unwrap();
        let state = view.state();
        let current: Vec<_> =
            state.current(Seq::MAX).into_iter().map(|ix| state.item(ix, Seq::MAX)).collect();
        out.push(serde_json::to_string(&(state.stats(Seq::MAX), current)).unwrap());
    }
    out
}

fn check(folder: &str, format: ImportFormat, expected: [u64; 9], edges_expected: [u64; 3]) {
    let files = files(folder);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let store = open(&path);
    let mut found = Row { files: files.len(), ..Row::default() };
    for (name, bytes) in &files {
        let report = import_bytes(&store, format, name, bytes).unwrap().report;
        assert!(report.is_complete(), "{folder}/{name}: {report:?}");
        found.sessions += report.sessions;
        found.records += report.records;
        found.calls += report.calls_main;
        found.calls_sub += report.calls_subagent;
        found.failed += report.failed;
        found.without_result += report.without_result;
        found.todo_snapshots += report.todo_snapshots;
        found.todo_changes += report.todo_deltas;
    }
    assert_eq!(found, row(expected), "what the importer counts in {folder}");
    for (name, bytes) in &files {
        assert_eq!(
            import_bytes(&store, format, name, bytes).unwrap().event_count,
            0,
            "{folder}/{name} again"
        );
    }

    let recorded = events(&store).unwrap();
    let world = folded(&recorded);
    assert_eq!(world_contradictions(&world, Seq::MAX), []);
    let mut edges = [0; 3];
    let mut held = Row { files: files.len(), records: found.records, ..Row::default() };
    held.todo_snapshots = found.todo_snapshots;
    held.todo_changes = found.todo_changes;
    for stream in store.stream_names().unwrap() {
        let state = world.stream(stream.id).unwrap();
        for edge in state.edges(Seq::MAX) {
            let place =
                [RuleKind::HASH, RuleKind::FILE, RuleKind::TODO].iter().position(|rule| *rule == edge.rule);
            edges[place.unwrap()] += 1;
        }
        let items = state.items(Seq::MAX).filter_map(|ix| state.item(ix, Seq::MAX));
        let calls: Vec<_> =
            items.filter(|item| item.kind == ItemKind::Call).map(|item| item.status).collect();
        let count = |which: &[Status]| {
            calls.iter().filter(|status| status.is_some_and(|status| which.contains(&status))).count() as u64
        };
        // A subagent of opencode has a file of its own, and the table counts files.
        if stream.parent.is_some() && format != ImportFormat::Opencode {
            held.calls_sub += calls.len() as u64;
        } else {
            held.sessions += 1;
            held.calls += calls.len() as u64;
            held.failed += count(&[Status::Failed, Status::Aborted]);
            held.without_result += count(&[Status::Pending]);
        }
    }
    assert_eq!(held, found, "what the store holds of {folder}");
    assert_eq!(edges, edges_expected, "what supersedes what in {folder}");
    prints_again(&store, format, &recorded, &files);

    // The index is no part of the truth.
    let _ = store.reindex().unwrap();
    let with = answers(&store);
    drop(store);
    std::fs::remove_file(path.join("index.redb")).unwrap();
    assert!(answers(&open(&path)) == with, "{folder}: deleting the index changes answers");
    let report = verify_folder(&path, true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
}

/// Every record of the files comes out of the store byte for byte.
fn prints_again(
    store: &Store,
    format: ImportFormat,
    recorded: &[acpdb_engine::event::Recorded],
    files: &[(String, Vec<u8>)],
) {
    let by_line = !matches!(
        format,
        ImportFormat::Opencode
            | ImportFormat::GeminiCli
            | ImportFormat::OpenaiMessages
            | ImportFormat::SweAgent
    );
    let is_document = |event: &&acpdb_engine::event::Recorded| {
        by_line || matches!(&event.event.payload, Payload::HostRecorded(it) if it.record == "document")
    };
    let printed: BTreeSet<Vec<u8>> =
        recorded.iter().filter(is_document).filter_map(|event| store.record(event).unwrap()).collect();
    for (name, bytes) in files {
        let text = bytes.trim_ascii();
        let records: Vec<&[u8]> =
            if by_line { text.split(|byte| *byte == b'\n').collect() } else { vec![text] };
        for record in records {
            let record = record.trim_ascii();
            // Documents of several sessions are kept session by session.
            let found = printed.contains(record)
                || format == ImportFormat::OpenaiMessages && of_parts(record, &printed);
            assert!(found, "{name}: {} ..", String::from_utf8_lossy(&record[..record.len().min(200)]));
        }
    }
}

/// Whether each element of a list was printed.
fn of_parts(list: &[u8], printed: &BTreeSet<Vec<u8>>) -> bool {
    let elements: Vec<Box<serde_json::value::RawValue>> = serde_json::from_slice(list).unwrap();
    !elements.is_empty() && elements.iter().all(|element| printed.contains(element.get().as_bytes()))
}

macro_rules! recordings {
    ($( $name:ident $folder:literal $format:ident $numbers:expr, $edges:expr; )+) => {
        $( #[test] #[ignore = "reads recorded sessions: ACPDB_RECORDINGS"] fn $name() { check($folder, ImportFormat::$format, $numbers, $edges); } )+
    };
}

// The last numbers: edges by the rules repeat, file and todo, as `scripts/superseded.py` counts them from the files alone.
recordings! {
    claude_code_large "claude-code-large/context-evaluator" ClaudeCode [27, 27, 3544, 840, 131, 74, 3, 0, 108], [3, 251, 0];
    claude_code_evaluator "claude-code/context-evaluator" ClaudeCode [17, 17, 1614, 369, 12, 24, 0, 0, 33], [4, 91, 0];
    claude_code_cli "claude-code/entire-cli" ClaudeCode [6, 6, 882, 252, 0, 9, 0, 34, 0], [4, 69, 27];
    codex "codex/session-bridge" Codex [8, 8, 1693, 406, 0, 23, 1, 5, 0], [18, 10, 3];
    copilot "copilot-cli/agentv" CopilotCli [3, 3, 581, 68, 0, 1, 0, 0, 0], [0, 1, 0];
    gemini_cli "gemini-cli/entire-cli" GeminiCli [3, 3, 23, 12, 0, 0, 0, 0, 0], [1, 1, 0];
    gemini_bridge "gemini-cli/session-bridge" GeminiCli [2, 2, 19, 9, 0, 0, 0, 0, 0], [0, 2, 0];
    openai "openai-messages/tau-bench" OpenaiMessages [1, 60, 1700, 361, 0, 22, 0, 0, 0], [6, 0, 0];
    opencode_gatomia "opencode/gatomia-vscode" Opencode [11, 11, 1253, 266, 0, 1, 0, 0, 0], [5, 21, 0];
    opencode_bridge "opencode/session-bridge" Opencode [6, 6, 723, 144, 0, 1, 0, 14, 0], [3, 43, 12];
    swe_agent "swe-agent" SweAgent [10, 10, 108, 108, 0, 0, 0, 0, 0], [8, 0, 0];
}

/// No recorded session holds a secret: a rule that finds one takes a digest, an identifier or a picture for one.
#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn rules_take_nothing_of_recorded_sessions_for_a_secret() {
    let rules = acpdb_hosts::redact::Rules::usual().unwrap();
    let mut folders = vec![recordings()];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = bytes_of(&path).unwrap();
            for (line, text) in bytes.split(|byte| *byte == b'\n').enumerate() {
                let found = rules.find(text);
                assert!(found.is_empty(), "{}:{}: {found:?}", path.display(), line + 1);
                looked_at += text.len();
            }
        }
    }
    assert!(looked_at > 10_000_000, "{looked_at} bytes");
}

fn memory(name: &str, format: ImportFormat) -> (tempfile::TempDir, Store, Vec<Value>) {
    let (_, bytes) = files("memory").into_iter().find(|(found, _)| found == name).unwrap();
    let home = tempfile::tempdir().unwrap();
    let store = open(&home.path().join("store"));
    let report = import_bytes(&store, format, name, &bytes).unwrap().report;
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(import_bytes(&store, format, name, &bytes).unwrap().event_count, 0);
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let records = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    prints_again(&store, format, &events(&store).unwrap(), &[(name.to_owned(), bytes.clone())]);
    assert_eq!(world_contradictions(&folded(&events(&store).unwrap()), Seq::MAX), []);
    (home, store, records)
}

fn names(record: &Value, field: &str) -> Vec<String> {
    record[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn decisions_keep_their_links() {
    let (_home, store, records) = memory("decisions-peps", ImportFormat::MemoryDecisions);
    assert_eq!(records.len(), 691);
    let mut links: BTreeSet<(String, String)> = BTreeSet::new();
    for record in &records {
        let id = record["id"].as_str().unwrap();
        links.extend(names(record, "replaces").into_iter().map(|old| (old, id.to_owned())));
        links.extend(names(record, "superseded_by").into_iter().map(|new| (id.to_owned(), new)));
    }
    assert_eq!(records.iter().filter(|record| !names(record, "superseded_by").is_empty()).count(), 27);
    assert_eq!(records.iter().filter(|record| !names(record, "replaces").is_empty()).count(), 34);
    let memory = store.memory(&MemoryScope::project("decisions-peps"), Seq::MAX).unwrap();
    memory.read(Micros(i64::MAX), |view| {
        let all = view.all();
        assert_eq!(all.len(), 691);
        let (_, at) = view.streams().next().unwrap();
        let found: BTreeSet<(String, String)> =
            at.edges().into_iter().map(|edge| (edge.old, edge.new)).collect();
        assert_eq!(found, links);
        for (_, item) in &all {
            // A superseder that the file does not hold hides as well: the host recorded that it exists.
            let expected = at.edges().iter().any(|edge| edge.old == item.id() && !edge.closes_cycle);
            assert_eq!(
                item.standing(Micros(i64::MAX)) == MemoryStatus::Superseded,
                expected,
                "{}",
                item.id()
            );
        }
    });
}

fn check_preferences(name: &str, expected: [usize; 4]) {
    let (_home, store, records) = memory(name, ImportFormat::MemoryPreferences);
    let mut last: BTreeMap<(String, String), Value> = BTreeMap::new();
    let (mut updates, mut removals) = (0, 0);
    for record in &records {
        let text = |field: &str| record[field].as_str().unwrap().to_owned();
        let key = (text("category"), text("key"));
        let held = last.get(&key).cloned().unwrap_or_default();
        assert_eq!(held, record["previous"], "{name}: the chain of {key:?}");
        updates += usize::from(!record["previous"].is_null() && !record["value"].is_null());
        removals += usize::from(record["value"].is_null());
        last.insert(key, record["value"].clone());
    }
    assert_eq!([records.len(), last.len(), updates, removals], expected, "{name}");
    let recorded = events(&store).unwrap();
    let label = |label: &str| recorded.iter().filter(|event| event.event.payload.label() == label).count();
    assert_eq!(label("memory_retracted"), removals, "{name}: removals are retractions");
    let memory = store.memory(&MemoryScope::project(name), Seq::MAX).unwrap();
    memory.read(Micros(i64::MAX), |view| {
        let (_, at) = view.streams().next().unwrap();
        for ((category, key), value) in &last {
            let current: Vec<String> = at
                .current(Micros(i64::MAX))
                .filter(|item| item.category() == category && item.key() == Some(key))
                .map(|item| view.text(&item).unwrap())
                .collect();
            let expected: Vec<String> = if value.is_null() {
                vec![]
            } else {
                vec![value.as_str().map_or_else(|| value.to_string(), str::to_owned)]
            };
            assert_eq!(current, expected, "{name}: {category}/{key}");
        }
    });
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn preferences_end_with_their_last_values() {
    check_preferences("preferences-gemini-cli-package-json", [547, 177, 293, 63]);
    check_preferences("preferences-gemini-cli-core-package-json", [426, 129, 237, 46]);
}
