//! Secrets taken out of facts before anything of them is digested.
//!
//! ```text
//! Entry -> Redactor: every text, parameter, output, detail and record -> Entry without secrets -> draft -> hash -> log
//!                        '-> how many by which rule: a HostRecorded `redaction` in the same commit
//! ```
//!
//! What is taken out never reaches a digest, a signature, a label, the log or the index. What is said about it is its
//! count by rule. Opaque fields of providers (signatures, encrypted reasoning) are left alone: they would not be accepted
//! with a byte changed. What a rule does not know stays: `scan` finds it later, and erasing removes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::entry::{Bytes, Entry, Fact, PartEntry, WirePiece};

use super::writer::Batch;

/// Finds secrets in texts. Pure: equal texts come out equal, or repeated imports would record them again.
pub trait Redactor: Send + Sync {
    /// The text without its secrets, and how many each rule took out; `None` if there are none.
    fn redact(&self, text: &[u8]) -> Option<(Vec<u8>, BTreeMap<String, u64>)>;
}

/// Copies batches without their secrets; a last batch for each stream says what was taken out. `None`: nothing was.
pub(super) fn redacted(redactor: &dyn Redactor, batches: &[Batch]) -> Option<Vec<Batch>> {
    let mut out = Vec::with_capacity(batches.len());
    let mut notes = Vec::new();
    for batch in batches {
        let mut copy = batch.clone();
        let mut told = Vec::new();
        for entry in &mut copy.entries {
            let mut pass = Pass { redactor, counts: BTreeMap::new() };
            pass.entry(entry);
            if pass.counts.is_empty() {
                continue;
            }
            let counts = serde_json::to_vec(&pass.counts).unwrap_or_default();
            let fact = Fact::HostRecorded {
                record: "redaction".to_owned(),
                about: entry.origin.clone(),
                raw: Some(counts.into()),
            };
            let mut note = Entry::from(fact);
            note.origin = entry.origin.as_ref().map(|origin| format!("redaction:{origin}"));
            told.push(note);
        }
        if !told.is_empty() {
            notes.push(Batch { stream: batch.stream.clone(), entries: told });
        }
        out.push(copy);
    }
    let any = !notes.is_empty();
    out.append(&mut notes);
    any.then_some(out)
}

struct Pass<'r> {
    redactor: &'r dyn Redactor,
    counts: BTreeMap<String, u64>,
}

impl Pass<'_> {
    fn clean(&mut self, bytes: &[u8], counted: bool) -> Option<Vec<u8>> {
        let (clean, counts) = self.redactor.redact(bytes)?;
        if counted {
            for (rule, count) in counts {
                *self.counts.entry(rule).or_default() += count;
            }
        }
        Some(clean)
    }

    fn bytes(&mut self, bytes: &mut Bytes) {
        if let Some(clean) = self.clean(bytes, true) {
            *bytes = clean.into();
        }
    }

    /// JSON stays JSON: where a rule cut into its signs, nothing of it is kept but that.
    fn json(&mut self, bytes: &mut Bytes) {
        let Some(clean) = self.clean(bytes, true) else { return };
        let is_json = |bytes: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
        *bytes = if is_json(&clean) || !is_json(bytes) {
            clean.into()
        } else {
            br#"{"redacted":true}"#.as_slice().into()
        };
    }

    fn text(&mut self, text: &mut String) {
        if let Some(clean) = self.clean(text.as_bytes(), true) {
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
    }

    fn parts(&mut self, parts: &mut [PartEntry]) {
        for part in parts {
            self.bytes(&mut part.bytes);
        }
    }

    fn entry(&mut self, entry: &mut Entry) {
        match &mut entry.fact {
            Fact::MessageRecorded { parts, .. } | Fact::MessageContinued { parts, .. } => self.parts(parts),
            Fact::ToolStarted { params, .. } => self.json(params),
            Fact::ToolFinished { output, details, todo_change, .. } => {
                self.parts(output);
                if let Some(details) = details {
                    self.json(details);
                }
                if let Some(entry) = todo_change.as_mut().and_then(|change| change.entry.as_mut()) {
                    self.json(entry);
                }
            }
            Fact::PromptSet { system, tools, params, .. } => {
                if let Some(system) = system {
                    self.bytes(system);
                }
                for json in tools.iter_mut().chain(params) {
                    self.json(json);
                }
            }
            Fact::HostCleared { text, .. } => text.iter_mut().for_each(|text| self.bytes(text)),
            Fact::HostRecorded { raw, .. } => raw.iter_mut().for_each(|raw| self.bytes(raw)),
            Fact::TodosReplaced { list } => self.json(list),
            Fact::TodoChanged { change } => change.entry.iter_mut().for_each(|entry| self.json(entry)),
            Fact::Injected { text, .. } => self.bytes(text),
            Fact::SessionChanged { title, .. } => title.iter_mut().for_each(|title| self.text(title)),
            Fact::SessionClosed { reason } => reason.iter_mut().for_each(|reason| self.text(reason)),
            Fact::Memory(memory) => {
                self.text(&mut memory.value);
                for text in memory.rationale.iter_mut().chain(&mut memory.alternatives) {
                    self.text(text);
                }
                if let Some(extra) = &mut memory.extra {
                    self.json(extra);
                }
            }
            Fact::MemorySuperseded { reason, .. } | Fact::MemoryRetracted { reason, .. } => {
                if let Some(reason) = reason {
                    self.text(reason);
                }
            }
            Fact::TurnStarted { .. }
            | Fact::ContextReplaced { .. }
            | Fact::Rewound { .. }
            | Fact::Forked { .. }
            | Fact::MessageFinished { .. }
            | Fact::MessageAbandoned { .. }
            | Fact::FileChanged { .. }
            | Fact::MemoryReinforced { .. } => {}
        }
        // The record repeats what was counted; only what stands nowhere else is counted here.
        let fact_had_some = !self.counts.is_empty();
        for piece in &mut entry.wire {
            match piece {
                WirePiece::Literal(bytes) => {
                    if let Some(clean) = self.clean(bytes, !fact_had_some) {
                        *bytes = clean;
                    }
                }
                WirePiece::Raw(bytes) | WirePiece::Escaped(bytes) => {
                    if let Some(clean) = self.clean(bytes, false) {
                        *bytes = Arc::from(clean);
                    }
                }
                WirePiece::Record(_) => {}
            }
        }
    }
}
