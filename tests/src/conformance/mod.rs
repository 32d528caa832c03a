//! The recorded vectors, run through the engine.
pub mod memory;
