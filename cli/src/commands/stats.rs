//! `acpdb stats`: what is saved, by rule and by host.

use acpdb_engine::event::Scope;
use acpdb_query::StatsReport;

use super::{describe, find, sessions};
use crate::args::{Global, Stats, StatsStyle};
use crate::failure::{Code, Failure};
use crate::output::{Escape, Output, escape};
use crate::place;

pub(crate) fn run(global: &Global, args: &Stats, output: &mut Output) -> Result<Code, Failure> {
    let store = place::read(global, output)?;
    let streams = match &args.session {
        Some(session) => vec![sessions::find(&store, session)?],
        None => store.stream_names()?.into_iter().filter(|stream| stream.scope == Scope::Session).collect(),
    };
    let mut views = Vec::with_capacity(streams.len());
    for stream in &streams {
        match find::view(&store, global, stream) {
            // A session that began later is not among those of an earlier point.
            Err(failure) if failure.code == Code::NotFound && streams.len() > 1 => {}
            view => views.push((stream.host.as_str(), view?)),
        }
    }
    let report = acpdb_query::stats(views.iter().map(|(host, view)| (*host, view)));
    if output.json {
        let session = args.session.as_ref().and(streams.first()).map(|stream| stream.name.as_str());
        output.json_object("acpdb.stats/1", &Answer { session, report: &report })?;
        return Ok(Code::Ok);
    }
    match args.style {
        StatsStyle::Acp => output.line(report.sum.acp_block())?,
        StatsStyle::Table => table(&report, output)?,
    }
    Ok(Code::Ok)
}

/// Figures, and the one session they are of.
#[derive(serde::Serialize)]
struct Answer<'a> {
    session: Option<&'a str>,
    #[serde(flatten)]
    report: &'a StatsReport,
}

fn table(report: &StatsReport, output: &mut Output) -> Result<(), Failure> {
    let total = &report.total;
    let mut rules = super::table::new(output, &["rule", "items", "freed", "acp counts"]);
    rules.right(1..4);
    let shown = report.items.iter().filter(|row| row.count > 0 || row.freed > 0);
    let mut row_count = 0;
    for row in shown {
        row_count += 1;
        rules.row([
            row.kind.label().to_owned(),
            row.count.to_string(),
            describe::tokens(row.freed),
            describe::tokens(row.acp_saved),
        ]);
    }
    if row_count > 0 {
        output.line(rules.to_string())?;
        output.line("")?;
    }
    output.line(format!(
        "{} in {}: {} superseded; contexts hold ~{} of ~{} tokens, ~{} freed",
        describe::count(total.calls, "call"),
        describe::count(total.sessions, "session"),
        total.superseded,
        describe::tokens(total.tokens_shown),
        describe::tokens(total.tokens_whole),
        describe::tokens(total.tokens_freed)
    ))?;
    if report.hosts.len() < 2 {
        return Ok(());
    }
    output.line("")?;
    let mut hosts =
        super::table::new(output, &["host", "sessions", "calls", "superseded", "recorded", "shown", "freed"]);
    hosts.right(1..7);
    for host in &report.hosts {
        hosts.row([
            escape(&host.host, Escape::Line).into_owned(),
            host.total.sessions.to_string(),
            host.total.calls.to_string(),
            host.total.superseded.to_string(),
            describe::tokens(host.total.tokens),
            describe::tokens(host.total.tokens_shown),
            describe::tokens(host.total.tokens_freed),
        ]);
    }
    output.line(hosts.to_string())
}
