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

const RECORDS: &str = r##"{"type":"session.start","data":{"sessionId":"s3","copilotVersion":"1.0.102","selectedModel":"m","context":{"cwd":"/w"}},"id":"e1","timestamp":"2026-01-02T03:04:05Z"}
{"type":"user.message","data":{"content":"look"},"id":"e2"}
{"type":"session.usage_record","data":{"usage":{"model":"m","inputTokens":100,"outputTokens":50,"apiCallId":"c1"}},"id":"e3"}
{"type":"assistant.message","data":{"messageId":"m1","model":"m","content":"I ask","apiCallId":"c1"},"id":"e4"}
{"type":"tool.execution_start","data":{"toolCallId":"T","toolName":"task","arguments":{}},"id":"e5"}
{"type":"session.usage_record","data":{"usage":{"model":"small","inputTokens":70,"outputTokens":7,"apiCallId":"c2"}},"id":"e6","agentId":"T"}
{"type":"assistant.message","data":{"messageId":"m2","model":"small","content":"sub","apiCallId":"c2","outputTokens":7},"id":"e7","agentId":"T"}
{"type":"tool.execution_start","data":{"toolCallId":"S","toolName":"view","arguments":{}},"id":"e8","agentId":"T"}
{"type":"tool.execution_complete","data":{"toolCallId":"S","success":true,"result":{"content":"text"}},"id":"e9"}
{"type":"tool.execution_complete","data":{"toolCallId":"T","success":true,"result":{"content":"found"}},"id":"e10"}
{"type":"session.shutdown","data":{"modelMetrics":{"m":{"usage":{"inputTokens":130,"outputTokens":60}}}},"id":"e11"}
{"type":"session.shutdown","data":{"modelMetrics":{"m":{"usage":{"inputTokens":130,"outputTokens":60}}}},"id":"e12"}
{"type":"session.resume","data":{},"id":"e13"}
{"type":"session.shutdown","data":{"modelMetrics":{"m":{"usage":{"inputTokens":130,"outputTokens":60}}}},"id":"e14"}
"##;

/// Newer records of tokens tell the request's name and its model one level deeper, and before the message: each went to the message before,
/// under the model that the session had chosen, also those of a subagent.
#[test]
fn the_tokens_of_a_request_may_come_before_its_message() {
    let (batches, _) = super::support::import(ImportFormat::CopilotCli, "file", RECORDS.as_bytes());
    expect![[r#"
        = copilot-cli s3 cwd=/w
        kept session.start
        -- Prompt
        user [text look]
        finished m Some(100)/Some(50)
        assistant [text I ask]
        finished m None/None
        call T task {}
        = copilot-cli s3/T cwd=/w
        finished small Some(70)/Some(7)
        assistant [text sub]
        finished small None/None
        call S view {}
        end S Completed [text text]
        = copilot-cli s3 cwd=/w
        end T Completed [text found]
        session closed None
        finished m Some(30)/Some(10)
        session closed None
        kept session.resume
        session closed None
        finished m Some(130)/Some(60)
    "#]]
    .assert_eq(&super::support::show(&batches));
}

/// Where a redactor had put one word in place of all ids, the tokens of each request replaced those of the first.
#[test]
fn one_word_in_place_of_many_ids_names_no_request() {
    let lines = r#"{"type":"session.start","data":{"sessionId":"s5","selectedModel":"m","context":{"cwd":"/w"}},"id":"e1"}
{"type":"assistant.message","data":{"messageId":"m1","content":"one","apiCallId":"REDACTED"},"id":"e2"}
{"type":"session.usage_record","data":{"apiCallId":"REDACTED","inputTokens":100,"outputTokens":50},"id":"e3"}
{"type":"assistant.message","data":{"messageId":"m2","content":"two","apiCallId":"REDACTED"},"id":"e4"}
{"type":"session.usage_record","data":{"apiCallId":"REDACTED","inputTokens":200,"outputTokens":60},"id":"e5"}
"#;
    let (batches, _) = super::support::import(ImportFormat::CopilotCli, "file", lines.as_bytes());
    let ends = batches.iter().flat_map(|batch| &batch.entries).filter_map(|entry| match &entry.fact {
        acpdb_engine::entry::Fact::MessageFinished(end) => Some((end.key.clone(), end.report.usage.input)),
        _ => None,
    });
    let told: std::collections::BTreeMap<_, _> = ends.collect();
    assert_eq!(told.values().copied().collect::<Vec<_>>(), [Some(100), Some(200)], "{told:?}");
}

/// Without a model anywhere else, the sums of one model name it; its tokens were counted once as those of no model, and once as its own.
#[test]
fn sums_of_one_model_name_the_model_of_messages() {
    let lines = r#"{"type":"session.start","data":{"sessionId":"s4","context":{"cwd":"/w"}},"id":"e1"}
{"type":"assistant.message","data":{"messageId":"m1","content":"hi","outputTokens":50},"id":"e2"}
{"type":"session.shutdown","data":{"modelMetrics":{"m":{"usage":{"inputTokens":100,"outputTokens":50}}}},"id":"e3"}
"#;
    let (batches, _) = super::support::import(ImportFormat::CopilotCli, "file", lines.as_bytes());
    expect![[r#"
        = copilot-cli s4 cwd=/w
        kept session.start
        assistant [text hi]
        session closed None
        finished m None/Some(50)
        finished m Some(100)/Some(0)
    "#]]
    .assert_eq(&super::support::show(&batches));
}
