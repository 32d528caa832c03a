//! The fold: what the events add up to. Pure; no IO, no clock, no randomness.

pub mod archive;
pub mod eviction;
pub mod reminder;
pub mod task;
pub mod todo;
pub mod validate;
