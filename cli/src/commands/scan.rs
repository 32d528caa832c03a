//! `acpdb scan`: secrets that slipped through, by event and rule. Shows at most the ends of a secret. Exit code 1 if there are
//! some.

use std::collections::BTreeMap;

use acpdb_engine::Store;
use acpdb_engine::event::{BodyAddress, Recorded};
use acpdb_engine::ids::{BodyId, Seq};
use acpdb_hosts::redact::Rules;
use serde::Serialize;

use super::{Code, Escape, Failure, Global, Output, describe, escape, session, store_path};
use crate::args::Scan;
use crate::redaction;

/// A place with a probable secret.
#[derive(Serialize)]
struct Place {
    rule: String,
    /// The row among the event's bodies; absent for a string in the event itself.
    row: Option<u32>,
    start: usize,
    end: usize,
    excerpt: String,
}

/// An event that holds secrets.
#[derive(Serialize)]
struct Row {
    seq: Seq,
    session: String,
    kind: &'static str,
    rules: BTreeMap<String, u64>,
    places: Vec<Place>,
    erase: String,
}

/// The results of a scan.
pub(crate) struct Findings {
    rows: Vec<Row>,
}

impl Findings {
    /// The bodies with secrets.
    pub(crate) fn bodies(&self) -> Vec<BodyAddress> {
        let address = |seq: Seq, place: &Place| Some(BodyAddress { seq, row: place.row? });
        let mut all: Vec<BodyAddress> = self
            .rows
            .iter()
            .flat_map(|row| row.places.iter().filter_map(|place| address(row.seq, place)))
            .collect();
        all.dedup();
        all
    }

    /// The events with a secret that cannot be erased: in ids, names and paths.
    pub(crate) fn kept(&self) -> Vec<Seq> {
        let stays = |row: &&Row| row.places.iter().any(|place| place.row.is_none());
        self.rows.iter().filter(stays).map(|row| row.seq).collect()
    }
}

/// Searches every string of the log, or of one session if it is named.
pub(crate) fn look(store: &Store, session: Option<&str>, rules: &Rules) -> Result<Findings, Failure> {
    let names: BTreeMap<_, _> = store.stream_names()?.into_iter().map(|it| (it.id, it.name)).collect();
    let only = session::named(store, session)?;
    let mut rows = Vec::new();
    for recorded in store.events(Seq(1), Seq::MAX)? {
        let recorded = recorded?;
        if only.as_ref().is_some_and(|only| only.id != recorded.event.stream) {
            continue;
        }
        let places = places(store, &recorded, rules)?;
        if !places.is_empty() {
            let seq = recorded.seq;
            let mut counts = BTreeMap::new();
            for place in &places {
                *counts.entry(place.rule.clone()).or_default() += 1;
            }
            rows.push(Row {
                seq,
                session: names.get(&recorded.event.stream).cloned().unwrap_or_default(),
                kind: recorded.event.payload.label(),
                rules: counts,
                places,
                erase: format!("acpdb erase '{seq}' --reason 'secret found by scan'"),
            });
        }
    }
    Ok(Findings { rows })
}

pub(crate) fn run(global: &Global, args: &Scan, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "scan")?;
    let rules = redaction::rules(&args.redact, true)?.unwrap_or_default();
    let store = store_path::read(global, output)?;
    let Findings { rows } = look(&store, args.session.as_deref(), &rules)?;
    let code = if rows.is_empty() { Code::Ok } else { Code::Failure };
    if output.json {
        output.json_items("acpdb.scan/1", &rows)?;
        return Ok(code);
    }
    for row in &rows {
        let counts: Vec<String> = row.rules.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
        let seq = output.paint(describe::SEQ, &row.seq.to_string());
        let (session, counts) = (escape(&row.session, Escape::Line), counts.join(", "));
        output.line(format!("{seq} {} of {session}: {counts}", row.kind))?;
        for place in &row.places {
            let excerpt = escape(&place.excerpt, Escape::Line);
            let at = match place.row {
                Some(row) => format!("body {row}, bytes {}..{}", place.start, place.end),
                None => "the event itself, which stays".to_owned(),
            };
            output.line(format!("   {excerpt}  {at}"))?;
        }
        output.line(format!("   {}", row.erase))?;
    }
    if rows.is_empty() {
        output.note("no secrets of a known form");
    } else {
        output.note("all at once: acpdb erase --from-scan");
        output.note("what an issuer knows to be leaked should be withdrawn there, too");
    }
    Ok(code)
}

/// The places of secrets in an event: in its bodies, one of which is its raw record, and in its own strings.
fn places(store: &Store, recorded: &Recorded, rules: &Rules) -> Result<Vec<Place>, Failure> {
    let mut places = Vec::new();
    let mut found_in = |row: Option<u32>, bytes: &[u8]| {
        for found in rules.find(bytes) {
            let (start, end) = (found.place.start, found.place.end);
            let excerpt = masked(bytes.get(found.place).unwrap_or_default());
            places.push(Place { rule: found.rule, row, start, end, excerpt });
        }
    };
    for row in 0..store.body_count(recorded.seq)? {
        let body = store.body(BodyId { seq: recorded.seq, first: row, chunks: 1 });
        // An erased body holds nothing; `verify` reports damage.
        if let Ok(bytes) = acpdb_query::sound::or_lost(body)? {
            found_in(Some(row), &bytes);
        }
    }
    let spine = serde_json::to_value(recorded.event.payload.without_texts()).unwrap_or_default();
    let mut strings = Vec::new();
    collect(&spine, &mut strings);
    for text in strings {
        found_in(None, text.as_bytes());
    }
    Ok(places)
}

/// Every text of a JSON value.
fn collect<'v>(value: &'v serde_json::Value, into: &mut Vec<&'v str>) {
    match value {
        serde_json::Value::String(text) => into.push(text),
        serde_json::Value::Array(all) => all.iter().for_each(|value| collect(value, into)),
        serde_json::Value::Object(all) => all.values().for_each(|value| collect(value, into)),
        _ => {}
    }
}

/// Longest secret of which no character is shown.
const HIDDEN_CHARS_MAX: usize = 11;

/// The first and last two characters of a secret, to recognise it by.
fn masked(secret: &[u8]) -> String {
    let text: Vec<char> = String::from_utf8_lossy(secret).chars().collect();
    match (text.first_chunk::<2>(), text.last_chunk::<2>()) {
        (Some(first), Some(last)) if text.len() > HIDDEN_CHARS_MAX => {
            format!("{}\u{2026}{}", first.iter().collect::<String>(), last.iter().collect::<String>())
        }
        _ => "\u{2026}".to_owned(),
    }
}
