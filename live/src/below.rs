//! Files in a folder and below it.

use std::io;
use std::path::{Path, PathBuf};

/// Deepest folder that is looked into.
pub const DEPTH_MAX: usize = 16;

/// Files below `path` with their lengths, in order of their paths; only `path`, if it is a file. Files that go meanwhile are left out.
///
/// # Errors
/// If a folder cannot be read, or `path` is neither a file nor a folder.
pub fn files(path: &Path, depth_max: usize) -> io::Result<Vec<(PathBuf, u64)>> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        if !metadata.is_file() {
            return Err(io::Error::other("it is neither a file nor a folder"));
        }
        return Ok(vec![(path.to_owned(), metadata.len())]);
    }
    let mut found = Vec::new();
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            // Gone since its own folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && depth > 0 => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // Links are not followed: a folder that holds itself would never end.
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < depth_max {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() {
                match entry.metadata() {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    metadata => found.push((entry.path(), metadata?.len())),
                }
            }
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(found)
}
