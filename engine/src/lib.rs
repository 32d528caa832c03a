//! The acpdb store: an append-only log of what an agent saw and did, folded into its current context and full history.
//!
//! ```
//! use acpdb_engine::{Entry, Role, Store, StreamInfo};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("store");
//! let store = Store::builder(&folder).open()?;
//! let session = store.session(StreamInfo::session("my-host", "ses_01"));
//! let _ = session.append([Entry::prompt("p1"), Entry::message("p1", Role::User, "why is the build red?")])?; // durable
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
//! | send to a model | `Step::begin`, `Step::context` of `acpdb-serve`, the crate above |
//! | hide, shorten, restore, pin | [`Store::context`], [`ContextAction`] |
//! | ask why | [`Session::view`], [`View::explain`], [`View::chain`]; any moment: [`At`] |
//! | remember across sessions | [`Store::remember`], [`MemoryScope`] |
//! | follow | [`Store::subscribe`] |
//! | erase for good | [`Store::erase`] |
//!
//! All other names are in the modules: recorded facts ([`entry`] told, [`event`] kept, [`ids`]), the parts of answers
//! ([`answers`]), settings ([`settings`]), keys that wrap keys ([`keys`]).
//!
//! This is the inner crate. Add `acpdb`, which names what is promised: the root and the six modules above. The other modules
//! are public for acpdb's own crates, without any promise.
//!
//! ```text
//! ids secret text event registry entry fold command codec storage log index verify store
//! <---------------- pure ------------------->  <----------- shell ----------->
//! ```
//!
//! A module may use the modules to its left, and none to its right. The pure part does no IO and knows no clock, randomness
//! or threads.

#[cfg(not(unix))]
compile_error!(
    "acpdb runs on Linux and macOS: its locks, and the door to its folder, are those of Unix. On Windows use it within WSL."
);

pub mod answers;
pub mod codec;
pub mod command;
pub mod entry;
mod error;
pub mod event;
#[doc(hidden)]
pub mod failpoints;
pub mod fold;
pub mod ids;
pub mod index;
pub mod keys;
#[doc(hidden)]
pub mod locks;
pub mod log;
pub mod registry;
pub mod secret;
pub mod settings;
pub mod storage;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod vault;
pub mod verify;

pub use command::memory::MemoryCommand;
pub use command::{ContextAction, Target};
pub use entry::{Entry, PartEntry, StreamInfo};
pub use error::Error;
pub use event::{Face, Recorded, Role, Usage};
pub use fold::{Chain, Explanation, ItemView, Policy};
pub use ids::{BodyId, ItemId, Micros, Seq, StreamId, Turn};
pub use registry::{Registry, ToolFacts};
pub use store::{
    ActReply, At, Atomicity, Batch, Builder, Commit, Durability, Memory, MemoryScope, MessageStream, Receipt,
    Redactor, Session, Store, Subscription, Ticket, View,
};
