//! The same rows in memory, as the judge of the file.

use std::collections::BTreeMap;

use crate::ids::{Digest, Seq};

use super::layout::{IndexFault, NameKey};
use super::lookup::{self, NameRows, Visit};
use super::rows::{IndexRows, advance};
use super::{Bypassed, NameEntry, NameKind, Watermark};

/// An index in memory. Costs some 60 bytes a name.
#[derive(Clone, Debug, Default)]
pub struct MemoryIndex {
    watermark: Watermark,
    rows: BTreeMap<NameKey, Seq>,
}

impl MemoryIndex {
    /// Adds frames in order. Frames at or below the watermark are skipped.
    ///
    /// # Errors
    /// If a frame does not follow the one before it; then nothing was added.
    pub fn apply(&mut self, frames: &[IndexRows]) -> Result<Watermark, Bypassed> {
        let (new, watermark) = advance(self.watermark, frames)?;
        self.rows.extend(new);
        self.watermark = watermark;
        Ok(watermark)
    }

    /// How far it has come.
    pub const fn watermark(&self) -> Watermark {
        self.watermark
    }

    /// How many names it has.
    pub fn row_count(&self) -> u64 {
        self.rows.len() as u64
    }

    /// As [`Index::names`](super::Index::names).
    ///
    /// # Errors
    /// None in memory.
    pub fn names(
        &self,
        kind: NameKind,
        text: &str,
        prefix: bool,
        limit: usize,
    ) -> Result<Vec<NameEntry>, Bypassed> {
        Ok(lookup::names(self, kind, text, prefix, limit)?)
    }

    /// As [`Index::digest`](super::Index::digest).
    ///
    /// # Errors
    /// None in memory.
    pub fn digest(&self) -> Result<Digest, Bypassed> {
        Ok(lookup::summary(self)?.0)
    }
}

impl NameRows for MemoryIndex {
    fn scan(&self, from: &NameKey, visit: Visit<'_>) -> Result<(), IndexFault> {
        for (key, seq) in self.rows.range(from..) {
            if !visit(key, *seq)? {
                break;
            }
        }
        Ok(())
    }
}

impl From<IndexFault> for Bypassed {
    fn from(fault: IndexFault) -> Self {
        Self { reason: fault.0 }
    }
}
