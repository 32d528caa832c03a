//! Bytes under a data key: payloads of events, bodies, and keys under other keys.
//!
//! ```text
//! sealed   nonce 24 | as many bytes as the plain ones | tag 16
//! ```
//!
//! XChaCha20-Poly1305. The tag also covers values that say where the bytes belong: sealed bytes that are moved to another store, stream, event or
//! body do not open. Each kind of place has a domain of its own, so that bytes sealed for one kind do not open as another.
//!
//! Pure: callers give nonces and keys.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::fields::Put;
use super::{NONCE_BYTES, SALT_BYTES, SEALING_BYTES, TAG_BYTES};
use crate::ids::{Digest, Seq, StoreId, StreamId};

/// XChaCha20-Poly1305, the only cipher of format 1.
pub const CIPHER_XCHACHA20_POLY1305: u8 = 1;
/// The number of a stream's first key.
pub const FIRST_KEY: u32 = 1;

const PAYLOAD_DOMAIN: &[u8; 16] = b"acpdb payload v1";
const BODY_DOMAIN: &[u8; 16] = b"acpdb in body v1";

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

    /// Seals `plain`. `None` only if `plain` has more bytes than the cipher takes, which is far over every limit here.
    pub fn seal(&self, nonce: &[u8; NONCE_BYTES], context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = vec![0; plain.len() + SEALING_BYTES];
        self.seal_into(nonce, context, plain, &mut sealed).then_some(sealed)
    }

    /// Seals `plain` to the start of `sealed`, which must be [`SEALING_BYTES`] longer. `false`: `sealed` is too short, or `plain` has more bytes than
    /// the cipher takes.
    pub(crate) fn seal_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        context: &[u8],
        plain: &[u8],
        sealed: &mut [u8],
    ) -> bool {
        let Some((begin, rest)) = sealed.split_first_chunk_mut::<NONCE_BYTES>() else { return false };
        let Some((text, rest)) = rest.split_at_mut_checked(plain.len()) else { return false };
        let Some(end) = rest.first_chunk_mut::<TAG_BYTES>() else { return false };
        *begin = *nonce;
        text.copy_from_slice(plain);
        let tag = self.cipher().encrypt_inout_detached(&XNonce::from(*nonce), context, text.into());
        tag.is_ok_and(|tag| {
            end.copy_from_slice(&tag);
            true
        })
    }

    /// Opens sealed bytes to the end of `plain`. `false`: the key, the place or the bytes are others; `plain` is unchanged.
    pub fn open_into(&self, context: &[u8], sealed: &[u8], plain: &mut impl Extended) -> bool {
        let Some((nonce, rest)) = sealed.split_first_chunk::<NONCE_BYTES>() else { return false };
        let Some((text, tag)) = rest.split_last_chunk::<TAG_BYTES>() else { return false };
        let start = plain.length();
        plain.append(text);
        let opened = plain.tail(start).is_some_and(|place| {
            let tag = Tag::from(*tag);
            self.cipher().decrypt_inout_detached(&XNonce::from(*nonce), context, place.into(), &tag).is_ok()
        });
        if !opened {
            plain.cut(start);
        }
        opened
    }

    /// The plain bytes of sealed ones. `None`: the key, the place or the bytes are others.
    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut plain = Vec::with_capacity(sealed.len());
        self.open_into(context, sealed, &mut plain).then_some(plain)
    }
}

/// A buffer that opened bytes are added to.
pub trait Extended {
    /// Count of bytes so far.
    fn length(&self) -> usize;
    /// Adds bytes.
    fn append(&mut self, bytes: &[u8]);
    /// The bytes from `start` on.
    fn tail(&mut self, start: usize) -> Option<&mut [u8]>;
    /// Cuts the buffer back to this length.
    fn cut(&mut self, length: usize);
}

macro_rules! extended {
    ($of:ty) => {
        impl Extended for $of {
            fn length(&self) -> usize {
                self.len()
            }

            fn append(&mut self, bytes: &[u8]) {
                self.extend_from_slice(bytes);
            }

            fn tail(&mut self, start: usize) -> Option<&mut [u8]> {
                self.get_mut(start..)
            }

            fn cut(&mut self, length: usize) {
                self.resize(length, 0);
            }
        }
    };
}
extended!(Vec<u8>);
extended!(rkyv::util::AlignedVec<16>);

/// The bytes that the tag of a payload covers: store, seq, envelope, and the digests of the event's bodies. They replace the contents of `context`.
pub(crate) fn payload_context(
    context: &mut Vec<u8>,
    (store, seq): (StoreId, Seq),
    envelope: &[u8],
    digests: impl Iterator<Item = Digest>,
) {
    context.clear();
    context.resize(PAYLOAD_DOMAIN.len() + 16 + 8, 0);
    Put(context).bytes(PAYLOAD_DOMAIN).bytes(store.as_bytes()).u64(seq.get());
    context.extend_from_slice(envelope);
    for digest in digests {
        context.extend_from_slice(digest.as_bytes());
    }
}

/// The bytes that the tag of a body covers: store, stream, key, codec, length and salt.
pub(crate) fn body_context(
    store: StoreId,
    stream: StreamId,
    (key, codec): (u32, u8),
    bytes: u32,
    salt: &[u8; SALT_BYTES],
) -> [u8; 16 + 16 + 16 + 4 + 4 + 4 + SALT_BYTES] {
    let mut context = [0; 76];
    Put(&mut context)
        .bytes(BODY_DOMAIN)
        .bytes(store.as_bytes())
        .bytes(stream.as_bytes())
        .u32(key)
        .u32(codec.into())
        .u32(bytes)
        .bytes(salt);
    context
}

/// Random bytes that a commit draws: half of them for the nonces of its payloads, half for the nonces of its bodies.
pub(crate) const COMMIT_RANDOM_BYTES: usize = 32;

/// The nonce of the event at `seq`: 16 random bytes of its commit, and the seq. A commit that gets another place is sealed again, under other nonces.
/// No other commit has the same random bytes, not even a commit of the same seqs in a copy that went on by itself.
pub(crate) fn payload_nonce(random: &[u8; COMMIT_RANDOM_BYTES], seq: Seq) -> [u8; NONCE_BYTES] {
    let (own, _) = random.as_chunks::<16>();
    nonce(own.first(), seq.get())
}

/// The nonce of the body with this number in a commit, made of the other half of the commit's random bytes.
pub(crate) fn body_nonce(random: &[u8; COMMIT_RANDOM_BYTES], number: u64) -> [u8; NONCE_BYTES] {
    let (own, _) = random.as_chunks::<16>();
    nonce(own.get(1), number)
}

fn nonce(random: Option<&[u8; 16]>, number: u64) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    Put(&mut nonce).bytes(random.unwrap_or(&[0; 16])).u64(number);
    nonce
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
        let mut kept = b"kept".to_vec();
        assert!(!key.open_into(b"there", &sealed, &mut kept));
        assert_eq!(kept, b"kept");
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

    #[test]
    fn nonces_of_one_commit_differ_by_seq() {
        assert_ne!(payload_nonce(&[1; 32], Seq(1)), payload_nonce(&[1; 32], Seq(2)));
        assert_ne!(payload_nonce(&[1; 32], Seq(1)), payload_nonce(&[2; 32], Seq(1)));
        let random: Vec<u8> = (0..32).collect();
        let random = random.try_into().unwrap();
        let mut all: Vec<_> = (1..50).map(|seq| payload_nonce(&random, Seq(seq))).collect();
        all.extend((1..50).map(|number| body_nonce(&random, number)));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 98);
        assert!(all.iter().all(|nonce| nonce[..16] == random[..16] || nonce[..16] == random[16..]));
    }
}
