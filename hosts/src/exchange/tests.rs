//! Requests and answers as facts: a line each, with its origin.

use acpdb_engine::entry::{Entry, Fact, ItemRef, fact};
use acpdb_engine::event::PartKind;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Answer, Extent, RequestHead, Talk, answer, request};
use crate::export::Format;

mod responses;

const MESSAGES: &str = "/v1/messages";
const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const GEMINI: &str = "/v1beta/models/gemini-lab:streamGenerateContent";

/// Names of messages are digests: tests show the first letters.
fn short(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("digest:") {
        out.push_str(before);
        out.push_str(after.get(..4).unwrap());
        rest = after.get(32..).unwrap();
    }
    out + rest
}

fn shown(entry: &Entry) -> String {
    let said = |parts: &[acpdb_engine::entry::PartEntry]| {
        let part = |part: &acpdb_engine::entry::PartEntry| {
            let text = String::from_utf8_lossy(&part.bytes).into_owned();
            let signature =
                part.signature.as_ref().map(|it| format!(" signed {}", String::from_utf8_lossy(it)));
            let kind = if part.kind == PartKind::Text { String::new() } else { format!("{:?} ", part.kind) };
            format!("{kind}{text:?}{}", signature.unwrap_or_default())
        };
        parts.iter().map(part).collect::<Vec<_>>().join(", ")
    };
    let what = match &entry.fact {
        Fact::TurnStarted(fact::TurnStarted { kind, .. }) => format!("{kind:?} begins"),
        Fact::MessageRecorded(fact::MessageRecorded { role, parts, .. }) => {
            format!("{role:?} {}", said(parts))
        }
        Fact::MessageContinued(fact::MessageContinued { parts, .. }) => format!("  {}", said(parts)),
        Fact::MessageFinished(fact::MessageFinished { report, .. }) => format!(
            "ends: {} {:?} {:?}",
            report.model.as_deref().unwrap_or("?"),
            report.stop_reason.as_deref().unwrap_or("?"),
            [report.usage.input, report.usage.cache_read, report.usage.output, report.usage.reasoning]
        ),
        Fact::ToolStarted(fact::ToolStarted { call, tool, params, provider_signature, .. }) => format!(
            "call {call}: {tool} {}{}",
            String::from_utf8_lossy(params),
            if provider_signature.is_some() { " signed" } else { "" }
        ),
        Fact::ToolFinished(fact::ToolFinished { call, outcome, output, .. }) => {
            format!("{outcome:?} {call}: {}", said(output))
        }
        other => format!("{other:?}"),
    };
    let what = what.trim_end();
    format!("{what}   <{}>", entry.origin.as_deref().unwrap_or_default())
}

fn lines<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    entries.into_iter().map(|entry| short(&shown(entry)) + "\n").collect()
}

fn talk<'a>(path: &str, body: &'a str) -> Talk<'a> {
    request(Format::of_path(path).unwrap(), path, body).unwrap()
}

fn answered(path: &str, body: &str, talk: &Talk<'_>) -> Option<Answer> {
    answer(Format::of_path(path).unwrap(), body, talk)
}

/// The facts of a request, and those that its answer adds.
fn check(path: &str, body: &Value, answer: &str, expected: &Expect) {
    let body = body.to_string();
    let talk = talk(path, &body);
    let mut out = lines(&talk.entries());
    out.push_str("-- the answer\n");
    match answered(path, answer, &talk) {
        Some(answer) => out.push_str(&lines(&answer.entries)),
        None => out.push_str("the next request tells it\n"),
    }
    if !talk.unknown.is_empty() {
        out.push_str(&format!("-- not understood: {:?}\n", talk.unknown));
    }
    expected.assert_eq(&out);
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn chat(messages: &Value) -> Value {
    json!({"model": "gpt-lab", "messages": messages})
}

fn contents(contents: &Value) -> Value {
    json!({"contents": contents})
}

#[test]
fn a_plain_chat_answer() {
    let body = chat(&json!([{"role": "system", "content": "Help."}, {"role": "user", "content": "Hello"}]));
    let said = json!({"id": "r1", "model": "gpt-lab-1", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Hi.", "refusal": null}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}});
    check(
        CHAT,
        &body,
        &said.to_string(),
        &expect![[r#"
        Prompt begins   <prompt:msg:8907#1>
        User "Hello"   <msg:8907#1>
        -- the answer
        Step begins   <turn:msg:ff74#1>
        Assistant   <msg:ff74#1>
          "Hi."   <msg:ff74#1/part1>
        ends: gpt-lab-1 "stop" [Some(5), Some(4), Some(2), None]   <msg:ff74#1:finish>
    "#]],
    );
}

#[test]
fn parallel_calls_are_put_together_from_what_a_stream_brings() {
    let body = chat(&json!([{"role": "user", "content": "Look"}]));
    let delta = |delta: Value| json!({"model": "gpt-lab-1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let call = |index: u64, piece: Value| {
        let mut call = piece;
        call["index"] = index.into();
        delta(json!({"tool_calls": [call]}))
    };
    let mut said = stream(&[
        delta(json!({"role": "assistant", "content": null, "reasoning_content": "Two "})),
        delta(json!({"reasoning_content": "files."})),
        delta(json!({"content": "I re"})),
        delta(json!({"content": "ad."})),
        call(0, json!({"id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}})),
        call(0, json!({"function": {"arguments": "{\"path\": "}})),
        call(
            1,
            json!({"id": "c2", "type": "function", "function": {"name": "read", "arguments": "{\"path\":"}}),
        ),
        call(0, json!({"function": {"arguments": "\"a.rs\"}"}})),
        call(1, json!({"function": {"arguments": "\"b.rs\"}"}})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 3}}}),
    ]);
    said.insert_str(0, ": a comment keeps the connection open\n\n");
    said.push_str("data: [DONE]\n\n");
    check(
        CHAT,
        &body,
        &said,
        &expect![[r#"
        Prompt begins   <prompt:msg:36e9#1>
        User "Look"   <msg:36e9#1>
        -- the answer
        Step begins   <turn:msg:a41a#1>
        Assistant   <msg:a41a#1>
          Reasoning "Two files."   <msg:a41a#1/thought1>
          "I read."   <msg:a41a#1/part1>
        call c1: read {"path":"a.rs"}   <call:c1@a41a#1:start>
        call c2: read {"path":"b.rs"}   <call:c2@a41a#1:start>
        ends: gpt-lab-1 "tool_calls" [Some(5), None, Some(7), Some(3)]   <msg:a41a#1:finish>
    "#]],
    );
}

#[test]
fn what_a_program_sends_back_is_the_answer() {
    let asked = json!([{"role": "user", "content": "Look"}]);
    let body = chat(&asked).to_string();
    let first = talk(CHAT, &body);
    let call = |arguments: &str| json!([{"id": "c1", "type": "function", "function": {"name": "read", "arguments": arguments}}]);
    let said = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
        "reasoning": "A file.", "tool_calls": call("{\"b\":1,\"a\":\"é\"}")}}]});
    let answer = answered(CHAT, &said.to_string(), &first).unwrap();
    // The answer as a program sends it back: without the reasoning, an empty text for none, the parameters written anew.
    let back =
        json!({"role": "assistant", "content": "", "tool_calls": call("{\"a\": \"\\u00e9\", \"b\": 1}")});
    let mut longer = asked.as_array().unwrap().clone();
    longer.extend([back, json!({"role": "tool", "tool_call_id": "c1", "content": "text"})]);
    let body = chat(&longer.into()).to_string();
    let second = talk(CHAT, &body);
    assert_eq!(second.keys(), [first.keys(), answer.keys].concat());
    let known: Vec<Entry> = first.entries().into_iter().chain(answer.entries).collect();
    let new: Vec<Entry> = second.entries().into_iter().filter(|entry| !known.contains(entry)).collect();
    expect![[r#"
        Completed c1: "text"   <call:c1@a3c2#1:finish>
    "#]]
    .assert_eq(&lines(&new));
}

#[test]
fn anthropics_messages_and_their_streams() {
    let body = json!({"model": "claude-lab", "max_tokens": 9, "system": [{"type": "text", "text": "Help."}], "metadata": {"user_id": "SECRET"},
        "messages": [{"role": "user", "content": "Look"}, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "sig"}, {"type": "tool_use", "id": "t1", "name": "read", "input": {"b": 1, "a": 2}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [{"type": "text", "text": "no file"}]},
                {"type": "text", "text": "Try", "cache_control": {"type": "ephemeral"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]}]});
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let begin = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let events = [
        json!({"type": "message_start", "message": {"id": "m1", "model": "claude-lab-1", "content": [],
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 1}}}),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Another."})),
        delta(0, json!({"type": "signature_delta", "signature": "sig2"})),
        begin(1, json!({"type": "text", "text": ""})),
        json!({"type": "ping"}),
        delta(1, json!({"type": "text_delta", "text": "I re"})),
        delta(1, json!({"type": "text_delta", "text": "ad."})),
        begin(2, json!({"type": "tool_use", "id": "t2", "name": "read", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"path\": "})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "\"b\"}"})),
        begin(3, json!({"type": "tool_use", "id": "t3", "name": "list", "input": {}})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ];
    check(
        MESSAGES,
        &body,
        &stream(&events),
        &expect![[r#"
        Prompt begins   <prompt:msg:36e9#1>
        User "Look"   <msg:36e9#1>
        Step begins   <turn:msg:4aaf#1>
        Assistant   <msg:4aaf#1>
          Reasoning "Hm" signed sig   <msg:4aaf#1/thought1>
        call t1: read {"a":2,"b":1}   <call:t1@4aaf#1:start>
        Failed t1: "no file"   <call:t1@4aaf#1:finish>
        Prompt begins   <prompt:msg:21bd#1>
        User "Try", Media "AAAA"   <msg:21bd#1>
        -- the answer
        Step begins   <turn:msg:eea6#1>
        Assistant   <msg:eea6#1>
          Reasoning "Another." signed sig2   <msg:eea6#1/thought1>
          "I read."   <msg:eea6#1/part1>
        call t2: read {"path":"b"}   <call:t2@eea6#1:start>
        call t3: list {}   <call:t3@eea6#1:start>
        ends: claude-lab-1 "tool_use" [Some(5), Some(4), Some(7), None]   <msg:eea6#1:finish>
    "#]],
    );
    let text = body.to_string();
    let asked = talk(MESSAGES, &text);
    assert!(!format!("{:?}{:?}", asked.head, asked.entries()).contains("SECRET"));
    let whole = json!({"type": "message", "id": "m1", "role": "assistant", "model": "claude-lab-1", "stop_reason": "tool_use", "content": [
        {"type": "thinking", "thinking": "Another.", "signature": "sig2"}, {"type": "text", "text": "I read."},
        {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}}, {"type": "tool_use", "id": "t3", "name": "list", "input": {}}],
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 7}});
    assert_eq!(answered(MESSAGES, &whole.to_string(), &asked), answered(MESSAGES, &stream(&events), &asked));
    for half in
        [stream(&events[..12]), json!({"type": "error", "error": {"type": "overloaded_error"}}).to_string()]
    {
        assert_eq!(answered(MESSAGES, &half, &asked), None, "{half}");
    }
}

#[test]
fn a_plain_gemini_answer() {
    let body = json!({"systemInstruction": {"parts": [{"text": "Help."}]}, "generationConfig": {"temperature": 0},
        "contents": [{"role": "user", "parts": [{"text": "Hello"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}]});
    let said = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
        "modelVersion": "gemini-lab-1",
        "usageMetadata": {"promptTokenCount": 9, "cachedContentTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}});
    check(
        GEMINI,
        &body,
        &said.to_string(),
        &expect![[r#"
        Prompt begins   <prompt:msg:f128#1>
        User "Hello", Media "AAAA"   <msg:f128#1>
        -- the answer
        Step begins   <turn:msg:ff74#1>
        Assistant   <msg:ff74#1>
          "Hi."   <msg:ff74#1/part1>
        ends: gemini-lab-1 "STOP" [Some(5), Some(4), Some(5), Some(3)]   <msg:ff74#1:finish>
    "#]],
    );
}

#[test]
fn gemini_streams_are_put_together_as_events_and_as_a_list() {
    let body = contents(&json!([{"role": "user", "parts": [{"text": "Look"}]}]));
    let part =
        |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]});
    let mut last = part(json!([{"functionCall": {"id": "c2", "name": "read", "args": {"path": "b"}}}]));
    last["candidates"][0]["finishReason"] = "STOP".into();
    let events = [
        part(json!([{"text": "Two files", "thought": true}])),
        part(json!([{"text": "I re"}])),
        part(json!([{"text": "ad."}])),
        part(
            json!([{"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}, "thoughtSignature": "sig"}]),
        ),
        last,
    ];
    let list = json!(events).to_string();
    check(
        GEMINI,
        &body,
        &stream(&events),
        &expect![[r#"
        Prompt begins   <prompt:msg:36e9#1>
        User "Look"   <msg:36e9#1>
        -- the answer
        Step begins   <turn:msg:c9f9#1>
        Assistant   <msg:c9f9#1>
          Reasoning "Two files"   <msg:c9f9#1/thought1>
          "I read."   <msg:c9f9#1/part1>
        call c1: read {"path":"a"} signed   <call:c1@c9f9#1:start>
        call c2: read {"path":"b"}   <call:c2@c9f9#1:start>
        ends: ? "STOP" [None, None, None, None]   <msg:c9f9#1:finish>
    "#]],
    );
    let body = body.to_string();
    let asked = talk(GEMINI, &body);
    assert_eq!(answered(GEMINI, &list, &asked), answered(GEMINI, &stream(&events), &asked));
}

#[test]
fn calls_without_ids_are_named_by_their_messages() {
    let call = |path: &str| json!({"functionCall": {"name": "read", "args": {"path": path}}});
    let result = |text: &str| json!({"functionResponse": {"name": "read", "response": {"output": text}}});
    let failed = json!({"function_response": {"name": "list", "response": {"error": "no such folder"}}});
    let body = contents(&json!([
        {"role": "user", "parts": [{"text": "Look"}]},
        {"role": "model", "parts": [call("a"), call("b"), {"function_call": {"name": "list", "args": {}}}]},
        {"role": "user", "parts": [result("A"), failed, result("B")]},
        {"role": "model", "parts": [call("a")]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"lines": 2}}}]}]));
    let said = json!({"candidates": [{"content": {"parts": [call("a")]}, "finishReason": "STOP"}]});
    check(
        GEMINI,
        &body,
        &said.to_string(),
        &expect![[r#"
        Prompt begins   <prompt:msg:36e9#1>
        User "Look"   <msg:36e9#1>
        Step begins   <turn:msg:df89#1>
        Assistant   <msg:df89#1>
        call df89#1.0: read {"path":"a"}   <call:df89#1.0@df89#1:start>
        call df89#1.1: read {"path":"b"}   <call:df89#1.1@df89#1:start>
        call df89#1.2: list {}   <call:df89#1.2@df89#1:start>
        Completed df89#1.0: "A"   <call:df89#1.0@df89#1:finish>
        Failed df89#1.2: "no such folder"   <call:df89#1.2@df89#1:finish>
        Completed df89#1.1: "B"   <call:df89#1.1@df89#1:finish>
        Step begins   <turn:msg:caa8#1>
        Assistant   <msg:caa8#1>
        call caa8#1.0: read {"path":"a"}   <call:caa8#1.0@caa8#1:start>
        Completed caa8#1.0: "{\"lines\":2}"   <call:caa8#1.0@caa8#1:finish>
        -- the answer
        the next request tells it
    "#]],
    );
}

#[test]
fn nothing_is_made_of_errors_halves_and_choices() {
    let body = chat(&json!([{"role": "user", "content": "Look"}])).to_string();
    let talk_chat = talk(CHAT, &body);
    let body = contents(&json!([{"role": "user", "parts": [{"text": "Look"}]}])).to_string();
    let talk_gemini = talk(GEMINI, &body);
    let half = stream(&[json!({"choices": [{"index": 0, "delta": {"content": "I re"}}]})]);
    let cut = half.trim_end().strip_suffix('}').unwrap().to_owned();
    let two = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}},
        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "b"}}]});
    for (path, answer) in [
        (CHAT, json!({"error": {"message": "overloaded"}}).to_string()),
        (CHAT, half.clone()),
        (CHAT, cut),
        (CHAT, two.to_string()),
        (CHAT, "bad gateway".to_owned()),
        (GEMINI, json!({"error": {"code": 503}}).to_string()),
        (GEMINI, json!([{"error": {"code": 503}}]).to_string()),
        (GEMINI, stream(&[json!({"candidates": [{"content": {"parts": [{"text": "I re"}]}}]})])),
        (GEMINI, json!({"promptFeedback": {"blockReason": "SAFETY"}}).to_string()),
    ] {
        let talk = if path == CHAT { &talk_chat } else { &talk_gemini };
        assert_eq!(answered(path, &answer, talk), None, "{answer}");
    }
    // The end may be said alone.
    assert!(answered(CHAT, &(half + "data: [DONE]\n\n"), &talk_chat).is_some());
}

#[test]
fn what_is_not_understood_is_counted_and_not_recorded() {
    let mut body = chat(
        &json!([{"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "video", "x": 1}], "cache": true}]),
    );
    body["api_key"] = "SECRET".into();
    body["temperature"] = 0.into();
    body["stream"] = true.into();
    let text = body.to_string();
    let talk = talk(CHAT, &text);
    assert_eq!(talk.unknown.iter().collect::<Vec<_>>(), ["api_key", "cache"]);
    assert_eq!(talk.head.params.as_deref(), Some(r#"{"temperature":0}"#));
    assert!(!format!("{:?}{:?}", talk.head, talk.entries()).contains("SECRET"));
    expect![[r#"
        Prompt begins   <prompt:msg:4952#1>
        User "See", Opaque "{\"type\":\"video\",\"x\":1}"   <msg:4952#1>
    "#]]
    .assert_eq(&lines(&talk.entries()));
    for (path, body) in [
        (CHAT, "no JSON"),
        (CHAT, r#"{"messages":{}}"#),
        (CHAT, r#"{"messages":[{"role":"wizard"}]}"#),
        (CHAT, r#"{"messages":[7]}"#),
        (GEMINI, r#"{"model":"m"}"#),
        (GEMINI, r#"{"contents":[{"role":"user"}]}"#),
        (MESSAGES, r#"{"messages":[{"role":"user"}]}"#),
        (MESSAGES, r#"{"messages":[{"role":"user","content":7}]}"#),
        (RESPONSES, r#"{"model":"m"}"#),
        (RESPONSES, r#"{"input":[{"role":"wizard"}]}"#),
        (RESPONSES, r#"{"input":7}"#),
    ] {
        assert!(request(Format::of_path(path).unwrap(), path, body).is_none(), "{path} {body}");
    }
}

#[test]
fn what_stands_before_the_messages() {
    let body = json!({"model": "gpt-lab", "tools": [{"type": "function"}], "top_p": 1, "messages": [
        {"role": "system", "content": "Help."}, {"role": "developer", "content": [{"type": "text", "text": "Well."}]},
        {"role": "user", "content": "Hello"}, {"role": "system", "content": "Later"}]});
    let body = body.to_string();
    let chat = talk(CHAT, &body);
    let of = |text: &str| Some(text.to_owned());
    let want = RequestHead {
        model: of("gpt-lab"),
        system: of("Help.\n\nWell."),
        tools: of(r#"[{"type":"function"}]"#),
        params: of(r#"{"top_p":1}"#),
    };
    assert_eq!(chat.head, want);
    assert_eq!(chat.messages.len(), 2, "what the system says later is a message");
    let body =
        r#"{"contents":{"parts":{"text":"One alone"}},"system_instruction":{"parts":[{"text":"Help."}]}}"#;
    let gemini = talk(GEMINI, body);
    assert_eq!((gemini.head.model, gemini.head.system), (of("gemini-lab"), of("Help.")));
    assert_eq!(gemini.messages.len(), 1);
}

#[test]
fn names_do_not_depend_on_the_place() {
    let told = |list: Value| {
        let body = chat(&list).to_string();
        talk(CHAT, &body).keys()
    };
    let one = json!({"role": "user", "content": "go on"});
    let other = json!({"role": "user", "content": "stop"});
    let [first, second, third] = <[String; 3]>::try_from(told(json!([one, other, one]))).unwrap();
    assert_ne!(first, third, "equal ones are numbered");
    assert_eq!(told(json!([other, one])), [second, first]);
}

#[test]
fn items_are_those_that_are_recorded() {
    let body = chat(&json!([
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c", "reasoning_content": "d",
            "tool_calls": [{"id": "c1", "function": {"name": "read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "e"}]));
    let body = body.to_string();
    let talk = talk(CHAT, &body);
    let origins: Vec<String> = talk.entries().into_iter().filter_map(|entry| entry.origin).collect();
    let items = talk.items();
    assert_eq!(items.len(), 5);
    for item in items {
        let ItemRef::Origin(origin, part) = item else { unreachable!() };
        assert!(origins.contains(&origin) && part > 0, "{origin}");
    }
}
