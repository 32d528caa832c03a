//! Import twice = import once; an import of the beginning, then of the whole = an import of the whole.

use std::collections::BTreeMap;

use acpdb_engine::command::draft::EventDraft;
use acpdb_engine::command::ingest_state::IngestState;
use acpdb_engine::command::record::{Draft, Recorder, opening};
use acpdb_engine::event::Recorded;
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::text::signature::Signer;
use acpdb_hosts::import::{Batch, Format};
use proptest::prelude::*;

use super::support::import;

/// What a store would know: an ingest state for each stream. Counts what is recorded.
#[derive(Default)]
pub(crate) struct Store {
    ingest_states: BTreeMap<StreamId, IngestState>,
    pub(crate) event_count: u64,
}

impl Store {
    pub(crate) fn take(&mut self, batches: &[Batch]) {
        let signer = Signer::new([7; 32]);
        let withheld = acpdb_engine::secret::Withheld::default();
        let registry = acpdb_hosts::registry();
        for batch in batches {
            let id = batch.stream.id();
            if !self.ingest_states.entry(id).or_default().opened {
                self.record(id, opening(&batch.stream, [7; 32]));
            }
            for entry in &batch.entries {
                let drafts = {
                    let mut recorder =
                        Recorder::new(id, &self.ingest_states[&id], &*registry, &signer, &withheld, None);
                    match recorder.draft(&batch.stream, entry) {
                        Draft::Record(drafts) => drafts,
                        Draft::Known => continue,
                        Draft::RecordOthersFirst => panic!("one entry a commit"),
                    }
                };
                for draft in drafts {
                    self.record(id, draft);
                }
            }
        }
    }

    fn record(&mut self, id: StreamId, draft: EventDraft) {
        self.event_count += 1;
        let seq = Seq(self.event_count);
        let recorded = Recorded { seq, recorded_at: Micros(0), event: draft.event };
        self.ingest_states.get_mut(&id).unwrap().observe(&recorded);
    }
}

fn events_of(format: Format, inputs: &[&str]) -> u64 {
    let mut store = Store::default();
    for input in inputs {
        store.take(&import(format, "file", input.as_bytes()).0);
    }
    store.event_count
}

#[test]
fn a_second_import_adds_nothing() {
    for (format, input) in super::robust::INPUTS {
        assert_eq!(events_of(format, &[input, input]), events_of(format, &[input]), "{format}");
    }
}

#[test]
fn a_grown_document_adds_what_is_new() {
    let document =
        |messages: &str| format!(r#"{{"sessionId":"s","projectHash":"p","messages":[{messages}]}}"#);
    let started = r#"{"id":"m","type":"gemini","content":"a","toolCalls":[{"id":"t","name":"x","args":{},"status":"executing","result":null}]}"#;
    let ended = r#"{"id":"m","type":"gemini","content":"a","thoughts":[{"subject":"s","description":"d"}],"toolCalls":[{"id":"t","name":"x","args":{},"status":"success","result":[]}]}"#;
    let [started, ended] = [started, ended].map(document);
    let once = events_of(Format::GeminiCli, &[&started]);
    // The thought, the result and the message's record; the text around the messages is the same.
    assert_eq!(events_of(Format::GeminiCli, &[&started, &ended]), once + 3);
    assert_eq!(events_of(Format::GeminiCli, &[&started, &ended, &ended]), once + 3);
}

proptest! {
    /// Lines that are only appended: Codex, Copilot, Pi and memory files.
    #[test]
    fn split_import_is_whole_import(which in 0..6_usize, cut in any::<prop::sample::Index>()) {
        let (format, input) = [
            (Format::Codex, super::codex::SESSION),
            (Format::Codex, super::codex::MARKS),
            (Format::CopilotCli, super::copilot::SESSION),
            (Format::Pi, super::pi::SESSION),
            (Format::MemoryDecisions, super::memory::DECISIONS),
            (Format::MemoryPreferences, super::memory::PREFERENCES),
        ][which];
        let lines: Vec<&str> = input.split_inclusive('\n').collect();
        let beginning = lines[..=cut.index(lines.len())].concat();
        prop_assert_eq!(events_of(format, &[&beginning, input]), events_of(format, &[input]));
    }
}
