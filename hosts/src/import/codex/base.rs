//! The beginning of a session that stands in the file of another, or in an older file of the same.
//!
//! ```text
//! session_meta.history_base {thread_id, end_ordinal_exclusive, end_byte_offset}
//!     of another thread   a fork: what stands there up to the offset is the beginning of this session too
//!     of the same thread  taken back: the host writes a new file, which goes on from a point of the old one
//! ```
//!
//! The other file is read through [`Beside`](super::super::Beside), by its thread's id, and may itself begin elsewhere.
//! Its lines have the origins in this session that they have there, so what was recorded of them before is known.

use acpdb_engine::entry::{Entry, PointRef, fact};

use super::super::json::{count, member, owned, pick};
use super::super::lines::LineImporter as _;
use super::{Codex, digest, without_ordinal};

/// Most files that a session's beginning may be spread over.
const DEPTH_MAX: u32 = 16;

impl Codex {
    /// Adds the facts of the beginning that `base` names.
    pub(super) fn inherit(&mut self, base: &str, origin: &str, out: &mut Vec<Entry>) {
        let [thread, ordinal, offset] =
            pick(base, ["thread_id", "end_ordinal_exclusive", "end_byte_offset"]).unwrap_or_default();
        let Some(thread) = owned(thread) else { return };
        let Some(beside) = self.beside.clone().filter(|_| self.depth < DEPTH_MAX) else { return };
        let end = count(offset).and_then(|end| usize::try_from(end).ok()).unwrap_or(usize::MAX);
        let whole = (beside.0)(&thread);
        let text = whole.as_deref().and_then(|bytes| {
            // A file that ends before is not the one that is meant.
            let bytes = if end == usize::MAX { Some(bytes) } else { bytes.get(..end) };
            // One that is cut in the middle of a character is not the one that is meant either: that is said below.
            std::str::from_utf8(bytes?).ok()
        });
        let Some(text) = text else {
            let missing = format!(
                "the beginning of this session stands in that of thread {thread}, which is not there as it was; \
                 import again when it is"
            );
            self.missing = Some(missing);
            return;
        };
        self.depth = self.depth.saturating_add(1);
        // Lines are numbered as in their own file.
        let lines = std::mem::take(&mut self.lines);
        let mut last = None;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let number = count(member(Some(line), "ordinal"));
            if number.zip(count(ordinal)).is_some_and(|(number, end)| number >= end) {
                break;
            }
            let kind = owned(member(Some(line), "type"));
            if kind.as_deref() == Some("session_meta") {
                self.lines.origin("line", &digest(&without_ordinal(line)));
                let further = member(member(Some(line), "payload"), "history_base");
                if let Some(further) = further {
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
        self.depth -= 1;
        // A session goes on from a point of its own: what came after that is taken back.
        if thread == self.stream.name
            && let Some(last) = last
        {
            let fact = fact::Rewound { to: PointRef::After(last) };
            out.push(Entry::from(fact).origin(format!("{origin}/rewound")));
        }
        self.replying = false;
        self.asked = None;
    }
}
