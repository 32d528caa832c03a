//! A record that stands in a file twice is told once, and one that only looks alike as often as it was written.

use acpdb_hosts::import::ImportFormat;
use expect_test::expect;

use super::support::{check, import, show};

const CODEX: &str = r##"{"timestamp":"2026-01-02T10:00:00.001Z","type":"session_meta","payload":{"id":"s1","cwd":"/w"}}
{"timestamp":"2026-01-02T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"}]}}
{"timestamp":"2026-01-02T10:00:02.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}}
{"timestamp":"2026-01-02T10:00:02.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}}
{"timestamp":"2026-01-02T10:00:03.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"done"}}
"##;

/// Lines of Codex have no ids. A line that stood there twice was a second message, and a call without a result for ever.
#[test]
fn a_line_of_codex_that_stands_there_again_is_one() {
    check(
        ImportFormat::Codex,
        &format!("{CODEX}{CODEX}"),
        expect![[r#"
        = codex s1 cwd=/w
        kept session_meta
        user [text go on]
        -- Step
        call c1 shell {}
        kept raw
        end c1 Completed [text done]
        kept raw
        kept raw
        kept raw
        kept raw
        kept raw
        sessions 1 records 10 calls 1 failed 0 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
    "#]],
    );
}

/// A fork's host gave all copies one time: what the user said twice is no copy.
#[test]
fn lines_of_one_moment_may_be_alike() {
    let said = |role: &str, text: &str| {
        format!(
            r#"{{"timestamp":"2026-01-02T10:00:00.000Z","type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ) + "\n"
    };
    let input =
        [said("user", "go on"), said("assistant", "1"), said("user", "go on"), said("assistant", "2")];
    let (batches, report) = import(ImportFormat::Codex, "file", input.concat().as_bytes());
    assert_eq!((show(&batches).matches("go on").count(), report.duplicates), (2, 0));
}

/// Answers that followed each other were one request: only the first one's tokens were told. Counts that a change of the limits told again
/// were a request of their own.
#[test]
fn each_telling_of_codex_of_its_tokens_ends_a_reply() {
    let line = |at: u32, rest: &str| format!(r#"{{"timestamp":"2026-01-02T10:00:{at:02}Z",{rest}}}"#) + "\n";
    let said = |at, text: &str| {
        line(
            at,
            &format!(
                r#""type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}"#
            ),
        )
    };
    let counted = |at, total: u32, last: u32| {
        let total = match total {
            0 => String::new(),
            total => format!(r#""total_token_usage":{{"input_tokens":{total},"output_tokens":1}},"#),
        };
        line(
            at,
            &format!(
                r#""type":"event_msg","payload":{{"type":"token_count","info":{{{total}"last_token_usage":{{"input_tokens":{last},"output_tokens":1}}}}}}"#
            ),
        )
    };
    let recorded = |at, input: u32| {
        line(
            at,
            &format!(
                r#""type":"token_usage_record","payload":{{"response_id":"r{at}","usage":{{"input_tokens":{input},"output_tokens":1}}}}"#
            ),
        )
    };
    let table = [
        [said(1, "a"), counted(2, 0, 10), said(3, "b"), counted(4, 0, 20)],
        [said(1, "a"), recorded(2, 10), said(3, "b"), recorded(4, 20)],
        [said(1, "a"), counted(2, 10, 10), counted(3, 10, 10), said(4, "b")],
        [counted(1, 10, 10), said(2, "a"), counted(3, 10, 10), counted(4, 30, 20)],
    ];
    let told = table.map(|lines| {
        let (batches, _) = import(ImportFormat::Codex, "file", lines.concat().as_bytes());
        let shown = show(&batches);
        let facts = shown.lines().filter(|line| !line.starts_with("kept") && !line.starts_with('='));
        facts.collect::<Vec<_>>().join(", ")
    });
    expect![[r#"
        -- Step, assistant [text a], finished - Some(10)/Some(1), -- Step, assistant [text b], finished - Some(20)/Some(1)
        -- Step, assistant [text a], finished - Some(10)/Some(1), -- Step, assistant [text b], finished - Some(20)/Some(1)
        -- Step, assistant [text a], finished - Some(10)/Some(1), -- Step, assistant [text b]
        -- Step, assistant [text a], finished - Some(20)/Some(1)"#]].assert_eq(&told.join("\n"));
}

/// A line that stood there twice seemed to go back to the line before the first one, and was paid again.
#[test]
fn a_line_of_pi_that_stands_there_again_is_one() {
    let session = r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"look"}}
{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","model":"m","usage":{"input":1,"output":1},"content":[{"type":"text","text":"seen"}]}}
{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","model":"m","usage":{"input":1,"output":1},"content":[{"type":"text","text":"seen"}]}}
{"type":"message","id":"c","parentId":"b","message":{"role":"user","content":"more"}}
"#;
    check(
        ImportFormat::Pi,
        &format!("{session}{session}"),
        expect![[r#"
        = pi s1 cwd=/w
        kept session
        -- Prompt
        user [text look]
        -- Step
        assistant [text seen]
        finished m Some(1)/Some(1)
        kept raw
        -- Prompt
        user [text more]
        kept raw
        kept raw
        kept raw
        kept raw
        kept raw
        sessions 1 records 10 calls 0 failed 0 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
    "#]],
    );
}

/// A redactor puts one word in place of all ids, of messages as of parts: the first prompt had no text.
#[test]
fn one_word_for_all_ids_of_opencode_hides_no_text() {
    let message = |(at, text): (usize, &str)| {
        format!(
            r#"{{"info":{{"id":"X","role":"user","time":{{"created":{at}}}}},"parts":[{{"id":"X","messageID":"X","type":"text","text":"{text}"}}]}}"#
        )
    };
    let messages: Vec<String> = ["one", "two", "three"].into_iter().enumerate().map(message).collect();
    let input =
        format!(r#"{{"info":{{"id":"ses_1","directory":"/w"}},"messages":[{}]}}"#, messages.join(","));
    let (batches, report) = import(ImportFormat::Opencode, "file", input.as_bytes());
    let shown = show(&batches);
    for text in ["one", "two", "three"] {
        assert!(shown.contains(&format!("[text {text}]")), "{text}: {shown}");
    }
    assert_eq!(report.duplicates, 0);
}

/// The tokens of a request were added to those that its answer had told, if they had no name in common; and a record of another request
/// was taken for the answer's.
#[test]
fn a_record_of_copilot_is_about_the_answer_that_it_fits() {
    let line = |id: u32, kind: &str, data: &str| {
        format!(r#"{{"type":"{kind}","data":{{{data}}},"id":"e{id}"}}"#) + "\n"
    };
    let answer = |id, data: &str| {
        line(
            id,
            "assistant.message",
            &format!(r#""messageId":"m{id}","model":"m","content":"a","requestId":"R{id}"{data}"#),
        )
    };
    let record = |id, data: &str| {
        line(id, "session.usage_record", &format!(r#""model":"m","inputTokens":9,"outputTokens":7{data}"#))
    };
    let table = [
        [answer(1, r#","outputTokens":7"#), record(2, "")],
        [answer(1, r#","outputTokens":8"#), record(2, "")],
        [answer(1, ""), record(2, r#","apiCallId":"A""#)],
        [answer(1, r#","apiCallId":"A""#), record(2, r#","apiCallId":"T""#)],
        [answer(1, r#","outputTokens":7,"apiCallId":"A""#), record(2, r#","apiCallId":"A""#)],
    ];
    let told = table.map(|lines| {
        let (batches, _) = import(ImportFormat::CopilotCli, "file", lines.concat().as_bytes());
        let entries = batches.iter().flat_map(|batch| &batch.entries);
        let ends = entries.filter_map(|entry| match &entry.fact {
            acpdb_engine::entry::Fact::MessageFinished(end) => {
                Some(format!("{} {:?}/{:?}", end.key, end.report.usage.input, end.report.usage.output))
            }
            _ => None,
        });
        ends.collect::<Vec<_>>().join(", ")
    });
    expect![[r#"
        m1 None/Some(7), m1 Some(9)/Some(7)
        m1 None/Some(8), event:e2/request Some(9)/Some(7)
        m1 None/None, m1 Some(9)/Some(7)
        m1 None/None, event:e2/request Some(9)/Some(7)
        m1 None/Some(7), m1 Some(9)/Some(7)"#]]
    .assert_eq(&told.join("\n"));
}

/// The host takes the events of a rewind out of its file: a store that had read them showed them for ever.
#[test]
fn a_rewind_of_copilot_whose_events_are_gone_goes_back_to_what_is_there() {
    let input = r#"{"type":"session.start","data":{"sessionId":"s1"},"id":"e1"}
{"type":"user.message","data":{"content":"one"},"id":"e2"}
{"type":"assistant.message","data":{"messageId":"m1","model":"m","content":"1","outputTokens":1},"id":"e3"}
{"type":"session.snapshot_rewind","data":{"upToEventId":"e4","eventsRemoved":3},"id":"e9"}
{"type":"user.message","data":{"content":"three"},"id":"e10"}
"#;
    check(
        ImportFormat::CopilotCli,
        input,
        expect![[r#"
        = copilot-cli s1 cwd=-
        kept session.start
        -- Prompt
        user [text one]
        assistant [text 1]
        finished m None/Some(1)
        rewound After("event:e3")
        -- Prompt
        user [text three]
        sessions 1 records 5 calls 0 failed 0 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
    "#]],
    );
}

/// Records of kinds that came later: each is named and counted, its bytes are kept, and nothing is made of it.
#[test]
fn a_record_of_an_unknown_kind_is_counted_and_says_nothing() {
    let codex = CODEX.lines().next().unwrap();
    let table = [
        (
            ImportFormat::ClaudeCode,
            r#"{"type":"user","uuid":"u","sessionId":"s","cwd":"/w","message":{"role":"user","content":"said"}}"#,
            r#"{"type":"dream","uuid":"N","sessionId":"s","message":{"role":"user","content":"invented"},"usage":{"input_tokens":9}}"#,
        ),
        (
            ImportFormat::Codex,
            codex,
            r#"{"timestamp":"2026-01-02T10:00:0NZ","type":"dream","payload":{"type":"message","role":"user","content":"invented","usage":{"input_tokens":9}}}"#,
        ),
        (
            ImportFormat::CopilotCli,
            r#"{"type":"session.start","data":{"sessionId":"s"},"id":"e0"}"#,
            r#"{"type":"dream","data":{"content":"invented","outputTokens":9},"id":"eN"}"#,
        ),
        (
            ImportFormat::Pi,
            r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#,
            r#"{"type":"dream","id":"N","parentId":null,"message":{"role":"user","content":"invented"}}"#,
        ),
        (
            ImportFormat::GeminiCli,
            r#"{"sessionId":"s","projectHash":"p","kind":"main"}"#,
            r#"{"$dream":{"messages":[{"id":"N","type":"user","content":"invented"}]}}"#,
        ),
    ];
    for (format, first, unknown) in table {
        let said = match format {
            ImportFormat::ClaudeCode => "",
            ImportFormat::Codex => {
                r#"{"timestamp":"2026-01-02T10:00:09Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"text","text":"said"}]}}"#
            }
            ImportFormat::CopilotCli => r#"{"type":"user.message","data":{"content":"said"},"id":"e9"}"#,
            ImportFormat::Pi => {
                r#"{"type":"message","id":"z","parentId":null,"message":{"role":"user","content":"said"}}"#
            }
            _ => r#"{"id":"m9","type":"user","content":"said"}"#,
        };
        let [one, other] = ["1", "2"].map(|n| unknown.replace('N', n));
        let input = format!("{first}\n{one}\n{other}\n{said}\n");
        let (batches, report) = import(format, "file", input.as_bytes());
        super::support::judge(&batches, &input);
        let shown = show(&batches);
        assert!(shown.contains("said") && !shown.contains("invented"), "{format}: {shown}");
        assert!(!shown.contains("finished"), "{format}: {shown}");
        let counts: Vec<u64> = report.unknown_records.values().copied().collect();
        assert_eq!(counts, [2], "{format}: {:?}", report.unknown_records);
    }
}

/// Texts of skills, and notices of modes, went to the model and stood in no context.
#[test]
fn what_copilot_gave_the_model_beside_prompts_is_in_the_context() {
    let input = r#"{"type":"session.start","data":{"sessionId":"s1","context":{"cwd":"/w"}},"id":"e1"}
{"type":"user.message","data":{"content":"one"},"id":"e2"}
{"type":"skill.invoked","data":{"name":"pdf","content":"a skill"},"id":"e3"}
{"type":"skill.context_delivered_ref","data":{"contentId":"sha256:DIGEST","prefix":"<skill>","suffix":"</skill>"},"id":"e4"}
{"type":"skill.context_delivered","data":{"content":"another"},"id":"e5"}
{"type":"skill.context_delivered_ref","data":{"contentId":"sha256:00","prefix":"<","suffix":">"},"id":"e6"}
{"type":"session.mode_notice_delivered","data":{"mode":"plan","content":"plan now"},"id":"e7"}
{"type":"session.context_changed","data":{"cwd":"/v"},"id":"e8"}
"#;
    let digest = "a3f87a75adb75345a7a2cfbba8135524ed5fa143faa3a04e39fd014bade6ae06";
    check(
        ImportFormat::CopilotCli,
        &input.replace("DIGEST", digest),
        expect![[r#"
            = copilot-cli s1 cwd=/w
            kept session.start
            -- Prompt
            user [text one]
            kept skill.invoked
            user (not for the user) [text <skill>a skill</skill>]
            user (not for the user) [text another]
            kept skill.context_delivered_ref
            user (not for the user) [text plan now]
            kept session.context_changed
            session changed title=None cwd=Some("/v")
            sessions 1 records 8 calls 0 failed 0 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
        "#]],
    );
}
