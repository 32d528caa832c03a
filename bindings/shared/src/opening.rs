//! The options of opening a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::store::OwnList;
use acpdb_engine::{Durability, Store};
use serde::Deserialize;

use crate::fault::Fault;

/// The options of `open`.
#[derive(Clone, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "options of one call, each with a name")]
pub struct Opening {
    /// The folder.
    pub path: PathBuf,
    /// Changes nothing in the folder.
    pub read_only: bool,
    /// Makes the store if there is none.
    pub create: bool,
    /// `sync` or `os`.
    pub durability: String,
    /// Seconds that an append waits for another process.
    pub lock_wait: f64,
    /// Keeps an index.
    pub index: bool,
    /// Takes secrets out of recorded texts.
    pub redact: bool,
    /// Allows file systems whose locks and syncs are not known to hold.
    pub any_file_system: bool,
}

impl Opening {
    /// Opens the store, making or recovering it as needed.
    pub fn open(self) -> Result<Store, Fault> {
        let durability = match self.durability.as_str() {
            "sync" => Durability::Sync,
            "os" => Durability::Os,
            other => return Err(Fault::invalid(format!("durability is 'sync' or 'os', not {other:?}"))),
        };
        let lock_wait = Duration::try_from_secs_f64(self.lock_wait)
            .map_err(|_| Fault::invalid(format!("lock_wait is 0 seconds or more, not {}", self.lock_wait)))?;
        let path = self.path;
        let mut builder = Store::builder(&path)
            .registry(acpdb_hosts::registry())
            .create(self.create)
            .durability(durability)
            .lock_wait(lock_wait)
            .index(self.index);
        if self.read_only {
            builder = builder.read_only();
        }
        if self.any_file_system {
            builder = builder.any_file_system();
        }
        if self.redact {
            let rules =
                acpdb_hosts::redact::Rules::usual().map_err(|error| Fault::invalid(error.to_string()))?;
            builder = builder.redactor(Arc::new(rules));
        }
        let is_new = is_found_upwards(&path) && path.join("acpdb.json").symlink_metadata().is_err();
        let store = builder.open()?;
        if is_new && let Some(list) = own_list(&|name| std::env::var(name).ok()) {
            // A list that cannot be written keeps no program from recording: `acpdb trust` names the store as well.
            let _ = list.enter(store.root());
        }
        Ok(store)
    }
}

/// Whether the command line and hooks find a store by this folder's name.
fn is_found_upwards(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".acpdb")
}

/// The list of stores that this user made, which the command line keeps: hooks use only these where they find them.
fn own_list(variable: &dyn Fn(&str) -> Option<String>) -> Option<OwnList> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(OwnList::new(state.join("acpdb/stores.jsonl")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_that_of_the_command_line() {
        let list = |variables: &[(&str, &str)]| {
            let found = own_list(&|name| {
                let value = variables.iter().find(|(known, _)| *known == name);
                value.map(|(_, value)| (*value).to_owned())
            });
            found.map(|list| format!("{list:?}"))
        };
        assert!(list(&[]).is_none());
        let home = list(&[("HOME", "/h"), ("XDG_STATE_HOME", "")]).unwrap_or_default();
        assert!(home.contains("/h/.local/state/acpdb/stores.jsonl"), "{home}");
        let state = list(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]).unwrap_or_default();
        assert!(state.contains("/s/acpdb/stores.jsonl"), "{state}");
        assert!(is_found_upwards(Path::new("/w/.acpdb")) && !is_found_upwards(Path::new("agent.db")));
    }
}
