//! Claude Code: `<session>.jsonl`, one record a line; and the files of its subagents.
//!
//! ```text
//! record                                   stream            facts
//! assistant / user                         the session       turns, message parts, calls, results (see `line`)
//! the same with isSidechain                <session>/<agent> likewise; in the file of an agent that is the main stream
//! one that hangs on a branch that was left  <session>+<n>     likewise (see `branch`)
//! progress of type agent_progress          the session       HostRecorded with the wire
//!   the record nested in it                <session>/<agent> likewise, without a wire of its own
//! system compact_boundary                  the session       ContextReplaced
//!   preserved messages, at the summary     the session       ContextReplaced: the summary, then they
//! system microcompact_boundary             the session       HostCleared
//! attachment with its words as sent        the session       a message of the host's (see `attached`)
//! content-replacement                      the session       HostCleared for each result, with the text sent in its place
//! continued-in                             the session       HostRecorded about the session that goes on
//! custom-title, ai-title                   the session       SessionChanged
//! cost-state                               the session       MessageFinished of tier `sum` by model (see `usage`)
//! messages that a fold wrote again         the session       the items of before (see `rebuilt`)
//! all others                               the session       HostRecorded
//! ```
//!
//! | fact | origin |
//! |---|---|
//! | call, result | `call:<id>#<n>:start`, `call:<id>#<n>:finish` |
//! | message parts | `msg:<uuid>#<index of the first block>` |
//! | end of a message | `msg:<message id>:finish` |
//! | model step, prompt | `turn:<message id>`, `prompt:<uuid>` |
//! | compaction, clearing, rewind, folder | `replaced:`, `cleared:`, `rewound:`, `cwd:` + uuid |
//! | items that a compaction kept, in their new place | `preserved:` + uuid of the summary |
//! | messages that a fold wrote again: their order, a shorter result | `folded:` + uuid of the boundary, `shortened:<uuid>/<call>` |
//! | any other record | `record:<uuid>`; without uuid: type, digest and number among equal ones |
//!
//! A record that was there before is kept as a record, says nothing more, and is counted. Another record under a known uuid is
//! told under `<uuid>+<n>`, and likewise a message under a known id that it cannot be part of: redactors put one word in place
//! of many ids.

mod attached;
mod blocks;
mod branch;
mod line;
mod names;
mod rebuilt;
mod record;
mod sent;
mod started;
mod todo;
mod usage;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, StreamInfo, fact};
use acpdb_engine::event::ReplaceCause;
use acpdb_engine::ids::Micros;

pub(crate) use self::attached::{ATTACHED, SENT, untagged};
use self::line::LineState;
use self::names::SeenBefore;
use self::record::{Record, RecordWords};
use self::sent::{Flushed, Pending, RecordPosition, Waiting};
pub use self::started::{META, SESSION, WORKFLOW};
pub use self::todo::todo_change;
use super::marks::marks;
use super::report::Admitted;
use super::values::ValueReader;
use super::{
    ImportContext, ImportError, ImportFormat, Input, bytes, digest_origin, is_uuid, json, time, wire,
};
use crate::is_among;

/// Name of the host.
const HOST: &str = "claude-code";

/// The beginning of the result of a read that gives back nothing, since the model has the same text already.
pub(crate) const UNCHANGED: &str = "File unchanged since last read";

/// Records that may come before one that names the session and its folder.
const PENDING_MAX: usize = 64;

/// Kinds of records that are known to say nothing about the context, besides those handled by name. The last two lines: names,
/// colours, links and places of the host's own display.
const KNOWN: &str = "
    user assistant system progress summary file-history-snapshot queue-operation attachment last-prompt
    custom-title mode pr-link api-request api-request-shape api-request-blob tools-used atis-latch
    cost-state content-replacement continued-in
    agent-color agent-name agent-setting ai-title attribution-snapshot bridge-session file-history-delta
    frame-link tag worktree-state permission-mode history-suppression";

/// Imports one file.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let values = ValueReader::records(input, &context.options.limits);
    let mut values = values.finding(marks(ImportFormat::ClaudeCode));
    let grows = context.options.grows;
    let mut importer = Importer {
        context,
        lines: Vec::new(),
        by_name: HashMap::new(),
        side: HashMap::new(),
        branches: HashMap::new(),
        home: None,
        prompts: HashMap::new(),
        waiting: Waiting::new(grows),
        newest: None,
        sent: None,
    };
    let mut pending: Vec<Pending> = Vec::new();
    let mut home = None;
    while let Some(value) = values.read()? {
        let admitted = importer.context.admit(&value);
        let place = RecordPosition {
            line: value.line,
            offset: value.offset,
            end: value.offset + value.raw.len() as u64,
        };
        let (raw, text) = match admitted {
            Admitted::Text(text) => (value.raw, Some(text)),
            Admitted::Raw(raw) => (raw, None),
            Admitted::Nothing => continue,
        };
        importer.context.report.records += 1;
        if let Some(home) = home {
            importer.next(home, raw, text, place)?;
            continue;
        }
        let record = text.and_then(Record::parse);
        let names_all =
            record.as_ref().is_some_and(|record| record.session.is_some() && record.cwd.is_some());
        if names_all || pending.len() >= PENDING_MAX {
            let opened = importer.open_home(record.as_ref(), &pending);
            home = Some(opened);
            importer.resume(opened, std::mem::take(&mut pending))?;
            importer.next(opened, raw, text, place)?;
        } else {
            pending.push(Pending::of(raw, text, place));
        }
    }
    if home.is_none() && !pending.is_empty() {
        let opened = importer.open_home(None, &pending);
        importer.resume(opened, pending)?;
        home = Some(opened);
    }
    if let Some(home) = home {
        let mut waiting = importer.waiting.take();
        // No answer of the model's says which request these words are of.
        waiting.beside.clear();
        importer.catch_up(home, waiting, values.offset())?;
    }
    importer.context.report.kept_raw.sort_by_key(|note| note.line);
    importer.finish(values.offset())
}

struct Importer<'c, 'x> {
    context: &'c mut ImportContext<'x>,
    lines: Vec<LineState>,
    by_name: HashMap<String, usize>,
    /// Records of side lines without an agent's id, and of branches: the line each belongs to.
    side: HashMap<String, usize>,
    /// The lines in which branches go on, by the line and the group behind which they do.
    branches: HashMap<(usize, usize), usize>,
    /// The line that the file is about.
    home: Option<usize>,
    /// Calls of the session by the prompts that they gave; `None`: several gave the same.
    prompts: HashMap<String, Option<String>>,
    waiting: Waiting,
    /// The words in which the next record was sent, where they are not its own.
    sent: Option<RecordWords>,
    /// The time of the newest record that has one.
    newest: Option<Micros>,
}

impl Importer<'_, '_> {
    /// Opens the stream that the file is about.
    fn open_home(&mut self, record: Option<&Record<'_>>, pending: &[Pending]) -> usize {
        let earlier = || {
            pending.iter().find_map(|waiting| {
                // A row that is no text names no session; it is kept as it is, and noted.
                let [session] = json::pick(waiting.text()?, ["sessionId"])?;
                json::owned(session)
            })
        };
        let session = record
            .and_then(|record| record.session.as_deref().map(str::to_owned))
            .or_else(earlier)
            .or_else(|| self.context.options.session.clone())
            .unwrap_or_else(|| self.context.name.to_owned());
        let empty = Record::default();
        let record = record.unwrap_or(&empty);
        // A resumed session begins with copies of another one's records, ids and all; its file bears its own id.
        let stem = self.context.name.split('.').next().unwrap_or_default();
        // A session's file may begin with a side line of its own; an agent's file bears the agent's id.
        if record.is_side && !is_uuid(stem) && stem != session {
            let agent = self.agent_of(record);
            let prompt = pending
                .iter()
                .filter_map(Pending::text)
                .find_map(started::prompt_of)
                .or_else(|| started::prompt_in(record.message));
            let beside = self.context.options.beside.as_ref();
            let call = beside.and_then(|beside| started::call(beside, &agent, prompt.as_deref()));
            self.context.report.lacks_call = call.is_none();
            // Workflows count their agents each for itself.
            let workflow = beside.and_then(started::workflow);
            let agent = workflow.map_or_else(|| agent.clone(), |workflow| format!("{workflow}/{agent}"));
            return self.open_child(&session, &agent, call, record);
        }
        self.context.report.sessions += 1;
        let session = if is_uuid(stem) { stem.to_owned() } else { session };
        self.open_line(session, None, record)
    }

    fn agent_of(&self, record: &Record<'_>) -> String {
        json::owned(record.agent)
            .or_else(|| record.uuid.as_deref().map(str::to_owned))
            .unwrap_or_else(|| self.context.name.to_owned())
    }

    fn open_child(&mut self, session: &str, agent: &str, call: Option<String>, record: &Record<'_>) -> usize {
        let name = format!("{session}/{agent}");
        if let Some(&line) = self.by_name.get(&name) {
            return line;
        }
        self.context.report.subagents += 1;
        let parent = StreamInfo::session(HOST, session).id();
        self.open_line(name, Some((parent, call)), record)
    }

    fn open_line(
        &mut self,
        name: String,
        parent: Option<(acpdb_engine::ids::StreamId, Option<String>)>,
        record: &Record<'_>,
    ) -> usize {
        let cwd = record.cwd.as_deref().map(str::to_owned);
        let info = StreamInfo {
            project: self.context.options.project.clone().or_else(|| cwd.clone()),
            parent,
            cwd,
            host_version: json::owned(record.version),
            host_time: time(record.timestamp),
            ..StreamInfo::session(HOST, name.clone())
        };
        let line = self.lines.len();
        self.by_name.insert(name, line);
        self.lines.push(LineState::new(Arc::new(info)));
        line
    }

    /// Imports the next record, or lets it wait for the words in which it was sent.
    fn next(
        &mut self,
        home: usize,
        raw: &[u8],
        text: Option<&str>,
        place: RecordPosition,
    ) -> Result<(), ImportError> {
        let record = text.and_then(Record::parse);
        if self.waiting.takes(record.as_ref()) {
            let kind = record.as_ref().map_or("", |record| &*record.kind);
            let full = self.waiting.push(kind, Pending::of(raw, text, place));
            return full.map_or(Ok(()), |full| self.catch_up(home, full, place.end));
        }
        let waited = self.waiting.take();
        self.catch_up(home, waited, place.offset)?;
        self.record(home, (raw, text.is_some()), record, place)
    }

    /// Imports records from before the one that named the session.
    fn resume(&mut self, home: usize, pending: Vec<Pending>) -> Result<(), ImportError> {
        for waiting in pending {
            self.next(home, &waiting.raw, waiting.text(), waiting.place)?;
        }
        Ok(())
    }

    /// Imports records that waited, up to `end`.
    fn catch_up(&mut self, home: usize, waited: Flushed, end: u64) -> Result<(), ImportError> {
        for (waiting, words) in waited.records {
            self.sent = words;
            let text = waiting.text();
            let record = text.and_then(Record::parse);
            self.record(home, (&waiting.raw, text.is_some()), record, waiting.place)?;
        }
        if waited.beside.is_empty() {
            return Ok(());
        }
        self.emit(home, waited.beside, end)
    }

    /// Imports one record: its bytes, whether they are text, and its fields.
    fn record(
        &mut self,
        home: usize,
        (raw, is_text): (&[u8], bool),
        record: Option<Record<'_>>,
        place: RecordPosition,
    ) -> Result<(), ImportError> {
        self.context.line = place.line;
        let Some(mut record) = record else {
            // A record that is no text has been noted before.
            if is_text {
                let reason = "not an object with a type; kept as it is";
                self.context.report.keep_raw(place.line, place.offset, reason);
            }
            return self.keep(home, "raw", raw, place);
        };
        record.sent = self.sent.take();
        self.newest = time(record.timestamp).or(self.newest);
        let is_speech = matches!(&*record.kind, "user" | "assistant");
        if record.uuid.is_none()
            && is_speech
            && let Some(state) = self.lines.get_mut(home)
        {
            record.uuid = Some(Cow::Owned(digest_origin("record", raw, state.occurrence(raw))));
        }
        self.home = Some(home);
        let line = if record.is_side {
            self.side_line(home, &record)
        } else {
            self.line_of(home, &record, place.end)?
        };
        if (line == home || !self.is_child(line)) && record.kind == "assistant" {
            started::note_prompts(record.message, &mut self.prompts);
        }
        let Some(state) = self.lines.get_mut(line) else { return Ok(()) };
        let content = record.content();
        if let Some(uuid) = &mut record.uuid {
            match state.has_seen(uuid, content) {
                SeenBefore::New => {}
                SeenBefore::Again => {
                    self.context.report.duplicates += 1;
                    return self.keep(line, "duplicate", raw, place);
                }
                SeenBefore::Other(count) => {
                    // Of several records under one id, no later one hangs on any for sure.
                    state.seen.insert(Box::from(&**uuid), None);
                    self.side.remove(&**uuid);
                    *uuid = Cow::Owned(format!("{uuid}+{count}"));
                }
            }
        }
        let record = &record;
        let mut entries = Vec::new();
        state.moved_to(record, &mut entries);
        let first = entries.len();
        let spoke = match &*record.kind {
            "user" | "assistant" => state.speech(record, &mut entries),
            _ => None,
        };
        let Some(wire) = spoke else {
            if state.attached(record, &mut entries) || state.commanded(record, &mut entries) {
                return self.wired(line, entries, first, raw, place);
            }
            return self.other(line, raw, record, entries, place);
        };
        entries.extend(self.persisted(record));
        self.wired(line, entries, first.max(wire), raw, place)?;
        self.starts(line, record)
    }

    /// The whole of a result of which the model was shown the beginning: the host deletes the result's file in time.
    fn persisted(&self, record: &Record<'_>) -> Option<Entry> {
        // Results are long, and few have it.
        let result = record.result.filter(|result| json::is_in(result, "persistedOutputPath"));
        let path = json::string(json::member(result, "persistedOutputPath"))?;
        let beside = self.context.options.beside.as_ref()?;
        let raw = bytes_of(beside, &path)?;
        let call = json::member(record.message, "content").and_then(json::elements)?;
        let call = call.into_iter().find_map(|block| json::owned(json::member(Some(block), "tool_use_id")));
        let fact = fact::HostRecorded { record: "tool-result".to_owned(), about: call, raw: Some(raw) };
        let uuid = record.uuid.as_deref()?;
        Some(Entry::from(fact).origin(format!("tool-result:{uuid}")).at(time(record.timestamp)))
    }

    /// Hands out the facts of a record, with its bytes at the one at `wire`.
    fn wired(
        &mut self,
        line: usize,
        mut entries: Vec<Entry>,
        wire: usize,
        raw: &[u8],
        place: RecordPosition,
    ) -> Result<(), ImportError> {
        let bodies = wire::bodies(&entries);
        if let Some(entry) = entries.get_mut(wire) {
            entry.wire = wire::build(raw, &bodies);
        }
        self.emit(line, entries, place.end)
    }

    fn is_child(&self, line: usize) -> bool {
        self.lines.get(line).is_some_and(|line| line.info().parent.is_some())
    }

    /// A record that is not speech.
    fn other(
        &mut self,
        line: usize,
        raw: &[u8],
        record: &Record<'_>,
        mut entries: Vec<Entry>,
        place: RecordPosition,
    ) -> Result<(), ImportError> {
        let data_kind = json::member(record.data, "type").and_then(|kind| json::string(Some(kind)));
        let subtype = json::string(record.subtype);
        let name = match data_kind.as_deref().or(subtype.as_deref()) {
            Some(kind) => format!("{}/{kind}", record.kind),
            None => record.kind.to_string(),
        };
        match &*name {
            "user" | "assistant" => {
                let reason = format!("a record of type {name} without a message; kept as it is");
                self.context.report.keep_raw(place.line, place.offset, reason);
            }
            _ if is_among(KNOWN, &record.kind) || record.kind.starts_with("artifact-autoreact-") => {}
            _ => self.context.report.unknown(&name),
        }
        if name == "progress/agent_progress" && self.nested(line, raw, record, place)? {
            return Ok(());
        }
        let Some(state) = self.lines.get_mut(line) else { return Ok(()) };
        let fact = match &*name {
            "system/compact_boundary" => {
                let order = state.compacted(record.uuid.as_deref(), record.metadata);
                let tokens_before = json::count(json::member(record.metadata, "preTokens"));
                Fact::ContextReplaced(fact::ContextReplaced {
                    cause: ReplaceCause::Compaction,
                    order,
                    tokens_before,
                })
            }
            "system/microcompact_boundary" => {
                state.link(record);
                let calls = json::member(record.metadata, "compactedToolIds").and_then(json::elements);
                let calls = calls.unwrap_or_default().into_iter().filter_map(|id| json::owned(Some(id)));
                Fact::HostCleared(fact::HostCleared { items: Vec::new(), calls: calls.collect(), text: None })
            }
            // A title that the user gave stays.
            "custom-title" | "ai-title" if record.title.is_some() && state.may_be_titled(&record.kind) => {
                let title = json::owned(record.title);
                Fact::SessionChanged(fact::SessionChanged { title, ..fact::SessionChanged::default() })
            }
            _ => {
                state.link(record);
                let about = json::owned(record.about).or_else(|| json::owned(record.parent_call));
                let about = about.or_else(|| continued_in(raw).filter(|_| name == "continued-in"));
                Fact::HostRecorded(fact::HostRecorded { record: name.clone(), about, raw: None })
            }
        };
        let group = match fact {
            Fact::ContextReplaced(_) => "replaced",
            Fact::HostCleared(_) => "cleared",
            _ => "record",
        };
        let origin = match record.uuid.as_deref() {
            Some(uuid) => format!("{group}:{uuid}"),
            None => digest_origin(&record.kind, raw, state.occurrence(raw)),
        };
        if name == "content-replacement" {
            entries.extend(replacements(raw, &origin));
        }
        let mut sums = Vec::new();
        if name == "cost-state"
            && let Ok(text) = std::str::from_utf8(raw)
        {
            state.costs.told(text, &origin, &mut sums);
        }
        let bodies = wire::bodies(&entries);
        let entry = Entry::from(fact).origin(origin).at(time(record.timestamp));
        entries.push(entry.wire(wire::build(raw, &bodies)));
        // The host's sums have no time of their own.
        let newest = self.newest;
        entries.extend(sums.into_iter().map(|entry| entry.at(newest)));
        self.emit(line, entries, place.end)
    }

    /// A record of a subagent inside a progress record; false if there is none.
    fn nested(
        &mut self,
        line: usize,
        raw: &[u8],
        record: &Record<'_>,
        place: RecordPosition,
    ) -> Result<bool, ImportError> {
        let Some([message, agent, prompt]) =
            record.data.and_then(|data| json::pick(data, ["message", "agentId", "prompt"]))
        else {
            return Ok(false);
        };
        let call = json::owned(record.parent_call);
        let (Some(nested), Some(agent)) =
            (message.and_then(Record::nested), json::owned(agent).or_else(|| call.clone()))
        else {
            return Ok(false);
        };
        let session = self.lines.get(line).map(|line| line.info().name.clone()).unwrap_or_default();
        let opener = Record {
            cwd: record.cwd.clone(),
            version: record.version,
            timestamp: record.timestamp,
            ..Record::default()
        };
        let child = self.open_child(&session, &agent, call, &opener);
        let mut entries = Vec::new();
        let mut bodies = Vec::new();
        if let Some(state) = self.lines.get_mut(child) {
            bodies.push(state.prompt(json::string(prompt).as_deref()));
            // A record of the agent's may be told by several records of the session.
            let seen = nested.uuid.as_deref().map(|uuid| state.has_seen(uuid, nested.content()));
            if !matches!(seen, Some(SeenBefore::Again | SeenBefore::Other(_))) {
                // Its record is kept with that of the main line.
                let _ = state.speech(&nested, &mut entries);
            }
        }
        bodies.extend(wire::bodies(&entries));
        if let Some(state) = self.lines.get_mut(line) {
            state.link(record);
            let uuid = record.uuid.as_deref().unwrap_or_default();
            let origin = match uuid {
                "" => digest_origin(&record.kind, raw, state.occurrence(raw)),
                uuid => format!("record:{uuid}"),
            };
            let fact = fact::HostRecorded {
                record: "progress/agent_progress".to_owned(),
                about: Some(agent),
                raw: None,
            };
            let entry =
                Entry::from(fact).origin(origin).at(time(record.timestamp)).wire(wire::build(raw, &bodies));
            self.emit(line, vec![entry], place.end)?;
        }
        self.emit(child, entries, place.end)?;
        Ok(true)
    }

    /// Keeps a record without understanding it.
    fn keep(
        &mut self,
        line: usize,
        kind: &str,
        raw: &[u8],
        place: RecordPosition,
    ) -> Result<(), ImportError> {
        let Some(state) = self.lines.get_mut(line) else { return Ok(()) };
        let entry = super::kept_record(kind, raw, state.occurrence(raw));
        self.emit(line, vec![entry], place.end)
    }

    fn emit(&mut self, line: usize, entries: Vec<Entry>, end: u64) -> Result<(), ImportError> {
        let Some(state) = self.lines.get_mut(line) else { return Ok(()) };
        state.emitted(&entries);
        let info = Arc::clone(state.info());
        self.context.emit(&info, entries, end)
    }

    /// Ends the messages that are still open at the end of the input.
    fn finish(&mut self, end: u64) -> Result<(), ImportError> {
        for line in 0..self.lines.len() {
            let Some(state) = self.lines.get_mut(line) else { break };
            let mut entries = Vec::new();
            state.finish_message(&mut entries);
            self.emit(line, entries, end)?;
        }
        Ok(())
    }
}

/// The session that goes on where this one was left.
fn continued_in(raw: &[u8]) -> Option<String> {
    // A row whose type is known was read as text before.
    json::owned(json::member(std::str::from_utf8(raw).ok(), "continuedInSessionId"))
}

/// Results that are sent as a shorter text from now on; their rows keep the whole.
fn replacements(raw: &[u8], origin: &str) -> Vec<Entry> {
    // As in `continued_in`.
    let list = json::member(std::str::from_utf8(raw).ok(), "replacements").and_then(json::elements);
    let replaced = list.unwrap_or_default().into_iter().enumerate().filter_map(|(number, replaced)| {
        let [call, text] = json::pick(replaced, ["toolUseId", "replacement"])?;
        let text = Some(bytes(&json::string(text)?));
        let fact = fact::HostCleared { items: Vec::new(), calls: vec![json::owned(call)?], text };
        Some(Entry::from(fact).origin(format!("replaced:{origin}/{number}")))
    });
    replaced.collect()
}

fn bytes_of(beside: &super::Beside, path: &str) -> Option<acpdb_engine::entry::Bytes> {
    (beside.0)(path, 0).map(Arc::from)
}

/// The prompt that a subagent was given, shared between the records that repeat it.
fn shared(text: Option<&str>) -> acpdb_engine::entry::Bytes {
    bytes(text.unwrap_or_default())
}
