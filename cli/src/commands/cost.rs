//! `acpdb cost`: cost of sessions in dollars, and the share of stale items in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::{Store, store::StreamName};
use acpdb_live::host::Host;
use acpdb_query::Filter;
use acpdb_query::cost::{
    self, Bill, BillFilter, BilledRequest, By, CostRow, PriceTable, Requests, StoreRequests, Waste,
};
use acpdb_query::when;

use super::describe::dollars;
use super::lines::{clip, clip_path, one_line};
use super::table::{self, number, text, tokens};
use super::{Code, EscapeLevel, Failure, Global, Output, ask, describe, escape, session};
use crate::args::{Cost, CostBy, CostSort};
use crate::several::ReadStores;
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
struct CostResult<'a> {
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
    let units = Units::of(&args.by)?;
    let table = super::prices::in_use(global, args.prices.as_deref())?;
    let now = super::at::now();
    let moment = |text: &Option<String>, option: &str| -> Result<Option<when::TimeRange>, Failure> {
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
    ask::check(&args.words, global.session.as_deref())?;
    let stores = ReadStores::open(global, output)?;
    let (only, filter) = ask::placed_in(&stores, &args.words, global.session.as_deref(), output)?;
    if !cost::is_of_requests(&filter) {
        let told = "cost asks about requests and their sessions, and not about items or texts";
        return Err(Failure::usage(told).hint(
            "session:, host:, project:, title:, model:, cost:, duration:, since: and until: narrow it down",
        ));
    }
    let asking = Asking { filter, only, since, until };
    let Joined { requests, ends, silent, newest, code } = asking.ask_all(&stores, global, output)?;
    let is_of = |request: &BilledRequest| {
        let end = ends.iter().rev().find(|end| end.before < request.seq);
        end.is_some_and(|end| end.wanted.contains(&end.own(request.seq)))
    };
    let wasted =
        if args.waste { Some(wasted_in(&stores, &requests, &is_of, &ends, &table, output)?) } else { None };
    let stale = wasted.as_ref().map(|(stale, _)| stale);
    let zone = jiff::tz::TimeZone::system();
    let asked = BillFilter { wanted: &is_of, stale, within: units.within.map(by), zone };
    let mut bill = cost::bill(&requests, by(units.by), &table, &asked);
    if let Some(sort) = args.sort {
        bill.items.sort_by(|one, other| {
            let by_name = || (&one.key, &one.part).cmp(&(&other.key, &other.part));
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
    if units.by == CostBy::Session {
        for end in &ends {
            titles(&stores, end, &mut bill)?;
        }
    }
    let waste = wasted.as_ref().map(|(_, waste)| waste);
    if output.json {
        output.json_object("acpdb.cost/1", &CostResult { bill: &bill, waste })?;
        return Ok(code);
    }
    if bill.items.is_empty() {
        let is_timed = args.since.is_some() || args.until.is_some();
        output.note(if let Some(newest) = newest.filter(|_| is_timed) {
            format!("no request in that time; the newest is of {}", describe::time(newest))
        } else if bill.copies > 0 {
            format!("{}, and none of its own: they count in the sessions that sent them", copied(bill.copies))
        } else if silent.is_empty() {
            "no such request in the store; hosts tell of requests with the messages of the model".to_owned()
        } else {
            let hosts = silent.into_iter().collect::<Vec<_>>().join(", ");
            format!("nothing has a price: {hosts} recorded no requests or tokens of its sessions here")
        });
        return Ok(code);
    }
    rows(&bill, units, output)?;
    if let Some(waste) = waste {
        let asked = requests.all.iter().filter(|request| is_of(request));
        let hosts = asked.filter_map(|request| requests.streams.get(&request.stream));
        ways(&bill, waste, &hosts.map(|name| name.host.as_str()).collect(), output)?;
    }
    if cut > 0 {
        output.note(format!(
            "{} not shown, but in the sum; --limit shows more",
            describe::count(cut as u64, "row")
        ));
    }
    remarks(&bill, args, output);
    Ok(code)
}

/// The unit of a row, and the one by which it is split.
#[derive(Clone, Copy)]
struct Units {
    by: CostBy,
    within: Option<CostBy>,
}

impl Units {
    fn of(units: &[CostBy]) -> Result<Self, Failure> {
        match *units {
            [by] => Ok(Self { by, within: None }),
            [by, within] if by != within => Ok(Self { by, within: Some(within) }),
            _ => Err(Failure::usage("--by takes one unit, or two that differ, such as month,model")),
        }
    }
}

/// The requests that a question is about.
struct Asking {
    filter: Filter,
    only: Option<StreamName>,
    since: Option<Micros>,
    until: Option<Micros>,
}

/// The answer of one store.
struct StoreBill {
    requests: StoreRequests,
    /// The requests that are asked for.
    wanted: BTreeSet<Seq>,
    /// The hosts of the sessions that are asked for, if none of these sessions has a request.
    silent: BTreeSet<String>,
    /// The time of the newest request of the sessions that are asked for.
    newest: Option<Micros>,
    to: Seq,
}

/// The answers of all stores.
struct Joined {
    requests: Requests,
    ends: Vec<StoreEnd>,
    silent: BTreeSet<String>,
    newest: Option<Micros>,
    code: Code,
}

impl Asking {
    fn ask_all(&self, stores: &ReadStores, global: &Global, output: &Output) -> Result<Joined, Failure> {
        let (parts, code) =
            ask::each_until(stores, global, self.only.as_ref(), output, |store, to| self.ask(store, to))?;
        let silent = parts.iter().flat_map(|(_, part)| part.silent.iter().cloned()).collect();
        let newest = parts.iter().filter_map(|(_, part)| part.newest).max();
        let (mut told, mut ends) = (Vec::new(), Vec::new());
        for (place, StoreBill { requests, wanted, to, .. }) in parts {
            let titles = requests.requests.titles.clone();
            told.push(requests);
            ends.push(StoreEnd { place, to, wanted, titles, before: Seq::ZERO });
        }
        let (requests, before) = Requests::joined(told);
        ends.iter_mut().zip(before).for_each(|(end, before)| end.before = before);
        Ok(Joined { requests, ends, silent, newest, code })
    }

    fn ask(&self, store: &Store, to: Seq) -> Result<StoreBill, Failure> {
        let filter = cost::settled(store, self.filter.clone())?;
        let found = cost::store_requests(store, to)?;
        let requests = &found.requests;
        let root = self.only.as_ref().map(|only| only.id);
        let is_named =
            |stream: StreamId| root.is_none_or(|root| stream == root || requests.root(stream) == root);
        let is_asked = |stream: StreamId| is_named(stream) && requests.may_be_wanted(&filter, stream);
        let is_of = |request: &BilledRequest| {
            let is_since = self.since.is_none_or(|since| request.at.is_some_and(|at| at >= since));
            let is_until = self.until.is_none_or(|until: Micros| request.at.is_some_and(|at| at <= until));
            is_named(request.stream) && is_since && is_until && requests.is_wanted(&filter, request)
        };
        let silent = silent(requests, &is_asked);
        // The newest request says whether another time was meant.
        let of_asked = requests.all.iter().filter(|request| is_asked(request.stream));
        let newest = of_asked.filter_map(|request| request.at).max();
        let each = requests.all.iter().chain(&requests.copies);
        let wanted = each.filter(|request| is_of(request)).map(|request| request.seq);
        let wanted = wanted.collect();
        Ok(StoreBill { requests: found, wanted, silent, newest, to })
    }
}

/// One of the stores whose requests are joined.
struct StoreEnd {
    place: usize,
    to: Seq,
    /// The requests that are asked for, by their seqs there.
    wanted: BTreeSet<Seq>,
    /// The events that gave sessions their newest titles.
    titles: BTreeMap<StreamId, Seq>,
    /// The seq that stands before those of this store.
    before: Seq,
}

impl StoreEnd {
    /// A seq as it is in the store.
    const fn own(&self, seq: Seq) -> Seq {
        Seq(seq.get().saturating_sub(self.before.get()))
    }
}

/// As [`wasted`], store by store, of requests that are joined.
fn wasted_in(
    stores: &ReadStores,
    requests: &Requests,
    is_of: &dyn Fn(&BilledRequest) -> bool,
    ends: &[StoreEnd],
    table: &PriceTable,
    output: &Output,
) -> Result<(BTreeMap<Seq, f64>, Waste), Failure> {
    let (mut stale, mut waste) = (BTreeMap::new(), Waste::default());
    let behind = ends.iter().skip(1).map(|end| end.before).chain([Seq::MAX]);
    for (end, until) in ends.iter().zip(behind) {
        let of_store = requests.all.iter().filter(|request| request.seq > end.before && request.seq <= until);
        let own = of_store.filter(|request| is_of(request));
        let own = own.map(|request| BilledRequest { seq: end.own(request.seq), ..request.clone() });
        let own: Vec<BilledRequest> = own.collect();
        let (found, other) = wasted(&stores.store(end.place)?, &own, table, end.to, output)?;
        stale.extend(found.into_iter().map(|(seq, dollars)| (Seq(seq.get() + end.before.get()), dollars)));
        waste.add(&other);
    }
    waste.settle();
    Ok((stale, waste))
}

/// The hosts of the sessions that are asked for, if none of these sessions has a request.
fn silent(requests: &Requests, is_asked: &dyn Fn(StreamId) -> bool) -> BTreeSet<String> {
    if requests.all.iter().any(|request| is_asked(request.stream)) {
        return BTreeSet::new();
    }
    let asked = requests.streams.iter().filter(|(stream, _)| is_asked(**stream));
    asked.map(|(_, name)| escape(&name.host, EscapeLevel::Line).into_owned()).collect()
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
    requests: &[BilledRequest],
    table: &PriceTable,
    to: Seq,
    output: &Output,
) -> Result<(BTreeMap<Seq, f64>, Waste), Failure> {
    let mut by_stream: BTreeMap<StreamId, Vec<&BilledRequest>> = BTreeMap::new();
    for request in requests {
        by_stream.entry(request.stream).or_default().push(request);
    }
    let sessions: Vec<(StreamId, Vec<&BilledRequest>)> = by_stream.into_iter().collect();
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

/// Titles for the sessions of a bill that are in one store, and the store's name where there are several.
fn titles(stores: &ReadStores, end: &StoreEnd, bill: &mut Bill) -> Result<(), Failure> {
    let store = stores.store(end.place)?;
    let names = session::asked(&store, None)?;
    let by_name: BTreeMap<&str, &StreamName> = names.iter().map(|name| (name.name.as_str(), name)).collect();
    for row in &mut bill.items {
        let Some(name) = by_name.get(row.key.as_str()) else { continue };
        if let Some(label) = stores.label(end.place) {
            row.store =
                Some(row.store.take().map_or_else(|| label.to_owned(), |known| format!("{known}, {label}")));
        }
        let changed = end.titles.get(&name.id).copied();
        row.title = acpdb_query::titles::title_at(&store, name, changed, None)?;
    }
    Ok(())
}

fn name(key: &str, by: CostBy, is_whole: bool) -> String {
    if key.is_empty() {
        let what = match by {
            CostBy::Hour | CostBy::Block | CostBy::Day | CostBy::Week | CostBy::Month => describe::NO_TIME,
            CostBy::Project => "no folder",
            CostBy::Model => "no model named",
            CostBy::Session | CostBy::Host => "-",
        };
        return what.to_owned();
    }
    let key = escape(key, EscapeLevel::Line);
    match by {
        // A printed day has the mark of UTC where it is one, as in all output.
        CostBy::Day if is_utc() => format!("{key}Z"),
        // Programs get whole cells.
        _ if is_whole => key.into_owned(),
        CostBy::Session => key.chars().take(ID_WIDTH).collect(),
        CostBy::Project => clip_path(&key, NAME_WIDTH),
        _ => clip(&key, NAME_WIDTH),
    }
}

/// Whether the local time is that of UTC.
fn is_utc() -> bool {
    jiff::tz::TimeZone::system().to_fixed_offset().is_ok_and(jiff::tz::Offset::is_zero)
}

/// A row, with its names.
struct Named<'r> {
    row: &'r CostRow,
    name: String,
    part: String,
}

fn rows(bill: &Bill, Units { by, within }: Units, output: &mut Output) -> Result<(), Failure> {
    let sum = &bill.sum;
    // An empty column is left out.
    let part = bill.within.unwrap_or("part");
    let titled = bill.items.iter().any(|row| row.title.is_some());
    let stored = bill.items.iter().any(|row| row.store.is_some());
    let whole = output.tabs;
    let columns = vec![
        text(bill.by, |row: &Named<'_>| row.name.clone()).ranked(0),
        text(part, |row: &Named<'_>| row.part.clone()).ranked(0).shown_if(within.is_some()),
        text("store", |row: &Named<'_>| row.row.store.clone().unwrap_or_default()).ranked(1).shown_if(stored),
        text("title", |row: &Named<'_>| row.row.title.as_deref().map(one_line).unwrap_or_default())
            .ranked(6)
            .shown_if(by == CostBy::Session && titled)
            .cut_to(TITLE_WIDTH_MIN),
        number("requests", |row: &Named<'_>| row.row.requests.to_string()).ranked(5),
        number("tokens in", |row: &Named<'_>| {
            let read = &row.row.tokens;
            let read = [read.input, read.cache_read, read.cache_write, read.cache_write_long];
            tokens(whole, read.into_iter().fold(0, u64::saturating_add))
        })
        .ranked(9),
        number("out", |row: &Named<'_>| tokens(whole, row.row.tokens.output)).ranked(8),
        number("input", |row: &Named<'_>| dollars(row.row.dollars.input))
            .ranked(7)
            .shown_if(sum.dollars.input > 0.0),
        number("read", |row: &Named<'_>| dollars(row.row.dollars.cache_read)).ranked(2),
        number("write", |row: &Named<'_>| dollars(row.row.dollars.cache_write))
            .ranked(3)
            .shown_if(sum.dollars.cache_write > 0.0),
        number("write 1h", |row: &Named<'_>| dollars(row.row.dollars.cache_write_long))
            .ranked(4)
            .shown_if(sum.dollars.cache_write_long > 0.0),
        number("output", |row: &Named<'_>| dollars(row.row.dollars.output)).ranked(1),
        number("searches", |row: &Named<'_>| dollars(row.row.dollars.searches))
            .ranked(4)
            .shown_if(sum.dollars.searches > 0.0),
        number("total", |row: &Named<'_>| dollars(row.row.total)).ranked(0),
        number("subagents", |row: &Named<'_>| dollars(row.row.subagents))
            .ranked(11)
            .shown_if(sum.subagents > 0.0),
        number("host says", |row: &Named<'_>| or_none(row.row.host_total))
            .ranked(10)
            .shown_if(sum.host_total.is_some()),
        number("stale", |row: &Named<'_>| or_none(row.row.stale)).ranked(0).shown_if(sum.stale.is_some()),
    ];
    let part_of = |row: &CostRow| row.part.as_deref().zip(within).map(|(key, by)| name(key, by, whole));
    let named = |row| Named { row, name: name(&row.key, by, whole), part: part_of(row).unwrap_or_default() };
    let mut rows: Vec<Named<'_>> = bill.items.iter().map(named).collect();
    rows.push(Named { row: sum, name: "sum".to_owned(), part: String::new() });
    table::print(output, columns, &rows)
}

fn or_none(amount: Option<f64>) -> String {
    amount.map_or_else(|| "-".to_owned(), dollars)
}

/// The way that would have saved most. A policy alone saves nothing: something has to prune by it.
#[derive(Debug, serde::Serialize)]
pub(super) struct Saving {
    policy: &'static str,
    dollars: f64,
    /// The share of the input bill.
    share: f64,
    /// The share of steps that would have missed a text.
    risk: f64,
    /// The command by which these hosts prune.
    #[serde(skip)]
    by: String,
}

impl Saving {
    /// `hosts`: those of the sessions. A host whose plug-in prunes is not changed by `run`.
    pub(super) fn of(waste: &Waste, hosts: &BTreeSet<&str>) -> Option<Self> {
        let way = waste.best()?;
        let (policy, dollars, share) = (way.policy, way.saved, way.saved / waste.input);
        let plugin = hosts.first().filter(|_| hosts.len() == 1).and_then(|name| Host::from_name(name));
        let by = match plugin.filter(|host| host.takes_plugin()) {
            Some(host) => format!("acpdb attach {host} --mode prune"),
            None => "acpdb run --mode prune".to_owned(),
        };
        Some(Self { policy, dollars, share, risk: way.affected_share(), by })
    }
}

impl std::fmt::Display for Saving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dollars = describe::dollars_in_words(self.dollars);
        let [share, risk] = [self.share, self.risk].map(|share| share * 100.0);
        // The figure beside it counts stale items alone, and may be the smaller one.
        let how = if self.policy == "acp" { "" } else { " takes old items out, too:" };
        write!(
            f,
            "acpdb policy set {}, then {},{how} saves {dollars} ({share:.1} %), risks {risk:.1} % of steps",
            self.policy, self.by
        )
    }
}

fn ways(bill: &Bill, waste: &Waste, hosts: &BTreeSet<&str>, output: &mut Output) -> Result<(), Failure> {
    output.line("")?;
    if waste.input <= 0.0 {
        return output.line("what went to stale items is not known: no request tells its input");
    }
    let stale = bill.sum.stale.unwrap_or_default();
    let share = |part: f64| part / waste.input * 100.0;
    let saving = Saving::of(waste, hosts)
        .map_or_else(|| "no policy saves anything".to_owned(), |saving| saving.to_string());
    output.line(format!(
        "{} of {} ({:.1} %) went to stale items; {saving}",
        describe::dollars_in_words(stale),
        dollars(waste.input),
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

fn copied(count: u64) -> String {
    describe::count(count, "copied request")
}

/// Tells the requests that the sums leave out, and the sources of the sums.
fn remarks(bill: &Bill, args: &Cost, output: &Output) {
    if bill.copies > 0 {
        output.note(format!("{} of resumed and forked sessions left out", copied(bill.copies)));
    }
    if !bill.unpriced.is_empty() {
        let name = |row: &cost::Unpriced| {
            let model = row
                .model
                .as_deref()
                .map_or_else(|| "no model named".into(), |name| escape(name, EscapeLevel::Line));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a session of opencode it said `acpdb run`, which changes no request of that host.
    #[test]
    fn the_command_that_saves_is_one_that_changes_the_requests_of_these_hosts() {
        let way = cost::ServingPolicy {
            name: "safe",
            policy: "safe",
            mode: "batched",
            input: 1.0,
            saved: 1.0,
            steps: 10,
            steps_affected: 0,
        };
        let waste = Waste { input: 2.0, ways: vec![way] };
        for (hosts, by) in [
            (&["opencode"][..], "acpdb attach opencode --mode prune"),
            (&["pi"], "acpdb attach pi --mode prune"),
            (&["claude-code"], "acpdb run --mode prune"),
            (&["codex", "opencode"], "acpdb run --mode prune"),
            (&["my-own"], "acpdb run --mode prune"),
        ] {
            let saving = Saving::of(&waste, &hosts.iter().copied().collect()).unwrap().to_string();
            let wanted = format!(
                "acpdb policy set safe, then {by}, takes old items out, too: saves $1.00 (50.0 %), risks 0.0 % of steps"
            );
            assert_eq!(saving, wanted, "{hosts:?}");
        }
    }
}
