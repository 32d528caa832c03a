//! Keys that open encrypted stores: the places where the user keeps them, and the key that a store needs.
//!
//! ```text
//! keys/DIGITS.store-key   beside the user's settings, 0600; named by the id that the store's wrapped key names; the key, or its entry
//!                         in the system's keyring
//! asked in this order: --key-file, the file of that name, $ACPDB_PASSPHRASE, the terminal; then, but for --key-file, all of these files
//! ```
//!
//! A key file that is named is used for any store: one that is missing or is not encrypted is then refused. Without one, nothing is asked
//! for a store that is not encrypted.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::keys::{
    FileKeyRing, KeyRing, KeyUse, NONCE_BYTES, PassphraseKeyRing, RawKeyRing, Zeroizing, ring_id,
};
use acpdb_remote::FindRing;

use crate::failure::{Code, Failure};
use crate::keyring;
use crate::keys;
use crate::passphrases;

/// A ring that wraps a store's key.
pub(crate) type Ring = Arc<dyn KeyRing>;

/// Digits of an id in a file's name.
const NAME_BYTES: usize = 8;
/// The id of a key in a file does not depend on a salt.
const NO_SALT: [u8; 16] = [0; 16];

/// The ring that opens the store in a folder. `None`: the store is not encrypted, or no key is at hand, which the engine will report.
pub(crate) fn of(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    if let Some(ring) = given(folder, key_file)? {
        return Ok(Some(ring));
    }
    let asks = ring_id(folder).is_some() && io::stdin().is_terminal() && io::stderr().is_terminal();
    if asks { asked(folder).map(Some) } else { Ok(None) }
}

/// Whether the store in a folder is encrypted.
pub(crate) fn is_encrypted(folder: &Path) -> bool {
    ring_id(folder).is_some()
}

/// As [`of`], for a store that is opened to record or to show. A passphrase that is given means an encrypted store, as a key file does: for a folder
/// without a store, or with a plain one, it comes back as a ring, which the engine refuses by name.
pub(crate) fn of_store(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    meant(folder, of(folder, key_file)?)
}

/// As [`of_store`], without a question on the terminal.
pub(crate) fn given_for_store(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    meant(folder, given(folder, key_file)?)
}

/// The ring that was found, else a passphrase that can only mean a store.
fn meant(folder: &Path, found: Option<Ring>) -> Result<Option<Ring>, Failure> {
    if found.is_some() || ring_id(folder).is_some() {
        return Ok(found);
    }
    // Where a key that signs is under a passphrase, a plain store may be meant; a new one is not.
    let is_there = acpdb_engine::store::is_store(folder);
    if is_there && !passphrase_is_for_stores()? {
        return Ok(None);
    }
    let given = passphrases::told(passphrases::PASSPHRASE)?;
    Ok(given.map(|passphrase| Arc::new(passphrase) as Ring))
}

/// Whether a passphrase is given that can only mean a store: the same variable opens keys that sign.
pub(crate) fn passphrase_is_for_stores() -> Result<bool, Failure> {
    Ok(passphrases::told(passphrases::PASSPHRASE)?.is_some() && !keys::any_is_under_passphrase())
}

/// Finds rings for those who open what lies elsewhere, by their ids.
pub(crate) fn finder(key_file: Option<&Path>) -> Box<FindRing> {
    let key_file = key_file.map(Path::to_owned);
    Box::new(move |id| by_id(id, key_file.as_deref()).map_err(|failure| io::Error::other(failure.message)))
}

/// The place of a new key, as the options and the variables of the user say it.
pub(crate) fn new_place(key_file: Option<&Path>) -> Result<NewKey<'_>, Failure> {
    Ok(match key_file {
        Some(path) => NewKey::InFile(path),
        None if passphrase_is_for_stores()? => NewKey::Passphrase(passphrases::PASSPHRASE),
        None => NewKey::Beside,
    })
}

/// As [`of`], without a question on the terminal.
pub(crate) fn given(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    let wanted = ring_id(folder);
    if key_file.is_none() && wanted.is_none() {
        Ok(None)
    } else {
        by_id(&wanted.unwrap_or_default(), key_file)
    }
}

/// The ring of this id, without a question on the terminal: a key file that is named is used for any.
pub(crate) fn by_id(wanted: &[u8; 16], key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    if let Some(path) = key_file {
        return file(path).map(Some);
    }
    let first = match kept(wanted)? {
        Some(ring) => Some(ring),
        None => passphrases::told(passphrases::PASSPHRASE)?.map(|passphrase| Arc::new(passphrase) as Ring),
    };
    // Without a home there are no other rings.
    let others = keys::below("keys").ok();
    Ok(first.map(|first| Arc::new(RingsAtHand { first, others }) as Ring))
}

/// A ring, and those in files beside the user's settings. Between the look for the ring that a store's key names and the opening, another process
/// may have wrapped that key anew: then it is a ring of these.
struct RingsAtHand {
    first: Ring,
    others: Option<PathBuf>,
}

impl RingsAtHand {
    fn others(&self) -> impl Iterator<Item = FileKeyRing> {
        // A folder that cannot be read offers no ring; the message is that of the first.
        let entries = self.others.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|kind| kind == "store-key"));
        // Nor does a file that cannot be read.
        paths.filter_map(|path| FileKeyRing::open(&path).ok())
    }
}

impl KeyRing for RingsAtHand {
    fn name(&self) -> String {
        self.first.name()
    }

    fn id(&self, salt: &[u8; 16]) -> io::Result<[u8; 16]> {
        self.first.id(salt)
    }

    fn wrap(
        &self,
        salt: &[u8; 16],
        key: &[u8; 32],
        context: &[u8],
        nonce: &[u8; NONCE_BYTES],
    ) -> io::Result<Vec<u8>> {
        self.first.wrap(salt, key, context, nonce)
    }

    fn unwrap(
        &self,
        salt: &[u8; 16],
        wrapped: &[u8],
        context: &[u8],
    ) -> io::Result<Option<Zeroizing<[u8; 32]>>> {
        if let Some(key) = self.first.unwrap(salt, wrapped, context)? {
            return Ok(Some(key));
        }
        for ring in self.others() {
            if let Some(key) = ring.unwrap(salt, wrapped, context)? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }
}

/// A ring, as the engine takes it.
pub(crate) fn used(ring: Option<Ring>) -> KeyUse {
    ring.map_or(KeyUse::None, KeyUse::Ring)
}

/// Whether the store in a folder is encrypted and its key does not lie beside the user's settings: only a passphrase opens it.
pub(crate) fn needs_passphrase(folder: &Path) -> Result<bool, Failure> {
    match ring_id(folder) {
        Some(id) => Ok(kept(&id)?.is_none()),
        None => Ok(false),
    }
}

/// As [`of`], without a question: for completion while a line is typed. A key in the keyring is left out, since a locked keyring would ask.
pub(crate) fn at_hand(folder: &Path) -> Option<Ring> {
    let id = ring_id(folder)?;
    // While a line is typed nothing is told: without a key nothing is suggested.
    let is_in_keyring = keys::entry_of(&path_of(&id).ok()?).ok()?.is_some();
    // As above.
    if is_in_keyring { None } else { kept(&id).ok()? }
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
        let key = keyring::secret(&entry)?;
        let name = format!("the entry {entry} of acpdb in the system's keyring");
        return Ok(Arc::new(RawKeyRing::new(name, &key)));
    }
    match FileKeyRing::open(path) {
        Ok(ring) => Ok(Arc::new(ring)),
        Err(error) => Err(failed(path, "use", error)),
    }
}

/// The place for the key of a new ring.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NewKey<'a> {
    /// In a file beside the user's settings.
    Beside,
    /// In this file, which may exist.
    InFile(&'a Path),
    /// In the system's keyring.
    InKeyring,
    /// A passphrase: in this variable, else asked for.
    Passphrase(&'static str),
}

/// A ring to wrap a key with from now on, and a text for people that says where its key is.
pub(crate) fn new(place: NewKey<'_>) -> Result<(Ring, String), Failure> {
    match place {
        NewKey::Passphrase(variable) => {
            Ok((Arc::new(passphrases::new_passphrase_in(variable)?), "a passphrase".to_owned()))
        }
        NewKey::InFile(path) => {
            let ring = if path.symlink_metadata().is_ok() { file(path)? } else { made(path)? };
            Ok((ring, path.display().to_string()))
        }
        NewKey::InKeyring => in_keyring(path_of),
        NewKey::Beside => {
            let first = keys::below("keys/new.store-key")?;
            keys::make_folder(&first)?;
            // Left by a program that was stopped here; no store was made with it.
            let _ = std::fs::remove_file(&first);
            let ring = made(&first)?;
            let id = ring.id(&NO_SALT).map_err(|error| failed(&first, "use", error))?;
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
    let id = RawKeyRing::new("a new key", &key).id(&NO_SALT).map_err(failed)?;
    let path = path_of(&id)?;
    let entry = format!("store key {}", keys::hex(id.get(..NAME_BYTES).unwrap_or(&id)));
    keyring::keep(&entry, &key)?;
    keys::write(&path, &keyring::text_of(&entry), true).inspect_err(|_| keyring::forget(&entry))?;
    let ring = file(&path)?;
    let name = format!("{}, named by {}", ring.name(), path.display());
    Ok((ring, name))
}

fn made(path: &Path) -> Result<Ring, Failure> {
    match FileKeyRing::create(path) {
        Ok(ring) => Ok(Arc::new(ring)),
        Err(error) => Err(failed(path, "make", error)),
    }
}

/// The ring of a passphrase that is asked for on the terminal.
fn asked(folder: &Path) -> Result<Ring, Failure> {
    let locked = |error: io::Error| Failure::new(Code::Locked, format!("no passphrase: {error}"));
    let shown =
        crate::output::escape(&folder.display().to_string(), crate::output::EscapeLevel::Line).into_owned();
    let text = rpassword::prompt_password(format!("passphrase of {shown}: ")).map_err(locked)?;
    Ok(Arc::new(PassphraseKeyRing::new(&text).map_err(locked)?))
}

#[cfg(test)]
mod rotation_tests {
    use acpdb_engine::store::rotate_key;
    use acpdb_engine::{Entry, Role, Store, StreamInfo};

    use super::*;

    /// Of the processes beside a rotation that had chosen their ring, each failed: the key was wrapped by another one when they opened the store.
    #[test]
    fn a_key_that_is_wrapped_anew_between_the_choice_and_the_opening_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        std::fs::create_dir(&keys).unwrap();
        let ring = |name: &str| -> Ring { Arc::new(FileKeyRing::create(&keys.join(name)).unwrap()) };
        let (old, new) = (ring("old.store-key"), ring("new.store-key"));
        let root = folder.path().join("store");
        let store = Store::builder(&root).any_file_system().encrypt(Arc::clone(&old)).open().unwrap();
        let info = StreamInfo::session("test", "one");
        // The message is read again below.
        let _ = store.append(&info, vec![Entry::message("m1", Role::User, "the same words")]).unwrap();
        store.close().unwrap();
        let others = Some(keys.clone());
        let chosen: Ring = Arc::new(RingsAtHand { first: Arc::clone(&old), others });
        let _ = rotate_key(&root, &*old, &*new).unwrap();
        let open = |ring: Ring| Store::builder(&root).any_file_system().keys(ring).read_only().open();
        assert!(open(Arc::clone(&old)).is_err());
        assert_eq!(open(Arc::clone(&chosen)).unwrap().view(info.id()).unwrap().current().len(), 1);
        std::fs::remove_file(keys.join("new.store-key")).unwrap();
        assert!(open(chosen).unwrap_err().to_string().contains("old.store-key does not open"));
    }

    /// A pipe in the place of a key was waited for without end.
    #[test]
    fn a_pipe_is_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.store-key");
        assert!(
            std::process::Command::new("mkfifo").arg("-m").arg("600").arg(&pipe).status().unwrap().success()
        );
        assert!(file(&pipe).err().unwrap().message.contains("pipe.store-key"));
    }
}

#[cfg(all(test, feature = "keyring"))]
mod tests {
    use acpdb_engine::{Entry, Role, Store, StreamInfo};

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
        let store = Store::builder(&root).encrypt(ring).open().unwrap();
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
        let failure = file(&reference).err().unwrap();
        assert!(failure.message.contains("has no entry store key"), "{}", failure.message);
        assert_eq!(count(file(&copy).unwrap()).unwrap(), 1);
        // A file that is not a reference is told from a reference, and a damaged reference is reported as such.
        assert_eq!(keys::entry_of(&copy).unwrap(), None);
        std::fs::write(&reference, "acpdb-in-keyring-1 \u{1b}[2J\n").unwrap();
        assert!(file(&reference).err().unwrap().message.contains("names no entry of the keyring"));
    }
}
