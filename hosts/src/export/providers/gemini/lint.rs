//! G1 to G5.

use serde_json::Value;

use super::export::SKIP;
use super::wants_signatures;
use crate::lint::{Findings, list, text};

pub(super) fn check(body: &Value, previous: Option<&Value>, model: Option<&str>, out: &mut Findings) {
    let Some((base, contents)) = out.messages(body, "contents") else { return };
    let model = text(body, "model").or(model);
    let current = contents.iter().rposition(is_users_text);
    // Whether the model signs: by its name, else because something here is signed.
    let signs = model.map_or_else(|| any_signature(contents), wants_signatures);
    for (number, content) in contents.iter().enumerate() {
        let at = format!("{base}/{number}");
        let role = text(content, "role").unwrap_or("user");
        let before = number.checked_sub(1).and_then(|before| contents.get(before));
        if list(content, "parts").is_empty() {
            let says = "GenerateContentRequest.contents[N].parts: contents.parts must not be empty.";
            out.add("shape", format!("{at}/parts"), "a part", "none", says);
        }
        let calls = named(content, "functionCall");
        let responses = named(content, "functionResponse");
        if !calls.is_empty() {
            if role != "model" {
                let says = "functionCall parts are for role 'model'";
                out.add("G2", at.clone(), "calls of the model", role.to_owned(), says);
            }
            if before.is_none_or(|before| text(before, "role") == Some("model")) {
                let says = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
                let found = before.map_or("nothing before it", |_| "the model's own turn before it");
                out.add("G2", at.clone(), "a turn of the user or of responses before it", found, says);
            }
            let next = contents.get(number + 1);
            let answered = next.is_some_and(|next| !named(next, "functionResponse").is_empty());
            if !answered {
                let says = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
                let expected = format!("{} responses in the next turn", calls.len());
                out.add("G1", at.clone(), expected, "none", says);
            }
        }
        if !responses.is_empty() {
            pair(
                before.map(|before| named(before, "functionCall")).unwrap_or_default(),
                &responses,
                &at,
                out,
            );
        }
        let is_current = current.is_none_or(|current| number > current);
        signatures(content, role, &at, is_current, signs && !calls.is_empty(), out);
    }
    if let Some(previous) = previous {
        moved(&base, contents, previous, out);
    }
}

fn is_users_text(content: &Value) -> bool {
    text(content, "role").unwrap_or("user") == "user" && named(content, "functionResponse").is_empty()
}

fn any_signature(contents: &[Value]) -> bool {
    contents.iter().any(|content| list(content, "parts").iter().any(|part| signature(part).is_some()))
}

fn signature(part: &Value) -> Option<&str> {
    text(part, "thoughtSignature").or_else(|| text(part, "thought_signature"))
}

/// Calls or responses of a turn.
fn named<'v>(content: &'v Value, name: &str) -> Vec<&'v Value> {
    list(content, "parts").iter().filter_map(|part| part.get(name)).collect()
}

fn pair(calls: Vec<&Value>, responses: &[&Value], at: &str, out: &mut Findings) {
    if calls.len() != responses.len() {
        let says = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
        let expected = format!("{} responses", calls.len());
        out.add("G1", at.to_owned(), expected, responses.len().to_string(), says);
    }
    let mut left = calls;
    for response in responses {
        let (name, id) = (text(response, "name"), text(response, "id"));
        let fits = |call: &&Value| {
            let same_id = id.is_none() || text(call, "id").is_none() || text(call, "id") == id;
            text(call, "name") == name && same_id
        };
        if let Some(place) = left.iter().position(fits) {
            left.remove(place);
        } else {
            let says = "Function response name does not match any function call of the turn before.";
            let found = format!("{} {}", name.unwrap_or_default(), id.unwrap_or_default());
            out.add("G1", at.to_owned(), "a call of that name (and id) in the turn before", found, says);
        }
        if !response.get("response").is_some_and(Value::is_object) {
            let says = "Invalid value at 'function_response.response': expected a Struct";
            out.add("G1", at.to_owned(), "an object for a response", "something else", says);
        }
    }
}

fn signatures(content: &Value, role: &str, at: &str, is_current: bool, wanted: bool, out: &mut Findings) {
    let parts = list(content, "parts");
    for (place, part) in parts.iter().enumerate() {
        let at = format!("{at}/parts/{place}");
        let Some(found) = signature(part) else { continue };
        if role != "model" || part.get("functionResponse").is_some() {
            let says = "Thought signature is not valid";
            out.add("G4", at.clone(), "signatures on the model's own parts", role.to_owned(), says);
        }
        // In earlier turns the provider's own program sends the mark too.
        if found == SKIP && part.get("functionCall").is_none() {
            out.add("G5", at, "the mark on a call", "another part", "");
        }
    }
    if wanted && is_current {
        let first = parts.iter().position(|part| part.get("functionCall").is_some());
        if let Some(place) = first
            && parts.get(place).is_some_and(|part| signature(part).is_none())
        {
            let says = "Function call `..` in the `N.` content block is missing a `thought_signature`.";
            let at = format!("{at}/parts/{place}");
            out.add("G3", at, "the signature of the step, on its first call", "none", says);
        }
    }
}

/// A signature that was on another part in the request before.
fn moved(base: &str, contents: &[Value], previous: &Value, out: &mut Findings) {
    let mut ignored = Findings::default();
    let Some((_, before)) = ignored.messages(previous, "contents") else { return };
    let parts = |contents: &[Value]| -> Vec<(usize, usize, Value)> {
        let all = contents.iter().enumerate().flat_map(|(number, content)| {
            list(content, "parts").iter().enumerate().map(move |(place, part)| (number, place, part.clone()))
        });
        all.filter(|(_, _, part)| signature(part).is_some_and(|it| it != SKIP)).collect()
    };
    let before = parts(before);
    for (number, place, part) in parts(contents) {
        let home = before.iter().find(|(_, _, other)| signature(other) == signature(&part));
        if home.is_some_and(|(_, _, other)| *other != part) {
            let says = "Thought signature is not valid";
            let at = format!("{base}/{number}/parts/{place}");
            out.add("G4", at, "the part that the signature came on", "another part", says);
        }
    }
}
