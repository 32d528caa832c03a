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
use acpdb_engine::keys::{FileKeyRing, KeyRing, PassphraseKeyRing, ring_ids};

use crate::failure::{Code, Failure};
use crate::keys;

/// The variable with the passphrase of stores that have one.
pub(crate) const PASSPHRASE: &str = "ACPDB_PASSPHRASE";
/// The variable with the passphrase that a rotation goes over to.
pub(crate) const NEW_PASSPHRASE: &str = "ACPDB_NEW_PASSPHRASE";
/// Digits of an id in a file's name.
const NAME_BYTES: usize = 8;
/// Of no store: the id of a key in a file does not depend on it.
const NO_STORE: StoreId = StoreId([0; 16]);

/// What a store's keys are wrapped by.
pub(crate) type Ring = Arc<dyn KeyRing>;

/// The ring that opens the store in a folder. `None`: it is not encrypted, or no key is at hand, as the engine will say.
pub(crate) fn of(folder: &Path, key_file: Option<&Path>) -> Result<Option<Ring>, Failure> {
    let Some(wanted) = wanted(folder)? else { return Ok(None) };
    if let Some(path) = key_file {
        return file(path).map(Some);
    }
    if let Some(ring) = kept(&wanted)? {
        return Ok(Some(ring));
    }
    if let Some(passphrase) = told(PASSPHRASE)? {
        return Ok(Some(Arc::new(passphrase)));
    }
    let asks = io::stdin().is_terminal() && io::stderr().is_terminal();
    Ok(asks.then(|| Arc::new(Asked { folder: folder.to_owned(), known: Mutex::default() }) as Ring))
}

/// As [`of`], without a question: for what runs while a line is typed.
pub(crate) fn at_hand(folder: &Path) -> Option<Ring> {
    kept(&wanted(folder).ok()??).ok()?
}

/// The ring that opens a store, by its id.
fn wanted(folder: &Path) -> Result<Option<[u8; 16]>, Failure> {
    let ids = ring_ids(folder);
    let ids = ids.map_err(|error| Failure::io("read the keys of", &folder.display().to_string(), &error))?;
    Ok(ids.first().copied())
}

/// A ring that a rotation of this store's keys went over to and that was interrupted.
pub(crate) fn begun(folder: &Path) -> Result<Option<Ring>, Failure> {
    let ids = ring_ids(folder).unwrap_or_default();
    ids.iter().skip(1).find_map(|id| kept(id).transpose()).transpose()
}

fn path_of(id: &[u8; 16]) -> Result<PathBuf, Failure> {
    let digits: String = id.iter().take(NAME_BYTES).map(|byte| format!("{byte:02x}")).collect();
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

/// The passphrase that a variable of the environment holds.
fn told(variable: &str) -> Result<Option<PassphraseKeyRing>, Failure> {
    let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) else { return Ok(None) };
    let text = text.into_string().map_err(|_| Failure::usage(format!("${variable} is no UTF-8")))?;
    PassphraseKeyRing::new(&text).map(Some).map_err(|error| Failure::usage(format!("${variable}: {error}")))
}

/// A ring to wrap keys with from now on, and where it is, for people. Its key is in a file, or a passphrase: of a variable, else asked for.
pub(crate) fn new(key_file: Option<&Path>, passphrase: Option<&str>) -> Result<(Ring, String), Failure> {
    if let Some(variable) = passphrase {
        let ring = match told(variable)? {
            Some(ring) => ring,
            None => asked_twice(variable)?,
        };
        return Ok((Arc::new(ring), "a passphrase".to_owned()));
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

fn asked_twice(variable: &str) -> Result<PassphraseKeyRing, Failure> {
    if !io::stdin().is_terminal() {
        let failure = Failure::usage("there is no terminal to ask for a passphrase on");
        return Err(failure.hint(format!("give it as ${variable}")));
    }
    let wrong = |error: io::Error| Failure::usage(format!("no passphrase: {error}"));
    let text = rpassword::prompt_password("new passphrase: ").map_err(wrong)?;
    let again = rpassword::prompt_password("the same again: ").map_err(wrong)?;
    if text != again {
        return Err(Failure::usage("the two are not the same"));
    }
    PassphraseKeyRing::new(&text).map_err(wrong)
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
