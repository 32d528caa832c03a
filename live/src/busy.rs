//! A mark that the store could not be had a short while ago: hooks that follow do not wait for it at length again.
//!
//! ```text
//! no mark                      a hook waits two seconds for the store
//! it could not be had          the mark is written
//! a mark of the last minute    a hook waits a tenth of a second
//! the store was had            the mark goes
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the store is waited for.
const WAIT: Duration = Duration::from_secs(2);
/// The same, while it was not to be had a short while ago.
const SHORT_WAIT: Duration = Duration::from_millis(100);
/// How long a mark counts.
const MINUTE: Duration = Duration::from_secs(60);

/// The mark, beside the journal of hooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusyMark(Option<PathBuf>);

impl BusyMark {
    /// The mark beside the journal at this path. Without a journal there is none.
    pub fn beside(journal: Option<&Path>) -> Self {
        Self(journal.map(|journal| journal.with_file_name("store-busy")))
    }

    /// Whether the store could not be had within the last minute. A mark of a time to come counts: the clock was set back.
    pub fn is_marked(&self) -> bool {
        // A mark that cannot be looked at is none.
        let written = self.0.as_ref().and_then(|path| path.metadata().and_then(|it| it.modified()).ok());
        written.is_some_and(|at| at.elapsed().map_or(true, |age| age < MINUTE))
    }

    /// How long a hook waits for the store.
    pub fn wait(&self) -> Duration {
        if self.is_marked() { SHORT_WAIT } else { WAIT }
    }

    /// Notes whether the store was had. A mark that stands keeps its time: after a minute the store is tried at length again.
    pub fn note(&self, was_had: bool) {
        let Some(path) = &self.0 else { return };
        // Where nothing can be written, each hook waits anew.
        if was_had {
            // As above.
            let _ = std::fs::remove_file(path);
        } else if !self.is_marked() {
            // As above.
            let _ = path.parent().map(crate::journal::private_folder);
            // As above.
            let _ = std::fs::write(path, b"");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store whose locks another program held cost ten seconds at every hook, without end.
    #[test]
    fn a_store_that_cannot_be_had_is_waited_for_at_length_once() {
        let folder = tempfile::tempdir().unwrap();
        let busy = BusyMark::beside(Some(&folder.path().join("state/hooks.jsonl")));
        assert_eq!(busy.wait(), WAIT);
        busy.note(false);
        assert_eq!(busy.wait(), SHORT_WAIT);
        let path = busy.0.clone().unwrap();
        let earlier = path.metadata().unwrap().modified().unwrap() - MINUTE;
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(earlier).unwrap();
        assert_eq!(busy.wait(), WAIT);
        busy.note(false);
        assert_eq!(busy.wait(), SHORT_WAIT);
        busy.note(true);
        assert_eq!(busy.wait(), WAIT);
        assert_eq!(BusyMark::beside(None).wait(), WAIT);
    }
}
