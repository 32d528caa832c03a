//! Imports recorded sessions and compares their facts with counts that were made by hand.
//!
//! They are not part of the project: `ACPDB_RECORDINGS=FOLDER cargo test -p acpdb-hosts --test recordings -- --ignored`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests: a failed step is a failed test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use acpdb_engine::entry::{Entry, Fact, WirePiece, fact};
use acpdb_engine::event::TurnKind;
use acpdb_hosts::import::{self, HEAD_BYTES, ImportBatch, ImportFormat, ImportOptions, ImportReport, wire};

/// The findings of one file.
struct Imported {
    raw: Vec<u8>,
    batches: Vec<ImportBatch>,
    report: ImportReport,
}

fn folder(name: &str) -> PathBuf {
    let data =
        std::env::var_os("ACPDB_RECORDINGS").expect("ACPDB_RECORDINGS names a folder of recorded sessions");
    Path::new(&data).join(name)
}

fn import_all(folder: &Path, format: ImportFormat) -> Vec<Imported> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| import_one(path, format)).collect()
}

fn import_one(path: &Path, format: ImportFormat) -> Imported {
    let mut raw = Vec::new();
    import::decompressed(BufReader::new(File::open(path).unwrap()), &import::Limits::default())
        .unwrap()
        .read_to_end(&mut raw)
        .unwrap();
    let head = raw.get(..HEAD_BYTES).unwrap_or(&raw);
    assert_eq!(import::detect(Path::new("x"), head), Some(format), "{}", path.display());
    let name = path.file_stem().unwrap().to_str().unwrap();
    let mut batches = Vec::new();
    let report = import::read(format, name, raw.as_slice(), &ImportOptions::default(), &mut batches).unwrap();
    Imported { raw, batches, report }
}

fn row(imported: &[Imported]) -> String {
    let sum = |of: fn(&ImportReport) -> u64| imported.iter().map(|file| of(&file.report)).sum::<u64>();
    let unknown: BTreeMap<_, _> =
        imported.iter().flat_map(|file| file.report.unknown_records.clone()).collect();
    assert_eq!(unknown, BTreeMap::new());
    assert_eq!(sum(|report| (report.kept_raw.len() + report.skipped.len()) as u64), 0);
    format!(
        "{} sessions, {} records, {} (+{}) calls, {} failed, {} without result, {} / {} todos",
        sum(|report| report.sessions),
        sum(|report| report.records),
        sum(|report| report.calls_main),
        sum(|report| report.calls_subagent),
        sum(|report| report.failed),
        sum(|report| report.without_result),
        sum(|report| report.todo_snapshots),
        sum(|report| report.todo_deltas),
    )
}

fn entries(file: &Imported) -> impl Iterator<Item = &Entry> {
    file.batches.iter().flat_map(|batch| &batch.entries)
}

/// The contents of the facts, by kind.
fn facts(imported: &[Imported]) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in imported.iter().flat_map(entries) {
        let kind = match &entry.fact {
            Fact::TurnStarted(fact::TurnStarted { kind: TurnKind::Step, .. }) => "steps",
            Fact::TurnStarted(fact::TurnStarted { kind: TurnKind::Prompt, .. }) => "prompts",
            Fact::ToolStarted(_) => "started",
            Fact::ToolFinished(fact::ToolFinished { todo_change: Some(_), .. }) => {
                "finished with a todo change"
            }
            Fact::ToolFinished(_) => "finished",
            Fact::MessageRecorded(_) => "messages",
            Fact::MessageContinued(_) => "continued",
            Fact::MessageFinished(_) => "message ends",
            Fact::ContextReplaced(_) => "replaced",
            Fact::SessionChanged(_) => "changed",
            Fact::HostRecorded(_) => "records",
            Fact::Rewound(_) => "rewound",
            _ => "other",
        };
        *counts.entry(kind).or_default() += 1;
    }
    let mut out = String::new();
    for (kind, count) in counts {
        writeln!(out, "{count} {kind}").unwrap();
    }
    out
}

fn check(name: &str, format: ImportFormat, expected: &str, kinds: expect_test::Expect) {
    let folder = folder(name);
    let imported = import_all(&folder, format);
    assert_eq!(row(&imported), expected);
    kinds.assert_eq(&facts(&imported));
    for file in &imported {
        assert_lossless(format, file);
        assert_origins_are_unique(file);
    }
}

/// The wires of the entries, in their order, are the records of the file.
fn assert_lossless(format: ImportFormat, file: &Imported) {
    let text = file.raw.trim_ascii();
    if format == ImportFormat::Opencode {
        let by_origin: BTreeMap<_, _> =
            entries(file).filter_map(|entry| Some((entry.origin.clone()?, &entry.wire))).collect();
        let document = entries(file).last().unwrap();
        let mut out = Vec::new();
        for piece in &document.wire {
            match piece {
                WirePiece::Record(origin) => out.extend(wire::resolve(by_origin[origin]).unwrap()),
                other => out.extend(wire::resolve(std::slice::from_ref(other)).unwrap()),
            }
        }
        assert!(out == text, "the document differs");
        return;
    }
    let wires =
        entries(file).filter(|entry| !entry.wire.is_empty()).map(|entry| wire::resolve(&entry.wire).unwrap());
    let wires: Vec<_> = wires.collect();
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    assert_eq!(wires.len(), lines.len());
    for (wire, line) in wires.iter().zip(lines) {
        assert_eq!(String::from_utf8_lossy(wire), String::from_utf8_lossy(line));
    }
}

fn assert_origins_are_unique(file: &Imported) {
    let mut seen = BTreeSet::new();
    for batch in &file.batches {
        for entry in &batch.entries {
            let key = (batch.stream.name.clone(), entry.origin.clone().unwrap());
            assert!(seen.insert(key.clone()), "{key:?} comes twice");
        }
    }
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn claude_code_large() {
    check(
        "claude-code-large/context-evaluator",
        ImportFormat::ClaudeCode,
        "27 sessions, 3544 records, 840 (+131) calls, 74 failed, 3 without result, 0 / 108 todos",
        expect_test::expect![[r#"
            2 changed
            73 continued
            860 finished
            108 finished with a todo change
            832 message ends
            544 messages
            59 prompts
            1257 records
            971 started
            832 steps
        "#]],
    );
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn claude_code_context_evaluator() {
    check(
        "claude-code/context-evaluator",
        ImportFormat::ClaudeCode,
        "17 sessions, 1614 records, 369 (+12) calls, 24 failed, 0 without result, 0 / 33 todos",
        expect_test::expect![[r#"
            2 changed
            27 continued
            348 finished
            33 finished with a todo change
            345 message ends
            247 messages
            36 prompts
            603 records
            381 started
            345 steps
        "#]],
    );
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn claude_code_entire_cli() {
    check(
        "claude-code/entire-cli",
        ImportFormat::ClaudeCode,
        "6 sessions, 882 records, 252 (+0) calls, 9 failed, 0 without result, 34 / 0 todos",
        expect_test::expect![[r#"
            78 continued
            252 finished
            204 message ends
            221 messages
            15 prompts
            78 records
            1 replaced
            252 started
            204 steps
        "#]],
    );
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn opencode_gatomia() {
    check(
        "opencode/gatomia-vscode",
        ImportFormat::Opencode,
        "11 sessions, 1253 records, 266 (+0) calls, 1 failed, 0 without result, 0 / 0 todos",
        expect_test::expect![[r#"
            277 continued
            266 finished
            215 message ends
            228 messages
            13 prompts
            998 records
            266 started
            215 steps
        "#]],
    );
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn opencode_session_bridge() {
    check(
        "opencode/session-bridge",
        ImportFormat::Opencode,
        "6 sessions, 723 records, 144 (+0) calls, 1 failed, 0 without result, 14 / 0 todos",
        expect_test::expect![[r#"
            203 continued
            144 finished
            112 message ends
            124 messages
            10 prompts
            585 records
            1 replaced
            144 started
            111 steps
        "#]],
    );
}
