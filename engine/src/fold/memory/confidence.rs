//! How sure an item still is: a pure function of (item, now), never stored.
//!
//! ```text
//! hundredths on disk -> millionths here -> minus hours since last confirmed x rate -> not below the floor
//! ```
//!
//! Whole numbers throughout, so that a threshold is met or not met alike on every machine.

use std::fmt;

use crate::event::{Lifespan, MemoryKind};
use crate::ids::Micros;

/// How sure something is, in millionths: 0 to 1,000,000.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Confidence(u32);

impl Confidence {
    /// Decay stops here, or at the recorded value if that is lower.
    pub const FLOOR: Self = Self(100_000);
    /// A session item below this has expired.
    pub const SESSION_MIN: Self = Self(200_000);

    /// From hundredths; more than 100 counts as 100.
    pub fn from_hundredths(hundredths: u32) -> Self {
        Self(hundredths.min(100) * 10_000)
    }

    /// In hundredths, rounded down.
    pub const fn hundredths(self) -> u32 {
        self.0 / 10_000
    }

    /// In millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// From 0 to 1, in hundredths, the nearest one: finer steps would make two answers of one minute differ.
    pub fn as_f64(self) -> f64 {
        // A million at most.
        f64::from((self.0 + 5_000) / 10_000) / 100.0
    }

    /// The confidence that is left after `elapsed` microseconds at `rate` millionths an hour.
    ///
    /// Never above `self`, never below the smaller of `self` and [`Confidence::FLOOR`]. Negative times decay nothing.
    #[must_use]
    pub fn decayed(self, elapsed: i64, rate: u32) -> Self {
        const HOUR: i128 = 3_600_000_000;
        let lost = i128::from(elapsed.max(0)) * i128::from(rate) / HOUR;
        // The loss may be more than the confidence: the floor stays.
        let left = i128::from(self.0).saturating_sub(lost).max(i128::from(self.min(Self::FLOOR).0));
        Self(u32::try_from(left).unwrap_or(self.0))
    }
}

impl fmt::Display for Confidence {
    /// With two decimals, rounded down: `0.93`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.hundredths() / 100, self.hundredths() % 100)
    }
}

impl serde::Serialize for Confidence {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

/// Millionths that an item of this kind loses an hour.
pub(super) fn rate_per_hour(kind: MemoryKind, category: &str, lifespan: Lifespan) -> u32 {
    match kind {
        _ if lifespan == Lifespan::Permanent || category == "personal" => 0,
        MemoryKind::Decision | MemoryKind::Note => 0,
        MemoryKind::Preference => 10_000,
        MemoryKind::Fact if category == "context" => 50_000,
        MemoryKind::Fact => 5_000,
    }
}

/// Microseconds from `earlier` to `later`, saturating.
pub(super) const fn micros_between(earlier: Micros, later: Micros) -> i64 {
    // As the text above says.
    later.0.saturating_sub(earlier.0)
}
