//! One file a verb: open the store, make one call, render.

pub(crate) mod append;
pub(crate) mod at;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod describe;
pub(crate) mod explain;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod policy;
pub(crate) mod reindex;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod todo;
pub(crate) mod verify;
