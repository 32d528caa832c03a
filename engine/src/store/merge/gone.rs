//! Sessions that were shredded here and that the other store still has.
//!
//! ```text
//! a session that was shredded here            -> nowhere
//! one about a subject that was shredded here  -> nowhere
//! one that came from such a session           -> on, if it is here; else nowhere
//! ```
//!
//! None of them comes back by a merge, and none stops it: the report names each. Recording has the same rule: a session that comes from a
//! shredded one cannot begin.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Error;
use crate::ids::StreamId;

use super::super::Inner;
use super::lineage::Lineages;
use super::outline::Outline;

/// Streams that go nowhere.
pub(super) type Gone = FxHashSet<StreamId>;

/// Finds the streams that go nowhere. `about`: streams about subjects that were shredded here. Cost: one look at each stream. Pure.
pub(super) fn gone(outline: &Outline, here: &Lineages, about: Gone) -> Gone {
    let mut came_of: FxHashMap<StreamId, Vec<StreamId>> = FxHashMap::default();
    for (id, told) in outline.streams.iter().filter(|(id, _)| !here.streams.contains_key(*id)) {
        for from in &told.came_from {
            came_of.entry(*from).or_default().push(*id);
        }
    }
    let shredded = here.streams.iter().filter(|(_, lineage)| lineage.is_shredded).map(|(id, _)| *id);
    let mut todo: Vec<StreamId> = shredded.chain(about).collect();
    let mut gone = Gone::default();
    while let Some(stream) = todo.pop() {
        if gone.insert(stream) {
            todo.extend(came_of.get(&stream).into_iter().flatten());
        }
    }
    gone
}

impl Inner {
    /// The streams of the other store about subjects that were shredded here.
    pub(super) fn about_shredded(&self, outline: &Outline) -> Result<Gone, Error> {
        let mut about = Gone::default();
        let Some(keys) = self.log.keys() else { return Ok(about) };
        let mut known: FxHashMap<&str, bool> = FxHashMap::default();
        for (stream, name) in &outline.subjects {
            let is_shredded = match known.get(name.as_str()) {
                Some(is_shredded) => *is_shredded,
                None => keys.subject_state(self.log.secret().subject(name))? == Some(true),
            };
            known.insert(name, is_shredded);
            if is_shredded {
                about.insert(*stream);
            }
        }
        Ok(about)
    }
}
