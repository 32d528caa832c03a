//! The search of the index: texts of all sessions that have some words, as data for the page.

use std::io::Write;

use acpdb_engine::event::Scope;
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::export::ExportError;
use acpdb_query::export::page::PageOptions;
use acpdb_query::search::{PatternSyntax, Patterns, SearchHit, SearchQuestion, search};
use acpdb_query::{Filter, Scanned};
use serde::Serialize;

/// Most hits of an answer, and of one session in it.
const HIT_COUNT_MAX: usize = 200;
const SESSION_HIT_COUNT_MAX: usize = 8;

#[derive(Serialize, Default)]
struct FoundTexts {
    schema: &'static str,
    sessions: Vec<FoundSession>,
    /// There are further hits, which are left out.
    more: bool,
}

#[derive(Serialize)]
struct FoundSession {
    id: String,
    host: String,
    title: String,
    /// Its page, as a link from the index.
    file: String,
    hits: Vec<FoundText>,
}

#[derive(Serialize)]
struct FoundText {
    item: String,
    turn: u32,
    what: String,
    seen: &'static str,
    line: String,
}

/// Writes the texts that have all of the words, those of the newest sessions first. With a redactor, lines are without secrets.
pub(super) fn write(
    store: &Store,
    options: &PageOptions,
    words: &str,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let mut found = FoundTexts { schema: "acpdb.ui_search/1", ..FoundTexts::default() };
    // Plain words are always a pattern.
    if let Ok(patterns) = Patterns::new(&words, PatternSyntax::default())
        && !patterns.is_empty()
    {
        let question =
            SearchQuestion { patterns, filter: Filter::default(), at: store.head()?, context: 0, places: 1 };
        let mut streams = store.stream_names()?;
        streams.retain(|name| name.scope == Scope::Session);
        streams.sort_by_key(|name| std::cmp::Reverse((name.began, name.head)));
        let mut left = HIT_COUNT_MAX;
        for stream in &streams {
            if left == 0 {
                found.more = true;
                break;
            }
            let (hits, is_cut) = hits(store, options, stream, &question, left.min(SESSION_HIT_COUNT_MAX))?;
            found.more |= is_cut;
            left -= hits.len();
            if !hits.is_empty() {
                found.sessions.push(of_session(store, options, stream, hits)?);
            }
        }
    }
    Ok(serde_json::to_writer(out, &found)?)
}

/// The first hits in a session, and whether there are more.
fn hits(
    store: &Store,
    options: &PageOptions,
    stream: &StreamName,
    question: &SearchQuestion,
    most: usize,
) -> Result<(Vec<FoundText>, bool), ExportError> {
    let (mut hits, mut is_cut) = (Vec::new(), false);
    search(store, stream, question, &mut Scanned::default(), &mut |hit| {
        is_cut = hits.len() == most;
        if !is_cut {
            hits.push(told(options, &hit));
        }
        !is_cut
    })?;
    Ok((hits, is_cut))
}

fn told(options: &PageOptions, hit: &SearchHit) -> FoundText {
    let row = hit.row.as_ref();
    let line = hit.excerpts.iter().flat_map(|excerpt| &excerpt.lines).map(|line| line.text.as_str()).next();
    FoundText {
        item: hit.item.clone(),
        turn: row.map_or(0, |row| row.turn),
        what: row.and_then(|row| row.tool.clone()).unwrap_or_else(|| hit.kind.replace('_', " ")),
        seen: hit.seen.words(),
        line: options.redacted(line.unwrap_or_default()),
    }
}

fn of_session(
    store: &Store,
    options: &PageOptions,
    stream: &StreamName,
    hits: Vec<FoundText>,
) -> Result<FoundSession, ExportError> {
    let title = acpdb_query::titles::title_of(store, stream, None)?.unwrap_or_default();
    Ok(FoundSession {
        id: stream.name.clone(),
        host: stream.host.clone(),
        title: options.redacted(&title),
        file: format!("session/{}", stream.id),
        hits,
    })
}
