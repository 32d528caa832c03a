//! Quiet steps: with 4, a read at t1 and an edit at t5, when does the edit hide the read?

use std::fmt::Write as _;

use expect_test::expect;

use super::{Policy, Seq, check_under};
use crate::testing::Script;

/// When c1 was hidden, and by which call; one line a script.
fn when(scripts: &[&str], policy: &str) -> String {
    let mut lines = String::new();
    for script in scripts {
        let played = Script::parse(script).play(&Policy::from_json(policy).unwrap());
        let state = played.tape.state();
        let edges = state.superseded_by(played.ix("c1").unwrap(), Seq::MAX);
        let said = edges.iter().map(|edge| {
            format!("{} at {} by {}", edge.rule.label(), edge.turn, played.name(edge.new.unwrap()))
        });
        let said: Vec<String> = said.collect();
        let _ = writeln!(lines, "{}: {}", script.replace('\n', "; "), said.join(", "));
    }
    lines
}

#[test]
fn an_edit_hides_a_view_when_the_file_has_rested() {
    expect![[r#"
        1 read a ok; 5 edit a ok; 8 turn: 
        1 read a ok; 5 edit a ok; 9 turn: file at t9 by c2
        1 read a ok; 5 edit a ok; 20 turn: file at t20 by c2
        5 read a ok; 5 edit a ok; 20 turn: 
        1 read a ok; 5 edit a ok; 8 edit a ok; 11 turn: 
        1 read a ok; 5 edit a ok; 8 edit a ok; 12 turn: file at t12 by c2
        1 read a ok; 5 edit a ok; 7 edit a fail; 10 turn: 
        1 read a ok; 5 edit a ok; 7 edit a fail; 11 turn: file at t11 by c2
        1 read a ok; 5 edit a ok; 7 edit a open; 11 turn: file at t11 by c2
        1 read a ok; 5 edit a ok; 7 changed a; 10 turn: 
        1 read a ok; 5 edit a ok; 6 read a:7 ok: file at t6 by c2
        1 read a ok; 5 edit a ok; 6 read a:7 fail; 9 turn: 
        1 read a ok; 5 edit a ok; 6 read a ok: repeat at t6 by c3
        1 read a ok; 5 edit a ok; 6 write a ok: file at t6 by c3
        1 read a ok; 5 edit a ok; 6 pin c1; 20 turn: 
        1 read a ok; 5 edit a ok; 6 compact; 20 turn: 
        1 read a ok; 5 edit a ok; 6 rewind c1; 20 turn: 
        1 read a ok; 5 edit a ok; 6 discard c1; 7 restore c1; 20 turn: 
    "#]]
    .assert_eq(&when(
        &[
            "1 read a ok\n5 edit a ok\n8 turn",
            "1 read a ok\n5 edit a ok\n9 turn",
            "1 read a ok\n5 edit a ok\n20 turn",
            "5 read a ok\n5 edit a ok\n20 turn",
            "1 read a ok\n5 edit a ok\n8 edit a ok\n11 turn",
            "1 read a ok\n5 edit a ok\n8 edit a ok\n12 turn",
            "1 read a ok\n5 edit a ok\n7 edit a fail\n10 turn",
            "1 read a ok\n5 edit a ok\n7 edit a fail\n11 turn",
            "1 read a ok\n5 edit a ok\n7 edit a open\n11 turn",
            "1 read a ok\n5 edit a ok\n7 changed a\n10 turn",
            "1 read a ok\n5 edit a ok\n6 read a:7 ok",
            "1 read a ok\n5 edit a ok\n6 read a:7 fail\n9 turn",
            "1 read a ok\n5 edit a ok\n6 read a ok",
            "1 read a ok\n5 edit a ok\n6 write a ok",
            "1 read a ok\n5 edit a ok\n6 pin c1\n20 turn",
            "1 read a ok\n5 edit a ok\n6 compact\n20 turn",
            "1 read a ok\n5 edit a ok\n6 rewind c1\n20 turn",
            "1 read a ok\n5 edit a ok\n6 discard c1\n7 restore c1\n20 turn",
        ],
        r#""balanced""#,
    ));
    expect![[r#"
        1 read a ok; 5 edit a ok: file at t5 by c2
    "#]]
    .assert_eq(&when(&["1 read a ok\n5 edit a ok"], r#""acp""#));
}

#[test]
fn earlier_edits_go_at_once() {
    check_under(
        r#""balanced""#,
        "1 read a ok\n5 edit a ok\n8 edit a ok\n12 turn",
        &expect![[r#"
            c1 read a: superseded by c2 (file, t12)
            c2 edit a: superseded by c3 (repeat, t8)
            c3 edit a: current
        "#]],
    );
}

#[test]
fn a_policy_that_forbids_it_drops_what_waits() {
    expect![[r#"
        1 read a ok; 5 edit a ok; 6 policy {"preset":"balanced","file.edit_clears":[]}; 9 turn: 
        1 read a ok; 5 edit a ok; 6 policy {"file.edit_quiet_steps":2}; 7 turn: file at t7 by c2
        1 read a ok; 5 edit a ok; 6 policy "acp"; 7 turn: file at t7 by c2
    "#]]
    .assert_eq(&when(
        &[
            "1 read a ok\n5 edit a ok\n6 policy {\"preset\":\"balanced\",\"file.edit_clears\":[]}\n9 turn",
            "1 read a ok\n5 edit a ok\n6 policy {\"file.edit_quiet_steps\":2}\n7 turn",
            "1 read a ok\n5 edit a ok\n6 policy \"acp\"\n7 turn",
        ],
        r#""balanced""#,
    ));
}
