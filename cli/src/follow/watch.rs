//! The files to follow: which they are, and a word from the system when one changes.
//!
//! A word may be lost (a queue overflows, a folder is made and filled before it is watched, a network's files change elsewhere)
//! and watches may run out. So words only save time: all files are looked at now and then as well.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use acpdb_hosts::session_paths::SessionPath;
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::News;
use crate::reader::{self, Candidate};

/// A folder, or a file, to follow.
#[derive(Debug)]
pub(crate) struct Root {
    /// The folder, or the file.
    pub(crate) path: PathBuf,
    /// Which files below it count; absent: all.
    pub(crate) place: Option<SessionPath>,
}

impl Root {
    /// Whether a path is one of its files.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let Ok(relative) = path.strip_prefix(&self.path) else { return false };
        self.place.as_ref().is_none_or(|place| place.holds(&relative.to_string_lossy()))
    }

    /// Its files as they are now; none if it is not there.
    pub(crate) fn files(&self) -> std::io::Result<Vec<Candidate>> {
        if self.is_flat() {
            return self.files_below(&self.path, false);
        }
        self.files_below(&self.path, true)
    }

    /// Its files in a folder, and below that if `deep`; none if the folder is not there.
    pub(crate) fn files_below(&self, folder: &Path, deep: bool) -> std::io::Result<Vec<Candidate>> {
        let found = if deep { reader::files(folder) } else { reader::files_in(folder) };
        let mut found = match found {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            found => found?,
        };
        found.retain(|candidate| self.holds(&candidate.path));
        Ok(found)
    }

    /// Whether all its files lie in one folder, so that nothing below that need be looked at.
    fn is_flat(&self) -> bool {
        self.place.as_ref().is_some_and(|place| !place.pattern.contains('/'))
    }
}

/// Watches folders.
pub(crate) struct Watch {
    watcher: Option<RecommendedWatcher>,
    /// Which folder was watched at a path: it may be made anew.
    watched: HashMap<PathBuf, (u64, u64)>,
}

impl Watch {
    /// A watch that tells `news`. An error in words: nothing is told, only looking finds changes.
    pub(crate) fn new(news: Sender<News>) -> (Self, Option<String>) {
        let tell = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => {
                // A follower that has ended hears nothing.
                let _ = news.send(News::Look);
            }
            Ok(event) if is_change(event.kind) => {
                // A follower that has ended hears nothing.
                let _ = news.send(News::Changed(event.paths));
            }
            Ok(_) => {}
            Err(error) => {
                // A follower that has ended hears nothing.
                let _ = news.send(News::Unwatched(error.to_string()));
            }
        };
        // Links are not followed: a folder that holds itself would never end.
        let config = notify::Config::default().with_follow_symlinks(false);
        match RecommendedWatcher::new(tell, config) {
            Ok(watcher) => (Self { watcher: Some(watcher), watched: HashMap::new() }, None),
            Err(error) => (Self { watcher: None, watched: HashMap::new() }, Some(error.to_string())),
        }
    }

    /// Watches a root, unless it is watched. An error in words: changes there are found by looking only.
    pub(crate) fn add(&mut self, root: &Root) -> Result<(), String> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let Ok(metadata) = std::fs::metadata(&root.path) else { return Ok(()) };
        // Of a file its folder is watched: the file may be replaced.
        let (folder, mode) = if metadata.is_dir() {
            let flat = root.is_flat();
            (root.path.clone(), if flat { RecursiveMode::NonRecursive } else { RecursiveMode::Recursive })
        } else {
            let parent = root.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            (parent.unwrap_or(Path::new(".")).to_owned(), RecursiveMode::NonRecursive)
        };
        let Ok(metadata) = std::fs::metadata(&folder) else { return Ok(()) };
        let id = (metadata.dev(), metadata.ino());
        if self.watched.get(&folder) == Some(&id) {
            return Ok(());
        }
        watcher
            .watch(&folder, mode)
            .map_err(|error| format!("changes in {} are found by looking only: {error}", folder.display()))?;
        self.watched.insert(folder, id);
        Ok(())
    }
}

/// Whether something is there that was not. That a file is read, also by us, is none.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}
