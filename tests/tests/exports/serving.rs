//! Laws of serving, over lives of every kind of event: a request begins with the bytes of the one before, until a
//! rebase says otherwise; every context can be made again; budgets are kept, or a reason is given.

use std::sync::Arc;

use acpdb_engine::event::RebaseCause;
use acpdb_engine::fold::Policy;
use acpdb_engine::fold::policy::ServeMode;
use acpdb_engine::ids::Seq;
use acpdb_engine::storage::SimWorld;
use acpdb_engine::{At, MemoryScope, Store};
use acpdb_hosts::export::{Exporter, Format};
use acpdb_hosts::lint::{RequestFacts, lint};
use acpdb_serve::{Context, ServeOptions, ServedAgain, Step};
use acpdb_tests::adjacency::complaints;
use acpdb_tests::support::{cases, fixed};
use proptest::prelude::*;

use super::life::Life;

fn store(world: &SimWorld, process: u32) -> Store {
    let builder = Store::builder("/sim").storage(Arc::new(world.process(process)));
    fixed(builder.registry(acpdb_hosts::registry()), 7).open().unwrap()
}

/// The bytes without those at the end that only close arrays and objects.
fn open_end(bytes: &[u8]) -> &[u8] {
    let closing = bytes.iter().rev().take_while(|byte| matches!(byte, b']' | b'}')).count();
    &bytes[..bytes.len() - closing]
}

/// Whether anything is said in a request. One without is refused by every provider, so nothing is cached that begins with it;
/// and the system's texts before the user and the model go to the head where the format has one.
fn has_messages(bytes: &[u8]) -> bool {
    let body: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    ["messages", "contents", "input"]
        .iter()
        .any(|name| body[name].as_array().is_some_and(|all| !all.is_empty()))
}

#[derive(Default, Debug)]
struct Seen {
    prefixes: usize,
    rebased: usize,
    injected: usize,
    over_budget: usize,
    within_budget: usize,
}

/// Serves a life after each act, and holds each context against the one before it.
fn check(numbers: &[u16], mode: ServeMode, format: Format, preset: &str, seen: &mut Seen) {
    let world = SimWorld::new(3);
    let mut life = Life::new(store(&world, 1), "claude-opus-4-5");
    life.begin();
    let mut policy = Policy::preset(preset).unwrap();
    policy.turn_protection.enabled = false;
    if preset == "calm" {
        policy.change(super::life::every_age().as_object().unwrap()).unwrap();
    }
    life.store.set_policy(Some(life.info.id()), &policy, None).unwrap();
    let session = life.store.session(life.info.clone());
    let exporter = Exporter::new(format);
    let mut before: Option<Context> = None;
    let mut sent: Vec<(Seq, Vec<u8>)> = Vec::new();
    for (place, number) in numbers.iter().enumerate() {
        let context = format!("{numbers:?} {mode:?} {format} {preset} at {place}");
        life.act(*number);
        if number % 5 == 0 {
            let entry = acpdb_engine::entry::MemoryEntry {
                value: format!("remember {number}"),
                confidence: 90,
                ..Default::default()
            };
            let scope = MemoryScope::session(session.id());
            let command = acpdb_engine::command::memory::MemoryCommand::Add(entry);
            let _ = life.store.remember(&scope, &command).unwrap();
        }
        // A host asks when no call is open.
        life.finish(false);
        let tokens_max = (number % 7 == 0).then(|| u64::from(number % 400));
        let options = ServeOptions {
            mode: Some(mode),
            inject: number % 2 == 0,
            tokens_max,
            cold: number % 31 == 0,
            ..ServeOptions::default()
        };
        let now =
            Step::begin(&session, format!("serve-{place}")).unwrap().context(&exporter, &options).unwrap();
        let findings = lint(format, &now.bytes, RequestFacts::default());
        assert_eq!(findings, [], "{context}: {}", String::from_utf8_lossy(&now.bytes));
        let body = serde_json::from_slice(&now.bytes).unwrap();
        assert_eq!(complaints(format.name(), &body), [""; 0], "{context}");
        if let Some(tokens_max) = tokens_max {
            assert_eq!(now.tokens > tokens_max, now.over_budget.is_some(), "{context}");
            seen.over_budget += usize::from(now.over_budget.is_some());
            seen.within_budget += usize::from(now.over_budget.is_none());
        }
        seen.injected += String::from_utf8_lossy(&now.bytes).matches("[memory").count();
        match (&before, now.rebased) {
            (Some(before), None) => {
                // A new prompt is a new beginning: the cache begins with it.
                let view = session.view().unwrap();
                let prompts = |seq: Seq| view.state().prompts(seq).len();
                let same_head = prompts(before.seq) == prompts(now.seq) && has_messages(&before.bytes);
                assert!(
                    !same_head || now.bytes.starts_with(open_end(&before.bytes)),
                    "{context}:\n{}\n{}",
                    String::from_utf8_lossy(&before.bytes),
                    String::from_utf8_lossy(&now.bytes)
                );
                seen.prefixes += usize::from(same_head);
            }
            (Some(_), Some(cause)) => {
                // Acts of the host cannot wait; the rules of an append-only context do.
                if mode == ServeMode::AppendOnly {
                    assert!(
                        matches!(cause, RebaseCause::Asked | RebaseCause::Budget),
                        "{context}: {cause:?}"
                    );
                }
                seen.rebased += 1;
            }
            (None, _) => {}
        }
        sent.push((now.seq, now.bytes.clone()));
        before = Some(now);
    }
    // Another process, later, gives the very bytes again.
    let other = store(&world, 2);
    for (seq, bytes) in sent {
        let again = ServedAgain::find(&other, life.info.id(), &At::Seq(seq), &[&exporter]).unwrap();
        assert!(again.is_same && again.bytes == bytes, "{numbers:?} {mode:?} {format} {preset}: {seq}");
    }
}

#[test]
fn what_is_sent_begins_with_what_was_sent() {
    let mut seen = Seen::default();
    let seen_by = std::cell::RefCell::new(&mut seen);
    let config = ProptestConfig { cases: cases(40), failure_persistence: None, ..ProptestConfig::default() };
    let numbers = prop::collection::vec(any::<u16>(), 1..20);
    let presets = prop::sample::select(vec!["acp", "economy", "balanced", "acp-head", "calm", "safe"]);
    proptest!(config, |(
        numbers in numbers,
        mode in prop::sample::select(ServeMode::ALL.to_vec()),
        format in prop::sample::select(Format::REQUESTS.to_vec()),
        preset in presets,
    )| check(&numbers, mode, format, preset, &mut seen_by.borrow_mut()));
    println!("{seen:?}");
    // Laws that never had a case prove nothing.
    assert!(seen.prefixes > 20 && seen.rebased > 5 && seen.injected > 5, "{seen:?}");
    assert!(seen.over_budget > 0 && seen.within_budget > 0, "{seen:?}");
}

#[test]
fn lives_that_once_broke_it() {
    for numbers in [
        // A rewind took the answer of a call that had been sent with it: the call was left out, and no report said so.
        vec![3027, 5595, 490, 682, 5824, 34515],
        // A revision was as long as the text that it revised, and passed for the same.
        vec![51287, 52343],
        // Another system prompt: the cached bytes begin otherwise.
        vec![0, 14901],
        // Nothing had been said yet when it was asked for first; then the system spoke before the user and the model.
        vec![58835, 10584],
    ] {
        for format in Format::REQUESTS {
            check(&numbers, ServeMode::AppendOnly, format, "acp", &mut Seen::default());
        }
    }
    // A later policy without pointers took those back that had been sent.
    let numbers = [12776, 11240, 54782, 37980, 21322, 30474, 16097, 30267];
    for mode in ServeMode::ALL {
        check(&numbers, *mode, Format::Anthropic, "economy", &mut Seen::default());
    }
}

#[test]
fn a_provider_that_clears_by_itself_is_told_the_policy_and_sent_everything() {
    use acpdb_engine::entry::Entry;
    use acpdb_hosts::export::{ExportChoices, LeftOut, export};
    let world = SimWorld::new(3);
    let mut life = Life::new(store(&world, 1), "claude-opus-4-5");
    life.begin();
    let mut policy = Policy::preset("economy").unwrap();
    policy.hide_input = acpdb_engine::fold::HideInput::Changes;
    policy.compress_reasoning.on = true;
    policy.turn_protection.enabled = true;
    policy.turn_protection.turns = 5;
    life.store.set_policy(Some(life.info.id()), &policy, None).unwrap();
    for (number, tool) in ["read", "write", "read"].into_iter().enumerate() {
        let call = format!("c{number}");
        let params = r#"{"file_path":"/a","content":"x"}"#;
        let entries = vec![
            Entry::step(&call),
            Entry::tool_started(&call, tool, params),
            Entry::tool_completed(&call, format!("all of {number}")),
        ];
        let _ = life.store.append(&life.info, entries).unwrap();
    }
    let view = life.store.view(life.info.id()).unwrap();
    let options = ExportChoices { server_side: true, ..ExportChoices::default() };
    let body = |format| export(&view, format, &options).unwrap();
    let sent = body(Format::Anthropic);
    let value: serde_json::Value = serde_json::from_slice(&sent.bytes).unwrap();
    let edits = &value["context_management"]["edits"];
    // Thinking has to come first.
    assert_eq!(edits[0]["type"], "clear_thinking_20251015");
    assert_eq!(edits[1]["type"], "clear_tool_uses_20250919");
    assert_eq!(edits[1]["keep"], serde_json::json!({"type": "tool_uses", "value": 5}));
    assert_eq!(edits[1]["clear_tool_inputs"], true);
    let excluded = edits[1]["exclude_tools"].as_array().unwrap();
    assert!(excluded.iter().any(|tool| tool == "todowrite"), "{excluded:?}");
    assert_eq!(sent.report.reasons[&LeftOut::FilesUnprotected].names, policy.protected_files.patterns());
    let text = String::from_utf8_lossy(&sent.bytes).into_owned();
    assert!((0..3).all(|number| text.contains(&format!("all of {number}"))), "everything is sent: {text}");
    // Others cannot, and it is said.
    for format in [Format::Openai, Format::Responses, Format::Gemini] {
        let sent = body(format);
        assert_eq!(sent.report.count(LeftOut::ServerSide), 1, "{format}");
        assert!(!String::from_utf8_lossy(&sent.bytes).contains("context_management"), "{format}");
    }
}
