//! Tables over the text form: its meanings, and its faults with their spots.

use std::fmt::Write as _;

use acpdb_engine::ids::Micros;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::parse::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX};
use super::*;

/// 2026-01-31T12:00:00Z.
const NOW: Micros = Micros(1_769_860_800_000_000);

fn shape(expr: &Expr) -> String {
    let join = |all: &[Expr], word: &str| all.iter().map(shape).collect::<Vec<_>>().join(word);
    match expr {
        Expr::Term(term) => match term {
            Term::Kind(words) => format!("{words:?}"),
            Term::Tool(globs)
            | Term::File(globs)
            | Term::Session(globs)
            | Term::Host(globs)
            | Term::Call(globs) => globs.patterns().join("|"),
            Term::Turn(range) | Term::Seq(range) | Term::Tokens(range) => {
                let to = if range.to == u64::MAX { String::new() } else { range.to.to_string() };
                format!("{}..{to}", range.from)
            }
            Term::Since(time) | Term::Until(time) => format!("{}s", (time.0 - NOW.0) / 1_000_000),
            Term::Text(needle) => format!("{:?}", needle.text()),
            other => format!("{other:?}"),
        },
        Expr::Not(inner) => format!("not {}", shape(inner)),
        Expr::All(all) => format!("({})", join(all, " and ")),
        Expr::Any(any) => format!("({})", join(any, " or ")),
    }
}

#[test]
fn filters_mean_what_they_say() {
    let mut text = String::new();
    for filter in [
        "",
        "  ",
        "kind:tool tool:Read file:src/** state:superseded rule:file",
        // The help had `is:`, and the reader knew no such field.
        "is:superseded",
        "turn:10..20 tokens:>1000 since:2d",
        "tokens:2k.. tokens:<1M tokens:>=5 tokens:<=5 seq:#800..#900 turn:t3 turn:..4",
        r#"text:"connection refused" actor:assistant"#,
        "timeout \"two words\" \"a \\\" quote\" path\\to",
        "tool:grep or tool:glob -status:failed",
        "(tool:grep or tool:glob) and not status:failed,aborted",
        "a | b & c",
        "!-a",
        "orange notes android",
        "KIND:Tool-Call-Started OR host:Claude*",
        "file:./a.rs file:src/ file:/abs/x file:**/y",
        "session:ses call:toolu_0*",
        "since:\"10m ago\" until:2026-01-30T12:00:00Z",
        "url:x",
        "\"url:x\"",
    ] {
        let shown = match Filter::parse(filter, NOW) {
            Ok(parsed) => parsed.expr.as_ref().map_or("everything".to_owned(), shape),
            Err(error) => format!("error: {}", error.message),
        };
        writeln!(text, "{filter:?}\n    {shown}").unwrap();
    }
    expect![[r#"
        ""
            everything
        "  "
            everything
        "kind:tool tool:Read file:src/** state:superseded rule:file"
            ([Group(Tool)] and read and src/**|**/src/** and State([Superseded]) and Rule(["file"]))
        "is:superseded"
            State([Superseded])
        "turn:10..20 tokens:>1000 since:2d"
            (10..20 and 1001.. and -172800s)
        "tokens:2k.. tokens:<1M tokens:>=5 tokens:<=5 seq:#800..#900 turn:t3 turn:..4"
            (2000.. and 0..999999 and 5.. and 0..5 and 800..900 and 3..3 and 0..4)
        "text:\"connection refused\" actor:assistant"
            ("connection refused" and Actor([Assistant]))
        "timeout \"two words\" \"a \\\" quote\" path\\to"
            ("timeout" and "two words" and "a \" quote" and "path\\to")
        "tool:grep or tool:glob -status:failed"
            (grep or (glob and not Status([Failed])))
        "(tool:grep or tool:glob) and not status:failed,aborted"
            ((grep or glob) and not Status([Failed, Aborted]))
        "a | b & c"
            ("a" or ("b" and "c"))
        "!-a"
            "a"
        "orange notes android"
            ("orange" and "notes" and "android")
        "KIND:Tool-Call-Started OR host:Claude*"
            ([Event(32)] or claude*)
        "file:./a.rs file:src/ file:/abs/x file:**/y"
            (a.rs|**/a.rs and src/**|**/src/** and /abs/x and **/y)
        "session:ses call:toolu_0*"
            (ses|ses* and toolu_0*)
        "since:\"10m ago\" until:2026-01-30T12:00:00Z"
            (-600s and -86399s)
        "url:x"
            error: there is no field "url"
        "\"url:x\""
            "url:x"
    "#]]
    .assert_eq(&text);
}

/// The help has `'since:last week'`, which was no time, and `'until:10m ago'`, which looked for the word "ago".
#[test]
fn a_time_of_several_words_is_one_value() {
    for (plain, quoted) in [
        ("since:last week", "since:\"last week\""),
        ("until:2026-01-30 09:10", "until:\"2026-01-30 09:10\""),
        ("until:10m ago", "until:\"10m ago\""),
        ("since:Jan 9", "since:\"Jan 9\""),
        (
            "tool:read -until:Jan 9, 2026 or since:2 days ago failed",
            "tool:read -until:\"Jan 9, 2026\" or since:\"2 days ago\" failed",
        ),
        ("since:yesterday 14:05 until:yesterday", "since:\"yesterday 14:05\" until:yesterday"),
        ("tool:read since:monday", "tool:read since:\"monday\""),
        ("since:2d error", "since:2d text:error"),
        ("(since:last week)", "(since:\"last week\")"),
        ("title:last week", "title:last text:week"),
    ] {
        let read = |text| Filter::parse(text, NOW).unwrap().expr;
        assert_eq!(read(plain), read(quoted), "{plain}");
    }
    assert!(Filter::parse("since:last banana", NOW).is_err());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_wrong_is_pointed_at() {
    let check = |filters: &[&str], expected: Expect| {
        let mut text = String::new();
        for filter in filters {
            let error = Filter::parse(filter, NOW).unwrap_err();
            let hint = error.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
            writeln!(text, "{error}{hint}\n").unwrap();
        }
        expected.assert_eq(&text);
    };
    check(
        &[
            "kind:tool tol:read",
            "state:supersede",
            "kind:tool_call_startd",
            "rule:fil,hsh",
            "turn:20..10",
            "tokens:many",
            "tokens:<0",
            "tokens:99999999999999999999",
            "kind:",
            "tool=read",
            "zzz:1",
            "derived:52a6",
            "since:soon",
            "since:2027-01-01",
            "text:\"open",
            "(a or b",
            "a)",
            "()",
            "a or",
            "or a",
            "a and or b",
            "not",
            "-)",
            "文件 turn:9..1",
        ],
        expect![[r#"
            there is no field "tol" (column 11)
              kind:tool tol:read
                        ^^^
              hint: did you mean tool: ?

            state: does not know "supersede" (column 7)
              state:supersede
                    ^^^^^^^^^
              hint: did you mean state:superseded?

            kind: does not know "tool_call_startd" (column 6)
              kind:tool_call_startd
                   ^^^^^^^^^^^^^^^^
              hint: did you mean kind:tool_call_started?

            rule: does not know "fil" (column 6)
              rule:fil,hsh
                   ^^^^^^^
              hint: did you mean rule:file?

            the range 20..10 is reversed (column 6)
              turn:20..10
                   ^^^^^^
              hint: write turn:10..20

            tokens: wants a number or a range, not "many" (column 8)
              tokens:many
                     ^^^^
              hint: such as tokens:>1000 or tokens:10..20

            tokens:<0 holds no number (column 8)
              tokens:<0
                     ^^

            tokens: wants a number or a range, not "99999999999999999999" (column 8)
              tokens:99999999999999999999
                     ^^^^^^^^^^^^^^^^^^^^
              hint: such as tokens:>1000 or tokens:10..20

            kind: has no value (column 1)
              kind:
              ^^^^^
              hint: such as kind:tool

            a field and its value are joined by a colon (column 1)
              tool=read
              ^^^^^^^^^
              hint: write tool:read

            there is no field "zzz" (column 1)
              zzz:1
              ^^^
              hint: fields: kind tool file session host call state status rule turn seq tokens since until text actor title project model cost duration; a text with a colon goes into quotes

            there is no field "derived" (column 1)
              derived:52a6
              ^^^^^^^
              hint: a session is named by -s derived:52a6, or session:derived:52a6

            since: "soon" is no time (column 7)
              since:soon
                    ^^^^
              hint: such as 2d, 2026-01-31, "2026-01-31 14:05", 2026-01-31T14:05:09Z, 14:05, "yesterday 14:05", "last Tuesday", "last week", "Jul 29", "29 Jul 2025", "10m ago" or "2 days ago"

            since:2027-01-01 is yet to come; nothing is that new (column 7)
              since:2027-01-01
                    ^^^^^^^^^^

            the quotation does not end (column 6)
              text:"open
                   ^
              hint: close it with "

            this parenthesis is not closed (column 1)
              (a or b
              ^

            this parenthesis was not opened (column 2)
              a)
               ^

            the parentheses are empty (column 1)
              ()
              ^^

            a condition is expected after this (column 3)
              a or
                ^^

            a condition is expected before this (column 1)
              or a
              ^^

            a condition is expected before this (column 7)
              a and or b
                    ^^

            a condition is expected after this (column 1)
              not
              ^^^

            a condition is expected before this (column 2)
              -)
               ^

            the range 9..1 is reversed (column 9)
              文件 turn:9..1
                        ^^^^
              hint: write turn:1..9

        "#]],
    );
}

#[test]
fn size_and_nesting_have_limits() {
    let deep = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&deep(FILTER_DEPTH_MAX), NOW).is_ok());
    assert!(Filter::parse(&deep(FILTER_DEPTH_MAX + 1), NOW).unwrap_err().message.contains("nested"));
    assert!(Filter::parse(&"!".repeat(FILTER_DEPTH_MAX + 1), NOW).unwrap_err().message.contains("nested"));
    let long = "x".repeat(FILTER_BYTES_MAX);
    assert!(Filter::parse(&long, NOW).is_ok());
    assert!(Filter::parse(&format!("{long}x"), NOW).is_err());
    // A long filter is cut to the part around the spot.
    let error = Filter::parse(&format!("{}turn:9..1", "a ".repeat(500)), NOW).unwrap_err();
    assert!(error.to_string().lines().all(|line| line.chars().count() < 100), "{error}");
}

#[test]
fn what_is_not_known_is_left_open() {
    let parsed = |text: &str| Filter::parse(text, NOW).unwrap();
    // `a` holds, `b` does not hold, `c` is not known yet.
    let known = |term: &Term| match term {
        Term::Text(needle) if needle.text() == "a" => Some(true),
        Term::Text(needle) if needle.text() == "b" => Some(false),
        _ => None,
    };
    for (filter, verdict) in [
        ("", Some(true)),
        ("a", Some(true)),
        ("a b", Some(false)),
        ("c b", Some(false)),
        ("a c", None),
        ("c or a", Some(true)),
        ("c or b", None),
        ("-c", None),
        ("-b", Some(true)),
        ("-(c b)", Some(true)),
    ] {
        assert_eq!(parsed(filter).judge(&known), verdict, "{filter}");
    }
}

#[test]
fn bounds_follow_from_the_seqs_that_are_asked_for() {
    for (filter, from, to) in [
        ("", 1, u64::MAX),
        ("seq:5..9", 5, 9),
        ("seq:5.. seq:..9", 5, 9),
        ("seq:5 or seq:9", 5, 9),
        ("seq:5 or a", 1, u64::MAX),
        ("-seq:5", 1, u64::MAX),
    ] {
        let bounds = Filter::parse(filter, NOW).unwrap().bounds();
        assert_eq!(bounds, (Seq(from), Seq(to)), "{filter}");
    }
}

#[test]
fn needles_in_lower_case_are_found_in_any_case() {
    for (needle, body, found) in [
        ("refused", "Connection REFUSED", true),
        ("Refused", "connection refused", false),
        ("straße", "STRAßE", true),
        ("404", "error 404", true),
        ("", "anything", true),
        ("ab", "a b", false),
    ] {
        assert_eq!(Needle::new(needle).is_in(body.as_bytes()), found, "{needle:?} in {body:?}");
    }
    assert!(Needle::new("x").is_in(b"\xff\xfeX"));
}

proptest! {
    #[test]
    fn no_text_makes_parsing_panic(text in "[a-z:() \"\\\\|&!.<>0-9\\-,*k\u{0}é]{0,60}") {
        match Filter::parse(&text, NOW) {
            Ok(filter) => prop_assert_eq!(filter.text().is_empty(), filter.is_empty()),
            Err(error) => {
                prop_assert!(error.spot.column <= text.chars().count());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    /// A filter that is decided early has the same verdict once everything is known.
    #[test]
    fn an_early_verdict_stands(text in "[abc ()|!]{1,24}", early in 0_u8..8, values in 0_u8..8) {
        let Ok(filter) = Filter::parse(&text, NOW) else { return Ok(()) };
        let bit = |needle: &Needle, bits: u8| needle.text().bytes().next().is_none_or(|byte| (bits >> (byte - b'a')) & 1 == 1);
        let all = |term: &Term| match term { Term::Text(needle) => Some(bit(needle, values)), _ => None };
        let some = |term: &Term| match term {
            Term::Text(needle) if bit(needle, early) => Some(bit(needle, values)),
            _ => None,
        };
        let verdict = filter.judge(&all);
        prop_assert!(verdict.is_some());
        if let Some(known) = filter.judge(&some) {
            prop_assert_eq!(Some(known), verdict);
        }
    }
}
