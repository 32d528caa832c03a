//! Files in a folder and below it.

use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use acpdb_engine::storage::{Access, FileStorage, Storage as _, StoredFile};

/// The flag that keeps an opening from waiting for the other end of a pipe, by the system's own number.
#[cfg(target_os = "linux")]
const NONBLOCK: i32 = 0o4000;
#[cfg(not(target_os = "linux"))]
const NONBLOCK: i32 = 0x4;

/// Deepest folder that is looked into.
pub const DEPTH_MAX: usize = 16;

/// The outcome of a search.
#[derive(Debug, Default)]
pub struct FileSearch {
    /// Files with their lengths, in order of their paths.
    pub files: Vec<(PathBuf, u64)>,
    /// Folders and files that cannot be looked at, with the causes.
    pub unread: Vec<(PathBuf, io::Error)>,
}

/// Whether links below a folder are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// One that leads out of the folder is told and not followed: the maker of the folder would choose the files that are read.
    Within,
    /// All are followed.
    Followed,
}

/// Opens a file that is read to its end, if it is a regular one. Never waits for another program, as a pipe would.
///
/// # Errors
/// If it cannot be opened, or is no regular file.
pub fn regular(path: &Path) -> io::Result<File> {
    let other = || io::Error::other("it is not a regular file");
    // Opening a device may do something, so it is looked at before; and again after, since it may have become another one.
    if !std::fs::metadata(path)?.is_file() {
        return Err(other());
    }
    let mut options = OpenOptions::new();
    OpenOptionsExt::custom_flags(options.read(true), NONBLOCK);
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

/// Opens a regular file below a folder, by its name from there; no part of the name is a link.
///
/// # Errors
/// If there is none, or it is another kind of file.
pub fn beneath(folder: &Path, name: &str) -> io::Result<BeneathFile> {
    let file = FileStorage::new(folder).read_only().open(name, Access::Read)?;
    Ok(BeneathFile { bytes: file.len()?, file, at: 0 })
}

/// The names in a folder below a folder, in order; no part of its name is a link.
///
/// # Errors
/// If it is no folder, or cannot be read.
pub fn names_beneath(folder: &Path, name: &str) -> io::Result<Vec<String>> {
    let mut names = FileStorage::new(folder).read_only().list(name)?;
    names.sort();
    Ok(names)
}

/// A file from [`beneath`].
pub struct BeneathFile {
    file: Box<dyn StoredFile>,
    /// Its length when it was opened.
    pub bytes: u64,
    at: u64,
}

impl io::Read for BeneathFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}

/// Files below `path`; only `path`, if it is a file. Files that go meanwhile are left out.
///
/// A link that is followed is not if it leads to a folder that the search passes through: such a folder would hold itself.
///
/// # Errors
/// If `path` cannot be read, or is neither a file nor a folder. A folder below it that cannot be read does not stop the search.
pub fn files(path: &Path, depth_max: usize, follows: Links) -> io::Result<FileSearch> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        if !metadata.is_file() {
            return Err(io::Error::other("it is neither a file nor a folder"));
        }
        return Ok(FileSearch { files: vec![(path.to_owned(), metadata.len())], unread: Vec::new() });
    }
    let start = std::fs::canonicalize(path)?;
    let mut found = FileSearch::default();
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
            Ok(_) if follows == Links::Within => {
                let why = "it is a link that leads out of the folder, and is not followed without --links";
                found.unread.push((link, io::Error::other(why)));
            }
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

impl FileSearch {
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
        let found = files(&at("root"), DEPTH_MAX, Links::Followed).unwrap();
        let names: Vec<PathBuf> = found.files.into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, ["root/own/a", "root/x/deep/b", "root/z"].map(at));
        assert!(found.unread.is_empty(), "{:?}", found.unread);
        symlink("around", at("root/around")).unwrap();
        let found = files(&at("root"), DEPTH_MAX, Links::Followed).unwrap();
        assert_eq!(found.files.len(), 3);
        assert_eq!(found.unread.first().map(|(path, _)| path.clone()), Some(at("root/around")));
        // A folder that was unpacked led to `/proc` and to the user's keys.
        let found = files(&at("root"), DEPTH_MAX, Links::Within).unwrap();
        let names: Vec<PathBuf> = found.files.into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, [at("root/own/a")]);
        let told: Vec<PathBuf> = found.unread.into_iter().map(|(path, _)| path).collect();
        assert_eq!(told, ["root/around", "root/x", "root/y", "root/z"].map(at));
    }

    #[test]
    fn only_regular_files_are_opened_and_no_part_of_a_name_below_is_a_link() {
        use std::io::Read as _;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("s/results")).unwrap();
        std::fs::create_dir_all(at("other")).unwrap();
        for name in ["s/results/a.txt", "other/key"] {
            std::fs::write(at(name), name).unwrap();
        }
        symlink("../../other/key", at("s/results/link.txt")).unwrap();
        symlink("../other", at("s/linked")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("s/pipe")).status().unwrap().success());
        let mut text = String::new();
        beneath(folder.path(), "s/results/a.txt").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "s/results/a.txt");
        for name in ["s/results/link.txt", "s/linked/key", "s/pipe", "s/results", "s/../other/key", "nothing"]
        {
            assert!(beneath(folder.path(), name).is_err(), "{name}");
        }
        assert!(names_beneath(folder.path(), "s/linked").is_err());
        assert_eq!(names_beneath(folder.path(), "s/results").unwrap(), ["a.txt", "link.txt"]);
        for (name, is_opened) in
            [("s/pipe", false), ("s", false), ("other/key", true), ("s/linked/key", true)]
        {
            assert_eq!(regular(&at(name)).is_ok(), is_opened, "{name}");
        }
        assert!(regular(Path::new("/dev/zero")).is_err());
    }
}
