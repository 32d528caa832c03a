//! `acpdb scan`: secrets that slipped through, by event and rule; never their text. Exit code 1 if there are some.

use std::collections::BTreeMap;

use acpdb_engine::event::{Body, Part, Payload, Recorded};
use acpdb_engine::ids::{BodyId, Seq};
use acpdb_engine::{Error, Store};
use acpdb_hosts::redact::Rules;
use serde::Serialize;

use super::{describe, sessions};
use crate::args::{Global, RedactOptions, Scan};
use crate::failure::{Code, Failure};
use crate::output::{Escape, Output, escape};
use crate::place;

/// The rules that the options ask for; the usual ones are in if `always` or asked for.
pub(crate) fn rules(options: &RedactOptions, always: bool) -> Result<Option<Rules>, Failure> {
    let asked = options.redact || options.redact_entropy || !options.redact_rule.is_empty();
    if !asked && !always {
        return Ok(None);
    }
    let refused = |error: acpdb_hosts::redact::RuleError| Failure::usage(error.to_string());
    let mut rules = Rules::usual().map_err(refused)?;
    for rule in &options.redact_rule {
        let Some((name, pattern)) = rule.split_once('=') else {
            return Err(Failure::usage(format!("--redact-rule wants NAME=REGEX, not {rule:?}")));
        };
        rules = rules.with(name, pattern).map_err(refused)?;
    }
    Ok(Some(if options.redact_entropy { rules.with_entropy() } else { rules }))
}

/// An event that holds secrets.
#[derive(Serialize)]
struct Row {
    seq: Seq,
    session: String,
    kind: &'static str,
    rules: BTreeMap<String, u64>,
    erase: String,
}

pub(crate) fn run(global: &Global, args: &Scan, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "scan")?;
    let rules = rules(&args.redact, true)?.unwrap_or_default();
    let store = place::read(global, output)?;
    let names: BTreeMap<_, _> = store.stream_names()?.into_iter().map(|it| (it.id, it.name)).collect();
    let only = args.session.as_deref().map(|name| sessions::find(&store, name)).transpose()?;
    let mut rows = Vec::new();
    for recorded in store.events(Seq(1), Seq::MAX)? {
        let recorded = recorded?;
        if only.as_ref().is_some_and(|only| only.id != recorded.event.stream) {
            continue;
        }
        let found = found(&store, &recorded, &rules)?;
        if !found.is_empty() {
            let seq = recorded.seq;
            rows.push(Row {
                seq,
                session: names.get(&recorded.event.stream).cloned().unwrap_or_default(),
                kind: recorded.event.payload.label(),
                rules: found,
                erase: format!("acpdb erase '{seq}' --reason 'secret found by scan'"),
            });
        }
    }
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
        output.line(format!("   {}", row.erase))?;
    }
    if rows.is_empty() {
        output.note("no secrets of a known form");
    } else {
        output.note("what an issuer knows to be leaked should be withdrawn there, too");
    }
    Ok(code)
}

/// How many secrets an event's bodies hold, by rule. What its record repeats of them counts once.
fn found(store: &Store, recorded: &Recorded, rules: &Rules) -> Result<BTreeMap<String, u64>, Failure> {
    let mut counts = BTreeMap::new();
    let mut bodies = bodies(recorded);
    if let Some(wire) = recorded.event.stamp.wire {
        bodies.push(wire.id(recorded.seq));
    }
    for body in bodies {
        let bytes = match store.body(body) {
            Ok(bytes) => bytes,
            // What is erased holds nothing; damage is for `verify`.
            Err(Error::Erased { .. } | Error::Corrupt { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        for found in rules.find(&bytes) {
            *counts.entry(found.rule).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The bodies of an event that hold texts, without its record.
fn bodies(recorded: &Recorded) -> Vec<BodyId> {
    let of = |parts: &[Part]| parts.iter().map(|part| part.body).collect::<Vec<_>>();
    let some = |bodies: &[Option<Body>]| bodies.iter().flatten().copied().collect::<Vec<_>>();
    let bodies: Vec<Body> = match &recorded.event.payload {
        Payload::MessageRecorded(it) => of(&it.parts),
        Payload::MessageContinued(it) => of(&it.parts),
        Payload::ItemRevised(it) => of(&it.parts),
        Payload::ToolCallStarted(it) => vec![it.params],
        Payload::ToolCallFinished(it) => {
            let mut bodies = of(&it.output);
            bodies.extend(it.details);
            bodies
        }
        Payload::PromptSet(it) => some(&[it.system, it.tools, it.params]),
        Payload::HostRecorded(it) => some(&[it.raw]),
        Payload::HostCleared(it) => some(&[it.text]),
        Payload::TodosReplaced(it) => vec![it.list.body],
        Payload::MemoryRecorded(it) => {
            let mut bodies = vec![it.value];
            bodies.extend(it.rationale.iter().chain(&it.alternatives).chain(&it.extra));
            bodies
        }
        Payload::Injected(it) => vec![it.text],
        Payload::Discarded(it) => vec![it.targets],
        Payload::Distilled(it) => {
            let summaries = it.items.iter().filter_map(|item| item.summary);
            summaries.chain([it.targets]).collect()
        }
        Payload::TaskEvicted(it) => some(&[it.summary]),
        _ => Vec::new(),
    };
    bodies.into_iter().map(|body| body.id(recorded.seq)).collect()
}
