//! The piece tables of large frames, kept in memory once they were read.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::codec::PieceTable;
use crate::ids::{Position, Seq};

/// Most memory for tables: of some 2 million events in large commits.
const BYTES_MAX: usize = 8 << 20;

/// Tables by the positions of their frames, and by seq.
#[derive(Default)]
pub(super) struct Tables {
    by_seq: BTreeMap<Seq, Arc<PieceTable>>,
    by_position: FxHashMap<Position, Seq>,
    bytes: usize,
}

impl Tables {
    pub(super) fn holding(&self, seq: Seq) -> Option<Arc<PieceTable>> {
        let (_, table) = self.by_seq.range(..=seq).next_back()?;
        (seq <= table.header().last_seq()).then(|| Arc::clone(table))
    }

    pub(super) fn at(&self, position: Position) -> Option<Arc<PieceTable>> {
        self.by_seq.get(self.by_position.get(&position)?).cloned()
    }

    /// Keeps a table; if there are too many, all other tables go.
    pub(super) fn keep(&mut self, table: &Arc<PieceTable>) {
        let bytes = table.memory_bytes();
        if self.bytes.saturating_add(bytes) > BYTES_MAX {
            *self = Self::default();
        }
        let (seq, position) = (table.header().first_seq, table.header().position);
        self.by_position.insert(position, seq);
        let before = self.by_seq.insert(seq, Arc::clone(table));
        self.bytes = self.bytes.saturating_add(bytes);
        // A table's size does not change after it was kept.
        self.bytes = self.bytes.saturating_sub(before.map_or(0, |table| table.memory_bytes()));
    }
}
