//! One row a situation, the same for each rule: fires, must not fire, protected, same turn, failed, pending then completed,
//! restored then repeated.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::{Policy, Seq};
use crate::event::Face;
use crate::fold::CauseView;
use crate::testing::Script;

/// A line for each script: which calls are hidden at its end, by which item and why.
pub(super) fn rows(policy: &str, scripts: &[&str], expected: &Expect) {
    let policy = Policy::from_json(policy).unwrap();
    let mut lines = String::new();
    for script in scripts {
        let steps: Vec<&str> = script.split("; ").collect();
        let played = Script::parse(&steps.join("\n")).play(&policy);
        let state = played.tape.state();
        let hidden = state.items(Seq::MAX).filter_map(|ix| {
            let name = played.name(state.item_id(ix)?);
            let cause = |face| state.face(ix, face, Seq::MAX).cause;
            match cause(Face::Output).or_else(|| cause(Face::Input))? {
                CauseView::Superseded { by, rule, turn, .. } => {
                    let by = by.map_or_else(|| "-".to_owned(), |by| played.name(by));
                    Some(format!("{name} by {by} ({} {turn})", rule.label()))
                }
                CauseView::Shortened { rule, turn, .. } => Some(format!("{name} {rule:?} {turn}")),
                other => {
                    let json = serde_json::to_value(&other).unwrap();
                    Some(format!("{name} {}", json["cause"].as_str().unwrap_or("?")))
                }
            }
        });
        let hidden: Vec<String> = hidden.collect();
        let said = if hidden.is_empty() { "nothing".to_owned() } else { hidden.join(", ") };
        let _ = writeln!(lines, "{script}  ->  {said}");
    }
    expected.assert_eq(&lines);
}

#[test]
fn repeat() {
    rows(
        r#""acp""#,
        &[
            "1 read a ok; 5 read a ok",
            "1 read a ok; 2 read a ok; 3 read a ok",
            "1 Read a ok; 2 read a ok",
            "1 glob x ok; 2 grab x ok",
            "1 read a ok; 2 read a fail",
            "1 read a ok; 2 read a abort",
            "1 read a ok; 2 read a open",
            "1 read a open; 2 read a ok",
            "1 read a fail; 2 read a fail; 3 read a ok",
            "1 read a open; 2 finish c1 ok; 3 read a ok",
            "1 read a ok; 2 read a open; 4 finish c2 ok",
            "1 read a ok; 1 read a ok",
            "1 read a ok; 1 read a ok; 3 read a ok",
            "1 read a ok; 2 read ./a ok",
            "1 read a ok; 2 read /p/a ok",
            "1 clock - ok; 2 clock - ok",
            "1 write_stdin x ok; 2 write_stdin x ok",
            "1 send_mail x ok; 2 send_mail x ok",
            "1 task x ok; 2 task x ok",
            "1 batch x ok; 2 batch x ok",
            "1 read .env ok; 2 read .env ok",
            "1 read a ok; 1 pin c1; 2 read a ok",
            "1 read a ok; 2 read a ok; 3 restore c1",
            "1 read a ok; 2 read a ok; 3 restore c1; 4 read a ok",
            "1 read a ok; 2 read a ok; 3 keep c1; 4 read a ok",
        ],
        &expect![[r#"
            1 read a ok; 5 read a ok  ->  c1 by c2 (repeat t5)
            1 read a ok; 2 read a ok; 3 read a ok  ->  c1 by c2 (repeat t2), c2 by c3 (repeat t3)
            1 Read a ok; 2 read a ok  ->  c1 by c2 (repeat t2)
            1 glob x ok; 2 grab x ok  ->  nothing
            1 read a ok; 2 read a fail  ->  nothing
            1 read a ok; 2 read a abort  ->  nothing
            1 read a ok; 2 read a open  ->  nothing
            1 read a open; 2 read a ok  ->  nothing
            1 read a fail; 2 read a fail; 3 read a ok  ->  nothing
            1 read a open; 2 finish c1 ok; 3 read a ok  ->  c1 by c2 (repeat t3)
            1 read a ok; 2 read a open; 4 finish c2 ok  ->  c1 by c2 (repeat t4)
            1 read a ok; 1 read a ok  ->  nothing
            1 read a ok; 1 read a ok; 3 read a ok  ->  c1 by c3 (repeat t3), c2 by c3 (repeat t3)
            1 read a ok; 2 read ./a ok  ->  c1 by c2 (repeat t2)
            1 read a ok; 2 read /p/a ok  ->  nothing
            1 clock - ok; 2 clock - ok  ->  nothing
            1 write_stdin x ok; 2 write_stdin x ok  ->  nothing
            1 send_mail x ok; 2 send_mail x ok  ->  nothing
            1 task x ok; 2 task x ok  ->  nothing
            1 batch x ok; 2 batch x ok  ->  nothing
            1 read .env ok; 2 read .env ok  ->  nothing
            1 read a ok; 1 pin c1; 2 read a ok  ->  nothing
            1 read a ok; 2 read a ok; 3 restore c1  ->  nothing
            1 read a ok; 2 read a ok; 3 restore c1; 4 read a ok  ->  c1 by c3 (repeat t4), c2 by c3 (repeat t4)
            1 read a ok; 2 read a ok; 3 keep c1; 4 read a ok  ->  c2 by c3 (repeat t4)
        "#]],
    );
}

#[test]
fn file() {
    rows(
        r#""acp""#,
        &[
            "1 read a:1 ok; 2 read a:9 ok; 3 edit a ok",
            "1 write a ok; 2 write a:2 ok",
            "1 edit a ok; 2 write a ok",
            "1 write a ok; 2 read a ok",
            "1 read a ok; 2 write a ok; 3 read a ok",
            "1 read a ok; 2 write b ok",
            "1 read a ok; 2 write a fail",
            "1 read a ok; 2 write a abort",
            "1 read a ok; 2 write a open",
            "1 read a ok; 2 write a open; 3 finish c2 ok",
            "1 read a open; 2 write a ok; 3 finish c1 ok; 4 write a:2 ok",
            "1 read a ok; 1 edit a ok",
            "1 read a ok; 1 edit a ok; 4 edit a:2 ok",
            "1 grep lib ok; 2 write lib/a ok",
            "1 grep a ok; 2 grep a:2 ok",
            "1 read x/.env ok; 2 write x/.env ok",
            "1 read a ok; 1 pin c1; 2 edit a ok",
            "1 read a ok; 2 edit a ok; 3 restore c1",
            "1 read a ok; 2 edit a ok; 3 restore c1; 4 edit a:2 ok",
            "1 read a ok; 2 changed a",
            "1 read a ok; 2 compact; 3 edit a ok",
            "1 read a ok; 2 clear c1; 3 edit a ok",
        ],
        &expect![[r#"
            1 read a:1 ok; 2 read a:9 ok; 3 edit a ok  ->  c1 by c3 (file t3), c2 by c3 (file t3)
            1 write a ok; 2 write a:2 ok  ->  c1 by c2 (file t2)
            1 edit a ok; 2 write a ok  ->  c1 by c2 (file t2)
            1 write a ok; 2 read a ok  ->  nothing
            1 read a ok; 2 write a ok; 3 read a ok  ->  c1 by c2 (file t2)
            1 read a ok; 2 write b ok  ->  nothing
            1 read a ok; 2 write a fail  ->  nothing
            1 read a ok; 2 write a abort  ->  nothing
            1 read a ok; 2 write a open  ->  nothing
            1 read a ok; 2 write a open; 3 finish c2 ok  ->  c1 by c2 (file t3)
            1 read a open; 2 write a ok; 3 finish c1 ok; 4 write a:2 ok  ->  c1 by c3 (file t4), c2 by c3 (file t4)
            1 read a ok; 1 edit a ok  ->  nothing
            1 read a ok; 1 edit a ok; 4 edit a:2 ok  ->  c1 by c3 (file t4), c2 by c3 (file t4)
            1 grep lib ok; 2 write lib/a ok  ->  nothing
            1 grep a ok; 2 grep a:2 ok  ->  nothing
            1 read x/.env ok; 2 write x/.env ok  ->  nothing
            1 read a ok; 1 pin c1; 2 edit a ok  ->  nothing
            1 read a ok; 2 edit a ok; 3 restore c1  ->  nothing
            1 read a ok; 2 edit a ok; 3 restore c1; 4 edit a:2 ok  ->  c1 by c3 (file t4), c2 by c3 (file t4)
            1 read a ok; 2 changed a  ->  nothing
            1 read a ok; 2 compact; 3 edit a ok  ->  c1 left
            1 read a ok; 2 clear c1; 3 edit a ok  ->  c1 cleared_by_host
        "#]],
    );
    rows(
        r#"{"protected_tools":["edit"],"file.protected_tools":["write"]}"#,
        &["1 read a ok; 2 edit a ok; 3 write a ok; 4 delete a ok", "1 write a ok; 2 edit a ok; 3 write a ok"],
        &expect![[r#"
            1 read a ok; 2 edit a ok; 3 write a ok; 4 delete a ok  ->  c1 by c2 (file t2)
            1 write a ok; 2 edit a ok; 3 write a ok  ->  c1 by c3 (repeat t3)
        "#]],
    );
}

#[test]
fn any_call() {
    rows(
        r#""acp-head""#,
        &[
            "1 write a ok; 2 read a ok",
            "1 read a:1 ok; 2 read a:2 ok",
            "1 read a ok; 2 edit a fail",
            "1 read a ok; 1 read a:2 ok",
            "1 grep x ok; 2 grep x:2 ok",
            "1 grep x ok; 2 grep y ok",
            "1 write a open; 2 finish c1 ok; 3 read a ok",
            "1 write a ok; 2 read a ok; 3 restore c1; 4 read a:4 ok",
            "1 write .env ok; 2 read .env ok",
        ],
        &expect![[r#"
            1 write a ok; 2 read a ok  ->  c1 by c2 (file t2)
            1 read a:1 ok; 2 read a:2 ok  ->  c1 by c2 (file t2)
            1 read a ok; 2 edit a fail  ->  nothing
            1 read a ok; 1 read a:2 ok  ->  nothing
            1 grep x ok; 2 grep x:2 ok  ->  c1 by c2 (file t2)
            1 grep x ok; 2 grep y ok  ->  nothing
            1 write a open; 2 finish c1 ok; 3 read a ok  ->  c1 by c2 (file t3)
            1 write a ok; 2 read a ok; 3 restore c1; 4 read a:4 ok  ->  c1 by c3 (file t4), c2 by c3 (file t4)
            1 write .env ok; 2 read .env ok  ->  nothing
        "#]],
    );
    rows(
        r#"{"preset":"acp-head","file.any_call":false}"#,
        &[
            "1 write a ok; 2 read a ok",
            "1 read a:1 ok; 2 read a:2 ok",
            "1 grep x ok; 2 grep x:2 ok",
            "1 read a ok; 2 edit a ok",
        ],
        &expect![[r#"
            1 write a ok; 2 read a ok  ->  nothing
            1 read a:1 ok; 2 read a:2 ok  ->  nothing
            1 grep x ok; 2 grep x:2 ok  ->  nothing
            1 read a ok; 2 edit a ok  ->  c1 by c2 (file t2)
        "#]],
    );
}

#[test]
fn todo() {
    rows(
        r#""acp""#,
        &[
            "1 todowrite a ok; 2 todoread - ok; 5 todowrite b ok; 8 todowrite c ok; 9 todoread - ok",
            "1 todowrite a ok; 2 todoread - ok",
            "1 todoread - ok; 2 todowrite a ok",
            "1 todowrite a ok; 1 todowrite b ok",
            "1 todowrite a ok; 1 todowrite b ok; 2 todowrite c ok",
            "1 todowrite a ok; 2 todowrite b fail",
            "1 todowrite a ok; 2 todowrite b open",
            "1 todowrite a ok; 2 todowrite b open; 3 finish c2 ok",
            "1 todowrite a fail; 2 todowrite b ok",
            "1 todowrite a ok; 1 pin c1; 2 todowrite b ok",
            "1 todowrite a ok; 2 todowrite b ok; 3 restore c1",
            "1 todowrite a ok; 2 todowrite b ok; 3 restore c1; 4 todowrite c ok",
            "1 TaskCreate a ok; 2 TaskCreate b ok",
        ],
        &expect![[r#"
            1 todowrite a ok; 2 todoread - ok; 5 todowrite b ok; 8 todowrite c ok; 9 todoread - ok  ->  c1 by c3 (todo t5), c2 by c5 (todo t9), c3 by c4 (todo t8)
            1 todowrite a ok; 2 todoread - ok  ->  nothing
            1 todoread - ok; 2 todowrite a ok  ->  nothing
            1 todowrite a ok; 1 todowrite b ok  ->  nothing
            1 todowrite a ok; 1 todowrite b ok; 2 todowrite c ok  ->  c1 by c3 (todo t2), c2 by c3 (todo t2)
            1 todowrite a ok; 2 todowrite b fail  ->  nothing
            1 todowrite a ok; 2 todowrite b open  ->  nothing
            1 todowrite a ok; 2 todowrite b open; 3 finish c2 ok  ->  c1 by c2 (todo t3)
            1 todowrite a fail; 2 todowrite b ok  ->  nothing
            1 todowrite a ok; 1 pin c1; 2 todowrite b ok  ->  nothing
            1 todowrite a ok; 2 todowrite b ok; 3 restore c1  ->  nothing
            1 todowrite a ok; 2 todowrite b ok; 3 restore c1; 4 todowrite c ok  ->  c1 by c3 (todo t4), c2 by c3 (todo t4)
            1 TaskCreate a ok; 2 TaskCreate b ok  ->  nothing
        "#]],
    );
    // Unprotected, an equal call falls to the repeat rule; under turn protection the newer one waits.
    rows(
        r#"{"protected_tools":[],"turn_protection":true,"turn_protection.turns":3}"#,
        &["1 todoread - ok; 2 todoread - ok; 4 turn", "1 todoread - ok; 2 todoread - ok; 5 turn"],
        &expect![[r#"
            1 todoread - ok; 2 todoread - ok; 4 turn  ->  nothing
            1 todoread - ok; 2 todoread - ok; 5 turn  ->  c1 by c2 (repeat t5)
        "#]],
    );
    rows(
        r#"{"todo":false}"#,
        &["1 todowrite a ok; 2 todowrite b ok"],
        &expect![[r#"
        1 todowrite a ok; 2 todowrite b ok  ->  nothing
    "#]],
    );
}

#[test]
fn retry() {
    rows(
        r#""acp-head""#,
        &[
            "1 make a fail; 1 make a fail; 1 make a ok",
            "1 make a fail; 4 make a ok",
            "1 make a abort; 4 make a ok",
            "1 make a fail; 2 make b ok",
            "1 make a fail; 2 make a fail",
            "1 make a ok; 2 make a fail",
            "1 make a fail; 2 make a open",
            "1 make a fail; 2 make a open; 3 finish c2 ok",
            "1 make a fail; 1 pin c1; 2 make a ok",
            "1 make a fail; 2 make a ok; 3 restore c1",
            "1 make a fail; 2 make a ok; 3 restore c1; 4 make a ok",
            "1 read .env fail; 2 read .env ok",
            "1 task a fail; 2 task a ok",
        ],
        &expect![[r#"
            1 make a fail; 1 make a fail; 1 make a ok  ->  c1 by c3 (retry t1), c2 by c3 (retry t1)
            1 make a fail; 4 make a ok  ->  c1 by c2 (retry t4)
            1 make a abort; 4 make a ok  ->  c1 by c2 (retry t4)
            1 make a fail; 2 make b ok  ->  nothing
            1 make a fail; 2 make a fail  ->  nothing
            1 make a ok; 2 make a fail  ->  nothing
            1 make a fail; 2 make a open  ->  nothing
            1 make a fail; 2 make a open; 3 finish c2 ok  ->  c1 by c2 (retry t3)
            1 make a fail; 1 pin c1; 2 make a ok  ->  nothing
            1 make a fail; 2 make a ok; 3 restore c1  ->  nothing
            1 make a fail; 2 make a ok; 3 restore c1; 4 make a ok  ->  c1 by c3 (retry t4), c2 by c3 (repeat t4)
            1 read .env fail; 2 read .env ok  ->  nothing
            1 task a fail; 2 task a ok  ->  nothing
        "#]],
    );
    rows(
        r#""acp""#,
        &["1 make a fail; 2 make a ok"],
        &expect![[r#"
        1 make a fail; 2 make a ok  ->  nothing
    "#]],
    );
}

#[test]
fn url() {
    rows(
        r#""acp-head""#,
        &[
            "1 webfetch u ok; 2 webfetch u:1 ok",
            "1 webfetch u ok; 2 webfetch v ok",
            "1 webfetch u ok; 1 webfetch u:1 ok",
            "1 webfetch u ok; 2 webfetch u:1 fail",
            "1 webfetch u fail; 2 webfetch u:1 ok",
            "1 webfetch u ok; 2 webfetch u:1 open",
            "1 webfetch u open; 2 finish c1 ok; 3 webfetch u:1 ok",
            "1 webfetch u ok; 1 pin c1; 2 webfetch u:1 ok",
            "1 webfetch u ok; 2 webfetch u:1 ok; 3 restore c1",
            "1 webfetch u ok; 2 webfetch u:1 ok; 3 restore c1; 4 webfetch u:2 ok",
        ],
        &expect![[r#"
            1 webfetch u ok; 2 webfetch u:1 ok  ->  c1 by c2 (url t2)
            1 webfetch u ok; 2 webfetch v ok  ->  nothing
            1 webfetch u ok; 1 webfetch u:1 ok  ->  nothing
            1 webfetch u ok; 2 webfetch u:1 fail  ->  nothing
            1 webfetch u fail; 2 webfetch u:1 ok  ->  nothing
            1 webfetch u ok; 2 webfetch u:1 open  ->  nothing
            1 webfetch u open; 2 finish c1 ok; 3 webfetch u:1 ok  ->  c1 by c2 (url t3)
            1 webfetch u ok; 1 pin c1; 2 webfetch u:1 ok  ->  nothing
            1 webfetch u ok; 2 webfetch u:1 ok; 3 restore c1  ->  nothing
            1 webfetch u ok; 2 webfetch u:1 ok; 3 restore c1; 4 webfetch u:2 ok  ->  c1 by c3 (url t4), c2 by c3 (url t4)
        "#]],
    );
    rows(
        r#"{"preset":"acp-head","protected_tools":["webfetch"]}"#,
        &["1 webfetch u ok; 2 webfetch u:1 ok"],
        &expect![[r#"
            1 webfetch u ok; 2 webfetch u:1 ok  ->  nothing
        "#]],
    );
    rows(
        r#""acp""#,
        &["1 webfetch u ok; 2 webfetch u:1 ok"],
        &expect![[r#"
        1 webfetch u ok; 2 webfetch u:1 ok  ->  nothing
    "#]],
    );
}

#[test]
fn command_family() {
    let scripts = &[
        "1 bash test ok; 2 bash test:1 ok",
        "1 bash test ok; 2 bash make ok",
        "1 bash test ok; 1 bash test:1 ok",
        "1 bash test ok; 2 bash test:1 fail",
        "1 bash test fail; 2 bash test:1 ok",
        "1 bash test open; 2 finish c1 ok; 3 bash test:1 ok",
        "1 bash test fail; 2 bash test:1 fail; 3 bash test:2 ok",
        "1 bash test ok; 1 pin c1; 2 bash test:1 ok",
        "1 bash test ok; 2 bash test:1 ok; 3 restore c1; 4 bash test:2 ok",
    ];
    rows(
        r#"{"command_family":true}"#,
        scripts,
        &expect![[r#"
        1 bash test ok; 2 bash test:1 ok  ->  c1 by c2 (command_family t2)
        1 bash test ok; 2 bash make ok  ->  nothing
        1 bash test ok; 1 bash test:1 ok  ->  nothing
        1 bash test ok; 2 bash test:1 fail  ->  nothing
        1 bash test fail; 2 bash test:1 ok  ->  c1 by c2 (command_family t2)
        1 bash test open; 2 finish c1 ok; 3 bash test:1 ok  ->  c1 by c2 (command_family t3)
        1 bash test fail; 2 bash test:1 fail; 3 bash test:2 ok  ->  c1 by c3 (command_family t3), c2 by c3 (command_family t3)
        1 bash test ok; 1 pin c1; 2 bash test:1 ok  ->  nothing
        1 bash test ok; 2 bash test:1 ok; 3 restore c1; 4 bash test:2 ok  ->  c1 by c3 (command_family t4), c2 by c3 (command_family t4)
    "#]],
    );
    rows(
        r#""acp""#,
        &["1 bash test ok; 2 bash test:1 ok"],
        &expect![[r#"
        1 bash test ok; 2 bash test:1 ok  ->  nothing
    "#]],
    );
    rows(
        r#"{"command_family":true,"protected_tools":["bash"]}"#,
        &["1 bash test ok; 2 bash test:1 ok"],
        &expect![[r#"
            1 bash test ok; 2 bash test:1 ok  ->  nothing
        "#]],
    );
}

#[test]
fn state_query() {
    rows(
        r#""acp-head""#,
        &[
            "1 bash git ok; 2 bash git:1 ok",
            "1 bash git ok; 2 bash make ok",
            "1 bash git ok; 1 bash git:1 ok",
            "1 bash git ok; 2 bash git:1 fail",
            "1 bash git fail; 2 bash git:1 ok",
            "1 bash git open; 2 finish c1 ok; 3 bash git:1 ok",
            "1 bash git ok; 1 pin c1; 2 bash git:1 ok",
            "1 bash git ok; 2 bash git:1 ok; 3 restore c1; 4 bash git:2 ok",
        ],
        &expect![[r#"
            1 bash git ok; 2 bash git:1 ok  ->  c1 by c2 (state_query t2)
            1 bash git ok; 2 bash make ok  ->  nothing
            1 bash git ok; 1 bash git:1 ok  ->  nothing
            1 bash git ok; 2 bash git:1 fail  ->  nothing
            1 bash git fail; 2 bash git:1 ok  ->  nothing
            1 bash git open; 2 finish c1 ok; 3 bash git:1 ok  ->  c1 by c2 (state_query t3)
            1 bash git ok; 1 pin c1; 2 bash git:1 ok  ->  nothing
            1 bash git ok; 2 bash git:1 ok; 3 restore c1; 4 bash git:2 ok  ->  c1 by c3 (state_query t4), c2 by c3 (state_query t4)
        "#]],
    );
    rows(
        r#"{"preset":"acp-head","protected_tools":["bash"]}"#,
        &["1 bash git ok; 2 bash git:1 ok"],
        &expect![[r#"
            1 bash git ok; 2 bash git:1 ok  ->  nothing
        "#]],
    );
    rows(
        r#""acp""#,
        &["1 bash git ok; 2 bash git:1 ok"],
        &expect![[r#"
        1 bash git ok; 2 bash git:1 ok  ->  nothing
    "#]],
    );
}

#[test]
fn snapshot_and_context() {
    for tool in ["snapshot", "context_prune"] {
        let scripts = [
            "1 T a ok; 2 T b ok; 3 T c ok",
            "1 T a ok; 1 T b ok",
            "1 T a ok; 2 T b fail",
            "1 T a fail; 2 T b ok",
            "1 T a ok; 2 T b open",
            "1 T a open; 2 finish c1 ok; 3 T b ok",
            "1 T a ok; 1 pin c1; 2 T b ok",
            "1 T a ok; 2 T b ok; 3 restore c1",
            "1 T a ok; 2 T b ok; 3 restore c1; 4 T c ok",
        ];
        let scripts: Vec<String> =
            scripts.iter().map(|script| script.replace(" T ", &format!(" {tool} "))).collect();
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let protected = format!(r#"{{"preset":"acp-head","protected_tools":["{tool}"]}}"#);
        if tool == "snapshot" {
            rows(
                r#""acp-head""#,
                &scripts,
                &expect![[r#"
                1 snapshot a ok; 2 snapshot b ok; 3 snapshot c ok  ->  c1 by c2 (snapshot t2), c2 by c3 (snapshot t3)
                1 snapshot a ok; 1 snapshot b ok  ->  nothing
                1 snapshot a ok; 2 snapshot b fail  ->  nothing
                1 snapshot a fail; 2 snapshot b ok  ->  nothing
                1 snapshot a ok; 2 snapshot b open  ->  nothing
                1 snapshot a open; 2 finish c1 ok; 3 snapshot b ok  ->  c1 by c2 (snapshot t3)
                1 snapshot a ok; 1 pin c1; 2 snapshot b ok  ->  nothing
                1 snapshot a ok; 2 snapshot b ok; 3 restore c1  ->  nothing
                1 snapshot a ok; 2 snapshot b ok; 3 restore c1; 4 snapshot c ok  ->  c1 by c3 (snapshot t4), c2 by c3 (snapshot t4)
            "#]],
            );
            rows(
                &protected,
                &scripts[..1],
                &expect![[r#"
                1 snapshot a ok; 2 snapshot b ok; 3 snapshot c ok  ->  nothing
            "#]],
            );
            rows(
                r#""acp""#,
                &scripts[..1],
                &expect![[r#"
                1 snapshot a ok; 2 snapshot b ok; 3 snapshot c ok  ->  nothing
            "#]],
            );
        } else {
            rows(
                r#""acp-head""#,
                &scripts,
                &expect![[r#"
                1 context_prune a ok; 2 context_prune b ok; 3 context_prune c ok  ->  c1 by c2 (context t2), c2 by c3 (context t3)
                1 context_prune a ok; 1 context_prune b ok  ->  nothing
                1 context_prune a ok; 2 context_prune b fail  ->  nothing
                1 context_prune a fail; 2 context_prune b ok  ->  nothing
                1 context_prune a ok; 2 context_prune b open  ->  nothing
                1 context_prune a open; 2 finish c1 ok; 3 context_prune b ok  ->  c1 by c2 (context t3)
                1 context_prune a ok; 1 pin c1; 2 context_prune b ok  ->  nothing
                1 context_prune a ok; 2 context_prune b ok; 3 restore c1  ->  nothing
                1 context_prune a ok; 2 context_prune b ok; 3 restore c1; 4 context_prune c ok  ->  c1 by c3 (context t4), c2 by c3 (context t4)
            "#]],
            );
            rows(
                &protected,
                &scripts[..1],
                &expect![[r#"
                1 context_prune a ok; 2 context_prune b ok; 3 context_prune c ok  ->  nothing
            "#]],
            );
            rows(
                r#""acp""#,
                &scripts[..1],
                &expect![[r#"
                1 context_prune a ok; 2 context_prune b ok; 3 context_prune c ok  ->  nothing
            "#]],
            );
        }
    }
}

#[test]
fn supersede_writes() {
    rows(
        r#""dcp""#,
        &[
            "1 write a ok; 2 read a ok",
            "1 write a ok; 1 read a ok",
            "1 read a ok; 2 write a ok",
            "1 write a ok; 2 read b ok",
            "1 write a ok; 2 read a fail",
            "1 write a fail; 2 read a ok",
            "1 write a ok; 2 read a open",
            "1 write a open; 2 finish c1 ok; 3 read a ok",
            "1 edit a ok; 2 read a ok",
            "1 write a ok; 1 pin c1; 2 read a ok",
            "1 write a ok; 2 read a ok; 3 restore c1",
            "1 write a ok; 2 read a ok; 3 restore c1; 4 read a:4 ok",
        ],
        &expect![[r#"
            1 write a ok; 2 read a ok  ->  c1 by c2 (supersede_write t2)
            1 write a ok; 1 read a ok  ->  c1 by c2 (supersede_write t1)
            1 read a ok; 2 write a ok  ->  nothing
            1 write a ok; 2 read b ok  ->  nothing
            1 write a ok; 2 read a fail  ->  nothing
            1 write a fail; 2 read a ok  ->  c1 by c2 (supersede_write t2)
            1 write a ok; 2 read a open  ->  nothing
            1 write a open; 2 finish c1 ok; 3 read a ok  ->  c1 by c2 (supersede_write t3)
            1 edit a ok; 2 read a ok  ->  nothing
            1 write a ok; 1 pin c1; 2 read a ok  ->  nothing
            1 write a ok; 2 read a ok; 3 restore c1  ->  nothing
            1 write a ok; 2 read a ok; 3 restore c1; 4 read a:4 ok  ->  c1 by c3 (supersede_write t4)
        "#]],
    );
    rows(
        r#"{"preset":"dcp","protected_tools":["write"]}"#,
        &["1 write a ok; 2 read a ok"],
        &expect![[r#"
            1 write a ok; 2 read a ok  ->  nothing
        "#]],
    );
}

#[test]
fn purge_errors() {
    rows(
        r#"{"purge_errors":true}"#,
        &[
            "1 read a fail; 4 turn",
            "1 read a fail; 5 turn",
            "1 read a fail; 9 turn",
            "1 read a abort; 5 turn",
            "1 read a ok; 5 turn",
            "1 read a open; 5 turn",
            "1 read a open; 5 finish c1 fail; 6 turn",
            "1 read .env fail; 5 turn",
            "1 task a fail; 5 turn",
            "1 read a fail; 1 pin c1; 5 turn",
            "1 read a fail; 5 turn; 6 restore c1; 20 turn",
            "1 read a fail; 5 turn; 6 rewind c1; 7 turn",
        ],
        &expect![[r#"
            1 read a fail; 4 turn  ->  nothing
            1 read a fail; 5 turn  ->  c1 purge_errors t5
            1 read a fail; 9 turn  ->  c1 purge_errors t9
            1 read a abort; 5 turn  ->  c1 purge_errors t5
            1 read a ok; 5 turn  ->  nothing
            1 read a open; 5 turn  ->  nothing
            1 read a open; 5 finish c1 fail; 6 turn  ->  c1 purge_errors t6
            1 read .env fail; 5 turn  ->  nothing
            1 task a fail; 5 turn  ->  nothing
            1 read a fail; 1 pin c1; 5 turn  ->  nothing
            1 read a fail; 5 turn; 6 restore c1; 20 turn  ->  nothing
            1 read a fail; 5 turn; 6 rewind c1; 7 turn  ->  c1 purge_errors t7
        "#]],
    );
    rows(
        r#"{"purge_errors":true,"purge_errors.turns":0,"purge_errors.protected_tools":["edit"]}"#,
        &["1 read a fail; 1 turn", "1 read a fail; 2 turn", "1 edit a fail; 2 turn"],
        &expect![[r#"
            1 read a fail; 1 turn  ->  nothing
            1 read a fail; 2 turn  ->  c1 purge_errors t2
            1 edit a fail; 2 turn  ->  nothing
        "#]],
    );
}

#[test]
fn truncate() {
    rows(
        r#"{"truncate":true,"truncate.max_tokens":50}"#,
        &[
            "1 read a ok; 2 turn",
            "1 read a ok; 3 turn",
            "1 read a fail; 3 turn",
            "1 read a open; 3 finish c1 ok; 4 turn",
            "1 edit a ok; 3 turn",
            "1 read .env ok; 3 turn",
            "1 read a ok; 1 pin c1; 3 turn",
            "1 read a ok; 1 pin c1; 3 unpin c1; 4 turn",
            "1 read a ok; 2 read a ok; 4 turn",
            "1 read a ok; 3 turn; 4 restore c1; 9 turn",
            "1 read a ok; 3 turn; 4 restore c1; 5 read a ok",
        ],
        &expect![[r#"
            1 read a ok; 2 turn  ->  nothing
            1 read a ok; 3 turn  ->  c1 truncate t3
            1 read a fail; 3 turn  ->  nothing
            1 read a open; 3 finish c1 ok; 4 turn  ->  c1 truncate t4
            1 edit a ok; 3 turn  ->  nothing
            1 read .env ok; 3 turn  ->  nothing
            1 read a ok; 1 pin c1; 3 turn  ->  nothing
            1 read a ok; 1 pin c1; 3 unpin c1; 4 turn  ->  c1 truncate t4
            1 read a ok; 2 read a ok; 4 turn  ->  c1 by c2 (repeat t2), c2 truncate t4
            1 read a ok; 3 turn; 4 restore c1; 9 turn  ->  nothing
            1 read a ok; 3 turn; 4 restore c1; 5 read a ok  ->  c1 by c2 (repeat t5)
        "#]],
    );
    rows(
        r#"{"truncate":true,"truncate.max_tokens":50,"protected_tools":["read"]}"#,
        &["1 read a ok; 3 turn"],
        &expect![[r#"
            1 read a ok; 3 turn  ->  nothing
        "#]],
    );
    rows(
        r#"{"truncate":true}"#,
        &["1 read a ok; 3 turn"],
        &expect![[r#"
        1 read a ok; 3 turn  ->  nothing
    "#]],
    );
}

#[test]
fn compress_reasoning() {
    let long = "1 think a\\nb\\nc\\nd\\ne\\nf\\ng\\nh\\ni\\nj\\nk\\nl and more";
    let scripts = [
        format!("{long}; 3 turn"),
        format!("{long}; 4 turn"),
        format!("{}; 4 turn", long.replace("think", "say")),
        "1 think a\\nb\\nc; 4 turn".to_owned(),
        format!("{long}; 4 turn; 5 compact"),
    ];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    rows(
        r#"{"compress_reasoning":true,"compress_reasoning.max_tokens":5}"#,
        &scripts,
        &expect![[r#"
            1 think a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl and more; 3 turn  ->  nothing
            1 think a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl and more; 4 turn  ->  #4 compress_reasoning t4
            1 say a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl and more; 4 turn  ->  nothing
            1 think a\nb\nc; 4 turn  ->  nothing
            1 think a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl and more; 4 turn; 5 compact  ->  #4 left
        "#]],
    );
    rows(
        r#"{"compress_reasoning":true}"#,
        &scripts[1..2],
        &expect![[r#"
        1 think a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl and more; 4 turn  ->  nothing
    "#]],
    );
}

/// Every row of the table for four quiet steps, with those that must fire and those that must not, for the read `c1` and the edit `c2`.
#[test]
fn quiet_steps_of_four() {
    rows(
        r#""balanced""#,
        &[
            "1 read a ok; 5 edit a ok; 6 ls b ok; 9 ls c ok",
            "1 read a ok; 5 edit a ok; 6 ls b ok; 8 ls c ok",
            "1 read a ok; 5 edit a ok; 6 ls b ok; 14 ls c ok",
            "5 read a ok; 5 edit a ok; 30 turn",
            "1 read a ok; 5 edit a ok; 8 edit a:2 ok; 8 turn",
            "1 read a ok; 5 edit a ok; 8 edit a:2 ok; 9 turn; 10 turn; 11 turn",
            "1 read a ok; 5 edit a ok; 8 edit a:2 ok; 12 turn",
            "1 read a ok; 5 edit a ok; 7 edit a fail; 9 turn; 10 turn",
            "1 read a ok; 5 edit a ok; 7 edit a fail; 11 turn",
            "1 read a ok; 5 edit a ok; 7 edit a open; 10 turn",
            "1 read a ok; 5 edit a ok; 7 edit a open; 11 turn",
            "1 read a ok; 5 edit a ok; 6 read a:7 ok",
            "1 read a ok; 5 edit a ok; 6 read a:7 fail",
            "1 read a ok; 5 edit a ok; 6 read a ok",
            "1 read a ok; 5 edit a ok; 6 write a ok",
            "1 read .env ok; 5 edit .env ok; 30 turn",
            "1 read a ok; 5 edit a ok; 6 pin c1; 30 turn",
            "1 read a ok; 5 edit a ok; 6 rewind c1; 30 turn",
            "1 read a ok; 5 edit a ok; 6 compact; 30 turn",
        ],
        &expect![[r#"
            1 read a ok; 5 edit a ok; 6 ls b ok; 9 ls c ok  ->  c1 by c2 (file t9)
            1 read a ok; 5 edit a ok; 6 ls b ok; 8 ls c ok  ->  nothing
            1 read a ok; 5 edit a ok; 6 ls b ok; 14 ls c ok  ->  c1 by c2 (file t14)
            5 read a ok; 5 edit a ok; 30 turn  ->  nothing
            1 read a ok; 5 edit a ok; 8 edit a:2 ok; 8 turn  ->  c2 by c3 (file t8)
            1 read a ok; 5 edit a ok; 8 edit a:2 ok; 9 turn; 10 turn; 11 turn  ->  c2 by c3 (file t8)
            1 read a ok; 5 edit a ok; 8 edit a:2 ok; 12 turn  ->  c1 by c2 (file t12), c2 by c3 (file t8)
            1 read a ok; 5 edit a ok; 7 edit a fail; 9 turn; 10 turn  ->  nothing
            1 read a ok; 5 edit a ok; 7 edit a fail; 11 turn  ->  c1 by c2 (file t11)
            1 read a ok; 5 edit a ok; 7 edit a open; 10 turn  ->  nothing
            1 read a ok; 5 edit a ok; 7 edit a open; 11 turn  ->  c1 by c2 (file t11)
            1 read a ok; 5 edit a ok; 6 read a:7 ok  ->  c1 by c2 (file t6)
            1 read a ok; 5 edit a ok; 6 read a:7 fail  ->  nothing
            1 read a ok; 5 edit a ok; 6 read a ok  ->  c1 by c3 (repeat t6)
            1 read a ok; 5 edit a ok; 6 write a ok  ->  c1 by c3 (file t6), c2 by c3 (file t6)
            1 read .env ok; 5 edit .env ok; 30 turn  ->  nothing
            1 read a ok; 5 edit a ok; 6 pin c1; 30 turn  ->  nothing
            1 read a ok; 5 edit a ok; 6 rewind c1; 30 turn  ->  c2 off_branch
            1 read a ok; 5 edit a ok; 6 compact; 30 turn  ->  c1 left, c2 left
        "#]],
    );
    rows(
        r#"{"preset":"balanced","file.edit_quiet_steps":0}"#,
        &["1 read a ok; 5 edit a ok"],
        &expect![[r#"
            1 read a ok; 5 edit a ok  ->  c1 by c2 (file t5)
        "#]],
    );
}
