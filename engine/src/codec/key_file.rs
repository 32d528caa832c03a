//! The file of one stream's data key, wrapped by a key that lies elsewhere. 512 bytes; FORMAT.md says which.

use super::fields::{Fields, Put};
use super::{Invalid, Part};
use crate::ids::{StoreId, StreamId};

/// Bytes of the file.
pub const KEY_FILE_BYTES: usize = 512;
/// Longest wrapped key.
pub const WRAPPED_BYTES_MAX: usize = 384;

const MAGIC: &[u8; 8] = b"acpdbkst";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 72;
const CHECKED_BYTES: usize = KEY_FILE_BYTES - 4;
const CONTEXT_DOMAIN: &[u8; 16] = b"acpdb wrapped v1";

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// The store it belongs to.
    pub store: StoreId,
    /// The stream whose key it is.
    pub stream: StreamId,
    /// The number of the key, as envelopes and rows name it.
    pub key: u32,
    /// Which key of the ring wraps it.
    pub ring: [u8; 16],
    /// The wrapped key; nothing once the stream is shredded.
    pub wrapped: Vec<u8>,
}

impl KeyFile {
    /// What a key ring binds a wrapped key to.
    pub fn context(store: StoreId, stream: StreamId, key: u32) -> Vec<u8> {
        let mut context = vec![0; 52];
        Put(&mut context).bytes(CONTEXT_DOMAIN).bytes(store.as_bytes()).bytes(stream.as_bytes()).u32(key);
        context
    }

    /// The file's bytes. `None` if the wrapped key is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; KEY_FILE_BYTES];
        let (head, rest) = bytes.split_at_mut_checked(HEAD_BYTES)?;
        let length =
            u32::try_from(self.wrapped.len()).ok().filter(|_| self.wrapped.len() <= WRAPPED_BYTES_MAX)?;
        Put(head)
            .bytes(MAGIC)
            .u32(VERSION)
            .u32(self.key)
            .bytes(self.store.as_bytes())
            .bytes(self.stream.as_bytes())
            .bytes(&self.ring)
            .u32(length);
        rest.iter_mut().zip(&self.wrapped).for_each(|(to, from)| *to = *from);
        bytes.truncate(CHECKED_BYTES);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        Some(bytes)
    }

    /// Reads and checks the file of a stream.
    ///
    /// # Errors
    /// [`Invalid`] if it is no such file, is damaged, or is of another store or stream. What it says holds no bytes of the key.
    pub fn decode(bytes: &[u8], store: StoreId, stream: StreamId) -> Result<Self, Invalid> {
        let fail =
            |offset, expected: &str, found: &str| Err(Invalid::new(Part::Secret, offset, expected, found));
        if bytes.len() != KEY_FILE_BYTES {
            return fail(0, "512 bytes", &format!("{}", bytes.len()));
        }
        let Some((checked, checksum)) = bytes.split_last_chunk::<4>() else {
            return fail(0, "512 bytes", "fewer");
        };
        if crc32c::crc32c(checked) != u32::from_le_bytes(*checksum) {
            return fail(CHECKED_BYTES, "a matching checksum", "another");
        }
        let mut fields = Fields(checked);
        if fields.array() != *MAGIC {
            return fail(0, "the magic of a key", "another");
        }
        if fields.u32() != VERSION {
            return fail(8, "version 1", "another");
        }
        let (key, of_store, of_stream) = (fields.u32(), StoreId(fields.array()), StreamId(fields.array()));
        let (ring, length) = (fields.array(), fields.u32() as usize);
        if of_store != store {
            return fail(16, "a key of this store", "that of another");
        }
        if of_stream != stream {
            return fail(32, "the key of this stream", "that of another");
        }
        let rest = checked.get(HEAD_BYTES..).unwrap_or_default();
        let Some((wrapped, padding)) = rest.split_at_checked(length).filter(|_| length <= WRAPPED_BYTES_MAX)
        else {
            return fail(64, "a key within the file", "a longer one");
        };
        let reserved = checked.get(68..HEAD_BYTES).unwrap_or_default();
        if !super::is_zero(padding) || !super::is_zero(reserved) {
            return fail(68, "zeros", "other bytes");
        }
        Ok(Self { store, stream, key, ring, wrapped: wrapped.to_vec() })
    }

    /// The ring's key that wraps the key in a file, of whichever store it is. `None`: it is no such file, or its stream was shredded.
    pub fn ring_of(bytes: &[u8], stream: StreamId) -> Option<[u8; 16]> {
        let store = StoreId(*bytes.get(16..)?.first_chunk()?);
        let file = Self::decode(bytes, store, stream).ok()?;
        (!file.is_shredded()).then_some(file.ring)
    }

    /// Whether it says that the stream was shredded.
    pub fn is_shredded(&self) -> bool {
        self.wrapped.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_comes_back_and_every_changed_byte_is_noticed() {
        let (store, stream) = (StoreId([7; 16]), StreamId([8; 16]));
        let file = KeyFile { store, stream, key: 3, ring: [9; 16], wrapped: vec![5; 72] };
        let bytes = file.encode().unwrap();
        assert_eq!(bytes.len(), KEY_FILE_BYTES);
        assert_eq!(KeyFile::decode(&bytes, store, stream), Ok(file.clone()));
        assert!(KeyFile::decode(&bytes, StoreId([8; 16]), stream).is_err());
        assert!(KeyFile::decode(&bytes, store, StreamId([7; 16])).is_err());
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert!(KeyFile::decode(&changed, store, stream).is_err(), "byte {place}");
            assert!(KeyFile::decode(&bytes[..place], store, stream).is_err(), "cut at {place}");
        }
        assert_eq!(KeyFile { wrapped: vec![1; WRAPPED_BYTES_MAX + 1], ..file }.encode(), None);
    }
}
