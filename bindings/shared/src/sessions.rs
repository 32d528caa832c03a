//! Operations on one session.

use acpdb_engine::command::memory::MemoryCommand;
use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, MemoryEntry, StreamInfo};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::store::{Receipt, Session};
use acpdb_engine::{Error, MemoryScope, Store, View, store::StreamName};
use acpdb_hosts::export::Exporter;
use acpdb_query::when;
use acpdb_serve::ServeOptions;
use serde_json::{Value, json};

use crate::answers::{ActAnswer, MemoryAnswer, told};
use crate::arguments::Arguments;
use crate::fault::{Fault, word};
use crate::stores::format;

/// A frozen view of a session at the head, or at a point given in words.
pub fn view(store: &Store, info: &StreamInfo, at: Option<&str>) -> Result<(View, StreamName), Fault> {
    let session = store.session(info.clone());
    // Events that were acknowledged before their sync are in the view, too.
    store.sync()?;
    let Some(stream) = store.stream_name(session.id())? else {
        let (name, nearest) = (info.name.clone(), None);
        return Err(Error::NotFound { what: "session", name, nearest }.into());
    };
    let (view, _) = when::view(store, &stream, at, store.now())?;
    Ok((view, stream))
}

/// Begins the session, or returns the calls that its last host left open.
pub fn resumed(session: &Session) -> Result<Value, Fault> {
    let resumed = session.open_or_resume()?;
    let calls: Vec<_> = resumed
        .calls
        .iter()
        .map(|call| json!({"seq": call.seq, "call": call.call, "tool": call.tool}))
        .collect();
    Ok(json!({"is_new": resumed.is_new, "calls": calls, "messages": resumed.messages}))
}

/// Ends the calls that were left open, for the given reason.
pub fn give_up(session: &Session, why: &str) -> Result<Receipt, Fault> {
    let resumed = session.open_or_resume()?;
    Ok(session.give_up(&resumed, why)?)
}

/// The context of a step, recorded as sent: its bytes, and facts about them.
pub fn served(session: &Session, it: &Arguments) -> Result<(Vec<u8>, String), Fault> {
    let mut exporter = Exporter::new(format(it.text("format")?)?);
    exporter.options.model = it.owned("model")?;
    exporter.options.breakpoints = it.flag("breakpoints")?;
    let options = ServeOptions {
        mode: it.word("mode")?.map(|mode| word("mode", mode)).transpose()?,
        tokens_max: it.number("tokens_max")?,
        cold: it.flag("cold")?,
        prefix_tokens: it.count("prefix_tokens")?,
        inject: it.flag("inject")?,
        price: None,
    };
    let context = acpdb_serve::Step::begin(session, it.text("key")?)?.context(&exporter, &options)?;
    let facts = json!({
        "seq": context.seq,
        "tokens": context.tokens,
        "first_changed": context.first_changed,
        "breakpoints": context.breakpoints(),
        "rebased": context.rebased,
        "notes": context.notes,
        "over_budget": context.over_budget,
    });
    Ok((context.bytes, told(&facts)?))
}

/// Targets by an agent's names for them; `#seq` means an item, the exact id of a call means the call.
fn targets(session: &Session, given: &[String]) -> Result<Vec<Target>, Error> {
    let view = session.view()?;
    let is_call = |text: &str| !view.state().calls_by_host_id(text, Seq::MAX).is_empty();
    let target = |text: &String| {
        let item = text.strip_prefix('#').and_then(|_| text.parse::<ItemId>().ok());
        match item {
            Some(item) => Target::Item(item),
            None if is_call(text) => Target::Call(text.clone()),
            None => Target::Auto(text.clone()),
        }
    };
    Ok(given.iter().map(target).collect())
}

/// Hides items, hides them behind a summary, or shows them again; with `pin`, rules do not hide them again.
pub fn act(
    store: &Store,
    session: &Session,
    action: &str,
    given: Vec<(String, Option<String>)>,
    pin: bool,
) -> Result<ActAnswer, Fault> {
    let action_word: ContextAction = word("action", action)?;
    if given.is_empty() {
        return Err(Fault::invalid(format!("there is nothing to {action}: give at least one target")));
    }
    let (names, summaries): (Vec<String>, Vec<Option<String>>) = given.into_iter().unzip();
    let targets = targets(session, &names)?;
    if pin {
        return Ok(store.restore_pinned(session.id(), targets)?.into());
    }
    Ok(store.context(session.id(), action_word, targets.into_iter().zip(summaries).collect())?.into())
}

/// Keeps items from the rules, or leaves them to the rules again.
pub fn pin(store: &Store, session: &Session, given: &[String], pinned: bool) -> Result<ActAnswer, Fault> {
    let targets = targets(session, given)?;
    let reply = if pinned { store.pin(session.id(), targets) } else { store.unpin(session.id(), targets) };
    Ok(reply?.into())
}

/// The entries of a session, those of memory in the category of their key, as by every door.
pub fn all_placed(store: &Store, info: &StreamInfo, entries: Vec<Entry>) -> Result<Vec<Entry>, Fault> {
    Ok(acpdb_query::memory::all_placed(store, info, entries)?)
}

/// Records a memory item at once, in the layer of its lifespan.
pub fn remember(store: &Store, session: &Session, item: MemoryEntry) -> Result<MemoryAnswer, Fault> {
    // The session has to exist, so that its project is known.
    let _ = session.append([])?;
    let scope = MemoryScope::session(session.id());
    let item = acpdb_query::memory::placed(store, &scope, item)?;
    Ok(store.remember(&scope, &MemoryCommand::Add(item))?.into())
}

/// A command on one memory item.
pub fn remembered(store: &Store, session: &Session, command: &MemoryCommand) -> Result<MemoryAnswer, Fault> {
    Ok(store.remember(&MemoryScope::session(session.id()), command)?.into())
}
