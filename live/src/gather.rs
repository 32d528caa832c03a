//! Batches of an importer, gathered into commits of some MB.
//!
//! A session that was shredded stays out. Its host may still have it, and tells it again each time. That is no fault; such sessions are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::event::Scope;
use acpdb_engine::ids::StreamId;
use acpdb_engine::{Atomicity, Batch, Error, Store, StreamInfo};
use acpdb_hosts::import::{self, SinkStop};

/// Bytes of facts that are gathered before they are recorded.
pub const GATHER_BYTES: usize = 2 << 20;
/// Facts that are gathered before they are recorded.
const GATHER_COUNT: usize = 16 << 10;
/// Small commits take the limits above, divided by this.
const SMALL_SHARE: usize = 8;

/// Records batches, many in one commit.
#[derive(Debug)]
pub struct Gather<'s> {
    store: &'s Store,
    /// The subject of the sessions.
    subject: Option<String>,
    batches: Vec<(Arc<StreamInfo>, Batch)>,
    /// Most bytes of facts, and most facts, that are gathered before they are recorded.
    bytes_max: usize,
    count_max: usize,
    bytes: usize,
    count: usize,
    /// Events that are new.
    pub events: u64,
    /// Facts that were known.
    pub known: u64,
    /// Streams of an encrypted store that were looked at, and whether each was shredded.
    streams: BTreeMap<StreamId, bool>,
    /// Number of facts that no commit can hold, and the error of the first.
    too_large_count: u64,
    too_large: Option<Error>,
    /// Why nothing more can be recorded.
    pub error: Option<Error>,
}

impl<'s> Gather<'s> {
    /// Gathers nothing yet. `subject`: the subject of the sessions, if one was named.
    pub fn new(store: &'s Store, subject: Option<String>) -> Self {
        Self {
            store,
            subject,
            batches: Vec::new(),
            bytes_max: GATHER_BYTES,
            count_max: GATHER_COUNT,
            bytes: 0,
            count: 0,
            events: 0,
            known: 0,
            streams: BTreeMap::new(),
            too_large_count: 0,
            too_large: None,
            error: None,
        }
    }

    /// Records more often: an interrupted import has come further then, and less memory is taken.
    #[must_use]
    pub fn in_small_commits(self) -> Self {
        Self { bytes_max: GATHER_BYTES / SMALL_SHARE, count_max: GATHER_COUNT / SMALL_SHARE, ..self }
    }

    /// Number of sessions that were shredded here, and are not recorded again.
    pub fn shredded_count(&self) -> u64 {
        self.streams.values().filter(|is_shredded| **is_shredded).count() as u64
    }

    /// Whether the session of a batch was shredded here: its host may still have it, and it stays out.
    fn is_shredded(&mut self, info: &StreamInfo) -> bool {
        if !self.store.is_encrypted() {
            return false;
        }
        let stream = self.store.recorded_info(info).id();
        let store = self.store;
        *self.streams.entry(stream).or_insert_with(|| is_shredded(store, info))
    }

    /// Records the gathered batches.
    pub fn flush(&mut self) {
        let batches: Vec<Batch> = self.batches.drain(..).map(|(_, batch)| batch).collect();
        self.bytes = 0;
        self.count = 0;
        if batches.is_empty() {
            return;
        }
        self.record(batches);
    }

    /// Records batches. A fact that no commit can hold is left out, and the facts around it are recorded: it ends neither its
    /// file nor the import.
    fn record(&mut self, mut batches: Vec<Batch>) {
        match self.store.commit(&batches, Atomicity::Split) {
            Ok(receipt) => {
                self.events += receipt.event_count;
                self.known += receipt.known_count;
            }
            Err(error @ Error::TooLarge { .. }) => {
                let later = second_half(&mut batches);
                if later.is_empty() {
                    self.too_large_count += 1;
                    self.too_large.get_or_insert(error);
                    return;
                }
                self.record(batches);
                if self.error.is_none() {
                    self.record(later);
                }
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Why facts were left out, if any were: no commit can hold them. Only the first call tells it.
    pub fn left_out(&mut self) -> Option<String> {
        let error = self.too_large.take()?;
        let others = self.too_large_count.saturating_sub(1); // it is one of them
        let others = if others > 0 { format!(", as are {others} others") } else { String::new() };
        Some(format!("a fact is left out{others}: {error}"))
    }
}

/// Takes the second half of some batches, or of the facts of one batch; one fact has no second half.
fn second_half(batches: &mut Vec<Batch>) -> Vec<Batch> {
    match batches.as_mut_slice() {
        [batch] => {
            let later = batch.entries.split_off(batch.entries.len().div_ceil(2));
            if later.is_empty() {
                return Vec::new();
            }
            vec![Batch { stream: batch.stream.clone(), entries: later }]
        }
        _ => batches.split_off(batches.len().div_ceil(2)),
    }
}

/// Whether a session was shredded here, or the session that started it: the texts of a subagent belong to that session.
pub fn is_shredded(store: &Store, info: &StreamInfo) -> bool {
    let parent = info.parent.as_ref().map(|(parent, _)| *parent);
    // If this cannot be read, recording fails with the error.
    let is_shredded = |stream| store.is_shredded(stream).unwrap_or(false);
    store.is_encrypted() && (is_shredded(store.recorded_info(info).id()) || parent.is_some_and(is_shredded))
}

impl import::Sink for Gather<'_> {
    fn batch(&mut self, batch: import::Batch) -> Result<(), SinkStop> {
        let is_of_the_last =
            self.batches.last().is_some_and(|(stream, _)| Arc::ptr_eq(stream, &batch.stream));
        if !is_of_the_last && self.is_shredded(&batch.stream) {
            return Ok(());
        }
        self.count += batch.entries.len();
        self.bytes += batch.entries.iter().map(weight).sum::<usize>();
        match self.batches.last_mut() {
            Some((stream, last)) if Arc::ptr_eq(stream, &batch.stream) => last.entries.extend(batch.entries),
            _ => {
                let mut stream = (*batch.stream).clone();
                if stream.scope == Scope::Session && self.subject.is_some() {
                    stream.subject.clone_from(&self.subject);
                }
                self.batches.push((batch.stream, Batch { stream, entries: batch.entries }));
            }
        }
        if self.bytes >= self.bytes_max || self.count >= self.count_max {
            self.flush();
        }
        if self.error.is_some() { Err(SinkStop) } else { Ok(()) }
    }
}

/// About how much memory an entry holds.
pub fn weight(entry: &acpdb_engine::entry::Entry) -> usize {
    use acpdb_engine::entry::WirePiece;
    let wire = entry.wire.iter().map(|piece| match piece {
        WirePiece::Literal(bytes) => bytes.len(),
        WirePiece::Raw(bytes) | WirePiece::Escaped(bytes) => bytes.len(),
        WirePiece::Record(origin) => origin.len(),
    });
    200 + wire.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use acpdb_engine::Store;
    use acpdb_engine::entry::StreamInfo;
    use acpdb_engine::keys::RawKeyRing;

    use crate::hook::Hook;
    use crate::host::{Host, Mode};
    use crate::{dialect, recording};

    /// Hooks of a session that was shredded reported an error for each of its events, and `doctor` a problem.
    #[test]
    fn hooks_of_a_shredded_session_have_nothing_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let ring = std::sync::Arc::new(RawKeyRing::new("a key", &[7; 32]));
        let store = Store::builder(folder.path().join("store")).any_file_system().keys(ring).open().unwrap();
        let path = folder.path().join("s1.jsonl");
        let line = r#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Look."}}"#;
        std::fs::write(&path, format!("{line}\n")).unwrap();
        for (host, said) in [
            (
                Host::ClaudeCode,
                r#"{"session_id":"s1","hook_event_name":"UserPromptSubmit","prompt":"Look."}"#,
            ),
            (
                Host::Cursor,
                r#"{"conversation_id":"s1","hook_event_name":"beforeSubmitPrompt","prompt":"Look.","generation_id":"g1"}"#,
            ),
        ] {
            let told = dialect::parse(host, said, None).unwrap();
            let hook = Hook { host, mode: Mode::Suggest, told: &told, transcript: Some(&path) };
            assert!(hook.run(&store).unwrap().event_count > 0, "{host}");
            let stream = StreamInfo::session(host.name(), "s1").id();
            let _ = store.shred(stream, "the test", "a wish").unwrap();
            let done = hook.run(&store).unwrap();
            assert_eq!((done.event_count, done.left_out), (0, None), "{host}");
            let read = recording::import(&store, &path, acpdb_hosts::import::Format::ClaudeCode).unwrap();
            assert_eq!(read, recording::Recorded::default());
        }
    }
}
