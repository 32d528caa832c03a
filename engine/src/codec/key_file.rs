//! The file of one stream's data keys, wrapped by keys that lie elsewhere. FORMAT.md has its bytes.
//!
//! ```text
//! version 1   one key, wrapped by a ring                                          512 bytes
//! version 2   one key or more, wrapped by a ring or by the key of a subject       a multiple of 512
//! ```
//!
//! A file of one key that a ring wraps is written as version 1.

use super::fields::{Fields, Put};
use super::{Invalid, Part};
use crate::ids::{StoreId, StreamId, SubjectId};

/// Bytes of a file with one key that a ring wraps; the length of other files is a multiple of this.
pub const KEY_FILE_BYTES: usize = 512;
/// Longest file.
pub const KEY_FILE_BYTES_MAX: usize = 256 * KEY_FILE_BYTES;
/// Longest wrapped key.
pub const WRAPPED_BYTES_MAX: usize = 384;
/// Most data keys that a stream can ever have.
pub const STREAM_KEYS_MAX: usize = 256;

const MAGIC: &[u8; 8] = b"acpdbkst";
const VERSION: u32 = 1;
const VERSION_KEYS: u32 = 2;
const HEAD_BYTES: usize = 72;
const KEYS_HEAD_BYTES: usize = 88;
/// Number and length of a key.
const KEY_HEAD_BYTES: usize = 8;
const CHECKED_BYTES: usize = KEY_FILE_BYTES - 4;
const CONTEXT_DOMAIN: &[u8; 16] = b"acpdb wrapped v1";
const SUBJECT_DOMAIN: &[u8; 16] = b"acpdb in subj v1";

const _: () = assert!(
    STREAM_KEYS_MAX * (KEY_HEAD_BYTES + WRAPPED_BYTES_MAX) + KEYS_HEAD_BYTES + 4 <= KEY_FILE_BYTES_MAX
);

/// One data key of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// The key's number, as envelopes and rows name it.
    pub number: u32,
    /// The key's wrapped bytes.
    pub bytes: Vec<u8>,
}

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// The store that the file belongs to.
    pub store: StoreId,
    /// The stream that the keys belong to.
    pub stream: StreamId,
    /// The id of the ring that wraps the keys; zeros if the key of a subject wraps them.
    pub ring: [u8; 16],
    /// The subject that the stream is about: the subject's key wraps the keys of the stream.
    pub subject: Option<SubjectId>,
    /// The keys by rising numbers: the last seals events that are recorded now. Empty once the stream is shredded.
    pub keys: Vec<WrappedKey>,
}

impl KeyFile {
    /// The bytes that a wrapped key is bound to.
    pub fn context(store: StoreId, stream: StreamId, key: u32, subject: Option<SubjectId>) -> Vec<u8> {
        let mut context = vec![0; if subject.is_some() { 68 } else { 52 }];
        let domain = if subject.is_some() { SUBJECT_DOMAIN } else { CONTEXT_DOMAIN };
        let mut put = Put(&mut context);
        put.bytes(domain).bytes(store.as_bytes()).bytes(stream.as_bytes()).u32(key);
        if let Some(subject) = subject {
            put.bytes(subject.as_bytes());
        }
        context
    }

    /// The file of a shredded stream: it has no keys.
    pub fn shredded(store: StoreId, stream: StreamId, subject: Option<SubjectId>) -> Self {
        Self { store, stream, ring: [0; 16], subject, keys: Vec::new() }
    }

    /// The file's bytes. `None` if a wrapped key is too long, or there are too many keys.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let is_sound = self.keys.len() <= STREAM_KEYS_MAX
            && self.keys.iter().all(|key| !key.bytes.is_empty() && key.bytes.len() <= WRAPPED_BYTES_MAX)
            && self.keys.is_sorted_by(|one, next| one.number < next.number);
        if !is_sound {
            return None;
        }
        let mut bytes = match self.keys.as_slice() {
            [] if self.subject.is_none() => self.head(VERSION, super::FIRST_KEY, 0),
            [key] if self.subject.is_none() => {
                let mut bytes = self.head(VERSION, key.number, key.bytes.len());
                bytes.extend_from_slice(&key.bytes);
                bytes
            }
            keys => {
                let newest = keys.last().map_or(0, |key| key.number);
                let mut bytes = self.head(VERSION_KEYS, newest, keys.len());
                // Zeros: no subject.
                bytes.extend_from_slice(self.subject.unwrap_or_default().as_bytes());
                for key in keys {
                    bytes.extend_from_slice(&key.number.to_le_bytes());
                    bytes.extend_from_slice(&u32::try_from(key.bytes.len()).ok()?.to_le_bytes());
                    bytes.extend_from_slice(&key.bytes);
                }
                bytes
            }
        };
        let length = bytes.len().saturating_add(4).next_multiple_of(KEY_FILE_BYTES);
        bytes.resize(length - 4, 0);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        Some(bytes)
    }

    /// The first 72 bytes. Both versions give them the same meaning, except for the last number: bytes of the key, or the count of keys.
    fn head(&self, version: u32, key: u32, count: usize) -> Vec<u8> {
        let mut head = vec![0; HEAD_BYTES];
        Put(&mut head)
            .bytes(MAGIC)
            .u32(version)
            .u32(key)
            .bytes(self.store.as_bytes())
            .bytes(self.stream.as_bytes())
            .bytes(&self.ring)
            .u32(u32::try_from(count).unwrap_or(u32::MAX));
        head
    }

    /// Reads and checks the file of a stream.
    ///
    /// # Errors
    /// [`Invalid`] if the bytes are not such a file, are damaged, or are of another store or stream; its part is [`Part::Newer`] if a newer program
    /// wrote it. The error holds no bytes of the keys.
    pub fn decode(bytes: &[u8], store: StoreId, stream: StreamId) -> Result<Self, Invalid> {
        let fail =
            |offset, expected: &str, found: &str| Err(Invalid::new(Part::Secret, offset, expected, found));
        let length = bytes.len();
        let sizes = KEY_FILE_BYTES..=KEY_FILE_BYTES_MAX;
        if !sizes.contains(&length) || !length.is_multiple_of(KEY_FILE_BYTES) {
            return fail(0, "a multiple of 512 bytes", &format!("{length}"));
        }
        let Some((checked, checksum)) = bytes.split_last_chunk::<4>() else {
            return fail(0, "512 bytes", "fewer");
        };
        if crc32c::crc32c(checked) != u32::from_le_bytes(*checksum) {
            return fail(checked.len(), "a matching checksum", "another");
        }
        let mut fields = Fields(checked);
        if fields.array() != *MAGIC {
            return fail(0, "the magic of a key", "another");
        }
        let version = fields.u32();
        if version != VERSION && version != VERSION_KEYS {
            let found = format!("version {version}");
            return Err(Invalid::new(Part::Newer, 8, "version 1 or 2", found));
        }
        let (key, of_store, of_stream) = (fields.u32(), StoreId(fields.array()), StreamId(fields.array()));
        let (ring, count) = (fields.array(), fields.u32() as usize);
        if of_store != store {
            return fail(16, "a key of this store", "that of another");
        }
        if of_stream != stream {
            return fail(32, "the key of this stream", "that of another");
        }
        if !fields.zeros(4) {
            return fail(68, "zeros", "other bytes");
        }
        let mut file = Self { store, stream, ring, subject: None, keys: Vec::new() };
        let padding = if version == VERSION {
            if checked.len() != CHECKED_BYTES {
                return fail(0, "512 bytes", "more");
            }
            let Some((wrapped, padding)) = fields.0.split_at_checked(count) else {
                return fail(64, "a key within the file", "a longer one");
            };
            if count > 0 {
                file.keys.push(WrappedKey { number: key, bytes: wrapped.to_vec() });
            }
            padding
        } else {
            file.subject = Some(SubjectId(fields.array())).filter(|subject| !subject.is_zero());
            if count > STREAM_KEYS_MAX {
                return fail(64, "at most 256 keys", "more");
            }
            for _ in 0..count {
                let (number, length) = (fields.u32(), fields.u32() as usize);
                let Some((wrapped, rest)) = fields.0.split_at_checked(length) else {
                    return fail(KEYS_HEAD_BYTES, "keys within the file", "a longer one");
                };
                file.keys.push(WrappedKey { number, bytes: wrapped.to_vec() });
                fields.0 = rest;
            }
            if file.keys.last().map_or(0, |last| last.number) != key {
                return fail(12, "the number of the newest key", "another");
            }
            fields.0
        };
        if !super::is_zero(padding) {
            return fail(HEAD_BYTES, "zeros behind the keys", "other bytes");
        }
        // Checks that lengths and order are as a program of this version writes them.
        if file.encode().as_deref() == Some(bytes) {
            Ok(file)
        } else {
            fail(12, "keys by rising numbers, of sound lengths", "others")
        }
    }

    /// The id of the ring that wraps the keys in a file, of any store. `None`: the file is not valid, its stream was shredded, or the key of a
    /// subject wraps the keys.
    pub fn ring_of(bytes: &[u8], stream: StreamId) -> Option<[u8; 16]> {
        let file = Self::of_any_store(bytes, stream)?;
        (!file.is_shredded() && file.subject.is_none()).then_some(file.ring)
    }

    /// The file of a stream's keys, of any store. `None`: it is damaged, or of another stream.
    pub fn of_any_store(bytes: &[u8], stream: StreamId) -> Option<Self> {
        let store = StoreId(*bytes.get(16..)?.first_chunk()?);
        // Damage is reported when the key is needed.
        Self::decode(bytes, store, stream).ok()
    }

    /// Whether the file says that the stream was shredded.
    pub fn is_shredded(&self) -> bool {
        self.keys.is_empty()
    }

    /// The number of the key that seals events recorded now.
    pub fn newest(&self) -> Option<u32> {
        self.keys.last().map(|key| key.number)
    }

    /// The wrapped bytes of the key with this number.
    pub fn wrapped(&self, number: u32) -> Option<&[u8]> {
        self.keys.iter().find(|key| key.number == number).map(|key| key.bytes.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = StoreId([7; 16]);
    const STREAM: StreamId = StreamId([8; 16]);

    fn file(subject: Option<SubjectId>, keys: &[(u32, usize)]) -> KeyFile {
        let key = |&(number, length): &(u32, usize)| WrappedKey { number, bytes: vec![5; length] };
        let ring = if subject.is_some() { [0; 16] } else { [9; 16] };
        KeyFile { store: STORE, stream: STREAM, ring, subject, keys: keys.iter().map(key).collect() }
    }

    #[test]
    fn files_come_back_and_every_changed_byte_is_noticed() {
        let subject = Some(SubjectId([3; 16]));
        for (file, version, length) in [
            (file(None, &[(3, 72)]), 1, 512),
            (KeyFile::shredded(STORE, STREAM, None), 1, 512),
            (KeyFile::shredded(STORE, STREAM, subject), 2, 512),
            (file(subject, &[(1, 72)]), 2, 512),
            (file(None, &[(1, 72), (2, 72)]), 2, 512),
            (file(subject, &[(1, 384), (2, 384), (9, 1)]), 2, 1024),
        ] {
            let bytes = file.encode().unwrap();
            assert_eq!((bytes.len(), bytes[8]), (length, version));
            assert_eq!(KeyFile::decode(&bytes, STORE, STREAM), Ok(file.clone()));
            assert!(KeyFile::decode(&bytes, StoreId([8; 16]), STREAM).is_err());
            assert!(KeyFile::decode(&bytes, STORE, StreamId([7; 16])).is_err());
            for place in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[place] ^= 1;
                assert!(KeyFile::decode(&changed, STORE, STREAM).is_err(), "byte {place}");
                assert!(KeyFile::decode(&bytes[..place], STORE, STREAM).is_err(), "cut at {place}");
            }
        }
    }

    #[test]
    fn limits_and_order_are_kept() {
        assert_eq!(file(None, &[(1, WRAPPED_BYTES_MAX + 1)]).encode(), None);
        assert_eq!(file(None, &[(1, 0)]).encode(), None);
        assert_eq!(file(None, &[(2, 72), (1, 72)]).encode(), None);
        assert_eq!(file(None, &[(1, 72), (1, 72)]).encode(), None);
        let all: Vec<(u32, usize)> = (1..=257).map(|number| (number, WRAPPED_BYTES_MAX)).collect();
        assert_eq!(file(None, &all).encode(), None);
        let bytes = file(None, &all[..256]).encode().unwrap();
        assert_eq!(KeyFile::decode(&bytes, STORE, STREAM).unwrap().newest(), Some(256));
    }

    #[test]
    fn a_file_of_a_newer_program_is_told_from_a_damaged_one() {
        let mut bytes = file(None, &[(1, 72)]).encode().unwrap();
        bytes[8] = 3;
        let checksum = crc32c::crc32c(&bytes[..508]).to_le_bytes();
        bytes[508..].copy_from_slice(&checksum);
        let refused = KeyFile::decode(&bytes, STORE, STREAM).unwrap_err();
        assert_eq!((refused.part, refused.found.as_str()), (Part::Newer, "version 3"));
    }
}
