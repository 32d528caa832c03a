//! Conversations as documents and as logs.

use acpdb_hosts::import::ImportFormat;
use expect_test::expect;

use super::support::{check, import, origins};

pub(crate) const DOCUMENT: &str = r##"{
  "sessionId": "s1",
  "projectHash": "abc",
  "startTime": "2026-01-02T03:04:05Z",
  "messages": [
    {"id": "m1", "timestamp": "2026-01-02T03:04:05Z", "type": "user", "content": "look"},
    {"id": "m2", "timestamp": "2026-01-02T03:04:06Z", "type": "gemini", "content": "",
     "thoughts": [{"subject": "Plan", "description": "read it"}],
     "tokens": {"input": 10, "output": 2, "cached": 4, "thoughts": 1, "tool": 0, "total": 13}, "model": "g",
     "toolCalls": [
       {"id": "t1", "name": "read_file", "args": {"file_path": "a.txt"}, "status": "success",
        "result": [{"functionResponse": {"id": "t1", "name": "read_file", "response": {"output": "text of the file\n"}}}],
        "resultDisplay": "1 line", "timestamp": "2026-01-02T03:04:07Z"},
       {"id": "t2", "name": "read_file", "args": {"file_path": "b.txt"}, "status": "error",
        "result": [{"functionResponse": {"id": "t2", "name": "read_file", "response": {"error": "no such file"}}}]},
       {"id": "t3", "name": "replace", "args": {}, "status": "cancelled", "result": null},
       {"id": "t4", "name": "mcp", "args": {}, "status": "success",
        "result": [{"functionResponse": {"response": {"a": 1}}}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
       {"id": "t5", "name": "write_todos", "args": {"todos": []}, "status": "executing", "result": null}
     ]},
    {"id": "m3", "type": "info", "content": "update available"},
    {"id": "m4", "type": "user", "content": [{"text": "go"}, "on", {"fileData": {"fileUri": "x"}}], "displayContent": [{"text": "go"}]},
    {"id": "m4", "type": "gemini", "content": "an id twice"}
  ],
  "kind": "main"
}
"##;

#[test]
fn a_document_becomes_messages_and_calls_and_can_be_put_together_again() {
    check(
        ImportFormat::GeminiCli,
        DOCUMENT,
        expect![[r#"
            = gemini-cli s1 cwd=-
            -- Prompt
            user [text look]
            -- Step
            assistant
               .. [reasoning **Plan**\n\nread it]
            call t1 read_file {"file_path": "a.txt"}
            end t1 Completed [text text of the file\n] +details
            call t2 read_file {"file_path": "b.txt"}
            end t2 Failed [text no such file]
            call t3 replace {}
            end t3 Aborted
            call t4 mcp {}
            end t4 Completed [text {"a": 1}] [media AAAA]
            call t5 write_todos {"todos": []}
            finished g Some(6)/Some(3)
            kept message
            system (not for the model) [text update available]
            -- Prompt
            user [text go] [text on] [opaque {"fileData": {"fileUri": "x"}}]
            -- Step
            assistant
               .. [text an id twice]
            kept message
            kept document
            sessions 1 records 5 calls 5 failed 2 open 1 todos 1 unknown {} raw 0 skipped 0 cut false
        "#]],
    );
}

pub(crate) const LOG: &str = r##"{"sessionId":"s1","projectHash":"abc","startTime":"2026-01-02T03:04:05Z","kind":"main"}
{"id":"m1","timestamp":"2026-01-02T03:04:05Z","type":"user","content":"look"}
{"id":"m2","timestamp":"2026-01-02T03:04:06Z","type":"gemini","content":"I look","toolCalls":[{"id":"t1","name":"read_file","args":{"file_path":"a"},"status":"executing","result":null}]}
{"id":"m2","timestamp":"2026-01-02T03:04:06Z","type":"gemini","content":"I look","toolCalls":[{"id":"t1","name":"read_file","args":{"file_path":"a"},"status":"success","result":[{"functionResponse":{"response":{"output":"x"}}}]}]}
{"$set":{"lastUpdated":"2026-01-02T03:04:07Z"}}
{"id":"m3","type":"user","content":"no"}
{"id":"m4","type":"gemini","content":"sorry"}
{"$rewindTo":"m3"}
{"id":"m3","type":"user","content":"yes"}
{"$set":{"summary":"A look","messages":[{"id":"m9","type":"user","content":"summary of m1"},{"id":"m2","timestamp":"2026-01-02T03:04:06Z","type":"gemini","content":"I look","toolCalls":[{"id":"t1","name":"read_file","args":{"file_path":"a"},"status":"success","result":[{"functionResponse":{"response":{"output":"x"}}}]}]},{"id":"m3","type":"user","content":"yes, masked"}]}}
{"id":"m5","type":"gemini","content":"done"}
{"$rewindTo":"m1"}
{"$future":1}
[1]
"##;

#[test]
fn a_log_is_followed_by_position() {
    check(
        ImportFormat::GeminiCli,
        LOG,
        expect![[r#"
            = gemini-cli s1 cwd=-
            kept session
            -- Prompt
            user [text look]
            -- Step
            assistant
               .. [text I look]
            call t1 read_file {"file_path":"a"}
            kept message
            end t1 Completed [text x]
            kept $set
            -- Prompt
            user [text no]
            -- Step
            assistant
               .. [text sorry]
            rewound to before msg:m3
            -- Prompt
            user [text yes, masked]
            -- Prompt
            user [text summary of m1]
            context replaced Host [msg:m9.1 msg:m2/part0.1 call:m2/t1:start.1 msg:m3@2.1]
            session changed title=Some("A look") cwd=None
            -- Step
            assistant
               .. [text done]
            rewound to before absent:m1
            kept $future
            kept raw
            sessions 1 records 14 calls 1 failed 0 open 0 todos 0 unknown {"$future": 1} raw 1 skipped 0 cut false
        "#]],
    );
}

#[test]
fn both_forms_of_a_session_give_the_same_origins() {
    let messages = [
        r#"{"id":"m1","type":"user","content":"look"}"#,
        r#"{"id":"m2","type":"gemini","content":"","toolCalls":[{"id":"t1","name":"a","args":{},"status":"success","result":null}]}"#,
    ];
    let document = format!(r#"{{"sessionId":"s","projectHash":"p","messages":[{}]}}"#, messages.join(","));
    let log = format!("{{\"sessionId\":\"s\",\"projectHash\":\"p\"}}\n{}\n", messages.join("\n"));
    let [document, log] =
        [document, log].map(|text| origins(&import(ImportFormat::GeminiCli, "f", text.as_bytes()).0));
    let both: Vec<_> = document.intersection(&log).map(|(_, origin)| origin.as_str()).collect();
    assert_eq!(
        both,
        ["call:m2/t1:finish", "call:m2/t1:start", "msg:m1", "msg:m2", "prompt:msg:m1", "turn:msg:m2"]
    );
}

/// A subagent's session stood beside the others as if the user had begun it, and tokens that the provider's own tools took were in no sum.
#[test]
fn a_subagent_belongs_to_the_session_that_its_folder_names() {
    use acpdb_hosts::import::{AGENT_FOLDER, Beside, ImportOptions, read};
    let parent = "9e551011-0000-4000-8000-000000000001";
    let input = |kind: &str| {
        format!(
            r#"{{"sessionId":"9e551011-0000-4000-8000-000000000002","projectHash":"p","kind":"{kind}"}}
{{"id":"m1","type":"gemini","content":"found","model":"m","tokens":{{"input":10,"output":2,"cached":4,"thoughts":1,"tool":5}}}}
"#
        )
    };
    let told = ["subagent", "main"].map(|kind| {
        let folder = move |name: &str, _| (name == AGENT_FOLDER).then(|| parent.as_bytes().to_vec());
        let options =
            ImportOptions { beside: Some(Beside(std::sync::Arc::new(folder))), ..ImportOptions::default() };
        let mut batches = Vec::new();
        let report =
            read(ImportFormat::GeminiCli, "f", input(kind).as_bytes(), &options, &mut batches).unwrap();
        assert!(super::support::show(&batches).contains("finished m Some(11)/Some(3)"));
        (batches[0].stream.parent.clone(), report.sessions, report.subagents)
    });
    let id = acpdb_engine::entry::StreamInfo::session("gemini-cli", parent).id();
    assert_eq!(told, [(Some((id, None)), 0, 1), (None, 1, 0)]);
}
