//! Files in a folder and below it.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

/// Deepest folder that is looked into.
pub const DEPTH_MAX: usize = 16;

/// The outcome of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// Files with their lengths, in order of their paths.
    pub files: Vec<(PathBuf, u64)>,
    /// Folders and files that cannot be looked at, with the causes.
    pub unread: Vec<(PathBuf, io::Error)>,
}

/// Files below `path`; only `path`, if it is a file. Files that go meanwhile are left out.
///
/// A link is followed, unless it leads to a folder that the search passes through: such a folder would hold itself.
///
/// # Errors
/// If `path` cannot be read, or is neither a file nor a folder. A folder below it that cannot be read does not stop the search.
pub fn files(path: &Path, depth_max: usize) -> io::Result<Found> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        if !metadata.is_file() {
            return Err(io::Error::other("it is neither a file nor a folder"));
        }
        return Ok(Found { files: vec![(path.to_owned(), metadata.len())], unread: Vec::new() });
    }
    let start = std::fs::canonicalize(path)?;
    let mut found = Found::default();
    let mut folders = vec![(path.to_owned(), 0)];
    let mut links = BTreeSet::new();
    // Targets of the links that were followed.
    let mut targets: Vec<PathBuf> = Vec::new();
    loop {
        while let Some((folder, depth)) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Err(error) if depth == 0 => return Err(error),
                Err(error) => {
                    found.cannot(folder, error);
                    continue;
                }
                Ok(entries) => entries,
            };
            for entry in entries {
                match entry.map(|entry| (entry.path(), entry.metadata())) {
                    Err(error) => found.cannot(folder.clone(), error),
                    Ok((path, Err(error))) => found.cannot(path, error),
                    Ok((path, Ok(metadata))) if metadata.is_symlink() => {
                        links.insert((path, depth));
                    }
                    Ok((path, Ok(metadata))) if metadata.is_dir() && depth < depth_max => {
                        folders.push((path, depth + 1));
                    }
                    Ok((path, Ok(metadata))) => found.add(path, &metadata),
                }
            }
        }
        // Links come last: a file that lies below the folder keeps its own path.
        let Some((link, depth)) = links.pop_first() else { break };
        match std::fs::canonicalize(&link).and_then(|to| Ok((std::fs::metadata(&to)?, to))) {
            Err(error) => found.cannot(link, error),
            Ok((_, to))
                if start.starts_with(&to)
                    || to.starts_with(&start)
                    || targets.iter().any(|target| to.starts_with(target)) => {}
            Ok((metadata, to)) => {
                targets.push(to);
                if metadata.is_dir() && depth < depth_max {
                    folders.push((link, depth + 1));
                } else {
                    found.add(link, &metadata);
                }
            }
        }
    }
    found.files.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(found)
}

impl Found {
    fn add(&mut self, path: PathBuf, metadata: &Metadata) {
        if metadata.is_file() {
            self.files.push((path, metadata.len()));
        }
    }

    /// Takes note of a path that cannot be looked at. One that is gone, or a link to nothing, has nothing to be read.
    fn cannot(&mut self, path: PathBuf, error: io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.unread.push((path, error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A session behind a link was passed over, and the folder was said to hold no files.
    #[test]
    fn a_link_is_followed_once_and_never_around() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("root/own")).unwrap();
        std::fs::create_dir_all(at("other/deep")).unwrap();
        for name in ["root/own/a", "other/deep/b", "c"] {
            std::fs::write(at(name), name).unwrap();
        }
        for (to, link) in [
            ("own", "root/first"),
            ("..", "root/up"),
            ("nowhere", "root/lost"),
            ("../other", "root/x"),
            ("../other/deep", "root/y"),
            ("../c", "root/z"),
            ("../../root", "other/deep/around"),
            (".", "other/deep/itself"),
        ] {
            symlink(to, at(link)).unwrap();
        }
        let found = files(&at("root"), DEPTH_MAX).unwrap();
        let names: Vec<PathBuf> = found.files.into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, ["root/own/a", "root/x/deep/b", "root/z"].map(at));
        assert!(found.unread.is_empty(), "{:?}", found.unread);
        symlink("around", at("root/around")).unwrap();
        let found = files(&at("root"), DEPTH_MAX).unwrap();
        assert_eq!(found.files.len(), 3);
        assert_eq!(found.unread.first().map(|(path, _)| path.clone()), Some(at("root/around")));
    }
}
