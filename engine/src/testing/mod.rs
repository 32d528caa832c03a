//! Tools for tests: a tape that records facts and folds them, a registry of a few tools, and scripts in text form.
//!
//! ```text
//! Script "1 read a ok" --steps--> Tape --Recorder--> events --World--> State
//! ```
//!
//! Nothing here is used by the store. It makes what is tested; judging is done where the tests are.

pub mod everything;
pub mod script;
pub mod tape;
pub mod tools;

pub use everything::{everything_in, whereabouts};
pub use script::{Script, Step};
pub use tape::Tape;
pub use tools::TestTools;
