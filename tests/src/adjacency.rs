//! A second opinion on exports: do calls and results stand where providers want them?
//!
//! Written from the providers' rules alone and sharing no line with the linter or the exporters, so that a mistake has
//! to be made twice to pass. It flattens a request into a line of signs and reads that; it knows nothing but order.

use serde_json::Value;

/// A sign in the order of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Sign {
    /// A message (content, item) of this speaker begins.
    Speaker(String),
    Call(String),
    Result(String),
    Other,
}

/// Faults in the order of calls and results in a request of the format of this name; empty if there are none.
#[must_use]
pub fn complaints(format: &str, body: &Value) -> Vec<String> {
    let signs = match format {
        "anthropic" => anthropic(body),
        "openai" => openai(body),
        "responses" => return flat(&responses(body)),
        "gemini" => gemini(body),
        _ => Vec::new(),
    };
    adjacent(&signs, format == "openai")
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value[name].as_array().into_iter().flatten()
}

fn anthropic(body: &Value) -> Vec<Sign> {
    let mut signs = Vec::new();
    for message in items(body, "messages") {
        signs.push(Sign::Speaker(string(&message["role"])));
        for block in items(message, "content") {
            signs.push(match block["type"].as_str() {
                Some("tool_use") => Sign::Call(string(&block["id"])),
                Some("tool_result") => Sign::Result(string(&block["tool_use_id"])),
                _ => Sign::Other,
            });
        }
    }
    signs
}

fn openai(body: &Value) -> Vec<Sign> {
    let mut signs = Vec::new();
    for message in items(body, "messages") {
        if message["role"] == "tool" {
            signs.push(Sign::Result(string(&message["tool_call_id"])));
            continue;
        }
        signs.push(Sign::Speaker(string(&message["role"])));
        signs.push(Sign::Other);
        signs.extend(items(message, "tool_calls").map(|call| Sign::Call(string(&call["id"]))));
    }
    signs
}

fn gemini(body: &Value) -> Vec<Sign> {
    let mut signs = Vec::new();
    for content in items(body, "contents") {
        signs.push(Sign::Speaker(string(&content["role"])));
        for part in items(content, "parts") {
            let (call, result) = (&part["functionCall"], &part["functionResponse"]);
            signs.push(match (call.is_object(), result.is_object()) {
                (true, _) => Sign::Call(string(&call["id"])),
                (_, true) => Sign::Result(string(&result["id"])),
                _ => Sign::Other,
            });
        }
    }
    signs
}

fn responses(body: &Value) -> Vec<Sign> {
    let sign = |item: &Value| match item["type"].as_str() {
        Some("function_call" | "custom_tool_call") => Sign::Call(string(&item["call_id"])),
        Some("function_call_output" | "custom_tool_call_output") => Sign::Result(string(&item["call_id"])),
        _ => Sign::Other,
    };
    items(body, "input").map(sign).collect()
}

/// Calls of a message, then at once all their results and nothing else, then anything.
fn adjacent(signs: &[Sign], results_are_messages: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut waiting: Vec<&str> = Vec::new();
    let mut all: Vec<&str> = Vec::new();
    // How many speakers have begun since the calls: their results belong to the first.
    let mut speakers = 0;
    for sign in signs {
        match sign {
            Sign::Speaker(_) => {
                speakers += 1;
                if !waiting.is_empty() && (speakers > 1 || results_are_messages) {
                    wrong.push(format!("{waiting:?} not answered at once"));
                    waiting.clear();
                }
            }
            Sign::Call(id) => {
                if all.contains(&id.as_str()) {
                    wrong.push(format!("{id} twice"));
                }
                all.push(id);
                waiting.push(id);
                speakers = 0;
            }
            Sign::Result(id) => match waiting.iter().position(|call| call == id) {
                Some(place) => {
                    waiting.remove(place);
                }
                None => wrong.push(format!("{id} answers nothing")),
            },
            Sign::Other if speakers == 1 && !waiting.is_empty() => {
                wrong.push(format!("something before the results of {waiting:?}"));
            }
            Sign::Other => {}
        }
    }
    if !waiting.is_empty() {
        wrong.push(format!("{waiting:?} never answered"));
    }
    wrong
}

/// Each call before its one result; nothing else is asked of the order.
fn flat(signs: &[Sign]) -> Vec<String> {
    let place = |wanted: &Sign| -> Vec<usize> {
        signs.iter().enumerate().filter(|(_, sign)| *sign == wanted).map(|(at, _)| at).collect()
    };
    let mut wrong = Vec::new();
    for sign in signs {
        let (Sign::Call(id) | Sign::Result(id)) = sign else { continue };
        let (calls, results) = (place(&Sign::Call(id.clone())), place(&Sign::Result(id.clone())));
        match (calls.as_slice(), results.as_slice()) {
            ([call], [result]) if call < result => {}
            _ => wrong.push(format!("{id}: calls at {calls:?}, results at {results:?}")),
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stands_wrong_is_seen() {
        let call = |id: &str| json!({"type": "tool_use", "id": id});
        let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id});
        let text = json!({"type": "text", "text": "x"});
        let body = |blocks: Vec<Vec<Value>>| {
            let roles = ["user", "assistant"].into_iter().cycle();
            let messages: Vec<Value> = blocks
                .into_iter()
                .zip(roles)
                .map(|(content, role)| json!({"role": role, "content": content}))
                .collect();
            complaints("anthropic", &json!({"messages": messages}))
        };
        let ok = vec![
            vec![text.clone()],
            vec![call("a"), call("b")],
            vec![result("b"), result("a"), text.clone()],
        ];
        assert_eq!(body(ok), [""; 0]);
        assert_eq!(body(vec![vec![text.clone()], vec![call("a")], vec![text.clone(), result("a")]]).len(), 1);
        assert_eq!(body(vec![vec![text.clone()], vec![call("a")]]).len(), 1);
        assert_eq!(body(vec![vec![result("a")]]).len(), 1);
        assert_eq!(
            body(vec![vec![text.clone()], vec![call("a")], vec![text], vec![], vec![result("a")]]).len(),
            3
        );
    }
}
