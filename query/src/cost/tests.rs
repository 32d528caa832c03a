//! Bills over small stores: which requests count, once, and under which name.

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Report, Scope, Usage, stream_id};
use acpdb_engine::ids::{Micros, Seq};
use expect_test::{Expect, expect};

use super::*;
use crate::Filter;
use crate::testing::store;

const DAY: i64 = 86_400_000_000;
/// 2026-11-02, a Monday.
const START: i64 = 20_759 * DAY;

fn usage(counts: [u64; 5]) -> Usage {
    let [input, read, write, long, output] = counts.map(|count| count * 1000);
    Usage {
        input: Some(input),
        output: Some(output),
        cache_read: Some(read),
        cache_write: Some(write + long),
        cache_write_long: Some(long),
        reasoning: None,
        searches: None,
    }
}

/// The end of a message: `key model day input read write long output [request=ID] [tier=NAME] [cost=MILLIONTHS]`, counts in
/// thousands; one count is output. A day of `-` is no time.
fn finish(line: &str) -> Entry {
    let mut words = line.split(' ');
    let (key, model, day) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let rest: Vec<&str> = words.collect();
    let counts: Vec<u64> = rest.iter().filter_map(|word| word.parse().ok()).collect();
    let named = |name: &str| rest.iter().find_map(|word| word.strip_prefix(name)).map(str::to_owned);
    let report = Report {
        model: (model != "-").then(|| model.to_owned()),
        request: named("request="),
        service_tier: named("tier="),
        cost: named("cost=").map(|cost| cost.parse().unwrap()),
        usage: match counts.as_slice() {
            [output] => Usage { output: Some(*output * 1000), ..Usage::default() },
            _ => counts.try_into().map_or_else(|_| Usage::default(), usage),
        },
        ..Report::default()
    };
    let at = day.parse().ok().map(|day: i64| Micros(START + day * DAY));
    Entry::from(fact::MessageFinished { key: key.to_owned(), report }).at(at)
}

fn session(name: &str) -> StreamInfo {
    StreamInfo { cwd: Some(format!("/home/{name}")), ..StreamInfo::session("host", name) }
}

fn record(store: &Store, info: &StreamInfo, lines: &[&str]) {
    for line in lines {
        let _ = store.append(info, vec![finish(line)]).unwrap();
    }
}

fn told(bill: &Bill) -> String {
    let line = |row: &CostRow, name: &str| {
        let Tokens { input, cache_read, cache_write, cache_write_long, output } = row.tokens;
        let tokens = [input, cache_read, cache_write, cache_write_long, output].map(|count| count / 1000);
        let says = row.host_total.map(|says| format!(" host {says}")).unwrap_or_default();
        let subagents =
            if row.subagents > 0.0 { format!(" subagents {}", row.subagents) } else { String::new() };
        format!(
            "{name}: {} ({} unpriced) {tokens:?} ${}{subagents}{says}\n",
            row.requests, row.requests_unpriced, row.total
        )
    };
    let mut text: String = bill.items.iter().map(|row| line(row, &row.key)).collect();
    text += &line(&bill.sum, "sum");
    for row in &bill.unpriced {
        text += &format!("unpriced: {:?} {:?} {}\n", row.model, row.service_tier, row.requests);
    }
    text + &format!("copies {}, without input {}\n", bill.copies, bill.requests_without_input)
}

fn check(store: &Store, by: By, expected: &Expect) {
    let requests = requests(store, Seq::MAX).unwrap();
    let asked = BillFilter { wanted: &|_| true, stale: None, within: None, zone: jiff::tz::TimeZone::UTC };
    expected.assert_eq(&told(&bill(&requests, by, &PriceTable::built_in().unwrap(), &asked)));
}

/// A bill could be asked for one session or host only, and not for a project or model.
#[test]
fn a_filter_asks_for_requests_by_themselves_and_by_their_sessions() {
    let store = store();
    record(&store, &session("one"), &["a claude-opus-5-5 0 1", "b claude-opus-5-5 1 1"]);
    record(&store, &session("two"), &["c gpt-5.4 7 1", "d claude-haiku-4-5 8 1", "e gpt-5.4 20 1"]);
    let parent = Some((session("one").id(), None));
    let child = StreamInfo { parent, host: "other".to_owned(), ..session("child") };
    record(&store, &child, &["f claude-haiku-4-5 0 1"]);
    let requests = requests(&store, Seq::MAX).unwrap();
    let read = |text: &str| Filter::parse(text, Micros(START + 9 * DAY)).unwrap();
    for (text, keys, sessions) in [
        ("", "abcdef", "one two child"),
        ("session:one", "abf", "one child"),
        ("session:child", "f", "child"),
        ("not session:one", "cde", "two"),
        ("project:one", "abf", "one child"),
        ("project:child", "", ""),
        ("host:other", "f", "child"),
        ("model:haiku", "df", "one two child"),
        ("project:one model:haiku", "f", "one child"),
        ("model:haiku or project:one", "abdf", "one two child"),
        ("not model:haiku", "abce", "one two child"),
        ("since:2d", "cde", "one two child"),
        ("since:2d or session:one", "abcdef", "one two child"),
        ("until:2d", "abcf", "one two child"),
        ("session:one not project:two", "abf", "one child"),
        ("not project:two session:one", "abf", "one child"),
    ] {
        let filter = read(text);
        assert!(is_of_requests(&filter), "{text}");
        let filter = settled(&store, filter).unwrap();
        let wanted = requests.all.iter().filter(|request| requests.is_wanted(&filter, request));
        let wanted: Vec<Seq> = wanted.map(|request| request.seq).collect();
        let named = requests.all.iter().zip("abcdef".chars());
        let found = named.filter(|(request, _)| wanted.contains(&request.seq)).map(|(_, key)| key);
        assert_eq!(found.collect::<String>(), keys, "{text}");
        for info in [session("one"), session("two"), child.clone()] {
            let may = requests.may_be_wanted(&filter, info.id());
            assert_eq!(may, sessions.split(' ').any(|name| name == info.name), "{text}: {}", info.name);
        }
    }
    for text in ["tool:read", "project:one state:superseded", "one", "turn:3", "file:a.rs"] {
        assert!(!is_of_requests(&read(text)), "{text}");
    }
    assert!(settled(&store, read("session:three")).is_err());
}

#[test]
fn requests_are_summed_by_what_is_asked_for() {
    let store = store();
    record(
        &store,
        &session("one"),
        &["a claude-opus-5-5 0 10 1000 10 0 1", "b claude-opus-5-5 1 0 0 0 10 1"],
    );
    record(
        &store,
        &session("two"),
        &["a gpt-5.4 7 100 0 0 0 1 cost=300000", "b gpt-5.4 20 100 0 0 0 1 cost=0"],
    );
    let child = StreamInfo { parent: Some((session("one").id(), None)), ..session("child") };
    record(&store, &child, &["c claude-haiku-4-5 0 1000 0 0 0 0"]);
    check(
        &store,
        By::Session,
        &expect![[r#"
            one: 3 (0 unpriced) [1010, 1000, 10, 10, 2] $1.41 subagents 1
            two: 2 (0 unpriced) [200, 0, 0, 0, 2] $0.53 host 0.3
            sum: 5 (0 unpriced) [1210, 1000, 10, 10, 4] $1.94 subagents 1 host 0.3
            copies 0, without input 0
        "#]],
    );
    check(
        &store,
        By::Day,
        &expect![[r#"
        2026-11-02: 2 (0 unpriced) [1010, 1000, 10, 0, 1] $1.31 subagents 1
        2026-11-03: 1 (0 unpriced) [0, 0, 0, 10, 1] $0.1
        2026-11-09: 1 (0 unpriced) [100, 0, 0, 0, 1] $0.265 host 0.3
        2026-11-22: 1 (0 unpriced) [100, 0, 0, 0, 1] $0.265
        sum: 5 (0 unpriced) [1210, 1000, 10, 10, 4] $1.94 subagents 1 host 0.3
        copies 0, without input 0
    "#]],
    );
    check(
        &store,
        By::Week,
        &expect![[r#"
        2026-W45: 3 (0 unpriced) [1010, 1000, 10, 10, 2] $1.41 subagents 1
        2026-W46: 1 (0 unpriced) [100, 0, 0, 0, 1] $0.265 host 0.3
        2026-W47: 1 (0 unpriced) [100, 0, 0, 0, 1] $0.265
        sum: 5 (0 unpriced) [1210, 1000, 10, 10, 4] $1.94 subagents 1 host 0.3
        copies 0, without input 0
    "#]],
    );
    check(
        &store,
        By::Model,
        &expect![[r#"
        claude-haiku-4-5: 1 (0 unpriced) [1000, 0, 0, 0, 0] $1 subagents 1
        gpt-5.4: 2 (0 unpriced) [200, 0, 0, 0, 2] $0.53 host 0.3
        claude-opus-5-5: 2 (0 unpriced) [10, 1000, 10, 10, 2] $0.41
        sum: 5 (0 unpriced) [1210, 1000, 10, 10, 4] $1.94 subagents 1 host 0.3
        copies 0, without input 0
    "#]],
    );
    check(
        &store,
        By::Project,
        &expect![[r#"
        /home/one: 3 (0 unpriced) [1010, 1000, 10, 10, 2] $1.41 subagents 1
        /home/two: 2 (0 unpriced) [200, 0, 0, 0, 2] $0.53 host 0.3
        sum: 5 (0 unpriced) [1210, 1000, 10, 10, 4] $1.94 subagents 1 host 0.3
        copies 0, without input 0
    "#]],
    );
    check(
        &store,
        By::Host,
        &expect![[r#"
        host: 5 (0 unpriced) [1210, 1000, 10, 10, 4] $1.94 subagents 1 host 0.3
        sum: 5 (0 unpriced) [1210, 1000, 10, 10, 4] $1.94 subagents 1 host 0.3
        copies 0, without input 0
    "#]],
    );
}

#[test]
fn what_has_no_price_is_named_and_adds_nothing() {
    let store = store();
    record(
        &store,
        &session("one"),
        &[
            "a claude-opus-9 0 10 0 0 0 1",
            "b claude-opus-5-5 0 10 0 0 0 1 tier=secret",
            "c - 0 10 0 0 0 1",
            "d claude-opus-5-5 0",
            "e claude-opus-5-5 0 1000 0 0 0 0 tier=batch",
            "f claude-opus-5-5 0 100",
        ],
    );
    check(
        &store,
        By::Model,
        &expect![[r#"
            claude-opus-5-5: 3 (1 unpriced) [1010, 0, 0, 0, 101] $4
            : 1 (1 unpriced) [10, 0, 0, 0, 1] $0
            claude-opus-9: 1 (1 unpriced) [10, 0, 0, 0, 1] $0
            sum: 5 (3 unpriced) [1030, 0, 0, 0, 103] $4
            unpriced: None None 1
            unpriced: Some("claude-opus-5-5") Some("secret") 1
            unpriced: Some("claude-opus-9") None 1
            copies 0, without input 1
        "#]],
    );
}

/// A host that resumes a session under a new id, or forks one, writes the old records again: sums over its files were twice the
/// real cost.
#[test]
fn copies_of_requests_count_once() {
    let store = store();
    let (first, second) = ("a claude-opus-5-5 0 1000 0 0 0 0", "b claude-opus-5-5 1 1000 0 0 0 0");
    record(&store, &session("one"), &[first, second]);
    record(&store, &session("resumed"), &[first, second, "c claude-opus-5-5 2 1000 0 0 0 0"]);
    // The provider's id tells a copy, even if its time differs; a message that is told of again is one request.
    record(&store, &session("told"), &["x claude-opus-5-5 0 1000 0 0 0 0 request=r1"]);
    record(
        &store,
        &session("told again"),
        &[
            "x claude-opus-5-5 3 1000 0 0 0 0 request=r1",
            "y claude-opus-5-5 3 500 0 0 0 0",
            "y claude-opus-5-5 3 1000 0 0 0 0",
        ],
    );
    // Without times nothing tells a copy from another session's first message.
    record(&store, &session("live"), &["a claude-opus-5-5 - 1000 0 0 0 0"]);
    record(&store, &session("live too"), &["a claude-opus-5-5 - 1000 0 0 0 0"]);
    check(
        &store,
        By::Session,
        &expect![[r#"
        one: 2 (0 unpriced) [2000, 0, 0, 0, 0] $8
        live: 1 (0 unpriced) [1000, 0, 0, 0, 0] $4
        live too: 1 (0 unpriced) [1000, 0, 0, 0, 0] $4
        resumed: 1 (0 unpriced) [1000, 0, 0, 0, 0] $4
        told: 1 (0 unpriced) [1000, 0, 0, 0, 0] $4
        told again: 1 (0 unpriced) [1000, 0, 0, 0, 0] $4
        sum: 7 (0 unpriced) [7000, 0, 0, 0, 0] $28
        copies 3, without input 0
    "#]],
    );
}

/// A copy without the provider's name for the request, or with one that the original has lost, was paid again. So was a message that was
/// told again, since the user had taken it back and wanted it after all.
#[test]
fn a_copy_that_lost_a_name_counts_once() {
    let store = store();
    let claude = |name: &str| StreamInfo { host: "claude-code".to_owned(), ..session(name) };
    let (one, two) =
        ("msg_01aaaaaa claude-opus-5-5 0 1000 0 0 0 0", "msg_01bbbbbb claude-opus-5-5 1 1000 0 0 0 0");
    record(&store, &claude("one"), &[&format!("{one} request=r1"), two]);
    record(&store, &claude("lost"), &["msg_01aaaaaa claude-opus-5-5 7 1000 0 0 0 0"]);
    record(&store, &claude("found"), &["msg_01bbbbbb claude-opus-5-5 8 1000 0 0 0 0 request=r2"]);
    // Gateways have one word for all answers: the provider's names decide.
    record(&store, &claude("gateway"), &["msg_01aaaaaa claude-opus-5-5 9 1000 0 0 0 0 request=r3"]);
    // Ids that are too short to be Anthropic's own.
    let short = |day, other| {
        [
            format!("msg_1 claude-opus-5-5 {day} 1000 0 0 0 0"),
            format!("msg_2 claude-opus-5-5 {day} {other} 0 0 0 0"),
        ]
    };
    record(&store, &claude("short"), &short(3, 1000).each_ref().map(String::as_str));
    record(&store, &claude("short again"), &short(6, 7).each_ref().map(String::as_str));
    record(
        &store,
        &session("taken back"),
        &["m claude-opus-5-5 2 1000 0 0 0 0", "m@2 claude-opus-5-5 2 1000 0 0 0 0"],
    );
    check(
        &store,
        By::Session,
        &expect![[r#"
            one: 2 (0 unpriced) [2000, 0, 0, 0, 0] $8
            short: 2 (0 unpriced) [2000, 0, 0, 0, 0] $8
            gateway: 1 (0 unpriced) [1000, 0, 0, 0, 0] $4
            taken back: 1 (0 unpriced) [1000, 0, 0, 0, 0] $4
            short again: 1 (0 unpriced) [7, 0, 0, 0, 0] $0.028
            sum: 7 (0 unpriced) [6007, 0, 0, 0, 0] $24.028
            copies 3, without input 0
        "#]],
    );
}

/// Redactors put one word in place of many ids: requests of different sessions were taken for copies of one, and most of the money was gone.
#[test]
fn one_word_in_place_of_many_ids_names_nothing() {
    let store = store();
    let claude = |name: &str| StreamInfo { host: "claude-code".to_owned(), ..session(name) };
    let answers = |day| {
        let end = format!("claude-opus-5-5 {day} 1000 0 0 0 0 request=REDACTED");
        [format!("msg_REDACTED {end}"), format!("msg_REDACTED+2 {end}")]
    };
    for (name, day) in [("one", 0), ("two", 1), ("three", 2)] {
        record(&store, &claude(name), &answers(day).each_ref().map(String::as_str));
    }
    // A copy has the times, too.
    record(&store, &claude("copy"), &answers(1).each_ref().map(String::as_str));
    check(
        &store,
        By::Session,
        &expect![[r#"
            one: 2 (0 unpriced) [2000, 0, 0, 0, 0] $8
            three: 2 (0 unpriced) [2000, 0, 0, 0, 0] $8
            two: 2 (0 unpriced) [2000, 0, 0, 0, 0] $8
            sum: 6 (0 unpriced) [6000, 0, 0, 0, 0] $24
            copies 2, without input 0
        "#]],
    );
}

/// A session that was copied with the sum of its tokens, as Copilot CLI tells it at the end, was paid twice.
#[test]
fn a_copied_sum_counts_once() {
    let store = store();
    let sums = [
        "event:1/x claude-opus-5-5 0 1000 0 0 0 0 tier=total",
        "event:2/x claude-opus-5-5 0 1000 0 0 0 0 tier=total",
    ];
    record(&store, &session("one"), &sums);
    record(
        &store,
        &session("copied"),
        &[sums[0], sums[1], "event:3/x claude-opus-5-5 1 1000 0 0 0 0 tier=total"],
    );
    check(
        &store,
        By::Session,
        &expect![[r#"
        one: 0 (0 unpriced) [2000, 0, 0, 0, 0] $8
        copied: 0 (0 unpriced) [1000, 0, 0, 0, 0] $4
        sum: 0 (0 unpriced) [3000, 0, 0, 0, 0] $12
        copies 0, without input 0
    "#]],
    );
}

/// Forks of some hosts begin with their parent's records under new times and keys.
#[test]
fn what_a_fork_copied_counts_once() {
    let store = store();
    record(
        &store,
        &session("one"),
        &["a gpt-5.4 0 100 0 0 0 1", "b gpt-5.4 0 200 0 0 0 1", "c gpt-5.4 0 300 0 0 0 1"],
    );
    let fork = session("fork");
    let from = stream_id(Scope::Session, "host", "one");
    let forked = Entry::from(fact::Forked { from, at: PointRef::Seq(Seq::ZERO) });
    let _ = store.append(&fork, vec![forked]).unwrap();
    record(&store, &fork, &["k gpt-5.4 4 100 0 0 0 1", "l gpt-5.4 4 200 0 0 0 1", "m gpt-5.4 4 900 0 0 0 1"]);
    check(
        &store,
        By::Session,
        &expect![[r#"
        fork: 1 (0 unpriced) [900, 0, 0, 0, 1] $4.5225
        one: 3 (0 unpriced) [600, 0, 0, 0, 3] $2.3025
        sum: 4 (0 unpriced) [1500, 0, 0, 0, 4] $6.825
        copies 2, without input 0
    "#]],
    );
}

const STALE: &str = "user look at a
    turn
    read /src/a.rs
    turn
    edit /src/a.rs
    turn
    read /src/a.rs";

#[test]
fn what_is_stale_is_charged_with_every_request_that_carries_it() {
    let store = store();
    let played = crate::testing::play(&store, "s", STALE);
    let info = StreamInfo::session("acpdb", "s");
    record(
        &store,
        &info,
        &[
            "a claude-opus-4-5 0 1 100 0 0 0",
            "b claude-opus-4-5 0 1 100 0 0 0",
            "c claude-opus-4-5 0 1 0 100 0 0",
        ],
    );
    let table = PriceTable::built_in().unwrap();
    let requests = requests(&store, Seq::MAX).unwrap();
    let own: Vec<&BilledRequest> = requests.all.iter().collect();
    let spent = stale(&store, &table, played.id, &own, Seq::MAX).unwrap();
    let view = crate::testing::view(&store, &played);
    let tokens = view.state().tokens(view.at());
    let stale_tokens = tokens.whole - tokens.shown;
    assert!(stale_tokens > 0);
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let dollars = |rate: f64| stale_tokens as f64 * rate / 1e6;
    let expected = [0.5, 0.5, 6.25].map(dollars);
    let found: Vec<f64> = spent.into_values().collect();
    assert_eq!(found.len(), 3);
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn other_ways_are_reckoned_at_the_prices_of_the_sessions_model() {
    let store = store();
    let played = crate::testing::play(&store, "s", &[STALE; 3].join("\n"));
    let info = StreamInfo::session("acpdb", "s");
    record(
        &store,
        &info,
        &["a claude-opus-5-5 0 1 100 0 10 0", "b gpt-5.4 0 1 100 0 0 0", "c claude-opus-5-5 0 1 0 0 100 0"],
    );
    let table = PriceTable::built_in().unwrap();
    let requests = requests(&store, Seq::MAX).unwrap();
    let prices = prices_of(&table, requests.all.iter()).unwrap();
    assert_eq!((prices.read, prices.write, prices.ttl_seconds), (0.05, 2.0, 3600));
    let own: Vec<&BilledRequest> = requests.all.iter().collect();
    let found = waste(&store, &table, played.id, &own).unwrap().unwrap();
    let bill = bill(
        &requests,
        By::Host,
        &table,
        &BillFilter { wanted: &|_| true, stale: None, within: None, zone: jiff::tz::TimeZone::UTC },
    );
    assert!((found.input - bill.sum.dollars.all_input()).abs() < 1e-6);
    assert_eq!(found.ways.len(), WASTE_WAYS.len());
    for way in &found.ways {
        assert!((way.input + way.saved - found.input).abs() < 1e-9);
        assert!(way.input > 0.0);
    }
    let mut twice = found.clone();
    twice.add(&found);
    assert!((twice.ways[0].saved - 2.0 * found.ways[0].saved).abs() < 1e-12);
    let none: Vec<&BilledRequest> = Vec::new();
    assert_eq!(waste(&store, &table, played.id, &none).unwrap(), None);
}

/// Resellers fill a cache without a price for it: their usage tells the tokens that were read and none that were written.
#[test]
fn a_cache_that_no_request_wrote_to_costs_nothing_to_fill() {
    let store = store();
    let info = StreamInfo::session("acpdb", "s");
    record(&store, &info, &["a claude-opus-5-5 10 1 0 0 0 0", "b claude-opus-5-5 0 1 100 0 0 0"]);
    let table = PriceTable::built_in().unwrap();
    let requests = requests(&store, Seq::MAX).unwrap();
    let prices = prices_of(&table, requests.all.iter()).unwrap();
    assert_eq!((prices.read, prices.write), (0.05, 1.0));
    let first = requests.all.first().into_iter();
    let prices = prices_of(&table, first).unwrap();
    assert_eq!((prices.read, prices.write), (0.05, 1.25), "of a cache nothing is known");
}
