//! Behaviour of acpdb as a whole.
pub mod adjacency;
pub mod apart;
pub mod binary;
pub mod conformance;
pub mod crowd;
pub mod cuts;
#[cfg(target_os = "linux")]
pub mod hostile;
pub mod naive;
#[cfg(target_os = "linux")]
pub mod repository;
pub mod soak;
pub mod support;
pub mod truth;

/// The Rust of the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// So is that of the guide for hosts.
#[cfg(doctest)]
#[doc = include_str!("../../docs/EMBEDDING.md")]
struct Embedding;
