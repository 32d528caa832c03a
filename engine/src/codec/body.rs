//! Bodies: their digest, their block on disk (salt, bytes, zero padding), and cutting long ones into chunks.

use super::fields::{Put, is_zero};
use super::{BODY_CHUNK_BYTES_MAX, Invalid, Part, SALT_BYTES};
use crate::ids::Digest;

/// Separates body digests from all other digests.
pub const BODY_DOMAIN: &[u8; 16] = b"acpdb body v1\0\0\0";

/// The digest of a body: BLAKE3(domain, salt, length as u64, BLAKE3(bytes)).
///
/// Without the salt the digest of a short body cannot be guessed, so a body can be erased for good while its
/// digest stays.
pub fn body_digest(salt: &[u8; SALT_BYTES], bytes: &[u8]) -> Digest {
    salted(salt, bytes.len(), &blake3::hash(bytes))
}

/// [`body_digest`] when BLAKE3 of the bytes is known.
pub(crate) fn salted(salt: &[u8; SALT_BYTES], length: usize, content: &blake3::Hash) -> Digest {
    // In one piece: a hasher that is fed costs as much again as these two blocks.
    let mut message = [0; BODY_DOMAIN.len() + SALT_BYTES + 8 + blake3::OUT_LEN];
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    Put(&mut message).bytes(BODY_DOMAIN).bytes(salt).u64(length).bytes(content.as_bytes());
    Digest(*blake3::hash(&message).as_bytes())
}

/// Checks the salt and bytes of a block against the digest its row names.
///
/// `block` is the salt, `length` bytes, and any padding that was read with them.
///
/// # Errors
/// [`Part::BodyZeroed`] if salt and bytes are all zero (erased, or a lost sector: only a record of the erasure
/// tells), [`Part::Body`] if the digest or the padding is wrong. Contents are never quoted.
pub fn check_block(block: &[u8], length: u32, digest: &Digest) -> Result<(), Invalid> {
    let fail = |part, expected: String, found: &str| Err(Invalid::new(part, 0, expected, found));
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let Some((salt, rest)) = block.split_first_chunk::<SALT_BYTES>() else {
        return fail(Part::Body, format!("{length} bytes and a salt"), "too few");
    };
    let Some((bytes, padding)) = rest.split_at_checked(length) else {
        return fail(Part::Body, format!("{length} bytes"), "too few");
    };
    match check_body(salt, bytes, digest) {
        Ok(()) if !is_zero(padding) => fail(Part::Body, "zeros after the body".to_owned(), "other bytes"),
        checked => checked,
    }
}

/// Checks a salt and the bytes of a body against the digest its row names.
///
/// # Errors
/// As [`check_block`].
pub fn check_body(salt: &[u8; SALT_BYTES], bytes: &[u8], digest: &Digest) -> Result<(), Invalid> {
    if body_digest(salt, bytes) == *digest {
        return Ok(());
    }
    let (part, found) = if is_zero(salt) && is_zero(bytes) {
        (Part::BodyZeroed, "zeros")
    } else {
        (Part::Body, "other bytes")
    };
    Err(Invalid::new(part, 0, format!("digest {digest}"), found))
}

/// Cuts a long body into chunks that fit in one row each, in order; an empty body has none.
pub fn split_chunks(bytes: &[u8]) -> impl ExactSizeIterator<Item = &[u8]> {
    bytes.chunks(BODY_CHUNK_BYTES_MAX)
}
