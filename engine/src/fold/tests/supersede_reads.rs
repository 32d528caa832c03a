//! The cases that the proposal of supersede-reads lists, each under its name.

use expect_test::expect;

use super::row_tables::rows;

const PRESET: &str = r#""dcp-supersede-reads""#;

#[test]
fn prunes_read_then_write_of_the_same_file() {
    rows(
        PRESET,
        &["1 read a ok; 2 write a ok"],
        &expect![[r#"
        1 read a ok; 2 write a ok  ->  c1 by c2 (supersede_read t2)
    "#]],
    );
}

#[test]
fn prunes_read_then_edit_of_the_same_file() {
    rows(
        PRESET,
        &["1 read a ok; 2 edit a ok"],
        &expect![[r#"
        1 read a ok; 2 edit a ok  ->  c1 by c2 (supersede_read t2)
    "#]],
    );
}

#[test]
fn write_before_read() {
    rows(
        PRESET,
        &["1 write a ok; 2 read a ok"],
        &expect![[r#"
        1 write a ok; 2 read a ok  ->  nothing
    "#]],
    );
}

#[test]
fn different_files() {
    rows(
        PRESET,
        &["1 read a ok; 2 write b ok"],
        &expect![[r#"
        1 read a ok; 2 write b ok  ->  nothing
    "#]],
    );
}

#[test]
fn errored_write() {
    rows(
        PRESET,
        &["1 read a ok; 2 write a fail", "1 read a ok; 2 write a open"],
        &expect![[r#"
        1 read a ok; 2 write a fail  ->  nothing
        1 read a ok; 2 write a open  ->  nothing
    "#]],
    );
}

#[test]
fn multiple_reads() {
    rows(
        PRESET,
        &["1 read a:1 ok; 2 read a:2 ok; 3 read a:3 ok; 4 write a ok"],
        &expect![[r#"
        1 read a:1 ok; 2 read a:2 ok; 3 read a:3 ok; 4 write a ok  ->  c1 by c4 (supersede_read t4), c2 by c4 (supersede_read t4), c3 by c4 (supersede_read t4)
    "#]],
    );
}

#[test]
fn read_after_write() {
    rows(
        PRESET,
        &["1 read a ok; 2 write a ok; 3 read a ok"],
        &expect![[r#"
        1 read a ok; 2 write a ok; 3 read a ok  ->  c1 by c2 (supersede_read t2)
    "#]],
    );
}

#[test]
fn already_pruned_reads() {
    rows(
        PRESET,
        &["1 read a ok; 2 write a ok; 3 edit a ok", "1 read a ok; 2 discard c1; 3 write a ok"],
        &expect![[r#"
        1 read a ok; 2 write a ok; 3 edit a ok  ->  c1 by c2 (supersede_read t2)
        1 read a ok; 2 discard c1; 3 write a ok  ->  c1 by c2 (supersede_read t3)
    "#]],
    );
}

#[test]
fn disabled_config() {
    let off = r#"{"preset":"dcp-supersede-reads","file.write_clears":[],"file.edit_clears":[],"file.delete_clears":[]}"#;
    rows(
        off,
        &["1 read a ok; 2 write a ok; 3 edit a ok; 4 delete a ok"],
        &expect![[r#"
        1 read a ok; 2 write a ok; 3 edit a ok; 4 delete a ok  ->  nothing
    "#]],
    );
}

#[test]
fn manual_mode() {
    rows(
        r#"{"preset":"dcp-supersede-reads","automatic":false}"#,
        &["1 read a ok; 2 write a ok"],
        &expect![[r#"
        1 read a ok; 2 write a ok  ->  nothing
    "#]],
    );
}

#[test]
fn protected_file_patterns() {
    let policy = r#"{"preset":"dcp-supersede-reads","protected_files":["**/a"]}"#;
    rows(
        policy,
        &["1 read x/a ok; 2 write x/a ok; 3 read b ok; 4 write b ok"],
        &expect![[r#"
        1 read x/a ok; 2 write x/a ok; 3 read b ok; 4 write b ok  ->  c3 by c4 (supersede_read t4)
    "#]],
    );
}

#[test]
fn multiple_files_independently() {
    rows(
        PRESET,
        &["1 read a ok; 2 read b ok; 3 read c ok; 4 write a ok; 5 edit c ok"],
        &expect![[r#"
        1 read a ok; 2 read b ok; 3 read c ok; 4 write a ok; 5 edit c ok  ->  c1 by c4 (supersede_read t4), c3 by c5 (supersede_read t5)
    "#]],
    );
}

#[test]
fn empty_tool_list() {
    rows(
        PRESET,
        &["1 turn"],
        &expect![[r#"
        1 turn  ->  nothing
    "#]],
    );
}

#[test]
fn non_file_tools() {
    rows(
        PRESET,
        &["1 bash a ok; 2 grep a ok; 3 write a ok; 4 todowrite a ok"],
        &expect![[r#"
        1 bash a ok; 2 grep a ok; 3 write a ok; 4 todowrite a ok  ->  nothing
    "#]],
    );
}

/// Under protection by name, after a pending write, in one turn, and after a restore.
#[test]
fn and_what_holds_for_every_rule() {
    rows(
        PRESET,
        &[
            "1 read a ok; 1 write a ok",
            "1 read a fail; 2 write a ok",
            "1 read a ok; 2 write a open; 3 finish c2 ok",
            "1 read a ok; 1 pin c1; 2 write a ok",
            "1 read a ok; 2 write a ok; 3 restore c1",
            "1 read a ok; 2 write a ok; 3 restore c1; 4 edit a ok",
        ],
        &expect![[r#"
            1 read a ok; 1 write a ok  ->  c1 by c2 (supersede_read t1)
            1 read a fail; 2 write a ok  ->  c1 by c2 (supersede_read t2)
            1 read a ok; 2 write a open; 3 finish c2 ok  ->  c1 by c2 (supersede_read t3)
            1 read a ok; 1 pin c1; 2 write a ok  ->  nothing
            1 read a ok; 2 write a ok; 3 restore c1  ->  nothing
            1 read a ok; 2 write a ok; 3 restore c1; 4 edit a ok  ->  c1 by c3 (supersede_read t4)
        "#]],
    );
    let policy = r#"{"preset":"dcp-supersede-reads","protected_tools":["read"]}"#;
    rows(
        policy,
        &["1 read a ok; 2 write a ok"],
        &expect![[r#"
        1 read a ok; 2 write a ok  ->  nothing
    "#]],
    );
}
