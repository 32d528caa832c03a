//! Tests of [`super`].

use acpdb_engine::entry::{Entry, StreamInfo, fact};
use expect_test::{Expect, expect};

use super::*;
use crate::testing::{play, store};

fn compact(store: &Store, cause: ReplaceCause) {
    let replaced = fact::ContextReplaced { cause, order: Vec::new(), tokens_before: None };
    let _ = store.append(&StreamInfo::session("acpdb", "s"), vec![replaced.into()]).unwrap();
}

fn told(lost: &LostItems) -> String {
    let mut text = String::new();
    for one in &lost.compactions {
        text.push_str(&format!("{} by {}: {} items\n", one.seq, one.by, one.items));
    }
    for row in &lost.rows {
        let state = row.state.as_deref().unwrap_or("-");
        text.push_str(&format!("{:?} {} {state} x{} {}\n", row.kind, row.item, row.count, row.text));
    }
    text
}

#[track_caller]
fn check(before: &str, after: &str, want: &Expect) -> LostItems {
    let store = store();
    let _ = play(&store, "s", before);
    compact(&store, ReplaceCause::Compaction);
    let name = play(&store, "s", after);
    let lost = lost(&store, &store.view(name.id).unwrap(), &name).unwrap();
    want.assert_eq(&told(&lost));
    lost
}

#[test]
fn what_left_is_listed_and_what_came_back_is_not() {
    check(
        "user Fix the parser.
         turn
         read src/a.rs ok
         read src/b.rs ok
         edit src/a.rs ok
         read src/c.rs failed
         say We decided to use PostgreSQL for the store.",
        "turn
         read src/b.rs ok",
        &expect![[r#"
            #14 by host: 6 items
            File #9 edited x2 src/a.rs
            Decision #13 - x1 We decided to use PostgreSQL for the store.
            Failed #11 - x1 read src/c.rs: src/c.rs line of output
            Prompt #3 - x1 Fix the parser.
        "#]],
    );
}

#[test]
fn the_same_words_are_listed_once() {
    let long = "a long prompt that goes on and on ".repeat(7);
    check(
        &format!(
            "user Go on.
             turn
             read src/c.rs failed
             user Go on.
             turn
             read src/c.rs failed
             user {long} one way
             turn
             user {long} another way"
        ),
        "user Go on.",
        &expect![[r#"
            #14 by host: 6 items
            Failed #9 - x2 read src/c.rs: src/c.rs line of output
            Prompt #13 - x1 a long prompt that goes on and on a long prompt that goes on and on a long prompt that goes on and on a long prompt that goes on and on a long prompt that goes on and on a long prompt that goes on and…
            Prompt #11 - x1 a long prompt that goes on and on a long prompt that goes on and on a long prompt that goes on and on a long prompt that goes on and on a long prompt that goes on and on a long prompt that goes on and…
            Prompt #7 - x2 Go on.
        "#]],
    );
}

#[test]
fn a_replacement_that_is_no_compaction_loses_nothing() {
    let store = store();
    let _ = play(&store, "s", "user Fix it.\nturn\nread src/a.rs ok");
    compact(&store, ReplaceCause::Host);
    let name = store.find_stream("s").unwrap();
    let view = store.view(name.id).unwrap();
    assert_eq!(lost(&store, &view, &name).unwrap(), LostItems::default());
    assert_eq!(last_compaction(&store, &view, &name).unwrap(), None);
    assert_eq!(LostItems::default().index(800), None);
}

/// However much left, the model is told within its bound, and something of each kind.
#[test]
fn the_index_keeps_its_bound_and_crowds_nothing_out() {
    let mut script = "turn\n".to_owned();
    for number in 0..300 {
        script.push_str(&format!(
            "user Prompt number {number} asks for a change to the module that reads lines.\nread src/deep/folder/name_{number}.rs ok\n\
             read src/gone_{number}.rs failed\nsay We decided to use library{number} for the store.\n"
        ));
    }
    let store = store();
    let _ = play(&store, "s", &script);
    compact(&store, ReplaceCause::Compaction);
    let name = store.find_stream("s").unwrap();
    let lost = lost(&store, &store.view(name.id).unwrap(), &name).unwrap();
    for tokens_max in [120, 300, 800] {
        let index = lost.index(tokens_max).unwrap();
        assert!(estimate(index.as_bytes()) <= tokens_max, "{tokens_max}: {index}");
    }
    let index = lost.index(800).unwrap();
    for kind in [LostKind::File, LostKind::Failed, LostKind::Prompt, LostKind::Decision] {
        assert!(index.contains(kind.heading()), "{kind:?}: {index}");
    }
    assert!(
        index.contains("src/deep/folder/name_299.rs") && !index.contains("name_1.rs"),
        "newest first: {index}"
    );
}

/// Of prompts that share their first lines one was left, and the id of the other was gone.
#[test]
fn prompts_that_begin_alike_are_two() {
    let store = store();
    let said = |id: &str, text: &str| Entry::message(id, Role::User, text);
    let entries = vec![
        said("a", "Fix this:\n\nerror 1"),
        said("b", "Fix this:\n\nerror 2"),
        said("c", "Fix this:\n\nerror 2"),
    ];
    let _ = store.append(&StreamInfo::session("acpdb", "s"), entries).unwrap();
    compact(&store, ReplaceCause::Compaction);
    let name = store.find_stream("s").unwrap();
    let lost = lost(&store, &store.view(name.id).unwrap(), &name).unwrap();
    assert_eq!(lost.rows.iter().map(|row| row.count).collect::<Vec<_>>(), [2, 1]);
}
