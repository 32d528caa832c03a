//! Whether a provider accepts the body of a request: every rule, each violation with its place and how providers word it.
//!
//! ```text
//! body -> JSON -> one checker per format -> Vec<Finding { rule, pointer, expected, found, says }>
//!                                                  previous body, if given: bound reasoning (A5), units torn apart (R3, G4)
//! ```
//!
//! | rules | format |
//! |---|---|
//! | A1 to A10 | Anthropic: pairs, order of results, roles, runs of thinking, bound thinking, results, input, marks for the cache, compactions, edits |
//! | O1 to O4 | `OpenAI` chat: pairs, stray results, arguments, null content |
//! | R1 to R5 | `OpenAI` responses: pairs, reasoning and its item, units, encrypted content, null fields |
//! | G1 to G5 | Gemini: pairs, order, signatures of the current turn, own parts, skipped checks |
//! | I4 | any, with the previous body: opaque fields come back byte for byte, on their own part |
//! | shape | any: a body that cannot be read as a request at all |
//!
//! One validator for all bodies: exporters' tests use it, and so does `acpdb context lint`. It reads JSON and nothing else; it
//! knows no store and makes no request. It does not check things that a provider counts (tokens, images).

mod opaque;

use serde::Serialize;
use serde_json::Value;

use crate::export::Format;

/// Most findings that are told: a body that breaks a rule everywhere needs no more.
pub const FINDINGS_MAX: usize = 1000;

/// Something that a provider refuses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The rule: `A1`, `O3`, ..; `shape` for a body that is no request.
    pub rule: &'static str,
    /// Where: a JSON pointer into the body.
    pub pointer: String,
    /// The value that should be there.
    pub expected: String,
    /// The value that is there.
    pub found: String,
    /// The providers' words for the error.
    pub says: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rule, pointer, expected, found, says } = self;
        let pointer = if pointer.is_empty() { "/" } else { pointer };
        write!(formatter, "{rule} at {pointer}: expected {expected}, found {found}")?;
        if !says.is_empty() {
            write!(formatter, "; providers say \"{says}\"")?;
        }
        Ok(())
    }
}

/// Facts about a request that its body does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequestFacts<'a> {
    /// The model, where the body does not name it.
    pub model: Option<&'a str>,
    /// The body of the request before this one, of the same conversation.
    pub previous: Option<&'a [u8]>,
}

/// Checks the body of a request: an object, or the bare list of its messages. An empty list: no rule is broken.
///
/// Formats that no provider reads have no rules. Cost: one parse and one pass.
pub fn lint(format: Format, body: &[u8], known: RequestFacts<'_>) -> Vec<Finding> {
    let mut out = Findings::default();
    let Some(body) = out.parse(body, "the body") else { return out.list };
    let previous = known.previous.and_then(|previous| {
        let mut ignored = Findings::default();
        ignored.parse(previous, "the previous body")
    });
    let Some(request) = format.request() else { return out.list };
    (request.check)(&body, previous.as_ref(), known.model, &mut out);
    if let Some(previous) = &previous {
        opaque::check(&body, previous, &mut out);
    }
    out.list
}

/// The findings so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    pub(crate) fn add(
        &mut self,
        rule: &'static str,
        pointer: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
        says: impl Into<String>,
    ) {
        if self.list.len() < FINDINGS_MAX {
            self.list.push(Finding {
                rule,
                pointer: pointer.into(),
                expected: expected.into(),
                found: found.into(),
                says: says.into(),
            });
        }
    }

    fn parse(&mut self, body: &[u8], what: &str) -> Option<Value> {
        match serde_json::from_slice(body) {
            Ok(value) => Some(value),
            Err(error) => {
                self.add("shape", "", format!("{what} to be JSON"), error.to_string(), "invalid JSON body");
                None
            }
        }
    }

    /// The list of messages: of a body, or the body itself.
    pub(crate) fn messages<'b>(&mut self, body: &'b Value, name: &str) -> Option<(String, &'b Vec<Value>)> {
        if let Value::Array(list) = body {
            return Some((String::new(), list));
        }
        match body.get(name) {
            Some(Value::Array(list)) => Some((format!("/{name}"), list)),
            other => {
                let found = other.map_or("nothing", kind_of);
                self.add("shape", format!("/{name}"), "a list", found, format!("{name}: Field required"));
                None
            }
        }
    }
}

/// The word for the type of a value.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A string member.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

/// Elements of a list member; none if it is no list.
pub(crate) fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The first index at which `now` differs from `before`; `None`: `now` begins with all of `before`.
pub(crate) fn first_change(before: &[Value], now: &[Value]) -> Option<usize> {
    let shared = before.iter().zip(now).take_while(|(one, other)| one == other).count();
    (shared < before.len()).then_some(shared)
}
