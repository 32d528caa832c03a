//! Answers to a plug-in of a host, which asks all the time: a JSON object a line, and one back for each.
//!
//! ```text
//! {"id":1,"op":"hello"}                                     -> tools that the plug-in may offer
//! {"id":2,"op":"record","info":{..},"messages":[..]}        -> how many events were new
//! {"id":3,"op":"context","info":{..},"messages":[..],..}    -> the changes to the messages that the host has
//! {"id":4,"op":"tool","session":"s","name":"..","arguments":{..}}  -> the reply for the model
//! {"id":5,"op":"compacting"|"stats"|"log","session":"s"}    -> a text
//! {"id":6,"op":"due","session":"s","folder":"/p"}           -> the text that is due at the start of a session; with "begun":true
//!                                                          the reminder and the reflection that are due with a prompt, and
//!                                                          once an index of what a compaction took
//! ```
//!
//! Pi writes each message to the session's file at once: there `recording`, the file's path, stands in the place of `info` and
//! `messages`. Its messages have no ids, so changes name calls, and reasoning goes by its signature (`stale_signatures`).
//!
//! `messages` are new, or changed since the plug-in told them; `info` is the host's record of the session. Messages that could
//! not be recorded have to be told again before later ones, so then only the `whole` is taken.
//! A mistake or a fault comes back as `error`, and the plug-in lets its host go on with its own messages. The store is opened
//! by the first line that needs it, and again by the next one if that failed.

pub mod shown;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::PathBuf;

use acpdb_engine::entry::{Entry, StreamInfo, fact};
use acpdb_engine::event::{Face, InjectedKind, Role};
use acpdb_engine::fold::{FaceState, HashForm, ItemKind};
use acpdb_engine::store::Session;
use acpdb_engine::{Error, Store, View};
use acpdb_hosts::export::preserves_thinking;
use acpdb_serve::{Injection, Renderer as _, ServeOptions, Served, Step, flush, inject};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::growing::GrowingRecordings;
use crate::host::{AttachMode, Host};
use crate::mcp::catalog;
use crate::mcp::tools::{ToolError, Tools};
use crate::recording::{self, RecordingError};
use crate::{damage, lost};
use acpdb_hosts::surrogates::without_halves;
use shown::PluginRenderer;

/// Version of this protocol.
const PROTOCOL: u32 = 1;
/// Tools that a model needs beside a host's own; the context tool stands before them.
const TOOLS: &[&str] = &[
    "recall",
    "explain",
    "history_chain",
    "memory_remember",
    "memory_supersede",
    "memory_recall",
    "memory_forget",
    "task_update",
    "tasks",
];
/// Kept facts that are named when a host makes its context shorter.
const FACT_COUNT_MAX: usize = 40;

/// Why a line was not answered as it asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// It is no request.
    #[error("this is no request: {0}")]
    Request(String),
    /// The request lacks a member that it needs.
    #[error("`{op}` needs `{member}`")]
    Lacks {
        /// The operation that was asked.
        op: String,
        /// The missing member.
        member: &'static str,
    },
    /// The store cannot be opened.
    #[error("{0}")]
    Open(String),
    /// The recording of the host.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A tool.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// Messages that were told before are not recorded.
    #[error("what was told of this session before is not recorded; tell the whole")]
    Behind,
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
}

#[derive(Deserialize)]
struct PluginRequest<'a> {
    #[serde(default)]
    id: Value,
    op: String,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    /// Whether the messages are all that the host has.
    #[serde(default)]
    whole: bool,
    session: Option<String>,
    /// Whether the session has begun: only reminders and reflections are due.
    #[serde(default)]
    begun: bool,
    /// Pi's file of the session, and the folder that it works in.
    recording: Option<PathBuf>,
    folder: Option<String>,
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    model: String,
    /// Whether the newest message is the user's: then nothing of this turn was sent yet.
    #[serde(default)]
    is_prompt: bool,
    #[serde(default)]
    key: String,
}

/// The id in a host's record of a session.
#[derive(Deserialize)]
struct SessionRecord {
    id: String,
}

/// The outcome of a line, for the journal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineOutcome {
    /// The operation that was asked.
    pub op: String,
    /// The session.
    pub session: String,
    /// Events that are new in the store.
    pub event_count: u64,
    /// Whether something was changed or given.
    pub has_answered: bool,
    /// The error, if there was one.
    pub error: Option<String>,
}

/// Opens the store.
pub type Open = dyn Fn() -> Result<Store, String>;

/// Answers a plug-in of one host.
pub struct PluginSession {
    host: Host,
    mode: AttachMode,
    open: Box<Open>,
    store: Option<Store>,
    /// Sessions with told messages that are not recorded.
    behind: HashSet<String>,
    recordings: GrowingRecordings,
}

impl std::fmt::Debug for PluginSession {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Desk")
            .field("host", &self.host)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl PluginSession {
    /// A desk for a host's plug-in. `open` is called once something needs the store.
    pub fn new(host: Host, mode: AttachMode, open: Box<Open>) -> Self {
        Self {
            host,
            mode,
            open,
            store: None,
            behind: HashSet::new(),
            recordings: GrowingRecordings::default(),
        }
    }

    /// The store, if it is open.
    pub fn into_store(self) -> Option<Store> {
        // Their threads have it open.
        drop(self.recordings);
        self.store
    }

    /// Answers a line that is no request. `why` is the reason.
    pub fn refuse(why: &str) -> (String, LineOutcome) {
        let error = PluginError::Request(why.to_owned()).to_string();
        (
            json!({"id": null, "error": error}).to_string(),
            LineOutcome { error: Some(error), ..LineOutcome::default() },
        )
    }

    /// Answers a line with one line, without a line feed. Recorded events are durable when it returns.
    pub fn answer(&mut self, line: &str) -> (String, LineOutcome) {
        let mut done = LineOutcome::default();
        let line = without_halves(line);
        let request: PluginRequest<'_> = match serde_json::from_str(&line) {
            Ok(request) => request,
            Err(error) => return Self::refuse(&error.to_string()),
        };
        done.op.clone_from(&request.op);
        let id = request.id.clone();
        let named = request.info.and_then(|info| serde_json::from_str::<SessionRecord>(info.get()).ok());
        let named = named.filter(|_| request.messages.is_some()).map(|named| named.id);
        let acted = match &named {
            Some(name) if self.behind.contains(name) && !request.whole => Err(PluginError::Behind),
            _ => self.act(&request, &mut done),
        };
        if let Some(name) = named {
            // Whether the name stood there before is of no interest.
            let _ = if acted.is_err() { self.behind.insert(name) } else { self.behind.remove(&name) };
        }
        match acted {
            Ok(mut answer) => {
                done.error = done.error.take().or_else(|| self.store.as_ref().and_then(damage::met));
                if let Some(answer) = answer.as_object_mut() {
                    answer.insert("id".to_owned(), id);
                }
                (answer.to_string(), done)
            }
            Err(error) => {
                let said = chained(&error);
                done.error = Some(said.clone());
                (json!({"id": id, "error": said}).to_string(), done)
            }
        }
    }

    fn act(&mut self, request: &PluginRequest<'_>, done: &mut LineOutcome) -> Result<Value, PluginError> {
        if request.op == "hello" {
            return Ok(self.hello());
        }
        let store = self.store()?;
        match &*request.op {
            "record" => {
                self.record(&store, request, done)?;
                Ok(json!({"events": done.event_count}))
            }
            "context" => {
                self.record(&store, request, done)?;
                self.context(&store, request, done)
            }
            "tool" => self.tool(&store, request, session_name(request, done)?),
            "due" => {
                let info = self.info(&session_name(request, done)?);
                let stream = info.id();
                let text = match (&request.folder, self.mode) {
                    (_, AttachMode::Suggest | AttachMode::Prune) if request.begun => {
                        // A compaction stands in the recording before this prompt. Each of the three is told without the others.
                        let read = self.host.format().map_or(Ok(()), |_| self.record(&store, request, done));
                        let index = lost::give(&store, &info).map_err(PluginError::from);
                        let texts = [read.map(|()| None), index, reminders(&store.session(info))];
                        joined(texts, done)
                    }
                    (Some(folder), AttachMode::Suggest | AttachMode::Prune) => {
                        crate::due::text(&store, folder, stream)?
                    }
                    _ => None,
                };
                done.has_answered = text.is_some();
                Ok(json!({"text": text}))
            }
            "compacting" => {
                let name = session_name(request, done)?;
                Ok(json!({"texts": self.kept(&store, &name)?}))
            }
            "stats" => {
                let name = session_name(request, done)?;
                Ok(json!({"text": store.view(store.find_stream(&name)?.id)?.stats().acp_block()}))
            }
            "log" => {
                let name = session_name(request, done)?;
                let view = store.view(store.find_stream(&name)?.id)?;
                let lines = view.state().log_lines(view.at(), HashForm::Shown);
                Ok(json!({"text": lines.join("\n")}))
            }
            other => Err(PluginError::Request(format!("there is no `{other}`"))),
        }
    }

    fn store(&mut self) -> Result<Store, PluginError> {
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        let store = (self.open)().map_err(PluginError::Open)?;
        self.store = Some(store.clone());
        Ok(store)
    }

    fn hello(&self) -> Value {
        let tools: Vec<Value> = if self.mode == AttachMode::Record {
            Vec::new()
        } else {
            let named = |name: &&str| {
                let tool = catalog::tools().into_iter().find(|tool| tool.name == *name)?;
                Some(
                    json!({"name": format!("acpdb_{name}"), "description": tool.description, "input": tool.input}),
                )
            };
            std::iter::once(context_tool()).chain(TOOLS.iter().filter_map(named)).collect()
        };
        json!({"protocol": PROTOCOL, "version": env!("CARGO_PKG_VERSION"), "mode": self.mode.name(), "tools": tools})
    }

    fn info(&self, session: &str) -> StreamInfo {
        StreamInfo::session(self.host.name(), session)
    }

    /// The changes that the host is to make to its messages.
    fn context(
        &self,
        store: &Store,
        request: &PluginRequest<'_>,
        done: &mut LineOutcome,
    ) -> Result<Value, PluginError> {
        let session = store.session(self.info(&done.session));
        if self.mode == AttachMode::Record {
            return Ok(json!({"changes": []}));
        }
        if self.host == Host::Pi {
            return self.context_of_recording(&session, request, done);
        }
        // The host shows injected texts with each request, so this one is injected: with the record that it was given, or it could be lost.
        if request.is_prompt
            && let Some(index) = lost::due(store, &self.info(&done.session))?
        {
            let told = fact::Injected { what: InjectedKind::Other, text: index.text.as_bytes().into() };
            // Its receipt is for callers that go on from there.
            let _ = session.append([index.given, told.into()])?;
        }
        let shown = PluginRenderer::new(preserves_thinking(&request.model));
        if self.mode == AttachMode::Suggest {
            // The notes below show the injected texts.
            let _ = inject(&session)?;
            let notes = shown.notes(&Served::of(&session.view()?))?;
            done.has_answered = !notes.is_empty();
            return Ok(json!({"changes": lines(&notes)}));
        }
        let options =
            ServeOptions { inject: true, mode: Self::waits(&session, request), ..ServeOptions::default() };
        let context = Step::begun(&session, request.key.as_str()).context(&shown, &options)?;
        let view = session.view()?;
        done.has_answered = !context.bytes.is_empty();
        let rebased = context.rebased.is_some();
        Ok(json!({
            "changes": lines(&context.bytes),
            "format": shown.format(),
            "epoch": context.served.epoch(),
            "tokens": context.tokens,
            "toast": rebased.then(|| toast(&view)),
        }))
    }

    /// The changes for a host whose recording is read. Due texts are told at the start of its session, so only results change.
    fn context_of_recording(
        &self,
        session: &Session,
        request: &PluginRequest<'_>,
        done: &mut LineOutcome,
    ) -> Result<Value, PluginError> {
        let view = match session.view() {
            Ok(view) if self.mode == AttachMode::Prune => view,
            // The host writes its file with the first answer.
            Ok(_) | Err(Error::NotFound { .. }) => return Ok(json!({"changes": []})),
            Err(error) => return Err(error.into()),
        };
        let is_bound = preserves_thinking(&request.model);
        let shown = PluginRenderer::new(is_bound);
        let options = ServeOptions { mode: Self::waits(session, request), ..ServeOptions::default() };
        let context = Step::begun(session, request.key.as_str()).context(&shown, &options)?;
        let stale = if is_bound { shown::stale(&context.served) } else { HashSet::new() };
        let mut signatures = Vec::new();
        for item in context.served.items().iter().filter(|item| stale.contains(&item.view.item)) {
            if let Some(signature) = item.view.provider_signature {
                signatures.push(view.text(signature)?);
            }
        }
        let mut changes = lines(&context.bytes);
        changes.retain(|change| change.get("call").is_some());
        done.has_answered = !changes.is_empty();
        Ok(json!({"changes": changes, "stale_signatures": signatures}))
    }

    /// Records the messages or the recording of a request.
    fn record(
        &self,
        store: &Store,
        request: &PluginRequest<'_>,
        done: &mut LineOutcome,
    ) -> Result<(), PluginError> {
        let Some(format) = self.host.format() else { return record(store, request, done) };
        done.session = session_name(request, done)?;
        let lacks = || PluginError::Lacks { op: request.op.clone(), member: "recording" };
        let path = request.recording.as_deref().ok_or_else(lacks)?;
        let recorded = self.recordings.import(store, path, format)?;
        (done.event_count, done.error) = (recorded.event_count, recorded.left_out);
        Ok(())
    }

    fn tool(
        &self,
        store: &Store,
        request: &PluginRequest<'_>,
        session: String,
    ) -> Result<Value, PluginError> {
        let lacks = || PluginError::Lacks { op: request.op.clone(), member: "name" };
        let name = request.name.as_deref().ok_or_else(lacks)?;
        if name == "context" {
            let stream = store.find_stream(&session)?.id;
            let reply = store.context_tool(stream, &request.arguments.to_string())?;
            // The model expects the change in the next request, even if a rewrite of the cache costs much.
            if !reply.hidden.is_empty() || !reply.shown.is_empty() {
                let name = store.session(self.info(&session));
                // The model does not need the number of changes.
                let _ = flush(&name)?;
            }
            return Ok(json!({"text": reply.text}));
        }
        let tools = Tools::new(store.clone(), Some(session), None);
        let empty = serde_json::Map::new();
        let arguments = request.arguments.as_object().unwrap_or(&empty);
        let reply = tools.call(name.strip_prefix("acpdb_").unwrap_or(name), arguments)?;
        Ok(json!({"text": reply.text}))
    }

    /// If reasoning is bound to all messages before it, sent messages stay until the user's next message.
    fn waits(
        session: &Session,
        request: &PluginRequest<'_>,
    ) -> Option<acpdb_engine::fold::policy::ServeMode> {
        let is_bound = preserves_thinking(&request.model) && !request.is_prompt;
        let has_reasoning = || {
            session.view().is_ok_and(|view| {
                view.current()
                    .iter()
                    .any(|item| item.kind == ItemKind::Reasoning && item.role == Role::Assistant)
            })
        };
        (is_bound && has_reasoning()).then_some(acpdb_engine::fold::policy::ServeMode::AppendOnly)
    }

    /// The texts to keep when the host makes its context shorter: open todos, remembered items, summaries.
    fn kept(&self, store: &Store, name: &str) -> Result<Vec<String>, PluginError> {
        if self.mode == AttachMode::Record {
            return Ok(Vec::new());
        }
        let session = store.session(self.info(name));
        let view = session.view()?;
        let mut texts = Vec::new();
        let todos = crate::due::todos(&view)?;
        if !todos.is_empty() {
            let rows: Vec<String> =
                todos.iter().map(|(text, status)| format!("- [{status}] {text}")).collect();
            texts.push(format!("Open todos, to be kept as they are:\n{}", rows.join("\n")));
        }
        let mut facts = Vec::new();
        for item in view.current() {
            let is_memory = item.injected == Some(InjectedKind::Memory);
            let is_distilled = item.output.state == FaceState::Summary;
            if (is_memory || is_distilled) && facts.len() < FACT_COUNT_MAX {
                facts.push(view.shown(item.ix, Face::Output)?.text);
            }
        }
        if !facts.is_empty() {
            texts.push(format!("Facts to be kept:\n{}", facts.join("\n")));
        }
        Ok(texts)
    }
}

/// The context tool, as its documents have it.
fn context_tool() -> Value {
    json!({
        "name": "context",
        "description": "Makes room in the context. discard hides, distill hides behind a summary of what matters, restore shows \
            again. A target is the hash under a result, such as r_a1b2c, a range of work from one to another, such as \
            r_a1b2c..e_4c5d6, or `beginning...end` of a text of yours; distill takes a summary with each. Nothing is lost: everything stays in the history.",
        "input": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["discard", "distill", "restore"]},
                "targets": {
                    "type": "array", "minItems": 1,
                    "description": "[[target], ..]; for distill [[target, summary], ..]",
                    "items": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
                },
            },
            "required": ["action", "targets"],
            "additionalProperties": false,
        },
    })
}

/// Records the messages of a request.
fn record(store: &Store, request: &PluginRequest<'_>, done: &mut LineOutcome) -> Result<(), PluginError> {
    let lacks = |member| PluginError::Lacks { op: request.op.clone(), member };
    let info = request.info.ok_or_else(|| lacks("info"))?.get();
    let messages = request.messages.map_or("[]", RawValue::get);
    let named: SessionRecord = serde_json::from_str(info).map_err(|_| lacks("info.id"))?;
    done.session = named.id;
    done.event_count =
        recording::opencode_messages(store, &format!(r#"{{"info":{info},"messages":{messages}}}"#))?;
    Ok(())
}

/// The texts that were had, as one; the first fault is told in the journal.
fn joined(
    texts: impl IntoIterator<Item = Result<Option<String>, PluginError>>,
    done: &mut LineOutcome,
) -> Option<String> {
    let mut had = Vec::new();
    for text in texts {
        match text {
            Ok(text) => had.extend(text),
            Err(error) => done.error = done.error.take().or_else(|| Some(chained(&error))),
        }
    }
    (!had.is_empty()).then(|| had.join("\n"))
}

fn session_name(request: &PluginRequest<'_>, done: &mut LineOutcome) -> Result<String, PluginError> {
    let lacks = || PluginError::Lacks { op: request.op.clone(), member: "session" };
    let name = request.session.clone().ok_or_else(lacks)?;
    done.session.clone_from(&name);
    Ok(name)
}

/// Lines of JSON as a list.
fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    // The exporter wrote each of them as an object on a line of its own.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The reminder and the reflection that are due in a session, for a host that shows them with a prompt. They are recorded as shown.
fn reminders(session: &Session) -> Result<Option<String>, PluginError> {
    let due = match Injection::due(session) {
        Err(Error::NotFound { .. }) => return Ok(None),
        due => due?,
    };
    let due: Vec<Injection> = due.into_iter().filter(|due| due.what != InjectedKind::Memory).collect();
    if due.is_empty() {
        return Ok(None);
    }
    let entries = due
        .iter()
        .map(|due| Entry::from(fact::Injected { what: due.what, text: due.text.as_bytes().into() }));
    // The seq is of no use to the plug-in.
    let _ = session.append(entries)?;
    let texts: Vec<&str> = due.iter().map(|due| due.text.as_str()).collect();
    Ok(Some(texts.join("\n\n")))
}

/// The effect of a rewrite of the context, in a line.
fn toast(view: &View) -> String {
    let now = view.stats();
    // Summaries that are longer than their originals free nothing.
    let freed = now.tokens_whole.saturating_sub(now.tokens_shown);
    format!("acpdb: ~{freed} tokens of {} are hidden, each can be restored", now.tokens_whole)
}

/// An error with its causes, on one line.
pub fn chained(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // Transparent errors repeat their cause's text.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}
