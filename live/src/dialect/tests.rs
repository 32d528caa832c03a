//! Events in the JSON of each host, and the answers.

use expect_test::{Expect, expect};

use super::*;
use crate::told::HostEventKind;

/// Parses the JSON of a host, and prints the event.
fn check(host: Host, text: &str, want: &Expect) {
    let told = parse(host, text, Some("postToolUse")).unwrap();
    want.assert_eq(&format!("{:?}\n", told.event));
}

const READ: &str = r#"{"session_id":"s1","transcript_path":"/t.jsonl","cwd":"/p","hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"/p/a.py"},"tool_response":{"type":"text","file":{"filePath":"/p/a.py","content":"one\ntwo\n","numLines":3,"startLine":4,"totalLines":9}},"tool_use_id":"toolu_1","duration_ms":2}"#;
const BASH: &str = r#"{"session_id":"s1","cwd":"/p","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":{"stdout":"a\nb","stderr":"","interrupted":false,"isImage":false},"tool_use_id":"toolu_2"}"#;

/// Hosts that cut texts by UTF-16 units leave half a character at the end: the whole event was refused, and never recorded.
#[test]
fn half_a_character_costs_itself_and_not_the_event() {
    let text = r#"{"conversation_id":"s1","hook_event_name":"postToolUse","tool_name":"Shell","tool_input":{"a":"\ud83d"},"tool_output":"a \ud83d","tool_use_id":"c1"}"#;
    check(
        Host::Cursor,
        text,
        &expect![[r#"
            CallEnded(CallWithResult { id: Some("c1"), tool: "Shell", params: "{\"a\":\"�\"}", outcome: Completed, shown: Some("a �"), text: Some("a �"), raw: String("a �") })
        "#]],
    );
}

#[test]
fn a_file_is_shown_with_numbers_and_compared_without() {
    let told = parse(Host::ClaudeCode, READ, None).unwrap();
    let HostEventKind::CallEnded(call) = &told.event else { unreachable!("{told:?}") };
    assert_eq!(call.shown.as_deref(), Some("4\tone\n5\ttwo\n6\t"));
    assert_eq!(call.text.as_deref(), Some("one\ntwo\n"));
    assert_eq!((call.id.as_deref(), &*call.params), (Some("toolu_1"), r#"{"file_path":"/p/a.py"}"#));
    assert_eq!(told.transcript.as_deref(), Some(std::path::Path::new("/t.jsonl")));
}

#[test]
fn results_that_are_more_than_text_are_not_compared() {
    for text in [
        BASH.replace(r#""stderr":"""#, r#""stderr":"oh""#),
        BASH.replace(r#""interrupted":false"#, r#""interrupted":true"#),
        BASH.replace(r#""isImage":false"#, r#""isImage":true"#),
        BASH.replace(r#""isImage":false"#, r#""persistedOutputPath":"/x""#),
        READ.replace(r#""type":"text""#, r#""type":"image""#),
        READ.replace("\"Read\"", "\"Other\""),
    ] {
        let told = parse(Host::ClaudeCode, &text, None).unwrap();
        let HostEventKind::CallEnded(call) = told.event else { unreachable!("{text}") };
        assert_eq!((call.text, call.shown), (None, None), "{text}");
    }
}

#[test]
fn a_pointer_has_the_shape_of_what_it_replaces() {
    let answer = HostReply { replacement: Some("[as above]".to_owned()), ..HostReply::default() };
    let check = |host: Host, text: &str, want: &Expect| {
        let told = parse(host, text, None).unwrap();
        want.assert_eq(&format!("{}\n", render(host, &told, &answer)));
    };
    check(
        Host::ClaudeCode,
        READ,
        &expect![[r#"
        {"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"type":"text","file":{"filePath":"/p/a.py","content":"[as above]","numLines":1,"startLine":4,"totalLines":9}}}}
    "#]],
    );
    check(
        Host::ClaudeCode,
        BASH,
        &expect![[r#"
        {"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"[as above]","stderr":"","interrupted":false,"isImage":false}}}
    "#]],
    );
    // A shape that is not known is not made up.
    check(
        Host::ClaudeCode,
        &READ.replace("\"Read\"", "\"Other\""),
        &expect![[r#"
        {}
    "#]],
    );
    let codex = r#"{"session_id":"s","turn_id":"t","cwd":"/p","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cat a"},"tool_response":"def","tool_use_id":"call_1"}"#;
    check(
        Host::Codex,
        codex,
        &expect![[r#"
        {"decision":"block","reason":"[as above]"}
    "#]],
    );
}

/// A conversation that a module of Claude Code is to make shorter, and the answer to the module.
#[test]
fn a_fold_keeps_handles_of_prompts_alone_and_joins_neighbours_of_one_side() {
    let call = |id: &str| json!({"tool_use_id": id, "tool": "Bash", "input": {"command": id}, "text": "long", "result": {"stdout": "long"}});
    let said = |text: &str, calls: Vec<Value>| json!({"role": "assistant", "text": text, "toolUses": calls, "handle": "h"});
    let result = |id: &str, more: Value| {
        let mut result = json!({"tool_use_id": id, "text": "long", "isError": false});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"role": "user", "text": "", "toolUses": [], "toolResults": [result], "handle": "h"})
    };
    let prompt = json!({"role": "user", "text": "Do it.", "toolUses": [], "handle": "p"});
    let rows = json!([
        prompt,
        said("One.", vec![]),
        said("", vec![call("a")]),
        said("", vec![call("b")]),
        result("a", json!({})),
        result("b", json!({"isError": true, "result": {"stdout": "long"}})),
        said("Two.", vec![]),
        prompt,
        prompt,
    ]);
    let told = json!({"session_id": "s", "hook_event_name": "session.compact", "compact": {"trigger": "auto", "messages": rows}});
    let told = parse(Host::ClaudeCode, &told.to_string(), None).unwrap();
    let mut folded = crate::told::Folded::default();
    let change = |input: Option<&str>, output: Option<&str>| crate::told::CallChange {
        input: input.map(str::to_owned),
        output: output.map(str::to_owned),
    };
    folded.calls.insert("a".to_owned(), change(Some(r#"{"command":"[gone]"}"#), Some("[gone]")));
    folded.calls.insert("b".to_owned(), change(Some("no object"), None));
    folded.texts.insert("Two.".to_owned(), "[2]".to_owned());
    folded.texts.insert("Do it.".to_owned(), "a person's words stay".to_owned());
    let made = render(Host::ClaudeCode, &told, &HostReply { folded: Some(folded), ..HostReply::default() });
    let lines: Vec<String> = made["messages"].as_array().unwrap().iter().map(ToString::to_string).collect();
    expect![[r#"
        {"role":"user","text":"Do it.","toolUses":[],"handle":"p"}
        {"role":"assistant","text":"One.","toolUses":[{"tool_use_id":"a","tool":"Bash","input":{"command":"[gone]"}},{"tool_use_id":"b","tool":"Bash","input":{"command":"b"}}]}
        {"role":"user","text":"","toolUses":[],"toolResults":[{"tool_use_id":"a","text":"[gone]","isError":false},{"tool_use_id":"b","text":"long","isError":true}]}
        {"role":"assistant","text":"[2]","toolUses":[]}
        {"role":"user","text":"Do it.","toolUses":[],"handle":"p"}
        {"role":"user","text":"Do it.","toolUses":[],"handle":"p"}
    "#]]
    .assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn a_text_for_the_model_stands_where_its_host_looks() {
    let answer = HostReply { context: Some("due".to_owned()), ..HostReply::default() };
    let mut said = String::new();
    for (host, name) in [
        (Host::ClaudeCode, "SessionStart"),
        (Host::Codex, "UserPromptSubmit"),
        (Host::GeminiCli, "BeforeAgent"),
        (Host::CopilotCli, "sessionStart"),
        (Host::Cursor, "sessionStart"),
        (Host::VsCode, "SessionStart"),
    ] {
        let told = parse(host, &format!(r#"{{"session_id":"s","hook_event_name":"{name}"}}"#), None).unwrap();
        said += &format!("{host} {}\n", render(host, &told, &answer));
        assert_eq!(render(host, &told, &HostReply::default()).to_string(), "{}");
    }
    expect![[r#"
        claude-code {"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"due"}}
        codex {"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"due"}}
        gemini-cli {"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"due"}}
        copilot-cli {"additionalContext":"due"}
        cursor {"additional_context":"due"}
        vscode {"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"due"}}
    "#]]
    .assert_eq(&said);
}

#[test]
fn each_host_tells_of_calls_in_its_own_words() {
    check(
        Host::GeminiCli,
        r#"{"session_id":"s","hook_event_name":"AfterTool","tool_name":"read_file","tool_input":{"a":1},"tool_response":{"llmContent":"text","returnDisplay":""}}"#,
        &expect![[r#"
            CallEnded(CallWithResult { id: None, tool: "read_file", params: "{\"a\":1}", outcome: Completed, shown: Some("text"), text: Some("text"), raw: Object {"llmContent": String("text"), "returnDisplay": String("")} })
        "#]],
    );
    check(
        Host::CopilotCli,
        r#"{"sessionId":"s","cwd":"/p","toolName":"view","toolArgs":"{\"path\":\"a\"}","toolResult":{"resultType":"failure","textResultForLlm":"no"}}"#,
        &expect![[r#"
            CallEnded(CallWithResult { id: None, tool: "view", params: "{\"path\":\"a\"}", outcome: Failed, shown: Some("no"), text: Some("no"), raw: Object {"resultType": String("failure"), "textResultForLlm": String("no")} })
        "#]],
    );
    check(
        Host::Cursor,
        r#"{"conversation_id":"c","hook_event_name":"postToolUse","workspace_roots":["/w"],"tool_name":"Shell","tool_input":{"command":"ls"},"tool_output":"{\"stdout\":\"a\"}","tool_use_id":"t"}"#,
        &expect![[r#"
            CallEnded(CallWithResult { id: Some("t"), tool: "Shell", params: "{\"command\":\"ls\"}", outcome: Completed, shown: Some("{\"stdout\":\"a\"}"), text: Some("{\"stdout\":\"a\"}"), raw: String("{\"stdout\":\"a\"}") })
        "#]],
    );
    check(
        Host::ClaudeCode,
        r#"{"session_id":"s","hook_event_name":"PostToolUseFailure","tool_name":"Read","tool_input":{},"tool_use_id":"t","error":"File does not exist."}"#,
        &expect![[r#"
            CallEnded(CallWithResult { id: Some("t"), tool: "Read", params: "{}", outcome: Failed, shown: Some("File does not exist."), text: Some("File does not exist."), raw: Null })
        "#]],
    );
}

#[test]
fn sessions_begin_for_a_reason() {
    for (source, want) in
        [("startup", "New"), ("clear", "New"), ("resume", "Resumed"), ("compact", "Compacted")]
    {
        let text = format!(r#"{{"session_id":"s","hook_event_name":"SessionStart","source":"{source}"}}"#);
        let told = parse(Host::ClaudeCode, &text, None).unwrap();
        assert_eq!(format!("{:?}", told.event), format!("SessionStarted {{ source: {want} }}"));
    }
}

#[test]
fn what_is_no_event_is_said() {
    for (text, said) in [
        ("", "no JSON object"),
        ("[]", "no JSON object"),
        ("{}", "names no session"),
        (r#"{"session_id":""}"#, "names no session"),
        (r#"{"session_id":"s"}"#, "names no event"),
    ] {
        for host in Host::ALL {
            let error = parse(host, text, None).unwrap_err().to_string();
            assert!(error.contains(said), "{host} {text}: {error}");
        }
    }
}

#[test]
fn fields_of_other_types_cost_only_themselves() {
    let text = r#"{"session_id":"s","hook_event_name":"PostToolUse","tool_name":7,"tool_input":null,"tool_response":[1],"tool_use_id":{},"cwd":false}"#;
    for host in Host::ALL {
        let told = parse(host, text, None).unwrap();
        assert_eq!((told.session.as_str(), told.cwd), ("s", None), "{host}");
    }
}
