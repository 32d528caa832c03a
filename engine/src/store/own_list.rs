//! The list of stores that a user made here: programs that run unasked, such as hooks, use only these where they are found.
//!
//! ```text
//! a store is made -> a line in the list      a store is found -> is its line there?
//! {"store":"6b6f4218..","mark":"91c0..","path":"/w/app/.acpdb"}
//! ```
//!
//! A store that lies in a folder of a project may have come with it. Its maker decides what it says, and would get what is written
//! into it. Its files belong to the user who cloned it, so they tell nothing; this list, which lies outside of all projects, does. The
//! mark comes from the store's secret, so that a store which only bears a known id is none of these; and a store that was moved is.
//! A line tells of an encrypted store, too: where one was made, no plain one takes its place unasked while it is away.
//! Callers say where the list is: the engine reads no environment.

use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::io::{Error as IoError, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::identity::{StoreIdentity, identity_of};
use crate::error::Error;

/// Largest list that is read: some ten thousand stores.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A list of the stores that a user made.
#[derive(Debug, Clone)]
pub struct OwnList {
    path: PathBuf,
}

/// A store of the user's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct OwnStore {
    store: String,
    #[serde(default)]
    mark: Option<String>,
    /// Where it was made, as text: a path of other bytes is compared by its mark alone.
    #[serde(serialize_with = "crate::text::paths::serialize_shown")]
    path: PathBuf,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    encrypted: bool,
}

impl OwnList {
    /// The list in a file, which need not exist. Nothing is read.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The lines that can be read. A list that cannot be read names no store.
    fn known(&self) -> Vec<OwnStore> {
        let mut text = String::new();
        // A list that others may write says what they want.
        let folder = self.path.parent().unwrap_or_else(|| Path::new("/"));
        if [folder, &self.path].into_iter().any(|path| path.metadata().is_ok_and(|found| is_loose(&found))) {
            return Vec::new();
        }
        // Without a list no store was made here.
        let Ok(file) = std::fs::File::open(&self.path) else { return Vec::new() };
        if file.take(FILE_BYTES_MAX).read_to_string(&mut text).is_err() {
            return Vec::new();
        }
        // A torn line costs itself.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Whether the store in a folder is on the list. Cost: the list and two small files.
    #[must_use]
    pub fn has(&self, folder: &Path) -> bool {
        let known = self.known();
        let path = resolved(folder);
        match identity_of(folder) {
            Ok(Some(found)) => known.iter().any(|own| is_same(own, &found, &path)),
            Ok(None) => false,
            // The store file is damaged: a store at a known place is not taken for a stranger's.
            Err(_) => known.iter().any(|own| own.path == path),
        }
    }

    /// Checks that no plain store takes the place of an encrypted one that was made in a folder and is away, such as on a disk that is not mounted.
    ///
    /// # Errors
    /// [`Error::Locked`] if the newest line about the folder tells of an encrypted store, and there is none now.
    pub fn check_encrypted(&self, folder: &Path) -> Result<(), Error> {
        let path = resolved(folder);
        if !self.newest_at(&path).is_some_and(|newest| newest.encrypted) {
            return Ok(());
        }
        let instead = match identity_of(folder) {
            // Opening it tells of the damage.
            Ok(Some(found)) if found.is_encrypted => return Ok(()),
            Err(_) => return Ok(()),
            Ok(Some(_)) => "one that is not encrypted lies there",
            Ok(None) => "it is not there",
        };
        let path = crate::text::paths::shown(&path);
        let word = crate::text::words::shell_word(&path);
        let detail = format!(
            "you made an encrypted store in {path}, and now {instead}; put it back, or let a plain one be used there: acpdb --db {word} init"
        );
        Err(Error::Locked { detail })
    }

    /// The line about a folder that was entered last.
    fn newest_at(&self, path: &Path) -> Option<OwnStore> {
        self.known().into_iter().rfind(|own| own.path == path)
    }

    /// Enters a store that was just made. Durable when it returns.
    ///
    /// # Errors
    /// [`Error::Io`] if the list cannot be written; the store is there all the same.
    pub fn enter(&self, folder: &Path) -> Result<(), Error> {
        let fail = |action, path: &Path, source: IoError| Error::Io { action, path: path.to_owned(), source };
        let path = folder.canonicalize().map_err(|error| fail("resolve", folder, error))?;
        let Some(found) = identity_of(&path)? else { return Ok(()) };
        let own =
            OwnStore { store: found.store.to_hex(), mark: found.mark, path, encrypted: found.is_encrypted };
        if self.newest_at(&own.path).is_some_and(|newest| newest == own) {
            return Ok(());
        }
        let write = || -> Result<(), IoError> {
            let mut line = serde_json::to_vec(&own)?;
            line.push(b'\n');
            let folder = self.path.parent().unwrap_or_else(|| Path::new("/"));
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
            file.write_all(&line)?;
            file.sync_all()
        };
        write().map_err(|error| fail("write", &self.path, error))
    }
}

/// A path without links, as far as its folders are there.
fn resolved(folder: &Path) -> PathBuf {
    // Without a working folder, a path that needs one leads nowhere.
    super::unnamed::resolved(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Whether others than this user decide what is there.
fn is_loose(found: &Metadata) -> bool {
    found.uid() != crate::storage::effective_user() || found.mode() & 0o022 != 0
}

fn is_same(own: &OwnStore, found: &StoreIdentity, path: &Path) -> bool {
    let is_known = match (&own.mark, &found.mark) {
        (Some(own), Some(found)) => own == found,
        (None, None) => own.path == path,
        _ => false,
    };
    is_known && own.store == found.store.to_hex()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::Store;

    /// The user who clones a repository owns its files: a store in it was taken for the user's own.
    #[test]
    fn a_store_is_on_the_list_where_it_was_made_and_where_it_was_moved_and_a_likeness_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let list = OwnList::new(at("state/stores.jsonl"));
        for name in ["mine", "theirs"] {
            let store = Store::builder(at(name)).any_file_system().open().unwrap();
            store.close().unwrap();
        }
        assert!(!list.has(&at("mine")));
        list.enter(&at("mine")).unwrap();
        list.enter(&at("mine")).unwrap();
        assert_eq!(std::fs::read_to_string(at("state/stores.jsonl")).unwrap().lines().count(), 1);
        assert_eq!(
            (list.has(&at("mine")), list.has(&at("theirs")), list.has(&at("none"))),
            (true, false, false)
        );
        // Another store with its id, which proofs tell to others.
        std::fs::copy(at("mine/acpdb.json"), at("theirs/acpdb.json")).unwrap();
        assert!(!list.has(&at("theirs")));
        std::fs::rename(at("mine"), at("moved")).unwrap();
        assert!(list.has(&at("moved")));
        // A loose mask left the folder open to all: another user could decide which stores are used.
        let set =
            |name: &str, mode| std::fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        for (name, loose, tight) in
            [("state", 0o777, 0o700), ("state", 0o770, 0o755), ("state/stores.jsonl", 0o666, 0o600)]
        {
            set(name, loose);
            assert!(!list.has(&at("moved")), "{name} {loose:o}");
            set(name, tight);
            assert!(list.has(&at("moved")), "{name} {tight:o}");
        }
        std::fs::write(at("state/stores.jsonl"), "torn\n").unwrap();
        assert!(!list.has(&at("moved")));
    }

    /// In a folder with a space in its name, the command led elsewhere.
    #[test]
    fn the_command_of_a_refusal_names_the_folder_for_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let list = OwnList::new(folder.path().join("state/stores.jsonl"));
        let at = folder.path().canonicalize().unwrap().join("it's a disk");
        let ring = std::sync::Arc::new(crate::keys::RawKeyRing::new("a ring", &[7; 32]));
        Store::builder(&at).any_file_system().encrypt(ring).open().unwrap().close().unwrap();
        list.enter(&at).unwrap();
        std::fs::remove_dir_all(&at).unwrap();
        let refused = list.check_encrypted(&at).unwrap_err().to_string();
        let word = format!("'{}'", at.display().to_string().replace('\'', "'\\''"));
        assert!(refused.contains(&format!("acpdb --db {word} init")), "{refused}");
    }

    /// The disk of an encrypted store was not mounted, and the next hook made a plain store in its place, without a word.
    #[test]
    fn an_encrypted_store_that_is_away_is_replaced_only_by_one_that_was_entered() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let list = OwnList::new(at("state/stores.jsonl"));
        let plain = |name: &str| Store::builder(at(name)).any_file_system().open().unwrap().close().unwrap();
        let ring = std::sync::Arc::new(crate::keys::RawKeyRing::new("a ring", &[7; 32]));
        std::fs::create_dir(at("disk")).unwrap();
        let store = Store::builder(at("disk/store")).any_file_system().encrypt(ring).open().unwrap();
        store.close().unwrap();
        plain("other");
        for name in ["disk/store", "other"] {
            list.enter(&at(name)).unwrap();
            list.check_encrypted(&at(name)).unwrap();
        }
        let is_refused = |name: &str| matches!(list.check_encrypted(&at(name)), Err(Error::Locked { .. }));
        std::fs::rename(at("disk"), at("away")).unwrap();
        assert!(is_refused("disk/store"), "with the folder above it");
        std::fs::create_dir_all(at("disk/store")).unwrap();
        assert!(is_refused("disk/store"), "an empty folder in its place");
        std::os::unix::fs::symlink("disk", at("link")).unwrap();
        assert!(is_refused("link/store") && is_refused("link/../disk/store"), "by another way");
        plain("disk/store");
        assert!(is_refused("disk/store"), "a plain store in its place");
        assert!(!is_refused("other") && !is_refused("none") && !is_refused("away/store"));
        list.enter(&at("disk/store")).unwrap();
        assert!(!is_refused("disk/store"), "which was entered");
        std::fs::remove_dir_all(at("disk")).unwrap();
        std::fs::rename(at("away"), at("disk")).unwrap();
        list.enter(&at("disk/store")).unwrap();
        std::fs::remove_dir_all(at("disk")).unwrap();
        assert!(is_refused("disk/store"), "entered again");
    }
}
