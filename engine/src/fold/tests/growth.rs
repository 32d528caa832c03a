//! Work grows with what is new, not with its square: twice the events, twice the rows looked at.

use crate::entry::Entry;
use crate::event::{Body, Face, ItemRevised, MessageContinued, MessageRecorded, Part, Role};
use crate::fold::history::LOOKS;
use crate::ids::{ItemId, Seq};
use crate::testing::Tape;

/// Rows looked at while `count` steps are folded and the newest state is read.
fn looks(count: usize, step: &dyn Fn(&mut Tape, usize)) -> u64 {
    let mut tape = Tape::of_test_tools("growth");
    LOOKS.set(0);
    for number in 0..count {
        step(&mut tape, number);
    }
    let state = tape.state();
    let _ = (state.stats(Seq::MAX), state.current(Seq::MAX).len(), state.tokens_by_turn(Seq::MAX));
    for ix in state.items(Seq::MAX) {
        let _ = (state.item(ix, Seq::MAX), state.explain(ix, Seq::MAX));
    }
    LOOKS.get()
}

#[track_caller]
fn check_linear(step: &dyn Fn(&mut Tape, usize)) {
    let (once, twice) = (looks(300, step), looks(600, step));
    assert!(twice * 10 <= once * 23, "{once} rows for 300 steps, {twice} for 600");
}

fn part(bytes: u64) -> Part {
    Part { body: Body { first: 0, chunks: 1, bytes, tokens: 3, lines: 1 }, ..Part::default() }
}

/// A reply streams in: each piece is a part of the same message.
#[test]
fn many_pieces_of_one_message() {
    check_linear(&|tape, number| {
        if number == 0 {
            let message = MessageRecorded { key: "m".into(), role: Role::Assistant, ..Default::default() };
            tape.payload(message, Vec::new());
        }
        let more = MessageContinued { key: "m".into(), parts: vec![part(5)] };
        tape.payload(more, vec![b"piece".to_vec()]);
    });
}

/// A host writes its one message anew with each piece: a revision each. The fold went through all earlier ones for each.
#[test]
fn many_revisions_of_one_item() {
    check_linear(&|tape, number| {
        if number == 0 {
            tape.entry(Entry::message("m", Role::Assistant, "begins"));
        }
        let item = ItemId::first(Seq(tape.head().0 - number as u64));
        let revised = ItemRevised { item, face: Face::Output, parts: vec![part(6 + number as u64)] };
        tape.payload(revised, vec![b"longer".to_vec()]);
    });
}

#[test]
fn many_equal_calls() {
    check_linear(&|tape, number| {
        if number.is_multiple_of(2) {
            tape.entry(Entry::step(format!("s{number}")));
        }
        let call = format!("c{number}");
        tape.entry(Entry::tool_started(&call, "read", r#"{"filePath":"a"}"#));
        tape.entry(Entry::tool_completed(&call, "the same"));
    });
}
