//! The responses API: items as facts.

use expect_test::expect;
use serde_json::{Value, json};

use super::*;

/// A call of the responses API.
fn item_call(id: &str, path: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "read", "arguments": format!("{{\"path\": \"{path}\"}}"), "status": "completed"})
}

fn item_result(id: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": text})
}

fn item_said(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn item_thought(text: &str, sealed: &str) -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": sealed})
}

fn response(output: &Value) -> Value {
    json!({"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-lab-1", "output": output,
        "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 3}}})
}

#[test]
fn responses_are_items_and_a_run_of_them_is_one_step() {
    let body = json!({"model": "gpt-lab", "instructions": "Help.", "store": false, "user": "SECRET", "input": [
        {"role": "developer", "content": "Well."},
        {"role": "user", "content": [{"type": "input_text", "text": "Look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}]},
        item_thought("Hm", "sealed"), item_said("Two files."), item_call("c1", "a"),
        {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin\n"},
        {"type": "local_shell_call", "call_id": "c3", "action": {"type": "exec", "command": ["ls"]}},
        item_result("c1", "A"), {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "Error: no"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"}]});
    let output =
        json!([item_thought("And", "more"), item_call("c4", "b"), item_said("Do"), item_said("ne.")]);
    let whole = response(&output);
    let asked = body.to_string();
    check(
        RESPONSES,
        &body,
        &whole.to_string(),
        &expect![[r#"
        System "Well."   <msg:4bb5#1>
        Prompt begins   <prompt:msg:d991#1>
        User "Look", Media "data:image/png;base64,AAAA"   <msg:d991#1>
        Step begins   <turn:msg:2ed3#1>
        Assistant   <msg:2ed3#1>
          Reasoning "Hm" signed sealed   <msg:2ed3#1/thought1>
          "Two files."   <msg:2ed3#1/part1>
        Assistant   <msg:bbe8#1>
        call c1: read {"path":"a"}   <call:c1@bbe8#1:start>
        Assistant   <msg:ca09#1>
        call c2: apply_patch "*** Begin\n"   <call:c2@ca09#1:start>
        Assistant   <msg:54f3#1>
        call c3: local_shell {"command":["ls"],"type":"exec"}   <call:c3@54f3#1:start>
        Completed c1: "A"   <call:c1@bbe8#1:finish>
        Failed c2: "Error: no"   <call:c2@ca09#1:finish>
        Step begins   <turn:msg:cd3b#1>
        Assistant   <msg:cd3b#1>
          Opaque "{\"type\":\"web_search_call\",\"id\":\"ws_1\",\"status\":\"completed\"}"   <msg:cd3b#1/part1>
        -- the answer
        Step begins   <turn:msg:f359#1>
        Assistant   <msg:f359#1>
          Reasoning "And" signed more   <msg:f359#1/thought1>
        call c4: read {"path":"b"}   <call:c4@f359#1:start>
        Assistant   <msg:4738#1>
          "Do"   <msg:4738#1/part1>
        Assistant   <msg:edbe#1>
          "ne."   <msg:edbe#1/part1>
        ends: gpt-lab-1 "completed" [Some(5), Some(4), Some(7), Some(3)]   <msg:f359#1:finish>
        -- not understood: {"action"}
    "#]],
    );
    let asked = talk(RESPONSES, &asked);
    assert!(!format!("{:?}{:?}", asked.head, asked.entries()).contains("SECRET"));
    let head = [asked.head.system.as_deref(), asked.head.params.as_deref()];
    assert_eq!(head, [Some("Help."), Some(r#"{"store":false}"#)]);
    let items = output.as_array().unwrap().iter().enumerate();
    let done = |(place, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": place, "item": item});
    let mut events =
        vec![json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}})];
    events.extend(items.map(done));
    let half = stream(&events);
    // Some providers tell no items at the end.
    let mut last = whole.clone();
    last["output"] = json!([]);
    events.push(json!({"type": "response.completed", "response": last}));
    assert_eq!(
        answered(RESPONSES, &stream(&events), &asked),
        answered(RESPONSES, &whole.to_string(), &asked)
    );
    let mut failed = whole;
    failed["status"] = "failed".into();
    for none in [
        half,
        failed.to_string(),
        json!({"error": {"message": "overloaded"}}).to_string(),
        response(&json!([])).to_string(),
    ] {
        assert_eq!(answered(RESPONSES, &none, &asked), None, "{none}");
    }
}

#[test]
fn names_of_items_do_not_depend_on_reasoning_nor_on_where_results_stand() {
    let ask = json!({"role": "user", "content": "Look"});
    let body = json!({"input": [ask]}).to_string();
    let first = talk(RESPONSES, &body);
    let output = json!([item_thought("Hm", "sealed"), item_call("c1", "a"), item_call("c2", "b")]);
    let answer = answered(RESPONSES, &response(&output).to_string(), &first).unwrap();
    let plain = |id: &str, path: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": format!("{{\"path\":\"{path}\"}}")});
    let (one, two) = (plain("c1", "a"), plain("c2", "b"));
    let (told_one, told_two) = (item_result("c1", "A"), item_result("c2", "B"));
    let known: Vec<Entry> = first.entries().into_iter().chain(answer.entries).collect();
    let check = |input: Value| {
        let body = json!({"input": input}).to_string();
        let second = talk(RESPONSES, &body);
        assert_eq!(second.keys(), [first.keys(), answer.keys.clone()].concat());
        let is_fact = |entry: &Entry| !matches!(entry.fact, Fact::TurnStarted(_));
        let new: Vec<Entry> =
            second.entries().into_iter().filter(|entry| is_fact(entry) && !known.contains(entry)).collect();
        expect![[r#"
            Completed c1: "A"   <call:c1@bbe8#1:finish>
            Completed c2: "B"   <call:c2@86ea#1:finish>
        "#]]
        .assert_eq(&lines(&new));
    };
    check(json!([ask, one, two, told_one, told_two]));
    check(json!([ask, one, told_one, two, told_two]));
}

#[test]
fn a_request_may_add_to_what_the_provider_keeps() {
    let says = json!([{"role": "user", "content": "go on"}, {"role": "user", "content": "go on"}]);
    let told = |after: &str| {
        let body = json!({"previous_response_id": after, "input": says}).to_string();
        let talk = talk(RESPONSES, &body);
        (talk.extent, talk.keys())
    };
    let (extent, keys) = told("resp_1");
    assert_eq!((extent, keys.len()), (Extent::Added, 2));
    assert_eq!(told("resp_1").1, keys, "the same again");
    assert!(told("resp_2").1.iter().all(|key| !keys.contains(key)), "the same words, after another answer");
    let body = json!({"input": "go on"}).to_string();
    assert_eq!(talk(RESPONSES, &body).extent, Extent::Whole);
    for body in [
        json!({"input": [{"type": "item_reference", "id": "msg_1"}]}),
        json!({"input": "go on", "conversation": "conv_1"}),
    ] {
        let body = body.to_string();
        assert_eq!(talk(RESPONSES, &body).extent, Extent::Refers, "{body}");
    }
}
