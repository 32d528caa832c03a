//! The file of one subject's key, which wraps the keys of the streams that are about it. 1024 bytes; FORMAT.md has them.
//!
//! The file also holds the subject's name, sealed under that key, so both are destroyed together.

use super::fields::{Fields, Put};
use super::{Invalid, Part, SEALING_BYTES, WRAPPED_BYTES_MAX};
use crate::ids::{StoreId, SubjectId};

/// Bytes of the file.
pub const SUBJECT_FILE_BYTES: usize = 1024;
/// Longest name of a subject.
pub const SUBJECT_BYTES_MAX: usize = 256;

const MAGIC: &[u8; 8] = b"acpdbsub";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 72;
const NAME_OFFSET: usize = HEAD_BYTES + WRAPPED_BYTES_MAX;
const CHECKED_BYTES: usize = SUBJECT_FILE_BYTES - 4;
const KEY_DOMAIN: &[u8; 16] = b"acpdb subject v1";
const NAME_DOMAIN: &[u8; 16] = b"acpdb name of v1";

const _: () = assert!(NAME_OFFSET + SUBJECT_BYTES_MAX + SEALING_BYTES <= CHECKED_BYTES);

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectFile {
    /// The store that the file belongs to.
    pub store: StoreId,
    /// The subject.
    pub subject: SubjectId,
    /// The id of the ring that wraps the subject's key.
    pub ring: [u8; 16],
    /// The wrapped key; empty once the subject is shredded.
    pub wrapped: Vec<u8>,
    /// The name, sealed.
    pub name: Vec<u8>,
}

impl SubjectFile {
    /// The bytes that a key ring binds the wrapped key to.
    pub fn key_context(store: StoreId, subject: SubjectId) -> Vec<u8> {
        [&KEY_DOMAIN[..], store.as_bytes(), subject.as_bytes()].concat()
    }

    /// The bytes that the sealed name is bound to.
    pub fn name_context(store: StoreId, subject: SubjectId) -> Vec<u8> {
        [&NAME_DOMAIN[..], store.as_bytes(), subject.as_bytes()].concat()
    }

    /// The file of a shredded subject: it has no key and no name.
    pub fn shredded(store: StoreId, subject: SubjectId) -> Self {
        Self { store, subject, ring: [0; 16], wrapped: Vec::new(), name: Vec::new() }
    }

    /// The file's bytes. `None` if the wrapped key or the name is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        if self.wrapped.len() > WRAPPED_BYTES_MAX || self.name.len() > SUBJECT_BYTES_MAX + SEALING_BYTES {
            return None;
        }
        let mut bytes = vec![0; CHECKED_BYTES];
        Put(&mut bytes)
            .bytes(MAGIC)
            .u32(VERSION)
            .u32(0)
            .bytes(self.store.as_bytes())
            .bytes(self.subject.as_bytes())
            .bytes(&self.ring)
            .u32(u32::try_from(self.wrapped.len()).ok()?)
            .u32(u32::try_from(self.name.len()).ok()?)
            .bytes(&self.wrapped)
            // The wrapped key is not longer, as checked above.
            .skip(WRAPPED_BYTES_MAX.saturating_sub(self.wrapped.len()))
            .bytes(&self.name);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        Some(bytes)
    }

    /// Reads and checks the file of a subject.
    ///
    /// # Errors
    /// [`Invalid`] if the bytes are not such a file, are damaged, or are of another store or subject; its part is [`Part::Newer`] if a newer program
    /// wrote it. The error holds no bytes of the key.
    pub fn decode(bytes: &[u8], store: StoreId, subject: SubjectId) -> Result<Self, Invalid> {
        let fail =
            |offset, expected: &str, found: &str| Err(Invalid::new(Part::Secret, offset, expected, found));
        let Some((checked, checksum)) =
            bytes.split_last_chunk::<4>().filter(|(checked, _)| checked.len() == CHECKED_BYTES)
        else {
            return fail(0, "1024 bytes", &format!("{}", bytes.len()));
        };
        if crc32c::crc32c(checked) != u32::from_le_bytes(*checksum) {
            return fail(CHECKED_BYTES, "a matching checksum", "another");
        }
        let mut fields = Fields(checked);
        if fields.array() != *MAGIC {
            return fail(0, "the magic of a subject", "another");
        }
        let version = fields.u32();
        if version != VERSION {
            return Err(Invalid::new(Part::Newer, 8, "version 1", format!("version {version}")));
        }
        fields.skip(4);
        let (of_store, of_subject) = (StoreId(fields.array()), SubjectId(fields.array()));
        if of_store != store {
            return fail(16, "a key of this store", "that of another");
        }
        if of_subject != subject {
            return fail(32, "the key of this subject", "that of another");
        }
        let ring = fields.array();
        let (wrapped_bytes, name_bytes) = (fields.u32() as usize, fields.u32() as usize);
        let part = |from: usize, length: usize| checked.get(from..)?.get(..length).map(<[u8]>::to_vec);
        let (Some(wrapped), Some(name)) = (part(HEAD_BYTES, wrapped_bytes), part(NAME_OFFSET, name_bytes))
        else {
            return fail(64, "key and name within the file", "longer ones");
        };
        let file = Self { store, subject, ring, wrapped, name };
        // Checks that lengths, reserved bytes and zeros are as a program of this version writes them.
        if file.encode().as_deref() == Some(bytes) {
            Ok(file)
        } else {
            fail(12, "sound lengths, and zeros behind", "others")
        }
    }

    /// The id of the ring that wraps the key in a file, of any store. `None`: the file is not valid, or its subject was shredded.
    pub fn ring_of(bytes: &[u8], subject: SubjectId) -> Option<[u8; 16]> {
        let store = StoreId(*bytes.get(16..)?.first_chunk()?);
        // Damage is reported when the key is needed.
        let file = Self::decode(bytes, store, subject).ok()?;
        (!file.is_shredded()).then_some(file.ring)
    }

    /// Whether the file says that the subject was shredded.
    pub fn is_shredded(&self) -> bool {
        self.wrapped.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_comes_back_and_every_changed_byte_is_noticed() {
        let (store, subject) = (StoreId([7; 16]), SubjectId([8; 16]));
        let file = SubjectFile { store, subject, ring: [9; 16], wrapped: vec![5; 72], name: vec![6; 45] };
        for file in [file.clone(), SubjectFile::shredded(store, subject)] {
            let bytes = file.encode().unwrap();
            assert_eq!(bytes.len(), SUBJECT_FILE_BYTES);
            assert_eq!(SubjectFile::decode(&bytes, store, subject), Ok(file.clone()));
            assert!(SubjectFile::decode(&bytes, StoreId([8; 16]), subject).is_err());
            assert!(SubjectFile::decode(&bytes, store, SubjectId([7; 16])).is_err());
            for place in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[place] ^= 1;
                assert!(SubjectFile::decode(&changed, store, subject).is_err(), "byte {place}");
                assert!(SubjectFile::decode(&bytes[..place], store, subject).is_err(), "cut at {place}");
            }
        }
        let long = SubjectFile { wrapped: vec![1; WRAPPED_BYTES_MAX + 1], ..file.clone() };
        assert_eq!(long.encode(), None);
        assert_eq!(
            SubjectFile { name: vec![1; SUBJECT_BYTES_MAX + SEALING_BYTES + 1], ..file }.encode(),
            None
        );
    }
}
