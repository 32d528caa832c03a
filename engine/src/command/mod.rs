//! What may be asked, and what is recorded then. Refusals happen here, never in the fold.
pub mod draft;
pub mod memory;
