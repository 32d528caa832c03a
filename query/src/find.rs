//! Finds the item that a text names.
//!
//! ```text
//! #812  812  #812.2     the event's item, or the call it finished
//! r_a1b2c  a1b2c3       calls with this hash (the newest, if they are repeats of one call)
//! toolu_01ab..          a host's call id
//! toolu_01              a unique prefix of either
//! ```
//!
//! With a seq only that event's stream is folded, or the named session if it shares the event as a fork. With a session only that
//! session is folded, else the sessions whose calls the index knows by the text, and without an index all sessions. A text that
//! names several items is an error that lists them. A text that names no item is an error with the nearest name; if only the index
//! was asked, the nearest of the names that begin alike.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::event::{Payload, Scope};
use acpdb_engine::fold::{Ix, State};
use acpdb_engine::ids::{ItemId, Seq, StreamId};
use acpdb_engine::index::{NAME_BYTES_MAX, NameKind};
use acpdb_engine::text::{HashTarget, Label, likeness};
use acpdb_engine::{Error, Store, View, store::StreamName};
use serde::Serialize;

use crate::lineage::lineage;

/// Most candidates that an error lists.
const CANDIDATE_COUNT_MAX: usize = 5;
/// Least likeness of a name that is suggested.
const LIKENESS_MIN: f64 = 0.75;

/// An item that was found.
#[derive(Clone, Debug)]
pub struct FoundItem {
    /// Its session (or project).
    pub stream: StreamName,
    /// The stream at its head.
    pub view: View,
    /// The event or item that was named.
    pub item: ItemId,
    /// The item; absent if the event that was named recorded none. For a finish it is the call.
    pub ix: Option<Ix>,
    /// The event that finished the call.
    pub finish: Option<Seq>,
    /// Older calls that go by the same hash: repeats of the same call.
    pub repeats: Vec<ItemId>,
}

/// An item that a text could mean.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ItemCandidate {
    /// The item.
    pub item: String,
    /// The host's id of its session.
    pub session: String,
    /// Name of the tool.
    pub tool: Option<String>,
    /// The host's id of the call.
    pub call: Option<String>,
}

impl std::fmt::Display for ItemCandidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.item)?;
        if let Some(tool) = &self.tool {
            write!(f, " {tool}")?;
        }
        write!(f, " in {}", self.session)
    }
}

/// The reason why a text names no item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// The log is shorter.
    #[error("there is no event {seq}; the newest is {head}")]
    NoEvent {
        /// The seq that was asked for.
        seq: Seq,
        /// The newest seq.
        head: Seq,
    },
    /// The event has no such part.
    #[error("{item} is not there: the event recorded {part_count} part(s)")]
    NoPart {
        /// The item that was asked for.
        item: ItemId,
        /// Parts that it has.
        part_count: usize,
    },
    /// The event is of another session than the named one.
    #[error("{seq} is of session {actual}, not of {session}")]
    OtherSession {
        /// The seq that was asked for.
        seq: Seq,
        /// The session that was named.
        session: String,
        /// The session of the event.
        actual: String,
    },
    /// No item goes by that name.
    #[error("no item is called {text:?}")]
    NotFound {
        /// The text that was asked for.
        text: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// Several items go by that name.
    #[error("{text:?} names {count} items: {}", list(candidates, *count))]
    Ambiguous {
        /// The text that was asked for.
        text: String,
        /// The first of the items.
        candidates: Vec<ItemCandidate>,
        /// The number of the items.
        count: usize,
    },
}

fn list(candidates: &[ItemCandidate], count: usize) -> String {
    let mut names: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    if count > candidates.len() {
        names.push(format!("and {} more", count - candidates.len()));
    }
    names.join(", ")
}

/// Finds the item that `text` names, in one session or in all.
///
/// Cost: a seq folds one stream; other texts fold the session, else the streams that the index names. Without an index, and
/// for a bare hash of six digits, every one.
///
/// # Errors
/// [`FindError`], by the fault of the text; [`FindError::Store`] if the store cannot be read.
pub fn find(store: &Store, text: &str, session: Option<&StreamName>) -> Result<FoundItem, FindError> {
    let text = text.trim();
    // A shell takes `#812` for a comment: `@812` is the same.
    let marked = text.strip_prefix('@').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    // A text that is no seq may be a hash or a host's id: it is looked for below.
    if let Some(item) = marked.and_then(|rest| rest.parse::<ItemId>().ok()) {
        return by_seq(store, item, store.head()?, session);
    }
    // As above.
    if let Ok(item) = text.parse::<ItemId>() {
        let head = store.head()?;
        // Six digits may be a bare hash or a call id; a seq that exists goes first unless it is written otherwise.
        if text.starts_with('#') || item.seq <= head {
            return by_seq(store, item, head, session);
        }
    }
    if let Some(session) = session {
        return search(store, text, vec![session.clone()]);
    }
    if has_known_form(text) {
        let mut nearest = None;
        for prefix in [false, true] {
            match bearers(store, text, prefix)? {
                None => return search_all(store, text),
                Some(few) if few.is_empty() => {}
                Some(few) => match search(store, text, few) {
                    Err(FindError::NotFound { nearest: near, .. }) => nearest = near,
                    found => return found,
                },
            }
        }
        // An index that is behind knows no name that is near, either.
        if store.indexed_until() < store.head()? {
            return search_all(store, text);
        }
        // Every call that was ever begun is in the index, and no other thing goes by such a name.
        let nearest = nearest.map_or_else(|| nearest_known(store, text), |near| Ok(Some(near)))?;
        return Err(FindError::NotFound { text: text.to_owned(), nearest });
    }
    search_all(store, text)
}

fn search_all(store: &Store, text: &str) -> Result<FoundItem, FindError> {
    let all = store.stream_names()?.into_iter();
    search(store, text, all.filter(|stream| stream.scope == Scope::Session).collect())
}

/// Names that are asked of the index before it is given up: more streams than this are better folded all.
const NAMED_COUNT_MAX: usize = 64;

/// Names of calls near a text that are looked at.
const NEAR_COUNT_MAX: usize = 12;

/// Whether the index knows names of this form: it has no hash without a letter, and only the beginning of a very long name.
fn has_known_form(text: &str) -> bool {
    !text.is_empty() && text.len() < NAME_BYTES_MAX && HashTarget::parse_bare(text).is_none()
}

/// The text of a hash as the index knows it.
fn label_of(text: &str) -> String {
    HashTarget::parse(text).map_or_else(|| text.to_lowercase(), |target| target.label_text())
}

/// The sessions that may have a call of this name, or of a name that begins with it: all that do, and perhaps others. If the index is
/// behind, those of both kinds. `None`: no index knows, or there are too many.
fn bearers(store: &Store, text: &str, prefix: bool) -> Result<Option<Vec<StreamName>>, FindError> {
    let mut known = BTreeSet::new();
    for (kind, name) in [(NameKind::Call, text), (NameKind::Label, label_of(text).as_str())] {
        match store.named(kind, name, prefix, NAMED_COUNT_MAX) {
            Some(entries) if entries.len() < NAMED_COUNT_MAX => {
                known.extend(entries.into_iter().map(|entry| entry.stream));
            }
            Some(_) => return Ok(None),
            None => {
                let Some(streams) = store.bearers(kind, name, NAMED_COUNT_MAX)? else { return Ok(None) };
                known.extend(streams);
            }
        }
    }
    if known.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut few = store.stream_names_among(&known)?;
    few.retain(|stream| stream.scope == Scope::Session);
    Ok(Some(few))
}

/// The name most like a text, among the calls that the index knows by the longest beginning of the text.
fn nearest_known(store: &Store, text: &str) -> Result<Option<String>, FindError> {
    let label = label_of(text);
    let ends: Vec<usize> =
        text.char_indices().map(|(end, _)| end).filter(|end| (1..=NAME_BYTES_MAX).contains(end)).collect();
    for end in ends.into_iter().rev() {
        let mut near = Vec::new();
        for (kind, name) in [(NameKind::Call, text), (NameKind::Label, label.as_str())] {
            let Some(start) = name.get(..end.min(name.len())) else { continue };
            for entry in store.named(kind, start, true, NEAR_COUNT_MAX).unwrap_or_default() {
                let event = store.event(entry.seq)?.map(|recorded| recorded.event.payload);
                match event {
                    Some(Payload::ToolCallStarted(started)) => {
                        let label = Label::from_bits(&started.tool, started.label).short();
                        near.extend([started.call, label]);
                    }
                    Some(Payload::ToolCallFinished(finished)) => near.push(finished.call),
                    _ => {}
                }
            }
        }
        if let Some(name) = likeness::nearest(near.into_iter().rev(), text, LIKENESS_MIN) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Looks for the call that `text` names in these streams: by its whole name, or else by a name that begins with `text`.
fn search(store: &Store, text: &str, streams: Vec<StreamName>) -> Result<FoundItem, FindError> {
    let mut places = Vec::with_capacity(streams.len());
    for stream in streams {
        let view = store.view(stream.id)?;
        places.push((stream, view));
    }
    for read in [by_name, by_prefix] {
        let mut hits: BTreeMap<ItemId, NameHit<'_>> = BTreeMap::new();
        for (stream, view) in &places {
            for named in read(view.state(), text, view.at()) {
                // A fork shares its parent's items: the stream that began first recorded them.
                let hit = NameHit { stream, view, ix: named.ix, repeats: named.repeats };
                hits.entry(named.item).or_insert(hit);
            }
        }
        let count = hits.len();
        if count > 1 {
            let candidates =
                hits.into_iter().take(CANDIDATE_COUNT_MAX).map(|(item, hit)| hit.candidate(item));
            return Err(FindError::Ambiguous {
                text: text.to_owned(),
                candidates: candidates.collect(),
                count,
            });
        }
        if let Some((item, hit)) = hits.into_iter().next() {
            return Ok(hit.found(item));
        }
    }
    let nearest = nearest(&places, text);
    Err(FindError::NotFound { text: text.to_owned(), nearest })
}

struct NameHit<'p> {
    stream: &'p StreamName,
    view: &'p View,
    ix: Ix,
    repeats: Vec<ItemId>,
}

impl NameHit<'_> {
    fn candidate(&self, item: ItemId) -> ItemCandidate {
        let state = self.view.state();
        ItemCandidate {
            item: item.to_string(),
            session: self.stream.name.clone(),
            tool: state.tool(self.ix).map(|tool| tool.to_string()),
            call: state.host_id(self.ix).map(|call| call.to_string()),
        }
    }

    fn found(self, item: ItemId) -> FoundItem {
        let at = self.view.at();
        let finish = self.view.state().item(self.ix, at).and_then(|item| item.finished);
        FoundItem {
            stream: self.stream.clone(),
            view: self.view.clone(),
            item,
            ix: Some(self.ix),
            finish,
            repeats: self.repeats,
        }
    }
}

fn by_seq(
    store: &Store,
    item: ItemId,
    head: Seq,
    session: Option<&StreamName>,
) -> Result<FoundItem, FindError> {
    let seq = item.seq;
    let recorded = store.event(seq)?.ok_or(FindError::NoEvent { seq, head })?;
    let stream = recorded.event.stream;
    let own = if stream == StreamId::STORE { None } else { store.stream_name(stream)? };
    let name = own.unwrap_or_else(|| StreamName {
        id: stream,
        scope: Scope::Project,
        host: String::new(),
        name: "store".to_owned(),
        title: None,
        parent: None,
        started_by: None,
        head,
        began: Some(recorded.recorded_at),
        folder: None,
    });
    let name = match session.filter(|session| session.id != stream) {
        None => name,
        // A fork has the history that it shares.
        Some(session) if shares(store, session, stream, seq)? => session.clone(),
        Some(session) => {
            let (session, actual) = (session.name.clone(), name.name);
            return Err(FindError::OtherSession { seq, session, actual });
        }
    };
    let view = store.view(name.id)?;
    let (ix, finish) = {
        let state = view.state();
        let at = view.at();
        let mut ix = state.find(item);
        if ix.is_none() && item.part > 1 {
            let part_count = state.items_of_event(seq).count();
            return Err(FindError::NoPart { item, part_count });
        }
        ix = ix.or_else(|| match &recorded.event.payload {
            Payload::ToolCallFinished(_) => state.finished_by(seq, at),
            Payload::ItemRevised(revised) => state.find(revised.item),
            _ => None,
        });
        (ix, ix.and_then(|ix| state.item(ix, at)?.finished))
    };
    Ok(FoundItem { stream: name, view, item, ix, finish, repeats: Vec::new() })
}

/// Whether a session shares an event of another stream.
fn shares(store: &Store, session: &StreamName, stream: StreamId, seq: Seq) -> Result<bool, Error> {
    let parts = lineage(store, session.id, Seq::MAX)?;
    Ok(parts.iter().any(|part| part.stream == stream && seq <= part.to))
}

/// A call that a text names.
struct NamedCall {
    item: ItemId,
    ix: Ix,
    repeats: Vec<ItemId>,
}

fn named(state: &State, ix: Ix, repeats: Vec<ItemId>) -> Option<NamedCall> {
    Some(NamedCall { item: state.item_id(ix)?, ix, repeats })
}

/// Calls by their whole hash or call id.
fn by_name(state: &State, text: &str, at: Seq) -> Vec<NamedCall> {
    let mut found = Vec::new();
    for target in [HashTarget::parse(text), HashTarget::parse_bare(text)].into_iter().flatten() {
        let mut groups = state.calls_by_hash(&target, at);
        // Of several calls whose hashes begin alike, the one whose shown hash is the text.
        let lower = text.to_lowercase();
        let is_it = |group: &Vec<Ix>| {
            let hash = group.last().and_then(|ix| state.hash(*ix, at, acpdb_engine::fold::HashForm::Shown));
            hash.as_deref() == Some(lower.as_str())
        };
        if groups.iter().any(is_it) {
            groups.retain(is_it);
        }
        for mut group in groups {
            let Some(newest) = group.pop() else { continue };
            let repeats = group.into_iter().filter_map(|ix| state.item_id(ix)).collect();
            found.extend(named(state, newest, repeats));
        }
    }
    found.extend(state.calls_by_host_id(text, at).into_iter().filter_map(|ix| named(state, ix, Vec::new())));
    found
}

/// Calls whose hash or call id begins with the text; of repeats of one call, the newest.
fn by_prefix(state: &State, text: &str, at: Seq) -> Vec<NamedCall> {
    let lower = text.to_lowercase();
    if lower.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut hashes: BTreeMap<String, NamedCall> = BTreeMap::new();
    for ix in state.items(at) {
        let Some(call) = state.host_id(ix) else { continue };
        if call.starts_with(text) {
            found.extend(named(state, ix, Vec::new()));
            continue;
        }
        let hash = state.hash(ix, at, acpdb_engine::fold::HashForm::Shown);
        let Some(hash) = hash.filter(|hash| hash.starts_with(&lower)) else { continue };
        let Some(newer) = named(state, ix, Vec::new()) else { continue };
        match hashes.entry(hash) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(newer);
            }
            std::collections::btree_map::Entry::Occupied(mut place) => {
                let mut older = place.insert(newer);
                older.repeats.push(older.item);
                place.get_mut().repeats = older.repeats;
            }
        }
    }
    found.extend(hashes.into_values());
    found
}

/// The hash or call id that is most like a text.
fn nearest(places: &[(StreamName, View)], text: &str) -> Option<String> {
    let mut names = Vec::new();
    for (_, view) in places {
        let state = view.state();
        for ix in state.items(view.at()) {
            names.extend(state.hash(ix, view.at(), acpdb_engine::fold::HashForm::Shown));
            names.extend(state.host_id(ix).map(|call| call.to_string()));
        }
    }
    likeness::nearest(names.into_iter().rev(), text, LIKENESS_MIN)
}

#[cfg(test)]
mod tests;
