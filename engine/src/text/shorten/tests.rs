use super::*;

#[test]
fn a_call_is_shown_in_one_line() {
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
    }
    let shown = shown_params(&Json::Obj(vec![("k".into(), "y".repeat(51).into())]), &[]);
    assert_eq!(shown.call_line("t", "error"), format!("t({{k: \"{}...\"}}) → error", "y".repeat(47)));
}

/// A Write of long ago stood in requests without its `content`; models took such calls for an example.
#[test]
fn an_input_that_steps_aside_keeps_every_key() {
    let mark = |count: usize| format!("[acpdb set aside {count} characters here; this is not the value]");
    let (long, path) = ("é".repeat(101), "p".repeat(200));
    let rows = [
        (
            format!(r#"{{"file_path":"/a","content":"{long}"}}"#),
            Some(format!(r#"{{"file_path":"/a","content":"{}"}}"#, mark(101))),
        ),
        (
            format!(r#"{{ "edits":[{{"old":"{long}","new":"","all":true}}, null], "path":"{path}"}}"#),
            Some(format!(
                r#"{{ "edits":[{{"old":"{}","new":"","all":true}}, null], "path":"{path}"}}"#,
                mark(101)
            )),
        ),
        (format!(r#"{{"{long}":1,"path":"{path}"}}"#), None),
        (format!("*** Begin Patch\n{long}"), Some(mark(117))),
        ("{}".to_owned(), None),
    ];
    for (input, shown) in rows {
        assert_eq!(set_aside(input.as_bytes()), shown, "{input}");
        if let Some(shown) = shown {
            assert!(shown.len() < input.len());
            assert_eq!(set_aside(shown.as_bytes()), None);
        }
    }
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
