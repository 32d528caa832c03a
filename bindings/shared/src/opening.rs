//! The options of opening a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::keys::{FileKeyRing, KeyRing, PassphraseKeyRing};
use acpdb_engine::store::{Builder, OwnList, identity_of};
use acpdb_engine::{Durability, Store};

use crate::arguments::Arguments;
use crate::fault::Fault;

/// The options of `open`.
#[derive(Clone)]
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
    /// The file with the key of an encrypted store.
    pub key_file: Option<PathBuf>,
    /// The passphrase of an encrypted store.
    pub passphrase: Option<String>,
}

impl Opening {
    /// The store in a folder, by the arguments of `open`.
    pub fn of(path: PathBuf, it: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            read_only: it.flag("read_only")?,
            durability: it.text("durability")?.to_owned(),
            ..Self::beyond(path, it)?
        })
    }

    /// As [`Opening::of`], of a store whose durability is not the caller's choice, and that is written.
    pub(crate) fn beyond(path: PathBuf, it: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            read_only: false,
            create: it.flag("create")?,
            lock_wait: it.seconds("lock_wait")?,
            index: it.flag("index")?,
            redact: it.flag("redact")?,
            ..Self::reading(path, it)?
        })
    }

    /// A store that is only read.
    pub fn reading(path: PathBuf, it: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            path,
            read_only: true,
            create: false,
            durability: "sync".to_owned(),
            lock_wait: 0.0,
            index: true,
            redact: false,
            any_file_system: it.flag("any_file_system")?,
            key_file: it.word("key_file")?.map(PathBuf::from),
            passphrase: it.owned("passphrase")?,
        })
    }

    /// The ring that opens an encrypted store.
    pub(crate) fn ring(&self) -> Result<Option<Arc<dyn KeyRing>>, Fault> {
        match (&self.key_file, &self.passphrase) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(Fault::invalid("give key_file or passphrase, not both")),
            (Some(path), None) => {
                let ring = FileKeyRing::open(path);
                let ring = ring
                    .map_err(|error| Fault::new("locked", format!("key file {}: {error}", path.display())))?;
                Ok(Some(Arc::new(ring)))
            }
            (None, Some(passphrase)) => {
                let ring = PassphraseKeyRing::new(passphrase);
                Ok(Some(Arc::new(ring.map_err(|error| Fault::invalid(error.to_string()))?)))
            }
        }
    }

    /// The settings of a store that is opened to be written, wherever it is.
    pub(crate) fn settings(&self) -> Result<impl FnOnce(Builder) -> Builder + Send + use<>, Fault> {
        let lock_wait = Duration::try_from_secs_f64(self.lock_wait)
            .map_err(|_| Fault::invalid(format!("lock_wait is 0 seconds or more, not {}", self.lock_wait)))?;
        let rules = self.redact.then(acpdb_hosts::redact::Rules::usual).transpose();
        let rules = rules.map_err(|error| Fault::invalid(error.to_string()))?;
        let (index, any_file_system) = (self.index, self.any_file_system);
        Ok(move |builder: Builder| {
            let mut builder = builder.registry(acpdb_hosts::registry()).lock_wait(lock_wait).index(index);
            if any_file_system {
                builder = builder.any_file_system();
            }
            if let Some(rules) = rules {
                builder = builder.redactor(Arc::new(rules));
            }
            builder
        })
    }

    /// Opens the store, making or recovering it as needed.
    ///
    /// The folder is the caller's choice: no store is looked for. With a key, a store that is made is encrypted, and a plain one is refused. Where a
    /// key is given in the environment or the user made an encrypted store in the folder, no plain one takes its place.
    pub fn open(self) -> Result<Store, Fault> {
        self.open_among(&|name| std::env::var(name).ok())
    }

    /// As [`Opening::open`], with these variables of the environment.
    fn open_among(self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Store, Fault> {
        let durability = match self.durability.as_str() {
            "sync" => Durability::Sync,
            "os" => Durability::Os,
            other => return Err(Fault::invalid(format!("durability is 'sync' or 'os', not {other:?}"))),
        };
        let ring = self.ring()?;
        let settings = self.settings()?;
        let path = self.path;
        let mut builder = settings(Store::builder(&path)).create(self.create).durability(durability);
        if self.read_only {
            builder = builder.read_only();
        }
        match ring {
            Some(ring) if self.create && !self.read_only => builder = builder.encrypt(ring),
            Some(ring) => builder = builder.keys(ring),
            None => check_key(&path, variable)?,
        }
        let list = own_list(variable);
        if let Some(list) = list.as_ref().filter(|_| !self.read_only) {
            list.check_encrypted(&path)?;
        }
        let is_new = is_found_upwards(&path) && path.join("acpdb.json").symlink_metadata().is_err();
        let store = builder.open()?;
        if is_new && let Some(list) = list {
            // A list that cannot be written keeps no program from recording: `acpdb config trust` names the store as well.
            let _ = list.enter(store.root());
        }
        Ok(store)
    }
}

/// Refuses a store that is not encrypted, or none, where a key is given: who gives a key means an encrypted store. The passphrase may be meant for a
/// key that signs, so it keeps only a new store from being made.
fn check_key(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), Fault> {
    let is_given = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let name = ["ACPDB_KEY_FILE", "ACPDB_PASSPHRASE"].into_iter().find(|name| is_given(name));
    let Some(name) = name else { return Ok(()) };
    let why = match identity_of(path) {
        Ok(None) => "there is no store",
        Ok(Some(found)) if !found.is_encrypted && name == "ACPDB_KEY_FILE" => "the store is not encrypted",
        // Opening an encrypted or damaged store says what is missing.
        _ => return Ok(()),
    };
    let path = path.display();
    Err(Fault::new(
        "locked",
        format!("{path}: {why}, and a key is given in ${name}; unset it, or put the encrypted store back"),
    ))
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
    use acpdb_engine::keys::RawKeyRing;

    use super::*;

    /// A folder of a test, which is removed.
    struct Scratch(PathBuf);

    impl Scratch {
        fn at(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn opening(path: PathBuf, read_only: bool) -> Opening {
        let durability = "sync".to_owned();
        Opening {
            path,
            read_only,
            create: true,
            durability,
            lock_wait: 1.0,
            index: false,
            redact: false,
            any_file_system: true,
            key_file: None,
            passphrase: None,
        }
    }

    /// A key that was given, or an encrypted store that was away, did not keep a package from making a plain store in its place.
    #[test]
    fn a_plain_store_never_takes_the_place_of_an_encrypted_one() -> Result<(), Box<dyn std::error::Error>> {
        let scratch = Scratch(std::env::temp_dir().join(format!("acpdb-opening-{}", std::process::id())));
        let _ = std::fs::remove_dir_all(&scratch.0);
        std::fs::create_dir_all(scratch.at("state"))?;
        let state = scratch.at("state").display().to_string();
        let list = OwnList::new(scratch.at("state/acpdb/stores.jsonl"));
        for name in ["sealed", "away"] {
            let ring = Arc::new(RawKeyRing::new("a key", &[7; 32]));
            Store::builder(scratch.at(name)).any_file_system().encrypt(ring).open()?.close()?;
            list.enter(&scratch.at(name))?;
        }
        std::fs::remove_dir_all(scratch.at("away"))?;
        Store::builder(scratch.at("plain")).any_file_system().open()?.close()?;
        let (key, passphrase) = (Some("ACPDB_KEY_FILE"), Some("ACPDB_PASSPHRASE"));
        for (name, given, read_only, code) in [
            ("new", None, false, None),
            ("project/.acpdb", None, false, None),
            ("plain", None, false, None),
            ("plain", passphrase, false, None),
            ("plain", key, false, Some("locked")),
            ("plain", key, true, Some("locked")),
            ("none", key, false, Some("locked")),
            ("none", passphrase, false, Some("locked")),
            ("sealed", None, false, Some("locked")),
            ("sealed", key, false, Some("locked")),
            ("away", None, false, Some("locked")),
        ] {
            let variable = |asked: &str| match asked {
                "XDG_STATE_HOME" => Some(state.clone()),
                asked => given.filter(|given| *given == asked).map(|_| "given".to_owned()),
            };
            let opened = opening(scratch.at(name), read_only).open_among(&variable);
            let found = opened.as_ref().err().map(|fault| fault.code);
            assert_eq!(found, code, "{name} {given:?}: {:?}", opened.err());
        }
        assert!(!scratch.at("none").exists() && !scratch.at("away").exists());
        assert!(list.has(&scratch.at("project/.acpdb")), "hooks use the store that this user made");
        Ok(())
    }

    #[test]
    fn a_key_opens_its_store_and_no_other() -> Result<(), Box<dyn std::error::Error>> {
        let scratch = Scratch(std::env::temp_dir().join(format!("acpdb-opening-key-{}", std::process::id())));
        let _ = std::fs::remove_dir_all(&scratch.0);
        std::fs::create_dir_all(&scratch.0)?;
        let (file, other) = (scratch.at("key"), scratch.at("other-key"));
        FileKeyRing::create(&file)?;
        FileKeyRing::create(&other)?;
        Store::builder(scratch.at("plain")).any_file_system().open()?.close()?;
        for (name, key, passphrase, read_only, code) in [
            ("by-file", Some("key"), None, false, None),
            ("by-file", Some("key"), None, true, None),
            ("by-file", Some("other-key"), None, false, Some("locked")),
            ("by-file", None, None, false, Some("locked")),
            ("by-words", None, Some("correct horse battery"), false, None),
            ("by-words", None, Some("correct horse battery"), true, None),
            ("by-words", None, Some("another passphrase"), false, Some("locked")),
            ("by-words", None, Some("short"), false, Some("invalid")),
            ("by-words", Some("key"), Some("correct horse battery"), false, Some("invalid")),
            ("plain", Some("key"), None, false, Some("locked")),
            ("none", Some("missing"), None, false, Some("locked")),
        ] {
            let opening = Opening {
                key_file: key.map(|key| scratch.at(key)),
                passphrase: passphrase.map(str::to_owned),
                ..opening(scratch.at(name), read_only)
            };
            let opened = opening.open_among(&|_| None);
            let found = opened.as_ref().err().map(|fault| fault.code);
            assert_eq!(found, code, "{name} {key:?} {passphrase:?} {read_only}: {:?}", opened.err());
        }
        assert!(!scratch.at("none").exists());
        Ok(())
    }

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
