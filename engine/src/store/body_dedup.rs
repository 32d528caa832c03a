//! Bodies this process has written lately, by content, so that equal ones are stored once.
//!
//! A small cache and no promise: without an entry a duplicate is written, and sealing merges equal bytes. Keys are
//! digests keyed with a secret of this process; they never reach the disk.

use rustc_hash::FxHashMap;

use crate::codec::BodyForm;
use crate::failpoints::{Failpoint, is_enabled};
use crate::ids::{Digest, Position, Seq, StreamId};

/// Bodies shorter than this cost less than looking them up.
pub(super) const SHARE_BYTES_MIN: usize = 256;

/// Most bodies remembered; at 60 bytes each.
const ENTRY_COUNT_MAX: usize = 1 << 16;

/// Where a body is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stored {
    pub(super) digest: Digest,
    pub(super) bytes: u32,
    pub(super) position: Position,
    pub(super) form: BodyForm,
}

/// The cache: two generations, so that forgetting is cheap and what is used stays.
#[derive(Debug)]
pub(super) struct BodyDedup {
    secret: [u8; 32],
    young: FxHashMap<[u8; 16], Stored>,
    old: FxHashMap<[u8; 16], Stored>,
    /// Everything in it was stored after this seq.
    basis: Option<Seq>,
}

impl BodyDedup {
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self { secret, young: FxHashMap::default(), old: FxHashMap::default(), basis: None }
    }

    /// What a content goes by. `owner`: the stream whose key seals it, in an encrypted store, where no stream shares with another.
    pub(super) fn key(&self, bytes: &[u8], owner: Option<StreamId>) -> [u8; 16] {
        let length = bytes.len().to_be_bytes();
        let content = if is_enabled(Failpoint::DedupeByLength) { &length } else { bytes };
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        if let Some(owner) = owner {
            hasher.update(owner.as_bytes());
        }
        let hash = hasher.update(content).finalize();
        let mut key = [0; 16];
        key.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
        key
    }

    pub(super) fn get(&mut self, key: &[u8; 16]) -> Option<Stored> {
        if let Some(stored) = self.young.get(key) {
            return Some(*stored);
        }
        let stored = *self.old.get(key)?;
        self.put(*key, stored);
        Some(stored)
    }

    pub(super) fn put(&mut self, key: [u8; 16], stored: Stored) {
        if self.young.len() >= ENTRY_COUNT_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, stored);
    }

    /// The seq after which everything in it was stored.
    pub(super) fn basis(&self) -> Seq {
        self.basis.unwrap_or_default()
    }

    /// Says that what is put from here on was stored after `basis`.
    pub(super) fn begin(&mut self, basis: Seq) {
        self.basis.get_or_insert(basis);
    }

    /// Forgets everything: after a failed write nothing is known to be stored.
    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
        self.basis = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_survives_a_change_of_generation() {
        let mut dedup = BodyDedup::new([1; 32]);
        let stored =
            Stored { digest: Digest::ZERO, bytes: 300, position: Position(7), form: BodyForm::plain(300) };
        let kept = dedup.key(b"kept", None);
        dedup.put(kept, stored);
        for number in 0..ENTRY_COUNT_MAX {
            let key = dedup.key(&number.to_be_bytes(), None);
            dedup.put(key, stored);
            assert_eq!(dedup.get(&kept), Some(stored), "after {number}");
        }
        assert!(dedup.young.len() + dedup.old.len() <= ENTRY_COUNT_MAX);
    }
}
