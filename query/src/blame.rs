//! Blame: the calls that read or wrote a file, and the events that changed how an item stands.

use std::collections::BTreeSet;

use acpdb_engine::event::{Actor, Face, ToolClass};
use acpdb_engine::fold::{FaceState, Ix, Status};
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::locks::steady;
use acpdb_engine::text::paths::ends_in;
use acpdb_engine::{Error, Store, View};
use serde::Serialize;

use crate::explain::explain;
use crate::items::{ItemRow, Which, items};
use crate::lineage::lineage;
use crate::times::EventTimes;

/// A call on a file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FileStep {
    /// The tool's class.
    pub class: Option<ToolClass>,
    /// The time, by the host or else as recorded; absent if unknown.
    #[serde(serialize_with = "crate::when::serialize")]
    pub time: Option<Micros>,
    /// The call and how it stands.
    #[serde(flatten)]
    pub row: ItemRow,
}

/// The calls of a session on a file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FileBlame {
    /// The host's id of the session.
    pub session: String,
    /// The files that the path means: several may end in it.
    pub files: Vec<String>,
    /// Its calls on the file, oldest first.
    pub items: Vec<FileStep>,
    /// The last call that wrote it and completed.
    pub last_write: Option<String>,
    /// Calls whose content the model can still see.
    pub visible: Vec<String>,
    /// Visible calls that show the file as it was before the last write.
    pub stale: Vec<String>,
}

/// Returns the calls of a session on a file; `None` if no call names it.
///
/// # Errors
/// If the log cannot be read.
pub fn file(store: &Store, view: &View, session: &str, path: &str) -> Result<Option<FileBlame>, Error> {
    let name = store.stream_name(view.stream())?;
    let times = EventTimes::new(store);
    let mut steps = Vec::new();
    for row in items(view, session, Which::File(path)) {
        let class = {
            let state = view.state();
            let ix = row.item.parse().ok().and_then(|item| state.find(item));
            ix.and_then(|ix| state.item(ix, view.at())).and_then(|item| item.class)
        };
        let recorded = store.event(row.seq)?;
        let time = recorded.and_then(|recorded| times.of(&recorded, name.as_ref()));
        steps.push(FileStep { class, time, row });
    }
    if steps.is_empty() {
        return Ok(None);
    }
    let writes = |step: &&FileStep| {
        let changes = matches!(step.class, Some(ToolClass::Write | ToolClass::Edit | ToolClass::Delete));
        changes && step.row.status == Some(Status::Completed)
    };
    let is_on_branch = |step: &&FileStep| step.row.cause != Some("off_branch");
    let last_write = steps.iter().filter(writes).rfind(is_on_branch);
    let visible = steps.iter().filter(|step| step.row.is_visible());
    let is_stale = |step: &&FileStep| {
        step.class == Some(ToolClass::Read) && last_write.is_some_and(|write| write.row.seq > step.row.seq)
    };
    Ok(Some(FileBlame {
        session: session.to_owned(),
        files: files(&steps, path),
        last_write: last_write.map(|step| step.row.item.clone()),
        stale: visible.clone().filter(is_stale).map(|step| step.row.item.clone()).collect(),
        visible: visible.map(|step| step.row.item.clone()).collect(),
        items: steps,
    }))
}

/// The newest view of a file in a session, else the newest call on it, and the number of calls on it; `None` if no call names it.
pub fn newest_view(view: &View, session: &str, path: &str) -> Option<(String, usize)> {
    let rows = items(view, session, Which::File(path));
    let is_view = |row: &&ItemRow| {
        let state = view.state();
        let ix = row.item.parse().ok().and_then(|item| state.find(item));
        let item = ix.and_then(|ix| state.item(ix, view.at()));
        item.and_then(|item| item.class) == Some(ToolClass::Read)
    };
    let newest = rows.iter().rev().find(is_view).or(rows.last())?;
    Some((newest.item.clone(), rows.len()))
}

/// The files of some calls that end in a path. A path that is the end of another one of them is told by that one.
fn files(steps: &[FileStep], path: &str) -> Vec<String> {
    let named: BTreeSet<&str> =
        steps.iter().flat_map(|step| step.row.files.iter().map(AsRef::as_ref)).collect();
    let meant: Vec<&str> = named.into_iter().filter(|file| ends_in(file, path)).collect();
    let is_end = |file: &str| meant.iter().any(|other| *other != file && ends_in(other, file));
    meant.iter().filter(|file| !is_end(file)).map(|file| (*file).to_owned()).collect()
}

/// A change of how an item stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ItemStep {
    /// The event that made the change.
    pub seq: Seq,
    /// The event's kind.
    pub event: &'static str,
    /// The actor of the event.
    pub actor: Actor,
    /// The turn.
    pub turn: u32,
    /// The time, by the host or else as recorded; absent if unknown.
    #[serde(serialize_with = "crate::when::serialize")]
    pub time: Option<Micros>,
    /// How the item stands afterwards, in a sentence.
    pub says: String,
}

/// Each change of how an item stands, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ItemBlame {
    /// The item.
    pub item: String,
    /// The host's id of its session.
    pub session: String,
    /// The changes.
    pub items: Vec<ItemStep>,
}

/// The events that changed an item; `None` if it was not recorded at the view's seq.
///
/// Cost: a lookup at each event of the session since the item was recorded.
///
/// # Errors
/// If the log cannot be read.
pub fn item(store: &Store, view: &View, session: &str, ix: Ix) -> Result<Option<ItemBlame>, Error> {
    let at = view.at();
    let Some(id) = view.state().item_id(ix).filter(|item| item.seq <= at) else { return Ok(None) };
    let mut changes: Vec<Seq> = Vec::new();
    let mut seqs = Vec::new();
    for part in lineage(store, view.stream(), at)? {
        let known = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = std::sync::Arc::clone(&known);
        let events = store.stream_events(part.stream, id.seq, part.to)?.wanted(move |glimpse| {
            steady(&seen).push(glimpse.seq());
            false
        });
        for damaged in events {
            damaged?;
        }
        seqs.extend(steady(&known).drain(..));
    }
    {
        let state = view.state();
        let stands = |seq: Seq| {
            let face = |face| {
                let face = state.face(ix, face, seq);
                (face.state, face.cause)
            };
            let pinned = state.item(ix, seq).is_some_and(|item| item.pinned);
            (face(Face::Input), face(Face::Output), state.is_in_context(ix, seq), pinned)
        };
        let mut before = None;
        for seq in seqs {
            let now = stands(seq);
            if before.as_ref() != Some(&now) {
                changes.push(seq);
                before = Some(now);
            }
        }
    }
    let name = store.stream_name(view.stream())?;
    let times = EventTimes::new(store);
    let mut steps = Vec::with_capacity(changes.len());
    for seq in changes {
        let Some(recorded) = store.event(seq)? else { continue };
        let then = view.with_at(seq);
        let Some(explained) = explain(&then, session, ix) else { continue };
        let is_open = explained.row.state == FaceState::Absent;
        let first = explained.sentences.into_iter().take(if is_open { 1 } else { 2 }).collect::<Vec<_>>();
        steps.push(ItemStep {
            seq,
            event: recorded.event.payload.label(),
            actor: recorded.event.stamp.actor,
            turn: then.state().turn(seq).get(),
            time: times.of(&recorded, name.as_ref()),
            says: first.join(" "),
        });
    }
    Ok(Some(ItemBlame { item: id.to_string(), session: session.to_owned(), items: steps }))
}
