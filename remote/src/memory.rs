//! Objects in memory: for tests, and for hosts that move them elsewhere.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::{Bound, Range};
use std::sync::{Mutex, MutexGuard};

use acpdb_engine::locks::steady;

use crate::remote::{
    Created, LISTED_COUNT_MAX, ListedObject, ObjectTag, Remote, RemoteError, Swapped, is_key, read_exactly,
    within,
};

/// Objects in memory.
#[derive(Debug, Default)]
pub struct MemoryRemote {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl MemoryRemote {
    /// No object; the same as the default.
    pub fn new() -> Self {
        Self::default()
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        // Each change is one insertion or removal: a panic elsewhere leaves none half done.
        steady(&self.objects)
    }

    /// All objects, by key.
    pub fn all(&self) -> BTreeMap<String, Vec<u8>> {
        self.objects().clone()
    }

    /// The bytes of an object, whatever its key.
    pub fn find(&self, key: &str) -> Option<Vec<u8>> {
        self.objects().get(key).cloned()
    }

    /// Puts an object there, whatever its key: what a hostile remote has.
    pub fn set(&self, key: &str, bytes: Option<Vec<u8>>) {
        let mut objects = self.objects();
        match bytes {
            Some(bytes) => drop(objects.insert(key.to_owned(), bytes)),
            None => drop(objects.remove(key)),
        }
    }
}

fn check(key: &str) -> Result<(), RemoteError> {
    if is_key(key) { Ok(()) } else { Err(RemoteError::Refused { what: format!("the key {key:?}") }) }
}

impl Remote for MemoryRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        check(key)?;
        let mut objects = self.objects();
        if objects.contains_key(key) {
            return Ok(Created::Taken);
        }
        objects.insert(key.to_owned(), bytes.to_vec());
        Ok(Created::Here(ObjectTag::of(bytes)))
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        check(key)?;
        let mut objects = self.objects();
        match objects.get_mut(key) {
            Some(found) if ObjectTag::of(found) == *was => *found = bytes.to_vec(),
            _ => return Ok(Swapped::Moved),
        }
        Ok(Swapped::Here(ObjectTag::of(bytes)))
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        check(key)?;
        let bytes = read_exactly(bytes, length)?;
        let tag = ObjectTag::of(&bytes);
        self.objects().insert(key.to_owned(), bytes);
        Ok(tag)
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        check(key)?;
        let objects = self.objects();
        Ok(objects.get(key).map(|bytes| (within(bytes, range.as_ref()), ObjectTag::of(bytes))))
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let objects = self.objects();
        let from = if after < under { Bound::Included(under) } else { Bound::Excluded(after) };
        let rest = objects.range::<str, _>((from, Bound::Unbounded));
        let found = rest.take_while(|(key, _)| key.starts_with(under)).take(LISTED_COUNT_MAX);
        Ok(found.map(|(key, bytes)| ListedObject { key: key.clone(), bytes: bytes.len() as u64 }).collect())
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        check(key)?;
        self.objects().remove(key);
        Ok(())
    }
}
