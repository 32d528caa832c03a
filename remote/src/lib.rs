//! A store beyond its machine: its log, frame by frame, as write-once objects under one prefix.
//!
//! ```text
//! Log --> ship --> chain (epoch, fence, chunks, packs, segments) --> Remote: create, swap, put, get, list, delete
//!                                                                       |- MemoryRemote, FolderRemote, s3::S3Remote (feature `s3`)
//!                  folder <-- restore <-- read <------------------------'
//! ```
//!
//! `docs/REMOTE.md` has the objects to the byte and the rules of the chain, and is the authority. One store has one writer at a
//! time: who takes over raises the epoch in the head by compare and swap, and creates a fence where the former writer's next entry would go.
//! No clock decides anything. Nothing that is read is believed: every header, link and content is checked against the place before it.
//!
//! Not here: several stores read as one. Calls block; a host calls them on threads of its own.

mod ahead;
mod cache;
mod chain;
mod check;
mod encrypted;
mod error;
mod folder;
mod head;
mod look;
mod memory;
mod mirror;
mod names;
mod objects;
mod opened;
mod place;
#[cfg(feature = "postgres")]
pub mod postgres;
mod read;
mod rehearsal;
mod remote;
mod repair;
mod restore;
mod run;
#[cfg(feature = "s3")]
pub mod s3;
mod ship;
#[cfg(any(test, feature = "testing"))]
mod sim;
mod small;
mod status;
mod tail;
#[cfg(test)]
mod tests;
mod ways;

pub use chain::RemoteChain;
pub use check::{RemoteReport, RemoteViolation, check, to_fetch};
pub use encrypted::{EncryptedRemote, FindRing, MakeRing};
pub use error::{ChainError, RemoteUrlError};
pub use folder::FolderRemote;
pub use memory::MemoryRemote;
pub use mirror::{Mirrored, mirror, mirror_name};
pub use names::meta_key;
pub use opened::{RemoteOptions, RemoteStore, open, store_of};
pub use place::{RemotePlace, url_scheme};
pub use rehearsal::{RehearsedCount, RehearsedRemote};
pub use remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped};
pub use repair::{repair, with_head};
pub use restore::{RestoreOptions, RestoreUntil, restore, stores};
pub use ship::{ShipOptions, ShipProgress, Shipped, Shipper};
#[cfg(any(test, feature = "testing"))]
pub use sim::{SimRemote, SimRemoteFaults};
pub use status::{RemoteStatus, status};
