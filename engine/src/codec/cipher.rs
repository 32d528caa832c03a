//! Bytes under a key.
//!
//! ```text
//! sealed   nonce 24 | as many bytes as the plain ones | tag 16
//! ```
//!
//! XChaCha20-Poly1305. The tag also covers a context that says what the bytes are for: bytes sealed for one use do not open for another.
//!
//! Pure: callers give nonces and keys.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::{NONCE_BYTES, SEALING_BYTES, TAG_BYTES};

/// A key that seals. Each copy's bytes are zeroed when it is dropped.
#[derive(Clone)]
pub struct DataKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for DataKey {
    /// Keeps the key's bytes out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DataKey(..)")
    }
}

impl DataKey {
    /// The key with these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The key's bytes, for a key ring, which wraps them.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(Key::cast_from_core(&self.0))
    }

    /// Seals `plain`. `None` only if `plain` has more bytes than the cipher takes.
    pub fn seal(&self, nonce: &[u8; NONCE_BYTES], context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = Vec::with_capacity(plain.len().checked_add(SEALING_BYTES)?);
        sealed.extend_from_slice(nonce);
        sealed.extend_from_slice(plain);
        let text = sealed.get_mut(NONCE_BYTES..)?;
        // The error says that there are too many bytes, as the text above has it.
        let tag = self.cipher().encrypt_inout_detached(&XNonce::from(*nonce), context, text.into()).ok()?;
        sealed.extend_from_slice(&tag);
        Some(sealed)
    }

    /// The plain bytes of sealed ones. `None`: the key, the place or the bytes are others.
    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let (text, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
        let mut plain = text.to_vec();
        let opened = self.cipher().decrypt_inout_detached(
            &XNonce::from(*nonce),
            context,
            plain.as_mut_slice().into(),
            &Tag::from(*tag),
        );
        // As the text above says.
        opened.ok().map(|()| plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_open_with_their_key_at_their_place_and_nowhere_else() {
        let (key, nonce) = (DataKey::new([7; 32]), [9; NONCE_BYTES]);
        let sealed = key.seal(&nonce, b"here", b"the plain text").unwrap();
        assert_eq!(sealed.len(), 14 + SEALING_BYTES);
        assert!(!sealed.windows(5).any(|part| part == b"plain"));
        assert_eq!(key.open(b"here", &sealed).unwrap(), b"the plain text");
        assert_eq!(key.open(b"there", &sealed), None);
        assert_eq!(DataKey::new([8; 32]).open(b"here", &sealed), None);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert_eq!(key.open(b"here", &changed), None, "byte {place}");
            assert_eq!(key.open(b"here", &sealed[..place]), None, "cut at {place}");
        }
        assert!(!format!("{key:?}").contains('7'));
    }

    /// The vector of draft-irtf-cfrg-xchacha-03, A.3.1: other programs seal the same way.
    #[test]
    fn the_published_vector_comes_out() {
        let key: Vec<u8> = (0x80..0xa0).collect();
        let nonce: Vec<u8> = (0x40..0x58).collect();
        let context = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let plain =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
            sunscreen would be it.";
        let key = DataKey::new(key.try_into().unwrap());
        let sealed = key.seal(&nonce.try_into().unwrap(), &context, plain).unwrap();
        assert_eq!(sealed[24..32], [0xbd, 0x6d, 0x17, 0x9d, 0x3e, 0x83, 0xd4, 0x3b]);
        let tag = &sealed[sealed.len() - 16..];
        assert_eq!(
            tag,
            [0xc0, 0x87, 0x59, 0x24, 0xc1, 0xc7, 0x98, 0x79, 0x47, 0xde, 0xaf, 0xd8, 0x78, 0x0a, 0xcf, 0x49]
        );
    }
}
