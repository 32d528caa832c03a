//! Rules that a test breaks on purpose, to see that the suite notices. Without the feature `testing` there are none, and nothing
//! is asked.
//!
//! [`enable`] breaks one rule for the whole process; the suite must then fail. `docs/TESTING.md` lists each failpoint with the
//! test that catches it. Faults between the store and the disk need no failpoint: tests put them into the storage that they
//! hand to the store.

/// A rule that can be broken on purpose.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(clippy::exhaustive_enums, reason = "every one must have a check that catches it")]
pub enum Failpoint {
    /// Some frames name a wrong previous link.
    WrongPreviousLink = 1,
    /// A header of zeros is a frame without events.
    AcceptZeroLength,
    /// An index that is ahead of the log is used.
    IndexAheadOfLog,
    /// Protected calls are superseded like other calls.
    TombstoneOnProtected,
    /// A restored item stays hidden.
    RestoreForgets,
    /// A view at a seq does not show the changes of that seq.
    WatermarkOffByOne,
    /// Pins are read back as the end of pins.
    PinsReadAsUnpins,
    /// Two bodies of one length count as equal.
    DedupeByLength,
    /// A failed sync is reported to callers that append, not to callers that wait.
    PoisonWithoutEpoch,
    /// The range that a sync covers is read after the sync, when other processes have written more.
    CoveredReadLate,
    /// A fact in a commit that is not durable yet is acknowledged at once.
    KnownTooEarly,
    /// The first append rewrites the unconfirmed end of the log without checking it.
    RewriteUnchecked,
    /// A writer does not compare the epoch with the one at which it opened the log.
    EpochUnread,
    /// A commit is reported as undone while the disk may still hold its bytes.
    UndoUnsynced,
    /// A reader reports a write in progress as damage.
    ReaderLooksOnce,
    /// That no row of places names a stream counts as a proof, though the run of rows breaks.
    PlacesRunUnchecked,
    /// Rows of places are appended to their file.
    PlacesAppended,
    /// Rows of places stay when their frames are dropped.
    PlacesUnrepaired,
    /// Rows of places count that the tail page does not name.
    PlacesUncounted,
}

#[cfg(any(test, feature = "testing"))]
mod switch {
    use super::Failpoint;
    use std::sync::atomic::{AtomicU8, Ordering};

    static ENABLED: AtomicU8 = AtomicU8::new(0);

    /// Enables one failpoint in this process, and disables the one before.
    pub fn enable(point: Option<Failpoint>) {
        ENABLED.store(point.map_or(0, |point| point as u8), Ordering::SeqCst);
    }

    pub fn is_enabled(point: Failpoint) -> bool {
        ENABLED.load(Ordering::Relaxed) == point as u8
    }
}

#[cfg(any(test, feature = "testing"))]
pub use switch::{enable, is_enabled};

/// Whether a test breaks the rule of this name.
#[cfg(any(test, feature = "testing"))]
macro_rules! failpoint {
    ($point:ident) => {
        $crate::failpoints::is_enabled($crate::failpoints::Failpoint::$point)
    };
}

/// No rule is broken.
#[cfg(not(any(test, feature = "testing")))]
macro_rules! failpoint {
    ($point:ident) => {
        false
    };
}

pub(crate) use failpoint;
