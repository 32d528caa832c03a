//! Keys that open encrypted stores: the places where the user keeps them, and the key that a store needs.
//!
//! ```text
//! keys/DIGITS.store-key   beside the user's settings, 0600; named by the id that wrapped keys name; the key, or its entry in the
//!                         system's keyring
//! asked in this order: --key-file, the file of that name, $ACPDB_PASSPHRASE, the terminal
//! ```
//!
//! A ring of a passphrase asks for it when its key is first needed: verifying or copying a store asks for nothing.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::ids::StoreId;
use acpdb_engine::keys::{FileKeyRing, KeyRing, PassphraseKeyRing, RawKeyRing, Zeroizing, ring_id, ring_ids};
use acpdb_engine::{Error, Store};

use crate::failure::{Code, Failure};
use crate::keyring;
use crate::keys;
use crate::lazy_ring::{LazyRing, Ring};
use crate::passphrases::{self, PASSPHRASE};

/// Digits of an id in a file's name.
const NAME_BYTES: usize = 8;
/// A store id to ask for a ring's id with, since the id of a key in a file does not depend on the store.
const NO_STORE: StoreId = StoreId([0; 16]);

/// The ring that opens the store in a folder. `None`: the store is not encrypted, or no key is at hand, which the engine will report.
pub(crate) fn of(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    let asks = is_sealed(folder) && io::stdin().is_terminal() && io::stderr().is_terminal();
    Ok(given(folder, key_file)?.or_else(|| asks.then(|| Arc::new(asked(folder.to_owned())) as Ring)))
}

/// As [`of`], without a question on the terminal.
pub(crate) fn given(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    let Some(wanted) = wanted(folder) else { return Ok(None) };
    if let Some(path) = key_file {
        return file(path).map(Some);
    }
    if let Some(ring) = kept(&wanted)? {
        return Ok(Some(ring));
    }
    Ok(passphrases::told(PASSPHRASE)?.map(|passphrase| Arc::new(passphrase) as Ring))
}

/// Whether the store in a folder is encrypted, as far as its files of keys tell.
pub(crate) fn is_sealed(folder: &Path) -> bool {
    wanted(folder).is_some()
}

/// As [`given`], and the store is opened with it, to read.
pub(crate) fn tried(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    let Some(ring) = given(folder, key_file)? else { return Ok(None) };
    // Without a home there is no such file, and `of` has reported that if it matters.
    let path = key_file
        .map_or_else(|| wanted(folder).and_then(|id| path_of(&id).ok()), |path| Some(path.to_owned()));
    if let Some(entry) = path.and_then(|path| keys::entry_of(&path).transpose()).transpose()? {
        keyring::secret(&entry)?;
    }
    let builder = Store::builder(folder).keys(Arc::clone(&ring)).read_only();
    match builder.index(false).snapshots(false).open() {
        Err(error @ Error::Locked { .. }) => Err(error.into()),
        // The caller looks for other faults by itself.
        _ => Ok(Some(ring)),
    }
}

/// Whether the store in a folder is encrypted and its key does not lie beside the user's settings: only a passphrase opens it.
pub(crate) fn needs_passphrase(folder: &Path) -> Result<bool, Failure> {
    match wanted(folder) {
        Some(id) => Ok(kept(&id)?.is_none()),
        None => Ok(false),
    }
}

/// As [`of`], without a question: for completion while a line is typed. A key in the keyring is left out, since a locked keyring would ask.
pub(crate) fn at_hand(folder: &Path) -> Option<Ring> {
    let id = wanted(folder)?;
    // While a line is typed nothing is told: without a key nothing is suggested.
    let is_in_keyring = keys::entry_of(&path_of(&id).ok()?).ok()?.is_some();
    // As above.
    if is_in_keyring { None } else { kept(&id).ok()? }
}

/// The id of the ring that opens a store. If the store's own key is lost, the id comes from the keys of its streams, so that opening reports the
/// loss.
fn wanted(folder: &Path) -> Option<[u8; 16]> {
    ring_id(folder).or_else(|| ring_ids(folder).ok()?.first().copied())
}

/// A ring that a rotation of this store's keys went over to and that was interrupted.
pub(crate) fn begun(folder: &Path) -> Result<Option<Ring>, Failure> {
    let ids = ring_ids(folder).unwrap_or_default();
    ids.iter().skip(1).find_map(|id| kept(id).transpose()).transpose()
}

fn path_of(id: &[u8; 16]) -> Result<PathBuf, Failure> {
    let digits = keys::hex(id.get(..NAME_BYTES).unwrap_or(id));
    keys::below(&format!("keys/{digits}.store-key"))
}

/// The key of this id beside the user's settings.
fn kept(id: &[u8; 16]) -> Result<Option<Ring>, Failure> {
    // Without a home there is no such file.
    let Ok(path) = path_of(id) else { return Ok(None) };
    if path.symlink_metadata().is_ok() { file(&path).map(Some) } else { Ok(None) }
}

fn failed(path: &Path, action: &str, error: io::Error) -> Failure {
    Failure::io(action, format!("the key {}", path.display()))(error).coded(Code::Locked)
}

/// The key in a file, or the keyring's key that the file refers to.
fn file(path: &Path) -> Result<Ring, Failure> {
    if let Some(entry) = keys::entry_of(path)? {
        return Ok(Arc::new(keyring::ring(entry)));
    }
    match FileKeyRing::open(path) {
        Ok(ring) => Ok(Arc::new(ring)),
        Err(error) => Err(failed(path, "use", error)),
    }
}

/// The place for the key of a new ring.
#[derive(Debug, Clone, Copy)]
pub(crate) enum New<'a> {
    /// In a file beside the user's settings.
    Beside,
    /// In this file, which may exist.
    InFile(&'a Path),
    /// In the system's keyring.
    InKeyring,
    /// A passphrase: in this variable, else asked for.
    Passphrase(&'static str),
}

/// A ring to wrap keys with from now on, and a text for people that says where its key is.
pub(crate) fn new(place: New<'_>) -> Result<(Ring, String), Failure> {
    match place {
        New::Passphrase(variable) => {
            Ok((Arc::new(passphrases::new_passphrase(variable)?), "a passphrase".to_owned()))
        }
        New::InFile(path) => {
            let ring = if path.symlink_metadata().is_ok() { file(path)? } else { made(path)? };
            Ok((ring, path.display().to_string()))
        }
        New::InKeyring => in_keyring(path_of),
        New::Beside => {
            let first = keys::below("keys/new.store-key")?;
            keys::make_folder(&first)?;
            // Left by a program that was stopped here; no store was made with it.
            let _ = std::fs::remove_file(&first);
            let ring = made(&first)?;
            let id = ring.id(NO_STORE).map_err(|error| failed(&first, "use", error))?;
            let path = path_of(&id)?;
            keys::put(&first, &path)?;
            Ok((file(&path)?, path.display().to_string()))
        }
    }
}

/// A new key in the system's keyring, and the file that refers to it.
fn in_keyring(path_of: impl Fn(&[u8; 16]) -> Result<PathBuf, Failure>) -> Result<(Ring, String), Failure> {
    let key = Zeroizing::new(keys::random::<32>()?);
    let failed = |error: io::Error| Failure::new(Code::Failure, error.to_string());
    let id = RawKeyRing::new("a new key", &key).id(NO_STORE).map_err(failed)?;
    let path = path_of(&id)?;
    let entry = format!("store key {}", keys::hex(id.get(..NAME_BYTES).unwrap_or(&id)));
    keyring::keep(&entry, &key)?;
    keys::write(&path, &keyring::text_of(&entry), true).inspect_err(|_| keyring::forget(&entry))?;
    let ring = keyring::ring(entry);
    let name = format!("{}, named by {}", ring.name(), path.display());
    Ok((Arc::new(ring), name))
}

fn made(path: &Path) -> Result<Ring, Failure> {
    match FileKeyRing::create(path) {
        Ok(ring) => Ok(Arc::new(ring)),
        Err(error) => Err(failed(path, "make", error)),
    }
}

/// The ring of a passphrase, which is asked for when it is first needed.
fn asked(folder: PathBuf) -> LazyRing {
    LazyRing::new("the passphrase".to_owned(), move || {
        let text = rpassword::prompt_password(format!("passphrase of {}: ", folder.display()))?;
        Ok(Arc::new(PassphraseKeyRing::new(&text)?))
    })
}

#[cfg(all(test, feature = "keyring"))]
mod tests {
    use acpdb_engine::{Entry, Role, StreamInfo};

    use super::*;

    /// A key in the keyring opens its store like a key in a file; without the key nothing is read, and nothing is lost.
    #[test]
    fn a_store_whose_key_is_in_the_keyring_is_opened_by_it_alone() {
        let folder = tempfile::tempdir().unwrap();
        let reference = folder.path().join("keys/mine.store-key");
        let (ring, name) = in_keyring(|_| Ok(reference.clone())).unwrap();
        assert!(name.contains("in the system's keyring") && name.contains("mine.store-key"), "{name}");
        let root = folder.path().join("store");
        let info = StreamInfo::session("test", "one");
        let store = Store::builder(&root).keys(ring).open().unwrap();
        let message = Entry::message("m1", Role::User, "only the keyring opens this");
        // The message is read again below.
        let _ = store.append(&info, vec![message]).unwrap();
        store.close().unwrap();
        let count = |ring: Ring| {
            let store = Store::builder(&root).keys(ring).read_only().open()?;
            Ok::<_, acpdb_engine::Error>(store.view(info.id())?.current().len())
        };
        assert_eq!(count(file(&reference).unwrap()).unwrap(), 1);
        let entry = keys::entry_of(&reference).unwrap().unwrap();
        let key = keyring::secret(&entry).unwrap();
        assert!(!std::fs::read_to_string(&reference).unwrap().contains(&keys::hex(&*key)));
        // The same key in a file opens the store as well: a copy of the key can be kept so.
        let copy = folder.path().join("copy.key");
        keys::write(&copy, &format!("acpdb-key-1 {}\n", keys::hex(&*key)), true).unwrap();
        assert_eq!(count(file(&copy).unwrap()).unwrap(), 1);
        keyring::forget(&entry);
        let error = count(file(&reference).unwrap()).unwrap_err().to_string();
        assert!(
            error.contains("has no entry store key") && error.contains("copy of that keyring"),
            "{error}"
        );
        assert_eq!(count(file(&copy).unwrap()).unwrap(), 1);
        // A file that is not a reference is told from a reference, and a damaged reference is reported as such.
        assert_eq!(keys::entry_of(&copy).unwrap(), None);
        std::fs::write(&reference, "acpdb-in-keyring-1 \u{1b}[2J\n").unwrap();
        assert!(file(&reference).err().unwrap().message.contains("names no entry of the keyring"));
    }
}
