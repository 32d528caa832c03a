//! The report of an import: its counts, its notes, its errors.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;

use acpdb_engine::entry::{Entry, Fact, PartEntry, StreamInfo, fact, without_branch};
use acpdb_engine::event::Outcome;
use acpdb_engine::ids::StreamId;
use serde::{Deserialize, Serialize};

use super::ImportFormat;
use super::claude_code::UNCHANGED;
use super::limits::Exceeded;
use super::turns::holds_pointer;
use super::values::{JsonSpan, Shape};

/// Notes kept in a report; further ones are only counted.
pub(super) const NOTES_MAX: usize = 1000;

/// Versions kept in a report.
const VERSIONS_MAX: usize = 100;

/// Sessions kept in a report that were started by calls.
const STARTED_MAX: usize = 10_000;

/// A place in the input that needed care.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportNote {
    /// Line, from 1; 0 in an input without lines, such as a database.
    pub line: u64,
    /// Offset of the record's first byte.
    pub offset: u64,
    /// The fault there, and the remedy if there is one.
    pub reason: String,
}

/// A session that a call of another one started, as the other one's file tells it. Either may be imported first.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct StartedSession {
    /// The host's id of the session with the call.
    pub parent: String,
    /// The host's id of the call.
    pub call: String,
    /// The host's id of the session that it started.
    pub session: String,
}

impl StartedSession {
    /// The session that was started, with the call that did it.
    pub fn info(&self, host: &str) -> StreamInfo {
        let parent = StreamInfo::session(host, self.parent.as_str()).id();
        let parent = Some((parent, Some(self.call.clone())));
        StreamInfo { parent, ..StreamInfo::session(host, self.session.as_str()) }
    }
}

/// The counts and the notes of an import. Notes of places in the input are not serialized.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ImportReport {
    /// The format.
    pub format: ImportFormat,
    /// Main sessions; subagents found inside them are not counted.
    pub sessions: u64,
    /// Subagents' sessions.
    pub subagents: u64,
    /// Records: lines of line-wise formats; messages and parts, or messages, of documents.
    pub records: u64,
    /// Tool calls of main sessions.
    pub calls_main: u64,
    /// Tool calls of subagents.
    pub calls_subagent: u64,
    /// Calls of main sessions that failed or were aborted.
    pub failed: u64,
    /// Calls of main sessions that have no result.
    pub without_result: u64,
    /// Whole todo lists that calls wrote.
    pub todo_snapshots: u64,
    /// Calls that change single todos.
    pub todo_deltas: u64,
    /// Records that repeat the id of an earlier one and were left out.
    pub duplicates: u64,
    /// Records of kinds that the importer does not know, by kind: kept as they are.
    #[serde(default, rename = "unknown")]
    pub unknown_records: BTreeMap<String, u64>,
    /// Tables of a database that the importer does not know; their rows are not read.
    #[serde(default, rename = "tables")]
    pub unknown_tables: BTreeSet<String>,
    /// Versions of the host that wrote the records, as far as they say so; at most a hundred.
    #[serde(default)]
    pub versions: BTreeSet<String>,
    /// Sessions that calls of the file started: the first ten thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started: Vec<StartedSession>,
    /// It is a subagent's, and the call that started it was not found: a later import may find it.
    #[serde(skip)]
    pub lacks_call: bool,
    /// Records that could not be understood: kept as they are.
    #[serde(skip)]
    pub kept_raw: Vec<ImportNote>,
    /// Bytes that were left out.
    #[serde(skip)]
    pub skipped: Vec<ImportNote>,
    /// The last value is not complete yet: import again when it is.
    #[serde(skip)]
    pub cut: Option<ImportNote>,
    /// Nothing of the input was understood, and nothing was handed out.
    #[serde(skip)]
    pub is_empty: bool,
    /// Notes beyond a thousand, of all kinds.
    #[serde(skip)]
    pub notes_left_out: u64,
}

impl ImportReport {
    /// An empty report.
    pub fn new(format: ImportFormat) -> Self {
        Self {
            format,
            sessions: 0,
            subagents: 0,
            records: 0,
            calls_main: 0,
            calls_subagent: 0,
            failed: 0,
            without_result: 0,
            todo_snapshots: 0,
            todo_deltas: 0,
            duplicates: 0,
            unknown_records: BTreeMap::new(),
            unknown_tables: BTreeSet::new(),
            versions: BTreeSet::new(),
            started: Vec::new(),
            lacks_call: false,
            kept_raw: Vec::new(),
            skipped: Vec::new(),
            cut: None,
            is_empty: false,
            notes_left_out: 0,
        }
    }

    /// Whether everything was there and understood. A cut last value and unknown kinds do not count against it.
    pub fn is_complete(&self) -> bool {
        self.skipped.is_empty() && self.kept_raw.is_empty() && self.notes_left_out == 0
    }

    /// Counts a record of an unknown kind.
    pub(crate) fn unknown(&mut self, kind: &str) {
        // Kinds come from the input: their number and length are bounded here.
        let end = kind.char_indices().map(|(at, _)| at).take_while(|at| *at <= 64).last().unwrap_or(0);
        let kind = if kind.len() > 64 { kind.get(..end).unwrap_or_default() } else { kind };
        let kind = if self.unknown_records.len() < NOTES_MAX { kind } else { "other" };
        *self.unknown_records.entry(kind.to_owned()).or_default() += 1;
    }

    /// Takes note of the version of a host.
    pub(crate) fn written_by(&mut self, version: &str) {
        let fits = version.len() <= 64 && self.versions.len() < VERSIONS_MAX;
        if fits && !self.versions.contains(version) {
            self.versions.insert(version.to_owned());
        }
    }

    /// Notes a session that a call started.
    pub(crate) fn starts(&mut self, started: StartedSession) {
        if self.started.len() < STARTED_MAX {
            self.started.push(started);
        }
    }

    /// Notes a record that is kept without being understood.
    pub(crate) fn keep_raw(&mut self, line: u64, offset: u64, reason: impl Into<String>) {
        note(
            &mut self.kept_raw,
            &mut self.notes_left_out,
            ImportNote { line, offset, reason: reason.into() },
        );
    }

    /// Notes bytes that are left out.
    pub(crate) fn skip(&mut self, line: u64, offset: u64, reason: impl Into<String>) {
        note(&mut self.skipped, &mut self.notes_left_out, ImportNote { line, offset, reason: reason.into() });
    }

    /// Looks at the shape and the encoding of a value.
    ///
    /// `Text` is fit for a parser; `Raw` is to be kept as it is, and is already noted; `Nothing` needs no more.
    pub(crate) fn admit<'a>(&mut self, value: &JsonSpan<'a>) -> Admitted<'a> {
        match value.shape {
            Shape::Whole | Shape::Mended(_) => match std::str::from_utf8(value.bytes) {
                Ok(text) => {
                    if let Shape::Mended(reason) = value.shape {
                        self.keep_raw(value.line, value.offset, reason);
                    }
                    Admitted::Text(text)
                }
                Err(error) => {
                    let at = value.offset.saturating_add(error.valid_up_to() as u64);
                    self.keep_raw(value.line, value.offset, format!("not UTF-8 at byte {at}; kept as it is"));
                    Admitted::Raw(value.bytes)
                }
            },
            Shape::Broken(reason) => {
                self.keep_raw(value.line, value.offset, format!("{reason}; kept as it is"));
                Admitted::Raw(value.bytes)
            }
            Shape::Cut => {
                let reason = "the last record is not complete yet; import again when it is".to_owned();
                self.cut = Some(ImportNote { line: value.line, offset: value.offset, reason });
                Admitted::Nothing
            }
            Shape::TooMuch(exceeded) => {
                self.skip(value.line, value.offset, format!("left out: {exceeded}"));
                Admitted::Nothing
            }
        }
    }
}

/// Counts the calls among the facts that are handed out. A call that is told again, by its origin, counts once.
#[derive(Debug, Default)]
pub(super) struct CallTally {
    /// Calls that began, and whether each is of a main session.
    started: HashMap<Call, bool>,
    finished: HashSet<Call>,
}

/// A call's stream and origin, without the word for its start or its end.
type Call = (StreamId, String);

impl CallTally {
    /// Counts the calls among `entries`.
    pub(super) fn count(&mut self, stream: &StreamInfo, entries: &[Entry], report: &mut ImportReport) {
        // opencode keeps the session of a subagent as a session like any other.
        let is_main = stream.parent.is_none() || report.format == ImportFormat::Opencode;
        // A call may end on a branch that was left behind it.
        let stream = StreamInfo { name: without_branch(&stream.name).to_owned(), ..stream.clone() };
        let call = |entry: &Entry| {
            let origin = entry.origin.as_deref().unwrap_or_default();
            let ends = [":start", ":finish", ":aborted"];
            let call = ends.iter().find_map(|end| origin.strip_suffix(end)).unwrap_or(origin);
            (stream.id(), call.to_owned())
        };
        for entry in entries {
            match &entry.fact {
                Fact::ToolStarted(fact::ToolStarted { tool, .. }) => {
                    if self.started.insert(call(entry), is_main).is_some() {
                        continue;
                    }
                    let calls = if is_main { &mut report.calls_main } else { &mut report.calls_subagent };
                    *calls = calls.saturating_add(1);
                    match tool.as_str() {
                        "TodoWrite" | "todowrite" | "update_plan" | "write_todos" => {
                            report.todo_snapshots += 1;
                        }
                        "TaskCreate" | "TaskUpdate" | "tracker_create_task" | "tracker_update_task" => {
                            report.todo_deltas += 1;
                        }
                        _ => {}
                    }
                }
                Fact::ToolFinished(fact::ToolFinished { outcome, output, .. }) => {
                    let is_bad = match outcome {
                        Outcome::Completed => false,
                        Outcome::Failed => true,
                        Outcome::Aborted => !shows_nothing_new(output),
                    };
                    if self.finished.insert(call(entry)) && is_main && is_bad {
                        report.failed += 1;
                    }
                }
                _ => {}
            }
        }
    }

    /// Counts the calls that have no result at the end of the input.
    pub(super) fn finish(&self, report: &mut ImportReport) {
        let open = self.started.iter().filter(|(call, is_main)| **is_main && !self.finished.contains(*call));
        report.without_result = open.count() as u64;
    }
}

/// Whether a result says only that nothing has changed: as the host says it, or as a pointer of ours.
fn shows_nothing_new(output: &[PartEntry]) -> bool {
    holds_pointer(output) || output.iter().any(|part| part.bytes.starts_with(UNCHANGED.as_bytes()))
}

/// The next step for a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admitted<'a> {
    /// Parse it.
    Text(&'a str),
    /// Keep it.
    Raw(&'a [u8]),
    /// Go on to the next value.
    Nothing,
}

fn note(notes: &mut Vec<ImportNote>, left_out: &mut u64, note: ImportNote) {
    if notes.len() < NOTES_MAX {
        notes.push(note);
    } else {
        *left_out = left_out.saturating_add(1);
    }
}

/// Why an import ended early. Batches that the sink took before stay valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The input could not be read.
    #[error("cannot read the input after byte {offset}")]
    Io {
        /// Bytes read before.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// The input is more than a limit allows. Batches that the sink took before stand.
    #[error(transparent)]
    Limit(#[from] Exceeded),
    /// The sink wanted no more.
    #[error("the import was stopped")]
    Stopped,
    /// The input is not of the format it was taken for.
    #[error("not a session of {format} at line {line}, byte {offset}: {reason}; name the right format")]
    OtherFormat {
        /// The format it was taken for.
        format: ImportFormat,
        /// Line, from 1.
        line: u64,
        /// Byte offset.
        offset: u64,
        /// The missing part.
        reason: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results that are pointers counted as failures in the sessions of Codex, and did not in those of Claude Code.
    #[test]
    fn a_call_counts_once_and_a_result_that_shows_nothing_new_is_no_failure() {
        let started =
            |call: &str| Entry::tool_started(call, "TodoWrite", "{}").origin(format!("call:{call}:start"));
        let finished = |call: &str, outcome, text: &str| {
            let entry = Entry::tool_finished(call, outcome, vec![PartEntry::text(text)]);
            entry.origin(format!("call:{call}:finish"))
        };
        let entries = [
            started("a"),
            started("a"),
            started("b"),
            started("c"),
            started("d"),
            started("open"),
            finished("a", Outcome::Failed, "no such file"),
            finished("a", Outcome::Failed, "no such file, told again"),
            finished("b", Outcome::Aborted, "[60 lines, the same as lines 1-60 of Read a.rs above]"),
            finished("c", Outcome::Aborted, "File unchanged since last read."),
            finished("d", Outcome::Aborted, "interrupted"),
        ];
        let (mut report, mut tally) = (ImportReport::new(ImportFormat::Codex), CallTally::default());
        let main = StreamInfo::session("codex", "s");
        tally.count(&main, &entries, &mut report);
        let agent = StreamInfo { parent: Some((main.id(), None)), ..StreamInfo::session("codex", "agent") };
        tally.count(&agent, &entries, &mut report);
        tally.finish(&mut report);
        let ImportReport { calls_main, calls_subagent, failed, without_result, todo_snapshots, .. } = report;
        assert_eq!([calls_main, calls_subagent, failed, without_result, todo_snapshots], [5, 5, 2, 1, 10]);
    }
}
