//! A [`World`] that was read from a saved fold.
//!
//! An archive that passes the checks of its bytes is safe to read, not right; so a caller compares the digest of the whole first, and where the
//! fold ends with the log. A forged one can still show what is not so, and only a fold of the log tells; it can neither panic nor keep a
//! reader for ever, since indices are looked up and lists are walked one way.

use super::world::World;

impl World {
    /// The world, ready for use, after it was read. `None` if it is none that was saved.
    pub(crate) fn revived(self) -> Option<Self> {
        self.streams.iter().all(|(id, state)| state.id == *id).then_some(self)
    }
}

#[cfg(test)]
mod tests;
