//! Tests whether each rule fires as it should, and whether the laws of the fold hold for any script.

mod command_tables;
mod forks;
mod growth;
mod idle_tables;
mod laws;
mod metamorphic;
mod points;
mod quiet_tables;
mod row_tables;
mod rule_tables;
mod search_tables;
mod served;
mod shape_tables;
mod supersede_reads;

use expect_test::Expect;

use super::{FaceState, HashForm, Policy};
use crate::event::Face;
use crate::ids::Seq;
use crate::testing::Script;
use crate::testing::script::Played;

/// Plays a script under a preset with changed keys, and compares how each call ends.
fn check_under(policy: &str, script: &str, expected: &Expect) {
    let policy = Policy::from_json(policy).unwrap();
    expected.assert_eq(&report(&Script::parse(script).play(&policy)));
}

/// The same under `acp`.
fn check(script: &str, expected: &Expect) {
    check_under(r#""acp""#, script, expected);
}

/// One line a call and spoken part: how it is shown, and why.
fn report(played: &Played) -> String {
    let state = played.tape.state();
    let mut lines = String::new();
    for ix in state.items(Seq::MAX) {
        let item = state.item(ix, Seq::MAX).unwrap();
        let what = match (&item.tool, item.keys.first()) {
            (Some(tool), Some(key)) => format!("{tool} {key}"),
            (Some(tool), None) => tool.to_string(),
            (None, _) => format!("{:?}", item.kind).to_lowercase(),
        };
        lines += &format!("{} {what}: ", played.name(item.item));
        let mut said = Vec::new();
        for face in [Face::Input, Face::Output] {
            let view = state.face(ix, face, Seq::MAX);
            if let Some(cause) = view.cause {
                let side = if face == Face::Input { "input " } else { "" };
                let value = serde_json::to_value(&cause).unwrap();
                let field =
                    |name: &str| value.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
                let edge = state.superseded_by(ix, Seq::MAX).into_iter().rfind(|edge| !edge.released);
                let mut text = format!("{side}{}", field("cause"));
                if field("cause") == "superseded" {
                    let by = edge
                        .as_ref()
                        .and_then(|edge| edge.new)
                        .map_or_else(|| "-".to_owned(), |new| played.name(new));
                    let turn = edge.map_or(0, |edge| edge.turn.0);
                    text += &format!(" by {by} ({}, t{turn})", field("rule"));
                } else if !field("rule").is_empty() {
                    text += &format!(" ({})", field("rule"));
                }
                if view.state == FaceState::Whole {
                    text += ", shown whole";
                }
                said.push(text);
            }
        }
        if item.pinned {
            said.push("pinned".to_owned());
        }
        lines += &if said.is_empty() { "current".to_owned() } else { said.join("; ") };
        lines.push('\n');
    }
    lines
}

#[test]
fn log_lines_and_hashes_are_those_of_the_documents() {
    let played = Script::parse("1 read a ok\n2 read a ok\n3 edit a ok\n4 todowrite - ok\n5 todowrite - ok")
        .play(&Policy::from_json(r#"{"protected_tools":[]}"#).unwrap());
    let state = played.tape.state();
    expect_test::expect![[r#"
        [auto-supersede] 🔄 hash r_05e7c: c1 → c2
        [auto-supersede] 📁 file a: read c2 superseded by edit
        [auto-supersede] 🔄 hash t_44136: c4 → c5"#]]
    .assert_eq(&state.log_lines(Seq::MAX, HashForm::Shown).join("\n"));
}
