//! The record of a request: its size and digest, the model, the billed tokens, its end.

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::{Error, Store};
use acpdb_hosts::import::json;
use serde::Serialize;
use serde_json::{Value, json};

use super::identity::RequestIdentity;
use super::prune::Pruned;
use super::talk::{AnsweredRequest, RecordingOutcome, Talks, is_told};

/// Most bytes of a request or an answer that are kept until it is recorded. A longer one goes through all the same.
pub const KEPT_BYTES_MAX: usize = 64 << 20;

/// A connection that became something other than requests.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tunnel {
    /// The protocol that it became, such as `websocket`.
    pub protocol: String,
    /// Bytes to the provider.
    pub bytes_up: u64,
    /// Bytes from it.
    pub bytes_down: u64,
    /// The error that broke it off.
    pub error: Option<String>,
}

/// A request that went through.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Exchange {
    /// Its number, by [`Talks::number`].
    pub number: u64,
    /// The path, up to its `?`.
    pub path: String,
    /// The request's body as the program made it, if another body was sent.
    pub made: Option<Vec<u8>>,
    /// The request's body, as it was sent; `None` if it was too long to be kept.
    pub request: Option<Vec<u8>>,
    /// Bytes of the request's body.
    pub request_bytes: u64,
    /// The answer's body; `None` if it was too long to be kept.
    pub answer: Option<Vec<u8>>,
    /// The answer's status; 0 if there was none.
    pub status: u16,
    /// Milliseconds until the provider began to answer.
    pub first_milliseconds: u64,
    /// Milliseconds until the answer was whole.
    pub milliseconds: u64,
    /// Why the answer is not whole, if it is not.
    pub error: Option<String>,
    /// The changes on the way; `None`: no changes were tried.
    pub pruned: Option<Pruned>,
    /// The tunnel that the connection became behind the exchange: not understood, and passed through.
    pub tunnel: Option<Tunnel>,
}

/// Records an exchange in its session, and its conversation if the session has no recording. Durable when it returns.
///
/// # Errors
/// As [`Store::append`].
pub fn record(
    store: &Store,
    identity: &RequestIdentity,
    exchange: &Exchange,
    talks: &Talks,
) -> Result<(), Error> {
    let told = is_told(identity).then(|| told(store, identity, exchange, talks));
    let mut kept = summary(exchange);
    if let (Some(kept), Some(told)) = (kept.as_object_mut(), told) {
        kept.insert("conversation".to_owned(), json!(told));
    }
    let raw = kept.to_string();
    let entry = Entry::host_record("proxy/request", Some(raw.as_bytes().into())).at(Some(store.now()));
    // Its receipt is for callers that go on from there.
    let _ = store.append(&StreamInfo::session(identity.host, identity.session.as_str()), vec![entry])?;
    Ok(())
}

fn told(store: &Store, identity: &RequestIdentity, exchange: &Exchange, talks: &Talks) -> RecordingOutcome {
    let left_out = |why: String| RecordingOutcome { left_out: Some(why), ..RecordingOutcome::default() };
    if !(200..300).contains(&exchange.status) {
        return left_out("the provider did not take it".to_owned());
    }
    let Some(request) = exchange.made.as_deref().or(exchange.request.as_deref()) else {
        return left_out("the request is too long".to_owned());
    };
    let answer = exchange.answer.as_deref().filter(|_| exchange.error.is_none());
    let said = AnsweredRequest { number: exchange.number, path: &exchange.path, request, answer };
    talks.tell(store, identity, said).unwrap_or_else(|error| left_out(error.to_string()))
}

/// The record of an exchange itself: no text of the conversation, no header.
pub fn summary(exchange: &Exchange) -> Value {
    // A body that is no JSON has no model and no messages: these members are null, and its digest is kept.
    let body = exchange.request.as_deref().and_then(|body| std::str::from_utf8(body).ok());
    let names = ["model", "tools", "messages", "input", "contents"];
    let [model, tools, lists @ ..] = body.and_then(|body| json::pick(body, names)).unwrap_or_default();
    let count = |list| json::elements(list).map(|list| list.len());
    let messages = lists.into_iter().flatten().find_map(count);
    // A slice of valid JSON is valid.
    let model: Option<Value> = model.and_then(|model| serde_json::from_str(model).ok());
    let digest = exchange.request.as_deref().map(|body| blake3::hash(body).to_hex().to_string());
    let (usage, edits) = exchange.answer.as_deref().map(told_in).unwrap_or_default();
    json!({
        "path": exchange.path,
        "model": model,
        "messages": messages,
        "tools": tools.and_then(count),
        "request_bytes": exchange.request_bytes,
        "request_blake3": digest,
        "status": exchange.status,
        "usage": usage,
        "applied_edits": edits,
        "first_milliseconds": exchange.first_milliseconds,
        "milliseconds": exchange.milliseconds,
        "error": exchange.error,
        "pruned": exchange.pruned,
        "tunnel": exchange.tunnel,
    })
}

/// The tokens that the provider billed, and its edits of the context before it answered: from the answer, or from the events of a
/// stream, the later over the earlier.
fn told_in(answer: &[u8]) -> (Option<Value>, Option<Value>) {
    let text = &*String::from_utf8_lossy(answer);
    let mut found: Option<serde_json::Map<String, Value>> = None;
    let mut edits = None;
    let lines = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
    let whole = std::iter::once(text).filter(|text| text.trim_start().starts_with(['{', '[']));
    for piece in whole.chain(lines.filter(|line| line.starts_with('{'))) {
        let Ok(value) = serde_json::from_str::<Value>(piece) else { continue };
        let places = [
            value.pointer("/usage"),
            value.pointer("/message/usage"),
            value.pointer("/response/usage"),
            value.pointer("/usageMetadata"),
        ];
        for usage in places.into_iter().flatten().filter_map(Value::as_object) {
            found.get_or_insert_default().extend(usage.clone());
        }
        let management = [value.get("context_management"), value.pointer("/message/context_management")];
        for list in management.into_iter().flatten().filter_map(|told| told.get("applied_edits")) {
            edits = list.as_array().filter(|list| !list.is_empty()).map(|_| list.clone()).or(edits);
        }
    }
    (found.map(Value::Object), edits)
}
