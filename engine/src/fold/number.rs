//! Numbers of things within one stream: of items, of names, of identities of keys. The rest of the fold works with these numbers.
//! A number is found by its value in an open-addressing table, whose entries are a hash and an index.
//!
//! The values lie in a vector of the owner, in order of first use; the table holds only their hashes and indices. So each value is
//! stored once, growing moves eight bytes an entry and hashes nothing again, and the whole table can be made anew from the
//! vector (opening a snapshot does that).

use std::hash::{BuildHasher as _, Hash};
use std::sync::OnceLock;

use hashbrown::HashTable;
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

/// The hash of a value, as [`Lazy`] takes it.
pub(crate) fn hash_of<T: Hash + ?Sized>(value: &T) -> u32 {
    let hash = FxBuildHasher.hash_one(value);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are mixed into what is kept")]
    let folded = (hash ^ (hash >> 32)) as u32;
    folded
}

/// The hash for the table, which takes its tags from the upper bits.
const fn spread(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}

/// A table from hashes to indices, filled at its first lookup: in a session that is only read, most tables never are.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lazy(OnceLock<HashTable<(u32, u32)>>);

impl Lazy {
    /// The index with this hash that `is` accepts. `hashes` are those of all values, in order.
    pub(crate) fn find(
        &self,
        hashes: impl ExactSizeIterator<Item = u32>,
        hash: u32,
        mut is: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let table = self.0.get_or_init(|| {
            let mut table = HashTable::with_capacity(hashes.len());
            for entry in hashes.zip(0..) {
                insert(&mut table, entry);
            }
            table
        });
        table.find(spread(hash), |(known, index)| *known == hash && is(*index)).map(|(_, index)| *index)
    }

    /// Adds a new index to a filled table. A table that is not filled yet takes it in at its first lookup.
    pub(crate) fn insert(&mut self, hash: u32, index: u32) {
        if let Some(table) = self.0.get_mut() {
            insert(table, (hash, index));
        }
    }
}

fn insert(table: &mut HashTable<(u32, u32)>, entry: (u32, u32)) {
    table.insert_unique(spread(entry.0), entry, |(hash, _)| spread(*hash));
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
        self.table.find(self.values.iter().map(hash_of), hash, |number| self.get(number) == Some(value))
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
        /// The table is a map from values to indices, also where hashes are equal, whenever it is filled.
        #[test]
        fn a_table_finds_what_was_put_in(
            values in proptest::collection::vec(0_u16..400, 0..300),
            hash_bits in 0_u32..10,
            filled_at in 0_usize..300,
        ) {
            let hash = |value: u16| hash_of(&value) & ((1 << hash_bits) - 1);
            let (mut table, mut interned, mut known) = (Lazy::default(), Interned::default(), Vec::new());
            for (place, value) in values.into_iter().enumerate() {
                let hashes: Vec<u32> = known.iter().map(|value| hash(*value)).collect();
                let find = |table: &Lazy| table.find(hashes.iter().copied(), hash(value), |index| known[index as usize] == value);
                let expected = (0_u32..).zip(&known).find(|(_, other)| **other == value).map(|(place, _)| place);
                prop_assert_eq!((find(&Lazy::default()), interned.find(&value)), (expected, expected));
                if place >= filled_at {
                    prop_assert_eq!(find(&table), expected);
                }
                let number = u32::try_from(known.len()).unwrap();
                prop_assert_eq!(interned.number(value), expected.unwrap_or(number));
                prop_assert_eq!(interned.get(expected.unwrap_or(number)), Some(&value));
                if expected.is_none() {
                    table.insert(hash(value), number);
                    known.push(value);
                }
            }
        }
    }
}
