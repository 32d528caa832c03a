//! `acpdb search`: words, phrases and regular expressions in all recorded texts.
//!
//! Sessions are searched on all cores, the newest first. Hits come in that order, each as soon as it is its turn.

mod shown;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use acpdb_engine::event::Scope;
use acpdb_engine::ids::Seq;
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::filter::words;
use acpdb_query::search::{PatternSyntax, Patterns, SearchHit, SearchQuestion, search, search_whole};
use acpdb_query::{Filter, Scanned};

use super::{Code, Failure, Global, Output, ask, describe, session, store_path};
use crate::args::SearchArgs;
use crate::several::{self, ReadStores};

pub(super) use shown::heading;
use shown::{HitView, SessionOfStore};

/// Most lines of a text that are shown.
const PLACE_COUNT: usize = 3;

/// Results of a search of one session.
enum SessionHits {
    Hit(Box<SearchHit>),
    End(Result<Scanned, Failure>),
}

pub(crate) fn run(global: &Global, args: &SearchArgs, output: &mut Output) -> Result<Code, Failure> {
    let (texts, conditions) = parted(&args.words)?;
    if texts.is_empty() && conditions.is_empty() {
        return Err(Failure::usage("there is nothing to look for").hint("acpdb search WORD"));
    }
    if texts.is_empty() {
        let failure =
            Failure::usage("there is nothing to look for: conditions alone are a question for history");
        return Err(failure.hint(format!("acpdb history {}", conditions.join(" "))));
    }
    let reading = PatternSyntax { regex: args.regex, ..PatternSyntax::default() };
    let patterns = Patterns::new(&texts, reading).map_err(|error| {
        Failure::usage(error.to_string()).hint("without --regex signs stand for themselves")
    })?;
    let filter = ask::filter(&conditions)?;
    let stores = ReadStores::open(global, output)?;
    let only =
        stores.only().map(|store| session::named(store, global.session.as_deref())).transpose()?.flatten();
    let (parts, code) = ask::each_until(&stores, global, only.as_ref(), output, |store, at| {
        StoreSearch::of(store, only.clone(), &filter, at)
    })?;
    let asked = Everywhere::new(&stores, parts, &patterns, args);
    let mut show = HitView::new(&stores, args.limit);
    let scanned = asked.each(&mut |place, hit| show.hit(place, hit, output))?;
    show.end_session(output)?;
    if output.json {
        #[derive(serde::Serialize)]
        struct SearchResult<'a> {
            items: &'a [serde_json::Value],
            scanned: Scanned,
        }
        output.json_object("acpdb.search/1", &SearchResult { items: &show.json, scanned })?;
    }
    let of_stores =
        if stores.count() > 1 { format!(" of {}", several::in_words(stores.count())) } else { String::new() };
    let went = format!(
        "searched {} of {}{of_stores}, {}",
        describe::count(scanned.bodies, "text"),
        describe::count(asked.streams.len() as u64, "session"),
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
    Ok(code)
}

/// The part of a search that goes to one store.
struct StoreSearch {
    at: Seq,
    filter: Filter,
    streams: Vec<StreamName>,
}

impl StoreSearch {
    fn of(store: &Store, only: Option<StreamName>, filter: &Filter, at: Seq) -> Result<Self, Failure> {
        let filter = acpdb_query::settled(store, filter.clone())?;
        let streams = streams(store, only, &filter)?;
        Ok(Self { at, filter, streams })
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

/// Whether a text that was looked for may have been meant as a condition.
fn looks_like_a_condition(word: &str) -> bool {
    word.split_once(':').is_some_and(|(field, value)| {
        let is_word = !field.is_empty() && field.chars().all(|sign| sign.is_ascii_lowercase());
        is_word && !value.is_empty() && !value.starts_with(['/', ':']) && !value.contains(' ')
    })
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
    /// The newest first.
    streams: Vec<SessionOfStore>,
}

impl<'s> Everywhere<'s> {
    fn new(
        stores: &'s ReadStores,
        parts: Vec<(usize, StoreSearch)>,
        patterns: &Patterns,
        args: &SearchArgs,
    ) -> Self {
        let (mut questions, mut streams) = (BTreeMap::new(), Vec::new());
        for (store, StoreSearch { at, filter, streams: own }) in parts {
            streams.extend(own.into_iter().map(|stream| SessionOfStore { store, stream }));
            let (patterns, context) = (patterns.clone(), args.context);
            questions.insert(store, SearchQuestion { patterns, filter, at, context, places: PLACE_COUNT });
        }
        streams.sort_by_key(|place| (Reverse((place.stream.began, place.stream.head)), place.store));
        Self { stores, questions, streams }
    }

    /// Searches the streams on all cores. `found` gets the hits in the order of the streams, and returns whether to go on.
    fn each(
        &self,
        found: &mut dyn FnMut(&SessionOfStore, SearchHit) -> Result<bool, Failure>,
    ) -> Result<Scanned, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel::<(usize, SessionHits)>();
        let work = |sender: mpsc::Sender<(usize, SessionHits)>| {
            while !ended.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = self.streams.get(number) else { break };
                let result = self.one(place, &mut |hit| {
                    let told = sender.send((number, SessionHits::Hit(Box::new(hit)))).is_ok();
                    told && !ended.load(Ordering::Relaxed)
                });
                if sender.send((number, SessionHits::End(result))).is_err() {
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
            let result = in_order(&receiver, &self.streams, found);
            ended.store(true, Ordering::Relaxed);
            drop(receiver);
            result
        })
    }

    /// Searches one session.
    fn one(
        &self,
        place: &SessionOfStore,
        found: &mut dyn FnMut(SearchHit) -> bool,
    ) -> Result<Scanned, Failure> {
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
    receiver: &mpsc::Receiver<(usize, SessionHits)>,
    streams: &[SessionOfStore],
    found: &mut dyn FnMut(&SessionOfStore, SearchHit) -> Result<bool, Failure>,
) -> Result<Scanned, Failure> {
    let mut scanned = Scanned::default();
    let mut waiting: BTreeMap<usize, Vec<SessionHits>> = BTreeMap::new();
    let mut turn = 0;
    while let Ok((place, news)) = receiver.recv() {
        waiting.entry(place).or_default().push(news);
        while let Some(ready) = waiting.remove(&turn) {
            let mut is_end = false;
            for news in ready {
                match news {
                    SessionHits::Hit(hit) => {
                        let Some(place) = streams.get(turn) else { continue };
                        if !found(place, *hit)? {
                            return Ok(scanned);
                        }
                    }
                    SessionHits::End(counts) => {
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
