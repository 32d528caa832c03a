//! Batches of an importer, gathered into commits of some MB.

use std::sync::Arc;

use acpdb_engine::{Atomicity, Batch, Error, Store, StreamInfo};
use acpdb_hosts::import::{self, PresentMessage, SinkStop};

use crate::taken_back::{RetoldMessages, taken_back};

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
    /// Number of facts that no commit can hold, and the error of the first.
    too_large_count: u64,
    too_large: Option<Error>,
    /// Why nothing more can be recorded.
    pub error: Option<Error>,
    /// Messages that were taken back and are there again, and how often they are told now.
    again: RetoldMessages,
}

impl<'s> Gather<'s> {
    /// Gathers nothing yet.
    pub fn new(store: &'s Store) -> Self {
        Self {
            store,
            batches: Vec::new(),
            bytes_max: GATHER_BYTES,
            count_max: GATHER_COUNT,
            bytes: 0,
            count: 0,
            events: 0,
            known: 0,
            too_large_count: 0,
            too_large: None,
            error: None,
            again: RetoldMessages::default(),
        }
    }

    /// Records more often: an interrupted import has come further then, and less memory is taken.
    #[must_use]
    pub fn in_small_commits(self) -> Self {
        Self { bytes_max: GATHER_BYTES / SMALL_SHARE, count_max: GATHER_COUNT / SMALL_SHARE, ..self }
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

    /// Records the call that started a session, if that session is there. It may be among those that are gathered.
    fn started(&mut self, session: &StreamInfo) {
        let gathered = self.batches.iter().find(|(gathered, _)| gathered.name == session.name);
        match gathered.map(|(gathered, _)| gathered.parent.as_ref()) {
            Some(Some((_, Some(_)))) => return,
            Some(_) => self.flush(),
            None => {}
        }
        if self.error.is_some() {
            return;
        }
        match self.store.stream_name(session.id()) {
            Ok(Some(name)) if name.started_by.as_ref().is_some_and(|it| it.call.is_none()) => {
                self.record(vec![Batch { stream: session.clone(), entries: Vec::new() }]);
            }
            Ok(_) => {}
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

impl import::Sink for Gather<'_> {
    fn present(&mut self, stream: &Arc<StreamInfo>, messages: Vec<PresentMessage>) {
        self.flush();
        if self.error.is_some() {
            return;
        }
        match taken_back(self.store, stream, messages) {
            Ok((rewind, again)) => {
                self.again = again;
                if let Some(entry) = rewind {
                    self.record(vec![Batch { stream: (**stream).clone(), entries: vec![entry] }]);
                }
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn batch(&mut self, mut batch: import::ImportBatch) -> Result<(), SinkStop> {
        if batch.entries.is_empty() {
            self.started(&batch.stream);
            return if self.error.is_some() { Err(SinkStop) } else { Ok(()) };
        }
        self.again.rename(&batch.stream, &mut batch.entries);
        self.count += batch.entries.len();
        self.bytes += batch.entries.iter().map(weight).sum::<usize>();
        match self.batches.last_mut() {
            Some((stream, last)) if Arc::ptr_eq(stream, &batch.stream) => last.entries.extend(batch.entries),
            _ => {
                let stream = (*batch.stream).clone();
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
