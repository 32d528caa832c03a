//! Sessions as spans, in OTLP's JSON, for trace viewers: one `TracesData` a line, one line a session.
//!
//! ```text
//! invoke_agent HOST              the session; events of note (compaction, rewind, discard, ..) are its span events
//! |- chat MODEL                  a turn: usage as the provider reported it, tokens of the context
//! `- execute_tool TOOL           a call; superseded: a link to the call that took its place, with the rule
//!    `- invoke_agent HOST        a subagent's session, in the same trace
//! ```
//!
//! Names and attributes are those of OpenTelemetry's conventions for generative AI; names that the conventions lack begin with
//! `acpdb.`. Ids are derived from stream and seq: the same session gives the same spans, however often it is exported. Texts are
//! only in it if asked for, as traces are kept where many people can read them.

use std::collections::BTreeMap;
use std::io::Write;

use acpdb_engine::event::{Payload, Report, Usage};
use acpdb_engine::fold::{ItemKind, ItemView, Ix, Status};
use acpdb_engine::ids::{ItemId, Micros, Seq, StreamId};
use acpdb_engine::text::first_bytes;
use acpdb_engine::{At, Store, View};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{ExportError, page_past};
use crate::items::ItemRow;
use crate::sound::or_lost;

/// Deepest nesting of subagents that is followed to find the trace.
const DEPTH_MAX: usize = 32;
/// Longest text that goes into an attribute, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The options of the spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpanOptions {
    /// Parameters and results of calls.
    pub texts: bool,
}

/// The amounts that were exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SpansReport {
    /// Sessions.
    pub sessions: u64,
    /// Spans.
    pub spans: u64,
    /// Supersessions, as links.
    pub links: u64,
}

/// The tokens of a store's requests, by the events that told of them: each request once, as it is billed.
#[derive(Debug, Default)]
pub struct Usages(BTreeMap<(StreamId, Seq), Usage>);

impl Usages {
    /// Reads them, up to `to`. Cost: as [`requests`](crate::cost::requests).
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn read(store: &Store, to: Seq) -> Result<Self, ExportError> {
        let all = crate::cost::requests(store, to)?.all.into_iter();
        Ok(Self(all.map(|request| ((request.stream, request.seq), request.usage)).collect()))
    }
}

/// Writes the spans of a session as of a view, as one line.
///
/// # Errors
/// If the log cannot be read, or `out` fails.
pub fn spans(
    store: &Store,
    view: &View,
    options: SpanOptions,
    out: &mut dyn Write,
    report: &mut SpansReport,
) -> Result<(), ExportError> {
    spans_with(store, view, &Usages::read(store, view.at())?, options, out, report)
}

/// As [`spans`], of one of many sessions: `usages` are read once.
///
/// # Errors
/// As [`spans`].
pub fn spans_with(
    store: &Store,
    view: &View,
    usages: &Usages,
    options: SpanOptions,
    out: &mut dyn Write,
    report: &mut SpansReport,
) -> Result<(), ExportError> {
    let told = TracedFacts::read(store, view, usages)?;
    let (info, all) = {
        let state = view.state();
        (state.info(view.at()).cloned().unwrap_or_default(), state.items(view.at()).collect::<Vec<Ix>>())
    };
    let (trace, parent) = place(store, view)?;
    let stream = view.stream();
    let root = span_id(stream, "session", Seq::ZERO, 0);
    let common = Common { trace, conversation: info.name.clone(), root: root.clone() };
    let moves = store.project_moves()?;
    let project = info.project.as_ref().map(|project| moves.project(project));
    let mut attributes = common.attributes("invoke_agent");
    attributes.push(text("gen_ai.agent.name", &info.host));
    attributes.extend(info.title.as_ref().map(|title| text("acpdb.session.title", title)));
    attributes.extend(project.map(|project| text("acpdb.session.project", &project)));
    let mut session = json!({
        "traceId": common.trace, "spanId": root, "name": format!("invoke_agent {}", info.host), "kind": 1,
        "startTimeUnixNano": nanos(told.first), "endTimeUnixNano": nanos(told.last.max(told.first)),
        "attributes": attributes, "events": told.notes, "status": {},
    });
    if let (Some(parent), Some(object)) = (parent, session.as_object_mut()) {
        object.insert("parentSpanId".to_owned(), parent.into());
    }
    let mut resource = vec![text("service.name", &info.host)];
    resource.extend(info.host_version.as_ref().map(|version| text("service.version", version)));
    let scope = json!({"name": "acpdb", "version": env!("CARGO_PKG_VERSION")});
    // It becomes one line, but never all of it is in memory: a span is many times larger as a value than as text.
    write!(out, r#"{{"resourceSpans":[{{"resource":{{"attributes":{}}},"#, Value::from(resource))?;
    write!(out, r#""scopeSpans":[{{"scope":{scope},"spans":["#)?;
    serde_json::to_writer(&mut *out, &session)?;
    report.sessions += 1;
    report.spans += 1;
    for (turn, span) in told.turns.iter().filter(|(turn, _)| **turn > 0) {
        out.write_all(b",")?;
        serde_json::to_writer(&mut *out, &turn_span(&common, stream, view, *turn, span))?;
        report.spans += 1;
    }
    for ix in all {
        let item = view.state().item(ix, view.at());
        if let Some(item) = item.filter(|item| item.kind == ItemKind::Call) {
            let span = call_span(&common, view, &item, &told, options)?;
            out.write_all(b",")?;
            serde_json::to_writer(&mut *out, &span)?;
            report.links += span.get("links").and_then(Value::as_array).map_or(0, Vec::len) as u64;
            report.spans += 1;
        }
    }
    Ok(out.write_all(b"]}]}]}\n")?)
}

/// The values that all spans of a session share.
struct Common {
    trace: String,
    conversation: String,
    root: String,
}

impl Common {
    fn attributes(&self, operation: &str) -> Vec<Value> {
        vec![text("gen_ai.operation.name", operation), text("gen_ai.conversation.id", &self.conversation)]
    }
}

/// The facts that the events of a session tell.
#[derive(Default)]
struct TracedFacts {
    /// Whether the host gives times.
    dated: bool,
    first: Micros,
    last: Micros,
    times: BTreeMap<Seq, Micros>,
    turns: BTreeMap<u32, TurnSpan>,
    notes: Vec<Value>,
}

/// A turn.
#[derive(Default)]
struct TurnSpan {
    start: Micros,
    end: Micros,
    seq: Seq,
    reports: Vec<Report>,
}

impl TracedFacts {
    fn read(store: &Store, view: &View, usages: &Usages) -> Result<Self, ExportError> {
        let mut told = Self::default();
        for recorded in crate::lineage::events(store, view.stream(), view.at())? {
            let recorded = recorded?;
            let (seq, event) = (recorded.seq, recorded.event);
            // If the host dates its events, an event without a time happened at the time of the event before it.
            let before = told.times.last_key_value().filter(|_| told.dated).map(|(_, time)| *time);
            told.dated |= event.host_time.is_some();
            let time = event.host_time.or(before).unwrap_or(recorded.recorded_at);
            if told.times.is_empty() {
                (told.first, told.last) = (time, time);
            }
            told.first = told.first.min(time);
            told.last = told.last.max(time);
            told.times.insert(seq, time);
            let number = view.state().turn(seq).get();
            let turn = told.turns.entry(number).or_insert(TurnSpan {
                start: time,
                end: time,
                ..TurnSpan::default()
            });
            turn.end = turn.end.max(time);
            turn.seq = seq;
            let label = event.payload.label();
            if let Some(note) = page_past::mark(&event.payload) {
                told.notes.push(json!({
                    "timeUnixNano": nanos(time), "name": format!("acpdb.{label}"),
                    "attributes": [number_of("acpdb.seq", seq.get()), text("acpdb.note", &note)],
                }));
            }
            if let Payload::MessageFinished(mut finished) = event.payload {
                // The usage of a request counts once, in the session that made it.
                let own = usages.0.get(&(view.stream(), seq));
                finished.report.usage = own.copied().unwrap_or_default();
                turn.reports.push(finished.report);
            }
        }
        Ok(told)
    }
}

fn turn_span(common: &Common, stream: StreamId, view: &View, number: u32, turn: &TurnSpan) -> Value {
    let (model, tokens) = {
        let state = view.state();
        let model = turn.reports.iter().rev().find_map(|report| report.model.clone());
        let asked = state.prompts(turn.seq).iter().rev().find_map(|(_, prompt)| prompt.model.clone());
        (model.or(asked), state.tokens(turn.seq))
    };
    let mut attributes = common.attributes("chat");
    attributes.extend(model.as_ref().map(|model| text("gen_ai.request.model", model)));
    let newest = turn.reports.last();
    let said = |of: fn(&Report) -> Option<&String>| newest.and_then(of);
    attributes.extend(said(|it| it.model.as_ref()).map(|it| text("gen_ai.response.model", it)));
    attributes.extend(said(|it| it.provider.as_ref()).map(|it| text("gen_ai.provider.name", it)));
    attributes.extend(said(|it| it.request.as_ref()).map(|it| text("gen_ai.response.id", it)));
    if let Some(reason) = said(|it| it.stop_reason.as_ref()) {
        let values = json!({"arrayValue": {"values": [{"stringValue": reason}]}});
        attributes.push(json!({"key": "gen_ai.response.finish_reasons", "value": values}));
    }
    let sum = |of: fn(&Report) -> Option<u64>| {
        let counts: Vec<u64> = turn.reports.iter().filter_map(of).collect();
        (!counts.is_empty()).then(|| counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count)))
    };
    let usage: [(&str, Option<u64>); 4] = [
        ("gen_ai.usage.input_tokens", sum(|it| it.usage.input)),
        ("gen_ai.usage.output_tokens", sum(|it| it.usage.output)),
        ("gen_ai.usage.cache_read.input_tokens", sum(|it| it.usage.cache_read)),
        ("gen_ai.usage.cache_creation.input_tokens", sum(|it| it.usage.cache_write)),
    ];
    attributes.extend(usage.into_iter().filter_map(|(key, count)| Some(number_of(key, count?))));
    attributes.push(number_of("acpdb.turn", u64::from(number)));
    attributes.push(number_of("acpdb.context.tokens_shown", tokens.shown));
    attributes.push(number_of("acpdb.context.tokens_whole", tokens.whole));
    let name = model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
    json!({
        "traceId": common.trace, "spanId": span_id(stream, "turn", Seq(u64::from(number)), 0),
        "parentSpanId": common.root, "name": name, "kind": 3,
        "startTimeUnixNano": nanos(turn.start), "endTimeUnixNano": nanos(turn.end), "attributes": attributes,
        "status": {},
    })
}

fn call_span(
    common: &Common,
    view: &View,
    item: &ItemView,
    told: &TracedFacts,
    options: SpanOptions,
) -> Result<Value, ExportError> {
    let (mut row, edges) = {
        let state = view.state();
        let row = ItemRow::of(state, item, &common.conversation, view.at());
        (row, state.superseded_by(item.ix, view.at()))
    };
    // The row is spelled in place; only sentences and edges need the returned words.
    let _ = crate::items::spell(view, &mut [&mut row]);
    let tool = row.tool.clone().unwrap_or_default();
    let mut attributes = common.attributes("execute_tool");
    attributes.push(text("gen_ai.tool.name", &tool));
    attributes.push(text("gen_ai.tool.type", "function"));
    attributes.extend(row.call.as_ref().map(|call| text("gen_ai.tool.call.id", call)));
    attributes.push(text("acpdb.item", &row.item));
    attributes.push(number_of("acpdb.turn", u64::from(row.turn)));
    attributes.push(number_of("acpdb.tokens", row.tokens));
    attributes.push(number_of("acpdb.tokens_shown", row.tokens_shown));
    attributes.push(text("acpdb.state", &page_past::word(&row.state)));
    attributes.push(json!({"key": "acpdb.in_context", "value": {"boolValue": row.in_context}}));
    attributes.extend(row.cause.map(|cause| text("acpdb.cause", cause)));
    attributes.extend(row.rule.map(|rule| text("acpdb.rule", rule.label())));
    attributes.extend(row.superseded_by.as_ref().map(|by| text("acpdb.superseded_by", by)));
    if let Some(key) = row.keys.first() {
        attributes.push(text("acpdb.about", key));
    }
    let status = match item.status {
        Some(Status::Failed) => {
            attributes.push(text("error.type", "_OTHER"));
            json!({"code": 2, "message": "the call failed"})
        }
        Some(Status::Aborted) => {
            attributes.push(text("error.type", "aborted"));
            json!({"code": 2, "message": "the call was aborted"})
        }
        _ => json!({}),
    };
    if options.texts {
        let texts = [
            ("gen_ai.tool.call.arguments", item.params),
            ("gen_ai.tool.call.result", item.content.first().map(|part| part.body)),
        ];
        for (key, body) in texts {
            let Some(body) = body else { continue };
            // A lost text is left out.
            attributes.extend(or_lost(view.text(body))?.ok().map(|found| text(key, &found)));
        }
    }
    let start = told.times.get(&item.item.seq).copied().unwrap_or(told.first);
    let end = item.finished.and_then(|seq| told.times.get(&seq)).copied().unwrap_or(start).max(start);
    let links: Vec<Value> = edges
        .iter()
        .filter_map(|edge| {
            let attributes = vec![
                text("acpdb.link", "superseded_by"),
                text("acpdb.rule", edge.rule.label()),
                number_of("acpdb.tokens_freed", edge.tokens_freed),
            ];
            let span = item_span(view.stream(), edge.new?);
            Some(json!({"traceId": common.trace, "spanId": span, "attributes": attributes}))
        })
        .collect();
    Ok(json!({
        "traceId": common.trace, "spanId": item_span(view.stream(), item.item), "parentSpanId": common.root,
        "name": format!("execute_tool {tool}"), "kind": 1, "startTimeUnixNano": nanos(start),
        "endTimeUnixNano": nanos(end), "attributes": attributes, "links": links, "status": status,
    }))
}

/// The trace of a session: that of the session at the top of the line that started it; and the span of its parent.
fn place(store: &Store, view: &View) -> Result<(String, Option<String>), ExportError> {
    let parent = view.state().info(view.at()).and_then(|info| info.parent.clone());
    let Some(parent) = parent else { return Ok((view.stream().to_hex(), None)) };
    let mut top = parent.stream;
    for _ in 0..DEPTH_MAX {
        match store.stream_name(top)?.and_then(|name| name.parent) {
            Some(above) if above != top => top = above,
            _ => break,
        }
    }
    let mut span = span_id(parent.stream, "session", Seq::ZERO, 0);
    if let (Some(call), Some(_)) = (&parent.call, store.stream_name(parent.stream)?) {
        let above = store.view_once(parent.stream, &At::Head)?;
        let calls = above.state().calls_by_host_id(call, above.at());
        if let Some(item) = calls.last().and_then(|ix| above.state().item_id(*ix)) {
            span = item_span(parent.stream, item);
        }
    }
    Ok((top.to_hex(), Some(span)))
}

fn item_span(stream: StreamId, item: ItemId) -> String {
    span_id(stream, "item", item.seq, item.part)
}

/// Eight bytes, as hex, that only these four things give.
fn span_id(stream: StreamId, kind: &str, seq: Seq, part: u32) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"acpdb span v1\0");
    hasher.update(stream.as_bytes());
    hasher.update(kind.as_bytes());
    hasher.update([0]);
    hasher.update(seq.get().to_le_bytes());
    hasher.update(part.to_le_bytes());
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// OTLP's JSON writes 64 bits as text.
fn nanos(time: Micros) -> String {
    (i128::from(time.get().max(0)) * 1000).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": first_bytes(value, TEXT_BYTES_MAX)}})
}

fn number_of(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
