//! Tables over small stores: the answer of each question.

use std::fmt::Write as _;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::{Store, View, store::StreamName};
use expect_test::{Expect, expect};

use crate::testing::{play, store, view};
use crate::*;

const SESSION: &str = "
    user fix the parser
    turn
    read /src/a.rs =call_read
    read /src/b.rs
    grep needle
    turn
    read /src/a.rs =call_again
    turn
    edit /src/a.rs =call_edit
    bash make failed
    turn
    grep needle
    write /src/c.rs pending =call_open
    say done
";

fn sample() -> (Store, StreamName, View) {
    let store = store();
    let session = play(&store, "first", SESSION);
    let view = view(&store, &session);
    (store, session, view)
}

fn rows(rows: &[ItemRow]) -> String {
    let mut text = String::new();
    for row in rows {
        let tool = row.tool.as_deref().unwrap_or("-");
        let key = row.keys.first().map_or("-", String::as_str);
        let by = match (&row.rule, &row.superseded_by) {
            (Some(rule), Some(by)) => format!(" by {by} ({})", rule.label()),
            _ => String::new(),
        };
        let saved = if row.tokens_shown < row.tokens { " shorter" } else { "" };
        let status = row.status.map(|status| format!(" {status:?}").to_lowercase()).unwrap_or_default();
        let state = format!("{:?}", row.state).to_lowercase();
        writeln!(text, "{} t{} {tool} {key}{status} {state}{by}{saved}", row.item, row.turn).unwrap();
    }
    text
}

/// `file:` looked at all subjects of a call in `history` (a search, a task, a command line) and at files in `log`; the path that a
/// relative one means was found by `log` alone, and `or` beside a text found more than both.
#[test]
fn a_condition_about_files_is_about_files_in_each_answer() {
    use acpdb_engine::entry::{Entry, StreamInfo};

    let store = store();
    let info = StreamInfo { cwd: Some("/w".to_owned()), ..StreamInfo::session("acpdb", "s") };
    let calls = [
        ("read", r#"{"filePath":"src/a.ts"}"#),
        ("read", r#"{"filePath":"/w/src/b.ts"}"#),
        ("grep", r#"{"pattern":"src/a.ts","path":"src"}"#),
        ("bash", r#"{"command":"git diff src/a.ts"}"#),
        ("TaskUpdate", r#"{"taskId":"1","status":"completed"}"#),
    ];
    let entries = calls
        .iter()
        .enumerate()
        .map(|(n, (tool, params))| Entry::tool_started(n.to_string(), *tool, *params));
    let _ = store.append(&info, entries.collect()).unwrap();
    let name = store.find_stream("s").unwrap();
    let view = view(&store, &name);
    let found = |query: &str| -> Vec<String> {
        let filter = filter::Filter::parse(query, Micros(0)).unwrap();
        item_rows(&store, &view, &name, &filter).unwrap().map(|row| row.unwrap().item).collect()
    };
    let logged = |query: &str| -> Vec<String> {
        let filter = filter::Filter::parse(query, Micros(0)).unwrap();
        let question = EventsQuestion { filter, ..EventsQuestion::default() };
        events::events(&store, question).unwrap().map(|event| event.unwrap().seq.to_string()).collect()
    };
    let is_file = |row: &ItemRow| row.tool.as_deref() == Some("read") || row.tool.as_deref() == Some("bash");
    for (glob, count) in
        [("src/a.ts", 1), ("/w/src/a.ts", 1), ("**/*.ts", 2), ("src/**", 2), ("1", 0), ("git*", 0)]
    {
        let query = format!("file:{glob}");
        let rows = found(&query);
        assert_eq!(rows, logged(&format!("{query} kind:tool_call_started")), "{glob}");
        assert_eq!(rows, found(&format!("{query} or text:nowhere")), "{glob}");
        assert_eq!(rows.len(), count, "{glob}");
    }
    for (path, count) in [("a.ts", 1), ("src/a.ts", 1), ("1", 0), ("/w/src/b.ts", 1)] {
        let rows = items(&view, "s", Which::File(path));
        assert!(rows.len() == count && rows.iter().all(is_file), "{path}: {rows:?}");
    }
}

#[test]
fn items_say_where_they_stand_and_why() {
    let (_, session, view) = sample();
    let check = |which, expected: Expect| expected.assert_eq(&rows(&items(&view, &session.name, which)));
    check(
        Which::All,
        expect![[r#"
        #3 t0 - - whole
        #5 t1 read /src/a.rs completed tombstone by #12 (repeat) shorter
        #7 t1 read /src/b.rs completed whole
        #9 t1 grep grep::needle: completed tombstone by #20 (repeat) shorter
        #12 t2 read /src/a.rs completed tombstone by #15 (file) shorter
        #15 t3 edit /src/a.rs completed whole
        #17 t3 bash - failed whole
        #20 t4 grep grep::needle: completed whole
        #22 t4 write /src/c.rs pending absent
        #23 t4 - - whole
    "#]],
    );
    check(
        Which::File("/src/a.rs"),
        expect![[r#"
        #5 t1 read /src/a.rs completed tombstone by #12 (repeat) shorter
        #12 t2 read /src/a.rs completed tombstone by #15 (file) shorter
        #15 t3 edit /src/a.rs completed whole
    "#]],
    );
    // A path that no call gave whole is looked for at the end of the calls' paths.
    check(
        Which::File("src/b.rs"),
        expect![[r#"
        #7 t1 read /src/b.rs completed whole
    "#]],
    );
    check(Which::File("b.rs/"), expect![[r#""#]]);
    check(
        Which::Tool("GREP"),
        expect![[r#"
        #9 t1 grep grep::needle: completed tombstone by #20 (repeat) shorter
        #20 t4 grep grep::needle: completed whole
    "#]],
    );
    check(Which::Tool("gre"), expect![[r#""#]]);
    // As of the end of turn 2, only the repeat had happened.
    let then = view.with_at(view.state().turn_end(acpdb_engine::ids::Turn(2)).unwrap());
    expect![[r#"
        #5 t1 read /src/a.rs completed tombstone by #12 (repeat) shorter
        #7 t1 read /src/b.rs completed whole
        #12 t2 read /src/a.rs completed whole
    "#]]
    .assert_eq(&rows(&items(&then, &session.name, Which::Tool("read"))));
}

#[test]
fn a_text_names_an_item_or_says_why_not() {
    let (store, first, _) = sample();
    let second = play(&store, "second", "turn\nread /src/a.rs =call_elsewhere\nread /src/z.rs =call_edit");
    let hash = |session: &StreamName, tool: &str| {
        let rows = items(&view(&store, session), &session.name, Which::Tool(tool));
        rows.last().and_then(|row| row.hash.clone()).unwrap()
    };
    let grep = hash(&first, "grep");
    let read = hash(&first, "read");
    let mut text = String::new();
    for (name, session) in [
        ("#5", None),
        ("5", None),
        ("#6", None),
        ("#5", Some(&second)),
        ("#5.2", None),
        ("#1", None),
        ("#99999", None),
        ("call_again", None),
        ("call_a", None),
        ("call_", Some(&second)),
        ("call_edit", None),
        ("call_edit", Some(&first)),
        ("call_edlt", None),
        (grep.as_str(), None),
        (&grep.to_uppercase(), None),
        (grep.get(..5).unwrap(), None),
        (read.as_str(), None),
        (read.as_str(), Some(&second)),
        ("", None),
        ("nothing like it", None),
    ] {
        let named =
            name.replace(&grep, "GREP").replace(&read, "READ").replace(grep.get(..5).unwrap(), "GRE..");
        let inside = session.map(|session| format!(" in {}", session.name)).unwrap_or_default();
        let found = match find(&store, name, session) {
            Ok(found) => {
                let item = found.ix.and_then(|ix| found.view.state().item_id(ix));
                let item = item.map_or_else(|| "no item".to_owned(), |item| item.to_string());
                let finish = found.finish.map(|finish| format!(", finished {finish}")).unwrap_or_default();
                let repeats: Vec<String> =
                    found.repeats.iter().map(|item| format!(", repeats {item}")).collect();
                let repeats = repeats.concat();
                format!("{} -> {item} in {}{finish}{repeats}", found.item, found.stream.name)
            }
            Err(error) => {
                let nearest = match &error {
                    FindError::NotFound { nearest: Some(nearest), .. } => format!("; nearest {nearest}"),
                    _ => String::new(),
                };
                format!("{}{nearest}", error.to_string().replace(&read, "READ"))
            }
        };
        writeln!(text, "{named:?}{inside}: {found}").unwrap();
    }
    expect![[r##"
        "#5": #5 -> #5 in first, finished #6
        "5": #5 -> #5 in first, finished #6
        "#6": #6 -> #5 in first, finished #6
        "#5" in second: #5 is of session first, not of second
        "#5.2": #5.2 is not there: the event recorded 1 part(s)
        "#1": #1 -> no item in store
        "#99999": there is no event #99999; the newest is #29
        "call_again": #12 -> #12 in first, finished #13
        "call_a": #12 -> #12 in first, finished #13
        "call_" in second: "call_" names 2 items: #26 read in second, #28 read in second
        "call_edit": "call_edit" names 2 items: #15 edit in first, #28 read in second
        "call_edit" in first: #15 -> #15 in first, finished #16
        "call_edlt": no item is called "call_edlt"; nearest call_edit
        "GREP": #20 -> #20 in first, finished #21, repeats #9
        "G_7D168": #20 -> #20 in first, finished #21, repeats #9
        "GRE..": #20 -> #20 in first, finished #21, repeats #9
        "READ": "READ" names 2 items: #12 read in first, #26 read in second
        "READ" in second: #26 -> #26 in second, finished #27
        "": no item is called ""
        "nothing like it": no item is called "nothing like it"
    "##]]
    .assert_eq(&text);
}

#[test]
fn a_chain_reads_oldest_first_from_any_of_its_members() {
    let (store, session, view) = sample();
    let mut seen = Vec::new();
    for name in ["call_read", "call_again", "call_edit"] {
        let found = find(&store, name, None).unwrap();
        let report = chain(&view, &session.name, found.ix.unwrap()).unwrap();
        let mut text = rows(&report.members);
        for edge in &report.edges {
            let freed = if edge.tokens_freed > 0 { "frees" } else { "frees nothing" };
            let (old, new, rule) = (&edge.old, edge.new.as_deref().unwrap_or("-"), edge.rule.label());
            writeln!(text, "{old} -> {new} {rule} t{} {freed}", edge.turn).unwrap();
        }
        seen.push(text);
    }
    seen.dedup();
    expect![[r#"
        #5 t1 read /src/a.rs completed tombstone by #12 (repeat) shorter
        #12 t2 read /src/a.rs completed tombstone by #15 (file) shorter
        #15 t3 edit /src/a.rs completed whole
        #5 -> #12 repeat t2 frees
        #12 -> #15 file t3 frees
    "#]]
    .assert_eq(&seen.join("---\n"));
    let longest = chain::showpiece(&view, &session.name, 5).unwrap();
    assert_eq!(longest.members.len(), 3);
    assert_eq!(longest.tokens_freed, longest.edges.iter().map(|edge| edge.tokens_freed).sum::<u64>());
}

#[test]
fn reasons_are_told_in_sentences() {
    let (store, session, view) = sample();
    let mut text = String::new();
    for name in ["#3", "call_read", "call_again", "call_edit", "call_open"] {
        let found = find(&store, name, None).unwrap();
        let explained = explain(&view, &session.name, found.ix.unwrap()).unwrap();
        writeln!(text, "{name} visible: {}", explained.visible).unwrap();
        for sentence in &explained.sentences {
            // This test is not about estimates of tokens.
            let sentence = sentence.split(", which frees").next().unwrap();
            writeln!(text, "  {sentence}").unwrap();
        }
    }
    expect![[r#"
        #3 visible: true
          #3 (text, turn 0) is in the current context, whole.
        call_read visible: false
          The result of #5 (read, turn 1) would be hidden; a tombstone would stand in its place.
          It was superseded by #12 (read, turn 2) in turn 2: the same call with the same parameters was made again (rule repeat, policy acp).
          The model saw it whole until turn 4, the newest: its host sent the contexts of this session, not acpdb.
        call_again visible: false
          The result of #12 (read, turn 2) would be hidden; a tombstone would stand in its place.
          It was superseded by #15 (edit, turn 3) in turn 3: a later call worked on the same file /src/a.rs (rule file, policy acp).
          It supersedes #5 (repeat)
          The model saw it whole until turn 4, the newest: its host sent the contexts of this session, not acpdb.
        call_edit visible: true
          #15 (edit, turn 3) is in the current context, whole.
          It supersedes #12 (file)
        call_open visible: false
          #22 (write, turn 4) is in the current context; it has no result yet. The call has not finished, so no rule touches it.
    "#]].assert_eq(&text);
}

#[test]
fn the_context_is_what_is_shown_and_its_sums_agree() {
    let (store, _, view) = sample();
    let whole = context(&store, &view, Window::default(), Micros(0)).unwrap();
    let sum: u64 = whole.items.iter().map(|item| item.row.tokens_shown).sum();
    assert_eq!(sum, whole.tokens_shown);
    let recorded: u64 = whole.items.iter().map(|item| item.row.tokens).sum();
    assert_eq!(recorded, whole.tokens_whole);
    assert_eq!(whole.tokens_freed, stats([("acpdb", &view)]).total.tokens_freed);
    assert_eq!(whole.item_count, whole.items.len());
    let mut text = String::new();
    for item in &whole.items {
        let face = |face: &Option<context::FaceText>| {
            let text = face.as_ref().and_then(|face| face.text.clone());
            text.map_or_else(|| "-".to_owned(), |text| text.lines().next().unwrap_or_default().to_owned())
        };
        writeln!(text, "{} {} | {}", item.row.item, face(&item.input), face(&item.output)).unwrap();
    }
    expect![[r##"
        #3 - | fix the parser
        #5 {"filePath":"/src/a.rs"} | [auto-superseded: hash duplicate]
        #7 {"filePath":"/src/b.rs"} | /src/b.rs line of output
        #9 {"pattern":"needle"} | [auto-superseded: hash duplicate]
        #12 {"filePath":"/src/a.rs"} | [auto-superseded: file superseded by edit]
        #15 {"filePath":"/src/a.rs"} | /src/a.rs line of output
        #17 {"command":"make"} | make line of output
        #20 {"pattern":"needle"} | needle line of output
        #22 {"filePath":"/src/c.rs"} | -
        #23 - | done
    "##]]
    .assert_eq(&text);
    let last = context(&store, &view, Window { last: Some(2), ..Window::default() }, Micros(0)).unwrap();
    assert_eq!(last.items, whole.items.get(whole.items.len() - 2..).unwrap());
    assert_eq!((last.item_count, last.tokens_shown), (whole.item_count, whole.tokens_shown));
}

#[test]
fn figures_add_up_over_sessions_and_hosts() {
    let (store, session, first) = sample();
    let other = play(&store, "second", "turn\nread /x\nturn\nread /x\nturn\nread /x");
    let second = view(&store, &other);
    let report = stats([("one", &first), ("two", &second)]);
    let row = |rows: &[KindRow]| {
        let all: Vec<String> = rows.iter().map(|row| format!("{} {}", row.kind.label(), row.count)).collect();
        all.join(", ")
    };
    let hosts: Vec<String> = report
        .hosts
        .iter()
        .map(|host| {
            format!("{}: {} of {}: {}", host.host, host.total.superseded, host.total.calls, row(&host.items))
        })
        .collect();
    expect![[r#"
        5
        repeat 4, file 1, todo 0
        one: 3 of 8: repeat 2, file 1, todo 0
        two: 2 of 3: repeat 2, file 0, todo 0"#]]
    .assert_eq(&format!("{}\n{}\n{}", report.total.superseded, row(&report.items), hosts.join("\n")));
    let freed: u64 = report.items.iter().map(|row| row.freed).sum();
    assert_eq!(freed, report.total.tokens_freed);
    assert_eq!(report.total.tokens_whole, report.total.tokens_shown + report.total.tokens_freed);
    let summary =
        store.sessions(Seq::MAX).unwrap().into_iter().find(|summary| summary.name.id == session.id).unwrap();
    assert_eq!((summary.superseded, summary.calls), (3, 8));
}

/// A fork that copies nothing doubled all figures of the session that it came from.
#[test]
fn a_shared_item_counts_once_over_sessions() {
    use acpdb_engine::entry::{Entry, PointRef, StreamInfo, fact};
    let (store, session, first) = sample();
    let alone = stats([("one", &first)]);
    let forked = fact::Forked { from: session.id, at: PointRef::Seq(store.head().unwrap()) };
    let _ = store.append(&StreamInfo::session("acpdb", "fork"), vec![Entry::from(forked)]).unwrap();
    let fork = store.find_stream("fork").unwrap();
    let both = |fork: &View| {
        let report = stats([("one", &first), ("two", fork)]);
        (report.total, report.items)
    };
    let sessions = stats::Total { sessions: 2, ..alone.total };
    assert_eq!(both(&view(&store, &fork)), (sessions, alone.items.clone()));
    // Items that it records and hides itself count; alone it counts whole.
    let fork = play(&store, "fork", "turn\nread /new\nturn\nread /new");
    let fork = view(&store, &fork);
    let (total, items) = both(&fork);
    assert_eq!((total.calls, total.superseded), (sessions.calls + 2, sessions.superseded + 1));
    assert_eq!(total.tokens_whole, total.tokens_shown + total.tokens_freed);
    assert_eq!(items.iter().map(|row| row.freed).sum::<u64>(), total.tokens_freed);
    assert_eq!(stats([("two", &fork)]).total.calls, sessions.calls + 2);
}

#[test]
fn half_time_is_an_earlier_read_of_the_same_fold() {
    let (store, _, view) = sample();
    let HalfTime { half, now, turns } = half_time(&view);
    assert_eq!((turns.len(), half.turn.get(), now.turn.get()), (4, 2, 4));
    assert_eq!(half, *view.state().tokens_by_turn(half.seq).last().unwrap());
    assert!(now.whole > now.shown && now.recorded >= now.whole);
    assert_eq!(now.shown, context(&store, &view, Window::default(), Micros(0)).unwrap().tokens_shown);
}

/// A session that was imported today could not be asked for yesterday: all of it was recorded today. In a session a time is one of
/// the host's clock; an event without a time is as old as the event before it; behind the last time, an event counts from its
/// recording.
#[test]
fn a_time_in_a_session_is_one_of_its_hosts_clock() {
    use acpdb_engine::entry::{Entry, PointRef, StreamInfo, fact};
    use acpdb_engine::event::Role;
    let store = store();
    let imported = store.session(StreamInfo::session("acpdb", "imported"));
    let say = |key: &str, time: Option<i64>| Entry::message(key, Role::User, key).at(time.map(Micros));
    // #4 bears no time and is as old as #3, #6 and #8 are a little out of order, #9 was recorded by hand long after.
    let _ = imported
        .append([
            say("a", Some(100)),
            say("b", None),
            say("c", Some(300)),
            say("d", Some(290)),
            say("e", Some(500)),
            say("f", Some(490)),
            say("g", None),
        ])
        .unwrap();
    let fork = store.session(StreamInfo::session("acpdb", "fork"));
    let forked = fact::Forked { from: imported.id(), at: PointRef::Seq(Seq(6)) };
    let _ = fork.append([Entry::from(forked), say("h", None)]).unwrap();
    let now = store.now();
    let at = |session: &str, time: i64| {
        let stream = store.find_stream(session).unwrap();
        let view = store.view(stream.id).unwrap();
        let found = when::within(&store, &view, session, when::Point::Time(Micros(time)), now);
        found.unwrap().seq.get()
    };
    let first = store.event(Seq(3)).unwrap().unwrap();
    assert_eq!((first.event.host_time, first.event.payload.label()), (Some(Micros(100)), "message_recorded"));
    let found: Vec<u64> = [99, 100, 299, 300, 499, 500, 600].map(|time| at("imported", time)).into();
    assert_eq!(found, [1, 4, 4, 6, 6, 8, 8]);
    assert_eq!(at("imported", now.get()), store.head().unwrap().get());
    // A fork reads the history that it shares, up to the point where it left.
    let found: Vec<u64> = [100, 300, 500].map(|time| at("fork", time)).into();
    assert_eq!(found, [4, 6, 6]);
}

/// A shell call names a file by a part of its path: the calls that edited it by the whole path were left out, and `blame` said that
/// it was never written.
#[test]
fn a_path_means_all_files_that_end_in_it() {
    let store = store();
    let session = play(
        &store,
        "s",
        "turn\nedit /p/web/src/a.ts ok =w\nread src/a.ts ok =r\nread /p/src/b.ts ok\nread /q/src/a.ts ok =q",
    );
    let view = store.view(session.id).unwrap();
    let calls = |path: &str| -> Vec<String> {
        items(&view, "s", Which::File(path)).into_iter().filter_map(|row| row.call).collect()
    };
    assert_eq!(calls("src/a.ts"), ["w", "r", "q"]);
    assert_eq!(calls("a.ts"), ["w", "r", "q"]);
    assert_eq!(calls("/p/web/src/a.ts"), ["w"]);
    assert_eq!(calls("web/src/a.ts"), ["w"]);
    let blamed = blame::file(&store, &view, "s", "src/a.ts").unwrap().unwrap();
    assert!(blamed.last_write.is_some());
    assert_eq!(blamed.files, ["/p/web/src/a.ts", "/q/src/a.ts"]);
}

/// An import takes records without a time together with those that have one: they counted as of the import, so `since:2d` gave noise
/// of sessions that were months old.
#[test]
fn a_record_without_a_time_is_of_the_time_of_the_record_before_it() {
    let store = store();
    let stream = StreamInfo { host_time: Some(Micros(1_000_000_000)), ..StreamInfo::session("acpdb", "old") };
    let told = |key: &str, seconds: Option<i64>| Entry {
        host_time: seconds.map(|seconds| Micros(seconds * 1_000_000)),
        origin: Some(key.to_owned()),
        ..Entry::message(key, Role::User, key)
    };
    let entries = vec![told("a", Some(1_000)), told("b", None), told("c", Some(3_000)), told("d", None)];
    let _ = store.append(&stream, entries).unwrap();
    let later = StreamInfo::session("acpdb", "live");
    let _ = store.append(&later, vec![Entry::message("", Role::User, "now")]).unwrap();
    let texts = |query: &str| -> Vec<String> {
        let filter =
            filter::Filter::parse(&format!("kind:message_recorded {query}"), Micros(10_000_000_000)).unwrap();
        let question = EventsQuestion { filter: filter.clone(), ..EventsQuestion::default() };
        let events = events::events(&store, question).unwrap().map(|event| event.unwrap().seq);
        let mut all: Vec<_> = events.collect();
        let mut rows = Vec::new();
        for stream in store.stream_names().unwrap() {
            let view = store.view(stream.id).unwrap();
            rows.extend(item_rows(&store, &view, &stream, &filter).unwrap().map(|row| row.unwrap().seq));
        }
        rows.sort_unstable();
        all.sort_unstable();
        assert_eq!(all, rows, "{query}");
        all.iter().map(ToString::to_string).collect()
    };
    // From here on: c, d. Up to here: a, b; and of the live session nothing.
    let late = "1970-01-01T00:30:00Z";
    assert_eq!(texts(&format!("since:{late} session:old")).len(), 2);
    assert_eq!(texts(&format!("until:{late} session:old")).len(), 2);
    assert_eq!(texts("until:1970-01-01T00:10:00Z session:old").len(), 0);
}
