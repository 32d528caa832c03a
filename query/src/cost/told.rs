//! The tellings of a log about requests, event by event: [`super::Requests`] are made of them.
//!
//! They can be kept and read on from their end: each part is either a list in the order of the log, the newest of a kind, or the
//! least and the most. No text is in them, only names that events spell out, and digests of keys.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use acpdb_engine::event::{KIND_LABELS, Payload, Recorded, Report, SUM_TIER, TOLD_KINDS, TOTAL_TIER, Usage};
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::locks::steady;
use acpdb_engine::{
    Error, Store,
    store::{Glimpse, StreamName},
};
use sha2::{Digest as _, Sha256};

use super::request::BilledRequest;
use crate::kinds::{ERASED, FORKED, INJECTED, MESSAGE_FINISHED, REWOUND, SESSION_CHANGED, SESSION_OPENED};
use crate::sound::sound;
use crate::times::own_time;

/// Whether an event is an act of acpdb or a person, told by no host.
fn is_act(glimpse: &Glimpse<'_>) -> bool {
    // Of these two, hosts tell as well. Only a fact that was told has a revision.
    let is_either = matches!(glimpse.kind(), REWOUND | INJECTED);
    is_act_by_kind(glimpse.kind())
        || is_either && glimpse.decode().is_ok_and(|recorded| recorded.event.stamp.revision == 0)
}

/// Whether all events of a kind are acts. A session is opened with its host's time; nothing is known of kinds that newer programs
/// write.
fn is_act_by_kind(kind: u16) -> bool {
    // Nearly every event was told of by a host.
    let is_told = kind == SESSION_OPENED || TOLD_KINDS.contains(&kind);
    !is_told && KIND_LABELS.iter().any(|(number, _)| *number == kind)
}

/// A digest that tells one thing from others, in few bytes.
pub(crate) type Mark = [u8; 16];

/// The tellings of a log, up to a seq.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RequestTellings {
    /// The seq up to which everything was read.
    pub(crate) until: Seq,
    /// In the order of the log, copies included.
    pub(crate) all: Vec<RequestTelling>,
    /// The events that gave sessions their newest titles after they began.
    pub(crate) titles: BTreeMap<StreamId, Seq>,
    /// Forks that came with a copy of the history that they share, and their parents.
    pub(crate) forks: BTreeMap<StreamId, StreamId>,
    /// First and last times of streams.
    pub(crate) times: BTreeMap<StreamId, Times>,
}

/// A request as an event told of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestTelling {
    pub(crate) request: BilledRequest,
    /// The message.
    pub(crate) key: Mark,
    /// The mark that all copies share; `None`: nothing tells a copy.
    pub(crate) identity: Option<Mark>,
    /// The mark of its answer's name, beside that of the provider's name for the request: a copy may have lost either.
    pub(crate) answer: Option<Mark>,
    /// Which of several stores tells it; 0 where there is one.
    pub(crate) store: u32,
}

/// First and last times of a stream: by its host, and by the store.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) host: Option<(Micros, Micros)>,
    pub(crate) recorded: Option<(Micros, Micros)>,
}

impl Times {
    fn see(&mut self, host: Option<Micros>, recorded: Micros) {
        let host = host.map(|host| host.min(recorded));
        for (span, at) in [(&mut self.host, host), (&mut self.recorded, Some(recorded))] {
            let Some(at) = at else { continue };
            let (first, last) = span.unwrap_or((at, at));
            *span = Some((first.min(at), last.max(at)));
        }
    }

    fn and(&mut self, other: Self) {
        for (span, more) in [(&mut self.host, other.host), (&mut self.recorded, other.recorded)] {
            let Some((from, to)) = more else { continue };
            let (first, last) = span.unwrap_or((from, to));
            *span = Some((first.min(from), last.max(to)));
        }
    }
}

/// The streams that events behind the kept data are about.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// Those that have events.
    pub(crate) streams: BTreeSet<StreamId>,
    /// The store's own stream has an event that may be about every stream: a policy.
    pub(crate) all: bool,
    /// The events of which texts were erased.
    pub(crate) erased: BTreeSet<Seq>,
}

impl RequestTellings {
    /// Takes in what another store tells, whose seqs stand behind `before`. Its titles stay with it.
    pub(crate) fn and(&mut self, other: Self, store: u32, before: u64) {
        let behind = |mut telling: RequestTelling| {
            telling.request.seq = Seq(before + telling.request.seq.get());
            telling.store = store;
            telling
        };
        self.all.extend(other.all.into_iter().map(behind));
        self.forks.extend(other.forks);
        for (stream, times) in other.times {
            self.times.entry(stream).or_default().and(times);
        }
    }

    /// Reads on up to `to`, at most the head; returns the streams that the events there are about. Damaged events are left out; the store
    /// notes them.
    ///
    /// Cost: a look at the envelope of every new event.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub(crate) fn read_on(&mut self, store: &Store, names: &[StreamName], to: Seq) -> Result<Moved, Error> {
        let mut moved = Moved::default();
        if self.until >= to {
            return Ok(moved);
        }
        let names: HashMap<StreamId, &StreamName> = names.iter().map(|name| (name.id, name)).collect();
        // Events of other streams are not decoded: an event that cannot be opened is an error only where it is asked for.
        let asked: BTreeSet<StreamId> = names.keys().copied().collect();
        let seen = Arc::new(Mutex::new((BTreeMap::<StreamId, Times>::new(), false)));
        let noted = Arc::clone(&seen);
        let events = store.events(self.until.next(), to)?.wanted(move |glimpse| {
            let (times, is_of_all) = &mut *steady(&noted);
            let host_time = glimpse.host_time().filter(|_| !is_act(glimpse));
            let is_erasure = glimpse.kind() == ERASED;
            *is_of_all |= glimpse.stream() == StreamId::STORE && !is_erasure;
            times.entry(glimpse.stream()).or_default().see(host_time, glimpse.recorded_at());
            let is_told = matches!(glimpse.kind(), SESSION_CHANGED | FORKED | MESSAGE_FINISHED);
            is_erasure || is_told && asked.contains(&glimpse.stream())
        });
        for recorded in sound(events) {
            let recorded = recorded?;
            if let Payload::Erased(erased) = &recorded.event.payload {
                moved.erased.extend(erased.bodies.iter().map(|body| body.seq));
            } else if let Some(name) = names.get(&recorded.event.stream) {
                self.take(recorded, name);
            }
        }
        let (seen, is_of_all) = std::mem::take(&mut *steady(&seen));
        moved.streams = seen.keys().copied().collect();
        moved.all = is_of_all;
        for (stream, times) in seen {
            self.times.entry(stream).or_default().and(times);
        }
        self.until = to;
        Ok(moved)
    }

    fn take(&mut self, recorded: Recorded, name: &StreamName) {
        let (stream, known) = (recorded.event.stream, recorded.event.host_time);
        let at = own_time(&recorded, Some(name));
        match recorded.event.payload {
            Payload::SessionChanged(changed) if changed.title.is_some() => {
                self.titles.insert(stream, recorded.seq);
            }
            Payload::Forked(forked) if forked.at == Seq::ZERO => {
                self.forks.insert(stream, forked.from);
            }
            Payload::MessageFinished(finished) => {
                let mut report = finished.report;
                report.request = report.request.take().filter(|request| is_name(request));
                let host_says = report.cost.map(dollars_of);
                if report.usage == Usage::default() && host_says.is_none() {
                    return;
                }
                let own = told_first(&finished.key);
                let key = mark(&[own.as_bytes()]);
                let identity = identity(own, &report, name, known);
                let answer = report.request.as_ref().and_then(|_| named(own, &report, name));
                let is_sum = matches!(report.service_tier.as_deref(), Some(SUM_TIER | TOTAL_TIER));
                let most = if is_sum { SUM_TOKENS_MAX } else { TOKENS_MAX };
                let is_possible = counts(&report.usage).into_iter().flatten().all(|count| count <= most);
                let (tier, usage) = if is_possible {
                    (report.service_tier.map(Arc::from), report.usage)
                } else {
                    (Some(Arc::from(IMPOSSIBLE_TIER)), Usage::default())
                };
                let model = report.model.map(Arc::from);
                let request = BilledRequest { stream, seq: recorded.seq, at, model, tier, usage, host_says };
                self.all.push(RequestTelling { request, key, identity, answer, store: 0 });
            }
            _ => {}
        }
    }
}

/// The mark that all copies of a request share. Without the provider's name for it: the host's time, the model, the counts and the cost;
/// copies may have other keys. The ids that Anthropic gives its answers are names, too.
fn identity(key: &str, report: &Report, name: &StreamName, at: Option<Micros>) -> Option<Mark> {
    let host = name.host.as_bytes();
    if report.service_tier.as_deref() == Some(SUM_TIER) {
        return None;
    }
    if let Some(request) = &report.request {
        return Some(mark(&[b"told", host, request.as_bytes(), key.as_bytes()]));
    }
    if let Some(named) = named(key, report, name) {
        return Some(named);
    }
    let counts: Vec<u8> = counts(&report.usage).into_iter().flat_map(count_bytes).collect();
    let model = report.model.as_deref().map_or(&b""[..], str::as_bytes);
    let cost = count_bytes(report.cost);
    // A sum of several requests may come again; that of a copied event bears its name.
    if report.service_tier.as_deref() == Some(TOTAL_TIER) {
        let at = count_bytes(at.map(Micros::get).and_then(|at| u64::try_from(at).ok()));
        return Some(mark(&[b"total", host, key.as_bytes(), &at, model, &counts]));
    }
    // Too short to be one of Anthropic's own: it is a name together with what was told under it.
    if key.starts_with("msg_") && is_name(key) && report.provider.is_none() && name.host == "claude-code" {
        return Some(mark(&[b"short", host, key.as_bytes(), model, &counts, &cost]));
    }
    at.map(|at| mark(&[b"same", host, &at.get().to_le_bytes(), model, &counts, &cost]))
}

/// The mark of an answer that Anthropic named.
fn named(key: &str, report: &Report, name: &StreamName) -> Option<Mark> {
    let is_given = key.len() > 8 && key.starts_with("msg_") && is_name(key) && report.provider.is_none();
    (is_given && name.host == "claude-code").then(|| mark(&[b"named", name.host.as_bytes(), key.as_bytes()]))
}

/// Whether an id names one thing: each that a provider gives has digits. Redactors put one word in place of many, which an importer tells apart
/// by a number of its own.
fn is_name(id: &str) -> bool {
    let (given, number) = id.rsplit_once('+').unwrap_or((id, ""));
    let given = if number.bytes().all(|byte| byte.is_ascii_digit()) { given } else { id };
    given.bytes().any(|byte| byte.is_ascii_digit())
}

/// The key under which a message was told first: one that comes back after a rewind is told again, as `KEY@2`. It was paid once.
fn told_first(key: &str) -> &str {
    let (first, number) = key.rsplit_once('@').unwrap_or((key, ""));
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !first.is_empty() { first } else { key }
}

/// Most tokens of a request: more than any model takes.
const TOKENS_MAX: u64 = 1_000_000_000;
/// Most tokens of a sum that a host tells: more than a session uses.
const SUM_TOKENS_MAX: u64 = 10_000_000_000;
/// The tier of a report with more tokens than that: it is named, and in no sum.
const IMPOSSIBLE_TIER: &str = "impossible counts";

fn counts(usage: &Usage) -> [Option<u64>; 7] {
    let Usage { input, output, cache_read, cache_write, cache_write_long, reasoning, searches } = *usage;
    [input, output, cache_read, cache_write, cache_write_long, reasoning, searches]
}

fn count_bytes(count: Option<u64>) -> [u8; 9] {
    let mut bytes = [0; 9];
    if let (Some(count), [mark, rest @ ..]) = (count, &mut bytes) {
        *mark = 1;
        *rest = count.to_le_bytes();
    }
    bytes
}

/// A digest over parts, so that no part can run into another.
pub(crate) fn mark(parts: &[&[u8]]) -> Mark {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let mut mark = Mark::default();
    for (to, from) in mark.iter_mut().zip(digest.finalize()) {
        *to = from;
    }
    mark
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a cost of a request is far below 2^52 millionths of a dollar"
)]
fn dollars_of(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The acts were a list of numbers, which a new kind would not have been in.
    #[test]
    fn acts_are_the_kinds_that_no_host_tells_of() {
        let acts: Vec<&str> = KIND_LABELS
            .iter()
            .filter(|(number, _)| is_act_by_kind(*number))
            .map(|(_, label)| *label)
            .collect();
        let expected = "item_revised task_changed task_evicted discarded distilled restored pinned unpinned context_rebased \
                        context_served policy_set project_renamed erased damage_noted";
        assert_eq!(acts, expected.split_whitespace().collect::<Vec<_>>());
        assert!(!is_act_by_kind(9_999));
    }
}
