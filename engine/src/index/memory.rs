//! The index in memory: the same rows in a map. For stores without a file, and as the judge of the file.

use std::collections::BTreeMap;

use crate::ids::{Digest, Seq, StreamId};

use super::heads::Heads;
use super::layout::{Fault, Row};
use super::lookup::{self, Sorted, Visit};
use super::rows::Rows;
use super::{Bypassed, Contents, FramePlace, Identity, Lookup, NameEntry, NameKind, StreamEntry, Watermark};

/// An index in memory. Costs a few hundred bytes for each event that bears names.
#[derive(Clone, Debug)]
pub struct MemoryIndex {
    heads: Heads,
    rows: Map,
}

/// Sorted rows in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Map {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl MemoryIndex {
    /// An empty index of the store `identity`.
    pub fn new(identity: Identity) -> Self {
        let mut index = Self { heads: Heads::new(identity), rows: Map::default() };
        let (key, value) = index.heads.meta().row();
        index.rows.rows.insert(key, value);
        index
    }

    /// Adds frames in order. Frames at or below the watermark are skipped.
    ///
    /// # Errors
    /// If a frame does not follow the one before it; then nothing was added.
    pub fn apply(&mut self, frames: &[Rows]) -> Result<Watermark, Bypassed> {
        let changes = self.heads.absorb(frames)?;
        self.rows.rows.extend(changes);
        Ok(self.heads.watermark())
    }

    /// How many rows it has.
    pub fn row_count(&self) -> u64 {
        self.rows.rows.len() as u64
    }

    pub(super) const fn rows(&self) -> &Map {
        &self.rows
    }
}

impl Sorted for Map {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.rows.get(key).cloned())
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: Visit<'_>) -> Result<(), Fault> {
        for (key, value) in
            self.rows.range::<[u8], _>((std::ops::Bound::Included(from), std::ops::Bound::Excluded(to)))
        {
            if !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }

    fn scan_back(&self, from: &[u8], to: &[u8], visit: Visit<'_>) -> Result<(), Fault> {
        let bounds = (std::ops::Bound::Included(from), std::ops::Bound::Excluded(to));
        for (key, value) in self.rows.range::<[u8], _>(bounds).rev() {
            if !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }

    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, Fault> {
        let bounds = (std::ops::Bound::Included(from), std::ops::Bound::Included(to));
        Ok(self.rows.range::<[u8], _>(bounds).next_back().map(|(key, value)| (key.clone(), value.clone())))
    }
}

impl Lookup for MemoryIndex {
    fn watermark(&self) -> Watermark {
        self.heads.watermark()
    }

    fn streams(&self) -> Result<Vec<StreamEntry>, Bypassed> {
        Ok(lookup::streams(&self.rows)?)
    }

    fn stream(&self, stream: StreamId) -> Result<Option<StreamEntry>, Bypassed> {
        let Some(number) = self.heads.number(stream) else { return Ok(None) };
        Ok(lookup::stream(&self.rows, number)?)
    }

    fn frames_of(&self, stream: StreamId, after: Seq) -> Result<Vec<FramePlace>, Bypassed> {
        let Some(number) = self.heads.number(stream) else { return Ok(Vec::new()) };
        Ok(lookup::frames_of(&self.rows, number, after)?)
    }

    fn last_frames_of(&self, stream: StreamId, limit: usize) -> Result<Vec<FramePlace>, Bypassed> {
        let Some(number) = self.heads.number(stream) else { return Ok(Vec::new()) };
        Ok(lookup::last_frames_of(&self.rows, number, limit)?)
    }

    fn contents(&self) -> Result<Contents, Bypassed> {
        Ok(lookup::contents(&self.rows)?)
    }

    fn place_of(&self, seq: Seq) -> Result<Option<FramePlace>, Bypassed> {
        Ok(lookup::place_of(&self.rows, seq)?)
    }

    fn names(
        &self,
        kind: NameKind,
        text: &str,
        prefix: bool,
        limit: usize,
    ) -> Result<Vec<NameEntry>, Bypassed> {
        let found = lookup::names(&self.rows, kind, text, prefix, limit)?;
        Ok(self.heads.named(found)?)
    }

    fn digest(&self) -> Result<Digest, Bypassed> {
        Ok(lookup::digest(&self.rows)?)
    }
}

impl From<Fault> for Bypassed {
    fn from(fault: Fault) -> Self {
        Self { reason: fault.0 }
    }
}
