//! Batches of an importer, gathered into commits of some MB.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use acpdb_engine::event::Scope;
use acpdb_engine::ids::StreamId;
use acpdb_engine::{Atomicity, Batch, Error, Store, StreamInfo};
use acpdb_hosts::import::{self, ImportError, ImportReport, Note, SinkStop};

use super::{FileReport, ReadError};

/// Bytes of facts that are gathered before they are recorded.
pub(super) const GATHER_BYTES: usize = 2 << 20;
/// The same in small commits.
const SMALL_BYTES: usize = GATHER_BYTES / 8;
/// Facts that are gathered before they are recorded.
const GATHER_COUNT: usize = 16 << 10;

/// Records batches, many in one commit.
pub(crate) struct Gather<'s> {
    store: &'s Store,
    /// The subject of the sessions.
    subject: Option<String>,
    batches: Vec<(Arc<acpdb_engine::entry::StreamInfo>, Batch)>,
    /// Bytes of facts that are gathered before they are recorded.
    bytes_max: usize,
    bytes: usize,
    count: usize,
    /// Events that are new.
    pub(crate) events: u64,
    /// Facts that were known.
    known: u64,
    /// Streams of an encrypted store that were looked at, and whether each was shredded.
    streams: BTreeMap<StreamId, bool>,
    /// Facts that no commit can hold, and why the first cannot be held.
    too_large_count: u64,
    too_large: Option<Error>,
    /// Why nothing more can be recorded.
    pub(crate) error: Option<Error>,
}

impl<'s> Gather<'s> {
    pub(crate) fn new(store: &'s Store, subject: Option<String>) -> Self {
        Self {
            store,
            subject,
            batches: Vec::new(),
            bytes_max: GATHER_BYTES,
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

    /// Records more often, for one who has time and is to take little memory.
    pub(crate) fn in_small_commits(self) -> Self {
        Self { bytes_max: SMALL_BYTES, ..self }
    }

    /// Records what is left, and says what became of the file at `path`.
    pub(crate) fn report(
        &mut self,
        path: &Path,
        bytes: u64,
        result: Result<ImportReport, ImportError>,
    ) -> Result<FileReport, ReadError> {
        if self.error.is_none() {
            self.flush();
        }
        if let Some(error) = self.error.take() {
            return Err(ReadError::Store(error));
        }
        // What came before is recorded, as whole records: importing again, with more allowed, adds the rest.
        let mut report = result.map_err(|error| ReadError::Import { error, event_count: self.events })?;
        if let Some(error) = self.too_large.take() {
            let others = self.too_large_count.saturating_sub(1); // it is one of them
            let others = if others > 0 { format!(", as are {others} others") } else { String::new() };
            let reason = format!("a fact is left out{others}: {error}");
            report.skipped.push(Note { line: 0, offset: 0, reason });
        }
        Ok(FileReport {
            path: path.to_owned(),
            report,
            event_count: self.events,
            known_count: self.known,
            shredded_count: self.streams.values().filter(|is_shredded| **is_shredded).count() as u64,
            bytes,
            is_unchanged: false,
        })
    }

    /// Whether the session of a batch was shredded here: its host may still have it, and it stays out.
    fn is_shredded(&mut self, info: &StreamInfo) -> bool {
        if !self.store.is_encrypted() {
            return false;
        }
        let stream = self.store.recorded_info(info).id();
        let store = self.store;
        // What a subagent was told is of the session that started it.
        let parent = info.parent.as_ref().map(|(parent, _)| *parent);
        // What cannot be told is an error as soon as something is recorded.
        let is_shredded = |stream| store.is_shredded(stream).unwrap_or(false);
        *self.streams.entry(stream).or_insert_with(|| is_shredded(stream) || parent.is_some_and(is_shredded))
    }

    /// Records what is gathered.
    pub(crate) fn flush(&mut self) {
        let batches: Vec<Batch> = self.batches.drain(..).map(|(_, batch)| batch).collect();
        self.bytes = 0;
        self.count = 0;
        if batches.is_empty() {
            return;
        }
        self.record(batches);
    }

    /// Records batches. A fact that no commit can hold is left out, and those around it are recorded: it ends neither its file nor
    /// the import.
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
}

/// Takes the second half of some batches, or of the facts of one; of one fact there is none.
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
                if stream.scope == Scope::Session {
                    stream.subject.clone_from(&self.subject);
                }
                self.batches.push((batch.stream, Batch { stream, entries: batch.entries }));
            }
        }
        if self.bytes >= self.bytes_max || self.count >= GATHER_COUNT {
            self.flush();
        }
        if self.error.is_some() { Err(SinkStop) } else { Ok(()) }
    }
}

/// About how much memory an entry holds.
pub(super) fn weight(entry: &acpdb_engine::entry::Entry) -> usize {
    use acpdb_engine::entry::WirePiece;
    let wire = entry.wire.iter().map(|piece| match piece {
        WirePiece::Literal(bytes) => bytes.len(),
        WirePiece::Raw(bytes) | WirePiece::Escaped(bytes) => bytes.len(),
        WirePiece::Record(origin) => origin.len(),
    });
    200 + wire.sum::<usize>()
}
