//! Import twice = import once; an import of the beginning, then of the whole = an import of the whole.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::rc::Rc;
use std::sync::Arc;

use acpdb_engine::command::draft::EventDraft;
use acpdb_engine::command::ingest_state::IngestState;
use acpdb_engine::command::record::{Draft, Recorder, opening};
use acpdb_engine::entry::StreamInfo;
use acpdb_engine::event::Recorded;
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::text::signature::Signer;
use acpdb_hosts::import::{ImportBatch, ImportFormat, ImportOptions, Retold, Sink, SinkStop, read};
use proptest::prelude::*;

use super::support::import;

/// The knowledge of a store: an ingest state for each stream. Counts the recorded events.
#[derive(Default)]
pub(crate) struct Store {
    ingest_states: BTreeMap<StreamId, IngestState>,
    pub(crate) event_count: u64,
    /// All that was recorded.
    pub(crate) events: Vec<(StreamId, EventDraft)>,
}

impl Store {
    pub(crate) fn take(&mut self, batches: &[ImportBatch]) {
        let signer = Signer::new([7; 32]);
        let secret = acpdb_engine::secret::Secret::default();
        let registry = acpdb_hosts::registry();
        for batch in batches {
            let id = batch.stream.id();
            if !self.ingest_states.entry(id).or_default().opened {
                self.record(id, opening(&batch.stream, [7; 32]));
            }
            for entry in &batch.entries {
                let drafts = {
                    let mut recorder =
                        Recorder::new(id, &self.ingest_states[&id], &*registry, &signer, &secret, None);
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
        self.events.push((id, draft.clone()));
        let recorded = Recorded { seq, recorded_at: Micros(0), event: draft.event };
        self.ingest_states.get_mut(&id).unwrap().observe(&recorded);
    }
}

fn events_of(format: ImportFormat, inputs: &[&str]) -> u64 {
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
    let once = events_of(ImportFormat::GeminiCli, &[&started]);
    // The thought, the result and the message's record; the text around the messages is the same.
    assert_eq!(events_of(ImportFormat::GeminiCli, &[&started, &ended]), once + 3);
    assert_eq!(events_of(ImportFormat::GeminiCli, &[&started, &ended, &ended]), once + 3);
}

proptest! {
    /// Lines that are only appended: Codex, Copilot, Pi and memory files.
    #[test]
    fn split_import_is_whole_import(which in 0..6_usize, cut in any::<prop::sample::Index>()) {
        let (format, input) = [
            (ImportFormat::Codex, super::codex::SESSION),
            (ImportFormat::Codex, super::codex::MARKS),
            (ImportFormat::CopilotCli, super::copilot::SESSION),
            (ImportFormat::Pi, super::pi::SESSION),
            (ImportFormat::MemoryDecisions, super::memory::DECISIONS),
            (ImportFormat::MemoryPreferences, super::memory::PREFERENCES),
        ][which];
        let lines: Vec<&str> = input.split_inclusive('\n').collect();
        let beginning = lines[..=cut.index(lines.len())].concat();
        prop_assert_eq!(events_of(format, &[&beginning, input]), events_of(format, &[input]));
    }
}

/// A store behind a file that is followed: it records at the end of each step.
#[derive(Default)]
struct Followed {
    store: Store,
    retold: Retold,
    stream: Option<Arc<StreamInfo>>,
}

impl Followed {
    fn commit(&mut self) {
        let Some(stream) = &self.stream else { return };
        for (entries, offset) in self.retold.take() {
            self.store.take(&[ImportBatch { stream: Arc::clone(stream), entries, offset }]);
        }
    }
}

struct Shared(Rc<RefCell<Followed>>);

impl Sink for Shared {
    fn batch(&mut self, batch: ImportBatch) -> Result<(), SinkStop> {
        let mut followed = self.0.borrow_mut();
        followed.retold.tell(batch.entries, batch.offset);
        followed.stream = Some(batch.stream);
        Ok(())
    }
}

/// A file that has grown by another step whenever its end is met.
struct Growing<'a> {
    steps: std::collections::VecDeque<&'a [u8]>,
    now: &'a [u8],
    followed: Rc<RefCell<Followed>>,
}

impl Read for Growing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.now.is_empty() {
            self.followed.borrow_mut().commit();
            match self.steps.pop_front() {
                Some(step) => self.now = step,
                None => return Ok(0),
            }
        }
        self.now.read(buffer)
    }
}

/// A message in one of its versions, a rewind, or a list that replaces all.
fn any_gemini_line() -> impl Strategy<Value = String> {
    let message = (0..4_u8, any::<bool>(), 0..3_u8, 0..3_u8, any::<bool>());
    let message = message.prop_map(|(id, user, text, calls, done)| {
        if user {
            return format!(r#"{{"id":"u{id}","type":"user","content":[{{"text":"asked {text}"}}]}}"#);
        }
        let result = if done { r#","status":"success","result":[]"# } else { r#","status":"executing""# };
        let calls: Vec<String> = (0..calls)
            .map(|call| format!(r#"{{"id":"c{call}","name":"read_file","args":{{"path":"f{call}"}}{result}}}"#))
            .collect();
        format!(
            r#"{{"id":"m{id}","type":"gemini","content":"said {text}","model":"g","tokens":{{"input":{text}}},"toolCalls":[{}]}}"#,
            calls.join(",")
        )
    });
    let rewind = (0..4_u8).prop_map(|id| format!(r#"{{"$rewindTo":"u{id}"}}"#));
    let set = proptest::collection::vec((0..4_u8, 0..3_u8), 0..3).prop_map(|messages| {
        let message = |(id, text): (u8, u8)| {
            format!(r#"{{"id":"u{id}","type":"user","content":[{{"text":"asked {text}"}}]}}"#)
        };
        let messages: Vec<String> = messages.into_iter().map(message).collect();
        format!(r#"{{"$set":{{"messages":[{}],"summary":"a title"}}}}"#, messages.join(","))
    });
    prop_oneof![8 => message, 1 => rewind, 1 => set]
}

proptest! {
    /// Following a log that tells its messages anew equals importing it whole at each of these moments.
    #[test]
    fn following_in_steps_is_importing_whole_at_each_step(
        lines in proptest::collection::vec(any_gemini_line(), 1..24),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let header = r#"{"sessionId":"s1","projectHash":"abc","startTime":"2026-01-02T03:04:05Z","kind":"main"}"#;
        let lines: Vec<String> =
            std::iter::once(header.to_owned()).chain(lines).map(|line| line + "\n").collect();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(lines.len()) + 1).collect();
        ends.push(lines.len());
        ends.sort_unstable();
        ends.dedup();
        let mut whole = Store::default();
        let mut steps = Vec::new();
        let mut from = 0;
        // A file that says nothing counts no records.
        let mut records = 0;
        for end in ends {
            let (batches, report) = import(ImportFormat::GeminiCli, "file", lines[..end].concat().as_bytes());
            whole.take(&batches);
            records = report.records;
            steps.push(lines[from..end].concat());
            from = end;
        }
        let followed = Rc::new(RefCell::new(Followed::default()));
        let input = Growing {
            steps: steps.iter().map(String::as_bytes).collect(),
            now: &[],
            followed: Rc::clone(&followed),
        };
        let options = ImportOptions { grows: true, ..ImportOptions::default() };
        let input = std::io::BufReader::new(input);
        let report = read(ImportFormat::GeminiCli, "file", input, &options, &mut Shared(Rc::clone(&followed))).unwrap();
        prop_assert_eq!(report.records, records);
        let followed = followed.borrow();
        prop_assert_eq!(&followed.store.events, &whole.events);
    }
}
