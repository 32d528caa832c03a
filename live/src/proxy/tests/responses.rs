//! Conversations over the responses API: their records, and the texts that are left out on the wire.

use serde_json::{Value, json};

use super::conversation::{Desk, HIDDEN, LONG, RESPONSES, told};

fn ask(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn says(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn thinks(text: &str) -> Value {
    json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "sealed=="})
}

fn calls(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": r#"{"file_path":"/p/a.rs"}"#})
}

fn result(id: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": text})
}

fn body(input: &[Value]) -> Value {
    let tool = json!({"type": "function", "name": "Read", "parameters": {"type": "object"}});
    json!({"model": "gpt-lab", "store": false, "tools": [tool], "instructions": "Help.", "input": input})
}

/// An answer as a provider gives it: with ids of its own.
fn answer(output: &[Value]) -> Value {
    let mut output = output.to_vec();
    for (number, item) in output.iter_mut().enumerate() {
        item["id"] = format!("item_{number}").into();
        item["status"] = "completed".into();
    }
    json!({"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-lab", "output": output,
        "usage": {"input_tokens": 9, "output_tokens": 2}})
}

#[test]
fn each_fact_is_told_once_and_what_is_stored_is_what_was_sent() {
    let desk = Desk::new(RESPONSES);
    let mut input = vec![ask("Look")];
    let first = body(&input);
    let answered = [thinks("Two files."), says("I read."), calls("c1"), calls("c2")];
    assert!(desk.tell(&first, Some(&answer(&answered))).events > 0);
    assert_eq!(desk.tell(&first, Some(&answer(&answered))), told(0), "the same again");
    input.extend(answered);
    input.extend([result("c1", "fn a() {}"), result("c2", "Error: no such file")]);
    let second = body(&input);
    assert_eq!(desk.tell(&second, None).events, 2, "two results");
    assert_eq!(desk.made(), second);
    let done = [says("All"), says("done.")];
    assert!(desk.tell(&second, Some(&answer(&done))).events > 0);
    input.extend(done);
    input.push(ask("Thanks"));
    let third = body(&input);
    assert_eq!(desk.tell(&third, None).events, 2, "a prompt begins, and its message");
    assert_eq!(desk.made(), third);
    // Another process knows nothing but the store.
    let desk = desk.restarted();
    assert_eq!(desk.tell(&third, None), told(0));
    let short = body(&[ask("So far: all is done."), says("done."), ask("And now?")]);
    desk.tell(&short, None);
    assert_eq!(desk.made(), short, "the program has replaced its context");
}

#[test]
fn a_conversation_that_the_provider_keeps_is_whole_here() {
    let desk = Desk::new(RESPONSES);
    let mut first = body(&[ask("Look")]);
    first["store"] = true.into();
    let output = [says("I read."), calls("c1")];
    desk.tell(&first, Some(&answer(&output)));
    let mut second = first.clone();
    second["previous_response_id"] = "resp_1".into();
    second["input"] = json!([result("c1", "fn a() {}")]);
    assert_eq!(desk.tell(&second, None).events, 1, "the result");
    assert!(desk.tell(&second, Some(&answer(&[says("Done.")]))).events > 0);
    let mut third = second.clone();
    third["previous_response_id"] = "resp_2".into();
    third["input"] = json!([ask("Look")]);
    assert_eq!(desk.tell(&third, None).events, 2, "the same words once more");
    let mut whole = first.clone();
    let mut all = vec![ask("Look")];
    all.extend(output);
    all.extend([result("c1", "fn a() {}"), says("Done."), ask("Look")]);
    whole["input"] = all.into();
    assert_eq!(desk.made(), whole);
    let mut refers = third;
    refers["input"] = json!([{"type": "item_reference", "id": "item_0"}]);
    let left_out = desk.tell(&refers, None).left_out.unwrap();
    assert!(left_out.contains("only the provider keeps"), "{left_out}");
    assert_eq!(desk.made(), whole);
}

#[test]
fn a_superseded_result_is_absent_on_the_wire() {
    let desk = Desk::new(RESPONSES);
    // Items of unknown kinds go through as they are.
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let patch = json!({"type": "custom_tool_call", "call_id": "c3", "name": "apply_patch", "input": "*** Begin Patch"});
    let patched = json!({"type": "custom_tool_call_output", "call_id": "c3", "output": "Done!"});
    let body = body(&[
        ask("Look"),
        calls("c1"),
        result("c1", LONG),
        search,
        patch,
        patched,
        calls("c2"),
        result("c2", LONG),
    ]);
    let (made, pruned) = desk.prune(&body);
    let mut expected = body.clone();
    expected["input"][2]["output"] = HIDDEN.into();
    assert_eq!(made, expected);
    assert_eq!((pruned.changes, pruned.unknown, pruned.untouched), (1, 0, None));
    assert_eq!(desk.prune(&body).0, made, "the same again");
}
