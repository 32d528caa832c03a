//! Tools for tests: a tape that records facts and folds them, a registry of a few tools, and scripts in text form.
//!
//! ```text
//! Script "1 read a ok" --steps--> Tape --Recorder--> events --World--> State
//! ```
//!
//! The store uses nothing here. These tools make the things to test; the tests judge.

pub mod everything;
pub mod script;
pub mod tape;
pub mod tools;

pub use crate::fold::memory::testing as memory;
pub use everything::{everything_in, whereabouts};
pub use script::{Script, Step};
pub use tape::Tape;
pub use tools::TestTools;

/// How many cases a random test runs: `ACPDB_TEST_CASES`, else `usual`, divided by `ACPDB_TEST_SHARE` where that is set.
pub fn cases(usual: u32) -> u32 {
    let number = |name| std::env::var(name).ok().and_then(|count| count.parse::<u32>().ok());
    number("ACPDB_TEST_CASES")
        .unwrap_or_else(|| (usual / number("ACPDB_TEST_SHARE").unwrap_or(1).max(1)).max(1))
}
