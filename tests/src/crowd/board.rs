//! The board of a round: things that all threads of all processes know once they are posted. One line each, added with one write.
//!
//! A thread that reads the board before it reads the store knows which texts must be gone.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use acpdb_engine::ids::{ItemId, Seq};
use serde::{Deserialize, Serialize};

use super::weather::patiently;

/// A line of the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Post {
    /// A text that begins so, or a secret in texts, was erased.
    TextGone(String),
    /// A message with secrets, which all threads may erase: its event, its part, its text.
    Page(u64, u32, String),
}

/// The board of a round.
#[derive(Debug, Clone)]
pub struct Board(PathBuf);

impl Board {
    /// The board in a folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self(folder.join("board"))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn post(&self, post: &Post) -> Result<(), String> {
        let mut line = serde_json::to_vec(post).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let file = patiently(|| OpenOptions::new().create(true).append(true).open(&self.0));
        file.and_then(|mut file| file.write_all(&line)).map_err(|error| format!("board: {error}"))
    }

    /// All lines.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn posts(&self) -> Result<Vec<Post>, String> {
        let text = match patiently(|| std::fs::read_to_string(&self.0)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|error| format!("board: {error}"))?,
        };
        // A process may be in the middle of writing the last line.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).map_err(|error| format!("board {line:?}: {error}")))
            .collect()
    }
}

/// The item of a page.
#[must_use]
pub fn item(seq: u64, part: u32) -> ItemId {
    ItemId { seq: Seq(seq), part }
}
