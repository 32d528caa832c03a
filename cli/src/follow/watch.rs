//! The files to follow, and the system's notices of their changes.
//!
//! A notice may be lost (a queue overflows, a folder is made and filled before it is watched, a network's files change elsewhere)
//! and watches may run out. So notices only save time: all files are looked at now and then as well.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use acpdb_hosts::session_paths::SessionPath;
use acpdb_live::below::Links;
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::FollowMessage;
use crate::reader::{self, FileList};

/// A folder, or a file, to follow.
#[derive(Debug)]
pub(crate) struct Root {
    /// The folder, or the file.
    pub(crate) path: PathBuf,
    /// The pattern of its files; absent: all files below it.
    pub(crate) place: Option<SessionPath>,
    /// Whether links below it are followed.
    pub(crate) links: Links,
}

impl Root {
    /// Whether a path is one of the root's files.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let Ok(relative) = path.strip_prefix(&self.path) else { return false };
        self.place.as_ref().is_none_or(|place| place.holds(&relative.to_string_lossy()))
    }

    /// The root's files as they are now; none if the root is not there.
    pub(crate) fn files(&self) -> std::io::Result<FileList> {
        if self.is_flat() {
            return self.files_below(&self.path, false);
        }
        self.files_below(&self.path, true)
    }

    /// The root's files in a folder, and below it if `deep`; none if the folder is not there.
    pub(crate) fn files_below(&self, folder: &Path, deep: bool) -> std::io::Result<FileList> {
        let found =
            if deep { reader::files(folder, self.links) } else { reader::files_in(folder, self.links) };
        let mut found = match found {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => FileList::default(),
            found => found?,
        };
        found.files.retain(|candidate| self.holds(&candidate.path));
        Ok(found)
    }

    /// Whether all files of the root lie in one folder, so that folders below need not be looked at.
    fn is_flat(&self) -> bool {
        self.place.as_ref().is_some_and(|place| !place.pattern.contains('/'))
    }
}

/// Watches folders.
pub(crate) struct Watch {
    watcher: Option<RecommendedWatcher>,
    /// Device and inode of the folder that was watched at a path: the folder may be made anew.
    watched: HashMap<PathBuf, (u64, u64)>,
}

impl Watch {
    /// A watch that sends to `news`. An error in words: no notices come, and only looking finds changes.
    pub(crate) fn new(news: Sender<FollowMessage>) -> (Self, Option<String>) {
        let tell = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => {
                // A follower that has ended receives nothing.
                let _ = news.send(FollowMessage::Look);
            }
            Ok(event) if is_change(event.kind) => {
                // A follower that has ended receives nothing.
                let _ = news.send(FollowMessage::Changed(event.paths));
            }
            Ok(_) => {}
            Err(error) => {
                // A follower that has ended receives nothing.
                let _ = news.send(FollowMessage::Unwatched(error.to_string()));
            }
        };
        // Links are not followed: a folder that holds itself would never end.
        let config = notify::Config::default().with_follow_symlinks(false);
        match RecommendedWatcher::new(tell, config) {
            Ok(watcher) => (Self { watcher: Some(watcher), watched: HashMap::new() }, None),
            Err(error) => (Self { watcher: None, watched: HashMap::new() }, Some(error.to_string())),
        }
    }

    /// Watches a root, unless it is watched already. An error in words: only looking finds changes there.
    pub(crate) fn add(&mut self, root: &Root) -> Result<(), String> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let Ok(metadata) = std::fs::metadata(&root.path) else { return Ok(()) };
        // For a file, its folder is watched: the file may be replaced.
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

/// Whether an event may mean new content. Reading a file, also by this program, is no change.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}
