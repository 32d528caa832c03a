//! `acpdb search`: words, phrases and regular expressions in all recorded texts.
//!
//! Sessions are searched on all cores, the newest first. Hits come in that order, each as soon as it is its turn. With another
//! order, they come after the last text was searched.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use acpdb_engine::event::{Face, Scope};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::{Error, Store, store::StreamName};
use acpdb_query::filter::words;
use acpdb_query::search::{Hit, Patterns, Reading, SearchQuestion, search, search_whole};
use acpdb_query::{Filter, ItemRow, Scanned};

use super::lines::{clip, cut, one_line, standing, what};
use super::{Code, Escape, Failure, Global, Output, ask, describe, escape, session, store_path};
use crate::args::{Search, SearchSort};

/// Columns before a line of a text.
const INDENT: usize = 9;
/// Style of matches.
const MATCH: anstyle::Style =
    anstyle::Style::new().bold().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Red)));

/// Results of a search of one session.
enum News {
    Hit(Box<Hit>),
    End(Result<Scanned, Error>),
}

pub(crate) fn run(global: &Global, args: &Search, output: &mut Output) -> Result<Code, Failure> {
    let (texts, conditions) = parted(&args.words)?;
    if texts.is_empty() && conditions.is_empty() {
        return Err(Failure::usage("there is nothing to look for").hint("acpdb search WORD"));
    }
    if texts.is_empty() {
        let failure =
            Failure::usage("there is nothing to look for: conditions alone are a question for history");
        return Err(failure.hint(format!("acpdb history {}", conditions.join(" "))));
    }
    let reading = Reading { regex: args.regex, word: args.word, case: args.case };
    let patterns = Patterns::new(&texts, reading).map_err(|error| {
        Failure::usage(error.to_string()).hint("without --regex signs stand for themselves")
    })?;
    let filter = ask::filter(&conditions)?;
    let store = store_path::read(global, output)?;
    let only = session::named(&store, args.session.as_deref())?;
    let at = super::at::end(&store, global, only.as_ref())?.unwrap_or(store.head()?);
    let filter = acpdb_query::settled(&store, filter)?;
    let streams = places(&store, only, &filter)?;
    let question = SearchQuestion { patterns, filter, at, context: args.context, places: args.places };
    let mut show = Show {
        store: &store,
        titles: BTreeMap::new(),
        changed: None,
        json: Vec::new(),
        session: None,
        left: args.limit.unwrap_or(usize::MAX),
        has_more: false,
        count: 0,
        sessions: BTreeSet::new(),
    };
    let scanned = if args.sort == SearchSort::Time {
        each(&store, &streams, &question, &mut |stream, hit| show.hit(stream, hit, output))?
    } else {
        let mut hits = Vec::new();
        let scanned = each(&store, &streams, &question, &mut |stream, hit| {
            hits.push((stream.clone(), hit));
            Ok(true)
        })?;
        // Equal hits stay in the order of time.
        hits.sort_by_key(|(_, hit)| Reverse(size(args.sort, hit)));
        for (stream, hit) in hits {
            if !show.hit(&stream, hit, output)? {
                break;
            }
        }
        scanned
    };
    if output.json {
        #[derive(serde::Serialize)]
        struct Answer<'a> {
            items: &'a [serde_json::Value],
            scanned: Scanned,
        }
        output.json_object("acpdb.search/1", &Answer { items: &show.json, scanned })?;
    }
    let went = format!(
        "searched {} of {}, {}",
        describe::count(scanned.bodies, "text"),
        describe::count(streams.len() as u64, "session"),
        describe::bytes(scanned.bytes)
    );
    if show.count == 0 {
        output.note(format!("nothing found; {went}"));
        for word in texts.iter().filter(|word| looks_like_a_condition(word)) {
            let (field, value) = word.split_once(':').unwrap_or_default();
            let meant = match field {
                "role" | "from" | "by" => format!("actor:{value}"),
                _ => "acpdb help filters lists the conditions".to_owned(),
            };
            output.note(format!(
                "note: {word} was looked for as a text, as there is no condition {field}: {meant}"
            ));
        }
        return Ok(Code::Failure);
    }
    if show.has_more {
        let first = if show.count == 1 { "item".to_owned() } else { describe::count(show.count, "item") };
        output.note(format!("the first {first}; --limit shows more"));
    } else {
        output.note(format!(
            "{} in {}; {went}",
            describe::count(show.count, "item"),
            describe::count(show.sessions.len() as u64, "session")
        ));
    }
    Ok(Code::Ok)
}

/// The size by which hits are sorted.
fn size(sort: SearchSort, hit: &Hit) -> u64 {
    let of_row = |size: fn(&ItemRow) -> u64| hit.row.as_ref().map_or(0, size);
    match sort {
        SearchSort::Time => 0,
        SearchSort::Matches => hit.matches as u64,
        SearchSort::Tokens => of_row(|row| row.tokens),
        SearchSort::Shown => of_row(|row| row.tokens_shown),
    }
}

/// The part that a word has beside others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Condition,
    Text,
    Not,
    And,
    Or,
    Open,
    Close,
}

impl Part {
    fn of(word: &str) -> Self {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        match word {
            "!" => Self::Not,
            "(" => Self::Open,
            ")" => Self::Close,
            _ if is("not") => Self::Not,
            _ if is("and") => Self::And,
            _ if is("or") => Self::Or,
            _ if is_condition(word) => Self::Condition,
            _ => Self::Text,
        }
    }
}

fn is_condition(word: &str) -> bool {
    let word = word.trim_start_matches(['-', '!', '(']);
    let word = word.strip_prefix("not ").unwrap_or(word);
    word.split_once(':')
        .is_some_and(|(field, value)| field != "text" && !value.is_empty() && words::field(field).is_some())
}

/// Whether a text that was looked for may have been meant as a condition.
fn looks_like_a_condition(word: &str) -> bool {
    word.split_once(':').is_some_and(|(field, value)| {
        let is_word = !field.is_empty() && field.chars().all(|sign| sign.is_ascii_lowercase());
        is_word && !value.is_empty() && !value.starts_with(['/', ':']) && !value.contains(' ')
    })
}

/// The words as a query for `history`, as a shell takes it: each text is a condition, too.
fn as_conditions(words: &[String], parts: &[Part]) -> String {
    let condition = |(word, part): (&String, &Part)| match part {
        Part::Text if word.starts_with("text:") => word.clone(),
        Part::Text if word.contains([' ', '"', ':', '(', ')']) => {
            format!("text:\"{}\"", word.replace('"', ""))
        }
        Part::Text => format!("text:{word}"),
        _ => word.clone(),
    };
    store_path::typed(&words.iter().zip(parts).map(condition).collect::<Vec<_>>().join(" "))
}

/// Words to look for, and conditions. `not`, `and`, `or` and brackets beside a condition belong to it; elsewhere they are words.
fn parted(words: &[String]) -> Result<(Vec<String>, Vec<String>), Failure> {
    let parts: Vec<Part> = words.iter().map(|word| Part::of(word)).collect();
    let (mut texts, mut conditions) = (Vec::new(), Vec::new());
    let mut is_behind = false;
    for (place, (word, part)) in words.iter().zip(&parts).enumerate() {
        let mut next = parts.iter().skip(place + 1).filter(|part| !matches!(part, Part::Not | Part::Open));
        let is_before = next.next() == Some(&Part::Condition);
        is_behind = match part {
            Part::Condition => true,
            Part::Text => false,
            Part::Close => is_behind,
            Part::And if is_behind != is_before => continue,
            Part::Or if is_behind != is_before => {
                let failure = Failure::usage(format!(
                    "`{word}` stands between a text and a condition; a search is for all of its texts"
                ));
                return Err(failure.hint(format!(
                    "acpdb history {} asks for items of either kind",
                    as_conditions(words, &parts)
                )));
            }
            Part::Not | Part::Open | Part::And | Part::Or => is_before,
        };
        if is_behind {
            conditions.push(word.clone());
            continue;
        }
        let text = word.strip_prefix("text:").unwrap_or(word);
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let text = if word.starts_with("text:") { quoted.unwrap_or(text) } else { text };
        if !text.is_empty() {
            texts.push(text.to_owned());
        }
    }
    Ok((texts, conditions))
}

/// The streams to search, sessions and others, the newest first.
fn places(store: &Store, only: Option<StreamName>, filter: &Filter) -> Result<Vec<StreamName>, Failure> {
    if let Some(only) = only {
        return Ok(vec![only]);
    }
    let mut streams = store.stream_names()?;
    // A project's memory belongs to no session, so a filter leaves it out.
    streams.retain(|name| {
        (name.scope == Scope::Session || filter.is_empty()) && acpdb_query::may_hold(filter, name)
    });
    streams.sort_by_key(|name| std::cmp::Reverse((name.began, name.head)));
    Ok(streams)
}

/// Searches the streams on all cores. `found` gets the hits in the order of the streams, and returns whether to go on.
fn each(
    store: &Store,
    streams: &[StreamName],
    question: &SearchQuestion,
    found: &mut dyn FnMut(&StreamName, Hit) -> Result<bool, Failure>,
) -> Result<Scanned, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel::<(usize, News)>();
    let work = |sender: mpsc::Sender<(usize, News)>| {
        while !ended.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(stream) = streams.get(place) else { break };
            let mut scanned = Scanned::default();
            // Over many sessions, a fork repeats the items that it shares with its parent.
            let search = if streams.len() == 1 { search_whole } else { search };
            let result = search(store, stream, question, &mut scanned, &mut |hit| {
                let told = sender.send((place, News::Hit(Box::new(hit)))).is_ok();
                told && !ended.load(Ordering::Relaxed)
            });
            if sender.send((place, News::End(result.map(|()| scanned)))).is_err() {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..cores.min(streams.len()) {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        let result = in_order(&receiver, streams, found);
        ended.store(true, Ordering::Relaxed);
        drop(receiver);
        result
    })
}

/// Gives hits in the order of the streams: hits of later streams wait.
fn in_order(
    receiver: &mpsc::Receiver<(usize, News)>,
    streams: &[StreamName],
    found: &mut dyn FnMut(&StreamName, Hit) -> Result<bool, Failure>,
) -> Result<Scanned, Failure> {
    let mut scanned = Scanned::default();
    let mut waiting: BTreeMap<usize, Vec<News>> = BTreeMap::new();
    let mut turn = 0;
    while let Ok((place, news)) = receiver.recv() {
        waiting.entry(place).or_default().push(news);
        while let Some(ready) = waiting.remove(&turn) {
            let mut is_end = false;
            for news in ready {
                match news {
                    News::Hit(hit) => {
                        let Some(stream) = streams.get(turn) else { continue };
                        if !found(stream, *hit)? {
                            return Ok(scanned);
                        }
                    }
                    News::End(counts) => {
                        scanned += counts?;
                        is_end = true;
                    }
                }
            }
            if !is_end {
                break;
            }
            turn += 1;
        }
    }
    Ok(scanned)
}

/// A hit, with its session's title.
#[derive(serde::Serialize)]
struct Found {
    title: Option<String>,
    #[serde(flatten)]
    hit: Hit,
}

struct Show<'s> {
    store: &'s Store,
    titles: BTreeMap<StreamId, Option<String>>,
    /// The events that gave sessions their newest titles, once they are asked for.
    changed: Option<BTreeMap<StreamId, Seq>>,
    json: Vec<serde_json::Value>,
    session: Option<StreamId>,
    left: usize,
    /// There is a hit after the limit.
    has_more: bool,
    count: u64,
    sessions: BTreeSet<StreamId>,
}

impl Show<'_> {
    fn hit(&mut self, stream: &StreamName, hit: Hit, output: &mut Output) -> Result<bool, Failure> {
        if self.left == 0 {
            self.has_more = true;
            return Ok(false);
        }
        self.left -= 1;
        self.count += 1;
        if !self.titles.contains_key(&stream.id) {
            // As sessions lists them: a host may have given a title later.
            let changed = match &mut self.changed {
                Some(changed) => changed,
                none => none.insert(acpdb_query::cost::requests(self.store, self.store.head()?)?.titles),
            };
            let changed = changed.get(&stream.id).copied();
            let title = acpdb_query::titles::title_at(self.store, stream, changed, None)?;
            self.titles.insert(stream.id, title);
        }
        let title = self.titles.get(&stream.id).cloned().flatten();
        let is_new = self.session.replace(stream.id) != Some(stream.id);
        self.sessions.insert(stream.id);
        if output.json {
            let time = hit.time.map(describe::time);
            self.json.push(describe::timed(&Found { title, hit }, &[("time", time)])?);
            return Ok(true);
        }
        if is_new {
            if self.count > 1 {
                output.line("")?;
            }
            heading(stream, title.as_deref(), output)?;
        }
        lines(&hit, output)?;
        // The first hits are seen while the rest is searched; a program that reads them may stop after one.
        if output.terminal || self.count == 1 {
            output.flush()?;
        }
        // The next hit shows whether there are more.
        Ok(true)
    }
}

/// A session above what was found in it: its id, its host and its title.
pub(super) fn heading(stream: &StreamName, title: Option<&str>, output: &mut Output) -> Result<(), Failure> {
    let id = one_line(&stream.name);
    let host = escape(&stream.host, Escape::Line);
    let used = id.chars().count() + host.chars().count() + 4;
    let title = clip(&one_line(title.unwrap_or_default()), output.room(used).max(8));
    output.line(cut(&format!("{}  {host}  {title}", output.paint(describe::BOLD, &id)), output))
}

fn lines(hit: &Hit, output: &mut Output) -> Result<(), Failure> {
    let row = hit.row.as_ref();
    let turn = row.map(|row| format!("  t{}", row.turn)).unwrap_or_default();
    let what = row.map_or_else(|| hit.kind.replace('_', " "), what);
    let face = match (hit.face, row.is_some_and(|row| row.tool.is_some())) {
        (Face::Input, _) => " input",
        (Face::Output, true) => " output",
        (Face::Output, false) => "",
    };
    let stands = match row {
        _ if hit.visible => output.paint(describe::GOOD, "seen"),
        Some(row) => {
            let standing = standing(row);
            let why = if standing.is_empty() { String::new() } else { format!(": {standing}") };
            output.paint(describe::BAD, &format!("{}{why}", hit.seen.words()))
        }
        None => String::new(),
    };
    // A match over several lines has a mark on each line.
    let more = hit.matches.saturating_sub(shown_marks(hit));
    let more = if more > 0 { format!("  {more} more") } else { String::new() };
    let line = format!(
        "  {}{turn}  {}  {what}{face}  {stands}{more}",
        output.paint(describe::SEQ, &hit.item),
        describe::time_if_any(hit.time).trim_end()
    );
    output.line(cut(&line, output))?;
    for (number, excerpt) in hit.excerpts.iter().enumerate() {
        if number > 0 && excerpt.lines.len() > 1 {
            output.line("       --")?;
        }
        for line in &excerpt.lines {
            let text = painted(&line.text, &line.marks, output);
            let number = output.paint(describe::DIM, &format!("{:>6} ", line.number));
            output.line(format!("{number} {text}").trim_end())?;
        }
    }
    Ok(())
}

fn shown_marks(hit: &Hit) -> usize {
    hit.excerpts.iter().flat_map(|excerpt| &excerpt.lines).map(|line| line.marks.len()).sum()
}

/// A line with its matches painted, as wide as the room.
fn painted(text: &str, marks: &[(usize, usize)], output: &Output) -> String {
    let room = output.room(INDENT).max(20);
    // The first match stays in sight.
    let first = marks.first().map_or(0, |(from, _)| *from);
    let before = text.get(..first).map_or(0, |before| before.chars().count());
    // A narrow terminal has less before the match.
    let skip = if before + 12 > room { before.saturating_sub(room / 3) } else { 0 };
    let start = text.char_indices().nth(skip).map_or(0, |(place, _)| place);
    let mut out = if skip > 0 { "…".to_owned() } else { String::new() };
    let mut left = room - usize::from(skip > 0);
    let mut place = start;
    let piece =
        |from: usize, to: usize, style: Option<anstyle::Style>, left: &mut usize, out: &mut String| {
            let Some(piece) = text.get(from..to).filter(|piece| !piece.is_empty()) else { return };
            let shown = escape(piece, Escape::Text).replace('\t', "    ");
            let clipped = clip(&shown, *left);
            // A longer text was clipped to the room that was left.
            *left = left.saturating_sub(shown.chars().count());
            match style {
                Some(style) => out.push_str(&output.paint(style, &clipped)),
                None => out.push_str(&clipped),
            }
        };
    for (from, to) in marks.iter().filter(|(from, _)| *from >= start) {
        piece(place, *from, None, &mut left, &mut out);
        piece(*from, *to, Some(MATCH), &mut left, &mut out);
        place = *to;
        if left == 0 {
            return out;
        }
    }
    piece(place, text.len(), None, &mut left, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::parted;

    #[test]
    fn conditions_are_told_from_texts() {
        for (words, texts, conditions) in [
            (&["a b", "tool:bash"][..], &["a b"][..], &["tool:bash"][..]),
            (&["std::io", "a:b", "http://x"], &["std::io", "a:b", "http://x"], &[]),
            (&["text:\"a b\"", "text:c"], &["a b", "c"], &[]),
            (&["x", "-host:codex", "tool:a or tool:b"], &["x"], &["-host:codex", "tool:a or tool:b"]),
            (&["tool:"], &["tool:"], &[]),
            // These were looked for as words, so that `not tool:a` found what it was to leave out.
            (&["x", "not", "tool:a"], &["x"], &["not", "tool:a"]),
            (
                &["x", "!", "(", "tool:a", "or", "tool:b", ")"],
                &["x"],
                &["!", "(", "tool:a", "or", "tool:b", ")"],
            ),
            (&["tool:a", "OR", "not", "tool:b", "x"], &["x"], &["tool:a", "OR", "not", "tool:b"]),
            (&["x", "and", "tool:a"], &["x"], &["tool:a"]),
            (&["not", "found", "or", "lost", "tool:a"], &["not", "found", "or", "lost"], &["tool:a"]),
            (&["tool:a", "not"], &["not"], &["tool:a"]),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let (found, narrowed) = parted(&words).unwrap();
            assert_eq!(
                (found, narrowed),
                (
                    texts.iter().map(|it| (*it).to_owned()).collect(),
                    conditions.iter().map(|it| (*it).to_owned()).collect()
                ),
                "{words:?}"
            );
        }
        for words in [["x", "or", "tool:a"], ["tool:a", "or", "x"]] {
            assert!(parted(&words.map(str::to_owned)).is_err(), "{words:?}");
        }
    }
}
