//! Tokens of requests, which the host tells in several places.
//!
//! ```text
//! assistant.message        outputTokens alone, before 1.0.95                    the end of the message
//! session.usage_record     all tokens of one request                            the end of its message, told again; before its message: a
//!                                                                               request of its own, and the message ends without tokens
//! session.compaction_complete.compactionTokensUsed                              a request of no message
//! session.shutdown.modelMetrics                                                 sums by model since the last start
//!    less what requests told since then                                         a report of tier `total`, if anything is left
//! ```
//!
//! The host's input counts tokens from the cache, too. A message without a model is of the model that was chosen last; where none
//! was chosen before, its end waits for a later event that names one.

use std::collections::{BTreeMap, HashMap};

use acpdb_engine::entry::{Entry, fact};
use acpdb_engine::event::{Report, TOTAL_TIER, Usage};
use acpdb_engine::ids::Micros;

use super::super::json::{count, member, members, owned, pick};
use super::super::without_cached;

/// The end of the key of a request that no message told before.
const REQUEST: &str = "/request";

/// The line of a message, and its key.
type Answer = (usize, String);

/// The names that a request has, in the order of [`ids_of`].
type RequestIds = [Option<String>; 4];

/// The ends and models that were told so far.
#[derive(Debug, Default)]
pub(super) struct Reckoned {
    model: Option<String>,
    /// Keys of the ends by the ids of their requests.
    requests: HashMap<String, Answer>,
    /// The newest answer of which no record has told, with its ids and its tokens.
    open: Option<(Answer, RequestIds, Option<u64>)>,
    /// Usage of each end since the last sums, by its key.
    ends: BTreeMap<String, (Option<String>, Usage)>,
    /// The newest sums since the host was started.
    summed: Option<String>,
    /// Ends that wait for a model.
    unnamed: Vec<(Answer, Entry, Report)>,
    /// Of these, those of the event that is read.
    undated: bool,
}

impl Reckoned {
    /// The host was started: its sums begin anew.
    pub(super) fn started(&mut self) {
        self.summed = None;
    }

    /// A model was chosen.
    pub(super) fn model_is(&mut self, model: Option<String>) {
        self.model = model.or(self.model.take());
    }

    /// The model that was used, told afterwards.
    pub(super) fn model_was(&mut self, model: Option<String>) {
        if self.model.is_none() {
            self.model = model;
        }
    }

    /// The times of ends that wait are those of their events.
    pub(super) fn dated(&mut self, at: Option<Micros>) {
        if std::mem::take(&mut self.undated)
            && let Some((_, entry, _)) = self.unnamed.last_mut()
        {
            entry.host_time = at;
        }
    }

    /// The end of an answer.
    pub(super) fn answer(
        &mut self,
        answer: Answer,
        mut report: Report,
        data: &str,
        origin: &str,
        out: &mut Vec<Entry>,
    ) {
        let ids = ids_of(data);
        let known = ids.iter().flatten().find_map(|id| self.requests.get(id));
        if known.is_some_and(|(_, key)| key.ends_with(REQUEST)) {
            // A record before it has told all of it.
            report.usage = Usage::default();
            self.requests.retain(|id, _| !ids.iter().flatten().any(|own| own == id));
        } else {
            // Redactors put one word in place of many ids: the newest answer is meant.
            for id in ids.iter().flatten() {
                self.requests.insert(id.clone(), answer.clone());
            }
            self.open = Some((answer.clone(), ids, report.usage.output));
        }
        report.model = report.model.take().or_else(|| self.model.clone());
        self.ends.insert(answer.1.clone(), (report.model.clone(), report.usage));
        let origin = format!("{origin}/finished");
        if report.model.is_none() {
            let entry = finished(&answer.1, report.clone()).origin(origin);
            self.undated = true;
            self.unnamed.push((answer, entry, report));
            return;
        }
        out.push(finished(&answer.1, report).origin(origin));
    }

    /// The tokens of one request.
    pub(super) fn record(&mut self, data: &str, origin: &str, out: &mut Vec<Entry>) {
        // Newer versions put all of it one level deeper.
        let used = member(Some(data), "usage");
        let Some(usage) = usage_of(data).or_else(|| usage_of(used?)) else { return };
        let mut ids = ids_of(data);
        for (id, inner) in ids.iter_mut().zip(used.map(ids_of).unwrap_or_default()) {
            *id = id.take().or(inner);
        }
        let is_told = |id: &String, key: &str| {
            let is_word = !id.bytes().any(|byte| byte.is_ascii_digit());
            let known = self.ends.get(key).map(|(_, known)| known);
            is_word && known.is_some_and(|known| known.input.is_some() && *known != usage)
        };
        let known = ids.iter().flatten().find_map(|id| {
            let known = self.requests.get(id)?;
            (!is_told(id, &known.1)).then(|| known.clone())
        });
        // Without a common name: what the newest answer tells of itself does not speak against it.
        let is_of_open = |(_, own, output): &mut (Answer, RequestIds, Option<u64>)| {
            let is_other = |(one, other): (&Option<String>, &Option<String>)| {
                one.is_some() && other.is_some() && one != other
            };
            !own.iter().zip(&ids).any(is_other) && output.is_none_or(|output| usage.output == Some(output))
        };
        let known = known.or_else(|| self.open.take_if(is_of_open).map(|(answer, ..)| answer));
        if self.open.as_ref().is_some_and(|(answer, ..)| Some(answer) == known.as_ref()) {
            self.open = None;
        }
        let key = known.map_or_else(|| format!("{origin}{REQUEST}"), |(_, key)| key);
        let model = owned(member(Some(data), "model")).or_else(|| owned(member(used, "model")));
        self.request(&key, model, usage, ids, origin, out);
    }

    /// The request of a compaction, unless a record tells of it.
    pub(super) fn compacted(&mut self, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let Some(used) = member(Some(data), "compactionTokensUsed") else { return };
        let Some(usage) = usage_of(used) else { return };
        let ids = ids_of(data);
        let is_record = |id: &String| self.requests.get(id).is_some_and(|(_, key)| key.ends_with(REQUEST));
        if ids.iter().flatten().any(is_record) {
            return;
        }
        let key = format!("{origin}{REQUEST}");
        let model = owned(member(Some(used), "model")).or_else(|| owned(member(Some(data), "model")));
        self.request(&key, model, usage, ids, origin, out);
    }

    fn request(
        &mut self,
        key: &str,
        model: Option<String>,
        usage: Usage,
        ids: RequestIds,
        origin: &str,
        out: &mut Vec<Entry>,
    ) {
        let model = model.or_else(|| self.model.clone());
        self.ends.insert(key.to_owned(), (model.clone(), usage));
        let request = ids.iter().flatten().next().cloned();
        for id in ids.into_iter().flatten() {
            self.requests.entry(id).or_insert_with(|| (0, key.to_owned()));
        }
        let report = Report { model, request, usage, ..Report::default() };
        out.push(finished(key, report).origin(format!("{origin}/usage")));
    }

    /// Sums by model: the rest that no request told is a report of its own.
    pub(super) fn sums(&mut self, metrics: Option<&str>, origin: &str, out: &mut Vec<Entry>) {
        let metrics = metrics.filter(|all| *all != "null");
        // The end of one run of the host may be told twice.
        if metrics.is_some() && metrics == self.summed.as_deref() {
            return;
        }
        self.summed = metrics.map(str::to_owned);
        let models = metrics.and_then(members).unwrap_or_default();
        if let [(only, _)] = models.as_slice() {
            self.model_was(Some(only.clone()));
        }
        out.extend(self.named());
        let ends = std::mem::take(&mut self.ends);
        for (model, metric) in models {
            let Some(all) = member(Some(metric), "usage").and_then(usage_of) else { continue };
            let own = ends.values().filter(|(told, _)| told.as_deref() == Some(&*model));
            let rest = own.fold(all, |rest, (_, told)| rest.without(told));
            if [rest.input, rest.output, rest.cache_read, rest.cache_write]
                .iter()
                .all(|it| it.unwrap_or(0) == 0)
            {
                continue;
            }
            let tier = Some(TOTAL_TIER.to_owned());
            let key = format!("{origin}/{model}");
            let report = Report { model: Some(model), service_tier: tier, usage: rest, ..Report::default() };
            out.push(finished(&key, report).origin(key));
        }
    }

    /// Ends that have waited, once a model is known.
    fn named(&mut self) -> Vec<Entry> {
        let Some(model) = self.model.clone() else { return Vec::new() };
        let waiting = std::mem::take(&mut self.unnamed);
        let named = waiting.into_iter().map(|((_, key), entry, mut report)| {
            report.model = Some(model.clone());
            if let Some((known, _)) = self.ends.get_mut(&key) {
                *known = Some(model.clone());
            }
            Entry { fact: finished(&key, report).fact, ..entry }
        });
        named.collect()
    }

    /// Ends for which no model came.
    pub(super) fn unnamed(&mut self) -> impl Iterator<Item = (usize, Entry)> {
        std::mem::take(&mut self.unnamed).into_iter().map(|((owner, _), entry, _)| (owner, entry))
    }
}

fn finished(key: &str, report: Report) -> Entry {
    fact::MessageFinished { key: key.to_owned(), report }.into()
}

/// The ids of a request, under each name that the host has for one.
fn ids_of(data: &str) -> RequestIds {
    let names = ["apiCallId", "providerCallId", "requestId", "serviceRequestId"];
    pick(data, names).unwrap_or_default().map(|id| owned(id).filter(|id| !id.is_empty()))
}

fn usage_of(usage: &str) -> Option<Usage> {
    let names = [
        "inputTokens",
        "outputTokens",
        "cacheReadTokens",
        "cacheWriteTokens",
        "reasoningTokens",
        "input",
        "output",
        "cachedInput",
    ];
    let [input, output, read, written, reasoning, old_input, old_output, old_read] =
        pick(usage, names)?.map(count);
    let (input, output, read) = (input.or(old_input), output.or(old_output), read.or(old_read));
    input.or(output)?;
    let reasoning = reasoning.filter(|count| *count > 0);
    let usage =
        Usage { input, output, cache_read: read, cache_write: written, reasoning, ..Usage::default() };
    Some(without_cached(usage))
}
