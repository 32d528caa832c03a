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
//! costs one store. Which texts of a path are one file is for the policy then in force to say, so touches are kept by
//! either text, and pairs are put under the other one when the policy changes its mind.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::event::ToolClass;
use crate::fold::facts::KeyFact;
use crate::fold::number::{Ix, KeyId};
use crate::fold::policy_values::Paths;

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
    /// Turn of the last touch by file, 0 for never; of paths as given.
    touched_given: Vec<u32>,
    /// The same of paths as resolved.
    touched_resolved: Vec<u32>,
    #[rkyv(with = rkyv::with::AsVec)]
    waiting: FxHashMap<KeyId, Vec<Pair>>,
    #[rkyv(with = rkyv::with::AsVec)]
    due: BTreeMap<u32, Vec<KeyId>>,
    count: u32,
}

impl Quiet {
    /// The file was touched in this turn.
    pub(crate) fn touch(&mut self, key: &KeyFact, turn: u32) {
        for (touched, file) in
            [(&mut self.touched_given, key.id_given), (&mut self.touched_resolved, key.id_resolved)]
        {
            let place = file.0 as usize;
            if touched.len() <= place {
                touched.resize(place.saturating_add(1), 0);
            }
            if let Some(last) = touched.get_mut(place) {
                *last = (*last).max(turn);
            }
        }
    }

    pub(crate) fn last_touch(&self, file: KeyId, paths: Paths) -> u32 {
        let touched = match paths {
            Paths::Raw => &self.touched_given,
            Paths::Session => &self.touched_resolved,
        };
        touched.get(file.0 as usize).copied().unwrap_or_default()
    }

    /// A pair begins to wait; a view waits once per file.
    pub(crate) fn wait(&mut self, pair: Pair, file: KeyId, paths: Paths, steps: u32) {
        let last = self.last_touch(file, paths);
        let pairs = self.waiting.entry(file).or_default();
        if pairs.iter().any(|known| known.old == pair.old) {
            return;
        }
        if pairs.is_empty() {
            self.due.entry(last.saturating_add(steps)).or_default().push(file);
        }
        pairs.push(Pair { number: self.count, ..pair });
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
    pub(crate) fn take_due(&mut self, turn: u32, paths: Paths, steps: u32) -> Vec<Pair> {
        let mut rested = Vec::new();
        while let Some(entry) = self.due.first_entry() {
            if *entry.key() > turn {
                break;
            }
            for file in entry.remove() {
                if !self.waiting.contains_key(&file) {
                    continue;
                }
                let due = self.last_touch(file, paths).saturating_add(steps);
                if due <= turn {
                    rested.push(file);
                } else {
                    self.due.entry(due).or_default().push(file);
                }
            }
        }
        self.take(&rested)
    }

    /// The number of turns changed, or which texts of a path are one file: `file` says what an edit's key compares as.
    pub(crate) fn reschedule(&mut self, paths: Paths, steps: u32, file: impl Fn(u32) -> Option<KeyId>) {
        let mut pairs: Vec<Pair> = std::mem::take(&mut self.waiting).into_values().flatten().collect();
        pairs.sort_unstable_by_key(|pair| pair.number);
        for pair in pairs {
            if let Some(file) = file(pair.key) {
                self.waiting.entry(file).or_default().push(pair);
            }
        }
        self.due.clear();
        let mut files: Vec<KeyId> = self.waiting.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            self.due.entry(self.last_touch(file, paths).saturating_add(steps)).or_default().push(file);
        }
    }

    /// A view was shown again on request: what waited for it is dropped, under whatever text. Cost: O(pairs).
    pub(crate) fn forget(&mut self, old: Ix) {
        self.waiting.retain(|_, pairs| {
            pairs.retain(|pair| pair.old != old);
            !pairs.is_empty()
        });
    }
}
