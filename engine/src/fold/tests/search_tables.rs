//! Searches that are cut to their first lines: the lines that are left at each turn, and when they go.

use std::fmt::Write as _;

use expect_test::expect;

use super::{Policy, Seq};
use crate::command::{Command, ContextAction, Target};
use crate::entry::Entry;
use crate::event::{Body, Face, ItemRevised, Part};
use crate::fold::FaceState;
use crate::testing::{Tape, TestTools};

const POLICY: &str = r#"{"preset":"acp","idle.tokens_min":40,"idle.search_lines":1,"idle.searches":[4,4,9]}"#;

fn call(tape: &mut Tape, id: &str, tool: &str, params: &str, output: &str) {
    tape.entry(Entry::tool_started(id, tool, params));
    tape.entry(Entry::tool_completed(id, output));
}

/// A search, and a read of one of the files that it found a turn later.
fn searched() -> Tape {
    let mut tape = Tape::of_test_tools("search");
    let policy = Policy::from_json(POLICY).unwrap();
    tape.payload(crate::event::PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
    let found: Vec<String> = (10..70)
        .map(|number| format!("src/part{number}.rs:{number}:    let clamped = clamp(limit);"))
        .collect();
    tape.entry(Entry::step("s1"));
    call(&mut tape, "c1", "grep", r#"{"pattern":"clamp"}"#, &found.join("\n"));
    tape.entry(Entry::step("s2"));
    call(&mut tape, "c2", "read", r#"{"filePath":"/p/src/part44.rs"}"#, "fn part() {}");
    tape
}

/// The text that is shown of the search.
fn shown(tape: &Tape, at: Seq) -> String {
    let state = tape.state();
    let ix = state.items(Seq::MAX).next().unwrap();
    let Some(placeholder) = state.placeholder(ix, Face::Output, at) else { return "whole".to_owned() };
    let text = crate::fold::render(&placeholder, &TestTools, &|body| tape.body(body)).unwrap();
    assert!(
        u64::from(crate::text::tokens::estimate(text.as_bytes())) <= placeholder.tokens,
        "{placeholder:?}"
    );
    text
}

#[test]
fn a_search_keeps_its_first_lines_and_those_that_name_files_touched_since() {
    let mut tape = searched();
    let mut turns = String::new();
    let mut cut = Seq::ZERO;
    for turn in 3..6 {
        let before = shown(&tape, Seq::MAX);
        let seq = tape.entry(Entry::step(format!("s{turn}")));
        let after = shown(&tape, Seq::MAX);
        if after != before {
            cut = if cut == Seq::ZERO { seq } else { cut };
            let _ = writeln!(turns, "t{turn}:\n{after}");
        }
        call(&mut tape, &format!("d{turn}"), "read", r#"{"filePath":"src/part60.rs"}"#, "fn part() {}");
    }
    expect![[r#"
        t3:
        src/part10.rs:10:    let clamped = clamp(limit);
        src/part11.rs:11:    let clamped = clamp(limit);
        src/part12.rs:12:    let clamped = clamp(limit);
        src/part13.rs:13:    let clamped = clamp(limit);
        src/part14.rs:14:    let clamped = clamp(limit);
        src/part15.rs:15:    let clamped = clamp(limit);
        src/part44.rs:44:    let clamped = clamp(limit);
        [... 53 more lines left out: search again]
        t5:
        [set aside: restore it, or run the call again]
    "#]]
    .assert_eq(&turns);
    // A file that is read later changes nothing about the cut: the same text is served at any later time.
    assert!(shown(&tape, cut).contains("part44") && !shown(&tape, cut).contains("part60"));
    assert_eq!(shown(&tape, Seq(cut.get() - 1)), "whole");
    let targets = vec![(Target::Call("c1".to_owned()), None)];
    let restore = Command::Context { action: ContextAction::Restore, targets, pin: false };
    tape.command(&restore).unwrap();
    tape.entry(Entry::step("s9"));
    assert_eq!(shown(&tape, Seq::MAX), "whole");
}

#[test]
fn short_searches_and_other_outputs_stay() {
    let mut tape = Tape::of_test_tools("search");
    let policy = Policy::from_json(POLICY).unwrap();
    tape.payload(crate::event::PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
    let long = "src/part.rs:1: let clamped = clamp(limit);\n".repeat(60);
    tape.entry(Entry::step("s1"));
    for (id, tool, output) in
        [("c1", "grep", "src/a.rs:1:clamp"), ("c2", "read", &*long), ("c3", "todowrite", &*long)]
    {
        call(&mut tape, id, tool, r#"{"filePath":"x"}"#, output);
    }
    tape.entry(Entry::step("s2"));
    tape.entry(Entry::step("s3"));
    let state = tape.state();
    for ix in state.items(Seq::MAX) {
        assert_eq!(state.placeholder(ix, Face::Output, Seq::MAX), None);
    }
}

/// A policy that was set dropped the turn at which the lines that were left go.
#[test]
fn what_is_left_of_a_search_goes_after_another_policy() {
    let mut tape = searched();
    tape.entry(Entry::step("s3"));
    assert!(shown(&tape, Seq::MAX).contains("left out"));
    let policy = Policy::from_json(POLICY).unwrap();
    tape.payload(crate::event::PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
    tape.entry(Entry::step("s4"));
    tape.entry(Entry::step("s5"));
    assert_eq!(shown(&tape, Seq::MAX), "[set aside: restore it, or run the call again]");
}

/// A host may rewrite a text that a rule has cut: the rule cuts the new text, all parts as one. An empty new text stays whole.
#[test]
fn what_a_host_rewrote_is_cut_as_one_text() {
    let mut tape = searched();
    tape.entry(Entry::step("s3"));
    let item = tape.state().item_id(tape.state().items(Seq::MAX).next().unwrap()).unwrap();
    let line = |word: &str, number: u32| format!("src/{word}{number}.rs:10:    let clamped = clamp(limit);");
    let lines = |word: &str| (10..40).map(|number| line(word, number)).collect::<Vec<_>>().join("\n");
    let part = |first: u32, text: &str| {
        let (bytes, tokens) = (text.len() as u64, crate::text::estimate(text.as_bytes()));
        Part { body: Body { first, chunks: 1, bytes, tokens, lines: 30 }, ..Part::default() }
    };
    let texts = [lines("once"), lines("then")];
    let parts = vec![part(0, &texts[0]), part(1, &texts[1])];
    let bodies = texts.into_iter().map(String::into_bytes).collect();
    tape.payload(ItemRevised { item, face: Face::Output, parts }, bodies);
    let cut = shown(&tape, Seq::MAX);
    assert_eq!(cut.lines().count(), 7, "{cut}");
    assert!(
        cut.starts_with(&lines("once")[..200]) && cut.ends_with("[... 54 more lines left out: search again]"),
        "{cut}"
    );
    tape.payload(ItemRevised { item, face: Face::Output, parts: Vec::new() }, Vec::new());
    let state = tape.state();
    let left = state.placeholder(state.items(Seq::MAX).next().unwrap(), Face::Output, Seq::MAX);
    assert_eq!(left.map(|left| (left.state, left.tokens)), Some((FaceState::Whole, 0)));
}
