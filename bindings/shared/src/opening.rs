//! The options of opening a store.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acpdb_engine::keys::{FileKeyRing, KeyRing, PassphraseKeyRing};
use acpdb_engine::store::check_subject;
use acpdb_engine::{Durability, Store};
use serde::Deserialize;

use crate::fault::Fault;

/// The options of `open`. They have no form for messages: a passphrase is among them.
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
    /// The file with the key of an encrypted store. A store that is made with it is encrypted; a missing file is made.
    pub key_file: Option<PathBuf>,
    /// The passphrase, in place of the key file.
    pub passphrase: Option<String>,
    /// The subject of new sessions that name none; the store has to be encrypted.
    pub subject: Option<String>,
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
        let is_new = self.path.join("acpdb.json").symlink_metadata().is_err();
        let may_make = is_new && self.create && !self.read_only;
        if let Some(name) = &self.subject {
            // Checked before a key is made for a store that is then refused.
            check_subject(name)?;
            if may_make && self.key_file.is_none() && self.passphrase.is_none() {
                return Err(Fault::invalid(format!(
                    "there is no store in {}, and a subject needs an encrypted one; give a key file or a passphrase with it",
                    self.path.display()
                )));
            }
        }
        let ring = ring(self.key_file, self.passphrase, may_make)?;
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
        if let Some(ring) = ring {
            builder = builder.keys(ring);
        }
        if let Some(name) = self.subject {
            builder = builder.subject(name);
        }
        Ok(builder.open()?)
    }
}

/// The ring for an encrypted store, if the caller names one. `may_make`: a missing key file is made.
pub(crate) fn ring(
    key_file: Option<PathBuf>,
    passphrase: Option<String>,
    may_make: bool,
) -> Result<Option<Arc<dyn KeyRing>>, Fault> {
    match (key_file, passphrase) {
        (None, None) => Ok(None),
        (Some(path), None) => Ok(Some(Arc::new(file_ring(&path, may_make)?))),
        (None, Some(text)) => {
            let ring = PassphraseKeyRing::new(&text).map_err(|error| Fault::invalid(error.to_string()))?;
            Ok(Some(Arc::new(ring)))
        }
        (Some(_), Some(_)) => Err(Fault::invalid("a store has a key file or a passphrase; give one of them")),
    }
}

fn file_ring(path: &Path, may_make: bool) -> Result<FileKeyRing, Fault> {
    let found = match FileKeyRing::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && may_make => made(path),
        found => found,
    };
    found.map_err(|error| {
        let path = path.display();
        Fault::new(
            "locked",
            match error.kind() {
                ErrorKind::NotFound => {
                    format!(
                        "there is no key {path}; give the file that the store was made with, or put it back"
                    )
                }
                _ => format!("the key {path} cannot be used: {error}"),
            },
        )
    })
}

/// A new key in a new file. The file gets its name once it is whole: another process that makes the same store meanwhile finds no
/// file or the whole file, and both have one key.
fn made(path: &Path) -> io::Result<FileKeyRing> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}-{number}", std::process::id()));
    let unnamed = PathBuf::from(name);
    FileKeyRing::create(&unnamed)?;
    let linked = std::fs::hard_link(&unnamed, path);
    std::fs::remove_file(&unnamed)?;
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        // Not every file system has links.
        Err(_) => {
            FileKeyRing::create(path)?;
        }
    }
    // The key must be durable before the store is. An error is ignored, since not every system syncs folders.
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let _ = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    }
    FileKeyRing::open(path)
}
