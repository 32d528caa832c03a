//! Rollout files.

use acpdb_hosts::import::ImportFormat;
use expect_test::expect;

use super::support::{check, import, origins};

pub(crate) const SESSION: &str = r##"{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"s1","timestamp":"2026-01-02T03:04:04Z","cwd":"/w","cli_version":"0.9","base_instructions":{"text":"Be exact, be brief, and say what you did in the end."}}}
{"timestamp":"2026-01-02T03:04:05.100Z","type":"session_meta","payload":{"id":"s0","cwd":"/other","base_instructions":null}}
{"timestamp":"2026-01-02T03:04:05.200Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>"}]}}
{"timestamp":"2026-01-02T03:04:05.300Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"# AGENTS.md instructions for /w"}]}}
{"timestamp":"2026-01-02T03:04:05.400Z","type":"turn_context","payload":{"cwd":"/w/sub","model":"m1"}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"event_msg","payload":{"type":"user_message","message":"Fix it","images":[]}}
{"timestamp":"2026-01-02T03:04:07.000Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"Look first"}],"content":null,"encrypted_content":"gAAA"}}
{"timestamp":"2026-01-02T03:04:07.100Z","type":"event_msg","payload":{"type":"agent_message","message":"I look."}}
{"timestamp":"2026-01-02T03:04:07.100Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}}
{"timestamp":"2026-01-02T03:04:07.200Z","type":"response_item","payload":{"type":"function_call","name":"shell_command","arguments":"{\"command\":\"cat a.txt\"}","call_id":"c1"}}
{"timestamp":"2026-01-02T03:04:07.300Z","type":"response_item","payload":{"type":"function_call","name":"shell_command","arguments":"{\"command\":\"false\"}","call_id":"c2"}}
{"timestamp":"2026-01-02T03:04:08.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"Exit code: 1\nWall time: 0 seconds\nOutput:\nExit code: 0\n"}}
{"timestamp":"2026-01-02T03:04:08.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"Exit code: 0\nOutput:\nProcess exited with code 3"}}
{"timestamp":"2026-01-02T03:04:09.000Z","type":"response_item","payload":{"type":"custom_tool_call","status":"completed","call_id":"c3","name":"apply_patch","input":"*** Begin Patch\n*** Update File: a.txt\n*** End Patch"}}
{"timestamp":"2026-01-02T03:04:09.100Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c3","output":"{\"output\":\"Success.\",\"metadata\":{\"exit_code\":0}}"}}
{"timestamp":"2026-01-02T03:04:10.000Z","type":"response_item","payload":{"type":"custom_tool_call","call_id":"c4","name":"apply_patch","input":"*** Begin Patch"}}
{"timestamp":"2026-01-02T03:04:10.100Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c4","output":"apply_patch verification failed: no such line"}}
{"timestamp":"2026-01-02T03:04:11.000Z","type":"response_item","payload":{"type":"function_call","name":"update_plan","arguments":"{\"plan\":[{\"step\":\"a\",\"status\":\"pending\"}]}","call_id":"c5"}}
{"timestamp":"2026-01-02T03:04:11.100Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c5","output":"Plan updated"}}
{"timestamp":"2026-01-02T03:04:12.000Z","type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}}
"##;

#[test]
fn a_rollout_becomes_messages_calls_and_steps() {
    check(
        ImportFormat::Codex,
        SESSION,
        expect![[r#"
        = codex s1 cwd=/w
        prompt set system=true model=None
        kept session_meta
        system (not for the user) [text <permissions instructions>]
        user (not for the user) [text # AGENTS.md instructions for /w]
        kept turn_context
        session changed title=None cwd=Some("/w/sub")
        prompt set system=false model=Some("m1")
        user [text Fix it] [media data:image/png;base64,AAAA]
        kept event_msg/user_message
        -- Prompt
        -- Step
        assistant [reasoning sealed Look first]
        kept event_msg/agent_message
        assistant [text I look.]
        call c1 shell_command {"command":"cat a.txt"}
        call c2 shell_command {"command":"false"}
        end c2 Failed [text Exit code: 1\nWall time: 0 seconds\nOutput:\nExit..]
        end c1 Completed [text Exit code: 0\nOutput:\nProcess exited with code 3..]
        -- Step
        call c3 apply_patch "*** Begin Patch\n*** Update File: a.txt\n*** End..
        end c3 Completed [text {"output":"Success.","metadata":{"exit_code":0}}]
        -- Step
        call c4 apply_patch "*** Begin Patch"
        end c4 Failed [text apply_patch verification failed: no such line]
        -- Step
        call c5 update_plan {"plan":[{"step":"a","status":"pending"}]}
        end c5 Completed [text Plan updated]
        -- Step
        assistant [opaque {"type":"web_search_call","status":"completed","a..]
        sessions 1 records 21 calls 5 failed 2 open 0 todos 1 unknown {} raw 0 skipped 0 cut false
    "#]],
    );
}

#[test]
fn outcomes_are_told_by_the_text_of_the_result() {
    let outcome = |output: &str| {
        let output = serde_json::Value::from(output);
        let line = format!(
            r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c","output":{output}}}}}"#
        );
        let (batches, _) = import(ImportFormat::Codex, "f", line.as_bytes());
        match &batches[0].entries[0].fact {
            acpdb_engine::entry::Fact::ToolFinished(acpdb_engine::entry::fact::ToolFinished {
                outcome,
                ..
            }) => format!("{outcome:?}"),
            other => format!("{other:?}"),
        }
    };
    for (output, want) in [
        ("Exit code: 0\nOutput:\n", "Completed"),
        ("Exit code: 127\nOutput:\n", "Failed"),
        ("Exit code: -1\nOutput:\n", "Failed"),
        ("Chunk ID: 1\nWall time: 1\nProcess exited with code 2\nOutput:\n", "Failed"),
        ("Chunk ID: 1\nProcess running with session ID 5\nOutput:\nProcess exited with code 2", "Completed"),
        (r#"{"output":"x","metadata":{"exit_code":1}}"#, "Failed"),
        (r#"{"output":"Exit code: 1","metadata":{"exit_code":0}}"#, "Completed"),
        ("apply_patch verification failed: x", "Failed"),
        ("it says apply_patch verification failed", "Completed"),
        ("aborted by user after 2.0s", "Aborted"),
        ("Plan updated", "Completed"),
        ("", "Completed"),
    ] {
        assert_eq!(outcome(output), want, "{output}");
    }
}

pub(crate) const MARKS: &str = r##"{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"s2","source":{"subagent":{"thread_spawn":{"parent_thread_id":"s1"}}}}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}
{"type":"event_msg","payload":{"type":"user_message","message":"one"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"1"}]}}
{"type":"event_msg","payload":{"type":"user_message","message":"two"}}
{"type":"response_item","payload":{"type":"local_shell_call","call_id":"c1","action":{"type":"exec","command":["ls"]}}}
{"type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}
{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage"}}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"3"}]}}
{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":9}}
{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"sum"}]},{"type":"compaction","encrypted_content":"x"},{"odd":1}]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"4"}]}}
{"type":"compacted","payload":{"message":"all of it"}}
{"type":"response_item","payload":{"type":"ghost_snapshot","ghost_commit":{}}}
{"type":"response_item","payload":{"type":"telepathy"}}
{"type":"newer_kind","payload":{}}
{"type":"newer_kind","payload":{}}
{"no":"type"}
"##;

#[test]
fn aborts_rollbacks_and_compactions_are_told() {
    check(
        ImportFormat::Codex,
        MARKS,
        expect![[r#"
            = codex s2 cwd=-
            kept session_meta
            user [text one]
            kept event_msg/user_message
            -- Prompt
            -- Step
            assistant [text 1]
            kept event_msg/user_message
            -- Prompt
            -- Step
            call c1 local_shell {"type":"exec","command":["ls"]}
            kept event_msg/turn_aborted
            end c1 Aborted [text interrupted]
            kept event_msg/thread_rolled_back
            rewound to before line:digest:18d4#1
            kept event_msg/item_completed
            -- Prompt
            -- Step
            assistant [text 3]
            kept event_msg/thread_rolled_back
            rewound to before line:digest:5a57#1
            context replaced Compaction []
            user [text sum]
            assistant (not for the user) [opaque {"type":"compaction","encrypted_content":"x"}]
            user (not for the user) [opaque {"odd":1}]
            -- Step
            assistant [text 4]
            context replaced Compaction []
            user (not for the user) [text all of it]
            kept response_item/ghost_snapshot
            kept response_item/telepathy
            kept newer_kind
            kept newer_kind
            kept untyped
            sessions 1 records 19 calls 1 failed 0 open 0 todos 0 unknown {"newer_kind": 2, "response_item/telepathy": 1, "untyped": 1} raw 0 skipped 0 cut false
        "#]],
    );
}

#[test]
fn glued_values_and_a_cut_last_line_are_read() {
    let glued = concat!(
        r#"{"type":"event_msg","payload":{"type":"a"}}{"type":"event_msg","payload":{"type":"b"}}"#,
        "\nnot json\n",
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"go"}}"#,
        r#"{"type":"event_msg","pay"#
    );
    let (batches, report) = import(
        ImportFormat::Codex,
        "rollout-2026-01-02T03-04-05-0123456789abcdef0123456789abcdef0123",
        glued.as_bytes(),
    );
    assert_eq!((batches.len(), report.kept_raw.len(), report.cut.is_some()), (4, 1, true));
    assert_eq!(
        batches[0].stream.name, "0123456789abcdef0123456789abcdef0123",
        "the id is in the file's name"
    );
}

#[test]
fn a_longer_file_adds_facts_and_changes_none() {
    let whole = origins(&import(ImportFormat::Codex, "f", SESSION.as_bytes()).0);
    let lines: Vec<&str> = SESSION.split_inclusive('\n').collect();
    for end in 1..lines.len() {
        let part = origins(&import(ImportFormat::Codex, "f", lines[..end].concat().as_bytes()).0);
        assert!(part.is_subset(&whole), "{end} lines");
    }
}
