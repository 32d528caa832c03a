use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::Micros;
use expect_test::{Expect, expect};

use super::*;
use crate::events::EventsQuestion;
use crate::filter::Needle;
use crate::testing::{play, store};
use crate::times::EventTimes;

fn ask(patterns: &[&str], reading: PatternSyntax, filter: &str) -> SearchQuestion {
    let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    SearchQuestion {
        patterns: Patterns::new(&patterns, reading).unwrap(),
        filter: Filter::parse(filter, Micros(0)).unwrap(),
        at: Seq::MAX,
        context: 0,
        places: 2,
    }
}

fn hits(store: &Store, question: &SearchQuestion) -> Vec<SearchHit> {
    let mut hits = Vec::new();
    for stream in store.stream_names().unwrap() {
        search(store, &stream, question, &mut Scanned::default(), &mut |hit| {
            hits.push(hit);
            true
        })
        .unwrap();
    }
    hits
}

fn told(hits: &[SearchHit]) -> String {
    let mut text = String::new();
    for hit in hits {
        let tool = hit.row.as_ref().and_then(|row| row.tool.clone()).unwrap_or_default();
        let seen = if hit.visible { "seen" } else { "unseen" };
        text += &format!("{} {tool} {:?} {seen} {}\n", hit.item, hit.face, hit.matches);
        for line in hit.excerpts.iter().flat_map(|excerpt| &excerpt.lines) {
            let mut shown = line.text.clone();
            for (from, to) in line.marks.iter().rev() {
                shown.insert(*to, ']');
                shown.insert(*from, '[');
            }
            text += &format!("  {}: {shown}\n", line.number);
        }
    }
    text
}

fn sample() -> Store {
    let store = store();
    play(
        &store,
        "first",
        "user The Parser fails on \"quoted\" words
        turn
        read /src/parser.rs
        turn
        edit /src/parser.rs
        turn
        bash make parser failed
        say I mended the parser",
    );
    play(&store, "second", "user nothing here");
    store
}

#[test]
fn texts_are_found_with_their_items_and_whether_the_model_sees_them() {
    let store = sample();
    let check = |patterns: &[&str], filter: &str, expected: Expect| {
        let found = hits(&store, &ask(patterns, PatternSyntax::default(), filter));
        expected.assert_eq(&told(&found));
    };
    check(
        &["parser"],
        "",
        expect![[r##"
            #3  Output seen 1
              1: The [Parser] fails on "quoted" words
            #5 read Input seen 1
              1: filePath: /src/[parser].rs
            #5 read Output unseen 20
              1: /src/[parser].rs line of output
              2: /src/[parser].rs line of output
            #8 edit Input seen 1
              1: filePath: /src/[parser].rs
            #8 edit Output seen 20
              1: /src/[parser].rs line of output
              2: /src/[parser].rs line of output
            #11 bash Input seen 1
              1: command: make [parser]
            #11 bash Output seen 20
              1: make [parser] line of output
              2: make [parser] line of output
            #13  Output seen 1
              1: I mended the [parser]
        "##]],
    );
    check(
        &["Parser"],
        "",
        expect![[r##"
        #3  Output seen 1
          1: The [Parser] fails on "quoted" words
    "##]],
    );
    check(
        &["parser", "mended"],
        "",
        expect![[r#"
        #13  Output seen 2
          1: I [mended] the [parser]
    "#]],
    );
    check(
        &["parser"],
        "tool:bash",
        expect![[r#"
            #11 bash Input seen 1
              1: command: make [parser]
            #11 bash Output seen 20
              1: make [parser] line of output
              2: make [parser] line of output
        "#]],
    );
    check(
        &["parser"],
        "session:second or state:superseded",
        expect![[r#"
            #5 read Input seen 1
              1: filePath: /src/[parser].rs
            #5 read Output unseen 20
              1: /src/[parser].rs line of output
              2: /src/[parser].rs line of output
        "#]],
    );
    check(
        &["\"quoted\""],
        "",
        expect![[r##"
        #3  Output seen 1
          1: The Parser fails on ["quoted"] words
    "##]],
    );
    check(&["nowhere"], "", expect![[r#""#]]);
}

#[test]
fn patterns_are_words_phrases_or_regular_expressions() {
    let regex = PatternSyntax { regex: true, ..PatternSyntax::default() };
    let word = PatternSyntax { word: true, ..PatternSyntax::default() };
    let case = PatternSyntax { case: true, ..PatternSyntax::default() };
    for (pattern, reading, text, marks) in [
        ("ab", PatternSyntax::default(), "ab AB cab", &[(0, 2), (3, 5), (7, 9)][..]),
        ("AB", PatternSyntax::default(), "ab AB cab", &[(3, 5)]),
        ("ab", case, "ab AB cab", &[(0, 2), (7, 9)]),
        ("ab", word, "ab AB cab", &[(0, 2), (3, 5)]),
        ("a.b", PatternSyntax::default(), "a.b axb", &[(0, 3)]),
        ("a.b", regex, "a.b axb", &[(0, 3), (4, 7)]),
        (r"\S+z", regex, "XZ yz", &[(0, 2), (3, 5)]),
        ("^b", regex, "a\nb", &[(2, 3)]),
        ("ä", PatternSyntax::default(), "Ä ä", &[(0, 2), (3, 5)]),
        ("x*", regex, "aaa", &[]),
    ] {
        let patterns = Patterns::new(&[pattern.to_owned()], reading).unwrap();
        assert_eq!(patterns.marks(text), marks, "{pattern}");
    }
    let error = Patterns::new(&["a(b".to_owned()], regex).unwrap_err().to_string();
    assert!(error.contains("\"a(b\"") && error.contains("unclosed group"), "{error}");
    assert!(Patterns::new(&["a(b".to_owned()], PatternSyntax::default()).is_ok());
}

#[test]
fn excerpts_are_lines_around_matches() {
    let text = "one\ntwo x\nthree\nfour\nfive x x\nsix";
    let patterns = Patterns::new(&["x".to_owned()], PatternSyntax::default()).unwrap();
    // `six` matches, too.
    let marks = patterns.marks(text);
    let numbers = |context: usize, count: usize| -> Vec<Vec<usize>> {
        let found = excerpt::excerpts(text, &marks, context, count);
        found.iter().map(|it| it.lines.iter().map(|line| line.number).collect()).collect()
    };
    assert_eq!(numbers(0, 9), [vec![2], vec![5, 6]]);
    assert_eq!(numbers(1, 9), [vec![1, 2, 3, 4, 5, 6]]);
    assert_eq!(numbers(0, 1), [vec![2]]);
    let long = format!("{}needle{}", "ä".repeat(500), "ö".repeat(500));
    let found = excerpt::excerpts(&long, &[(1000, 1006)], 0, 1);
    let line = &found[0].lines[0];
    assert!(line.text.starts_with('…') && line.text.ends_with('…') && line.text.len() < 400);
    assert_eq!(&line.text[line.marks[0].0..line.marks[0].1], "needle");
}

/// Parameters are stored as JSON, but a person types a text with its own quotation marks and line feeds.
#[test]
fn parameters_are_read_as_people_wrote_them() {
    let store = store();
    let info = StreamInfo::session("h", "s");
    let params = r#"{"command":"say \"hi there\"\nand go","depth":{"n":[1,2]}}"#;
    let _ = store.append(&info, vec![Entry::tool_started("c", "bash", params)]).unwrap();
    let _ = store.append(&info, vec![Entry::message("", Role::User, "hi there")]).unwrap();
    for (pattern, expected) in [
        ("\"hi there\"", "#3 bash Input seen 1\n  1: command: say [\"hi there\"]\n"),
        ("and go", "#3 bash Input seen 1\n  2: [and go]\n"),
        ("depth.n.1", ""),
    ] {
        let found = hits(&store, &ask(&[pattern], PatternSyntax::default(), ""));
        assert_eq!(told(&found), expected, "{pattern}");
    }
}

/// Parameters were searched as the JSON that is stored. A word at the beginning of a line was not found as a whole word, since the line
/// break before it is written `\\n`; patterns of lines found nothing; nor did texts that a host had written with more escapes than
/// JSON needs.
#[test]
fn parameters_are_searched_as_people_wrote_them() {
    let store = store();
    let info = StreamInfo::session("h", "s");
    let params = r#"{"path":"a","text":"one\nline two\n\tand \"three\" caf\u00e9 a\/b \u003cc\u003e"}"#;
    let _ = store.append(&info, vec![Entry::tool_started("c", "write", params)]).unwrap();
    let (plain, regex) =
        (PatternSyntax::default(), PatternSyntax { regex: true, ..PatternSyntax::default() });
    let word = PatternSyntax { word: true, ..PatternSyntax::default() };
    for (pattern, reading, count) in [
        ("line", word, 1),
        ("and", word, 1),
        ("ine", word, 0),
        ("^line", regex, 1),
        (r"^\s*and", regex, 1),
        (r"one\s+line", regex, 1),
        ("two$", regex, 1),
        ("a$", regex, 1),
        (r#"\S "three""#, regex, 1),
        ("caf\u{e9}", plain, 1),
        ("caf\u{e9}", word, 1),
        ("a/b", plain, 1),
        ("<c>", plain, 1),
        ("\"three\" caf\u{e9}", plain, 1),
        ("\"path\":\"a\"", plain, 1),
        ("three four", plain, 0),
        // The letter of an escape is no part of a text.
        ("nline", plain, 0),
        ("tand", plain, 0),
        ("nline", regex, 0),
        ("nline", word, 0),
        ("e9 a", plain, 0),
        ("u00e9", plain, 0),
        ("c>", plain, 1),
        ("3ec", plain, 0),
        ("two\\", plain, 0),
        ("two\\n\\tand", plain, 1),
    ] {
        let found = hits(&store, &ask(&[pattern], reading, ""));
        assert_eq!(found.iter().map(|hit| hit.matches).sum::<usize>(), count, "{pattern}");
        if !reading.regex && !reading.word {
            let filter = Filter::term(Term::Text(Needle::new(pattern)));
            let view = store.view(info.id()).unwrap();
            let stream = store.find_stream("s").unwrap();
            let rows = rows::item_rows(&store, &view, &stream, &filter).unwrap();
            assert_eq!(rows.map(Result::unwrap).count(), count, "{pattern}");
            let question = EventsQuestion { filter, ..EventsQuestion::default() };
            let events = crate::events::events(&store, question).unwrap();
            assert_eq!(events.map(Result::unwrap).count(), count, "{pattern}");
        }
    }
}

#[test]
fn a_search_ends_where_it_is_told_to() {
    let store = sample();
    let stream = store.find_stream("first").unwrap();
    let mut count = 0;
    let question = ask(&["parser"], PatternSyntax::default(), "");
    search(&store, &stream, &question, &mut Scanned::default(), &mut |_| {
        count += 1;
        count < 2
    })
    .unwrap();
    assert_eq!(count, 2);
}

/// Texts of a whole session were read where the filter asked for its last hour.
#[test]
fn texts_of_events_that_the_filter_leaves_out_are_not_read() {
    let store = sample();
    let stream = store.find_stream("first").unwrap();
    let all: Vec<Recorded> =
        store.stream_events(stream.id, Seq(1), Seq::MAX).unwrap().map(Result::unwrap).collect();
    let last = all.iter().rev().find(|recorded| !telling(&recorded.event.payload).is_empty()).unwrap();
    let time = EventTimes::new(&store).of(last, Some(&stream)).unwrap();
    let body_count = |term: Option<Term>| {
        let mut question = ask(&["parser"], PatternSyntax::default(), "");
        question.filter = term.map(Filter::term).unwrap_or_default();
        let (mut scanned, mut seqs) = (Scanned::default(), Vec::new());
        search(&store, &stream, &question, &mut scanned, &mut |hit| {
            seqs.push(hit.seq);
            true
        })
        .unwrap();
        (scanned.bodies, seqs)
    };
    let (every, hits) = body_count(None);
    assert!(every > 1 && hits.len() > 1);
    assert_eq!(body_count(Some(Term::Since(time))), (1, vec![last.seq]));
    assert_eq!(body_count(Some(Term::Since(Micros(time.0 + 1)))), (0, vec![]));
}

/// Erased texts are found nowhere: there is no index that could keep them.
#[test]
fn what_is_erased_is_not_found() {
    let store = sample();
    let question = ask(&["mended"], PatternSyntax::default(), "");
    let found = hits(&store, &question);
    assert_eq!(found.len(), 1);
    let item: ItemId = found[0].item.parse().unwrap();
    let _ = store.erase(item, "me", "a test").unwrap();
    assert_eq!(hits(&store, &question), []);
}

/// Kinds that are searched were listed by hand: summaries that the model sees in place of items were not among them, nor were lists
/// of todos and facts that only the host understands.
#[test]
fn all_that_says_something_is_searched() {
    use acpdb_engine::entry::fact;
    use acpdb_engine::{ContextAction, Target};

    let store = store();
    let info = StreamInfo::session("h", "s");
    let list = br#"[{"content":"wombat","status":"pending"}]"#.as_slice();
    let raw = Some(acpdb_engine::entry::Bytes::from(b"narwhal".as_slice()));
    let entries = vec![
        Entry::tool_started("c", "bash", r#"{"command":"make"}"#),
        Entry::tool_completed("c", "fine ".repeat(400)),
        Entry::from(fact::TodosReplaced { list: list.into() }),
        Entry::from(fact::HostRecorded { record: "sonar".to_owned(), about: None, raw }),
    ];
    let receipt = store.append(&info, entries).unwrap();
    let item = receipt.items.iter().flatten().next().copied().unwrap();
    let target = (Target::Item(item), Some("an ocelot built it".to_owned()));
    let _ = store.context(info.id(), ContextAction::Distill, vec![target]).unwrap();
    for (word, kind) in [("ocelot", "distilled"), ("wombat", "todos_replaced"), ("narwhal", "host_recorded")]
    {
        let found = hits(&store, &ask(&[word], PatternSyntax::default(), ""));
        assert_eq!(found.iter().map(|hit| hit.kind).collect::<Vec<_>>(), [kind], "{word}");
    }
}

/// Each line of an excerpt looked through all matches of its text: 40,000 lines that match took minutes.
#[test]
fn many_lines_that_match_are_cut_out_in_one_pass() {
    let text = "a word and a word\n".repeat(40_000);
    let marks = ask(&["word"], PatternSyntax::default(), "").patterns.marks(&text);
    let found = excerpt::excerpts(&text, &marks, 0, usize::MAX);
    let lines: Vec<&ExcerptLine> = found.iter().flat_map(|excerpt| &excerpt.lines).collect();
    assert_eq!(lines.len(), 40_000);
    assert!(lines.iter().all(|line| line.marks == [(2, 6), (13, 17)]));
}
