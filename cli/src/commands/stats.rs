//! `acpdb stats`: tokens saved, by rule and by host; with a query, the number of items that match.

use acpdb_engine::{Store, View, store::StreamName};
use acpdb_query::context::series;
use acpdb_query::sessions::sparkline;
use acpdb_query::stats::{HostRow, KindRow, TallyRow};
use acpdb_query::{Filter, StatsReport, StatsSums, Tally, TallySums};

use super::table::{self, number, text, tokens};
use super::{Code, EscapeLevel, Failure, Global, Output, ask, describe, escape, find, session, store_path};
use crate::args::{StatsArgs, StatsStyle};

/// Tools that are listed for people.
const TOOL_COUNT_MAX: usize = 12;

pub(crate) fn run(global: &Global, args: &StatsArgs, output: &mut Output) -> Result<Code, Failure> {
    ask::check(&args.words, global.session.as_deref())?;
    let store = store_path::read(global, output)?;
    let (session, filter) = ask::placed(&store, &args.words, global.session.as_deref(), output)?;
    // Once, and not for each session.
    let filter = acpdb_query::settled(&store, filter)?;
    let only = session.as_ref().map(|session| session.name.clone());
    let only = only.as_deref();
    let streams = session::asked(&store, session)?;
    if !filter.is_empty() {
        return matching(&store, global, &streams, only, &filter, output);
    }
    let mut sums = StatsSums::default();
    let mut curve = Vec::new();
    // Whether each of the contexts is one that acpdb sent.
    let mut are_sent = true;
    each(&store, global, &streams, &mut |stream, view| {
        are_sent &= !view.state().served(view.at()).is_empty();
        if streams.len() > 1 {
            sums.add_own(&stream.host, view);
        } else {
            sums.add(&stream.host, view);
        }
        if streams.len() == 1 {
            curve = series(view.state(), view.at());
        }
        Ok(())
    })?;
    let report = sums.report();
    if output.json {
        let answer = StatsResult { session: only, tokens_by_turn: &curve, report: &report };
        return output.json_object("acpdb.stats/1", &answer);
    }
    match args.style {
        StatsStyle::Acp => output.line(report.sum.acp_block())?,
        StatsStyle::Table => by_rule(&report, &curve, are_sent, output)?,
    }
    Ok(Code::Ok)
}

/// Looks at one session after the other, so that only one at a time is in memory.
fn each(
    store: &Store,
    global: &Global,
    streams: &[StreamName],
    look: &mut dyn FnMut(&StreamName, &View) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for stream in streams {
        let is_only = streams.len() == 1;
        let Some(view) = find::view_among(store, global, stream, global.at.as_deref(), is_only)? else {
            continue;
        };
        // A fork that began later has only items that it shares.
        if is_only || view.state().first() <= view.at() {
            look(stream, &view)?;
        }
    }
    Ok(())
}

/// Figures, and their session if there is only one.
#[derive(serde::Serialize)]
struct StatsResult<'a> {
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    tokens_by_turn: &'a [u64],
    #[serde(flatten)]
    report: &'a StatsReport,
}

fn matching(
    store: &Store,
    global: &Global,
    streams: &[StreamName],
    session: Option<&str>,
    filter: &Filter,
    output: &mut Output,
) -> Result<Code, Failure> {
    let mut sums = TallySums::default();
    let mut scanned = acpdb_query::Scanned::default();
    each(store, global, streams, &mut |stream, view| {
        let mut rows = acpdb_query::item_rows(store, view, stream, filter)?;
        // Items that a fork shares are counted with its parent.
        let first = view.state().first();
        let many = streams.len() > 1;
        let is_own = |row: &Result<acpdb_query::ItemRow, _>| {
            row.as_ref().map_or(true, |row| !many || row.seq >= first)
        };
        sums.add(rows.by_ref().filter(is_own))?;
        scanned += rows.scanned();
        Ok(())
    })?;
    let tally = sums.tally();
    ask::searched(scanned, output);
    if output.json {
        #[derive(serde::Serialize)]
        struct Matching<'a> {
            session: Option<&'a str>,
            query: &'a str,
            #[serde(flatten)]
            tally: &'a Tally,
        }
        return output
            .json_object("acpdb.tally/1", &Matching { session, query: filter.text(), tally: &tally });
    }
    output.line(format!(
        "{} in {} match: ~{} of ~{} tokens shown",
        describe::count(tally.items, "item"),
        describe::count(tally.sessions, "session"),
        describe::tokens(tally.tokens_shown),
        describe::tokens(tally.tokens)
    ))?;
    for (heading, rows) in [("tool", &tally.tools), ("stands", &tally.states)] {
        list(heading, rows, output)?;
    }
    Ok(Code::Ok)
}

fn list(heading: &str, rows: &[TallyRow], output: &mut Output) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let whole = output.tabs;
    let columns = vec![
        text(heading, |row: &TallyRow| escape(&row.name.replace('_', " "), EscapeLevel::Line).into_owned()),
        number("items", |row: &TallyRow| row.count.to_string()),
        number("recorded", move |row: &TallyRow| tokens(whole, row.tokens)),
        number("shown", move |row: &TallyRow| tokens(whole, row.tokens_shown)),
    ];
    table::print(output, columns, rows.iter().take(TOOL_COUNT_MAX))?;
    if rows.len() > TOOL_COUNT_MAX {
        let more = format!("and {} more", rows.len() - TOOL_COUNT_MAX);
        output.styled(describe::DIM, &more)?;
    }
    Ok(())
}

/// `are_sent`: acpdb sent contexts of all sessions. Of the others it only says what it would do.
fn by_rule(report: &StatsReport, curve: &[u64], are_sent: bool, output: &mut Output) -> Result<(), Failure> {
    let total = &report.total;
    let whole = output.tabs;
    let rules: Vec<&KindRow> = report.items.iter().filter(|row| row.count > 0 || row.freed > 0).collect();
    if !rules.is_empty() {
        let columns = vec![
            text("rule", |row: &KindRow| row.kind.label().to_owned()),
            number("items", |row: &KindRow| row.count.to_string()),
            number("tokens freed", move |row: &KindRow| tokens(whole, row.freed)),
            number("acp counts", move |row: &KindRow| tokens(whole, row.acp_saved)),
        ];
        table::print(output, columns, rules.iter().copied())?;
        output.line("")?;
    }
    let again = match total.shown_again {
        0 => String::new(),
        count => format!(" ({count} shown again)"),
    };
    let hold = if are_sent { "hold" } else { "would hold" };
    output.line(format!(
        "{} in {}: {} superseded{again}; contexts {hold} ~{} of ~{} tokens, ~{} freed",
        describe::count(total.calls, "call"),
        describe::count(total.sessions, "session"),
        total.superseded,
        describe::tokens(total.tokens_shown),
        describe::tokens(total.tokens_whole),
        describe::tokens(total.tokens_freed)
    ))?;
    if total.superseded == 0 && total.calls > 0 {
        output.styled(
            describe::DIM,
            "by the rules of the policy, no newer call made an older one stale (acpdb policy show)",
        )?;
    } else if total.superseded > 0 {
        output.styled(
            describe::DIM,
            "superseded also counts items that have left the context, or are no longer than their placeholder; these free 0",
        )?;
    }
    if !rules.is_empty() {
        output.styled(
            describe::DIM,
            "acp counts is the sum of the plug-in acp: whole texts, with nothing taken off for placeholders",
        )?;
    }
    if !curve.is_empty() {
        output.line(format!("context over turns: {}", sparkline(curve)))?;
    }
    if report.hosts.len() < 2 {
        return Ok(());
    }
    output.line("")?;
    let columns = vec![
        text("host", |row: &HostRow| escape(&row.host, EscapeLevel::Line).into_owned()),
        number("sessions", |row: &HostRow| row.total.sessions.to_string()),
        number("calls", |row: &HostRow| row.total.calls.to_string()),
        number("superseded", |row: &HostRow| row.total.superseded.to_string()),
        number("recorded", move |row: &HostRow| tokens(whole, row.total.tokens)),
        number("shown", move |row: &HostRow| tokens(whole, row.total.tokens_shown)),
        number("freed", move |row: &HostRow| tokens(whole, row.total.tokens_freed)),
    ];
    table::print(output, columns, &report.hosts)
}
