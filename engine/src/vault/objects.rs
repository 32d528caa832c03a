//! Objects of a shipped store that their bucket must not read: each is sealed as a whole, and opens under its own name alone.
//!
//! ```text
//! object   magic, form, zeros, id of the key | nonce | sealed bytes | tag          the tag covers all before it, and the name
//! ```

use std::io;

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::key_file::WrapRandom;
use super::units::StoreKey;
use crate::codec::fields::{FieldReader, Put};
use crate::codec::{NONCE_BYTES, TAG_BYTES};
use crate::storage::Entropy;

const MAGIC: &[u8; 8] = b"acpdbenc";
/// The form of sealed objects that this version reads and writes.
pub const SEALED_OBJECT_FORM: u16 = 1;
const HEADER_BYTES: usize = 8 + 2 + 6 + 8 + NONCE_BYTES;
const OBJECT_CONTEXT: &str = "acpdb 2026 key of a store: objects v1";

/// The bytes by which a sealed object is longer.
pub const OBJECT_SEAL_BYTES: u64 = (HEADER_BYTES + TAG_BYTES) as u64;

/// The form of a sealed object that begins with these bytes; `None`: it is none.
pub fn sealed_object_form(bytes: &[u8]) -> Option<u16> {
    let mut fields = FieldReader(bytes.get(..10)?);
    (fields.array::<8>() == *MAGIC).then(|| fields.u16())
}

impl StoreKey {
    /// A key of random bytes.
    ///
    /// # Errors
    /// If there are no random bytes.
    pub fn draw(entropy: &dyn Entropy) -> io::Result<Self> {
        let (mut id, mut bytes) = ([0; 8], Zeroizing::new([0; 32]));
        entropy.fill(&mut id)?;
        entropy.fill(&mut *bytes)?;
        Ok(Self::new(id, bytes))
    }

    /// Seals an object. `nonce`: random bytes, drawn for this object alone. `None` if it is longer than the cipher can take: 256 GiB.
    pub fn seal_object(&self, name: &str, nonce: &[u8; NONCE_BYTES], object: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = vec![0; HEADER_BYTES];
        Put(&mut sealed).bytes(MAGIC).u16(SEALED_OBJECT_FORM).skip(6).bytes(&self.id()).bytes(nonce);
        let about = about(&sealed, name);
        sealed.reserve_exact(object.len().saturating_add(TAG_BYTES));
        sealed.extend_from_slice(object);
        let unit = sealed.get_mut(HEADER_BYTES..)?;
        let tag = self.object_cipher().encrypt_inout_detached(&XNonce::from(*nonce), &about, unit.into());
        // Too long, as said above.
        sealed.extend_from_slice(&tag.ok()?);
        Some(sealed)
    }

    /// The object that was sealed under this name. `None`: the key, the name or the bytes are others.
    pub fn open_object(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (header, rest) = sealed.split_at_checked(HEADER_BYTES)?;
        let (unit, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
        let nonce: &[u8; NONCE_BYTES] = header.last_chunk()?;
        let mut object = unit.to_vec();
        let (about, nonce, tag) = (about(header, name), XNonce::from(*nonce), Tag::from(*tag));
        let opened = self.object_cipher();
        let opened = opened.decrypt_inout_detached(&nonce, &about, object.as_mut_slice().into(), &tag);
        // The caller says which object does not open.
        opened.ok()?;
        (sealed_object_form(header)? == SEALED_OBJECT_FORM).then_some(object)
    }

    fn object_cipher(&self) -> XChaCha20Poly1305 {
        let key = Zeroizing::new(blake3::derive_key(OBJECT_CONTEXT, self.as_bytes()));
        XChaCha20Poly1305::new(Key::cast_from_core(&key))
    }
}

impl WrapRandom {
    /// Random bytes for one wrapping.
    ///
    /// # Errors
    /// If there are none.
    pub fn draw(entropy: &dyn Entropy) -> io::Result<Self> {
        let (mut salt, mut nonce) = ([0; 16], [0; NONCE_BYTES]);
        entropy.fill(&mut salt)?;
        entropy.fill(&mut nonce)?;
        Ok(Self { salt, nonce })
    }
}

fn about(header: &[u8], name: &str) -> Vec<u8> {
    [header, name.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::SystemEntropy;

    const NONCE: [u8; NONCE_BYTES] = [5; NONCE_BYTES];

    #[test]
    fn an_object_opens_under_its_key_and_its_name_alone_and_no_byte_of_it_can_change() {
        let (key, other) = (StoreKey::draw(&SystemEntropy).unwrap(), StoreKey::draw(&SystemEntropy).unwrap());
        for object in [&b""[..], b"a", &[7; 1000]] {
            let sealed = key.seal_object("log/1", &NONCE, object).unwrap();
            assert_eq!(sealed.len(), object.len() + HEADER_BYTES + TAG_BYTES);
            assert_eq!(sealed_object_form(&sealed), Some(SEALED_OBJECT_FORM));
            assert_eq!(key.open_object("log/1", &sealed).as_deref(), Some(object));
            assert_eq!(key.open_object("log/2", &sealed), None);
            assert_eq!(other.open_object("log/1", &sealed), None);
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 1;
                assert_eq!(key.open_object("log/1", &changed), None, "byte {at}");
                assert_eq!(key.open_object("log/1", &sealed[..at]), None, "{at} bytes");
            }
        }
        let sealed = key.seal_object("log/1", &NONCE, &[7; 1000]).unwrap();
        assert!(!sealed.windows(4).any(|four| four == [7; 4]));
        assert_eq!(sealed_object_form(b"acpdbrun\x01\0"), None);
    }

    /// Any program with the cipher makes the same: the page of the format is enough to read it.
    #[test]
    fn an_object_is_what_the_page_says() {
        let key = StoreKey::new([3; 8], Zeroizing::new([9; 32]));
        let sealed = key.seal_object("heads/ab", &NONCE, b"text").unwrap();
        assert_eq!(&sealed[..24], b"acpdbenc\x01\0\0\0\0\0\0\0\x03\x03\x03\x03\x03\x03\x03\x03");
        let cipher = XChaCha20Poly1305::new(&Key::from(blake3::derive_key(OBJECT_CONTEXT, &[9; 32])));
        let mut unit = b"text".to_vec();
        let about = [&sealed[..48], b"heads/ab"].concat();
        let tag =
            cipher.encrypt_inout_detached(&XNonce::from(NONCE), &about, unit.as_mut_slice().into()).unwrap();
        assert_eq!(&sealed[48..], [&unit[..], &tag[..]].concat());
    }
}
