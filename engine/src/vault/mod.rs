//! The encryption of a store: one key, which seals every frame.
//!
//! ```text
//! ring (a key file, a passphrase, the keyring) --wraps--> key of the store, in the file `key` --derives--> units, headers, secret
//!
//! frame   header .. tag | block | streams, rows | spine, one unit | salt, body, one unit each
//!            |             |_________|______________ the spine's unit is bound to these
//!            |______________________________________ the tag, made under the lock like the link, binds all to its place
//! ```
//!
//! In: a commit is encoded as in any store, then [`StoreKey::seal`] takes its parts and gives others. Out: [`Vault::open`] gives a frame its
//! spine back, and [`Vault::body`] a body its bytes. The code between them knows nothing of it: digests and links are over stored bytes, so that a
//! check, a copy and an erasure need no key.
//!
//! A unit is packed, then sealed under the frame's 20 random bytes and its own number. So no two units have one nonce: not in a tail that is
//! written again, not in a copy that goes on by itself. Associated data name the key by a random id, and never the store.
//!
//! [`StoreKey::seal_object`] is apart from this: it seals objects of a shipped store that is plain here.
//!
//! Not here: caches. An encrypted store keeps none, and no segment of it is packed again.

mod frames;
mod key_file;
mod objects;
mod opening;
mod units;

pub(crate) use frames::Vault;
pub use key_file::{KEY_FILE_BYTES, KeyFile, WRAPPED_BYTES_MAX, WrapRandom};
pub use objects::{OBJECT_SEAL_BYTES, SEALED_OBJECT_FORM, sealed_object_form};
pub(crate) use opening::{KEY, key_fault, key_mark, make_key, open_vault};
pub use opening::{KeyUse, Rotated, ring_id, rotate_key};
pub use units::{FrameSeal, Packed, StoreKey, UNIT_BYTES_MAX};

#[cfg(test)]
mod tests;
