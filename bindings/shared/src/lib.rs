//! The common part of the packages for other languages: operations of a store in plain types, and errors by their codes.
//!
//! ```text
//! a package (its language's types, names, waiting)  ->  this crate (operations; most through one `door`)  ->  engine, query, hosts
//! ```
//!
//! Nothing here knows a language. Answers serialise with the names of the program's JSON; points in time and formats are texts.

mod answers;
mod arguments;
pub mod door;
mod fact;
mod fault;
pub mod keeping;
pub mod lines;
mod opening;
mod remote;
pub mod sessions;
pub mod stores;
pub mod views;

pub use answers::told;
pub use arguments::Arguments;
pub use fact::{Described, entries};
pub use fault::{Fault, word};
pub use opening::Opening;
pub use remote::opened_beyond;
