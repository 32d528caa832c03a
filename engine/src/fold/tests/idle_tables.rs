//! Rules by age: one row a situation for each, and laws that hold for all of them.

use expect_test::expect;

use super::row_tables::rows;
use super::{Policy, Seq, check_under};
use crate::event::{Face, Payload};
use crate::fold::{CauseView, World};
use crate::ids::Micros;
use crate::testing::Script;

#[test]
fn reads_and_notes() {
    rows(
        r#"{"preset":"acp","idle.tokens_min":0,"idle.reads":4,"idle.notes":2}"#,
        &[
            "1 read a.rs ok; 4 turn",
            "1 read a.rs ok; 5 turn",
            "1 read a.rs ok; 3 grep a.rs ok; 5 turn",
            "1 read a.rs ok; 3 changed a.rs; 5 turn",
            "1 read a.rs ok; 3 changed a.rs; 5 turn; 7 turn",
            "1 read a.md ok; 2 turn",
            "1 read a.md ok; 3 turn",
            "1 read /tmp/a.rs ok; 3 turn",
            "1 read x/node_modules/y/a.js ok; 3 turn",
            "1 read a.rs fail; 5 turn",
            "1 read a.rs open; 5 turn",
            "1 read .env ok; 5 turn",
            "1 read a.rs ok; 1 pin c1; 5 turn",
            "1 read a.rs ok; 5 turn; 6 restore c1; 20 turn",
            "1 read a.rs ok; 5 turn; 6 rewind c1; 7 turn",
            "1 read a.rs ok; 5 policy {\"idle.reads\":0}; 9 turn",
        ],
        &expect![[r#"
            1 read a.rs ok; 4 turn  ->  nothing
            1 read a.rs ok; 5 turn  ->  c1 idle_reads t5
            1 read a.rs ok; 3 grep a.rs ok; 5 turn  ->  c1 idle_reads t5
            1 read a.rs ok; 3 changed a.rs; 5 turn  ->  nothing
            1 read a.rs ok; 3 changed a.rs; 5 turn; 7 turn  ->  c1 idle_reads t7
            1 read a.md ok; 2 turn  ->  nothing
            1 read a.md ok; 3 turn  ->  c1 idle_notes t3
            1 read /tmp/a.rs ok; 3 turn  ->  c1 idle_notes t3
            1 read x/node_modules/y/a.js ok; 3 turn  ->  c1 idle_notes t3
            1 read a.rs fail; 5 turn  ->  nothing
            1 read a.rs open; 5 turn  ->  nothing
            1 read .env ok; 5 turn  ->  nothing
            1 read a.rs ok; 1 pin c1; 5 turn  ->  nothing
            1 read a.rs ok; 5 turn; 6 restore c1; 20 turn  ->  nothing
            1 read a.rs ok; 5 turn; 6 rewind c1; 7 turn  ->  c1 idle_reads t7
            1 read a.rs ok; 5 policy {"idle.reads":0}; 9 turn  ->  c1 idle_reads t5
        "#]],
    );
}

#[test]
fn searches_commands_and_others() {
    rows(
        r#"{"preset":"acp","idle.tokens_min":0,"idle.searches":3,"idle.shell_reads":5,"idle.others":7,"idle.changes":2,"idle.subagents":4}"#,
        &[
            "1 grep x ok; 4 turn",
            "1 shell make ok; 4 turn",
            "1 cat a ok; 5 turn",
            "1 cat a ok; 6 turn",
            "1 cat a ok; 4 edit a ok; 6 turn",
            "1 cat a ok; 4 cat a:2 ok; 6 turn; 9 turn",
            "1 webfetch x ok; 7 turn",
            "1 webfetch x ok; 8 turn",
            "1 todowrite - ok; 20 turn",
            "1 skill x ok; 20 turn",
            "1 agent x ok; 4 turn",
            "1 agent x ok; 5 turn",
            "1 edit a ok; 3 turn",
        ],
        &expect![[r#"
            1 grep x ok; 4 turn  ->  c1 idle_searches t4
            1 shell make ok; 4 turn  ->  c1 idle_searches t4
            1 cat a ok; 5 turn  ->  nothing
            1 cat a ok; 6 turn  ->  c1 idle_shell_reads t6
            1 cat a ok; 4 edit a ok; 6 turn  ->  c2 idle_changes t6
            1 cat a ok; 4 cat a:2 ok; 6 turn; 9 turn  ->  c1 idle_shell_reads t9, c2 idle_shell_reads t9
            1 webfetch x ok; 7 turn  ->  nothing
            1 webfetch x ok; 8 turn  ->  c1 idle_others t8
            1 todowrite - ok; 20 turn  ->  nothing
            1 skill x ok; 20 turn  ->  nothing
            1 agent x ok; 4 turn  ->  nothing
            1 agent x ok; 5 turn  ->  c1 idle_subagents t5
            1 edit a ok; 3 turn  ->  c1 idle_changes t3
        "#]],
    );
}

/// A script in whose lines `LONG` is a name so long that it is set aside.
fn with_long_names(script: &str) -> String {
    script.replace("LONG", &"n".repeat(201))
}

fn first_input(policy: &str, script: &str) -> String {
    let played = Script::parse(&with_long_names(script)).play(&Policy::from_json(policy).unwrap());
    let state = played.tape.state();
    let ix = state.items(Seq::MAX).next().unwrap();
    let face = state.face(ix, Face::Input, Seq::MAX);
    format!("{:?} {}", face.state, serde_json::to_value(&face.cause).unwrap())
}

#[test]
fn inputs() {
    let policy = r#"{"preset":"acp","idle.tokens_min":0,"idle.superseded":3,"idle.edits":5,"idle.writes":6,"idle.inputs":4}"#;
    let mut said = String::new();
    for script in [
        "1 edit LONG ok\n5 turn",
        "1 edit LONG ok\n6 turn",
        "1 write LONG ok\n7 turn",
        "1 webfetch LONG ok\n5 turn",
        "1 write LONG ok\n2 edit LONG ok\n5 turn",
        // Nothing in it is long.
        "1 webfetch a ok\n5 turn",
    ] {
        said += &format!("{}  ->  {}\n", script.replace('\n', "; "), first_input(policy, script));
    }
    expect![[r#"
        1 edit LONG ok; 5 turn  ->  Whole null
        1 edit LONG ok; 6 turn  ->  Shortened {"cause":"shortened","seq":6,"turn":6,"rule":"idle_edits"}
        1 write LONG ok; 7 turn  ->  Shortened {"cause":"shortened","seq":6,"turn":7,"rule":"idle_writes"}
        1 webfetch LONG ok; 5 turn  ->  Shortened {"cause":"shortened","seq":6,"turn":5,"rule":"idle_inputs"}
        1 write LONG ok; 2 edit LONG ok; 5 turn  ->  Shortened {"cause":"shortened","seq":9,"turn":5,"rule":"idle_superseded"}
        1 webfetch a ok; 5 turn  ->  Whole {"cause":"shortened","seq":6,"turn":5,"rule":"idle_inputs"}
    "#]].assert_eq(&said);
}

/// Models that saw shortened writes wrote the marks into files.
#[test]
fn by_default_writes_and_edits_keep_their_inputs() {
    for preset in ["economy", "calm", "safe"] {
        let policy = format!(r#"{{"preset":"{preset}","idle.tokens_min":0}}"#);
        for script in ["1 edit LONG ok\n900 turn", "1 write LONG ok\n2 edit LONG ok\n900 turn"] {
            assert_eq!(first_input(&policy, script), "Whole null", "{preset} {script}");
        }
    }
}

#[test]
fn reasoning() {
    rows(
        r#"{"preset":"acp","idle.reasoning":1}"#,
        &[
            "1 think a; 2 turn; 3 turn",
            "1 think a; 1 say b; 2 prompt",
            "1 think a; 1 say b; 2 prompt; 2 think d; 3 turn",
            "1 think a; 1 say b; 2 prompt; 2 think d; 3 prompt",
            "1 think a; 1 say b; 2 prompt; 2 think d; 3 prompt; 4 rewind #8; 4 prompt",
        ],
        &expect![[r#"
            1 think a; 2 turn; 3 turn  ->  nothing
            1 think a; 1 say b; 2 prompt  ->  #4 idle_reasoning t2
            1 think a; 1 say b; 2 prompt; 2 think d; 3 turn  ->  #4 idle_reasoning t2
            1 think a; 1 say b; 2 prompt; 2 think d; 3 prompt  ->  #4 idle_reasoning t2, #8 idle_reasoning t3
            1 think a; 1 say b; 2 prompt; 2 think d; 3 prompt; 4 rewind #8; 4 prompt  ->  #4 idle_reasoning t2, #8 idle_reasoning t3
        "#]],
    );
}

/// In the turn behind its own an output is sent for the first time: no setting hides it before.
#[test]
fn no_age_hides_what_was_never_sent() {
    rows(
        r#"{"preset":"acp","idle.tokens_min":0,"idle.reads":1,"idle.searches":1,"idle.cold_share":0}"#,
        &["1 read a ok; 2 turn", "1 read a ok; 3 turn", "1 grep a ok; 2 turn", "1 grep a ok; 3 turn"],
        &expect![[r#"
            1 read a ok; 2 turn  ->  nothing
            1 read a ok; 3 turn  ->  c1 idle_reads t3
            1 grep a ok; 2 turn  ->  nothing
            1 grep a ok; 3 turn  ->  c1 idle_searches t3
        "#]],
    );
}

#[test]
fn a_preset_that_changed_does_not_change_what_was_recorded() {
    // As the version before these rules recorded it: whole, without keys that it did not know.
    let mut recorded = Policy::default().to_value();
    let object = recorded.as_object_mut().unwrap();
    for (key, value) in
        [("preset", "economy".into()), ("shelf", true.into()), ("serve.pointing", true.into())]
    {
        object.insert(key.to_owned(), value);
    }
    let policy = Policy::from_value(&recorded).unwrap();
    assert!(policy.shelf.on && policy.serve.pointing);
    assert_eq!((policy.shelf.read_turns, policy.idle.cold_share, policy.serve.horizon), (40, 1.0, 8.0));
    assert_eq!(policy.to_value(), recorded);
    // Asked for by name, it is the preset of today.
    assert_ne!(Policy::from_json(r#""economy""#).unwrap(), policy);
}

/// The turn in which the read is set aside, with a pause of so many seconds before turn 3.
fn set_aside_after(pause_seconds: i64) -> Option<u32> {
    let policy = r#"{"preset":"acp","idle.tokens_min":0,"idle.reads":4,"idle.cold_share":0.5}"#;
    let played = Script::parse("1 read a ok\n2 turn\n3 turn\n4 turn\n5 turn")
        .play(&Policy::from_json(policy).unwrap());
    let mut world = World::default();
    let (mut steps, mut later) = (0, 0);
    for recorded in played.tape.events() {
        let mut recorded = recorded.clone();
        if matches!(recorded.event.payload, Payload::TurnStarted(_)) {
            steps += 1;
            later = if steps >= 3 { pause_seconds * 1_000_000 } else { 0 };
        }
        recorded.event.host_time = Some(Micros(recorded.recorded_at.0 + later));
        world.apply(&recorded);
    }
    let state = world.stream(played.tape.stream()).unwrap();
    let first = state.items(Seq::MAX).next().unwrap();
    match state.face(first, Face::Output, Seq::MAX).cause? {
        CauseView::Shortened { turn, .. } => Some(turn.0),
        _ => None,
    }
}

#[test]
fn half_the_age_is_enough_when_the_cache_is_cold_anyway() {
    assert_eq!(set_aside_after(0), Some(5));
    assert_eq!(set_aside_after(250), Some(5));
    assert_eq!(set_aside_after(400), Some(3));
}

/// A policy that was set, and an unpinning, forgot the other face of a call that was shortened already.
#[test]
fn what_is_left_of_a_shortened_call_goes_after_another_policy_and_an_unpinning() {
    const POLICY: &str = r#"{"preset":"acp","idle.tokens_min":0,"idle.others":2,"idle.inputs":4}"#;
    for act in ["4 turn".to_owned(), format!("4 policy {POLICY}"), "4 pin c1\n6 unpin c1".to_owned()] {
        check_under(
            POLICY,
            &with_long_names(&format!("1 webfetch LONG ok\n3 turn\n{act}\n7 turn")),
            &expect![[r#"
                c1 webfetch ~32c7f257d3fa4ef5: input shortened (idle_inputs); shortened (idle_others)
            "#]],
        );
    }
}

/// A call that was out of the context lost its due turns and its new status when the host named it again.
#[test]
fn what_comes_back_into_the_context_is_taken_up_again() {
    rows(
        r#"{"preset":"acp","idle.tokens_min":0,"idle.reads":4,"purge_errors":true}"#,
        &[
            "1 read a open; 2 finish c1 ok; 4 read a ok",
            "1 read a open; 2 order; 3 finish c1 ok; 4 order c1; 5 read a ok",
            "1 read a open; 2 order; 3 finish c1 ok; 3 clear c1; 4 order c1; 5 read a ok",
            "1 read a ok; 2 order; 9 turn; 10 order c1; 11 turn",
            "1 read a fail; 2 order; 9 turn; 10 order c1; 11 turn",
            "1 read a ok; 5 turn; 6 restore c1; 7 order; 8 order c1; 20 turn",
        ],
        &expect![[r#"
            1 read a open; 2 finish c1 ok; 4 read a ok  ->  c1 by c2 (repeat t4)
            1 read a open; 2 order; 3 finish c1 ok; 4 order c1; 5 read a ok  ->  c1 by c2 (repeat t5)
            1 read a open; 2 order; 3 finish c1 ok; 3 clear c1; 4 order c1; 5 read a ok  ->  c1 cleared_by_host
            1 read a ok; 2 order; 9 turn; 10 order c1; 11 turn  ->  c1 idle_reads t11
            1 read a fail; 2 order; 9 turn; 10 order c1; 11 turn  ->  c1 purge_errors t11
            1 read a ok; 5 turn; 6 restore c1; 7 order; 8 order c1; 20 turn  ->  nothing
        "#]],
    );
    rows(
        r#"{"turn_protection":true,"turn_protection.turns":3}"#,
        &[
            "1 read a ok; 4 turn; 5 read a ok; 8 turn",
            "1 read a ok; 2 order; 3 order c1; 4 turn; 5 read a ok; 8 turn",
            "1 read a ok; 2 order; 6 turn; 7 order c1; 8 turn; 9 read a ok; 12 turn",
            "1 read a ok; 2 read a ok; 3 clear c2; 3 policy \"acp\"; 4 turn",
        ],
        &expect![[r#"
            1 read a ok; 4 turn; 5 read a ok; 8 turn  ->  c1 by c2 (repeat t8)
            1 read a ok; 2 order; 3 order c1; 4 turn; 5 read a ok; 8 turn  ->  c1 by c2 (repeat t8)
            1 read a ok; 2 order; 6 turn; 7 order c1; 8 turn; 9 read a ok; 12 turn  ->  c1 by c2 (repeat t12)
            1 read a ok; 2 read a ok; 3 clear c2; 3 policy "acp"; 4 turn  ->  c1 by c2 (repeat t4), c2 cleared_by_host
        "#]],
    );
}
