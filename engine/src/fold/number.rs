//! Numbers of things within one stream: of items, of names, of what keys compare as. All else of the fold is about these.

/// Index of an item within its stream, in the order of recording.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Ix(pub(crate) u32);

impl Ix {
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// A vector index as a number; streams hold far fewer than 2^32 of anything.
pub(crate) fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// "None" for packed indices.
pub(crate) const NONE: u32 = u32::MAX;

/// An interned string of one stream.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub(crate) struct Name(pub(crate) u32);

impl Name {
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// What a key compares as: equal identities, equal keys. One for the text as given, one as resolved.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub(crate) struct KeyId(pub(crate) u32);
