//! The tree of RFC 6962 with SHA-256: hashes, roots, proofs and their check.
//!
//! ```text
//! leaf hash = SHA-256(0x00 || leaf)        node hash = SHA-256(0x01 || left || right)
//!
//!            root over [0, 7)
//!        [0, 4)           [4, 7)           a proof is a list of roots over ranges of leaves; one pass over the
//!     [0,2)  [2,4)     [4,6)  [6]          leaves makes them all, each in a frontier of at most 64 hashes
//! ```
//!
//! Leaves are counted from 0 here, so the event with seq n is leaf n - 1. Nothing is stored: the leaves give the tree.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

/// A SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

/// Most hashes of a proof: as many as there are levels over 2^64 leaves, and one.
pub const PROOF_HASH_COUNT_MAX: usize = 65;

/// The hash of a leaf.
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    Hash(Sha256::new().chain_update([0]).chain_update(leaf).finalize().into())
}

/// The hash of two subtrees.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Hash(Sha256::new().chain_update([1]).chain_update(left.0).chain_update(right.0).finalize().into())
}

/// The root of a tree without leaves.
pub fn empty_root() -> Hash {
    Hash(Sha256::digest([]).into())
}

/// The right edge of a tree that grows: the roots of its whole subtrees, the largest first. At most 64.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    whole: Vec<Hash>,
    size: u64,
}

impl Frontier {
    /// Adds the hash of a leaf. Cost: one hash on average, at most 64.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        // As many subtrees are completed as the size has ones at its end.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.whole.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.whole.push(node);
        self.size = self.size.saturating_add(1);
    }

    /// How many leaves it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        Self::joined(&self.whole)
    }

    /// The roots of its whole subtrees, the largest first.
    pub(crate) fn into_whole(self) -> Vec<Hash> {
        self.whole
    }

    /// The root of a tree with these whole subtrees, the largest first.
    pub(crate) fn joined(whole: &[Hash]) -> Hash {
        let joined = whole.iter().rev().copied().reduce(|right, left| node_hash(&left, &right));
        joined.unwrap_or_else(empty_root)
    }
}

/// Roots over ranges of leaves, made in one pass over the leaves.
#[derive(Debug)]
pub struct RootBuilder {
    parts: Vec<(Range<u64>, Frontier)>,
    next: u64,
}

impl RootBuilder {
    /// Gathers the roots over these ranges, which may overlap.
    pub fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let parts = ranges.into_iter().map(|range| (range, Frontier::default())).collect();
        Self { parts, next: 0 }
    }

    /// Takes the hash of the next leaf.
    pub fn push(&mut self, leaf: Hash) {
        for (range, frontier) in &mut self.parts {
            if range.contains(&self.next) {
                frontier.push(leaf);
            }
        }
        self.next = self.next.saturating_add(1);
    }

    /// The roots, in the order of the ranges. `None`: the leaves ended before a range did.
    pub fn roots(&self) -> Option<Vec<Hash>> {
        let is_there = |range: &Range<u64>| range.end <= self.next;
        let root = |(range, frontier): &(Range<u64>, Frontier)| is_there(range).then(|| frontier.root());
        self.parts.iter().map(root).collect()
    }
}

/// The proof of many shown leaves at once: the roots over all other leaves.
///
/// The tree is walked from the left. A subtree without a shown leaf is one hash; one with a shown leaf is entered.
#[derive(Debug)]
pub struct Cover {
    ranges: std::vec::IntoIter<Range<u64>>,
    range: Option<Range<u64>>,
    frontier: Frontier,
    found: Vec<Hash>,
    next: u64,
}

impl Cover {
    /// For the shown leaves of a tree of `size`. `None`: there are none, they do not rise, or one is not in the tree.
    pub fn new(shown: &[u64], size: u64) -> Option<Self> {
        let mut ranges = cover_ranges(shown, size)?.into_iter();
        let range = ranges.next();
        Some(Self { ranges, range, frontier: Frontier::default(), found: Vec::new(), next: 0 })
    }

    /// Takes the hash of the next leaf. Cost: one hash on average.
    pub fn push(&mut self, leaf: Hash) {
        let at = self.next;
        self.next = at.saturating_add(1);
        let Some(range) = self.range.as_ref().filter(|range| range.contains(&at)) else { return };
        self.frontier.push(leaf);
        if range.end == self.next {
            self.found.push(std::mem::take(&mut self.frontier).root());
            self.range = self.ranges.next();
        }
    }

    /// The hashes, from the left. `None`: the leaves ended before the tree did.
    pub fn hashes(self) -> Option<Vec<Hash>> {
        self.range.is_none().then_some(self.found)
    }
}

/// The ranges without a shown leaf, from the left: [`Cover`] gathers their roots. `None`: there are no shown leaves, they do
/// not rise, or one is not in the tree.
pub fn cover_ranges(shown: &[u64], size: u64) -> Option<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    is_rising(shown, size).then(|| hidden_ranges(shown, 0..size, &mut ranges))?;
    Some(ranges)
}

/// Whether there are leaves, each once and in order, in a tree of `size`.
fn is_rising(shown: &[u64], size: u64) -> bool {
    shown.is_sorted_by(|left, right| left < right) && shown.last().is_some_and(|last| *last < size)
}

fn hidden_ranges(shown: &[u64], range: Range<u64>, found: &mut Vec<Range<u64>>) {
    if shown.is_empty() {
        found.push(range);
    } else if range.end - range.start > 1 {
        let middle = range.start + split(range.end - range.start);
        let (left, right) = shown.split_at(shown.partition_point(|index| *index < middle));
        hidden_ranges(left, range.start..middle, found);
        hidden_ranges(right, middle..range.end, found);
    }
}

/// Whether shown leaves and the hashes over all others lead to a root: each hash is used, once.
pub fn verify_cover(shown: &[(u64, Hash)], size: u64, proof: &[Hash], root: Hash) -> bool {
    let mut hashes = proof.iter();
    let indexes: Vec<u64> = shown.iter().map(|(index, _)| *index).collect();
    is_rising(&indexes, size) && joined(shown, 0..size, &mut hashes) == Some(root) && hashes.next().is_none()
}

/// The root over a range. Enters at most 64 levels.
fn joined(shown: &[(u64, Hash)], range: Range<u64>, hashes: &mut std::slice::Iter<'_, Hash>) -> Option<Hash> {
    match shown {
        [] => hashes.next().copied(),
        [(_, leaf)] if range.end - range.start == 1 => Some(*leaf),
        _ => {
            let middle = range.start + split(range.end - range.start);
            let (left, right) = shown.split_at(shown.partition_point(|(index, _)| *index < middle));
            let left = joined(left, range.start..middle, hashes)?;
            Some(node_hash(&left, &joined(right, middle..range.end, hashes)?))
        }
    }
}

/// The largest power of two below `count`, which is at least 2.
fn split(count: u64) -> u64 {
    // As the text above says, it is at least 2.
    1_u64.checked_shl(count.saturating_sub(1).ilog2()).unwrap_or(1)
}

/// The ranges whose roots prove that leaf `index` is in a tree of `size`, in the order of the proof. `None`: the leaf is not in the tree.
pub fn inclusion_ranges(index: u64, size: u64) -> Option<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let (mut low, mut high) = (0, size);
    if index >= size {
        return None;
    }
    while high - low > 1 {
        let middle = low + split(high - low);
        if index < middle {
            ranges.push(middle..high);
            high = middle;
        } else {
            ranges.push(low..middle);
            low = middle;
        }
    }
    ranges.reverse();
    Some(ranges)
}

/// The ranges whose roots prove that the tree of `old` leaves is the beginning of the tree of `new` leaves. `None`: the old
/// tree is larger, or empty.
pub fn consistency_ranges(old: u64, new: u64) -> Option<Vec<Range<u64>>> {
    if old == 0 || old > new {
        return None;
    }
    let mut ranges = Vec::new();
    let (mut low, mut high) = (0, new);
    while high != old {
        let middle = low + split(high - low);
        if old <= middle {
            ranges.push(middle..high);
            high = middle;
        } else {
            ranges.push(low..middle);
            low = middle;
        }
    }
    // A tree that is a whole subtree of the new one needs no hash of its own: its root is known.
    if low != 0 {
        ranges.push(low..high);
    }
    ranges.reverse();
    Some(ranges)
}

/// Whether `proof` leads from a leaf to a root (RFC 9162, section 2.1.3.2).
pub fn verify_inclusion(index: u64, size: u64, leaf: Hash, proof: &[Hash], root: Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last, mut node) = (index, size - 1, leaf);
    for hash in proof {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            node = node_hash(hash, &node);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            node = node_hash(&node, hash);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && node == root
}

/// Whether `proof` shows that the tree of `old` leaves is the beginning of the tree of `new` leaves (RFC 9162, section 2.1.4.2).
pub fn verify_consistency(old: u64, new: u64, old_root: Hash, new_root: Hash, proof: &[Hash]) -> bool {
    if old == 0 || old > new {
        return false;
    }
    if old == new {
        return proof.is_empty() && old_root == new_root;
    }
    let (mut at, mut last) = (old - 1, new - 1);
    let mut hashes = proof.iter();
    let first = if old.is_power_of_two() { Some(old_root) } else { hashes.next().copied() };
    let Some(first) = first else { return false };
    while at & 1 == 1 {
        (at, last) = (at >> 1, last >> 1);
    }
    let (mut left, mut right) = (first, first);
    for hash in hashes {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            (left, right) = (node_hash(hash, &left), node_hash(hash, &right));
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            right = node_hash(&right, hash);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && left == old_root && right == new_root
}
