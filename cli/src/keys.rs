//! Keys that sign, keys that are trusted, and the checkpoint of each store that was seen last: files beside the user's settings.
//!
//! ```text
//! keys/NAME.key     a private key, 0600, in a folder 0700; or the key's entry in the system's keyring
//! keys/NAME.pub     its public part, for use when the private key is lost or kept elsewhere
//! keys/trusted      a public key a line
//! keys/*.store-key  keys that open encrypted stores (`rings`)
//! pins/STORE.note   the newest checkpoint of a store that was seen here
//! pins/STORE.backups  its backups that were made here, a line each: seq and link of their end, their folder
//! ```
//!
//! None of these files is in a store's folder: a folder that is set back to an old copy does not set them back.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use acpdb_engine::ids::{Link, Seq, StoreId};
use acpdb_engine::keys::{KeyRing as _, Zeroizing};
use acpdb_proof::{SignerKey, VerifierKey, origin};

pub(crate) use crate::digits::{hex, unhex};
use crate::failure::{Code, Failure};
use crate::{keyring, passphrases, settings};

/// The name of a key in its file; it signs under the name of a store.
const KEY_NAME: &str = "acpdb";
/// The first word of the file of a key under a passphrase.
const WRAPPED_WORD: &str = "acpdb-wrapped-key-1";
/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Mode bits of the group and of others.
const OTHERS: u32 = 0o077;

pub(crate) fn below(name: &str) -> Result<PathBuf, Failure> {
    let settings = settings::path_or_failure()?;
    let folder = settings.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(folder.unwrap_or_else(|| Path::new(".")).join(name))
}

/// The text of a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
    let failed = Failure::io("read", path.display());
    let file = match acpdb_live::below::regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(&failed)?;
    Ok(Some(text))
}

/// The entry of the keyring that the file at a path refers to.
pub(crate) fn entry_of(path: &Path) -> Result<Option<String>, Failure> {
    // Any other file is left to the reader of its own format.
    let Ok(Some(text)) = read(path) else { return Ok(None) };
    Ok(keyring::entry_in(&text, &path.display().to_string())?.map(ToOwned::to_owned))
}

/// Renames a file; durable when it returns.
pub(crate) fn put(from: &Path, to: &Path) -> Result<(), Failure> {
    let folder = to.parent().unwrap_or_else(|| Path::new("."));
    let done = std::fs::rename(from, to);
    let done = done.and_then(|()| std::fs::File::open(folder)?.sync_all());
    done.map_err(Failure::io("write", to.display()))
}

/// Makes the folder that a file lies in, for its owner only.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(Failure::io("make", folder.display()))
}

/// Puts a file in place as a whole, for its owner only; durable when it returns.
pub(crate) fn write(path: &Path, text: &str, is_new: bool) -> Result<(), Failure> {
    let shown = path.display().to_string();
    let failed = Failure::io("write", &shown);
    make_folder(path)?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    // The temporary file is made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(&failed)?;
    file.write_all(text.as_bytes()).map_err(&failed)?;
    file.as_file().sync_all().map_err(&failed)?;
    let kept = if is_new { file.persist_noclobber(path) } else { file.persist(path) };
    kept.map_err(|error| failed(error.error))?;
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(&failed)
}

fn key_path(name: &str) -> Result<PathBuf, Failure> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if name.is_empty() || name.len() > 64 || !is_plain {
        return Err(Failure::usage(format!("{name:?} is no name of a key; use letters, digits, - and _")));
    }
    below(&format!("keys/{name}.key"))
}

/// Whether one of the user's keys that sign is under a passphrase.
pub(crate) fn any_is_under_passphrase() -> bool {
    // A folder or a file that cannot be read holds no key that could be used.
    let Ok(entries) = below("keys").map(std::fs::read_dir) else { return false };
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut keys = paths.filter(|path| path.extension().is_some_and(|kind| kind == "key"));
    keys.any(|path| read(&path).is_ok_and(|text| text.is_some_and(|text| text.starts_with(WRAPPED_WORD))))
}

/// The place and form in which a private key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyLocation {
    /// In its file, not wrapped.
    InFile,
    /// In its file, under a passphrase.
    UnderPassphrase,
    /// In the system's keyring.
    InKeyring,
}

/// Makes a key and returns its file.
pub(crate) fn make(name: &str, kept: KeyLocation) -> Result<PathBuf, Failure> {
    let path = key_path(name)?;
    make_at(&path, name, kept)?;
    Ok(path)
}

fn make_at(path: &Path, name: &str, kept: KeyLocation) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        let failure =
            Failure::new(Code::Conflict, format!("there is a key {name} already: {}", path.display()));
        return Err(
            failure.hint("give the new one another name; what a lost key signed cannot be signed again")
        );
    }
    let seed = Zeroizing::new(random::<32>()?);
    let key = SignerKey::from_seed(&seed);
    let public = key.verifier(KEY_NAME).map_err(|error| refused(&error))?;
    let text = match kept {
        KeyLocation::InFile => key.to_text(KEY_NAME).map_err(|error| refused(&error))? + "\n",
        KeyLocation::UnderPassphrase => under_passphrase(&seed)? + "\n",
        KeyLocation::InKeyring => {
            // Keys of one name may be made for several settings.
            let entry = format!("signing key {name} {}", hex(&random::<8>()?));
            keyring::keep(&entry, &seed)?;
            let text = keyring::text_of(&entry);
            write(path, &text, true).inspect_err(|_| keyring::forget(&entry))?;
            return write(&path.with_extension("pub"), &format!("{public}\n"), false);
        }
    };
    write(path, &text, true)?;
    write(&path.with_extension("pub"), &format!("{public}\n"), false)
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Code::Failure, format!("the system has no random bytes: {error}")))?;
    Ok(bytes)
}

/// A private key as its file has it: the word, a salt of 16 bytes and the wrapped seed, both in hex.
fn under_passphrase(seed: &[u8; 32]) -> Result<String, Failure> {
    let ring = passphrases::new_passphrase()?;
    let salt: [u8; 16] = random()?;
    let wrapped = ring.wrap(&salt, seed, WRAPPED_WORD.as_bytes(), &random()?);
    let wrapped = wrapped.map_err(|error| Failure::new(Code::Failure, error.to_string()))?;
    Ok(format!("{WRAPPED_WORD} {} {}", hex(&salt), hex(&wrapped)))
}

/// The private key in a file whose text begins with [`WRAPPED_WORD`]; `rest` is the text behind that word.
fn from_passphrase(rest: &str, shown: &str) -> Result<SignerKey, Failure> {
    let damaged =
        || Failure::new(Code::Failure, format!("{shown} is damaged")).hint("put it back from a copy of it");
    let (salt, wrapped) = rest.trim().split_once(' ').ok_or_else(damaged)?;
    let salt = unhex(salt).and_then(|salt| <[u8; 16]>::try_from(salt).ok()).ok_or_else(damaged)?;
    let wrapped = unhex(wrapped).ok_or_else(damaged)?;
    let ring = passphrases::passphrase_of(shown)?;
    let seed = ring.unwrap(&salt, &wrapped, WRAPPED_WORD.as_bytes());
    let seed = seed.map_err(|error| Failure::new(Code::Failure, error.to_string()))?;
    let seed =
        seed.ok_or_else(|| Failure::new(Code::Locked, format!("that is not the passphrase of {shown}")))?;
    Ok(SignerKey::from_seed(&seed))
}

/// A key to sign with. Only its owner may have access to its file.
pub(crate) fn signer(name: &str) -> Result<SignerKey, Failure> {
    signer_at(&key_path(name)?, name)
}

fn signer_at(path: &Path, name: &str) -> Result<SignerKey, Failure> {
    let shown = path.display();
    let Some(text) = read(path)? else {
        let failure = Failure::not_found(format!("there is no key {name}: {shown}"));
        return Err(failure.hint(format!("make it with acpdb key new {name}")));
    };
    let mode = path.metadata().map_or(0, |found| found.mode());
    if mode & OTHERS != 0 {
        let message = format!("{shown} can be read or changed by others (mode {:o})", mode & 0o7777);
        let failure = Failure::new(Code::Failure, message);
        return Err(failure.hint(format!(
            "chmod 600 {shown}; if others may have read it, make another one with acpdb key new"
        )));
    }
    if let Some(rest) = text.strip_prefix(WRAPPED_WORD) {
        return from_passphrase(rest, &shown.to_string());
    }
    if let Some(entry) = keyring::entry_in(&text, &shown.to_string())? {
        return Ok(SignerKey::from_seed(&*keyring::secret(entry)?));
    }
    SignerKey::parse(&text).map_err(|error| {
        let failure = Failure::new(Code::Failure, format!("{shown}: {error}"));
        failure.hint("put it back from where you keep copies of it, or make another one with acpdb key new")
    })
}

/// The public part of a key of the user's, under the name of a store. If the key needs a passphrase or the keyring, its public part is read from the
/// file beside it.
pub(crate) fn public(name: &str, store: &str) -> Result<VerifierKey, Failure> {
    let path = key_path(name)?;
    let text = read(&path)?.unwrap_or_default();
    if text.starts_with(WRAPPED_WORD) || keyring::entry_in(&text, &path.display().to_string())?.is_some() {
        let path = path.with_extension("pub");
        let text =
            read(&path)?.ok_or_else(|| Failure::not_found(format!("{} is not there", path.display())))?;
        let key = VerifierKey::parse(text.trim_end()).and_then(|key| key.named(store));
        return key.map_err(|error| Failure::new(Code::Failure, format!("{}: {error}", path.display())));
    }
    signer(name)?.verifier(store).map_err(|error| refused(&error))
}

/// The key that a line names.
pub(crate) fn verifier(text: &str) -> Result<VerifierKey, Failure> {
    VerifierKey::parse(text)
        .map_err(|error| Failure::usage(error.to_string()).hint("as acpdb key show prints it"))
}

/// The key in `given`, or the keys in the file of that name, one a line.
pub(crate) fn verifiers(given: &str) -> Result<Vec<VerifierKey>, Failure> {
    match read(Path::new(given)) {
        Ok(Some(text)) => text.lines().filter(|line| !line.trim().is_empty()).map(verifier).collect(),
        _ => verifier(given).map(|key| vec![key]),
    }
}

/// Keys of others that are trusted.
pub(crate) fn trusted() -> Result<Vec<VerifierKey>, Failure> {
    let text = read(&below("keys/trusted")?)?.unwrap_or_default();
    text.lines().filter(|line| !line.trim().is_empty()).map(verifier).collect()
}

/// Writes the list of trusted keys, and returns its file.
pub(crate) fn write_trusted(keys: &[VerifierKey]) -> Result<PathBuf, Failure> {
    let path = below("keys/trusted")?;
    write(&path, &keys.iter().map(|key| format!("{key}\n")).collect::<String>(), false)?;
    Ok(path)
}

/// Whether a key of others is trusted for a store.
pub(crate) fn is_trusted_for(store: StoreId) -> Result<bool, Failure> {
    Ok(trusted()?.iter().any(|key| key.name() == origin(store)))
}

/// The files of a folder, in order of their paths; none if there is no such folder.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = Failure::io("read", folder.display());
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(&failed)?;
    paths.sort();
    Ok(paths)
}

/// Keys that are trusted for a store: the user's own, and keys of others for that store.
pub(crate) fn known(store: StoreId) -> Result<Vec<VerifierKey>, Failure> {
    let name = origin(store);
    let mut keys = trusted()?;
    keys.retain(|key| key.name() == name);
    let paths = files_in(&below("keys")?)?;
    for path in paths {
        // A damaged file stops no check here: it signs nothing.
        let Some(text) = read(&path).ok().flatten() else { continue };
        let key = match path.extension().and_then(|end| end.to_str()) {
            // As above.
            Some("key") => SignerKey::parse(&text).and_then(|key| key.verifier(&name)).ok(),
            // As above.
            Some("pub") => VerifierKey::parse(&text).and_then(|key| key.named(&name)).ok(),
            _ => None,
        };
        keys.extend(key.filter(|key| !keys.contains(key)));
    }
    Ok(keys)
}

fn pin_path(store: StoreId) -> Result<PathBuf, Failure> {
    below(&format!("pins/{store}.note"))
}

/// The checkpoint of a store that was seen last, and the file that remembers it.
pub(crate) fn pinned(store: StoreId) -> Result<Option<(PathBuf, String)>, Failure> {
    // Without a home nothing is remembered, and everything else works.
    if settings::path().is_none() {
        return Ok(None);
    }
    let path = pin_path(store)?;
    Ok(read(&path)?.map(|note| (path, note)))
}

/// Remembers a checkpoint as the one that was seen last.
pub(crate) fn pin(store: StoreId, note: &str) -> Result<(), Failure> {
    write(&pin_path(store)?, note, false)
}

/// Most backups of a store that are remembered.
const BACKUP_COUNT_MAX: usize = 1000;

fn backups_path(store: StoreId) -> Result<PathBuf, Failure> {
    below(&format!("pins/{store}.backups"))
}

fn backup_line(seq: Seq, link: Link, folder: &Path) -> String {
    // A folder that cannot be resolved has the name by which it was opened.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    format!("{} {link} {}", seq.get(), folder.display())
}

/// Remembers a backup: what is signed later makes it no log that was set back.
pub(crate) fn remember_backup(store: StoreId, seq: Seq, link: Link, folder: &Path) -> Result<(), Failure> {
    let line = backup_line(seq, link, folder);
    if settings::path().is_none() || line.contains('\n') {
        return Ok(());
    }
    let path = backups_path(store)?;
    let known = read(&path)?.unwrap_or_default();
    let place = |line: &str| line.splitn(3, ' ').nth(2).map(str::to_owned);
    let others = known.lines().filter(|known| place(known) != place(&line));
    let mut lines: Vec<&str> = others.chain([line.as_str()]).collect();
    // Up to the limit none is too many.
    lines.drain(..lines.len().saturating_sub(BACKUP_COUNT_MAX));
    write(&path, &(lines.join("\n") + "\n"), false)
}

/// Whether a store is a backup that was made here, and nothing else than it was then.
pub(crate) fn is_backup(store: &Store) -> Result<bool, Failure> {
    let Some(known) = read(&backups_path(store.id())?)? else { return Ok(false) };
    let Some(head) = store.head_place(None)? else { return Ok(false) };
    let line = backup_line(head.seq, head.link, store.root());
    Ok(known.lines().any(|known| known == line))
}

/// The failure of an operation that should not fail.
pub(crate) fn refused(error: &acpdb_proof::ProofError) -> Failure {
    Failure::new(Code::Failure, error.to_string())
}

#[cfg(all(test, feature = "keyring"))]
mod tests {
    use super::*;

    /// If a program of the user can copy a key, it can sign in the user's name. A key in the keyring is asked for, and its file has only its entry.
    #[test]
    fn a_key_in_the_keyring_signs_and_its_file_holds_nothing_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys/mine.key");
        make_at(&path, "mine", KeyLocation::InKeyring).unwrap();
        let text = read(&path).unwrap().unwrap();
        let entry = keyring::entry_in(&text, "mine").unwrap().unwrap().to_owned();
        assert!(entry.starts_with("signing key mine "));
        let seed = keyring::secret(&entry).unwrap();
        assert!(!text.contains(&hex(&*seed)));
        let public = read(&path.with_extension("pub")).unwrap().unwrap();
        let signer = signer_at(&path, "mine").unwrap();
        assert_eq!(signer.verifier(KEY_NAME).unwrap().to_string(), public.trim_end());
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        // The existing key stays.
        assert_eq!(make_at(&path, "mine", KeyLocation::InKeyring).unwrap_err().code, Code::Conflict);
        assert_eq!(read(&path).unwrap().unwrap(), text);
        // A key of the same name for other settings has an entry of its own.
        let other = folder.path().join("other/mine.key");
        make_at(&other, "mine", KeyLocation::InKeyring).unwrap();
        assert_ne!(read(&other).unwrap().unwrap(), text);
        keyring::forget(&entry);
        let failure = signer_at(&path, "mine").err().unwrap();
        assert_eq!(failure.code, Code::Locked);
        assert!(failure.message.contains("has no entry signing key mine"), "{}", failure.message);
        assert!(signer_at(&other, "mine").is_ok());
    }
}
