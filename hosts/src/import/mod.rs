//! Importers: files of hosts become facts, in the order in which the host wrote them.
//!
//! ```text
//! bytes -> values (brackets and quotes) -> one importer per format -> Batch { stream, entries } -> Sink
//!                                                 |
//!                                                 '-> ImportReport: counts, and records that could not be understood
//! ```
//!
//! - An importer never fails because of one record: a record that it cannot understand becomes [`Fact::HostRecorded`]
//!   with its own bytes, is counted, and is named in the report.
//! - An input is a session only where something said or called in it was understood: until then its facts are held back, and
//!   they are dropped if that does not come (see `held`).
//! - Facts carry canonical origins, so importing a file again, or a longer version of it, adds only new facts.
//! - Exactly one entry of each host record carries the record's *wire*: pieces that, put together, are the record's bytes.
//! - Memory stays flat for line-wise formats: one record at a time, plus ids. A JSON document is read whole.
//!
//! Importers do not open files, do not decide which facts are current, and do not know the content of the store.

pub mod json;
mod limits;
pub mod values;
pub mod wire;

mod bounded;
mod claude_code;
mod codex;
mod copilot_cli;
mod detect;
mod gemini_cli;
mod gemini_parts;
mod held;
mod lines;
mod marks;
mod memory;
mod openai_messages;
mod opencode;
mod opencode_db;
mod opencode_storage;
mod pi;
mod report;
mod retold;
mod swe_agent;
mod torn;
mod turns;

use std::collections::{HashMap, hash_map};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use acpdb_engine::entry::{Bytes, Entry, Fact, StreamInfo, WirePiece, fact};
use acpdb_engine::event::Usage;
use acpdb_engine::ids::{Micros, StreamId};
use acpdb_engine::secret::DERIVED;
use serde::{Deserialize, Serialize};

pub(crate) use claude_code::{ATTACHED, SENT, UNCHANGED, untagged};
pub use claude_code::{
    META as AGENT_META, SESSION as AGENT_SESSION, WORKFLOW as AGENT_WORKFLOW,
    todo_change as claude_todo_change,
};
pub(crate) use copilot_cli::{SUMMARY, SUMMARY_SENT};
pub use detect::{HEAD_BYTES, decompressed, detect, foreign, is_own_export};
pub use gemini_cli::{AGENT_FOLDER, LOG as SESSION_LOG};
pub use limits::{Exceeded, Limits, exceeded};
pub use opencode_db::{ReadSessions, is_opencode, read_changed, read_database, session_ids};
pub use opencode_storage::{ListedMessages, StoredMessage, read_storage};
pub use report::{ImportError, ImportNote, ImportReport, StartedSession};
pub use retold::Retold;
pub(crate) use turns::{Occurrences, digest as content_digest, picture, prompt, step};

/// Version of the importers: a file that an earlier one has read is worth reading again, for it may be understood better now.
pub const READERS: u32 = 11;

/// A format that can be imported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportFormat {
    /// Claude Code: one record a line.
    ClaudeCode,
    /// opencode: one export document a session.
    Opencode,
    /// Codex: rollout lines.
    Codex,
    /// Gemini CLI: a document or a log of lines.
    GeminiCli,
    /// Copilot CLI: event lines.
    CopilotCli,
    /// Pi: lines that form a tree.
    Pi,
    /// Chat messages, alone or in runs.
    OpenaiMessages,
    /// SWE-agent trajectories.
    SweAgent,
    /// Decisions that replace each other, one a line.
    MemoryDecisions,
    /// Preferences over time, one change a line.
    MemoryPreferences,
}

impl ImportFormat {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::ClaudeCode,
        Self::Opencode,
        Self::Codex,
        Self::GeminiCli,
        Self::CopilotCli,
        Self::Pi,
        Self::OpenaiMessages,
        Self::SweAgent,
        Self::MemoryDecisions,
        Self::MemoryPreferences,
    ];

    /// Its name, as commands spell it; for sessions also the name of the host.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Opencode => "opencode",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::CopilotCli => "copilot-cli",
            Self::Pi => "pi",
            Self::OpenaiMessages => "openai-messages",
            Self::SweAgent => "swe-agent",
            Self::MemoryDecisions => "memory-decisions",
            Self::MemoryPreferences => "memory-preferences",
        }
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl std::fmt::Display for ImportFormat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Choices of the caller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImportOptions {
    /// Session id to use where the file names none. In a file of several sessions it is their common prefix.
    pub session: Option<String>,
    /// Project whose memory the sessions share; by default the session's working folder.
    pub project: Option<String>,
    /// For memory files: the project (or user) whose memory they are. By default the file's name.
    pub memory: Option<StreamInfo>,
    /// The input may still grow while it is read: facts that a host tells again are handed out with each record that tells them, and the
    /// sink gathers them by a [`Retold`] for as long as there is more to read. By default such facts are handed out at the end.
    pub grows: bool,
    /// The host itself hands over the input, so that no part of it is another's: a record of which nothing is understood is handed out, too, though
    /// no other one is.
    pub is_hosts_own: bool,
    /// Limits of the input.
    pub limits: Limits,
    /// Reads files that a host keeps beside a session and names in it, such as long results. Codex names a thread by its
    /// id, and means the thread's file. For a subagent's file, [`AGENT_META`] and [`AGENT_SESSION`] are the files that say which
    /// call started it, and the content of [`AGENT_WORKFLOW`] is the name of its workflow's folder. The content of
    /// [`AGENT_FOLDER`] is the name of the file's own folder; [`SESSION_LOG`] is there if a session goes on in another file.
    pub beside: Option<Beside>,
}

/// Reads a file beside a session, by the path that the session names; `None` if there is none, or it may not be read. A
/// thread of Codex may have several files: they are numbered from 0. Any other file is number 0.
#[derive(Clone)]
pub struct Beside(pub Arc<ReadBeside>);

/// Whether a name is an id in the usual form of 36 characters.
pub fn is_uuid(name: &str) -> bool {
    name.len() == 36
        && name.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Reads a file by its name, relative to the imported file, and by its number among files of that name; `None` if it cannot
/// be had.
pub type ReadBeside = dyn Fn(&str, usize) -> Option<Vec<u8>> + Send + Sync;

impl std::fmt::Debug for Beside {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Beside")
    }
}

impl PartialEq for Beside {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Beside {}

/// Facts of one stream that belong together: all facts of one host record about it.
#[derive(Clone, PartialEq, Debug)]
pub struct ImportBatch {
    /// The stream.
    pub stream: Arc<StreamInfo>,
    /// The facts, in order.
    pub entries: Vec<Entry>,
    /// Offset in the input just after the record; never goes back.
    pub offset: u64,
}

/// A message that a host's session has now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresentMessage {
    /// Its key.
    pub key: String,
    /// The origins that items of its parts may have, if parts of it can be taken back alone.
    pub items: Option<Vec<String>>,
}

impl From<String> for PresentMessage {
    fn from(key: String) -> Self {
        Self { key, items: None }
    }
}

/// The sink wants no more batches; it knows the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SinkStop;

/// Takes batches in the order of the input.
pub trait Sink {
    /// Takes one batch; batches of a parent and its subagents may alternate. One without facts tells the call that started a session:
    /// it changes nothing of a session that is not there yet.
    ///
    /// # Errors
    /// To end the import. [`read`] then gives [`ImportError::Stopped`].
    fn batch(&mut self, batch: ImportBatch) -> Result<(), SinkStop>;

    /// Hears which messages a host's session has now, before their facts are told: others that were told earlier have been taken back, and
    /// one that was taken back and is there again has to be told anew. Hears it once more behind facts that the session has and does not send.
    fn present(&mut self, _stream: &Arc<StreamInfo>, _messages: Vec<PresentMessage>) {}

    /// Hears at once of a record that is left out because it is too much. The report names it as well.
    fn left_out(&mut self, _note: &ImportNote) {}
}

impl Sink for Vec<ImportBatch> {
    fn batch(&mut self, batch: ImportBatch) -> Result<(), SinkStop> {
        self.push(batch);
        Ok(())
    }
}

/// Imports one input of `format`. `name` is the file's name without extensions: an id where the content gives none.
///
/// Batches reach `sink` in the order of the input. Cost: one pass; memory as the module says.
///
/// # Errors
/// Reading failed, the sink stopped, or the input is a document of another format. Single records never fail an import.
pub fn read(
    format: ImportFormat,
    name: &str,
    input: impl BufRead,
    options: &ImportOptions,
    sink: &mut dyn Sink,
) -> Result<ImportReport, ImportError> {
    // One instance of each importer for all kinds of input: readers differ only in how they fill the buffer.
    let input: Box<dyn BufRead + '_> = Box::new(BufReader::with_capacity(1 << 16, BoxedRead(input)));
    let mut context = ImportContext::new(format, name, options, sink);
    match format {
        ImportFormat::ClaudeCode => claude_code::read(input, &mut context)?,
        ImportFormat::Opencode => opencode::read(input, &mut context)?,
        ImportFormat::Codex => codex::read(input, &mut context)?,
        ImportFormat::GeminiCli => gemini_cli::read(input, &mut context)?,
        ImportFormat::CopilotCli => copilot_cli::read(input, &mut context)?,
        ImportFormat::Pi => pi::read(input, &mut context)?,
        ImportFormat::OpenaiMessages => openai_messages::read(input, &mut context)?,
        ImportFormat::SweAgent => swe_agent::read(input, &mut context)?,
        ImportFormat::MemoryDecisions | ImportFormat::MemoryPreferences => memory::read(input, &mut context)?,
    }
    Ok(context.finish())
}

/// Imports messages of an opencode session that a plug-in tells: `{info, messages[{info, parts[]}]}` with new or changed
/// messages. The facts are those of an export or of the database, without the entry for the export's document.
///
/// # Errors
/// As [`read`].
pub fn read_opencode_messages(
    input: impl BufRead,
    options: &ImportOptions,
    sink: &mut dyn Sink,
) -> Result<ImportReport, ImportError> {
    let input: Box<dyn BufRead + '_> = Box::new(BufReader::with_capacity(1 << 16, BoxedRead(input)));
    let mut context = ImportContext::new(ImportFormat::Opencode, "opencode", options, sink);
    opencode::read_messages(input, &mut context)?;
    Ok(context.finish())
}

struct BoxedRead<R>(R);

impl<R: Read> Read for BoxedRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Input of an importer.
pub(crate) type Input<'a> = Box<dyn BufRead + 'a>;

/// The context that every importer works with.
pub(crate) struct ImportContext<'a> {
    /// Name of the input.
    pub(crate) name: &'a str,
    /// Choices of the caller.
    pub(crate) options: &'a ImportOptions,
    /// The sink of the facts.
    pub(crate) sink: &'a mut dyn Sink,
    /// The report so far.
    pub(crate) report: ImportReport,
    /// The line of the record that is read, from 1; 0 where there are no lines to tell of.
    pub(crate) line: u64,
    /// The furthest offset that was handed out.
    pub(crate) offset: u64,
    /// Facts that were handed out.
    pub(crate) facts: u64,
    /// The calls that started sessions so far, by the ids of both sessions.
    started: HashMap<(String, String), String>,
    /// The newest time that was told, and its stream.
    newest: Option<(StreamId, Micros)>,
    tally: report::CallTally,
    held: held::HeldFacts,
}

impl<'a> ImportContext<'a> {
    /// Nothing was read yet.
    pub(crate) fn new(
        format: ImportFormat,
        name: &'a str,
        options: &'a ImportOptions,
        sink: &'a mut dyn Sink,
    ) -> Self {
        let (report, tally) = (ImportReport::new(format), report::CallTally::default());
        let held = held::HeldFacts::default();
        let started = HashMap::new();
        Self { name, options, sink, report, line: 0, offset: 0, facts: 0, started, newest: None, tally, held }
    }

    /// The report, after all was handed out.
    pub(crate) fn finish(mut self) -> ImportReport {
        self.part_ends();
        self.tally.finish(&mut self.report);
        self.report.is_empty = self.facts == 0;
        self.report
    }

    /// Facts that follow belong to sessions that were understood.
    pub(crate) const fn is_understood(&mut self) {
        self.held.is_understood();
    }

    /// Ends a part of the input that is a session of its own. False: nothing of it was understood, and nothing is handed out.
    pub(crate) fn part_ends(&mut self) -> bool {
        self.held.part_ends(&mut self.report)
    }

    /// As [`ImportReport::admit`]; also tells the sink of a value that is left out.
    pub(crate) fn admit<'v>(&mut self, value: &values::JsonSpan<'v>) -> report::Admitted<'v> {
        let known = self.report.skipped.len();
        let admitted = self.report.admit(value);
        if let Some(note) = self.report.skipped.get(known) {
            self.sink.left_out(note);
        }
        admitted
    }

    /// Refuses a document too many of whose records have fewer than `bytes`, which no record has: they are held until its end.
    pub(crate) fn check_noise(&self, records: &[&str], bytes: usize) -> Result<(), ImportError> {
        let short = records.iter().filter(|record| record.len() < bytes);
        let (max, found) = (self.options.limits.unread, short.count() as u64);
        if found > max { Err(Exceeded { limit: "unread", max, found }.into()) } else { Ok(()) }
    }

    /// Tells the call of `parent` that started a session. That session may be there already, or come later in this input: then
    /// [`ImportContext::call_of`] tells its call.
    pub(crate) fn starts(
        &mut self,
        parent: &StreamInfo,
        call: &str,
        session: &str,
    ) -> Result<(), ImportError> {
        if session.is_empty() || call.is_empty() || session == parent.name {
            return Ok(());
        }
        let (parent, call, session) = (parent.name.clone(), call.to_owned(), session.to_owned());
        let started = StartedSession { parent, call, session };
        let stream = Arc::new(started.info(self.report.format.name()));
        // A fork repeats the calls of the session that it left: its copies name sessions that are not its own.
        let key = (started.parent.clone(), started.session.clone());
        if let hash_map::Entry::Vacant(new) = self.started.entry(key) {
            new.insert(started.call.clone());
            self.report.starts(started);
        }
        let batch = ImportBatch { stream, entries: Vec::new(), offset: self.offset };
        self.sink.batch(batch).map_err(|SinkStop| ImportError::Stopped)
    }

    /// The call of `parent` that started a session, if this input has told it.
    pub(crate) fn call_of(&self, parent: &str, session: &str) -> Option<String> {
        self.started.get(&(parent.to_owned(), session.to_owned())).cloned()
    }

    /// Hands out the facts of one record. Nothing happens if there are none.
    pub(crate) fn emit(
        &mut self,
        stream: &Arc<StreamInfo>,
        entries: Vec<Entry>,
        offset: u64,
    ) -> Result<(), ImportError> {
        if entries.is_empty() {
            return Ok(());
        }
        if self.options.is_hosts_own {
            self.held.is_understood();
        }
        for held in self.held.let_go(stream, entries, offset, self.report.format) {
            self.hand_out(held)?;
        }
        let (max, found) = (self.options.limits.unread, self.held.count());
        if found > max { Err(Exceeded { limit: "unread", max, found }.into()) } else { Ok(()) }
    }

    /// A request without a time is of the time of what was told before it: else it would be paid on the day of the import.
    fn date_requests(&mut self, stream: &StreamInfo, entries: &mut [Entry]) {
        for entry in entries {
            if let Some(time) = entry.host_time {
                self.newest = Some((stream.id(), time));
            } else if let (Fact::MessageFinished(_), Some((of, time))) = (&entry.fact, self.newest)
                && of == stream.id()
            {
                entry.host_time = Some(time);
            }
        }
    }

    fn hand_out(&mut self, batch: ImportBatch) -> Result<(), ImportError> {
        let ImportBatch { stream, mut entries, offset } = batch;
        let stream = &stream;
        self.tally.count(stream, &entries, &mut self.report);
        bounded::keep_within_an_event(&mut entries, |reason| {
            self.report.keep_raw(self.line, offset, reason);
        });
        self.facts = self.facts.saturating_add(entries.len() as u64);
        let (max, found) = (self.options.limits.facts, self.facts);
        if found > max {
            return Err(Exceeded { limit: "facts", max, found }.into());
        }
        if let Some(version) = &stream.host_version {
            self.report.written_by(version);
        }
        for entry in &entries {
            if let Fact::SessionChanged(fact::SessionChanged { host_version: Some(version), .. }) =
                &entry.fact
            {
                self.report.written_by(version);
            }
        }
        self.date_requests(stream, &mut entries);
        // Facts about an earlier record (the end of its message, its document) get the offset of this one.
        self.offset = self.offset.max(offset);
        let batch = ImportBatch { stream: Arc::clone(stream), entries, offset: self.offset };
        self.sink.batch(batch).map_err(|SinkStop| ImportError::Stopped)
    }
}

/// A record that is kept as it is: [`Fact::HostRecorded`](acpdb_engine::entry::Fact::HostRecorded) with only a wire.
///
/// Its origin is the digest of its bytes and `occurrence`, counted from 1 among equal records of the stream.
pub(crate) fn kept_record(record: &str, raw: &[u8], occurrence: u64) -> Entry {
    Entry::host_record(record, None)
        .origin(digest_origin(record, raw, occurrence))
        .wire(vec![WirePiece::Literal(raw.to_vec())])
}

/// The usage of a host whose `input` includes the tokens that were read from the cache and written to it: they are no more than it.
fn without_cached(usage: Usage) -> Usage {
    let Some(all) = usage.input else { return usage };
    let cache_read = usage.cache_read.map(|read| read.min(all));
    // Neither part is more than what it is taken from.
    let rest = all.saturating_sub(cache_read.unwrap_or(0));
    let cache_write = usage.cache_write.map(|written| written.min(rest));
    // As above.
    let input = Some(rest.saturating_sub(cache_write.unwrap_or(0)));
    Usage { input, cache_read, cache_write, ..usage }
}

/// Origin of a record without an id: its kind, a digest of its bytes, and its number among equal ones, from 1.
pub(crate) fn digest_origin(record: &str, raw: &[u8], occurrence: u64) -> String {
    let digest = blake3::hash(raw).to_hex();
    format!("{record}:{DERIVED}{}#{occurrence}", digest.get(..32).unwrap_or_default())
}

/// Bytes of a text, to be shared by a part and a wire.
pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::from(text.as_bytes())
}

/// An RFC 3339 time.
pub(crate) fn time(text: Option<&str>) -> Option<Micros> {
    let time: jiff::Timestamp = json::string(text)?.parse().ok()?;
    Some(Micros(time.as_microsecond()))
}

/// A time in milliseconds since 1970, as a number.
pub(crate) fn millis(value: Option<&str>) -> Option<Micros> {
    i64::try_from(json::count(value)?).ok()?.checked_mul(1000).map(Micros)
}

/// Longest field of a structured result that is kept as a detail of its call; longer ones repeat outputs or files.
const DETAIL_BYTES_MAX: usize = 1024;

/// A structured result as a call's details: without its long fields, which stand in the record's wire.
///
/// A short object is kept as it stands. `None` if it is no object, or nothing is left of it.
pub(crate) fn small_fields(object: &str) -> Option<Bytes> {
    if !object.starts_with('{') || object == "{}" {
        return None;
    }
    if object.len() <= DETAIL_BYTES_MAX {
        return Some(bytes(object));
    }
    let mut out = vec![b'{'];
    for (name, value) in json::members(object)? {
        if value.len() <= DETAIL_BYTES_MAX {
            if out.len() > 1 {
                out.push(b',');
            }
            json::quote(&mut out, &name);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.push(b'}');
    (out.len() > 2).then(|| Bytes::from(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that told more tokens from the cache than of input in all had all of them paid.
    #[test]
    fn tokens_from_the_cache_are_no_more_than_the_input() {
        let told = |input, read, written| {
            let (cache_read, cache_write) = (Some(read), Some(written));
            let usage = without_cached(Usage { input, cache_read, cache_write, ..Usage::default() });
            [usage.input, usage.cache_read, usage.cache_write]
        };
        assert_eq!(told(Some(100), 40, 10), [Some(50), Some(40), Some(10)]);
        assert_eq!(told(Some(100), 1000, 10), [Some(0), Some(100), Some(0)]);
        assert_eq!(told(Some(100), 40, 800), [Some(0), Some(40), Some(60)]);
        assert_eq!(told(None, 40, 10), [None, Some(40), Some(10)]);
    }
}
