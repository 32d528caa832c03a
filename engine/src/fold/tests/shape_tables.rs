//! Acts of hosts and people on a context: hiding, clearing, compaction, rewinds, tasks, reminders, shortening.

use expect_test::expect;

use super::{FaceState, Played, Policy, Seq, check, check_under};
use crate::command::{Command, ContextAction, Target};
use crate::entry::{Entry, ItemRef, fact};
use crate::event::{BodyAddress, Erased, Face};
use crate::fold::{Ix, State};
use crate::ids::{ItemId, StreamId};
use crate::testing::{Script, Tape, TestTools};

#[test]
fn acts_hide_and_restore() {
    check(
        "1 read a ok\n2 discard c1",
        &expect![[r#"
        c1 read a: discarded
    "#]],
    );
    check(
        "1 read a ok\n2 distill c1",
        &expect![[r#"
        c1 read a: distilled
    "#]],
    );
    check(
        "1 read a ok\n2 discard c1\n3 restore c1",
        &expect![[r#"
        c1 read a: current
    "#]],
    );
    check(
        "1 read a ok\n2 discard c1\n3 read a ok",
        &expect![[r#"
        c1 read a: superseded by c2 (repeat, t3)
        c2 read a: current
    "#]],
    );
    check(
        "1 read a ok\n2 clear c1\n3 restore c1\n4 read a ok",
        &expect![[r#"
        c1 read a: cleared_by_host
        c2 read a: current
    "#]],
    );
}

#[test]
fn what_has_left_the_context_is_compared_no_more() {
    check(
        "1 read a ok\n2 edit a ok\n3 compact\n4 read a ok\n5 read a ok",
        &expect![[r#"
        c1 read a: input left; left
        c2 edit a: input left; left
        c3 read a: superseded by c4 (repeat, t5)
        c4 read a: current
    "#]],
    );
}

#[test]
fn a_rewind_undoes_what_the_lost_branch_did() {
    check(
        "1 read a ok\n2 read b ok\n3 read a ok\n4 discard c2\n5 rewind c2",
        &expect![[r#"
        c1 read a: current
        c2 read b: current
        c3 read a: input off_branch; off_branch
    "#]],
    );
    check(
        "1 read a ok\n2 read a ok\n3 restore c1\n4 rewind c2",
        &expect![[r#"
        c1 read a: superseded by c2 (repeat, t2)
        c2 read a: current
    "#]],
    );
    check(
        "1 read a open\n2 finish c1 ok\n2 read b ok\n3 compact\n4 rewind c2\n5 read a ok",
        &expect![[r#"
        c1 read a: superseded by c3 (repeat, t5)
        c2 read b: current
        c3 read a: current
    "#]],
    );
    check(
        "1 read a ok\n2 read b ok\n3 rewind c1\n4 read c ok\n5 rewind c2\n6 read a ok",
        &expect![[r#"
        c1 read a: superseded by c4 (repeat, t6)
        c2 read b: input off_branch; off_branch
        c3 read c: input off_branch; off_branch
        c4 read a: current
    "#]],
    );
}

#[test]
fn a_completed_task_leaves_its_summary() {
    check(
        "1 say before\n2 say begin\n2 task T start\n3 think plan\n3 read a ok\n4 user hello\n4 read b ok\n5 say end\n5 task T done\n6 say after",
        &expect![[r#"
            #4 text: current
            #6 text: evicted
            #9 reasoning: evicted
            c1 read a: evicted
            #13 text: current
            c2 read b: evicted
            #17 text: evicted
            #21 text: current
        "#]],
    );
    check_under(
        r#"{"task.outputs_max":1}"#,
        "1 say begin\n1 task T start\n2 read a ok\n3 read b ok\n4 turn",
        &expect![[r#"
            #4 text: current
            c1 read a: evicted
            c2 read b: current
        "#]],
    );
}

/// The output that bore the summary of a task was erased, and a rewind or a fork behind that took the summary away for good: none
/// of the others took it over.
#[test]
fn a_summary_is_borne_by_another_where_its_bearer_is_erased() {
    let script = "1 task T start\n2 read a ok\n2 read b ok\n3 task T done\n4 read c ok\n5 read d ok";
    let mut played = Script::parse(script).play(&Policy::default());
    let ix = ["c1", "c2", "c3"].map(|name| played.ix(name).unwrap());
    let item_of = |played: &Played, place: usize| played.tape.state().item(ix[place], Seq::MAX).unwrap();
    let bearers = |state: &State| {
        let is_bearer =
            |ix: &&Ix| state.item(**ix, Seq::MAX).is_some_and(|item| item.output.state == FaceState::Summary);
        ix.iter().filter(is_bearer).count()
    };
    assert_eq!(bearers(played.tape.state()), 1);
    let place = (0..2).find(|place| item_of(&played, *place).output.state == FaceState::Summary).unwrap();
    let finished = item_of(&played, place).finished.unwrap();
    let erased = Erased {
        bodies: vec![BodyAddress { seq: finished, row: 0 }],
        by: "test".to_owned(),
        ..Erased::default()
    };
    played.tape.payload_in(StreamId::STORE, erased, Vec::new());
    assert_eq!(bearers(played.tape.state()), 1, "erased");
    let to = item_of(&played, 2).finished.unwrap();
    let fork = played.tape.state().fork(played.tape.head().next(), StreamId([7; 16]), to, None);
    assert_eq!(bearers(&fork), 1, "forked");
    let _ = played.tape.command(&Command::Rewind { to }).unwrap();
    assert_eq!(bearers(played.tape.state()), 1, "rewound");
}

#[test]
fn reminders_stand_one_at_a_time() {
    check(
        "1 todowrite a ok\n2 remind\n3 reflect\n4 remind\n5 todowrite b ok",
        &expect![[r#"
        c1 todowrite: superseded by c2 (todo, t5)
        #7 injected: superseded by #11 (injected, t4)
        #9 injected: superseded by c2 (injected, t5)
        #11 injected: superseded by c2 (injected, t5)
        c2 todowrite: current
    "#]],
    );
}

#[test]
fn rules_that_shorten() {
    check_under(
        r#"{"purge_errors":true}"#,
        "1 read a fail\n2 read x/.env fail\n3 read b fail\n4 pin c3\n9 turn\n10 unpin c3\n11 turn",
        &expect![[r#"
            c1 read a: input shortened (purge_errors)
            c2 read x/.env: current
            c3 read b: input shortened (purge_errors)
        "#]],
    );
    check_under(
        r#"{"truncate":true,"truncate.max_tokens":50,"compress_reasoning":true,"compress_reasoning.max_tokens":5}"#,
        "1 read a ok\n1 edit b ok\n1 think a\\nb\\nc\\nd\\ne\\nf\\ng\\nh\\ni\\nj\\nk\\nl and more\n3 turn\n4 restore c1\n5 turn",
        &expect![[r#"
            c1 read a: current
            c2 edit b: current
            #8 reasoning: shortened (compress_reasoning)
        "#]],
    );
}

#[test]
fn placeholders_are_these_texts() {
    let script = "1 read a ok\n2 read a ok\n3 edit a ok\n4 read b ok\n4 discard c4\n5 read d ok\n5 distill c5\n6 say begin\n6 task T start\n7 read e ok\n8 say end\n8 task T done\n9 read f fail\n10 webfetch u ok\n11 webfetch u:2 ok\n14 turn";
    let policy = r#"{"purge_errors":true,"url":true,"hide_input":"metadata"}"#;
    let played = Script::parse(script).play(&Policy::from_json(policy).unwrap());
    let state = played.tape.state();
    let mut lines = String::new();
    for ix in state.items(Seq::MAX) {
        for face in [Face::Input, Face::Output] {
            let Some(placeholder) = state.placeholder(ix, face, Seq::MAX) else { continue };
            let text = super::super::render(&placeholder, &TestTools, &|body| played.tape.body(body));
            let text = text.unwrap_or_else(|| "(whole)".to_owned());
            lines += &format!("{} {face:?} {:?}: {text}\n", state.item_id(ix).unwrap(), placeholder.state);
        }
    }
    expect![[r##"
        #4 Input Whole: (whole)
        #4 Output Tombstone: [auto-superseded: hash duplicate]
        #7 Input Whole: (whole)
        #7 Output Tombstone: [auto-superseded: file superseded by edit]
        #13 Output Tombstone: [Output removed to save context - information superseded or no longer needed]
        read({filePath: "b"}) → completed
        #17 Output Summary: [distilled] summary of c5
        #21 Output Tombstone: [Assistant thinking/text for task T evicted to save tokens.]
        #24 Output Tombstone: [Task T completed: output evicted to archive. Use `acpdb task archive T --session script` if previous logs are needed.]
        #27 Output Summary: [Assistant thinking/text for task T evicted to save tokens. 
        SUMMARY: what was found out about it

        ✅ [Sigma Validation] All criteria met (Score: 1.00)]
        #31 Input Shortened: (whole)
        #34 Input Whole: (whole)
        #34 Output Tombstone: [auto-superseded: URL superseded by webfetch]
    "##]].assert_eq(&lines);
}

#[test]
fn a_placeholder_is_never_longer() {
    use crate::entry::Entry;
    let mut table = String::new();
    for output in ["", "x", "short", "nine chars", "longer than the text that says that it is a duplicate"] {
        let mut tape = crate::testing::Tape::of_test_tools("short");
        for (turn, call) in [(1, "c1"), (2, "c2"), (3, "c3")] {
            tape.entry(Entry::step(format!("s{turn}")));
            tape.entry(Entry::tool_started(call, "read", r#"{"filePath":"a"}"#));
            tape.entry(Entry::tool_completed(call, output));
        }
        let command = crate::command::Command::Context {
            action: crate::command::ContextAction::Discard,
            targets: vec![(crate::command::Target::Call("c3".to_owned()), None)],
            pin: false,
        };
        tape.command(&command).unwrap();
        let shown: Vec<String> = (tape.state().items(Seq::MAX))
            .map(|ix| match tape.state().placeholder(ix, Face::Output, Seq::MAX) {
                Some(placeholder) => placeholder.text().unwrap_or("(whole)").to_owned(),
                None => "(whole, nothing hides it)".to_owned(),
            })
            .collect();
        table += &format!("{output:?}: {}\n", shown.join(" | "));
    }
    expect![[r#"
        "": (whole) | (whole) | (whole)
        "x": (whole) | (whole) | -
        "short": (whole) | (whole) | -
        "nine chars": (whole) | (whole) | [removed]
        "longer than the text that says that it is a duplicate": [auto-superseded: hash duplicate] | [auto-superseded: hash duplicate] | [removed]
    "#]].assert_eq(&table);
}

#[test]
fn the_stats_block_has_the_layout_of_the_documents() {
    let script = "1 read a ok\n2 read a ok\n3 edit a ok\n4 todowrite a ok\n5 todowrite b ok\n6 read z ok\n6 discard c6";
    let played = Script::parse(script).play(&Policy::default());
    let stats = played.tape.state().stats(Seq::MAX);
    expect![[r#"
        Strategy Effectiveness:
        ────────────────────────────────────────────────────────────
          Auto-Supersede         3 prunes, ~968 saved ⭐
            🔄 hash              1 prunes, ~474
            📁 file              1 prunes, ~474
            ✅ todo              1 prunes, ~20
          Manual Discard         1 prunes, ~474 saved"#]]
    .assert_eq(&stats.acp_block());
    expect![[r#"{"kinds":{"discard":{"count":1,"shown_again":0,"acp_saved":474,"freed":444},"file":{"count":1,"shown_again":0,"acp_saved":474,"freed":459},"repeat":{"count":1,"shown_again":0,"acp_saved":474,"freed":462},"todo":{"count":1,"shown_again":0,"acp_saved":20,"freed":6}},"tokens_shown":565,"tokens_whole":1936,"tokens_recorded":1936,"items":6,"calls":6}"#]].assert_eq(&serde_json::to_string(&stats).unwrap());
    let empty = Script::default().play(&Policy::default());
    expect![[r#"
        Strategy Effectiveness:
        ────────────────────────────────────────────────────────────
          Auto-Supersede         0 prunes, ~0 saved
            🔄 hash              0 prunes, ~0
            📁 file              0 prunes, ~0
            ✅ todo              0 prunes, ~0"#]]
    .assert_eq(&empty.tape.state().stats(Seq::MAX).acp_block());
}

#[test]
fn equal_labels_are_told_apart() {
    use crate::text::HashTarget;
    let played = Script::parse("1 glob x ok\n1 grab x ok\n1 glob y ok").play(&Policy::default());
    let state = played.tape.state();
    let hashes: Vec<String> =
        state.items(Seq::MAX).filter_map(|ix| state.hash(ix, Seq::MAX, super::HashForm::Shown)).collect();
    let short = hashes.first().unwrap();
    assert!(hashes.get(1).unwrap().starts_with(short.as_str()) && hashes.get(1).unwrap().len() > short.len());
    let named = |text: &str| state.calls_by_hash(&HashTarget::parse(text).unwrap(), Seq::MAX).concat().len();
    assert_eq!((named(short), named(hashes.get(1).unwrap()), named(hashes.get(2).unwrap())), (2, 1, 1));
}

#[test]
fn a_tool_that_begins_with_an_underscore_has_a_hash_that_names_its_call() {
    use crate::text::HashTarget;
    let played = Script::parse("1 _mcp x ok").play(&Policy::default());
    let state = played.tape.state();
    let hash = state.items(Seq::MAX).find_map(|ix| state.hash(ix, Seq::MAX, super::HashForm::Shown)).unwrap();
    let target = HashTarget::parse(&hash).unwrap();
    assert_eq!(
        (state.calls_by_hash(&target, Seq::MAX).len(), state.knows_hash(&target)),
        (1, true),
        "{hash}"
    );
}

/// A model was shown `g_160cf` for one call and `g_160cfc` for another: discarding the first took both.
#[test]
fn a_hash_that_is_shown_means_the_calls_that_are_shown_with_it() {
    use crate::command::{Command, ContextAction, Target};
    let typed: [fn(String) -> Target; 2] = [Target::Auto, Target::Shown];
    for (wanted, typed) in [0, 1].into_iter().flat_map(|wanted| typed.map(|typed| (wanted, typed))) {
        let mut played = Script::parse("1 glob x ok\n1 grab x ok\n2 read z ok").play(&Policy::default());
        let hash = |place: usize| {
            let state = played.tape.state();
            let ix = state.items(Seq::MAX).nth(place).unwrap();
            state.hash(ix, Seq::MAX, super::HashForm::Shown).unwrap()
        };
        assert!(hash(1).starts_with(&hash(0)));
        let target = typed(hash(wanted).to_uppercase());
        let targets = vec![(target, None)];
        played
            .tape
            .command(&Command::Context { action: ContextAction::Discard, targets, pin: false })
            .unwrap();
        let state = played.tape.state();
        let hidden = |ix: &Ix| state.placeholder(*ix, Face::Output, Seq::MAX).is_some();
        let hidden: Vec<usize> =
            state.items(Seq::MAX).enumerate().filter(|(_, ix)| hidden(ix)).map(|(place, _)| place).collect();
        assert_eq!(hidden, [wanted]);
    }
}

/// The order of the log decided which of two calls has the short hash, though the first of them was off the branch.
#[test]
fn the_branch_decides_which_call_has_the_short_hash() {
    let played = Script::parse(
        "1 read z ok\n1 glob x ok\n2 grab x ok\n3 glob x ok\n3 rewind c1\n4 grab x ok\n5 glob x ok",
    )
    .play(&Policy::default());
    let state = played.tape.state();
    let length = |call: &str, at: Seq| {
        let ix = played.ix(call).unwrap();
        state.hash(ix, at, super::HashForm::Shown).unwrap().len()
    };
    let before = state.item_id(played.ix("c4").unwrap()).unwrap().seq;
    let (short, longer) = (length("c2", before), length("c3", before));
    assert!(short < longer && length("c4", before) == short);
    assert_eq!((length("c5", Seq::MAX), length("c6", Seq::MAX)), (short, longer));
}

/// A result whose call was never seen stayed when its task was completed, though it named the task.
#[test]
fn a_result_without_a_call_goes_with_its_task() {
    use crate::entry::Entry;
    use crate::event::TaskEvicted;
    let mut tape = crate::testing::Tape::of_test_tools("orphan");
    for (call, output) in [("x", "one\n\n<!-- sigma-task: T -->"), ("y", "two\n\n<!-- sigma-task: U -->")] {
        tape.entry(Entry::tool_completed(call, output));
    }
    tape.payload(TaskEvicted { task: "T".to_owned(), ..TaskEvicted::default() }, Vec::new());
    let state = tape.state();
    let shown = state.items(Seq::MAX).map(|ix| state.face(ix, Face::Output, Seq::MAX).state);
    assert_eq!(shown.collect::<Vec<_>>(), [crate::fold::FaceState::Tombstone, crate::fold::FaceState::Whole]);
}

/// The input of a cleared call was hidden by a newer call, and so a restore said that it had brought it back, each time anew.
#[test]
fn a_restore_says_nothing_of_what_the_host_cleared() {
    let policy = Policy::from_json(r#"{"hide_input":"metadata"}"#).unwrap();
    let mut played = Script::parse("1 read a ok\n2 read a ok\n3 clear c1").play(&policy);
    let targets = vec![(Target::Call("c1".to_owned()), None)];
    let restore = Command::Context { action: ContextAction::Restore, targets, pin: false };
    let decision = played.tape.command(&restore).unwrap();
    assert_eq!((decision.reply.as_str(), decision.drafts.len()), ("Restored 0 tool(s)", 0));
}

/// The host's first text stayed, whichever text it sent later.
#[test]
fn what_the_host_clears_again_has_its_newest_text() {
    let mut tape = Tape::of_test_tools("cleared");
    let call = ItemId::first(tape.entry(Entry::tool_started("c1", "read", r#"{"filePath":"a"}"#)));
    tape.entry(Entry::tool_completed("c1", "what the file says"));
    let mut heads = Vec::new();
    for text in ["[cleared]", "[cleared again]"] {
        let (items, text) = (vec![ItemRef::Id(call)], Some(text.as_bytes().into()));
        heads.push(tape.entry(fact::HostCleared { items, calls: Vec::new(), text }));
    }
    let state = tape.state();
    let ix = state.find(call).unwrap();
    let shown = heads.iter().map(|at| {
        let placeholder = state.placeholder(ix, Face::Output, *at).unwrap();
        crate::fold::render(&placeholder, &TestTools, &|body| tape.body(body)).unwrap()
    });
    assert_eq!(shown.collect::<Vec<_>>(), ["[cleared]", "[cleared again]"]);
}
