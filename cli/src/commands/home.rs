//! `acpdb` without a verb: the store at a glance, and what to do next.
//!
//! ```text
//! no store -> the sessions that hosts keep here, and how to begin
//! a store  -> its sessions, their cost, what was stale, the newest, five next commands
//! ```

use std::collections::BTreeMap;

use acpdb_engine::Store;
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_query::cost::{self, Asked, By, PriceTable, Request, Requests};
use acpdb_query::filter::Filter;
use acpdb_query::{SessionRow, SessionsAsked};

use super::describe::{dollars, dollars_in_words};
use super::lines::{clip, one_line};
use super::{Code, Escape, Failure, Global, Output, describe, escape, store_path};
use crate::spread;

/// Newest sessions that are listed.
const LISTED_COUNT: usize = 4;
/// Newest sessions whose stale share is told.
const STALE_COUNT: usize = 20;
/// The days of "lately".
const LATELY: i64 = 7;
/// Characters of a session's id.
const ID_WIDTH: usize = 8;

/// The answer.
#[derive(Debug, Default, serde::Serialize)]
struct Home {
    /// The store's folder; `None` if there is no store yet.
    store: Option<String>,
    /// Without a store: files of sessions that hosts keep on this machine, by host.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<BTreeMap<String, u64>>,
    /// Bytes of its log.
    bytes: u64,
    /// Sessions, without those of subagents.
    sessions: u64,
    subagents: u64,
    events: u64,
    /// Dollars of all requests.
    cost: f64,
    /// Dollars of the last days, as many as `cost_days`.
    cost_lately: f64,
    cost_days: i64,
    /// The share of stale items over the newest sessions; `None` if no request of theirs has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<Stale>,
    newest: Vec<Newest>,
}

/// One of the newest sessions.
#[derive(Debug, serde::Serialize)]
struct Newest {
    id: String,
    host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The time of its newest event.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    /// Dollars of its requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

impl Newest {
    fn of(row: &SessionRow) -> Self {
        let name = &row.summary.name;
        Self {
            id: name.name.clone(),
            host: name.host.clone(),
            title: name.title.clone(),
            ended: row.summary.ended.map(describe::time),
            cost: row.cost,
        }
    }
}

/// The share of stale items in the input.
#[derive(Debug, serde::Serialize)]
struct Stale {
    sessions: u64,
    /// Dollars paid for input.
    input: f64,
    /// Dollars of that input, paid for stale items.
    wasted: f64,
}

pub(crate) fn run(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "acpdb without a verb")?;
    let folder = store_path::find(global)?.folder;
    // A folder that is there and names no store is told by the reading below, unless no option named it.
    if !folder.exists() || global.db.is_none() && !folder.join("acpdb.json").is_file() {
        return first(&folder, output);
    }
    let store = store_path::read(global, output)?;
    let table = super::cost::table(global, None)?;
    let (home, rows) = look(&store, &table, output)?;
    if output.json {
        return output.json_object("acpdb.home/1", &home);
    }
    draw(&home, &rows, output)?;
    Ok(Code::Ok)
}

fn look(store: &Store, table: &PriceTable, output: &Output) -> Result<(Home, Vec<SessionRow>), Failure> {
    let head = store.head()?;
    let asked = SessionsAsked::new(store, head, &Filter::default())?;
    let main: Vec<_> = asked.names.iter().filter(|name| name.parent.is_none()).collect();
    let sessions = main.len();
    let found = spread::each(&main, "sessions", output, |name| asked.row(name))?;
    let mut rows: Vec<SessionRow> = found.into_iter().flatten().collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.summary.ended, row.summary.name.head)));
    let newest: Vec<StreamId> = rows.iter().take(STALE_COUNT).map(|row| row.summary.name.id).collect();
    rows.truncate(LISTED_COUNT);
    let requests = &asked.requests;
    let now = super::at::now();
    // The clock may stand before the year 1970: then all is lately.
    let lately = Micros(now.0.saturating_sub(LATELY * 24 * 3600 * 1_000_000));
    let sum = |wanted: &dyn Fn(&Request) -> bool| {
        let asked = Asked { wanted, stale: None, zone: jiff::tz::TimeZone::system() };
        cost::bill(requests, By::Host, table, &asked).sum.total
    };
    let home = Home {
        store: Some(store.root().display().to_string()),
        found: None,
        bytes: store.info()?.log_bytes,
        sessions: sessions as u64,
        subagents: (asked.names.len() - sessions) as u64,
        events: head.get(),
        cost: to_the_millionth(sum(&|_| true)),
        cost_lately: to_the_millionth(sum(&|request| request.at.is_some_and(|at| at >= lately && at <= now))),
        cost_days: LATELY,
        stale: stale(store, requests, table, &newest, head, output)?,
        newest: rows.iter().map(Newest::of).collect(),
    };
    Ok((home, rows))
}

/// The share of stale items in the input of these sessions; `None` if no request of theirs has a price.
fn stale(
    store: &Store,
    requests: &Requests,
    table: &PriceTable,
    newest: &[StreamId],
    head: Seq,
    output: &Output,
) -> Result<Option<Stale>, Failure> {
    let is_of = |request: &Request| newest.contains(&requests.root(request.stream));
    let (by_request, waste) = super::cost::wasted(store, requests, table, &is_of, head, output)?;
    let wasted = to_the_millionth(by_request.values().sum());
    Ok((waste.input > 0.0).then_some(Stale { sessions: newest.len() as u64, input: waste.input, wasted }))
}

fn to_the_millionth(dollars: f64) -> f64 {
    // A nought has no sign.
    (dollars * 1e6).round() / 1e6 + 0.0
}

fn draw(home: &Home, rows: &[SessionRow], output: &mut Output) -> Result<(), Failure> {
    let bold = |output: &Output, text: &str| output.paint(describe::BOLD, text);
    let place = store_path::quoted(std::path::Path::new(home.store.as_deref().unwrap_or_default()));
    let subagents = match home.subagents {
        0 => String::new(),
        count => format!(" and {}", describe::count(count, "subagent")),
    };
    let line = format!(
        "{}{subagents}, {} in {place}",
        describe::count(home.sessions, "session"),
        describe::bytes(home.bytes)
    );
    output.line(format!("{}  {line}", bold(output, "Store")))?;
    let lately = format!("{} in the last {} days", dollars_in_words(home.cost_lately), home.cost_days);
    output.line(format!("{}   {} in all, {lately}", bold(output, "Cost"), dollars_in_words(home.cost)))?;
    if let Some(stale) = &home.stale {
        let share = stale.wasted / stale.input * 100.0;
        let of = match stale.sessions {
            1 => "your last session".to_owned(),
            count => format!("your last {count} sessions"),
        };
        output.line(format!(
            "{}  {share:.0} % of the input bill of {of} went to stale items: {} of {}",
            bold(output, "Stale"),
            dollars_in_words(stale.wasted),
            dollars(stale.input)
        ))?;
    }
    output.line("")?;
    if rows.is_empty() {
        output.line("No session is recorded yet.")?;
    } else {
        output.line(bold(output, "Newest sessions"))?;
    }
    for row in rows {
        let session = &row.summary;
        let id: String = escape(&session.name.name, Escape::Line).chars().take(ID_WIDTH).collect();
        let ended = session.ended.map_or_else(|| describe::NO_TIME.to_owned(), describe::minute);
        let cost = row.cost.map_or_else(|| "-".to_owned(), dollars);
        let host = escape(&session.name.host, Escape::Line).into_owned();
        let before = format!("  {id:<ID_WIDTH$}  {ended}  {host:<12}  {cost:>8}  ");
        let title = session.name.title.as_deref().map(one_line).unwrap_or_default();
        let room = output.room(before.chars().count()).max(ID_WIDTH);
        output.line(format!("{before}{}", clip(&title, room)))?;
    }
    output.line("")?;
    let next: &[(&str, &str)] = if rows.is_empty() {
        &[
            ("acpdb import", "read the sessions of every host found"),
            ("acpdb attach claude", "record Claude Code from now on; acpdb attach --help has the others"),
            ("acpdb --help", "all commands"),
        ]
    } else {
        &[
            ("acpdb context", "what the model should see now, and why"),
            ("acpdb search WORDS", "where it was said, and whether it is still seen"),
            ("acpdb cost --waste", "what stale items cost, and what would have saved it"),
            ("acpdb import", "what hosts wrote since"),
            ("acpdb --help", "all commands"),
        ]
    };
    steps("Next", next, output)
}

fn steps(heading: &str, steps: &[(&str, &str)], output: &mut Output) -> Result<(), Failure> {
    output.line(output.paint(describe::BOLD, heading))?;
    let width = steps.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    for (command, does) in steps {
        output.line(format!("  {command:<width$}  {does}"))?;
    }
    Ok(())
}

/// The screen of a user without a store.
fn first(folder: &std::path::Path, output: &mut Output) -> Result<Code, Failure> {
    let found = super::hosts::files_here()?;
    if output.json {
        return output.json_object("acpdb.home/1", &Home { found: Some(found), ..Home::default() });
    }
    output.line(format!("There is no store yet; {} would be yours.", store_path::quoted(folder)))?;
    let hosts: Vec<String> =
        found.iter().map(|(host, count)| format!("{} of {host}", describe::count(*count, "file"))).collect();
    output.line(if hosts.is_empty() {
        "No session of a known host was found on this machine.".to_owned()
    } else {
        format!("Sessions on this machine: {}.", hosts.join(", "))
    })?;
    output.line("")?;
    steps(
        "Begin",
        &[
            ("acpdb demo", "a tour of one session; it leaves nothing behind"),
            ("acpdb import", "reads the sessions of every host found into your store"),
            ("acpdb attach claude", "lets Claude Code record itself from now on"),
            ("acpdb --help", "all commands"),
        ],
        output,
    )?;
    Ok(Code::Ok)
}
