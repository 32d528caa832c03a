//! The common part of the packages for other languages: operations of a store in plain types, and errors by their codes.
//!
//! ```text
//! a package (its language's types, names, waiting)  ->  this crate (operations)  ->  engine, query, hosts
//! ```
//!
//! Nothing here knows a language. Answers serialise with the names of the program's JSON; points in time and formats are texts.

mod answers;
mod fact;
mod fault;
pub mod keeping;
pub mod lines;
mod opening;
pub mod sessions;
pub mod stores;
pub mod views;

pub use answers::{ActAnswer, MemoryAnswer};
pub use fact::{Described, entries};
pub use fault::{Fault, word};
pub use opening::{Opening, Reading};
