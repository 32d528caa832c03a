//! A remote in memory that counts its calls.

use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use crate::{Created, ListedObject, MemoryRemote, ObjectTag, Remote, RemoteError, Swapped};

/// A remote that counts its calls, and does something before one of them.
#[derive(Default)]
pub(super) struct CountedRemote {
    pub(super) real: Arc<MemoryRemote>,
    pub(super) count: AtomicU64,
    /// Keys of the objects that were read.
    pub(super) asked: Mutex<Vec<String>>,
    pub(super) meanwhile: Mutex<Option<Meanwhile>>,
    width: usize,
}

/// The number of a call, and what is done before it.
type Meanwhile = (u64, Box<dyn FnOnce() + Send>);

impl CountedRemote {
    /// A remote at which so many calls at a time are worth it.
    pub(super) fn wide(width: usize) -> Arc<Self> {
        Arc::new(Self { width, ..Self::default() })
    }

    fn counted(&self) -> &MemoryRemote {
        let number = self.count.fetch_add(1, SeqCst);
        let due = self.meanwhile.lock().unwrap().take_if(|(at, _)| *at == number);
        if let Some((_, act)) = due {
            act();
        }
        &self.real
    }
}

impl Remote for CountedRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        self.counted().create(key, bytes)
    }
    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        self.counted().swap(key, bytes, was)
    }
    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        self.counted().put(key, bytes, length)
    }
    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        self.asked.lock().unwrap().push(key.to_owned());
        self.counted().get(key, range)
    }
    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.counted().list(under, after)
    }
    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.counted().delete(key)
    }
    fn calls_at_once(&self) -> usize {
        self.width.max(1)
    }
}
