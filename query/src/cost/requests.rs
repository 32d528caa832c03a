//! The requests of a store: each that a provider reported, once.
//!
//! Hosts copy. A session that is resumed under a new id begins with the records of the old one, and a fork with those of
//! its parent; their requests were paid once. Copies are told by the provider's request id; without one by the host's time,
//! the key and the counts; and those of a host's fork, which may bear new times, by the counts that it begins with.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use acpdb_engine::event::{Payload, Scope, Usage};
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::{Error, Store, store::StreamName};

use crate::names::time_of;

/// Numbers of the kinds that tell of requests.
const SESSION_CHANGED: u16 = 2;
const FORKED: u16 = 9;
const MESSAGE_FINISHED: u16 = 18;

/// A request, as its provider and its host told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its stream.
    pub stream: StreamId,
    /// The event that told of it.
    pub seq: Seq,
    /// When, as far as anyone knows.
    pub at: Option<Micros>,
    /// The model.
    pub model: Option<String>,
    /// The service tier.
    pub tier: Option<String>,
    /// Tokens.
    pub usage: Usage,
    /// What the host says that it cost, in dollars.
    pub host_says: Option<f64>,
}

/// All requests of a store, and the sessions they are of.
#[derive(Debug, Default)]
pub struct Requests {
    /// In the order of the log.
    pub all: Vec<Request>,
    /// Requests that were left out: copies of others.
    pub copies: u64,
    /// Sessions by their streams.
    pub streams: BTreeMap<StreamId, StreamName>,
    /// When each session's first and last events happened, as far as times are known.
    pub spans: BTreeMap<StreamId, (Micros, Micros)>,
    /// The newest title that a host gave a session after it began.
    pub titles: BTreeMap<StreamId, String>,
}

impl Requests {
    /// The session that a session's costs belong to: the one that started it, or the one that started that.
    pub fn root(&self, stream: StreamId) -> StreamId {
        let mut root = stream;
        // Circles end: no chain of parents is longer than the list.
        for _ in 0..self.streams.len() {
            let parent = self.streams.get(&root).and_then(|name| name.parent);
            match parent.filter(|parent| self.streams.contains_key(parent)) {
                Some(parent) => root = parent,
                None => break,
            }
        }
        root
    }
}

/// What tells a request from others.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    /// The provider's id of it, and the message.
    Told { host: String, request: String, key: String },
    /// Without one.
    Same { host: String, key: String, at: Micros, model: Option<String>, usage: Usage },
}

/// First and last times of a stream: by its host, and by the store.
#[derive(Clone, Copy, Default)]
struct Times {
    host: Option<(Micros, Micros)>,
    recorded: Option<(Micros, Micros)>,
}

impl Times {
    fn see(&mut self, host: Option<Micros>, recorded: Micros) {
        for (span, at) in [(&mut self.host, host), (&mut self.recorded, Some(recorded))] {
            let Some(at) = at else { continue };
            let (first, last) = span.unwrap_or((at, at));
            *span = Some((first.min(at), last.max(at)));
        }
    }
}

/// Reads the requests of a store, up to `to`. Damaged events are left out; the store notes them.
///
/// Cost: a look at the envelope of every event.
///
/// # Errors
/// If the log cannot be read.
pub fn requests(store: &Store, to: Seq) -> Result<Requests, Error> {
    let streams: BTreeMap<StreamId, StreamName> = store
        .stream_names()?
        .into_iter()
        .filter(|name| name.scope == Scope::Session)
        .map(|name| (name.id, name))
        .collect();
    let mut read = Reading::default();
    let events = store.events(Seq(1), to)?;
    let times = Arc::new(Mutex::new(BTreeMap::<StreamId, Times>::new()));
    let told = Arc::clone(&times);
    let events = events.wanted(move |glimpse| {
        let mut times = told.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry(glimpse.stream()).or_default().see(glimpse.host_time(), glimpse.recorded_at());
        matches!(glimpse.kind(), SESSION_CHANGED | FORKED | MESSAGE_FINISHED)
    });
    let mut titles = BTreeMap::new();
    for recorded in events {
        let Ok(recorded) = recorded else { continue };
        let Some(name) = streams.get(&recorded.event.stream) else { continue };
        let known = recorded.event.host_time;
        let at = time_of(&recorded, Some(name));
        match recorded.event.payload {
            Payload::SessionChanged(changed) => {
                if let Some(title) = changed.title {
                    titles.insert(recorded.event.stream, title.to_string());
                }
            }
            Payload::Forked(forked) if forked.at == Seq::ZERO => {
                read.forks.insert(recorded.event.stream, forked.from);
            }
            Payload::MessageFinished(finished) => {
                let report = finished.report;
                let identity = match report.request {
                    Some(request) => {
                        Some(Identity::Told { host: name.host.clone(), request, key: finished.key.clone() })
                    }
                    None => known.map(|at| Identity::Same {
                        host: name.host.clone(),
                        key: finished.key.clone(),
                        at,
                        model: report.model.clone(),
                        usage: report.usage,
                    }),
                };
                let request = Request {
                    stream: recorded.event.stream,
                    seq: recorded.seq,
                    at,
                    model: report.model,
                    tier: report.service_tier,
                    usage: report.usage,
                    host_says: report.cost.map(dollars_of),
                };
                read.take(request, finished.key, identity);
            }
            _ => {}
        }
    }
    read.leave_out_beginnings_of_forks();
    let all = read.all.into_iter().flatten().collect();
    let times = std::mem::take(&mut *times.lock().unwrap_or_else(PoisonError::into_inner));
    let span = |(stream, times): (StreamId, Times)| {
        let is_dated = streams.get(&stream)?.began.is_some();
        Some((stream, times.host.or(times.recorded.filter(|_| is_dated))?))
    };
    let spans = times.into_iter().filter_map(span).collect();
    Ok(Requests { all, copies: read.copies, streams, spans, titles })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a cost of a request is far below 2^52 millionths of a dollar"
)]
fn dollars_of(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

#[derive(Default)]
struct Reading {
    all: Vec<Option<Request>>,
    /// Places by message: what is said of a message later replaces what was said of it before.
    by_message: HashMap<(StreamId, String), usize>,
    seen: HashSet<Identity>,
    /// Requests of each stream as they were told, copies included.
    told: HashMap<StreamId, Vec<(Usage, usize)>>,
    /// Forks that came with a copy of what they share, and what they share it with.
    forks: BTreeMap<StreamId, StreamId>,
    copies: u64,
}

/// Place of a request that was a copy.
const COPY: usize = usize::MAX;

impl Reading {
    fn take(&mut self, request: Request, key: String, identity: Option<Identity>) {
        let is_telling = request.usage != Usage::default() || request.host_says.is_some();
        if !is_telling {
            return;
        }
        let (stream, usage) = (request.stream, request.usage);
        if let Some(place) = self.by_message.get(&(stream, key.clone())).copied() {
            if let Some(known) = self.all.get_mut(place) {
                *known = Some(request);
            }
            return;
        }
        if identity.is_some_and(|identity| !self.seen.insert(identity)) {
            self.copies += 1;
            self.told.entry(stream).or_default().push((usage, COPY));
            return;
        }
        let place = self.all.len();
        self.all.push(Some(request));
        self.by_message.insert((stream, key), place);
        self.told.entry(stream).or_default().push((usage, place));
    }

    /// A fork that came as a copy begins with its parent's requests.
    fn leave_out_beginnings_of_forks(&mut self) {
        for (fork, parent) in &self.forks {
            let (Some(own), Some(shared)) = (self.told.get(fork), self.told.get(parent)) else { continue };
            for ((usage, place), (other, other_place)) in own.iter().zip(shared) {
                if usage != other {
                    break;
                }
                // The parent's may have been found to be a copy of the fork's, which then stands for both.
                if *other_place == COPY {
                    continue;
                }
                if let Some(request) = self.all.get_mut(*place).filter(|request| request.is_some()) {
                    *request = None;
                    self.copies += 1;
                }
            }
        }
    }
}
