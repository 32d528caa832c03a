//! `acpdb` without a verb: the store at a glance, and what to do next.
//!
//! ```text
//! no store -> the sessions that hosts keep here, and how to begin
//! a store  -> its sessions, their cost, what was stale, the newest, five next commands
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;

use acpdb_engine::Store;
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::secret::RECORDED;
use acpdb_engine::store::SessionSummary;
use acpdb_query::cost::{self, BillFilter, BilledRequest, By, PriceTable, Requests, StoreRequests};
use acpdb_query::filter::Filter;
use acpdb_query::{SessionRow, SessionSketch, SessionsAsked};

use super::cost::Saving;
use super::describe::{dollars, dollars_in_words};
use super::lines::{clip, one_line};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, store_path};
use crate::several::{self, ReadStores};
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
    /// The store's folder; `None` if there is no store yet, or several are read as one.
    store: Option<String>,
    /// The number of stores, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    stores: Option<usize>,
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
    /// The name of its store, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<String>,
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
    fn of(row: &SessionRow, store: Option<&str>) -> Self {
        let name = &row.summary.name;
        Self {
            store: store.map(str::to_owned),
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
    /// The way that would have saved most.
    #[serde(skip_serializing_if = "Option::is_none")]
    saving: Option<Saving>,
}

pub(crate) fn run(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "acpdb without a verb")?;
    if global.several.is_none() {
        let folder = store_path::find(global)?.folder;
        let is_there = folder.join("acpdb.json").is_file();
        if !is_there {
            crate::own_stores::check_encrypted(&folder)?;
        }
        // A folder that is there and names no store is told by the reading below, unless no option named it.
        if !folder.exists() || global.db.is_none() && !is_there {
            return first(&folder, output);
        }
    }
    let stores = ReadStores::open(global, output)?;
    let table = super::prices::in_use(global, None)?;
    let (home, rows, code) = look(&stores, &table, output)?;
    if output.json {
        return output.json_object("acpdb.home/1", &home).map(|_| code);
    }
    draw(&home, &rows, output)?;
    Ok(code)
}

/// The stores at a glance, and the newest sessions. The share of stale items is that of a store alone.
fn look(
    stores: &ReadStores,
    table: &PriceTable,
    output: &Output,
) -> Result<(Home, Vec<SessionRow>, Code), Failure> {
    let progress = stores.only().map(|_| output.progress);
    let (found, code) = stores.each(output, |store| {
        let head = store.head()?;
        let ask = |asked: &SessionsAsked| {
            let main: Vec<_> = asked.names.iter().filter(|name| name.parent.is_none()).collect();
            let sketches = spread::each_of_one(progress, &main, "sessions", |name| asked.sketch(name))?;
            let mut sketches: Vec<SessionSketch> = sketches.into_iter().flatten().collect();
            sketches.sort_by_key(|sketch| age(&sketch.summary));
            let newest = sketches.iter().take(STALE_COUNT).map(|sketch| sketch.summary.name.id).collect();
            Ok::<(_, Vec<StreamId>, _), Failure>((
                whole(asked, sketches)?,
                newest,
                (main.len(), asked.names.len()),
            ))
        };
        let (told, requests) = SessionsAsked::with_requests(store, head, &Filter::default(), ask)?;
        Ok((told, requests, head, store.info()?.log_bytes))
    })?;
    let mut home = Home {
        store: stores.only().map(|store| store.root().display().to_string()),
        stores: stores.only().is_none().then_some(stores.count()),
        cost_days: LATELY,
        ..Home::default()
    };
    let (mut rows, mut parts): (Vec<(usize, SessionRow)>, Vec<StoreRequests>) = (Vec::new(), Vec::new());
    let (mut newest, mut end) = (Vec::new(), Seq::ZERO);
    for (place, ((own, newest_here, (main, names)), told, head, bytes)) in found {
        home.sessions += main as u64;
        home.subagents += (names - main) as u64;
        home.events += head.get();
        home.bytes += bytes;
        rows.extend(own.into_iter().map(|row| (place, row)));
        parts.push(told);
        (newest, end) = (newest_here, head);
    }
    let requests = Requests::joined(parts).0;
    (home.cost, home.cost_lately) = costs(&requests, table);
    if let Some(store) = stores.only() {
        home.stale = stale(store, &requests, table, &newest, end, output)?;
    }
    rows.sort_by_key(|(place, row)| (age(&row.summary), *place));
    rows.truncate(LISTED_COUNT);
    home.newest = rows.iter().map(|(place, row)| Newest::of(row, stores.label(*place))).collect();
    Ok((home, rows.into_iter().map(|(_, row)| row).collect(), code))
}

/// The order of sessions in the list: the newest first.
const fn age(session: &SessionSummary) -> Reverse<(Option<Micros>, Seq)> {
    Reverse((session.ended, session.name.head))
}

/// The rows of those that may be listed: only these are made.
fn whole(asked: &SessionsAsked, sketches: Vec<SessionSketch>) -> Result<Vec<SessionRow>, Failure> {
    let listed = sketches.into_iter().take(LISTED_COUNT);
    Ok(listed.map(|sketch| asked.whole(sketch)).collect::<Result<_, acpdb_engine::Error>>()?)
}

/// Dollars in all, and of the last days.
fn costs(requests: &Requests, table: &PriceTable) -> (f64, f64) {
    let now = super::at::now();
    // The clock may stand before the year 1970: then all is lately.
    let lately = Micros(now.0.saturating_sub(LATELY * 24 * 3600 * 1_000_000));
    let sum = |wanted: &dyn Fn(&BilledRequest) -> bool| {
        let asked = BillFilter { wanted, stale: None, within: None, zone: jiff::tz::TimeZone::system() };
        to_the_millionth(cost::bill(requests, By::Host, table, &asked).sum.total)
    };
    (sum(&|_| true), sum(&|request| request.at.is_some_and(|at| at >= lately && at <= now)))
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
    let is_of = |request: &BilledRequest| newest.contains(&requests.root(request.stream));
    let own: Vec<BilledRequest> = requests.all.iter().filter(|request| is_of(request)).cloned().collect();
    let (by_request, waste) = super::cost::wasted(store, &own, table, head, output)?;
    let wasted = to_the_millionth(by_request.values().sum());
    let sessions = newest.len() as u64;
    let hosts = newest.iter().filter_map(|stream| requests.streams.get(stream));
    let saving = Saving::of(&waste, &hosts.map(|name| name.host.as_str()).collect());
    Ok((waste.input > 0.0).then_some(Stale { sessions, input: waste.input, wasted, saving }))
}

fn to_the_millionth(dollars: f64) -> f64 {
    // A nought has no sign.
    (dollars * 1e6).round() / 1e6 + 0.0
}

fn draw(home: &Home, rows: &[SessionRow], output: &mut Output) -> Result<(), Failure> {
    let bold = |output: &Output, text: &str| output.paint(describe::BOLD, text);
    let place = match home.stores {
        Some(count) => several::in_words(count),
        None => store_path::quoted(std::path::Path::new(home.store.as_deref().unwrap_or_default())),
    };
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
        let saving = stale.saving.as_ref().map(|saving| format!("; {saving}")).unwrap_or_default();
        output.line(format!(
            "{}  {share:.0} % of the input bill of {of} went to stale items: {} of {}{saving}",
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
    let ids = short_ids(rows.iter().map(|row| &*row.summary.name.name));
    let id_width = ids.iter().map(|id| id.chars().count()).max().unwrap_or_default().max(ID_WIDTH);
    for ((row, newest), id) in rows.iter().zip(&home.newest).zip(ids) {
        let session = &row.summary;
        let ended = session.ended.map_or_else(|| describe::NO_TIME.to_owned(), describe::minute);
        let cost = row.cost.map_or_else(|| "-".to_owned(), dollars);
        let host = escape(&session.name.host, EscapeLevel::Line).into_owned();
        let store = newest.store.as_ref().map(|store| format!("{store}:")).unwrap_or_default();
        let before = format!("  {store}{id:<id_width$}  {ended}  {host:<12}  {cost:>8}  ");
        let title = session.name.title.as_deref().map(one_line).unwrap_or_default();
        let room = output.room(before.chars().count()).max(ID_WIDTH);
        output.line(format!("{before}{}", clip(&title, room)))?;
    }
    output.line("")?;
    let next: &[(&str, &str)] = if home.stores.is_some() {
        &[
            ("acpdb sessions", "of all stores, each with its store"),
            ("acpdb search WORDS", "where it was said, and whether it is still seen"),
            ("acpdb cost --by month", "what each month cost"),
            ("acpdb context STORE:ID", "what the model should see now in one session, and why"),
            ("acpdb --help", "all commands"),
        ]
    } else if rows.is_empty() {
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

/// The beginnings of names that find their sessions; the whole of those that begin alike.
fn short_ids<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let whole: Vec<String> = names.map(|name| escape(name, EscapeLevel::Line).into_owned()).collect();
    let short = |name: &String| -> String {
        let told = name.strip_prefix(RECORDED).map_or(0, |_| RECORDED.len());
        name.chars().take(told + ID_WIDTH).collect()
    };
    let shorts: Vec<String> = whole.iter().map(short).collect();
    let is_alone = |id: &String| shorts.iter().filter(|other| *other == id).count() == 1;
    let shown = shorts.iter().zip(&whole).map(|(id, name)| if is_alone(id) { id } else { name });
    shown.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_ids_lead_to_their_sessions() {
        let ids = ["cd04ea67-3a4e", "019d6ca5-87df", "cd04ea67-3a4e+2", "derived:7973b21efa95", "s1"];
        let shown = ["cd04ea67-3a4e", "019d6ca5", "cd04ea67-3a4e+2", "derived:7973b21e", "s1"];
        assert_eq!(short_ids(ids.into_iter()), shown);
    }
}
