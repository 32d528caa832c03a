//! What a body that is written needs: a salt, or the place of an equal one that this process wrote lately.
//!
//! The cache of places is small and no promise: without an entry a duplicate is written, and sealing merges equal bytes. Keys are hashes of
//! contents; they stay in memory. Salts come in quantity from one seed of the operating system.

use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::codec::BodyForm;
use crate::failpoints::{Failpoint, is_enabled};
use crate::ids::{Digest, Position, Seq, StreamId};

/// Bodies shorter than this cost less than looking them up.
pub(super) const SHARE_BYTES_MIN: usize = 256;

/// Most bodies remembered; at 120 bytes each.
const ENTRY_COUNT_MAX: usize = 1 << 15;

/// Where a body is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stored {
    pub(super) digest: Digest,
    pub(super) bytes: u32,
    pub(super) position: Position,
    pub(super) form: BodyForm,
}

/// What a content goes by.
pub(super) type BodyKey = (blake3::Hash, StreamId);

/// The cache: two generations, so that forgetting is cheap and what is used stays.
#[derive(Debug, Default)]
pub(super) struct BodyDedup {
    young: FxHashMap<BodyKey, Stored>,
    old: FxHashMap<BodyKey, Stored>,
    /// Everything in it was stored after this seq.
    basis: Option<Seq>,
}

impl BodyDedup {
    /// What a content goes by: the hash that its digest is made of, too. `owner`: the stream whose key seals it, in an encrypted
    /// store, where no stream shares with another.
    pub(super) fn key(bytes: usize, content: &blake3::Hash, owner: Option<StreamId>) -> BodyKey {
        let content =
            if is_enabled(Failpoint::DedupeByLength) { blake3::hash(&bytes.to_be_bytes()) } else { *content };
        (content, owner.unwrap_or(StreamId::STORE))
    }

    pub(super) fn get(&mut self, key: &BodyKey) -> Option<Stored> {
        if let Some(stored) = self.young.get(key) {
            return Some(*stored);
        }
        let stored = *self.old.get(key)?;
        self.put(*key, stored);
        Some(stored)
    }

    pub(super) fn put(&mut self, key: BodyKey, stored: Stored) {
        if self.young.len() >= ENTRY_COUNT_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, stored);
    }

    /// The seq after which everything in it was stored.
    pub(super) fn basis(&self) -> Seq {
        // Nothing is known to be stored: any seq is past it.
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

/// A keyed stream of random bytes; each call gives new ones. Cheap, and the same for the same seed.
#[derive(Debug)]
pub(super) struct Salts {
    seed: [u8; 32],
    count: AtomicU64,
}

impl Salts {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: AtomicU64::new(0) }
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&self) -> [u8; N] {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0; N];
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(&count.to_le_bytes());
        hasher.finalize_xof().fill(&mut bytes);
        bytes
    }

    /// The next salt of a body; never all zeros, which stands for an erased one.
    pub(super) fn salt(&self) -> [u8; 16] {
        loop {
            let salt = self.array::<16>();
            if salt != [0; 16] {
                return salt;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_survives_a_change_of_generation() {
        let mut dedup = BodyDedup::default();
        let key = |content: &[u8]| BodyDedup::key(content.len(), &blake3::hash(content), None);
        let stored =
            Stored { digest: Digest::ZERO, bytes: 300, position: Position(7), form: BodyForm::plain(300) };
        let kept = key(b"kept");
        dedup.put(kept, stored);
        for number in 0..ENTRY_COUNT_MAX {
            let key = key(&number.to_be_bytes());
            dedup.put(key, stored);
            assert_eq!(dedup.get(&kept), Some(stored), "after {number}");
        }
        assert!(dedup.young.len() + dedup.old.len() <= ENTRY_COUNT_MAX);
    }

    #[test]
    fn each_call_gives_other_bytes_and_a_seed_repeats_them() {
        let (one, two) = (Salts::new([1; 32]), Salts::new([1; 32]));
        let first = one.salt();
        assert_ne!(first, one.salt());
        assert_eq!(first, two.salt());
    }
}
