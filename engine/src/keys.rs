//! Rings: keys that wrap other keys, and that lie in a file, in memory, or in a person's head.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use acpdb_engine::keys::{KeyRing, NONCE_BYTES, PassphraseKeyRing};
//!
//! let (ring, salt) = (PassphraseKeyRing::new("correct horse battery")?, [7; 16]);
//! let wrapped = ring.wrap(&salt, &[1; 32], b"a signing key", &[2; NONCE_BYTES])?;
//! assert_eq!(ring.unwrap(&salt, &wrapped, b"a signing key")?.as_deref(), Some(&[1; 32]));
//! assert!(ring.unwrap(&salt, &wrapped, b"another use")?.is_none());
//! # Ok(())
//! # }
//! ```

pub use crate::codec::NONCE_BYTES;
pub use crate::storage::{FileKeyRing, KeyRing, PASSPHRASE_BYTES_MIN, PassphraseKeyRing, RawKeyRing};
pub use crate::vault::{KeyUse, Rotated, ring_id};
pub use zeroize::Zeroizing;
