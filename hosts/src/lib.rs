//! Host formats to facts and back: importers, exporters, a linter and the tool registry.
//!
//! ```text
//! file of a host  ->  import::detect  ->  import::read  ->  Batch { stream, entries }  ->  the store
//! its database    ->  sqlite  ->  import::read_database, likewise
//! request and answer  ->  exchange::request, exchange::answer  ->  facts
//! export::export(view, format)  ->  the body of a request, or a transcript
//! resume::write(view, host)  ->  a session's file that its host opens
//! call of a tool  ->  registry::registry  ->  class, keys, todo lists   (asked by the engine when a call is recorded)
//! ```
//!
//! It opens no file and asks no clock. Importers read `impl BufRead` or byte slices and do not know the store; exporters
//! read one frozen view.

pub mod exchange;
pub mod export;
pub mod import;
pub mod lines;
pub mod lint;
pub mod proof;
pub mod redact;
pub mod registry;
pub mod resume;
pub mod session_paths;
pub mod sqlite;
pub mod surrogates;

pub use registry::registry;

/// Whether names, with blanks between them, hold this one.
fn is_among(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}
