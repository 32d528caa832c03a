//! An answer, whole or in pieces: as the messages that the next request makes of it, and its cost.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::entry::{Entry, PartEntry, fact};
use acpdb_engine::event::{Report, Usage};
use serde_json::Value;

use super::{ConversationState, Talk};
use crate::export::Format;
use crate::import::json::{elements, owned, pick};

/// The messages of an answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The messages, their calls, and their cost.
    pub entries: Vec<Entry>,
    /// The names of the messages, in order; at least one.
    pub keys: Vec<String>,
    /// The conversation up to here; `None`: the provider gave the answer no name.
    pub known: Option<ConversationState>,
}

/// Reads an answer to a request. `None`: the answer is an error, its end did not come, it has several choices, or its calls
/// have no ids; then the next request tells how the program took it.
///
/// Cost: one pass over both.
pub fn answer(format: Format, body: &str, talk: &Talk<'_>) -> Option<Answer> {
    let (pieces, is_whole) = pieces(body)?;
    let wire = &format.request()?.wire;
    let BuiltAnswer { message, report } = (wire.made)(&pieces)?;
    if !is_whole && report.stop_reason.is_none() {
        return None;
    }
    let text = message.to_string();
    let mut names = talk.names.clone();
    let messages = (wire.messages)(&text, &mut names, &mut BTreeSet::new())?;
    if messages.iter().any(|message| message.calls.iter().any(|call| call.id.starts_with(&message.key))) {
        return None;
    }
    let mut entries = Vec::new();
    for message in &messages {
        message.entries(&mut entries);
    }
    // The cost is told of the message that the step begins with.
    let key = messages.first()?.key.clone();
    let known = report.request.clone().map(|answer| ConversationState { answer, names });
    let origin = format!("msg:{key}:finish");
    entries.push(Entry::from(fact::MessageFinished { key, report }).origin(origin));
    Some(Answer { entries, keys: messages.into_iter().map(|message| message.key).collect(), known })
}

/// An answer, put together.
pub(crate) struct BuiltAnswer {
    /// The message as the next request says it: one message, or a list of items.
    pub(crate) message: Value,
    pub(crate) report: Report,
}

/// The objects of an answer (one, a list of them, or the data of a stream's events), and whether its end is among them. `None`:
/// it breaks off in the middle of one.
fn pieces(body: &str) -> Option<(Vec<Value>, bool)> {
    let trimmed = body.trim_start();
    if trimmed.starts_with('{') {
        // An answer that breaks off in the middle is none, as the function says; so below.
        return Some((vec![serde_json::from_str(trimmed).ok()?], true));
    }
    if trimmed.starts_with('[') {
        // As above.
        return Some((serde_json::from_str(trimmed).ok()?, true));
    }
    let (mut pieces, mut is_whole) = (Vec::new(), false);
    let mut data = String::new();
    let mut lines = body.lines();
    loop {
        let line = lines.next();
        match line {
            Some(line) if line.starts_with("data:") => {
                data.push_str(line.strip_prefix("data:").unwrap_or(line));
                data.push('\n');
            }
            Some(line) if !line.is_empty() => {}
            _ => {
                let event = std::mem::take(&mut data);
                let event = event.trim();
                if event == "[DONE]" {
                    is_whole = true;
                } else if !event.is_empty() {
                    // As above.
                    pieces.push(serde_json::from_str(event).ok()?);
                }
                if line.is_none() {
                    return Some((pieces, is_whole));
                }
            }
        }
    }
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

pub(crate) fn count(value: &Value, place: &str) -> Option<u64> {
    value.pointer(place).and_then(Value::as_u64)
}

/// Adds a piece to the text of this name.
pub(crate) fn add(texts: &mut BTreeMap<&'static str, String>, name: &'static str, piece: &Value) {
    if let Some(piece) = text(piece, name) {
        texts.entry(name).or_default().push_str(piece);
    }
}

/// A provider's counts of tokens; `asked` is its name for tokens that it read, `said` for tokens that it wrote.
pub(crate) fn usage_of(usage: &Value, asked: &str, said: &str) -> Usage {
    let count = |place: &str| usage.pointer(place).and_then(Value::as_u64);
    let cached = count(&format!("/{asked}_tokens_details/cached_tokens"));
    Usage {
        // The provider's count includes tokens from the cache.
        input: count(&format!("/{asked}_tokens")).map(|all| all.saturating_sub(cached.unwrap_or(0))),
        output: count(&format!("/{said}_tokens")),
        cache_read: cached,
        reasoning: count(&format!("/{said}_tokens_details/reasoning_tokens")),
        ..Usage::default()
    }
}

/// The parts of a text, or of a list of texts, refusals, images, which `image` reads, and others. An empty text is no part.
pub(crate) fn parts(content: Option<&str>, image: impl Fn(&str) -> Option<PartEntry>) -> Vec<PartEntry> {
    if let Some(text) = owned(content) {
        return if text.is_empty() { Vec::new() } else { vec![PartEntry::text(text)] };
    }
    let part = |piece: &str| {
        let [text, refusal] = pick(piece, ["text", "refusal"]).unwrap_or_default();
        let text = owned(text).or_else(|| owned(refusal)).map(PartEntry::text);
        text.or_else(|| image(piece)).unwrap_or_else(|| PartEntry::opaque(piece))
    };
    content.and_then(elements).unwrap_or_default().into_iter().map(part).collect()
}

/// The contents of parts, each as a text.
pub(crate) fn texts(parts: Vec<PartEntry>) -> Vec<String> {
    parts.into_iter().map(|part| String::from_utf8_lossy(&part.bytes).into_owned()).collect()
}
