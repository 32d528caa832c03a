//! Tables for lookups, which a [`World`] that was read from a saved fold needs before it is used.
//!
//! An archive that passes the checks of its bytes is safe to read, not right; so a caller compares the digest of the whole first, and where the
//! fold ends with the log. A forged one can still show what is not so, and only a fold of the log tells; it can neither panic nor keep a
//! reader for ever, since indices are looked up and lists are walked one way.

use std::sync::Arc;

use super::world::World;

impl World {
    /// The world, ready for use, after it was read. `None` if it is none that was saved.
    pub(crate) fn revived(mut self) -> Option<Self> {
        for (id, state) in &mut self.streams {
            if state.id != *id {
                return None;
            }
            Arc::make_mut(&mut Arc::make_mut(state).subs.memory).find_anew();
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests;
