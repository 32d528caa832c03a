//! Bodies: their digest, their block on disk (salt, bytes, zero padding), and cutting long ones into chunks.

use super::fields::{Put, is_zero};
use super::{BODY_CHUNK_BYTES_MAX, BodyRow, DIGEST_OF_STORED, Invalid, Part, SALT_BYTES};
use crate::ids::Digest;

/// Separates body digests from all other digests.
pub const BODY_DOMAIN: &[u8; 16] = b"acpdb body v1\0\0\0";
/// The digest of what is stored of a body.
pub(crate) fn stored_digest(salt: &[u8; SALT_BYTES], length: usize, content: &blake3::Hash) -> Digest {
    salted_in(STORED_DOMAIN, salt, length, content)
}

/// Separates digests of what is stored of a body.
const STORED_DOMAIN: &[u8; 16] = b"acpdb stored v1\0";

/// The digest of a body: BLAKE3(domain, salt, length as u64, BLAKE3(bytes)).
///
/// Without the salt the digest of a short body cannot be guessed, so a body can be erased for good while its
/// digest stays.
pub fn body_digest(salt: &[u8; SALT_BYTES], bytes: &[u8]) -> Digest {
    salted(salt, bytes.len(), &blake3::hash(bytes))
}

/// [`body_digest`] when BLAKE3 of the bytes is known.
pub(crate) fn salted(salt: &[u8; SALT_BYTES], length: usize, content: &blake3::Hash) -> Digest {
    salted_in(BODY_DOMAIN, salt, length, content)
}

fn salted_in(domain: &[u8; 16], salt: &[u8; SALT_BYTES], length: usize, content: &blake3::Hash) -> Digest {
    // In one piece: a hasher that is fed costs as much again as these two blocks.
    let mut message = [0; BODY_DOMAIN.len() + SALT_BYTES + 8 + blake3::OUT_LEN];
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    Put(&mut message).bytes(domain).bytes(salt).u64(length).bytes(content.as_bytes());
    Digest(*blake3::hash(&message).as_bytes())
}

/// Checks the salt and bytes of a block against what its row says.
///
/// `block` is the salt, what is stored of the body, and any padding that was read with them.
///
/// # Errors
/// [`Part::BodyZeroed`] if salt and bytes are all zero (erased, or a lost sector: only a record of the erasure
/// tells), [`Part::Body`] if the digest or the padding is wrong, [`Part::Newer`] if only a newer program can tell.
/// Contents are never quoted.
pub fn check_block(block: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    let fail = |part, expected: String, found: &str| Err(Invalid::new(part, 0, expected, found));
    let length = usize::try_from(row.stored_bytes).unwrap_or(usize::MAX);
    let Some((salt, rest)) = block.split_first_chunk::<SALT_BYTES>() else {
        return fail(Part::Body, format!("{length} bytes and a salt"), "too few");
    };
    let Some((bytes, padding)) = rest.split_at_checked(length) else {
        return fail(Part::Body, format!("{length} bytes"), "too few");
    };
    match check_stored(salt, bytes, row) {
        Ok(()) if !is_zero(padding) => fail(Part::Body, "zeros after the body".to_owned(), "other bytes"),
        checked => checked,
    }
}

/// Checks a salt and what is stored of a body against the digest its row names. Needs no key where the digest is over what is
/// stored.
pub(crate) fn check_stored(salt: &[u8; SALT_BYTES], stored: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    if row.is_known() {
        return check_body(salt, stored, row);
    }
    if stored.len() != row.stored_bytes as usize {
        let (expected, found) = (format!("{} bytes", row.stored_bytes), format!("{} bytes", stored.len()));
        return Err(Invalid::new(Part::Body, 0, expected, found));
    }
    if row.digest_algorithm == DIGEST_OF_STORED {
        return compare(
            salted_in(STORED_DOMAIN, salt, stored.len(), &blake3::hash(stored)),
            salt,
            stored,
            row,
        );
    }
    if is_zero(salt) && is_zero(stored) {
        return Err(Invalid::new(Part::BodyZeroed, 0, format!("digest {}", row.digest), "zeros"));
    }
    Err(newer(row))
}

/// That a body has a form which this program does not know.
pub(crate) fn newer(row: &BodyRow) -> Invalid {
    let found = format!(
        "codec {}, cipher {}, digest {}, key {}",
        row.codec, row.cipher, row.digest_algorithm, row.key
    );
    Invalid::new(Part::Newer, 0, "a body of format 1", found)
}

/// Checks a salt and the bytes of a body against the digest its row names.
///
/// # Errors
/// As [`check_block`].
pub fn check_body(salt: &[u8; SALT_BYTES], bytes: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    if !row.is_known() {
        return Err(newer(row));
    }
    let domain = if row.digest_algorithm == DIGEST_OF_STORED { STORED_DOMAIN } else { BODY_DOMAIN };
    compare(salted_in(domain, salt, bytes.len(), &blake3::hash(bytes)), salt, bytes, row)
}

fn compare(computed: Digest, salt: &[u8; SALT_BYTES], bytes: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    if computed == row.digest {
        return Ok(());
    }
    let (part, found) = if is_zero(salt) && is_zero(bytes) {
        (Part::BodyZeroed, "zeros")
    } else {
        (Part::Body, "other bytes")
    };
    Err(Invalid::new(part, 0, format!("digest {}", row.digest), found))
}

/// Cuts a long body into chunks that fit in one row each, in order; an empty body has none.
pub fn split_chunks(bytes: &[u8]) -> impl ExactSizeIterator<Item = &[u8]> {
    bytes.chunks(BODY_CHUNK_BYTES_MAX)
}
