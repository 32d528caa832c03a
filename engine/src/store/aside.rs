//! Small files in which a program on top of the store keeps bytes that it would like to find again: see [`saved`](super::saved).
//!
//! Code that keeps a file here must be able to do without; failures are not reported.

use super::Store;
use super::saved::SavedName;

/// Most bytes of one file.
const BYTES_MAX: usize = 32 << 20;

impl Store {
    /// The bytes kept under a name, if the file is still there, whole, and of this log.
    #[doc(hidden)]
    pub fn aside(&self, name: &str) -> Option<Vec<u8>> {
        let kept = self.inner.saved(&SavedName::aside(name), |saved| Some(saved.archive.to_vec()));
        kept.map(|(_, bytes)| bytes)
    }

    /// Whether this handle keeps bytes aside at all: not if it is open for reading only.
    #[doc(hidden)]
    pub fn puts_aside(&self) -> bool {
        self.inner.snapshots.uses.writes
    }

    /// Keeps bytes under a name, in the place of earlier ones. `false`: the bytes are not kept.
    #[doc(hidden)]
    pub fn put_aside(&self, name: &str, bytes: &[u8]) -> bool {
        if !self.puts_aside() || bytes.len() > BYTES_MAX {
            return false;
        }
        // Without a footing nothing is kept aside, at the cost of time alone.
        let footing = self.head().ok().and_then(|head| self.inner.footing_to_save(head));
        footing.is_some_and(|footing| self.inner.put_saved(&SavedName::aside(name), footing, bytes))
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use crate::entry::{Entry, StreamInfo};
    use crate::event::Role;
    use crate::store::Store;

    #[test]
    fn what_is_kept_is_found_again_or_not_at_all() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store");
        let open = || Store::builder(&path).open().unwrap();
        let say = |store: &Store, text: &str| {
            let _ = store.append(&StreamInfo::session("h", "s"), vec![Entry::message("", Role::User, text)]);
        };
        let store = open();
        say(&store, "one");
        assert_eq!(store.aside("imports"), None);
        assert!(store.put_aside("imports", b"kept"));
        assert_eq!(store.aside("imports").as_deref(), Some(&b"kept"[..]));
        assert_eq!(store.aside("import"), None, "another name");
        // A longer log bears it out, another store does not.
        say(&store, "two");
        store.close().unwrap();
        assert_eq!(open().aside("imports").as_deref(), Some(&b"kept"[..]));
        let file = path.join("snap/imports.aside");
        let other = Store::builder(folder.path().join("other")).open().unwrap();
        say(&other, "one");
        assert!(other.put_aside("imports", b"other"));
        std::fs::copy(&file, folder.path().join("other/snap/imports.aside")).unwrap();
        assert_eq!(other.aside("imports"), None);
        // Garbled at any place, or cut.
        let sound = std::fs::read(&file).unwrap();
        for place in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[place] ^= 1;
            std::fs::write(&file, &bytes).unwrap();
            assert_eq!(open().aside("imports"), None, "byte {place}");
            std::fs::write(&file, &sound[..place]).unwrap();
            assert_eq!(open().aside("imports"), None, "cut at {place}");
        }
        assert!(!file.exists(), "what does not hold is removed");
        assert_eq!(open().aside("imports"), None);
    }
}
