//! Importers of the hosts with small formats: what each record becomes, the traps of each format, and laws.
//!
//! `support` reads inputs, shows facts as short lines and checks what must hold of every import; `recorded` counts real
//! sessions, where they are at hand; `robust` mutates the small inputs of the other modules.

mod codex;
mod copilot;
mod gemini;
mod memory;
mod openai;
mod recorded;
mod robust;
mod support;
mod swe;
