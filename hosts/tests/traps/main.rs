//! Traps in hosts' files for a reader that trusts them: tables of small files and the facts they must become.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests: a failed step is a failed test"
)]

mod claude_answers;
mod claude_code;
mod codex;
mod damage;
mod database;
mod opencode;

use std::fmt::Write as _;

use acpdb_engine::entry::{Entry, Fact, PartEntry, PointRef, WirePiece, fact};
use acpdb_engine::event::{Report, TurnKind};
use acpdb_hosts::import::{self, ImportBatch, ImportFormat, ImportOptions, ImportReport, wire};

/// The origins of what a sink is told, and the messages that a session has.
#[derive(Default, Debug)]
struct Told(Vec<String>);

impl import::Sink for Told {
    fn batch(&mut self, batch: ImportBatch) -> Result<(), import::SinkStop> {
        self.0.extend(batch.entries.into_iter().filter_map(|entry| entry.origin));
        Ok(())
    }

    fn present(
        &mut self,
        _: &std::sync::Arc<acpdb_engine::StreamInfo>,
        messages: Vec<import::PresentMessage>,
    ) {
        let keys: Vec<String> = messages.into_iter().map(|message| message.key).collect();
        self.0.push(format!("present: {}", keys.join(" ")));
    }
}

fn read(format: ImportFormat, input: &[u8]) -> (Vec<ImportBatch>, ImportReport) {
    let mut batches = Vec::new();
    let report = import::read(format, "file", input, &ImportOptions::default(), &mut batches).unwrap();
    (batches, report)
}

/// Facts, one a line; the stream's name where it changes.
fn describe(batches: &[ImportBatch]) -> String {
    let mut out = String::new();
    let mut stream = "";
    for batch in batches {
        if batch.stream.name != stream {
            stream = &batch.stream.name;
            let parent = match &batch.stream.parent {
                Some((_, call)) => format!(" (started by {})", call.as_deref().unwrap_or("?")),
                None => String::new(),
            };
            writeln!(out, "[{stream}]{parent}").unwrap();
        }
        for entry in &batch.entries {
            writeln!(out, "{}", describe_entry(entry)).unwrap();
        }
    }
    out
}

fn describe_entry(entry: &Entry) -> String {
    let what = match &entry.fact {
        Fact::TurnStarted(fact::TurnStarted { kind: TurnKind::Step, key, .. }) => format!("step {key}"),
        Fact::TurnStarted(fact::TurnStarted { kind: TurnKind::Prompt, key, .. }) => format!("prompt {key}"),
        Fact::MessageRecorded(fact::MessageRecorded {
            key, role, parts, parent, hidden_from_user, ..
        }) => {
            let parent = parent.as_ref().map(|parent| format!(" after {parent}")).unwrap_or_default();
            let hidden = if *hidden_from_user { " (hidden from the user)" } else { "" };
            format!("{role:?} {key}{parent}{hidden}: {}", describe_parts(parts))
        }
        Fact::MessageContinued(fact::MessageContinued { key, parts }) => {
            format!("more of {key}: {}", describe_parts(parts))
        }
        Fact::MessageFinished(fact::MessageFinished {
            key,
            report: Report { model, stop_reason, usage, .. },
        }) => {
            format!("end of {key} {model:?} {stop_reason:?} in {:?} out {:?}", usage.input, usage.output)
        }
        Fact::ToolStarted(fact::ToolStarted { call, message, tool, params, .. }) => {
            format!("call {call} of {message:?}: {tool} {}", String::from_utf8_lossy(params))
        }
        Fact::ToolFinished(fact::ToolFinished { call, outcome, output, details, todo_change }) => {
            let mut out = format!("{outcome:?} {call}: {}", describe_parts(output));
            if let Some(details) = details {
                write!(out, " details {}", String::from_utf8_lossy(details)).unwrap();
            }
            if let Some(change) = todo_change {
                let entry = change.entry.as_ref().map(|entry| String::from_utf8_lossy(entry).into_owned());
                write!(out, " todo {} {:?} {}", change.id, change.status, entry.unwrap_or_default()).unwrap();
            }
            out
        }
        Fact::HostRecorded(fact::HostRecorded { record, about, .. }) => {
            format!("record {record} about {about:?}")
        }
        Fact::ContextReplaced(fact::ContextReplaced { cause, tokens_before, .. }) => {
            format!("replaced by {cause:?} {tokens_before:?}")
        }
        Fact::Rewound(fact::Rewound { to: PointRef::After(origin) }) => format!("rewound to after {origin}"),
        Fact::Rewound(fact::Rewound { to }) => format!("rewound to {to:?}"),
        Fact::HostCleared(fact::HostCleared { items, calls, .. }) => format!("cleared {items:?} {calls:?}"),
        Fact::SessionChanged(fact::SessionChanged { title, cwd, .. }) => {
            format!("changed title {title:?} folder {cwd:?}")
        }
        other => format!("{other:?}"),
    };
    let wired = if entry.wire.is_empty() { "" } else { " *" };
    format!("  {what} <{}>{wired}", entry.origin.as_deref().unwrap_or_default())
}

fn describe_parts(parts: &[PartEntry]) -> String {
    let shown = parts.iter().map(|part| {
        let signature =
            part.signature.as_ref().map(|bytes| format!(" signed {}", String::from_utf8_lossy(bytes)));
        let media = part.media_type.as_ref().map(|media| format!(" {media}"));
        let text = String::from_utf8_lossy(&part.bytes);
        format!("{:?} {text:?}{}{}", part.kind, media.unwrap_or_default(), signature.unwrap_or_default())
    });
    shown.collect::<Vec<_>>().join(" + ")
}

/// All wires, in order, as text.
fn wires(batches: &[ImportBatch]) -> Vec<String> {
    let entries = batches.iter().flat_map(|batch| &batch.entries);
    let records =
        entries.filter(|entry| !entry.wire.is_empty()).filter_map(|entry| wire::resolve(&entry.wire));
    records.map(|record| String::from_utf8_lossy(&record).into_owned()).collect()
}

/// The documents that the wires of document entries stand for.
fn documents(batches: &[ImportBatch]) -> Vec<String> {
    let entries: Vec<&Entry> = batches.iter().flat_map(|batch| &batch.entries).collect();
    let documents = entries
        .iter()
        .filter(|entry| matches!(&entry.fact, Fact::HostRecorded(fact::HostRecorded { record, .. }) if record == "document"));
    let resolved = documents.map(|document| {
        let mut out = Vec::new();
        for piece in &document.wire {
            match piece {
                WirePiece::Record(origin) => {
                    let newest =
                        entries.iter().rev().find(|entry| entry.origin.as_ref() == Some(origin)).unwrap();
                    out.extend(wire::resolve(&newest.wire).unwrap());
                }
                piece => out.extend(wire::resolve(std::slice::from_ref(piece)).unwrap()),
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    });
    resolved.collect()
}

fn check(format: ImportFormat, input: &str, expected: expect_test::Expect) {
    let (batches, report) = read(format, input.as_bytes());
    let mut out = describe(&batches);
    for note in report.kept_raw.iter().chain(&report.skipped).chain(&report.cut) {
        writeln!(out, "! {}:{} {}", note.line, note.offset, note.reason).unwrap();
    }
    if report.duplicates > 0 {
        writeln!(out, "! {} duplicates", report.duplicates).unwrap();
    }
    for (kind, count) in &report.unknown_records {
        writeln!(out, "! {count} unknown {kind}").unwrap();
    }
    expected.assert_eq(&out);
}
