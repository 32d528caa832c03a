//! acpdb beside a running agent.
//!
//! ```text
//! host --JSON--> dialect --Told--> hook --Answer--> dialect --JSON--> host
//!                                   |
//!                                   '-> store: the host's recording so far, and facts that only the hook was told
//! plugin: answers a plug-in inside a host before each request; the plug-in changes the request
//! proxy: requests as they were really sent and billed, on the way to the provider
//! mcp: tools that a model calls, over the same store
//! attach / detach: the host's own settings, merged and taken apart again
//! ```
//!
//! A host tells, acpdb records and answers. Nothing here may stop a host: every fault of ours ends in an empty answer. Dialects
//! are pure; `hook` uses the public handle of the store; `attach`, `files` and `journal` touch the disk.

pub mod attach;
pub mod below;
pub mod birth;
pub mod busy;
pub mod compaction;
pub(crate) mod damage;
pub mod dialect;
pub mod due;
pub mod files;
pub mod gather;
pub mod growing;
pub mod hook;
pub mod host;
pub mod journal;
pub mod lost;
pub mod mcp;
pub mod plugin;
pub mod proxy;
pub mod recording;
pub mod requests;
mod taken_back;
pub mod told;

pub use host::{AttachMode, Host};

/// The found value; `None` if the store does not have it.
fn if_there<T>(found: Result<T, acpdb_engine::Error>) -> Result<Option<T>, acpdb_engine::Error> {
    match found {
        Err(acpdb_engine::Error::NotFound { .. }) => Ok(None),
        found => found.map(Some),
    }
}
