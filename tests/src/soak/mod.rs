//! Long tests of the store on a simulated machine: power cuts and kills at every operation, failing disks, damage.
//!
//! ```text
//! script (a seed) -> life of some processes on a SimWorld -> moments, each a machine that may stop here
//!                      '- auditor: commits tried, acknowledged, shown
//! moment + seed -> image -> recover -> judge: the auditor, engine::verify, a second recovery that must change nothing
//! ```
//!
//! The auditor shares no code with the engine: it knows the texts it gave away and the numbers it got back. The same
//! functions run in `cargo test` (few images) and in the example `soak` (as many as asked for). Every failure names the
//! seed that repeats it.

pub mod auditor;
pub mod crash;
pub mod faults;
pub mod flips;
pub mod held;
pub mod life;
pub mod places;
pub mod planted;
pub mod sabotage;
pub mod script;

use std::fmt;

/// A finding: a rule that did not hold, with the command that repeats it.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The seed of the life it happened in.
    pub seed: u64,
    /// Where in it.
    pub place: String,
    /// The fault, in words.
    pub wrong: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, {}: {}", self.seed, self.place, self.wrong)
    }
}

/// Whether a file of a store is a segment of its log.
fn is_segment(name: &str) -> bool {
    name.strip_suffix(".seg").is_some()
}

/// Random numbers that follow from a seed (`SplitMix64`; Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall as `seed` says.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x5bd1_e995_9d1b_54a3)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.roll() % count.max(1) as u64).unwrap_or(0)
    }

    /// Whether a chance of one in `count` comes to pass.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T], otherwise: T) -> T {
        from.get(self.below(from.len())).copied().unwrap_or(otherwise)
    }
}
