//! One generated session told to both sides: the engine's conclusions, and those of the naive implementation.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "for tests: a disagreement is a failed test"
)]

use acpdb_engine::ids::Seq;
use acpdb_engine::testing::Script;
use acpdb_engine::testing::script::{Played, Step};

use super::{Mutation, NaiveEdge, edges};

/// Policies that the naive implementation knows.
const POLICIES: [&str; 8] = [
    r#""acp""#,
    r#"{"automatic":false}"#,
    r#"{"turn_protection":true,"turn_protection.turns":2}"#,
    r#"{"turn_protection":true,"turn_protection.turns":0}"#,
    r#"{"todo":false}"#,
    r#"{"same_turn":true}"#,
    r#"{"failed":true}"#,
    r#"{"protected_tools":["read","todoread"]}"#,
];

/// A session of any kind of step, under policies that both sides know.
pub fn session(numbers: &[u16]) -> Script {
    let mut script = Script::from_numbers(numbers);
    let mut policies = POLICIES.iter().cycle();
    for (step, number) in script.steps.iter_mut().zip(numbers) {
        if step.what.starts_with("policy") {
            let skip = usize::from(*number / 64) % POLICIES.len();
            step.what = format!("policy {}", policies.nth(skip).unwrap());
        }
        // One file spelled in two ways.
        if *number % 5 == 0 {
            step.what = step.what.replace(" b ", " ./b ").replace(" c:7 ", " c ");
        }
    }
    script
}

/// The engine's conclusions as of `at`.
pub fn of_engine(played: &Played, at: Seq) -> Vec<NaiveEdge> {
    let edges = played.tape.state().edges(at);
    edges
        .into_iter()
        .map(|edge| NaiveEdge {
            old: edge.old,
            new: edge.new.unwrap(),
            rule: match serde_json::to_value(edge.rule).unwrap().as_str().unwrap() {
                "repeat" => "hash",
                "file" => "file",
                "todo" => "todo",
                other => panic!("{other} is no rule of the default preset"),
            },
            seq: edge.seq,
            turn: edge.turn.get(),
            released: edge.released,
        })
        .collect()
}

/// The conclusions of the naive implementation as of `at`, with `mutation` planted in it.
pub fn of_naive(played: &Played, at: Seq, mutation: Mutation) -> Vec<NaiveEdge> {
    let events: Vec<_> = played.tape.events().iter().take_while(|event| event.seq <= at).cloned().collect();
    edges(&events, &|body| played.tape.body(body), mutation)
}

/// The steps, one a line, as a script spells them.
pub fn described(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("{} {}", step.turn, step.what)).collect::<Vec<_>>().join("\n")
}
