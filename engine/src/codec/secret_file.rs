//! The file `secret`: the 32 random bytes of a store's secret. 96 bytes; FORMAT.md has the layout.

use super::{DamagedPart, Invalid};
use crate::ids::StoreId;

/// Bytes of the file.
pub const SECRET_FILE_BYTES: usize = 96;

const MAGIC: &[u8; 8] = b"acpdbkey";
const VERSION: u32 = 1;
/// Where the checksum stands: last.
const CHECKED_BYTES: usize = SECRET_FILE_BYTES - 4;

/// The file's content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretFile {
    /// The store it belongs to.
    pub store: StoreId,
    /// The secret.
    pub key: [u8; 32],
}

impl std::fmt::Debug for SecretFile {
    /// The key stays out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretFile").field("store", &self.store).finish_non_exhaustive()
    }
}

impl SecretFile {
    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SECRET_FILE_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(self.store.as_bytes());
        bytes.extend_from_slice(&self.key);
        bytes.resize(CHECKED_BYTES, 0);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Reads and checks the file of `store`.
    ///
    /// # Errors
    /// [`Invalid`] if it is not such a file, is damaged, or is another store's. The error never holds bytes of the key.
    pub fn decode(bytes: &[u8], store: StoreId) -> Result<Self, Invalid> {
        let fail =
            |offset, expected: &str, found: &str| Invalid::new(DamagedPart::Secret, offset, expected, found);
        let Some((checked, checksum)) = bytes.split_last_chunk::<4>() else {
            return Err(fail(0, "96 bytes", "fewer"));
        };
        if bytes.len() != SECRET_FILE_BYTES {
            return Err(fail(0, "96 bytes", &format!("{}", bytes.len())));
        }
        if crc32c::crc32c(checked) != u32::from_le_bytes(*checksum) {
            return Err(fail(CHECKED_BYTES, "a matching checksum", "another"));
        }
        let field = |from: usize, to: usize| checked.get(from..to).unwrap_or_default();
        if field(0, 8) != MAGIC {
            return Err(fail(0, "the magic of a secret", "another"));
        }
        if field(8, 12) != VERSION.to_le_bytes() {
            return Err(fail(8, "version 1", "another"));
        }
        if field(16, 32) != store.as_bytes() {
            return Err(fail(16, "the secret of this store", "that of another"));
        }
        let reserved = field(12, 16).iter().chain(field(64, CHECKED_BYTES)).all(|byte| *byte == 0);
        let Ok(key) = <[u8; 32]>::try_from(field(32, 64)) else { return Err(fail(32, "a key", "none")) };
        if reserved { Ok(Self { store, key }) } else { Err(fail(64, "zeros", "other bytes")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_comes_back_and_every_changed_byte_is_noticed() {
        let store = StoreId([7; 16]);
        let file = SecretFile { store, key: [9; 32] };
        let bytes = file.encode();
        assert_eq!(bytes.len(), SECRET_FILE_BYTES);
        assert_eq!(SecretFile::decode(&bytes, store), Ok(file));
        assert!(SecretFile::decode(&bytes, StoreId([8; 16])).is_err());
        assert!(!format!("{file:?}").contains('9'));
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert!(SecretFile::decode(&changed, store).is_err(), "byte {place}");
            assert!(SecretFile::decode(&bytes[..place], store).is_err(), "cut at {place}");
        }
    }
}
