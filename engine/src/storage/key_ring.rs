//! Key rings: the keys that wrap the keys of a store, kept outside of it.
//!
//! ```text
//! ring (a file, bytes, a passphrase, a service) --wraps--> 32 bytes a stream, in `keys/` of the store --seal--> payloads, bodies
//! ```

use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

use super::clock::{Entropy as _, SystemEntropy};
use crate::codec::{DataKey, NONCE_BYTES};
use crate::locks::steady;

/// The first word of a key file.
const FILE_WORD: &str = "acpdb-key-1";
const FILE_BYTES_MAX: u64 = 256;
/// Argon2id: 19 MiB, twice, one lane.
const MEMORY_KIB: u32 = 19 << 10;
const PASSES: u32 = 2;
/// Shortest passphrase.
pub const PASSPHRASE_BYTES_MIN: usize = 8;

/// Wraps and unwraps the keys of a store. A ring may be a file, a passphrase, or a service that keeps keys.
pub trait KeyRing: Send + Sync {
    /// Where the key is, for messages: a path, or a name.
    fn name(&self) -> String;
    /// An id that tells keys apart, and says nothing of the key.
    fn id(&self, salt: &[u8; 16]) -> io::Result<[u8; 16]>;
    /// Wraps a key so that it unwraps only with the same context. At most 384 bytes come out. `nonce` is random.
    fn wrap(
        &self,
        salt: &[u8; 16],
        key: &[u8; 32],
        context: &[u8],
        nonce: &[u8; NONCE_BYTES],
    ) -> io::Result<Vec<u8>>;
    /// The key that was wrapped; `None`: it was wrapped by another key, or with another context.
    fn unwrap(
        &self,
        salt: &[u8; 16],
        wrapped: &[u8],
        context: &[u8],
    ) -> io::Result<Option<Zeroizing<[u8; 32]>>>;
}

/// A ring that has its key in memory, or makes it there.
trait MemoryRing: Send + Sync {
    fn shown(&self) -> String;
    fn key(&self, salt: &[u8; 16]) -> io::Result<DataKey>;
}

impl<R: MemoryRing> KeyRing for R {
    fn name(&self) -> String {
        self.shown()
    }

    fn id(&self, salt: &[u8; 16]) -> io::Result<[u8; 16]> {
        let key = self.key(salt)?;
        let id = Zeroizing::new(blake3::derive_key("acpdb 2026 id of a wrapping key v1", key.as_bytes()));
        Ok(id.first_chunk().copied().unwrap_or_default())
    }

    fn wrap(
        &self,
        salt: &[u8; 16],
        key: &[u8; 32],
        context: &[u8],
        nonce: &[u8; NONCE_BYTES],
    ) -> io::Result<Vec<u8>> {
        let wrapped = self.key(salt)?.seal(nonce, context, key);
        wrapped.ok_or_else(|| io::Error::other("the key could not be wrapped"))
    }

    fn unwrap(
        &self,
        salt: &[u8; 16],
        wrapped: &[u8],
        context: &[u8],
    ) -> io::Result<Option<Zeroizing<[u8; 32]>>> {
        let plain = self.key(salt)?.open(context, wrapped).map(Zeroizing::new);
        Ok(plain.and_then(|plain| <[u8; 32]>::try_from(plain.as_slice()).ok()).map(Zeroizing::new))
    }
}

/// A key in a file of its own, which its owner alone may read.
pub struct FileKeyRing {
    path: PathBuf,
    key: DataKey,
}

impl std::fmt::Debug for FileKeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileKeyRing").field("path", &self.path).finish_non_exhaustive()
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl FileKeyRing {
    /// Reads the key of a file.
    ///
    /// # Errors
    /// If it cannot be read, is no key, or users other than its owner may read it. The error says what to do.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A pipe would be waited for until another program writes into it.
        let no_file = || invalid("this is no key: a regular file is expected".to_owned());
        if !std::fs::metadata(path)?.is_file() {
            return Err(no_file());
        }
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(no_file());
        }
        let mode = about.mode() & 0o777;
        if mode & 0o077 != 0 {
            let text = format!(
                "others may read this key (mode {mode:03o}); run chmod 600 on it, and take a new one with acpdb key \
                 rotate if they had a chance to"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let mut text = Zeroizing::new(String::new());
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        let digits = text.trim_end().strip_prefix(FILE_WORD).map(str::trim_start);
        let Some(digits) = digits.filter(|digits| digits.len() == 64 && digits.is_ascii()) else {
            return Err(invalid(format!("this is no key: {FILE_WORD} and 64 hex digits are expected")));
        };
        let mut key = Zeroizing::new([0; 32]);
        for (byte, pair) in key.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let digit = |place: usize| pair.get(place).and_then(|it| char::from(*it).to_digit(16));
            let value = digit(0).zip(digit(1)).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
            *byte = value.ok_or_else(|| invalid("the digits of this key are not hex".to_owned()))?;
        }
        Ok(Self { path: path.to_owned(), key: DataKey::new(*key) })
    }

    /// Makes a new key in a new file, readable by its owner only. Durable when it returns.
    ///
    /// # Errors
    /// If there is a file already, or it cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        use std::io::Write as _;
        let mut key = Zeroizing::new([0; 32]);
        SystemEntropy.fill(&mut *key)?;
        let digits: Zeroizing<String> =
            Zeroizing::new(key.iter().map(|byte| format!("{byte:02x}")).collect());
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(path)?;
        file.write_all(format!("{FILE_WORD} {}\n", *digits).as_bytes())?;
        file.sync_all()?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            // Not every system syncs folders.
            let _ = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(Self { path: path.to_owned(), key: DataKey::new(*key) })
    }
}

impl MemoryRing for FileKeyRing {
    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    fn key(&self, _: &[u8; 16]) -> io::Result<DataKey> {
        Ok(self.key.clone())
    }
}

/// A key that the caller keeps in its own way. A file with the same key unwraps the keys that this ring wraps.
pub struct RawKeyRing {
    name: String,
    key: DataKey,
}

impl std::fmt::Debug for RawKeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawKeyRing").field("name", &self.name).finish_non_exhaustive()
    }
}

impl RawKeyRing {
    /// The ring of a key. The name says in messages where the key is kept.
    pub fn new(name: impl Into<String>, key: &[u8; 32]) -> Self {
        Self { name: name.into(), key: DataKey::new(*key) }
    }
}

impl MemoryRing for RawKeyRing {
    fn shown(&self) -> String {
        self.name.clone()
    }

    fn key(&self, _: &[u8; 16]) -> io::Result<DataKey> {
        Ok(self.key.clone())
    }
}

/// A key that comes out of a passphrase by Argon2id, with a salt.
pub struct PassphraseKeyRing {
    passphrase: Zeroizing<Vec<u8>>,
    /// The derived key: deriving it takes tens of milliseconds.
    known: Mutex<Option<([u8; 16], DataKey)>>,
}

impl std::fmt::Debug for PassphraseKeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PassphraseKeyRing(..)")
    }
}

impl PassphraseKeyRing {
    /// The ring of a passphrase.
    ///
    /// # Errors
    /// If it has fewer than [`PASSPHRASE_BYTES_MIN`] bytes.
    pub fn new(passphrase: &str) -> io::Result<Self> {
        if passphrase.len() < PASSPHRASE_BYTES_MIN {
            return Err(invalid(format!("a passphrase needs {PASSPHRASE_BYTES_MIN} bytes at least")));
        }
        Ok(Self { passphrase: Zeroizing::new(passphrase.as_bytes().to_vec()), known: Mutex::default() })
    }
}

impl MemoryRing for PassphraseKeyRing {
    fn shown(&self) -> String {
        "the passphrase".to_owned()
    }

    fn key(&self, salt: &[u8; 16]) -> io::Result<DataKey> {
        let mut known = steady(&self.known);
        if let Some((_, key)) = known.as_ref().filter(|(of, _)| of == salt) {
            return Ok(key.clone());
        }
        let failed = |error: argon2::Error| {
            io::Error::other(format!("a key cannot be made of the passphrase: {error}"))
        };
        let params = Params::new(MEMORY_KIB, PASSES, 1, Some(32)).map_err(failed)?;
        let derived = blake3::derive_key("acpdb 2026 salt of a passphrase v1", salt);
        let mut key = Zeroizing::new([0; 32]);
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon.hash_password_into(&self.passphrase, &derived, &mut *key).map_err(failed)?;
        let key = DataKey::new(*key);
        *known = Some((*salt, key.clone()));
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that a key file may have, and texts that it may not.
    #[test]
    fn files_that_are_no_key_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        let _ = FileKeyRing::create(&path).unwrap();
        let is_key = |text: &str| {
            std::fs::write(&path, text).unwrap();
            FileKeyRing::open(&path).is_ok()
        };
        let digits = "0f".repeat(32);
        for (text, wanted) in [
            (format!("acpdb-key-1 {digits}\n"), true),
            (format!("acpdb-key-1 {}", digits.to_uppercase()), true),
            (format!("acpdb-key-2 {digits}\n"), false),
            (format!("acpdb-key-1 {}\n", "0f".repeat(31)), false),
            (format!("acpdb-key-1 {}\n", "+f".repeat(32)), false),
            (format!("acpdb-key-1 {}\n", "0g".repeat(32)), false),
            (String::new(), false),
        ] {
            assert_eq!(is_key(&text), wanted, "{text:?}");
        }
    }
}
