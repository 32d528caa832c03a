//! Importers of the hosts with small formats: the facts that each record becomes, the traps of each format, and laws.
//!
//! `support` reads inputs, shows facts as short lines and checks the laws of every import; `recorded` counts real sessions, where they are at hand;
//! `robust` mutates the small inputs of the other modules.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "tests; expectations are taken by value and written by their tool"
)]

mod codex;
mod copilot;
mod gemini;
mod memory;
mod once;
mod openai;
mod pi;
mod recorded;
mod robust;
mod support;
mod swe;
mod twice;
