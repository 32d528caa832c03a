//! The page as a text.

use std::collections::HashSet;

use acpdb_engine::entry::{PartEntry, PointRef, fact};
use acpdb_engine::event::Outcome;
use acpdb_engine::ids::Seq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The bytes between the tag of a block and the end of the script.
fn block<'p>(page: &'p str, id: &str) -> &'p str {
    let tag = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, behind) = page.split_once(&tag).unwrap();
    behind.split_once("</script>").unwrap().0
}

#[test]
fn every_reference_leads_somewhere() {
    let store = store();
    let entries =
        (0..40).flat_map(|n| exchange(n, "look again", &format!("/src/{}.rs", n % 4), &"line\n".repeat(n)));
    record(&store, &entries.collect::<Vec<_>>());
    let page = rendered(&store);
    let texts: Vec<String> = serde_json::from_str(block(&page, "texts")).unwrap();
    let data: Value = serde_json::from_str(block(&page, "data")).unwrap();
    let list = |name: &str| data["sessions"][0][name].as_array().unwrap().clone();
    let (items, words) = (list("items"), list("words"));
    let is_of = |value: &Value, count: usize| {
        value.as_i64().is_some_and(|place| place >= -1 && place < i64::try_from(count).unwrap())
    };
    assert_eq!(items.len(), 80);
    assert_eq!(list("edges").len(), 36, "each further read of one of four files");
    for edge in list("edges") {
        assert!(is_of(&edge[0], items.len()) && is_of(&edge[1], items.len()), "{edge}");
        assert!(is_of(&edge[2], words.len()) && is_of(&edge[3], words.len()), "{edge}");
    }
    for item in &items {
        for place in [&item[2], &item[3], &item[6], &item[7]] {
            assert!(is_of(place, words.len()), "{item}");
        }
        let points = item[13].as_array().unwrap();
        assert!(!points.is_empty() && points.iter().is_sorted_by_key(|point| point[0].as_u64()), "{item}");
        for content in item[12].as_array().unwrap() {
            assert!(content[1].as_array().unwrap().iter().all(|place| is_of(place, texts.len())), "{item}");
        }
    }
    assert_eq!(texts.iter().filter(|text| *text == "look again").count(), 1, "each text is there once");
    let schemes = ["http:", "https:", "src=", "@import", "url(", "innerHTML", "outerHTML", "eval("];
    let program = page.replace(block(&page, "texts"), "").replace(block(&page, "data"), "");
    let program = program.replace("http://www.w3.org/2000/svg", "");
    for scheme in schemes {
        assert!(!program.contains(scheme), "the page's own part names {scheme}");
    }
}

/// An erased text is nowhere in the page, which says so in its place; the rest is there.
#[test]
fn erased_texts_are_told_and_not_there() {
    let store = store();
    record(&store, &exchange(0, "here is my key", "/src/a.rs", "AKIA-IN-THE-OUTPUT"));
    let session = store.find_stream("s1").unwrap();
    let call =
        store.view(session.id).unwrap().history().into_iter().find(|item| item.call.is_some()).unwrap();
    let _ = store.erase(call.item, "tester", "a key").unwrap();
    let page = rendered(&store);
    assert!(!page.contains("AKIA-IN-THE-OUTPUT") && page.contains("here is my key"));
    let data: Value = serde_json::from_str(block(&page, "data")).unwrap();
    let texts: Vec<String> = serde_json::from_str(block(&page, "texts")).unwrap();
    let problems: Vec<usize> =
        data["problems"].as_array().unwrap().iter().map(|place| place.as_u64().unwrap() as usize).collect();
    assert!(!problems.is_empty() && problems.iter().all(|place| texts[*place].contains("eras")), "{texts:?}");
}

/// A call whose result a rewind took had a handful of tokens on the page, also at the turns when its result was there.
#[test]
fn an_item_has_the_tokens_that_it_had_then_whatever_a_rewind_took() {
    let store = store();
    let started = Entry::tool_started("c1", "bash", r#"{"command":"make"}"#);
    record(&store, &[Entry::step("t1"), started, Entry::step("t2")]);
    record(&store, &[Entry::tool_completed("c1", "made\n".repeat(200)), Entry::step("t3")]);
    record(&store, &exchange(4, "and now?", "/src/a.rs", &"line\n".repeat(90)));
    let session = store.find_stream("s1").unwrap();
    let rewound = |to: u64| Entry::from(fact::Rewound { to: PointRef::Seq(Seq(to)) });
    let started_at = store.view(session.id).unwrap().history()[0].item.seq.get();
    record(&store, &[rewound(started_at + 1)]);
    record(&store, &[Entry::tool_completed("c1", "made again"), Entry::step("t4")]);
    let data: Value = serde_json::from_str(block(&rendered(&store), "data")).unwrap();
    let view = store.view(session.id).unwrap();
    let mut compared = 0;
    for (page, item) in data["sessions"][0]["items"].as_array().unwrap().iter().zip(view.history()) {
        for seq in item.item.seq.get()..=view.at().get() {
            // As the page's own program reads it.
            let points = page[13].as_array().unwrap();
            let point = points.iter().rfind(|point| point[0].as_u64().unwrap() <= seq).unwrap();
            let shown = point.get(4).map_or(&page[10], |hidden| &hidden[2]);
            let face =
                |state: &Value, at: usize| if state == &json!(5) { 0 } else { shown[at].as_u64().unwrap() };
            let is_there = point[1].as_u64().unwrap() & 1 == 1;
            let on_page = if is_there { face(&point[2], 0) + face(&point[3], 1) } else { 0 };
            let then = view.state().item(item.ix, Seq(seq)).unwrap();
            let by_state =
                if then.in_context { then.input.tokens_shown + then.output.tokens_shown } else { 0 };
            assert_eq!(on_page, by_state, "{} at {seq}: {page}", item.item);
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

/// A picture that was erased, or is damaged, looked like one that the page only does not hold: nothing said that it is gone.
#[test]
fn a_picture_that_is_gone_says_so() {
    let store = store();
    let mut entries = exchange(0, "look at it", "/src/a.png", "");
    let picture = PartEntry::media("iVBORw0KGgo=", Some("image/png".to_owned()));
    entries.truncate(3);
    entries.push(Entry::tool_finished("call-0", Outcome::Completed, vec![PartEntry::text("seen"), picture]));
    record(&store, &entries);
    assert!(rendered(&store).contains("data:image/png;base64,iVBORw0KGgo="));
    let session = store.find_stream("s1").unwrap();
    let call = store.view(session.id).unwrap().history().into_iter().find(|item| item.call.is_some());
    let _ = store.erase(call.unwrap().item, "tester", "a face").unwrap();
    let page = rendered(&store);
    assert!(!page.contains("iVBORw0KGgo"));
    let texts: Vec<String> = serde_json::from_str(block(&page, "texts")).unwrap();
    assert!(!texts.iter().any(|text| text.starts_with("[media image/png")), "{texts:?}");
}

/// A text that looks like a secret is taken out of texts, of words and of titles alike; the rest is there.
#[test]
fn a_redacted_page_holds_no_secret() {
    let store = store();
    let key = "AKIAIOSFODNN7EXAMPLE";
    record(
        &store,
        &exchange(0, &format!("my key is {key}"), &format!("/src/{key}.rs"), &format!("id={key}\nrest")),
    );
    assert!(rendered(&store).contains(key), "it is in the page that nothing was taken out of");
    let rules = acpdb_hosts::redact::Rules::usual().unwrap();
    let page =
        rendered_with(&store, &PageOptions { redactor: Some(Arc::new(rules)), ..PageOptions::default() });
    assert!(!page.contains(key));
    let texts: Vec<String> = serde_json::from_str(block(&page, "texts")).unwrap();
    assert!(texts.iter().any(|text| text == "id=[redacted:aws-access-key]\nrest"), "{texts:?}");
    assert!(page.contains("<title>my key is [redacted:aws-access-key] - acpdb"), "the title, too");
}

/// A page says whether its contexts were sent, and leads back to an index that it stands beside. An exported page alone leads nowhere.
#[test]
fn a_page_tells_who_sent_its_contexts_and_leads_back_to_its_index() {
    let store = store();
    record(&store, &exchange(0, "read it", "/src/a.rs", "text"));
    let data = |options: &PageOptions| -> Value {
        serde_json::from_str(block(&rendered_with(&store, options), "data")).unwrap()
    };
    let alone = data(&PageOptions::default());
    assert_eq!((&alone["index"], &alone["sessions"][0]["session"]["sent"]), (&Value::Null, &json!(false)));
    let beside = data(&PageOptions { index: Some("../index.html".to_owned()), ..PageOptions::default() });
    assert_eq!(beside["index"], "../index.html");
}

/// The pause before a prompt counted as work of the turn before it, and a page read prompts behind the answers to others; calls without
/// a file were told by digests or JSON; keys did nothing until a click.
#[test]
#[ignore = "needs node"]
fn a_page_is_read_prompt_by_prompt() {
    let store = store();
    let hour = |entry: Entry, hours: i64| entry.at(Some(Micros(hours * 3_600_000_000)));
    let mut entries = Vec::new();
    for (number, prompt) in ["read it", "now run the tests", "and the docs"].into_iter().enumerate() {
        let call = format!("call-{number}");
        let hours = i64::try_from(number).unwrap() + 1;
        let (tool, params) = match number {
            0 => ("read", json!({"filePath": "/home/dev/shop/web/src/a.rs"})),
            1 => ("bash", json!({"command": "npm test\nnpm run lint", "timeout": 9})),
            _ => ("mcp__docs__find", json!({"deep": true, "query": "how to page"})),
        };
        entries.push(hour(Entry::message("", Role::User, prompt), hours));
        entries.push(hour(Entry::step(""), hours));
        entries.push(hour(Entry::tool_started(&call, tool, params.to_string()), hours));
        entries.push(hour(Entry::tool_completed(&call, "some lines"), hours));
    }
    record(&store, &entries);
    let page = rendered(&store);
    let data: Value = serde_json::from_str(block(&page, "data")).unwrap();
    let spans = data["sessions"][0]["spans"].as_array().unwrap();
    assert!(spans.iter().all(|span| span[1] == span[2]), "no turn lasts until the next prompt: {spans:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let stub = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/stub.mjs");
    let done = std::process::Command::new("node").arg(stub).arg(&file).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    expect_test::expect![[r#"
        facts: 3 turns · 6 items · 0 supersessions · would show ~54 of 54 tokens · policy acp
        hidden tabs: chains todos memory
        focus: true
        scrolled to: 840
        turn 1: user #3, assistant #5
        turn 2: user #7, assistant #9
        turn 3: user #11, assistant #13
        read: …/web/src/a.rs
        bash: npm test
        mcp__docs__find: how to page
        prompts: 3 prompts | t0  read it | t1  now run the tests | t2  and the docs
        of prompts: 3 of 6 rows
        first hit: #5
        next hit: #9
        a path: …/components/editor/index.js
    "#]]
    .assert_eq(&String::from_utf8(done.stdout).unwrap());
}

/// Subagents are in the page of the session that started them, and those that they started.
#[test]
fn subagents_are_inside() {
    let store = store();
    record(&store, &exchange(0, "ask others", "/src/a.rs", "text"));
    let mut above = StreamInfo::session("acpdb", "s1");
    for name in ["helper", "helper-of-helper"] {
        let mut info = StreamInfo::session("acpdb", name);
        info.parent = Some((above.id(), Some("call-0".to_owned())));
        let batch = Batch { stream: info.clone(), entries: exchange(1, name, "/src/b.rs", "seen") };
        let _ = store.commit(&[batch], acpdb_engine::Atomicity::Split).unwrap();
        above = info;
    }
    let data: Value = serde_json::from_str(block(&rendered(&store), "data")).unwrap();
    let sessions: Vec<(String, i64)> = data["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let session = &it["session"];
            (session["id"].as_str().unwrap().to_owned(), session["parent"].as_i64().unwrap())
        })
        .collect();
    let expected = [("s1", -1), ("helper", 0), ("helper-of-helper", 1)];
    assert_eq!(sessions, expected.map(|(id, parent)| (id.to_owned(), parent)));
    assert_eq!(data["sessions"][1]["session"]["call"], "call-0");
}

/// A text too long for a browser is cut, and says how the rest is had.
#[test]
fn huge_texts_are_cut() {
    let store = store();
    record(&store, &exchange(0, &"é".repeat(1 << 20), "/a", "short"));
    let page = rendered(&store);
    assert!(page.len() < (1 << 20) + (100 << 10), "{}", page.len());
    assert!(page.contains("1048576 more bytes; acpdb show '#"), "it says so");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(acpdb_tests::support::cases(24)))]

    /// For any recorded text, the blocks hold no mark of HTML, are JSON, and hold the text.
    #[test]
    fn what_was_recorded_stays_text(
        said in prop::collection::vec("(?s)([<>&\"'/!\u{2028}\u{202e}\0-\u{1f}\u{7f}-\u{9f}]|</script>|<!--|]]>|.){1,40}", 1..6),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let store = store();
        let mut entries = Vec::new();
        for (number, text) in said.iter().enumerate() {
            entries.extend(exchange(number, text, text, text));
        }
        entries.push(Entry::tool_started("raw", text_tool(&said), &bytes));
        entries.push(Entry::tool_completed("raw", &bytes));
        record(&store, &entries);
        let page = rendered(&store);
        prop_assert_eq!(page.matches("<script").count(), 3);
        prop_assert_eq!(page.matches("</script>").count(), 3);
        for id in ["texts", "data"] {
            let found = block(&page, id).find(['<', '\0']);
            prop_assert_eq!(found, None);
        }
        let texts: Vec<String> = serde_json::from_str(block(&page, "texts")).unwrap();
        let known: HashSet<&String> = texts.iter().collect();
        prop_assert_eq!(known.len(), texts.len(), "a text is there twice");
        prop_assert!(said.iter().all(|text| known.contains(text)));
        prop_assert!(serde_json::from_str::<Value>(block(&page, "data")).is_ok());
    }
}

/// A tool with a hostile name.
fn text_tool(said: &[String]) -> String {
    said.first().map(|text| format!("</script>{text}")).unwrap_or_default()
}
