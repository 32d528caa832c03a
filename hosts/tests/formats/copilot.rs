//! Event files.

use acpdb_hosts::import::ImportFormat;
use expect_test::expect;

use super::support::check;

pub(crate) const SESSION: &str = r##"{"type":"session.start","data":{"sessionId":"s1","version":1,"copilotVersion":"1.0","startTime":"2026-01-02T03:04:05Z","context":{"cwd":"/w"}},"id":"e1","timestamp":"2026-01-02T03:04:05Z","parentId":null}
{"type":"system.message","data":{"role":"system","content":"You are a terminal assistant."},"id":"e2","timestamp":"2026-01-02T03:04:05Z","parentId":"e1"}
{"type":"hook.start","data":{"hookType":"userPromptSubmitted"},"id":"e3","parentId":"e2"}
{"type":"user.message","data":{"content":"fix","transformedContent":"<time/>fix"},"id":"e4","parentId":"e3"}
{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"e5","parentId":"e4"}
{"type":"assistant.message","data":{"messageId":"m1","model":"x","content":"","toolRequests":[{"toolCallId":"t1","name":"view","arguments":{"path":"a"}}],"reasoningText":"hm","reasoningOpaque":"REDACTED","outputTokens":7},"id":"e6","parentId":"e5"}
{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"view","arguments":{"path": "a"}},"id":"e7","parentId":"e6"}
{"type":"tool.execution_start","data":{"toolCallId":"t2","toolName":"apply_patch","arguments":"*** Begin Patch\n*** Add File: b\n"},"id":"e8","parentId":"e7"}
{"type":"tool.execution_complete","data":{"toolCallId":"t2","success":false,"error":{"message":"no","code":"e"}},"id":"e9","parentId":"e8"}
{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":true,"result":{"content":"text","detailedContent":"text"},"toolTelemetry":{"n":1}},"id":"e10","parentId":"e9"}
{"type":"assistant.turn_end","data":{"turnId":"0"},"id":"e11","parentId":"e10"}
{"type":"session.shutdown","data":{"shutdownType":"routine"},"id":"e12","parentId":"e11"}
{"type":"session.resume","data":{"context":{"cwd":"/v"}},"id":"e13","parentId":"e12"}
{"type":"session.model_change","data":{"newModel":"y"},"id":"e14","parentId":"e13"}
{"type":"system.notification","data":{"content":"Shell 3 is done"},"id":"e15","parentId":"e14"}
{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"e16","parentId":"e15"}
{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"bash","arguments":null},"id":"e17","parentId":"e16"}
{"type":"abort","data":{"reason":"user initiated"},"id":"e18","parentId":"e17"}
{"type":"user.message","data":{"content":"again"},"id":"e4","parentId":"e18"}
{"type":"thought.bubble","data":{},"id":"e19","parentId":"e4"}
{"data":{}}
"##;

#[test]
fn an_event_file_becomes_messages_calls_and_steps() {
    check(
        ImportFormat::CopilotCli,
        SESSION,
        expect![[r#"
            = copilot-cli s1 cwd=/w
            kept session.start
            prompt set system=true model=None
            kept hook.start
            -- Prompt
            user (not for the user) [text <time/>fix]
            user (not for the model) [text fix]
            -- Step
            kept assistant.turn_start
            assistant [reasoning sealed hm]
            finished x None/Some(7)
            call t1 view {"path": "a"}
            call t2 apply_patch "*** Begin Patch\n*** Add File: b\n"
            end t2 Failed [text no]
            end t1 Completed [text text] +details
            kept assistant.turn_end
            session closed Some("routine")
            kept session.resume
            session changed title=None cwd=Some("/v")
            prompt set system=false model=Some("y")
            user (not for the user) [text Shell 3 is done]
            -- Step
            kept assistant.turn_start
            call t1 bash {}
            kept abort
            end t1 Aborted [text user initiated]
            -- Prompt
            user [text again]
            kept thought.bubble
            kept raw
            sessions 1 records 21 calls 3 failed 2 open 0 todos 0 unknown {"thought.bubble": 1} raw 1 skipped 0 cut false
        "#]],
    );
}

const AGENT: &str = r##"{"type":"session.start","data":{"sessionId":"s2","copilotVersion":"1.0","selectedModel":"m","context":{"cwd":"/w"}},"id":"e1","timestamp":"2026-01-02T03:04:05Z"}
{"type":"user.message","data":{"content":"look"},"id":"e2"}
{"type":"tool.execution_start","data":{"toolCallId":"T","toolName":"task","arguments":{}},"id":"e3"}
{"type":"subagent.started","data":{"toolCallId":"T","agentName":"explore"},"id":"e4","agentId":"a7"}
{"type":"assistant.message","data":{"messageId":"m1","content":"sub thinks","apiCallId":"c1"},"id":"e5","agentId":"a7"}
{"type":"tool.execution_start","data":{"toolCallId":"S","toolName":"view","arguments":{},"parentToolCallId":"T"},"id":"e6"}
{"type":"tool.execution_complete","data":{"toolCallId":"S","success":true,"result":{"content":"text"},"parentToolCallId":"T"},"id":"e7"}
{"type":"session.usage_record","data":{"apiCallId":"c1","model":"m","inputTokens":90,"cacheReadTokens":50,"outputTokens":7},"id":"e8","agentId":"a7"}
{"type":"tool.execution_complete","data":{"toolCallId":"T","success":true,"result":{"content":"found"}},"id":"e9"}
{"type":"assistant.message","data":{"messageId":"m1","content":"done","outputTokens":5},"id":"e10"}
{"type":"assistant.message","data":{"messageId":"m1","content":"done","outputTokens":5},"id":"e10"}
{"type":"assistant.message","data":{"messageId":"m1","content":"other","outputTokens":5},"id":"e10"}
{"type":"session.compaction_complete","data":{"success":false,"error":"no"},"id":"e11"}
{"type":"session.compaction_complete","data":{"success":true,"summaryContent":"in short","preCompactionTokens":9,"compactionTokensUsed":{"inputTokens":30,"outputTokens":3}},"id":"e12"}
{"type":"user.message","data":{"content":"more"},"id":"e13"}
{"type":"session.snapshot_rewind","data":{"upToEventId":"e13"},"id":"e14"}
{"type":"session.snapshot_rewind","data":{"upToEventId":"e2"},"id":"e15"}
{"type":"session.context_cleared","data":{},"id":"e16"}
{"type":"session.shutdown","data":{"currentModel":"m","modelMetrics":{"m":{"usage":{"inputTokens":200,"cacheReadTokens":50,"outputTokens":40}}}},"id":"e17"}
"##;

/// The events of a subagent were the main session's: its context had texts that the model never saw there, and lost the only copy of a file that the
/// subagent read as well.
#[test]
fn a_subagent_is_a_session_of_its_own_and_sums_tell_what_no_event_told() {
    let (batches, report) = super::support::import(ImportFormat::CopilotCli, "file", AGENT.as_bytes());
    assert_eq!((report.sessions, report.subagents, report.duplicates), (1, 1, 1));
    expect![[r#"
        = copilot-cli s2 cwd=/w
        kept session.start
        -- Prompt
        user [text look]
        call T task {}
        kept subagent.started
        = copilot-cli s2/T cwd=/w
        assistant [text sub thinks]
        finished m None/None
        call S view {}
        end S Completed [text text]
        finished m Some(40)/Some(7)
        = copilot-cli s2 cwd=/w
        end T Completed [text found]
        assistant [text done]
        finished m None/Some(5)
        kept raw
        assistant [text other]
        finished m None/Some(5)
        kept session.compaction_complete
        context replaced Compaction []
        user (not for the user) [text in short]
        user (not for the model) (not for the user) [text Some of the conversation history has been summari..]
        finished m Some(30)/Some(3)
        -- Prompt
        user [text more]
        rewound to before prompt:event:e13
        kept session.snapshot_rewind
        context replaced Host []
        session closed None
        finished m Some(120)/Some(27)
    "#]]
    .assert_eq(&super::support::show(&batches));
    let agent = batches.iter().find(|batch| batch.stream.parent.is_some()).unwrap();
    let main = acpdb_engine::entry::StreamInfo::session("copilot-cli", "s2").id();
    assert_eq!(agent.stream.parent, Some((main, Some("T".to_owned()))));
}
