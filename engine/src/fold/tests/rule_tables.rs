//! One table a rule: when it fires, and when it must not.

use expect_test::expect;

use super::{check, check_under};
use crate::fold::RuleKind;

#[test]
fn a_repeat_hides_the_one_before() {
    check(
        "1 read a ok\n2 read a ok\n3 read a ok",
        &expect![[r#"
        c1 read a: superseded by c2 (repeat, t2)
        c2 read a: superseded by c3 (repeat, t3)
        c3 read a: current
    "#]],
    );
}

#[test]
fn a_repeat_in_the_same_turn_hides_nothing_until_a_later_one_comes() {
    check(
        "1 read a ok\n1 read a ok",
        &expect![[r#"
        c1 read a: current
        c2 read a: current
    "#]],
    );
    check(
        "1 read a ok\n1 read a ok\n3 read a ok",
        &expect![[r#"
        c1 read a: superseded by c3 (repeat, t3)
        c2 read a: superseded by c3 (repeat, t3)
        c3 read a: current
    "#]],
    );
}

#[test]
fn failed_aborted_and_open_calls_neither_hide_nor_are_hidden() {
    check(
        "1 read a ok\n2 read a fail\n3 read a abort\n4 read a open",
        &expect![[r#"
        c1 read a: current
        c2 read a: current
        c3 read a: current
        c4 read a: current
    "#]],
    );
    check(
        "1 read a fail\n2 read a open\n3 read a ok",
        &expect![[r#"
        c1 read a: current
        c2 read a: current
        c3 read a: current
    "#]],
    );
}

#[test]
fn a_call_counts_when_it_completes() {
    check(
        "1 read a open\n2 finish c1 ok\n3 read a ok",
        &expect![[r#"
        c1 read a: superseded by c2 (repeat, t3)
        c2 read a: current
    "#]],
    );
    check(
        "1 read a ok\n2 read a open\n3 finish c2 ok",
        &expect![[r#"
        c1 read a: superseded by c2 (repeat, t3)
        c2 read a: current
    "#]],
    );
}

#[test]
fn a_call_that_finishes_after_its_superseder_waits_for_the_next() {
    check(
        "1 read a open\n2 read a ok\n3 finish c1 ok\n4 read a ok",
        &expect![[r#"
        c1 read a: superseded by c3 (repeat, t4)
        c2 read a: superseded by c3 (repeat, t4)
        c3 read a: current
    "#]],
    );
}

#[test]
fn polls_and_deeds_are_no_repeats() {
    check(
        "1 clock - ok\n2 clock - ok\n3 send_mail - ok\n4 send_mail - ok\n5 mcp__x__send_mail - ok\n6 mcp__x__send_mail - ok",
        &expect![[r#"
        c1 clock: current
        c2 clock: current
        c3 send_mail: current
        c4 send_mail: current
        c5 mcp__x__send_mail: current
        c6 mcp__x__send_mail: current
    "#]],
    );
}

#[test]
fn dedup_leaves_nulls_out_and_takes_failed_calls_of_the_same_turn() {
    check_under(
        r#""dcp""#,
        "1 read a fail\n1 read a ok",
        &expect![[r#"
            c1 read a: input superseded by c2 (repeat, t1), shown whole; superseded by c2 (repeat, t1)
            c2 read a: current
        "#]],
    );
    check_under(
        r#""dcp""#,
        "1 read a ok\n1 read a fail",
        &expect![[r#"
        c1 read a: current
        c2 read a: current
    "#]],
    );
}

#[test]
fn a_later_edit_hides_views_of_the_file() {
    check(
        "1 read a:1 ok\n2 read a:9 ok\n3 read b ok\n4 edit a ok",
        &expect![[r#"
        c1 read a: superseded by c4 (file, t4)
        c2 read a: superseded by c4 (file, t4)
        c3 read b: current
        c4 edit a: current
    "#]],
    );
    check(
        "1 write a ok\n2 read a ok\n3 write a fail\n4 edit a open",
        &expect![[r#"
        c1 write a: current
        c2 read a: current
        c3 write a: current
        c4 edit a: current
    "#]],
    );
    check(
        "1 read a ok\n1 edit a ok\n4 edit a ok",
        &expect![[r#"
        c1 read a: superseded by c3 (file, t4)
        c2 edit a: superseded by c3 (repeat, t4)
        c3 edit a: current
    "#]],
    );
    check(
        "1 read a ok\n2 delete a ok",
        &expect![[r#"
        c1 read a: superseded by c2 (file, t2)
        c2 delete a: current
    "#]],
    );
}

#[test]
fn paths_are_compared_as_resolved() {
    check(
        "1 read ./lib/m.c ok\n2 read lib/m.c ok\n3 edit lib/../lib/m.c ok",
        &expect![[r#"
        c1 read ./lib/m.c: superseded by c2 (repeat, t2)
        c2 read lib/m.c: superseded by c3 (file, t3)
        c3 edit lib/../lib/m.c: current
    "#]],
    );
    check_under(
        r#"{"paths":"raw"}"#,
        "1 read ./lib/m.c ok\n2 read lib/m.c ok",
        &expect![[r#"
        c1 read ./lib/m.c: current
        c2 read lib/m.c: current
    "#]],
    );
}

#[test]
fn careful_leaves_views_to_whole_writes() {
    check_under(
        r#""careful""#,
        "1 read a ok\n2 edit a ok\n3 edit a ok\n4 write a ok",
        &expect![[r#"
        c1 read a: superseded by c4 (file, t4)
        c2 edit a: superseded by c3 (repeat, t3)
        c3 edit a: superseded by c4 (file, t4)
        c4 write a: current
    "#]],
    );
}

#[test]
fn dcp_hides_a_write_that_was_read_later() {
    check_under(
        r#""dcp""#,
        "1 write a ok\n2 read a fail\n3 read a:2 ok",
        &expect![[r#"
            c1 write a: input superseded by c3 (supersede_write, t3), shown whole; superseded by c3 (supersede_write, t3)
            c2 read a: current
            c3 read a: current
        "#]],
    );
    check_under(
        r#""dcp-supersede-reads""#,
        "1 read a ok\n1 edit a ok\n2 read a ok\n3 read a ok",
        &expect![[r#"
        c1 read a: superseded by c2 (supersede_read, t1)
        c2 edit a: current
        c3 read a: current
        c4 read a: current
    "#]],
    );
}

#[test]
fn the_newest_todo_call_of_each_kind_stays() {
    check(
        "1 todowrite a ok\n2 todoread - ok\n5 todowrite b ok\n8 todowrite c ok\n9 todoread - ok",
        &expect![[r#"
        c1 todowrite: superseded by c3 (todo, t5)
        c2 todoread: superseded by c5 (todo, t9)
        c3 todowrite: superseded by c4 (todo, t8)
        c4 todowrite: current
        c5 todoread: current
    "#]],
    );
    check(
        "1 todowrite a ok\n1 todowrite b ok\n2 todowrite c fail",
        &expect![[r#"
        c1 todowrite: current
        c2 todowrite: current
        c3 todowrite: current
    "#]],
    );
}

#[test]
fn rules_of_the_later_version() {
    check_under(
        r#""acp-head""#,
        "1 webfetch u ok\n2 webfetch u:1 ok\n3 bash git ok\n4 bash git:1 ok\n5 snapshot a ok\n6 snapshot b ok\n7 make a fail\n7 make a fail\n7 make a ok\n8 context_prune a ok\n9 context_prune b ok\n10 grep x ok\n11 grep x:1 ok",
        &expect![[r#"
            c1 webfetch ~b6f14ecd27eca8de: input superseded by c2 (url, t2), shown whole; superseded by c2 (url, t2)
            c2 webfetch ~b6f14ecd27eca8de: current
            c3 bash bash:git:status: input superseded by c4 (state_query, t4), shown whole; superseded by c4 (state_query, t4)
            c4 bash bash:git:status: current
            c5 snapshot: input superseded by c6 (snapshot, t6), shown whole; superseded by c6 (snapshot, t6)
            c6 snapshot: current
            c7 make: input superseded by c9 (retry, t7), shown whole; superseded by c9 (retry, t7)
            c8 make: input superseded by c9 (retry, t7), shown whole; superseded by c9 (retry, t7)
            c9 make: current
            c10 context_prune: input superseded by c11 (context, t9), shown whole; superseded by c11 (context, t9)
            c11 context_prune: current
            c12 grep grep::~6687886aefebac66:: input superseded by c13 (file, t11), shown whole; superseded by c13 (file, t11)
            c13 grep grep::~6687886aefebac66:: current
        "#]],
    );
    check(
        "1 webfetch u ok\n2 webfetch u:1 ok\n3 snapshot a ok\n4 snapshot b ok\n5 make a fail\n6 make a ok",
        &expect![[r#"
            c1 webfetch ~b6f14ecd27eca8de: current
            c2 webfetch ~b6f14ecd27eca8de: current
            c3 snapshot: current
            c4 snapshot: current
            c5 make: current
            c6 make: current
        "#]],
    );
}

#[test]
fn protected_calls_trigger_but_stay() {
    check_under(
        r#"{"protected_tools":["edit"]}"#,
        "1 read a ok\n2 edit a ok\n3 edit a ok",
        &expect![[r#"
        c1 read a: superseded by c2 (file, t2)
        c2 edit a: current
        c3 edit a: current
    "#]],
    );
    check(
        "1 read x/.env ok\n2 edit x/.env ok\n3 read b ok\n4 edit b ok",
        &expect![[r#"
        c1 read x/.env: current
        c2 edit x/.env: current
        c3 read b: superseded by c4 (file, t4)
        c4 edit b: current
    "#]],
    );
    check_under(
        r#"{"repeat.protected_tools":["re?d"]}"#,
        "1 read a ok\n2 read a ok\n3 edit a ok",
        &expect![[r#"
        c1 read a: superseded by c3 (file, t3)
        c2 read a: superseded by c3 (file, t3)
        c3 edit a: current
    "#]],
    );
    check(
        "1 read a ok\n1 pin c1\n2 read a ok\n3 unpin c1\n4 read a ok",
        &expect![[r#"
        c1 read a: superseded by c3 (repeat, t4)
        c2 read a: superseded by c3 (repeat, t4)
        c3 read a: current
    "#]],
    );
}

#[test]
fn turn_protection_delays_the_superseder() {
    let policy = r#"{"turn_protection":true,"turn_protection.turns":4}"#;
    check_under(
        policy,
        "1 read a ok\n2 read a ok\n5 turn",
        &expect![[r#"
        c1 read a: current
        c2 read a: current
    "#]],
    );
    check_under(
        policy,
        "1 read a ok\n2 read a ok\n6 turn",
        &expect![[r#"
        c1 read a: superseded by c2 (repeat, t6)
        c2 read a: current
    "#]],
    );
    check_under(
        policy,
        "1 read a ok\n2 read a ok\n30 turn",
        &expect![[r#"
        c1 read a: superseded by c2 (repeat, t30)
        c2 read a: current
    "#]],
    );
}

#[test]
fn a_restored_item_can_be_hidden_again() {
    check(
        "1 read a ok\n2 read a ok\n3 restore c1",
        &expect![[r#"
        c1 read a: current
        c2 read a: current
    "#]],
    );
    check(
        "1 read a ok\n2 read a ok\n3 restore c1\n4 read a ok",
        &expect![[r#"
        c1 read a: superseded by c3 (repeat, t4)
        c2 read a: superseded by c3 (repeat, t4)
        c3 read a: current
    "#]],
    );
    check(
        "1 read a ok\n2 read a ok\n3 keep c1\n4 read a ok",
        &expect![[r#"
        c1 read a: pinned
        c2 read a: superseded by c3 (repeat, t4)
        c3 read a: current
    "#]],
    );
}

#[test]
fn a_policy_holds_from_where_it_is_set() {
    check(
        "1 read a ok\n2 policy {\"automatic\":false}\n3 read a ok\n4 policy \"acp\"\n5 read a ok",
        &expect![[r#"
        c1 read a: superseded by c3 (repeat, t5)
        c2 read a: superseded by c3 (repeat, t5)
        c3 read a: current
    "#]],
    );
    check(
        "1 read a ok\n2 edit a ok\n3 policy {\"file.edit_clears\":[]}\n4 read a ok\n5 edit a ok",
        &expect![[r#"
        c1 read a: superseded by c2 (file, t2)
        c2 edit a: superseded by c4 (repeat, t5)
        c3 read a: current
        c4 edit a: current
    "#]],
    );
}

#[test]
fn labels_are_numbered_without_a_gap() {
    let numbers: Vec<u8> = RuleKind::all().map(RuleKind::number).collect();
    assert_eq!(numbers, (0..13).collect::<Vec<u8>>());
}
