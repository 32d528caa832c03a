//! What may be asked, and how facts become events.

pub mod bodies;
pub mod draft;
pub mod ledger;
pub mod record;
mod revision;
pub mod task;
