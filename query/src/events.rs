//! Events that a filter lets pass, one at a time, oldest or newest first.
//!
//! ```text
//! log -> envelope (kind, stream, time, seq) -> payload in place (tool, file, actor, tokens) -> decoded
//!     -> fold of its stream (state, rule, turn) -> bodies (text)
//! ```
//!
//! If the index knows the streams that name a file or a call, only these streams are read.
//!
//! Each step only sees the events that the step before left open. Nothing is gathered: memory is that of a chunk of frames, and of
//! one session's fold where a filter asks for it.

use std::collections::VecDeque;
use std::sync::Arc;

use acpdb_engine::event::{Payload, Recorded};
use acpdb_engine::ids::{ItemId, Micros, Seq, StreamId};
use acpdb_engine::text::paths::plain;
use acpdb_engine::{
    At, Error, Store, View,
    store::{Events, Glimpse},
};

use crate::bearers::bearers;
use crate::bodies::{self, Scanned};
use crate::cursor::PageCursor;
use crate::filter::{Filter, Needs, Term};
use crate::items::{ItemRow, spell};
use crate::names::StreamsByName;
use crate::times::EventTimes;

/// Events of the first stretch that is read backwards; each further stretch is twice as long.
const STRETCH_MIN: u64 = 512;
/// Events of the longest stretch.
const STRETCH_MAX: u64 = 64 << 10;
/// Folds that are kept while events of several streams alternate.
const FOLD_COUNT_MAX: usize = 4;

/// A question for events: which ones, and in which order.
#[derive(Clone, Debug, Default)]
pub struct EventsQuestion {
    /// The filter that events must match.
    pub filter: Filter,
    /// Only this stream.
    pub stream: Option<StreamId>,
    /// Not before this seq.
    pub from: Seq,
    /// Nothing after this seq; items are judged as they stand at it. `None`: the head.
    pub to: Option<Seq>,
    /// Newest first.
    pub reverse: bool,
    /// Only events with texts; other events neither come nor count.
    pub with_texts: bool,
    /// At most so many.
    pub limit: Option<usize>,
    /// Go on behind the page that ended here.
    pub after: Option<PageCursor>,
    /// Digest of the question, for the cursor; see [`crate::cursor::question`].
    pub digest: u32,
}

/// Events that match, as an iterator. Damage comes as an error; the iterator goes on behind it.
#[derive(Debug)]
pub struct EventRows {
    store: Store,
    filter: Filter,
    needs: Needs,
    names: Arc<StreamsByName>,
    times: EventTimes,
    /// The streams that can hold matching events, if they are known.
    streams: Option<Vec<StreamId>>,
    /// The range that is left to read.
    from: Seq,
    to: Seq,
    at: Seq,
    reverse: bool,
    with_texts: bool,
    stretch: u64,
    source: Option<Events>,
    held: VecDeque<Result<Recorded, Error>>,
    /// Results that are yet to be given.
    left: usize,
    last: Option<Seq>,
    /// Whether another event matches behind the last result, once that was asked.
    has_more: Option<bool>,
    digest: u32,
    folds: Vec<(StreamId, View)>,
    scanned: Scanned,
}

/// Asks for events.
///
/// # Errors
/// If the log cannot be read, or the filter names a session that does not exist.
pub fn events(store: &Store, question: EventsQuestion) -> Result<EventRows, Error> {
    let mut filter = question.filter;
    let names = StreamsByName::for_filter(store, &mut filter)?;
    let head = store.head()?;
    let at = question.to.unwrap_or(head).min(head);
    let at = question.after.map_or(at, |cursor| cursor.at.min(at));
    let bounds = filter.bounds();
    let (mut from, mut to) = (question.from.max(bounds.0), at.min(bounds.1));
    match question.after {
        Some(cursor) if question.reverse => to = to.min(cursor.after.seq.before()),
        Some(cursor) => from = from.max(cursor.after.seq.next()),
        None => {}
    }
    let streams = match question.stream.or_else(|| names.only(&filter)) {
        Some(stream) => Some(vec![stream]),
        None => bearers(store, &filter)?,
    };
    Ok(EventRows {
        store: store.clone(),
        times: EventTimes::new(store),
        needs: filter.needs(),
        filter,
        names: Arc::new(names),
        streams,
        from,
        to,
        at,
        reverse: question.reverse,
        with_texts: question.with_texts,
        stretch: STRETCH_MIN,
        source: None,
        held: VecDeque::new(),
        left: question.limit.unwrap_or(usize::MAX),
        last: None,
        has_more: None,
        digest: question.digest,
        folds: Vec::new(),
        scanned: Scanned::default(),
    })
}

impl EventRows {
    /// The amounts that were gone through so far.
    pub fn scanned(&self) -> Scanned {
        let events = self.source.as_ref().map_or(0, Events::looked_at);
        Scanned { events: self.scanned.events + events, ..self.scanned }
    }

    /// The cursor of the next page; `None` before the limit is reached, and if nothing more matches. Cost: the way to the next
    /// event that matches, once.
    pub fn next_cursor(&mut self) -> Option<PageCursor> {
        let seq = self.last.filter(|_| self.left == 0)?;
        if self.has_more.is_none() {
            // The next page tells of the damage.
            self.has_more = Some(self.find().is_some());
        }
        let cursor =
            PageCursor { at: self.at, after: ItemId { seq, part: 1 }, question: self.digest, store: None };
        self.has_more.filter(|has_more| *has_more).map(|_| cursor)
    }

    /// The next event that matches, in the order that is asked for.
    fn find(&mut self) -> Option<Result<Recorded, Error>> {
        if self.reverse { self.backward() } else { self.forward() }
    }

    fn open(&self, from: Seq, to: Seq) -> Result<Events, Error> {
        let events = match &self.streams {
            Some(streams) => self.store.events_of_streams(streams.clone(), from, to)?,
            None => self.store.events(from, to)?,
        };
        if self.filter.is_empty() {
            return Ok(events);
        }
        let (filter, names) = (self.filter.clone(), Arc::clone(&self.names));
        Ok(events.wanted(move |glimpse| glance(&filter, &names, glimpse) != Some(false)))
    }

    /// The next event, oldest first, that matches.
    fn forward(&mut self) -> Option<Result<Recorded, Error>> {
        if self.source.is_none() {
            if self.from > self.to {
                return None;
            }
            match self.open(self.from, self.to) {
                Ok(events) => self.source = Some(events),
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            }
        }
        loop {
            let recorded = match self.source.as_mut()?.next()? {
                Ok(recorded) => recorded,
                Err(error) => return Some(Err(error)),
            };
            match self.passes(&recorded) {
                Ok(true) => return Some(Ok(recorded)),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Reads one stretch from the end, and holds the events that match in it.
    fn backward(&mut self) -> Option<Result<Recorded, Error>> {
        while self.held.is_empty() && self.from <= self.to {
            let start = Seq(self.to.get().saturating_sub(self.stretch.saturating_sub(1))).max(self.from);
            self.stretch = (self.stretch * 2).min(STRETCH_MAX);
            self.source = match self.open(start, self.to) {
                Ok(events) => Some(events),
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            };
            while let Some(found) = self.forward() {
                self.held.push_front(found);
            }
            self.scanned = self.scanned();
            self.source = None;
            if start <= Seq(1) {
                self.from = Seq(2);
                self.to = Seq(1);
            } else {
                self.to = Seq(start.get() - 1);
            }
        }
        self.held.pop_front()
    }

    /// Whether an event matches; its envelope left that open.
    fn passes(&mut self, recorded: &Recorded) -> Result<bool, Error> {
        if self.with_texts && bodies::telling(&recorded.event.payload).is_empty() {
            return Ok(false);
        }
        let filter = self.filter.clone();
        let (names, times) = (Arc::clone(&self.names), self.times.clone());
        let shallow = |term: &Term| known(term, recorded, &names, &times);
        if let Some(verdict) = filter.judge(&shallow) {
            return Ok(verdict);
        }
        let (rows, turn) = if self.needs.fold { self.rows(recorded)? } else { (Vec::new(), None) };
        let deeper = |term: &Term| {
            shallow(term).or_else(|| match term {
                Term::Turn(range) => Some(turn.is_some_and(|turn| range.holds(u64::from(turn)))),
                Term::State(states) => Some(rows.iter().any(|row| states.iter().any(|state| state.is(row)))),
                Term::Status(list) => {
                    Some(rows.iter().any(|row| row.status.is_some_and(|status| list.contains(&status))))
                }
                Term::Rule(rules) => Some(rows.iter().any(|row| row.has_rule(rules))),
                _ => None,
            })
        };
        let (seq, payload) = (recorded.seq, &recorded.event.payload);
        filter.judge_texts(&deeper, |needle| {
            bodies::holds(&self.store, seq, payload, needle, &mut self.scanned)
        })
    }

    /// The items that an event recorded or finished, and its turn.
    fn rows(&mut self, recorded: &Recorded) -> Result<(Vec<ItemRow>, Option<u32>), Error> {
        let stream = recorded.event.stream;
        if stream == StreamId::STORE {
            return Ok((Vec::new(), None));
        }
        let place = self.folds.iter().position(|(known, _)| *known == stream);
        let view = if let Some(place) = place {
            self.folds.remove(place).1
        } else {
            self.folds.truncate(FOLD_COUNT_MAX - 1);
            self.store.view_once(stream, &At::Seq(self.at))?
        };
        let (mut rows, turn): (Vec<ItemRow>, _) = {
            let (state, at, seq) = (view.state(), view.at(), recorded.seq);
            let mut found: Vec<_> = state.items_of_event(seq).collect();
            if matches!(recorded.event.payload, Payload::ToolCallFinished(_)) {
                found.extend(state.finished_by(seq, at));
            }
            let rows =
                found.into_iter().filter_map(|ix| Some(ItemRow::of(state, &state.item(ix, at)?, "", at)));
            (rows.collect(), Some(state.turn(seq).get()))
        };
        // The rows are spelled in place; only sentences and edges need the returned words.
        let _ = spell(&view, &mut rows.iter_mut().collect::<Vec<_>>());
        self.folds.insert(0, (stream, view));
        Ok((rows, turn))
    }
}

impl Iterator for EventRows {
    type Item = Result<Recorded, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let found = self.find()?;
        // An error is handed on, and does not count towards the limit.
        if let Ok(recorded) = &found {
            self.left -= 1;
            self.last = Some(recorded.seq);
        }
        Some(found)
    }
}

/// The verdict of a filter on an event's envelope.
fn glance(filter: &Filter, names: &StreamsByName, glimpse: &Glimpse<'_>) -> Option<bool> {
    let number = glimpse.kind();
    // Without a time of its own, other events of its stream tell when it was.
    let judged = |fits: &dyn Fn(Micros) -> bool| glimpse.host_time().map(fits);
    let envelope = |term: &Term| match term {
        Term::Kind(words) => any(words.iter().map(|word| word.is_event(number, None))),
        Term::Session(globs) => Some(globs.is_match(names.name(glimpse.stream()))),
        Term::Host(globs) => Some(globs.is_match(names.host(glimpse.stream()))),
        Term::In(streams) => Some(streams.contains(&glimpse.stream())),
        Term::Seq(range) => Some(range.holds(glimpse.seq().get())),
        Term::Since(since) => judged(&|time| time >= *since),
        Term::Until(until) => judged(&|time| time <= *until),
        // Only the start of a call, its end and a changed file name these.
        Term::Tool(_) if number != 32 => Some(false),
        Term::File(_) if number != 32 && number != 34 => Some(false),
        Term::Call(_) if number != 32 && number != 33 => Some(false),
        _ => None,
    };
    filter.judge(&envelope)
}

/// The verdict of a term on a decoded event.
fn known(term: &Term, recorded: &Recorded, names: &StreamsByName, times: &EventTimes) -> Option<bool> {
    let event = &recorded.event;
    let number = event.payload.number();
    let time = || {
        let is_undated = names.is_undated(event.stream);
        times.time(event.stream, recorded.seq, event.host_time, recorded.into(), is_undated)
    };
    Some(match term {
        Term::Kind(words) => {
            let parts: Vec<_> = match &event.payload {
                Payload::MessageRecorded(message) => message.parts.iter().map(|part| part.kind).collect(),
                Payload::MessageContinued(message) => message.parts.iter().map(|part| part.kind).collect(),
                _ => Vec::new(),
            };
            words.iter().any(|word| word.is_event(number, Some(&parts)) == Some(true))
        }
        Term::Tool(globs) => match &event.payload {
            Payload::ToolCallStarted(started) => is_tool(globs, &started.tool),
            _ => false,
        },
        Term::File(globs) => match &event.payload {
            Payload::ToolCallStarted(started) => {
                let files = started.keys.iter().filter(|key| key.kind == acpdb_engine::event::KeyKind::File);
                let mut paths =
                    files.flat_map(|key| std::iter::once(&key.given).chain(key.resolved.as_ref()));
                paths.any(|path| globs.is_match(&plain(path)))
            }
            Payload::FileChanged(changed) => {
                let mut paths = std::iter::once(&changed.key.given).chain(changed.key.resolved.as_ref());
                paths.any(|path| globs.is_match(&plain(path)))
            }
            _ => false,
        },
        Term::Call(globs) => match &event.payload {
            Payload::ToolCallStarted(started) => globs.is_match(&started.call),
            Payload::ToolCallFinished(finished) => globs.is_match(&finished.call),
            _ => false,
        },
        Term::Session(globs) => globs.is_match(names.name(event.stream)),
        Term::Host(globs) => globs.is_match(names.host(event.stream)),
        Term::In(streams) => streams.contains(&event.stream),
        Term::Seq(range) => range.holds(recorded.seq.get()),
        Term::Tokens(range) => range.holds(bodies::tokens(&event.payload)),
        Term::Since(since) => time().is_some_and(|time| time >= *since),
        Term::Until(until) => time().is_some_and(|time| time <= *until),
        Term::Actor(actors) => actors.contains(&event.stamp.actor),
        _ => return None,
    })
}

pub(crate) fn is_tool(globs: &acpdb_engine::text::Globs, tool: &str) -> bool {
    globs.is_match_tool(tool) || globs.is_match_tool(&tool.to_lowercase())
}

/// The verdict of "at least one of these".
fn any(verdicts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(false);
    for verdict in verdicts {
        match verdict {
            Some(true) => return Some(true),
            Some(false) => {}
            None => all = None,
        }
    }
    all
}
