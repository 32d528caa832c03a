//! The acpdb store: an append-only log of what an agent saw and did, folded into its current context and full history.
//!
//! ```
//! use acpdb_engine::{Entry, PlainText, Role, ServeOptions, Store, StreamInfo};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("store");
//! let store = Store::builder(&folder).open()?;
//! let session = store.session(StreamInfo::session("my-host", "ses_01"));
//! let _ = session.append([Entry::prompt("p1"), Entry::message("p1", Role::User, "why is the build red?")])?; // durable
//!
//! let step = session.step("step-1")?; // a request to the model
//! let context = step.context(&PlainText, &ServeOptions::default())?;
//! assert!(String::from_utf8_lossy(&context.bytes).contains("why is the build red?"));
//!
//! for item in session.view()?.history() {
//!     println!("{} {:?}", item.item, item.output.state); // all there was, and how the model sees it
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Where to begin
//!
//! | to do | begin at |
//! |---|---|
//! | open, create | [`Store::builder`], [`Builder`] |
//! | record | [`Session::append`], [`Entry`], [`Session::submit`] with its [`Ticket`], [`Session::write`] |
//! | send to a model | [`Session::step`], [`Step::context`], [`Renderer`] |
//! | hide, shorten, restore, pin | [`Store::context`], [`ContextAction`] |
//! | ask why | [`Session::view`], [`View::explain`], [`View::chain`]; any moment: [`At`] |
//! | remember across sessions | [`Store::remember`], [`MemoryScope`] |
//! | follow | [`Store::subscribe`] |
//! | erase for good | [`Store::erase`] |
//!
//! All other names are in the modules: recorded facts ([`entry`] told, [`event`] kept, [`ids`]), the parts of answers
//! ([`answers`]), settings ([`settings`]), keys that wrap keys ([`keys`]). The modules behind these are public with the
//! feature `internals`, without any promise: acpdb's own crates use them.
//!
//! ```text
//! ids secret text event registry entry travel fold serve command codec storage log index verify store
//! <---------------- pure -------------------------------->  <----------- shell ----------->
//! ```
//!
//! A module may use the modules to its left, and none to its right. The pure part does no IO and knows no clock, randomness
//! or threads.
#![cfg_attr(
    not(feature = "internals"),
    allow(
        dead_code,
        unused_imports,
        unreachable_pub,
        unfulfilled_lint_expectations,
        clippy::pedantic,
        reason = "used by what the feature opens"
    )
)]

#[cfg(not(unix))]
compile_error!(
    "acpdb runs on Linux and macOS: its locks, and the door to its folder, are those of Unix. On Windows use it within WSL."
);

pub mod answers;
#[cfg(feature = "internals")]
pub mod codec;
#[cfg(not(feature = "internals"))]
mod codec;
#[cfg(feature = "internals")]
pub mod command;
#[cfg(not(feature = "internals"))]
mod command;
pub mod entry;
mod error;
pub mod event;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod failpoints;
#[cfg(not(feature = "internals"))]
mod failpoints;
#[cfg(feature = "internals")]
pub mod fold;
#[cfg(not(feature = "internals"))]
mod fold;
pub mod ids;
#[cfg(feature = "internals")]
pub mod index;
#[cfg(not(feature = "internals"))]
mod index;
pub mod keys;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod locks;
#[cfg(not(feature = "internals"))]
mod locks;
#[cfg(feature = "internals")]
pub mod log;
#[cfg(not(feature = "internals"))]
mod log;
#[cfg(feature = "internals")]
pub mod registry;
#[cfg(not(feature = "internals"))]
mod registry;
#[cfg(feature = "internals")]
pub mod secret;
#[cfg(not(feature = "internals"))]
mod secret;
#[cfg(feature = "internals")]
pub mod serve;
#[cfg(not(feature = "internals"))]
mod serve;
pub mod settings;
#[cfg(feature = "internals")]
pub mod storage;
#[cfg(not(feature = "internals"))]
mod storage;
#[cfg(feature = "internals")]
pub mod store;
#[cfg(not(feature = "internals"))]
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(feature = "internals")]
pub mod text;
#[cfg(not(feature = "internals"))]
mod text;
#[cfg(feature = "internals")]
pub mod vault;
#[cfg(not(feature = "internals"))]
mod vault;
#[cfg(feature = "internals")]
pub mod verify;
#[cfg(not(feature = "internals"))]
mod verify;

pub use command::memory::MemoryCommand;
pub use command::{ContextAction, Target};
pub use entry::{Entry, PartEntry, StreamInfo};
pub use error::Error;
pub use event::{Face, Recorded, Role, Usage};
pub use fold::{Chain, Explanation, ItemView, Policy};
pub use ids::{BodyId, ItemId, Micros, Seq, StreamId, Turn};
pub use registry::{Registry, ToolFacts};
pub use store::{
    ActReply, At, Atomicity, Batch, Builder, Commit, Context, Durability, Memory, MemoryScope, MessageStream,
    PlainText, Receipt, Redactor, Renderer, ServeOptions, Session, Step, Store, Subscription, Ticket, View,
};
