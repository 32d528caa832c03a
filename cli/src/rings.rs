//! Keys that open encrypted stores: where the user has them, and which one a store needs.
//!
//! ```text
//! keys/DIGITS.store-key   beside the user's settings, 0600; named by the id that wrapped keys name
//! asked in this order: --key-file, the file of that name, $ACPDB_PASSPHRASE, the terminal
//! ```
//!
//! A ring that asks does so when its key is needed: verifying or copying a store asks for nothing.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use acpdb_engine::ids::StoreId;
use acpdb_engine::keys::{FileKeyRing, KeyRing, PassphraseKeyRing, ring_id, ring_ids};

use crate::failure::{Code, Failure};
use crate::keys;
use crate::passphrases::{self, PASSPHRASE};

/// Digits of an id in a file's name.
const NAME_BYTES: usize = 8;
/// Of no store: the id of a key in a file does not depend on it.
const NO_STORE: StoreId = StoreId([0; 16]);

/// What a store's keys are wrapped by.
pub(crate) type Ring = Arc<dyn KeyRing>;

/// The ring that opens the store in a folder. `None`: it is not encrypted, or no key is at hand, as the engine will say.
pub(crate) fn of(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    let Some(wanted) = wanted(folder) else { return Ok(None) };
    if let Some(path) = key_file {
        return file(path).map(Some);
    }
    if let Some(ring) = kept(&wanted)? {
        return Ok(Some(ring));
    }
    if let Some(passphrase) = passphrases::told(PASSPHRASE)? {
        return Ok(Some(Arc::new(passphrase)));
    }
    let asks = io::stdin().is_terminal() && io::stderr().is_terminal();
    Ok(asks.then(|| Arc::new(Asked { folder: folder.to_owned(), known: Mutex::default() }) as Ring))
}

/// As [`of`], without a question: for what runs while a line is typed.
pub(crate) fn at_hand(folder: &Path) -> Option<Ring> {
    kept(&wanted(folder)?).ok()?
}

/// The id of the ring that opens a store. One whose own key is lost has those of its streams, and says what is lost.
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
    // Without a home there is no such place.
    let Ok(path) = path_of(id) else { return Ok(None) };
    if path.symlink_metadata().is_ok() { file(&path).map(Some) } else { Ok(None) }
}

fn failed(path: &Path, action: &str, error: &io::Error) -> Failure {
    let mut failure = Failure::io(action, &format!("the key {}", path.display()), error);
    failure.code = Code::Locked;
    failure
}

/// The key in a file.
fn file(path: &Path) -> Result<Ring, Failure> {
    match FileKeyRing::open(path) {
        Ok(ring) => Ok(Arc::new(ring)),
        Err(error) => Err(failed(path, "use", &error)),
    }
}

/// A ring to wrap keys with from now on, and where it is, for people. Its key is in a file, or a passphrase: of a variable, else asked for.
pub(crate) fn new(key_file: Option<&Path>, passphrase: Option<&str>) -> Result<(Ring, String), Failure> {
    if let Some(variable) = passphrase {
        return Ok((Arc::new(passphrases::new_passphrase(variable)?), "a passphrase".to_owned()));
    }
    if let Some(path) = key_file {
        let ring = if path.symlink_metadata().is_ok() { file(path)? } else { made(path)? };
        return Ok((ring, path.display().to_string()));
    }
    let first = keys::below("keys/new.store-key")?;
    keys::make_folder(&first)?;
    // Left by a program that was stopped here; no store was made with it.
    let _ = std::fs::remove_file(&first);
    let ring = made(&first)?;
    let id = ring.id(NO_STORE).map_err(|error| failed(&first, "use", &error))?;
    let path = path_of(&id)?;
    keys::put(&first, &path)?;
    Ok((file(&path)?, path.display().to_string()))
}

fn made(path: &Path) -> Result<Ring, Failure> {
    match FileKeyRing::create(path) {
        Ok(ring) => Ok(Arc::new(ring)),
        Err(error) => Err(failed(path, "make", &error)),
    }
}

/// A passphrase that is asked for once it is needed.
struct Asked {
    folder: PathBuf,
    known: Mutex<Option<Arc<PassphraseKeyRing>>>,
}

impl Asked {
    fn ring(&self) -> io::Result<Arc<PassphraseKeyRing>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ring) = known.as_ref() {
            return Ok(Arc::clone(ring));
        }
        let text = rpassword::prompt_password(format!("passphrase of {}: ", self.folder.display()))?;
        let ring = Arc::new(PassphraseKeyRing::new(&text)?);
        *known = Some(Arc::clone(&ring));
        Ok(ring)
    }
}

impl KeyRing for Asked {
    fn name(&self) -> String {
        "the passphrase".to_owned()
    }

    fn id(&self, store: StoreId) -> io::Result<[u8; 16]> {
        self.ring()?.id(store)
    }

    fn wrap(
        &self,
        store: StoreId,
        key: &[u8; 32],
        context: &[u8],
        nonce: &[u8; acpdb_engine::keys::NONCE_BYTES],
    ) -> io::Result<Vec<u8>> {
        self.ring()?.wrap(store, key, context, nonce)
    }

    fn unwrap(
        &self,
        store: StoreId,
        wrapped: &[u8],
        context: &[u8],
    ) -> io::Result<Option<acpdb_engine::keys::Zeroizing<[u8; 32]>>> {
        self.ring()?.unwrap(store, wrapped, context)
    }
}
