//! `acpdb history`: all items that ever were, and the chains of superseding.

use acpdb_engine::fold::FaceState;
use acpdb_engine::ids::ItemId;
use acpdb_engine::text::likeness::{likeness, nearest_by};
use acpdb_engine::{Store, View, store::StreamName};
use acpdb_query::items::names;
use acpdb_query::served::ServedRow;
use acpdb_query::{ChainEdge, ChainReport, Filter, ItemRow, PageCursor, Scanned, Which};

use super::lines::{Widths, about, behind, cut, joined, one_line, standing, standing_painted};
use super::{Code, Failure, Global, Output, ask, describe, find, session, store_path};
use crate::args::HistoryArgs;
use crate::several::{self, ReadStores};

/// Schema of the output for programs.
const SCHEMA: &str = "acpdb.history/1";
/// Rows that are gathered before columns are laid out.
const PAGE_COUNT: usize = 256;
/// Columns for an item's standing.
const STANDING_WIDTH: usize = 34;
/// Columns for the standing of the last member of a chain.
const LAST_WIDTH: usize = 14;

pub(crate) fn run(global: &Global, args: &HistoryArgs, output: &mut Output) -> Result<Code, Failure> {
    let session = global.session.as_deref();
    if let Some(id) = &args.todo {
        return super::todo::history_of(global, id, session, output);
    }
    if let Some(id) = &args.chain {
        return of_chain(global, id, session, output);
    }
    let which = args.file.as_deref().map_or(Which::All, Which::File);
    ask::check(&args.ask.query, session)?;
    let stores = ReadStores::open(global, output)?;
    let (mut only, filter) = ask::placed_in(&stores, &args.ask.query, session, output)?;
    // A question without any condition is about one session, as everywhere.
    let is_bare = only.is_none() && filter.is_empty() && matches!(which, Which::All) && !args.all;
    if let Some(store) = stores.only().filter(|_| is_bare) {
        only = Some(session::default_session_noted(store, None, output)?);
    }
    let named = only.as_ref().map_or_else(String::new, |session| session.name.clone());
    let question = ["history", filter.text(), named.as_str(), args.file.as_deref().unwrap_or("")];
    let (after, digest) = args.ask.page(&question)?;
    let (streams, code) = places(&stores, global, only.as_ref(), &filter, output)?;
    let limit = args.ask.limit.unwrap_or(usize::MAX);
    let list = Listing { question: filter.text().to_owned(), which, after, digest, left: limit };
    list.print(&stores, global, &streams, output).map(|done| if done == Code::Ok { code } else { done })
}

/// A session of a question, in the store that holds it, with the filter as it is there.
struct SessionQuery {
    store: usize,
    stream: StreamName,
    filter: std::sync::Arc<Filter>,
}

/// The sessions of a question: of one store in its order, of several in order of time.
fn places(
    stores: &ReadStores,
    global: &Global,
    only: Option<&StreamName>,
    filter: &Filter,
    output: &Output,
) -> Result<(Vec<SessionQuery>, Code), Failure> {
    // Over several stores, only a time means a point.
    let _ = several::moment_of(global, stores)?;
    let (found, code) = stores.each(output, |store| {
        // Once, and not for each session.
        let filter = acpdb_query::settled(store, filter.clone())?;
        Ok((std::sync::Arc::new(filter), session::asked(store, only.cloned())?))
    })?;
    let mut places = Vec::new();
    for (store, (filter, streams)) in found {
        places.extend(streams.into_iter().map(|stream| SessionQuery {
            store,
            stream,
            filter: filter.clone(),
        }));
    }
    if stores.only().is_none() {
        places.sort_by_key(|place| (place.stream.began, place.store, place.stream.head));
    }
    Ok((places, code))
}

/// Rows of one session or several, as they are found.
struct Listing<'a> {
    /// The filter as it was typed.
    question: String,
    which: Which<'a>,
    after: Option<PageCursor>,
    digest: u32,
    left: usize,
}

impl Listing<'_> {
    fn print(
        mut self,
        stores: &ReadStores,
        global: &Global,
        streams: &[SessionQuery],
        output: &mut Output,
    ) -> Result<Code, Failure> {
        let mut near = Vec::new();
        let mut scanned = Scanned::default();
        // The end of the page, and whether a row follows it.
        let (mut next, mut has_more) = (None, false);
        let mut json: Vec<serde_json::Value> = Vec::new();
        let mut row_count = 0_u64;
        let many = streams.len() > 1;
        // A page ends in one session; the next page goes on there.
        let begin = match self.after {
            Some(cursor) => ended(stores, streams, cursor)?,
            None => 0,
        };
        let mut after = self.after;
        for SessionQuery { store: place, stream, filter } in streams.iter().skip(begin) {
            if has_more {
                break;
            }
            let store = &stores.store(*place)?;
            // The seq that the first page saw is one of its store.
            let seen = self.after.filter(|cursor| cursor.store == stores.mark(*place));
            let seen = seen.map(|cursor| cursor.at.to_string());
            let at = seen.as_deref().or(global.at.as_deref());
            let Some(view) = find::view_among(store, global, stream, at, !many)? else { continue };
            if many {
                near.extend(names(&view, self.which));
            }
            let chosen = chosen(&view, &stream.name, self.which);
            let mut rows = acpdb_query::item_rows(store, &view, stream, filter)?;
            if let Some(cursor) = after.take() {
                rows = rows.behind(cursor.after);
            }
            // A fork repeats the items that it shares with its parent.
            let first = view.state().first();
            let mut widths = None;
            let mut ready: Vec<ItemRow> = Vec::new();
            let mut is_end = false;
            while !is_end && !has_more {
                match rows.next() {
                    // The next page tells of damage after this page.
                    Some(Err(_)) if self.left == 0 => has_more = true,
                    Some(row) => {
                        let row = row?;
                        let is_chosen = chosen.as_ref().is_none_or(|chosen| chosen.contains(&row.item));
                        let is_chosen = is_chosen && (!many || row.seq >= first);
                        if is_chosen && self.left == 0 {
                            has_more = true;
                        } else if is_chosen {
                            self.left -= 1;
                            row_count += 1;
                            if self.left == 0 {
                                next = row.item.parse().ok().map(|after| PageCursor {
                                    at: view.at(),
                                    after,
                                    question: self.digest,
                                    store: stores.mark(*place),
                                });
                            }
                            ready.push(row);
                        }
                    }
                    None => is_end = true,
                }
                if output.json {
                    for row in ready.drain(..) {
                        json.push(several::with_store(describe::timed(&row, &[])?, stores.label(*place)));
                    }
                } else if is_end || self.left == 0 || ready.len() == PAGE_COUNT {
                    if many && widths.is_none() && !ready.is_empty() {
                        heading(stores, *place, stream, output)?;
                    }
                    // The first rows set the widths of columns, so that they are printed at once.
                    let columns = *widths.get_or_insert_with(|| columns(&ready, output));
                    for row in ready.drain(..) {
                        let line = columns.line(&row, &about(&view, &row)?, output);
                        output.line(joined(&[&line, &standing_painted(&row, output)], output))?;
                    }
                }
            }
            scanned += rows.scanned();
            if !many && row_count == 0 {
                near = names(&view, self.which);
            }
        }
        ask::searched(scanned, output);
        let next = next.filter(|_| has_more);
        if output.json {
            return output.json_page(SCHEMA, &json, next);
        }
        if row_count == 0 && self.after.is_none() {
            if !self.question.is_empty() {
                // Most queries are no id, and need no hint.
                let chain = self.question.parse::<ItemId>().ok();
                let chain = chain.map(|item| format!("; that item: acpdb history --chain '{item}'"));
                output.note(format!("0 items matched{}", chain.unwrap_or_default()));
                return Ok(Code::Ok);
            }
            return Err(nothing(self.which, near));
        }
        ask::more(next, output);
        Ok(Code::Ok)
    }
}

/// A session above its rows.
fn heading(
    stores: &ReadStores,
    place: usize,
    stream: &StreamName,
    output: &mut Output,
) -> Result<(), Failure> {
    let title = acpdb_query::titles::title_of(&stores.store(place)?, stream, None)?;
    let id = stores.qualified(place, &one_line(&stream.name));
    super::search::heading(&id, stream, title.as_deref(), output)
}

/// The place of the session in which a page ended.
fn ended(stores: &ReadStores, streams: &[SessionQuery], cursor: PageCursor) -> Result<usize, Failure> {
    let store = stores.place_of(cursor.store)?;
    let ended = stores.store(store)?.event(cursor.after.seq)?.map(|recorded| recorded.event.stream);
    let is_it = |place: &SessionQuery| place.store == store && Some(place.stream.id) == ended;
    Ok(streams.iter().position(is_it).unwrap_or(0))
}

/// Columns for these rows.
fn columns(rows: &[ItemRow], output: &Output) -> Widths {
    let stands = rows.iter().map(|row| standing(row).into());
    Widths::of(rows, output, behind(stands, STANDING_WIDTH, output))
}

/// The items that `--file` or `--tool` names; `None`: all.
fn chosen(view: &View, session: &str, which: Which<'_>) -> Option<std::collections::BTreeSet<String>> {
    match which {
        Which::All => None,
        _ => Some(acpdb_query::items(view, session, which).into_iter().map(|row| row.item).collect()),
    }
}

/// The failure when nothing was found: names a similar file or tool.
fn nothing(which: Which<'_>, names: Vec<String>) -> Failure {
    let (what, asked) = match which {
        Which::All => {
            return Failure::not_found("there are no items at this point")
                .hint("acpdb sessions lists the sessions; acpdb import reads some");
        }
        Which::File(path) => ("file", path),
        Which::Tool(tool) => ("tool", tool),
    };
    let failure = Failure::not_found(format!("no call names the {what} {asked:?}"));
    // Paths are long and alike, so that their last part tells most.
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let like = |name: &str| likeness(name, asked).max(likeness(&last(name), &last(asked)));
    match nearest_by(names, 0.7, like) {
        Some(name) => failure.hint(format!("did you mean {name}?")),
        None => match which {
            // A command line names few of the files that it touches.
            Which::File(path) => {
                let path = store_path::quoted(std::path::Path::new(path));
                failure.hint(format!("a command line or another text may name it: acpdb search {path}"))
            }
            Which::All | Which::Tool(_) => failure,
        },
    }
}

/// Whether a text looks like a file's path: a path names no item.
fn is_path(text: &str) -> bool {
    let text = text.trim_start_matches('@');
    text.contains('/')
        || text.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty() && !end.is_empty() && !end.bytes().all(|byte| byte.is_ascii_digit())
        })
}

fn with_file(failure: Failure, path: &str) -> Failure {
    let path = store_path::quoted(std::path::Path::new(path.trim_start_matches('@')));
    failure.hint(format!("of a file: acpdb history --file {path}; each of its lines has an id for --chain"))
}

fn of_chain(global: &Global, id: &str, session: Option<&str>, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let found = match find::item(&store, id, session) {
        Ok(found) if found.ix.is_some() && !is_beginning_of_call(&store, &found, id)? => found,
        // Memory has chains, too. Its ids are short, and a call's id may begin with one.
        other => match super::memory_history::of_chain(&store, global, id, session, output)? {
            Some(code) => return Ok(code),
            None => other.map_err(|failure| if is_path(id) { with_file(failure, id) } else { failure })?,
        },
    };
    let (view, ix) = find::target(&store, global, &found)?;
    let chain = acpdb_query::chain(&view, &found.stream.name, ix);
    let chain = chain
        .ok_or_else(|| Failure::not_found(format!("{} was not recorded yet at {}", found.item, view.at())))?;
    if output.json {
        return output.json_object(SCHEMA, &chain);
    }
    let old: std::collections::BTreeSet<&str> =
        chain.edges.iter().filter(|edge| !edge.released).map(|edge| edge.old.as_str()).collect();
    let superseded = old.len();
    output.line(format!(
        "chain of {} in {}: {}, {superseded} superseded, ~{} tokens freed",
        output.paint(describe::SEQ, &chain.item),
        one_line(&chain.session),
        describe::count(chain.members.len() as u64, "member"),
        describe::tokens(chain.tokens_freed)
    ))?;
    draw(&chain, &|row| about(&view, row), output)?;
    if chain.edges.is_empty() {
        output.line("It superseded nothing, and nothing superseded it.")?;
    }
    Ok(Code::Ok)
}

/// Whether an id that memory could have, such as `d1`, is only the beginning of the found call's id.
fn is_beginning_of_call(store: &Store, found: &acpdb_query::FoundItem, id: &str) -> Result<bool, Failure> {
    let (letter, number) = id.split_at_checked(1).unwrap_or((id, ""));
    let is_short = matches!(letter, "f" | "p" | "d" | "n")
        && !number.is_empty()
        && number.bytes().all(|digit| digit.is_ascii_digit());
    if !is_short {
        return Ok(false);
    }
    let event = store.event(found.item.seq)?.map(|recorded| recorded.event.payload);
    Ok(!matches!(event, Some(acpdb_engine::event::Payload::ToolCallStarted(started)) if started.call == id))
}

/// A chain, oldest first: a line for each member, and below it the edges to newer ones.
pub(crate) fn draw(
    chain: &ChainReport,
    about: &dyn Fn(&ItemRow) -> Result<String, Failure>,
    output: &mut Output,
) -> Result<(), Failure> {
    // A newer member that superseded this one stands below it.
    let is_told_below = |row: &ItemRow| {
        let is_old = chain.edges.iter().any(|edge| edge.old == row.item);
        is_old && row.rule.is_some() && !matches!(row.cause, Some("erased" | "lost"))
    };
    let stands = chain.members.iter().filter(|row| !is_told_below(row)).map(|row| standing(row).into());
    let widths = Widths::of(&chain.members, output, behind(stands, LAST_WIDTH, output) + 2);
    for (number, row) in chain.members.iter().enumerate() {
        let mark = if row.is_visible() {
            output.paint(describe::GOOD, "●")
        } else {
            output.paint(describe::DIM, "○")
        };
        let line = widths.line(row, &about(row)?, output);
        let stands = if is_told_below(row) { String::new() } else { standing_painted(row, output) };
        let gap = if output.tabs { "\t" } else { " " };
        output.line(joined(&[&format!("{mark}{gap}{line}"), &stands], output))?;
        let last = number + 1 == chain.members.len();
        let rail = if last { " " } else { "│" };
        for edge in chain.edges.iter().filter(|edge| edge.old == row.item) {
            let text = edge_words(edge, row);
            output.line(cut(&output.paint(describe::DIM, &format!("{rail}   {text}")), output))?;
        }
    }
    for row in unseen(chain) {
        let words = format!("{}: no longer served since turn {} ({})", row.item, row.turn, row.seq);
        output.styled(describe::DIM, &words)?;
    }
    if chain.is_cut {
        output.styled(describe::DIM, "… and more, left out")?;
    }
    Ok(())
}

/// The newest state of each member that the model no longer sees, as far as contexts were recorded.
fn unseen(chain: &ChainReport) -> impl Iterator<Item = &ServedRow> {
    let newest = chain
        .served
        .iter()
        .enumerate()
        .filter(|(place, row)| chain.served.get(place + 1).is_none_or(|next| next.item != row.item));
    newest.map(|(_, row)| row).filter(|row| matches!(row.state, FaceState::Tombstone | FaceState::Gone))
}

fn edge_words(edge: &ChainEdge, old: &ItemRow) -> String {
    let by = edge.new.as_deref().map_or_else(|| format!("event {}", edge.seq), str::to_owned);
    // The edge that hides the item frees its tokens; further edges of the item only add reasons.
    let hides = old.superseded_by == edge.new && old.rule == Some(edge.rule);
    let effect = match edge.tokens_freed {
        _ if edge.released => ", shown again on request".to_owned(),
        0 if !hides => ", already hidden".to_owned(),
        0 => ", nothing freed".to_owned(),
        freed => format!(", {} tokens freed", describe::tokens(freed)),
    };
    format!("└ {} by {by} in t{}{effect}", edge.rule.label(), edge.turn)
}
