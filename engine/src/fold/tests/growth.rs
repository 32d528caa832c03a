//! Work grows with the new events, not with their square: twice the events, twice the rows looked at.

use crate::entry::Entry;
use crate::event::{
    Body, Face, ItemRevised, MessageContinued, MessageRecorded, Part, Role, TodoChange, TodoChanged,
};
use crate::fold::Policy;
use crate::fold::history::LOOKS;
use crate::ids::{ItemId, Seq};
use crate::testing::{Script, Tape};

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

/// Bytes of a fold that was saved after `count` entries were each changed three times. With `is_one`, all changes are of one entry.
fn saved_bytes(count: usize, is_one: bool) -> usize {
    let mut tape = Tape::of_test_tools("growth");
    for number in 0..count * 3 {
        let id = if is_one { 0 } else { number % count };
        let status = ["pending", "in_progress", "completed"][number / count].to_owned();
        let change = TodoChange {
            id: format!("t{id}"),
            status: Some(status),
            entry: Some(part(9).body),
            content: None,
        };
        tape.payload(TodoChanged { change }, vec![b"{\"a\": 11}".to_vec()]);
    }
    let list = tape.state().todos().list(Seq::MAX).unwrap();
    assert_eq!(list.items.len(), if is_one { 1 } else { count });
    assert!(list.items.iter().all(|item| item.status == "completed" && item.entry.len() * count >= 3));
    rkyv::to_bytes::<rkyv::rancor::Failure>(tape.world()).unwrap().len()
}

/// Each change of an entry copied the list: a session of 1,000 entries with 2,000 changes took 10 s, 629 MB and a saved fold of 276 MB.
#[test]
fn many_changes_of_a_long_todo_list() {
    for is_one in [false, true] {
        let (once, twice) = (saved_bytes(100, is_one), saved_bytes(200, is_one));
        assert!(twice * 10 <= once * 23, "{once} bytes for 300 changes, {twice} for 600");
    }
}

/// Each act looked at everything that tasks had ever hidden, to see whether a summary had to move.
#[test]
fn many_acts_beside_many_tasks_that_ended() {
    let looks = |count: usize| {
        let steps: String = (0..count)
            .map(|number| {
                let other = 2 * number + 2;
                format!(
                    "{number} task T{number} start\n{number} read a{number} ok\n{number} task T{number} done\n\
                     {number} read b{number} ok\n{number} clear c{other}\n"
                )
            })
            .collect();
        LOOKS.set(0);
        let _ = Script::parse(&steps).play(&Policy::default());
        LOOKS.get()
    };
    let (once, twice) = (looks(60), looks(120));
    assert!(twice * 10 <= once * 23, "{once} rows for 60 tasks, {twice} for 120");
}
