//! `acpdb rewind`, `fork`, `undo`, `redo`: branches, and acts that are undone or redone. Each is an event; none of them loses
//! anything.

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::event::{Payload, stream_id};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::{Store, View, store::StreamName};
use acpdb_query::undo::{self, UndoPlan};
use acpdb_query::{EventsQuestion, ForkPlan};
use serde_json::json;

use super::lines::one_line;
use super::{Code, Failure, Global, Output, ask, describe, find, session, store_path};
use crate::args::{Fork, RewindArgs, UndoArgs};

pub(crate) fn rewind(global: &Global, args: &RewindArgs, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let open = if args.dry_run { store_path::read } else { store_path::write };
    let store = open(global, output)?;
    let session = session::default_session_noted(&store, global.session.as_deref(), output)?;
    let to = find::view_at(&store, global, &session, Some(&args.to))?.at();
    let before = store.view(session.id)?;
    let name = one_line(&session.name);
    let left = {
        let state = before.state();
        let current = state.current(before.at()).into_iter();
        current.filter(|ix| state.item_id(*ix).is_some_and(|item| item.seq > to)).count()
    };
    let is_left = before.state().is_left(to, before.at());
    let elsewhere =
        format!("{to} is on a branch that was left; to go on from there: acpdb fork {name} --at '{to}'");
    let last = if args.dry_run { None } else { store.rewind(session.id, to)?.last_seq };
    if last.is_none() && !(args.dry_run && store.has_after(&before, to)?) {
        let failure = Failure::not_found(format!("nothing to rewind: the branch has no event after {to}"));
        let hint = format!("acpdb context {name} --summary shows where the branch stands");
        return Err(failure.hint(if is_left { elsewhere } else { hint }));
    }
    if output.json {
        return output.json_line(&json!({
            "schema": "acpdb.act/1", "session": session.name, "to": to, "last_seq": last, "left": left,
            "dry_run": args.dry_run,
        }));
    }
    let items = describe::count(left as u64, "item");
    output.line(match last {
        Some(seq) => format!("{name} rewound to {to}: {items} left the branch (event {seq})"),
        None => format!("{name} would be rewound to {to}: {items} would leave the branch"),
    })?;
    if is_left {
        // Its items are not in the context now, as a person may expect who names the point.
        output.note(elsewhere);
    }
    let Some(seq) = last else { return Ok(Code::Ok) };
    // A seq keeps its meaning after later rewinds, which `@rewind-1` would not.
    let head = seq.before();
    output.note(format!(
        "they stay in history: acpdb context {name} --at '{head}'; to go on from there: acpdb fork {name} --at '{head}'"
    ));
    Ok(Code::Ok)
}

pub(crate) fn fork(global: &Global, args: &Fork, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::write(global, output)?;
    let parent = session::find(&store, &args.session)?;
    let view = find::view(&store, global, &parent)?;
    let plan = acpdb_query::fork_plan(&store, &view, parent.clone(), args.title.clone())?;
    let (name, at) = (new_name(&store, &parent, &plan, args.id.as_deref())?, plan.at);
    let info = plan.named(name.clone());
    let receipt = store.append(&info, vec![plan.entry()])?;
    let forked = store.view(info.id())?;
    let count = forked.current().len();
    if output.json {
        return output.json_line(&json!({
            "schema": "acpdb.act/1", "session": name, "from": parent.name, "at": at, "items": count,
            "last_seq": receipt.last_seq,
        }));
    }
    output.line(format!(
        "{} continues {} from {at}: {} in its context, none copied",
        one_line(&name),
        one_line(&parent.name),
        describe::count(count as u64, "item")
    ))?;
    Ok(Code::Ok)
}

/// The id of a fork: the given one, else the parent's with the first free number.
fn new_name(
    store: &Store,
    parent: &StreamName,
    plan: &ForkPlan,
    asked: Option<&str>,
) -> Result<String, Failure> {
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
    let free = plan.numbered().find(|name| !is_taken(name));
    free.ok_or_else(|| Failure::usage(format!("{} has too many forks; name this one with --id", parent.name)))
}

/// Whether an act is undone, or holds again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ActDirection {
    Undo,
    Redo,
}

impl ActDirection {
    fn plan(self, view: &View, seq: Seq, act: &Payload) -> Option<UndoPlan> {
        match self {
            Self::Undo => undo::plan(view, seq, act),
            Self::Redo => undo::plan_again(view, seq, act),
        }
    }
}

pub(crate) fn undo(global: &Global, args: &UndoArgs, output: &mut Output) -> Result<Code, Failure> {
    let way = if args.redo { ActDirection::Redo } else { ActDirection::Undo };
    super::at::refuse(global)?;
    let store = store_path::write(global, output)?;
    let session = session::default_session_noted(&store, global.session.as_deref(), output)?;
    let view = store.view(session.id)?;
    let seq = match &args.act {
        Some(text) => {
            text.parse().map_err(|error| Failure::usage(format!("{text:?} is no event: {error}")))?
        }
        None => next_act(&store, &session, &view, way)?,
    };
    let recorded = store.event(seq)?.filter(|recorded| recorded.event.stream == session.id);
    let recorded =
        recorded.ok_or_else(|| Failure::not_found(format!("session {} has no event {seq}", session.name)))?;
    let plan = way
        .plan(&view, seq, &recorded.event.payload)
        .ok_or_else(|| not_an_act(&recorded.event.payload, seq, &session))?;
    let label = recorded.event.payload.label();
    match way {
        ActDirection::Undo if plan.undone => {
            let failure = Failure::new(Code::Conflict, format!("{seq} {label} is undone already"));
            return Err(failure.hint(format!("acpdb undo --redo '{seq}' makes it hold again")));
        }
        ActDirection::Redo if !plan.undone => {
            let failure = Failure::new(Code::Conflict, format!("{seq} {label} is not undone"));
            return Err(failure.hint(format!("acpdb undo '{seq}' takes it back")));
        }
        _ => {}
    }
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
        let is_undo = way == ActDirection::Undo;
        return output.json_line(&json!({
            "schema": "acpdb.act/1", "session": session.name, "undone": is_undo.then_some(seq),
            "redone": (!is_undo).then_some(seq), "event": label, "dry_run": args.dry_run,
            "restored": ids(&plan.restore), "discarded": ids(&plan.discard), "distilled": ids(&distilled),
            "pinned": ids(&plan.pin), "unpinned": ids(&plan.unpin), "last_seq": last,
        }));
    }
    if plan.is_empty() {
        output.line(format!("{seq} {label}: everything stands as before it already"))?;
        return Ok(Code::Ok);
    }
    let would = match (way, args.dry_run) {
        (ActDirection::Undo, true) => "would take back",
        (ActDirection::Undo, false) => "took back",
        (ActDirection::Redo, true) => "would do again",
        (ActDirection::Redo, false) => "did again",
    };
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

/// The next act to undo on a session's context; with `Redo`, the next act to redo.
fn next_act(store: &Store, session: &StreamName, view: &View, way: ActDirection) -> Result<Seq, Failure> {
    let question = EventsQuestion {
        filter: ask::filter(&[format!("kind:{}", undo::KINDS.join(","))])?,
        stream: Some(session.id),
        from: Seq(1),
        ..EventsQuestion::default()
    };
    let mut acts = Vec::new();
    for recorded in acpdb_query::events(store, question)? {
        let recorded = recorded?;
        acts.push((recorded.seq, recorded.event.payload));
    }
    let walk = undo::walk(view, &acts);
    let next = match way {
        ActDirection::Undo => walk.back.last(),
        ActDirection::Redo => walk.forward.last(),
    };
    if let Some(seq) = next {
        return Ok(*seq);
    }
    if !acts.is_empty() && way == ActDirection::Undo {
        let message = format!("no act on the context of {} is left to take back", session.name);
        let failure = Failure::not_found(message);
        return Err(if walk.forward.is_empty() {
            failure
        } else {
            failure.hint("acpdb undo --redo makes the one hold again that was undone last")
        });
    }
    if !acts.is_empty() {
        return Err(Failure::not_found(format!(
            "nothing that was done to the context of {} is undone",
            session.name
        )));
    }
    let failure = Failure::not_found(format!("nothing was done to the context of {} by hand", session.name));
    if !view.state().rewinds(view.at()).is_empty() {
        return Err(failure.hint(format!(
            "a rewind is not taken back; to go on from the branch that was left: acpdb fork {} --at @rewind-1",
            session.name
        )));
    }
    Err(failure.hint("what rules superseded is shown again by acpdb context restore"))
}

fn not_an_act(payload: &Payload, seq: Seq, session: &StreamName) -> Failure {
    let failure = Failure::usage(format!("{seq} is a {} event, and no act on a context", payload.label()));
    match payload {
        Payload::Rewound(_) => {
            let before = seq.before();
            failure.hint(format!(
                "go on from the branch that was left: acpdb fork {} --at '{before}'",
                session.name
            ))
        }
        Payload::PolicySet(_) => failure.hint("set the policy that was in force before: acpdb policy set"),
        _ => failure.hint(format!("acts are {}", undo::KINDS.join(", "))),
    }
}

/// Carries out a plan. Returns the last seq.
fn act(store: &Store, session: &StreamName, view: &View, plan: &UndoPlan) -> Result<Option<Seq>, Failure> {
    let targets = |items: &[ItemId]| items.iter().map(|item| Target::Item(*item)).collect::<Vec<_>>();
    let alone = |items: &[ItemId]| targets(items).into_iter().map(|target| (target, None)).collect();
    let mut last = None;
    // Pins keep rules away, not acts. They come last, so that a restore cannot change them.
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
