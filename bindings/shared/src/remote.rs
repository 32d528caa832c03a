//! Stores beyond their machine: at a folder of any mounted disk, or in a bucket.

use std::path::PathBuf;
use std::sync::Arc;

use acpdb_engine::Store;
use acpdb_engine::store::identity_of;
use acpdb_remote::{ChainError, RemoteError, RemoteOptions, RemotePlace, status, store_of};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::opening::Opening;

/// Opens the store of a name at a URL, to be written below a folder of this machine, and takes it over from the worker that has it.
///
/// Each answer of the store waits until what was recorded is there. With a key a new store has encrypted objects there; one that is there has to be encrypted, or
/// its objects.
pub fn opened_beyond(folder: PathBuf, it: &Arguments) -> Result<Store, Fault> {
    let opening = Opening::beyond(folder.clone(), it)?;
    let (ring, settings) = (opening.ring()?, opening.settings()?);
    let place = RemotePlace::of_url(it.text("url")?).map_err(ChainError::from)?;
    let (mut remote, id) = (place.open().map_err(ChainError::from)?, store_of(it.text("name")?));
    let mut own_key = None;
    if let Some(ring) = ring {
        remote = remote.ring(Arc::clone(&ring));
        if remote.is_sealed(id).map_err(ChainError::from)? || status(&remote, id, None)?.is_none() {
            remote = remote.seal_new(Box::new(move || Ok(Arc::clone(&ring))));
        } else {
            own_key = Some(ring);
        }
    }
    let is_own = own_key.is_some();
    let options =
        RemoteOptions::new(folder).owner(it.text("owner")?).create(opening.create).store(move |builder| {
            match own_key {
                Some(ring) => settings(builder).keys(ring),
                None => settings(builder),
            }
        });
    let opened = acpdb_remote::open(Arc::new(remote), id, options)?;
    let store = opened.store().clone();
    if is_own && !identity_of(store.root())?.is_some_and(|found| found.is_encrypted) {
        return Err(Fault::new("locked", "the store is not encrypted, and a key is given; leave it out"));
    }
    Ok(store)
}

impl From<ChainError> for Fault {
    fn from(error: ChainError) -> Self {
        let code = match &error {
            ChainError::Store(error) => return error.into(),
            ChainError::Fenced { .. } | ChainError::Contended => "fenced",
            ChainError::NoStore { .. } => "not_found",
            ChainError::Url(_) => "invalid",
            ChainError::SecretMissing { .. } => "read_only",
            ChainError::Newer { .. } => "newer_format",
            ChainError::TooLarge { .. } => "too_large",
            ChainError::Unsound { .. }
            | ChainError::Missing { .. }
            | ChainError::HeadLost { .. }
            | ChainError::Diverged { .. }
            | ChainError::Damaged(_) => "corrupt",
            ChainError::Remote(RemoteError::Full { .. }) => "no_space",
            ChainError::Remote(RemoteError::Locked { .. }) => "locked",
            ChainError::Remote(error) if error.may_pass() => "unshipped",
            _ => "storage",
        };
        Self::new(code, error.to_string())
    }
}
