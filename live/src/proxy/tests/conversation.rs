//! Conversations that only their requests tell: their records, and the texts that are left out on the wire.

use acpdb_engine::Store;
use acpdb_engine::entry::StreamInfo;
use acpdb_engine::fold::Policy;
use acpdb_hosts::export::{ExportChoices, Format, Selection, export};
use serde_json::{Value, json};

use crate::growing::GrowingRecordings;
use crate::mcp::tools::Tools;
use crate::proxy::hold::Hold;
use crate::proxy::identity::RequestIdentity;
use crate::proxy::prune::{HostValues, OriginalRequest, Pruned, RecordingFolders, prune};
use crate::proxy::record::{Exchange, record};
use crate::proxy::sent::LastRequests;
use crate::proxy::talk::{AnsweredRequest, RecordingOutcome, Talks};

const CHAT: &str = "/v1/chat/completions";
pub(super) const MESSAGES: &str = "/v1/messages";
pub(super) const RESPONSES: &str = "/v1/responses";
const GEMINI: &str = "/v1beta/models/gemini-lab:generateContent";

pub(super) struct Desk {
    _folder: tempfile::TempDir,
    store: Store,
    identity: RequestIdentity,
    path: &'static str,
    talks: Talks,
    sent: LastRequests,
}

impl Desk {
    pub(super) fn new(path: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::builder(folder.path().join("store"))
            .registry(acpdb_hosts::registry())
            .any_file_system()
            .open()
            .unwrap();
        let policy = Policy::from_json(r#"{"preset": "acp", "serve.mode": "eager"}"#).unwrap();
        let _ = store.set_policy(None, &policy, None).unwrap();
        let host = if path == GEMINI { "gemini-cli" } else { "proxy" };
        let identity = RequestIdentity { host, session: "one".to_owned() };
        Self {
            _folder: folder,
            store,
            identity,
            path,
            talks: Talks::default(),
            sent: LastRequests::default(),
        }
    }

    /// As another process, which knows nothing but the store.
    pub(super) fn restarted(self) -> Self {
        Self { talks: Talks::default(), ..self }
    }

    fn numbered(&self, number: u64, body: &Value, answer: Option<&Value>) -> RecordingOutcome {
        let (request, answer) = (body.to_string(), answer.map(Value::to_string));
        let answer = answer.as_ref().map(String::as_bytes);
        let said = AnsweredRequest { number, path: self.path, request: request.as_bytes(), answer };
        self.talks.tell(&self.store, &self.identity, said).unwrap()
    }

    pub(super) fn tell(&self, body: &Value, answer: Option<&Value>) -> RecordingOutcome {
        self.numbered(self.talks.number(), body, answer)
    }

    pub(super) fn stream(&self) -> acpdb_engine::ids::StreamId {
        StreamInfo::session(self.identity.host, "one").id()
    }

    /// The session as a request, made of the store alone.
    pub(super) fn made(&self) -> Value {
        let format = match self.path {
            CHAT => Format::Openai,
            MESSAGES => Format::Anthropic,
            RESPONSES => Format::Responses,
            _ => Format::Gemini,
        };
        let options = ExportChoices { selection: Selection::Whole, ..ExportChoices::default() };
        let made = export(&self.store.view(self.stream()).unwrap(), format, &options).unwrap();
        serde_json::from_slice(&made.bytes).unwrap()
    }

    pub(super) fn prune(&self, body: &Value) -> (Value, Pruned) {
        let body = body.to_string();
        let known = HostValues {
            places: &RecordingFolders::default(),
            sent: &self.sent,
            talks: &self.talks,
            hold: &Hold::default(),
            recordings: &GrowingRecordings::default(),
        };
        let asked = OriginalRequest { number: self.talks.number(), path: self.path, body: body.as_bytes() };
        let (made, pruned) = prune(&self.store, &self.identity, asked, known);
        (serde_json::from_slice(&made.unwrap_or(body.into_bytes())).unwrap(), pruned)
    }
}

fn ask(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": r#"{"file_path":"/p/a.rs"}"#}});
    json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

fn chat(messages: &[Value]) -> Value {
    let tool = json!({"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}});
    let mut all = vec![json!({"role": "system", "content": "Help."})];
    all.extend_from_slice(messages);
    json!({"model": "gpt-lab", "temperature": 0, "tools": [tool], "messages": all})
}

fn chat_answer(message: &Value) -> Value {
    json!({"model": "gpt-lab-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
}

pub(super) fn told(events: u64) -> RecordingOutcome {
    RecordingOutcome { events, ..RecordingOutcome::default() }
}

#[test]
fn each_fact_is_told_once_and_what_is_stored_is_what_was_sent() {
    let desk = Desk::new(CHAT);
    let mut messages = vec![ask("Look")];
    let answer = calls(&["c1", "c2"]);
    let first = chat(&messages);
    let events = desk.tell(&first, Some(&chat_answer(&answer))).events;
    assert!(events > 0);
    assert_eq!(desk.tell(&first, Some(&chat_answer(&answer))), told(0), "the same again");
    messages.extend([answer, result("c1", "fn a() {}"), result("c2", "Error: no such file")]);
    let second = chat(&messages);
    assert_eq!(desk.tell(&second, None).events, 2, "two results");
    messages.push(says("Done."));
    assert!(desk.tell(&second, Some(&chat_answer(&says("Done.")))).events > 0);
    messages.push(ask("Thanks"));
    let third = chat(&messages);
    assert_eq!(desk.tell(&third, None).events, 2, "a prompt begins, and its message");
    assert_eq!(desk.made(), third);
    // Another process knows nothing but the store.
    let desk = desk.restarted();
    assert_eq!(desk.tell(&third, None), told(0));
    assert_eq!(desk.made(), third);
}

#[test]
fn geminis_contents_likewise_with_calls_that_have_no_ids() {
    let desk = Desk::new(GEMINI);
    let call = json!({"functionCall": {"name": "Read", "args": {"file_path": "/p/a.rs"}}});
    let text = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    let result = json!({"functionResponse": {"name": "Read", "response": {"output": "fn a() {}"}}});
    let body = |contents: &[Value]| {
        json!({"generationConfig": {"temperature": 0}, "tools": [{"functionDeclarations": [{"name": "Read"}]}],
            "systemInstruction": {"parts": [{"text": "Help."}]}, "contents": contents})
    };
    let answer = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]});
    let mut contents = vec![text("user", "Look")];
    let first = desk.tell(&body(&contents), Some(&answer(json!([call]))));
    assert!(first.left_out.is_some(), "a call without an id is told by the next request: {first:?}");
    contents.push(json!({"role": "model", "parts": [call]}));
    contents.push(json!({"role": "user", "parts": [result]}));
    let second = body(&contents);
    let done = answer(json!([{"text": "Do"}, {"text": "ne."}]));
    assert_eq!(desk.tell(&second, Some(&done)).left_out, None);
    assert_eq!(desk.tell(&second, Some(&done)), told(0), "the same again");
    contents.push(text("model", "Done."));
    contents.push(text("user", "Thanks"));
    let third = body(&contents);
    assert!(desk.tell(&third, None).events > 0);
    let mut made = desk.made();
    // The export names calls that have no name.
    for place in ["/contents/1/parts/0/functionCall", "/contents/2/parts/0/functionResponse"] {
        let call = made.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
        assert!(call.remove("id").is_some());
    }
    assert_eq!(made, third);
}

#[test]
fn anthropics_messages_likewise_with_reasoning() {
    let desk = Desk::new(MESSAGES);
    let body = |messages: &[Value]| {
        json!({"model": "claude-lab", "max_tokens": 9, "system": "Help.", "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
            "messages": messages})
    };
    let blocks = json!([{"type": "thinking", "thinking": "A file.", "signature": "sig=="},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/p/a.rs"}}]);
    let mut messages = vec![ask("Look")];
    let answer =
        json!({"type": "message", "model": "claude-lab", "stop_reason": "tool_use", "content": blocks});
    assert_eq!(desk.tell(&body(&messages), Some(&answer)).left_out, None);
    messages.push(json!({"role": "assistant", "content": blocks}));
    messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "fn a() {}"}]}));
    assert_eq!(desk.tell(&body(&messages), None).events, 1, "the result");
    let made = desk.made();
    assert_eq!(made["messages"][1], messages[1]);
    let result = json!({"tool_use_id": "toolu_1", "content": "fn a() {}"});
    let told = &made["messages"][2]["content"][0];
    assert_eq!(
        (&told["tool_use_id"], &told["content"]),
        (&result["tool_use_id"], &result["content"]),
        "{made}"
    );
}

#[test]
fn a_context_that_the_program_replaced_is_replaced_here() {
    let desk = Desk::new(CHAT);
    let long = [ask("Look"), calls(&["c1"]), result("c1", "fn a() {}"), says("Done."), ask("And now?")];
    desk.tell(&chat(&long), None);
    let short = chat(&[ask("So far: all is done."), says("Done."), ask("And now?")]);
    assert!(desk.tell(&short, None).events > 0);
    assert_eq!(desk.made(), short);
    let longer =
        chat(&[ask("So far: all is done."), says("Done."), ask("And now?"), says("Rest."), ask("Yes")]);
    desk.tell(&longer, None);
    assert_eq!(desk.made(), longer);
    // An answer that the program did not keep is not in the context.
    let twice = chat(&[ask("Look")]);
    desk.tell(&twice, Some(&chat_answer(&says("No."))));
    desk.tell(&twice, None);
    assert_eq!(desk.made(), twice);
}

#[test]
fn requests_for_titles_are_left_out_and_late_ones_change_nothing() {
    let desk = Desk::new(CHAT);
    let one = chat(&[ask("Look")]);
    let two = chat(&[ask("Look"), says("Done."), ask("Thanks")]);
    let (early, late) = (desk.talks.number(), desk.talks.number());
    desk.numbered(late, &two, None);
    desk.numbered(early, &one, Some(&chat_answer(&says("Done."))));
    assert_eq!(desk.made(), two);
    let title = json!({"model": "gpt-small", "messages": [ask("A title for this?")]});
    let left_out = desk.tell(&title, Some(&chat_answer(&says("Looking")))).left_out.unwrap();
    assert!(left_out.contains("without tools"), "{left_out}");
    assert_eq!(desk.made(), two);
}

#[test]
fn what_the_system_says_may_come_back() {
    let desk = Desk::new(CHAT);
    let with = |system: &str| {
        let mut body = chat(&[ask("Look")]);
        body["messages"][0]["content"] = system.into();
        body
    };
    for system in ["One.", "Other.", "One."] {
        assert!(desk.tell(&with(system), None).events > 0, "{system}");
        assert_eq!(desk.made(), with(system));
    }
}

#[test]
fn errors_halves_and_unknown_members_are_counted() {
    let body = chat(&[ask("Look")]);
    let mut odd = body.clone();
    odd["api_key"] = "SECRET".into();
    let whole = chat_answer(&says("Done.")).to_string();
    for (name, path, body, status, answer, error, said) in [
        ("plain", CHAT, body.to_string(), 200, whole.as_str(), None, json!({"events": 8})),
        (
            "error",
            CHAT,
            body.to_string(),
            429,
            "{}",
            None,
            json!({"events": 0, "left_out": "the provider did not take it"}),
        ),
        ("aborted", CHAT, body.to_string(), 200, "data: {\"choices\":[", Some("reset"), json!({"events": 4})),
        (
            "half",
            CHAT,
            body.to_string(),
            200,
            "data: {}\n\n",
            None,
            json!({"events": 4, "left_out": "the answer: the next request tells it"}),
        ),
        (
            "unknown",
            CHAT,
            odd.to_string(),
            200,
            whole.as_str(),
            None,
            json!({"events": 8, "unknown": ["api_key"]}),
        ),
        (
            "no JSON",
            CHAT,
            "?".to_owned(),
            200,
            "",
            None,
            json!({"events": 0, "left_out": "the body is not understood"}),
        ),
        (
            "other",
            "/v1/embeddings",
            body.to_string(),
            200,
            "",
            None,
            json!({"events": 0, "left_out": "another API"}),
        ),
    ] {
        let desk = Desk::new(CHAT);
        let exchange = Exchange {
            path: path.to_owned(),
            request: Some(body.into_bytes()),
            answer: Some(answer.as_bytes().to_vec()),
            status,
            error: error.map(str::to_owned),
            ..Exchange::default()
        };
        record(&desk.store, &desk.identity, &exchange, &desk.talks).unwrap();
        let view = desk.store.view(desk.stream()).unwrap();
        let record = desk.store.last_events(desk.stream(), 1).unwrap().pop().unwrap();
        let acpdb_engine::event::Payload::HostRecorded(kept) = record.event.payload else { unreachable!() };
        let kept = view.text(kept.raw.unwrap().id(record.seq)).unwrap();
        assert!(!kept.contains("SECRET"), "{kept}");
        let kept: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(kept["conversation"], said, "{name}");
        assert_eq!(kept["path"], path, "{name}");
    }
}

#[test]
fn sessions_with_recordings_of_their_own_are_not_told_twice() {
    let desk = Desk::new(CHAT);
    let identity = RequestIdentity { host: "opencode", session: "two".to_owned() };
    let exchange = Exchange {
        path: CHAT.to_owned(),
        request: Some(chat(&[ask("Look")]).to_string().into_bytes()),
        status: 200,
        ..Exchange::default()
    };
    record(&desk.store, &identity, &exchange, &desk.talks).unwrap();
    let view = desk.store.view(StreamInfo::session("opencode", "two").id()).unwrap();
    assert!(view.current().is_empty());
}

/// A text that is longer than its placeholder.
pub(super) const LONG: &str =
    "fn main() { println!(\"a line that is long enough to be worth hiding, and another one\"); }";
pub(super) const HIDDEN: &str = "[auto-superseded: hash duplicate]";

#[test]
fn a_superseded_result_is_absent_on_the_wire_until_it_is_restored() {
    let gemini = |ids: bool| {
        let with = |mut value: Value, id: &str| {
            if ids {
                value["id"] = id.into();
            }
            value
        };
        let call = |id: &str| {
            let call = with(json!({"name": "Read", "args": {"file_path": "/p/a.rs"}}), id);
            json!({"role": "model", "parts": [{"functionCall": call}]})
        };
        let result = |id: &str| {
            let result = with(json!({"name": "Read", "response": {"output": LONG}}), id);
            json!({"role": "user", "parts": [{"functionResponse": result}]})
        };
        json!({"tools": [{"functionDeclarations": []}], "x": 1e21, "contents": [
            {"role": "user", "parts": [{"text": "Look"}]}, call("c1"), result("c1"), call("c2"), result("c2")]})
    };
    let read = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/p/a.rs"}}]});
    let back = |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": LONG}]});
    let tools = json!([{"name": "Read", "cache_control": {"type": "ephemeral"}}]);
    let mut messages = vec![ask("Look"), read("c1"), back("c1"), read("c2"), back("c2")];
    // The host's own marks leave none to be set.
    let mark = json!({"type": "ephemeral"});
    for place in [1, 3, 4] {
        messages[place]["content"][0]["cache_control"] = mark.clone();
    }
    let anthropic = json!({"model": "claude-lab", "tools": tools, "messages": messages});
    let output = "/contents/2/parts/0/functionResponse/response/output";
    for (path, body, place) in [
        (
            CHAT,
            chat(&[ask("Look"), calls(&["c1"]), result("c1", LONG), calls(&["c2"]), result("c2", LONG)]),
            "/messages/3/content",
        ),
        (GEMINI, gemini(true), output),
        (GEMINI, gemini(false), output),
        (MESSAGES, anthropic, "/messages/2/content/0/content"),
    ] {
        let desk = Desk::new(path);
        let (made, pruned) = desk.prune(&body);
        let mut expected = body.clone();
        *expected.pointer_mut(place).unwrap() = HIDDEN.into();
        assert_eq!(made, expected);
        assert_eq!((pruned.changes, pruned.unknown, pruned.untouched), (1, 0, None));
        assert_eq!(desk.prune(&body).0, made, "the same again");
        let view = desk.store.view(desk.stream()).unwrap();
        let call = view.current().into_iter().find(|item| item.call.is_some()).unwrap().item;
        let tools = Tools::new(desk.store.clone(), Some("one".to_owned()), None);
        let arguments = json!({"targets": [call.to_string()]});
        tools.call("context_restore", arguments.as_object().unwrap()).unwrap();
        assert_eq!(desk.prune(&body).0, body, "restored");
        tools.call("context_discard", arguments.as_object().unwrap()).unwrap();
        assert_ne!(desk.prune(&body).0, body, "discarded");
    }
}
