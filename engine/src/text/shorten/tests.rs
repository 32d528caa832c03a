#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn check(short: Option<String>, expected: &Expect) {
    expected.assert_eq(&short.unwrap_or_else(|| "(whole)".to_owned()));
}

fn numbered(count: usize, word: &str) -> String {
    (1..=count).map(|number| format!("{word} {number}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_middle_of_a_long_output_is_left_out() {
    let settings = TruncateSettings { max_tokens: 30, ..TruncateSettings::default() };
    check(
        truncate(&numbered(40, "line"), &settings),
        &expect![[r#"
        line 1
        line 2
        line 3
        line 4

        [... 32 lines truncated to save context ...]

        line 37
        line 38
        line 39
        line 40"#]],
    );
    check(truncate(&numbered(20, "a long line that is one of twenty"), &settings), &expect![["(whole)"]]);
    check(truncate(&numbered(40, "line"), &TruncateSettings::default()), &expect![["(whole)"]]);
}

#[test]
fn an_output_without_a_gap_or_gain_stays() {
    let all = TruncateSettings { max_tokens: 30, head_ratio: 2.0, tail_ratio: 9.0 };
    check(truncate(&numbered(40, "line"), &all), &expect![["(whole)"]]);
    // Leaving out a few short lines would cost more than it saves.
    let most = TruncateSettings { max_tokens: 50, head_ratio: 1.0, tail_ratio: 1.2 };
    check(truncate(&numbered(40, "x"), &most), &expect![["(whole)"]]);
    let fewer = TruncateSettings { head_ratio: 0.5, ..most };
    assert!(truncate(&numbered(40, "x"), &fewer).is_some_and(|short| short.contains("[... 12 lines ")));
    // No line fits: only the mark remains.
    let none = TruncateSettings { max_tokens: 10, head_ratio: 0.0, tail_ratio: 0.0 };
    check(
        truncate(&numbered(40, "line"), &none),
        &expect![[r#"


        [... 40 lines truncated to save context ...]

    "#]],
    );
}

#[test]
fn reasoning_keeps_its_beginning_what_tells_and_its_end() {
    let mut lines: Vec<String> = (1..=60).map(|n| format!("thinking about number {n}")).collect();
    lines[30] = "THEREFORE we take the second".to_owned();
    lines[57] = "so the Result is this".to_owned();
    check(
        compress_reasoning(&lines.join("\n"), 90),
        &expect![[r#"
        thinking about number 1
        thinking about number 2
        thinking about number 3
        thinking about number 4
        thinking about number 5

        [... 49 lines of reasoning compressed ...]

        THEREFORE we take the second
        thinking about number 56
        thinking about number 57
        so the Result is this
        thinking about number 59
        thinking about number 60
        [Thinking compressed to save context - key points preserved above]"#]],
    );
    check(compress_reasoning(&lines.join("\n"), 900), &expect![["(whole)"]]);
    check(compress_reasoning(&lines[..10].join("\n"), 5), &expect![["(whole)"]]);
}

#[test]
fn reasoning_takes_no_line_twice() {
    let text = numbered(12, "a result of some length that counts for about as many tokens as");
    let short = compress_reasoning(&text, 150).unwrap();
    for number in 1..=12 {
        let line = format!("as {number}\n");
        assert!(format!("{short}\n").matches(&line).count() <= 1, "line {number}");
    }
}

#[test]
fn long_inputs_of_failed_calls_are_purged() {
    let long = "x".repeat(40);
    let rows = [
        (format!(r#"{{"a":"{long}"}}"#), Some(format!(r#"{{"a":"{PURGE_MARK}"}}"#))),
        (r#"{"a":"short","n":1.0}"#.to_owned(), None),
        (format!(r#"{{"a":"{}"}}"#, "x".repeat(39)), None),
        (
            format!(
                "{{ \"b\" : 1.0 , \"e\":[ {{\"n\":\"{long}\"}}, \"ok\", \"{long}\" ], \"{long}\": null}}\n"
            ),
            Some(format!(
                "{{ \"b\" : 1.0 , \"e\":[ {{\"n\":\"{PURGE_MARK}\"}}, \"ok\", \"{PURGE_MARK}\" ], \"{long}\": null}}\n"
            )),
        ),
        // Forty characters of source, but seven of text.
        (r#""\u0041\u0041\u0041\u0041\u0041\u0041\u0041""#.to_owned(), None),
        (format!("\"{long}\""), Some(format!("\"{PURGE_MARK}\""))),
        (format!("*** {long}"), Some(PURGE_MARK.to_owned())),
        ("*** patch".to_owned(), None),
        (String::new(), None),
    ];
    for (params, purged) in rows {
        assert_eq!(purge_input(params.as_bytes()), purged, "{params}");
    }
    assert_eq!(purge_input(&[0xff; 60]).as_deref(), Some(PURGE_MARK));
}

#[test]
fn a_call_is_shown_in_one_line() {
    let long = "y".repeat(51);
    let rows: [(&str, &[&str], &str); 9] = [
        (
            r#"{"filePath":"/src/app.ts","limit":5}"#,
            &["filePath"],
            r#"read({filePath: "/src/app.ts"}) → completed"#,
        ),
        (
            r#"{"path":"/s","pattern":"*"}"#,
            &["pattern", "path"],
            r#"read({pattern: "*", path: "/s"}) → completed"#,
        ),
        (r#"{"path":"/s"}"#, &["pattern", "path"], r#"read({path: "/s"}) → completed"#),
        (r#"{"c":1.0,"b":true,"a":-0.5}"#, &[], "read({a: -0.5, b: true}) → completed"),
        (r#"{"a":null,"b":[1],"c":1}"#, &[], "read() → completed"),
        (r#"{"a":"one\n\"two\""}"#, &[], r#"read({a: "one\n\"two\""}) → completed"#),
        (r#"{"a":1,"a":2}"#, &[], "read({a: 2}) → completed"),
        ("{}", &["filePath"], "read() → completed"),
        ("[1]", &[], "read() → completed"),
    ];
    for (params, names, line) in rows {
        let shown = shown_params(&Json::parse(params.as_bytes()).unwrap(), names);
        assert_eq!(shown.call_line("read", "completed"), line, "{params}");
        Json::parse(shown.object_json().as_bytes()).unwrap();
    }
    let shown =
        shown_params(&Json::Obj(vec![("k\"".into(), long.into()), ("n".into(), Json::Num(1.0))]), &[]);
    assert_eq!(shown.object_json(), format!("{{\"k\\\"\":\"{}...\",\"n\":1}}", "y".repeat(47)));
}

#[test]
fn texts_are_clipped_by_characters() {
    for (text, clipped) in
        [("Found 73 TypeScript files", "Found...files"), ("ten chars.", "ten chars."), ("", "")]
    {
        assert_eq!(preview(text), clipped);
    }
    assert_eq!(preview("ééééééééééé"), "ééééé...ééééé");
    assert_eq!(preview("package.json contents"), "packa...tents");
    assert_eq!(label50(&"é".repeat(50)), "é".repeat(50));
    assert_eq!(label50(&"é".repeat(51)), format!("{}...", "é".repeat(47)));
    assert_eq!((clip("abc", 2), clip("abc", 3), clip("", 0)), ("...".into(), "abc".into(), "".into()));
    assert_eq!(first_three(&["read", "read", "bash"]), "read, read, bash");
    assert_eq!(first_three(&["a", "b", "c", "d"]), "a, b, c...");
    assert_eq!(first_three::<&str>(&[]), "");
}

proptest! {
    #[test]
    fn a_shortened_text_is_never_longer(
        lines in proptest::collection::vec("[a-z ]{0,30}|the result|é{1,9}", 0..60),
        max_tokens in 0_u32..80,
        head_ratio in 0.0..1.2,
        tail_ratio in 0.0..1.2,
    ) {
        let text = lines.join("\n");
        let settings = TruncateSettings { max_tokens, head_ratio, tail_ratio };
        for short in [truncate(&text, &settings), compress_reasoning(&text, max_tokens)].into_iter().flatten() {
            prop_assert!(short.len() <= text.len() && short.contains("[... "));
        }
    }

    #[test]
    fn a_purged_input_is_json_with_the_same_keys(values in proptest::collection::vec("[a-z\"\\\\é]{0,60}", 1..5)) {
        let fields = values.iter().map(|value| (value.as_str().into(), value.as_str().into())).collect();
        let params = Json::Obj(vec![("in".into(), Json::Arr(vec![Json::Obj(fields)]))]).canonical();
        let long = Json::parse(params.as_bytes()).unwrap().get("in").unwrap().as_array().unwrap()[0]
            .sorted_fields().iter().any(|(_, value)| value.as_str().unwrap().len() > PURGE_MARK.len());
        let purged = purge_input(params.as_bytes());
        prop_assert_eq!(purged.is_some(), long);
        if let Some(purged) = purged {
            let keys = |text: &str| {
                let json = Json::parse(text.as_bytes()).unwrap();
                let inner = &json.get("in").unwrap().as_array().unwrap()[0];
                inner.sorted_fields().iter().map(|(key, _)| (*key).clone()).collect::<Vec<_>>()
            };
            prop_assert_eq!(keys(&purged), keys(&params));
            prop_assert_eq!(purge_input(purged.as_bytes()), None);
        }
    }
}

#[test]
fn a_list_keeps_its_first_lines_and_those_that_name_files() {
    let lines: Vec<String> =
        (0..40).map(|n| format!("./src/part{n}.rs:{n}: a line with some words in it")).collect();
    let text = lines.join("\n");
    for (files, named) in [
        (&["/p/src/part30.rs"][..], &["part30.rs"][..]),
        (&["src/part30.rs", "part31.rs"], &["part30.rs", "part31.rs"]),
        (&["art30.rs", "/p/other/part30.rs", "src/part99.rs", ""], &[]),
        (&[], &[]),
    ] {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let short = first_and_named(&text, &files).unwrap();
        assert!(short.starts_with(&lines[0]) && short.len() < text.len(), "{short}");
        let told = short.lines().last().unwrap();
        let left_out = 40 - (short.lines().count() - 1);
        assert_eq!(told, format!("[... {left_out} more lines left out: search again]"));
        for n in 25..40 {
            let name = format!("part{n}.rs");
            assert_eq!(short.contains(&name), named.contains(&&*name), "{name} in {short}");
        }
    }
    // Nothing to leave out, or a result that is longer.
    assert_eq!(first_and_named("a\nb", &[]), None);
    assert_eq!(first_and_named("", &[]), None);
}
