//! Behaviour of acpdb as a whole.
pub mod binary;
pub mod conformance;
