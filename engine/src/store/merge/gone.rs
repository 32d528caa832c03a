//! What was shredded here, and the other store still has.
//!
//! ```text
//! a session that was shredded here            -> nowhere
//! one about a subject that was shredded here  -> nowhere
//! one that came from such a session           -> on, if it is here; else nowhere
//! ```
//!
//! Nothing comes back by a merge, and nothing stops it: the report names each such session. The rule for what came from one is that of
//! recording, where a session that comes from a shredded one cannot begin.

use rustc_hash::FxHashSet;

use crate::error::Error;
use crate::ids::StreamId;

use super::super::Inner;
use super::lineage::Lineages;
use super::outline::Outline;

/// Streams of the other store that go nowhere.
pub(super) type Gone = FxHashSet<StreamId>;

/// Finds them. `about`: streams about subjects that were shredded here. Pure.
pub(super) fn gone(outline: &Outline, here: &Lineages, about: Gone) -> Gone {
    let is_shredded = |id: &StreamId| here.is_shredded(*id);
    let mut gone = about;
    gone.extend(outline.streams.keys().filter(|id| is_shredded(id)));
    loop {
        let new = outline.streams.iter().filter(|(id, told)| {
            let is_new = !gone.contains(*id) && !here.streams.contains_key(*id);
            is_new && told.came_from.iter().any(|from| gone.contains(from) || is_shredded(from))
        });
        let new: Vec<StreamId> = new.map(|(id, _)| *id).collect();
        if new.is_empty() {
            return gone;
        }
        gone.extend(new);
    }
}

impl Inner {
    /// The streams of the other store that are about subjects that were shredded here.
    pub(super) fn about_shredded(&self, outline: &Outline) -> Result<Gone, Error> {
        let mut about = Gone::default();
        let Some(keys) = self.log.keys() else { return Ok(about) };
        let mut known: Option<(&str, bool)> = None;
        let mut subjects: Vec<_> = outline.subjects.iter().collect();
        subjects.sort_by_key(|(_, name)| name.as_str());
        for (stream, name) in subjects {
            let is_shredded = match known {
                Some((known, is_shredded)) if known == name => is_shredded,
                _ => keys.subject_state(self.log.secret().subject(name))? == Some(true),
            };
            known = Some((name, is_shredded));
            if is_shredded {
                about.insert(*stream);
            }
        }
        Ok(about)
    }
}
