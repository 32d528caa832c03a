//! Numbers of things within one stream: of items, of names, of identities of keys. The rest of the fold works with these numbers.
//! A number is found by its value in an open-addressing table, whose entries are a hash and an index.
//!
//! The values lie in a vector of the owner, in order of first use; the table holds only their indices. So each value is
//! stored once, growing moves eight bytes an entry and hashes nothing again, and the whole table can be made anew from the
//! vector (opening a snapshot does that).

use std::hash::{BuildHasher as _, Hash};
use std::sync::OnceLock;

use rustc_hash::FxBuildHasher;

/// A type for the numbers of one kind of thing, so that numbers of two kinds are never mixed up.
macro_rules! number {
    ($(#[$doc:meta])* $seen:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
        $seen struct $name(pub(crate) u32);
    };
}

number! {
    /// Index of an item within its stream, in the order of recording.
    pub Ix
}

impl Ix {
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

number! {
    /// An interned string of one stream.
    pub(crate) Name
}

impl Name {
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

number! {
    /// Identity of a key: equal keys have equal identities. A key has one for its text as given, one as resolved.
    pub(crate) KeyId
}

/// A vector index as a number; streams hold far fewer than 2^32 of anything.
pub(crate) fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Adds a value, and gives its number.
pub(crate) fn pushed<T>(values: &mut Vec<T>, value: T) -> u32 {
    let number = index(values.len());
    values.push(value);
    number
}

/// "None" for packed indices.
pub(crate) const NONE: u32 = u32::MAX;

/// The entries of a list, newest first. `get` gives an entry, and the number of the one before it.
pub(crate) fn newest_first<T>(newest: u32, get: impl Fn(u32) -> Option<(T, u32)>) -> impl Iterator<Item = T> {
    let mut next = newest;
    std::iter::from_fn(move || {
        let (entry, before) = get(next)?;
        // A list that was forged may lead in a circle: it ends where it does not fall.
        next = if before < next { before } else { NONE };
        Some(entry)
    })
}

/// Slots of the smallest table that has any.
const SLOT_COUNT_MIN: usize = 16;

/// Hash in the upper half, index + 1 in the lower; 0 is free.
type Slot = u64;

/// Indices by hash.
#[derive(Clone, Default, Debug)]
pub(crate) struct HashIndex {
    /// A power of two, or none.
    slots: Vec<Slot>,
    count: usize,
}

/// The hash of a value, as [`HashIndex`] takes it.
pub(crate) fn hash_of<T: Hash + ?Sized>(value: &T) -> u32 {
    let hash = FxBuildHasher.hash_one(value);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are mixed into what is kept")]
    let folded = (hash ^ (hash >> 32)) as u32;
    folded
}

impl HashIndex {
    /// A table with room for `count` entries.
    pub(crate) fn with_room(count: usize) -> Self {
        let mut table = Self::default();
        if count > 0 {
            let wanted = count.saturating_add(count / 2).saturating_add(1);
            table.slots =
                vec![0; wanted.checked_next_power_of_two().unwrap_or(SLOT_COUNT_MIN).max(SLOT_COUNT_MIN)];
        }
        table
    }

    /// The index with this hash that `is` accepts.
    pub(crate) fn find(&self, hash: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        loop {
            let slot = *self.slots.get(place)?;
            #[expect(clippy::cast_possible_truncation, reason = "the two halves of a slot")]
            let (known, index) = ((slot >> 32) as u32, slot as u32);
            let index = index.checked_sub(1)?;
            if known == hash && is(index) {
                return Some(index);
            }
            place = place.wrapping_add(1) & mask;
        }
    }

    /// Adds an index that is not there.
    pub(crate) fn insert(&mut self, hash: u32, index: u32) {
        if self.count.saturating_add(1).saturating_mul(4) > self.slots.len().saturating_mul(3) {
            self.grow();
        }
        self.count = self.count.saturating_add(1);
        put(&mut self.slots, u64::from(hash) << 32 | u64::from(index.saturating_add(1)));
    }

    fn grow(&mut self) {
        let count = self.slots.len().saturating_mul(2).max(SLOT_COUNT_MIN);
        let old = std::mem::replace(&mut self.slots, vec![0; count]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            put(&mut self.slots, slot);
        }
    }
}

fn put(slots: &mut [Slot], slot: Slot) {
    let mask = slots.len().wrapping_sub(1);
    let mut place = (slot >> 32) as usize & mask;
    while let Some(free) = slots.get_mut(place) {
        if *free == 0 {
            *free = slot;
            return;
        }
        place = place.wrapping_add(1) & mask;
    }
}

/// A table that is filled at its first lookup: in a session that is only read, most tables never are.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lazy(OnceLock<HashIndex>);

impl Lazy {
    /// The table; `hashes` are those of all values, in order.
    pub(crate) fn get(&self, hashes: impl ExactSizeIterator<Item = u32>) -> &HashIndex {
        self.0.get_or_init(|| {
            let mut table = HashIndex::with_room(hashes.len());
            for (number, hash) in (0..).zip(hashes) {
                table.insert(hash, number);
            }
            table
        })
    }

    /// Adds a new index to a filled table. A table that is not filled yet takes it in at its first lookup.
    pub(crate) fn insert(&mut self, hash: u32, index: u32) {
        if let Some(table) = self.0.get_mut() {
            table.insert(hash, index);
        }
    }
}

/// Values in order of first use, each once, with their numbers. The table that finds them is made at its first use.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Interned<T> {
    values: Vec<T>,
    #[rkyv(with = rkyv::with::Skip)]
    table: Lazy,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { values: Vec::new(), table: Lazy::default() }
    }
}

impl<T: Hash + PartialEq> Interned<T> {
    /// The number of a value that is known.
    pub(crate) fn find(&self, value: &T) -> Option<u32> {
        self.find_hashed(hash_of(value), value)
    }

    /// The number of a value, new or known.
    pub(crate) fn number(&mut self, value: T) -> u32 {
        let hash = hash_of(&value);
        self.find_hashed(hash, &value).unwrap_or_else(|| {
            let number = pushed(&mut self.values, value);
            self.table.insert(hash, number);
            number
        })
    }

    fn find_hashed(&self, hash: u32, value: &T) -> Option<u32> {
        let table = self.table.get(self.values.iter().map(hash_of));
        table.find(hash, |number| self.get(number) == Some(value))
    }

    /// All values, in order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// The value with a number.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The table is a map from values to indices, also where hashes are equal.
        #[test]
        fn a_table_finds_what_was_put_in(
            values in proptest::collection::vec(0_u16..400, 0..300),
            hash_bits in 0_u32..10,
            room in 0_usize..20,
        ) {
            let hash = |value: u16| hash_of(&value) & ((1 << hash_bits) - 1);
            let (mut table, mut known) = (HashIndex::with_room(room), Vec::new());
            for value in values {
                let found = table.find(hash(value), |index| known[index as usize] == value);
                prop_assert_eq!(found, (0_u32..).zip(&known).find(|(_, other)| **other == value).map(|(place, _)| place));
                if found.is_none() {
                    table.insert(hash(value), u32::try_from(known.len()).unwrap());
                    known.push(value);
                }
            }
            let (mut interned, lazy) = (Interned::default(), Lazy::default());
            let hashes: Vec<u32> = known.iter().map(|value| hash(*value)).collect();
            for (place, value) in (0_u32..).zip(&known) {
                let found = lazy.get(hashes.iter().copied()).find(hash(*value), |index| known[index as usize] == *value);
                prop_assert_eq!(found, Some(place));
                prop_assert_eq!((interned.find(value), interned.number(*value), interned.number(*value)), (None, place, place));
                prop_assert_eq!((interned.find(value), interned.get(place)), (Some(place), Some(value)));
            }
        }
    }
}
