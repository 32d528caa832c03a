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
        let (asked, others) =
            keys.split_first().ok_or_else(|| RemoteError::Broken { what: key.to_owned() })?;
        let (found, ahead) = thread::scope(|scope| {
            let get = |key| move || self.real.get(key, Some(0..AHEAD_BYTES_MAX));
            let threads: Vec<_> = others.iter().map(|key| (key, scope.spawn(get(key)))).collect();
            let found = self.real.get(asked, None);
            // One that failed, or is longer, is asked for again, alone, when it is needed.
            let done = |(key, thread): (&String, thread::ScopedJoinHandle<'_, Got>)| {
                // As said above.
                let (object, tag) = thread.join().ok()?.ok().flatten()?;
                let is_whole = (object.len() as u64) < AHEAD_BYTES_MAX;
                is_whole.then(|| (key.clone(), (object, tag)))
            };
            (found, threads.into_iter().filter_map(done).collect::<Vec<_>>())
        });
        let mut state = steady(&self.state);
        let are_all_there = matches!(found, Ok(Some(_))) && ahead.len() == others.len();
        state.width = if are_all_there { state.width.saturating_mul(GROWTH) } else { 1 };
        state.kept.extend(ahead);
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
