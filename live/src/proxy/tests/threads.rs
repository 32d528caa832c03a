//! Conversations that Anthropic keeps as threads: their requests tell the new messages only.

use serde_json::{Value, json};

use super::conversation::{Desk, MESSAGES, told};

fn user(content: &Value) -> Value {
    json!({"role": "user", "content": content})
}

fn look() -> Value {
    user(&json!([{"type": "text", "text": "Look"}]))
}

fn result() -> Value {
    user(&json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "fn a() {}"}]))
}

fn blocks() -> Value {
    json!([{"type": "text", "text": "I read."},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/p/a.rs"}}])
}

fn says(content: &Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn answer(id: &str, content: &Value) -> Value {
    json!({"type": "message", "id": id, "model": "claude-lab", "stop_reason": "end_turn", "content": content})
}

/// A request that begins a thread, with the whole conversation.
fn whole(messages: &[Value]) -> Value {
    json!({"model": "claude-lab", "max_tokens": 9, "system": "Help.", "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
        "messages": messages, "thread": {"type": "create"}})
}

/// A request that goes on with a thread.
fn added(after: &str, messages: &[Value]) -> Value {
    json!({"model": "claude-lab", "max_tokens": 9, "messages": messages,
        "thread": {"type": "continue", "previous_message_id": after}})
}

/// The messages that the store shows, without what an export adds to a result.
fn shown(desk: &Desk) -> Value {
    desk.made()["messages"].clone()
}

/// Such requests have no tools, and were left out as those for titles are: the store had the first request only.
#[test]
fn a_thread_is_whole_here_and_a_request_that_tells_all_of_it_adds_nothing() {
    let desk = Desk::new(MESSAGES);
    let done = json!([{"type": "text", "text": "Done."}]);
    assert_eq!(desk.tell(&whole(&[look()]), Some(&answer("msg_1", &blocks()))).left_out, None);
    let second = desk.tell(&added("msg_1", &[result()]), Some(&answer("msg_2", &done)));
    assert_eq!((second.left_out, second.unknown), (None, Vec::new()));
    // The same words once more are a message of their own.
    let third = desk.tell(&added("msg_2", &[look()]), None);
    assert_eq!((third.left_out, third.events), (None, 2));
    let all = [look(), says(&blocks()), result(), says(&done), look()];
    assert_eq!(shown(&desk), Value::from(all.to_vec()));
    assert_eq!(desk.tell(&whole(&all), None), told(0), "its thread was lost, and is told anew");
    assert_eq!(desk.made()["system"], "Help.");
}

/// Where the answer before was not seen, the new messages are recorded all the same; the next whole request puts them in their place.
#[test]
fn a_thread_that_began_before_the_proxy_is_told_as_far_as_it_is_seen() {
    let done = json!([{"type": "text", "text": "Done."}]);
    let desk = Desk::new(MESSAGES);
    desk.tell(&whole(&[look()]), Some(&answer("msg_1", &blocks())));
    let desk = desk.restarted();
    let told = desk.tell(&added("msg_1", &[result()]), Some(&answer("msg_2", &done)));
    assert!(told.events > 0 && told.left_out.is_none(), "{told:?}");
    let all = [look(), says(&blocks()), result(), says(&done), look()];
    assert_eq!(shown(&desk), Value::from(all[..4].to_vec()));
    desk.tell(&whole(&all), None);
    assert_eq!(shown(&desk), Value::from(all.to_vec()));
}

/// A thread's results stand at the provider: a request that adds to them is sent as it is, and no context is recorded as sent.
#[test]
fn a_request_that_adds_to_a_thread_is_not_changed() {
    let desk = Desk::new(MESSAGES);
    desk.tell(&whole(&[look()]), Some(&answer("msg_1", &blocks())));
    let mut with_tools = added("msg_1", &[result()]);
    with_tools["tools"] = json!([{"name": "Read", "input_schema": {"type": "object"}}]);
    for body in [added("msg_1", &[result()]), with_tools] {
        let (made, pruned) = desk.prune(&body);
        assert_eq!((made, pruned.changes, pruned.breakpoints, pruned.seq), (body, 0, 0, None));
        assert!(pruned.untouched.unwrap().contains("the provider keeps"));
    }
}
