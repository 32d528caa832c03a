//! The tools themselves. A mistake of the model comes back as a text that says what to change.

use std::path::Path;

use acpdb_engine::event::{Scope, ToolClass};
use acpdb_engine::fold::Ix;
use acpdb_engine::ids::{ItemId, Micros};
use acpdb_engine::{Error, MemoryScope, Store, View, store::StreamName};
use acpdb_query::search::ModelVisibility;
use acpdb_query::sound::or_lost;
use acpdb_query::{Filter, FindError, ParseError};
use acpdb_serve::Reminder;
use serde_json::{Map, Value, json};

use super::catalog;
use crate::{damage, due};

mod remembering;
pub mod tasks;

use remembering::NamedBy;

/// Items that a search gives by default.
const RECALL_COUNT: usize = 10;
/// Most items that a search gives.
const RECALL_COUNT_MAX: u64 = 50;
/// Sessions that a search goes through, the newest first.
const SESSION_COUNT_MAX: usize = 50;
/// Characters around the found words.
const EXCERPT_CHARS: usize = 160;

/// The reply of a tool.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolReply {
    /// For the model.
    pub text: String,
    /// The same as a value, as the tool's schema says.
    pub value: Value,
}

/// Why a tool gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool {0}")]
    Unknown(String),
    /// An argument is missing or wrong.
    #[error("{0}")]
    Argument(String),
    /// The session is of another project.
    #[error("session {0} is of another project; acpdb mcp --all-projects lets this server read those, too")]
    OtherProject(String),
    /// No session is recorded here, and those of other folders are of other projects.
    #[error("no session is recorded here yet; name the one that is meant, in session")]
    NoSession,
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
}

/// The tools over one store.
#[derive(Clone, Debug)]
pub struct Tools {
    store: Store,
    /// The session for calls that name none.
    session: Option<String>,
    /// The working folder.
    folder: Option<String>,
    /// Sessions of all projects may be read, and not only those of this one.
    reach: ProjectReach,
}

/// The sessions that a server may read. A text of another project may say anything, and would go to this project's provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProjectReach {
    /// Those of the project in whose folder it runs, and those that name no folder.
    #[default]
    Own,
    /// All.
    All,
}

impl Tools {
    /// Tools over `store`, for this session, else for the newest one of this folder.
    pub fn new(store: Store, session: Option<String>, folder: Option<String>) -> Self {
        Self { store, session, folder, reach: ProjectReach::default() }
    }

    /// The same tools, with this reach.
    #[must_use]
    pub fn reaching(self, reach: ProjectReach) -> Self {
        Self { reach, ..self }
    }

    /// The store.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Runs a tool. Durable when it returns, if it records something. An answer that leaves out damaged texts says so.
    ///
    /// # Errors
    /// For an unknown tool or session, arguments that are wrong, and errors of the store.
    pub fn call(&self, name: &str, arguments: &Map<String, Value>) -> Result<ToolReply, ToolError> {
        let mut reply = self.reply(name, arguments)?;
        if let Some(damage) = damage::met(&self.store) {
            reply.text = format!("{}\n[{damage}]", reply.text);
        }
        Ok(reply)
    }

    fn reply(&self, name: &str, arguments: &Map<String, Value>) -> Result<ToolReply, ToolError> {
        let tool = catalog::tools().into_iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| ToolError::Unknown(name.to_owned()))?;
        check(&tool, arguments)?;
        let session = arguments.get("session").and_then(Value::as_str).filter(|name| !name.is_empty());
        match name {
            "context_discard" => self.act("discard", session, arguments),
            "context_distill" => self.act("distill", session, arguments),
            "context_restore" => self.act("restore", session, arguments),
            "recall" => self.recall(session, arguments),
            "history_chain" => self.chain(session, text(arguments, "item")?),
            "explain" => self.explain(session, text(arguments, "item")?),
            "todo" => self.todo(session),
            "memory_remember" => self.remember(session, arguments),
            "memory_supersede" => self.supersede(session, arguments),
            "memory_recall" => self.remembered(session, arguments),
            "memory_forget" => self.forget(session, arguments),
            "task_update" => self.update_tasks(session, arguments),
            "tasks" => self.tasks(session),
            other => Err(ToolError::Unknown(other.to_owned())),
        }
    }

    /// The session that a call is about: the newest one of this folder, else of the nearest one above, else of those that name no
    /// folder. A session of another folder is never guessed, since a tool may write to its project's memory.
    ///
    /// # Errors
    /// If there is none, or none of that name.
    pub fn session(&self, named: Option<&str>) -> Result<StreamName, ToolError> {
        if let Some(name) = named {
            let found = self.store.find_stream(name)?;
            return self.reached(found);
        }
        if let Some(name) = &self.session {
            return Ok(self.store.find_stream(name)?);
        }
        let Some(folder) = &self.folder else { return Ok(self.store.find_stream("latest")?) };
        let mut sessions = self.all_sessions()?;
        let nearest = nearest(&sessions, &self.store.project_moves()?.folder(folder));
        sessions.retain(|name| name.folder == nearest);
        self.store.newest_of(sessions)?.ok_or(ToolError::NoSession)
    }

    /// The session, if this server may read it.
    ///
    /// # Errors
    /// [`ToolError::OtherProject`]; errors of the store.
    pub fn reached(&self, session: StreamName) -> Result<StreamName, ToolError> {
        if self.reach == ProjectReach::All || self.is_own(&session, self.own_folders()?.as_ref()) {
            return Ok(session);
        }
        Err(ToolError::OtherProject(session.name))
    }

    /// The folders whose sessions are this project's: that of the server's session, the working folder, and the nearest one above it
    /// that has sessions. `None`: without any, no project is another one.
    fn own_folders(&self) -> Result<Option<Vec<String>>, ToolError> {
        let mut own: Vec<String> = Vec::new();
        if let Some(folder) = &self.folder {
            let folder = self.store.project_moves()?.folder(folder).into_owned();
            own.extend(nearest(&self.all_sessions()?, &folder));
            own.push(folder);
        }
        if let Some(name) = &self.session {
            match self.store.find_stream(name) {
                Ok(session) => own.extend(session.folder),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((!own.is_empty()).then_some(own))
    }

    fn is_own(&self, session: &StreamName, folders: Option<&Vec<String>>) -> bool {
        let is_this = self.session.as_ref().is_some_and(|name| *name == session.name);
        match (folders, &session.folder) {
            (Some(own), Some(folder)) => is_this || own.contains(folder),
            _ => true,
        }
    }

    /// As [`Self::session`]; `None` if the call names no session, and the one that it is about is not recorded yet.
    pub(super) fn here(&self, named: Option<&str>) -> Result<Option<StreamName>, ToolError> {
        match self.session(named) {
            Err(ToolError::NoSession | ToolError::Store(Error::NotFound { .. })) if named.is_none() => {
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// A sentence about the session that is not recorded yet.
    pub(super) fn not_yet(&self) -> String {
        match &self.session {
            Some(name) => format!("session {name} is not recorded yet"),
            None => "no session is recorded here yet".to_owned(),
        }
    }

    /// The sessions that this server may read, but for those of subagents.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn sessions(&self) -> Result<Vec<StreamName>, ToolError> {
        let mut sessions = self.all_sessions()?;
        if self.reach == ProjectReach::Own {
            let folders = self.own_folders()?;
            sessions.retain(|session| self.is_own(session, folders.as_ref()));
        }
        Ok(sessions)
    }

    fn all_sessions(&self) -> Result<Vec<StreamName>, ToolError> {
        let mut names = self.store.stream_names()?;
        names.retain(|name| name.scope == Scope::Session && name.parent.is_none());
        Ok(names)
    }

    fn act(
        &self,
        action: &str,
        session: Option<&str>,
        arguments: &Map<String, Value>,
    ) -> Result<ToolReply, ToolError> {
        // Without any target, the reply is that of the tool.
        let targets = arguments.get("targets").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let row = |target: &Value| match target {
            Value::String(text) => Ok(json!([text])),
            Value::Object(pair) => Ok(json!([text(pair, "target")?, pair.get("summary")])),
            other => Err(ToolError::Argument(format!("{other} is no target"))),
        };
        let rows = targets.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        let stream = self.session(session)?.id;
        let call = json!({"action": action, "targets": rows}).to_string();
        let reply = self.store.context_tool(stream, &call)?;
        let ids = |items: &[ItemId]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
        let value = json!({"reply": reply.text, "hidden": ids(&reply.hidden), "shown": ids(&reply.shown)});
        Ok(ToolReply { text: reply.text, value })
    }

    fn recall(&self, session: Option<&str>, arguments: &Map<String, Value>) -> Result<ToolReply, ToolError> {
        let query = text(arguments, "query")?;
        if let Some(exact) = self.exact(session, query.trim())? {
            return Ok(exact);
        }
        let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(RECALL_COUNT as u64);
        let limit = usize::try_from(limit.clamp(1, RECALL_COUNT_MAX)).unwrap_or(RECALL_COUNT);
        let (filter, remark) = filter(query, self.store.now())?;
        let is_of_all = arguments.get("all_sessions").and_then(Value::as_bool).unwrap_or_default();
        let mut streams = match (is_of_all, session) {
            (true, Some(_)) => {
                return Err(ToolError::Argument("give session or all_sessions, not both".to_owned()));
            }
            (true, None) => self.sessions()?,
            (false, _) => {
                let Some(stream) = self.here(session)? else {
                    let text = format!("{}; all_sessions searches the earlier ones", self.not_yet());
                    return Ok(ToolReply { text, value: json!({"items": []}) });
                };
                vec![stream]
            }
        };
        streams.sort_by_key(|stream| std::cmp::Reverse(stream.head));
        let mut items = Vec::new();
        // Once, and not for each session.
        let filter = acpdb_query::settled(&self.store, filter)?;
        for stream in streams.into_iter().take(SESSION_COUNT_MAX) {
            if items.len() >= limit {
                break;
            }
            let view = self.store.view(stream.id)?;
            let is_sent = !view.state().served(view.at()).is_empty();
            for row in acpdb_query::item_rows(&self.store, &view, &stream, &filter)? {
                // Damage costs the row that it is in, and is told with the answer; a missing key is an error.
                let Ok(row) = or_lost(row)? else { continue };
                let excerpt = excerpt(&texts(&self.store, &stream, &row.item)?, query);
                items.push(json!({"item": row.item, "session": row.session, "turn": row.turn, "tool": row.tool, "hash": row.hash,
                    "keys": row.keys, "in_context": row.in_context, "seen": ModelVisibility::of_row(&row, is_sent), "excerpt": excerpt}));
                if items.len() >= limit {
                    break;
                }
            }
        }
        let said: Vec<String> = items.iter().map(said_of).collect();
        let text = if said.is_empty() { "0 items matched".to_owned() } else { said.join("\n") };
        Ok(ToolReply { text: format!("{text}{remark}"), value: json!({"items": items}) })
    }

    /// The whole text of the item that a query names by its id; `None`: it is words to look for.
    fn exact(&self, session: Option<&str>, query: &str) -> Result<Option<ToolReply>, ToolError> {
        let may_be_id = query.starts_with(['#', '@']) || query.contains('_');
        if !may_be_id || query.contains(|sign: char| sign.is_whitespace() || matches!(sign, ':' | '"')) {
            return Ok(None);
        }
        // A word that names no item is looked for.
        let Ok((stream, view, ix)) = self.found(session, query) else { return Ok(None) };
        let Some(item) = view.state().item(ix, view.at()) else { return Ok(None) };
        let bodies = item.content.iter().map(|part| part.body);
        // The words of a change are its parameters; its result says only that it was made.
        let is_change = matches!(item.class, Some(ToolClass::Write | ToolClass::Edit));
        let params = item.params.filter(|_| is_change || item.content.is_empty());
        let text = |body| Ok(or_lost(view.text(body))?.unwrap_or_else(|lost| format!("[{lost}]")));
        let texts = params.into_iter().chain(bodies).map(text).collect::<Result<Vec<_>, Error>>()?;
        let text = texts.join("\n");
        let row = json!({"item": item.item.to_string(), "session": stream.name, "turn": item.turn.get(), "tool": item.tool,
            "hash": item.hash, "keys": item.keys, "in_context": item.in_context, "text": text});
        Ok(Some(ToolReply { text, value: json!({"items": [row]}) }))
    }

    /// The item that a text names, in the named session. Without a name, an item of this session goes before those of all others.
    fn found(&self, session: Option<&str>, item: &str) -> Result<(StreamName, View, Ix), ToolError> {
        let stream = self.here(session)?;
        let found = match acpdb_query::find(&self.store, item, stream.as_ref()) {
            Err(FindError::NotFound { .. } | FindError::OtherSession { .. }) if session.is_none() => {
                acpdb_query::find(&self.store, item, None)
            }
            found => found,
        };
        let found = found.map_err(|error| ToolError::Argument(error.to_string()))?;
        let ix = found.ix.ok_or_else(|| ToolError::Argument(format!("{item} is no item of a context")))?;
        Ok((self.reached(found.stream)?, found.view, ix))
    }

    fn chain(&self, session: Option<&str>, item: &str) -> Result<ToolReply, ToolError> {
        // An id of memory is a short word; that of a call begins otherwise.
        let found = match self.memory_chain(session, item, NamedBy::Id)? {
            Some(chain) => return Ok(chain),
            None => self.found(session, item),
        };
        let (stream, view, ix) = match found {
            Err(error) => {
                let chain = self.memory_chain(session, item, NamedBy::Words)?;
                return chain.ok_or(error);
            }
            Ok(found) => found,
        };
        let chain = acpdb_query::chain(&view, &stream.name, ix);
        let chain = chain.ok_or_else(|| ToolError::Argument(format!("{item} is in no chain")))?;
        let chain = json!(chain);
        let value = json!({"chain": chain});
        Ok(ToolReply { text: chain.to_string(), value })
    }

    fn explain(&self, session: Option<&str>, item: &str) -> Result<ToolReply, ToolError> {
        let (stream, view, ix) = match self.found(session, item) {
            Err(error) => self.newest_view(session, item)?.ok_or(error)?,
            Ok(found) => found,
        };
        let explained = acpdb_query::explain(&view, &stream.name, ix);
        let explained =
            explained.ok_or_else(|| ToolError::Argument(format!("{item} is no item of a context")))?;
        let changed = view.state().info(view.at()).and_then(|info| info.title.clone());
        let title = acpdb_query::titles::title_of(&self.store, &stream, changed.as_deref())?;
        let mut text = explained.headline(&stream.host, title.as_deref());
        for sentence in &explained.sentences {
            text.push('\n');
            text.push_str(sentence);
        }
        if explained.is_restorable() {
            let target = explained.row.hash.as_ref().unwrap_or(&explained.row.item);
            text.push_str(&format!("\ncontext_restore with the target {target} shows it again"));
        }
        Ok(ToolReply { text, value: json!({"explanation": explained}) })
    }

    /// The newest view of a file, in the named session, else in this one, else in the newest one that has one.
    fn newest_view(
        &self,
        session: Option<&str>,
        path: &str,
    ) -> Result<Option<(StreamName, View, Ix)>, ToolError> {
        let mut streams: Vec<StreamName> = self.here(session)?.into_iter().collect();
        if session.is_none() {
            let mut others = self.sessions()?;
            others.sort_by_key(|stream| std::cmp::Reverse(stream.head));
            streams.extend(others.into_iter().take(SESSION_COUNT_MAX));
        }
        for stream in streams {
            let view = self.store.view(stream.id)?;
            let newest = acpdb_query::blame::newest_view(&view, &stream.name, path);
            // A row names its item as `ItemId` writes it.
            let item = newest.and_then(|(item, _)| item.parse::<ItemId>().ok());
            let ix = item.and_then(|item| view.state().find(item));
            if let Some(ix) = ix {
                return Ok(Some((stream, view, ix)));
            }
        }
        Ok(None)
    }

    fn todo(&self, session: Option<&str>) -> Result<ToolReply, ToolError> {
        let Some(stream) = self.here(session)? else {
            return Ok(ToolReply { text: self.not_yet(), value: json!({"todos": [], "reminder_due": null}) });
        };
        let view = self.store.view(stream.id)?;
        let todos = due::todos(&view)?;
        let said: Vec<String> =
            todos.iter().map(|(content, status)| format!("[{status}] {content}")).collect();
        let text = if said.is_empty() { "nothing is open".to_owned() } else { said.join("\n") };
        let rows: Vec<Value> = todos
            .into_iter()
            .map(|(content, status)| json!({"content": content, "status": status}))
            .collect();
        Ok(ToolReply { text, value: json!({"todos": rows, "reminder_due": Reminder::due(&view)}) })
    }

    /// The memory of the session's project, else of the folder's.
    pub(super) fn scope(&self, session: Option<&str>) -> Result<MemoryScope, ToolError> {
        match self.session(session) {
            Ok(stream) => Ok(MemoryScope::session(stream.id)),
            Err(ToolError::NoSession | ToolError::Store(Error::NotFound { .. }))
                if session.is_none() && self.folder.is_some() =>
            {
                Ok(MemoryScope { session: None, project: self.folder.clone() })
            }
            Err(error) => Err(error),
        }
    }
}

/// The folder of sessions that is the working folder or the nearest one above it.
fn nearest(sessions: &[StreamName], folder: &str) -> Option<String> {
    let above = sessions.iter().filter_map(|name| name.folder.as_deref());
    let above = above.filter(|above| Path::new(folder).starts_with(above));
    above.max_by_key(|above| above.len()).map(str::to_owned)
}

/// Holds the arguments of a call against the schema of its tool. An argument that is passed over would make the tool act on
/// something else than was meant. A host may write `null` for an argument that is not given.
fn check(tool: &catalog::ToolDescription, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let empty = Map::new();
    let known = tool.input.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for (name, value) in arguments {
        let Some(schema) = known.get(name) else {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let said = format!("there is no argument {name}; {} takes: {}", tool.name, names.join(", "));
            return Err(ToolError::Argument(said));
        };
        let (fits, kind) = match schema.get("type").and_then(Value::as_str) {
            Some("string") => (value.is_string(), "a text"),
            Some("integer") => (value.is_u64(), "a whole number"),
            Some("boolean") => (value.is_boolean(), "true or false"),
            Some("array") => (value.is_array(), "a list"),
            Some("object") => (value.is_object(), "an object"),
            _ => (true, "a value"),
        };
        if !fits && !value.is_null() {
            return Err(ToolError::Argument(format!("{name} is {kind}")));
        }
    }
    Ok(())
}

/// The filter of a query, and a remark for the model. A query that is no filter is searched as a text, unless it names a field.
fn filter(query: &str, now: Micros) -> Result<(Filter, &'static str), ToolError> {
    let wrong = |error: ParseError| {
        let hint = error.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
        ToolError::Argument(format!("{error}{hint}"))
    };
    let error = match Filter::parse(query, now) {
        Ok(filter) => return Ok((filter, "")),
        Err(error) => error,
    };
    let is_field = |name: &str| acpdb_query::filter::words::field(&name.to_lowercase()).is_some();
    let mut names = query.split_whitespace().filter_map(|word| word.split_once(':'));
    if names.any(|(name, _)| is_field(name.trim_start_matches(['-', '(', '!']))) {
        return Err(wrong(error));
    }
    let plain = query.replace(['"', '\\'], " ");
    let filter = Filter::parse(&format!("text:\"{}\"", plain.trim()), now).map_err(wrong)?;
    Ok((filter, "\n[searched as a text]"))
}

pub(super) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, ToolError> {
    let found = arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    found.ok_or_else(|| ToolError::Argument(format!("give {name} as a text")))
}

fn said_of(item: &Value) -> String {
    let part = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let stands = match part("seen") {
        "seen" => String::new(),
        other => format!(" [{}]", other.replace('_', " ")),
    };
    format!("{} {} {}{stands}: {}", part("item"), part("session"), part("tool"), part("excerpt"))
}

/// The texts of an item: parameters, then content. In place of an erased or damaged text, the error's words.
///
/// # Errors
/// If there is no such item, or the log cannot be read.
pub fn texts(store: &Store, stream: &StreamName, item: &str) -> Result<String, ToolError> {
    let found = acpdb_query::find(store, item, Some(stream));
    let found = found.map_err(|error| ToolError::Argument(error.to_string()))?;
    // An event that recorded no item has no texts.
    let Some(ix) = found.ix else { return Ok(String::new()) };
    let bodies: Vec<_> = {
        let Some(item) = found.view.state().item(ix, found.view.at()) else { return Ok(String::new()) };
        item.params.into_iter().chain(item.content.iter().map(|part| part.body)).collect()
    };
    let text = |body| Ok(or_lost(found.view.text(body))?.unwrap_or_else(|lost| format!("[{lost}]")));
    Ok(bodies.into_iter().map(text).collect::<Result<Vec<_>, Error>>()?.join("\n"))
}

/// The surroundings of the first word of a query in a text, else its beginning.
fn excerpt(text: &str, query: &str) -> String {
    let lower = text.to_lowercase();
    let words = query.split_whitespace().filter(|word| !word.contains(':'));
    let place =
        words.filter_map(|word| lower.find(&word.trim_matches('"').to_lowercase())).min().unwrap_or(0);
    let before = lower.get(..place).map_or(0, |before| before.chars().count());
    // Near the beginning of a text nothing is cut off before it.
    let first = before.saturating_sub(EXCERPT_CHARS / 4);
    let piece: String =
        text.chars().skip(first).take(EXCERPT_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let lead = if first > 0 { ".." } else { "" };
    let tail = if text.chars().nth(first.saturating_add(EXCERPT_CHARS)).is_some() { ".." } else { "" };
    format!("{lead}{piece}{tail}")
}
