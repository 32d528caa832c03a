//! Quiet steps: an edit clears earlier views of a file only when the file has rested, for the agent needs its read for
//! the next edit.
//!
//! ```text
//! edit N would clear view X  -->  pair (X, N, file) waits  --file untouched for D turns-------------------->  edge X -> N
//!                                                          --a call with the file in class read is ready-->  edge X -> N
//! ```
//!
//! A file is touched in every turn in which a call with its key starts or finishes, whatever the outcome, and by
//! `FileChanged`. Each file with pairs has one entry in the due queue, put off when it comes up too early, so a touch
//! costs one store.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::event::ToolClass;
use crate::fold::facts::{Ix, KeyId};

/// An edge that waits.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Pair {
    /// Order of coming about.
    pub(crate) number: u32,
    pub(crate) old: Ix,
    pub(crate) new: Ix,
    /// Index of the edit's key.
    pub(crate) key: u32,
    /// Class of the view.
    pub(crate) class: ToolClass,
}

/// Everything about resting files.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Quiet {
    /// Turn of the last touch by file, 0 for never.
    touched: Vec<u32>,
    #[rkyv(with = rkyv::with::AsVec)]
    waiting: FxHashMap<KeyId, Vec<Pair>>,
    #[rkyv(with = rkyv::with::AsVec)]
    due: BTreeMap<u32, Vec<KeyId>>,
    count: u32,
}

impl Quiet {
    /// The file was touched in this turn.
    pub(crate) fn touch(&mut self, file: KeyId, turn: u32) {
        let place = file.0 as usize;
        if self.touched.len() <= place {
            self.touched.resize(place.saturating_add(1), 0);
        }
        if let Some(last) = self.touched.get_mut(place) {
            *last = (*last).max(turn);
        }
    }

    pub(crate) fn last_touch(&self, file: KeyId) -> u32 {
        self.touched.get(file.0 as usize).copied().unwrap_or_default()
    }

    /// A pair begins to wait; a view waits once per file.
    pub(crate) fn wait(&mut self, old: Ix, new: Ix, file: KeyId, key: u32, class: ToolClass, steps: u32) {
        let last = self.last_touch(file);
        let pairs = self.waiting.entry(file).or_default();
        if pairs.iter().any(|pair| pair.old == old) {
            return;
        }
        if pairs.is_empty() {
            self.due.entry(last.saturating_add(steps)).or_default().push(file);
        }
        pairs.push(Pair { number: self.count, old, new, key, class });
        self.count = self.count.saturating_add(1);
    }

    /// Whether any pair waits for this file.
    pub(crate) fn has(&self, file: KeyId) -> bool {
        self.waiting.contains_key(&file)
    }

    /// Takes the pairs of files that a read has shown anew, oldest first.
    pub(crate) fn take(&mut self, files: &[KeyId]) -> Vec<Pair> {
        let mut pairs: Vec<Pair> =
            files.iter().filter_map(|file| self.waiting.remove(file)).flatten().collect();
        pairs.sort_unstable_by_key(|pair| pair.number);
        pairs
    }

    /// Takes the pairs of files that have rested for `steps` turns at `turn`, oldest first.
    pub(crate) fn take_due(&mut self, turn: u32, steps: u32) -> Vec<Pair> {
        let mut rested = Vec::new();
        while let Some(entry) = self.due.first_entry() {
            if *entry.key() > turn {
                break;
            }
            for file in entry.remove() {
                if !self.waiting.contains_key(&file) {
                    continue;
                }
                let due = self.last_touch(file).saturating_add(steps);
                if due <= turn {
                    rested.push(file);
                } else {
                    self.due.entry(due).or_default().push(file);
                }
            }
        }
        self.take(&rested)
    }

    /// The number of turns changed.
    pub(crate) fn reschedule(&mut self, steps: u32) {
        self.due.clear();
        let mut files: Vec<KeyId> = self.waiting.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            self.due.entry(self.last_touch(file).saturating_add(steps)).or_default().push(file);
        }
    }

    /// A view was shown again on request: what waited for it is dropped.
    pub(crate) fn forget(&mut self, old: Ix, file: KeyId) {
        if let Some(pairs) = self.waiting.get_mut(&file) {
            pairs.retain(|pair| pair.old != old);
            if pairs.is_empty() {
                self.waiting.remove(&file);
            }
        }
    }
}
