//! `acpdb context discard|distill|restore|pin|unpin`: acts on the context, with the exact reply an agent would get.
//!
//! A target is a hash (`r_a1b2c`), a pattern (`start...end`), an item (`#812.2`), or the exact id of a call. Hashes and
//! patterns are what agents type and are decided by the engine; a call's id is taken for one only if it is neither.

use std::io::Read as _;

use acpdb_engine::command::memory::{MemoryCommand, MemoryRef};
use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::ids::{ItemId, Seq, StreamId};
use acpdb_engine::text::HashTarget;
use acpdb_engine::{ActReply, MemoryScope, Store};
use serde_json::{Value, json};

use super::{Code, Escape, Failure, Global, Output, describe, place};
use crate::args::{ContextAct, RestoreTargets, Targets};

/// Longest request that is read from standard input.
const REQUEST_BYTES_MAX: u64 = 16 << 20;

/// What a call of the context tool did.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) last_seq: Option<Seq>,
}

/// What a subcommand asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verb {
    Context(ContextAction),
    Pin,
    Unpin,
}

impl Verb {
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
        ContextAct::Discard(targets) => (Verb::Context(ContextAction::Discard), targets, false),
        ContextAct::Distill(targets) => (Verb::Context(ContextAction::Distill), targets, false),
        ContextAct::Restore(RestoreTargets { targets, pin }) => {
            (Verb::Context(ContextAction::Restore), targets, *pin)
        }
        ContextAct::Pin(targets) => (Verb::Pin, targets, false),
        ContextAct::Unpin(targets) => (Verb::Unpin, targets, false),
    };
    super::at::refuse(global)?;
    let store = place::write(global, output)?;
    let session = super::sessions::default_session_noted(&store, targets.session.as_deref(), output)?;
    let reply = if targets.stdin {
        from_stdin(&store, session.id, verb, pin)?
    } else {
        from_arguments(&store, session.id, verb, targets, pin)?
    };
    if output.json {
        output.json_line(&act_json(&reply))?;
    } else {
        let text = output.recorded(&reply.text, Escape::Text).into_owned();
        output.line(text)?;
    }
    Ok(Code::Ok)
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

/// Runs a call of the context tool, given as its JSON.
pub(crate) fn tool_call(store: &Store, stream: StreamId, json: &str) -> Result<Reply, Failure> {
    let reply = store.context_tool(stream, json)?;
    Ok(Reply { text: reply.text, last_seq: reply.last_seq })
}

fn from_arguments(
    store: &Store,
    stream: StreamId,
    verb: Verb,
    given: &Targets,
    pin: bool,
) -> Result<ActReply, Failure> {
    let view = store.view(stream)?;
    let is_call = |text: &str| !view.read().state().calls_by_host_id(text, Seq::MAX).is_empty();
    let read = |text: &str| target(text, &is_call);
    let alone = || given.targets.iter().map(|text| read(text)).collect::<Result<Vec<_>, _>>();
    if verb == Verb::Context(ContextAction::Restore)
        && let Some(reply) = restore_memory(store, stream, &alone()?)?
    {
        return Ok(reply);
    }
    let reply = match verb {
        Verb::Pin => store.pin(stream, alone()?)?,
        Verb::Unpin => store.unpin(stream, alone()?)?,
        Verb::Context(ContextAction::Restore) if pin => store.restore_pinned(stream, alone()?)?,
        Verb::Context(ContextAction::Distill) => {
            let pairs = given.targets.iter().map(|text| {
                let (name, summary) = split_summary(text, &is_call);
                Ok((read(name)?, summary.map(str::to_owned)))
            });
            store.context(stream, ContextAction::Distill, pairs.collect::<Result<_, Failure>>()?)?
        }
        Verb::Context(action) => {
            let targets = alone()?.into_iter().map(|target| (target, None)).collect();
            store.context(stream, action, targets)?
        }
    };
    Ok(reply)
}

/// `context restore '#812'` where `#812` is a memory item that the session sees: it holds again. `None` if no target is.
fn restore_memory(store: &Store, stream: StreamId, targets: &[Target]) -> Result<Option<ActReply>, Failure> {
    let scope = MemoryScope::session(stream);
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

fn from_stdin(store: &Store, stream: StreamId, verb: Verb, pin: bool) -> Result<ActReply, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(REQUEST_BYTES_MAX).read_to_string(&mut text);
    read.map_err(Failure::io("read", "standard input"))?;
    let mut call: Value = serde_json::from_str(&text)
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
    if let Verb::Context(_) = verb {
        return Ok(store.context_tool(stream, &call.to_string())?);
    }
    let rows = call.get("targets").and_then(Value::as_array).cloned().unwrap_or_default();
    let view = store.view(stream)?;
    let is_call = |text: &str| !view.read().state().calls_by_host_id(text, Seq::MAX).is_empty();
    let mut targets = Vec::new();
    for row in &rows {
        let text = row.as_str().or_else(|| row.get(0).and_then(Value::as_str));
        let text = text.ok_or_else(|| Failure::usage(format!("{row} is no target; give [[target], ..]")))?;
        targets.push(target(text, &is_call)?);
    }
    Ok(if verb == Verb::Pin { store.pin(stream, targets)? } else { store.unpin(stream, targets)? })
}

/// What a target means: `#812` an item, the exact id of a call that call, anything else what an agent would mean.
fn target(text: &str, is_call: &dyn Fn(&str) -> bool) -> Result<Target, Failure> {
    if text.starts_with('#') {
        let item: ItemId =
            text.parse().map_err(|error| Failure::usage(format!("{text:?} is no item: {error}")))?;
        return Ok(Target::Item(item));
    }
    let is_typed =
        text.contains("...") || HashTarget::parse(text.trim()).is_some_and(|hash| !hash.is_doubtful());
    if !is_typed && is_call(text) {
        Ok(Target::Call(text.to_owned()))
    } else {
        Ok(Target::Shown(text.to_owned()))
    }
}

/// `TARGET=SUMMARY`. The `=` of a pattern's beginning belongs to the pattern: it is split at the first one behind its dots.
fn split_summary<'t>(text: &'t str, is_call: &dyn Fn(&str) -> bool) -> (&'t str, Option<&'t str>) {
    let halves = |from: usize| {
        let place = text.get(from..).and_then(|rest| rest.find('=')).map(|place| from + place);
        match place {
            Some(place) => (text.get(..place).unwrap_or_default(), text.get(place + 1..)),
            None => (text, None),
        }
    };
    let (name, summary) = halves(0);
    let is_name = name.starts_with('#') || HashTarget::parse(name.trim()).is_some() || is_call(name);
    match text.find("...") {
        Some(dots) if !is_name => halves(dots),
        _ => (name, summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_items_calls_hashes_or_patterns() {
        let is_call = |text: &str| text == "call_1" || text == "r_a1b2c";
        let kind = |text: &str| match target(text, &is_call) {
            Ok(Target::Item(item)) => format!("item {item}"),
            Ok(Target::Call(call)) => format!("call {call}"),
            Ok(Target::Auto(text) | Target::Shown(text)) => format!("shown {text}"),
            Err(failure) => format!("error {}", failure.message),
        };
        for (text, meant) in [
            ("#812", "item #812"),
            ("#812.2", "item #812.2"),
            ("call_1", "call call_1"),
            ("call_2", "shown call_2"),
            ("r_a1b2c", "shown r_a1b2c"),
            ("start...end", "shown start...end"),
        ] {
            assert_eq!(kind(text), meant);
        }
        assert!(kind("#x").starts_with("error "), "{}", kind("#x"));
    }

    #[test]
    fn a_summary_follows_the_first_sign_that_is_not_of_the_pattern() {
        let is_call = |text: &str| text == "call_1";
        for (text, name, summary) in [
            ("r_a1b2c=a = b", "r_a1b2c", Some("a = b")),
            ("#8=x...y=z", "#8", Some("x...y=z")),
            ("call_1=s", "call_1", Some("s")),
            ("let a = 1...the end=short", "let a = 1...the end", Some("short")),
            ("a...b", "a...b", None),
            ("r_a1b2c", "r_a1b2c", None),
            ("r_a1b2c=", "r_a1b2c", Some("")),
        ] {
            assert_eq!(split_summary(text, &is_call), (name, summary), "{text}");
        }
    }
}
