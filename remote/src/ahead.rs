//! Entries and packs that will be asked for next, read at the same time: each call of a bucket takes as long as the way there.
//!
//! ```text
//! get log/7   log/7     there: log/8 .. log/11 at a time, then 16, then 64, as far as the remote says that it is worth it
//! get log/30  kept, from the call before
//! ```
//!
//! Only what is there is kept: an object of these is never replaced, and one that is missing is looked for again when it is asked for.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::sync::Mutex;
use std::thread;

use acpdb_engine::ids::StoreId;
use acpdb_engine::locks::steady;

use crate::names::ObjectName;
use crate::remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped};

/// By how much more is read ahead after each time that all was there.
const GROWTH: usize = 4;

/// Longest object that is read ahead: so a prefix that lies fills no memory.
const AHEAD_BYTES_MAX: u64 = 2 << 20;

/// The answer of a get.
type Got = Result<Option<(Vec<u8>, ObjectTag)>, RemoteError>;

/// Does a call for each thing, all at a time, from threads of their own.
pub(crate) fn at_a_time<T: Sync, R: Send>(
    things: &[T],
    call: impl Fn(&T) -> Result<R, RemoteError> + Sync,
) -> Vec<Result<R, RemoteError>> {
    if let [only] = things {
        return vec![call(only)];
    }
    let ended = || RemoteError::Broken { what: "a call ended in a panic".to_owned() };
    thread::scope(|scope| {
        let call = &call;
        let threads: Vec<_> = things.iter().map(|thing| scope.spawn(move || call(thing))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(ended()))).collect()
    })
}

/// A remote of one store, from which one thread reads in order.
pub(crate) struct AheadRemote<'r> {
    real: &'r dyn Remote,
    store: StoreId,
    state: Mutex<AheadState>,
}

struct AheadState {
    kept: BTreeMap<String, (Vec<u8>, ObjectTag)>,
    /// How many are read at a time.
    width: usize,
    /// Objects that will be asked for, in order.
    expected: Vec<String>,
}

impl<'r> AheadRemote<'r> {
    pub(crate) fn new(real: &'r dyn Remote, store: StoreId) -> Self {
        let state = Mutex::new(AheadState { kept: BTreeMap::new(), width: 1, expected: Vec::new() });
        Self { real, store, state }
    }

    /// Says which objects will be asked for. They are there, so as many are read as it is worth; segments alone, since they are long.
    pub(crate) fn expect(&self, names: impl Iterator<Item = ObjectName>) {
        let names = names.filter(|name| !matches!(name, ObjectName::Segment(_)));
        steady(&self.state).expected = names.map(|name| name.key(self.store)).collect();
    }

    /// The keys to be read at a time, of which the first one is asked for.
    fn window(&self, key: &str) -> Vec<String> {
        let state = steady(&self.state);
        let most = self.real.calls_at_once().max(1);
        if let Some(from) = state.expected.iter().position(|expected| expected == key) {
            return state.expected.iter().skip(from).take(most).cloned().collect();
        }
        match ObjectName::parse(self.store, key) {
            Some(ObjectName::Entry(number)) => {
                let numbers = (number..).take(state.width.min(most));
                numbers.map(|next| ObjectName::Entry(next).key(self.store)).collect()
            }
            _ => vec![key.to_owned()],
        }
    }
}

impl Remote for AheadRemote<'_> {
    fn get(&self, key: &str, range: Option<Range<u64>>) -> Got {
        if range.is_some() {
            return self.real.get(key, range);
        }
        if let Some(found) = steady(&self.state).kept.remove(key) {
            return Ok(Some(found));
        }
        let keys = self.window(key);
        let asked = |next: &String| next == key;
        let got = at_a_time(&keys, |next| {
            self.real.get(next, if asked(next) { None } else { Some(0..AHEAD_BYTES_MAX) })
        });
        let mut state = steady(&self.state);
        let (mut found, mut are_all_there) = (Ok(None), true);
        for (next, got) in keys.into_iter().zip(got) {
            are_all_there &= matches!(got, Ok(Some(_)));
            match got {
                _ if asked(&next) => found = got,
                Ok(Some((object, tag))) if (object.len() as u64) < AHEAD_BYTES_MAX => {
                    state.kept.insert(next, (object, tag));
                }
                // One that failed, is missing, or is longer, is asked for again, alone, when it is needed.
                _ => are_all_there = false,
            }
        }
        state.width = if are_all_there { state.width.saturating_mul(GROWTH) } else { 1 };
        found
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        self.real.create(key, bytes)
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        self.real.swap(key, bytes, was)
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        self.real.put(key, bytes, length)
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.real.list(under, after)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.real.delete(key)
    }
}
