//! What may be asked, and how facts become events.

pub mod bodies;
pub mod ledger;
pub mod record;
mod revision;
