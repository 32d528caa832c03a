//! `acpdb cost`: cost of sessions in dollars, and the share of stale items in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::cost::{self, Asked, Bill, By, CostRow, PriceTable, Request, Requests, Waste};
use acpdb_query::when;

use super::describe::dollars;
use super::lines::{clip, clip_path, one_line};
use super::table::{Column, fitted};
use super::{Code, Escape, Failure, Global, Output, ask, describe, escape, store_path};
use crate::args::{Cost, CostBy, CostSort};
use crate::spread;

/// Columns of a title, a folder or a model.
const NAME_WIDTH: usize = 40;
/// Narrowest title, in columns; other columns are left out for it.
const TITLE_WIDTH_MIN: usize = 24;
/// Characters of a session's id.
const ID_WIDTH: usize = 8;
/// Most models that are named as having no price.
const UNPRICED_COUNT_MAX: usize = 8;

/// A bill, and the cost of other ways.
#[derive(serde::Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    bill: &'a Bill,
    #[serde(skip_serializing_if = "Option::is_none")]
    waste: Option<&'a Waste>,
}

pub(crate) fn run(global: &Global, args: &Cost, output: &mut Output) -> Result<Code, Failure> {
    if args.show_prices {
        output.bytes(cost::BUILT_IN.as_bytes())?;
        return Ok(Code::Ok);
    }
    let table = table(global, args.prices.as_deref())?;
    let now = super::at::now();
    let moment = |text: &Option<String>, option: &str| -> Result<Option<when::Stretch>, Failure> {
        let wrong = |reason: String| {
            let text = text.as_deref().unwrap_or_default();
            let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
            Failure::usage(format!("{option}: {text:?} is no time{reason}"))
                .hint(format!("such as 7d, {}", when::TIME_FORMS))
        };
        text.as_deref().map(|text| when::moment(text, now)).transpose().map_err(wrong)
    };
    let since = moment(&args.since, "--since")?.map(|stretch| stretch.from);
    let until = moment(&args.until, "--until")?.map(|stretch| stretch.to);
    ask::check(&args.words, args.session.as_deref())?;
    let store = store_path::read(global, output)?;
    let (only, filter) = ask::placed(&store, &args.words, args.session.as_deref(), output)?;
    if !cost::is_of_requests(&filter) {
        let told = "cost asks about requests and their sessions, and not about items or texts";
        return Err(Failure::usage(told).hint(
            "session:, host:, project:, title:, model:, cost:, duration:, since: and until: narrow it down",
        ));
    }
    let filter = cost::settled(&store, filter)?;
    let to = super::at::end(&store, global, only.as_ref())?.unwrap_or(store.head()?);
    let requests = cost::requests(&store, to)?;
    let root = only.as_ref().map(|only| only.id);
    let is_named = |stream: StreamId| {
        let name = requests.streams.get(&stream);
        let is_in = root.is_none_or(|root| stream == root || requests.root(stream) == root);
        is_in && args.host.as_ref().is_none_or(|host| name.is_some_and(|name| name.host == *host))
    };
    let is_asked = |stream: StreamId| is_named(stream) && requests.may_be_wanted(&filter, stream);
    let is_of = |request: &Request| {
        let is_since = since.is_none_or(|since| request.at.is_some_and(|at| at >= since));
        let is_until = until.is_none_or(|until: Micros| request.at.is_some_and(|at| at <= until));
        is_named(request.stream) && is_since && is_until && requests.is_wanted(&filter, request)
    };
    let wasted = if args.waste { Some(wasted(&store, &requests, &table, &is_of, to, output)?) } else { None };
    let stale = wasted.as_ref().map(|(stale, _)| stale);
    let asked = Asked { wanted: &is_of, stale, zone: jiff::tz::TimeZone::system() };
    let mut bill = cost::bill(&requests, by(args.by), &table, &asked);
    if let Some(sort) = args.sort {
        bill.items.sort_by(|one, other| {
            let by_name = || one.key.cmp(&other.key);
            match sort {
                CostSort::Cost => other.total.total_cmp(&one.total).then_with(by_name),
                CostSort::Requests => other.requests.cmp(&one.requests).then_with(by_name),
                CostSort::Name => by_name(),
            }
        });
    }
    let limit = args.limit.unwrap_or(usize::MAX);
    let cut = bill.items.iter().skip(limit).count();
    bill.items.truncate(limit);
    if args.by == CostBy::Session {
        titles(&store, &requests, &mut bill)?;
    }
    let waste = wasted.as_ref().map(|(_, waste)| waste);
    if output.json {
        return output.json_object("acpdb.cost/1", &Answer { bill: &bill, waste });
    }
    if bill.items.is_empty() {
        let silent = silent(&requests, &is_asked);
        // The newest request says whether another time was meant.
        let of_asked = requests.all.iter().filter(|request| is_asked(request.stream));
        let newest = of_asked.filter_map(|request| request.at).max();
        let is_timed = args.since.is_some() || args.until.is_some();
        output.note(if let Some(newest) = newest.filter(|_| is_timed) {
            format!("no request in that time; the newest is of {}", describe::time(newest))
        } else if silent.is_empty() {
            "no such request in the store; hosts tell of requests with the messages of the model".to_owned()
        } else {
            format!("nothing has a price: {silent} recorded no requests or tokens of its sessions here")
        });
        return Ok(Code::Ok);
    }
    rows(&bill, args.by, output)?;
    if let Some(waste) = waste {
        ways(&bill, waste, output)?;
    }
    if cut > 0 {
        output.note(format!(
            "{} not shown, but in the sum; --limit shows more",
            describe::count(cut as u64, "row")
        ));
    }
    remarks(&bill, args, output);
    Ok(Code::Ok)
}

/// The hosts of the sessions that are asked for, if none of these sessions has a request.
fn silent(requests: &Requests, is_asked: &dyn Fn(StreamId) -> bool) -> String {
    if requests.all.iter().any(|request| is_asked(request.stream)) {
        return String::new();
    }
    let asked = requests.streams.iter().filter(|(stream, _)| is_asked(**stream));
    let hosts: BTreeSet<_> = asked.map(|(_, name)| escape(&name.host, Escape::Line)).collect();
    hosts.into_iter().collect::<Vec<_>>().join(", ")
}

/// The user's table of prices, then the program's.
pub(super) fn table(global: &Global, own: Option<&std::path::Path>) -> Result<PriceTable, Failure> {
    let built_in = PriceTable::built_in().map_err(|error| Failure::usage(error.to_string()))?;
    let Some(path) = own.or(global.settings.prices.as_deref()) else {
        return Ok(built_in);
    };
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(Failure::io("read", &shown))?;
    let own = PriceTable::from_toml(&text).map_err(|error| {
        Failure::usage(format!("{shown}: {error}"))
            .hint("acpdb cost --show-prices prints a table to begin with")
    })?;
    Ok(built_in.with(own))
}

const fn by(by: CostBy) -> By {
    match by {
        CostBy::Hour => By::Hour,
        CostBy::Block => By::Block,
        CostBy::Day => By::Day,
        CostBy::Week => By::Week,
        CostBy::Month => By::Month,
        CostBy::Session => By::Session,
        CostBy::Project => By::Project,
        CostBy::Host => By::Host,
        CostBy::Model => By::Model,
    }
}

/// The share of stale items in the requests, and the cost of other ways: session by session, on all cores.
pub(super) fn wasted(
    store: &Store,
    requests: &Requests,
    table: &PriceTable,
    is_of: &dyn Fn(&Request) -> bool,
    to: Seq,
    output: &Output,
) -> Result<(BTreeMap<Seq, f64>, Waste), Failure> {
    let mut by_stream: BTreeMap<StreamId, Vec<&Request>> = BTreeMap::new();
    for request in requests.all.iter().filter(|request| is_of(request)) {
        by_stream.entry(request.stream).or_default().push(request);
    }
    let sessions: Vec<(StreamId, Vec<&Request>)> = by_stream.into_iter().collect();
    let found = spread::each(&sessions, "sessions", output, |(stream, own)| {
        Ok((cost::stale(store, table, *stream, own, to)?, cost::waste(store, table, *stream, own)?))
    })?;
    let (mut stale, mut waste) = (BTreeMap::new(), Waste::default());
    for (own, other) in found {
        stale.extend(own);
        if let Some(other) = other {
            waste.add(&other);
        }
    }
    waste.settle();
    Ok((stale, waste))
}

/// Titles for the sessions of a bill.
fn titles(store: &Store, requests: &Requests, bill: &mut Bill) -> Result<(), Failure> {
    let by_name: BTreeMap<&str, &StreamName> =
        requests.streams.values().map(|name| (name.name.as_str(), name)).collect();
    for row in &mut bill.items {
        let Some(name) = by_name.get(row.key.as_str()) else { continue };
        let changed = requests.titles.get(&name.id).copied();
        row.title = acpdb_query::titles::title_at(store, name, changed, None)?;
    }
    Ok(())
}

fn name(row: &CostRow, by: CostBy) -> String {
    if row.key.is_empty() {
        let what = match by {
            CostBy::Hour | CostBy::Block | CostBy::Day | CostBy::Week | CostBy::Month => describe::NO_TIME,
            CostBy::Project => "no folder",
            CostBy::Model => "no model named",
            CostBy::Session | CostBy::Host => "-",
        };
        return what.to_owned();
    }
    let key = escape(&row.key, Escape::Line);
    match by {
        CostBy::Session => key.chars().take(ID_WIDTH).collect(),
        CostBy::Project => clip_path(&key, NAME_WIDTH),
        // A printed day has the mark of UTC where it is one, as in all output.
        CostBy::Day if is_utc() => format!("{key}Z"),
        _ => clip(&key, NAME_WIDTH),
    }
}

/// Whether the local time is that of UTC.
fn is_utc() -> bool {
    jiff::tz::TimeZone::system().to_fixed_offset().is_ok_and(jiff::tz::Offset::is_zero)
}

fn rows(bill: &Bill, by: CostBy, output: &mut Output) -> Result<(), Failure> {
    let is_session = by == CostBy::Session;
    let sum = &bill.sum;
    // An empty column is left out.
    let is_told = |heading: &str| match heading {
        "title" => is_session && bill.items.iter().any(|row| row.title.is_some()),
        "input" => sum.dollars.input > 0.0,
        "write" => sum.dollars.cache_write > 0.0,
        "write 1h" => sum.dollars.cache_write_long > 0.0,
        "searches" => sum.dollars.searches > 0.0,
        "subagents" => sum.subagents > 0.0,
        "host says" => sum.host_total.is_some(),
        "stale" => sum.stale.is_some(),
        _ => true,
    };
    let column = |heading, rank| Column { heading, right: true, rank, is_told: is_told(heading) };
    let columns = [
        Column { right: false, ..column(bill.by, 0) },
        Column { right: false, ..column("title", 6) },
        column("requests", 5),
        column("tokens in", 9),
        column("out", 8),
        column("input", 7),
        column("read", 2),
        column("write", 3),
        column("write 1h", 4),
        column("output", 1),
        column("searches", 4),
        column("total", 0),
        column("subagents", 11),
        column("host says", 10),
        column("stale", 0),
    ];
    let line = |row: &CostRow, name: String| {
        let (tokens, paid) = (&row.tokens, &row.dollars);
        let read = [tokens.input, tokens.cache_read, tokens.cache_write, tokens.cache_write_long];
        vec![
            name,
            row.title.as_deref().map(one_line).unwrap_or_default(),
            row.requests.to_string(),
            super::table::tokens(output, read.into_iter().fold(0, u64::saturating_add)),
            super::table::tokens(output, tokens.output),
            dollars(paid.input),
            dollars(paid.cache_read),
            dollars(paid.cache_write),
            dollars(paid.cache_write_long),
            dollars(paid.output),
            dollars(paid.searches),
            dollars(row.total),
            dollars(row.subagents),
            row.host_total.map_or_else(|| "-".to_owned(), dollars),
            row.stale.map_or_else(|| "-".to_owned(), dollars),
        ]
    };
    let mut cells: Vec<Vec<String>> = bill.items.iter().map(|row| line(row, name(row, by))).collect();
    cells.push(line(sum, "sum".to_owned()));
    output.line(fitted(output, &columns, cells, TITLE_WIDTH_MIN).to_string())
}

fn ways(bill: &Bill, waste: &Waste, output: &mut Output) -> Result<(), Failure> {
    let stale = bill.sum.stale.unwrap_or_default();
    output.line("")?;
    let share = |part: f64| if waste.input > 0.0 { part / waste.input * 100.0 } else { 0.0 };
    output.line(format!(
        "input cost {}; {} of it ({:.1} %) went to stale items",
        dollars(waste.input),
        describe::dollars_in_words(stale),
        share(stale)
    ))?;
    for way in &waste.ways {
        let (verb, amount) = if way.saved < 0.0 { ("cost", -way.saved) } else { ("saved", way.saved) };
        let more = if way.saved < 0.0 { " more" } else { "" };
        output.line(format!(
            "  {}: would have {verb} {}{more} ({:.1} %)",
            way.name,
            describe::dollars_in_words(amount),
            share(amount)
        ))?;
    }
    Ok(())
}

/// Tells the requests that the sums leave out, and the sources of the sums.
fn remarks(bill: &Bill, args: &Cost, output: &Output) {
    if bill.copies > 0 {
        output.note(format!(
            "{} of resumed and forked sessions left out",
            describe::count(bill.copies, "copied request")
        ));
    }
    if !bill.unpriced.is_empty() {
        let name = |row: &cost::Unpriced| {
            let model = row
                .model
                .as_deref()
                .map_or_else(|| "no model named".into(), |name| escape(name, Escape::Line));
            let tier = row.service_tier.as_ref().map(|tier| format!(" (tier {tier})")).unwrap_or_default();
            format!("{model}{tier}: {}", describe::count(row.requests, "request"))
        };
        let mut names: Vec<String> = bill.unpriced.iter().take(UNPRICED_COUNT_MAX).map(name).collect();
        if bill.unpriced.len() > names.len() {
            names.push(format!("and {} more", bill.unpriced.len() - names.len()));
        }
        output.note(format!("without a price, and in no sum: {}", names.join(", ")));
    }
    if bill.requests_without_input > 0 {
        let tell = if bill.requests_without_input == 1 {
            "tells no input: its sum is"
        } else {
            "tell no input: their sums are"
        };
        let requests = describe::count(bill.requests_without_input, "request");
        output.note(format!("{requests} {tell} too low"));
    }
    if let (Some(says), Some(own)) = (bill.sum.host_total, bill.sum.host_total_by_table) {
        output.note(format!(
            "where hosts tell a cost, they say {} and the table {}",
            dollars(says),
            dollars(own)
        ));
    }
    let own = args.prices.as_deref().map(Path::display);
    let own = own.map(|path| format!(" and {path}")).unwrap_or_default();
    output.note(format!("prices of {}{own}, before discounts and taxes", bill.prices_checked));
}
