//! Chat messages in the form of the `OpenAI` chat API: alone, in tau-bench runs, in tau2 simulations, or one a line.
//!
//! ```text
//! [ {role, content, ..}, .. ]   {messages: [..]}   {role, ..}\n{role, ..}\n      one conversation
//! [ {role, parts}, .. ]   {history: [{role, parts}, ..]}      a checkpoint of Gemini CLI: one conversation
//! [ {task_id, trial, traj: [..]}, .. ]             tau-bench: a stream a run, named `task_id/trial`
//! {simulations: [ {id, messages: [..]}, .. ]}      tau2: a stream a simulation
//! ```
//!
//! Where calls and results are blocks of the content, as in requests to Anthropic, see `blocks`.
//!
//! There are no ids but those of calls, and they repeat: origins are the place of a message with its digest, and for
//! a call the place of its message and its place in it. A result answers a call of the message just before it; ids decide
//! among parallel calls only.
//!
//! A message of which nothing is understood is kept, and named; a conversation of nothing else is left out.
//!
//! A conversation inside a document keeps it whole: the text of a run is in its `document` record. Of a file of several
//! runs, the brackets and commas between them are not kept; members beside `simulations` go to a stream of their own.

mod blocks;

use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, PartEntry, StreamInfo, WirePiece};
use acpdb_engine::event::{Actor, Outcome, Role};
use acpdb_engine::secret::DERIVED;

use self::blocks::ChatFacts;
use super::held::says;
use super::json::{elements, member, owned, pick, pick_with_nulls};
use super::lines::{attach, document, keep, opened, span};
use super::report::Admitted;
use super::turns::{Occurrences, digest, picture, prompt, step};
use super::values::{TINY_BYTES, ValueReader};
use super::{ImportContext, ImportError, Input, digest_origin, time};
use crate::exchange::parts;

const HOST: &str = "openai-messages";

/// Reads a file of messages, in any of the forms.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let mut reader = ValueReader::documents(input, &context.options.limits);
    // Messages one a line: their session is named by the digest of all of them, so they wait for the end.
    let mut loose = Loose::default();
    let mut conversations = Occurrences::default();
    while let Some(value) = reader.read()? {
        let (line, at) = (value.line, value.offset);
        match context.admit(&value) {
            Admitted::Nothing => {}
            Admitted::Raw(bytes) => loose.push(ChatLine::Kept(bytes.to_vec()), line, at),
            Admitted::Text(text) => match FileForm::of(text) {
                FileForm::Runs(runs) => {
                    for run in runs {
                        document_of(run, text, at, &mut conversations, context)?;
                    }
                }
                FileForm::Simulations(list, runs) => simulations(text, list, &runs, at, context)?,
                FileForm::Conversation => document_of(text, text, at, &mut conversations, context)?,
                FileForm::Message => loose.push(ChatLine::Message(text.to_string()), line, at),
                FileForm::Other => {
                    let reason = "neither messages nor a run of them; kept as it is";
                    context.report.keep_raw(line, at, reason);
                    loose.push(ChatLine::Kept(text.as_bytes().to_vec()), line, at);
                }
            },
        }
    }
    loose.emit(reader.offset(), context)
}

/// The kind of a value of the file.
enum FileForm<'a> {
    Runs(Vec<&'a str>),
    Simulations(&'a str, Vec<&'a str>),
    Conversation,
    Message,
    Other,
}

impl<'a> FileForm<'a> {
    fn of(text: &'a str) -> Self {
        if let Some(list) = elements(text) {
            let holds = |name: &str| list.first().is_some_and(|first| member(Some(first), name).is_some());
            return match () {
                () if holds("role") => Self::Conversation,
                () if holds("traj") || holds("messages") => Self::Runs(list),
                () => Self::Other,
            };
        }
        let Some([simulations, traj, messages, role, history]) =
            pick(text, ["simulations", "traj", "messages", "role", "history"])
        else {
            return Self::Other;
        };
        match simulations.and_then(|list| Some((list, elements(list)?))) {
            Some((list, runs)) => Self::Simulations(list, runs),
            None if traj.or(messages).or(history).is_some() => Self::Conversation,
            None if role.is_some() => Self::Message,
            None => Self::Other,
        }
    }
}

/// One conversation in `run`, a slice of `whole`, which begins at offset `at`.
fn document_of(
    run: &str,
    whole: &str,
    at: u64,
    conversations: &mut Occurrences,
    context: &mut ImportContext<'_>,
) -> Result<(), ImportError> {
    let [id, task, trial, traj, messages, history] =
        pick(run, ["id", "task_id", "trial", "traj", "messages", "history"]).unwrap_or_default();
    let given = context.options.session.clone();
    let name = match (task, traj, owned(id)) {
        // A simulation has an id of its own; a run has a task, whose id is a number in some files and a text in others.
        (Some(task), Some(_), _) | (Some(task), None, None) => {
            let task = owned(Some(task)).unwrap_or_else(|| task.to_string());
            prefixed(format!("{task}/{}", trial.unwrap_or("0")), given)
        }
        (_, _, Some(id)) => prefixed(id, given),
        (None, _, None) => given.unwrap_or_else(|| digest(run)),
    };
    let name = match conversations.next(&name) {
        1 => name,
        n => format!("{name}/{n}"),
    };
    let base = at.saturating_add(span(whole, run).unwrap_or(0) as u64);
    let list = traj.or(messages).or(history).unwrap_or(run);
    conversation(name, run, list, base, context)
}

/// A session's name below the prefix that the caller chose.
fn prefixed(name: String, prefix: Option<String>) -> String {
    match prefix {
        Some(prefix) => format!("{prefix}/{name}"),
        None => name,
    }
}

fn conversation(
    name: String,
    run: &str,
    list: &str,
    base: u64,
    context: &mut ImportContext<'_>,
) -> Result<(), ImportError> {
    let messages = elements(list).unwrap_or_default();
    context.check_noise(&messages, TINY_BYTES)?;
    let mut talk = Conversation::new(name, context);
    let mut records = Vec::new();
    let count = messages.len();
    talk.blocks(run, &messages, base, context);
    for message in messages {
        let mut entries = Vec::new();
        let origin = talk.record(message, &mut entries);
        talk.note_unread(message, &entries, (1, base), context);
        records.push((message, origin));
        let end = span(run, message).map_or(0, |start| start + message.len());
        context.emit(&talk.stream, entries, base.saturating_add(end as u64))?;
        context.report.records += 1;
    }
    let around = Entry::host_record("document", None).origin("document").wire(document(run, &records));
    context.emit(&talk.stream, vec![around], base.saturating_add(run.len() as u64))?;
    if !context.part_ends() && count > 0 {
        let name = &talk.stream.name;
        context.report.skip(
            1,
            base,
            format!("nothing of the conversation {name} is understood; it is left out"),
        );
    }
    Ok(())
}

fn simulations(
    text: &str,
    list: &str,
    runs: &[&str],
    at: u64,
    context: &mut ImportContext<'_>,
) -> Result<(), ImportError> {
    let mut names = Occurrences::default();
    for run in runs {
        document_of(run, text, at, &mut names, context)?;
    }
    // Members beside the simulations (tasks, settings) belong to all of them; they are kept once.
    let Some(start) = span(text, list) else { return Ok(()) };
    let beside = [text.get(..start), Some("[]"), text.get(start + list.len()..)];
    let beside: String = beside.into_iter().flatten().collect();
    let name = context.options.session.clone().unwrap_or_else(|| format!("{}/file", digest(&beside)));
    let stream =
        Arc::new(StreamInfo { title: Some(context.name.to_string()), ..StreamInfo::session(HOST, name) });
    let kept = Entry::host_record("simulations", None)
        .origin(digest_origin("simulations", beside.as_bytes(), 1))
        .wire(vec![WirePiece::Literal(beside.into_bytes())]);
    if context.facts == 0 {
        return Ok(());
    }
    context.is_understood();
    context.emit(&stream, vec![kept], at.saturating_add(text.len() as u64))
}

/// Messages one a line, until all are there.
#[derive(Debug, Default)]
struct Loose {
    hasher: blake3::Hasher,
    /// Lines, with their numbers and offsets.
    lines: Vec<(ChatLine, u64, u64)>,
}

#[derive(Debug)]
enum ChatLine {
    Message(String),
    Kept(Vec<u8>),
}

impl ChatLine {
    fn message(&self) -> Option<&str> {
        match self {
            Self::Message(text) => Some(text),
            Self::Kept(_) => None,
        }
    }
}

impl Loose {
    fn push(&mut self, line: ChatLine, number: u64, at: u64) {
        let bytes = match &line {
            ChatLine::Message(text) => text.as_bytes(),
            ChatLine::Kept(bytes) => bytes,
        };
        self.hasher.update(bytes);
        self.hasher.update(b"\n");
        self.lines.push((line, number, at));
    }

    fn emit(self, end: u64, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let digest = self.hasher.finalize().to_hex();
        let derived = || format!("{DERIVED}{}", digest.get(..32).unwrap_or_default());
        let name = context.options.session.clone().unwrap_or_else(derived);
        let mut talk = Conversation::new(name, context);
        let mut kept = Occurrences::default();
        let messages: Vec<&str> = self.lines.iter().filter_map(|(line, ..)| line.message()).collect();
        talk.blocks("", &messages, 0, context);
        let ends: Vec<u64> = self.lines.iter().skip(1).map(|(.., at)| *at).chain([end]).collect();
        for ((message, line, at), end) in self.lines.into_iter().zip(ends) {
            let mut entries = Vec::new();
            match message {
                ChatLine::Message(text) => {
                    talk.record(&text, &mut entries);
                    talk.note_unread(&text, &entries, (line, at), context);
                }
                ChatLine::Kept(bytes) => {
                    entries.push(keep(&mut kept, &bytes));
                }
            }
            context.report.records += 1;
            context.emit(&talk.stream, entries, end)?;
        }
        Ok(())
    }
}

/// A call that has no result yet.
#[derive(Debug)]
struct UnansweredCall {
    id: String,
    /// `<message>.<place>`
    place: String,
}

#[derive(Debug)]
struct Conversation {
    stream: Arc<StreamInfo>,
    index: usize,
    /// Calls of the last message that made some.
    group: Vec<UnansweredCall>,
    /// Calls of earlier ones.
    older: Vec<UnansweredCall>,
    /// The facts of its messages, where calls are blocks.
    blocks: Option<ChatFacts>,
}

impl Conversation {
    fn new(name: String, context: &mut ImportContext<'_>) -> Self {
        let title = Some(context.name.to_string());
        let stream = opened(StreamInfo { title, ..StreamInfo::session(HOST, name) }, context);
        Self { stream, index: 0, group: Vec::new(), older: Vec::new(), blocks: None }
    }

    /// Reads messages whose calls are blocks, if some are; those that cannot be read are noted.
    fn blocks(&mut self, run: &str, messages: &[&str], at: u64, context: &mut ImportContext<'_>) {
        match blocks::read(run, messages) {
            None => {}
            Some(Ok(blocks)) => self.blocks = Some(blocks),
            Some(Err(reason)) => context.report.keep_raw(1, at, reason),
        }
    }

    /// Notes a message of which nothing was understood, though it is not empty.
    fn note_unread(
        &self,
        text: &str,
        entries: &[Entry],
        (line, at): (u64, u64),
        context: &mut ImportContext<'_>,
    ) {
        let inner = blocks::inner(text);
        let [content, parts] = pick_with_nulls(&inner, ["content", "parts"]).unwrap_or_default();
        let is_blank = |value: &str| value == "null" || value == "[]" || value.starts_with('"');
        if entries.iter().any(|entry| says(&entry.fact)) || content.or(parts).is_some_and(is_blank) {
            return;
        }
        let number = self.index.max(self.blocks.as_ref().map_or(0, ChatFacts::count));
        let reason = format!("message {number} has content in a form that is not read; it is kept as it is");
        context.report.keep_raw(line, at, reason);
    }

    /// Adds the facts of the next message, with its record; gives the origin of the fact that stands for it.
    fn record(&mut self, text: &str, out: &mut Vec<Entry>) -> String {
        if let Some(blocks) = &mut self.blocks {
            return blocks.message(text, out);
        }
        let origin = self.message(text, out);
        attach(text.as_bytes(), out);
        origin
    }

    /// Adds the facts of the next message; gives the origin of the fact that stands for it.
    fn message(&mut self, text: &str, out: &mut Vec<Entry>) -> String {
        let index = self.index;
        self.index += 1;
        let origin = format!("msg:{index}:{}", digest(text));
        let inner = blocks::inner(text);
        let text = &*inner;
        let [role, content, calls, function, results, timestamp] =
            pick(text, ["role", "content", "tool_calls", "function_call", "tool_messages", "timestamp"])
                .unwrap_or_default();
        let role = owned(role).unwrap_or_default();
        if matches!(role.as_str(), "tool" | "function") {
            let results = results.and_then(elements).unwrap_or_else(|| vec![text]);
            for (place, result) in results.into_iter().enumerate() {
                self.result(result, index, place, out);
            }
            if out.is_empty() {
                out.push(Entry::host_record(role, None).origin(&origin));
            }
        } else {
            let role = match role.as_str() {
                "assistant" => Role::Assistant,
                "user" => Role::User,
                _ => Role::System,
            };
            match role {
                Role::Assistant => out.push(step(&origin)),
                Role::User => out.push(prompt(&origin)),
                _ => {}
            }
            let mut said = Vec::new();
            if let Some(reasoning) = owned(member(Some(text), "reasoning_content")) {
                said.push(PartEntry::reasoning(reasoning, None));
            }
            said.extend(parts(content, image));
            if let Some(refusal) = owned(member(Some(text), "refusal")) {
                said.push(PartEntry::text(refusal));
            }
            let key = index.to_string();
            out.push(Entry::message_parts(&key, role, said).origin(&origin));
            let mut calls = calls.and_then(elements).unwrap_or_default();
            calls.extend(function);
            if !calls.is_empty() {
                self.older.append(&mut self.group);
            }
            for (place, call) in calls.into_iter().enumerate() {
                self.call(call, index, place, role, out);
            }
        }
        let at = time(timestamp);
        for entry in out.iter_mut() {
            entry.host_time = at;
        }
        out.iter()
            .find(|entry| !matches!(entry.fact, Fact::TurnStarted(_)))
            .and_then(|entry| entry.origin.clone())
            .unwrap_or(origin)
    }

    /// `{id, function: {name, arguments}}`, or `{id, name, arguments}` (tau2, and calls before there were tools).
    fn call(&mut self, call: &str, index: usize, place: usize, role: Role, out: &mut Vec<Entry>) {
        let [id, function] = pick(call, ["id", "function"]).unwrap_or_default();
        let [name, arguments] = pick(function.unwrap_or(call), ["name", "arguments"]).unwrap_or_default();
        let place = format!("{index}.{place}");
        let id = owned(id).unwrap_or_else(|| place.clone());
        // Arguments are JSON inside a string, valid or not; tau2 has the object itself.
        let params =
            owned(arguments).or_else(|| arguments.map(str::to_string)).unwrap_or_else(|| "{}".to_string());
        let mut entry = Entry::tool_started(&id, owned(name).unwrap_or_default(), params)
            .origin(format!("call:{place}:start"))
            .in_message(index.to_string());
        if role == Role::User {
            entry = entry.by(Actor::User);
        }
        out.push(entry);
        self.group.push(UnansweredCall { id, place });
    }

    fn result(&mut self, text: &str, index: usize, place: usize, out: &mut Vec<Entry>) {
        let [call, id, content, error] =
            pick(text, ["tool_call_id", "id", "content", "error"]).unwrap_or_default();
        let id = owned(call).or_else(|| owned(id));
        let parts = parts(content, image);
        let outcome = match error {
            Some("false") => Outcome::Completed,
            Some(_) => Outcome::Failed,
            None if parts.first().is_some_and(|part| part.bytes.starts_with(b"Error")) => Outcome::Failed,
            None => Outcome::Completed,
        };
        let open = self.answered(id.as_deref());
        let (id, origin) = match open {
            Some(open) => (open.id, format!("call:{}:finish", open.place)),
            None => (id.unwrap_or_default(), format!("result:{index}.{place}:finish")),
        };
        out.push(Entry::tool_finished(id, outcome, parts).origin(origin));
    }

    /// The call that a result answers: of the last group by id, else of an earlier one by id, else, for a result without
    /// an id, the first of the group.
    fn answered(&mut self, id: Option<&str>) -> Option<UnansweredCall> {
        let Some(id) = id else {
            return (!self.group.is_empty()).then(|| self.group.remove(0));
        };
        if let Some(at) = self.group.iter().position(|open| open.id == id) {
            return Some(self.group.remove(at));
        }
        let at = self.older.iter().rposition(|open| open.id == id)?;
        Some(self.older.remove(at))
    }
}

/// An image in a message.
fn image(piece: &str) -> Option<PartEntry> {
    let image = member(Some(piece), "image_url");
    let url = owned(image).or_else(|| owned(member(image, "url")))?;
    Some(picture(url, None))
}
