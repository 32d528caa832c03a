//! Items that a filter lets pass, one at a time, in the order of recording.
//!
//! A few hundred items are read from the fold at once; facts that the fold leaves open (times, actors, texts) are looked up in the
//! log for the items that may match. Nothing is gathered.

use std::collections::VecDeque;

use acpdb_engine::event::Recorded;
use acpdb_engine::fold::{Ix, State};
use acpdb_engine::ids::{BodyId, ItemId};
use acpdb_engine::text::paths::plain;
use acpdb_engine::{Error, Store, View, store::StreamName};

use crate::bodies::{self, Scanned};
use crate::events::is_tool;
use crate::filter::{Filter, Term};
use crate::items::{ItemRow, spell};
use crate::names::of_stream;
use crate::times::EventTimes;

/// Items that are read from the fold at once.
const CHUNK_COUNT: usize = 256;

/// Items that match, as an iterator. A body that cannot be read comes as an error; the iterator goes on behind it.
#[derive(Debug)]
pub struct ItemRows {
    store: Store,
    view: View,
    stream: StreamName,
    times: EventTimes,
    filter: Filter,
    todo: VecDeque<Ix>,
    ready: VecDeque<RowCandidate>,
    scanned: Scanned,
}

/// An item that may match.
#[derive(Debug)]
struct RowCandidate {
    item: ItemId,
    row: ItemRow,
    verdict: Option<bool>,
    params: Option<BodyId>,
    content: Vec<BodyId>,
}

/// Asks for the items of a view that match a filter. `stream` is the view's stream.
///
/// # Errors
/// If the filter names a session that does not exist, or the log cannot be read.
pub fn item_rows(
    store: &Store,
    view: &View,
    stream: &StreamName,
    filter: &Filter,
) -> Result<ItemRows, Error> {
    let filter = crate::settled(store, filter.clone())?;
    let todo = view.state().items(view.at()).collect();
    Ok(ItemRows {
        store: store.clone(),
        view: view.clone(),
        stream: stream.clone(),
        times: EventTimes::new(store),
        filter,
        todo,
        ready: VecDeque::new(),
        scanned: Scanned::default(),
    })
}

impl ItemRows {
    /// The items behind this one alone: a page goes on behind the last item of the page before.
    #[must_use]
    pub fn behind(mut self, item: ItemId) -> Self {
        self.todo.retain(|ix| self.view.state().item_id(*ix).is_some_and(|other| other > item));
        self
    }

    /// The amounts that were gone through so far; its events are items.
    pub fn scanned(&self) -> Scanned {
        self.scanned
    }

    fn fill(&mut self) {
        let at = self.view.at();
        let state = self.view.state();
        while self.ready.len() < CHUNK_COUNT {
            let Some(ix) = self.todo.pop_front() else { break };
            self.scanned.events += 1;
            self.ready.extend(candidate(state, ix, &self.stream, at, &self.filter));
        }
        // The rows are spelled in place; only sentences and edges need the returned words.
        let _ = spell(&self.view, &mut self.ready.iter_mut().map(|it| &mut it.row).collect::<Vec<_>>());
    }

    /// Looks in the log for the facts that the fold leaves open.
    fn decide(&mut self, candidate: &RowCandidate) -> Result<bool, Error> {
        if let Some(verdict) = candidate.verdict {
            return Ok(verdict);
        }
        let recorded = self.store.event(candidate.item.seq)?;
        let shallow = |term: &Term| known(term, &candidate.row, &self.stream);
        let deeper = |term: &Term| {
            shallow(term).or_else(|| of_event(term, recorded.as_ref(), &self.stream, &self.times))
        };
        self.filter.judge_texts(&deeper, |needle| {
            let (params, content) = (candidate.params, candidate.content.iter().copied());
            let (store, scanned) = (&self.store, &mut self.scanned);
            Ok(bodies::any_holds(store, params, |bytes| needle.is_in_params(bytes), scanned)?
                || bodies::any_holds(store, content, |bytes| needle.is_in(bytes), scanned)?)
        })
    }
}

impl Iterator for ItemRows {
    type Item = Result<ItemRow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.ready.is_empty() {
                self.fill();
            }
            let candidate = self.ready.pop_front()?;
            match self.decide(&candidate) {
                Ok(false) => {}
                Ok(true) => return Some(Ok(candidate.row)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// An item, unless the fold already says that it does not match.
fn candidate(
    state: &State,
    ix: Ix,
    stream: &StreamName,
    at: acpdb_engine::ids::Seq,
    filter: &Filter,
) -> Option<RowCandidate> {
    let view = state.item(ix, at)?;
    let row = ItemRow::of(state, &view, &stream.name, at);
    let verdict = filter.judge(&|term: &Term| known(term, &row, stream));
    if verdict == Some(false) {
        return None;
    }
    let (params, content) = if verdict.is_none() {
        (view.params, view.content.iter().map(|part| part.body).collect())
    } else {
        (None, Vec::new())
    };
    Some(RowCandidate { item: view.item, row, verdict, params, content })
}

/// The verdict of a term on a row.
pub(crate) fn known(term: &Term, row: &ItemRow, stream: &StreamName) -> Option<bool> {
    Some(match term {
        Term::Kind(words) => words.iter().any(|word| word.is_item(row.kind)),
        Term::Tool(globs) => row.tool.as_ref().is_some_and(|tool| is_tool(globs, tool)),
        Term::File(globs) => row.files.iter().any(|file| globs.is_match(&plain(file))),
        Term::Session(_) | Term::Host(_) | Term::In(_) => return of_stream(term, stream),
        Term::Call(globs) => row.call.as_ref().is_some_and(|call| globs.is_match(call)),
        Term::State(states) => states.iter().any(|state| state.is(row)),
        Term::Status(statuses) => row.status.is_some_and(|status| statuses.contains(&status)),
        Term::Rule(rules) => row.has_rule(rules),
        Term::Turn(range) => range.holds(u64::from(row.turn)),
        Term::Seq(range) => range.holds(row.seq.get()),
        Term::Tokens(range) => range.holds(row.tokens),
        Term::Since(_) | Term::Until(_) | Term::Text(_) | Term::Actor(_) => return None,
        // These terms are settled before anything is asked.
        Term::Title(_) | Term::Project(_) | Term::Model(_) | Term::Cost(_) | Term::Duration(_) => {
            return None;
        }
    })
}

/// The verdict of a term on an event without an item, by its session.
pub(crate) fn known_of_session(term: &Term, stream: &StreamName) -> Option<bool> {
    match term {
        Term::Session(_) | Term::Host(_) | Term::In(_) => of_stream(term, stream),
        Term::Since(_) | Term::Until(_) | Term::Actor(_) => None,
        _ => Some(false),
    }
}

/// The verdict of a term on the event that recorded an item.
pub(crate) fn of_event(
    term: &Term,
    recorded: Option<&Recorded>,
    stream: &StreamName,
    times: &EventTimes,
) -> Option<bool> {
    let time = || recorded.and_then(|recorded| times.of(recorded, Some(stream)));
    match term {
        Term::Since(since) => Some(time().is_some_and(|time| time >= *since)),
        Term::Until(until) => Some(time().is_some_and(|time| time <= *until)),
        Term::Actor(actors) => {
            Some(recorded.is_some_and(|recorded| actors.contains(&recorded.event.stamp.actor)))
        }
        _ => None,
    }
}
