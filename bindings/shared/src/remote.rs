//! Stores beyond their machine: at a folder of any mounted disk, or in a bucket.

use std::path::PathBuf;

use acpdb_engine::Store;
use acpdb_engine::store::identity_of;
use acpdb_remote::{ChainError, RemoteError, RemoteOptions, RemotePlace, store_of};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::opening::Opening;

/// Opens the store of a name at a URL, to be written below a folder of this machine, and takes it over from the worker that has it.
///
/// Each answer of the store waits until what was recorded is there. With a key only an encrypted store is opened, and none is made.
pub fn opened_beyond(folder: PathBuf, it: &Arguments) -> Result<Store, Fault> {
    let opening = Opening::beyond(folder.clone(), it)?;
    let (ring, settings) = (opening.ring()?, opening.settings()?);
    let remote =
        RemotePlace::of_url(it.text("url")?).map_err(ChainError::from)?.open().map_err(ChainError::from)?;
    let is_keyed = ring.is_some();
    let options = RemoteOptions::new(folder)
        .owner(it.text("owner")?)
        .create(opening.create && !is_keyed)
        .store(move |builder| match ring {
            Some(ring) => settings(builder).keys(ring),
            None => settings(builder),
        });
    let opened = acpdb_remote::open(remote, store_of(it.text("name")?), options)?;
    let store = opened.store().clone();
    if is_keyed && !identity_of(store.root())?.is_some_and(|found| found.is_encrypted) {
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
            ChainError::Remote(error) if error.may_pass() => "unshipped",
            _ => "storage",
        };
        Self::new(code, error.to_string())
    }
}
