//! acpdb: the context of AI agents as an append-only log, with the reason each thing is in or out.
//!
//! This is the one crate to add: the engine's names, and behind them the formats and tools of hosts ([`hosts`]) and the
//! questions that the command line asks ([`query`]). The command line itself is the package `acpdb-cli`.
//!
//! ```
//! use acpdb::hosts::export::{Exporter, Format};
//! use acpdb::{Entry, Role, ServeOptions, Step, StreamInfo};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("acpdb-first-{}", std::process::id()));
//! let store = acpdb::open(&folder)?;
//! let session = store.session(StreamInfo::session("my-host", "ses_01"));
//! let _ = session.append([Entry::prompt("p1"), Entry::message("p1", Role::User, "why is the build red?")])?; // durable
//!
//! let step = Step::begin(&session, "step-1")?; // a request to the model
//! let context = step.context(&Exporter::new(Format::Anthropic), &ServeOptions::default())?;
//! let body: serde_json::Value = serde_json::from_slice(&context.bytes)?;
//! assert_eq!(body["messages"][0]["role"], "user");
//! # drop((step, session, store));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `tracing` what takes time has a span: `acpdb.open`, `acpdb.commit`, `acpdb.sync`, `acpdb.view`, `acpdb.context`, `acpdb.erase`,
//! `acpdb.seal`, all of the level `debug`.

pub mod remote;

use std::path::PathBuf;

pub use acpdb_engine::{
    ActReply, At, Atomicity, Batch, BodyId, Builder, Chain, Commit, ContextAction, Durability, Entry, Error,
    Explanation, Face, ItemId, ItemView, Memory, MemoryCommand, MemoryScope, MessageStream, Micros,
    PartEntry, Policy, Receipt, Recorded, Redactor, Registry, Role, Seq, Session, Store, StreamId,
    StreamInfo, Subscription, Target, Ticket, ToolFacts, Turn, Usage, View,
};
pub use acpdb_engine::{entry, event, ids, keys, settings};
pub use acpdb_hosts as hosts;
pub use acpdb_query as query;
pub use acpdb_serve::{Context, PlainText, Renderer, ServeOptions, Step};

/// The parts of answers: of views, explanations, chains, receipts, reports and contexts.
pub mod answers {
    pub use acpdb_engine::answers::*;
    pub use acpdb_serve::{
        FlushPlan, Injection, Obstacle, OverBudget, Reflection, Reminder, Rendered, Served, ServedAgain,
        ServedItem, SizeNotice, flush, inject, plan_flush,
    };
}

/// Opens the store in `folder`, and creates it if there is none, with the tools of all hosts that acpdb knows.
///
/// As `Store::builder(folder).registry(hosts::registry()).open()`: for other settings begin at [`Store::builder`].
///
/// # Errors
/// The folder cannot be created, is not a store, belongs to another user or is on a file system whose syncs cannot be relied on:
/// see [`Error`].
pub fn open(folder: impl Into<PathBuf>) -> Result<Store, Error> {
    Store::builder(folder).registry(hosts::registry()).open()
}
