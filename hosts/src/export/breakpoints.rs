//! Where Anthropic's cache is told to keep what it read: `cache_control` in at most four blocks of a request.
//!
//! ```text
//! [tools system | messages ......... end of an earlier request | changed .......... end of the last one ...... end]
//!             1                                              2                                        3        4
//! ```
//!
//! 1, 3 and 4 always; 2 where something that was sent before has changed: up to there the cache can still be read. The
//! provider looks for what it kept at each of these blocks and at up to twenty blocks before it. As all are ends of
//! requests, and each request's end was one of them, what is looked for is at the very block, however long a turn was.
//!
//! The blocks are set in what is sent and not in what is recorded: a context stays the beginning of the next one.

use std::borrow::Cow;

use crate::import::json;

/// Most blocks of a request that may say so.
pub const BREAKPOINT_COUNT_MAX: usize = 4;
/// What such a block says.
const MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;

/// A block of a message.
#[derive(Clone, Copy, Debug)]
struct Block<'a> {
    text: &'a str,
    /// The last one of what was sent with a request.
    ends_request: bool,
}

impl<'a> Block<'a> {
    /// The block as it is without a mark of its own.
    fn plain(&self) -> &'a str {
        let inner = self.text.strip_suffix('}').and_then(|text| text.strip_suffix(MARK));
        inner
            .and_then(|text| text.strip_suffix(','))
            .unwrap_or_else(|| self.text.strip_suffix('}').unwrap_or(self.text))
    }

    fn is_marked(&self) -> bool {
        is_marked(self.text)
    }

    /// Blocks without a text cannot be kept, and reasoning takes no mark.
    fn takes_mark(&self) -> bool {
        let [kind, text] = json::pick(self.text, ["type", "text"]).unwrap_or_default();
        match json::string(kind).as_deref() {
            Some("text") => json::string(text).is_some_and(|text| !text.is_empty()),
            Some("thinking" | "redacted_thinking") | None => false,
            Some(_) => true,
        }
    }
}

fn is_marked(block: &str) -> bool {
    json::pick(block, ["cache_control"]).is_some_and(|[found]| found.is_some())
}

/// The body of a request to Anthropic with `cache_control` where it pays; `before`: the body of the request before it.
///
/// Marks that are there already stay and count; with four of them, or in a body that is not understood, nothing changes.
/// Cost: a pass over both bodies.
///
/// ```
/// use acpdb_hosts::export::with_breakpoints;
///
/// let body = r#"{"system":"You help.","messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}"#;
/// let marked = with_breakpoints(body, None);
/// assert_eq!(marked.matches("cache_control").count(), 2);
/// assert_eq!(with_breakpoints(&marked, None), marked);
/// ```
pub fn with_breakpoints<'b>(body: &'b str, before: Option<&str>) -> Cow<'b, str> {
    let Some([system, tools, messages]) = json::pick(body, ["system", "tools", "messages"]) else {
        return Cow::Borrowed(body);
    };
    let Some(blocks) = messages.and_then(blocks) else { return Cow::Borrowed(body) };
    let head: Vec<&str> =
        [tools, system].into_iter().flatten().filter_map(json::elements).flatten().collect();
    let marked = head.iter().filter(|block| is_marked(block)).count()
        + blocks.iter().filter(|block| block.is_marked()).count();
    let mut edits = Vec::new();
    let wanted = wanted(&blocks, before.and_then(messages_of).as_deref());
    // A head that is marked is kept already.
    let is_head_kept = head.iter().any(|block| is_marked(block));
    let prefix = if is_head_kept { None } else { prefix_mark(body, system, head.last().copied()) };
    let new = wanted.into_iter().filter(|block| !block.is_marked()).map(|block| mark(body, block.text));
    for edit in new.chain(prefix).take(BREAKPOINT_COUNT_MAX.saturating_sub(marked)) {
        edits.push(edit);
    }
    if edits.is_empty() {
        return Cow::Borrowed(body);
    }
    edits.sort_by_key(|(at, ..)| *at);
    let mut out = String::with_capacity(body.len() + edits.len() * 64);
    let mut done = 0;
    for (from, to, text) in edits {
        out.push_str(body.get(done..from).unwrap_or_default());
        out.push_str(&text);
        done = to;
    }
    out.push_str(body.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// The blocks to mark, the most telling first: the end, the end of the request before, and the last end before what changed.
fn wanted<'a>(blocks: &[Block<'a>], before: Option<&[Block<'_>]>) -> Vec<Block<'a>> {
    let ends: Vec<usize> = blocks
        .iter()
        .enumerate()
        .filter_map(|(place, block)| (block.ends_request && block.takes_mark()).then_some(place))
        .collect();
    let mut places: Vec<usize> = ends.iter().rev().take(2).copied().collect();
    if let Some(before) = before {
        let same = blocks.iter().zip(before).take_while(|(one, other)| one.plain() == other.plain()).count();
        // Something that was sent before is gone or reads otherwise: behind it nothing can be read.
        if same < before.len() {
            places.extend(ends.iter().rev().copied().find(|end| *end < same));
        }
    }
    let mut found: Vec<usize> = Vec::new();
    for place in places {
        if !found.contains(&place) {
            found.push(place);
        }
    }
    found.into_iter().filter_map(|place| blocks.get(place).copied()).collect()
}

fn messages_of(body: &str) -> Option<Vec<Block<'_>>> {
    let [messages] = json::pick(body, ["messages"])?;
    blocks(messages?)
}

/// The blocks of messages. A message whose content is one text has none.
fn blocks(messages: &str) -> Option<Vec<Block<'_>>> {
    let mut found = Vec::new();
    for message in json::elements(messages)? {
        let [role, content] = json::pick(message, ["role", "content"])?;
        let is_user = json::string(role).as_deref() == Some("user");
        let texts = content.and_then(json::elements).unwrap_or_default();
        let count = texts.len();
        let of_message = texts.into_iter().enumerate();
        found.extend(
            of_message.map(|(place, text)| Block { text, ends_request: is_user && place + 1 == count }),
        );
    }
    Some(found)
}

type Edit = (usize, usize, String);

fn start(body: &str, slice: &str) -> usize {
    slice.as_ptr().addr().saturating_sub(body.as_ptr().addr())
}

/// The mark of a block, before the brace that closes it.
fn mark(body: &str, block: &str) -> Edit {
    let end = start(body, block).saturating_add(block.len()).saturating_sub(1);
    let is_empty = block.get(1..block.len().saturating_sub(1)).is_some_and(|inner| inner.trim().is_empty());
    (end, end, if is_empty { MARK.to_owned() } else { format!(",{MARK}") })
}

/// The mark of the head: in its last block, or around a system prompt that is one text.
fn prefix_mark(body: &str, system: Option<&str>, last: Option<&str>) -> Option<Edit> {
    match system {
        Some(text) if text.starts_with('"') && text != "\"\"" => {
            let from = start(body, text);
            let block = format!("[{{\"type\":\"text\",\"text\":{text},{MARK}}}]");
            Some((from, from.saturating_add(text.len()), block))
        }
        _ => last.map(|block| mark(body, block)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn user(texts: &[&str]) -> Value {
        let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        json!({"role": "user", "content": blocks})
    }

    fn body(messages: &[Value]) -> String {
        json!({"system": "be brief", "messages": messages}).to_string()
    }

    fn says() -> Value {
        json!({"role": "assistant", "content": [{"type": "text", "text": "yes"}]})
    }

    /// The texts of marked blocks, in order; `system` for the head.
    fn marked(body: &str) -> Vec<String> {
        let value: Value = serde_json::from_str(body).unwrap();
        let head = value["system"].as_array().into_iter().flatten();
        let blocks = value["messages"].as_array().unwrap().iter();
        let blocks = blocks.flat_map(|message| message["content"].as_array().unwrap());
        let all = head.chain(blocks).filter(|block| block.get("cache_control").is_some());
        all.map(|block| block["text"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_head_and_the_ends_of_the_last_two_requests_are_kept() {
        let first = body(&[user(&["a", "b"])]);
        assert_eq!(marked(&with_breakpoints(&first, None)), ["be brief", "b"]);
        let second = body(&[user(&["a"]), says(), user(&["b"])]);
        let third = body(&[user(&["a"]), says(), user(&["b"]), says(), user(&["c", "d"])]);
        assert_eq!(marked(&with_breakpoints(&third, Some(&second))), ["be brief", "b", "d"]);
    }

    #[test]
    fn the_last_end_before_what_changed_is_kept_too() {
        let turns = |second: &str| {
            [user(&["a"]), says(), user(&[second]), says(), user(&["c"]), says(), user(&["d"])]
        };
        let before = body(turns("b").get(..5).unwrap());
        let now = body(&turns("[gone]"));
        assert_eq!(marked(&with_breakpoints(&now, Some(&before))), ["be brief", "a", "c", "d"]);
        // The same whether what was sent before had marks or not.
        let sent = with_breakpoints(&before, None).into_owned();
        assert_eq!(with_breakpoints(&now, Some(&sent)), with_breakpoints(&now, Some(&before)));
        // Nothing changed: the ends of the last two requests are all.
        assert_eq!(marked(&with_breakpoints(&body(&turns("b")), Some(&before))), ["be brief", "c", "d"]);
    }

    #[test]
    fn never_more_than_four_and_never_in_reasoning() {
        let mut system: Vec<Value> = Vec::new();
        for number in 0..3 {
            system.push(
                json!({"type": "text", "text": format!("s{number}"), "cache_control": {"type": "ephemeral"}}),
            );
        }
        let crowded = json!({"system": system, "messages": [user(&["a"]), says(), user(&["b"])]}).to_string();
        assert_eq!(marked(&with_breakpoints(&crowded, None)), ["s0", "s1", "s2", "b"]);
        let thought =
            json!({"role": "user", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}]});
        for untouched in [
            json!({"messages": [thought]}).to_string(),
            json!({"messages": [user(&[""])]}).to_string(),
            json!({"input": []}).to_string(),
            "no json".to_owned(),
        ] {
            assert_eq!(with_breakpoints(&untouched, None), untouched);
        }
    }

    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }

    #[test]
    fn what_is_marked_differs_in_marks_alone() {
        let plain = body(&[user(&["a \u{e9} \"quoted\""]), says(), user(&["b"])]);
        let marked = with_breakpoints(&plain, None).into_owned();
        let mut value: Value = serde_json::from_str(&marked).unwrap();
        strip(&mut value);
        value["system"] = value["system"][0]["text"].clone();
        assert_eq!(value, serde_json::from_str::<Value>(&plain).unwrap());
    }
}
