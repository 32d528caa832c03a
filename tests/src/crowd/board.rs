//! The board of a round: things that all threads of all processes know once they are posted. One line each, added with one write.
//!
//! A thread that reads the board before it reads the store knows which texts must be gone, and which key ring is the newest.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use acpdb_engine::ids::{ItemId, Seq};
use serde::{Deserialize, Serialize};

use super::weather::patiently;

/// A line of the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Post {
    /// The keys are about to be wrapped by this ring.
    RingBegun(u32),
    /// They are.
    RingDone(u32),
    /// A subject is about to be shredded.
    SubjectGoes(String),
    /// It was shredded.
    SubjectGone(String),
    /// A session was shredded.
    SessionGone(String),
    /// A text that begins so, or a secret in texts, was erased.
    TextGone(String),
    /// A message with secrets, which all threads may erase: its event, its part, its text.
    Page(u64, u32, String),
}

/// How far the keys were wrapped anew. The ring with which the store was made is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rings {
    /// The last ring that some keys may be wrapped by.
    pub begun: u32,
    /// The last ring that all keys were wrapped by.
    pub done: u32,
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

    /// How far the keys were wrapped anew.
    ///
    /// # Errors
    /// As [`Board::posts`].
    pub fn rings(&self) -> Result<Rings, String> {
        let mut rings = Rings::default();
        for post in self.posts()? {
            match post {
                Post::RingBegun(number) => rings.begun = rings.begun.max(number),
                Post::RingDone(number) => rings.done = rings.done.max(number),
                _ => {}
            }
        }
        Ok(rings)
    }
}

/// The item of a page.
#[must_use]
pub fn item(seq: u64, part: u32) -> ItemId {
    ItemId { seq: Seq(seq), part }
}
