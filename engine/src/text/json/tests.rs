#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

fn table(rows: &[&str], line: impl Fn(&str) -> String, expected: &Expect) {
    let lines: Vec<String> = rows.iter().map(|row| format!("{row}  ->  {}\n", line(row))).collect();
    expected.assert_eq(&lines.concat());
}

#[test]
fn canonical_forms() {
    let rows = [
        " { } ",
        "[ 1 , 2 , [ ] ]",
        r#"{"b":1,"a":{"d":[true,false,null],"c":"x"}}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"a":1,"a":{"x":1,"x":null}}"#,
        r#"{"z":1,"":2,"aa":3,"a":4,"B":5}"#,
        r#"{"\ufb01":1,"\ud83d\ude00":2,"z":3,"\ud7ff":4}"#,
        r#"{"\ue000":1,"\ud83d":2,"\ud83d\ude00":3,"\ud83d\uffff":4}"#,
        "1.0",
        "-0",
        "-0.0",
        "1e20",
        "1e21",
        "123456789012345680000",
        "0.000001",
        "1e-7",
        "1.5e300",
        "1e999",
        "-1e999",
        "4.9e-324",
        "9007199254740993",
        "0.1",
        "-123.456",
        r#""\u0000\u001f\b\t\n\f\r\"\\\/ \u007f\u2028é\u00e9\ud83d\ude00""#,
        r#""a\ud83d""#,
        r#""\udE00b\uD83D\n""#,
        r#""\ud83d\u0041\ud83d\ud83d\ude00""#,
    ];
    table(
        &rows,
        |row| parse(row).canonical(),
        &expect![[r#"
         { }   ->  {}
        [ 1 , 2 , [ ] ]  ->  [1,2,[]]
        {"b":1,"a":{"d":[true,false,null],"c":"x"}}  ->  {"a":{"c":"x","d":[true,false,null]},"b":1}
        {"a":1,"b":2,"a":3}  ->  {"a":3,"b":2}
        {"a":1,"a":{"x":1,"x":null}}  ->  {"a":{"x":null}}
        {"z":1,"":2,"aa":3,"a":4,"B":5}  ->  {"":2,"B":5,"a":4,"aa":3,"z":1}
        {"\ufb01":1,"\ud83d\ude00":2,"z":3,"\ud7ff":4}  ->  {"z":3,"퟿":4,"😀":2,"ﬁ":1}
        {"\ue000":1,"\ud83d":2,"\ud83d\ude00":3,"\ud83d\uffff":4}  ->  {"\ud83d":2,"😀":3,"\ud83d￿":4,"":1}
        1.0  ->  1
        -0  ->  0
        -0.0  ->  0
        1e20  ->  100000000000000000000
        1e21  ->  1e+21
        123456789012345680000  ->  123456789012345680000
        0.000001  ->  0.000001
        1e-7  ->  1e-7
        1.5e300  ->  1.5e+300
        1e999  ->  null
        -1e999  ->  null
        4.9e-324  ->  5e-324
        9007199254740993  ->  9007199254740992
        0.1  ->  0.1
        -123.456  ->  -123.456
        "\u0000\u001f\b\t\n\f\r\"\\\/ \u007f\u2028é\u00e9\ud83d\ude00"  ->  "\u0000\u001f\b\t\n\f\r\"\\/  éé😀"
        "a\ud83d"  ->  "a\ud83d"
        "\udE00b\uD83D\n"  ->  "\ude00b\ud83d\n"
        "\ud83d\u0041\ud83d\ud83d\ude00"  ->  "\ud83dA\ud83d😀"
    "#]],
    );
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    let deep = "[".repeat(JSON_DEPTH_MAX + 1);
    let mut rows: Vec<&str> = [
        r#"¦ ¦{¦[¦[1¦[1,¦[1,]¦{"a"¦{"a":¦{"a":1¦{"a":1,¦{"a":1,}¦{a:1}¦{1:2}¦[1 2]¦{"a" 1}¦1 2¦]¦[}¦'a'¦é"#,
        r#"tru¦nul¦NaN¦Infinity¦+1¦01¦1.¦.5¦1e¦1e+¦-¦--1¦0x1"#,
        r#""¦"a¦"\¦"\x"¦"\u12"¦"\u12g4"¦"\ud83d\u""#,
    ]
    .iter()
    .flat_map(|rows| rows.split('¦'))
    .collect();
    rows.extend(["\"a\nb\"", "\u{feff}1", deep.as_str()]);
    table(
        &rows,
        |row| Json::parse(row.as_bytes()).unwrap_err().to_string(),
        &expect![[r#"
              ->  not JSON at byte 0: expected a value, found the end
               ->  not JSON at byte 1: expected a value, found the end
            {  ->  not JSON at byte 1: expected a key in quotes, found the end
            [  ->  not JSON at byte 1: expected a value, found the end
            [1  ->  not JSON at byte 2: expected `,` or `]`, found the end
            [1,  ->  not JSON at byte 3: expected a value, found the end
            [1,]  ->  not JSON at byte 3: expected a value, found `]`
            {"a"  ->  not JSON at byte 4: expected `:`, found the end
            {"a":  ->  not JSON at byte 5: expected a value, found the end
            {"a":1  ->  not JSON at byte 6: expected `,` or `}`, found the end
            {"a":1,  ->  not JSON at byte 7: expected a key in quotes, found the end
            {"a":1,}  ->  not JSON at byte 7: expected a key in quotes, found `}`
            {a:1}  ->  not JSON at byte 1: expected a key in quotes, found `a`
            {1:2}  ->  not JSON at byte 1: expected a key in quotes, found `1`
            [1 2]  ->  not JSON at byte 3: expected `,` or `]`, found `2`
            {"a" 1}  ->  not JSON at byte 5: expected `:`, found `1`
            1 2  ->  not JSON at byte 2: expected the end, found `2`
            ]  ->  not JSON at byte 0: expected a value, found `]`
            [}  ->  not JSON at byte 1: expected a value, found `}`
            'a'  ->  not JSON at byte 0: expected a value, found `\'`
            é  ->  not JSON at byte 0: expected a value, found `é`
            tru  ->  not JSON at byte 0: expected true, found `t`
            nul  ->  not JSON at byte 0: expected null, found `n`
            NaN  ->  not JSON at byte 0: expected a value, found `N`
            Infinity  ->  not JSON at byte 0: expected a value, found `I`
            +1  ->  not JSON at byte 0: expected a value, found `+`
            01  ->  not JSON at byte 1: expected the end, found `1`
            1.  ->  not JSON at byte 2: expected a digit, found the end
            .5  ->  not JSON at byte 0: expected a value, found `.`
            1e  ->  not JSON at byte 2: expected a digit, found the end
            1e+  ->  not JSON at byte 3: expected a digit, found the end
            -  ->  not JSON at byte 1: expected a digit, found the end
            --1  ->  not JSON at byte 1: expected a digit, found `-`
            0x1  ->  not JSON at byte 1: expected the end, found `x`
            "  ->  not JSON at byte 1: expected `"`, found the end
            "a  ->  not JSON at byte 2: expected `"`, found the end
            "\  ->  not JSON at byte 2: expected an escape: one of " \ / b f n r t u, found the end
            "\x"  ->  not JSON at byte 2: expected an escape: one of " \ / b f n r t u, found `x`
            "\u12"  ->  not JSON at byte 5: expected four hex digits, found `\"`
            "\u12g4"  ->  not JSON at byte 5: expected four hex digits, found `g`
            "\ud83d\u"  ->  not JSON at byte 9: expected four hex digits, found `\"`
            "a
            b"  ->  not JSON at byte 2: expected no control character in a string, found `\n`
            ﻿1  ->  not JSON at byte 0: expected a value, found `\u{feff}`
            [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[  ->  not JSON at byte 128: expected at most 128 levels, found `[`
        "#]],
    );
    assert_eq!(
        Json::parse(b"\"a\xff\"").unwrap_err().to_string(),
        "not JSON at byte 2: expected UTF-8, found byte 0xff"
    );
}

#[test]
fn depth_has_a_limit() {
    let nested = |depth: usize| format!("{}1{}", "[{\"a\":".repeat(depth / 2), "}]".repeat(depth / 2));
    assert_eq!(parse(&nested(JSON_DEPTH_MAX)).canonical(), nested(JSON_DEPTH_MAX));
    assert!(Json::parse(nested(JSON_DEPTH_MAX + 2).as_bytes()).is_err());
    assert!(Json::parse("[".repeat(1 << 20).as_bytes()).is_err());
}

#[test]
fn values_are_read_by_kind() {
    let json = parse(
        r#"{"s":"x","n":3,"big":1e300,"neg":-1,"half":0.5,"b":true,"l":[1],"z":null,"s":"last","w":"\ud800"}"#,
    );
    assert_eq!(json.get("s").and_then(Json::as_str), Some("last"));
    assert_eq!(json.get("n").and_then(Json::as_u64), Some(3));
    assert_eq!(json.get("n").and_then(Json::as_f64), Some(3.0));
    for name in ["big", "neg", "half", "b"] {
        assert_eq!(json.get(name).unwrap().as_u64(), None, "{name}");
    }
    assert_eq!(json.get("b").and_then(Json::as_bool), Some(true));
    assert_eq!(json.get("l").and_then(Json::as_array).map(<[Json]>::len), Some(1));
    assert!(json.get("z").unwrap().is_null() && json.get("none").is_none() && parse("1").get("s").is_none());
    assert_eq!(json.get("w").unwrap().as_str(), None);
    assert!(matches!(json.get("w"), Some(Json::Str(text)) if text.to_lossy() == "\u{fffd}"));
    assert_eq!(JsonStr::from_units(&[0xd83d, 0xde00]).as_str(), Some("😀"));
}

#[test]
fn outermost_nulls_can_be_dropped() {
    let rows = [
        r#"{"b":null,"a":{"c":null},"d":[null]}"#,
        r#"{"a":null}"#,
        r#"{"a":1,"a":null}"#,
        r#"{"a":null,"a":1}"#,
        r#"[null,{"a":null}]"#,
        "null",
    ];
    table(
        &rows,
        |row| parse(row).canonical_without_nulls(),
        &expect![[r#"
        {"b":null,"a":{"c":null},"d":[null]}  ->  {"a":{"c":null},"d":[null]}
        {"a":null}  ->  {}
        {"a":1,"a":null}  ->  {}
        {"a":null,"a":1}  ->  {"a":1}
        [null,{"a":null}]  ->  [null,{"a":null}]
        null  ->  null
    "#]],
    );
}

#[test]
fn strings_at_paths_are_found_and_replaced() {
    let json = parse(
        r#"{"filePath":"a","paths":["b","",3,"c"],"edits":[{"filePath":"d","n":null},{"x":1},{"filePath":"e"}],
            "deep":{"er":{"file":"f"}},"grid":[["g"],["h","i"]],"filePath":"last","nil":null,"lone":"\ud800"}"#,
    );
    let rows = [
        "filePath",
        "paths[]",
        "paths",
        "edits[].filePath",
        "deep.er.file",
        "grid[][]",
        "grid[]",
        "nil",
        "none",
        "lone",
        "filePath.x",
        "[]",
        "",
        ".",
        "paths[].",
        "edits[]..filePath",
    ];
    table(
        &rows,
        |row| format!("{:?}", json.at(ParamPath::new(row)).collect::<Vec<_>>()),
        &expect![[r#"
        filePath  ->  ["last"]
        paths[]  ->  ["b", "", "c"]
        paths  ->  []
        edits[].filePath  ->  ["d", "e"]
        deep.er.file  ->  ["f"]
        grid[][]  ->  ["g", "h", "i"]
        grid[]  ->  []
        nil  ->  []
        none  ->  []
        lone  ->  []
        filePath.x  ->  []
        []  ->  []
          ->  []
        .  ->  []
        paths[].  ->  ["b", "", "c"]
        edits[]..filePath  ->  []
    "#]],
    );
    assert_eq!(parse("\"bare\"").at(ParamPath::new("")).collect::<Vec<_>>(), ["bare"]);
    assert_eq!(parse("[\"x\"]").at(ParamPath::new("[]")).collect::<Vec<_>>(), ["x"]);

    let paths =
        ["filePath", "paths[]", "edits[].filePath", "deep.er.file", "grid[][]", "lone"].map(ParamPath::new);
    let mut shout = |text: &str| format!("{}!\n", text.to_uppercase());
    expect![[r#"{"deep":{"er":{"file":"F!\n"}},"edits":[{"filePath":"D!\n","n":null},{"x":1},{"filePath":"E!\n"}],"filePath":"LAST!\n","grid":[["G!\n"],["H!\n","I!\n"]],"lone":"\ud800","nil":null,"paths":["B!\n","!\n",3,"C!\n"]}"#]].assert_eq(&json.canonical_with(&paths, &mut shout));
    let bare = [ParamPath::new("")];
    assert_eq!(parse("\"bare\"").canonical_with(&bare, &mut shout), "\"BARE!\\n\"");
    let small = parse(r#"{"z":null,"filePath":"a","n":{"filePath":"b","z":null}}"#);
    expect![[r#"{"filePath":"A!\n","n":{"filePath":"b","z":null}}"#]]
        .assert_eq(&small.canonical_without_nulls_with(&paths, &mut shout));
}

#[test]
fn params_that_are_not_json_are_their_text() {
    for (params, canonical, is_json) in [
        (&b""[..], "{}", true),
        (b" {\"b\":1, \"a\":2}", "{\"a\":2,\"b\":1}", true),
        (b"null", "null", true),
        (b"*** Begin \"Patch\"\n", "\"*** Begin \\\"Patch\\\"\\n\"", false),
        (b"{\"a\":", "\"{\\\"a\\\":\"", false),
        (b"\xff", "\"\u{fffd}\"", false),
    ] {
        let (text, json) = canonical_or_text(params);
        assert_eq!((text.as_str(), json.is_some()), (canonical, is_json));
    }
}

#[test]
fn string_values_have_spans() {
    let text = r#" {"k":"a\n", "l":["b",{"m":""}]} "#;
    let spans: Vec<_> = string_spans(text).unwrap().into_iter().map(|(span, _)| &text[span]).collect();
    assert_eq!(spans, [r#""a\n""#, r#""b""#, r#""""#]);
}

/// Strings with everything that needs care: escapes, both sides of the surrogates, lone surrogates.
fn any_string() -> impl Strategy<Value = JsonStr> {
    prop_oneof![
        "\\PC{0,6}".prop_map(JsonStr::from),
        proptest::collection::vec(
            prop_oneof![0_u16..0x80, 0xd7fe_u16..0xe002, Just(0xd83d), Just(0xde00), Just(0xfb01)],
            0..5
        )
        .prop_map(|units| JsonStr::from_units(&units)),
    ]
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i32>().prop_map(|n| Json::Num(f64::from(n) / 1000.0)),
        any_string().prop_map(Json::Str),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Json::Arr),
            proptest::collection::vec((any_string(), inner), 0..6).prop_map(Json::Obj),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_is_its_own_canonical(json in any_json()) {
        let once = json.canonical();
        prop_assert_eq!(parse(&once).canonical(), once);
    }

    #[test]
    fn another_parser_reads_the_same(json in any_json()) {
        // Lone surrogates are the only part of the canonical form that the other parser refuses.
        let canonical = json.canonical();
        if let Ok(other) = serde_json::from_str::<serde_json::Value>(&canonical) {
            let printed = serde_json::to_string(&other).unwrap();
            prop_assert_eq!(parse(&printed).canonical(), canonical);
        } else {
            prop_assert!(canonical.contains("\\ud"));
        }
    }

    #[test]
    fn numbers_survive_their_spelling(number in any::<f64>()) {
        let canonical = Json::Num(number).canonical();
        let back = parse(&canonical).as_f64().unwrap_or(f64::INFINITY);
        // Adding 0 makes -0 and 0 one number, as the canonical form does.
        prop_assert!((back + 0.0).to_bits() == (number + 0.0).to_bits() || !number.is_finite(), "{canonical}");
        prop_assert_eq!(canonical.contains('e'), number.is_finite() && number != 0.0
            && !(1e-6..1e21).contains(&number.abs()));
    }

    #[test]
    fn order_of_keys_does_not_count(fields in proptest::collection::vec((any_string(), any::<bool>()), 0..8)) {
        let mut fields: Vec<_> = fields.into_iter().map(|(key, value)| (key, Json::Bool(value))).collect();
        fields.sort_by(|a, b| a.0.cmp_units(&b.0));
        fields.dedup_by(|a, b| a.0 == b.0);
        let forward = Json::Obj(fields.clone()).canonical();
        fields.reverse();
        prop_assert_eq!(Json::Obj(fields).canonical(), forward);
    }

    #[test]
    fn keys_sort_as_utf_16_does(a in any_string(), b in any_string()) {
        let units = |text: &JsonStr| match &text.0 {
            Repr::Text(text) => text.encode_utf16().collect::<Vec<_>>(),
            Repr::Units(units) => units.to_vec(),
        };
        prop_assert_eq!(a.cmp_units(&b), units(&a).cmp(&units(&b)));
    }

    #[test]
    fn parse_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = Json::parse(&bytes);
        let (canonical, _) = canonical_or_text(&bytes);
        prop_assert!(Json::parse(canonical.as_bytes()).is_ok());
    }

    #[test]
    fn parse_agrees_with_another_parser(text in "[\\[\\]{},:\"0-9eE.+\\- \\\\untrfalsd8c0]{0,14}") {
        // The other parser reads no lone surrogates and no infinite numbers; there is no other difference.
        let ours = Json::parse(text.as_bytes());
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => prop_assert!(ours.is_ok()),
            Err(error) => {
                let differs = error.to_string().contains("surrogate")
                    || error.to_string().contains("hex escape")
                    || error.to_string().contains("out of range");
                prop_assert!(ours.is_err() || differs, "{error}");
            }
        }
    }

    #[test]
    fn any_path_can_be_followed(json in any_json(), path in "[a\\[\\].]{0,8}") {
        let found: Vec<_> = json.at(ParamPath::new(&path)).map(str::to_owned).collect();
        let mut seen = Vec::new();
        json.canonical_with(&[ParamPath::new(&path)], &mut |text| {
            seen.push(text.to_owned());
            text.to_owned()
        });
        seen.sort();
        let mut found = found;
        found.sort();
        prop_assert_eq!(seen, found);
    }
}
