//! The diary of a thread: each act before it is tried, and its answer. Written line by line, so that it outlives its process.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::weather::patiently;

/// An event as its writer knows it: the session, the kind, and the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Line {
    /// The session's name; empty for the store.
    pub session: String,
    /// The kind; [`TOLD`] stands for a message or its revision.
    pub label: String,
    /// The text that it has; empty if its kind has none.
    pub text: String,
}

/// A message that may be there already in other words, so that it becomes a revision.
pub const TOLD: &str = "told";

impl Line {
    /// A line.
    pub fn new(session: &str, label: &str, text: impl Into<String>) -> Self {
        Self { session: session.to_owned(), label: label.to_owned(), text: text.into() }
    }

    /// In short, for messages.
    #[must_use]
    pub fn shown(&self) -> String {
        let text: String = self.text.chars().take(60).collect();
        format!("{} {} ({}) {text:?}", self.label, super::session(&self.session).id(), self.session)
    }
}

/// A line of a diary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// One commit is about to be tried.
    Tries {
        /// The act.
        act: String,
        /// Its number in the thread.
        number: u32,
        /// Its events, in order; openings of sessions may come before them.
        lines: Vec<Line>,
    },
    /// It was acknowledged: its first and last seq, both 0 if nothing was to be recorded.
    Recorded(u32, u64, u64),
    /// It was refused, and nothing was recorded.
    Refused(u32, String),
    /// It failed when the store was poisoned: it is there or not.
    Unsure(u32, String),
    /// Texts are about to be erased, for this reason.
    Erases(String, Vec<String>),
    /// They were erased.
    Erased(String),
    /// A stretch of a page is about to be erased.
    ErasesSpan(String, usize),
    /// It was erased.
    ErasedSpan(String, usize),
    /// All events up to this one were signed, with this root.
    Signed(u64, [u8; 32]),
    /// A link, as a copy or a handle knew it.
    Knows(u64, [u8; 32]),
    /// A commit as a follower was told of it: its first seq, and a word for each event.
    Told(u64, Vec<String>),
    /// An act that records nothing.
    Did(String),
}

/// The file of a thread's diary.
pub struct Diary(File);

impl Diary {
    /// Opens the diary of a thread.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(folder: &Path, process: usize, thread: usize) -> Result<Self, String> {
        let path = path_of(folder, process, thread);
        let file = patiently(|| OpenOptions::new().create(true).append(true).open(&path));
        file.map(Self).map_err(|error| format!("diary: {error}"))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&mut self, note: &Note) -> Result<(), String> {
        let mut line = serde_json::to_vec(note).map_err(|error| error.to_string())?;
        line.push(b'\n');
        self.0.write_all(&line).map_err(|error| format!("diary: {error}"))
    }
}

fn path_of(folder: &Path, process: usize, thread: usize) -> PathBuf {
    folder.join(format!("diary-{process}-{thread}"))
}

/// The lines of a thread's diary; none if it never began. The last one may be torn.
///
/// # Errors
/// If a line cannot be read.
pub fn read(folder: &Path, process: usize, thread: usize) -> Result<Vec<Note>, String> {
    let text = match std::fs::read_to_string(path_of(folder, process, thread)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| format!("diary: {error}"))?,
    };
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).map_err(|error| format!("diary {line:?}: {error}"))).collect()
}
