//! `acpdb simulate`: the cost of sessions under other policies and modes.
//!
//! Sessions are spread over the cores; each is read once for all policies and modes.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::event::Scope;
use acpdb_engine::fold::Policy as Rules;
use acpdb_engine::fold::policy::{Prices, ServeMode};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::cost::{self, BilledRequest, PriceTable, Reported};
use acpdb_query::simulate::{
    self, HostCould, PolicyRow, PriceList, SessionRecording, Setup, SimulationResult,
};

use super::lines::NamesApart;
use super::simulate_parts::{self, mode};
use super::table::{self, number, text, tokens};
use super::{Code, Failure, Global, Output, describe, policy_file, session, store_path};
use crate::args::{Simulate, SimulateBy, SimulateMode};
use crate::spread;

/// Policies that are compared if the user names none.
const POLICIES: &[&str] = &["acp", "balanced", "careful", "economy"];

/// The results of a session: for doing nothing, then for each setup in order.
struct Simulated {
    host: String,
    session: String,
    could: HostCould,
    /// The provider's reported usage, at prices by model.
    reported: Option<Reported>,
    /// Cost of the requests that the provider reported: for doing nothing, then for each setup in order.
    told: Vec<f64>,
    nothing: SimulationResult,
    outcomes: Vec<SimulationResult>,
}

pub(crate) fn run(global: &Global, args: &Simulate, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "simulate")?;
    let store = store_path::read(global, output)?;
    let table = super::prices::in_use(global, None)?;
    let (list, prices) = prices(global, args, &table)?;
    let by_model = price_name(global, args) == BY_MODEL;
    let setups = setups(args, prices)?;
    let streams = if args.all {
        let meant = |stream: &StreamName| {
            stream.scope == Scope::Session && args.host.as_ref().is_none_or(|host| *host == stream.host)
        };
        store.stream_names()?.into_iter().filter(meant).collect()
    } else {
        vec![session::default_session_noted(&store, args.session.name(global), output)?]
    };
    if streams.is_empty() {
        let failure = Failure::not_found("the store holds no such session");
        return Err(failure.hint("acpdb sessions lists those it holds; acpdb import reads some"));
    }
    let models = by_model.then(|| Models::read(&table, &store)).transpose()?;
    let given =
        SimulationSettings { prices, table: &table, models: models.as_ref(), prefix_tokens: args.prefix };
    let simulated = each(&store, &streams, &setups, given, output)?;
    let mut rows: Vec<PolicyRow> = Vec::new();
    for (of, sessions) in grouped(&simulated, args.by) {
        for (place, setup) in setups.iter().enumerate() {
            rows.push(PolicyRow { of: of.clone(), ..row(&sessions, setup, place, by_model) });
        }
    }
    if output.json {
        return output.json_items("acpdb.simulate/1", &rows);
    }
    if args.parts {
        simulate_parts::print(&rows, output)?;
    } else {
        print(&rows, output)?;
    }
    // By host or session, each row has a figure of its own.
    if let Some(row) = rows.first().filter(|_| args.by.is_none()) {
        if !args.parts {
            best(&rows, output);
        }
        output.note(format!(
            "doing nothing: ~{} tokens a request, ~{} at most",
            describe::tokens(rounded(row.tokens_per_turn_unpruned)),
            describe::tokens(row.peak_tokens_unpruned)
        ));
    }
    if by_model {
        bills(&simulated, output);
    }
    if let (false, Some(models), [stream]) = (args.all, &models, streams.as_slice()) {
        left_out(models, stream.id, output);
    }
    output.note(conditions(&list, models.as_ref(), &simulated));
    Ok(Code::Ok)
}

/// Sessions by host or by session; without either, all together.
fn grouped(simulated: &[Simulated], by: Option<SimulateBy>) -> BTreeMap<Option<String>, Vec<&Simulated>> {
    let mut groups: BTreeMap<Option<String>, Vec<&Simulated>> = BTreeMap::new();
    for session in simulated {
        let of = by.map(|by| match by {
            SimulateBy::Host => session.host.clone(),
            SimulateBy::Session => session.session.clone(),
        });
        groups.entry(of).or_default().push(session);
    }
    groups
}

/// A setup over some sessions; `place` is its place among the setups.
fn row(sessions: &[&Simulated], setup: &Setup, place: usize, by_model: bool) -> PolicyRow {
    let outcomes =
        sessions.iter().filter_map(|session| Some((session.outcomes.get(place)?, &session.nothing)));
    let mut row = simulate::row(&setup.name, setup.mode.unwrap_or_default(), outcomes);
    let outcomes = sessions.iter().filter_map(|session| session.outcomes.get(place));
    row.missed = outcomes.flat_map(|outcome| outcome.missed.iter().cloned()).collect();
    for session in sessions {
        row.host_could.add(&session.could);
    }
    row.host_could = row.host_could.relative_to(row.price_unpruned);
    let is_known = by_model && sessions.iter().any(|session| session.reported.is_some());
    row.dollars = is_known.then(|| dollars(sessions, place.saturating_add(1)));
    row
}

/// Dollars of the simulated requests that providers reported, in sessions whose model is known. `place`: 0 for doing nothing, then
/// the setups in their order.
fn dollars(simulated: &[&Simulated], place: usize) -> f64 {
    let known = simulated.iter().filter_map(|session| Some((session.reported?, session.told.get(place)?)));
    known.map(|(reported, told)| told * reported.token_dollars).sum()
}

/// Prints the recorded bill beside the modelled one of doing nothing.
fn bills(simulated: &[Simulated], output: &mut Output) {
    let ratios: Vec<f64> = simulated
        .iter()
        .filter_map(|session| {
            let reported = session.reported.filter(|reported| reported.input_dollars > 0.0)?;
            Some(session.told.first()? * reported.token_dollars / reported.input_dollars)
        })
        .collect();
    if ratios.is_empty() {
        output.note("no session tells its usage and a model that has a price");
        return;
    }
    let recorded: f64 = simulated.iter().filter_map(|session| Some(session.reported?.input_dollars)).sum();
    let nothing = dollars(&simulated.iter().collect::<Vec<_>>(), 0);
    let near = ratios.iter().filter(|ratio| (0.85..=1.15).contains(*ratio)).count();
    output.note(format!(
        "input as reported: ${recorded:.2}; as modelled, doing nothing: ${nothing:.2} ({:.2}); {near} of {} sessions within 15 %",
        if recorded > 0.0 { nothing / recorded } else { 0.0 },
        ratios.len()
    ));
}

/// Says what the bill of a session has beside its own requests: each subagent is a session of its own here.
fn left_out(models: &Models<'_>, session: StreamId, output: &Output) {
    let of_subagent = |stream: &&StreamId| **stream != session && models.roots.get(stream) == Some(&session);
    let subagents: Vec<StreamId> = models.requests.keys().filter(of_subagent).copied().collect();
    if subagents.is_empty() {
        return;
    }
    let reported = subagents.iter().filter_map(|stream| models.reported(*stream));
    let dollars: f64 = reported.map(|reported| reported.input_dollars).sum();
    let which = describe::count(subagents.len() as u64, "subagent");
    output.note(format!(
        "without its {which}, whose input as reported is ${dollars:.2}; with --all each is simulated, and acpdb cost has all of them"
    ));
}

/// Prices of each session's own model.
const BY_MODEL: &str = "model";

/// Providers' reports of the sessions, and the prices of their models.
struct Models<'a> {
    table: &'a PriceTable,
    requests: BTreeMap<StreamId, Vec<BilledRequest>>,
    /// The sessions that their costs belong to.
    roots: BTreeMap<StreamId, StreamId>,
}

impl<'a> Models<'a> {
    fn read(table: &'a PriceTable, store: &Store) -> Result<Self, Failure> {
        let mut requests: BTreeMap<StreamId, Vec<BilledRequest>> = BTreeMap::new();
        let mut told = cost::requests(store, Seq::MAX)?;
        for request in std::mem::take(&mut told.all) {
            requests.entry(request.stream).or_default().push(request);
        }
        let roots = requests.keys().map(|stream| (*stream, told.root(*stream))).collect();
        Ok(Self { table, requests, roots })
    }

    /// The prices of the provider that a host's own models come from.
    fn of_host(&self, host: &str) -> Option<Prices> {
        let provider = match host {
            "codex" => "openai",
            "gemini-cli" => "google",
            _ => "anthropic",
        };
        // A user's table may lack it, or hold prices that cannot be used: then the given ones hold.
        PriceList::of(self.table, provider).ok()?.prices().ok()
    }

    fn reported(&self, stream: StreamId) -> Option<Reported> {
        let requests: Vec<&BilledRequest> = self.requests.get(&stream)?.iter().collect();
        cost::reported(self.table, &requests)
    }
}

fn price_name<'a>(global: &'a Global, args: &'a Simulate) -> &'a str {
    args.price.as_deref().or(global.settings.price.as_deref()).unwrap_or(BY_MODEL)
}

/// The conditions of the figures: one price list for all sessions, or prices by model and a list for the sessions of other models.
fn conditions(list: &PriceList, models: Option<&Models<'_>>, simulated: &[Simulated]) -> String {
    let rates = |list: &PriceList| {
        format!(
            "reading {}, writing {}, cold after {} s ({}, {})",
            list.read, list.write, list.ttl_seconds, list.source, list.date
        )
    };
    let prices = match models {
        None => rates(list),
        Some(models) => {
            let known = simulated.iter().filter(|session| session.reported.is_some()).count();
            let own = format!(
                "{known} of {} sessions at the prices of their own model (acpdb cost --show-prices, {})",
                simulated.len(),
                models.table.checked
            );
            if known < simulated.len() {
                format!("{own}, the others at those of their host's provider")
            } else {
                own
            }
        }
    };
    format!("price of all input, doing nothing = 1; {prices}; the sessions were recorded without pruning")
}

fn prices(global: &Global, args: &Simulate, table: &PriceTable) -> Result<(PriceList, Prices), Failure> {
    let name = match price_name(global, args) {
        BY_MODEL => "anthropic",
        name => name,
    };
    let path = std::path::Path::new(name);
    let list = if path.is_file() {
        let text = std::fs::read_to_string(path).map_err(Failure::io("read", name))?;
        PriceList::from_toml(&text)
    } else {
        PriceList::of(table, name)
    };
    let list = list.map_err(|error| Failure::usage(error.to_string()))?;
    let prices = list.prices().map_err(|error| Failure::usage(error.to_string()))?;
    Ok((list, prices))
}

fn setups(args: &Simulate, prices: Prices) -> Result<Vec<Setup>, Failure> {
    let named: Vec<String> = if args.policy.is_empty() {
        POLICIES.iter().map(|name| (*name).to_owned()).collect()
    } else {
        args.policy.clone()
    };
    let modes: Vec<ServeMode> = if args.mode.is_empty() {
        ServeMode::ALL.to_vec()
    } else {
        let mode = |mode: &SimulateMode| match mode {
            SimulateMode::AppendOnly => ServeMode::AppendOnly,
            SimulateMode::Batched => ServeMode::Batched,
            SimulateMode::Eager => ServeMode::Eager,
        };
        args.mode.iter().map(mode).collect()
    };
    let mut setups = Vec::new();
    for name in named {
        let policy = match name.as_str() {
            "recorded" => None,
            preset => match Rules::preset(preset) {
                Some(policy) => Some(policy),
                None if preset.trim_start().starts_with('{') => {
                    Some(Rules::from_json(preset).map_err(|error| Failure::usage(error.to_string()))?)
                }
                None if std::path::Path::new(preset).is_file() => Some(policy_file::from_file(preset)?),
                None => {
                    let unknown = Rules::from_value(&serde_json::Value::String(preset.to_owned()));
                    let presets = acpdb_engine::fold::policy::PRESETS.join(", ");
                    let hint = format!("there are {presets}; or give recorded, JSON or a file");
                    Some(unknown.map_err(|error| Failure::usage(error.to_string()).hint(hint))?)
                }
            },
        };
        let policy = policy.map(Arc::new);
        for mode in &modes {
            let (name, policy) = (name.clone(), policy.clone());
            setups.push(Setup { name, policy, mode: Some(*mode), prices: Some(prices) });
        }
    }
    Ok(setups)
}

/// Settings for all sessions.
#[derive(Clone, Copy)]
struct SimulationSettings<'a> {
    prices: Prices,
    /// How models count tokens.
    table: &'a PriceTable,
    models: Option<&'a Models<'a>>,
    /// Tokens of the system prompt and the tools; `None`: as each session tells them.
    prefix_tokens: Option<u64>,
}

/// Simulates every session under every setup, on all cores.
fn each(
    store: &Store,
    streams: &[StreamName],
    setups: &[Setup],
    given: SimulationSettings<'_>,
    output: &Output,
) -> Result<Vec<Simulated>, Failure> {
    spread::each(streams, "sessions", output, |stream| {
        let mut recording = SessionRecording::read(store, stream.id)?;
        recording.count_as(given.table);
        recording.prefix_tokens = given.prefix_tokens.unwrap_or(recording.prefix_tokens);
        let reported = given.models.and_then(|models| models.reported(stream.id));
        let prices = match (reported, given.models) {
            (Some(reported), _) => reported.prices,
            (None, Some(models)) => models.of_host(&recording.host).unwrap_or(given.prices),
            (None, None) => given.prices,
        };
        let nothing = match reported {
            Some(_) => simulate::nothing_as_recorded(&mut recording, prices),
            None => simulate::run(&recording, &Setup::nothing(Some(prices))),
        };
        let setups: Vec<Setup> =
            setups.iter().map(|setup| Setup { prices: Some(prices), ..setup.clone() }).collect();
        let outcomes = simulate::run_all(&recording, &setups);
        let told = std::iter::once(&nothing).chain(&outcomes).map(|it| recording.told_price(it)).collect();
        let could = recording.host_could(store, &nothing)?;
        let SessionRecording { host, session, .. } = recording;
        Ok(Simulated { host, session, could, reported, told, nothing, outcomes })
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an average of token counts")]
fn rounded(tokens: f64) -> u64 {
    tokens.round() as u64
}

fn print(rows: &[PolicyRow], output: &mut Output) -> Result<(), Failure> {
    let of = NamesApart::new(rows.iter().filter_map(|row| row.of.as_deref()), 16);
    let policies = NamesApart::new(rows.iter().map(|row| row.policy.as_str()), 24);
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let is_of_some = rows.iter().any(|row| row.of.is_some());
    // Without a price of their models, sessions have no dollars.
    let is_told = rows.iter().any(|row| row.dollars.is_some());
    let whole = output.tabs;
    // Narrow columns, so that the table fits a terminal of 80 columns.
    let columns = vec![
        text("of", |row: &PolicyRow| row.of.as_deref().map(|name| of.short(name)).unwrap_or_default())
            .ranked(0)
            .shown_if(is_of_some),
        text("policy", |row: &PolicyRow| policies.short(&row.policy)).ranked(0),
        text("mode", mode).ranked(2),
        number("dollars", |row: &PolicyRow| row.dollars.map_or_else(|| "-".to_owned(), describe::dollars))
            .ranked(3)
            .shown_if(is_told)
            .tight(),
        number("price", |row: &PolicyRow| format!("{:.3}", row.price_ratio)).ranked(4).tight(),
        number("fetched", |row: &PolicyRow| format!("{:.3}", row.price_ratio_with_fetches)).ranked(5).tight(),
        number("tokens", |row: &PolicyRow| tokens(whole, rounded(row.tokens_per_turn))).ranked(6).tight(),
        number("peak", |row: &PolicyRow| tokens(whole, row.peak_tokens)).ranked(7).tight(),
        number("rewrites", |row: &PolicyRow| row.rewrites.to_string()).ranked(8).tight(),
        number("read", |row: &PolicyRow| percent(row.cache_read_share)).ranked(9).tight(),
        number("needed", |row: &PolicyRow| percent(row.needed_again)).ranked(10).tight(),
        number("blind", |row: &PolicyRow| format!("+{}", percent(row.blind_edits))).ranked(0).tight(),
    ];
    // The cheapest comes first; equal ones stay as they were asked.
    let mut ranked: Vec<&PolicyRow> = rows.iter().collect();
    ranked.sort_by(|one, other| {
        let by_price = one.price_ratio_with_fetches.total_cmp(&other.price_ratio_with_fetches);
        one.of.cmp(&other.of).then(by_price)
    });
    table::print(output, columns, ranked)
}

/// Says in a sentence what the table says of the cheapest choice.
fn best(rows: &[PolicyRow], output: &mut Output) {
    let cheapest = rows
        .iter()
        .min_by(|one, other| one.price_ratio_with_fetches.total_cmp(&other.price_ratio_with_fetches));
    let Some(row) = cheapest else { return };
    let mode = mode(row);
    let saved = (1.0 - row.price_ratio_with_fetches) * 100.0;
    output.note(if saved >= 0.05 {
        format!(
            "cheapest: {} in mode {mode} would have cost {saved:.1} % less than doing nothing",
            row.policy
        )
    } else {
        "no choice would have cost less than doing nothing".to_owned()
    });
}
