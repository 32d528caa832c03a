//! Conclusions, and search results, do not depend on how facts were cut into commits or on the index.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Outcome, Role};
use acpdb_engine::ids::Seq;
use acpdb_engine::{Atomicity, Batch, Store};
use acpdb_tests::support::{cases, fixed, lines, shown};
use proptest::prelude::*;

/// A session of reads, edits and lists, from numbers.
fn entries(numbers: &[u16]) -> Vec<Entry> {
    let mut entries = vec![Entry::step("")];
    for (call, number) in numbers.iter().enumerate() {
        let (name, tool) =
            (format!("call_{call}"), ["read", "edit", "write", "read"][usize::from(number % 4)]);
        let file = ["a", "b", "./a"][usize::from(number / 4 % 3)];
        match number / 12 % 6 {
            0 | 1 => entries.push(Entry::step("")),
            2 => entries.push(Entry::message("", Role::Assistant, "On it.")),
            _ => {}
        }
        entries.push(Entry::tool_started(&name, tool, format!(r#"{{"filePath":"{file}"}}"#)));
        let text = format!("what {tool} of {file} said, at some length, so that a placeholder is shorter");
        let outcome = if number % 7 == 0 { Outcome::Failed } else { Outcome::Completed };
        entries.push(Entry::tool_finished(&name, outcome, vec![acpdb_engine::entry::PartEntry::text(text)]));
    }
    entries
}

/// Records `entries` in commits of these sizes, over and over; returns the events, and the context as the model sees
/// it.
fn told(entries: &[Entry], sizes: &[usize]) -> (Vec<String>, Vec<String>, usize) {
    let folder = tempfile::TempDir::new().unwrap();
    let builder = Store::builder(folder.path().join("store")).registry(acpdb_hosts::registry());
    let store = fixed(builder, 1).open().unwrap();
    let stream = StreamInfo::session("opencode", "ses_1");
    let (mut rest, mut sizes) = (entries, sizes.iter().cycle());
    while !rest.is_empty() {
        let (now, later) = rest.split_at((*sizes.next().unwrap()).clamp(1, rest.len()));
        let batch = Batch { stream: stream.clone(), entries: now.to_vec() };
        let _ = store.commit(&[batch], Atomicity::One).unwrap();
        rest = later;
    }
    let view = store.view(stream.id()).unwrap();
    let edge_count = view.state().edges(Seq::MAX).len();
    (lines(&store).unwrap(), shown(&store, stream.id(), Seq::MAX).unwrap(), edge_count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_facts_are_cut_into_commits_changes_nothing(
        numbers in prop::collection::vec(any::<u16>(), 1..24),
        sizes in prop::collection::vec(1..9_usize, 1..5),
    ) {
        let entries = entries(&numbers);
        let whole = told(&entries, &[usize::MAX]);
        prop_assert_eq!(&told(&entries, &[1]), &whole);
        prop_assert_eq!(&told(&entries, &sizes), &whole);
    }
}

/// Equality of nothing with nothing proves nothing.
#[test]
fn such_sessions_have_edges() {
    let numbers: Vec<u16> = (1..24).map(|number| number * 37).collect();
    assert!(told(&entries(&numbers), &[3]).2 > 3);
}

/// Looking up a call by its name folded every session. With an index only the sessions that bear the name are folded, and the
/// answer must be the same.
#[test]
fn a_name_is_found_alike_with_and_without_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let open = |index| {
        let builder = Store::builder(&path).registry(acpdb_hosts::registry()).index(index);
        builder.open().unwrap()
    };
    {
        let store = open(false);
        for session in 0..6 {
            let info = StreamInfo::session("opencode", format!("s{session}"));
            for call in 0..4 {
                // The last call has the same id in two sessions, and the same hash in all.
                let id = if call == 3 {
                    format!("shared-{}", session / 2)
                } else {
                    format!("call-{session}-{call}")
                };
                let params =
                    if call == 3 { "{}".to_owned() } else { format!("{{\"n\":{}}}", session * 10 + call) };
                let entries = vec![
                    Entry::step(format!("{call}")),
                    Entry::tool_started(&id, "bash", params),
                    Entry::tool_completed(&id, "done"),
                ];
                let _ = store.append(&info, entries).unwrap();
            }
        }
    }
    let _ = open(true).reindex().unwrap();
    let texts =
        ["call-3-1", "call-3", "call-5-2", "shared-1", "shared", "b_44136", "b_4", "nothing", "CALL-3-1"];
    let answers = |store: &Store| -> Vec<String> {
        let answer = |text: &&str| match acpdb_query::find::find(store, text, None) {
            Ok(found) => format!("{} in {}", found.item, found.stream.name),
            Err(error) => error.to_string(),
        };
        texts.iter().map(answer).collect()
    };
    let with = answers(&open(true));
    assert_eq!(with, answers(&open(false)));
    assert!(with[0].ends_with("in s3"), "{with:?}");
}

/// Superseded calls of two that come in turns of their own.
fn hidden(host: &str, cwd: Option<&str>, calls: [(&str, &str); 2]) -> usize {
    let folder = tempfile::TempDir::new().unwrap();
    let builder = Store::builder(folder.path().join("store")).registry(acpdb_hosts::registry());
    let store = fixed(builder, 1).open().unwrap();
    let stream = StreamInfo {
        cwd: cwd.map(str::to_owned),
        ..StreamInfo::session(host.to_owned(), "ses_1".to_owned())
    };
    for (number, (tool, params)) in calls.into_iter().enumerate() {
        let call = format!("c{number}");
        let output = "what it said, at some length, so that a placeholder is shorter than it is";
        let entries = vec![
            Entry::step(""),
            Entry::tool_started(&call, tool, params),
            Entry::tool_completed(&call, output),
        ];
        let _ = store.append(&stream, entries).unwrap();
    }
    let view = store.view(stream.id()).unwrap();
    view.state().edges(Seq::MAX).len()
}

/// Ids of twenty digits became doubles, and two of them one call.
#[test]
fn numbers_compare_as_written() {
    let calls =
        |one: &'static str, other: &'static str| hidden("opencode", None, [("get", one), ("get", other)]);
    for (one, other, edges) in [
        (r#"{"id":12345678901234567890}"#, r#"{"id":12345678901234567891}"#, 0),
        (r#"{"id":12345678901234567890}"#, r#"{"id":1.234567890123456789e19}"#, 1),
        (r#"{"id":9007199254740993}"#, r#"{"id":9007199254740992}"#, 0),
        (r#"{"id":0.1000000000000000055}"#, r#"{"id":0.1}"#, 0),
        (r#"{"id":1.0}"#, r#"{"id":1}"#, 1),
        (r#"{"id":100}"#, r#"{"id":1e2}"#, 1),
        (r#"{"id":-0}"#, r#"{"id":0}"#, 1),
        (r#"{"id":1e400}"#, r#"{"id":1e401}"#, 0),
    ] {
        assert_eq!(calls(one, other), edges, "{one} {other}");
    }
}

/// A file had as many keys as spellings: separators and case of Windows, letters with marks composed or not.
#[test]
fn a_file_has_one_key_however_it_is_spelled() {
    let read = |path: &str| serde_json::json!({ "filePath": path }).to_string();
    let edit =
        |path: &str| serde_json::json!({"filePath": path, "oldString": "a", "newString": "b"}).to_string();
    for (one, other, cwd, edges) in [
        ("D:\\p\\src\\a.ts", "D:/p/src/a.ts", None, 1),
        ("d:\\p\\src\\A.ts", "D:/p/src/a.ts", None, 1),
        ("src\\a.ts", "D:/p/src/a.ts", Some("D:\\p"), 1),
        ("/p/A.ts", "/p/a.ts", None, 0),
        ("/p/caf\u{e9}.ts", "/p/cafe\u{301}.ts", None, 1),
        ("cafe\u{301}.ts", "/p/caf\u{e9}.ts", Some("/p"), 1),
    ] {
        let given = (read(one), edit(other));
        let calls = [("read", given.0.as_str()), ("edit", given.1.as_str())];
        assert_eq!(hidden("opencode", cwd, calls), edges, "{one} {other}");
    }
}

/// The name of an unknown program switched the file rule off; so did `path` in place of `filePath`.
#[test]
fn a_host_that_is_not_known_has_the_common_tools() {
    let file = r#"{"filePath":"/a"}"#;
    let calls = [("read", file), ("write", file)];
    let hosts = ["opencode", "my-own-agent", "openai-messages"];
    assert_eq!(hosts.map(|host| hidden(host, None, calls)), [1, 1, 1]);
    let calls = [("read_file", r#"{"path":"/a"}"#), ("edit_file", r#"{"path":"/a"}"#)];
    assert_eq!(hosts.map(|host| hidden(host, None, calls)), [0, 1, 1]);
    let editor = "str_replace_based_edit_tool";
    let calls = [
        (editor, r#"{"command":"view","path":"/a"}"#),
        (editor, r#"{"command":"str_replace","path":"/a","old_str":"x","new_str":"y"}"#),
    ];
    assert_eq!(hosts.map(|host| hidden(host, None, calls)), [0, 1, 1]);
    // Names of one host's own are not those of an agent that wrote a plain list.
    let calls = [("Read", r#"{"file_path":"/a"}"#), ("Write", r#"{"file_path":"/a"}"#)];
    assert_eq!(hosts.map(|host| hidden(host, None, calls)), [0, 1, 0]);
}
