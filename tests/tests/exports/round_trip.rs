//! A host's recording for its provider, and the export for the same provider: field by field.
//!
//! ```text
//! recording, read here by hand -> pieces (text, call, result, ..) ---.
//! recording -> import -> export of the whole history -> pieces -------+-> fields that differ, with how often
//! ```
//!
//! The pieces are taken from both sides by the few lines below, which know no importer. Fields that cannot be the same
//! stand in the tables below and, with the reason, in the page about hosts; anything else fails.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::event::Scope;
use acpdb_hosts::export::{ExportChoices, Format, Selection, export};
use acpdb_hosts::import;
use acpdb_tests::support::{bytes_of, recordings};
use expect_test::{Expect, expect};
use serde_json::Value;

use super::recordings::store_of;

/// A part of a conversation: its kind, its id if it has one, its fields.
struct Piece {
    kind: String,
    id: Option<String>,
    fields: Vec<(&'static str, Value)>,
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A list, also of one.
fn list(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values.clone(),
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        other => vec![other.clone()],
    }
}

/// Text that is JSON, as its value: providers read it so.
fn parsed(value: &Value) -> Value {
    value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

fn of(value: &Value, kind: String, id: Option<&str>, names: &[&'static str]) -> Piece {
    let fields = names.iter().map(|name| (*name, value[*name].clone())).collect();
    Piece { kind, id: id.map(|name| string(&value[name])), fields }
}

/// One block of an Anthropic message.
fn anthropic(role: &str, block: &Value) -> Piece {
    match string(&block["type"]).as_str() {
        "tool_use" => of(block, "tool_use".into(), Some("id"), &["name", "input"]),
        "tool_result" => {
            let mut piece = of(block, "tool_result".into(), Some("tool_use_id"), &[]);
            piece.fields.push(("content", Value::Array(list(&block["content"]))));
            piece.fields.push(("is_error", Value::Bool(block["is_error"] == true)));
            piece
        }
        "thinking" => of(block, "thinking".into(), None, &["thinking", "signature"]),
        kind => of(block, format!("{kind} of {role}"), None, &["text", "source", "data"]),
    }
}

fn of_claude_code(raw: &[u8]) -> Vec<Piece> {
    let records = serde_json::Deserializer::from_slice(raw).into_iter::<Value>().map(Result::unwrap);
    let hidden = |it: &Value| it["isVisibleInTranscriptOnly"] == true && it["isCompactSummary"] != true;
    let said = records.filter(|it| it["isSidechain"] != true && !hidden(it));
    said.filter(|it| matches!(it["type"].as_str(), Some("user" | "assistant")))
        .flat_map(|it| {
            let role = string(&it["message"]["role"]);
            list(&it["message"]["content"]).iter().map(|block| anthropic(&role, block)).collect::<Vec<_>>()
        })
        .collect()
}

fn of_anthropic(body: &Value) -> Vec<Piece> {
    let messages = list(&body["messages"]);
    let blocks = |it: &Value| {
        let role = string(&it["role"]);
        list(&it["content"]).iter().map(|block| anthropic(&role, block)).collect::<Vec<_>>()
    };
    messages.iter().flat_map(blocks).collect()
}

/// One item of a list of responses.
fn responses(item: &Value) -> Vec<Piece> {
    let piece = match string(&item["type"]).as_str() {
        "function_call" => {
            let mut piece = of(item, "function_call".into(), Some("call_id"), &["name"]);
            piece.fields.push(("arguments", parsed(&item["arguments"])));
            piece
        }
        "custom_tool_call" => of(item, "custom_tool_call".into(), Some("call_id"), &["name", "input"]),
        kind @ ("function_call_output" | "custom_tool_call_output") => {
            of(item, kind.to_owned(), Some("call_id"), &["output"])
        }
        "reasoning" => of(item, "reasoning".into(), None, &["summary", "content", "encrypted_content"]),
        "message" | "" => {
            let role = string(&item["role"]);
            let blocks = list(&item["content"]);
            return blocks.iter().map(|it| of(it, format!("message of {role}"), None, &["text"])).collect();
        }
        kind => of(item, kind.to_owned(), None, &["action"]),
    };
    vec![piece]
}

fn of_codex(raw: &[u8]) -> Vec<Piece> {
    let records = serde_json::Deserializer::from_slice(raw).into_iter::<Value>().map(Result::unwrap);
    records.filter(|it| it["type"] == "response_item").flat_map(|it| responses(&it["payload"])).collect()
}

fn of_responses(body: &Value) -> Vec<Piece> {
    list(&body["input"]).iter().flat_map(responses).collect()
}

fn of_gemini_cli(raw: &[u8]) -> Vec<Piece> {
    let document: Value = serde_json::from_slice(raw).unwrap();
    let mut pieces = Vec::new();
    for message in list(&document["messages"]) {
        let role = match message["type"].as_str() {
            Some("user") => "user",
            Some("gemini") => "model",
            _ => continue,
        };
        pieces.extend(list(&message["content"]).iter().map(|part| gemini_text(role, part)));
        for thought in list(&message["thoughts"]) {
            pieces.push(of(&thought, "thought".into(), None, &["subject", "description"]));
        }
        for call in list(&message["toolCalls"]) {
            pieces.push(of(&call, "functionCall".into(), Some("id"), &["name", "args"]));
            for result in list(&call["result"]) {
                pieces.push(gemini_response(&result["functionResponse"]));
            }
        }
    }
    pieces
}

fn gemini_text(role: &str, part: &Value) -> Piece {
    of(part, format!("text of {role}"), None, &["text"])
}

fn gemini_response(response: &Value) -> Piece {
    of(response, "functionResponse".into(), Some("id"), &["name", "response"])
}

fn of_gemini(body: &Value) -> Vec<Piece> {
    let piece = |role: &str, part: &Value| match (&part["functionCall"], &part["functionResponse"]) {
        (call @ Value::Object(_), _) => of(call, "functionCall".into(), Some("id"), &["name", "args"]),
        (_, response @ Value::Object(_)) => gemini_response(response),
        _ => gemini_text(role, part),
    };
    let contents = list(&body["contents"]);
    let parts = |it: &Value| {
        let role = string(&it["role"]);
        list(&it["parts"]).iter().map(|part| piece(&role, part)).collect::<Vec<_>>()
    };
    contents.iter().flat_map(parts).collect()
}

fn of_opencode(raw: &[u8]) -> Vec<Piece> {
    let document: Value = serde_json::from_slice(raw).unwrap();
    let mut pieces = Vec::new();
    for message in list(&document["messages"]) {
        let role = string(&message["info"]["role"]);
        for part in list(&message["parts"]) {
            let state = &part["state"];
            match part["type"].as_str() {
                Some("text") => pieces.push(of(&part, format!("text of {role}"), None, &["text"])),
                Some("reasoning") => pieces.push(of(&part, "reasoning".into(), None, &["text"])),
                Some("file") => pieces.push(of(&part, format!("file of {role}"), None, &["url"])),
                Some("tool") => {
                    let id = Some(string(&part["callID"]));
                    let fields = vec![("name", part["tool"].clone()), ("arguments", state["input"].clone())];
                    pieces.push(Piece { kind: "call".into(), id: id.clone(), fields });
                    let output = if state["status"] == "error" { &state["error"] } else { &state["output"] };
                    pieces.push(Piece {
                        kind: "result".into(),
                        id,
                        fields: vec![("content", output.clone())],
                    });
                }
                _ => {}
            }
        }
    }
    pieces
}

fn of_openai(body: &Value) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for message in list(&body["messages"]) {
        let role = string(&message["role"]);
        if role == "tool" {
            pieces.push(of(&message, "result".into(), Some("tool_call_id"), &["content"]));
            continue;
        }
        for block in list(&message["content"]) {
            pieces.push(of(&block, format!("text of {role}"), None, &["text"]));
        }
        for call in list(&message["tool_calls"]) {
            let function = &call["function"];
            let fields =
                vec![("name", function["name"].clone()), ("arguments", parsed(&function["arguments"]))];
            pieces.push(Piece { kind: "call".into(), id: Some(string(&call["id"])), fields });
        }
    }
    pieces
}

/// Values by kind, id and field.
type Values = BTreeMap<(String, String, &'static str), Vec<String>>;

/// Values by kind, id and field, in order; and the order of everything but results, which providers want elsewhere.
fn fields_of(pieces: &[Piece]) -> (Values, Vec<String>) {
    let mut fields: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut order = Vec::new();
    for piece in pieces {
        let id = piece.id.clone().unwrap_or_default();
        for (name, value) in &piece.fields {
            if !value.is_null() {
                let key = (piece.kind.clone(), id.clone(), *name);
                fields.entry(key).or_default().push(value.to_string());
            }
        }
        if !piece.kind.contains("result")
            && !piece.kind.contains("output")
            && piece.kind != "functionResponse"
        {
            let first = piece.fields.first().map(|(_, value)| value.to_string()).unwrap_or_default();
            order.push(if id.is_empty() { first } else { id });
        }
    }
    (fields, order)
}

/// Differences by kind and field: how many values are the same, missing, added.
#[derive(Default)]
struct Differences(BTreeMap<String, [usize; 3]>);

impl Differences {
    fn compare(&mut self, recorded: &[Piece], exported: &[Piece]) {
        let ((recorded, order), (exported, other)) = (fields_of(recorded), fields_of(exported));
        let keys: BTreeSet<_> = recorded.keys().chain(exported.keys()).collect();
        for key in keys {
            let (one, two) = (recorded.get(key), exported.get(key));
            let mut left: Vec<&String> = two.into_iter().flatten().collect();
            let row = self.0.entry(format!("{}.{}", key.0, key.2)).or_default();
            for value in one.into_iter().flatten() {
                if let Some(place) = left.iter().position(|it| *it == value) {
                    left.remove(place);
                    row[0] += 1;
                } else {
                    row[1] += 1;
                    if std::env::var_os("ACPDB_TEST_SHOW").is_some() {
                        println!("missing {key:?}: {}", value.chars().take(300).collect::<String>());
                    }
                }
            }
            row[2] += left.len();
            if std::env::var_os("ACPDB_TEST_SHOW").is_some() {
                for value in left {
                    println!("added   {key:?}: {}", value.chars().take(300).collect::<String>());
                }
            }
        }
        // The order of the ids that both have.
        let both = |one: &[String], two: &[String]| {
            one.iter().filter(|it| two.contains(it)).cloned().collect::<Vec<_>>()
        };
        let (one, two) = (both(&order, &other), both(&other, &order));
        let row = self.0.entry("order".to_owned()).or_default();
        row[0] += one.iter().zip(&two).filter(|(one, two)| one == two).count();
        row[1] += one.iter().zip(&two).filter(|(one, two)| one != two).count();
    }

    fn table(&self) -> String {
        let row = |(name, [same, missing, added]): (&String, &[usize; 3])| {
            format!("{name}: {same} the same, {missing} missing, {added} added\n")
        };
        self.0.iter().map(row).collect()
    }
}

fn check(
    folders: &[&str],
    host: import::ImportFormat,
    format: Format,
    recorded: fn(&[u8]) -> Vec<Piece>,
    exported: fn(&Value) -> Vec<Piece>,
    expected: &Expect,
) {
    let mut differences = Differences::default();
    for name in folders {
        let ((_home, store), folder) = (store_of(name, host), recordings());
        let mut paths: Vec<_> =
            std::fs::read_dir(folder.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let streams = store.stream_names().unwrap();
        for path in paths {
            let stem = path.file_name().unwrap().to_string_lossy().into_owned();
            let main = streams.iter().filter(|it| it.scope == Scope::Session);
            // The file's name ends in the session's, whatever stands before and behind it.
            let named = main.clone().filter(|it| stem.contains(&it.name)).collect::<Vec<_>>();
            let raw = bytes_of(&path).unwrap();
            let [stream] = named.as_slice() else { panic!("{stem}: {} sessions", named.len()) };
            let options = ExportChoices { selection: Selection::History, ..ExportChoices::default() };
            let export = export(&store.view(stream.id).unwrap(), format, &options).unwrap();
            let body: Value = serde_json::from_slice(&export.bytes).unwrap();
            differences.compare(&recorded(&raw), &exported(&body));
        }
    }
    expected.assert_eq(&differences.table());
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn claude_code_comes_out_as_it_went_in() {
    check(
        &["claude-code/entire-cli", "claude-code/context-evaluator", "claude-code-large/context-evaluator"],
        import::ImportFormat::ClaudeCode,
        Format::Anthropic,
        of_claude_code,
        of_anthropic,
        &expect![[r#"
            image of user.source: 9 the same, 0 missing, 0 added
            order: 2624 the same, 0 missing, 0 added
            text of assistant.text: 718 the same, 25 missing, 0 added
            text of user.text: 147 the same, 0 missing, 0 added
            thinking.signature: 292 the same, 0 missing, 0 added
            thinking.thinking: 292 the same, 0 missing, 0 added
            tool_result.content: 1458 the same, 0 missing, 0 added
            tool_result.is_error: 1458 the same, 0 missing, 0 added
            tool_use.input: 1458 the same, 3 missing, 0 added
            tool_use.name: 1458 the same, 3 missing, 0 added
        "#]],
    );
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn codex_comes_out_as_it_went_in() {
    check(
        &["codex/session-bridge"],
        import::ImportFormat::Codex,
        Format::Responses,
        of_codex,
        of_responses,
        &expect![[r#"
            custom_tool_call.input: 30 the same, 0 missing, 0 added
            custom_tool_call.name: 30 the same, 0 missing, 0 added
            custom_tool_call_output.output: 30 the same, 0 missing, 0 added
            function_call.arguments: 375 the same, 1 missing, 0 added
            function_call.name: 375 the same, 1 missing, 0 added
            function_call_output.output: 375 the same, 0 missing, 0 added
            message of assistant.text: 113 the same, 0 missing, 0 added
            message of developer.text: 47 the same, 0 missing, 0 added
            message of user.text: 27 the same, 0 missing, 0 added
            order: 797 the same, 0 missing, 0 added
            reasoning.encrypted_content: 204 the same, 0 missing, 0 added
            reasoning.summary: 204 the same, 0 missing, 0 added
            web_search_call.action: 1 the same, 0 missing, 0 added
        "#]],
    );
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn gemini_cli_comes_out_as_it_went_in() {
    check(
        &["gemini-cli/entire-cli", "gemini-cli/session-bridge"],
        import::ImportFormat::GeminiCli,
        Format::Gemini,
        of_gemini_cli,
        of_gemini,
        &expect![[r#"
            functionCall.args: 21 the same, 0 missing, 0 added
            functionCall.name: 21 the same, 0 missing, 0 added
            functionResponse.name: 21 the same, 0 missing, 0 added
            functionResponse.response: 21 the same, 0 missing, 0 added
            order: 66 the same, 0 missing, 0 added
            text of model.text: 26 the same, 0 missing, 0 added
            text of user.text: 19 the same, 0 missing, 0 added
            thought.description: 0 the same, 54 missing, 0 added
            thought.subject: 0 the same, 54 missing, 0 added
        "#]],
    );
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn opencode_comes_out_as_it_went_in() {
    check(
        &["opencode/gatomia-vscode", "opencode/session-bridge"],
        import::ImportFormat::Opencode,
        Format::Openai,
        of_opencode,
        of_openai,
        &expect![[r#"
            call.arguments: 410 the same, 0 missing, 0 added
            call.name: 410 the same, 0 missing, 0 added
            file of user.url: 0 the same, 1 missing, 0 added
            order: 546 the same, 0 missing, 0 added
            reasoning.text: 0 the same, 343 missing, 0 added
            result.content: 410 the same, 0 missing, 0 added
            text of assistant.text: 111 the same, 0 missing, 0 added
            text of user.text: 25 the same, 0 missing, 2 added
        "#]],
    );
}
