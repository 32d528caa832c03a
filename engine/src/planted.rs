//! Bugs that are put in on purpose, to see that the tests catch them. Without the feature `testing` nothing of it is left.
//!
//! A test of tests: [`plant`] breaks one rule for the whole process, and the suite must fail. `docs/TESTING.md` has the
//! list, with what caught each. Bugs in how bytes reach the disk need no hook: they are planted in the storage that the
//! tests hand to the store.

/// A rule that can be broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(clippy::exhaustive_enums, reason = "every one must have a check that catches it")]
pub enum Bug {
    /// Some frames name another previous link than that of the frame before.
    WrongPreviousLink = 1,
    /// A header of zeros is a frame without events.
    AcceptZeroLength,
    /// An index that knows more than the log is used.
    IndexAheadOfLog,
    /// Protected calls are superseded like others.
    TombstoneOnProtected,
    /// What is restored stays hidden.
    RestoreForgets,
    /// A view of a seq does not show what came about at that seq.
    WatermarkOffByOne,
    /// Pins are read back as the end of pins.
    UpcastToWrongKind,
    /// Bodies of equal length are taken for equal.
    DedupeByLength,
    /// A failed sync is told to those who append, not to those who wait.
    PoisonWithoutEpoch,
    /// Bodies that were erased are named again.
    ShareErased,
    /// What a sync covers is looked up after it, when others have written more.
    CoveredReadLate,
    /// What is known by a commit that is not durable is acknowledged at once.
    KnownTooEarly,
    /// Who appends first writes again what is not known to be durable, without a look at what it is.
    RewriteUnchecked,
    /// Who writes does not ask whether a sync failed since it opened the log.
    EpochUnread,
    /// A commit is said to be undone whose bytes the disk may still have.
    UndoUnsynced,
    /// Who only reads takes what it meets beside writers for damage.
    ReaderLooksOnce,
}

#[cfg(any(test, feature = "testing"))]
mod switch {
    use super::Bug;
    use std::sync::atomic::{AtomicU8, Ordering};

    static PLANTED: AtomicU8 = AtomicU8::new(0);

    /// Plants a bug in this process, in place of the one before.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
    }

    pub(crate) fn is_planted(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(any(test, feature = "testing"))]
pub(crate) use switch::is_planted;
#[cfg(any(test, feature = "testing"))]
pub use switch::plant;

/// No bug is planted.
#[cfg(not(any(test, feature = "testing")))]
pub(crate) const fn is_planted(_bug: Bug) -> bool {
    false
}
