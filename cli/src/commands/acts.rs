//! `acpdb context discard|distill|restore|pin|unpin`: acts on the context.
//!
//! A request from standard input is a call of the model's tool, and gets the exact reply that the model would get. A typed act gets
//! an answer for people, and a target that names nothing is a miss.

use std::io::Read as _;

use acpdb_engine::command::memory::{MemoryCommand, MemoryRef};
use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::event::{Face, Payload};
use acpdb_engine::fold::FaceState;
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::{ActReply, MemoryScope, Store};
use serde_json::{Value, json};

use super::targets::{Typed, bare, is_hash, split_summary};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, store_path};
use crate::args::{ContextAct, RestoreTargets, Targets};

/// Longest request that is read from standard input.
const REQUEST_BYTES_MAX: u64 = 16 << 20;

/// The act of a subcommand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ActVerb {
    Context(ContextAction),
    Pin,
    Unpin,
}

impl ActVerb {
    const fn name(self) -> &'static str {
        match self {
            Self::Context(ContextAction::Discard) => "discard",
            Self::Context(ContextAction::Distill) => "distill",
            Self::Context(ContextAction::Restore) => "restore",
            Self::Pin => "pin",
            Self::Unpin => "unpin",
        }
    }
}

pub(crate) fn run(global: &Global, act: &ContextAct, output: &mut Output) -> Result<Code, Failure> {
    let (verb, targets, pin) = match act {
        ContextAct::Discard(targets) => (ActVerb::Context(ContextAction::Discard), targets, false),
        ContextAct::Distill(targets) => (ActVerb::Context(ContextAction::Distill), targets, false),
        ContextAct::Restore(RestoreTargets { targets, pin }) => {
            (ActVerb::Context(ContextAction::Restore), targets, *pin)
        }
        ContextAct::Pin(targets) => (ActVerb::Pin, targets, false),
        ContextAct::Unpin(targets) => (ActVerb::Unpin, targets, false),
        ContextAct::Lint(args) => return super::lint::run(args, output),
    };
    super::at::refuse(global)?;
    let store = store_path::write(global, output)?;
    let session = super::session::default_session_noted(&store, global.session.as_deref(), output)?;
    let typed =
        Typed { store: &store, session: &session, view: store.view(session.id)?, head: store.head()? };
    let (reply, spoken) = if targets.stdin {
        (from_stdin(&typed, verb, pin)?, None)
    } else {
        match from_arguments(&typed, verb, targets, pin)? {
            ActResult::Memory(reply) => (reply, None),
            ActResult::Context(reply) => {
                let spoken = spoken(&typed, (verb, pin), global, targets, &reply)?;
                (reply, Some(spoken))
            }
        }
    };
    if output.json {
        output.json_line(&act_json(&reply))?;
    } else {
        let text = output.recorded(spoken.as_ref().unwrap_or(&reply.text), EscapeLevel::Text).into_owned();
        output.line(text)?;
    }
    Ok(Code::Ok)
}

/// Most items that are named one by one; more are counted.
const NAMED_COUNT_MAX: usize = 8;

/// The result of an act, in words for the user who typed it.
fn spoken(
    typed: &Typed<'_>,
    (verb, pin): (ActVerb, bool),
    global: &Global,
    given: &Targets,
    reply: &ActReply,
) -> Result<String, Failure> {
    let mut changed: Vec<ItemId> = reply.hidden.iter().chain(&reply.shown).copied().collect();
    let mut what = match verb {
        ActVerb::Context(ContextAction::Discard) => "hidden",
        ActVerb::Context(ContextAction::Distill) => "hidden behind a summary",
        ActVerb::Context(ContextAction::Restore) if pin => "shown again and pinned",
        ActVerb::Context(ContextAction::Restore) => "shown again",
        ActVerb::Pin => "pinned",
        ActVerb::Unpin => "left to the rules again",
    };
    if changed.is_empty() {
        changed = marked(typed.store, reply)?;
        if pin {
            what = "pinned";
        }
    }
    if changed.is_empty() {
        return unchanged(typed, verb, given);
    }
    let mut names: Vec<String> = changed.iter().take(NAMED_COUNT_MAX).map(ToString::to_string).collect();
    if changed.len() > NAMED_COUNT_MAX {
        names.push(format!("and {} more", changed.len() - NAMED_COUNT_MAX));
    }
    let session = global.session.as_ref().map(|typed| format!(" --session {typed}"));
    let mut text = format!("{} {what}; undo: acpdb undo{}", names.join(", "), session.unwrap_or_default());
    if verb == ActVerb::Pin {
        for item in hidden_among(typed, &changed)?.into_iter().take(NAMED_COUNT_MAX) {
            text.push_str(&format!(
                "\n{item} stays hidden: a pin is for later rules; acpdb context restore {} shows it now",
                bare(item)
            ));
        }
    }
    Ok(text)
}

/// The items of a pin or an unpin.
fn marked(store: &Store, reply: &ActReply) -> Result<Vec<ItemId>, Failure> {
    let Some(seq) = reply.last_seq else { return Ok(Vec::new()) };
    Ok(match store.event(seq)?.map(|recorded| recorded.event.payload) {
        Some(Payload::Pinned(act)) => act.items,
        Some(Payload::Unpinned(act)) => act.items,
        _ => Vec::new(),
    })
}

/// The items among `items` that the context does not show whole.
fn hidden_among(typed: &Typed<'_>, items: &[ItemId]) -> Result<Vec<ItemId>, Failure> {
    let view = typed.store.view(typed.session.id)?;
    let state = view.state();
    let is_hidden = |item: &&ItemId| {
        let ix = state.find(**item);
        ix.is_some_and(|ix| state.face(ix, Face::Output, Seq::MAX).state != FaceState::Whole)
    };
    Ok(items.iter().filter(is_hidden).copied().collect())
}

/// The answer to an act that changed nothing. If its targets name nothing, that is a miss.
fn unchanged(typed: &Typed<'_>, verb: ActVerb, given: &Targets) -> Result<String, Failure> {
    let is_pattern = |text: &&String| {
        let (name, _) = split_summary(text, &|text| typed.is_call(text));
        matches!(typed.read(name), Ok(Target::Shown(name)) if !is_hash(&name))
    };
    let Some(text) = given.targets.iter().find(|text| !is_pattern(text)) else {
        let what =
            if verb == ActVerb::Context(ContextAction::Restore) { "hidden by" } else { "shown that matches" };
        let failure = Failure::not_found(format!("no message is {what} {}", given.targets.join(", ")));
        return Err(failure.hint(
            "a target is an item (812), a range of items (812..840), a hash (r_a1b2c), a call's id, or start...end of a text of \
             the assistant; acpdb context lists them",
        ));
    };
    let how = match verb {
        ActVerb::Context(ContextAction::Restore) => "shown already, or ",
        ActVerb::Context(_) => "hidden already, or ",
        ActVerb::Pin | ActVerb::Unpin => "",
    };
    let (name, _) = split_summary(text, &|text| typed.is_call(text));
    if is_hash(name) {
        // The failure for a hash that no call has.
        acpdb_query::find(typed.store, name, Some(typed.session)).map_err(super::find::failure)?;
    }
    let name = bare(name);
    Ok(format!("nothing changed: {how}not in the context; acpdb explain {name} says how it stands"))
}

/// An act for programs.
pub(crate) fn act_json(reply: &ActReply) -> Value {
    let ids = |items: &[ItemId]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "schema": "acpdb.act/1",
        "reply": reply.text,
        "last_seq": reply.last_seq,
        "hidden": ids(&reply.hidden),
        "shown": ids(&reply.shown),
    })
}

/// The result of an act with typed targets.
enum ActResult {
    Context(ActReply),
    /// Memory items that hold again.
    Memory(ActReply),
}

fn from_arguments(
    typed: &Typed<'_>,
    verb: ActVerb,
    given: &Targets,
    pin: bool,
) -> Result<ActResult, Failure> {
    let (store, stream) = (typed.store, typed.session.id);
    if given.targets.is_empty() {
        return Err(Failure::usage("no target is given")
            .hint("in a shell, write 297 or '#297'; acpdb context lists what there is"));
    }
    let alone = || given.targets.iter().map(|text| typed.read(text)).collect::<Result<Vec<_>, _>>();
    let reply = match verb {
        ActVerb::Pin => pinned(typed, alone()?)?,
        ActVerb::Unpin => store.unpin(stream, alone()?)?,
        ActVerb::Context(ContextAction::Restore) => {
            let targets = alone()?;
            if let Some(reply) = restore_memory(typed, &targets)? {
                return Ok(ActResult::Memory(reply));
            }
            if pin {
                store.restore_pinned(stream, targets)?
            } else {
                let targets = targets.into_iter().map(|target| (target, None)).collect();
                store.context(stream, ContextAction::Restore, targets)?
            }
        }
        ActVerb::Context(ContextAction::Distill) => {
            let pairs = given.targets.iter().map(|text| {
                let (name, summary) = split_summary(text, &|text| typed.is_call(text));
                Ok((typed.read(name)?, summary.map(str::to_owned)))
            });
            store.context(stream, ContextAction::Distill, pairs.collect::<Result<_, Failure>>()?)?
        }
        ActVerb::Context(action) => {
            let targets = alone()?.into_iter().map(|target| (target, None)).collect();
            store.context(stream, action, targets)?
        }
    };
    Ok(ActResult::Context(reply))
}

/// Pins the targets that are in the context: no rule looks at the others.
fn pinned(typed: &Typed<'_>, given: Vec<Target>) -> Result<ActReply, Failure> {
    let asked = !given.is_empty();
    let targets: Vec<Target> = {
        let state = typed.view.state();
        let found = |target: &Target| match target {
            Target::Item(item) => state.find(*item),
            Target::Call(call) => state.calls_by_host_id(call, Seq::MAX).last().copied(),
            // The engine looks for hashes in the context alone.
            Target::Auto(_) | Target::Shown(_) => None,
        };
        let is_in = |target: &Target| found(target).is_none_or(|ix| state.is_in_context(ix, Seq::MAX));
        given.into_iter().filter(is_in).collect()
    };
    if asked && targets.is_empty() {
        return Ok(ActReply { text: "Pinned 0 item(s)".to_owned(), ..ActReply::default() });
    }
    Ok(typed.store.pin(typed.session.id, targets)?)
}

/// `context restore '#812'` where `#812` is a memory item that the session sees: the item holds again. `None` if no target is one.
fn restore_memory(typed: &Typed<'_>, targets: &[Target]) -> Result<Option<ActReply>, Failure> {
    let (store, scope) = (typed.store, MemoryScope::session(typed.session.id));
    let memory = store.memory(&scope, Seq::MAX)?;
    let items: Vec<ItemId> = memory.read(store.now(), |view| {
        let item = |target: &Target| match target {
            Target::Item(item) => view.by_item(*item).map(|_| *item),
            _ => None,
        };
        targets.iter().filter_map(item).collect()
    });
    if items.is_empty() {
        return Ok(None);
    }
    if items.len() < targets.len() {
        let failure = Failure::usage("some of the targets are memory items, and some are not");
        return Err(failure.hint("restore memory items with a command of their own"));
    }
    let mut reply =
        ActReply { text: format!("Restored {} memory item(s)", items.len()), ..ActReply::default() };
    for item in items {
        let receipt = store.remember(&scope, &MemoryCommand::Restore { item: MemoryRef::Item(item) })?;
        reply.last_seq = Some(receipt.last_seq);
        reply.shown.push(item);
    }
    Ok(Some(reply))
}

fn from_stdin(typed: &Typed<'_>, verb: ActVerb, pin: bool) -> Result<ActReply, Failure> {
    let (store, stream) = (typed.store, typed.session.id);
    let mut bytes = Vec::new();
    // One byte over the limit shows that the input is too long.
    let read = std::io::stdin().lock().take(REQUEST_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(Failure::io("read", "standard input"))?;
    if bytes.len() as u64 > REQUEST_BYTES_MAX {
        return Err(Failure::usage(format!("standard input is longer than {REQUEST_BYTES_MAX} bytes")));
    }
    let text = acpdb_hosts::lines::text(&bytes)
        .map_err(|error| Failure::usage(format!("standard input is refused: {error}")))?;
    let mut call: Value = serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("standard input is not JSON: {error}")))?;
    let name = verb.name();
    let asked = call.get("action").and_then(Value::as_str).unwrap_or(name);
    if asked != name {
        return Err(Failure::usage(format!("the command is {name}, but standard input asks to {asked}")));
    }
    call = describe::with(call, json!({"action": name}));
    if pin {
        call = describe::with(call, json!({"pin": true}));
    }
    if let ActVerb::Context(_) = verb {
        return Ok(store.context_tool(stream, &call.to_string())?);
    }
    let rows = call.get("targets").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut targets = Vec::new();
    for row in &rows {
        let text = row.as_str().or_else(|| row.get(0).and_then(Value::as_str));
        let text = text.ok_or_else(|| Failure::usage(format!("{row} is no target; give [[target], ..]")))?;
        targets.push(typed.read(text)?);
    }
    if verb == ActVerb::Pin { pinned(typed, targets) } else { Ok(store.unpin(stream, targets)?) }
}
