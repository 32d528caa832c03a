//! Marks for Anthropic's cache: `cache_control` in at most four blocks of a request.
//!
//! ```text
//! [tools system | messages ......... end of an earlier request | changed .......... end of the last one ...... end]
//!             1                                              2                                        3        4
//! ```
//!
//! Marks 1, 3 and 4 are always set; mark 2 where something that was sent before has changed: up to there the cache can
//! still be read. The provider looks for a kept prefix at each of these blocks and at up to twenty blocks before it. All
//! marks are ends of requests, and each request's end was marked, so a kept prefix ends at the very block, however long a
//! turn was.
//!
//! Marks that a host set itself stay and count. A provider refuses a mark for minutes before one for an hour: so a new mark
//! is a copy of the next mark behind it, else of the last mark before it.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use crate::import::json;

/// Most blocks of a request that may have a mark.
pub const BREAKPOINT_COUNT_MAX: usize = 4;
/// The value of a mark, unless the body has other marks to copy.
const MARK: &str = r#"{"type":"ephemeral"}"#;
const NAME: &str = r#""cache_control""#;

/// A block of a message; a message whose content is one text is such a block, too.
#[derive(Clone, Copy, Debug)]
struct MessageBlock<'a> {
    text: &'a str,
    /// The value of its mark, as JSON.
    mark: Option<&'a str>,
    /// Marks of blocks inside of it.
    inner_count: usize,
    /// Whether it is the last block of a user's message, where a request ends.
    ends_request: bool,
}

impl<'a> MessageBlock<'a> {
    fn of(text: &'a str, ends_request: bool) -> Self {
        // These quotes never come from a text: there they have a backslash before them. Most blocks have no mark.
        if memmem::find(text.as_bytes(), NAME.as_bytes()).is_none() {
            return Self { text, mark: None, inner_count: 0, ends_request };
        }
        let [mark, content] = json::pick(text, ["cache_control", "content"]).unwrap_or_default();
        let inner = content.and_then(json::elements).unwrap_or_default();
        let inner_count = inner.iter().filter(|block| mark_of(block).is_some()).count();
        Self { text, mark, inner_count, ends_request }
    }

    /// The block as it is without its mark, in two pieces.
    fn plain(&self) -> (&'a str, &'a str) {
        let whole = (self.text, "");
        let Some(mark) = self.mark else { return whole };
        let from = start(self.text, mark);
        let (Some(before), Some(after)) = (self.text.get(..from), self.text.get(from + mark.len()..)) else {
            return whole;
        };
        let name = before.trim_end().strip_suffix(':').and_then(|it| it.trim_end().strip_suffix(NAME));
        let Some(before) = name.map(str::trim_end) else { return whole };
        match before.strip_suffix(',') {
            Some(before) => (before, after),
            None => (before, after.trim_start().strip_prefix(',').unwrap_or(after)),
        }
    }

    /// Whether two blocks are the same but for their marks.
    fn is_same(&self, other: &MessageBlock<'_>) -> bool {
        let bytes = |(one, two): (&'_ str, &'_ str)| one.len() + two.len();
        if self.mark.is_none() && other.mark.is_none() {
            return self.text == other.text;
        }
        let (own, others) = (self.plain(), other.plain());
        bytes(own) == bytes(others)
            && own.0.bytes().chain(own.1.bytes()).eq(others.0.bytes().chain(others.1.bytes()))
    }

    /// Blocks without a text cannot be kept, and reasoning takes no mark.
    fn takes_mark(&self) -> bool {
        if self.text.starts_with('"') {
            return json::string(Some(self.text)).is_some_and(|text| !text.trim().is_empty());
        }
        let [kind, text] = json::pick(self.text, ["type", "text"]).unwrap_or_default();
        match json::string(kind).as_deref() {
            Some("text") => json::string(text).is_some_and(|text| !text.is_empty()),
            Some("thinking" | "redacted_thinking") | None => false,
            Some(_) => true,
        }
    }
}

fn mark_of(block: &str) -> Option<&str> {
    json::pick(block, ["cache_control"]).and_then(|[found]| found)
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
    let Some([system, tools, messages, automatic]) =
        json::pick(body, ["system", "tools", "messages", "cache_control"])
    else {
        return Cow::Borrowed(body);
    };
    let Some(blocks) = messages.and_then(blocks) else { return Cow::Borrowed(body) };
    let head: Vec<&str> =
        [tools, system].into_iter().flatten().filter_map(json::elements).flatten().collect();
    let of_head = head.iter().filter_map(|block| Some((start(body, block), mark_of(block)?)));
    let of_messages = blocks.iter().filter_map(|block| Some((start(body, block.text), block.mark?)));
    // In the order of the request: the provider puts tools before the system prompt, wherever a body has them.
    let marks: Vec<(usize, &str)> = of_head.chain(of_messages).collect();
    let inner_count: usize = blocks.iter().map(|block| block.inner_count).sum();
    // A `cache_control` of the body itself leaves the block to the provider: it counts as a mark.
    let marked = marks.len() + inner_count + usize::from(automatic.is_some());
    // A body that has more marks than the provider takes gets none from here.
    let left = BREAKPOINT_COUNT_MAX.saturating_sub(marked);
    if left == 0 {
        return Cow::Borrowed(body);
    }
    // A head that is marked is kept already.
    let is_head_kept = head.iter().any(|block| mark_of(block).is_some());
    let wanted = wanted(&blocks, before.and_then(messages_of).as_deref());
    let new = wanted.into_iter().filter(|block| block.mark.is_none()).map(|block| {
        let at = start(body, block.text);
        let next = marks.iter().filter(|(place, _)| *place > at).min_by_key(|(place, _)| *place);
        let says = next.or(marks.last()).map_or(MARK, |(_, mark)| mark);
        mark(body, block.text, says)
    });
    let prefix = if is_head_kept {
        None
    } else {
        prefix_mark(body, system, head.last().copied(), marks.first().map_or(MARK, |(_, mark)| mark))
    };
    let edits: Vec<Edit> = new.chain(prefix).take(left).collect();
    if edits.is_empty() { Cow::Borrowed(body) } else { Cow::Owned(json::edited(body, edits)) }
}

/// The blocks to mark, the most useful first: the end; the last end before the first change, if there is one; the end of
/// the request before.
fn wanted<'a>(blocks: &[MessageBlock<'a>], before: Option<&[MessageBlock<'_>]>) -> Vec<MessageBlock<'a>> {
    let ends: Vec<usize> = blocks
        .iter()
        .enumerate()
        .filter_map(|(place, block)| (block.ends_request && block.takes_mark()).then_some(place))
        .collect();
    let mut places: Vec<usize> = ends.last().copied().into_iter().collect();
    if let Some(before) = before {
        let same = blocks.iter().zip(before).take_while(|(one, other)| one.is_same(other)).count();
        // A block that was sent before is gone or differs: behind it the cache cannot be read.
        if same < before.len() {
            places.extend(ends.iter().rev().copied().find(|end| *end < same));
        }
    }
    places.extend(ends.iter().rev().nth(1));
    let mut found: Vec<usize> = Vec::new();
    for place in places {
        if !found.contains(&place) {
            found.push(place);
        }
    }
    found.into_iter().filter_map(|place| blocks.get(place).copied()).collect()
}

fn messages_of(body: &str) -> Option<Vec<MessageBlock<'_>>> {
    let [messages] = json::pick(body, ["messages"])?;
    blocks(messages?)
}

/// The blocks of messages.
fn blocks(messages: &str) -> Option<Vec<MessageBlock<'_>>> {
    let mut found = Vec::new();
    for message in json::elements(messages)? {
        let [role, content] = json::pick(message, ["role", "content"])?;
        let is_user = json::string(role).as_deref() == Some("user");
        let Some(content) = content else { continue };
        if content.starts_with('"') {
            found.push(MessageBlock::of(content, is_user));
            continue;
        }
        let texts = json::elements(content).unwrap_or_default();
        let count = texts.len();
        let of_message = texts.into_iter().enumerate();
        found.extend(of_message.map(|(place, text)| MessageBlock::of(text, is_user && place + 1 == count)));
    }
    Some(found)
}

/// A replacement in the body.
type Edit = (Range<usize>, String);

fn start(body: &str, slice: &str) -> usize {
    // Each marked block was picked out of the body.
    json::range_in(body, slice).map_or(0, |range| range.start)
}

/// The mark of a block, before the brace that closes it, or around a content that is one text.
fn mark(body: &str, block: &str, says: &str) -> Edit {
    if block.starts_with('"') {
        return mark_text(body, block, says);
    }
    // A block has at least its two braces.
    let end = (start(body, block) + block.len()).saturating_sub(1);
    let is_empty = block.get(1..block.len().saturating_sub(1)).is_some_and(|inner| inner.trim().is_empty());
    let comma = if is_empty { "" } else { "," };
    (end..end, format!("{comma}{NAME}:{says}"))
}

fn mark_text(body: &str, text: &str, says: &str) -> Edit {
    let from = start(body, text);
    let block = format!("[{{\"type\":\"text\",\"text\":{text},{NAME}:{says}}}]");
    (from..from.saturating_add(text.len()), block)
}

/// The mark of the head: in its last block, or around a system prompt that is one text.
fn prefix_mark(body: &str, system: Option<&str>, last: Option<&str>, says: &str) -> Option<Edit> {
    match system {
        Some(text) if text.starts_with('"') && text != "\"\"" => Some(mark_text(body, text, says)),
        _ => last.map(|block| mark(body, block, says)),
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

    /// The same for bodies in which the content of some messages is one text.
    fn marked_texts(body: &str) -> Vec<String> {
        let mut value: Value = serde_json::from_str(body).unwrap();
        for message in value["messages"].as_array_mut().unwrap() {
            if let Some(text) = message["content"].as_str() {
                message["content"] = json!([{"type": "text", "text": text}]);
            }
        }
        marked(&value.to_string())
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
        // The marks are the same whether the request before had marks or not.
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
        let four =
            json!({"cache_control": {"type": "ephemeral"}, "system": system, "messages": [user(&["a"])]});
        for untouched in [
            four.to_string(),
            json!({"messages": [thought]}).to_string(),
            json!({"messages": [{"role": "user", "content": " "}]}).to_string(),
            json!({"messages": [user(&[""])]}).to_string(),
            json!({"input": []}).to_string(),
            "no json".to_owned(),
        ] {
            assert_eq!(with_breakpoints(&untouched, None), untouched);
        }
    }

    #[test]
    fn marks_of_the_host_are_no_change_and_say_how_long() {
        let hour = json!({"type": "ephemeral", "ttl": "1h"});
        let marked_user = |text: &str| json!({"role": "user", "content": [{"cache_control": hour, "type": "text", "text": text}]});
        let before = body(&[user(&["a"]), says(), marked_user("b")]);
        let plain = body(&[user(&["a"]), says(), user(&["b"]), says(), user(&["c"])]);
        // The host moves its own mark from request to request.
        let now = body(&[user(&["a"]), says(), user(&["b"]), says(), marked_user("c")]);
        assert_eq!(marked(&with_breakpoints(&now, Some(&before))), ["be brief", "b", "c"]);
        assert_eq!(marked(&with_breakpoints(&plain, Some(&before))), ["be brief", "b", "c"]);
        // A mark for minutes before one for an hour is refused.
        let made = with_breakpoints(&now, Some(&before)).into_owned();
        assert_eq!(made.matches(r#""ttl":"1h""#).count(), 3, "{made}");
        // Blocks inside of a result count, too.
        let inner: Vec<Value> = (0..3)
            .map(|place| json!({"type": "text", "text": format!("r{place}"), "cache_control": hour}))
            .collect();
        let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": inner}]});
        let made = with_breakpoints(&body(&[user(&["a"]), says(), result]), None).into_owned();
        assert_eq!(made.matches("cache_control").count(), BREAKPOINT_COUNT_MAX);
    }

    #[test]
    fn a_content_that_is_one_text_becomes_a_block() {
        let ask = |text: &str| json!({"role": "user", "content": text});
        let before = body(&[ask("a"), says(), ask("b")]);
        let now = body(&[ask("a"), says(), ask("other"), says(), ask("c")]);
        assert_eq!(marked_texts(&with_breakpoints(&before, None)), ["be brief", "a", "b"]);
        assert_eq!(marked_texts(&with_breakpoints(&now, Some(&before))), ["be brief", "a", "other", "c"]);
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
