//! Claude Code: the tokens of answers, the edits of their contexts, and the calls of subagents.

use acpdb_engine::entry::Fact;
use acpdb_hosts::import::ImportFormat;
use expect_test::expect;

use super::claude_code::records;
use super::read;

/// Sums of an answer of several inferences were priced as one long request; a faster answer at the usual price; the host's own words as a request.
#[test]
fn usage_is_told_by_inference_model_and_tier() {
    let lines = [
        r#"{"type":"user","uuid":"u1","sessionId":"s","cwd":"/w","message":{"role":"user","content":"go"}}"#,
        r#"{"type":"assistant","uuid":"a1","message":{"id":"m1","model":"x","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":9,"output_tokens":9,"service_tier":"standard","iterations":[{"type":"message","input_tokens":1,"output_tokens":2},{"type":"advisor_message","model":"y","input_tokens":3,"output_tokens":4},{"type":"message","input_tokens":5,"output_tokens":3}]}}}"#,
        r#"{"type":"assistant","uuid":"a2","message":{"id":"m2","model":"x","content":[{"type":"text","text":"b"}],"usage":{"input_tokens":1,"output_tokens":1,"service_tier":"standard","speed":"fast","server_tool_use":{"web_search_requests":2}}}}"#,
        r#"{"type":"assistant","uuid":"a3","message":{"id":"m3","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0,"output_tokens":0}}}"#,
        r#"{"type":"assistant","uuid":"a4","message":{"id":"m4","model":"x","content":[{"type":"text","text":"c"}],"usage":{"input_tokens":"7","output_tokens":2,"iterations":[{"type":"message","model":"y","input_tokens":"7","output_tokens":2}]}}}"#,
        r#"{"type":"cost-state","sessionId":"s","modelUsage":{"x":{"inputTokens":50,"outputTokens":20}}}"#,
        r#"{"type":"cost-state","sessionId":"s","modelUsage":{"x":{"inputTokens":10,"outputTokens":5}}}"#,
    ];
    let (batches, _) = read(ImportFormat::ClaudeCode, lines.join("\n").as_bytes());
    let entries = batches.iter().flat_map(|batch| &batch.entries);
    let told: Vec<String> = entries
        .filter_map(|entry| match &entry.fact {
            acpdb_engine::entry::Fact::MessageFinished(finished) => {
                let report = &finished.report;
                let (usage, tier) = (report.usage, report.service_tier.as_deref());
                Some(format!(
                    "{} {:?} {tier:?} {:?}/{:?} {:?}",
                    finished.key, report.model, usage.input, usage.output, usage.searches
                ))
            }
            _ => None,
        })
        .collect();
    expect![[r#"
        m1 Some("x") Some("standard") Some(5)/Some(3) None
        m1/1 Some("x") Some("standard+part") Some(1)/Some(2) None
        m1/2 Some("y") Some("advisor+part") Some(3)/Some(4) None
        m2 Some("x") Some("fast") Some(1)/Some(1) Some(2)
        m3 None None None/None None
        sum/x Some("x") Some("sum") Some(50)/Some(20) None
        sum/x Some("x") Some("sum") Some(60)/Some(25) None
        m4 Some("y") None Some(7)/Some(2) None"#]]
    .assert_eq(&told.join("\n"));
}

/// Lines of one answer that said less (no inferences, no speed) took the price of the others away, or added their sum once more.
#[test]
fn a_line_that_says_less_of_an_answer_takes_nothing_away() {
    let line = |uuid: &str, usage: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","sessionId":"s","cwd":"/w","message":{{"id":"m1","model":"x","content":[{{"type":"text","text":"{uuid}"}}],"usage":{{{usage}}}}}}}"#
        )
    };
    let sum = r#""input_tokens":9,"output_tokens":9,"service_tier":"standard""#;
    let parts = r#""iterations":[{"type":"message","input_tokens":4,"output_tokens":4},{"type":"message","input_tokens":5,"output_tokens":5}]"#;
    let (fast, nought) = (r#""speed":"fast""#, r#""input_tokens":0,"output_tokens":0"#);
    let table = [
        [sum.to_owned(), format!("{sum},{parts}")],
        [format!("{sum},{parts}"), sum.to_owned()],
        [format!("{sum},{parts}"), nought.to_owned()],
        [format!("{sum},{fast}"), sum.to_owned()],
        [sum.to_owned(), format!("{sum},{fast}")],
    ];
    let told = table.map(|[one, other]| {
        let input = format!("{}\n{}\n", line("a1", &one), line("a2", &other));
        let (batches, _) = read(ImportFormat::ClaudeCode, input.as_bytes());
        let ends = batches.iter().flat_map(|batch| &batch.entries).filter_map(|entry| match &entry.fact {
            Fact::MessageFinished(end) => {
                let usage = end.report.usage;
                let counts = [usage.input, usage.output].map(Option::unwrap_or_default);
                Some(format!(
                    "{} {:?} {counts:?}",
                    end.key,
                    end.report.service_tier.as_deref().unwrap_or("-")
                ))
            }
            _ => None,
        });
        ends.collect::<Vec<_>>().join(", ")
    });
    expect![[r#"
        m1 "standard" [5, 5], m1/1 "standard+part" [4, 4]
        m1 "standard" [5, 5], m1/1 "standard+part" [4, 4]
        m1 "standard" [5, 5], m1/1 "standard+part" [4, 4]
        m1 "fast" [9, 9]
        m1 "fast" [9, 9]"#]]
    .assert_eq(&told.join("\n"));
}

/// Subagents inside the session's own file had no call.
#[test]
fn a_side_line_in_the_file_is_linked_to_the_call_that_gave_its_prompt() {
    let call = |uuid: &str, call: &str, prompt: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"u1","sessionId":"s","cwd":"/w","message":{{"id":"m1","model":"x","content":[{{"type":"tool_use","id":"{call}","name":"Task","input":{{"prompt":"{prompt}"}}}}]}}}}"#
        )
    };
    let side = |uuid: &str, prompt: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":null,"isSidechain":true,"sessionId":"s","cwd":"/w","message":{{"role":"user","content":"{prompt}"}}}}"#
        )
    };
    let mut lines = vec![records(&["user u1 - do it"])];
    let calls = [("a1", "T1", "one"), ("a2", "T2", "two"), ("a3", "T3", "same"), ("a4", "T4", "same")];
    lines.extend(calls.map(|(uuid, id, prompt)| call(uuid, id, prompt) + "\n"));
    lines.extend([side("p1", "two"), side("p2", "one"), side("p3", "same")].map(|line| line + "\n"));
    let (batches, _) = read(ImportFormat::ClaudeCode, lines.concat().as_bytes());
    let links = batches.iter().filter_map(|batch| batch.stream.parent.as_ref());
    let links: Vec<&str> = links.map(|(_, call)| call.as_deref().unwrap_or("-")).collect();
    assert_eq!(links, ["T2", "T1", "-"]);
}

/// The edits of a provider were bytes of a record, which no search found.
#[test]
fn what_the_provider_cleared_for_an_answer_stands_in_the_history() {
    let answer = r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","cwd":"/w","message":{"id":"m1","model":"x","content":[{"type":"text","text":"done"}],"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":8,"cleared_input_tokens":50000}]}}}"#;
    let again = answer.replace("a1", "a2").replace("u1", "a1").replace("done", "all");
    let none = r#"{"type":"assistant","uuid":"a3","parentUuid":"a2","sessionId":"s","cwd":"/w","message":{"id":"m2","model":"x","content":[{"type":"text","text":"more"}],"context_management":{"applied_edits":[]}}}"#;
    let input = [&*records(&["user u1 - do it"]), answer, "\n", &again, "\n", none, "\n"].concat();
    super::check(
        ImportFormat::ClaudeCode,
        &input,
        expect![[r#"
        [s]
          prompt u1 <prompt:u1>
          User u1: Text "do it" <msg:u1#0> *
          step m1 <turn:m1>
          Assistant m1 after u1: Text "done" <msg:a1#0> *
          more of m1: Text "all" <msg:a2#0> *
          System edited:m1: Text "the provider edited the context of this request: clear_tool_uses_20250919: cleared tool uses 8, cleared input tokens 50000" <edited:m1>
          end of m1 Some("x") None in None out None <msg:m1:finish>
          step m2 <turn:m2>
          Assistant m2 after m1: Text "more" <msg:a3#0> *
          end of m2 Some("x") None in None out None <msg:m2:finish>
    "#]],
    );
}

/// The result of a call names the subagent that it started, also to a store that has read the subagent's file before.
#[test]
fn a_result_that_names_a_subagent_tells_the_call_that_started_it() {
    let lines = [
        "user u1 - go",
        "call a1 u1 m1 c1",
        r#"{"type":"user","uuid":"r1","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done"}]},"toolUseResult":{"agentId":"ag1"}}"#,
    ];
    let (batches, report) = read(ImportFormat::ClaudeCode, records(&lines).as_bytes());
    let started: Vec<_> =
        report.started.iter().map(|it| (it.parent.as_str(), it.call.as_str(), it.session.as_str())).collect();
    assert_eq!(started, [("s", "c1", "s/ag1")]);
    let told = batches.iter().find(|batch| batch.entries.is_empty()).unwrap();
    let parent = Some((batches[0].stream.id(), Some("c1".to_owned())));
    assert_eq!((told.stream.name.as_str(), &told.stream.parent), ("s/ag1", &parent));
}
