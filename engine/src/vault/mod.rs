//! The encryption of a store: one key, which seals every frame.
//!
//! ```text
//! ring (a key file, a passphrase, the keyring) --wraps--> key of the store, in `key` --derives--> seal, tag
//!
//! frame   header | seal block | streams, rows | spine, one unit | salt, body, one unit each
//!            |         |            |___________________|______ tag of the spine's unit
//!            |_________|_______________________________________ tag of the header, made under the lock
//! ```
//!
//! A unit is packed, then sealed under the frame's 20 random bytes and its own number. So no two units have one nonce: not in a tail that is
//! written again, not in a copy that goes on by itself. Units are sealed before any lock; what binds them to their place is the tag of the
//! header, which costs one hash. Digests and links are over stored bytes, so that a check, a copy and an erasure need no key.
//!
//! Associated data name the key by a random id, and never the store: a salvage keeps the bytes of units as they are, and makes the tags anew.
//!
//! Pure: callers draw the random bytes, read the files, and ask the ring.

mod key_file;
mod seal_block;
mod units;

pub use key_file::{KEY_FILE_BYTES, KeyFile, WRAPPED_BYTES_MAX, WrapRandom};
pub use seal_block::{SEAL_BLOCK_BYTES, SealBlock};
pub use units::{FrameSeal, Packed, StoreKey, UNIT_BYTES_ADDED, UNIT_BYTES_MAX};

#[cfg(test)]
mod tests;
