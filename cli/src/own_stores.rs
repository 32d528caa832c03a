//! The list of stores that this user made here: programs that run unasked, such as hooks, use only these where they are found.
//!
//! ```text
//! a store is made -> a line in $XDG_STATE_HOME/acpdb/stores.jsonl      a store is found -> is its line there?
//! {"store":"6b6f4218..","mark":"91c0..","path":"/w/app/.acpdb"}
//! ```
//!
//! A store that lies in a folder of a project may have come with it. Its maker decides what it says, and would get what is written
//! into it. Its files belong to the user who cloned it, so they tell nothing; this list, which lies outside of all projects, does. The
//! mark comes from the store's secret, so that a store which only bears a known id is none of these; and a store that was moved is.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use acpdb_engine::store::{StoreIdentity, identity_of};
use acpdb_live::journal;
use serde::{Deserialize, Serialize};

use crate::settings::variable;

/// Name of a store's folder inside a project.
pub(crate) const FOLDER: &str = ".acpdb";

/// Largest list that is read: some ten thousand stores.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A store of the user's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct OwnStore {
    store: String,
    #[serde(default)]
    mark: Option<String>,
    /// Where it was made, as text: a path of other bytes is compared by its mark alone.
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: PathBuf,
}

/// The list; `None` without a home.
fn list() -> Option<PathBuf> {
    Some(journal::folder(&variable)?.join("stores.jsonl"))
}

/// The lines that can be read. A list that cannot be read names no store.
fn known(list: &Path) -> Vec<OwnStore> {
    let mut text = String::new();
    // Without a list no store was made here.
    let Ok(file) = std::fs::File::open(list) else { return Vec::new() };
    if file.take(FILE_BYTES_MAX).read_to_string(&mut text).is_err() {
        return Vec::new();
    }
    // A torn line costs itself.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Whether a store was made here by this user.
pub(crate) fn is_own(folder: &Path) -> bool {
    let Some(list) = list() else { return false };
    let known = known(&list);
    let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    match identity_of(folder) {
        Ok(Some(found)) => known.iter().any(|own| is_same(own, &found, &path)),
        Ok(None) => false,
        // The store file is damaged: what lies where one was made is not taken for a stranger's.
        Err(_) => known.iter().any(|own| own.path == path),
    }
}

fn is_same(own: &OwnStore, found: &StoreIdentity, path: &Path) -> bool {
    let is_known = match (&own.mark, &found.mark) {
        (Some(own), Some(found)) => own == found,
        (None, None) => own.path == path,
        _ => false,
    };
    is_known && own.store == found.store.to_hex()
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
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", list.display());
    let path = folder.canonicalize().map_err(|error| said(&error))?;
    let Some(found) = identity_of(&path).map_err(|error| said(&error))? else { return Ok(()) };
    let own = OwnStore { store: found.store.to_hex(), mark: found.mark, path };
    if known(&list).contains(&own) {
        return Ok(());
    }
    let mut line = serde_json::to_vec(&own).map_err(|error| said(&error))?;
    line.push(b'\n');
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(list.parent().unwrap_or_else(|| Path::new("/")))?;
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(options.create(true).append(true), 0o600);
        let mut file = options.open(&list)?;
        file.write_all(&line)?;
        file.sync_all()
    };
    write().map_err(|error| said(&error))
}
