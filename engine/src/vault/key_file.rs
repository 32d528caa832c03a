//! The file `key`: the key of a store, wrapped by a ring. 512 bytes; FORMAT.md has the layout.
//!
//! ```text
//! made:      random key, id, salt -> ring wraps -> file
//! rotated:   the same key and id -> another salt, another ring -> file
//! destroyed: the same id -> no wrapped key: every sealed byte of the store is noise
//! ```

use std::io;

use super::units::StoreKey;
use crate::codec::fields::{FieldReader, Put};
use crate::codec::{DamagedPart, Invalid, NONCE_BYTES};
use crate::storage::KeyRing;

/// Bytes of the file.
pub const KEY_FILE_BYTES: usize = 512;
/// Longest wrapped key.
pub const WRAPPED_BYTES_MAX: usize = 384;

const MAGIC: &[u8; 8] = b"acpdbvlt";
const VERSION: u32 = 1;
/// The bytes of the file before the checksum.
const CHECKED_BYTES: usize = KEY_FILE_BYTES - 4;
const WRAP_DOMAIN: &[u8; 16] = b"acpdb wrapped v1";

/// Where the wrapped key begins.
const WRAPPED_OFFSET: usize = 8 + 4 + 2 + 2 + 8 + 16 + 16;

const _: () = assert!(WRAPPED_OFFSET + WRAPPED_BYTES_MAX <= CHECKED_BYTES);

/// Random bytes for a wrapping.
#[derive(Clone, Copy)]
pub struct WrapRandom {
    /// The salt that a ring of a passphrase takes.
    pub salt: [u8; 16],
    /// The nonce of the wrapped key.
    pub nonce: [u8; NONCE_BYTES],
}

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// The random id of the key.
    pub key_id: [u8; 8],
    /// The salt of the ring.
    pub salt: [u8; 16],
    /// The id of the ring's key.
    pub ring: [u8; 16],
    /// The wrapped key; empty: it was destroyed.
    pub wrapped: Vec<u8>,
}

impl KeyFile {
    /// Wraps a key by a ring.
    ///
    /// # Errors
    /// If the ring cannot be had, or wraps into more bytes than fit.
    pub fn wrap(key: &StoreKey, ring: &dyn KeyRing, random: &WrapRandom) -> io::Result<Self> {
        let WrapRandom { salt, nonce } = random;
        let wrapped = ring.wrap(salt, key.as_bytes(), &context(key.id()), nonce)?;
        if wrapped.is_empty() || wrapped.len() > WRAPPED_BYTES_MAX {
            let text = format!(
                "{} wraps a key into {} bytes, and 1 to {WRAPPED_BYTES_MAX} fit",
                ring.name(),
                wrapped.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Self { key_id: key.id(), salt: *salt, ring: ring.id(salt)?, wrapped })
    }

    /// The key; `None`: the ring is another one, or the key was destroyed.
    ///
    /// # Errors
    /// If the ring cannot be had.
    pub fn unwrap(&self, ring: &dyn KeyRing) -> io::Result<Option<StoreKey>> {
        if self.is_destroyed() {
            return Ok(None);
        }
        let bytes = ring.unwrap(&self.salt, &self.wrapped, &context(self.key_id))?;
        Ok(bytes.map(|bytes| StoreKey::new(self.key_id, bytes)))
    }

    /// Whether the key was destroyed: nothing of the store can be read any more.
    pub const fn is_destroyed(&self) -> bool {
        self.wrapped.is_empty()
    }

    /// The file of a key that is destroyed.
    #[must_use]
    pub const fn destroyed(&self) -> Self {
        Self { key_id: self.key_id, salt: [0; 16], ring: [0; 16], wrapped: Vec::new() }
    }

    /// The file's bytes. A wrapped key that is too long is left out; [`KeyFile::wrap`] makes none.
    pub fn encode(&self) -> [u8; KEY_FILE_BYTES] {
        let mut bytes = [0; KEY_FILE_BYTES];
        let wrapped = if self.wrapped.len() <= WRAPPED_BYTES_MAX { self.wrapped.as_slice() } else { &[] };
        let length = u16::try_from(wrapped.len()).unwrap_or(0);
        Put(&mut bytes)
            .bytes(MAGIC)
            .u32(VERSION)
            .u16(length)
            .u16(0)
            .bytes(&self.key_id)
            .bytes(&self.salt)
            .bytes(&self.ring)
            .bytes(wrapped);
        let checksum = crc32c::crc32c(bytes.get(..CHECKED_BYTES).unwrap_or(&[]));
        Put(&mut bytes).skip(CHECKED_BYTES).u32(checksum);
        bytes
    }

    /// Decodes the file. Takes any bytes.
    ///
    /// # Errors
    /// [`DamagedPart::Secret`] for the first fault; [`Part::Newer`] for a sound file of a newer program.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let fail = |offset, expected: String, found: String| {
            Err(Invalid::new(DamagedPart::Secret, offset, expected, found))
        };
        if bytes.len() != KEY_FILE_BYTES {
            return fail(0, format!("{KEY_FILE_BYTES} bytes"), format!("{} bytes", bytes.len()));
        }
        let mut fields = FieldReader(bytes);
        if fields.array::<8>() != *MAGIC {
            return fail(0, "the magic of a wrapped key".to_owned(), "another".to_owned());
        }
        let computed = crc32c::crc32c(bytes.get(..CHECKED_BYTES).unwrap_or(&[]));
        let stored = FieldReader(bytes.get(CHECKED_BYTES..).unwrap_or(&[])).u32();
        if computed != stored {
            return fail(CHECKED_BYTES, format!("checksum {computed:08x}"), format!("{stored:08x}"));
        }
        let version = fields.u32();
        if version != VERSION {
            let (expected, found) = (format!("version {VERSION}"), format!("version {version}"));
            return Err(Invalid::new(DamagedPart::Newer, 8, expected, found));
        }
        let (length, reserved) = (usize::from(fields.u16()), fields.u16());
        let (key_id, salt, ring) = (fields.array(), fields.array(), fields.array());
        let rest = bytes.get(WRAPPED_OFFSET..CHECKED_BYTES).unwrap_or(&[]);
        let Some((wrapped, zeros)) = rest.split_at_checked(length).filter(|_| length <= WRAPPED_BYTES_MAX)
        else {
            return fail(12, format!("at most {WRAPPED_BYTES_MAX} bytes"), format!("{length} bytes"));
        };
        if reserved != 0 || zeros.iter().any(|byte| *byte != 0) {
            return Err(Invalid::new(DamagedPart::Newer, 14, "zeros in the reserved bytes", "other bytes"));
        }
        Ok(Self { key_id, salt, ring, wrapped: wrapped.to_vec() })
    }
}

/// The bytes that the wrapping covers: a wrapped key opens as the key of this id alone.
fn context(key_id: [u8; 8]) -> [u8; 24] {
    let mut context = [0; 24];
    Put(&mut context).bytes(WRAP_DOMAIN).bytes(&key_id);
    context
}
