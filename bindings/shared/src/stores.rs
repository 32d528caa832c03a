//! Operations on a store as a whole.

use std::path::Path;
use std::sync::Arc;

use acpdb_engine::command::memory::{MemoryCommand, MemoryRef};
use acpdb_engine::entry::{Entry, Fact, MemoryEntry, StreamInfo};
use acpdb_engine::event::{Lifespan, Recorded, Scope};
use acpdb_engine::fold::Policy;
use acpdb_engine::fold::memory::MemoryStatus;
use acpdb_engine::fold::policy::ServeMode;
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::{
    Commit, Error, Memory, MemoryScope, Store,
    store::{StreamName, VerifyOptions},
};
use acpdb_hosts::export::Format;
use acpdb_hosts::lint::RequestFacts;
use acpdb_query::cost::PriceTable;
use acpdb_query::export::rows::{self, RowsReport};
use acpdb_query::memory::{self, RememberedItem};
use acpdb_query::search::{PatternSyntax, Patterns, SearchHit, SearchQuestion, search, search_whole};
use acpdb_query::simulate::{self, PriceList, SessionRecording, Setup};
use acpdb_query::{Filter, Scanned, SessionRow, when};
use serde::Serialize;
use serde_json::{Value, json};

use crate::answers::MemoryAnswer;
use crate::arguments::Arguments;
use crate::fault::{Fault, word};

/// Policies that are compared if the caller names none.
const POLICIES: [&str; 4] = ["acp", "balanced", "careful", "economy"];

/// The format of this name.
pub fn format(name: &str) -> Result<Format, Fault> {
    Format::from_name(name).ok_or_else(|| no_format(name, &[]))
}

/// There is no format of this name. `more` are those of the operation that are no [`Format`].
pub(crate) fn no_format(name: &str, more: &[&str]) -> Fault {
    let known: Vec<&str> =
        Format::ALL.iter().map(|format| format.name()).chain(more.iter().copied()).collect();
    Fault::invalid(format!("there is no format {name:?}; there are {}", known.join(", ")))
}

/// The filter of this text.
pub fn filter(store: &Store, text: &str) -> Result<Filter, Fault> {
    Filter::parse(text, store.now()).map_err(|error| {
        let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        Fault::invalid(format!("{error}{hint}"))
    })
}

/// The session of a host's names; nothing is read or written.
pub fn session(it: &Arguments) -> Result<StreamInfo, Fault> {
    let (key, host) = (it.text("key")?, it.text("host")?);
    if key.is_empty() {
        return Err(Fault::invalid("a session's key is empty; give the id that your host has for it"));
    }
    let (parent, call) = (it.word("parent")?, it.owned("parent_call")?);
    let parent = parent.map(|parent| (acpdb_engine::event::stream_id(Scope::Session, host, parent), call));
    let (project, cwd, title) = (it.owned("project")?, it.owned("cwd")?, it.owned("title")?);
    Ok(StreamInfo { project, cwd, title, parent, ..StreamInfo::session(host, key) })
}

/// Projects that an error names.
const PROJECTS_SHOWN: usize = 8;

/// The memory's scope: the named project, else the only one.
pub fn scope(store: &Store, project: Option<String>) -> Result<MemoryScope, Fault> {
    if let Some(project) = project {
        return Ok(MemoryScope::project(project));
    }
    let projects = store.project_names()?;
    match projects.as_slice() {
        [only] => Ok(MemoryScope::project(only)),
        [] => Err(Fault::invalid(
            "no project of this store has a memory yet; name one as project: it comes about with the first thing that it remembers",
        )),
        many => Err(Fault::invalid(format!(
            "there are {} projects in this store; name one as project: {}",
            many.len(),
            many.iter().take(PROJECTS_SHOWN).cloned().collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// Rows of sessions, in order of first events.
pub fn sessions(store: &Store, text: &str) -> Result<Vec<SessionRow>, Fault> {
    let filter = acpdb_query::settled(store, filter(store, text)?)?;
    Ok(acpdb_query::sessions(store, store.head()?, &filter)?.collect::<Result<_, Error>>()?)
}

/// The query of a search.
#[derive(Clone, Debug)]
pub struct Looked {
    /// Texts that all have to match.
    pub patterns: Vec<String>,
    /// A filter, or an empty text.
    pub filter: String,
    /// The texts are regular expressions.
    pub regex: bool,
    /// Whole words only.
    pub word: bool,
    /// Letters' case matters.
    pub case: bool,
    /// Lines around each match.
    pub lines: usize,
    /// Most hits.
    pub limit: usize,
}

impl Looked {
    /// The query of a call's arguments.
    pub(crate) fn of(it: &Arguments) -> Result<Self, Fault> {
        Ok(Self {
            patterns: it.texts("patterns")?,
            filter: it.text("filter")?.to_owned(),
            regex: it.flag("regex")?,
            word: it.flag("word")?,
            case: it.flag("case")?,
            lines: it.size("lines")?.unwrap_or_default(),
            limit: it.size("limit")?.unwrap_or(usize::MAX),
        })
    }

    /// The question as of a seq.
    pub fn question(&self, store: &Store, at: Seq) -> Result<SearchQuestion, Fault> {
        if self.patterns.iter().all(String::is_empty) {
            return Err(Fault::invalid("there is nothing to look for: give a text"));
        }
        let reading = PatternSyntax { regex: self.regex, word: self.word, case: self.case };
        let patterns =
            Patterns::new(&self.patterns, reading).map_err(|error| Fault::invalid(error.to_string()))?;
        let filter = acpdb_query::settled(store, filter(store, &self.filter)?)?;
        Ok(SearchQuestion { patterns, filter, at, context: self.lines, places: 3 })
    }
}

/// Hits in all sessions, the newest first.
pub fn found(store: &Store, looked: &Looked) -> Result<Value, Fault> {
    let question = looked.question(store, store.head()?)?;
    Ok(hits(store, None, &question, looked.limit)?)
}

/// Hits in one session or in all, the newest sessions first, in the form that `acpdb search --json` prints.
pub(crate) fn hits(
    store: &Store,
    only: Option<StreamName>,
    question: &SearchQuestion,
    limit: usize,
) -> Result<Value, Error> {
    let search = if only.is_some() { search_whole } else { search };
    let streams = if let Some(only) = only {
        vec![only]
    } else {
        let mut streams = store.stream_names()?;
        streams.retain(|name| {
            (name.scope == Scope::Session || question.filter.is_empty())
                && acpdb_query::may_hold(&question.filter, name)
        });
        streams.sort_by_key(|name| std::cmp::Reverse((name.began, name.head)));
        streams
    };
    let mut scanned = Scanned::default();
    let mut items: Vec<SearchHit> = Vec::new();
    for stream in &streams {
        if items.len() >= limit {
            break;
        }
        search(store, stream, question, &mut scanned, &mut |hit| {
            items.push(hit);
            items.len() < limit
        })?;
    }
    Ok(json!({"items": items, "scanned": scanned}))
}

/// The items that a project remembers; with `all` every one that it ever did.
pub fn memory(
    store: &Store,
    project: Option<String>,
    at: Option<&str>,
    all: bool,
) -> Result<Vec<RememberedItem>, Fault> {
    let scope = scope(store, project)?;
    let seq = match at {
        Some(text) => when::resolve(store, text, store.now())?.seq,
        None => Seq::MAX,
    };
    Ok(remembered(store, &scope, seq, store.now(), all)?)
}

/// The newest event that a project's memory may rest on; 0 if there is none.
pub fn memory_head(store: &Store, project: Option<String>) -> Result<Seq, Fault> {
    let memory = memory_if_there(store, &scope(store, project)?, Seq::MAX)?;
    Ok(memory.map_or(Ok(Seq::ZERO), |memory| memory.head())?)
}

/// The memory of a scope as of a seq. A project without memory does not exist yet.
fn memory_if_there(store: &Store, scope: &MemoryScope, at: Seq) -> Result<Option<Memory>, Error> {
    match store.memory(scope, at) {
        Err(Error::NotFound { what: "project", .. }) => Ok(None),
        found => found.map(Some),
    }
}

/// The items that a scope remembers as of a seq, or with `all` ever did.
pub(crate) fn remembered(
    store: &Store,
    scope: &MemoryScope,
    at: Seq,
    now: Micros,
    all: bool,
) -> Result<Vec<RememberedItem>, Error> {
    let found = memory_if_there(store, scope, at)?;
    let mut rows = found.map_or_else(Vec::new, |found| memory::rows(store, &found, now));
    rows.retain(|row| all || (row.standing == MemoryStatus::Current && !row.shadowed));
    Ok(rows)
}

/// The memory item of an entry made by `Entry.memory`.
pub fn memory_entry(entries: &[Entry]) -> Result<MemoryEntry, Fault> {
    match entries {
        [Entry { fact: Fact::Memory(item), .. }] => Ok(item.clone()),
        _ => Err(Fault::invalid("an entry that is to be remembered is made by Entry.memory")),
    }
}

/// The entry, if it can be a memory item.
pub fn checked(entry: MemoryEntry) -> Result<MemoryEntry, Fault> {
    let is_keyless = entry.key.as_deref().unwrap_or_default().is_empty();
    if entry.value.is_empty() {
        return Err(Fault::invalid("value is empty: there is nothing to remember"));
    }
    if entry.kind == acpdb_engine::event::MemoryKind::Preference && is_keyless {
        return Err(Fault::invalid("a preference needs key, such as key='package_manager'"));
    }
    Ok(entry)
}

/// Records a memory item of a project, and makes the project if needed.
pub fn remember(
    store: &Store,
    project: Option<String>,
    mut item: MemoryEntry,
) -> Result<MemoryAnswer, Fault> {
    // Without a session, the item cannot end with one.
    item.lifespan = item.lifespan.or(Some(Lifespan::Project));
    let scope = scope(store, project)?;
    let item = memory::placed(store, &scope, item)?;
    Ok(store.remember(&scope, &MemoryCommand::Add(item))?.into())
}

/// A command on a project's memory.
pub fn remembered_by(
    store: &Store,
    project: Option<String>,
    command: &MemoryCommand,
) -> Result<MemoryAnswer, Fault> {
    Ok(store.remember(&scope(store, project)?, command)?.into())
}

/// A command on one memory item: `retract`, `reinforce`, `restore`; or `supersede` by another.
pub fn memory_command(
    act: &str,
    item: &str,
    other: Option<&str>,
    reason: Option<String>,
) -> Result<MemoryCommand, Fault> {
    let item = memory_ref(item);
    Ok(match (act, other) {
        ("retract", None) => MemoryCommand::Retract { item, reason },
        ("reinforce", None) => MemoryCommand::Reinforce { item },
        ("restore", None) => MemoryCommand::Restore { item },
        ("supersede", Some(new)) => MemoryCommand::Supersede { old: item, new: memory_ref(new), reason },
        _ => return Err(Fault::invalid(format!("there is no act {act:?} on memory"))),
    })
}

/// A memory item by its id or its `#seq`.
fn memory_ref(text: &str) -> MemoryRef {
    let item = text.strip_prefix('#').and_then(|_| text.parse().ok());
    item.map_or_else(|| MemoryRef::Id(text.to_owned()), MemoryRef::Item)
}

/// An event in a line: its kind and its session.
#[derive(Clone, Debug, Serialize)]
pub struct EventRow {
    seq: Seq,
    kind: &'static str,
    stream: StreamId,
    host: Option<String>,
    session: Option<String>,
    scope: Option<Scope>,
    recorded_at: i64,
}

/// The row of an event.
pub fn event_row(store: &Store, recorded: &Recorded) -> EventRow {
    let stream = recorded.event.stream;
    let name = store.stream_name(stream).ok().flatten();
    EventRow {
        seq: recorded.seq,
        kind: recorded.event.payload.label(),
        stream,
        host: name.as_ref().map(|name| name.host.clone()),
        session: name.as_ref().map(|name| name.name.clone()),
        scope: name.as_ref().map(|name| name.scope),
        recorded_at: recorded.recorded_at.0,
    }
}

/// A commit with rows of its events.
pub fn commit(store: &Store, commit: &Commit) -> Value {
    let events: Vec<EventRow> = commit.events.iter().map(|event| event_row(store, event)).collect();
    json!({"last_seq": commit.last_seq(), "recorded_at": commit.recorded_at.0, "events": events})
}

/// The cost of one session or all under policies and modes.
pub fn simulated(
    store: &Store,
    session: Option<&str>,
    policies: Vec<String>,
    modes: &[String],
    price: &str,
) -> Result<Value, Fault> {
    let table = PriceTable::built_in().map_err(|error| Fault::invalid(error.to_string()))?;
    let list = PriceList::of(&table, price).map_err(|error| Fault::invalid(error.to_string()))?;
    let prices = list.prices().map_err(|error| Fault::invalid(error.to_string()))?;
    let modes: Vec<ServeMode> = if modes.is_empty() {
        ServeMode::ALL.to_vec()
    } else {
        modes.iter().map(|mode| word("mode", mode)).collect::<Result<_, _>>()?
    };
    let named = if policies.is_empty() { POLICIES.map(str::to_owned).to_vec() } else { policies };
    let mut setups = Vec::new();
    for name in named {
        let policy = match name.as_str() {
            "recorded" => None,
            text => Some(Arc::new(preset(text)?)),
        };
        setups.extend(modes.iter().map(|mode| Setup {
            name: name.clone(),
            policy: policy.clone(),
            mode: Some(*mode),
            prices: Some(prices),
        }));
    }
    let streams: Vec<StreamId> = if let Some(name) = session {
        vec![store.find_stream(name)?.id]
    } else {
        let names = store.stream_names()?.into_iter();
        names.filter(|name| name.scope == Scope::Session).map(|name| name.id).collect()
    };
    let mut outcomes = Vec::new();
    for stream in streams {
        let mut recording = SessionRecording::read(store, stream)?;
        recording.count_as(&table);
        let nothing = simulate::run(&recording, &Setup::nothing(Some(prices)));
        let each: Vec<_> = setups.iter().map(|setup| simulate::run(&recording, setup)).collect();
        outcomes.push((nothing, each));
    }
    let rows = setups.iter().enumerate().map(|(place, setup)| {
        let of_setup = outcomes.iter().filter_map(|(nothing, each)| Some((each.get(place)?, nothing)));
        simulate::row(&setup.name, setup.mode.unwrap_or_default(), of_setup)
    });
    Ok(json!(rows.collect::<Vec<_>>()))
}

/// A policy by its preset's name, or as JSON.
pub fn preset(name: &str) -> Result<Policy, Fault> {
    Policy::preset(name).map_or_else(
        || {
            let presets = acpdb_engine::fold::policy::PRESETS.join(", ");
            Policy::from_json(name)
                .map_err(|_| Fault::invalid(format!("there is no policy {name:?}; there are {presets}")))
        },
        Ok,
    )
}

/// The policy in force.
pub fn policy(store: &Store) -> Result<Value, Fault> {
    let policy = store.policy(None, Seq::MAX)?;
    Ok(serde_json::from_str(&policy.to_json()).unwrap_or_default())
}

/// Sets the policy for later events; returns its seq.
pub fn set_policy(store: &Store, policy: &Policy, reason: Option<&str>) -> Result<u64, Fault> {
    Ok(store.set_policy(None, policy, reason)?.get())
}

/// A policy as data.
pub fn policy_of(json: &[u8]) -> Result<Policy, Fault> {
    Policy::from_json(&String::from_utf8_lossy(json)).map_err(|error| Fault::invalid(error.to_string()))
}

/// Checks every digest and link.
pub fn verified(store: &Store, deep: bool) -> Result<Value, Fault> {
    verified_at(store.root(), deep)
}

/// As [`verified`], for a store that is not open.
pub fn verified_at(path: &Path, deep: bool) -> Result<Value, Fault> {
    let options = VerifyOptions { deep, ..VerifyOptions::default() };
    Ok(json!(acpdb_engine::store::verify_store(path, &options)?))
}

/// The items of all sessions as JSON lines, with their texts and states.
pub fn exported(store: &Store) -> Result<Vec<u8>, Fault> {
    let (mut out, mut report) = (Vec::new(), RowsReport::default());
    store.sync()?;
    for session in store.stream_names()?.into_iter().filter(|name| name.scope == Scope::Session) {
        rows::lines(store, &store.view(session.id)?, &session, &mut out, &mut report)?;
    }
    Ok(out)
}

/// The objections of a provider to the body of a request.
pub fn linted(body: &[u8], name: &str, model: Option<&str>, previous: Option<&[u8]>) -> Result<Value, Fault> {
    let format = format(name)?;
    if format.provider().is_none() {
        return Err(Fault::invalid("transcripts are for people; no provider has rules for them"));
    }
    Ok(json!(acpdb_hosts::lint::lint(format, body, RequestFacts { model, previous })))
}

/// Closes a store. A store opened for reading has nothing to finish.
pub fn close(store: Store) -> Result<(), Fault> {
    match store.close() {
        Err(Error::ReadOnly { .. }) => Ok(()),
        done => Ok(done?),
    }
}
