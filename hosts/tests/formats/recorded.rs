//! Counts over recorded sessions, which are not part of the project: `ACPDB_RECORDINGS` names them.

use std::fs;
use std::path::{Path, PathBuf};

use acpdb_hosts::import::ImportBatch;
use acpdb_hosts::import::{ImportFormat, ImportOptions, ImportReport, decompressed, detect, read};

use super::support::{judge, origins};

fn data() -> PathBuf {
    std::env::var_os("ACPDB_RECORDINGS").expect("ACPDB_RECORDINGS names a folder of recorded sessions").into()
}

/// Imports every file of a folder; checks its format, its wires and its origins.
fn all(folder: &str, format: ImportFormat) -> (ImportReport, Vec<ImportBatch>) {
    let mut total = ImportReport::new(format);
    let mut everything = Vec::new();
    let mut files: Vec<PathBuf> =
        fs::read_dir(data().join(folder)).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(
            &mut decompressed(&bytes[..], &acpdb_hosts::import::Limits::default()).unwrap(),
            &mut text,
        )
        .unwrap();
        assert_eq!(detect(&file, text.as_bytes()), Some(format), "{}", file.display());
        let name = file.file_stem().unwrap().to_str().unwrap();
        let mut batches = Vec::new();
        let report = read(format, name, text.as_bytes(), &ImportOptions::default(), &mut batches).unwrap();
        assert!(report.is_complete(), "{report:?}");
        assert!(report.cut.is_none());
        assert!(report.unknown_records.is_empty(), "{:?}", report.unknown_records);
        judge(&batches, &text);
        origins(&batches);
        let mut store = super::twice::Store::default();
        store.take(&batches);
        let once = store.event_count;
        store.take(&batches);
        assert_eq!(store.event_count, once, "a second import adds nothing");
        total.sessions += report.sessions;
        total.records += report.records;
        total.calls_main += report.calls_main;
        total.failed += report.failed;
        total.without_result += report.without_result;
        total.todo_snapshots += report.todo_snapshots;
        everything.append(&mut batches);
    }
    (total, everything)
}

/// Sessions, records, calls, failed, without result, todo lists.
fn counts(folder: &str, format: ImportFormat, want: [u64; 6]) {
    let (report, _) = all(folder, format);
    let got = [
        report.sessions,
        report.records,
        report.calls_main,
        report.failed,
        report.without_result,
        report.todo_snapshots,
    ];
    assert_eq!(got, want, "{folder}");
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn codex() {
    counts("codex/session-bridge", ImportFormat::Codex, [8, 1693, 406, 23, 1, 5]);
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn codex_steps_are_those_that_the_host_counts() {
    use acpdb_engine::entry::{Fact, fact};
    use acpdb_engine::event::TurnKind;
    let (_, batches) = all("codex/session-bridge", ImportFormat::Codex);
    let turns = |wanted: TurnKind| {
        let entries = batches.iter().flat_map(|batch| &batch.entries);
        entries.filter(|entry| matches!(entry.fact, Fact::TurnStarted(fact::TurnStarted { kind, .. }) if kind == wanted)).count()
    };
    assert_eq!(turns(TurnKind::Step), 206);
    assert_eq!(turns(TurnKind::Prompt), 11);
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn copilot() {
    counts("copilot-cli/agentv", ImportFormat::CopilotCli, [3, 581, 68, 1, 0, 0]);
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn gemini() {
    counts("gemini-cli/entire-cli", ImportFormat::GeminiCli, [3, 23, 12, 0, 0, 0]);
    counts("gemini-cli/session-bridge", ImportFormat::GeminiCli, [2, 19, 9, 0, 0, 0]);
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn tau_bench() {
    counts("openai-messages/tau-bench", ImportFormat::OpenaiMessages, [60, 1700, 361, 22, 0, 0]);
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn swe_agent() {
    counts("swe-agent", ImportFormat::SweAgent, [10, 108, 108, 0, 0, 0]);
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn memory() {
    use acpdb_engine::entry::{Fact, fact};
    let data = data();
    let facts = |file: &str, format: ImportFormat| {
        let text = fs::read_to_string(data.join("memory").join(file)).unwrap();
        assert_eq!(detect(Path::new(file), text.as_bytes()), Some(format), "{file}");
        let mut batches = Vec::new();
        let name = file.strip_suffix(".jsonl").unwrap();
        let report = read(format, name, text.as_bytes(), &ImportOptions::default(), &mut batches).unwrap();
        assert!(report.is_complete());
        assert_eq!(batches[0].stream.name, name);
        judge(&batches, &text);
        origins(&batches);
        let facts: Vec<Fact> =
            batches.into_iter().flat_map(|batch| batch.entries).map(|entry| entry.fact).collect();
        (report.records, facts)
    };

    let (records, decisions) = facts("decisions-peps.jsonl", ImportFormat::MemoryDecisions);
    let linked = |links: fn(&acpdb_engine::entry::MemoryEntry) -> &Vec<String>| {
        decisions
            .iter()
            .filter(|fact| matches!(fact, Fact::Memory(memory) if !links(memory).is_empty()))
            .count()
    };
    assert_eq!(
        [records, linked(|memory| &memory.superseded_by) as u64, linked(|memory| &memory.replaces) as u64],
        [691, 27, 34]
    );
    let dated =
        decisions.iter().filter(|fact| matches!(fact, Fact::Memory(memory) if memory.created.is_some()));
    assert_eq!(dated.count(), 691, "every day is understood");

    for (file, want) in [
        ("preferences-gemini-cli-package-json.jsonl", [547, 177, 293, 63]),
        ("preferences-gemini-cli-core-package-json.jsonl", [426, 129, 237, 46]),
    ] {
        let (records, facts) = facts(file, ImportFormat::MemoryPreferences);
        let mut keys = std::collections::BTreeSet::new();
        let mut holds = std::collections::BTreeSet::new();
        let [mut updates, mut removals] = [0, 0];
        for fact in facts {
            match fact {
                Fact::Memory(memory) => {
                    let key = memory.key.unwrap();
                    keys.insert(key.clone());
                    updates += u64::from(!holds.insert(key));
                }
                Fact::MemoryReinforced(_) => updates += 1,
                Fact::MemoryRetracted(fact::MemoryRetracted { id, .. }) => {
                    let key = id.rsplit_once('@').unwrap().0.split_once('/').unwrap().1.to_string();
                    assert!(holds.remove(&key), "{key}");
                    removals += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!([records, keys.len() as u64, updates, removals], want, "{file}");
    }
}
