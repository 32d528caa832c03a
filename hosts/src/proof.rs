//! What a host itself says of what it sent: digests of each message of each request, as Claude Code records them.
//!
//! ```text
//! api-request       id, base, keep, tail[digests]     the request: the first messages of another one, then these
//! api-request-blob  a message that stands in no record as it was sent
//! user, assistant   the other messages
//! ```
//!
//! A digest is the SHA-256 of a message as JSON with sorted members, without white space and without marks of the cache. So the
//! records tell which messages were sent, and [`Sent::against`] whether `context --recorded` is made of the same.
//!
//! It reads records in the order of the file and keeps the messages that it met; it asks no store.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Follows the records of one file.
#[derive(Debug, Default)]
pub struct Prover {
    /// Messages by their digests.
    messages: HashMap<String, Value>,
    /// The digests of each request.
    requests: HashMap<String, Vec<String>>,
    /// Blocks of each of the model's messages, by its id.
    replies: HashMap<String, Vec<Value>>,
    /// What the user's side has said since the model did.
    said: Vec<Value>,
}

/// A request as its host recorded it.
#[derive(Clone, PartialEq, Debug)]
pub struct Sent {
    /// The host's id of it.
    pub id: String,
    /// Its messages; absent: the file does not hold it.
    messages: Vec<Option<Value>>,
}

/// What the digests of a request say of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is what was sent.
    Proven,
    /// The file does not hold so many of the messages.
    Unknown(usize),
    /// It differs, from this block on.
    Differs(usize),
}

impl Prover {
    /// Takes the next record; gives the request, if it is one.
    pub fn record(&mut self, record: &str) -> Option<Sent> {
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
        let digest = digest(&mut message);
        self.messages.insert(digest, message);
    }

    fn request(&mut self, record: &Value) -> Option<Sent> {
        let id = record.get("id")?.as_str()?.to_owned();
        let base = record.get("base").and_then(Value::as_str);
        let keep = usize::try_from(record.get("keep")?.as_u64()?).ok()?;
        let mut digests: Vec<String> =
            base.and_then(|base| self.requests.get(base)).cloned().unwrap_or_default();
        digests.truncate(keep);
        let tail = record.get("tail")?.as_array()?;
        digests.extend(tail.iter().filter_map(Value::as_str).map(str::to_owned));
        let messages = digests.iter().map(|digest| self.messages.get(digest).cloned()).collect();
        self.requests.insert(id.clone(), digests);
        Some(Sent { id, messages })
    }
}

impl Sent {
    /// Compares with the body of a request in the same form: roles and blocks in their order.
    pub fn against(&self, body: &[u8]) -> Verdict {
        let missing = self.messages.iter().filter(|message| message.is_none()).count();
        if missing > 0 {
            return Verdict::Unknown(missing);
        }
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let own = body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let (sent, own) = (flat(self.messages.iter().flatten()), flat(own));
        let same = sent.iter().zip(&own).take_while(|(one, other)| one == other).count();
        if same == sent.len() && same == own.len() { Verdict::Proven } else { Verdict::Differs(same) }
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

/// Takes out what says where the provider is to cache. The parameters of a call are the model's.
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

/// Roles and blocks, however the messages cut them.
fn flat<'v>(messages: impl IntoIterator<Item = &'v Value>) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for message in messages {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        out.extend(blocks_of(message).into_iter().map(|block| (role.to_owned(), plain(block))));
    }
    out
}

/// A block in one form: a result's text as a list, success unsaid.
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
        assert_eq!(sent.against(body), Verdict::Proven);
        assert_eq!(sent.against(br#"{"messages":[{"role":"user","content":"e"}]}"#), Verdict::Differs(0));
        let more = prover.record(&request("r2", r#""base":"r1","keep":1,"tail":["00"]"#)).unwrap();
        assert_eq!(more.against(body), Verdict::Unknown(1));
        let same = prover.record(&request("r3", r#""base":"r2","keep":1,"tail":[]"#)).unwrap();
        assert_eq!(same.against(body), Verdict::Proven);
    }
}
