//! A file that its host adds to: its bytes in order, and whether they still lie at its path.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

/// Bytes before the end that are compared, to see whether the file still has the bytes that were read.
const MARK_BYTES: usize = 256;

/// A change of a file after which it is not read on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileChange {
    /// Other bytes lie at its path: a new file, or the same one cut or written anew.
    Replaced,
    /// Nothing lies at its path any more.
    Gone,
}

/// A file that is read on from where the reading ended.
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    position: u64,
    /// The last bytes that were read.
    mark: Vec<u8>,
}

impl GrowingFile {
    /// From the beginning of a file on.
    pub const fn new(file: File) -> Self {
        Self { file, position: 0, mark: Vec::new() }
    }

    /// How many bytes were read.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Reads what is there now; 0: no more.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_on(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position = self.position.saturating_add(count as u64);
        let bytes = buffer.get(..count).unwrap_or_default();
        self.mark.extend_from_slice(bytes.get(count.saturating_sub(MARK_BYTES)..).unwrap_or_default());
        // A mark that is not full yet has no surplus.
        self.mark.drain(..self.mark.len().saturating_sub(MARK_BYTES));
        Ok(count)
    }

    /// The change that the file went through; `None`: the bytes that were read still lie at its path.
    pub fn change(&self, path: &Path) -> Option<FileChange> {
        let place = |it: &std::fs::Metadata| (it.dev(), it.ino());
        let Ok(now) = std::fs::metadata(path) else { return Some(FileChange::Gone) };
        let Ok(open) = self.file.metadata() else { return Some(FileChange::Replaced) };
        let mut mark = vec![0; self.mark.len()];
        // The mark holds the last bytes that were read, so it is not longer than the position.
        let before = self.position.saturating_sub(mark.len() as u64);
        let is_same = place(&now) == place(&open)
            && now.len() >= self.position
            && self.file.read_exact_at(&mut mark, before).is_ok()
            && mark == self.mark;
        (!is_same).then_some(FileChange::Replaced)
    }
}
