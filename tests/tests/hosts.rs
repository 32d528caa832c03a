//! Real hosts: the context made from a recording equals the host's requests.
//!
//! ```text
//! tests/hosts_lab plays scenes with real hosts  ->  fixtures/hosts/HOST/SCENE/{recording, requests.jsonl}
//! recording -> import -> `context --recorded` just before each step of the model -.
//! requests.jsonl: the messages of each request                                    -+-> equal, but for the short list
//! ```
//!
//! The short list is [`law::LEFT`], and stands with reasons in `docs/HOSTS.md`. `ACPDB_HOSTS_FIXTURES` names another folder of
//! scenes, as the laboratory does for those that it has just played.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed step is a failed test"
)]

#[path = "hosts/bills.rs"]
mod bills;
#[path = "hosts/counted.rs"]
mod counted;
#[path = "hosts/crafted.rs"]
mod crafted;
#[path = "hosts/law.rs"]
mod law;
#[path = "hosts/lines.rs"]
mod lines;
#[path = "hosts/lint.rs"]
mod lint;
#[path = "hosts/meanwhile.rs"]
mod meanwhile;
#[path = "hosts/proof.rs"]
mod proof;
#[path = "hosts/resume.rs"]
mod resume;
#[path = "hosts/scenes.rs"]
mod scenes;
#[path = "hosts/sizes.rs"]
mod sizes;
#[path = "hosts/todos.rs"]
mod todos;
#[path = "hosts/usage.rs"]
mod usage;
