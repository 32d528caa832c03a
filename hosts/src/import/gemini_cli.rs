//! Gemini CLI: a conversation as one document, or as a log of lines that rewrites itself.
//!
//! ```text
//! .json    {sessionId, .., messages: [m1, m2]}        one batch a message, then the document around them
//! .jsonl   {sessionId, ..}                            the session
//!          m1, m2                                     messages; the same id again is a newer version of it
//!          {"$rewindTo": id}                          Rewound: without that message and all after it
//!          {"$set": {"messages": [..], ..}}           ContextReplaced: that list, then the lines behind it
//! ```
//!
//! Origins come from message and call ids, so both forms of a session give the same facts. In a document a reply has an
//! entry of its own (`record:<id>`) besides its facts, which the document refers to. The log is followed by
//! position, as it was written. A message that comes back after a rewind is a new fact (`msg:<id>@2`): the old one has left
//! the branch for good.
//!
//! A resumed session goes on in its file: it lists its beginning, then everything it had, calls as parts of their message
//! and results as messages. A message that was there before is recognised by its id and its content. Each result also comes
//! as a message of the user's side, which says nothing new.
//!
//! A call and its result share one object; the result may be missing. File paths are relative to a folder that the
//! file does not name; its caller resolves it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use acpdb_engine::entry::{Entry, ItemRef, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Outcome, ReplaceCause, Report, Role};

use super::gemini_parts::{bare, content_parts, id_of_call, output, own_responses, response, thought, usage};
use super::held;
use super::json::{elements, member, members, owned, pick};
use super::lines::{RecordOutcome, attach, document, keep, opened};
use super::marks::marks;
use super::report::Admitted;
use super::retold::Retold;
use super::turns::{self, Occurrences, digest, not_for_the_model, prompt, step};
use super::values::ValueReader;
use super::{Exceeded, ImportContext, ImportError, ImportFormat, ImportOptions, Input, is_uuid, time, wire};

const HOST: &str = "gemini-cli";

/// The name under which a reader of files beside a session is asked for the name of the session's folder.
pub const AGENT_FOLDER: &str = "agent:folder";
/// The same for the log in which the session of a document goes on: the document is as it was before.
pub const LOG: &str = "session:log";

/// A message of the current list.
#[derive(Debug)]
struct CurrentMessage {
    id: String,
    digest: String,
    /// Digest of its content, the same for every form in which it is written.
    says: String,
    /// Its type and its time: a newer version of it has the same.
    marks: [Option<String>; 2],
    text: String,
    items: Vec<ItemRef>,
    origin: String,
}

#[derive(Debug, Default)]
struct Gemini {
    stream: Option<StreamInfo>,
    live: Vec<CurrentMessage>,
    /// The last list that replaced everything: the origin of that, and how many of its messages are still live.
    listed: Option<(String, usize)>,
    /// How often a message of this id left the list: rewound away, or not in a list that replaced it.
    left: HashMap<String, u32>,
    /// Messages that a list left out: a resumed session first lists its beginning, then everything.
    shelf: HashMap<String, CurrentMessage>,
    /// Ids of calls that have a result.
    answered: HashSet<String>,
    begun: HashSet<String>,
    lines: Occurrences,
}

/// Reads either form.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let reader = ValueReader::documents(input, &context.options.limits);
    let mut reader = reader.finding(marks(ImportFormat::GeminiCli));
    let mut gemini = Gemini::default();
    let mut session = FileSession { unread: Some(0), ..FileSession::default() };
    let mut kept = Occurrences::default();
    while let Some(value) = reader.read()? {
        let (line, at, raw) = (value.line, value.offset, value.raw);
        let entries = match context.admit(&value) {
            Admitted::Nothing => continue,
            Admitted::Raw(bytes) => {
                context.report.records += 1;
                vec![keep(&mut kept, bytes)]
            }
            Admitted::Text(text) => match GeminiShape::of(text) {
                GeminiShape::Document(messages) => {
                    session.document(&mut gemini, text, &messages, at, context)?;
                    continue;
                }
                shape => {
                    context.report.records += 1;
                    let mut entries = Vec::new();
                    let found = gemini.line(text, &shape, context.options, &mut entries);
                    found.told(raw, (line, at), &mut entries, &mut kept, &mut context.report);
                    entries
                }
            },
        };
        session.tell(&gemini, entries, reader.offset(), context)?;
    }
    session.hand_out(&gemini, context)
}

/// The kind of a value of the file.
enum GeminiShape<'a> {
    Document(Vec<&'a str>),
    Header,
    Set(&'a str),
    RewindTo(String),
    Message,
    Other,
}

impl<'a> GeminiShape<'a> {
    fn of(text: &'a str) -> Self {
        let names = ["messages", "$set", "$rewindTo", "type", "sessionId"];
        let Some([messages, set, rewind, kind, session]) = pick(text, names) else { return Self::Other };
        if let Some(messages) = messages.filter(|_| kind.is_none()).and_then(elements) {
            return Self::Document(messages);
        }
        match (set, owned(rewind)) {
            (Some(set), _) => Self::Set(set),
            (None, Some(id)) => Self::RewindTo(id),
            (None, None) if kind.is_some() => Self::Message,
            (None, None) if session.is_some() => Self::Header,
            (None, None) => Self::Other,
        }
    }
}

/// The stream of the file, from its first facts on.
#[derive(Default)]
struct FileSession {
    stream: Option<Arc<StreamInfo>>,
    documents: Occurrences,
    /// Facts that were not handed out.
    log: Retold,
    /// Facts before the first message or call; `None` once there is one.
    unread: Option<u64>,
}

impl FileSession {
    fn emit(
        &mut self,
        gemini: &Gemini,
        entries: Vec<Entry>,
        offset: u64,
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        let stream = self.stream.get_or_insert_with(|| {
            let id = context.options.session.clone().unwrap_or_else(|| context.name.to_string());
            opened(gemini.stream.clone().unwrap_or_else(|| StreamInfo::session(HOST, id)), context)
        });
        context.emit(stream, entries, offset)
    }

    /// Takes in the facts of a record. If the file grows, they are handed out as soon as it has named its session.
    fn tell(
        &mut self,
        gemini: &Gemini,
        entries: Vec<Entry>,
        offset: u64,
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        if entries.iter().any(|entry| held::says(&entry.fact)) {
            self.unread = None;
        }
        if let Some(unread) = &mut self.unread {
            *unread = unread.saturating_add(entries.len() as u64);
            let (max, found) = (context.options.limits.unread, *unread);
            if found > max {
                return Err(Exceeded { limit: "unread", max, found }.into());
            }
        }
        self.log.tell(entries, offset);
        if context.options.grows && gemini.stream.is_some() {
            self.hand_out(gemini, context)?;
        }
        Ok(())
    }

    /// Hands out the facts: each once, where it was told first, as it was told last. If the file grows, the sink gathers
    /// facts that are told again.
    fn hand_out(&mut self, gemini: &Gemini, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        for (entries, offset) in std::mem::take(&mut self.log).take() {
            self.emit(gemini, entries, offset, context)?;
        }
        Ok(())
    }

    fn document(
        &mut self,
        gemini: &mut Gemini,
        text: &str,
        messages: &[&str],
        at: u64,
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        gemini.header(text, context.options);
        if self.stream.is_none()
            && let Some(info) = &gemini.stream
        {
            // A rewind in a document leaves its messages out.
            let stream = self.stream.insert(opened(info.clone(), context));
            let beside = context.options.beside.as_ref();
            if beside.is_some_and(|beside| (beside.0)(LOG, 0).is_none()) {
                context.sink.present(stream, messages.iter().map(|message| id_of(message).into()).collect());
            }
        }
        let mut records: Vec<(&str, String)> = Vec::new();
        let mut told: HashMap<String, Vec<String>> = HashMap::new();
        for message in messages {
            let mut entries = Vec::new();
            let id = id_of(message);
            // The same message twice is one; its bytes stay in the text around. Another one of this id is a message of its own.
            let contents: &mut Vec<String> = told.entry(id.clone()).or_default();
            let content = digest(message);
            if contents.contains(&content) {
                context.report.duplicates += 1;
                continue;
            }
            contents.push(content);
            let id = match contents.len() {
                1 => id,
                n => format!("{id}+{n}"),
            };
            // The program writes a reply anew as its calls go on, and not every change shows in a fact.
            let own = format!("record:{id}");
            let mut origin = gemini.message(message, id.clone(), &mut entries);
            if owned(member(Some(message), "type")).as_deref() == Some("gemini") {
                let fact = fact::HostRecorded { record: "message".to_string(), about: Some(id), raw: None };
                let kept = wire::build(message.as_bytes(), &wire::bodies(&entries));
                entries.push(Entry::from(fact).origin(&own).wire(kept));
                origin = own;
            } else {
                attach(message.as_bytes(), &mut entries);
            }
            records.push((message, origin));
            context.report.records += 1;
            let end = super::lines::span(text, message).map_or(0, |start| start + message.len());
            self.tell(gemini, entries, at.saturating_add(end as u64), context)?;
        }
        let title = owned(member(Some(text), "summary"));
        let name = match self.documents.next("document") {
            1 => "document".to_string(),
            n => format!("document#{n}"),
        };
        let around = Entry::host_record("document", None).origin(&name).wire(document(text, &records));
        let mut around = vec![around];
        if title.is_some() {
            let changed = fact::SessionChanged { title, ..fact::SessionChanged::default() };
            around.push(Entry::from(changed).origin(format!("{name}/summary")));
        }
        self.tell(gemini, around, at.saturating_add(text.len() as u64), context)
    }
}

impl Gemini {
    fn line(
        &mut self,
        text: &str,
        shape: &GeminiShape<'_>,
        options: &ImportOptions,
        out: &mut Vec<Entry>,
    ) -> RecordOutcome {
        match shape {
            GeminiShape::Message => {
                let id = id_of(text);
                if self.is_answer(text) {
                    // The host writes each result again as a message of the user's side.
                    let origin = self.lines.origin("line", &digest(text));
                    let record = "message".to_string();
                    let fact = fact::HostRecorded { record, about: Some(id.clone()), raw: None };
                    out.push(Entry::from(fact).origin(&origin));
                    self.live.push(answer(id, text, origin));
                    return RecordOutcome::Known;
                }
                let id = self.named(&id, text);
                if self.live.iter().any(|live| live.id == id) {
                    // The bytes of each version are kept, even where a version says nothing new about the message.
                    let origin = self.lines.origin("line", &digest(text));
                    let fact = fact::HostRecorded {
                        record: "message".to_string(),
                        about: Some(id.clone()),
                        raw: None,
                    };
                    out.push(Entry::from(fact).origin(origin));
                }
                self.message(text, id, out);
            }
            GeminiShape::Header => {
                self.header(text, options);
                let origin = self.lines.origin("line", &digest(text));
                out.push(Entry::host_record("session", None).origin(origin));
            }
            GeminiShape::RewindTo(id) => {
                let origin = self.lines.origin("line", &digest(text));
                let place = self.live.iter().position(|live| live.id == *id);
                // An unknown id leaves nothing: no fact has this origin, so the point is before everything.
                let point = place.and_then(|place| self.live.get(place)).map(|live| live.origin.clone());
                self.forget(place.unwrap_or(0));
                // A rewound message has left the branch: it does not come back as itself.
                self.shelf.clear();
                // A message of a list that replaced everything was recorded before that list: a rewind to before the
                // message would bring back the messages that the list left out.
                if let (Some((listed, count)), Some(place)) = (self.listed.take(), place) {
                    if place < count {
                        let to = PointRef::After(listed);
                        out.push(Entry::from(fact::Rewound { to }).origin(format!("{origin}/rewound")));
                        let order = self.live.iter().flat_map(|live| live.items.iter().cloned()).collect();
                        let cause = ReplaceCause::Host;
                        let replaced = fact::ContextReplaced { cause, order, tokens_before: None };
                        out.push(Entry::from(replaced).origin(&origin));
                        self.listed = Some((origin, place));
                        return RecordOutcome::Known;
                    }
                    self.listed = Some((listed, count));
                }
                let to = PointRef::Before(point.unwrap_or_else(|| format!("absent:{id}")));
                out.push(Entry::from(fact::Rewound { to }).origin(origin));
            }
            GeminiShape::Set(set) => self.set(text, set, out),
            GeminiShape::Document(_) | GeminiShape::Other => {
                let Some(names) = members(text) else { return RecordOutcome::Unfit("not a JSON object") };
                let kind = names.into_iter().next().map_or_else(|| "empty".to_string(), |(name, _)| name);
                let origin = self.lines.origin("line", &digest(text));
                out.push(Entry::host_record(kind.clone(), None).origin(origin));
                return RecordOutcome::Unknown(kind);
            }
        }
        RecordOutcome::Known
    }

    /// The name of a message of the log: its id, unless another message was told under that.
    fn named(&self, id: &str, message: &str) -> String {
        let names = (1..).map(|n: u32| if n == 1 { id.to_owned() } else { format!("{id}+{n}") });
        let is_free = |name: &String| {
            let known = self.live.iter().find(|live| live.id == *name);
            known.is_none_or(|live| !live.is_other(message))
        };
        // There are not as many messages as numbers.
        names.into_iter().find(is_free).unwrap_or_default()
    }

    /// Forgets the messages from `place` on. One that comes back as it was is itself again, others are new.
    fn forget(&mut self, place: usize) {
        for live in self.live.drain(place..) {
            let count = self.left.entry(live.id.clone()).or_default();
            *count = count.saturating_add(1);
            self.shelf.insert(live.id.clone(), live);
        }
    }

    /// Whether a message of the user's side only repeats results of calls.
    fn is_answer(&self, message: &str) -> bool {
        let [kind, content] = pick(message, ["type", "content"]).unwrap_or_default();
        let parts = content.and_then(elements).unwrap_or_default();
        let responses = parts.iter().filter_map(|part| response(part));
        let ids: Vec<String> = responses.map(id_of_call).filter(|id| !id.is_empty()).collect();
        owned(kind).as_deref() == Some("user")
            && !ids.is_empty()
            && ids.iter().all(|id| self.answered.contains(id))
            && parts.iter().all(|part| response(part).is_some() || member(Some(part), "inlineData").is_some())
    }

    fn header(&mut self, text: &str, options: &ImportOptions) {
        let [id, start, kind] = pick(text, ["sessionId", "startTime", "kind"]).unwrap_or_default();
        if self.stream.is_none()
            && let Some(id) = owned(id)
        {
            let is_agent = owned(kind).as_deref() == Some("subagent");
            let parent = options.beside.as_ref().filter(|_| is_agent).and_then(|beside| {
                // Its folder bears the name of the session that started it; a name that is no text is none.
                let name = String::from_utf8((beside.0)(AGENT_FOLDER, 0)?).ok()?;
                (is_uuid(&name) && name != id).then(|| (StreamInfo::session(HOST, name).id(), None))
            });
            let host_time = time(start);
            self.stream = Some(StreamInfo { host_time, parent, ..StreamInfo::session(HOST, id) });
        }
    }

    fn set(&mut self, text: &str, set: &str, out: &mut Vec<Entry>) {
        let origin = self.lines.origin("line", &digest(text));
        let [messages, summary] = pick(set, ["messages", "summary"]).unwrap_or_default();
        let mut place = 0;
        if let Some(messages) = messages.and_then(elements) {
            let mut old = std::mem::take(&mut self.live);
            let mut told = Vec::new();
            for message in messages {
                let id = id_of(message);
                let known = old.iter().position(|live| live.id == id).map(|at| old.remove(at));
                let known = known.or_else(|| self.shelf.remove(&id));
                match known {
                    // The same message, perhaps in another form: a list writes calls as parts, and without results.
                    Some(live) if live.digest == digest(message) || live.says == says(message) => {
                        told.push(live);
                    }
                    _ if self.is_answer(message) => told.push(answer(id, message, origin.clone())),
                    known => {
                        self.live.extend(known);
                        self.message(message, id, out);
                        told.append(&mut self.live);
                    }
                }
            }
            let order = told.iter().flat_map(|live| live.items.iter().cloned()).collect();
            self.live = old;
            self.forget(0);
            self.live = told;
            for live in &self.live {
                self.shelf.remove(&live.id);
            }
            self.listed = Some((origin.clone(), self.live.len()));
            place = out.len();
            let replaced = fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None };
            out.push(Entry::from(replaced).origin(origin));
        } else {
            out.push(Entry::host_record("$set", None).origin(origin));
        }
        if let Some(title) = owned(summary) {
            let changed = fact::SessionChanged { title: Some(title), ..fact::SessionChanged::default() };
            out.push(Entry::from(changed).origin(format!("{}/summary", origin_of(out.get(place)))));
        }
    }

    /// Adds the facts of one version of a message; gives the origin of the fact that stands for it.
    fn message(&mut self, text: &str, id: String, out: &mut Vec<Entry>) -> String {
        let names = ["timestamp", "type", "content", "thoughts", "tokens", "model", "toolCalls"];
        let [timestamp, kind, content, thoughts, tokens, model, calls] =
            pick(text, names).unwrap_or_default();
        let key = match self.left.get(&id) {
            Some(times) => format!("{id}@{}", times.saturating_add(1)),
            None => id.clone(),
        };
        let origin = format!("msg:{key}");
        let first = out.len();
        let kind = owned(kind).unwrap_or_default();
        let begins = self.begun.insert(origin.clone());
        let role = match kind.as_str() {
            "gemini" => Role::Assistant,
            "user" => Role::User,
            _ => Role::System,
        };
        match role {
            Role::Assistant if begins => out.push(step(&origin)),
            Role::User if begins => out.push(prompt(&origin)),
            _ => {}
        }
        let thoughts: Vec<PartEntry> =
            thoughts.and_then(elements).unwrap_or_default().into_iter().filter_map(thought).collect();
        let content = content_parts(content);
        let mut items = Vec::new();
        // The parts of a reply come one by one: versions of it differ in their number.
        let whole = if role == Role::Assistant { Vec::new() } else { content.clone() };
        items.extend((1..).zip(&whole).map(|(part, _)| ItemRef::Origin(origin.clone(), part)));
        let entry = turns::message(&key, role, whole, false).origin(&origin);
        // Notices of the program (info, warning, error) are shown to the user only.
        out.push(if role == Role::System { not_for_the_model(entry) } else { entry });
        if role == Role::Assistant {
            for (name, parts) in [("thought", thoughts), ("part", content)] {
                for (place, part) in parts.into_iter().enumerate() {
                    let origin = format!("{origin}/{name}{place}");
                    items.push(ItemRef::Origin(origin.clone(), 1));
                    let fact = fact::MessageContinued { key: key.clone(), parts: vec![part] };
                    out.push(Entry::from(fact).origin(origin));
                }
            }
        }
        let mut names = Occurrences::default();
        for call in calls.and_then(elements).unwrap_or_default() {
            if member(Some(call), "result").is_some() {
                self.answered.insert(id_of_call(call));
            }
            items.push(ItemRef::Origin(tool_call(call, &key, &mut names, out), 1));
        }
        let model = owned(model);
        if model.is_some() || tokens.is_some() {
            let usage = tokens.map(usage).unwrap_or_default();
            let fact = fact::MessageFinished { key, report: Report { model, usage, ..Report::default() } };
            out.push(Entry::from(fact).origin(format!("{origin}:finish")));
        }
        let at = time(timestamp);
        out.iter_mut().skip(first).for_each(|entry| entry.host_time = entry.host_time.or(at));
        let (marks, said) = marks_of(text);
        let says = says(text);
        let live = CurrentMessage {
            digest: digest(text),
            says,
            marks,
            text: said,
            items,
            origin: origin.clone(),
            id,
        };
        match self.live.iter_mut().find(|other| other.id == live.id) {
            Some(other) => *other = live,
            None => self.live.push(live),
        }
        origin
    }
}

/// A message that repeats results of calls: it has its place, and no items.
fn answer(id: String, text: &str, origin: String) -> CurrentMessage {
    let (marks, said) = marks_of(text);
    CurrentMessage {
        id,
        digest: digest(text),
        says: says(text),
        marks,
        text: said,
        items: Vec::new(),
        origin,
    }
}

/// A message's type and time, and the text of its content.
fn marks_of(message: &str) -> ([Option<String>; 2], String) {
    let [kind, at, content] = pick(message, ["type", "timestamp", "content"]).unwrap_or_default();
    let pieces = content.map(|content| elements(content).unwrap_or_else(|| vec![content]));
    let text = |piece: &str| owned(Some(piece)).or_else(|| owned(member(Some(piece), "text")));
    let said: String = pieces.unwrap_or_default().into_iter().filter_map(text).collect();
    ([owned(kind), owned(at)], said)
}

impl CurrentMessage {
    /// Whether a message of the same id cannot be a newer version of this one: it is of another type, or of another time and
    /// says something else.
    fn is_other(&self, message: &str) -> bool {
        let (marks, text) = marks_of(message);
        let differs = |place: usize| match (self.marks.get(place), marks.get(place)) {
            (Some(Some(own)), Some(Some(other))) => own != other,
            _ => false,
        };
        differs(0) || differs(1) && !self.text.is_empty() && !text.starts_with(&self.text)
    }
}

/// A digest of a message's content, whether its calls are listed beside the content or are parts of it.
fn says(message: &str) -> String {
    let [content, calls] = pick(message, ["content", "toolCalls"]).unwrap_or_default();
    let mut all = Vec::new();
    let pieces = content.map(|content| elements(content).unwrap_or_else(|| vec![content]));
    for piece in pieces.unwrap_or_default() {
        let [text, call, thought] = pick(piece, ["text", "functionCall", "thought"]).unwrap_or_default();
        let text = owned(Some(piece)).or_else(|| owned(text));
        all.push(match (text, call) {
            // Thoughts stand beside the content in one form, and in it in another.
            _ if thought == Some("true") => continue,
            (Some(text), _) if text.is_empty() => continue,
            (Some(text), _) => format!("text {text}"),
            (None, Some(call)) => format!("call {}", id_of_call(call)),
            (None, None) => format!("part {}", digest(piece)),
        });
    }
    for call in calls.and_then(elements).unwrap_or_default() {
        all.push(format!("call {}", id_of_call(call)));
    }
    digest(&format!("{all:?}"))
}

/// A message without an id is named by its bytes.
fn id_of(message: &str) -> String {
    owned(member(Some(message), "id")).unwrap_or_else(|| digest(message))
}

fn origin_of(entry: Option<&Entry>) -> String {
    entry.and_then(|entry| entry.origin.clone()).unwrap_or_default()
}

/// Adds a call and, if it has one, its result; gives the origin of its start.
fn tool_call(call: &str, message: &str, names: &mut Occurrences, out: &mut Vec<Entry>) -> String {
    let fields = ["id", "name", "args", "result", "status", "timestamp", "resultDisplay"];
    let [id, name, args, result, status, timestamp, display] = pick(call, fields).unwrap_or_default();
    let id = owned(id).unwrap_or_default();
    let call = match names.next(&id) {
        1 => format!("call:{message}/{id}"),
        n => format!("call:{message}/{id}#{n}"),
    };
    let start = format!("{call}:start");
    let tool = owned(name).unwrap_or_default();
    let id = bare(&id, &tool).to_string();
    out.push(Entry::tool_started(&id, tool, args.unwrap_or("{}")).origin(&start).in_message(message));
    let outcome = match owned(status).as_deref() {
        Some("success") => Some(Outcome::Completed),
        Some("error") => Some(Outcome::Failed),
        Some("cancelled") => Some(Outcome::Aborted),
        _ => result.map(|_| Outcome::Completed),
    };
    if let Some(outcome) = outcome {
        let own = result.map(|result| own_responses(result, &id));
        let mut finished = Entry::tool_finished(&id, outcome, output(own.as_deref()))
            .origin(format!("{call}:finish"))
            .at(time(timestamp));
        if let Some(display) = display.filter(|display| *display != "\"\"") {
            finished = finished.details(display);
        }
        out.push(finished);
    }
    start
}
