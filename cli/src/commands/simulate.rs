//! `acpdb simulate`: what other policies and modes would have cost.
//!
//! Sessions are spread over the cores, each read once for all policies and modes.

use std::sync::Arc;

use acpdb_engine::event::Scope;
use acpdb_engine::fold::Policy as Rules;
use acpdb_engine::fold::serving::{Prices, ServeMode};
use acpdb_engine::{Store, StreamName};
use acpdb_query::export::ExportError;
use acpdb_query::simulate::{self, Chart, Outcome, PriceList, Recording, Row, Setup};

use super::exports::{Sink, To};
use super::{describe, policy, sessions, spread};
use crate::args::{Global, Simulate, SimulateMode, Target};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

/// Policies that are compared if none is named.
const POLICIES: &[&str] = &["acp", "balanced", "careful", "economy"];
/// Charts on a page.
const CHART_COUNT_MAX: usize = 12;

/// What a session came to: doing nothing, then each setup in order.
struct Simulated {
    title: String,
    nothing: Outcome,
    outcomes: Vec<Outcome>,
}

pub(crate) fn run(global: &Global, args: &Simulate, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "simulate")?;
    let target = args.html.clone().map(|path| Target { output: Some(path), force: args.force });
    let sink = target.map(|target| Sink::open(&target, output)).transpose()?;
    let store = place::read(global, output)?;
    let (list, prices) = prices(global, args)?;
    let setups = setups(args, prices)?;
    let streams = if args.all {
        let meant = |stream: &StreamName| {
            stream.scope == Scope::Session && args.host.as_ref().is_none_or(|host| *host == stream.host)
        };
        store.stream_names()?.into_iter().filter(meant).collect()
    } else {
        vec![sessions::default_session_noted(&store, args.session.name(), output)?]
    };
    if streams.is_empty() {
        let failure = Failure::not_found("the store holds no such session");
        return Err(failure.hint("acpdb sessions lists those it holds; acpdb import reads some"));
    }
    let simulated = each(&store, &streams, &setups, prices, output)?;
    let rows: Vec<Row> = setups
        .iter()
        .enumerate()
        .map(|(place, setup)| {
            let outcomes =
                simulated.iter().filter_map(|session| Some((session.outcomes.get(place)?, &session.nothing)));
            simulate::row(&setup.name, setup.mode.unwrap_or_default(), outcomes)
        })
        .collect();
    if let Some(sink) = sink {
        let page = page(&list, &setups, &rows, &simulated);
        match sink.fill(|out| Ok(out.write_all(page.as_bytes()).map_err(ExportError::Write)?))?.1 {
            To::Stdout => return Ok(Code::Ok),
            To::File { path, .. } => output.note(format!("the picture is in {}", path.display())),
        }
    }
    if output.json {
        output.json_items("acpdb.simulate/1", &rows)?;
        return Ok(Code::Ok);
    }
    table(&rows, output)?;
    if let Some(row) = rows.first() {
        output.note(format!(
            "doing nothing: ~{} tokens a request, ~{} at most",
            describe::tokens(rounded(row.tokens_per_turn_unpruned)),
            describe::tokens(row.peak_tokens_unpruned)
        ));
    }
    output.note(conditions(&list));
    Ok(Code::Ok)
}

fn conditions(list: &PriceList) -> String {
    format!(
        "price of all input, doing nothing = 1; reading {}, writing {}, cold after {} s ({}, {}); \
         the sessions were recorded without pruning",
        list.read, list.write, list.ttl_seconds, list.source, list.date
    )
}

fn prices(global: &Global, args: &Simulate) -> Result<(PriceList, Prices), Failure> {
    let name = args.price.as_deref().or(global.settings.price.as_deref()).unwrap_or("anthropic");
    let path = std::path::Path::new(name);
    let list = if path.is_file() {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", name, &error))?;
        PriceList::from_toml(&text)
    } else {
        PriceList::built_in(name)
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
                None if std::path::Path::new(preset).is_file() => Some(policy::from_file(preset)?),
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

/// Simulates every session under every setup, on all cores.
fn each(
    store: &Store,
    streams: &[StreamName],
    setups: &[Setup],
    prices: Prices,
    output: &Output,
) -> Result<Vec<Simulated>, Failure> {
    spread::each(streams, "sessions", output, |stream| {
        let recording = Recording::read(store, stream.id)?;
        let nothing = simulate::run(&recording, &Setup::nothing(Some(prices)));
        let outcomes = setups.iter().map(|setup| simulate::run(&recording, setup)).collect();
        let title = format!("{} {}", recording.host, recording.session);
        Ok(Simulated { title, nothing, outcomes })
    })
}

fn page(list: &PriceList, setups: &[Setup], rows: &[Row], simulated: &[Simulated]) -> String {
    // Of several sessions, the one that cost most says most.
    let price = |session: &&Simulated| session.nothing.price();
    let largest = simulated.iter().max_by(|one, other| price(one).total_cmp(&price(other)));
    let charts: Vec<Chart<'_>> = largest
        .into_iter()
        .flat_map(|session| {
            let named = setups.iter().zip(&session.outcomes).map(|(setup, outcome)| Chart {
                title: format!(
                    "{}: {}, {}",
                    session.title,
                    setup.name,
                    setup.mode.unwrap_or_default().label()
                ),
                outcome,
                nothing: &session.nothing,
            });
            named.take(CHART_COUNT_MAX).collect::<Vec<_>>()
        })
        .collect();
    simulate::html("acpdb simulate", &conditions(list), rows, &charts)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an average of token counts")]
fn rounded(tokens: f64) -> u64 {
    tokens.round() as u64
}

fn table(rows: &[Row], output: &mut Output) -> Result<(), Failure> {
    let headings =
        ["policy", "mode", "price", "fetched", "tokens", "peak", "rewrites", "read", "needed", "blind"];
    let mut table = super::table::new(output, &headings);
    table.right(2..headings.len());
    // So that it fits a terminal of 80 columns.
    table.tight(2..headings.len());
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    for row in rows {
        table.row([
            super::lines::clip(&row.policy, 24),
            row.mode.replace('_', "-"),
            format!("{:.3}", row.price_ratio),
            format!("{:.3}", row.price_ratio_with_fetches),
            describe::tokens(rounded(row.tokens_per_turn)),
            describe::tokens(row.peak_tokens),
            row.rewrites.to_string(),
            percent(row.cache_read_share),
            percent(row.needed_again),
            percent(row.blind_edits),
        ]);
    }
    output.line(table.to_string())
}
