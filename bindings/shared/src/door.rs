//! The one door: an operation by its name in `surface.toml`, its arguments as JSON, and its answer as a value that JSON can say.
//!
//! ```text
//! {"item": "#12"}  ->  of_view(.., "explain", ..)  ->  {"item": "#12", "visible": false, ..}
//! ```
//!
//! Beside it stands only what JSON does not carry well: facts with their texts, bodies and records as bytes, handles, paths.

use std::path::Path;

use acpdb_engine::Store;
use acpdb_engine::entry::StreamInfo;
use acpdb_engine::ids::Seq;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answers::ActAnswer;
use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::stores::{self, Looked};
use crate::views::Asked;
use crate::{keeping, sessions};

/// The answer of an operation, to be written as a language takes it.
pub type Answer = Box<dyn erased_serde::Serialize + Send>;

#[expect(clippy::unnecessary_wraps, reason = "the end of each arm")]
fn answer(value: impl Serialize + Send + 'static) -> Result<Answer, Fault> {
    Ok(Box::new(value))
}

/// Whether an operation of a store records, so that it is done in the order of the calls. Those of a session do.
pub fn records(operation: &str) -> bool {
    matches!(operation, "retract" | "reinforce" | "set_policy" | "erase" | "erase_records")
}

/// An operation of a store.
pub fn of_store(store: &Store, operation: &str, json: &str) -> Result<Answer, Fault> {
    let it = Arguments::read(json)?;
    // Who records sees it at once, also what was acknowledged before its sync.
    store.sync()?;
    match operation {
        "head" => answer(store.head()?),
        "sync" => answer(()),
        "info" => answer(store.info()?),
        "names" => answer(store.stream_names()?),
        "sessions" => answer(stores::sessions(store, it.text("filter")?)?),
        "find_session" => {
            let found = store.find_stream(it.text("name")?)?;
            answer((found.name, found.host))
        }
        "search" => answer(stores::found(store, &Looked::of(&it)?)?),
        "event" => {
            let found = store.event(Seq(it.count("seq")?))?;
            answer(found.map(|event| stores::event_row(store, &event)))
        }
        "memory" => answer(stores::memory(store, it.owned("project")?, it.word("at")?, it.flag("all")?)?),
        "memory_head" => answer(stores::memory_head(store, it.owned("project")?)?),
        "retract" | "reinforce" => {
            let command = stores::memory_command(operation, it.text("item")?, None, it.owned("reason")?)?;
            answer(stores::remembered_by(store, it.owned("project")?, &command)?)
        }
        "simulate" => {
            let (policies, modes) = (it.texts("policies")?, it.texts("modes")?);
            answer(stores::simulated(store, it.word("session")?, policies, &modes, it.text("price")?)?)
        }
        "policy" => answer(stores::policy(store)?),
        "set_policy" => {
            let policy = match it.any("policy") {
                Some(Value::String(name)) => stores::preset(name)?,
                data => stores::policy_of(json!(data).to_string().as_bytes())?,
            };
            answer(stores::set_policy(store, &policy, it.word("reason")?)?)
        }
        "verify" => answer(stores::verified(store, it.flag("deep")?)?),
        "erase" => {
            let (item, by, reason) = (it.text("item")?, it.text("by")?, it.text("reason")?);
            answer(keeping::erased(store, item, by, reason, it.flag("dry_run")?)?)
        }
        "erase_records" => {
            let (seqs, by, reason) = (it.counts("seqs")?, it.text("by")?, it.text("reason")?);
            answer(keeping::records_erased(store, &seqs, by, reason)?)
        }
        "seal" => answer(keeping::sealed(store, it.flag("active")?)?),
        "backup" => answer(keeping::backup(store, Path::new(it.text("folder")?))?),
        other => Err(unknown("a store", other)),
    }
}

/// An operation of a session. Each records, or may.
pub fn of_session(store: &Store, info: &StreamInfo, operation: &str, json: &str) -> Result<Answer, Fault> {
    let it = Arguments::read(json)?;
    // As above: targets are looked up in a view.
    store.sync()?;
    let session = store.session(info.clone());
    let alone = |names: Vec<String>| names.into_iter().map(|name| (name, None)).collect();
    match operation {
        "resume" => answer(sessions::resumed(&session)?),
        "step" => answer(acpdb_serve::Step::begin(&session, it.text("key")?).map(drop)?),
        "flush" => answer(acpdb_serve::flush(&session)?),
        "discard" => answer(sessions::act(store, &session, operation, alone(it.texts("targets")?), false)?),
        "distill" => answer(sessions::act(store, &session, operation, it.pairs("summaries")?, false)?),
        "restore" => {
            let targets = alone(it.texts("targets")?);
            answer(sessions::act(store, &session, operation, targets, it.flag("pin")?)?)
        }
        "pin" | "unpin" => answer(sessions::pin(store, &session, &it.texts("targets")?, operation == "pin")?),
        "context_tool" => {
            let call = json!(it.any("call")).to_string();
            answer(ActAnswer::from(store.context_tool(session.id(), &call)?))
        }
        "rewind" => answer(ActAnswer::from(store.rewind(session.id(), Seq(it.count("to")?))?)),
        "update_tasks" => {
            let tasks = json!({"tasks": it.any("tasks")}).to_string();
            answer(ActAnswer::from(store.update_tasks(session.id(), tasks.as_bytes())?))
        }
        "retract" | "reinforce" | "supersede" | "restore_memory" => {
            let act = operation.trim_end_matches("_memory");
            let item = it.text(if act == "supersede" { "old" } else { "item" })?;
            let command = stores::memory_command(act, item, it.word("new")?, it.owned("reason")?)?;
            answer(sessions::remembered(store, &session, &command)?)
        }
        other => Err(unknown("a session", other)),
    }
}

/// A question to a view.
pub fn of_view(asked: &Asked<'_>, operation: &str, json: &str) -> Result<Answer, Fault> {
    let it = Arguments::read(json)?;
    match operation {
        "context" => answer(asked.context(it.text("layer")?, it.size("last")?)?),
        "history" => {
            let (file, tool) = (it.word("file")?, it.word("tool")?);
            answer(asked.history(file, tool, it.text("filter")?, it.size("limit")?)?)
        }
        "chain" => answer(asked.chain(it.text("item")?)?),
        "explain" => answer(asked.explain(it.text("item")?)?),
        "is_visible" => answer(asked.is_visible(it.text("item")?)?),
        "tokens" => answer(asked.tokens()),
        "search" => answer(asked.search(&Looked::of(&it)?)?),
        "todos" => answer(asked.todos()?),
        "memory" => answer(asked.memory(it.flag("all")?)?),
        "replaced" => answer(asked.replaced()?),
        "rewind_count" => answer(asked.rewind_count()),
        other => Err(unknown("a view", other)),
    }
}

fn unknown(subject: &str, operation: &str) -> Fault {
    Fault::new("error", format!("{subject} has no operation {operation:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str, read: impl Fn(&Arguments) -> Result<(), Fault>) -> (String, String) {
        let fault = Arguments::read(json).and_then(|it| read(&it)).err();
        fault.map(|fault| (fault.code.to_owned(), fault.text)).unwrap_or_default()
    }

    /// Each operation of the list goes through the door, but for those whose answers or arguments are no JSON.
    #[test]
    fn the_door_has_the_operations_of_the_list() -> Result<(), Box<dyn std::error::Error>> {
        const BESIDE: [&str; 19] = [
            "Session.append",
            "Session.append_expecting",
            "Session.submit",
            "Session.append_lines",
            "Session.give_up",
            "Session.view",
            "Session.fork",
            "Session.remember",
            "Session.records",
            "Session.export",
            "Store.close",
            "Store.session",
            "Store.subscribe",
            "Store.remember",
            "Store.export",
            "View.body",
            "View.records",
            "View.export",
            "Step.context",
        ];
        let folder = std::env::temp_dir().join(format!("acpdb-door-{}", std::process::id()));
        let store = Store::builder(&folder).any_file_system().open()?;
        let info = StreamInfo::session("test", "s1");
        let _ = store.session(info.clone()).append([acpdb_engine::entry::Entry::prompt("p")])?;
        let (view, stream) = sessions::view(&store, &info, None).map_err(|fault| fault.text)?;
        let asked = Asked { store: &store, view: &view, stream: &stream };
        let list = include_str!("../../surface.toml");
        let listed = list.lines().filter_map(|line| line.strip_prefix("[operations.\"")?.strip_suffix("\"]"));
        let is_there = |answer: Result<Answer, Fault>| answer.err().is_none_or(|fault| fault.code != "error");
        for name in listed.filter(|name| !BESIDE.contains(name)) {
            let found = match name.split_once('.') {
                Some(("Store", operation)) => is_there(of_store(&store, operation, "{}")),
                // Questions to a session are asked of a view of it.
                Some(("Session", operation)) => {
                    is_there(of_session(&store, &info, operation, "{}"))
                        || is_there(of_view(&asked, operation, "{}"))
                }
                Some(("View", operation)) => is_there(of_view(&asked, operation, "{}")),
                _ => true,
            };
            assert!(found, "{name} is neither in the door nor beside it");
        }
        store.close()?;
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }

    #[test]
    fn an_argument_that_cannot_be_used_is_named() {
        let table = [
            (r#"{"item": 7}"#, "type", "item is a string, not a number"),
            ("{}", "type", "item is a string, not nothing"),
            (r#"{"item": "\ud83d"}"#, "invalid", "half of a surrogate pair"),
            ("[]", "invalid", "arguments are an object"),
        ];
        for (json, code, says) in table {
            let (found, text) = refused(json, |it| it.text("item").map(drop));
            assert!(found == code && text.contains(says), "{json}: {found} {text}");
        }
        for json in [r#"{"to": -1}"#, r#"{"to": 1.5}"#, r#"{"to": 36893488147419103232}"#] {
            let (found, text) = refused(json, |it| it.count("to").map(drop));
            assert!(found == "invalid" && text.contains("out of range"), "{json}: {found} {text}");
        }
        let (found, text) = refused(r#"{"to": true}"#, |it| it.count("to").map(drop));
        assert_eq!((found.as_str(), text.as_str()), ("type", "to is a whole number, not a bool"));
        let (found, _) = refused(r#"{"seqs": ["1"]}"#, |it| it.counts("seqs").map(drop));
        assert_eq!(found, "type");
    }
}
