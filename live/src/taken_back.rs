//! Messages that a host's session no longer has, and those that are there again.
//!
//! ```text
//! store   A B C D      host  A B        C and D were taken back, at the end       Rewound to before C
//! store   A B C D      host  A C D      B was taken out of the middle             ContextReplaced by A C D
//! store   A B (C D)    host  A B C D    the user took that back again             C and D are told anew, as C@2 and D@2
//! store   A(x y) B     host  A(x) B     a part was taken out of a message         ContextReplaced by A(x) B
//! store   A(x (y))     host  A(x y)     the user took that back again             A is told anew, as A@2
//! ```
//!
//! Items that a rewind left do not come back, so a message that is there again is told under a new name. Only sessions that are read whole
//! are compared: those of opencode, and documents of Gemini CLI that are not the past of a log.

use std::collections::{HashMap, HashSet};

use acpdb_engine::entry::{Entry, Fact, ItemRef, PointRef, fact};
use acpdb_engine::event::ReplaceCause;
use acpdb_engine::fold::CauseView;
use acpdb_engine::fold::ItemView;
use acpdb_engine::ids::{ItemId, Seq, StreamId};
use acpdb_engine::store::Session;
use acpdb_engine::{Error, Store, StreamInfo};
use acpdb_hosts::import::PresentMessage;

use crate::if_there;

/// Messages of a session that are told anew, and the numbers of their tellings.
#[derive(Debug, Default)]
pub(crate) struct RetoldMessages {
    stream: Option<StreamId>,
    numbers: HashMap<String, u32>,
}

/// A message's key without the number of its telling, and without that of a second message of the same id.
fn base(key: &str) -> (&str, u32) {
    let key = key.strip_prefix(QUESTION).unwrap_or(key);
    let (own, number) = key.split_once('@').unwrap_or((key, "1"));
    // A name of the host's own that holds the sign is told for the first time.
    (own.split('+').next().unwrap_or(own), number.parse().unwrap_or(1))
}

/// The beginning of the key of a text that no part has.
const QUESTION: &str = "question:";

/// The newest telling of a message.
#[derive(Default)]
struct Telling {
    number: u32,
    /// Whether its last item is off the branch.
    is_off: bool,
    /// Items of parts, and whether each is off the branch.
    items: Vec<(Seq, bool)>,
    /// Whether it is told anew, by what is known of its parts.
    is_again: bool,
}

/// The newest telling of each message of a session.
fn tellings(history: &[ItemView]) -> HashMap<&str, Telling> {
    let mut newest: HashMap<&str, Telling> = HashMap::new();
    for item in history {
        let Some(key) = item.message.as_deref() else { continue };
        let (own, number) = base(key);
        let telling = newest.entry(own).or_default();
        if number > telling.number {
            *telling = Telling { number, ..Telling::default() };
        }
        if number == telling.number {
            telling.is_off = matches!(item.output.cause, Some(CauseView::OffBranch { .. }));
            if !key.starts_with(QUESTION) {
                telling.items.push((item.item.seq, telling.is_off));
            }
        }
    }
    newest
}

/// The fact that takes back what the host's session no longer has, and the messages that are there again.
pub(crate) fn taken_back(
    store: &Store,
    stream: &StreamInfo,
    messages: Vec<PresentMessage>,
) -> Result<(Option<Entry>, RetoldMessages), Error> {
    let mut again = RetoldMessages { stream: Some(stream.id()), numbers: HashMap::new() };
    let Some(view) = if_there(store.view(stream.id()))? else { return Ok((None, again)) };
    let session = store.session(stream.clone());
    let history = view.history();
    let mut newest = tellings(&history);
    // Items of parts that a message has no more.
    let mut gone_parts: HashSet<Seq> = HashSet::new();
    let mut present: HashSet<String> = HashSet::new();
    let origins = messages.iter().filter_map(|PresentMessage { key, items }| {
        Some(numbered(items.as_deref()?, newest.get(key.as_str())?.number))
    });
    // Of all messages at once: each look catches up with the log.
    let there: HashSet<Seq> = session.events_of(origins.flatten())?.into_iter().collect();
    for PresentMessage { key, items } in messages {
        if let (Some(telling), Some(_)) = (newest.get_mut(key.as_str()), items) {
            // Items that a rewind left do not come back as themselves: if the host has one again, the whole message is told anew.
            telling.is_again = telling.items.iter().any(|(seq, is_off)| *is_off && there.contains(seq));
            telling.is_off = telling.is_again;
            let gone = telling.items.iter().filter(|(seq, _)| telling.is_again || !there.contains(seq));
            gone_parts.extend(gone.map(|(seq, _)| *seq));
        }
        present.insert(key);
    }
    let mut kept: Vec<ItemId> = Vec::new();
    let mut gone: Option<&ItemView> = None;
    let mut is_last = true;
    for item in history.iter().filter(|item| item.in_context) {
        let own = item.message.as_deref().map(base);
        let is_there =
            own.is_none_or(|(own, _)| present.contains(own) && !gone_parts.contains(&item.item.seq));
        if is_there {
            is_last &= own.is_none() || gone.is_none();
            kept.push(item.item);
        } else {
            gone = gone.or(Some(item));
        }
    }
    let there = newest.iter().filter(|(own, _)| present.contains(**own));
    again.numbers = there
        .map(|(own, telling)| ((*own).to_owned(), telling.number + u32::from(telling.is_off)))
        .filter(|(_, number)| *number > 1)
        .collect();
    let Some(first) = gone else { return Ok((None, again)) };
    let fact: Fact = if is_last {
        fact::Rewound { to: PointRef::Seq(before(first, &history, &session)?) }.into()
    } else {
        let order = kept.into_iter().map(ItemRef::Id).collect();
        fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None }.into()
    };
    Ok((Some(Entry::from(fact)), again))
}

/// Origins of the telling of this number.
fn numbered(origins: &[String], number: u32) -> impl Iterator<Item = String> {
    let named = move |origin: &String| if number > 1 { format!("{origin}@{number}") } else { origin.clone() };
    origins.iter().map(named)
}

/// The point before an item; if its message begins with it, the point before the message.
fn before(item: &ItemView, history: &[ItemView], session: &Session) -> Result<Seq, Error> {
    let mut first = item.item.seq;
    let earlier = history.iter().map(|other| other.item.seq).filter(|seq| *seq < first).max();
    if let Some(key) = item.message.as_deref() {
        let facts = ["prompt:", "replaced:", "msg:"].map(|kind| format!("{kind}{key}"));
        let facts = session.events_of(facts)?.into_iter();
        first = facts.filter(|seq| earlier.is_none_or(|earlier| earlier < *seq)).fold(first, Seq::min);
    }
    Ok(Seq(first.get().saturating_sub(1)))
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

    /// The texts of the context behind imports of exports, one after the other. `a xy` is a message with the parts `x` and `y`, `|` stands
    /// before the message or part that the session is reverted to.
    fn contexts(exports: &[&[&str]]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
        let mut told = Vec::new();
        for messages in exports {
            let mut revert = String::new();
            let mut message = |word: &&str| {
                let (name, parts) = word.split_once(' ').unwrap_or((word, word));
                let (name, parts) = (name.trim_start_matches('|'), parts.trim_start_matches('|'));
                if let Some((_, part)) = parts.split_once('|') {
                    let part = part.split_at(1).0;
                    revert = format!(r#","revert":{{"messageID":"msg_{name}","partID":"prt_{part}"}}"#);
                } else if word.starts_with('|') {
                    revert = format!(r#","revert":{{"messageID":"msg_{name}"}}"#);
                }
                let part = |part: char| format!(r#"{{"id":"prt_{part}","type":"text","text":"{part}"}}"#);
                let parts: Vec<String> = parts.chars().filter(|part| *part != '|').map(part).collect();
                format!(r#"{{"info":{{"id":"msg_{name}","role":"user"}},"parts":[{}]}}"#, parts.join(","))
            };
            let list: Vec<String> = messages.iter().map(&mut message).collect();
            let text = format!(
                r#"{{"info":{{"id":"ses_1","directory":"/w"{revert}}},"messages":[{}]}}"#,
                list.join(",")
            );
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

    /// A revert behind another that the user had taken back went to where its message had stood first, and took more with it.
    #[test]
    fn a_revert_goes_to_where_its_message_stands_now() {
        let (all, at_b, at_d) =
            (&["a", "b", "c", "d"][..], &["a", "|b", "c", "d"][..], &["a", "b", "c", "|d"][..]);
        assert_eq!(contexts(&[at_d, all, at_b]), ["a b c", "a b c d", "a"]);
        assert_eq!(contexts(&[all, at_b, all, at_d, all]), ["a b c d", "a", "a b c d", "a b c", "a b c d"]);
        // Messages that came and were reverted between two imports are told, and taken back.
        assert_eq!(
            contexts(&[&["a", "b"], all, at_b, &["a", "b", "c", "d", "|e"]]),
            ["a b", "a b c d", "a", "a b c d"]
        );
    }

    /// Parts that were taken out of a message stayed in the context; those that came back were told beside the others.
    #[test]
    fn parts_leave_the_context_and_come_back() {
        let (all, gone) = (&["a", "b xyz", "c"][..], &["a", "b xz", "c"][..]);
        assert_eq!(contexts(&[all, gone]), ["a x y z c", "a x z c"]);
        let (reverted, done) = (&["a", "b x|yz", "c"][..], &["a", "b x", "d"][..]);
        assert_eq!(contexts(&[all, reverted, all, reverted]), ["a x y z c", "a x", "a x y z c", "a x"]);
        assert_eq!(contexts(&[all, reverted, done]), ["a x y z c", "a x", "a x d"]);
        assert_eq!(contexts(&[reverted, all]), ["a x", "a x y z c"]);
    }
}
