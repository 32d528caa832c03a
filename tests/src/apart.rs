//! Stores that go on apart and are imported: acts in them, and the stories that they tell.
//!
//! ```text
//! numbers -> acts on a session -> Store            Store -> stories: each session's items, chains and states without a seq
//! ```
//!
//! A story has no seqs, ids of items or times: two stores tell the same if they hold the same histories.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::answers::StoreImport;
use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, Fact, ItemRef, PointRef, StreamInfo, fact};
use acpdb_engine::event::{InjectedKind, Lifespan, MemoryKind, Outcome, ReplaceCause, Role, Scope};
use acpdb_engine::ids::{ItemId, Micros, Seq, StreamId};
use acpdb_engine::storage::SimWorld;
use acpdb_engine::{Builder, Error, Store};
use acpdb_query::export::rows::{RowsReport, lines};
use serde_json::Value;

use crate::support::{events, texts_of};

/// A store on a simulated disk.
#[derive(Clone)]
pub struct Laptop {
    /// Its disk.
    pub world: SimWorld,
    /// The store.
    pub store: Store,
}

impl std::fmt::Debug for Laptop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Laptop").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Laptop {
    /// A new store.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(seed: u64) -> Result<Self, Error> {
        Self::on(SimWorld::new(seed), 1)
    }

    /// The store on a disk.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn on(world: SimWorld, process: u32) -> Result<Self, Error> {
        let store = builder(&world, process).open()?;
        Ok(Self { world, store })
    }

    /// Imports another laptop's store.
    ///
    /// # Errors
    /// Those of the import.
    pub fn import_with_memory(&self, other: &Self) -> Result<StoreImport, Error> {
        self.store.import_with_memory(&other.store)
    }
}

fn builder(world: &SimWorld, process: u32) -> Builder {
    let registry = Arc::new(acpdb_hosts::registry::HostRegistry);
    Store::builder("/sim").storage(Arc::new(world.process(process))).registry(registry)
}

/// All texts that can be read, in order, each with its stream.
///
/// # Errors
/// If the log cannot be read.
pub fn texts(store: &Store) -> Result<Vec<(StreamId, String)>, Error> {
    let mut all = Vec::new();
    for recorded in events(store)? {
        let bodies = texts_of(&recorded).into_iter().filter_map(|body| store.body(body).ok());
        all.extend(bodies.map(|bytes| (recorded.event.stream, String::from_utf8_lossy(&bytes).into_owned())));
    }
    Ok(all)
}

/// Sessions that generated histories go on with.
pub const SESSIONS: [&str; 3] = ["alpha", "beta", "gamma"];

/// A session by its number.
#[must_use]
pub fn session(number: u16) -> StreamInfo {
    let name = SESSIONS.get(usize::from(number) % SESSIONS.len()).copied().unwrap_or_default();
    StreamInfo {
        project: Some("shop".to_owned()),
        cwd: Some("/srv/shop".to_owned()),
        ..StreamInfo::session("claude-code", name)
    }
}

/// Does to a store the acts that the numbers stand for; equal numbers and an equal `who` are the same facts.
///
/// # Errors
/// Those of the store, except for refused acts.
pub fn go_on(store: &Store, who: &str, numbers: &[u16]) -> Result<(), Error> {
    for (place, number) in (0_u32..).zip(numbers) {
        match step(store, &format!("{who}{place}"), *number) {
            Ok(()) | Err(Error::Rejected(_) | Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn step(store: &Store, id: &str, number: u16) -> Result<(), Error> {
    let info = session(number % 3);
    let (kind, rest) = (number / 3 % 32, number / 96);
    let file = ["src/a.rs", "src/b.rs", "/etc/hosts"].get(usize::from(rest) % 3).copied().unwrap_or_default();
    let tool = |name: &str, params: String, outcome: Outcome| {
        let output = acpdb_engine::entry::PartEntry::text(format!("what {name} of {file} gave\n").repeat(9));
        vec![
            Entry::step(format!("step-{id}")).origin(format!("step:{id}")),
            Entry::tool_started(format!("call-{id}"), name, params).origin(format!("call:{id}:start")),
            Entry::tool_finished(format!("call-{id}"), outcome, vec![output])
                .origin(format!("call:{id}:finish")),
        ]
    };
    let entries = match kind {
        0..=7 => tool("Read", format!(r#"{{"file_path":"{file}"}}"#), Outcome::Completed),
        8..=10 => tool(
            "Edit",
            format!(r#"{{"file_path":"{file}","old_string":"a","new_string":"b"}}"#),
            Outcome::Completed,
        ),
        11 => tool("Bash", r#"{"command":"git status"}"#.to_owned(), Outcome::Failed),
        12 => tool(
            "TodoWrite",
            format!(r#"{{"todos":[{{"content":"do {rest}","status":"in_progress","activeForm":"x"}}]}}"#),
            Outcome::Completed,
        ),
        13 => tool("Grep", format!(r#"{{"pattern":"fn {rest}","path":"src"}}"#), Outcome::Completed),
        14..=16 | 27 => vec![
            Entry::message(format!("msg-{id}"), Role::Assistant, format!("words of {id}\nand more of them"))
                .origin(format!("msg:{id}")),
        ],
        // Told twice, the second time with other words. The first words are the same for all, as those of one host are.
        17 => {
            let told = |words: String| {
                Entry::message(format!("msg-{}", rest % 4), Role::User, words)
                    .origin(format!("msg:shared:{}", rest % 4))
            };
            vec![told("as it was first said".to_owned()), told(format!("revised by {id}"))]
        }
        // Without an origin.
        18 => vec![Entry::message(format!("loose-{id}"), Role::User, format!("a loose remark {id}"))],
        19 => vec![
            fact::Injected { what: InjectedKind::Reminder, text: format!("remember {id}").as_bytes().into() }
                .into(),
        ],
        20 => vec![Entry::host_record("notice", None).origin(format!("notice:{id}"))],
        21 => {
            let order = kept(store, info.id())?;
            vec![fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None }.into()]
        }
        22 => return act(store, info.id(), rest, ContextAction::Discard),
        23 => return act(store, info.id(), rest, ContextAction::Distill),
        24 => return act(store, info.id(), rest, ContextAction::Restore),
        25 => {
            let Some(item) = any_item(store, info.id(), rest)? else { return Ok(()) };
            let _ = store.pin(info.id(), vec![Target::Item(item)])?;
            return Ok(());
        }
        26 => {
            let Some(item) = any_item(store, info.id(), rest)? else { return Ok(()) };
            let _ = store.rewind(info.id(), item.seq)?;
            return Ok(());
        }
        28 | 29 => return remember(store, &info, id, rest),
        30 => {
            let parent = info.id();
            let Some(item) = any_item(store, parent, rest)? else { return Ok(()) };
            let fork = StreamInfo::session("claude-code", format!("{}-fork-{id}", info.name));
            let entry = Entry::from(fact::Forked { from: parent, at: PointRef::Seq(item.seq) });
            let more =
                Entry::message(format!("fork-{id}"), Role::User, "elsewhere").origin(format!("fork:{id}"));
            let _ = store.append(&fork, vec![entry, more])?;
            return Ok(());
        }
        _ => {
            let json = format!(r#"{{"tasks":[{{"id":"T{}","status":"in_progress"}}]}}"#, rest % 2);
            let _ = store.update_tasks(info.id(), json.as_bytes())?;
            return Ok(());
        }
    };
    store.append(&info, entries).map(drop)
}

/// Items that a host keeps: every second.
fn kept(store: &Store, stream: StreamId) -> Result<Vec<ItemRef>, Error> {
    let view = store.view(stream)?;
    let state = view.state();
    let items = state.current(view.at()).into_iter().step_by(2);
    Ok(items.filter_map(|ix| state.item_id(ix)).map(ItemRef::Id).collect())
}

fn any_item(store: &Store, stream: StreamId, number: u16) -> Result<Option<ItemId>, Error> {
    let view = store.view(stream)?;
    let state = view.state();
    let items: Vec<ItemId> = state.items(view.at()).filter_map(|ix| state.item_id(ix)).collect();
    // Not an item of the stream that it was forked from; those seqs are older than the session.
    Ok(items.get(usize::from(number) % items.len().max(1)).copied())
}

fn act(store: &Store, stream: StreamId, number: u16, action: ContextAction) -> Result<(), Error> {
    let target = if number.is_multiple_of(3) {
        Target::Auto("words of...more of them".to_owned())
    } else {
        let Some(item) = any_item(store, stream, number)? else { return Ok(()) };
        Target::Item(item)
    };
    let summary = (action == ContextAction::Distill).then(|| "what it came to".to_owned());
    let _ = store.context(stream, action, vec![(target, summary)])?;
    Ok(())
}

fn remember(store: &Store, info: &StreamInfo, id: &str, number: u16) -> Result<(), Error> {
    // The time is now, since it decides which value is current.
    let entry = acpdb_engine::entry::MemoryEntry {
        kind: if number.is_multiple_of(2) { MemoryKind::Preference } else { MemoryKind::Fact },
        category: "style".to_owned(),
        key: number.is_multiple_of(2).then(|| "indent".to_owned()),
        value: format!("remembered by {id}"),
        confidence: 80,
        lifespan: Some(if number % 4 < 2 { Lifespan::Project } else { Lifespan::Permanent }),
        ..Default::default()
    };
    store.append(info, vec![Fact::Memory(entry).into()]).map(drop)
}

/// The stories of a store, one for each session, without seqs, sorted.
///
/// # Errors
/// If something cannot be read.
pub fn stories(store: &Store) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut all = Vec::new();
    for name in store.stream_names()?.into_iter().filter(|name| name.scope == Scope::Session) {
        let view = store.view(name.id)?;
        let mut written = Vec::new();
        lines(store, &view, &name, &mut written, &mut RowsReport::default())?;
        let items =
            serde_json::Deserializer::from_slice(&written).into_iter().collect::<Result<Vec<Value>, _>>()?;
        let ids: BTreeMap<String, String> = (1..)
            .zip(&items)
            .map(|(number, row)| (row["item"].as_str().unwrap_or_default().to_owned(), format!("i{number}")))
            .collect();
        let mut story = format!("{} {}\n", name.host, name.name);
        for mut row in items {
            plain(&mut row, &ids);
            story.push_str(&row.to_string());
            story.push('\n');
        }
        let state = view.state();
        story.push_str(&format!("current {:?}\n", {
            let current = state.current(view.at()).into_iter().filter_map(|ix| state.item_id(ix));
            current.filter_map(|item| ids.get(&item.to_string()).cloned()).collect::<Vec<_>>()
        }));
        let facts = state.info(view.at());
        story.push_str(&format!("title {:?} cwd {:?}\n", facts.map(|it| &it.title), facts.map(|it| &it.cwd)));
        all.push(story);
    }
    all.sort();
    Ok(all)
}

/// Fields about times, places and authors, not contents. An item's former place is told by the session that it stood in.
const PLACES: [&str; 11] = [
    "problem",
    "seq",
    "session",
    "time",
    "finished",
    "finished_time",
    "reason",
    "recorded_at",
    "stream",
    "call_seq",
    "states",
];

fn plain(value: &mut Value, ids: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for place in PLACES {
                drop(fields.remove(place));
            }
            fields.values_mut().for_each(|field| plain(field, ids));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| plain(item, ids)),
        Value::String(text) => {
            if let Some(id) = ids.get(text.as_str()) {
                text.clone_from(id);
            }
        }
        _ => {}
    }
}

/// The memory of a store for a project and its user: values, and whether they hold.
///
/// # Errors
/// If something cannot be read.
pub fn remembered(store: &Store) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    for name in store.stream_names()?.into_iter().filter(|name| name.scope != Scope::Session) {
        let view = store.view(name.id)?;
        let state = view.state();
        let at = state.memory().at(Seq::MAX);
        for item in at.all() {
            let value = store.body(item.value())?;
            let value = String::from_utf8_lossy(&value).into_owned();
            all.push(format!(
                "{} {:?} {value} {:?}",
                name.name,
                item.kind(),
                item.standing(Micros(i64::MAX))
            ));
        }
    }
    all.sort();
    Ok(all)
}
