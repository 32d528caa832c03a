//! Laws that hold for any script under any preset.

use proptest::prelude::*;

use crate::event::Face;
use crate::fold::policy::PRESETS;
use crate::fold::{CauseView, FaceState, Policy, State, Status};
use crate::ids::Seq;
use crate::testing::script::Played;
use crate::testing::{Script, Step};

pub(super) fn scripts(longest: usize) -> impl Strategy<Value = Script> {
    prop::collection::vec(any::<u16>(), 0..longest).prop_map(|numbers| Script::from_numbers(&numbers))
}

/// A policy that prints as the keys that differ from its preset.
#[derive(Clone)]
pub(super) struct Rules(pub(super) Policy);

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.compact())
    }
}

pub(super) fn presets() -> impl Strategy<Value = Rules> {
    let keys = prop::sample::select(vec![
        "{}",
        r#"{"turn_protection":true,"turn_protection.turns":2}"#,
        r#"{"purge_errors":true,"truncate":true,"truncate.max_tokens":10,"hide_input":"metadata"}"#,
        r#"{"file.edit_quiet_steps":2,"task.outputs_max":1}"#,
    ]);
    (prop::sample::select(PRESETS), keys).prop_map(|(name, keys)| {
        let mut policy = Policy::preset(name).unwrap();
        let keys: serde_json::Value = serde_json::from_str(keys).unwrap();
        policy.change(keys.as_object().unwrap()).unwrap();
        Rules(policy)
    })
}

/// The script as its text, for a failure's report.
pub(super) fn text_of(script: &Script) -> String {
    script.steps.iter().map(|step| format!("{} {}\n", step.turn, step.what)).collect()
}

/// The first thing that two reads see differently.
fn difference(one: (&State, Seq), other: (&State, Seq)) -> Option<String> {
    if one.0.digest(one.1) == other.0.digest(other.1) {
        return None;
    }
    let seen = |(state, at): (&State, Seq)| {
        let mut parts = Vec::new();
        state.each_visible(at, &mut |part, json| {
            parts.push(format!("{part} {}", String::from_utf8_lossy(&json)));
        });
        parts
    };
    let (one, other) = (seen(one), seen(other));
    let differs = one.iter().zip(&other).find(|(one, other)| one != other);
    differs.map_or_else(|| Some("lengths".to_owned()), |(one, other)| Some(format!("{one}\n{other}")))
}

fn each_item(state: &State, at: Seq, mut judge: impl FnMut(crate::fold::ItemView)) {
    for ix in state.items(at) {
        judge(state.item(ix, at).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::testing::cases(96), ..ProptestConfig::default() })]

    /// A read at any seq equals a fold of the events up to there.
    #[test]
    fn reading_at_a_seq_is_folding_the_prefix(script in scripts(48), policy in presets()) {
        let played = script.play(&policy.0);
        let whole = played.tape.state();
        for recorded in played.tape.events() {
            let prefix = played.tape.refold(recorded.seq);
            let prefix = prefix.stream(played.tape.stream()).unwrap();
            if let Some(difference) = difference((whole, recorded.seq), (prefix, recorded.seq)) {
                prop_assert!(false, "at {} of\n{}{}", recorded.seq, text_of(&script), difference);
            }
            if let Some(difference) = difference((prefix, recorded.seq), (prefix, Seq::MAX)) {
                prop_assert!(false, "head {} of\n{}{}", recorded.seq, text_of(&script), difference);
            }
        }
    }

    /// A cause is later than the face that it hides; a superseder has completed and is on the branch; figures add up.
    #[test]
    fn causes_are_later_and_figures_add_up(script in scripts(64), policy in presets()) {
        let played = script.play(&policy.0);
        let state = played.tape.state();
        for at in played.tape.events().iter().map(|recorded| recorded.seq) {
            let mut whole = 0;
            let mut shown = 0;
            each_item(state, at, |item| {
                for view in [&item.input, &item.output] {
                    if item.in_context && view.state != FaceState::Absent {
                        whole += view.tokens;
                        shown += view.tokens_shown;
                    }
                    assert!(view.state != FaceState::Tombstone || view.cause.is_some());
                    if let Some(CauseView::Superseded { by: Some(by), seq, .. }) = view.cause {
                        // Under turn protection a later call may finish first, but no edge is older than its ends.
                        assert!(Some(seq) >= item.finished && seq <= at, "{}", text_of(&script));
                        let by = state.item(state.find(by).unwrap(), at).unwrap();
                        let is_call = by.status.is_some();
                        assert!(!is_call || by.status == Some(Status::Completed), "{}", text_of(&script));
                        assert!(!is_call || by.finished <= Some(seq), "{}", text_of(&script));
                        assert!(!matches!(by.input.cause, Some(CauseView::OffBranch { .. })), "{}", text_of(&script));
                    }
                }
            });
            let total = state.tokens(at);
            prop_assert_eq!((total.whole, total.shown), (whole, shown), "at {} of\n{}", at, text_of(&script));
            let stats = state.stats(at);
            prop_assert_eq!(stats.freed() + total.shown, total.whole, "at {} of\n{}", at, text_of(&script));
            let edges: u64 = state.edges(at).iter().map(|edge| edge.tokens_freed).sum();
            let by_rule: u64 = stats
                .kinds
                .iter()
                .filter(|(kind, _)| matches!(kind, crate::fold::StatsKind::Rule(rule) if *rule != crate::fold::RuleKind::INJECTED))
                .map(|(_, stats)| stats.freed)
                .sum();
            prop_assert_eq!(edges, by_rule);
        }
    }

    /// Hidden and shown again: the same faces and the same place as before.
    #[test]
    fn restore_undoes_discard(script in scripts(32), policy in presets(), distill in any::<bool>()) {
        let before = script.play(&policy.0);
        let state = before.tape.state();
        for ix in state.items(Seq::MAX) {
            let item = state.item(ix, Seq::MAX).unwrap();
            let free = item.in_context && item.output.cause.is_none() && item.input.cause.is_none();
            if item.status != Some(Status::Completed) || !free || state.is_protected_tool(ix) {
                continue;
            }
            let name = before.name(item.item);
            let turn = script.steps.last().map_or(1, |step| step.turn);
            let verb = if distill { "distill" } else { "discard" };
            let mut longer = script.clone();
            for verb in [verb, "restore"] {
                longer.steps.push(Step { turn, what: format!("{verb} {name}") });
            }
            let after = longer.play(&policy.0);
            let again = after.tape.state();
            prop_assert_eq!(&again.item(ix, Seq::MAX).unwrap().output, &item.output, "{} of\n{}", name, text_of(&script));
            prop_assert_eq!(again.current(Seq::MAX), state.current(Seq::MAX));
            prop_assert_eq!(again.content(ix, Seq::MAX), state.content(ix, Seq::MAX));
        }
    }

    /// Without rules nothing is superseded; protection only takes edges away.
    #[test]
    fn rules_alone_make_edges(script in scripts(64)) {
        let mut script = script;
        script.steps.retain(|step| !step.what.starts_with("policy"));
        let without = Policy::from_json(r#"{"automatic":false}"#).unwrap();
        prop_assert!(script.play(&without).tape.state().edges(Seq::MAX).is_empty());
        let open = Policy::from_json(r#"{"protected_tools":[],"protected_files":[]}"#).unwrap();
        let guarded = Policy::from_json(r#"{"protected_tools":["read","edit"],"protected_files":["**/a"]}"#).unwrap();
        // Restores and commands depend on hidden items, so only recorded calls are compared.
        script.steps.retain(|step| !["restore", "keep", "discard", "distill", "pin", "unpin"].iter().any(|verb| step.what.starts_with(verb)));
        let hidden = |policy: &Policy| -> std::collections::BTreeSet<_> {
            script.play(policy).tape.state().edges(Seq::MAX).into_iter().map(|edge| edge.old).collect()
        };
        prop_assert!(hidden(&guarded).is_subset(&hidden(&open)), "{}", text_of(&script));
    }

    /// Protected and pinned items are never superseded by a rule while their protection holds.
    #[test]
    fn protected_items_stay(script in scripts(64)) {
        let mut script = script;
        script.steps.retain(|step| !step.what.starts_with("policy"));
        let policy = Policy::from_json(r#"{"preset":"acp-head","protected_tools":["edit"]}"#).unwrap();
        let played = script.play(&policy);
        let state = played.tape.state();
        for edge in state.edges(Seq::MAX) {
            let ix = state.find(edge.old).unwrap();
            let item = state.item(ix, Seq::MAX).unwrap();
            prop_assert!(item.tool.as_deref() != Some("edit"), "{}", text_of(&script));
            let names_file = item.class != Some(crate::event::ToolClass::Other);
            let is_secret = names_file && item.keys.iter().any(|key| key.as_ref() == ".env");
            prop_assert!(!is_secret, "{}", text_of(&script));
            prop_assert!(!state.item(ix, Seq(edge.seq.0 - 1)).unwrap().pinned, "{}", text_of(&script));
        }
    }
}

/// The canary: a state that answers differently has another digest.
#[test]
fn a_digest_tells_states_apart() {
    let play = |text: &str| -> Played { Script::parse(text).play(&Policy::default()) };
    let one = play("1 read a ok\n2 read a ok");
    let other = play("1 read a ok\n2 read b ok");
    assert_ne!(one.tape.state().digest(Seq::MAX), other.tape.state().digest(Seq::MAX));
    let head = one.tape.head();
    assert_ne!(one.tape.state().digest(head), one.tape.state().digest(Seq(head.0 - 1)));
    let face =
        |played: &Played| played.tape.state().face(played.ix("c1").unwrap(), Face::Output, Seq::MAX).state;
    assert_eq!((face(&one), face(&other)), (FaceState::Tombstone, FaceState::Whole));
}
