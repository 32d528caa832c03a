//! Numbers of things within one stream: of items, of names, of what keys compare as. All else of the fold is about these.

/// A number of one kind of thing, which no other kind's number can be taken for.
macro_rules! number {
    ($(#[$doc:meta])* $seen:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
    /// What a key compares as: equal identities, equal keys. One for the text as given, one as resolved.
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
