//! Stores beyond their machine: at a folder of any mounted disk, in a bucket (feature `s3`), or in a database (feature `postgres`).
//!
//! A worker opens the store of a session, records, and ends; the next one, on any machine, goes on. No server, lease or clock is between them: each commit is
//! acknowledged once it is an object there, and who opens a store takes it from the worker that had it.
//!
//! ```
//! use acpdb::remote::{self, RemoteOptions};
//! use acpdb::{Entry, Error, Role, StreamInfo};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("acpdb-remote-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let url = format!("file://{}/disk", folder.display());
//! # let options = |name: &str| RemoteOptions::new(folder.join(name)).store(|store| store.any_file_system());
//! // let (url, options) = ("s3://bucket/agents", |folder: &str| RemoteOptions::new(folder));
//! let id = remote::store_of("session-4711"); // the same in every worker
//! let first = remote::open(&url, id, options("worker-1"))?;
//! let session = |of: &remote::RemoteStore| of.store().session(StreamInfo::session("my-host", "4711"));
//! let _ = session(&first).append([Entry::message("m1", Role::User, "hello")])?; // is at the remote now
//!
//! let second = remote::open(&url, id, options("worker-2"))?; // takes it over, with all that was acknowledged
//! assert_eq!(session(&second).view()?.history().len(), 1);
//! let late = session(&first).append([Entry::message("m2", Role::User, "too late")]);
//! assert!(matches!(late, Err(Error::Fenced { epoch: 2 })));
//! # drop((first, second));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```

pub use acpdb_remote::{
    ChainError, RemoteError, RemoteOptions, RemotePlace, RemoteStore, RemoteUrlError, Shipped, store_of,
};

use std::sync::Arc;

use acpdb_remote::EncryptedRemote;

use crate::hosts;
use crate::ids::StoreId;
use crate::keys::KeyRing;

/// Opens a store below a URL, and takes it over from the worker that has it, with the tools of all hosts that acpdb knows. When an append of it returns, the commit is
/// at the remote.
///
/// `url` is `file:///FOLDER`; with the feature `s3`, `s3://BUCKET/PREFIX`; with the feature `postgres`, `postgres://HOST/DATABASE/PREFIX`. Credentials are those of
/// the variables `AWS_*` or `PG*` and of the user's profile. Blocks until answers are there.
///
/// # Errors
/// [`ChainError::Url`] for a URL that names no remote, and those of a remote, such as [`ChainError::Fenced`] if another worker took the store over
/// meanwhile, and [`ChainError::SecretMissing`] if the store was shipped to be read alone.
pub fn open(url: &str, id: StoreId, options: RemoteOptions) -> Result<RemoteStore, ChainError> {
    open_at(RemotePlace::of_url(url)?.open()?, id, options)
}

/// [`open`], of a store whose objects cannot be read at the remote: they are encrypted with a key of the store, which the ring wraps and which lies there, wrapped.
/// A store of which nothing is there yet begins so; one that began as it is stays so. Without its wrapped key, `s/STORE/meta/object-key`, a store is noise.
///
/// # Errors
/// As [`open`]; [`RemoteError::Locked`] if the ring does not open the store, or it is not encrypted there.
pub fn open_encrypted(
    url: &str,
    id: StoreId,
    ring: Arc<dyn KeyRing>,
    options: RemoteOptions,
) -> Result<RemoteStore, ChainError> {
    let remote = RemotePlace::of_url(url)?.open()?.ring(Arc::clone(&ring));
    let remote = remote.seal_new(Box::new(move || Ok(Arc::clone(&ring))));
    open_at(remote, id, options)
}

fn open_at(remote: EncryptedRemote, id: StoreId, options: RemoteOptions) -> Result<RemoteStore, ChainError> {
    let options = options.by_default(|store| store.registry(hosts::registry()));
    acpdb_remote::open(Arc::new(remote), id, options)
}
