//! The session of a request, its record; and, with the proxy built in, bytes that go through it.

use serde_json::json;

use super::access::Clients;
use super::identity;
use super::may_listen;
use super::record::{Exchange, summary};

#[test]
fn a_request_belongs_to_the_session_that_its_host_names() {
    let check = |path: &str, headers: &[(&str, &str)], want: Option<(&str, &str)>| {
        let header =
            |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let found = identity::of(path, &header);
        let found = found.as_ref().map(|identity| (identity.host, identity.session.as_str()));
        assert_eq!(found, want, "{path} {headers:?}");
    };
    let claude = ("x-claude-code-session-id", "c1");
    check("/v1/messages", &[claude], Some(("claude-code", "c1")));
    check("/v1/messages", &[claude, ("x-claude-code-agent-id", "a9")], Some(("claude-code", "c1/a9")));
    check("/v1/responses", &[("session-id", "x1"), ("x-codex-window-id", "x1:0")], Some(("codex", "x1")));
    check("/v1/messages", &[("x-session-id", "o1"), ("x-session-affinity", "o1")], Some(("opencode", "o1")));
    check("/acp/g1/v1beta/models/m:generateContent", &[], Some(("gemini-cli", "g1")));
    check("/acp/p1/v1/chat/completions", &[], Some(("proxy", "p1")));
    // A session in the path goes before the host's headers.
    check("/acp/p1/v1/messages", &[claude], Some(("claude-code", "p1")));
    check("/v1beta/models/m:generateContent", &[], None);
    check("/v1/messages", &[], None);
    check("/v1/messages", &[("session-id", "any")], None);
    check("/v1/messages", &[("x-claude-code-session-id", "")], None);
}

/// A program that is run by acpdb may name no session; one that does is believed.
#[test]
fn a_request_without_a_name_belongs_to_the_run() {
    let named = |name: &str| (name == "x-claude-code-session-id").then(|| "c1".to_owned());
    for (path, header, want) in [
        ("/v1/messages", &named as &dyn Fn(&str) -> Option<String>, ("claude-code", "c1")),
        ("/acp/p1/v1/messages", &|_| None, ("proxy", "p1")),
        ("/v1beta/models/m:generateContent", &|_| None, ("gemini-cli", "run-1")),
        ("/v1/messages", &|_| None, ("proxy", "run-1")),
    ] {
        let found = identity::or_named(path, header, Some("run-1")).unwrap();
        assert_eq!((found.host, found.session.as_str()), want, "{path}");
    }
    assert_eq!(identity::or_named("/v1/messages", &|_| None, None), None);
}

#[test]
fn the_session_in_a_path_is_taken_off() {
    for (path, want) in [
        ("/acp/s1/v1/messages?beta=true", ("/v1/messages?beta=true", Some("s1"))),
        ("/v1/messages", ("/v1/messages", None)),
        ("/acp/s1", ("/acp/s1", None)),
        ("/acp//v1", ("/acp//v1", None)),
    ] {
        assert_eq!(identity::split(path), want);
    }
}

#[test]
fn others_may_not_send_through_it() {
    for (address, clients, may) in [
        ("127.0.0.1:1", Clients::OfThisUser, true),
        ("[::1]:1", Clients::OfThisUser, true),
        ("0.0.0.0:1", Clients::OfThisUser, false),
        ("192.168.1.2:1", Clients::Any, true),
    ] {
        assert_eq!(may_listen(address.parse().unwrap(), clients).is_ok(), may, "{address} {clients:?}");
    }
}

#[test]
fn what_was_billed_is_found_in_answers_and_in_streams() {
    let check = |answer: &str, want: serde_json::Value| {
        let exchange = Exchange { answer: Some(answer.as_bytes().to_vec()), ..Exchange::default() };
        assert_eq!(summary(&exchange)["usage"], want, "{answer}");
    };
    check(
        r#"{"usage":{"input_tokens":7,"output_tokens":2}}"#,
        json!({"input_tokens": 7, "output_tokens": 2}),
    );
    check(
        "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\ndata: {\"usage\":{\"output_tokens\":5}}\n",
        json!({"input_tokens": 7, "output_tokens": 5}),
    );
    check(
        "data: {\"response\":{\"usage\":{\"input_tokens\":3}}}\n\ndata: [DONE]\n",
        json!({"input_tokens": 3}),
    );
    check("data: {\"usageMetadata\":{\"promptTokenCount\":4}}\r\n", json!({"promptTokenCount": 4}));
    check("no JSON", json!(null));
}

/// Tokens that a provider cleared by itself were in no record of the proxy, so a lower bill had no reason.
#[test]
fn edits_of_the_provider_are_found_in_answers_and_in_streams() {
    let edit = r#"{"type":"clear_tool_uses_20250919","cleared_tool_uses":8,"cleared_input_tokens":50000}"#;
    let none = r#""context_management":{"applied_edits":[]}"#;
    for (answer, has_edits) in [
        (format!(r#"{{"content":[],"context_management":{{"applied_edits":[{edit}]}}}}"#), true),
        (
            format!(
                "data: {{\"message\":{{{none}}}}}\n\ndata: {{\"type\":\"message_delta\",\"context_management\":{{\"applied_edits\":[{edit}]}}}}\n"
            ),
            true,
        ),
        (format!("{{{none}}}"), false),
        (r#"{"content":[{"text":"\"applied_edits\""}]}"#.to_owned(), false),
    ] {
        let exchange = Exchange { answer: Some(answer.as_bytes().to_vec()), ..Exchange::default() };
        let want = if has_edits {
            json!([serde_json::from_str::<serde_json::Value>(edit).unwrap()])
        } else {
            json!(null)
        };
        assert_eq!(summary(&exchange)["applied_edits"], want, "{answer}");
    }
}

#[test]
fn a_summary_holds_no_text_of_the_conversation() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"the secret text"}],"system":"a secret prompt"}"#;
    let exchange = Exchange {
        path: "/v1/messages".to_owned(),
        request: Some(body.as_bytes().to_vec()),
        request_bytes: body.len() as u64,
        ..Exchange::default()
    };
    let kept = summary(&exchange);
    assert!(!kept.to_string().contains("secret"), "{kept}");
    assert_eq!((&kept["model"], &kept["messages"]), (&json!("m"), &json!(1)));
}

mod conversation;
mod responses;
mod threads;

#[cfg(feature = "proxy")]
mod through;

mod pruning {
    use acpdb_engine::Store;
    use acpdb_engine::entry::{Entry, StreamInfo};
    use acpdb_engine::event::Role;
    use acpdb_engine::fold::Policy;
    use serde_json::{Value, json};

    use crate::growing::GrowingRecordings;
    use crate::proxy::hold::Hold;
    use crate::proxy::identity::RequestIdentity;
    use crate::proxy::prune::{HostValues, OriginalRequest, Pruned, RecordingFolders};
    use crate::proxy::sent::LastRequests;
    use crate::proxy::talk::Talks;

    fn store(folder: &std::path::Path) -> Store {
        let store = Store::builder(folder.join("store"))
            .registry(acpdb_hosts::registry())
            .any_file_system()
            .open()
            .unwrap();
        let policy = Policy::from_json(r#"{"preset": "acp", "serve.mode": "eager"}"#).unwrap();
        let _ = store.set_policy(None, &policy, None).unwrap();
        let read = |step: &str, call: &str| {
            [
                Entry::step(step),
                Entry::tool_started(call, "Read", r#"{"file_path":"/p/a.rs"}"#),
                Entry::tool_completed(call, LONG),
            ]
        };
        let prompt = [Entry::prompt("p1"), Entry::message("p1", Role::User, "Look.")];
        let entries = prompt.into_iter().chain(read("s1", "c1")).chain(read("s2", "c2")).collect();
        let _ = store.append(&StreamInfo::session("claude-code", "one"), entries).unwrap();
        store
    }

    fn prune(
        store: &Store,
        identity: &RequestIdentity,
        path: &str,
        body: &str,
        sent: &LastRequests,
    ) -> (Option<Vec<u8>>, Pruned) {
        let known = HostValues {
            places: &RecordingFolders::default(),
            sent,
            talks: &Talks::default(),
            hold: &Hold::default(),
            recordings: &GrowingRecordings::default(),
        };
        let asked = OriginalRequest { number: 1, path, body: body.as_bytes() };
        crate::proxy::prune::prune(store, identity, asked, known)
    }

    /// A text that is longer than its placeholder.
    const LONG: &str =
        "fn main() { println!(\"a line that is long enough to be worth hiding, and another one\"); }";

    const HIDDEN: &str = "[auto-superseded: hash duplicate]";

    /// A recording that could not be read was passed over: its results were never hidden, and nothing told why.
    #[test]
    fn a_recording_that_cannot_be_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let projects = folder.path().join("projects");
        std::fs::create_dir_all(projects.join("p")).unwrap();
        // The file begins like a compressed one, and is not compressed.
        std::fs::write(projects.join("p/one.jsonl"), b"\x28\xb5\x2f\xfd nothing").unwrap();
        let places = RecordingFolders { claude: Some(projects), codex: None };
        let identity = RequestIdentity { host: "claude-code", session: "one".to_owned() };
        let body = json!({"model": "claude-lab", "tools": [{"name": "Read"}],
            "messages": [{"role": "user", "content": "Look."}]});
        let body = body.to_string();
        let asked = OriginalRequest { number: 1, path: "/v1/messages", body: body.as_bytes() };
        let (sent, talks) = (LastRequests::default(), Talks::default());
        let known = HostValues {
            places: &places,
            sent: &sent,
            talks: &talks,
            hold: &Hold::default(),
            recordings: &GrowingRecordings::default(),
        };
        let (_, pruned) = crate::proxy::prune::prune(&store, &identity, asked, known);
        assert!(pruned.recording.as_deref().is_some_and(|why| why.contains("one.jsonl")), "{pruned:?}");
        assert_eq!(pruned.untouched, None);
    }

    #[test]
    fn only_the_values_of_superseded_results_differ() {
        let result = |id: &str| {
            json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": "é \\ fn"}],
            "cache_control": {"type": "ephemeral"}})
        };
        let anthropic = json!({"model": "claude-lab", "big": 1e21, "tools": [{"name": "Read", "cache_control": {"type": "ephemeral"}}], "messages": [
            {"role": "user", "content": "Look."},
            {"role": "user", "content": [result("c1"), result("c2"), result("c9")]}]});
        let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "long"});
        let responses = json!({"model": "gpt", "tools": [{"name": "x"}], "input": [output("c1"), output("c2"), output("c9")]});
        let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "long"});
        let chat = json!({"model": "gpt", "tools": [{"name": "x"}], "messages": [tool("c1"), tool("c2"), tool("c9")]});
        let response = |id: &str| json!({"functionResponse": {"id": id, "name": "Read", "response": {"output": "long"}}});
        let gemini = json!({"tools": [{"functionDeclarations": []}], "contents": [{"role": "user", "parts": [response("c1"), response("c2"), response("c9")]}]});
        for (path, body, place) in [
            ("/v1/messages", anthropic, "/messages/1/content/0/content"),
            ("/v1/responses", responses, "/input/0/output"),
            ("/v1/chat/completions", chat, "/messages/0/content"),
            (
                "/v1beta/models/gemini-lab:generateContent",
                gemini,
                "/contents/0/parts/0/functionResponse/response/output",
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path());
            let identity = RequestIdentity { host: "claude-code", session: "one".to_owned() };
            let (made, pruned) = prune(&store, &identity, path, &body.to_string(), &LastRequests::default());
            let mut expected = body.clone();
            *expected.pointer_mut(place).unwrap() = HIDDEN.into();
            let made = String::from_utf8(made.unwrap()).unwrap();
            assert_eq!(made, expected.to_string(), "{path}");
            assert_eq!((pruned.changes, pruned.unknown), (1, 1), "{path}");
            // The same request gives the same bytes again: the log has the sent context.
            let (again, _) = prune(&store, &identity, path, &body.to_string(), &LastRequests::default());
            assert_eq!(again.unwrap(), made.as_bytes());
        }
    }

    /// Places of marks in a request.
    fn marks(body: &Value) -> Vec<String> {
        let mut found = Vec::new();
        for name in ["tools", "system"] {
            let blocks = body[name].as_array().into_iter().flatten().enumerate();
            let marked = blocks.filter(|(_, block)| block.get("cache_control").is_some());
            found.extend(marked.map(|(place, _)| format!("{name} {place}")));
        }
        for (number, message) in body["messages"].as_array().unwrap().iter().enumerate() {
            let blocks = message["content"].as_array().into_iter().flatten().enumerate();
            let marked = blocks.filter(|(_, block)| block.get("cache_control").is_some());
            found.extend(marked.map(|(place, _)| format!("{number} {place}")));
        }
        found
    }

    #[test]
    fn the_cache_is_told_where_to_keep_what_it_read() {
        use acpdb_hosts::export::Format;
        use acpdb_hosts::lint::{RequestFacts, lint};
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let info = StreamInfo::session("claude-code", "one");
        let identity = RequestIdentity { host: "claude-code", session: "one".to_owned() };
        let sent = LastRequests::default();
        let mark = json!({"type": "ephemeral", "ttl": "1h"});
        let ask = json!({"role": "user", "content": "Look."});
        let call = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {}}]});
        let result = |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": LONG}]});
        let mut before: Option<Vec<u8>> = None;
        let mut send = |tools: Value, messages: Vec<Value>| {
            let body =
                json!({"model": "claude-lab", "system": "Help.", "tools": tools, "messages": messages});
            let (made, pruned) = prune(&store, &identity, "/v1/messages", &body.to_string(), &sent);
            let made = made.unwrap_or_else(|| body.to_string().into_bytes());
            let findings =
                lint(Format::Anthropic, &made, RequestFacts { previous: before.as_deref(), model: None });
            assert!(findings.is_empty(), "{findings:?}");
            let value: Value = serde_json::from_slice(&made).unwrap();
            before = Some(made);
            (marks(&value), pruned.breakpoints)
        };
        let told = |places: &[&str]| places.iter().map(|place| (*place).to_owned()).collect::<Vec<_>>();
        let plain = json!([{"name": "Read"}]);
        let mut messages = vec![ask, call("c0"), result("c0"), call("c3"), result("c3")];
        assert_eq!(send(plain.clone(), messages.clone()), (told(&["system 0", "2 0", "4 0"]), 3));
        messages.extend([call("c4"), result("c4")]);
        assert_eq!(send(plain.clone(), messages.clone()), (told(&["system 0", "4 0", "6 0"]), 3));
        // A result that was sent is hidden: the last end before it is marked, too.
        let hide = |id: &str| {
            let again = |step: &str, call: &str| {
                [
                    Entry::step(step),
                    Entry::tool_started(call, "Read", r#"{"file_path":"/p/b.rs"}"#),
                    Entry::tool_completed(call, LONG),
                ]
            };
            let entries = again(&format!("{id}-1"), id).into_iter().chain(again(&format!("{id}-2"), "c9"));
            let _ = store.append(&info, entries.collect()).unwrap();
        };
        hide("c3");
        messages.extend([call("c9"), result("c9")]);
        assert_eq!(send(plain, messages.clone()), (told(&["system 0", "2 0", "6 0", "8 0"]), 4));
        // Marks of the host count against the four, and tell how long to keep.
        messages.extend([call("c5"), result("c5")]);
        let own = json!([{"name": "Read", "cache_control": mark}, {"name": "Edit", "cache_control": mark}]);
        assert_eq!(send(own, messages.clone()), (told(&["tools 0", "tools 1", "8 0", "10 0"]), 2));
        let last = before.unwrap();
        assert_eq!(String::from_utf8_lossy(&last).matches(r#""ttl":"1h""#).count(), 4);
    }

    #[test]
    fn what_is_not_understood_goes_through_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let identity = |session: &str| RequestIdentity { host: "claude-code", session: session.to_owned() };
        let whole = r#"{"model":"m","tools":[{}],"messages":[]}"#;
        for (session, path, body, why) in [
            ("one", "/v1/models", whole, "another API"),
            ("one", "/v1/messages/count_tokens", whole, "another API"),
            ("one", "/v1/messages", "no JSON", "the body is not understood"),
            ("one", "/v1/messages", r#"{"messages":[]}"#, "a request without tools"),
            ("none", "/v1/messages", whole, "there is no"),
        ] {
            let (made, pruned) = prune(&store, &identity(session), path, body, &LastRequests::default());
            assert_eq!(made, None, "{path} {body}");
            let said = pruned.untouched.unwrap_or_default();
            assert!(said.contains(why) || session == "none" && !said.is_empty(), "{path} {body}: {said}");
        }
    }

    #[test]
    fn reasoning_behind_a_change_goes_with_the_next_prompt() {
        use acpdb_engine::entry::PartEntry;
        use acpdb_engine::event::PartKind;
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let mut thought = PartEntry::of(PartKind::Reasoning, "Once more.");
        thought.signature = Some(b"sig==".as_slice().into());
        let info = StreamInfo::session("claude-code", "two");
        let read = |step: &str, call: &str| {
            [
                Entry::step(step),
                Entry::tool_started(call, "Read", r#"{"file_path":"/p/a.rs"}"#),
                Entry::tool_completed(call, LONG),
            ]
        };
        let _ = store.append(&info, read("s1", "c1").to_vec()).unwrap();
        let identity = RequestIdentity { host: "claude-code", session: "two".to_owned() };
        let result = |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": LONG}]});
        let thinks = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Once more.", "signature": "sig=="},
            {"type": "tool_use", "id": "c2", "name": "Read", "input": {}}]});
        let ask = |messages: Value| {
            let body = json!({"model": "claude-opus-5-5", "tools": [{}], "messages": messages}).to_string();
            let (made, _) = prune(&store, &identity, "/v1/messages", &body, &LastRequests::default());
            let made: Option<Value> = made.map(|made| serde_json::from_slice(&made).unwrap());
            made.unwrap_or_else(|| serde_json::from_str(&body).unwrap())
        };
        let first = ask(json!([result("c1")]));
        assert_eq!(first.pointer("/messages/0/content/0/content"), Some(&json!(LONG)));
        let mut entries = vec![Entry::step("s2"), Entry::message_parts("m2", Role::Assistant, vec![thought])];
        entries.extend(read("s2", "c2").into_iter().skip(1));
        let _ = store.append(&info, entries).unwrap();
        let within = ask(json!([result("c1"), thinks, result("c2")]));
        assert_eq!(within.pointer("/messages/0/content/0/content"), Some(&json!(LONG)), "it waits");
        assert_eq!(within.pointer("/messages/1"), Some(&thinks));
        let prompt = json!({"role": "user", "content": "Go on."});
        let _ = store
            .append(&info, vec![Entry::prompt("p2"), Entry::message("p2", Role::User, "Go on.")])
            .unwrap();
        let later = ask(json!([result("c1"), thinks, result("c2"), prompt]));
        assert_eq!(later.pointer("/messages/0/content/0/content"), Some(&json!(HIDDEN)));
        assert_eq!(later.pointer("/messages/1/content/0/type"), Some(&json!("tool_use")), "{later}");
    }
}
