use super::*;

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
