//! Host formats to facts and back: importers and the tool registry.
//!
//! ```text
//! file of a host  ->  import::detect  ->  import::read  ->  Batch { stream, entries }  ->  the store
//! call of a tool  ->  registry::registry  ->  class, keys, todo lists   (asked by the engine when a call is recorded)
//! ```
//!
//! Everything here is pure: it reads `impl BufRead` or byte slices and hands out records. It opens no file, asks no
//! clock, and does not know the store.

pub mod import;
pub mod places;
pub mod registry;

pub use registry::registry;
