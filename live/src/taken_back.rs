//! Messages that a host's session no longer has, and those that are there again.
//!
//! ```text
//! store   A B C D      host  A B        C and D were taken back, at the end       Rewound to before C
//! store   A B C D      host  A C D      B was taken out of the middle             ContextReplaced by A C D
//! store   A B (C D)    host  A B C D    the user took that back again             C and D are told anew, as C@2 and D@2
//! ```
//!
//! Items that a rewind left do not come back, so a message that is there again is told under a new name. Only sessions that are read whole
//! are compared: those of opencode, and documents of Gemini CLI that are not the past of a log.

use std::collections::{HashMap, HashSet};

use acpdb_engine::entry::{Entry, Fact, ItemRef, PointRef, fact};
use acpdb_engine::event::ReplaceCause;
use acpdb_engine::fold::CauseView;
use acpdb_engine::ids::{ItemId, Seq, StreamId};
use acpdb_engine::{Error, Store, StreamInfo};

use crate::if_there;

/// Messages of a session that are told anew, and the numbers of their tellings.
#[derive(Debug, Default)]
pub(crate) struct RetoldMessages {
    stream: Option<StreamId>,
    numbers: HashMap<String, u32>,
}

/// A message's key without the number of its telling, and without that of a second message of the same id.
fn base(key: &str) -> (&str, u32) {
    let key = key.strip_prefix("question:").unwrap_or(key);
    let (own, number) = key.split_once('@').unwrap_or((key, "1"));
    // A name of the host's own that holds the sign is told for the first time.
    (own.split('+').next().unwrap_or(own), number.parse().unwrap_or(1))
}

/// The fact that takes back what the host's session no longer has, and the messages that are there again.
pub(crate) fn taken_back(
    store: &Store,
    stream: &StreamInfo,
    keys: &[String],
) -> Result<(Option<Entry>, RetoldMessages), Error> {
    let mut again = RetoldMessages { stream: Some(stream.id()), numbers: HashMap::new() };
    let Some(view) = if_there(store.view(stream.id()))? else { return Ok((None, again)) };
    let present: HashSet<&str> = keys.iter().map(String::as_str).collect();
    // Of each message the newest telling, and whether it is off the branch.
    let mut newest: HashMap<String, (u32, bool)> = HashMap::new();
    let mut kept: Vec<ItemId> = Vec::new();
    let mut gone: Option<Seq> = None;
    let mut is_last = true;
    for item in view.history() {
        let Some(key) = item.message.as_deref() else {
            if item.in_context {
                kept.push(item.item);
            }
            continue;
        };
        let (own, number) = base(key);
        let is_off = matches!(item.output.cause, Some(CauseView::OffBranch { .. }));
        let known = newest.entry(own.to_owned()).or_insert((number, is_off));
        if number >= known.0 {
            *known = (number, is_off);
        }
        if !item.in_context {
            continue;
        }
        if present.contains(own) {
            is_last &= gone.is_none();
            kept.push(item.item);
        } else {
            gone = gone.or(Some(item.item.seq));
        }
    }
    let there = newest.into_iter().filter(|(own, _)| present.contains(&**own));
    again.numbers = there
        .map(|(own, (number, is_off))| (own, number + u32::from(is_off)))
        .filter(|(_, number)| *number > 1)
        .collect();
    let fact: Option<Fact> = gone.map(|first| {
        if is_last {
            fact::Rewound { to: PointRef::Seq(Seq(first.get().saturating_sub(1))) }.into()
        } else {
            let order = kept.into_iter().map(ItemRef::Id).collect();
            fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None }.into()
        }
    });
    Ok((fact.map(Entry::from), again))
}

impl RetoldMessages {
    /// Names the facts of a message that is told anew.
    pub(crate) fn rename(&self, stream: &StreamInfo, entries: &mut [Entry]) {
        if self.numbers.is_empty() || self.stream != Some(stream.id()) {
            return;
        }
        let number =
            entries.iter().filter_map(|entry| key(&entry.fact)).find_map(|key| self.numbers.get(key));
        let Some(number) = number.copied() else { return };
        let again = |name: &mut String| name.push_str(&format!("@{number}"));
        for entry in entries {
            entry.origin.iter_mut().for_each(again);
            match &mut entry.fact {
                Fact::MessageRecorded(fact::MessageRecorded { key, .. })
                | Fact::MessageContinued(fact::MessageContinued { key, .. })
                | Fact::MessageFinished(fact::MessageFinished { key, .. })
                | Fact::TurnStarted(fact::TurnStarted { key, .. }) => again(key),
                Fact::ToolStarted(fact::ToolStarted { message, .. }) => message.iter_mut().for_each(again),
                Fact::HostCleared(fact::HostCleared { items, .. }) => {
                    for item in items {
                        if let ItemRef::Origin(origin, _) = item {
                            again(origin);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// The key of a fact's message.
fn key(fact: &Fact) -> Option<&str> {
    match fact {
        Fact::MessageRecorded(fact::MessageRecorded { key, .. })
        | Fact::MessageContinued(fact::MessageContinued { key, .. })
        | Fact::MessageFinished(fact::MessageFinished { key, .. }) => Some(key),
        Fact::ToolStarted(fact::ToolStarted { message, .. }) => message.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use acpdb_engine::Store;
    use acpdb_hosts::import::{self, ImportFormat, ImportOptions};

    use crate::gather::Gather;

    /// The texts of the context behind imports of exports with these messages, one after the other.
    fn contexts(exports: &[&[&str]]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
        let mut told = Vec::new();
        for messages in exports {
            let message = |name: &&str| {
                format!(
                    r#"{{"info":{{"id":"msg_{name}","role":"user"}},"parts":[{{"id":"prt_{name}","type":"text","text":"{name}"}}]}}"#
                )
            };
            let list: Vec<String> = messages.iter().map(message).collect();
            let text =
                format!(r#"{{"info":{{"id":"ses_1","directory":"/w"}},"messages":[{}]}}"#, list.join(","));
            for _ in 0..2 {
                let mut gather = Gather::new(&store);
                let _ = import::read(
                    ImportFormat::Opencode,
                    "x",
                    text.as_bytes(),
                    &ImportOptions::default(),
                    &mut gather,
                )
                .unwrap();
                gather.flush();
                assert!(gather.error.is_none());
            }
            let view = store.view(acpdb_engine::StreamInfo::session("opencode", "ses_1").id()).unwrap();
            let current = view.current();
            let texts = current.iter().map(|item| view.text(item.content[0].body).unwrap());
            told.push(texts.collect::<Vec<_>>().join(" "));
        }
        told
    }

    /// A rewind in a document of Gemini CLI leaves its messages out: they stayed in the context. A document that a log goes on from is the
    /// past, and takes nothing back.
    #[test]
    fn a_document_that_lost_messages_was_rewound_unless_a_log_goes_on_from_it() {
        for (has_log, expected) in [(false, "a b | a"), (true, "a b | a b")] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
            let path = folder.path().join("session-1.json");
            if has_log {
                std::fs::write(path.with_extension("jsonl"), "").unwrap();
            }
            let told = [&["a", "b"][..], &["a"]].map(|messages| {
                let message = |name: &&str| {
                    format!(r#"{{"id":"{name}","type":"user","content":[{{"text":"{name}"}}]}}"#)
                };
                let list: Vec<String> = messages.iter().map(message).collect();
                let text =
                    format!(r#"{{"sessionId":"s","projectHash":"p","messages":[{}]}}"#, list.join(","));
                std::fs::write(&path, text).unwrap();
                let _ = crate::recording::import(&store, &path, ImportFormat::GeminiCli).unwrap();
                let view = store.view(acpdb_engine::StreamInfo::session("gemini-cli", "s").id()).unwrap();
                let texts = view.current();
                let texts = texts.iter().map(|item| view.text(item.content[0].body).unwrap());
                texts.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(told.join(" | "), expected);
        }
    }

    /// A message that the user had taken back stayed in the context for ever, beside the one that took its place.
    #[test]
    fn what_the_host_has_no_more_leaves_the_context_and_comes_back_with_it() {
        let (all, two, other) = (&["a", "b", "c", "d"][..], &["a", "b"][..], &["a", "b", "e"][..]);
        assert_eq!(contexts(&[all, two, other]), ["a b c d", "a b", "a b e"]);
        assert_eq!(contexts(&[all, two, all, two, all]), ["a b c d", "a b", "a b c d", "a b", "a b c d"]);
        assert_eq!(contexts(&[all, &["a", "c", "d"]]), ["a b c d", "a c d"]);
        assert_eq!(contexts(&[all, other]), ["a b c d", "a b e"]);
    }
}
