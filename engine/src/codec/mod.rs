//! Bytes to events and back.
pub mod payload;
