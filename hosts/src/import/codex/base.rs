//! The beginning of a session that stands in the file of another, or in an older file of the same.
//!
//! ```text
//! session_meta.history_base {thread_id, end_ordinal_exclusive, end_byte_offset}
//!     of another thread   a fork: the lines there up to the offset are the beginning of this session too
//!     of the same thread  taken back: the host writes a new file, which goes on from a point of the old one
//! ```
//!
//! The other file is read through [`Beside`](super::super::Beside), by its thread's id, and may itself begin elsewhere. A
//! thread that was taken back has several files: the right one ends there, or goes on, and is none of those that lead to
//! it. Its lines have the same origins in this session as there, so facts that were recorded of them before are known.

use acpdb_engine::entry::{Entry, PointRef, fact};

use super::super::Beside;
use super::super::json::{count, member, owned, pick};
use super::super::lines::LineImporter as _;
use super::{Codex, digest, without_ordinal};

/// Most files that a session's beginning may be spread over.
const DEPTH_MAX: usize = 16;
/// Most files of one thread that are read.
const FILE_COUNT_MAX: usize = 16;
/// Most bytes of all beginnings of a session: as many as one document may have.
const BYTES_MAX: usize = 64 << 20;

/// The end of a session's beginning in a file of a thread.
struct SessionPrefix {
    thread: String,
    /// Number of the first line that is no part of it.
    ordinal: Option<u64>,
    /// The byte behind its last line.
    end: Option<usize>,
}

impl SessionPrefix {
    fn of(base: &str) -> Option<Self> {
        let [thread, ordinal, offset] =
            pick(base, ["thread_id", "end_ordinal_exclusive", "end_byte_offset"])?;
        let end = count(offset).and_then(|end| usize::try_from(end).ok());
        Some(Self { thread: owned(thread)?, ordinal: count(ordinal), end })
    }

    /// The beginning in a file; `None`: it is not the right file, since it ends before, or a character would be cut.
    fn within<'f>(&self, file: &'f [u8]) -> Option<&'f str> {
        let bytes = self.end.map_or(Some(file), |end| file.get(..end))?;
        // Bytes that are no text are no beginning.
        std::str::from_utf8(bytes).ok()
    }

    /// Whether a line with the number before the end is the last one.
    fn ends_with(&self, text: &str) -> bool {
        let last = text.lines().next_back().and_then(|line| count(member(Some(line), "ordinal")));
        text.ends_with('\n')
            && self.ordinal.is_some()
            && last.and_then(|last| last.checked_add(1)) == self.ordinal
    }

    /// The right file, with its number, among those of the thread that are not `open`.
    fn file(&self, beside: &Beside, open: &[(String, usize)]) -> Option<(usize, Vec<u8>)> {
        let mut found: Option<(usize, Vec<u8>)> = None;
        for number in 0..FILE_COUNT_MAX {
            let Some(file) = (beside.0)(&self.thread, number) else { break };
            let is_open = open.iter().any(|(thread, at)| *thread == self.thread && *at == number);
            let Some(text) = self.within(&file).filter(|_| !is_open) else { continue };
            if self.ends_with(text) {
                return Some((number, file));
            }
            if found.as_ref().is_none_or(|(_, other)| other.len() < file.len()) {
                found = Some((number, file));
            }
        }
        found
    }
}

impl Codex {
    /// Adds the facts of the beginning that `base` names.
    pub(super) fn inherit(&mut self, base: &str, origin: &str, out: &mut Vec<Entry>) {
        let Some(base) = SessionPrefix::of(base) else { return };
        let Some(beside) = self.beside.clone() else { return };
        let found = base.file(&beside, &self.open).filter(|_| self.open.len() < DEPTH_MAX);
        let text = found.as_ref().and_then(|(_, file)| base.within(file));
        let read = text.map_or(0, str::len).saturating_add(self.inherited); // compared only
        let (Some(text), Some((number, _))) = (text.filter(|_| read <= BYTES_MAX), &found) else {
            let missing = format!(
                "the beginning of this session stands in that of thread {}, which is not there as it was; \
                 import again when it is",
                base.thread
            );
            self.missing = Some(missing);
            return;
        };
        self.inherited = read;
        self.open.push((base.thread.clone(), *number));
        // Lines are numbered as in their own file.
        let lines = std::mem::take(&mut self.lines);
        let mut last = None;
        // As in a session's own file, only the first `session_meta` tells where the session begins.
        let mut is_first = true;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let number = count(member(Some(line), "ordinal"));
            if number.zip(base.ordinal).is_some_and(|(number, end)| number >= end) {
                break;
            }
            let kind = owned(member(Some(line), "type"));
            if kind.as_deref() == Some("session_meta") {
                self.lines.origin("line", &digest(&without_ordinal(line)));
                let further = member(member(Some(line), "payload"), "history_base");
                let counts = std::mem::take(&mut is_first);
                if let Some(further) = further.filter(|_| counts) {
                    self.inherit(further, origin, out);
                }
            } else {
                let mut found = Vec::new();
                self.record(line, &mut found);
                last = found.iter().rev().find_map(|entry| entry.origin.clone()).or(last);
                out.append(&mut found);
            }
        }
        self.lines = lines;
        self.open.pop();
        // A session goes on from a point of its own: lines behind that point are taken back.
        if base.thread == self.stream.name
            && let Some(last) = last
        {
            let fact = fact::Rewound { to: PointRef::After(last) };
            out.push(Entry::from(fact).origin(format!("{origin}/rewound")));
        }
        self.replying = false;
        self.asked = None;
    }
}
