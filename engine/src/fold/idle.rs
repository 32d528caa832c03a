//! Which faces are looked at when, to see whether anything has touched them. What happens then is a step.

use std::collections::BTreeMap;

use super::number::Ix;
use crate::event::Face;

/// Faces by the turn in which they are looked at.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Idle {
    /// Prompts on the branch.
    pub(super) prompts: u32,
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) due: BTreeMap<u32, Vec<(Ix, Face)>>,
    /// The same, should the cache be cold then.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) due_when_cold: BTreeMap<u32, Vec<(Ix, Face)>>,
    /// Contents by the number of the prompt at which they go.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) due_at_prompt: BTreeMap<u32, Vec<(Ix, Face)>>,
}

impl Idle {
    /// The policy changed: everything is scheduled anew.
    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.due_when_cold.clear();
        self.due_at_prompt.clear();
    }
}
