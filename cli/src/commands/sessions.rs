//! `acpdb sessions`: a line for each session.

use acpdb_engine::Store;
use acpdb_engine::ids::{ItemId, Micros, Seq};
use acpdb_engine::store::StreamName;
use acpdb_query::context::sampled;
use acpdb_query::sessions::{Branch, forest, sparkline};
use acpdb_query::{Filter, PageCursor, SessionRow, SessionsAsked};

use super::describe::dollars;
use super::lines::{clip, cut, one_line};
use super::table::{self, number, text, tokens};
use super::{Code, EscapeLevel, Failure, Global, Output, ask, describe, escape};
use crate::args::{SessionSort, Sessions, typed};
use crate::several::{self, ReadStores};
use crate::spread;

/// Columns of the picture of a context over turns.
const CURVE_WIDTH: usize = 12;
/// Narrowest title, in columns; other columns are left out for it.
const TITLE_WIDTH_MIN: usize = 28;
/// Widest title, in columns, where there is no terminal that cuts it.
const TITLE_WIDTH_MAX: usize = 200;
/// Terminals from this width on show the minute a session was last active.
const WIDE_FROM: usize = 120;
/// Fewest characters of an id that are shown.
const ID_LENGTH_MIN: usize = 8;

/// A session, and the store that it is in.
struct SessionListRow {
    /// The store's name, where there are several.
    store: Option<String>,
    /// The store's name, as a cursor has it.
    mark: Option<u32>,
    row: SessionRow,
}

impl std::ops::Deref for SessionListRow {
    type Target = SessionRow;

    fn deref(&self) -> &SessionRow {
        &self.row
    }
}

/// The rows of one store, and the number of its subagents that are not shown.
type Rows = (Vec<SessionRow>, u64);

pub(crate) fn run(global: &Global, args: &Sessions, output: &mut Output) -> Result<Code, Failure> {
    ask::check(&args.ask.query, global.session.as_deref())?;
    let stores = ReadStores::open(global, output)?;
    let (only, filter) = ask::placed_in(&stores, &args.ask.query, global.session.as_deref(), output)?;
    let named = only.as_ref().map_or("", |only| only.name.as_str());
    let all = if is_of_all(args) { "all" } else { "" };
    let (after, digest) = args.ask.page(&["sessions", filter.text(), named, all, &typed(&args.sort)])?;
    let is_alone = stores.only().is_some();
    let progress = is_alone.then_some(output.progress);
    // The first page says up to where the others read; over several stores they read anew.
    let pinned = after.filter(|_| is_alone).map(|cursor| cursor.at);
    let (found, code) = ask::each_until(&stores, global, only.as_ref(), output, |store, end| {
        let at = pinned.unwrap_or(end);
        Ok((look(store, args, only.as_ref(), &filter, at, progress)?, at))
    })?;
    let (mut rows, mut subagents, mut end) = (Vec::new(), 0, Seq::ZERO);
    for (place, ((own, left_out), at)) in found {
        let listed = |row| SessionListRow {
            store: stores.label(place).map(str::to_owned),
            mark: stores.mark(place),
            row,
        };
        rows.extend(own.into_iter().map(listed));
        subagents += left_out;
        end = if is_alone { at } else { end };
    }
    sort(&mut rows, args.sort);
    let next = page(&mut rows, after, args.ask.limit, end, digest)?;
    if output.json {
        let items: Vec<serde_json::Value> = rows.iter().map(for_programs).collect::<Result<_, _>>()?;
        return output.json_page("acpdb.sessions/1", &items, next).map(|_| code);
    }
    if rows.is_empty() {
        let which = if filter.is_empty() { "" } else { " that match" };
        if let Some(only) = only.as_ref().filter(|_| after.is_none() && filter.is_empty()) {
            return Err(Failure::not_found(format!("session {} began later than {end}", only.name)));
        }
        output.note(format!("no sessions{which}"));
        return Ok(code);
    }
    if args.graph {
        // A tree is of one store.
        rows.sort_by(|one, other| one.store.cmp(&other.store));
        for rows in rows.chunk_by(|one, other| one.store == other.store) {
            if let Some(label) = rows.first().and_then(|row| row.store.as_ref()) {
                output.styled(describe::BOLD, label)?;
            }
            graph(rows, output)?;
        }
    } else {
        listed(&rows, output)?;
    }
    if subagents > 0 {
        output.note(format!("{} not shown; --all shows them", describe::count(subagents, "subagent")));
    }
    ask::more(next, output);
    Ok(code)
}

const fn is_of_all(args: &Sessions) -> bool {
    args.all || args.graph
}

/// The rows of one store as of `at`.
fn look(
    store: &Store,
    args: &Sessions,
    only: Option<&StreamName>,
    filter: &Filter,
    at: Seq,
    progress: Option<bool>,
) -> Result<Rows, Failure> {
    let mut asked = SessionsAsked::new(store, at, filter)?;
    asked.names.retain(|name: &StreamName| only.is_none_or(|only| only.id == name.id));
    let is_hidden = |name: &StreamName| !is_of_all(args) && only.is_none() && name.parent.is_some();
    // Hidden sessions are only counted, unless a filter or an earlier point needs their rows.
    let is_counted = filter.is_empty() && at == store.head()?;
    let found = spread::each_of_one(progress, &asked.names, "sessions", |name| {
        if is_hidden(name) && is_counted { Ok(None) } else { asked.row(name) }
    })?;
    let hidden = asked.names.iter().zip(&found);
    let hidden = hidden.filter(|(name, row)| is_hidden(name) && (is_counted || row.is_some()));
    let subagents = hidden.count() as u64;
    let rows = found.into_iter().flatten().filter(|row| !is_hidden(&row.summary.name)).collect();
    Ok((rows, subagents))
}

/// A row, with times as in all answers.
fn for_programs(row: &SessionListRow) -> Result<serde_json::Value, Failure> {
    let time = |time: Option<Micros>| time.map(describe::time);
    let times = [("began", time(row.summary.name.began)), ("ended", time(row.summary.ended))];
    Ok(several::with_store(describe::timed(&row.row, &times)?, row.store.as_deref()))
}

/// Cuts the rows to a page. A session's cursor is its first seq, which no later event changes.
fn page(
    rows: &mut Vec<SessionListRow>,
    after: Option<PageCursor>,
    limit: Option<usize>,
    at: Seq,
    digest: u32,
) -> Result<Option<PageCursor>, Failure> {
    if let Some(cursor) = after {
        let is_last =
            |row: &SessionListRow| row.mark == cursor.store && row.summary.first == cursor.after.seq;
        let place = rows.iter().position(is_last).ok_or_else(several::lost_cursor)?;
        rows.drain(..=place);
    }
    let Some(limit) = limit.filter(|limit| *limit < rows.len()) else { return Ok(None) };
    rows.truncate(limit);
    let cursor = |last: &SessionListRow| {
        let after = ItemId { seq: last.summary.first, part: 1 };
        PageCursor { at, after, question: digest, store: last.mark }
    };
    Ok(rows.last().map(cursor))
}

/// Sorts rows: by size or time the largest or newest first, by name as in the alphabet; else the newest first.
fn sort(rows: &mut [SessionListRow], by: SessionSort) {
    let name = |text: Option<&String>| text.map(|text| (text.is_empty(), text.to_lowercase()));
    rows.sort_by(|one, other| {
        let newest = |row: &SessionListRow| (row.summary.ended, row.store.clone(), row.summary.name.head);
        let number = |of: &dyn Fn(&SessionRow) -> u64| of(other).cmp(&of(one));
        // A row without a name comes last.
        let text = |of: &dyn Fn(&SessionRow) -> Option<(bool, String)>| {
            let (one, other) = (of(one), of(other));
            (one.is_none(), one).cmp(&(other.is_none(), other))
        };
        let order = match by {
            SessionSort::Time => std::cmp::Ordering::Equal,
            SessionSort::Cost => other.cost.unwrap_or(0.0).total_cmp(&one.cost.unwrap_or(0.0)),
            SessionSort::Duration => number(&|row| row.duration_seconds.unwrap_or(0)),
            SessionSort::Tokens => number(&|row| row.summary.tokens),
            SessionSort::Turns => number(&|row| u64::from(row.summary.turns.get())),
            SessionSort::Calls => number(&|row| row.summary.calls),
            SessionSort::Title => text(&|row| name(row.summary.name.title.as_ref())),
            SessionSort::Project => text(&|row| name(row.summary.name.folder.as_ref())),
            SessionSort::Model => text(&|row| name(row.models.first())),
            SessionSort::Host => text(&|row| name(Some(&row.summary.name.host))),
        };
        order.then_with(|| newest(other).cmp(&newest(one)))
    });
}

/// The title of a session for people. Some titles are a whole first prompt.
fn title(row: &SessionRow) -> String {
    clip(&row.summary.name.title.as_deref().map(one_line).unwrap_or_default(), TITLE_WIDTH_MAX)
}

/// The project of a session: for people the last part of its folder.
fn project(folder: &str, is_whole: bool) -> String {
    let last = folder.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    let name = if is_whole || last.is_empty() { folder } else { last };
    escape(name, EscapeLevel::Line).into_owned()
}

/// A row, and the characters of its id that tell it from the others.
type Listed<'r> = (&'r SessionListRow, usize);

fn listed(rows: &[SessionListRow], output: &mut Output) -> Result<(), Failure> {
    let names: Vec<&str> = rows.iter().map(|row| row.summary.name.name.as_str()).collect();
    let lengths = if output.tabs { vec![usize::MAX; names.len()] } else { id_lengths(&names) };
    let room = (output.width / 4).max(ID_LENGTH_MIN);
    let ids = lengths.iter().copied().max().unwrap_or_default().min(room);
    let ids = if output.tabs { usize::MAX } else { ids };
    let when = if output.tabs || output.width >= WIDE_FROM { describe::minute } else { describe::day };
    // An empty column is left out.
    let has_matches = rows.iter().any(|row| row.matches.is_some());
    let has_cost = rows.iter().any(|row| row.cost.is_some() || row.has_copies);
    let has_stores = rows.iter().any(|row| row.store.is_some());
    let folder = |row: &SessionListRow| row.summary.name.folder.clone().unwrap_or_default();
    // One project for all says nothing.
    let has_projects = rows.iter().any(|row| folder(row) != rows.first().map(folder).unwrap_or_default());
    let whole = output.tabs;
    let columns = vec![
        text("store", |(row, _): &Listed<'_>| row.store.clone().unwrap_or_default())
            .ranked(1)
            .shown_if(has_stores),
        text("id", |(row, length): &Listed<'_>| short_id(&row.summary.name.name, *length, ids)).ranked(0),
        text("host", |(row, _): &Listed<'_>| escape(&row.summary.name.host, EscapeLevel::Line).into_owned())
            .ranked(7),
        text("title", |(row, _): &Listed<'_>| title(row)).ranked(0).cut_to(TITLE_WIDTH_MIN),
        text("project", |(row, _): &Listed<'_>| project(&folder(row), whole))
            .ranked(8)
            .shown_if(has_projects),
        number("matches", |(row, _): &Listed<'_>| {
            row.matches.map(|count| count.to_string()).unwrap_or_default()
        })
        .ranked(1)
        .shown_if(has_matches),
        number("turns", |(row, _): &Listed<'_>| row.summary.turns.get().to_string()).ranked(8),
        number("calls", |(row, _): &Listed<'_>| row.summary.calls.to_string()).ranked(6),
        number("tokens", |(row, _): &Listed<'_>| tokens(whole, row.summary.tokens)).ranked(4),
        number("shown", |(row, _): &Listed<'_>| tokens(whole, row.summary.tokens_shown)).ranked(5),
        number("superseded", |(row, _): &Listed<'_>| row.summary.superseded.to_string()).ranked(9),
        number("cost", |(row, _): &Listed<'_>| {
            row.cost.map_or_else(|| if row.has_copies { "copied" } else { "-" }.to_owned(), dollars)
        })
        .ranked(3)
        .shown_if(has_cost),
        text("when", |(row, _): &Listed<'_>| {
            row.summary.ended.map_or_else(|| describe::NO_TIME.to_owned(), when)
        })
        .ranked(2),
        text("context", |(row, _): &Listed<'_>| sparkline(&sampled(&row.tokens_by_turn, CURVE_WIDTH)))
            .ranked(10),
    ];
    let rows: Vec<Listed<'_>> = rows.iter().zip(lengths).collect();
    table::print(output, columns, &rows)
}

/// The prefix of an id that tells it from the others; if there is no room for it, its beginning and its end.
fn short_id(id: &str, length: usize, room: usize) -> String {
    let id: String = escape(id, EscapeLevel::Line).chars().take(length).collect();
    let count = id.chars().count();
    if count <= room {
        return id;
    }
    // There is room for at least 8 characters.
    let head = room.saturating_sub(1) / 2;
    // There is room for at least 8 characters.
    let tail = room.saturating_sub(1) - head;
    let first: String = id.chars().take(head).collect();
    let last: String = id.chars().skip(count - tail).collect();
    format!("{first}…{last}")
}

/// Sessions as a tree: subagents and forks below the session that they came from, rewinds as branches that were left.
fn graph(rows: &[SessionListRow], output: &mut Output) -> Result<(), Failure> {
    let names: Vec<&str> = rows.iter().map(|row| row.summary.name.name.as_str()).collect();
    let lengths = id_lengths(&names);
    let nodes = forest(rows.iter().map(|row| &row.row));
    for (number, node) in nodes.iter().enumerate() {
        let Some(row) = rows.get(node.row) else { continue };
        let length = lengths.get(node.row).copied().unwrap_or(ID_LENGTH_MIN);
        let rail = |ends: &[bool]| -> String {
            ends.iter().map(|is_last| if *is_last { "   " } else { "│  " }).collect()
        };
        let lead = match node.is_last.split_last() {
            Some((is_last, above)) => format!("{}{}", rail(above), if *is_last { "└─ " } else { "├─ " }),
            None => String::new(),
        };
        let (mark, how) = match (node.branch, row.forked_from) {
            // A host's fork came with a copy of the shared items.
            (Branch::Fork, Some(fork)) if fork.at == Seq::ZERO => ("◆", "fork, a copy  ".to_owned()),
            (Branch::Fork, Some(fork)) => ("◆", format!("fork at {}  ", fork.at)),
            (Branch::Subagent, _) => ("◇", "subagent  ".to_owned()),
            _ => ("●", String::new()),
        };
        let session = &row.summary;
        let id = short_id(&session.name.name, length, output.room(lead.chars().count() + 4).max(8));
        let figures = format!(
            "{}, ~{} tokens shown",
            describe::count(u64::from(session.turns.get()), "turn"),
            describe::tokens(session.tokens_shown)
        );
        let used = lead.chars().count() + 2 + id.chars().count() + how.chars().count() + figures.len() + 14;
        let title = clip(&title(row), output.room(used).max(8));
        let line = format!(
            "{lead}{mark} {}  {how}{}  {}  {figures}",
            output.paint(describe::BOLD, &id),
            title,
            sparkline(&sampled(&row.tokens_by_turn, 8))
        );
        output.line(cut(&line, output))?;
        let has_children = nodes.get(number + 1).is_some_and(|next| next.depth > node.depth);
        for rewind in &row.rewinds {
            let rail = rail(&node.is_last);
            let branch = if has_children { "│  " } else { "   " };
            let text = format!(
                "{rail}{branch}╳ {} rewound to {}, {} left behind",
                rewind.seq,
                rewind.to,
                describe::count(rewind.item_count as u64, "item")
            );
            output.line(cut(&output.paint(describe::DIM, &text), output))?;
        }
    }
    Ok(())
}

/// Characters of each id that tell it from the others.
fn id_lengths(names: &[&str]) -> Vec<usize> {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let shared = |left: &str, right: &str| {
        left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count()
    };
    let length = |name: &&str| {
        let place = sorted.binary_search(name).unwrap_or_default();
        let before = place.checked_sub(1).and_then(|before| sorted.get(before));
        let near =
            [before, sorted.get(place + 1)].into_iter().flatten().map(|other| shared(name, other)).max();
        near.map_or(ID_LENGTH_MIN, |shared| (shared + 1).max(ID_LENGTH_MIN))
    };
    names.iter().map(length).collect()
}
