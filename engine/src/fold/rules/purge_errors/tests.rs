use proptest::prelude::*;

use super::*;
use crate::text::Json;

fn cut(params: &[u8]) -> Option<String> {
    ShortValues { shown_tokens: 0 }.cut(params)
}

#[test]
fn long_inputs_of_failed_calls_are_purged() {
    let long = "x".repeat(40);
    let rows = [
        (format!(r#"{{"a":"{long}"}}"#), Some(format!(r#"{{"a":"{MARK}"}}"#))),
        (r#"{"a":"short","n":1.0}"#.to_owned(), None),
        (format!(r#"{{"a":"{}"}}"#, "x".repeat(39)), None),
        (
            format!(
                "{{ \"b\" : 1.0 , \"e\":[ {{\"n\":\"{long}\"}}, \"ok\", \"{long}\" ], \"{long}\": null}}\n"
            ),
            Some(format!(
                "{{ \"b\" : 1.0 , \"e\":[ {{\"n\":\"{MARK}\"}}, \"ok\", \"{MARK}\" ], \"{long}\": null}}\n"
            )),
        ),
        // Forty characters of source, but seven of text.
        (r#""\u0041\u0041\u0041\u0041\u0041\u0041\u0041""#.to_owned(), None),
        (format!("\"{long}\""), Some(format!("\"{MARK}\""))),
        (format!("*** {long}"), Some(MARK.to_owned())),
        ("*** patch".to_owned(), None),
        (String::new(), None),
    ];
    for (params, purged) in rows {
        assert_eq!(cut(params.as_bytes()), purged, "{params}");
    }
    assert_eq!(cut(&[0xff; 60]).as_deref(), Some(MARK));
}

proptest! {
    #[test]
    fn a_purged_input_is_json_with_the_same_keys(values in proptest::collection::vec("[a-z\"\\\\é]{0,60}", 1..5)) {
        let fields = values.iter().map(|value| (value.as_str().into(), value.as_str().into())).collect();
        let params = Json::Obj(vec![("in".into(), Json::Arr(vec![Json::Obj(fields)]))]).canonical();
        let long = Json::parse(params.as_bytes()).unwrap().get("in").unwrap().as_array().unwrap()[0]
            .sorted_fields().iter().any(|(_, value)| value.as_str().unwrap().len() > MARK.len());
        let purged = cut(params.as_bytes());
        prop_assert_eq!(purged.is_some(), long);
        if let Some(purged) = purged {
            let keys = |text: &str| {
                let json = Json::parse(text.as_bytes()).unwrap();
                let inner = &json.get("in").unwrap().as_array().unwrap()[0];
                inner.sorted_fields().iter().map(|(key, _)| (*key).clone()).collect::<Vec<_>>()
            };
            prop_assert_eq!(keys(&purged), keys(&params));
            prop_assert_eq!(cut(purged.as_bytes()), None);
        }
    }
}
