//! `acpdb export audit`: a report of all acts and their actors, of hidden and erased texts, and of how far all of it is proven.
//!
//! ```text
//! events of the log, in order --> sections of rows --> one value --> JSON, or a page that can be printed
//! claims about the log       -->
//! ```
//!
//! The report says nothing that the log does not: an event that a host did not record is a gap, and the report tells it as a gap.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::event::{
    Body, Erased, Event, KeyKind, Outcome, Part, Payload, Recorded, Role, Scope, ToolCallFinished,
    ToolCallStarted, ToolClass,
};
use acpdb_engine::ids::{ItemId, Micros, Seq, StreamId};
use acpdb_engine::text::paths::shown;
use acpdb_engine::{Error, Store, store::StreamName};
use acpdb_query::items::{Which, items};
use serde_json::{Value, json};

use super::sink::{TargetSink, To};
use super::{Code, Failure, Global, Output, at, audit_page, describe, session, store_path};
use crate::args::Audit;
use crate::claims;
use crate::describe::{StreamNames, with};

/// The form of the report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportForm {
    Html,
    Json,
}

/// The claims that the report proves, in its own words.
const PROVES: &[&str] = &[
    "Where a checkpoint agrees and its key is known: the events that it covers are those that were signed, in this order, none changed, \
     dropped or inserted since.",
    "What is told of an event stands in the log under the number that is given; acpdb checkpoint prove shows it to others by that number.",
];
const PROVES_NOT: &[&str] = &[
    "That what was recorded is true: a host that lies is recorded faithfully.",
    "That all was recorded: what a host did not tell is in no log.",
    "Times: they are those of the clocks of hosts and of this machine.",
    "Persons: a log knows that the user acted, not which person the user is.",
    "Anything about events after the newest checkpoint, or under a key that is not known here.",
    "Conformity with any law or standard. This is a tool's report.",
];

/// Gaps that are told beside the report.
const GAPS_NAMED: usize = 4;

pub(crate) fn run(global: &Global, args: &Audit, output: &mut Output) -> Result<Code, Failure> {
    at::refuse_now(global, "audit")?;
    let path = args.target.output.as_deref();
    let form = match path.and_then(|path| path.extension()).and_then(|end| end.to_str()) {
        Some("html") => ReportForm::Html,
        Some("json") => ReportForm::Json,
        _ => return Err(Failure::usage("name a file that ends in .html or .json").hint("-o report.html")),
    };
    let sink = TargetSink::open(&args.target, output)?;
    let store = store_path::read(global, output)?;
    let session = session::named(&store, args.session.as_deref())?;
    let after = match &args.since {
        Some(text) => {
            acpdb_query::when::resolve(&store, text, at::now())
                .map_err(|error| Failure::usage(format!("--since: {error}")))?
                .seq
        }
        None => Seq::ZERO,
    };
    let mut report = AuditReport::new(&store, after.next(), session)?;
    let code = report.signed()?;
    let value = report.value(args);
    let (count, to) = sink.fill(|out| {
        match form {
            ReportForm::Json => serde_json::to_writer_pretty(&mut *out, &value)
                .map_err(std::io::Error::from)
                .and_then(|()| out.write_all(b"\n")),
            ReportForm::Html => audit_page::write(&value, out),
        }
        .map_err(Failure::io("write", "the report"))?;
        Ok(report.calls.len())
    })?;
    let To::File { path, bytes } = to else { return Ok(code) };
    if output.json {
        let gaps = report.gaps.len();
        let value = json!({ "path": shown(&path), "bytes": bytes, "calls": count, "gaps": gaps });
        output.json_object("acpdb.exported/1", &value)?;
    } else {
        let (calls, gaps) =
            (describe::count(count as u64, "call"), describe::count(report.gaps.len() as u64, "gap"));
        output.line(format!("{}: {calls}, {gaps}, {}", path.display(), describe::bytes(bytes)))?;
        for gap in report.gaps.iter().take(GAPS_NAMED) {
            let seq = gap.get("seq").and_then(Value::as_u64).map(|seq| format!(" at #{seq}"));
            let detail = gap.get("detail").and_then(Value::as_str).unwrap_or_default();
            output.note(format!("gap{}: {detail}", seq.unwrap_or_default()));
        }
    }
    Ok(code)
}

/// A call without a result, so far.
struct PendingCallRow {
    seq: Seq,
    time: Option<Micros>,
    row: Value,
}

fn seq_of(row: &Value) -> Option<u64> {
    row.get("seq").and_then(Value::as_u64)
}

/// The sections of the report, in the order of the log.
struct AuditReport<'a> {
    store: &'a Store,
    names: StreamNames,
    first: Seq,
    head: Seq,
    session: Option<StreamName>,
    /// Models and providers of each session.
    makers: BTreeMap<StreamId, BTreeSet<(String, String)>>,
    streams: BTreeSet<StreamId>,
    open: BTreeMap<(StreamId, String), Vec<PendingCallRow>>,
    asked: Vec<Value>,
    calls: Vec<Value>,
    approvals: Vec<Value>,
    files: Vec<Value>,
    hidden: Vec<Value>,
    erased: Vec<Value>,
    checkpoints: Vec<Value>,
    gaps: Vec<Value>,
}

impl<'a> AuditReport<'a> {
    fn new(store: &'a Store, first: Seq, session: Option<StreamName>) -> Result<Self, Failure> {
        let head = store.head()?;
        let mut report = Self {
            store,
            names: StreamNames::new(store),
            first,
            head,
            session,
            makers: BTreeMap::new(),
            streams: BTreeSet::new(),
            open: BTreeMap::new(),
            asked: Vec::new(),
            calls: Vec::new(),
            approvals: Vec::new(),
            files: Vec::new(),
            hidden: Vec::new(),
            erased: Vec::new(),
            checkpoints: Vec::new(),
            gaps: Vec::new(),
        };
        // From the beginning: a call may have begun before the first event of the report.
        for recorded in store.events(Seq(1), head)? {
            match recorded {
                Ok(recorded) => report.take(&recorded),
                Err(error) => {
                    report.gaps.push(json!({ "what": "damage", "detail": Failure::from(error).message }));
                }
            }
        }
        report.close();
        Ok(report)
    }

    fn take(&mut self, recorded: &Recorded) {
        let Recorded { seq, event, .. } = recorded;
        let is_asked = self.session.as_ref().is_none_or(|session| session.id == event.stream);
        let is_told = *seq >= self.first && is_asked;
        if is_told && event.stream != StreamId::STORE {
            self.streams.insert(event.stream);
        }
        match &event.payload {
            Payload::ToolCallStarted(call) if is_asked => self.started(recorded, call, is_told),
            Payload::ToolCallFinished(call) if is_asked => self.finished(recorded, call),
            // An erasure stands in the store's own stream, and may be about the session.
            Payload::Erased(erased) if *seq >= self.first => self.erasure(recorded, erased),
            _ if !is_told => {}
            Payload::MessageRecorded(message) if message.role == Role::User => {
                let texts = self.parts(*seq, &message.parts);
                self.asked.push(self.row(recorded, json!({ "text": texts })));
            }
            Payload::MessageFinished(message) => {
                let report = &message.report;
                if report.model.is_some() || report.provider.is_some() {
                    let maker = (
                        report.model.clone().unwrap_or_default(),
                        report.provider.clone().unwrap_or_default(),
                    );
                    self.makers.entry(event.stream).or_default().insert(maker);
                }
            }
            Payload::HostRecorded(record) if is_approval(&record.record) => {
                let text = record.raw.map(|raw| self.text(*seq, raw));
                let more = json!({ "record": record.record, "about": record.about, "text": text });
                self.approvals.push(self.row(recorded, more));
            }
            Payload::FileChanged(changed) => {
                let path = &changed.key.given;
                let more = json!({ "path": path, "by": changed.by, "tool": null, "act": "changed" });
                self.files.push(self.row(recorded, more));
            }
            Payload::Discarded(_)
            | Payload::Distilled(_)
            | Payload::Restored(_)
            | Payload::Rewound(_)
            | Payload::ContextReplaced(_)
            | Payload::HostCleared(_)
            | Payload::TaskEvicted(_) => {
                let (act, detail) = (event.payload.label(), event.payload.in_words());
                self.hidden.push(self.row(recorded, json!({ "act": act, "detail": detail, "rule": null })));
            }
            Payload::DamageNoted(noted) => {
                let (first, last) = (noted.first, noted.last);
                let detail = format!("events {first} to {last} were lost: {}", noted.note);
                self.gaps.push(json!({ "what": "damage_noted", "seq": seq, "detail": detail }));
            }
            Payload::Unknown { number, .. } => {
                let detail = format!("an event of kind {number}, which this program does not know");
                self.gaps.push(json!({ "what": "unknown_event", "seq": seq, "detail": detail }));
            }
            _ => {}
        }
    }

    /// The common fields of all rows: its place in the log, its session and actor, its time.
    fn row(&self, recorded: &Recorded, more: Value) -> Value {
        let Recorded { seq, event: Event { stream, stamp, .. }, .. } = recorded;
        let row = json!({
            "seq": seq, "session": self.names.full(*stream), "actor": stamp.actor,
            "time": self.names.time(recorded).map(describe::time),
            "recorded_at": describe::time(recorded.recorded_at),
        });
        with(row, more)
    }

    /// A text, or the reason why it is missing.
    fn text(&self, seq: Seq, body: Body) -> Value {
        match self.store.body(body.id(seq)) {
            Ok(bytes) => json!({ "state": "whole", "text": String::from_utf8_lossy(&bytes) }),
            Err(Error::Erased { lost: false, .. }) => json!({ "state": "erased", "text": null }),
            Err(_) => json!({ "state": "damaged", "text": null }),
        }
    }

    fn parts(&self, seq: Seq, parts: &[Part]) -> Vec<Value> {
        parts.iter().filter(|part| part.body.bytes > 0).map(|part| self.text(seq, part.body)).collect()
    }

    fn started(&mut self, recorded: &Recorded, call: &ToolCallStarted, is_told: bool) {
        let seq = recorded.seq;
        // The parameters of a call before the report's first event are read only if its end is in the report.
        let params = if is_told { self.text(seq, call.params) } else { Value::Null };
        let row = self.row(recorded, json!({ "call": call.call, "tool": call.tool, "params": params }));
        if is_told {
            let changes = matches!(call.class, ToolClass::Write | ToolClass::Edit | ToolClass::Delete);
            for key in call.keys.iter().filter(|key| changes && key.kind == KeyKind::File) {
                let more = json!({ "path": key.given, "by": "call", "tool": call.tool, "act": key.class });
                self.files.push(self.row(recorded, more));
            }
        }
        let begun = PendingCallRow { seq, time: self.names.time(recorded), row };
        self.open.entry((recorded.event.stream, call.call.clone())).or_default().push(begun);
    }

    fn finished(&mut self, recorded: &Recorded, call: &ToolCallFinished) {
        let key = (recorded.event.stream, call.call.clone());
        // The nearest earlier start without a result, as the fold pairs them.
        let begun = self.open.get_mut(&key).and_then(Vec::pop);
        if recorded.seq < self.first {
            return;
        }
        let ended = self.names.time(recorded);
        let PendingCallRow { seq, time: began, mut row } = begun.unwrap_or_else(|| {
            let detail = "a result whose call was not recorded";
            self.gaps.push(json!({ "what": "result_without_call", "seq": recorded.seq, "detail": detail }));
            let row = self.row(recorded, json!({ "call": call.call, "tool": null, "params": null }));
            PendingCallRow { seq: Seq::ZERO, time: None, row }
        });
        if row.get("params").is_some_and(Value::is_null)
            && let Ok(Some(start)) = self.store.event(seq)
            && let Payload::ToolCallStarted(started) = &start.event.payload
        {
            row = with(row, json!({ "params": self.text(seq, started.params) }));
        }
        let spent = began.zip(ended).map(|(began, ended)| ended.get().saturating_sub(began.get()) / 1000);
        // A clock may have been set back; a duration below zero would be wrong.
        let spent = spent.filter(|spent| *spent >= 0);
        let ending = json!({
            "outcome": call.outcome, "finished_seq": recorded.seq, "duration_ms": spent,
            "result": self.parts(recorded.seq, &call.output),
        });
        if call.outcome == Outcome::Aborted {
            let record = "call aborted: cancelled, refused or interrupted";
            let more = json!({ "record": record, "about": call.call, "text": null });
            self.approvals.push(self.row(recorded, more));
        }
        self.calls.push(with(row, ending));
    }

    fn erasure(&mut self, recorded: &Recorded, erased: &Erased) {
        let is_asked = |seq: Seq| {
            let Some(session) = &self.session else { return true };
            matches!(self.store.event(seq), Ok(Some(event)) if event.event.stream == session.id)
        };
        let events: BTreeSet<Seq> =
            erased.bodies.iter().map(|body| body.seq).filter(|seq| is_asked(*seq)).collect();
        if events.is_empty() && self.session.is_some() {
            return;
        }
        self.erased.push(self.row(recorded, json!({
            "by": erased.by, "reason": erased.reason.as_str(), "texts": erased.bodies.len(), "events": events,
        })));
    }

    /// The rest at the end of the log: calls without results, and items that rules hid.
    fn close(&mut self) {
        let open: Vec<_> = std::mem::take(&mut self.open).into_values().flatten().collect();
        for PendingCallRow { seq, row, .. } in open.into_iter().filter(|begun| begun.seq >= self.first) {
            let detail = "a call without a result: it runs, or its end was not recorded";
            self.gaps.push(json!({ "what": "call_without_result", "seq": seq, "detail": detail }));
            let ending = json!({ "outcome": null, "finished_seq": null, "duration_ms": null, "result": [] });
            self.calls.push(with(row, ending));
        }
        self.calls.sort_by_key(seq_of);
        for stream in self.streams.clone() {
            let name = self.names.full(stream);
            let view = match self.store.view(stream) {
                Ok(view) => view,
                Err(error) => {
                    let detail = format!("what rules hid in {name} is not known: {error}");
                    self.gaps.push(json!({ "what": "unreadable", "seq": null, "detail": detail }));
                    continue;
                }
            };
            for row in items(&view, &name, Which::All) {
                let Some(rule) = row.rule.filter(|_| row.seq >= self.first) else { continue };
                // A conclusion is no event: its time is that of the item that superseded this one. A row names items as `ItemId`
                // writes them. An event that cannot be read is a gap already, and has no time here.
                let cause = row.superseded_by.as_deref().and_then(|by| by.parse::<ItemId>().ok());
                // An event that cannot be read has no time here.
                let cause = cause.and_then(|by| self.store.event(by.seq).ok().flatten());
                let time = cause.as_ref().and_then(|cause| self.names.time(cause)).map(describe::time);
                let recorded_at = cause.as_ref().map(|cause| describe::time(cause.recorded_at));
                let by = row.superseded_by.map(|by| format!(" by {by}")).unwrap_or_default();
                self.hidden.push(json!({
                    "seq": row.seq, "session": name, "actor": "policy", "time": time, "recorded_at": recorded_at,
                    "act": "superseded", "detail": format!("{}{by}", row.item), "rule": rule.label(),
                }));
            }
        }
        self.hidden.sort_by_key(seq_of);
    }

    /// Compares the log with its signed claims; events that no claim covers are a gap.
    fn signed(&mut self) -> Result<Code, Failure> {
        let judged = claims::judge(self.store, &[])?;
        let agrees = |claim: &&acpdb_proof::claims::Claim| claims::code_of(claim.standing) == Code::Ok;
        let covered = judged.claims.iter().filter(agrees).filter_map(acpdb_proof::claims::Claim::seq).max();
        let covered = covered.unwrap_or(Seq::ZERO);
        for claim in &judged.claims {
            let words = claim.seq().map(|seq| format!("events #1 to {seq}"));
            let more = json!({ "covers": words, "says": claims::line(claim) });
            self.checkpoints.push(with(claims::value(claim), more));
        }
        if covered < self.head {
            let detail = if covered == Seq::ZERO {
                "no checkpoint of a known key covers any event: nothing here is proven".to_owned()
            } else {
                format!("events {} to {} came after the newest checkpoint", covered.next(), self.head)
            };
            self.gaps.push(json!({ "what": "not_signed", "seq": covered.next(), "detail": detail }));
        }
        Ok(claims::code(&judged))
    }

    fn who(&self) -> Vec<Value> {
        let sessions = self.store.stream_names_among(&self.streams).unwrap_or_default();
        let sessions = sessions.into_iter().filter(|name| name.scope == Scope::Session);
        sessions
            .map(|name| {
                let makers = self.makers.get(&name.id).into_iter().flatten();
                let makers: Vec<Value> = makers
                    .map(|(model, provider)| {
                        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
                        json!({ "model": some(model), "provider": some(provider) })
                    })
                    .collect();
                json!({
                    "session": name.name, "stream": name.id, "host": name.host, "title": name.title,
                    "folder": name.folder, "began": name.began.map(describe::time),
                    "parent": name.parent.map(|parent| self.names.full(parent)), "models": makers,
                })
            })
            .collect()
    }

    fn value(&self, args: &Audit) -> Value {
        json!({
            "schema": "acpdb.audit/1",
            "store": self.store.id(), "made_at": describe::time(at::now()), "head": self.head, "first": self.first,
            "asked_for": { "session": self.session.as_ref().map(|session| &session.name), "since": args.since },
            "proves": PROVES, "proves_not": PROVES_NOT,
            "who": self.who(), "asked": self.asked, "calls": self.calls, "approvals": self.approvals,
            "files": self.files, "hidden": self.hidden, "erased": self.erased,
            "checkpoints": self.checkpoints, "gaps": self.gaps,
        })
    }
}

/// Whether a host's own record is about the permission for an act.
fn is_approval(record: &str) -> bool {
    let record = record.to_lowercase();
    ["permission", "approv", "denied", "denial"].iter().any(|word| record.contains(word))
}
