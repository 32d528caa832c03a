//! A rehearsal: what is written stays in memory and is counted, and is found there first. The remote itself is only read.
//!
//! It says what shipping would send, and lets a store be restored whose head was lost and that may not be written.
//! Bytes of segments are counted and not kept: no rehearsal reads them.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use acpdb_engine::locks::steady;

use crate::memory::MemoryRemote;
use crate::remote::{
    Created, LISTED_COUNT_MAX, ListedObject, ObjectTag, Remote, RemoteError, Swapped, read_exactly,
};

/// Requests of a rehearsal, and the bytes in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct RehearsedCount {
    /// Objects, each as often as it is written.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that write or list.
    pub writes: u64,
    /// Requests that read.
    pub reads: u64,
}

#[derive(Debug, Default)]
struct Rehearsed {
    gone: BTreeSet<String>,
    count: RehearsedCount,
}

/// A remote of which nothing is changed, whatever is written.
pub struct RehearsedRemote {
    real: Arc<dyn Remote>,
    kept: MemoryRemote,
    state: Mutex<Rehearsed>,
}

impl RehearsedRemote {
    /// A rehearsal on what `real` has. Makes no request.
    pub fn new(real: Arc<dyn Remote>) -> Self {
        Self { real, kept: MemoryRemote::new(), state: Mutex::default() }
    }

    /// Requests so far.
    pub fn count(&self) -> RehearsedCount {
        steady(&self.state).count
    }

    /// An object as it would be there.
    fn found(
        &self,
        key: &str,
        range: Option<Range<u64>>,
    ) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        match self.kept.get(key, range.clone())? {
            None if self.is_gone(key) => Ok(None),
            None => self.real.get(key, range),
            found => Ok(found),
        }
    }

    fn is_gone(&self, key: &str) -> bool {
        steady(&self.state).gone.contains(key)
    }

    fn write(&self, key: &str, bytes: Vec<u8>) -> ObjectTag {
        let tag = ObjectTag::of(&bytes);
        let mut state = steady(&self.state);
        state.gone.remove(key);
        state.count.writes = state.count.writes.saturating_add(1);
        state.count.objects = state.count.objects.saturating_add(1);
        state.count.bytes = state.count.bytes.saturating_add(bytes.len() as u64);
        self.kept.set(key, Some(if key.contains("/seg/") { Vec::new() } else { bytes }));
        tag
    }
}

impl Remote for RehearsedRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        if self.found(key, Some(0..0))?.is_some() {
            return Ok(Created::Taken);
        }
        Ok(Created::Here(self.write(key, bytes.to_vec())))
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        if self.found(key, None)?.is_none_or(|(_, found)| found != *was) {
            return Ok(Swapped::Moved);
        }
        Ok(Swapped::Here(self.write(key, bytes.to_vec())))
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        Ok(self.write(key, read_exactly(bytes, length)?))
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        let mut state = steady(&self.state);
        state.count.reads = state.count.reads.saturating_add(1);
        drop(state);
        self.found(key, range)
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let mut state = steady(&self.state);
        state.count.writes = state.count.writes.saturating_add(1);
        drop(state);
        let mut found = self.kept.list(under, after)?;
        let mut from = after.to_owned();
        loop {
            let listed = self.real.list(under, &from)?;
            let Some(last) = listed.iter().map(|listed| listed.key.clone()).max() else { break };
            let is_new = |listed: &ListedObject| {
                !self.is_gone(&listed.key) && !found.iter().any(|kept| kept.key == listed.key)
            };
            let more: Vec<_> = listed.into_iter().filter(is_new).collect();
            let is_empty = more.is_empty();
            found.extend(more);
            // A page of which all is gone is not the end.
            if !is_empty || last <= from {
                break;
            }
            from = last;
        }
        found.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        found.truncate(LISTED_COUNT_MAX);
        Ok(found)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.kept.set(key, None);
        steady(&self.state).gone.insert(key.to_owned());
        Ok(())
    }

    fn has_versions(&self) -> bool {
        self.real.has_versions()
    }

    fn calls_at_once(&self) -> usize {
        self.real.calls_at_once()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rehearsal_changes_nothing_and_reads_as_if_it_had() {
        let real = Arc::new(MemoryRemote::new());
        real.set("s/a", Some(b"old".to_vec()));
        real.set("s/b", Some(b"b".to_vec()));
        let before = real.all();
        let remote = RehearsedRemote::new(Arc::<MemoryRemote>::clone(&real));
        let read = |key: &str| remote.get(key, None).unwrap().map(|(bytes, _)| bytes);
        assert_eq!(remote.create("s/a", b"new").unwrap(), Created::Taken);
        let (_, was) = remote.get("s/a", None).unwrap().unwrap();
        assert!(matches!(remote.swap("s/a", b"new", &was).unwrap(), Swapped::Here(_)));
        assert_eq!(remote.swap("s/a", b"late", &was).unwrap(), Swapped::Moved);
        assert!(matches!(remote.create("s/c", b"c").unwrap(), Created::Here(_)));
        remote.delete("s/b").unwrap();
        assert_eq!(
            (read("s/a"), read("s/b"), read("s/c")),
            (Some(b"new".to_vec()), None, Some(b"c".to_vec()))
        );
        let keys: Vec<_> = remote.list("s/", "").unwrap().into_iter().map(|listed| listed.key).collect();
        assert_eq!(keys, ["s/a", "s/c"]);
        assert!(matches!(remote.create("s/b", b"again").unwrap(), Created::Here(_)));
        let _ = remote.put("s/seg/x", &mut &b"1234"[..], 4).unwrap();
        assert_eq!(remote.count(), RehearsedCount { objects: 4, bytes: 13, writes: 5, reads: 4 });
        assert_eq!(real.all(), before);
    }
}
