//! acpdb for Node: the engine in the process, off its main thread.
//!
//! ```text
//! acpdb (TypeScript: names, promises, iterators, `using`)  ->  this crate (types across the border)  ->  acpdb-bindings  ->  engine
//! ```
//!
//! - Everything that reads, writes, folds or waits runs on a thread of Node's pool and settles a promise.
//! - Acts that record go through one lane of the store, in the order of the calls; commits that wait together share a sync.
//! - Answers are JSON with the names that the program uses, bytes are Buffers. Nothing here decides anything.

// The macros of napi make functions for Node that have neither docs nor bounds of their own.
#![allow(missing_docs, clippy::trivially_copy_pass_by_ref)]
// Numbers of JavaScript are exact up to 2^53; seqs, counts and microseconds stay below.
#![allow(clippy::cast_precision_loss)]

mod job;
mod lane;
mod session;
mod store;
mod view;
