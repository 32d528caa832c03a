//! Long outputs of command lines: cut before they are first sent, and gone later.

use super::{Policy, Seq};
use crate::entry::Entry;
use crate::event::Face;
use crate::testing::{Tape, TestTools};

/// The shown text of a call's output after some further turns.
fn shown_after(tool: &str, params: &str, end: impl Fn(&str) -> Entry, turns: u32) -> String {
    let policy = r#"{"preset":"acp","idle.tokens_min":40,"idle.command_lines":[1,1,0],"idle.searches":3}"#;
    let policy = Policy::from_json(policy).unwrap();
    let mut tape = Tape::of_test_tools("command");
    tape.payload(crate::event::PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
    tape.entry(Entry::step("s1"));
    tape.entry(Entry::tool_started("c1", tool, params));
    tape.entry(end("c1"));
    for turn in 0..turns {
        tape.entry(Entry::step(format!("t{turn}")));
    }
    let state = tape.state();
    let ix = state.items(Seq::MAX).next().unwrap();
    let Some(placeholder) = state.placeholder(ix, Face::Output, Seq::MAX) else { return "whole".to_owned() };
    let text = crate::fold::render(&placeholder, &TestTools, &|body| tape.body(body)).unwrap();
    assert!(u64::from(crate::text::estimate(text.as_bytes())) <= placeholder.tokens, "{placeholder:?}");
    text
}

fn log(count: usize) -> String {
    (0..count).map(|n| format!("[{n}] compiling part {n} of the whole\n")).collect()
}

#[test]
fn a_long_log_is_cut_before_it_is_first_sent() {
    let done = |call: &str| Entry::tool_completed(call, log(300));
    let make = r#"{"command":"make"}"#;
    let first = shown_after("shell", make, done, 0);
    assert!(first.starts_with("[0] compiling") && first.contains("more lines left out"), "{first}");
    for turns in 1..3 {
        assert_eq!(shown_after("shell", make, done, turns), first);
    }
    // The rest goes like any other output.
    assert_eq!(shown_after("shell", make, done, 3), "[set aside: restore it, or run the call again]");
}

#[test]
fn other_outputs_are_sent_whole() {
    let done = |call: &str| Entry::tool_completed(call, log(300));
    let make = r#"{"command":"make"}"#;
    for (tool, params) in
        [("cat", r#"{"filePath":"a"}"#), ("read", r#"{"filePath":"a"}"#), ("grep", r#"{"pattern":"a"}"#)]
    {
        assert_eq!(shown_after(tool, params, done, 1), "whole", "{tool}");
    }
    let short = |call: &str| Entry::tool_completed(call, log(10));
    let failed = |call: &str| Entry::tool_failed(call, log(300));
    assert_eq!(shown_after("shell", make, short, 1), "whole");
    assert_eq!(shown_after("shell", make, failed, 1), "whole");
}
