//! The options of opening a store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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
        let mut builder = Store::builder(self.path)
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
        Ok(builder.open()?)
    }
}
