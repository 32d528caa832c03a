//! Claude Code: trees, parallel calls, split messages, subagents, todos by deltas.

use std::sync::Arc;

use acpdb_engine::entry::{Fact, fact};
use acpdb_hosts::import::{self, Beside, ImportFormat, ImportOptions};
use expect_test::{Expect, expect};

use super::{read, wires};

/// Lines of a short notation: `KIND uuid parent ...`, made into records of one session.
pub(super) fn records(lines: &[&str]) -> String {
    let mut out = String::new();
    for line in lines {
        let mut words = line.splitn(4, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (kind, uuid, parent, rest) = (next(), next(), next(), next());
        let parent = if parent == "-" { "null".to_owned() } else { format!("\"{parent}\"") };
        let common = format!(
            r#""uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00.000Z""#
        );
        let record = match kind {
            "user" => format!(r#"{{"type":"user",{common},"message":{{"role":"user","content":"{rest}"}}}}"#),
            "meta" => {
                format!(
                    r#"{{"type":"user",{common},"isMeta":true,"message":{{"role":"user","content":"{rest}"}}}}"#
                )
            }
            "summary" => format!(
                r#"{{"type":"user",{common},"isCompactSummary":true,"message":{{"role":"user","content":"{rest}"}}}}"#
            ),
            "text" => {
                let (id, text) = rest.split_once(' ').unwrap();
                format!(
                    r#"{{"type":"assistant",{common},"message":{{"id":"{id}","model":"m","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":1,"output_tokens":2}}}}}}"#
                )
            }
            "call" => {
                let (id, call) = rest.split_once(' ').unwrap();
                format!(
                    r#"{{"type":"assistant",{common},"message":{{"id":"{id}","model":"m","content":[{{"type":"tool_use","id":"{call}","name":"Read","input":{{"file_path":"/a"}}}}]}}}}"#
                )
            }
            "result" => format!(
                r#"{{"type":"user",{common},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{rest}","content":"out"}}]}}}}"#
            ),
            "compact" => format!(
                r#"{{"type":"system","subtype":"compact_boundary",{common},"compactMetadata":{{"trigger":"auto","preTokens":5}}}}"#
            ),
            "progress" => format!(r#"{{"type":"progress",{common},"data":{{"type":"hook_progress"}}}}"#),
            _ => (*line).to_owned(),
        };
        out.push_str(&record);
        out.push('\n');
    }
    out
}

fn check(lines: &[&str], expected: Expect) {
    super::check(ImportFormat::ClaudeCode, &records(lines), expected);
}

#[test]
fn a_split_message_with_parallel_calls_is_one_step() {
    check(
        &[
            "user u1 - do it",
            "text a1 u1 m1 I look",
            "call a2 a1 m1 c1",
            "call a3 a2 m1 c2",
            "result r1 a2 c1",
            "result r2 a3 c2",
            "text a4 r1 m2 done",
        ],
        expect![[r#"
            [s]
              prompt u1 <prompt:u1>
              User u1: Text "do it" <msg:u1#0> *
              step m1 <turn:m1>
              Assistant m1 after u1: Text "I look" <msg:a1#0> *
              call c1 of Some("m1"): Read {"file_path":"/a"} <call:c1#1:start> *
              call c2 of Some("m1"): Read {"file_path":"/a"} <call:c2#1:start> *
              Completed c1: Text "out" <call:c1#1:finish> *
              Completed c2: Text "out" <call:c2#1:finish> *
              end of m1 Some("m") None in Some(1) out Some(2) <msg:m1:finish>
              step m2 <turn:m2>
              Assistant m2 after m1: Text "done" <msg:a4#0> *
              end of m2 Some("m") None in Some(1) out Some(2) <msg:m2:finish>
        "#]],
    );
}

#[test]
fn only_prompts_are_prompts() {
    check(
        &[
            "meta u1 - <local-command-caveat>x",
            "user u2 u1 <command-name>/clear</command-name>",
            "user u3 u2 [Request interrupted by user]",
            "progress p1 u3",
            "user u4 p1 go",
        ],
        expect![[r#"
            [s]
              User u1 (hidden from the user): Text "<local-command-caveat>x" <msg:u1#0> *
              User u2 after u1: Text "<command-name>/clear</command-name>" <msg:u2#0> *
              User u3 after u2: Text "[Request interrupted by user]" <msg:u3#0> *
              record progress/hook_progress about None <record:p1> *
              prompt u4 <prompt:u4>
              User u4 after u3: Text "go" <msg:u4#0> *
        "#]],
    );
}

#[test]
fn a_rewind_leaves_what_came_after_its_target() {
    check(
        &[
            "user u1 - one",
            "text a1 u1 m1 first",
            "user u2 a1 two",
            "call a2 u2 m2 c1",
            "result r1 a2 c1",
            "text a3 r1 m3 second",
            "user u3 a1 another way",
            "text a4 u3 m4 third",
            "user u4 r1 the branch that was left",
            "user u5 - from the start",
        ],
        expect![[r#"
            [s]
              prompt u1 <prompt:u1>
              User u1: Text "one" <msg:u1#0> *
              step m1 <turn:m1>
              Assistant m1 after u1: Text "first" <msg:a1#0> *
              end of m1 Some("m") None in Some(1) out Some(2) <msg:m1:finish>
              prompt u2 <prompt:u2>
              User u2 after m1: Text "two" <msg:u2#0> *
              step m2 <turn:m2>
              call c1 of Some("m2"): Read {"file_path":"/a"} <call:c1#1:start> *
              Completed c1: Text "out" <call:c1#1:finish> *
              end of m2 Some("m") None in None out None <msg:m2:finish>
              step m3 <turn:m3>
              Assistant m3 after m2: Text "second" <msg:a3#0> *
              end of m3 Some("m") None in Some(1) out Some(2) <msg:m3:finish>
              rewound to after msg:a1#0 <rewound:u3>
              prompt u3 <prompt:u3>
              User u3 after m1: Text "another way" <msg:u3#0> *
              step m4 <turn:m4>
              Assistant m4 after u3: Text "third" <msg:a4#0> *
            [s+2]
              Forked(Forked { from: StreamId(070f82263b892711918176dcdb48393f), at: After("call:c1#1:finish") }) <forked:s+2>
              prompt u4 <prompt:u4>
              User u4 after m2: Text "the branch that was left" <msg:u4#0> *
            [s]
              end of m4 Some("m") None in Some(1) out Some(2) <msg:m4:finish>
              rewound to Before("") <rewound:u5>
              prompt u5 <prompt:u5>
              User u5: Text "from the start" <msg:u5#0> *
        "#]],
    );
}

#[test]
fn a_compaction_is_no_rewind() {
    check(
        &[
            "user u1 - one",
            "text a1 u1 m1 first",
            "compact b1 -",
            "summary u2 b1 what was",
            "user u3 u2 go on",
        ],
        expect![[r#"
            [s]
              prompt u1 <prompt:u1>
              User u1: Text "one" <msg:u1#0> *
              step m1 <turn:m1>
              Assistant m1 after u1: Text "first" <msg:a1#0> *
              replaced by Compaction Some(5) <replaced:b1> *
              end of m1 Some("m") None in Some(1) out Some(2) <msg:m1:finish>
              User u2 after b1 (hidden from the user): Text "what was" <msg:u2#0> *
              prompt u3 <prompt:u3>
              User u3 after u2: Text "go on" <msg:u3#0> *
        "#]],
    );
}

#[test]
fn a_call_id_may_come_again() {
    check(
        &["call a1 - m1 c", "result r1 a1 c", "call a2 r1 m2 c", "result r2 a2 c", "result r3 a2 d"],
        expect![[r#"
            [s]
              step m1 <turn:m1>
              call c of Some("m1"): Read {"file_path":"/a"} <call:c#1:start> *
              Completed c: Text "out" <call:c#1:finish> *
              end of m1 Some("m") None in None out None <msg:m1:finish>
              step m2 <turn:m2>
              call c of Some("m2"): Read {"file_path":"/a"} <call:c#2:start> *
              Completed c: Text "out" <call:c#2:finish> *
              end of m2 Some("m") None in None out None <msg:m2:finish>
              Completed d: Text "out" <call:d#1:finish> *
        "#]],
    );
}

/// Only in files with records of requests was it more than a record that is kept.
#[test]
fn what_a_command_of_the_hosts_own_put_out_is_told() {
    let output = r#"{"type":"system","subtype":"local_command","uuid":"c1","parentUuid":"u1","sessionId":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00.000Z","content":"<local-command-stdout>12 %</local-command-stdout>"}"#;
    let text = format!("{}{output}\n", records(&["user u1 - do it"]));
    super::check(
        ImportFormat::ClaudeCode,
        &text,
        expect![[r#"
        [s]
          prompt u1 <prompt:u1>
          User u1: Text "do it" <msg:u1#0> *
          User c1: Text "<local-command-stdout>12 %</local-command-stdout>" <msg:c1#0> *
    "#]],
    );
}

#[test]
fn a_repeated_record_is_kept_and_says_nothing() {
    check(
        &["user u1 - one", "user u1 - one", "user u2 u1 two"],
        expect![[r#"
            [s]
              prompt u1 <prompt:u1>
              User u1: Text "one" <msg:u1#0> *
              record duplicate about None <duplicate:digest:83427baa0d0395acd327b84c04f01d52#1> *
              prompt u2 <prompt:u2>
              User u2 after u1: Text "two" <msg:u2#0> *
            ! 1 duplicates
        "#]],
    );
}

#[test]
fn outcomes_blocks_and_details() {
    let result = |uuid: &str, block: &str, more: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","sessionId":"s","cwd":"/w","message":{{"content":[{block}]}}{more}}}"#
        )
    };
    check(
        &[
            &result(
                "r1",
                r#"{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"Exit code 1"}"#,
                r#","toolUseResult":"Error: Exit code 1""#,
            ),
            &result(
                "r2",
                r#"{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"The user doesn't want to proceed with this"}"#,
                "",
            ),
            &result(
                "r3",
                r#"{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"tool_reference","tool_name":"x"}]}"#,
                r#","toolUseResult":{"code":0}"#,
            ),
            &result(
                "r4",
                r#"{"type":"tool_result","tool_use_id":"d"}"#,
                &format!(r#","toolUseResult":{{"code":0,"long":"{}"}}"#, "x".repeat(2000)),
            ),
            r#"{"type":"assistant","uuid":"a1","message":{"id":"m","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"zz"},{"type":"tool_use","id":"e","name":"X"},{"type":"text","text":"after"}],"stop_reason":"end_turn"}}"#,
            r#"{"type":"assistant","uuid":"a2","message":{"id":"m","content":[]}}"#,
        ],
        expect![[r#"
            [s]
              Failed a: Text "Exit code 1" <call:a#1:finish> *
              Aborted b: Text "The user doesn't want to proceed with this" <call:b#1:finish> *
              Completed c: Text "t" + Media "AAAA" image/png + Opaque "{\"type\":\"tool_reference\",\"tool_name\":\"x\"}" details {"code":0} <call:c#1:finish> *
              Completed d:  details {"code":0} <call:d#1:finish> *
              step m <turn:m>
              Assistant m after r4: Reasoning "hm" signed sig + Opaque "{\"type\":\"redacted_thinking\",\"data\":\"zz\"}" <msg:a1#0> *
              call e of Some("m"): X {} <call:e#1:start>
              more of m: Text "after" <msg:a1#3>
              more of m:  <msg:a2#0> *
              end of m None Some("end_turn") in None out None <msg:m:finish>
        "#]],
    );
}

#[test]
fn single_todos_are_changed_by_calls_and_results() {
    check(
        &[
            r#"{"type":"assistant","uuid":"a1","sessionId":"s","cwd":"/w","message":{"id":"m","content":[{"type":"tool_use","id":"c1","name":"TaskCreate","input":{"subject":"Write it","activeForm":"Writing it"}}]}}"#,
            r#"{"type":"user","uuid":"r1","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":"Task #7 created successfully: Write it"}]}}"#,
            r#"{"type":"assistant","uuid":"a2","message":{"id":"m2","content":[{"type":"tool_use","id":"c2","name":"TaskUpdate","input":{"taskId":"7","status":"in_progress"}}]}}"#,
            r#"{"type":"user","uuid":"r2","message":{"content":[{"type":"tool_result","tool_use_id":"c2","content":"Updated"}]},"toolUseResult":{"success":true,"taskId":"7"}}"#,
            r#"{"type":"assistant","uuid":"a3","message":{"id":"m3","content":[{"type":"tool_use","id":"c3","name":"TaskUpdate","input":{"taskId":"7","status":"completed"}}]}}"#,
            r#"{"type":"user","uuid":"r3","message":{"content":[{"type":"tool_result","tool_use_id":"c3","is_error":true,"content":"no"}]}}"#,
        ],
        expect![[r#"
            [s]
              step m <turn:m>
              call c1 of Some("m"): TaskCreate {"subject":"Write it","activeForm":"Writing it"} <call:c1#1:start> *
              Completed c1: Text "Task #7 created successfully: Write it" todo 7 Some("pending") {"content":"Write it","activeForm":"Writing it"} <call:c1#1:finish> *
              end of m None None in None out None <msg:m:finish>
              step m2 <turn:m2>
              call c2 of Some("m2"): TaskUpdate {"taskId":"7","status":"in_progress"} <call:c2#1:start> *
              Completed c2: Text "Updated" details {"success":true,"taskId":"7"} todo 7 Some("in_progress")  <call:c2#1:finish> *
              end of m2 None None in None out None <msg:m2:finish>
              step m3 <turn:m3>
              call c3 of Some("m3"): TaskUpdate {"taskId":"7","status":"completed"} <call:c3#1:start> *
              Failed c3: Text "no" <call:c3#1:finish> *
              end of m3 None None in None out None <msg:m3:finish>
        "#]],
    );
}

#[test]
fn subagents_have_their_own_streams() {
    check(
        &[
            r#"{"type":"summary","summary":"S","leafUuid":"x"}"#,
            "call a1 - m1 task1",
            r#"{"type":"progress","uuid":"p1","parentUuid":"a1","parentToolUseID":"task1","data":{"type":"agent_progress","agentId":"ag","prompt":"look","message":{"type":"user","uuid":"n1","message":{"role":"user","content":[{"type":"text","text":"look"}]}}}}"#,
            r#"{"type":"progress","uuid":"p2","parentUuid":"p1","parentToolUseID":"task1","data":{"type":"agent_progress","agentId":"ag","prompt":"look","message":{"type":"assistant","uuid":"n2","message":{"id":"sm","content":[{"type":"tool_use","id":"sc","name":"Glob","input":{}}]}}}}"#,
            "result r1 p2 task1",
            r#"{"type":"user","uuid":"x1","parentUuid":null,"isSidechain":true,"message":{"content":"side"}}"#,
            r#"{"type":"assistant","uuid":"x2","parentUuid":"x1","isSidechain":true,"message":{"id":"xm","content":"answer"}}"#,
            r#"{"type":"user","uuid":"y1","isSidechain":true,"agentId":"ag","message":{"content":"again"}}"#,
        ],
        expect![[r#"
            [s]
              record summary about Some("x") <summary:digest:c64b6190bfeb116782ce9efa78de971b#1> *
              step m1 <turn:m1>
              call task1 of Some("m1"): Read {"file_path":"/a"} <call:task1#1:start> *
              record progress/agent_progress about Some("ag") <record:p1> *
            [s/ag] (started by task1)
              prompt n1 <prompt:n1>
              User n1: Text "look" <msg:n1#0>
            [s]
              record progress/agent_progress about Some("ag") <record:p2> *
            [s/ag] (started by task1)
              step sm <turn:sm>
              call sc of Some("sm"): Glob {} <call:sc#1:start>
            [s]
              Completed task1: Text "out" <call:task1#1:finish> *
            [s/x1] (started by ?)
              prompt x1 <prompt:x1>
              User x1: Text "side" <msg:x1#0> *
              step xm <turn:xm>
              Assistant xm after x1: Text "answer" <msg:x2#0> *
            [s/ag] (started by task1)
              end of sm None None in None out None <msg:sm:finish>
              prompt y1 <prompt:y1>
              User y1 after sm: Text "again" <msg:y1#0> *
            [s]
              end of m1 Some("m") None in None out None <msg:m1:finish>
            [s/x1] (started by ?)
              end of xm None None in None out None <msg:xm:finish>
        "#]],
    );
    let file = r#"{"type":"user","uuid":"x1","isSidechain":true,"agentId":"ag","sessionId":"s","cwd":"/w","message":{"content":"side"}}"#;
    let (batches, report) = read(ImportFormat::ClaudeCode, file.as_bytes());
    assert_eq!((batches[0].stream.name.as_str(), report.sessions, report.subagents), ("s/ag", 0, 1));
}

/// Claude Code warms its cache by a side line, which may stand first in a session's file: all of the session became that line.
#[test]
fn a_session_that_begins_with_a_side_line_is_the_session() {
    let id = "11111111-1111-4111-8111-111111111111";
    let side = format!(
        r#"{{"type":"user","uuid":"x1","isSidechain":true,"sessionId":"{id}","cwd":"/w","message":{{"content":"Warmup"}}}}"#
    );
    let main = side.replace("true", "false").replace("x1", "y1").replace("Warmup", "hello");
    for (name, streams) in [
        (id, vec![format!("{id}/x1"), id.to_owned()]),
        ("agent-x1", vec![format!("{id}/x1"), format!("{id}/x1")]),
    ] {
        let mut batches = Vec::new();
        let input = format!("{side}\n{main}\n");
        let _ = import::read(
            ImportFormat::ClaudeCode,
            name,
            input.as_bytes(),
            &ImportOptions::default(),
            &mut batches,
        )
        .unwrap();
        let found: Vec<_> = batches.iter().map(|batch| batch.stream.name.clone()).collect();
        assert_eq!(found, streams);
    }
}

#[test]
fn other_records_are_kept_by_kind() {
    let lines = [
        r#"{"type":"custom-title","customTitle":"T","sessionId":"s"}"#,
        r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s"}"#,
        r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s"}"#,
        r#"{"type":"system","subtype":"microcompact_boundary","uuid":"b","cwd":"/w","sessionId":"s","microcompactMetadata":{"compactedToolIds":["c1","c2"]}}"#,
        r#"{"type":"hologram","uuid":"h","cwd":"/v"}"#,
        r#"{"type":"user","uuid":"q"}"#,
        r#"{"kind":"no type"}"#,
        r#"[1]"#,
        r#"{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}"#,
    ];
    check(
        &lines,
        expect![[r#"
            [s]
              changed title Some("T") folder None <custom-title:digest:1499bad3e9fcd5a0bc2f842c86fbc69a#1> *
              record queue-operation about None <queue-operation:digest:7400f78996d7ad4b41140899171656ce#1> *
              record queue-operation about None <queue-operation:digest:7400f78996d7ad4b41140899171656ce#2> *
              cleared [] ["c1", "c2"] <cleared:b> *
              changed title None folder Some("/v") <cwd:h>
              record hologram about None <record:h> *
              record user about None <record:q> *
              record raw about None <raw:digest:a3ed797adb2f27f50444b5beb5f3c18b#1> *
              record raw about None <raw:digest:44730cbaaac49851b5b5dd8f1cda6e70#1> *
              prompt u <prompt:u>
              User u: Text "hi" <msg:u#0> *
            ! 6:376 a record of type user without a message; kept as it is
            ! 7:403 not an object with a type; kept as it is
            ! 8:422 not an object with a type; kept as it is
            ! 1 unknown hologram
        "#]],
    );
    let (batches, _) = read(ImportFormat::ClaudeCode, lines.join("\n").as_bytes());
    assert_eq!(wires(&batches), lines);
}

#[test]
fn records_may_lack_ids_and_parents() {
    check(
        &[
            r#"{"type":"user","message":{"role":"user","content":"one"}}"#,
            r#"{"type":"user","message":{"role":"user","content":"one"}}"#,
            r#"{"type":"user","uuid":"u2","message":{"role":"user","content":"two"}}"#,
            r#"{"type":"user","uuid":"u3","message":{"role":"user","content":"three"}}"#,
        ],
        expect![[r#"
            [file]
              prompt record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#1 <prompt:record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#1>
              User record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#1: Text "one" <msg:record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#1#0> *
              prompt record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#2 <prompt:record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#2>
              User record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#2 after record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#1: Text "one" <msg:record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#2#0> *
              prompt u2 <prompt:u2>
              User u2 after record:digest:232e1774e2f94b1aa49ae50dd24e3e5c#2: Text "two" <msg:u2#0> *
              prompt u3 <prompt:u3>
              User u3 after u2: Text "three" <msg:u3#0> *
        "#]],
    );
}

#[test]
fn a_resumed_session_is_named_by_its_file() {
    let line = records(&["user u1 - one"]);
    let named = |name: &str| {
        let mut batches = Vec::new();
        let options = acpdb_hosts::import::ImportOptions::default();
        let report = acpdb_hosts::import::read(
            ImportFormat::ClaudeCode,
            name,
            line.as_bytes(),
            &options,
            &mut batches,
        );
        assert!(report.unwrap().is_complete());
        batches[0].stream.name.clone()
    };
    let id = "0fd74558-5f74-4d12-b961-629f0d41d4b7";
    assert_eq!([named(id), named("notes"), named(&format!("{id}.jsonl"))], [id, "s", id]);
}

/// The kind of a random record; parents are chosen among the records that are on the path.
#[derive(Clone, Copy, Debug)]
enum Step {
    Prompt,
    NewMessage,
    SameMessage,
    Result,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    message: Option<usize>,
    answers: Option<usize>,
}

/// The records on the path of the last one, found the long way: leaf to root, then whole messages, then their results.
fn path(nodes: &[Node]) -> Vec<usize> {
    let mut on = vec![false; nodes.len()];
    let mut at = nodes.len().checked_sub(1);
    while let Some(index) = at {
        on[index] = true;
        at = nodes[index].parent;
    }
    // The message of a result belongs to the path as much as the result.
    for index in 0..nodes.len() {
        if on[index]
            && let Some(call) = nodes[index].answers
        {
            on[call] = true;
        }
    }
    for index in 0..nodes.len() {
        let shares = |other: usize| {
            on[other] && nodes[other].message.is_some() && nodes[other].message == nodes[index].message
        };
        if (0..nodes.len()).any(shares) {
            on[index] = true;
        }
    }
    for index in 0..nodes.len() {
        if nodes[index].answers.is_some_and(|call| on[call]) {
            on[index] = true;
        }
    }
    (0..nodes.len()).filter(|index| on[*index]).collect()
}

proptest::proptest! {
    /// Facts that are cut back at each rewind leave the records of the path, in order.
    #[test]
    fn what_rewinds_leave_is_the_path(
        steps in proptest::collection::vec((0..4usize, proptest::prelude::any::<proptest::sample::Index>(), 0..4u8), 1..25),
    ) {
        let mut nodes = vec![Node { parent: None, message: None, answers: None }];
        let mut lines = vec!["user 0 - start".to_owned()];
        for (kind, choice, jump) in steps {
            let kind = [Step::Prompt, Step::NewMessage, Step::SameMessage, Step::Result][kind];
            let index = nodes.len();
            let on = path(&nodes);
            let last = index - 1;
            // Mostly the newest record goes on; sometimes an earlier one that is on the path.
            let any = if jump == 0 { on[choice.index(on.len())] } else { last };
            let last_message = nodes[last].message.or_else(|| nodes[last].answers.and_then(|call| nodes[call].message));
            let answered = |call: usize| nodes.iter().any(|node| node.answers == Some(call));
            let open: Vec<usize> = on.iter().copied().filter(|call| nodes[*call].message.is_some() && nodes[*call].message == last_message && !answered(*call)).collect();
            let node = match kind {
                Step::Result if !open.is_empty() => {
                    let call = open[choice.index(open.len())];
                    Node { parent: Some(call), message: None, answers: Some(call) }
                }
                Step::SameMessage if nodes[last].message.is_some() => {
                    Node { parent: Some(last), message: nodes[last].message, answers: None }
                }
                Step::Prompt => Node { parent: Some(any), message: None, answers: None },
                _ => Node { parent: Some(any), message: Some(index), answers: None },
            };
            let parent = node.parent.unwrap();
            lines.push(match (node.message, node.answers) {
                (_, Some(call)) => format!("result {index} {parent} c{call}"),
                (Some(message), _) => format!("call {index} {parent} m{message} c{index}"),
                _ => format!("user {index} {parent} words"),
            });
            nodes.push(node);
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (batches, _) = read(ImportFormat::ClaudeCode, records(&lines).as_bytes());
        let mut left: Vec<(String, Option<usize>)> = Vec::new();
        for (index, batch) in batches.iter().enumerate() {
            for entry in &batch.entries {
                if let acpdb_engine::entry::Fact::Rewound(acpdb_engine::entry::fact::Rewound { to }) = &entry.fact {
                    let keep = match to {
                        acpdb_engine::entry::PointRef::After(origin) => 1 + left.iter().position(|(kept, _)| kept == origin).unwrap(),
                        _ => 0,
                    };
                    left.truncate(keep);
                    left.push((entry.origin.clone().unwrap(), None));
                } else {
                    left.push((entry.origin.clone().unwrap(), (!entry.wire.is_empty()).then_some(index)));
                }
            }
        }
        let left: Vec<usize> = left.into_iter().filter_map(|(_, record)| record).collect();
        proptest::prop_assert_eq!(left, path(&nodes), "{:?}", lines);
    }
}

#[test]
fn results_that_the_host_sends_shorter_are_cleared_with_what_it_sends() {
    check(
        &[
            "call a1 - m1 c",
            "result r1 a1 c",
            r#"{"type":"content-replacement","sessionId":"s","replacements":[{"kind":"tool-result","toolUseId":"c","replacement":"<persisted-output>short"},{"kind":"other"}]}"#,
            r#"{"type":"continued-in","sessionId":"s","continuedInSessionId":"t"}"#,
            r#"{"type":"cost-state","sessionId":"s","totalCostUSD":0.5}"#,
        ],
        expect![[r#"
            [s]
              step m1 <turn:m1>
              call c of Some("m1"): Read {"file_path":"/a"} <call:c#1:start> *
              Completed c: Text "out" <call:c#1:finish> *
              cleared [] ["c"] <replaced:content-replacement:digest:e2da1ee33e667ed8dadf56421ba6df34#1/0>
              record content-replacement about None <content-replacement:digest:e2da1ee33e667ed8dadf56421ba6df34#1> *
              record continued-in about Some("t") <continued-in:digest:2f46f33b26d97e730fa3a74669242da2#1> *
              record cost-state about None <cost-state:digest:dd4f2ce3f20d77318bafd10ce707d60e#1> *
              end of m1 Some("m") None in None out None <msg:m1:finish>
        "#]],
    );
}

#[test]
fn a_long_result_is_read_from_the_file_that_the_host_names() {
    let line = r#"{"type":"user","uuid":"r1","sessionId":"s","cwd":"/w","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"<persisted-output>the beginning"}]},"toolUseResult":{"stdout":"the beginning","persistedOutputPath":"/h/s/tool-results/b1.txt","persistedOutputSize":9}}"#;
    let import = |found: Option<&'static [u8]>| {
        let beside = Beside(Arc::new(move |name: &str, _: usize| {
            assert_eq!(name, "/h/s/tool-results/b1.txt");
            found.map(<[u8]>::to_vec)
        }));
        let options = ImportOptions { beside: Some(beside), ..ImportOptions::default() };
        let mut batches = Vec::new();
        let report =
            import::read(ImportFormat::ClaudeCode, "s", line.as_bytes(), &options, &mut batches).unwrap();
        assert!(report.is_complete());
        let facts = batches.into_iter().flat_map(|batch| batch.entries);
        let kept = facts.filter_map(|entry| match entry.fact {
            Fact::HostRecorded(fact::HostRecorded { record, about, raw }) if record == "tool-result" => {
                Some((about.unwrap(), String::from_utf8(raw.unwrap().to_vec()).unwrap()))
            }
            _ => None,
        });
        kept.collect::<Vec<_>>()
    };
    assert_eq!(import(Some(b"the whole")), [("c".to_owned(), "the whole".to_owned())]);
    assert_eq!(import(None), []);
}

/// A task's notification is sent in more words than its row has, which stand in the copy of the message behind it.
#[test]
fn a_notification_is_told_in_the_words_that_were_sent() {
    let said = "<task-notification>done</task-notification>";
    let sent = format!("Not from the user.\\n{said}\\n");
    let copy = |text: &str| {
        format!(
            r#"{{"type":"api-request-blob","sessionId":"s","message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let (own, other) = (copy(&sent), copy("<task-notification>another</task-notification>"));
    let request = r#"{"type":"api-request","sessionId":"s","id":"q"}"#;
    let row = format!("user u2 u1 {said}");
    let prompt = "user u1 - Go";
    let between = r#"{"type":"queue-operation","sessionId":"s","operation":"dequeue"}"#;
    let sent = sent.replace("\\n", "\n");
    for (lines, expected) in [
        (vec![prompt, &row, &own, request], &*sent),
        (vec![prompt, &row, between, &own, request], &sent),
        // Without a copy the notification stays as it is, in its place.
        (vec![prompt, &row, &other, request], said),
        (vec![prompt, &row, request, &own], said),
        (vec![prompt, &row, "text a1 u2 m1 Yes.", &own], said),
        (vec![prompt, &row, between], said),
        (vec![&row], said),
    ] {
        let (batches, report) = read(ImportFormat::ClaudeCode, records(&lines).as_bytes());
        assert!(report.is_complete());
        let facts: Vec<_> = batches.iter().flat_map(|batch| &batch.entries).collect();
        let told = facts.iter().filter_map(|entry| match &entry.fact {
            Fact::MessageRecorded(fact::MessageRecorded { key, parts, .. }) if key == "u2" => {
                Some(parts[0].bytes.to_vec())
            }
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [expected.as_bytes()], "{lines:?}");
        // Nothing is lost, and the order is that of the lines.
        assert_eq!(wires(&batches).concat(), records(&lines).replace('\n', ""));
    }
}

/// A redactor had put one word in place of many ids: all records but the first, and all answers but the first, were lost without a word.
#[test]
fn an_id_is_a_name_and_the_content_decides() {
    let answer = |uuid: &str, id: &str, content: &str, second: u32| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","timestamp":"2026-01-01T00:00:0{second}Z","message":{{"id":"{id}","model":"m","content":[{content}],"usage":{{"input_tokens":5,"output_tokens":2}}}}}}"#
        )
    };
    let text = |said: &str| format!(r#"{{"type":"text","text":"{said}"}}"#);
    let call = r#"{"type":"tool_use","id":"c1","name":"Read","input":{}}"#;
    let result = r#"{"type":"user","uuid":"r","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"A"}]}}"#;
    let prompt = r#"{"type":"user","uuid":"x","message":{"role":"user","content":"go"}}"#;
    let lines = [
        prompt.to_owned(),
        answer("x", "m", &text("one"), 1),
        answer("x", "m", &text("one"), 1),
        answer("x", "m", call, 2),
        result.to_owned(),
        answer("y", "m", &text("behind the result"), 3),
        r#"{"type":"user","uuid":"z","message":{"role":"user","content":"on"}}"#.to_owned(),
        answer("w", "m", &text("two"), 4),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        &lines,
        expect![[r#"
        [file]
          prompt x <prompt:x>
          User x: Text "go" <msg:x#0> *
          step m <turn:m>
          Assistant m after x: Text "one" <msg:x+2#0> *
          record duplicate about None <duplicate:digest:09af2a9ee92a91ea8d6ba2b2408b8589#1> *
          call c1 of Some("m"): Read {} <call:c1#1:start> *
          Completed c1: Text "A" <call:c1#1:finish> *
          end of m Some("m") None in Some(5) out Some(2) <msg:m:finish>
          step m+2 <turn:m+2>
          Assistant m+2 after m: Text "behind the result" <msg:y#0> *
          end of m+2 Some("m") None in Some(5) out Some(2) <msg:m+2:finish>
          prompt z <prompt:z>
          User z after m+2: Text "on" <msg:z#0> *
          step m+3 <turn:m+3>
          Assistant m+3 after z: Text "two" <msg:w#0> *
          end of m+3 Some("m") None in Some(5) out Some(2) <msg:m+3:finish>
        ! 1 duplicates
    "#]],
    );
}

/// With one word in place of all ids, each record seemed to go on behind the first one: all between them had left the context.
#[test]
fn a_word_in_place_of_all_ids_rewinds_nothing() {
    let lines = [
        "user X - one",
        "call X X m1 c1",
        "result X X c1",
        "user X X two",
        "call X X m2 c2",
        "result X X c2",
        "user X X three",
    ];
    let (batches, _) = read(ImportFormat::ClaudeCode, records(&lines).as_bytes());
    let facts: Vec<_> = batches.iter().flat_map(|batch| &batch.entries).map(|entry| &entry.fact).collect();
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::MessageRecorded(_))).count(), 3);
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::ToolFinished(_))).count(), 2);
    assert!(!facts.iter().any(|fact| matches!(fact, Fact::Rewound(_) | Fact::Forked(_))));
}

/// A file of one mebibyte made a thousand streams, each folded with all that it shared: its import took minutes where it was longer.
#[test]
fn few_branches_of_a_session_have_streams_of_their_own() {
    let begins = (0..40).map(|number| format!("user b{number} u0 begins {number}"));
    let goes_on = (0..40).map(|number| format!("user c{number} b{number} goes on {number}"));
    let lines: Vec<String> =
        std::iter::once("user u0 - go".to_owned()).chain(begins).chain(goes_on).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (batches, _) = read(ImportFormat::ClaudeCode, records(&lines).as_bytes());
    let facts: Vec<_> = batches.iter().flat_map(|batch| &batch.entries).map(|entry| &entry.fact).collect();
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::Forked(_))).count(), 16);
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::MessageRecorded(_))).count(), 81);
}
