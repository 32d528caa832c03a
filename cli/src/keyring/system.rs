//! The keyring of the system: Keychain on macOS, else the secret service of the session bus.
//!
//! A client of each is a crate of the `keyring` family, on the common crate `keyring-core`. Tests have its sample keyring, in
//! memory.

use std::sync::{Arc, OnceLock};

use acpdb_engine::keys::Zeroizing;
use keyring_core::{CredentialStore, Entry, Error};

use super::Trouble;

/// The service of acpdb's entries, as keyrings show it.
const SERVICE: &str = "acpdb";

fn trouble(error: Error) -> Trouble {
    match error {
        Error::NoEntry => Trouble::NoEntry,
        Error::NoStorageAccess(why) => Trouble::Locked(why.to_string()),
        Error::Ambiguous(entries) => Trouble::Several(entries.len()),
        // The text never holds the bytes that were read: they may be a key.
        Error::BadEncoding(_) | Error::BadDataFormat(..) => Trouble::Other("the entry is no text".to_owned()),
        error => Trouble::Other(error.to_string()),
    }
}

#[cfg(test)]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(keyring_core::mock::Store::new()?)
}

#[cfg(all(not(test), target_os = "macos"))]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(all(not(test), not(target_os = "macos")))]
fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

/// An entry. All entries use one connection.
pub(super) fn entry(name: &str) -> Result<Entry, Trouble> {
    static KEYRING: OnceLock<Arc<CredentialStore>> = OnceLock::new();
    let keyring = if let Some(keyring) = KEYRING.get() {
        keyring
    } else {
        let made = connect().map_err(|error| Trouble::Absent(error.to_string()))?;
        KEYRING.get_or_init(|| made)
    };
    keyring.build(SERVICE, name, None).map_err(trouble)
}

pub(super) fn get(name: &str) -> Result<Zeroizing<String>, Trouble> {
    entry(name)?.get_password().map(Zeroizing::new).map_err(trouble)
}

pub(super) fn set(name: &str, text: &str) -> Result<(), Trouble> {
    entry(name)?.set_password(text).map_err(trouble)
}

pub(super) fn remove(name: &str) -> Result<(), Trouble> {
    entry(name)?.delete_credential().map_err(trouble)
}
