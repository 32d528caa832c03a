//! `acpdb scan`: secrets that slipped through, by event and rule. Shows at most the ends of a secret. Exit code 1 if there are
//! some.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use acpdb_engine::Store;
use acpdb_engine::event::{BodyAddress, Recorded};
use acpdb_engine::ids::{BodyId, ItemId, Seq, StreamId};
use acpdb_engine::store::Stretches;
use acpdb_hosts::redact::Rules;
use serde::Serialize;

use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, session, store_path};
use crate::args::ScanArgs;
use crate::redaction;

/// A place with a probable secret.
#[derive(Serialize)]
struct SecretPosition {
    rule: String,
    /// The row among the event's bodies; absent for a string in the event itself.
    row: Option<u32>,
    start: usize,
    end: usize,
    excerpt: String,
}

/// An event that holds secrets.
#[derive(Serialize)]
struct SecretEvent {
    seq: Seq,
    session: String,
    kind: &'static str,
    rules: BTreeMap<String, u64>,
    places: Vec<SecretPosition>,
    erase: String,
}

/// Secrets in texts, by the event and the row that hold each.
type PlacedStretches = BTreeMap<(Seq, u32), Stretches>;

/// The results of a scan.
pub(crate) struct ScanFindings {
    rows: Vec<SecretEvent>,
    /// The secrets in texts of one piece, of which the rest may stay.
    stretches: PlacedStretches,
}

impl ScanFindings {
    /// The secrets in texts whose rest may stay, and the other bodies with secrets. `whole`: no rest stays.
    pub(crate) fn by_piece(self, whole: bool) -> (Vec<Stretches>, Vec<BodyAddress>) {
        let stretches = if whole { PlacedStretches::new() } else { self.stretches };
        let is_kept = |body: &BodyAddress| !stretches.contains_key(&(body.seq, body.row));
        let address = |seq: Seq, place: &SecretPosition| Some(BodyAddress { seq, row: place.row? });
        let bodies =
            self.rows.iter().flat_map(|row| row.places.iter().filter_map(|place| address(row.seq, place)));
        let mut bodies: Vec<BodyAddress> = bodies.filter(is_kept).collect();
        bodies.dedup();
        (stretches.into_values().collect(), bodies)
    }

    /// The events with a secret that cannot be erased: in ids, names and paths.
    pub(crate) fn kept(&self) -> Vec<Seq> {
        let stays = |row: &&SecretEvent| row.places.iter().any(|place| place.row.is_none());
        self.rows.iter().filter(stays).map(|row| row.seq).collect()
    }
}

/// Searches every string of the log, or of one session if it is named.
pub(crate) fn look(store: &Store, session: Option<&str>, rules: &Rules) -> Result<ScanFindings, Failure> {
    let names: BTreeMap<_, _> = store.stream_names()?.into_iter().map(|it| (it.id, it.name)).collect();
    let only = session::named(store, session)?;
    let (mut rows, mut stretches, mut texts) = (Vec::new(), PlacedStretches::new(), TextItems::default());
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
            let found = texts.stretches(store, &recorded, &places)?;
            let erase = match (found.len(), places.as_slice()) {
                (1, [place]) => format!("--span {}..{} ", place.start, place.end),
                _ => String::new(),
            };
            stretches.extend(found);
            rows.push(SecretEvent {
                seq,
                session: names.get(&recorded.event.stream).cloned().unwrap_or_default(),
                kind: recorded.event.payload.label(),
                rules: counts,
                places,
                erase: format!("acpdb erase '{seq}' {erase}--reason 'secret found by scan'"),
            });
        }
    }
    Ok(ScanFindings { rows, stretches })
}

/// The items of one piece of text by the bodies that they rest on, of the streams that were asked for.
#[derive(Default)]
struct TextItems(BTreeMap<StreamId, BTreeMap<(Seq, u32), ItemId>>);

impl TextItems {
    /// The secrets in an event's bodies that are the only text of an item. A text of several bodies, or of bytes that are none, is left to be
    /// erased whole.
    fn stretches(
        &mut self,
        store: &Store,
        recorded: &Recorded,
        places: &[SecretPosition],
    ) -> Result<PlacedStretches, Failure> {
        let (seq, stream) = (recorded.seq, recorded.event.stream);
        if let Entry::Vacant(vacant) = self.0.entry(stream) {
            let items = store.view(stream)?.history();
            let text = |item: &acpdb_engine::fold::ItemView| match item.content.as_slice() {
                [part] if part.body.chunks == 1 => Some(((part.body.seq, part.body.first), item.item)),
                _ => None,
            };
            vacant.insert(items.iter().filter_map(text).collect());
        }
        let mut spans: BTreeMap<u32, Vec<Range<usize>>> = BTreeMap::new();
        for place in places {
            if let Some(row) = place.row {
                spans.entry(row).or_default().push(place.start..place.end);
            }
        }
        let mut found = PlacedStretches::new();
        for (row, spans) in spans {
            let item = self.0.get(&stream).and_then(|texts| texts.get(&(seq, row)));
            let Some(item) = item.copied() else { continue };
            let body = store.body(BodyId { seq, first: row, chunks: 1 })?;
            let spans = joined(spans);
            let is_text = std::str::from_utf8(&body)
                .is_ok_and(|text| spans.iter().all(|span| text.get(span.clone()).is_some()));
            if is_text {
                found.insert((seq, row), Stretches { stream, item, spans });
            }
        }
        Ok(found)
    }
}

/// Spans in order, those that touch as one.
fn joined(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut all: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => all.push(span),
        }
    }
    all
}

pub(crate) fn run(global: &Global, args: &ScanArgs, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "scan")?;
    let rules = redaction::rules(&args.redact, true)?.unwrap_or_default();
    let store = store_path::read(global, output)?;
    let ScanFindings { rows, .. } = look(&store, global.session.as_deref(), &rules)?;
    let code = if rows.is_empty() { Code::Ok } else { Code::Failure };
    if output.json {
        output.json_items("acpdb.scan/1", &rows)?;
        return Ok(code);
    }
    for row in &rows {
        let counts: Vec<String> = row.rules.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
        let seq = output.paint(describe::SEQ, &row.seq.to_string());
        let (session, counts) = (escape(&row.session, EscapeLevel::Line), counts.join(", "));
        output.line(format!("{seq} {} of {session}: {counts}", row.kind))?;
        for place in &row.places {
            let excerpt = escape(&place.excerpt, EscapeLevel::Line);
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
fn places(store: &Store, recorded: &Recorded, rules: &Rules) -> Result<Vec<SecretPosition>, Failure> {
    let mut places = Vec::new();
    let mut found_in = |row: Option<u32>, bytes: &[u8]| {
        for found in rules.find(bytes) {
            let (start, end) = (found.place.start, found.place.end);
            let excerpt = masked(bytes.get(found.place).unwrap_or_default());
            places.push(SecretPosition { rule: found.rule, row, start, end, excerpt });
        }
    };
    each_text(store, recorded, &mut found_in)?;
    Ok(places)
}

/// Every text of an event: its bodies by their rows, then those in the event itself, which have none.
pub(super) fn each_text(
    store: &Store,
    recorded: &Recorded,
    take: &mut dyn FnMut(Option<u32>, &[u8]),
) -> Result<(), Failure> {
    for row in 0..store.body_count(recorded.seq)? {
        let body = store.body(BodyId { seq: recorded.seq, first: row, chunks: 1 });
        // An erased body holds nothing; `verify` reports damage.
        if let Ok(bytes) = acpdb_query::sound::or_lost(body)? {
            take(Some(row), &bytes);
        }
    }
    // An event is made of nothing that JSON cannot hold.
    let spine = serde_json::to_value(recorded.event.payload.without_texts()).unwrap_or_default();
    let mut strings = Vec::new();
    collect(&spine, &mut strings);
    for text in strings {
        take(None, text.as_bytes());
    }
    Ok(())
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
