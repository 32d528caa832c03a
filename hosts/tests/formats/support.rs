//! Reads, shows and judges imports through the public surface alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use acpdb_engine::entry::{Entry, Fact, ItemRef, PartEntry, PointRef, WirePiece, fact};
use acpdb_engine::event::Report;
use acpdb_hosts::import::{ImportBatch, ImportFormat, ImportOptions, ImportReport, read, wire};
use expect_test::Expect;

pub(crate) fn import(format: ImportFormat, name: &str, input: &[u8]) -> (Vec<ImportBatch>, ImportReport) {
    let mut batches = Vec::new();
    let report = read(format, name, input, &ImportOptions::default(), &mut batches).unwrap();
    (batches, report)
}

/// Imports `input`, checks the laws, and compares the facts as lines.
pub(crate) fn check(format: ImportFormat, input: &str, want: Expect) {
    let (batches, report) = import(format, "file", input.as_bytes());
    judge(&batches, input);
    origins(&batches);
    let mut out = show(&batches);
    writeln!(
        out,
        "sessions {} records {} calls {} failed {} open {} todos {} unknown {:?} raw {} skipped {} cut {}",
        report.sessions + report.subagents,
        report.records,
        report.calls_main + report.calls_subagent,
        report.failed,
        report.without_result,
        report.todo_snapshots,
        report.unknown_records,
        report.kept_raw.len(),
        report.skipped.len(),
        report.cut.is_some(),
    )
    .unwrap();
    want.assert_eq(&out);
}

/// The facts as lines.
pub(crate) fn show(batches: &[ImportBatch]) -> String {
    let mut out = String::new();
    let mut stream = None;
    for batch in batches {
        if stream != Some(batch.stream.id()) {
            stream = Some(batch.stream.id());
            let info = &batch.stream;
            writeln!(out, "= {} {} cwd={}", info.host, short(&info.name), info.cwd.as_deref().unwrap_or("-"))
                .unwrap();
        }
        for entry in &batch.entries {
            out.push_str(&line(entry));
        }
    }
    out
}

/// Checks the laws of every import: the wires are the input; origins are there; only one wire a record.
pub(crate) fn judge(batches: &[ImportBatch], input: &str) {
    let again = {
        let found = batches.iter().map(|batch| (batch.stream.id(), &batch.entries));
        let mut records: BTreeMap<_, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
        let mut lines = Vec::new();
        let mut documents = Vec::new();
        for (stream, entries) in found {
            let wires: Vec<&Entry> = entries.iter().filter(|entry| !entry.wire.is_empty()).collect();
            assert_eq!(wires.len(), 1, "one wire a record: {entries:?}");
            for entry in wires {
                let origin = entry.origin.clone().expect("a record has an origin");
                if matches!(&entry.fact, Fact::HostRecorded(fact::HostRecorded { record, .. }) if record == "document")
                {
                    documents.push((stream, entry.wire.clone()));
                } else {
                    let bytes = wire::resolve(&entry.wire).expect("no references in a plain record");
                    records.entry(stream).or_default().insert(origin, bytes.clone());
                    lines.push(bytes);
                }
            }
            for entry in entries {
                assert!(entry.origin.is_some(), "every fact has an origin: {entry:?}");
            }
        }
        if documents.is_empty() {
            lines
        } else {
            documents
                .into_iter()
                .map(|(stream, pieces)| {
                    let mut out = Vec::new();
                    for piece in pieces {
                        match piece {
                            WirePiece::Record(origin) => {
                                out.extend_from_slice(&records[&stream][&origin]);
                            }
                            other => out.extend(wire::resolve(&[other]).unwrap()),
                        }
                    }
                    out
                })
                .collect()
        }
    };
    // Every record stands in the input, after the one before it, with nothing but separators between them.
    let mut rest = input;
    for record in again {
        let record = String::from_utf8(record).unwrap();
        let at = rest.find(&record).unwrap_or_else(|| panic!("not in the input, or out of order: {record}"));
        let between = rest[..at].trim_matches(|c: char| c.is_whitespace() || c == ',' || c == '[');
        assert_eq!(between, "", "left out");
        rest = &rest[at + record.len()..];
    }
}

/// The origins of a stream, which must be there once.
pub(crate) fn origins(batches: &[ImportBatch]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for batch in batches {
        for entry in &batch.entries {
            let key = (batch.stream.name.clone(), entry.origin.clone().unwrap());
            assert!(found.insert(key.clone()), "twice: {key:?}");
        }
    }
    found
}

fn line(entry: &Entry) -> String {
    let actor = entry.actor.map(|actor| format!(" by {actor:?}")).unwrap_or_default();
    let what = match &entry.fact {
        Fact::TurnStarted(fact::TurnStarted { kind, .. }) => format!("-- {kind:?}"),
        Fact::MessageRecorded(fact::MessageRecorded {
            role,
            parts,
            hidden_from_model,
            hidden_from_user,
            ..
        }) => {
            let mut text = format!("{role:?}").to_lowercase();
            for (hidden, who) in [(hidden_from_model, "model"), (hidden_from_user, "user")] {
                if *hidden {
                    write!(text, " (not for the {who})").unwrap();
                }
            }
            text + &shown(parts)
        }
        Fact::MessageContinued(fact::MessageContinued { parts, .. }) => format!("   ..{}", shown(parts)),
        Fact::MessageFinished(fact::MessageFinished { report: Report { model, usage, .. }, .. }) => {
            format!("finished {} {:?}/{:?}", model.as_deref().unwrap_or("-"), usage.input, usage.output)
        }
        Fact::ToolStarted(fact::ToolStarted { call, tool, params, .. }) => {
            format!("call {call} {tool} {}", short(&String::from_utf8_lossy(params)))
        }
        Fact::ToolFinished(fact::ToolFinished { call, outcome, output, details, .. }) => {
            let details = if details.is_some() { " +details" } else { "" };
            format!("end {call} {outcome:?}{}{details}", shown(output))
        }
        Fact::PromptSet(fact::PromptSet { system, model, .. }) => {
            format!("prompt set system={} model={model:?}", system.is_some())
        }
        Fact::SessionChanged(fact::SessionChanged { title, cwd, .. }) => {
            format!("session changed title={title:?} cwd={cwd:?}")
        }
        Fact::SessionClosed(fact::SessionClosed { reason }) => format!("session closed {reason:?}"),
        Fact::ContextReplaced(fact::ContextReplaced { cause, order, .. }) => {
            let order: Vec<String> = order.iter().map(item).collect();
            format!("context replaced {cause:?} [{}]", order.join(" "))
        }
        Fact::Rewound(fact::Rewound { to }) => match to {
            PointRef::Before(origin) => format!("rewound to before {}", short(origin)),
            other => format!("rewound {other:?}"),
        },
        Fact::HostRecorded(fact::HostRecorded { record, .. }) => format!("kept {record}"),
        Fact::Memory(memory) => format!(
            "memory {:?} {} {}/{}={} by={:?} for={:?} created={:?} extra={}",
            memory.kind,
            memory.id,
            memory.category,
            memory.key.as_deref().unwrap_or("-"),
            memory.value,
            memory.superseded_by,
            memory.replaces,
            memory.created.map(|at| at.0 / 1_000_000),
            memory.extra.as_deref().map(String::from_utf8_lossy).unwrap_or_default(),
        ),
        Fact::MemoryRetracted(fact::MemoryRetracted { id, .. }) => format!("retracted {id}"),
        Fact::MemoryReinforced(fact::MemoryReinforced { id, .. }) => format!("reinforced {id}"),
        other => format!("{other:?}"),
    };
    format!("{what}{actor}\n")
}

fn item(item: &ItemRef) -> String {
    match item {
        ItemRef::Shared(_, origin, part) => format!("shared {origin}.{part}"),
        ItemRef::Origin(origin, part) => format!("{}.{part}", short(origin)),
        ItemRef::Id(id) => format!("{id:?}"),
    }
}

fn shown(parts: &[PartEntry]) -> String {
    let mut out = String::new();
    for part in parts {
        let sealed = if part.signature.is_some() { " sealed" } else { "" };
        let kind = format!("{:?}", part.kind).to_lowercase();
        write!(out, " [{kind}{sealed} {}]", short(&String::from_utf8_lossy(&part.bytes))).unwrap();
    }
    out
}

/// At most 40 characters, on one line; digests cut to 4.
fn short(text: &str) -> String {
    let text = text.replace('\n', "\\n");
    let mut out = String::new();
    let mut hex = 0;
    for character in text.chars() {
        hex = if character.is_ascii_hexdigit() && !character.is_ascii_uppercase() { hex + 1 } else { 0 };
        out.push(character);
        if hex == 32 {
            out.truncate(out.len() - 28);
        }
        if out.chars().count() > 48 {
            return out + "..";
        }
    }
    out
}
