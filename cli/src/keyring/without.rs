//! In the place of the system's keyring, in a program that was built without it.

use acpdb_engine::keys::Zeroizing;

use super::Trouble;

pub(super) fn get(_: &str) -> Result<Zeroizing<String>, Trouble> {
    Err(Trouble::NotBuilt)
}

pub(super) fn set(_: &str, _: &str) -> Result<(), Trouble> {
    Err(Trouble::NotBuilt)
}

pub(super) fn remove(_: &str) -> Result<(), Trouble> {
    Err(Trouble::NotBuilt)
}
