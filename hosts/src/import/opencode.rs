//! opencode: one export document a session, `{info, messages[{info, parts[]}]}`.
//!
//! ```text
//! document          session                 HostRecorded "document": the text between the records, and references to them
//!   message info    user, assistant         prompt:, MessageRecorded without parts; msg:..:finish after its parts
//!   part text, reasoning, file              MessageContinued with one part
//!   part step-start                         TurnStarted
//!   part tool                               ToolStarted, and ToolFinished once it has ended
//!   other parts                             HostRecorded
//! ```
//!
//! Parts are rewritten while they run. Each has an origin of its own, so importing a grown document again records the
//! new and changed parts and a new document entry, nothing else. A record that may change without any of its facts
//! changing (a message's info, a part without call, a call that runs or whose output was cleared) has an entry of its
//! own besides its facts, `HostRecorded` with the wire; a call that has ended carries its record as its finish's wire.
//!
//! | fact | origin |
//! |---|---|
//! | call, result | `call:<part id>:start`, `call:<part id>:finish` |
//! | message, its end | `msg:<message id>`, `msg:<message id>:finish` |
//! | other part | `part:<part id>`; model step `turn:<part id>`; prompt `prompt:<message id>` |
//! | record with an entry of its own | `record:<message or part id>` |
//! | compaction, and the question before the summary | `replaced:`, `question:` + id of the summary message |
//! | cleared output | `cleared:<part id>` |
//! | document | `document:<session id>` |
//!
//! A part or message without id is named by its message and place. Another one under a known id is told under `<id>+<n>`: a
//! redactor may have put one word in place of many ids. The same one is told once.

mod started;
mod undo;
mod usage;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, ItemRef, PartEntry, StreamInfo, WirePiece, fact};
use acpdb_engine::event::{Actor, Outcome, PartKind, ReplaceCause, Report, Role};

use self::started::started_by;
use self::undo::RevertPoint;
pub(super) use self::usage::usage_of;
use super::marks::marks;
use super::report::{Admitted, NOTES_MAX};
use super::retold::Retold;
use super::turns;
use super::values::ValueReader;
use super::{
    ImportContext, ImportError, ImportFormat, Input, PresentMessage, bytes, digest_origin, json, millis,
    small_fields, wire,
};
use crate::lines::NOISE_BYTES;

/// Name of the host.
const HOST: &str = "opencode";

/// The host's text in place of an output that it has cleared.
const CLEARED: &str = "[Old tool result content cleared]";

/// The question that the host puts before the summary in the user's name; it stands in no part.
const QUESTION: &str = "What did we do so far?";

/// Beginnings of error texts of calls that were refused or interrupted, not failed.
pub(super) const ABORTED: &[&str] = &["Tool execution aborted", "The user rejected", "The user dismissed"];

/// Kinds of parts that are known to say nothing about the context.
const KNOWN: &[&str] = &["step-finish", "patch", "compaction", "snapshot", "agent", "subtask", "retry"];

/// Imports one file; it may hold several documents.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let values = ValueReader::documents(input, &context.options.limits);
    let mut values = values.finding(marks(ImportFormat::Opencode));
    while let Some(value) = values.read()? {
        let (line, offset) = (value.line, value.offset);
        match context.admit(&value) {
            Admitted::Text(text) => {
                let Some([info, messages]) = json::pick(text, ["info", "messages"]) else {
                    return Err(other_format(line, offset, "the text is not a JSON object"));
                };
                let (Some(info), Some(messages)) = (info, messages.and_then(json::elements)) else {
                    return Err(other_format(line, offset, "no info and messages"));
                };
                document(text, info, &messages, (line, offset), context)?;
                context.part_ends();
            }
            Admitted::Raw(raw) => {
                let info =
                    StreamInfo::session(HOST, context.options.session.as_deref().unwrap_or(context.name));
                let entry = super::kept_record("raw", raw, 1);
                let end = offset + raw.len() as u64;
                context.emit(&Arc::new(info), vec![entry], end)?;
            }
            Admitted::Nothing => {}
        }
    }
    Ok(())
}

/// Imports messages of a session that are told one after the other: a document that need not hold them all. Text between
/// its records is not kept, for the host has no such document.
pub(super) fn read_messages(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let mut values = ValueReader::documents(input, &context.options.limits);
    while let Some(value) = values.read()? {
        let (line, offset) = (value.line, value.offset);
        let Admitted::Text(text) = context.admit(&value) else {
            return Err(other_format(line, offset, "the text is too long or too deep"));
        };
        let [info, messages] = json::pick(text, ["info", "messages"]).unwrap_or_default();
        let (Some(info), Some(messages)) = (info, messages.and_then(json::elements)) else {
            return Err(other_format(line, offset, "no info and messages"));
        };
        let end = offset + text.len() as u64;
        let mut session = SessionReader::open(info, context);
        for message in messages {
            session.message(message, end, context)?;
        }
    }
    Ok(())
}

fn other_format(line: u64, offset: u64, reason: &'static str) -> ImportError {
    ImportError::OtherFormat { format: ImportFormat::Opencode, line, offset, reason }
}

/// A session while it is read.
pub(super) struct SessionReader {
    pub(super) stream: Arc<StreamInfo>,
    /// Origins of the records that have been handed out.
    origins: HashSet<String>,
    /// The contents that were told under each id.
    contents: HashMap<String, Vec<String>>,
    /// The document with references in place of its records.
    pieces: Vec<WirePiece>,
    /// Messages that have been read.
    message_count: usize,
    undo: RevertPoint,
    /// Messages that the host would send.
    present: Vec<PresentMessage>,
    /// Calls, and the sessions that they started, which were not told yet.
    started: Vec<(String, String)>,
}

impl SessionReader {
    /// Opens the session that an info tells of.
    pub(super) fn open(info: &str, context: &mut ImportContext<'_>) -> Self {
        let stream = Arc::new(stream_of(info, context));
        let (origins, contents, pieces) = (HashSet::new(), HashMap::new(), Vec::new());
        let undo = RevertPoint::of(info);
        let (present, started) = (Vec::new(), Vec::new());
        Self { stream, origins, contents, pieces, message_count: 0, undo, present, started }
    }

    /// The name under which a record with this id is told: the id, unless another record was told under it. A record that is
    /// told again has the name of the first time.
    fn name(&mut self, id: &str, record: &str) -> String {
        let content = turns::digest(record);
        // A redactor's word may stand for the ids of messages and of parts.
        let known = self.contents.entry(id.to_owned()).or_default();
        let place = known.iter().position(|other| *other == content).unwrap_or_else(|| {
            known.push(content);
            known.len() - 1
        });
        if place == 0 { id.to_owned() } else { format!("{id}+{}", place + 1) }
    }

    /// Adds text of the document that is in no record.
    pub(super) fn literal(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(WirePiece::Literal(last)) => last.extend_from_slice(text.as_bytes()),
            _ => self.pieces.push(WirePiece::Literal(text.as_bytes().to_vec())),
        }
    }

    /// Reads a message that is a text of its own; `end` is where the input has been read to.
    pub(super) fn message(
        &mut self,
        text: &str,
        end: u64,
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        let stream = Arc::clone(&self.stream);
        let mut document = Document { text, start: (1, 0), done: 0, session: self };
        let entries = read_message(&mut document, text, context);
        document.close();
        context.emit(&stream, entries, end)?;
        self.tell_started(context)
    }

    /// Hands out the document entry: all text that is in no record.
    pub(super) fn close(self, end: u64, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let origin = format!("document:{}", self.stream.name);
        let entry = Entry::host_record("document", None).origin(origin).wire(self.pieces);
        context.emit(&self.stream, vec![entry], end)
    }
}

/// Text of a session while it is read: a whole document, or a message of one.
struct Document<'a> {
    text: &'a str,
    /// Line and offset at which the text begins.
    start: (u64, u64),
    done: usize,
    session: &'a mut SessionReader,
}

impl Document<'_> {
    /// Notes that `record`, a slice of the text, is kept without being understood.
    fn note(&self, record: &str, reason: String, context: &mut ImportContext<'_>) {
        // Finding the line costs a look at all before it: only done for notes that are kept.
        let counts = context.report.kept_raw.len() < NOTES_MAX;
        let at = json::range_in(self.text, record).map_or(0, |range| range.start);
        let before = self.text.get(..at).filter(|_| counts).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', before.as_bytes()).count();
        context.report.keep_raw(self.start.0 + lines as u64, self.start.1 + at as u64, reason);
    }

    /// Puts a reference to `origin` where `record`, a slice of the text, stands.
    ///
    /// False if that origin has been used: the record stays literal then.
    fn refer(&mut self, record: &str, origin: &str) -> bool {
        if !self.session.origins.insert(origin.to_owned()) {
            return false;
        }
        let Some(range) = json::range_in(self.text, record) else { return false };
        let Some(between) = self.text.get(self.done..range.start) else { return false };
        self.session.literal(between);
        self.session.pieces.push(WirePiece::Record(origin.to_owned()));
        self.done = range.end;
        true
    }

    /// Adds the text behind the last record.
    fn close(self) {
        let rest = self.text.get(self.done..).unwrap_or_default();
        self.session.literal(rest);
    }
}

fn document(
    text: &str,
    info: &str,
    messages: &[&str],
    start: (u64, u64),
    context: &mut ImportContext<'_>,
) -> Result<(), ImportError> {
    let end = start.1 + text.len() as u64;
    context.check_noise(messages, NOISE_BYTES)?;
    let mut session = SessionReader::open(info, context);
    let stream = Arc::clone(&session.stream);
    session.present(messages.iter().filter_map(|message| undo::listed(message)), context);
    let mut document = Document { text, start, done: 0, session: &mut session };
    // A message may be told twice, with other content: each import would revise the facts that the import before recorded
    // last.
    let mut retold = Retold::default();
    for message in messages {
        retold.tell(read_message(&mut document, message, context), end);
    }
    for (entries, offset) in retold.take() {
        context.emit(&stream, entries, offset)?;
    }
    document.close();
    session.tell_started(context)?;
    session.revert(context);
    session.close(end, context)
}

/// The stream of a session.
fn stream_of(info: &str, context: &mut ImportContext<'_>) -> StreamInfo {
    let [id, directory, title, version, times, parent, project] =
        json::pick(info, ["id", "directory", "title", "version", "time", "parentID", "projectID"])
            .unwrap_or_default();
    let directory = json::owned(directory);
    let name = json::owned(id)
        .or_else(|| context.options.session.clone())
        .unwrap_or_else(|| context.name.to_owned());
    let parent = json::owned(parent).map(|parent| {
        let call = context.call_of(&parent, &name);
        (StreamInfo::session(HOST, parent).id(), call)
    });
    let project =
        context.options.project.clone().or_else(|| directory.clone()).or_else(|| json::owned(project));
    // A subagent's session has a document of its own: counted like any other, linked to its parent.
    context.report.sessions += 1;
    StreamInfo {
        project,
        parent,
        cwd: directory,
        title: json::owned(title),
        host_version: json::owned(version),
        host_time: millis(json::member(times, "created")),
        ..StreamInfo::session(HOST, name)
    }
}

fn read_message(document: &mut Document<'_>, message: &str, context: &mut ImportContext<'_>) -> Vec<Entry> {
    let mut entries = Vec::new();
    let index = document.session.message_count;
    document.session.message_count = index.saturating_add(1);
    let [info, parts] = json::pick(message, ["info", "parts"]).unwrap_or_default();
    let Some(info) = info.filter(|info| info.starts_with('{')) else {
        let origin = digest_origin("message", message.as_bytes(), index as u64 + 1);
        context.report.records += 1;
        let reason = format!("message {} has no info; kept as it is", index + 1);
        document.note(message, reason, context);
        if document.refer(message, &origin) {
            entries.push(Entry::host_record("message", None).origin(origin).wire(literal(message)));
        }
        return entries;
    };
    let mut head = MessageInfo::parse(info, index);
    head.id = document.session.name(&head.id, info);
    if let Some(Fact::MessageFinished(finish)) = &mut head.finish {
        finish.key.clone_from(&head.id);
    }
    let parts = parts.and_then(json::elements).unwrap_or_default();
    let parts: Vec<_> = parts.into_iter().map(|part| (part, OpencodePart::parse(part))).collect();
    context.report.records += 1 + parts.len() as u64;

    let is_compaction = matches!(parts.as_slice(), [(_, Some(only))] if only.kind == "compaction");
    if head.role == Role::Assistant && head.is_summary {
        let fact =
            fact::ContextReplaced { cause: ReplaceCause::Compaction, order: Vec::new(), tokens_before: None };
        entries.push(Entry::from(fact).origin(format!("replaced:{}", head.id)).at(head.created));
        let key = format!("question:{}", head.id);
        entries
            .push(turns::message(&key, Role::User, vec![PartEntry::text(QUESTION)], true).at(head.created));
    }
    if head.role == Role::User && !is_compaction {
        entries.push(Entry::prompt(head.id.as_str()).origin(format!("prompt:{}", head.id)).at(head.created));
    }
    let origin = format!("record:{}", head.id);
    if document.refer(info, &origin) {
        let fact = fact::MessageRecorded {
            key: head.id.clone(),
            role: head.role,
            parent: head.parent.clone(),
            ..fact::MessageRecorded::default()
        };
        entries.push(Entry::from(fact).origin(format!("msg:{}", head.id)).at(head.created));
        entries.push(own_record("message", &head.id, info, &[]).at(head.created));
    } else {
        context.report.duplicates += 1;
    }
    for (place, (part, read)) in parts.iter().enumerate() {
        let Some(read) = read else {
            let origin = format!("part:{}", undo::part_id(None, &head.id, place));
            let reason = format!("part {} of {} is no object; kept as it is", place + 1, head.id);
            document.note(part, reason, context);
            if document.refer(part, &origin) {
                entries.push(Entry::host_record("part", None).origin(origin).wire(literal(part)));
            }
            continue;
        };
        let id = undo::part_id(read.id, &head.id, place);
        let id = document.session.name(&id, part);
        let mut facts = read_part(&head, &id, read, part, document, context);
        let bodies = wire::bodies(&facts);
        // Only the record of a call that has ended is sure to stay as it is.
        let wired = match facts.last_mut() {
            Some(last) if matches!(last.fact, Fact::ToolFinished(_)) => last,
            _ => {
                let record = if read.kind.is_empty() { "part" } else { &*read.kind };
                let about = json::owned(read.hash).unwrap_or_else(|| head.id.clone());
                let mut entry = own_record(record, &id, part, &bodies).at(head.created);
                if let Fact::HostRecorded(fact::HostRecorded { about: place, .. }) = &mut entry.fact {
                    *place = Some(about);
                }
                facts.push(entry);
                match facts.last_mut() {
                    Some(last) => last,
                    None => continue,
                }
            }
        };
        if document.refer(part, wired.origin.as_deref().unwrap_or_default()) {
            wired.wire = wire::build(part.as_bytes(), &bodies);
            entries.append(&mut facts);
        } else {
            context.report.duplicates += 1;
        }
    }
    entries.extend(head.finished());
    entries
}

/// The fields of a message's info.
struct MessageInfo {
    id: String,
    role: Role,
    parent: Option<String>,
    is_summary: bool,
    created: Option<acpdb_engine::ids::Micros>,
    completed: Option<acpdb_engine::ids::Micros>,
    finish: Option<Fact>,
}

impl MessageInfo {
    fn parse(info: &str, index: usize) -> Self {
        let names = [
            "id",
            "role",
            "parentID",
            "summary",
            "time",
            "modelID",
            "providerID",
            "finish",
            "tokens",
            "cost",
            "error",
        ];
        let [id, role, parent, summary, times, model, provider, finish, tokens, cost, error] =
            json::pick(info, names).unwrap_or_default();
        let [created, completed] =
            times.and_then(|times| json::pick(times, ["created", "completed"])).unwrap_or_default();
        let id = json::owned(id).unwrap_or_else(|| format!("message-{index}"));
        let role = match json::string(role).as_deref() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            _ => Role::User,
        };
        let ended = role == Role::Assistant && (completed.is_some() || error.is_some());
        let finish = ended.then(|| {
            Fact::MessageFinished(fact::MessageFinished {
                key: id.clone(),
                report: Report {
                    model: json::owned(model),
                    provider: json::owned(provider),
                    stop_reason: json::owned(finish).or_else(|| json::owned(json::member(error, "name"))),
                    cost: cost.and_then(json::millionths),
                    usage: usage_of(tokens),
                    ..Report::default()
                },
            })
        });
        Self {
            id,
            role,
            parent: json::owned(parent),
            is_summary: json::boolean(summary) == Some(true),
            created: millis(created),
            completed: millis(completed),
            finish,
        }
    }

    fn finished(self) -> Option<Entry> {
        let origin = format!("msg:{}:finish", self.id);
        Some(Entry::from(self.finish?).origin(origin).at(self.completed.or(self.created)))
    }
}

/// The fields of a part that are read.
struct OpencodePart<'a> {
    kind: Cow<'a, str>,
    hash: Option<&'a str>,
    id: Option<&'a str>,
    text: Option<&'a str>,
    metadata: Option<&'a str>,
    times: Option<&'a str>,
    mime: Option<&'a str>,
    url: Option<&'a str>,
    call: Option<&'a str>,
    tool: Option<&'a str>,
    state: Option<&'a str>,
}

impl<'a> OpencodePart<'a> {
    fn parse(part: &'a str) -> Option<Self> {
        let names =
            ["type", "hash", "id", "text", "metadata", "time", "mime", "url", "callID", "tool", "state"];
        let [kind, hash, id, text, metadata, times, mime, url, call, tool, state] = json::pick(part, names)?;
        let kind = json::string(kind).unwrap_or_default();
        Some(Self { kind, hash, id, text, metadata, times, mime, url, call, tool, state })
    }
}

/// The facts of one part, in order; none if it says nothing about the context.
fn read_part(
    head: &MessageInfo,
    id: &str,
    part: &OpencodePart<'_>,
    raw: &str,
    document: &mut Document<'_>,
    context: &mut ImportContext<'_>,
) -> Vec<Entry> {
    let kind = &*part.kind;
    let start = part.times.and_then(|times| millis(json::member(Some(times), "start"))).or(head.created);
    let spoken = match kind {
        "text" => json::string(part.text).map(|text| PartEntry::text(&*text)),
        "reasoning" => json::string(part.text).map(|text| PartEntry::of(PartKind::Reasoning, &*text)),
        "file" => json::string(part.url).map(|url| PartEntry::media(&*url, json::owned(part.mime))),
        _ => None,
    };
    if let Some(mut spoken) = spoken {
        spoken.signature = part.metadata.map(json::compact).map(|metadata| bytes(&metadata));
        let fact = fact::MessageContinued { key: head.id.clone(), parts: vec![spoken] };
        let entry = Entry::from(fact).origin(format!("part:{id}")).at(start);
        // The part alone does not say whose message it goes on with.
        return vec![if head.role == Role::User { entry.by(Actor::User) } else { entry }];
    }
    match (kind, part.state) {
        ("step-start", _) => vec![Entry::step(id).origin(format!("turn:{id}")).at(head.created)],
        ("tool", Some(state)) => {
            document.session.started.extend(started_by(id, part.call, state));
            read_call(head, id, part, state)
        }
        _ => {
            if matches!(kind, "text" | "reasoning" | "file" | "tool") {
                let reason = format!("part {id} of kind {kind} lacks its content; kept as it is");
                document.note(raw, reason, context);
            } else if !KNOWN.contains(&kind) {
                context.report.unknown(kind);
            }
            Vec::new()
        }
    }
}

fn read_call(head: &MessageInfo, id: &str, part: &OpencodePart<'_>, state: &str) -> Vec<Entry> {
    let names = ["status", "input", "output", "error", "metadata", "time", "attachments"];
    let [status, input, output, error, metadata, times, attachments] =
        json::pick(state, names).unwrap_or_default();
    let [started, ended, compacted] =
        times.and_then(|times| json::pick(times, ["start", "end", "compacted"])).unwrap_or_default();
    let status = json::string(status);
    // The parameters are still being written: a fact has one content, so the call is told once they are whole.
    if status.as_deref() == Some("pending") {
        return Vec::new();
    }
    let tool = json::owned(part.tool).unwrap_or_default();
    let call = json::owned(part.call).unwrap_or_else(|| id.to_owned());
    // An export indents parameters that the model wrote on a line.
    let params = json::compact(input.filter(|input| input.starts_with('{')).unwrap_or("{}"));
    let mut start = Entry::tool_started(call.as_str(), tool, &*params)
        .in_message(head.id.as_str())
        .origin(format!("call:{id}:start"))
        .at(millis(started).or(head.created));
    if let Fact::ToolStarted(fact::ToolStarted { provider_signature, .. }) = &mut start.fact {
        *provider_signature = part.metadata.map(json::compact).map(|metadata| bytes(&metadata));
    }
    let (outcome, text) = match status.as_deref() {
        Some("completed") => (Outcome::Completed, json::string(output)),
        Some("error") => {
            let text = json::string(error).or_else(|| json::string(output));
            let shown = text.as_deref().unwrap_or_default();
            let aborted = ABORTED.iter().any(|beginning| shown.starts_with(beginning));
            (if aborted { Outcome::Aborted } else { Outcome::Failed }, text)
        }
        _ => return vec![start],
    };
    let mut parts = vec![PartEntry::text(text.as_deref().unwrap_or_default())];
    for attachment in attachments.and_then(json::elements).unwrap_or_default() {
        let [mime, url] = json::pick(attachment, ["mime", "url"]).unwrap_or_default();
        parts.push(match json::string(url) {
            Some(url) => PartEntry::media(&*url, json::owned(mime)),
            None => PartEntry::opaque(attachment),
        });
    }
    let fact = fact::ToolFinished {
        call,
        outcome,
        output: parts,
        details: metadata.map(json::compact).and_then(|metadata| small_fields(&metadata)),
        todo_change: None,
    };
    let finish = Entry::from(fact).origin(format!("call:{id}:finish")).at(millis(ended).or(head.created));
    let mut entries = vec![start, finish];
    if compacted.is_some() {
        let fact = fact::HostCleared {
            items: vec![ItemRef::Origin(format!("call:{id}:start"), 1)],
            calls: Vec::new(),
            text: Some(bytes(CLEARED)),
        };
        entries.push(Entry::from(fact).origin(format!("cleared:{id}")).at(millis(compacted)));
    }
    entries
}

/// A record with an entry of its own.
fn own_record(record: &str, id: &str, raw: &str, bodies: &[acpdb_engine::entry::Bytes]) -> Entry {
    let fact = fact::HostRecorded { record: record.to_owned(), about: Some(id.to_owned()), raw: None };
    Entry::from(fact).origin(format!("record:{id}")).wire(wire::build(raw.as_bytes(), bodies))
}

fn literal(record: &str) -> Vec<WirePiece> {
    vec![WirePiece::Literal(record.as_bytes().to_vec())]
}
