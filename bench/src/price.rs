//! Cost of input under policies and modes, beside doing nothing and beside the best possible decisions.
//!
//! Recorded sessions, imported into a store of their own; prices of the provider whose cache lasts five minutes. The sessions were
//! recorded without pruning: it is unknown how their agents would have gone on if they had seen less.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use acpdb_engine::Store;
use acpdb_engine::event::Scope;
use acpdb_engine::fold::Policy;
use acpdb_engine::fold::policy::{Prices, ServeMode};
use acpdb_query::cost::PriceTable;
use acpdb_query::simulate::{
    PolicyRow, PriceList, SessionRecording, Setup, SimulationResult as Simulated, row, run as simulate, trace,
};

use crate::import::{import_one, inputs};
use crate::measure::{peak_mb, reset_peak_mb};
use crate::optimum;
use crate::report::{Report, Target};
use crate::session::Session;
use crate::{Options, Outcome};

/// Quiet steps, hidden inputs and pointers, and no shelving.
const POINTING: &str =
    r#"{"preset":"acp","file.edit_quiet_steps":3,"hide_input":"changes","serve.pointing":true}"#;

/// A recording, and the cost of doing nothing.
struct Known {
    recording: SessionRecording,
    nothing: Simulated,
}

fn setup(name: &str, policy: &str, mode: ServeMode, prices: Prices) -> Outcome<Setup> {
    let policy = Policy::preset(policy).map_or_else(|| Policy::from_json(policy), Ok)?;
    Ok(Setup {
        name: name.to_owned(),
        policy: Some(Arc::new(policy)),
        mode: Some(mode),
        prices: Some(prices),
    })
}

fn over(known: &[&Known], setup: &Setup) -> PolicyRow {
    let outcomes: Vec<Simulated> = known.iter().map(|it| simulate(&it.recording, setup)).collect();
    let pairs = outcomes.iter().zip(known.iter().map(|it| &it.nothing));
    row(&setup.name, setup.mode.unwrap_or_default(), pairs)
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let store = Store::builder(folder.path()).registry(acpdb_hosts::registry()).open()?;
    for input in inputs(&options.data)? {
        let _ = import_one(&store, &input)?;
    }
    let prices = PriceList::built_in("anthropic")?.prices()?;
    let table = PriceTable::built_in()?;
    let nothing = Setup::nothing(Some(prices));
    let mut known = Vec::new();
    for stream in store.stream_names()?.iter().filter(|stream| stream.scope == Scope::Session) {
        let mut recording = SessionRecording::read(&store, stream.id)?;
        recording.count_as(&table);
        let nothing = simulate(&recording, &nothing);
        known.push(Known { recording, nothing });
    }
    let all: Vec<&Known> = known.iter().collect();
    rows(&all, prices, report)?;
    best(&all, prices, report)?;
    grid(&store, prices, report)?;
    drop((store, folder));
    long(options, prices, report)
}

/// A session of 10,000 calls, each a request: read and simulated under one policy.
fn long(options: &Options, prices: Prices, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let store = Store::builder(folder.path()).registry(acpdb_hosts::registry()).open()?;
    Session::wordy("long").record(&store, 10_000)?;
    let setup = setup("economy", "economy", ServeMode::Batched, prices)?;
    let before = reset_peak_mb();
    let begin = Instant::now();
    for stream in store.stream_names()?.iter().filter(|stream| stream.scope == Scope::Session) {
        let recording = SessionRecording::read(&store, stream.id)?;
        let requests = simulate(&recording, &setup).requests.len();
        let name = format!("simulate: a session of {requests} requests, on the clock");
        report.row(name, begin.elapsed().as_secs_f64(), "s", Target::AtMost(1.0));
        if let Some(before) = before {
            let name = "simulate: that session, peak memory beyond the store's";
            report.row(name, peak_mb() - before, "MB", Target::AtMost(150.0));
        }
    }
    Ok(())
}

fn rows(all: &[&Known], prices: Prices, report: &mut Report) -> Outcome<()> {
    use ServeMode::{AppendOnly, Batched, Eager};
    let pointing = r#"{"preset":"acp","serve.pointing":true}"#;
    for (name, policy, mode, target, fetched) in [
        ("acp, eager", "acp", Eager, Target::AtLeast(1.0), Target::None),
        ("pointing alone, append-only", pointing, AppendOnly, Target::None, Target::None),
        (
            "acp, only when cold",
            r#"{"preset":"acp","serve.rule":"cold"}"#,
            Batched,
            Target::AtMost(1.0),
            Target::None,
        ),
        ("acp, batched", "acp", Batched, Target::AtMost(1.0), Target::None),
        (
            "acp, batched by ski-rental",
            r#"{"preset":"acp","serve.rule":"ski_rental"}"#,
            Batched,
            Target::None,
            Target::None,
        ),
        ("quiet steps, inputs, pointing; batched", POINTING, Batched, Target::AtMost(0.915), Target::None),
        ("economy, batched", "economy", Batched, Target::AtMost(0.88), Target::AtMost(0.90)),
        ("economy, eager", "economy", Eager, Target::None, Target::None),
    ] {
        let row = over(all, &setup(name, policy, mode, prices)?);
        report.row(format!("price: {name}"), row.price_ratio, "x", target);
        report.row(
            format!("price: {name}; fetching again charged"),
            row.price_ratio_with_fetches,
            "x",
            fetched,
        );
    }
    let hosts: BTreeSet<&str> = all.iter().map(|it| it.recording.host.as_str()).collect();
    for host in hosts {
        let of: Vec<&Known> = all.iter().copied().filter(|it| it.recording.host == host).collect();
        let row = over(&of, &setup("acp", "acp", ServeMode::Batched, prices)?);
        let name = format!("price: acp, batched: {} sessions of {host}", row.session_count);
        report.row(name, row.price_ratio, "x", Target::AtMost(1.0));
    }
    Ok(())
}

/// The rule's decisions beside the best possible ones, for the same conclusions.
fn best(all: &[&Known], prices: Prices, report: &mut Report) -> Outcome<()> {
    let nothing: f64 = all.iter().map(|it| it.nothing.price()).sum();
    for (name, policy) in
        [("acp", "acp"), ("quiet steps, inputs, pointing", POINTING), ("economy", "economy")]
    {
        let setup = setup(name, policy, ServeMode::Batched, prices)?;
        let (mut hybrid, mut best, mut own) = (0.0, 0.0, 0.0);
        for it in all {
            let (outcome, contexts) = trace(&it.recording, &setup);
            let optimum = optimum::of(&contexts, &prices);
            hybrid += outcome.price();
            best += optimum.best;
            own += optimum.own;
        }
        report.row(format!("price: {name}, offline optimum"), best / nothing, "x", Target::None);
        report.row(
            format!("price: {name}, its own decisions reckoned like the optimum, to the simulation's"),
            own / hybrid,
            "x",
            Target::None,
        );
        report.row(format!("price: {name}, hybrid to optimum"), hybrid / best, "x", Target::AtMost(1.03));
    }
    Ok(())
}

/// Four policies in three modes over all sessions, on all cores, with the time of reading them.
fn grid(store: &Store, prices: Prices, report: &mut Report) -> Outcome<()> {
    let mut setups = Vec::new();
    for policy in ["acp", "balanced", "careful", "economy"] {
        for mode in ServeMode::ALL {
            setups.push(setup(policy, policy, *mode, prices)?);
        }
    }
    let begin = Instant::now();
    let streams = store.stream_names()?;
    let next = std::sync::atomic::AtomicUsize::new(0);
    let table = PriceTable::built_in()?;
    let work = || -> Result<usize, acpdb_engine::Error> {
        let mut requests = 0;
        while let Some(stream) = streams.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let mut recording = SessionRecording::read(store, stream.id)?;
            recording.count_as(&table);
            requests += setups.iter().map(|setup| simulate(&recording, setup).requests.len()).sum::<usize>();
        }
        Ok(requests)
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let counts: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut requests = 0;
    for count in counts {
        requests += count.map_err(|_| "a simulation stopped")??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    report.row(
        format!("simulate: 4 policies x 3 modes, {requests} requests, on the clock"),
        seconds,
        "s",
        Target::AtMost(2.0),
    );
    Ok(())
}
