//! Behaviour of acpdb as a whole.
pub mod conformance;
pub mod naive;
pub mod support;
