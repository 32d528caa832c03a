//! Objects that will be asked for next, read at the same time: each call of a bucket takes as long as the way there.
//!
//! ```text
//! get log/7   log/7     there: log/8 .. log/11 at a time, then 16, then 64, as far as the remote says that it is worth it
//! get log/30  the answer from the call before, if it was read then; each answer is given once
//! ```

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::sync::Mutex;
use std::thread;

use acpdb_engine::ids::StoreId;
use acpdb_engine::locks::steady;

use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::ObjectName;
use crate::objects::get_settled;
use crate::remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped, within};

/// By how much more is read ahead after each time that all was there.
const GROWTH: usize = 4;

/// Longest object that is read ahead: so a prefix that lies fills no memory.
const AHEAD_BYTES_MAX: u64 = 2 << 20;
/// Bytes of entries that are kept for who asks a second time, about.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// The answer of a get.
type Got = Result<Option<(Vec<u8>, ObjectTag)>, RemoteError>;

fn ended() -> RemoteError {
    RemoteError::Broken { what: "a call ended in a panic".to_owned() }
}

/// Does a call for each thing, as many at a time as the remote says that it is worth, from threads of their own.
pub(crate) fn at_a_time<T: Sync, R: Send>(
    remote: &dyn Remote,
    things: &[T],
    call: impl Fn(&T) -> Result<R, RemoteError> + Sync,
) -> Vec<Result<R, RemoteError>> {
    let mut done = Vec::with_capacity(things.len());
    for some in things.chunks(remote.calls_at_once().max(1)) {
        if let [only] = some {
            done.push(call(only));
            continue;
        }
        thread::scope(|scope| {
            let call = &call;
            let threads: Vec<_> = some.iter().map(|thing| scope.spawn(move || call(thing))).collect();
            done.extend(threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(ended()))));
        });
    }
    done
}

/// Does two things, at the same time if the remote says that it is worth it; else the first one first.
pub(crate) fn both<A, B: Send>(
    remote: &dyn Remote,
    first: impl FnOnce() -> A,
    second: impl FnOnce() -> Result<B, RemoteError> + Send,
) -> (A, Result<B, RemoteError>) {
    if remote.calls_at_once() <= 1 {
        return (first(), second());
    }
    thread::scope(|scope| {
        let beside = scope.spawn(second);
        (first(), beside.join().unwrap_or_else(|_| Err(ended())))
    })
}

/// A remote of one store, from which one thread reads in order.
pub(crate) struct AheadRemote<'r> {
    real: &'r dyn Remote,
    store: StoreId,
    state: Mutex<AheadState>,
}

struct AheadState {
    /// Answers that were not asked for yet; `None`: the object was missing.
    kept: BTreeMap<String, Option<(Vec<u8>, ObjectTag)>>,
    /// Bytes that were kept for who asks a second time, in all.
    again_bytes: usize,
    /// How many are read at a time.
    width: usize,
    /// Objects that will be asked for, in order.
    expected: Vec<String>,
}

impl<'r> AheadRemote<'r> {
    pub(crate) fn new(real: &'r dyn Remote, store: StoreId) -> Self {
        let (kept, expected) = (BTreeMap::new(), Vec::new());
        let state = AheadState { kept, again_bytes: 0, width: 1, expected };
        Self { real, store, state: Mutex::new(state) }
    }

    pub(crate) const fn store(&self) -> StoreId {
        self.store
    }

    /// Says which objects will be asked for: as many as it is worth are read with the first one; segments alone, since they are long.
    pub(crate) fn expect(&self, names: impl Iterator<Item = ObjectName>) {
        let names = names.filter(|name| !matches!(name, ObjectName::Segment(_)));
        self.expect_keys(names.map(|name| name.key(self.store)).collect());
    }

    /// [`AheadRemote::expect`], of any objects.
    pub(crate) fn expect_keys(&self, keys: Vec<String>) {
        let mut state = steady(&self.state);
        // Who begins anew looks anew for what was missing.
        state.kept.retain(|_, found| found.is_some());
        state.expected = keys;
    }

    /// Reads the packs of a head and the first entries behind it, as many as it is worth, before they are asked for.
    pub(crate) fn read_ahead(&self, head: &RemoteHead) {
        let most = self.real.calls_at_once();
        if most <= 1 {
            return;
        }
        let packs = head.packs.iter().copied().map(ObjectName::Pack);
        let names = packs.chain((head.boundary..).map(ObjectName::Entry));
        let keys: Vec<_> = names.take(most).map(|name| name.key(self.store)).collect();
        let got = at_a_time(self.real, &keys, |key| self.real.get(key, Some(0..AHEAD_BYTES_MAX)));
        let mut state = steady(&self.state);
        keys.into_iter().zip(got).for_each(|(key, got)| state.keep(key, got));
    }

    /// The entry of a number, which stays at hand for who reads it again; `None`: it was missing when it was looked for.
    pub(crate) fn entry(&self, number: u64) -> Result<Option<Vec<u8>>, ChainError> {
        let key = ObjectName::Entry(number).key(self.store);
        let Some((object, tag)) = get_settled(self, &key)? else { return Ok(None) };
        let mut state = steady(&self.state);
        let again_bytes = state.again_bytes.saturating_add(object.len());
        if again_bytes <= KEPT_BYTES_MAX {
            state.again_bytes = again_bytes;
            state.kept.insert(key, Some((object.clone(), tag)));
        }
        Ok(Some(object))
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

impl AheadState {
    /// Keeps an answer. One that failed, or is too long, is asked for again, alone, when it is needed.
    fn keep(&mut self, key: String, got: Got) {
        // See above.
        if let Ok(found) = got
            && found.as_ref().is_none_or(|(object, _)| (object.len() as u64) < AHEAD_BYTES_MAX)
        {
            self.kept.insert(key, found);
        }
    }
}

impl Remote for AheadRemote<'_> {
    fn get(&self, key: &str, range: Option<Range<u64>>) -> Got {
        if let Some(found) = steady(&self.state).kept.remove(key) {
            return Ok(found.map(|(object, tag)| match &range {
                Some(range) => (within(&object, Some(range)), tag),
                None => (object, tag),
            }));
        }
        if range.is_some() {
            return self.real.get(key, range);
        }
        let keys = self.window(key);
        let asked = |next: &String| next == key;
        let got = at_a_time(self.real, &keys, |next| {
            self.real.get(next, if asked(next) { None } else { Some(0..AHEAD_BYTES_MAX) })
        });
        let mut state = steady(&self.state);
        let (mut found, mut are_all_there) = (Ok(None), true);
        for (next, got) in keys.into_iter().zip(got) {
            are_all_there &= matches!(got, Ok(Some(_)));
            if asked(&next) {
                found = got;
            } else {
                state.keep(next, got);
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

    fn calls_at_once(&self) -> usize {
        self.real.calls_at_once()
    }
}
