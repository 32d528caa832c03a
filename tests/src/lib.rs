//! Behaviour of acpdb as a whole.
pub mod conformance;
