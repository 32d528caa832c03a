//! Tokens of an answer, as the provider's usage tells them.
//!
//! ```text
//! usage {input_tokens, .., service_tier, speed}      one inference
//! usage.iterations [{type, model, input_tokens, ..}] several: each has its own length and its own model, and is paid for as such
//! context_management.applied_edits [..]              what the provider cleared for this answer, for people
//! cost-state {modelUsage{<model>: {inputTokens, ..}}} all that the host paid in the session, compactions and subagents too
//! ```
//!
//! Of several inferences of the answer's own model the last is told as the answer's, which shows the length of its context; the
//! others are parts of that request.

use acpdb_engine::entry::{Entry, fact};
use acpdb_engine::event::{PART_TIER, Report, SUM_TIER, Usage};

use super::super::json;

/// An inference beside the one that an answer's own report tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OtherInference {
    model: Option<String>,
    tier: Option<String>,
    usage: Usage,
}

/// The usage of a record: its service tier, the tokens of its own inference, the model of that if it is another one's than the answer's, and
/// other inferences.
pub(super) struct Spent {
    pub(super) model: Option<String>,
    pub(super) tier: Option<String>,
    pub(super) usage: Usage,
    pub(super) beside: Vec<OtherInference>,
}

impl Spent {
    /// Reads the usage of an answer of `model`.
    pub(super) fn of(usage: &str, model: Option<&str>) -> Option<Self> {
        let [tier, speed, iterations] = json::pick(usage, ["service_tier", "speed", "iterations"])?;
        let tier = tier_of(json::owned(tier), json::string(speed).as_deref());
        let all = usage_of(usage)?;
        let list = iterations.and_then(json::elements).unwrap_or_default();
        let read = |text: &&str| {
            let [kind, own] = json::pick(text, ["type", "model"])?;
            let used = usage_of(text)?;
            let kind = json::owned(kind).unwrap_or_default();
            Some((kind, json::owned(own), used))
        };
        let list: Vec<_> = list.iter().filter_map(read).collect();
        let is_own = |of: &Option<String>| of.as_deref().is_none_or(|of| Some(of) == model);
        let is_message = |kind: &str| matches!(kind, "message" | "");
        let own = list.iter().rposition(|(kind, of, _)| is_message(kind) && is_own(of));
        // Another model may have given the whole answer.
        let own = own.or_else(|| list.iter().rposition(|(kind, ..)| is_message(kind)));
        let is_told_alone =
            |own: &usize| list.len() > 1 || list.get(*own).is_some_and(|(_, of, _)| !is_own(of));
        let Some(own) = own.filter(is_told_alone) else {
            return Some(Self { model: None, tier, usage: all, beside: Vec::new() });
        };
        let mut spent = Self { model: None, tier: tier.clone(), usage: Usage::default(), beside: Vec::new() };
        for (place, (kind, of, used)) in list.into_iter().enumerate() {
            if place == own {
                spent.model = of.filter(|of| Some(of.as_str()) != model);
                spent.usage = Usage { searches: all.searches, reasoning: all.reasoning, ..used };
                continue;
            }
            // No price list of tokens has the price of an advisor.
            let tier = if kind == "advisor_message" { Some("advisor") } else { tier.as_deref() };
            let tier = Some(format!("{}{PART_TIER}", tier.unwrap_or_default()));
            let model = of.or_else(|| model.map(str::to_owned));
            spent.beside.push(OtherInference { model, tier, usage: used });
        }
        Some(spent)
    }
}

/// The reports of other inferences of an answer.
pub(super) fn reports<'b>(
    key: &'b str,
    request: Option<&'b str>,
    beside: &'b [OtherInference],
) -> impl Iterator<Item = Entry> + 'b {
    beside.iter().enumerate().map(move |(place, one)| {
        let report = Report {
            model: one.model.clone(),
            service_tier: one.tier.clone(),
            request: request.map(str::to_owned),
            usage: one.usage,
            ..Report::default()
        };
        let key = format!("{key}/{}", place + 1);
        let origin = format!("msg:{key}:finish");
        Entry::from(fact::MessageFinished { key, report }).origin(origin)
    })
}

/// The cost of a session so far, as its host tells it, by model.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// By model: what earlier starts of the host came to, and the newest sum since.
    sums: std::collections::BTreeMap<String, (Usage, Usage)>,
    /// The start of the host.
    start: Option<u64>,
}

impl Costs {
    /// Adds the host's sums of a record, which begin anew with each start of the host.
    pub(super) fn told(&mut self, record: &str, origin: &str, out: &mut Vec<Entry>) {
        let [start, models] = json::pick(record, ["startTime", "modelUsage"]).unwrap_or_default();
        let start = json::count(start).or(self.start);
        if start != self.start {
            for (before, last) in self.sums.values_mut() {
                *before = sum(*before, std::mem::take(last));
            }
            self.start = start;
        }
        let models = models.and_then(json::members);
        for (model, used) in models.unwrap_or_default() {
            let names = [
                "inputTokens",
                "outputTokens",
                "cacheReadInputTokens",
                "cacheCreationInputTokens",
                "cacheCreationEphemeral1hInputTokens",
                "webSearchRequests",
            ];
            let Some(counts) = json::pick(used, names) else { continue };
            let [input, output, cache_read, cache_write, cache_write_long, searches] =
                counts.map(json::count);
            let used = Usage {
                input,
                output,
                cache_read,
                cache_write,
                cache_write_long,
                searches,
                ..Usage::default()
            };
            let (before, last) = self.sums.entry(model.clone()).or_default();
            if used.output < last.output {
                *before = sum(*before, *last);
            }
            *last = used;
            let (usage, tier) = (sum(*before, used), Some(SUM_TIER.to_owned()));
            let key = format!("{SUM_TIER}/{model}");
            let report =
                Report { model: Some(model.clone()), service_tier: tier, usage, ..Report::default() };
            let fact = fact::MessageFinished { key, report };
            out.push(Entry::from(fact).origin(format!("{origin}/{model}")));
        }
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    };
    Usage {
        input: add(one.input, other.input),
        output: add(one.output, other.output),
        cache_read: add(one.cache_read, other.cache_read),
        cache_write: add(one.cache_write, other.cache_write),
        cache_write_long: add(one.cache_write_long, other.cache_write_long),
        reasoning: add(one.reasoning, other.reasoning),
        searches: add(one.searches, other.searches),
    }
}

/// A faster speed is a tier of its own.
fn tier_of(tier: Option<String>, speed: Option<&str>) -> Option<String> {
    match (tier, speed.filter(|speed| !matches!(*speed, "standard" | ""))) {
        (tier, None) => tier,
        (Some(tier), Some(speed)) if tier != "standard" => Some(format!("{tier}, {speed}")),
        (_, Some(speed)) => Some(speed.to_owned()),
    }
}

pub(super) fn usage_of(usage: &str) -> Option<Usage> {
    let names = [
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "cache_creation",
        "output_tokens_details",
        "server_tool_use",
    ];
    let [input, output, cache_read, cache_write, creation, details, tools] = json::pick(usage, names)?;
    Some(Usage {
        input: json::count(input),
        output: json::count(output),
        cache_read: json::count(cache_read),
        cache_write: json::count(cache_write),
        cache_write_long: json::count(json::member(creation, "ephemeral_1h_input_tokens")),
        reasoning: json::count(json::member(details, "thinking_tokens")),
        searches: json::count(json::member(tools, "web_search_requests")).filter(|count| *count > 0),
    })
}

/// The greatest of each count: the records of a message repeat its usage, and some gateways write zeros on one of them.
pub(super) fn greatest(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.max(other.input),
        output: one.output.max(other.output),
        cache_read: one.cache_read.max(other.cache_read),
        cache_write: one.cache_write.max(other.cache_write),
        cache_write_long: one.cache_write_long.max(other.cache_write_long),
        reasoning: one.reasoning.max(other.reasoning),
        searches: one.searches.max(other.searches),
    }
}

/// The parts that a provider cleared or compacted on its side before it answered, for people: the host's own list goes on.
pub(super) fn applied_edits(management: Option<&str>) -> Option<String> {
    let edits = json::member(management, "applied_edits").and_then(json::elements)?;
    let told = edits.into_iter().filter_map(|edit| {
        let members = json::members(edit)?;
        let kind =
            members.iter().find(|(name, _)| name == "type").and_then(|(_, kind)| json::owned(Some(kind)))?;
        let counts = members.iter().filter_map(|(name, count)| {
            Some(format!("{} {}", name.replace('_', " "), json::count(Some(count))?))
        });
        Some(format!("{kind}: {}", counts.collect::<Vec<_>>().join(", ")))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty())
        .then(|| format!("the provider edited the context of this request: {}", told.join("; ")))
}
