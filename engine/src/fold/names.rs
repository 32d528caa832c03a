//! Interned strings: tool names, call ids, paths, keys of messages, each stored once and compared as a number.
//!
//! Numbers are given in order of first use, so they are the same in every replay; nothing visible depends on the
//! order of the table. All texts lie in one buffer: a session names two new things a call, and an allocation for each would
//! be most of the allocations of a fold.

use std::sync::Arc;

use super::number::{Lazy, Name, hash_of, index};

/// The strings of one stream.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct StringTable {
    buffer: String,
    /// End of each string in the buffer.
    ends: Vec<u64>,
    #[rkyv(with = rkyv::with::Skip)]
    table: Lazy,
}

impl StringTable {
    /// The name of `text`, new or known.
    pub(crate) fn intern(&mut self, text: &str) -> Name {
        let hash = hash_of(text);
        if let Some(known) = self.find_hashed(hash, text) {
            return known;
        }
        let name = Name(index(self.ends.len()));
        self.buffer.push_str(text);
        self.ends.push(self.buffer.len() as u64);
        self.table.insert(hash, name.0);
        name
    }

    /// The name of `text` if it has been used.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        self.find_hashed(hash_of(text), text)
    }

    /// The text of `name`.
    pub(crate) fn text(&self, name: Name) -> &str {
        let start = name.at().checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let range = start.zip(self.ends.get(name.at()).copied());
        let text = range.and_then(|(start, end)| {
            let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
            self.buffer.get(start..end)
        });
        text.unwrap_or_default()
    }

    fn find_hashed(&self, hash: u32, text: &str) -> Option<Name> {
        let texts = (0..index(self.ends.len())).map(|number| self.text(Name(number)));
        self.table.find(texts.map(hash_of), hash, |number| self.text(Name(number)) == text).map(Name)
    }

    /// The text of `name`, on its own.
    pub(crate) fn shared(&self, name: Name) -> Arc<str> {
        Arc::from(self.text(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_and_kept() {
        let mut names = StringTable::default();
        let texts = ["", "read", "src/lib.rs", "rea", "d"];
        let given: Vec<Name> = texts.iter().map(|text| names.intern(text)).collect();
        assert_eq!(given, (0..5).map(Name).collect::<Vec<_>>());
        for (text, name) in texts.iter().zip(given) {
            assert_eq!((names.intern(text), names.find(text), names.text(name)), (name, Some(name), *text));
        }
        assert_eq!((names.find("write"), names.text(Name(5))), (None, ""));
    }
}
