//! Broken bodies, at least one for each rule, and sound ones beside them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests: a failed step is a failed test")]

use acpdb_hosts::export::Format;
use acpdb_hosts::lint::{RequestFacts, lint};
use expect_test::{Expect, expect};

fn found(format: Format, body: &str, known: RequestFacts<'_>) -> String {
    let findings = lint(format, body.as_bytes(), known);
    findings.iter().map(|it| format!("{} {}: {}\n", it.rule, it.pointer, it.found)).collect()
}

fn check(format: Format, body: &str, expected: &Expect) {
    let found = found(format, body, RequestFacts::default());
    expected.assert_eq(&found);
    // Each finding names a place that is there, or the end of one that is.
    let value: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    for finding in lint(format, body.as_bytes(), RequestFacts::default()) {
        let parent = finding.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        assert!(value.pointer(parent).is_some(), "{}", finding.pointer);
    }
}

const USER: &str = r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#;

fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"read","input":{{}}}}"#)
}

fn result(id: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}"#)
}

/// A body of messages, the first of them the user's; roles alternate.
fn anthropic(contents: &[&str]) -> String {
    let roles = ["user", "assistant"].into_iter().cycle();
    let messages: Vec<String> = contents
        .iter()
        .zip(roles)
        .map(|(content, role)| format!(r#"{{"role":"{role}","content":[{content}]}}"#))
        .collect();
    format!(r#"{{"messages":[{}]}}"#, messages.join(","))
}

const TEXT: &str = r#"{"type":"text","text":"x"}"#;

#[test]
fn pairs_of_anthropic_are_seen() {
    use Format::Anthropic;
    let (a, b) = (call("a"), call("b"));
    let (ra, rb) = (result("a"), result("b"));
    check(Anthropic, &anthropic(&[TEXT, &format!("{a},{b}"), &format!("{rb},{ra},{TEXT}")]), &expect![[""]]);
    check(
        Anthropic,
        &anthropic(&[TEXT, &a, TEXT]),
        &expect![[r#"
        A1 /messages/1: none
    "#]],
    );
    check(
        Anthropic,
        &anthropic(&[TEXT, &a]),
        &expect![[r#"
        A1 /messages/1: none
    "#]],
    );
    check(
        Anthropic,
        &anthropic(&[&ra]),
        &expect![[r#"
        A1 /messages/0/content/0/tool_use_id: a result without call: "a"
    "#]],
    );
    check(
        Anthropic,
        &anthropic(&[TEXT, &a, &format!("{ra},{ra}")]),
        &expect![[r#"
        A1 /messages/2/content/1/tool_use_id: a second result: "a"
    "#]],
    );
    check(
        Anthropic,
        &anthropic(&[TEXT, &a, &ra, &a, &ra]),
        &expect![[r#"
        A1 /messages/3/content/0/id: a, as at /messages/1/content/0
        A1 /messages/4/content/0/tool_use_id: a result without call: "a"
    "#]],
    );
    check(
        Anthropic,
        &anthropic(&[TEXT, &call("a.b"), &result("a.b")]),
        &expect![[r#"
        A1 /messages/1/content/0/id: "a.b"
    "#]],
    );
    check(
        Anthropic,
        &anthropic(&[TEXT, &a, &format!("{TEXT},{ra}")]),
        &expect![[r#"
        A2 /messages/2/content/1: block 0 before it
    "#]],
    );
}

/// A request that adds to a conversation which the provider keeps answers calls that stand there. Each such result was refused.
#[test]
fn results_of_calls_that_the_provider_keeps_are_sound() {
    let (ra, rb) = (result("a"), result("b"));
    let thread = r#"{"thread":{"type":"continue","previous_message_id":"msg_1"},"#;
    let added = |content: &str| anthropic(&[content]).replacen('{', thread, 1);
    check(Format::Anthropic, &added(&format!("{ra},{rb}")), &expect![[""]]);
    check(
        Format::Anthropic,
        &added(&format!("{ra},{ra}")),
        &expect![[r#"
        A1 /messages/0/content/1/tool_use_id: a second result: "a"
    "#]],
    );
    let input = r#""input":[{"type":"function_call_output","call_id":"a","output":"x"}]"#;
    for kept in [r#""previous_response_id":"resp_1""#, r#""conversation":"conv_1""#] {
        check(Format::Responses, &format!("{{{kept},{input}}}"), &expect![[""]]);
    }
    check(
        Format::Responses,
        &format!(r#"{{"previous_response_id":null,{input}}}"#),
        &expect![[r#"
        R1 /input/0/call_id: an output without call: "a"
    "#]],
    );
}

#[test]
fn roles_and_contents_of_anthropic_are_seen() {
    use Format::Anthropic;
    check(
        Anthropic,
        r#"{"messages":[{"role":"assistant","content":"x"}]}"#,
        &expect![[r#"
        A3 /messages/0: one of the assistant
    "#]],
    );
    check(Anthropic, &format!(r#"[{USER},{USER}]"#), &expect![""]);
    check(
        Anthropic,
        r#"[{"role":"user","content":""},{"role":"assistant","content":[{"type":"text","text":" \n"}]},{"role":"tool"}]"#,
        &expect![[r#"
            A3 /0/content: none
            A3 /1/content/0/text: none
            A3 /2/role: "tool"
            A3 /2/content: nothing
        "#]],
    );
    let input = r#"{"type":"tool_use","id":"a","name":"read","input":"{}"}"#;
    check(
        Anthropic,
        &anthropic(&[TEXT, input, &result("a")]),
        &expect![[r#"
        A7 /messages/1/content/0/input: a string
    "#]],
    );
    let broken = r#"{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""},{"type":"tool_use"}],"is_error":"no"}"#;
    check(
        Anthropic,
        &anthropic(&[TEXT, &call("a"), broken]),
        &expect![[r#"
        A6 /messages/2/content/0/is_error: something else
        A6 /messages/2/content/0/content/0/text: none
        A6 /messages/2/content/0/content/1: Some("tool_use")
    "#]],
    );
    check(
        Anthropic,
        "{\"messages\":",
        &expect![[r#"
        shape : EOF while parsing a value at line 1 column 12
    "#]],
    );
    check(
        Anthropic,
        r#"{"messages":{}}"#,
        &expect![[r#"
        shape /messages: an object
    "#]],
    );
}

const THINKING: &str = r#"{"type":"thinking","thinking":"hm","signature":"s1"}"#;

#[test]
fn reasoning_of_anthropic_is_seen() {
    use Format::Anthropic;
    check(Anthropic, &anthropic(&[TEXT, &format!("{THINKING},{TEXT}")]), &expect![[""]]);
    check(
        Anthropic,
        &anthropic(&[TEXT, &format!("{TEXT},{THINKING}"), THINKING]),
        &expect![[r#"
        A4 /messages/1/content/1: the end of the message
        A4 /messages/2/content/0: user
    "#]],
    );
    let unsigned = r#"{"type":"thinking","thinking":"hm"}"#;
    check(
        Anthropic,
        &anthropic(&[TEXT, &format!("{unsigned},{TEXT}")]),
        &expect![[r#"
        A4 /messages/1/content/0/signature: nothing
    "#]],
    );
    let body = anthropic(&[TEXT, &call("a"), &result("a")]);
    let on = body.replacen('{', r#"{"thinking":{"type":"enabled","budget_tokens":1024},"#, 1);
    check(
        Anthropic,
        &on,
        &expect![[r#"
        A4 /messages/1/content/0: tool_use
    "#]],
    );
}

#[test]
fn bound_reasoning_may_not_stand_behind_a_change() {
    let first = anthropic(&["{\"type\":\"text\",\"text\":\"one\"}", &format!("{THINKING},{TEXT}")]);
    let next = |text: &str, reasoning: &str| {
        let said = format!("{{\"type\":\"text\",\"text\":\"{text}\"}}");
        let body = anthropic(&[&said, &format!("{reasoning}{TEXT}"), TEXT]);
        body.replacen('{', r#"{"model":"claude-opus-5-5","#, 1)
    };
    let told = |body: &str| {
        found(Format::Anthropic, body, RequestFacts { model: None, previous: Some(first.as_bytes()) })
    };
    let reasoning = format!("{THINKING},");
    assert_eq!(told(&next("one", &reasoning)), "");
    assert_eq!(told(&next("two", "")), "");
    assert_eq!(told(&next("two", &reasoning)), "A5 /messages/1/content/0: a block that was made before it\n");
    // Another model allows the change.
    assert_eq!(told(&next("two", &reasoning).replace("opus-5-5", "opus-4-5")), "");
    let system = next("one", &reasoning).replacen('{', r#"{"system":"new","#, 1);
    assert_eq!(told(&system), "A5 /messages/1/content/0: a block that was made before it\n");
}

#[test]
fn marks_for_the_cache_are_counted_and_no_change() {
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    let text = |text: &str, mark: &str| format!(r#"{{"type":"text","text":"{text}"{mark}}}"#);
    let marked = |name: &str| text(name, &format!(",{mark}"));
    let five = anthropic(&[&["a", "b", "c", "d", "e"].map(marked).join(",")]);
    assert_eq!(found(Format::Anthropic, &five, RequestFacts::default()), "A8 /messages: 5\n");
    let thinking = THINKING.replacen('{', &format!("{{{mark},"), 1);
    let reasoning = anthropic(&[TEXT, &format!("{thinking},{TEXT}")]);
    assert_eq!(
        found(Format::Anthropic, &reasoning, RequestFacts::default()),
        "A8 /messages/1/content/0/cache_control: one\n"
    );
    // A mark that moves does not make the reasoning behind it invalid.
    let first = anthropic(&[&marked("one"), &format!("{THINKING},{TEXT}")]);
    let next = anthropic(&[&text("one", ""), &format!("{THINKING},{TEXT}"), &marked("two")]);
    let next = next.replacen('{', r#"{"model":"claude-opus-5-5","#, 1);
    let known = RequestFacts { model: None, previous: Some(first.as_bytes()) };
    assert_eq!(found(Format::Anthropic, &next, known), "");
    let other = next.replacen("one", "other", 1);
    assert!(found(Format::Anthropic, &other, known).starts_with("A5 "), "{other}");
}

#[test]
fn chat_is_checked() {
    use Format::Openai;
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"a","content":"x"}"#;
    let user = r#"{"role":"user","content":"hi"}"#;
    let body = |messages: &[&str]| format!(r#"{{"messages":[{}]}}"#, messages.join(","));
    check(Openai, &body(&[user, call, result, user]), &expect![[""]]);
    check(
        Openai,
        &body(&[user, call, user, result]),
        &expect![[r#"
        O1 /messages/1: none
        O2 /messages/3/tool_call_id: a result without call: "a"
    "#]],
    );
    check(
        Openai,
        &body(&[user, result]),
        &expect![[r#"
        O2 /messages/1/tool_call_id: a result without call: "a"
    "#]],
    );
    check(
        Openai,
        &body(&[call, result, result]),
        &expect![[r#"
        O2 /messages/2/tool_call_id: a second result: "a"
    "#]],
    );
    check(
        Openai,
        &body(&[&call.replace("\"{}\"", "{}"), result]),
        &expect![[r#"
        O3 /messages/0/tool_calls/0/function/arguments: an object
    "#]],
    );
    check(
        Openai,
        &body(&[r#"{"role":"assistant","content":null}"#]),
        &expect![[r#"
        O4 /messages/0/content: null
    "#]],
    );
}

#[test]
fn responses_are_checked() {
    use Format::Responses;
    let call = r#"{"type":"function_call","call_id":"a","name":"read","arguments":"{}"}"#;
    let output = r#"{"type":"function_call_output","call_id":"a","output":"x"}"#;
    let user = r#"{"role":"user","content":"hi"}"#;
    let reasoning = r#"{"type":"reasoning","summary":[],"encrypted_content":"e"}"#;
    let body = |items: &[&str]| format!(r#"{{"store":false,"input":[{}]}}"#, items.join(","));
    check(Responses, &body(&[user, reasoning, call, output, user]), &expect![[""]]);
    check(Responses, r#"{"input":"hi"}"#, &expect![[""]]);
    check(
        Responses,
        &body(&[call]),
        &expect![[r#"
        R1 /input/0: none
    "#]],
    );
    check(
        Responses,
        &body(&[output, call]),
        &expect![[r#"
        R1 /input/0/call_id: an output without call: "a"
        R1 /input/1: none
    "#]],
    );
    let custom = output.replace("function_call_output", "custom_tool_call_output");
    check(
        Responses,
        &body(&[call, &custom]),
        &expect![[r#"
        R1 /input/1/call_id: an output of another kind than the call: "a"
        R1 /input/0: none
    "#]],
    );
    check(
        Responses,
        &body(&[reasoning, user]),
        &expect![[r#"
        R2 /input/0: message
    "#]],
    );
    check(
        Responses,
        &body(&[&reasoning.replace("\"e\"", "null"), call, output]),
        &expect![[r#"
        R4 /input/0/encrypted_content: nothing
    "#]],
    );
    check(
        Responses,
        &body(&[&call.replacen('{', r#"{"status":null,"#, 1), output]),
        &expect![[r#"
        R5 /input/0/status: null
    "#]],
    );
    let before = body(&[user, reasoning, call, output]);
    let torn = body(&[user, call, output]);
    let known = RequestFacts { model: None, previous: Some(before.as_bytes()) };
    assert_eq!(found(Responses, &torn, known), "R3 /input/1: the call alone\n");
    assert_eq!(found(Responses, &before, known), "");
    // All of the unit is gone: that is allowed.
    assert_eq!(found(Responses, &body(&[user]), known), "");
}

#[test]
fn contents_are_checked() {
    use Format::Gemini;
    let user = r#"{"role":"user","parts":[{"text":"hi"}]}"#;
    let model = |signature: &str| {
        format!(
            r#"{{"role":"model","parts":[{{"functionCall":{{"id":"a","name":"read","args":{{}}}}{signature}}}]}}"#
        )
    };
    let response = r#"{"role":"user","parts":[{"functionResponse":{"id":"a","name":"read","response":{"output":"x"}}}]}"#;
    let body = |contents: &[&str]| format!(r#"{{"contents":[{}]}}"#, contents.join(","));
    let (bare, signed) = (model(""), model(r#","thoughtSignature":"s""#));
    let skipped = model(r#","thoughtSignature":"skip_thought_signature_validator""#);
    check(Gemini, &body(&[user, &bare, response]), &expect![[""]]);
    check(Gemini, &body(&[user, &signed, response, &skipped, response]), &expect![[""]]);
    check(
        Gemini,
        &body(&[user, &bare, user]),
        &expect![[r#"
        G1 /contents/1: none
    "#]],
    );
    check(
        Gemini,
        &body(&[user, &bare, &response.replace("read", "write")]),
        &expect![[r#"
        G1 /contents/2: write a
    "#]],
    );
    check(
        Gemini,
        &body(&[&bare, response]),
        &expect![[r#"
        G2 /contents/0: nothing before it
    "#]],
    );
    check(
        Gemini,
        &body(&[user, r#"{"role":"model","parts":[{"text":"x"}]}"#, &bare, response]),
        &expect![[r#"
        G2 /contents/2: the model's own turn before it
    "#]],
    );
    check(
        Gemini,
        &body(&[user, &signed, response, &bare, response]),
        &expect![[r#"
        G3 /contents/3/parts/0: none
    "#]],
    );
    let third = RequestFacts { model: Some("gemini-3-pro"), previous: None };
    assert_eq!(found(Gemini, &body(&[user, &bare, response]), third), "G3 /contents/1/parts/0: none\n");
    let said = r#"{"role":"user","parts":[{"text":"hi","thoughtSignature":"s"}]}"#;
    check(
        Gemini,
        &body(&[said]),
        &expect![[r#"
        G4 /contents/0/parts/0: user
    "#]],
    );
    let moved = body(&[user, r#"{"role":"model","parts":[{"text":"x","thoughtSignature":"s"}]}"#]);
    let before = body(&[user, &signed, response]);
    let known = RequestFacts { model: None, previous: Some(before.as_bytes()) };
    assert_eq!(found(Gemini, &moved, known), "G4 /contents/1/parts/0: another part\n");
    // Gemini CLI sends the mark in earlier turns as well.
    check(Gemini, &body(&[user, &skipped, response, user]), &expect![""]);
    let text =
        r#"{"role":"model","parts":[{"text":"x","thoughtSignature":"skip_thought_signature_validator"}]}"#;
    check(
        Gemini,
        &body(&[user, text]),
        &expect![[r#"
        G5 /contents/1/parts/0: another part
    "#]],
    );
}

/// A request body around an opaque field.
type Body<'b> = &'b dyn Fn(&str) -> String;

#[test]
fn opaque_fields_come_back_as_they_came() {
    let thinking = |signature: &str| {
        let block = format!(r#"{{"type":"thinking","thinking":"hm","signature":"{signature}"}},{TEXT}"#);
        anthropic(&[TEXT, &block])
    };
    let reasoning = |content: &str| {
        format!(
            r#"{{"store":false,"input":[{{"role":"user","content":"hi"}},{{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"{content}"}},{{"role":"assistant","content":"x"}}]}}"#
        )
    };
    let contents = |signature: &str| {
        format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"hi"}}]}},{{"role":"model","parts":[{{"text":"x","thoughtSignature":"{signature}"}}]}}]}}"#
        )
    };
    let cases: [(Format, Body<'_>, &str); 3] = [
        (Format::Anthropic, &thinking, "I4 /messages/1/content/0/signature: others\n"),
        (Format::Responses, &reasoning, "I4 /input/1/encrypted_content: others\n"),
        (Format::Gemini, &contents, "I4 /contents/1/parts/0/thoughtSignature: others\n"),
    ];
    for (format, body, expected) in cases {
        let (before, changed) = (body("abc="), body("abd="));
        let known = RequestFacts { model: None, previous: Some(before.as_bytes()) };
        assert_eq!(found(format, &before, known), "", "{format}");
        assert_eq!(found(format, &changed, known), expected, "{format}");
        // Without the request before, that cannot be known.
        assert_eq!(found(format, &changed, RequestFacts::default()), "", "{format}");
    }
}

/// The promises of exporters whose break can be seen in bytes: each promise has a body that breaks it.
///
/// I3 (order), I6 (the user's last words), I7 (the same bytes again), I8 (a prefix), I9 to I12 are about a log, not a body; laws
/// over lives of sessions hold them.
#[test]
fn broken_promises_are_seen_by_a_rule() {
    let (a, ra) = (call("a"), result("a"));
    let twice = anthropic(&[TEXT, &a, &ra, &a, &ra]);
    let apart = anthropic(&[TEXT, &a, TEXT, TEXT, &ra]);
    let run = r#"{"type":"thinking","thinking":"hm"}"#;
    let torn = anthropic(&[TEXT, &format!("{run},{TEXT}")]);
    for (promise, body, rule) in [("I1", &twice, "A1"), ("I2", &apart, "A1"), ("I5", &torn, "A4")] {
        let found = found(Format::Anthropic, body, RequestFacts::default());
        assert!(found.starts_with(rule), "{promise}: {found}");
    }
}

#[test]
fn every_rule_has_a_body_that_breaks_it() {
    let corpus = include_str!("lint.rs");
    let rules = ["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "O1", "O2", "O3", "O4"];
    let rules = rules.into_iter().chain(["R1", "R2", "R3", "R4", "R5", "G1", "G2", "G3", "G4", "G5"]);
    for rule in rules {
        assert!(corpus.contains(&format!("{rule} /")), "no body breaks {rule}");
    }
}

/// A compaction by the server goes back as it came; those of `OpenAI` with that name hold other things.
#[test]
fn compactions_of_the_server_are_the_models_and_hold_their_summary() {
    let talk = |role: &str, block: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"x"}},{{"role":"{role}","content":[{block},{{"type":"text","text":"y"}}]}}]}}"#
        )
    };
    let whole = r#"{"type":"compaction","content":"in short"}"#;
    check(Format::Anthropic, &talk("assistant", whole), &expect![[""]]);
    check(Format::Anthropic, &talk("assistant", r#"{"type":"compaction","content":null}"#), &expect![[""]]);
    check(
        Format::Anthropic,
        &talk("assistant", r#"{"type":"compaction"}"#),
        &expect![[r#"
        A9 /messages/1/content/0: none
    "#]],
    );
    check(
        Format::Anthropic,
        &talk("user", whole),
        &expect![[r#"
        A9 /messages/1/content/0: user
    "#]],
    );
}

/// Edits in a body were not looked at.
#[test]
fn edits_by_the_provider_are_of_known_kinds_and_that_of_reasoning_comes_first() {
    let body = |management: &str| {
        format!(r#"{{"messages":[{{"role":"user","content":"x"}}],"context_management":{management}}}"#)
    };
    let edits = |kinds: &[&str]| {
        let edits: Vec<String> = kinds.iter().map(|kind| format!(r#"{{"type":"{kind}"}}"#)).collect();
        body(&format!(r#"{{"edits":[{}]}}"#, edits.join(",")))
    };
    let (thinking, tools) = ("clear_thinking_20251015", "clear_tool_uses_20250919");
    let table = [
        edits(&[thinking, tools, "compact_20260112"]),
        body("null"),
        edits(&[tools, thinking]),
        edits(&["clear_everything"]),
        body(r#"{"applied_edits":[]}"#),
    ];
    let expected = expect![[r#"
        --
        --
        A10 /context_management/edits/1: place 1
        --
        A10 /context_management/edits/0/type: clear_everything
        --
        A10 /context_management/applied_edits: edits that were made
        --
    "#]];
    let mut told = String::new();
    for body in table {
        told.push_str(&found(Format::Anthropic, &body, RequestFacts::default()));
        told.push_str("--\n");
    }
    expected.assert_eq(&told);
}
