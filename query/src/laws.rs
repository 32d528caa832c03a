//! Laws over random scripts: the answers of all questions agree, at every seq.

use std::sync::Arc;

use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::storage::SimWorld;
use acpdb_engine::testing::TestTools;
use acpdb_engine::{Builder, Store};
use proptest::prelude::*;

use crate::testing::{play, store, view};
use crate::*;

/// A script of a few turns over few files, so that calls meet often.
fn script() -> impl Strategy<Value = String> {
    let file = prop::sample::select(vec!["/a", "/b", "/c"]);
    let tool = prop::sample::select(vec!["read", "write", "edit", "grep", "bash"]);
    let outcome = prop::sample::select(vec!["ok", "ok", "ok", "failed", "pending"]);
    let call = (tool, file, outcome).prop_map(|(tool, file, outcome)| format!("{tool} {file} {outcome}"));
    let line = prop_oneof![5 => call, 3 => Just("turn".to_owned()), 1 => Just("user go on".to_owned())];
    prop::collection::vec(line, 1..24).prop_map(|lines| lines.join("\n"))
}

/// A script with acts on its calls, whose ids are the numbers of their lines.
fn acting() -> impl Strategy<Value = String> {
    let verb = prop::sample::select(vec!["discard", "discard", "distill", "restore", "pin", "rewind"]);
    let act = (verb, 0_usize..24).prop_map(|(verb, call)| format!("act {verb} s-{call}"));
    (script(), prop::collection::vec((0_usize..24, act), 1..8)).prop_map(|(script, acts)| {
        let mut lines: Vec<String> = script.lines().map(str::to_owned).collect();
        for (place, act) in acts {
            lines.insert(place.min(lines.len()), act);
        }
        lines.join("\n")
    })
}

/// A handle on a simulated machine, without an index.
fn handle(world: &SimWorld, process: u32) -> Builder {
    let builder = Store::builder("/sim").storage(Arc::new(world.process(process)));
    builder.registry(Arc::new(TestTools)).index(false)
}

/// A filter was settled for each session anew, with a look at all of them: of 1,250 sessions it took ten seconds.
#[test]
fn a_question_about_twice_the_sessions_reads_at_most_twice_as_much() {
    let worlds = [16, 32].map(|count| {
        let world = SimWorld::new(7);
        let store = handle(&world, 1).open().unwrap();
        for number in 0..count {
            play(&store, &format!("s{number:02}"), "user go on\nturn\nread /a ok\nbash make failed");
        }
        store.close().unwrap();
        world
    });
    let reads = |ask: &dyn Fn(&Store)| {
        worlds.each_ref().map(|world| {
            let store = handle(world, 2).read_only().open().unwrap();
            let before = world.read_count();
            ask(&store);
            world.read_count() - before
        })
    };
    let filter = |text: &str| filter::Filter::parse(text, Micros(1_800_000_000_000_000)).unwrap();
    for text in ["", "since:1h", "host:acpdb tool:read", "session:s", "text:make", "status:failed"] {
        let rows = |store: &Store| {
            assert!(sessions(store, Seq::MAX, &filter(text)).unwrap().all(|row| row.is_ok()));
        };
        let lines = |store: &Store| {
            let question = EventsQuestion { filter: filter(text), ..EventsQuestion::default() };
            assert!(events::events(store, question).unwrap().all(|event| event.is_ok()));
        };
        let item = |store: &Store| assert!(find(store, "s03-3", None).is_ok());
        let asks = [("sessions", &rows as &dyn Fn(&Store)), ("events", &lines), ("find", &item)];
        for (name, ask) in asks {
            let [few, many] = reads(ask);
            assert!(few > 0 && many <= 2 * few + few / 4 + 8, "{name} {text}: {few} reads, then {many}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn answers_agree_with_each_other_at_every_seq(script in script()) {
        let store = store();
        let session = play(&store, "s", &script);
        let head = view(&store, &session);
        for seq in session_seqs(head.state().first(), head.at()) {
            let view = head.with_at(seq);
            let rows = items(&view, &session.name, Which::All);
            let shown: u64 = rows.iter().map(|row| row.tokens_shown).sum();
            let context = context(&store, &view, Window::default(), Micros(0)).unwrap();
            prop_assert_eq!(shown, context.tokens_shown);
            prop_assert_eq!(context.items.iter().map(|item| item.row.tokens).sum::<u64>(), context.tokens_whole);
            let stats = stats([("host", &view)]);
            prop_assert_eq!(stats.total.tokens_freed, context.tokens_freed);
            prop_assert_eq!(stats.items.iter().map(|row| row.freed).sum::<u64>(), stats.total.tokens_freed);
            let superseded = rows.iter().filter(|row| row.rule.is_some()).count() as u64;
            prop_assert_eq!(stats.total.superseded, superseded);
            prop_assert_eq!(half_time(&view).now.shown, context.tokens_shown);
        }
    }

    /// A read that was discarded and then superseded counted under `discard`, its tokens under `file`, and `explain` told of the
    /// file; items that were shown again counted as superseded, and no other answer said so.
    #[test]
    fn figures_and_reasons_agree_after_every_act(script in acting()) {
        let store = store();
        let session = play(&store, "s", &script);
        let head = view(&store, &session);
        for seq in session_seqs(head.state().first(), head.at()) {
            let view = head.with_at(seq);
            let stats = stats([("host", &view)]);
            let explained = items(&view, &session.name, Which::All).into_iter().map(|row| {
                let ix = view.state().find(row.item.parse().unwrap()).unwrap();
                (explain(&view, &session.name, ix).unwrap(), row)
            });
            let (mut edged, mut again) = (0_u64, 0_u64);
            let mut by_rule = std::collections::BTreeMap::<&str, u64>::new();
            let mut by_cause = std::collections::BTreeMap::<&str, u64>::new();
            for (explained, row) in explained {
                prop_assert_eq!(&explained.row, &row);
                let held = explained.edges_to_newer.iter().filter(|edge| !edge.released).count();
                edged += u64::from(!explained.edges_to_newer.is_empty());
                again += u64::from(held == 0 && !explained.edges_to_newer.is_empty());
                prop_assert_eq!(row.rule.is_some(), held > 0, "{}", row.item);
                if let Some(first) = explained.edges_to_newer.first() {
                    *by_rule.entry(first.rule.label()).or_default() += 1;
                }
                if row.in_context && row.tokens > row.tokens_shown {
                    *by_cause.entry(row.cause.unwrap_or_default()).or_default() += row.tokens - row.tokens_shown;
                }
            }
            prop_assert_eq!((stats.total.superseded, stats.total.shown_again), (edged, again));
            for row in &stats.items {
                let label = row.kind.label();
                if matches!(row.kind, acpdb_engine::fold::StatsKind::Rule(_)) {
                    prop_assert_eq!(row.count, by_rule.remove(label).unwrap_or_default(), "{} at {}", label, seq);
                    prop_assert_eq!(row.freed, by_cause.remove(label).unwrap_or_default(), "{} at {}", label, seq);
                } else {
                    let cause = format!("{label}ed");
                    prop_assert_eq!(row.freed, by_cause.remove(cause.as_str()).unwrap_or_default(), "{} at {}", label, seq);
                }
            }
            prop_assert!(by_rule.is_empty() && by_cause.is_empty(), "{:?} {:?}", by_rule, by_cause);
        }
    }

    #[test]
    fn every_item_is_found_by_its_names_and_its_chain_holds_what_superseded_it(script in script()) {
        let store = store();
        let session = play(&store, "s", &script);
        let view = view(&store, &session);
        for row in items(&view, &session.name, Which::All) {
            let found = find(&store, &row.item, None).unwrap();
            prop_assert_eq!(found.item.to_string(), row.item.clone());
            let ix = found.ix.unwrap();
            if let Some(call) = &row.call {
                prop_assert_eq!(find(&store, call, None).unwrap().ix, Some(ix));
            }
            if let Some(finish) = found.finish {
                prop_assert_eq!(find(&store, &finish.to_string(), None).unwrap().ix, Some(ix));
            }
            let chain = chain(&view, &session.name, ix).unwrap();
            prop_assert!(chain.members.contains(&row));
            prop_assert!(chain.members.is_sorted_by_key(|member| member.seq));
            if let Some(by) = &row.superseded_by {
                prop_assert!(chain.members.iter().any(|member| member.item == *by));
            }
            let explained = explain(&view, &session.name, ix).unwrap();
            prop_assert_eq!(explained.edge.is_some(), row.rule.is_some());
            prop_assert!(!explained.visible || row.is_visible());
        }
    }
}

fn session_seqs(first: Seq, head: Seq) -> impl Iterator<Item = Seq> {
    (first.get()..=head.get()).map(Seq)
}
