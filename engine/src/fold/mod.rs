//! The fold: what the store concludes from what is recorded.
pub mod memory;
