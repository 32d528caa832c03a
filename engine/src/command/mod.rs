//! What may be asked, and what accepting it records. Pure; every refusal happens here.

pub mod draft;
pub mod task;

pub use draft::EventDraft;
