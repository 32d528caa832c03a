//! Facts of a session wait until something of it is understood: junk in a log cannot be taken out again.
//!
//! ```text
//! {"role":"admin"}                       a message without content       held
//! {"type":"summary",..}                  a record beside the talk        held
//! {"role":"user","content":"hello"}      content that was read           all of it is handed out, and all that follows
//! end of the input                       nothing was understood          what was held is dropped
//! {}                                     later, too short to be a record of any host: counted, and kept until there are too many
//! ```

use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, PartEntry, StreamInfo, fact};
use acpdb_engine::event::{PartKind, Usage};

use super::{ImportBatch, ImportFormat, ImportReport};
use crate::lines::NOISE_BYTES;

/// Most bytes of records that are held: beyond, they are handed out as records that are kept. Their number has a limit of its own, `unread`.
const HELD_BYTES_MAX: usize = 128 << 20;

/// Facts of the present part of an input.
#[derive(Debug, Default)]
pub(super) struct HeldFacts {
    is_understood: bool,
    batches: Vec<ImportBatch>,
    count: usize,
    bytes: usize,
    /// Records that were handed out, are neither a message nor a call, and are short.
    short: u64,
    /// Sessions, subagents and records before this part.
    before: [u64; 3],
}

impl HeldFacts {
    /// Takes in the facts of a record; gives back those that may be handed out.
    pub(super) fn let_go(
        &mut self,
        stream: &Arc<StreamInfo>,
        entries: Vec<Entry>,
        offset: u64,
        format: ImportFormat,
    ) -> Vec<ImportBatch> {
        let is_memory = matches!(format, ImportFormat::MemoryDecisions | ImportFormat::MemoryPreferences);
        self.is_understood |= entries.iter().any(|entry| match &entry.fact {
            Fact::HostRecorded(_) => false,
            fact => is_memory || says(fact),
        });
        let bytes: usize = entries.iter().map(weight).sum();
        let is_said = entries.iter().any(|entry| is_memory || says(&entry.fact));
        if self.is_understood && !is_said && (1..NOISE_BYTES).contains(&bytes) {
            self.short += 1;
        }
        let batch = ImportBatch { stream: Arc::clone(stream), entries, offset };
        if self.is_understood && self.batches.is_empty() {
            return vec![batch];
        }
        self.count += batch.entries.len();
        self.bytes += bytes;
        self.batches.push(batch);
        self.is_understood |= self.bytes > HELD_BYTES_MAX;
        if self.is_understood { std::mem::take(&mut self.batches) } else { Vec::new() }
    }

    /// Facts that are held, since nothing was understood yet; then short records that are kept.
    pub(super) const fn count(&self) -> u64 {
        if self.is_understood { self.short } else { self.count as u64 }
    }

    /// Nothing is held any more in this part of the input.
    pub(super) const fn is_understood(&mut self) {
        self.is_understood = true;
    }

    /// Ends a part of the input. False: nothing of it was understood, and it is in no count.
    pub(super) fn part_ends(&mut self, report: &mut ImportReport) -> bool {
        let counts = [&mut report.sessions, &mut report.subagents, &mut report.records];
        if !self.is_understood {
            for (count, before) in counts.into_iter().zip(self.before) {
                *count = before;
            }
        }
        let before = [report.sessions, report.subagents, report.records];
        std::mem::replace(self, Self { before, short: self.short, ..Self::default() }).is_understood
    }
}

/// Whether something is said, called or paid in a fact.
pub(super) fn says(fact: &Fact) -> bool {
    match fact {
        Fact::MessageRecorded(fact::MessageRecorded { parts, .. })
        | Fact::MessageContinued(fact::MessageContinued { parts, .. }) => parts.iter().any(is_read),
        Fact::ToolStarted(fact::ToolStarted { tool, .. }) => !tool.is_empty(),
        Fact::ToolFinished(fact::ToolFinished { output, .. }) => !output.is_empty(),
        Fact::MessageFinished(fact::MessageFinished { report, .. }) => report.usage != Usage::default(),
        _ => false,
    }
}

/// Whether a part is more than bytes that are kept.
fn is_read(part: &PartEntry) -> bool {
    part.kind != PartKind::Opaque && (!part.bytes.trim_ascii().is_empty() || part.signature.is_some())
}

fn weight(entry: &Entry) -> usize {
    use acpdb_engine::entry::WirePiece;
    let pieces = entry.wire.iter().map(|piece| match piece {
        WirePiece::Literal(bytes) => bytes.len(),
        WirePiece::Raw(bytes) | WirePiece::Escaped(bytes) => bytes.len(),
        WirePiece::Record(origin) => origin.len(),
    });
    pieces.sum()
}
