//! The list of stores that this user made here: `$XDG_STATE_HOME/acpdb/stores.jsonl`. Programs that run unasked, such as hooks, use only these where
//! they are found; the packages for Python and Node enter theirs into the same list.

use std::path::Path;

use acpdb_engine::store::OwnList;
use acpdb_live::journal;

use crate::settings::variable;

/// Name of a store's folder inside a project.
pub(crate) const FOLDER: &str = ".acpdb";

/// The list; `None` without a home.
fn list() -> Option<OwnList> {
    Some(OwnList::new(journal::folder(&variable)?.join("stores.jsonl")))
}

/// Whether a store was made here by this user.
pub(crate) fn is_own(folder: &Path) -> bool {
    list().is_some_and(|list| list.has(folder))
}

/// Refuses a folder in which this user made an encrypted store, if there is none now: a plain one would take its place.
///
/// # Errors
/// If it is so.
pub(crate) fn check_encrypted(folder: &Path) -> Result<(), acpdb_engine::Error> {
    list().map_or(Ok(()), |list| list.check_encrypted(folder))
}

/// Whether a new store in this folder will be found by those who only look upwards.
pub(crate) fn is_found_upwards(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == FOLDER)
}

/// Enters a store that was just made.
///
/// # Errors
/// If the list cannot be written; the store is there all the same.
pub(crate) fn enter(folder: &Path) -> Result<(), String> {
    let Some(list) = list() else { return Err("there is no home folder to keep the list in".to_owned()) };
    list.enter(folder).map_err(|error| crate::failure::chained(&error))
}
