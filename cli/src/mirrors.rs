//! Stores below a URL, as folders of this machine that are read: `--db file:///FOLDER`, `--db s3://BUCKET/PREFIX`.
//!
//! ```text
//! $XDG_CACHE_HOME/acpdb/remotes/DIGEST-OF-URL/STORE/ID     each verified before it has its name; removed, it is made anew
//! ```
//!
//! No name from the prefix becomes the name of a file here, but for the ids of stores, which are read as such.

use std::path::{Path, PathBuf};

use acpdb_engine::ids::StoreId;
use acpdb_remote::{ChainError, EncryptedRemote, Mirrored, RemoteError, mirror, mirror_name};

use crate::commands::remote_url::{self, RemoteUrl};
use crate::failure::{Code, Failure};
use crate::rings;
use crate::settings::path_in;
use crate::spread;

/// Most stores that are looked at a time: each waits for answers.
const AT_A_TIME: usize = 16;

/// Whether a name of a store is a URL.
pub(crate) fn is_url(named: &Path) -> bool {
    remote_url::scheme(named).is_some()
}

/// A mirror of a store that is encrypted, there or at all: a key that is given means one.
fn encrypted(remote: &EncryptedRemote, store: StoreId, done: Mirrored) -> Result<Mirrored, ChainError> {
    if rings::is_encrypted(&done.folder) || remote.is_sealed(store)? {
        return Ok(done);
    }
    let what = format!("store {store} is not encrypted, and a key was given");
    Err(RemoteError::Locked { what }.into())
}

/// The folders of the stores below a URL, and what is to be told of those that are left out, or that were set back.
pub(crate) fn folders(named: &Path, key_file: Option<&Path>) -> Result<(Vec<PathBuf>, Vec<String>), Failure> {
    let url = RemoteUrl::read(named)?;
    let (remote, found) = url.stores(key_file)?;
    let is_key_given = key_file.is_some() || rings::passphrase_is_for_stores()?;
    let failed = |error: ChainError| url.failed(error, Code::Failure);
    let below = path_in("XDG_CACHE_HOME").or_else(|| path_in("HOME").map(|home| home.join(".cache")));
    let below = below
        .ok_or_else(|| Failure::usage("there is no folder for a cache").hint("set HOME or XDG_CACHE_HOME"))?;
    let place = below.join("acpdb/remotes").join(mirror_name(url.typed()));
    let (mut folders, mut warnings, mut first) = (Vec::new(), Vec::new(), None);
    let done = spread::silently(AT_A_TIME, &found, |store| {
        let done = mirror(&*remote, *store, &place.join(store.to_hex()));
        Ok(done.and_then(|done| if is_key_given { encrypted(&remote, *store, done) } else { Ok(done) }))
    })?;
    for (store, done) in found.into_iter().zip(done) {
        match done {
            Ok(Mirrored { folder, is_set_back, .. }) => {
                if is_set_back {
                    warnings
                        .push(format!("store {store} was set back at {}: shown is what it had", url.shown()));
                }
                folders.push(folder);
            }
            Err(error) => {
                let failure = failed(error);
                warnings.push(format!("store {store} is left out: {}", failure.message));
                first = first.or(Some(failure));
            }
        }
    }
    match first.filter(|_| folders.is_empty()) {
        Some(failure) => Err(failure),
        None => Ok((folders, warnings)),
    }
}
