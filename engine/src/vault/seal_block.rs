//! The seal block of a frame: 48 bytes behind its header.

use crate::codec::fields::{Fields, Put};

/// Bytes of a seal block.
pub const SEAL_BLOCK_BYTES: usize = 48;
/// Random bytes of a frame. With the number of a unit they are the nonce of that unit.
pub(super) const FRAME_NONCE_BYTES: usize = 20;
/// Bytes of a tag.
pub(super) const TAG_BYTES: usize = 16;
/// The tag of the header covers the block up to here.
const TAGGED_BYTES: usize = SEAL_BLOCK_BYTES - TAG_BYTES;

/// The random bytes of a sealed frame, the key that seals it, and the tag that binds it to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealBlock {
    /// Drawn for this frame alone.
    pub nonce: [u8; FRAME_NONCE_BYTES],
    /// The random id of the key.
    pub key_id: [u8; 8],
    /// Length of the spine before it was packed.
    pub spine_bytes: u32,
    /// The tag of the header; zeros before the frame has its place.
    pub tag: [u8; TAG_BYTES],
}

impl SealBlock {
    /// The block as it is on disk.
    pub fn encode(&self) -> [u8; SEAL_BLOCK_BYTES] {
        let mut bytes = [0; SEAL_BLOCK_BYTES];
        Put(&mut bytes).bytes(&self.nonce).bytes(&self.key_id).u32(self.spine_bytes).bytes(&self.tag);
        bytes
    }

    /// The block in these bytes. Any bytes are one; the tag says whether it is sound.
    pub fn decode(bytes: &[u8; SEAL_BLOCK_BYTES]) -> Self {
        let mut fields = Fields(bytes);
        let (nonce, key_id) = (fields.array(), fields.array());
        Self { nonce, key_id, spine_bytes: fields.u32(), tag: fields.array() }
    }

    /// The bytes that the tag covers beside the header.
    pub(super) fn tagged(&self) -> [u8; TAGGED_BYTES] {
        self.encode().first_chunk().copied().unwrap_or([0; TAGGED_BYTES])
    }
}
