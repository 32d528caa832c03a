//! Stores whose objects their bucket must not read: a layer between the chain and the remote, which seals what is written and opens what is read.
//!
//! ```text
//! chain -- plain --> EncryptedRemote -- sealed under the name --> remote         s/STORE/meta/object-key: the key, wrapped
//! ```
//!
//! Whether a store is sealed is a matter of what is there: a store of which nothing is there yet is sealed if a ring for new keys was given, and stays as
//! it began. Names, lengths and times of objects stay visible. Without its wrapped key a sealed store is noise.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use acpdb_engine::codec::NONCE_BYTES;
use acpdb_engine::ids::StoreId;
use acpdb_engine::locks::steady;
use acpdb_engine::storage::{Entropy as _, KeyRing, SystemEntropy};
use acpdb_engine::vault::{
    KEY_FILE_BYTES, KeyFile, OBJECT_SEAL_BYTES, SEALED_OBJECT_FORM, StoreKey, WrapRandom, sealed_object_form,
};

use crate::ahead::both;
use crate::error::ChainError;
use crate::names::{HEADS, head_key, meta_key, store_keys};
use crate::objects::{Settled, create_settled, get_settled, swap_settled};
use crate::remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped, read_exactly, within};

/// The name of the wrapped key of a store's objects.
const OBJECT_KEY: &str = "object-key";
/// Bytes that tell a sealed object from a plain one.
const TOLD_BYTES: u64 = 10;
/// How often the key of a new store is tried to be made.
const TRY_COUNT: u32 = 8;

/// Makes a ring for the key of a store, which is new.
pub type MakeRing = dyn Fn() -> io::Result<Arc<dyn KeyRing>> + Send + Sync;
/// Finds the ring of an id; `None`: none is at hand.
pub type FindRing = dyn Fn(&[u8; 16]) -> io::Result<Option<Arc<dyn KeyRing>>> + Send + Sync;

/// How the objects of a store are, as far as it was looked at.
#[derive(Clone)]
enum Sealing {
    Plain,
    Sealed(StoreKey),
}

/// A remote below which stores may be that are sealed.
pub struct EncryptedRemote {
    remote: Arc<dyn Remote>,
    find_ring: Box<FindRing>,
    new_ring: Option<Box<MakeRing>>,
    known: Mutex<BTreeMap<StoreId, Sealing>>,
    /// Held by who finds out what is not known: of calls at a time one asks for a key, which may take a person or a long derivation.
    asking: Mutex<()>,
}

impl EncryptedRemote {
    /// A remote without rings: sealed objects cannot be read yet. Makes no request.
    pub fn new(remote: Arc<dyn Remote>) -> Self {
        Self {
            remote,
            find_ring: Box::new(|_| Ok(None)),
            new_ring: None,
            known: Mutex::default(),
            asking: Mutex::default(),
        }
    }

    /// Opens what is sealed with the rings that are found by their ids.
    #[must_use]
    pub fn find_rings(self, find_ring: Box<FindRing>) -> Self {
        Self { find_ring, ..self }
    }

    /// Opens what is sealed with one ring.
    #[must_use]
    pub fn ring(self, ring: Arc<dyn KeyRing>) -> Self {
        self.find_rings(Box::new(move |_| Ok(Some(Arc::clone(&ring)))))
    }

    /// Seals stores of which nothing is there yet, each with a key that is wrapped by a ring of `make_ring`. A store that is there as it is can be written no
    /// more through this remote.
    #[must_use]
    pub fn seal_new(self, make_ring: Box<MakeRing>) -> Self {
        Self { new_ring: Some(make_ring), ..self }
    }

    /// Whether the objects of a store are sealed. Cost: one round trip.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn is_sealed(&self, store: StoreId) -> Result<bool, RemoteError> {
        is_sealed_there(&*self.remote, store)
    }

    fn known(&self, store: StoreId) -> Option<Sealing> {
        steady(&self.known).get(&store).cloned()
    }

    fn learn(&self, store: StoreId, sealing: Sealing) -> Sealing {
        steady(&self.known).insert(store, sealing.clone());
        sealing
    }

    /// The key of a store that is sealed.
    fn key_of(&self, store: StoreId) -> Result<StoreKey, RemoteError> {
        let key_known = || match self.known(store) {
            Some(Sealing::Sealed(key)) => Some(key),
            _ => None,
        };
        if let Some(key) = key_known() {
            return Ok(key);
        }
        let _asking = steady(&self.asking);
        if let Some(key) = key_known() {
            return Ok(key);
        }
        let found = get_settled(&*self.remote, &meta_key(store, OBJECT_KEY)).map_err(of_remote)?;
        let (bytes, _) = found.ok_or_else(|| key_is_gone(store))?;
        let key = self.unwrap(store, &bytes)?;
        self.learn(store, Sealing::Sealed(key.clone()));
        Ok(key)
    }

    fn unwrap(&self, store: StoreId, bytes: &[u8]) -> Result<StoreKey, RemoteError> {
        let broken = |what: String| RemoteError::Broken { what };
        let key = meta_key(store, OBJECT_KEY);
        let file = KeyFile::decode(bytes)
            .map_err(|invalid| broken(format!("{key} is no wrapped key: {}", invalid.found)))?;
        if file.is_destroyed() {
            return Err(key_is_gone(store));
        }
        let failed =
            |error: io::Error| RemoteError::Locked { what: format!("the key of store {store}: {error}") };
        let Some(ring) = (self.find_ring)(&file.ring).map_err(failed)? else {
            return Err(RemoteError::no_key(store));
        };
        let opened = file.unwrap(&*ring).map_err(failed)?;
        opened.ok_or_else(|| RemoteError::Locked {
            what: format!("{} does not open store {store}, which is encrypted there", ring.name()),
        })
    }

    /// How an object of a store is to be written.
    fn sealing(&self, store: StoreId) -> Result<Sealing, RemoteError> {
        if let Some(known) = self.known(store) {
            return Ok(known);
        }
        let _asking = steady(&self.asking);
        if let Some(known) = self.known(store) {
            return Ok(known);
        }
        let object_key = meta_key(store, OBJECT_KEY);
        for _ in 0..TRY_COUNT {
            let find_key = || get_settled(&*self.remote, &object_key).map_err(of_remote);
            let (found, there) = both(&*self.remote, find_key, || self.first_object(store));
            let found = found?;
            if let Some((bytes, _)) = &found
                && (bytes.len() == KEY_FILE_BYTES || self.new_ring.is_none())
            {
                return Ok(self.learn(store, Sealing::Sealed(self.unwrap(store, bytes)?)));
            }
            let there = there?;
            if there.as_ref().is_some_and(|object| sealed_object_form(object).is_some()) {
                return Err(key_is_gone(store));
            }
            let Some(make_ring) = &self.new_ring else { return Ok(self.learn(store, Sealing::Plain)) };
            if there.is_some() {
                return Err(is_plain(store));
            }
            let (key, file) = drawn(&**make_ring)?;
            let is_made = match found {
                None => create_settled(&*self.remote, &object_key, &file)
                    .map(|made| matches!(made, Settled::Mine)),
                // Its creation was torn, and nothing was sealed with it.
                Some((_, tag)) => {
                    swap_settled(&*self.remote, &object_key, &file, &tag).map(|made| made.is_some())
                }
            };
            if is_made.map_err(of_remote)? {
                return Ok(self.learn(store, Sealing::Sealed(key)));
            }
        }
        Err(RemoteError::Slow { what: format!("making {object_key}") })
    }

    /// The beginning of an object that shows whether a store is sealed; `None`: there is none.
    fn first_object(&self, store: StoreId) -> Result<Option<Vec<u8>>, RemoteError> {
        let beginning = |key: &str| self.remote.get(key, Some(0..TOLD_BYTES));
        if let Some((head, _)) = beginning(&head_key(store))? {
            return Ok(Some(head));
        }
        // The head may be lost.
        let under = format!("{}log/", store_keys(store));
        let listed = self.remote.list(&under, "")?;
        let Some(first) = listed.first() else { return Ok(None) };
        Ok(beginning(&first.key)?.map(|(object, _)| object))
    }

    /// The bytes as they are written.
    fn sealed(&self, key: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>, RemoteError> {
        let Some(store) = store_of_key(key) else { return Ok(None) };
        match self.sealing(store)? {
            Sealing::Plain => Ok(None),
            Sealing::Sealed(store_key) => {
                let mut nonce = [0; NONCE_BYTES];
                SystemEntropy.fill(&mut nonce).map_err(|error| no_random(&error))?;
                let sealed = store_key.seal_object(key, &nonce, bytes);
                let too_long = || RemoteError::Broken { what: format!("{key} is too long to be sealed") };
                sealed.map(Some).ok_or_else(too_long)
            }
        }
    }

    /// An object as it was before it was sealed. One that does not open, or that is plain among sealed ones, comes back without bytes: it is no object of a
    /// chain, which passes over it, or says that it is needed.
    fn opened(&self, store: StoreId, key: &str, bytes: Vec<u8>) -> Result<Vec<u8>, RemoteError> {
        match sealed_object_form(&bytes) {
            Some(SEALED_OBJECT_FORM) => Ok(self.key_of(store)?.open_object(key, &bytes).unwrap_or_default()),
            Some(form) => {
                let what = format!("read {key}: a newer acpdb encrypted it, in form {form}");
                Err(RemoteError::Unable { what })
            }
            None if matches!(self.known(store), Some(Sealing::Sealed(_))) => Ok(Vec::new()),
            None if self.new_ring.is_some() && key.starts_with(HEADS) => Err(is_plain(store)),
            None => Ok(bytes),
        }
    }
}

impl Remote for EncryptedRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        let sealed = self.sealed(key, bytes)?;
        self.remote.create(key, sealed.as_deref().unwrap_or(bytes))
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        let sealed = self.sealed(key, bytes)?;
        self.remote.swap(key, sealed.as_deref().unwrap_or(bytes), was)
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        let is_plain = match store_of_key(key) {
            Some(store) => matches!(self.sealing(store)?, Sealing::Plain),
            None => true,
        };
        if is_plain {
            return self.remote.put(key, bytes, length);
        }
        let whole = read_exactly(bytes, length)?;
        let sealed = self.sealed(key, &whole)?.unwrap_or(whole);
        self.remote.put(key, &mut &*sealed, sealed.len() as u64)
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        let store = store_of_key(key);
        // Whether it is there needs no key.
        let is_about_being = range.as_ref().is_some_and(|range| range.start == range.end);
        let (Some(store), false) = (store, is_about_being) else { return self.remote.get(key, range) };
        // A beginning that is the whole object can be opened.
        let beginning = range.as_ref().filter(|range| range.start == 0);
        let end = beginning.map(|range| range.end.saturating_add(OBJECT_SEAL_BYTES));
        let found = self.remote.get(key, end.map(|end| 0..end))?;
        let is_part = |found: &(Vec<u8>, ObjectTag)| end.is_some_and(|end| found.0.len() as u64 >= end);
        let found = if found.as_ref().is_some_and(is_part) { self.remote.get(key, None)? } else { found };
        let Some((bytes, tag)) = found else { return Ok(None) };
        let object = self.opened(store, key, bytes)?;
        Ok(Some((range.map_or_else(|| object.clone(), |range| within(&object, Some(&range))), tag)))
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.remote.list(under, after)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.remote.delete(key)
    }

    fn has_versions(&self) -> bool {
        self.remote.has_versions()
    }

    fn calls_at_once(&self) -> usize {
        self.remote.calls_at_once()
    }
}

/// Whether the objects of a store are sealed. Cost: one round trip.
pub(crate) fn is_sealed_there(remote: &dyn Remote, store: StoreId) -> Result<bool, RemoteError> {
    Ok(remote.get(&meta_key(store, OBJECT_KEY), Some(0..0))?.is_some())
}

/// A new key, and its file.
fn drawn(make_ring: &MakeRing) -> Result<(StoreKey, [u8; KEY_FILE_BYTES]), RemoteError> {
    let failed = |error: io::Error| RemoteError::Locked { what: error.to_string() };
    let ring = make_ring().map_err(failed)?;
    let key = StoreKey::draw(&SystemEntropy).map_err(|error| no_random(&error))?;
    let random = WrapRandom::draw(&SystemEntropy).map_err(|error| no_random(&error))?;
    let file = KeyFile::wrap(&key, &*ring, &random).map_err(failed)?;
    Ok((key, file.encode()))
}

fn no_random(error: &io::Error) -> RemoteError {
    RemoteError::Broken { what: format!("drawing random bytes: {error}") }
}

fn key_is_gone(store: StoreId) -> RemoteError {
    let what = format!("store {store} is encrypted there, and its key is gone: it cannot be read any more");
    RemoteError::Locked { what }
}

fn is_plain(store: StoreId) -> RemoteError {
    let what = format!("store {store} was shipped there as it is, and stays so; encrypt it at another place");
    RemoteError::Locked { what }
}

fn of_remote(error: ChainError) -> RemoteError {
    match error {
        ChainError::Remote(error) => error,
        error => RemoteError::Broken { what: error.to_string() },
    }
}

/// The store of which a key names an object that may be sealed.
fn store_of_key(key: &str) -> Option<StoreId> {
    let named = if let Some(name) = key.strip_prefix(HEADS) {
        name
    } else {
        let (name, rest) = key.strip_prefix("s/")?.split_once('/')?;
        (rest != format!("meta/{OBJECT_KEY}")).then_some(name)?
    };
    StoreId::from_hex(named).filter(|store| store.to_hex() == named)
}
