//! Keys of encrypted stores: rings that hold them outside of the store, and reports of keys that were destroyed.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use acpdb_engine::keys::FileKeyRing;
//! use acpdb_engine::{Entry, Role, Store, StreamInfo};
//!
//! let ring = std::sync::Arc::new(FileKeyRing::create(&folder.path().join("mine.key"))?);
//! let store = Store::builder(folder.path().join("store")).keys(ring).open()?;
//! let session = store.session(StreamInfo::session("my-agent", "run-1"));
//! let _ = session.append([Entry::message("m1", Role::User, "only the key opens this")])?;
//! let shredded = store.shred(session.id(), "me", "asked for by the user")?;
//! assert_eq!(shredded.events, 2); // the opening of the session, the message: in no copy can they be read
//! # Ok(())
//! # }
//! ```

pub use crate::codec::NONCE_BYTES;
pub use crate::ids::SubjectId;
pub use crate::log::PUT_BACK;
pub use crate::storage::{FileKeyRing, KeyRing, PASSPHRASE_BYTES_MIN, PassphraseKeyRing, RawKeyRing};
pub use crate::store::{ShredReport, ShreddedStream, SubjectInfo, SubjectShredReport, ring_id, ring_ids};
pub use zeroize::Zeroizing;
