//! The latest acts of hooks: a line each, for `attach --status`.
//!
//! Hooks say nothing when they fail; only the journal shows it. It lies outside of the store, since it has to tell of a store
//! that cannot be written. Texts of sessions are never in it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{FileMode, replace};

/// Past this size the older half is dropped.
const BYTES_MAX: u64 = 512 << 10;

/// One act of a hook.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct JournalLine {
    /// When, in microseconds since 1970.
    pub at: i64,
    /// The host.
    pub host: String,
    /// The event, as the host spells it.
    #[serde(default)]
    pub event: String,
    /// The host's id of the session.
    #[serde(default)]
    pub session: String,
    /// Version of the program.
    pub version: String,
    /// How long it took.
    pub milliseconds: u64,
    /// Events that were new.
    #[serde(default)]
    pub event_count: u64,
    /// Whether an answer was given.
    #[serde(default)]
    pub has_answered: bool,
    /// Stores that were found on the way and passed over, with the reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<String>,
    /// The error, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The folder of what acpdb keeps about its own work: `$XDG_STATE_HOME/acpdb`, else `~/.local/state/acpdb`. `None` without a home.
pub fn folder(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(folder.join("acpdb"))
}

/// The file: `hooks.jsonl` in [`folder`]. `None` without a home.
pub fn path(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    Some(folder(variable)?.join("hooks.jsonl"))
}

/// Longest text of a line, in characters. One line with an id of 60 MB took the place of all others.
const TEXT_CHARS_MAX: usize = 2000;

impl JournalLine {
    /// The line with its texts cut.
    fn bounded(&self) -> Self {
        let cut = |text: &str| match text.char_indices().nth(TEXT_CHARS_MAX) {
            Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
            None => text.to_owned(),
        };
        let cut_if_there = |text: &Option<String>| text.as_deref().map(cut);
        Self {
            host: cut(&self.host),
            event: cut(&self.event),
            session: cut(&self.session),
            passed_over: cut_if_there(&self.passed_over),
            error: cut_if_there(&self.error),
            ..self.clone()
        }
    }
}

/// Makes a folder of this program's own, for its owner alone, whatever the mask.
///
/// # Errors
/// If it cannot be made.
pub fn private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Adds a line.
///
/// # Errors
/// If the file cannot be written; the caller has nothing better to do than to go on.
pub fn add(path: &Path, line: &JournalLine) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        private_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    // Ids of sessions and paths are for their owner alone.
    std::os::unix::fs::OpenOptionsExt::mode(options.create(true).append(true).read(true), 0o600);
    let mut file = options.open(path)?;
    let mut bytes = serde_json::to_vec(&line.bounded()).map_err(std::io::Error::other)?;
    bytes.push(b'\n');
    file.write_all(&bytes)?;
    if file.metadata()?.len() > BYTES_MAX {
        shorten(&mut file, path)?;
    }
    Ok(())
}

/// Keeps the newer half. Lines that others add meanwhile may be lost: they are no record.
fn shorten(file: &mut File, path: &Path) -> std::io::Result<()> {
    file.seek(SeekFrom::End(-i64::try_from(BYTES_MAX / 2).unwrap_or(0)))?;
    let mut newer = Vec::new();
    file.read_to_end(&mut newer)?;
    let start = newer.iter().position(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    replace(path, newer.get(start..).unwrap_or_default(), FileMode::Kept)
}

/// The lines that can be read, oldest first; none if there is no file.
///
/// # Errors
/// If the file is there and cannot be read.
pub fn read(path: &Path) -> std::io::Result<Vec<JournalLine>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // Two processes that add a line while a third shortens the file may tear a line, even in the midst of a character. The
    // journal is for people and no record.
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte of a character that was torn off made the whole journal unreadable: `attach --status` failed.
    #[test]
    fn a_line_that_was_torn_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.jsonl");
        let line = JournalLine { host: "codex".to_owned(), ..JournalLine::default() };
        add(&path, &line).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(b"{\"at\":1,\"host\":\"\xc3\n");
        std::fs::write(&path, bytes).unwrap();
        add(&path, &line).unwrap();
        assert_eq!(read(&path).unwrap(), [line.clone(), line]);
    }

    /// A session's id of 60 MB emptied the journal, and all users could read it.
    #[test]
    fn a_long_line_is_cut_and_the_file_is_for_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.jsonl");
        let line = JournalLine { host: "codex".to_owned(), ..JournalLine::default() };
        add(&path, &line).unwrap();
        let long = "\u{e9}".repeat(1 << 20);
        add(&path, &JournalLine { session: long.clone(), error: Some(long), ..line.clone() }).unwrap();
        let lines = read(&path).unwrap();
        assert_eq!((lines.len(), &lines[0]), (2, &line));
        assert_eq!(lines[1].session.chars().count(), TEXT_CHARS_MAX + 2);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
