//! Interned strings: tool names, call ids, paths, keys of messages, each stored once and compared as a number.
//!
//! Numbers are given in order of first use, so they are the same in every replay; nothing visible depends on the
//! order of the hash map.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// An interned string of one stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Name(pub(crate) u32);

/// The strings of one stream.
#[derive(Clone, Default, Debug)]
pub(crate) struct Names {
    texts: Vec<Arc<str>>,
    by_text: FxHashMap<Arc<str>, Name>,
}

impl Names {
    /// The name of `text`, new or known.
    pub(crate) fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.by_text.get(text) {
            return *name;
        }
        let name = Name(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let text: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&text));
        self.by_text.insert(text, name);
        name
    }

    /// The name of `text` if it has been used.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        self.by_text.get(text).copied()
    }

    /// The text of `name`.
    pub(crate) fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map(AsRef::as_ref).unwrap_or_default()
    }

    /// The text of `name`, shared.
    pub(crate) fn shared(&self, name: Name) -> Arc<str> {
        self.texts.get(name.0 as usize).cloned().unwrap_or_default()
    }
}
