//! Chat messages, alone and in runs.

use acpdb_hosts::import::{ImportFormat, ImportOptions, read};
use expect_test::expect;

use super::support::{check, import, judge, origins, show};

pub(crate) const RUNS: &str = r##"[{"task_id":0,"reward":0.0,"info":{"x":1},"traj":[{"role":"system","content":"policy"},{"role":"user","content":"book"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"user\": \"u\"}"}}]},{"role":"tool","tool_call_id":"c1","name":"get","content":"Error: no user"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"not json"}}]},{"role":"tool","tool_call_id":"c1","name":"get","content":"{}"}],"trial":1},
 {"task_id":"b","traj":[{"role":"user","content":"hi"}],"trial":0}, {"task_id":"b","traj":[],"trial":0}]"##;

#[test]
fn a_run_is_a_stream() {
    check(
        ImportFormat::OpenaiMessages,
        RUNS,
        expect![[r#"
            = openai-messages 0/1 cwd=-
            system [text policy]
            -- Prompt
            user [text book]
            -- Step
            assistant
            call c1 get {"user": "u"}
            end c1 Failed [text Error: no user]
            -- Step
            assistant
            call c1 get not json
            end c1 Completed [text {}]
            kept document
            = openai-messages b/0 cwd=-
            -- Prompt
            user [text hi]
            kept document
            sessions 2 records 7 calls 2 failed 1 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
        "#]],
    );
}

pub(crate) const LIST: &str = r##"[
  {"role": "developer", "content": [{"type": "text", "text": "be brief"}]},
  {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, {"type": "odd"}]},
  {"role": "assistant", "reasoning_content": "hm", "content": "both", "tool_calls": [
    {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    {"id": "c", "type": "function", "function": {"name": "h", "arguments": "{}"}}]},
  {"role": "tool", "tool_call_id": "b", "content": "2"},
  {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "1"}]},
  {"role": "tool", "tool_call_id": "zzz", "content": "whose?"},
  {"role": "assistant", "content": null, "function_call": {"name": "old", "arguments": "{}"}},
  {"role": "function", "name": "old", "content": "3"},
  {"role": "assistant", "content": null, "refusal": "no"},
  {"role": "tool", "tool_call_id": "c", "content": "late"}
]"##;

#[test]
fn parallel_calls_pair_by_id_and_old_calls_by_place() {
    check(
        ImportFormat::OpenaiMessages,
        LIST,
        expect![[r#"
            = openai-messages digest:8a28 cwd=-
            system [text be brief]
            -- Prompt
            user [text see] [media data:image/png;base64,AAAA] [opaque {"type": "odd"}]
            -- Step
            assistant [reasoning hm] [text both]
            call a f {}
            call b g {}
            call c h {}
            end b Completed [text 2]
            end a Completed [text 1]
            end zzz Completed [text whose?]
            -- Step
            assistant
            call 6.0 old {}
            end 6.0 Completed [text 3]
            -- Step
            assistant [text no]
            end c Completed [text late]
            kept document
            sessions 1 records 10 calls 4 failed 0 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
        "#]],
    );
}

pub(crate) const SIMULATIONS: &str = r##"{"info":{"seed":1},"tasks":[{"id":"0"}],"simulations":[{"id":"sim1","task_id":"0","trial":0,"messages":[{"role":"assistant","content":"Hi","tool_calls":null,"turn_idx":0,"timestamp":"2026-01-02T03:04:05Z"},{"role":"user","content":null,"tool_calls":[{"id":"u1","name":"toggle","arguments":{"on": true},"requestor":"user"}]},{"id":"u1","role":"tool","content":"Error-free","requestor":"user","error":false},{"role":"assistant","content":null,"tool_calls":[{"id":"a1","name":"x","arguments":{}},{"id":"a2","name":"y","arguments":{}}]},{"role":"tool","tool_messages":[{"id":"a1","role":"tool","content":"bad","error":true},{"id":"a2","role":"tool","content":"ok","error":false}]}]}],"timestamp":"t"}"##;

#[test]
fn a_simulation_is_a_stream_and_users_call_tools_too() {
    check_beside(SIMULATIONS);
}

/// The members beside the simulations are kept apart, so the general law of wires does not hold as it is.
fn check_beside(input: &str) {
    let mut batches = Vec::new();
    let report =
        read(ImportFormat::OpenaiMessages, "f", input.as_bytes(), &ImportOptions::default(), &mut batches)
            .unwrap();
    let beside = batches.pop().unwrap();
    let kept = acpdb_hosts::import::wire::resolve(&beside.entries[0].wire).unwrap();
    expect![[r#"{"info":{"seed":1},"tasks":[{"id":"0"}],"simulations":[],"timestamp":"t"}"#]]
        .assert_eq(&String::from_utf8(kept).unwrap());
    assert_eq!((report.sessions, report.records, report.calls_main, report.failed), (1, 5, 3, 1));
    super::support::judge(&batches, input.split_once("\"simulations\":").unwrap().1);
    expect![[r#"
        = openai-messages sim1 cwd=-
        -- Step
        assistant [text Hi]
        -- Prompt
        user
        call u1 toggle {"on": true} by User
        end u1 Completed [text Error-free]
        -- Step
        assistant
        call a1 x {}
        call a2 y {}
        end a1 Failed [text bad]
        end a2 Completed [text ok]
        kept document
    "#]]
    .assert_eq(&super::support::show(&batches));
}

#[test]
fn messages_one_a_line_are_one_conversation() {
    check(
        ImportFormat::OpenaiMessages,
        concat!(
            "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n",
            "{\"what\":1}\n{\"role\":\"user\",\"content\":\"c\"}\n{\"role\":"
        ),
        expect![[r#"
            = openai-messages digest:39d1 cwd=-
            -- Prompt
            user [text a]
            -- Step
            assistant [text b]
            kept raw
            -- Prompt
            user [text c]
            sessions 1 records 4 calls 0 failed 0 open 0 todos 0 unknown {} raw 1 skipped 0 cut true
        "#]],
    );
}

#[test]
fn the_caller_may_name_the_session() {
    let options = ImportOptions { session: Some("mine".into()), ..ImportOptions::default() };
    let names = |input: &str| {
        let mut batches = Vec::new();
        let _ = read(ImportFormat::OpenaiMessages, "f", input.as_bytes(), &options, &mut batches).unwrap();
        let mut names: Vec<String> = batches.iter().map(|batch| batch.stream.name.clone()).collect();
        names.dedup();
        names
    };
    assert_eq!(names(RUNS), ["mine/0/1", "mine/b/0"]);
    assert_eq!(names(LIST), ["mine"]);
    assert_eq!(names(r#"{"messages":[{"role":"user","content":"a"}]}"#), ["mine"]);
}

/// Bodies for Anthropic look like chat, except for their calls, which stand in blocks: all calls were lost without a message.
#[test]
fn calls_in_blocks_are_calls() {
    let body = r##"{"model":"claude-x","max_tokens":9,"system":"be brief","messages":[
      {"role":"user","content":"run it"},
      {"role":"assistant","content":[{"type":"text","text":"now"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt","is_error":true},{"type":"text","text":"and?"}]},
      {"role":"user","content":[]}]}"##;
    let lines = [
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt","is_error":true}]}"#,
    ]
    .join("\n");
    for input in [body, &lines] {
        let (batches, report) = import(ImportFormat::OpenaiMessages, "file", input.as_bytes());
        judge(&batches, input);
        origins(&batches);
        assert!(report.is_complete(), "{report:?}");
        assert_eq!((report.calls_main, report.failed, report.without_result), (1, 1, 0));
        let shown = show(&batches);
        for line in ["call t1 Bash {\"command\":\"ls\"}", "end t1 Failed [text a.txt]"] {
            assert!(shown.contains(line), "{shown}");
        }
    }
    let shown = show(&import(ImportFormat::OpenaiMessages, "file", body.as_bytes()).0);
    for line in
        ["prompt set system=true model=Some(\"claude-x\")", "[text now]", "user [text and?]", "kept message"]
    {
        assert!(shown.contains(line), "{shown}");
    }
    // Calls in blocks beside roles that the provider does not have.
    let odd = r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},{"role":"tool","content":"a"}]"#;
    let (_, report) = import(ImportFormat::OpenaiMessages, "file", odd.as_bytes());
    // The conversation, and the message of which nothing is left.
    assert_eq!((report.calls_main, report.kept_raw.len()), (0, 2));
}

/// Whatever had a role was a chat: lists of users, messages whose texts were under another name, and junk in a log stays.
#[test]
fn a_conversation_is_what_was_understood() {
    let said = |input: &str| {
        let (batches, report) = import(ImportFormat::OpenaiMessages, "file", input.as_bytes());
        format!("empty {} kept {}\n{}", report.is_empty, report.kept_raw.len(), show(&batches))
    };
    let table = [
        r#"[{"role":"admin","name":"Ada"},{"role":"user","name":"Bo"}]"#,
        r#"[{"role":"user","text":"hi"},{"role":"assistant","value":"hello"}]"#,
        r#"{"messages":{"title":"Hello"}}"#,
        "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"text\":\"hello\"}\n{\"role\":\"assistant\",\"content\":\"\"}\n",
        r#"[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"A"}}}]}]"#,
        "{\"role\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}\n{\"role\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"name\":\"W\",\"input\":{}}]}}\n",
    ];
    let told: Vec<String> = table.iter().map(|input| said(input)).collect();
    expect![[r#"
        empty true kept 2

        empty true kept 2

        empty true kept 0

        empty false kept 1
        = openai-messages digest:05db cwd=-
        -- Prompt
        user [text hi]
        -- Step
        assistant
        -- Step
        assistant

        empty false kept 0
        = openai-messages digest:09b4 cwd=-
        -- Prompt
        user [text hi]
        -- Step
        assistant
        call digest:66e2a4a61f05c68e6ee1b290e91b24d4#1.0 f {}
        end digest:66e2a4a61f05c68e6ee1b290e91b24d4#1.0 Completed [text A]
        kept document

        empty false kept 0
        = openai-messages digest:ea12 cwd=-
        -- Prompt
        user [text hi]
        -- Step
        assistant
        call digest:afe26a6e30b16c6df6409240a4ebef5a#1.0 W {}
    "#]]
    .assert_eq(&told.join("\n"));
}
