//! Messages whose calls and results are blocks of their content, as Anthropic's are.
//!
//! ```text
//! {role: assistant, content: [{type: tool_use, id, name, input}]}
//! {role: user, content: [{type: tool_result, tool_use_id, content}]}
//! {role: model, parts: [{text}, {functionCall}]}                           contents of Gemini, as its checkpoints list them
//! {role: assistant, message: {content: [..]}}                              lines of Cursor's transcripts
//! ```
//!
//! Such messages are read like a request to that provider. A conversation with such blocks that is no such request is read
//! as chat, and a note says that its calls are not read: else they would be lost in silence.

use std::borrow::Cow;
use std::collections::HashSet;

use acpdb_engine::entry::{Entry, Fact};

use super::super::json::{elements, member, pick, string};
use super::super::turns::digest;
use super::super::wire;
use crate::exchange;
use crate::export::Format;

/// The facts of each message, if any of them holds calls or results as blocks; `Err`: some do, and they cannot be read.
pub(super) fn read(head: &str, messages: &[&str]) -> Option<Result<ChatFacts, &'static str>> {
    let has_parts =
        |message: &&str| member(Some(message), "parts").is_some_and(|parts| parts.starts_with('['));
    let is_gemini = !messages.is_empty() && messages.iter().all(has_parts);
    let inner: Vec<Cow<'_, str>> = messages.iter().map(|message| inner(message)).collect();
    if !is_gemini && !inner.iter().any(|message| has_calls(message)) {
        return None;
    }
    let whole = !is_gemini && head.starts_with('{') && member(Some(head), "messages").is_some();
    let list = if is_gemini { "contents" } else { "messages" };
    let body = if whole { head.to_owned() } else { format!("{{\"{list}\":[{}]}}", inner.join(",")) };
    let provider = if is_gemini { Format::Gemini } else { Format::Anthropic };
    let talk = exchange::request(provider, "", &body);
    let Some(talk) = talk.filter(|talk| talk.messages.len() == messages.len()) else {
        return Some(Err(
            "calls stand in blocks, in a form that is not read; their messages are read without them",
        ));
    };
    let told = talk.messages.iter().map(|message| {
        let mut entries = Vec::new();
        message.entries(&mut entries);
        entries
    });
    let head = whole.then(|| talk.head.entry().origin("head"));
    Some(Ok(ChatFacts { told: told.collect::<Vec<_>>().into_iter(), head, index: 0, used: HashSet::new() }))
}

/// A message that stands in a member `message`, as in transcripts of Cursor, with its role; else the message itself.
pub(super) fn inner(message: &str) -> Cow<'_, str> {
    let Some([role, content, inner]) = pick(message, ["role", "content", "message"]) else {
        return Cow::Borrowed(message);
    };
    match (role, content, member(inner, "content")) {
        (Some(role), None, Some(content)) => Cow::Owned(format!("{{\"role\":{role},\"content\":{content}}}")),
        _ => Cow::Borrowed(message),
    }
}

fn has_calls(message: &str) -> bool {
    let blocks =
        member(Some(message), "content").filter(|content| content.starts_with('[')).and_then(elements);
    blocks.unwrap_or_default().into_iter().any(|block| {
        matches!(string(member(Some(block), "type")).as_deref(), Some("tool_use" | "tool_result"))
    })
}

/// The facts of messages, one message after the other.
#[derive(Debug)]
pub(super) struct ChatFacts {
    told: std::vec::IntoIter<Vec<Entry>>,
    /// The fact of the parts before the messages.
    head: Option<Entry>,
    index: usize,
    /// Origins of facts that have a record.
    used: HashSet<String>,
}

impl ChatFacts {
    /// Messages that were told.
    pub(super) const fn count(&self) -> usize {
        self.index
    }

    /// Adds the facts of the next message, with its record; gives the origin of the fact that has it.
    pub(super) fn message(&mut self, text: &str, out: &mut Vec<Entry>) -> String {
        let index = self.index;
        self.index = self.index.saturating_add(1);
        let mut entries = self.told.next().unwrap_or_default();
        let bodies = wire::bodies(&entries);
        let is_free = |entry: &&mut Entry| {
            let is_turn = matches!(entry.fact, Fact::TurnStarted(_));
            !is_turn && entry.origin.as_ref().is_some_and(|origin| !self.used.contains(origin))
        };
        let record = wire::build(text.as_bytes(), &bodies);
        let origin = if let Some(entry) = entries.iter_mut().find(is_free) {
            entry.wire = record;
            entry.origin.clone().unwrap_or_default() // It has one: that made it free.
        } else {
            // Nothing is said in it, or its facts were told before under the same names.
            let origin = format!("msg:{index}:{}", digest(text));
            entries.push(Entry::host_record("message", None).origin(&origin).wire(record));
            origin
        };
        self.used.insert(origin.clone());
        out.extend(self.head.take());
        out.append(&mut entries);
        origin
    }
}
