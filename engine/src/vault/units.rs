//! Units of a frame, sealed and opened; and the key that seals them.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::codec::fields::Put;
use crate::codec::{
    BODY_CHUNK_BYTES_MAX, FRAME_NONCE_BYTES, NONCE_BYTES, SEAL_BLOCK_BYTES, TAG_BYTES, body_unit, unit_nonce,
};
use crate::secret::Secret;

/// Longest unit before it is packed: a body.
pub const UNIT_BYTES_MAX: usize = BODY_CHUNK_BYTES_MAX;
/// The level at which a unit is packed while its recording waits.
const LEVEL: i32 = 3;
/// Stored as it is.
const CODEC_NONE: u8 = 0;
/// One frame of zstd.
const CODEC_ZSTD: u8 = 1;
/// The number of the spine among the units of its frame. Bodies follow.
const SPINE: u32 = 0;

const SEAL_CONTEXT: &str = "acpdb 2026 key of a store: units v1";
const TAG_CONTEXT: &str = "acpdb 2026 key of a store: headers v1";
const SECRET_CONTEXT: &str = "acpdb 2026 key of a store: secret v1";
const SPINE_DOMAIN: &[u8; 16] = b"acpdb spine v1\0\0";
const BODY_DOMAIN: &[u8; 16] = b"acpdb unit v1\0\0\0";

/// The key of a store. Its bytes are zeroed when it is dropped.
#[derive(Clone)]
pub struct StoreKey {
    id: [u8; 8],
    bytes: Zeroizing<[u8; 32]>,
    seal: Zeroizing<[u8; 32]>,
    tag: Zeroizing<[u8; 32]>,
}

impl std::fmt::Debug for StoreKey {
    /// Keeps the key's bytes out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreKey(..)")
    }
}

/// A body that is packed and sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// How it is packed; it stands in the body's row.
    pub codec: u8,
    /// The stored bytes.
    pub stored: Vec<u8>,
}

impl StoreKey {
    /// The key of these random bytes, and its random id.
    pub fn new(id: [u8; 8], bytes: Zeroizing<[u8; 32]>) -> Self {
        let seal = Zeroizing::new(blake3::derive_key(SEAL_CONTEXT, &*bytes));
        let tag = Zeroizing::new(blake3::derive_key(TAG_CONTEXT, &*bytes));
        Self { id, bytes, seal, tag }
    }

    /// Its random id.
    pub const fn id(&self) -> [u8; 8] {
        self.id
    }

    /// Its random bytes, for a ring, which wraps them.
    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The bytes that the file `secret` has in other stores. They follow from the key, so no file of an encrypted store has them.
    pub fn secret(&self) -> Secret {
        Secret::new(blake3::derive_key(SECRET_CONTEXT, &*self.bytes))
    }

    /// The key of the tags of headers.
    pub(super) fn tag_key(&self) -> Zeroizing<[u8; 32]> {
        self.tag.clone()
    }

    /// Begins to seal a frame. `nonce`: random bytes, drawn for this frame alone.
    pub fn frame(&self, nonce: [u8; FRAME_NONCE_BYTES]) -> FrameSeal<'_> {
        FrameSeal { key: self, nonce }
    }

    /// The body that was stored as `stored`. `nonce` is that of its unit; `codec` and `bytes`, its length, stand in its row. `None`: the key, the
    /// place or the bytes are others.
    pub fn open_body(
        &self,
        nonce: &[u8; NONCE_BYTES],
        (codec, bytes): (u8, u32),
        stored: &[u8],
    ) -> Option<Vec<u8>> {
        let about = body_about(self.id, codec, bytes);
        unpack(codec, self.open(nonce, &about, stored)?, bytes)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(Key::cast_from_core(&self.seal))
    }

    fn open(&self, nonce: &[u8; NONCE_BYTES], about: &[u8], stored: &[u8]) -> Option<Vec<u8>> {
        let (sealed, tag) = stored.split_last_chunk::<TAG_BYTES>()?;
        if sealed.len() > UNIT_BYTES_MAX {
            return None;
        }
        let mut unit = sealed.to_vec();
        let (nonce, tag) = (XNonce::from(*nonce), Tag::from(*tag));
        // The caller says where the unit is that does not open.
        self.cipher().decrypt_inout_detached(&nonce, about, unit.as_mut_slice().into(), &tag).ok()?;
        Some(unit)
    }
}

/// Seals or opens the units of one frame.
#[derive(Debug, Clone, Copy)]
pub struct FrameSeal<'a> {
    key: &'a StoreKey,
    nonce: [u8; FRAME_NONCE_BYTES],
}

impl FrameSeal<'_> {
    /// Packs and seals a body whose salt lies at this offset from the start of the frame's bodies. `None` if it is longer than a body may be.
    pub fn body(&self, offset: u32, body: &[u8]) -> Option<Packed> {
        let (codec, packed) = pack(body)?;
        let about = body_about(self.key.id, codec, length(body)?);
        let stored = self.seal(body_unit(offset), &about, packed)?;
        Some(Packed { codec, stored })
    }

    /// Packs and seals the spine of a frame, whose bodies are sealed already. `plain`: streams and rows as the frame has them. Returns the frame's
    /// block, too.
    pub fn spine(&self, plain: &[u8], spine: &[u8]) -> Option<([u8; SEAL_BLOCK_BYTES], Vec<u8>)> {
        let (_, packed) = pack(spine)?;
        let spine_bytes = length(spine)?;
        let stored = self.seal(SPINE, &spine_about(self.key.id, spine_bytes, plain), packed)?;
        let mut block = [0; SEAL_BLOCK_BYTES];
        Put(&mut block).bytes(&self.nonce).bytes(&self.key.id).u32(spine_bytes);
        Some((block, stored))
    }

    /// The spine that was stored as `stored`. `None`: the key, the place, the streams, the rows or the bytes are others.
    pub fn open_spine(&self, plain: &[u8], spine_bytes: u32, stored: &[u8]) -> Option<Vec<u8>> {
        let about = spine_about(self.key.id, spine_bytes, plain);
        let packed = self.key.open(&unit_nonce(&self.nonce, SPINE), &about, stored)?;
        // A packed spine is shorter, so that no field has to say it.
        let codec = if packed.len() == spine_bytes as usize { CODEC_NONE } else { CODEC_ZSTD };
        unpack(codec, packed, spine_bytes)
    }

    /// Seals bytes in place, and adds the tag. Bytes that were plain are overwritten.
    fn seal(&self, number: u32, about: &[u8], mut unit: Vec<u8>) -> Option<Vec<u8>> {
        let nonce = XNonce::from(unit_nonce(&self.nonce, number));
        // A unit is far shorter than the cipher's limit.
        let tag = self.key.cipher().encrypt_inout_detached(&nonce, about, unit.as_mut_slice().into()).ok()?;
        unit.extend_from_slice(&tag);
        Some(unit)
    }
}

fn length(unit: &[u8]) -> Option<u32> {
    u32::try_from(unit.len()).ok().filter(|_| unit.len() <= UNIT_BYTES_MAX)
}

/// The data beside a body that its tag covers. Its row has the digest of what is sealed here, so the tag cannot cover all of the row; the spine's does.
fn body_about(key_id: [u8; 8], codec: u8, bytes: u32) -> [u8; 16 + 8 + 4 + 4] {
    let mut about = [0; 32];
    Put(&mut about).bytes(BODY_DOMAIN).bytes(&key_id).u32(codec.into()).u32(bytes);
    about
}

/// The data beside a spine that its tag covers.
fn spine_about(key_id: [u8; 8], bytes: u32, plain: &[u8]) -> [u8; 16 + 8 + 4 + 4 + 32] {
    let mut about = [0; 64];
    let digest = blake3::hash(plain);
    Put(&mut about).bytes(SPINE_DOMAIN).bytes(&key_id).u32(0).u32(bytes).bytes(digest.as_bytes());
    about
}

/// Packs a unit, if that makes it shorter. `None` if it is longer than a unit may be.
fn pack(unit: &[u8]) -> Option<(u8, Vec<u8>)> {
    length(unit)?;
    // A unit that cannot be packed is sealed as it is.
    let packed = zstd::bulk::compress(unit, LEVEL).ok().filter(|packed| packed.len() < unit.len());
    Some(packed.map_or_else(|| (CODEC_NONE, unit.to_vec()), |packed| (CODEC_ZSTD, packed)))
}

/// Unpacks a unit of a known length. `None` if it has another length.
fn unpack(codec: u8, packed: Vec<u8>, bytes: u32) -> Option<Vec<u8>> {
    let bytes = bytes as usize;
    let unit = match codec {
        CODEC_NONE => packed,
        // Nothing longer than a unit is made room for. Only the holder of the key can have packed it.
        CODEC_ZSTD if bytes <= UNIT_BYTES_MAX => zstd::bulk::decompress(&packed, bytes).ok()?,
        _ => return None,
    };
    (unit.len() == bytes).then_some(unit)
}
