//! The requests of a store: each that a provider reported, once.
//!
//! Hosts copy. A session that is resumed under a new id begins with the records of the old one, and a fork with those of
//! its parent; their requests were paid once. Copies are told by the provider's request id; without one by the host's time,
//! the model, the counts and the cost; and those of a host's fork, which may bear new times, by the counts that it begins with.
//!
//! Some hosts also tell sums, of requests that they record nowhere else: what no request told of them stands beside the
//! requests, and is none itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use acpdb_engine::event::{Scope, TOTAL_TIER, Usage};
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::{Error, Store, store::StreamName};

use super::request::BilledRequest;
use super::table::{plain, undated};
use super::told::{Mark, RequestTelling, RequestTellings, Times};
use crate::kept::StoreData;

/// All requests of a store, and their sessions.
#[derive(Debug, Default)]
pub struct Requests {
    /// In the order of the log.
    pub all: Vec<BilledRequest>,
    /// Requests that were left out: copies of others.
    pub copies: Vec<BilledRequest>,
    /// Sessions by their streams.
    pub streams: BTreeMap<StreamId, StreamName>,
    /// The times of each session's first and last events, as far as times are known.
    pub spans: BTreeMap<StreamId, (Micros, Micros)>,
    /// The events that gave sessions their newest titles after they began.
    pub titles: BTreeMap<StreamId, Seq>,
}

impl Requests {
    /// The session that a session's costs belong to: the topmost of the sessions that started it, else itself.
    pub fn root(&self, stream: StreamId) -> StreamId {
        self.line(stream).last().unwrap_or(stream)
    }

    /// A session, then the session that started it, and so on.
    pub(crate) fn line(&self, stream: StreamId) -> impl Iterator<Item = StreamId> {
        let parent = |stream: &StreamId| self.streams.get(stream).and_then(|name| name.parent);
        let known =
            move |stream: &StreamId| parent(stream).filter(|parent| self.streams.contains_key(parent));
        // Circles end: no line is longer than the list.
        std::iter::successors(Some(stream), known).take(self.streams.len().saturating_add(1))
    }
}

/// The requests of one of several stores, and what was told of them.
#[derive(Debug, Default)]
pub struct StoreRequests {
    /// The requests, as [`requests`] reads them.
    pub requests: Requests,
    told: RequestTellings,
    head: Seq,
}

/// Reads the requests of one of several stores, up to `to`, for [`Requests::joined`].
///
/// Cost: as [`requests`].
///
/// # Errors
/// If the log cannot be read.
pub fn store_requests(store: &Store, to: Seq) -> Result<StoreRequests, Error> {
    let (requests, told) = told_requests(store, to)?;
    Ok(StoreRequests { requests, told, head: store.head()? })
}

impl StoreRequests {
    pub(crate) const fn new(requests: Requests, told: RequestTellings, head: Seq) -> Self {
        Self { requests, told, head }
    }
}

/// Reads the requests of a store, up to `to`. Damaged events are left out; the store notes them.
///
/// Cost: the read of the kept tellings ([`crate::kept`]), and a look at the envelope of every newer event.
///
/// # Errors
/// If the log cannot be read.
pub fn requests(store: &Store, to: Seq) -> Result<Requests, Error> {
    Ok(told_requests(store, to)?.0)
}

/// The requests of a store, and what they were made of.
fn told_requests(store: &Store, to: Seq) -> Result<(Requests, RequestTellings), Error> {
    let mut names = store.stream_names()?;
    names.retain(|name| name.scope == Scope::Session);
    let told = StoreData::at(store, to, &names)?.told;
    Ok((Requests::of(&told, names), told))
}

impl Requests {
    /// The requests of several stores as one: what two of them hold counts once. Their seqs go on from store to store; the second part is
    /// the seq that stands before those of each.
    pub fn joined(mut parts: Vec<StoreRequests>) -> (Self, Vec<Seq>) {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return (only.requests, vec![Seq::ZERO]);
        }
        let (mut all, mut names, mut before, mut end) =
            (RequestTellings::default(), Vec::new(), Vec::new(), 0);
        for (part, store) in parts.into_iter().zip(0..) {
            before.push(Seq(end));
            all.and(part.told, store, end);
            names.extend(part.requests.streams.into_values());
            end += part.head.get();
        }
        (Self::of(&all, names), before)
    }

    /// Makes requests of their tellings, each once.
    pub(crate) fn of(told: &RequestTellings, names: Vec<StreamName>) -> Self {
        let streams: BTreeMap<StreamId, StreamName> = names.into_iter().map(|name| (name.id, name)).collect();
        let forked = told.forks.iter().flat_map(|(fork, parent)| [*fork, *parent]).collect();
        let mut read = RequestReader { forked, ..RequestReader::default() };
        for (number, telling) in told.all.iter().enumerate() {
            read.take(number, telling, &told.all);
        }
        read.leave_out_beginnings_of_forks(&told.forks);
        let sums = read.sums(&told.all);
        // There may be a hundred thousand: only those that count are cloned, and copies of them, which are counted.
        let RequestReader { all: kept, copies, .. } = read;
        let request = |number: usize| Some(told.all.get(number)?.request.clone());
        let mut all: Vec<BilledRequest> = kept.into_iter().flatten().filter_map(request).collect();
        let copies = copies.into_iter().filter_map(request).filter(BilledRequest::counts).collect();
        let span = |(stream, times): (&StreamId, &Times)| {
            let is_dated = streams.get(stream)?.began.is_some();
            Some((*stream, times.host.or(times.recorded.filter(|_| is_dated))?))
        };
        let spans = told.times.iter().filter_map(span).collect();
        let mut requests = Self { copies, streams, spans, titles: told.titles.clone(), ..Self::default() };
        requests.add_rests(&mut all, &sums, &told.all);
        requests.all = all;
        requests
    }

    /// Adds what no request told of the hosts' sums. A sum counts the session's subagents, and copies that it began with.
    fn add_rests(&self, all: &mut Vec<BilledRequest>, sums: &[usize], tellings: &[RequestTelling]) {
        if sums.is_empty() {
            return;
        }
        let mut told: BTreeMap<(StreamId, String), BTreeMap<(StreamId, Mark), Usage>> = BTreeMap::new();
        for telling in tellings.iter().filter(|telling| !telling.request.is_sum()) {
            let request = &telling.request;
            let Some(model) = &request.model else { continue };
            let own = told.entry((self.root(request.stream), plain(model))).or_default();
            own.insert((request.stream, telling.key), request.usage);
        }
        for request in sums.iter().filter_map(|sum| tellings.get(*sum)).map(|telling| &telling.request) {
            let model = request.model.as_deref().map(plain).unwrap_or_default();
            let root = self.root(request.stream);
            // A sum may leave the date out that its requests have in the model's name, or have it alone.
            let is_alike =
                |((of, name), _): &(&(StreamId, String), _)| *of == root && undated(name) == undated(&model);
            let own = told.get(&(root, model.clone()));
            let own = own.or_else(|| told.iter().find(is_alike).map(|(_, own)| own));
            let own = own.into_iter().flat_map(BTreeMap::values);
            let usage = own.fold(request.usage, Usage::without);
            if usage.input.max(usage.output).max(usage.cache_read).max(usage.cache_write).unwrap_or(0) > 0 {
                let tier = Some(Arc::from(TOTAL_TIER));
                all.push(BilledRequest { tier, usage, ..request.clone() });
            }
        }
        all.sort_by_key(|request| request.seq);
    }
}

#[derive(Default)]
struct RequestReader {
    /// By place, the number of the last telling of a request; `None`: it was left out.
    all: Vec<Option<usize>>,
    /// Places by message: a later telling of a message replaces an earlier one.
    by_message: HashMap<(StreamId, Mark), usize>,
    /// The first request of each mark.
    seen: HashMap<Mark, Own>,
    /// The same by the answers' names, of requests that the provider named as well.
    answers: HashMap<Mark, Own>,
    /// The same of requests that it did not name, and that are no copies of ones that it named.
    nameless: HashMap<Mark, Own>,
    /// Messages that a store before had told, each with the store that told it again.
    elsewhere: HashSet<Own>,
    /// The newest sums of hosts, by stream and model.
    sums: BTreeMap<(StreamId, Mark), usize>,
    /// Streams that hold copies.
    copied: HashSet<StreamId>,
    /// Forks that came with a copy of their parent's events, and the parents of such forks.
    forked: HashSet<StreamId>,
    /// Requests of each of these streams as they were told, copies included.
    told: HashMap<StreamId, Vec<(Usage, usize)>>,
    /// The numbers of tellings that were left out as copies.
    copies: Vec<usize>,
}

/// A telling's store, stream and message.
type Own = (u32, StreamId, Mark);

/// Place of a request that was a copy.
const COPY: usize = usize::MAX;

impl RequestReader {
    fn take(&mut self, number: usize, telling: &RequestTelling, tellings: &[RequestTelling]) {
        let RequestTelling { request, key, identity, store, .. } = telling;
        let (stream, usage, key) = (request.stream, request.usage, *key);
        if let Some(place) = self.by_message.get(&(stream, key)).copied() {
            let known = self.all.get(place).copied().flatten().and_then(|known| tellings.get(known));
            // A store that was filled earlier may hold the beginning of an answer.
            let is_less = known.is_some_and(|known| {
                known.store != *store && tokens(&known.request.usage) > tokens(&request.usage)
            });
            if known.is_some_and(|known| known.store != *store)
                && self.elsewhere.insert((*store, stream, key))
            {
                self.copies.push(number);
            }
            if let Some(known) = self.all.get_mut(place).filter(|_| !is_less) {
                *known = Some(number);
            }
            // Copies are of what it came to.
            self.first_of(telling);
            return;
        }
        if request.is_sum() {
            self.sums.insert((stream, key), number);
            return;
        }
        // Two requests of one session may end at one time, with the same counts.
        let own = (*store, stream, key);
        let first = identity.and_then(|_| self.first_of(telling));
        if first
            .is_some_and(|first| first != own && ((first.0, first.1) != (*store, stream) || first.2 == key))
        {
            self.copies.push(number);
            self.copied.insert(stream);
            if self.forked.contains(&stream) {
                self.told.entry(stream).or_default().push((usage, COPY));
            }
            return;
        }
        let place = self.all.len();
        self.all.push(Some(number));
        self.by_message.insert((stream, key), place);
        if self.forked.contains(&stream) {
            self.told.entry(stream).or_default().push((usage, place));
        }
    }

    /// The first request with the same mark. Two that the provider named are one only by that name; where one of them has lost it, by the
    /// name of the answer.
    fn first_of(&mut self, telling: &RequestTelling) -> Option<Own> {
        let own = (telling.store, telling.request.stream, telling.key);
        let identity = telling.identity?;
        let by_answer = if let Some(answer) = &telling.answer {
            self.answers.entry(*answer).or_insert(own);
            self.nameless.get(answer).copied()
        } else {
            let known = self.answers.get(&identity).copied();
            if known.is_none() {
                self.nameless.entry(identity).or_insert(own);
            }
            known
        };
        Some(*self.seen.entry(identity).or_insert(by_answer.unwrap_or(own)))
    }

    /// The sums that count: of a session with copies it is not known which part of the sum is its own.
    fn sums(&self, tellings: &[RequestTelling]) -> Vec<usize> {
        let is_own = |number: &usize| {
            let stream = tellings.get(*number).map(|telling| telling.request.stream);
            stream.is_some_and(|stream| !self.copied.contains(&stream))
        };
        self.sums.values().copied().filter(is_own).collect()
    }

    /// A fork that came as a copy begins with its parent's requests.
    fn leave_out_beginnings_of_forks(&mut self, forks: &BTreeMap<StreamId, StreamId>) {
        for (fork, parent) in forks {
            let (Some(own), Some(shared)) = (self.told.get(fork), self.told.get(parent)) else { continue };
            for ((usage, place), (other, other_place)) in own.iter().zip(shared) {
                if usage != other {
                    break;
                }
                // The parent's request may have been found to be a copy of the fork's, which then counts for both.
                if *other_place == COPY {
                    continue;
                }
                self.copies.extend(self.all.get_mut(*place).and_then(Option::take));
            }
        }
    }
}

/// All tokens of a request, to see which of two tellings says more.
fn tokens(usage: &Usage) -> u64 {
    let counts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    counts.into_iter().flatten().fold(0, u64::saturating_add)
}
