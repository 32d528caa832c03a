//! The host's own record of its requests: digests of each message of each request, as Claude Code records them.
//!
//! ```text
//! api-request       id, base, keep, tail[digests]     the request: the first messages of another one, then these
//! api-request-blob  a message that stands in no record as it was sent
//! user, assistant   the other messages
//! ```
//!
//! A digest is the SHA-256 of a message as JSON with sorted members, without white space and without marks of the cache. So the
//! records tell which messages were sent, and [`Prover::against`] whether `context --recorded` is made of the same.
//!
//! It reads records in the order of the file and keeps the messages that it met; it asks no store.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Follows the records of one file.
#[derive(Debug, Default)]
pub struct Prover {
    /// Indices into `messages`, by the digests of the messages.
    places: HashMap<String, usize>,
    /// The messages; `None`: the file has not held the message so far.
    messages: Vec<Option<Value>>,
    /// The requests; `by_id` has the index of the last one of each id.
    requests: Vec<RecordedRequest>,
    by_id: HashMap<String, usize>,
    /// Blocks of each of the model's messages, by its id.
    replies: HashMap<String, Vec<Value>>,
    /// Blocks of the user's side since the model's last message.
    said: Vec<Value>,
}

/// A request as its host recorded it.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestRecord {
    /// The host's id of the request.
    pub id: String,
    /// Index into the prover's requests.
    number: usize,
}

/// The messages of a request: the first `keep` messages of an earlier request, then its own.
#[derive(Debug)]
struct RecordedRequest {
    base: Option<usize>,
    keep: usize,
    /// Indices into the prover's messages.
    tail: Vec<usize>,
}

impl RecordedRequest {
    const fn len(&self) -> usize {
        self.keep.saturating_add(self.tail.len())
    }
}

/// The result of comparing a context with the digests of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProofVerdict {
    /// The context has the messages that were sent.
    Proven,
    /// The file lacks this many of the messages.
    Unknown(usize),
    /// The context differs, from this block on.
    Differs(usize),
}

impl Prover {
    /// Takes the next record; gives the request, if it is one.
    pub fn record(&mut self, record: &str) -> Option<RequestRecord> {
        // A record that is no JSON is no request.
        let record: Value = serde_json::from_str(record).ok()?;
        match record.get("type")?.as_str()? {
            "api-request-blob" => {
                let mut message = record.get("message")?.clone();
                self.keep(message.clone());
                // A text that is a string is digested as a list of one.
                let blocks = blocks_of(&message);
                message.as_object_mut()?.insert("content".to_owned(), Value::Array(blocks));
                self.keep(message);
                None
            }
            "assistant" => {
                self.said.clear();
                let message = record.get("message")?;
                let id = message.get("id")?.as_str()?.to_owned();
                let blocks = self.replies.entry(id).or_default();
                blocks.extend(blocks_of(message));
                let whole = json!({"role": "assistant", "content": blocks.clone()});
                self.keep(whole);
                None
            }
            "user" => {
                let message = record.get("message")?;
                self.keep(json!({"role": "user", "content": message.get("content")?.clone()}));
                self.keep(json!({"role": "user", "content": blocks_of(message)}));
                self.said.extend(blocks_of(message));
                self.keep(json!({"role": "user", "content": self.said.clone()}));
                None
            }
            "api-request" => self.request(&record),
            _ => None,
        }
    }

    fn keep(&mut self, mut message: Value) {
        let place = self.place(digest(&mut message));
        if let Some(held) = self.messages.get_mut(place) {
            *held = Some(message);
        }
    }

    /// The index of the message with this digest, whether the file has held it or not.
    fn place(&mut self, digest: String) -> usize {
        let next = self.messages.len();
        let place = *self.places.entry(digest).or_insert(next);
        if place == next {
            self.messages.push(None);
        }
        place
    }

    fn request(&mut self, record: &Value) -> Option<RequestRecord> {
        let id = record.get("id")?.as_str()?.to_owned();
        let base = record.get("base").and_then(Value::as_str).and_then(|base| self.by_id.get(base)).copied();
        let keep = usize::try_from(record.get("keep")?.as_u64()?).ok()?;
        let held = base.and_then(|base| self.requests.get(base)).map_or(0, RecordedRequest::len);
        let tail = record.get("tail")?.as_array()?.iter().filter_map(Value::as_str);
        let tail = tail.map(|digest| self.place(digest.to_owned())).collect();
        let number = self.requests.len();
        self.requests.push(RecordedRequest { base, keep: keep.min(held), tail });
        self.by_id.insert(id.clone(), number);
        Some(RequestRecord { id, number })
    }

    /// The messages of a request, in order; absent: the file has not held it so far.
    fn messages(&self, sent: &RequestRecord) -> Vec<Option<&Value>> {
        let mut runs = Vec::new();
        let mut at = self.requests.get(sent.number);
        let mut count = at.map_or(0, RecordedRequest::len);
        while let Some(request) = at.filter(|_| count > 0) {
            // A later request may keep fewer messages than this one keeps of its base: then none of its own count.
            runs.push(request.tail.get(..count.saturating_sub(request.keep)).unwrap_or_default());
            count = count.min(request.keep);
            at = request.base.and_then(|base| self.requests.get(base));
        }
        let places = runs.into_iter().rev().flatten();
        places.map(|place| self.messages.get(*place).and_then(Option::as_ref)).collect()
    }

    /// Compares a request with the body of a request in the same form: roles and blocks in their order.
    pub fn against(&self, sent: &RequestRecord, body: &[u8]) -> ProofVerdict {
        let messages = self.messages(sent);
        let missing = messages.iter().filter(|message| message.is_none()).count();
        if missing > 0 {
            return ProofVerdict::Unknown(missing);
        }
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let own = body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let (sent, own) = (flat(messages.into_iter().flatten()), flat(own));
        let same = sent.iter().zip(&own).take_while(|(one, other)| one == other).count();
        if same == sent.len() && same == own.len() {
            ProofVerdict::Proven
        } else {
            ProofVerdict::Differs(same)
        }
    }
}

fn blocks_of(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => Vec::new(),
    }
}

/// The digest of a message, whose marks of the cache are taken out.
fn digest(message: &mut Value) -> String {
    unmark(message);
    message.sort_all_objects();
    let digest = Sha256::digest(message.to_string().as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or_default());
        }
        text
    })
}

/// Takes out the marks for the provider's cache. Parameters of a call are the model's and stay as they are.
fn unmark(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(unmark),
        Value::Object(object) => {
            object.shift_remove("cache_control");
            for (name, value) in object.iter_mut() {
                if name != "input" {
                    unmark(value);
                }
            }
        }
        _ => {}
    }
}

/// Roles and blocks in order, without the borders of messages.
fn flat<'v>(messages: impl IntoIterator<Item = &'v Value>) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for message in messages {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        out.extend(blocks_of(message).into_iter().map(|block| (role.to_owned(), plain(block))));
    }
    out
}

/// A block in one form: a result's text as a list, `is_error` only where it is true.
fn plain(mut block: Value) -> Value {
    unmark(&mut block);
    if let Some(object) = block.as_object_mut().filter(|it| it.get("type") == Some(&json!("tool_result"))) {
        let content = Value::Array(blocks_of(&Value::Object(Map::clone(object))));
        object.insert("content".to_owned(), content);
        if object.get("is_error") != Some(&Value::Bool(true)) {
            object.shift_remove("is_error");
        }
    }
    block.sort_all_objects();
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_proven_by_the_digests_of_its_messages() {
        let mut hello =
            json!({"content": [{"type": "text", "text": "é", "cache_control": {}}], "role": "user"});
        let digest = digest(&mut hello);
        let mut prover = Prover::default();
        let user = r#"{"type":"user","message":{"role":"user","content":"é"}}"#;
        assert_eq!(prover.record(user), None);
        let request = |id: &str, rest: &str| format!(r#"{{"type":"api-request","id":"{id}",{rest}}}"#);
        let sent = prover.record(&request("r1", &format!(r#""keep":0,"tail":["{digest}"]"#))).unwrap();
        let body = br#"{"messages":[{"role":"user","content":[{"type":"text","text":"\u00e9"}]}]}"#;
        assert_eq!(prover.against(&sent, body), ProofVerdict::Proven);
        assert_eq!(
            prover.against(&sent, br#"{"messages":[{"role":"user","content":"e"}]}"#),
            ProofVerdict::Differs(0)
        );
        let more = prover.record(&request("r2", r#""base":"r1","keep":1,"tail":["00"]"#)).unwrap();
        assert_eq!(prover.against(&more, body), ProofVerdict::Unknown(1));
        let same = prover.record(&request("r3", r#""base":"r2","keep":1,"tail":[]"#)).unwrap();
        assert_eq!(prover.against(&same, body), ProofVerdict::Proven);
    }

    /// Each request had a copy of all messages before it: the memory of a session grew with the square of its requests.
    #[test]
    fn a_long_chain_of_requests_is_kept_once() {
        let mut prover = Prover::default();
        let mut last = None;
        for number in 0..20_000 {
            let mut message =
                json!({"role": "user", "content": [{"type": "text", "text": number.to_string()}]});
            let digest = digest(&mut message);
            let user = json!({"type": "user", "message": message});
            prover.record(&user.to_string());
            let request = json!({
                "type": "api-request",
                "id": format!("r{number}"),
                "base": format!("r{}", number - 1),
                "keep": number,
                "tail": [digest],
            });
            last = prover.record(&request.to_string());
            prover.record(r#"{"type":"assistant","message":{"id":"a","content":[]}}"#);
        }
        let last = last.unwrap();
        let texts: Vec<_> =
            prover.messages(&last).into_iter().flatten().map(|it| it["content"][0]["text"].clone()).collect();
        let numbers: Vec<Value> = (0..20_000).map(|number| number.to_string().into()).collect();
        assert_eq!(texts, numbers);
        let shorter = r#"{"type":"api-request","id":"x","base":"r19999","keep":3,"tail":[]}"#;
        let shorter = prover.record(shorter).unwrap();
        assert_eq!(prover.messages(&shorter).len(), 3);
    }
}
