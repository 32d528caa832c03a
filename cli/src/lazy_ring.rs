//! A ring that is made when its key is first needed: verifying or copying a store asks for nothing.

use std::io;
use std::sync::{Arc, Mutex};

use acpdb_engine::ids::StoreId;
use acpdb_engine::keys::{KeyRing, NONCE_BYTES, Zeroizing};
use acpdb_engine::locks::steady;

/// The ring that wraps a store's keys.
pub(crate) type Ring = Arc<dyn KeyRing>;

/// A ring that is made once, by a question to a person or to the system.
pub(crate) struct LazyRing {
    name: String,
    make: Box<dyn Fn() -> io::Result<Ring> + Send + Sync>,
    made: Mutex<Option<Ring>>,
}

impl LazyRing {
    /// `make` is called when a key is first needed, and again only if it failed.
    pub(crate) fn new(name: String, make: impl Fn() -> io::Result<Ring> + Send + Sync + 'static) -> Self {
        Self { name, make: Box::new(make), made: Mutex::default() }
    }

    fn ring(&self) -> io::Result<Ring> {
        // The lock is held while a person is asked, so that two threads ask once.
        let mut made = steady(&self.made);
        if let Some(ring) = made.as_ref() {
            return Ok(Arc::clone(ring));
        }
        let ring = (self.make)()?;
        *made = Some(Arc::clone(&ring));
        Ok(ring)
    }
}

impl KeyRing for LazyRing {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn id(&self, store: StoreId) -> io::Result<[u8; 16]> {
        self.ring()?.id(store)
    }

    fn wrap(
        &self,
        store: StoreId,
        key: &[u8; 32],
        context: &[u8],
        nonce: &[u8; NONCE_BYTES],
    ) -> io::Result<Vec<u8>> {
        self.ring()?.wrap(store, key, context, nonce)
    }

    fn unwrap(
        &self,
        store: StoreId,
        wrapped: &[u8],
        context: &[u8],
    ) -> io::Result<Option<Zeroizing<[u8; 32]>>> {
        self.ring()?.unwrap(store, wrapped, context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use acpdb_engine::keys::RawKeyRing;

    use super::*;

    /// The ring's name needs no question. The ring asks again after a failure, never after an answer.
    #[test]
    fn a_ring_is_asked_for_once() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let ring = LazyRing::new("a ring".to_owned(), move || match count.fetch_add(1, Ordering::Relaxed) {
            0 => Err(io::Error::other("locked")),
            _ => Ok(Arc::new(RawKeyRing::new("raw", &[7; 32]))),
        });
        let store = StoreId([0; 16]);
        assert_eq!((ring.name(), asked.load(Ordering::Relaxed)), ("a ring".to_owned(), 0));
        assert!(ring.id(store).is_err());
        let wrapped = ring.wrap(store, &[1; 32], b"a stream", &[2; NONCE_BYTES]).unwrap();
        assert_eq!(ring.unwrap(store, &wrapped, b"a stream").unwrap().as_deref(), Some(&[1; 32]));
        assert!(ring.unwrap(store, &wrapped, b"another").unwrap().is_none());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}
