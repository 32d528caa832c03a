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
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::filter::words;
use acpdb_query::search::{Hit, Patterns, Reading, SearchQuestion, search, search_whole};
use acpdb_query::{Filter, ItemRow, Scanned};

use super::lines::{clip, cut, one_line, standing, what};
use super::{Code, Escape, Failure, Global, Output, ask, describe, escape, session, store_path};
use crate::args::{Search, SearchSort};
use crate::several::{self, ReadStores};

/// Columns before a line of a text.
const INDENT: usize = 9;
/// Style of matches.
const MATCH: anstyle::Style =
    anstyle::Style::new().bold().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Red)));

/// Results of a search of one session.
enum News {
    Hit(Box<Hit>),
    End(Result<Scanned, Failure>),
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
    let stores = ReadStores::open(global, output)?;
    let (parts, code) = match stores.only() {
        Some(store) => {
            let only = session::named(store, args.session.as_deref())?;
            let at = super::at::end(store, global, only.as_ref())?.unwrap_or(store.head()?);
            (vec![(0, Part::of(store, only, &filter, at)?)], Code::Ok)
        }
        None => parts_of(&stores, global, &filter, output)?,
    };
    let mut streams: Vec<Place> = Vec::new();
    for (store, part) in &parts {
        streams.extend(part.streams.iter().map(|stream| Place { store: *store, stream: stream.clone() }));
    }
    // The newest first.
    streams.sort_by_key(|place| (Reverse((place.stream.began, place.stream.head)), place.store));
    let question = |filter, at| SearchQuestion {
        patterns: patterns.clone(),
        filter,
        at,
        context: args.context,
        places: args.places,
    };
    let questions = parts.into_iter().map(|(store, part)| (store, question(part.filter, part.at)));
    let asked = Everywhere { stores: &stores, questions: questions.collect(), streams: &streams };
    let mut show = Show {
        stores: &stores,
        titles: BTreeMap::new(),
        json: Vec::new(),
        session: None,
        left: args.limit.unwrap_or(usize::MAX),
        has_more: false,
        count: 0,
        sessions: BTreeSet::new(),
    };
    let scanned = if args.sort == SearchSort::Time {
        asked.each(&mut |place, hit| show.hit(place, hit, output))?
    } else {
        let mut hits = Vec::new();
        let scanned = asked.each(&mut |place, hit| {
            hits.push((place.clone(), hit));
            Ok(true)
        })?;
        // Equal hits stay in the order of time.
        hits.sort_by_key(|(_, hit)| Reverse(size(args.sort, hit)));
        for (place, hit) in hits {
            if !show.hit(&place, hit, output)? {
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
    let of_stores =
        if stores.count() > 1 { format!(" of {}", several::in_words(stores.count())) } else { String::new() };
    let went = format!(
        "searched {} of {}{of_stores}, {}",
        describe::count(scanned.bodies, "text"),
        describe::count(streams.len() as u64, "session"),
        describe::bytes(scanned.bytes)
    );
    if show.count == 0 {
        output.note(format!("nothing found; {went}"));
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
    Ok(code)
}

/// A session of one of the stores.
#[derive(Clone)]
struct Place {
    store: usize,
    stream: StreamName,
}

/// The part of a search that goes to one store.
struct Part {
    at: Seq,
    filter: Filter,
    streams: Vec<StreamName>,
}

impl Part {
    fn of(store: &Store, only: Option<StreamName>, filter: &Filter, at: Seq) -> Result<Self, Failure> {
        let filter = acpdb_query::settled(store, filter.clone())?;
        let streams = streams(store, only, &filter)?;
        Ok(Self { at, filter, streams })
    }
}

/// The parts of a search of several stores. A store in which no session is called as the filter says has none.
fn parts_of(
    stores: &ReadStores,
    global: &Global,
    filter: &Filter,
    output: &Output,
) -> Result<(Vec<(usize, Part)>, Code), Failure> {
    let moment = several::moment(global)?;
    let (found, code) = stores.each(output, |store| {
        let Some(at) = several::end(store, moment)? else { return Ok(None) };
        match Part::of(store, None, filter, at) {
            Err(failure) if failure.code == Code::NotFound => Ok(None),
            part => part.map(Some),
        }
    })?;
    Ok((found.into_iter().filter_map(|(place, part)| Some((place, part?))).collect(), code))
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
enum WordPart {
    Condition,
    Text,
    Not,
    And,
    Or,
    Open,
    Close,
}

impl WordPart {
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

/// The words as a query for `history`, as a shell takes it: each text is a condition, too.
fn as_conditions(words: &[String], parts: &[WordPart]) -> String {
    let condition = |(word, part): (&String, &WordPart)| match part {
        WordPart::Text if word.starts_with("text:") => word.clone(),
        WordPart::Text if word.contains([' ', '"', ':', '(', ')']) => {
            format!("text:\"{}\"", word.replace('"', ""))
        }
        WordPart::Text => format!("text:{word}"),
        _ => word.clone(),
    };
    store_path::typed(&words.iter().zip(parts).map(condition).collect::<Vec<_>>().join(" "))
}

/// Words to look for, and conditions. `not`, `and`, `or` and brackets beside a condition belong to it; elsewhere they are words.
fn parted(words: &[String]) -> Result<(Vec<String>, Vec<String>), Failure> {
    let parts: Vec<WordPart> = words.iter().map(|word| WordPart::of(word)).collect();
    let (mut texts, mut conditions) = (Vec::new(), Vec::new());
    let mut is_behind = false;
    for (place, (word, part)) in words.iter().zip(&parts).enumerate() {
        let mut next =
            parts.iter().skip(place + 1).filter(|part| !matches!(part, WordPart::Not | WordPart::Open));
        let is_before = next.next() == Some(&WordPart::Condition);
        is_behind = match part {
            WordPart::Condition => true,
            WordPart::Text => false,
            WordPart::Close => is_behind,
            WordPart::And if is_behind != is_before => continue,
            WordPart::Or if is_behind != is_before => {
                let failure = Failure::usage(format!(
                    "`{word}` stands between a text and a condition; a search is for all of its texts"
                ));
                return Err(failure.hint(format!(
                    "acpdb history {} asks for items of either kind",
                    as_conditions(words, &parts)
                )));
            }
            WordPart::Not | WordPart::Open | WordPart::And | WordPart::Or => is_before,
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

/// The streams to search, sessions and others.
fn streams(store: &Store, only: Option<StreamName>, filter: &Filter) -> Result<Vec<StreamName>, Failure> {
    if let Some(only) = only {
        return Ok(vec![only]);
    }
    let mut streams = store.stream_names()?;
    // A project's memory belongs to no session, so a filter leaves it out.
    streams.retain(|name| {
        (name.scope == Scope::Session || filter.is_empty()) && acpdb_query::may_hold(filter, name)
    });
    Ok(streams)
}

/// A search of sessions of one store or several.
struct Everywhere<'s> {
    stores: &'s ReadStores,
    questions: BTreeMap<usize, SearchQuestion>,
    streams: &'s [Place],
}

impl Everywhere<'_> {
    /// Searches the streams on all cores. `found` gets the hits in the order of the streams, and returns whether to go on.
    fn each(&self, found: &mut dyn FnMut(&Place, Hit) -> Result<bool, Failure>) -> Result<Scanned, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel::<(usize, News)>();
        let work = |sender: mpsc::Sender<(usize, News)>| {
            while !ended.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = self.streams.get(number) else { break };
                let result = self.one(place, &mut |hit| {
                    let told = sender.send((number, News::Hit(Box::new(hit)))).is_ok();
                    told && !ended.load(Ordering::Relaxed)
                });
                if sender.send((number, News::End(result))).is_err() {
                    break;
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..cores.min(self.streams.len()) {
                let sender = sender.clone();
                scope.spawn(|| work(sender));
            }
            drop(sender);
            let result = in_order(&receiver, self.streams, found);
            ended.store(true, Ordering::Relaxed);
            drop(receiver);
            result
        })
    }

    /// Searches one session.
    fn one(&self, place: &Place, found: &mut dyn FnMut(Hit) -> bool) -> Result<Scanned, Failure> {
        let mut scanned = Scanned::default();
        let Some(question) = self.questions.get(&place.store) else { return Ok(scanned) };
        let store = self.stores.store(place.store)?;
        // Over many sessions, a fork repeats the items that it shares with its parent.
        if self.streams.len() == 1 {
            search_whole(&store, &place.stream, question, &mut scanned, found)?;
        } else {
            search(&store, &place.stream, question, &mut scanned, found)?;
        }
        Ok(scanned)
    }
}

/// Gives hits in the order of the streams: hits of later streams wait.
fn in_order(
    receiver: &mpsc::Receiver<(usize, News)>,
    streams: &[Place],
    found: &mut dyn FnMut(&Place, Hit) -> Result<bool, Failure>,
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
                        let Some(place) = streams.get(turn) else { continue };
                        if !found(place, *hit)? {
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
    stores: &'s ReadStores,
    titles: BTreeMap<(usize, StreamId), Option<String>>,
    json: Vec<serde_json::Value>,
    session: Option<(usize, StreamId)>,
    left: usize,
    /// There is a hit after the limit.
    has_more: bool,
    count: u64,
    sessions: BTreeSet<(usize, StreamId)>,
}

impl Show<'_> {
    fn hit(&mut self, place: &Place, hit: Hit, output: &mut Output) -> Result<bool, Failure> {
        if self.left == 0 {
            self.has_more = true;
            return Ok(false);
        }
        self.left -= 1;
        self.count += 1;
        let Place { store, stream } = place;
        let key = (*store, stream.id);
        if !self.titles.contains_key(&key) {
            let title = acpdb_query::titles::title_of(&self.stores.store(*store)?, stream, None)?;
            self.titles.insert(key, title);
        }
        let title = self.titles.get(&key).cloned().flatten();
        let is_new = self.session.replace(key) != Some(key);
        self.sessions.insert(key);
        if output.json {
            let time = hit.time.map(describe::time);
            let row = describe::timed(&Found { title, hit }, &[("time", time)])?;
            self.json.push(several::with_store(row, self.stores.label(*store)));
            return Ok(true);
        }
        if is_new {
            if self.count > 1 {
                output.line("")?;
            }
            heading(
                &self.stores.qualified(*store, &one_line(&stream.name)),
                stream,
                title.as_deref(),
                output,
            )?;
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

fn heading(id: &str, stream: &StreamName, title: Option<&str>, output: &mut Output) -> Result<(), Failure> {
    let host = escape(&stream.host, Escape::Line);
    let used = id.chars().count() + host.chars().count() + 4;
    let title = clip(&one_line(title.unwrap_or_default()), output.room(used).max(8));
    output.line(cut(&format!("{}  {host}  {title}", output.paint(describe::BOLD, id)), output))
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
