//! Input that comes only once, such as through a pipe, as a file: a format is recognised by looking at a file more than once.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A temporary file. It is removed when this value is dropped, or when the command is interrupted.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    path: PathBuf,
    bytes: u64,
    _folder: tempfile::TempDir,
}

/// Copies the whole input to a file.
pub(crate) fn kept(input: &mut impl Read) -> io::Result<TemporaryFile> {
    let folder = tempfile::Builder::new().prefix("acpdb-import-").tempdir()?;
    crate::interrupt::scratch(folder.path());
    let path = folder.path().join("stdin.jsonl");
    let bytes = io::copy(input, &mut File::create(&path)?)?;
    Ok(TemporaryFile { path, bytes, _folder: folder })
}

impl TemporaryFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
