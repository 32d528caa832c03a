//! A fork has the history that it shares: its items are found in it, with the times of their host.

use acpdb_engine::View;
use acpdb_engine::entry::{Entry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{ReplaceCause, Report, Role, Usage};
use acpdb_engine::ids::Micros;
use acpdb_engine::store::StreamName;
use serde_json::Value;

use super::*;
use crate::export::{otlp, page, rows};
use crate::search::{PatternSyntax, Patterns, SearchQuestion, search, search_whole};
use crate::testing::store;
use crate::{Filter, FindError, Scanned, blame, explain, find, settled, when};

/// The second of an event, as its host tells it.
const fn second(second: i64) -> Micros {
    Micros(1_770_000_000_000_000 + second * 1_000_000)
}

fn forked(store: &Store, name: &str, from: &str, at: u64, more: Vec<Entry>) {
    let from = store.find_stream(from).unwrap().id;
    let forked = fact::Forked { from, at: PointRef::Seq(Seq(at)) };
    let info = StreamInfo::session("acpdb", name);
    let _ = store.append(&info, [vec![Entry::from(forked)], more].concat()).unwrap();
}

/// A session of a minute, a fork of it, and a fork of the fork.
fn told() -> Store {
    let store = store();
    let finished = fact::MessageFinished {
        key: "m2".to_owned(),
        report: Report {
            model: Some("claude-x".to_owned()),
            usage: Usage { input: Some(9), ..Usage::default() },
            ..Report::default()
        },
    };
    let compacted =
        fact::ContextReplaced { cause: ReplaceCause::Compaction, order: Vec::new(), tokens_before: None };
    let entries = vec![
        // #2 opens the session.
        Entry::step("").at(Some(second(0))), // #3
        Entry::message("m1", Role::User, "owl words").at(Some(second(10))), // #4
        Entry::tool_started("c1", "read", "{}").at(Some(second(20))), // #5
        Entry::tool_completed("c1", "a line\n".repeat(50)).at(Some(second(25))), // #6
        Entry::from(finished).at(Some(second(30))), // #7
        Entry::from(compacted).at(Some(second(40))), // #8
        Entry::message("m3", Role::User, "later words").at(Some(second(50))), // #9
    ];
    let _ = store.append(&StreamInfo::session("acpdb", "s"), entries).unwrap();
    forked(&store, "f", "s", 8, vec![Entry::message("m4", Role::User, "owl of f").at(Some(second(60)))]);
    let head = store.head().unwrap().get();
    forked(&store, "g", "f", head, vec![Entry::message("m5", Role::User, "owl of g").at(Some(second(70)))]);
    store
}

fn opened(store: &Store, name: &str) -> (StreamName, View) {
    let stream = store.find_stream(name).unwrap();
    let view = store.view(stream.id).unwrap();
    (stream, view)
}

#[test]
fn a_fork_of_a_fork_has_three_parts() {
    let store = told();
    let name = |part: &LineageStream| (store.stream_name(part.stream).unwrap().unwrap().name, part.to.get());
    let parts = |session: &str, to: u64| {
        let parts = lineage(&store, store.find_stream(session).unwrap().id, Seq(to)).unwrap();
        parts.iter().map(name).collect::<Vec<_>>()
    };
    let part = |name: &str, to: u64| (name.to_owned(), to);
    assert_eq!(parts("s", 99), [part("s", 99)]);
    assert_eq!(parts("f", 99), [part("s", 8), part("f", 99)]);
    assert_eq!(parts("g", 99), [part("s", 8), part("f", 12), part("g", 99)]);
    assert_eq!(parts("g", 5), [part("s", 5), part("f", 5), part("g", 5)]);
    let seqs = events(&store, store.find_stream("g").unwrap().id, Seq::MAX).unwrap();
    let seqs: Vec<u64> = seqs.map(|recorded| recorded.unwrap().seq.get()).collect();
    assert_eq!(seqs, [2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15]);
}

/// Exports read the events of the fork alone: all that it shared happened when it was forked.
#[test]
fn what_a_fork_shares_is_exported_with_its_hosts_times() {
    let store = told();
    for session in ["f", "g"] {
        let (stream, view) = opened(&store, session);
        let mut out = Vec::new();
        rows::lines(&store, &view, &stream, &mut out, &mut rows::RowsReport::default()).unwrap();
        let rows: Vec<Value> =
            String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows[0]["time"], second(10).get(), "{session}");
        assert_eq!(
            (&rows[1]["time"], &rows[1]["finished_time"]),
            (&second(20).get().into(), &second(25).get().into())
        );

        let mut out = Vec::new();
        let options = otlp::SpanOptions::default();
        otlp::spans(&store, &view, options, &mut out, &mut otlp::SpansReport::default()).unwrap();
        let told: Value = serde_json::from_slice(&out).unwrap();
        let spans = told["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let named = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
        let nanos = |time: Micros| (time.get() * 1000).to_string();
        let call = named("execute_tool read");
        assert_eq!(call["startTimeUnixNano"], nanos(second(20)));
        assert_eq!(call["endTimeUnixNano"], nanos(second(25)));
        // Its usage counts once, with the session that asked.
        let chat = named("chat claude-x");
        assert_eq!(chat["startTimeUnixNano"], nanos(second(0)));
        assert!(!chat.to_string().contains("gen_ai.usage.input_tokens"), "{chat}");

        let mut out = Vec::new();
        page::page(&store, &view, Micros(0), &page::PageOptions::default(), &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains(&format!("\"began\":{}", second(10).get())), "{session}");
    }
}

/// An item of a fork that its parent had recorded was "of session s, not of f", and found by no search of the fork.
#[test]
fn what_a_fork_shares_is_found_in_it() {
    let store = told();
    let (own, view) = opened(&store, "g");
    let found = find(&store, "#5", Some(&own)).unwrap();
    assert_eq!((found.stream.name.as_str(), found.finish), ("g", Some(Seq(6))));
    // The end of a call means the call; an event without an item is found, too.
    assert_eq!(find(&store, "#6", Some(&own)).unwrap().ix, found.ix);
    assert_eq!(find(&store, "#3", Some(&own)).unwrap().ix, None);
    assert!(explain(&view, "g", found.ix.unwrap()).is_some());
    let steps = blame::item(&store, &view, "g", found.ix.unwrap()).unwrap().unwrap().items;
    let steps: Vec<_> = steps.iter().map(|step| (step.seq.get(), step.time)).collect();
    assert_eq!(steps, [(5, Some(second(20))), (6, Some(second(25))), (8, Some(second(40)))]);
    // An event behind the point of the fork is none of its own.
    for seq in ["#9", "#15"] {
        let (fork, _) = opened(&store, "f");
        assert!(matches!(find(&store, seq, Some(&fork)), Err(FindError::OtherSession { .. })), "{seq}");
    }

    let question = SearchQuestion {
        patterns: Patterns::new(&["owl".to_owned()], PatternSyntax::default()).unwrap(),
        filter: Filter::default(),
        at: Seq::MAX,
        context: 0,
        places: 1,
    };
    let mut hits = Vec::new();
    let mut take = |hit: crate::search::SearchHit| {
        hits.push(format!("{} {}", hit.session, hit.item));
        true
    };
    search_whole(&store, &own, &question, &mut Scanned::default(), &mut take).unwrap();
    search(&store, &own, &question, &mut Scanned::default(), &mut take).unwrap();
    assert_eq!(hits, ["g #4", "g #12", "g #15", "g #15"]);

    let point = when::parse("@compact-1", Micros(0)).unwrap();
    assert_eq!(when::within(&store, &view, "g", point, Micros(0)).unwrap().seq, Seq(7));
    let point = when::Point::Time(second(20));
    assert_eq!(when::within(&store, &view, "g", point, second(99)).unwrap().seq, Seq(5));
    let model = settled(&store, Filter::parse("model:claude", Micros(0)).unwrap()).unwrap();
    for session in ["s", "f", "g"] {
        assert!(crate::may_hold(&model, &store.find_stream(session).unwrap()), "{session}");
    }
}
