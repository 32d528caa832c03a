//! `acpdb rewind`, `fork`, `undo`: branches, and acts taken back. Each is an event; nothing is lost by any of them.

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, Fact, PointRef, StreamInfo};
use acpdb_engine::event::{Payload, stream_id};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::{Store, StreamName, View};
use acpdb_query::EventsQuestion;
use acpdb_query::undo::{self, UndoPlan};
use serde_json::json;

use super::{ask, describe, find, sessions};
use crate::args::{Fork, Global, Rewind, Undo};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

/// Numbers that are tried for the id of a fork.
const FORK_NUMBER_MAX: u32 = 9_999;

pub(crate) fn rewind(global: &Global, args: &Rewind, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = place::read(global, output)?;
    let session = sessions::default_session_noted(&store, args.session.as_deref(), output)?;
    let to = find::view_at(&store, global, &session, Some(&args.to))?.at();
    let before = store.view(session.id)?;
    if to >= before.read().state().head() {
        output.note("nothing was recorded after that; nothing to rewind");
        return Ok(Code::Ok);
    }
    let left = {
        let reading = before.read();
        let state = reading.state();
        let current = state.current(before.at()).into_iter();
        current.filter(|ix| state.item_id(*ix).is_some_and(|item| item.seq > to)).count()
    };
    let reply = store.rewind(session.id, to)?;
    let Some(seq) = reply.last_seq else {
        output.note("nothing was recorded after that; nothing to rewind");
        return Ok(Code::Ok);
    };
    if output.json {
        output.json_line(&json!({
            "schema": "acpdb.rewind/1", "session": session.name, "to": to, "last_seq": seq, "left": left,
        }))?;
        return Ok(Code::Ok);
    }
    output.line(format!(
        "{} rewound to {to}: {} left the branch (event {seq})",
        session.name,
        describe::count(left as u64, "item")
    ))?;
    output.note(format!(
        "they stay in history: acpdb context {0} --at @rewind-1; acpdb fork {0} --at @rewind-1",
        session.name
    ));
    Ok(Code::Ok)
}

pub(crate) fn fork(global: &Global, args: &Fork, output: &mut Output) -> Result<Code, Failure> {
    let store = place::read(global, output)?;
    let parent = sessions::find(&store, &args.session)?;
    let view = find::view(&store, global, &parent)?;
    // A stream of its own begins where the parent has events, not at whatever seq of the store the point means.
    let at = view.at().min(parent.head);
    let name = new_name(&store, &parent, args.id.as_deref())?;
    let (cwd, project, title) = {
        let reading = view.read();
        let facts = reading.state().info(at).cloned().unwrap_or_default();
        (facts.cwd, facts.project, facts.title)
    };
    let info = StreamInfo {
        title: args.title.clone().or(title.or_else(|| parent.title.clone())),
        cwd,
        project,
        ..StreamInfo::session(parent.host.clone(), name.clone())
    };
    let entry = Entry::from(Fact::Forked { from: parent.id, at: PointRef::Seq(at) })
        .origin(format!("forked:{}:{at}", parent.id.to_hex()));
    let receipt = store.append(&info, vec![entry])?;
    let forked = store.view(info.id())?;
    let count = forked.current().len();
    if output.json {
        output.json_line(&json!({
            "schema": "acpdb.fork/1", "session": name, "from": parent.name, "at": at, "items": count,
            "last_seq": receipt.last_seq,
        }))?;
        return Ok(Code::Ok);
    }
    output.line(format!(
        "{name} continues {} from {at}: {} in its context, none copied",
        parent.name,
        describe::count(count as u64, "item")
    ))?;
    Ok(Code::Ok)
}

/// The id of a fork: as asked for, else the parent's with the first free number.
fn new_name(store: &Store, parent: &StreamName, asked: Option<&str>) -> Result<String, Failure> {
    let names = store.stream_names()?;
    let is_taken = |name: &str| {
        let id = stream_id(parent.scope, &parent.host, name);
        names.iter().any(|stream| stream.id == id)
    };
    if let Some(asked) = asked {
        if asked.is_empty() {
            return Err(Failure::usage("the id of a session is not empty"));
        }
        if is_taken(asked) {
            return Err(Failure::new(Code::Conflict, format!("there is a session {asked} already"))
                .hint("a fork begins a new session; give another --id"));
        }
        return Ok(asked.to_owned());
    }
    let numbered = (1..=FORK_NUMBER_MAX).map(|number| format!("{}-fork-{number}", parent.name));
    let free = numbered.into_iter().find(|name| !is_taken(name));
    free.ok_or_else(|| Failure::usage(format!("{} has too many forks; name this one with --id", parent.name)))
}

pub(crate) fn undo(global: &Global, args: &Undo, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = place::read(global, output)?;
    let session = sessions::default_session_noted(&store, args.session.as_deref(), output)?;
    let seq = match &args.act {
        Some(text) => {
            text.parse().map_err(|error| Failure::usage(format!("{text:?} is no event: {error}")))?
        }
        None => newest_act(&store, &session)?,
    };
    let recorded = store.event(seq)?.filter(|recorded| recorded.event.stream == session.id);
    let recorded =
        recorded.ok_or_else(|| Failure::not_found(format!("session {} has no event {seq}", session.name)))?;
    let view = store.view(session.id)?;
    let plan = undo::plan(&view, seq, &recorded.event.payload)
        .ok_or_else(|| not_an_act(&recorded.event.payload, seq, &session))?;
    let label = recorded.event.payload.label();
    for (item, why) in &plan.left {
        output.note(format!("{item} stays as it is: {why}"));
    }
    let mut last = None;
    if !args.dry_run {
        last = act(&store, &session, &view, &plan)?;
    }
    if output.json {
        let ids = |items: &[ItemId]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
        let distilled: Vec<ItemId> = plan.distill.iter().map(|(item, _)| *item).collect();
        output.json_line(&json!({
            "schema": "acpdb.undo/1", "session": session.name, "undone": seq, "event": label, "dry_run": args.dry_run,
            "restored": ids(&plan.restore), "discarded": ids(&plan.discard), "distilled": ids(&distilled),
            "pinned": ids(&plan.pin), "unpinned": ids(&plan.unpin), "last_seq": last,
        }))?;
        return Ok(Code::Ok);
    }
    if plan.is_empty() {
        output.line(format!("{seq} {label}: everything stands as before it already"))?;
        return Ok(Code::Ok);
    }
    let would = if args.dry_run { "would take back" } else { "took back" };
    let mut done = Vec::new();
    for (what, count) in [
        ("shown again", plan.restore.len()),
        ("hidden again", plan.discard.len() + plan.distill.len()),
        ("pinned", plan.pin.len()),
        ("unpinned", plan.unpin.len()),
    ] {
        if count > 0 {
            done.push(format!("{} {what}", describe::count(count as u64, "item")));
        }
    }
    output.line(format!("{would} {seq} {label}: {}", done.join(", ")))?;
    Ok(Code::Ok)
}

/// The newest act on a session's context.
fn newest_act(store: &Store, session: &StreamName) -> Result<Seq, Failure> {
    let question = EventsQuestion {
        filter: ask::filter(&[format!("kind:{}", undo::KINDS.join(","))])?,
        stream: Some(session.id),
        from: Seq(1),
        reverse: true,
        limit: Some(1),
        ..EventsQuestion::default()
    };
    let newest = acpdb_query::events(store, question)?.next().transpose()?;
    newest.map(|recorded| recorded.seq).ok_or_else(|| {
        Failure::not_found(format!("nothing was done to the context of {} by hand", session.name))
            .hint("what rules superseded is shown again by acpdb context restore")
    })
}

fn not_an_act(payload: &Payload, seq: Seq, session: &StreamName) -> Failure {
    let failure = Failure::usage(format!("{seq} is a {} event, and no act on a context", payload.label()));
    match payload {
        Payload::Rewound(_) => {
            let before = Seq(seq.get().saturating_sub(1));
            failure.hint(format!(
                "go on from the branch that was left: acpdb fork {} --at '{before}'",
                session.name
            ))
        }
        Payload::PolicySet(_) => failure.hint("set the policy that was in force before: acpdb policy set"),
        _ => failure.hint(format!("acts are {}", undo::KINDS.join(", "))),
    }
}

/// Does what a plan says. Returns the last seq.
fn act(store: &Store, session: &StreamName, view: &View, plan: &UndoPlan) -> Result<Option<Seq>, Failure> {
    let targets = |items: &[ItemId]| items.iter().map(|item| Target::Item(*item)).collect::<Vec<_>>();
    let alone = |items: &[ItemId]| targets(items).into_iter().map(|target| (target, None)).collect();
    let mut last = None;
    // Pins keep rules away, not acts; they come last, so that a restore cannot change them.
    if !plan.restore.is_empty() {
        last = store.context(session.id, ContextAction::Restore, alone(&plan.restore))?.last_seq.or(last);
    }
    if !plan.discard.is_empty() {
        last = store.context(session.id, ContextAction::Discard, alone(&plan.discard))?.last_seq.or(last);
    }
    let mut distill = Vec::new();
    for (item, summary) in &plan.distill {
        distill.push((Target::Item(*item), Some(view.text(*summary)?)));
    }
    if !distill.is_empty() {
        last = store.context(session.id, ContextAction::Distill, distill)?.last_seq.or(last);
    }
    if !plan.pin.is_empty() {
        last = store.pin(session.id, targets(&plan.pin))?.last_seq.or(last);
    }
    if !plan.unpin.is_empty() {
        last = store.unpin(session.id, targets(&plan.unpin))?.last_seq.or(last);
    }
    Ok(last)
}
