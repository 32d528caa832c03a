//! Cases that the laboratory cannot play: records of other versions, written by hand after real ones.

use acpdb_engine::event::{Payload, Scope};
use acpdb_engine::ids::Seq;
use acpdb_engine::{At, Store};
use acpdb_hosts::export::{ExportChoices, Format, Selection, export};
use acpdb_hosts::import;
use acpdb_tests::support::import_bytes;

use acpdb_tests::binary::binary;

use super::scenes::{folder, imported};

/// A store with these lines, as one session of Claude Code.
fn session(lines: &[&str]) -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::builder(home.path().join("store")).registry(acpdb_hosts::registry()).open().unwrap();
    let text = lines.join("\n") + "\n";
    let _ = import_bytes(&store, import::ImportFormat::ClaudeCode, "s", text.as_bytes()).unwrap();
    (home, store)
}

fn body(store: &Store, selection: Selection) -> String {
    let stream = store.stream_names().unwrap().into_iter().find(|it| it.scope == Scope::Session).unwrap();
    let view = store.view_at(stream.id, &At::Head).unwrap();
    let options = ExportChoices { selection, ..ExportChoices::default() };
    String::from_utf8(export(&view, Format::Anthropic, &options).unwrap().bytes).unwrap()
}

fn record(kind: &str, uuid: &str, parent: Option<&str>, rest: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","cwd":"/p","version":"2.1.0","timestamp":"2026-01-01T00:00:00Z"{rest}}}"#
    )
}

fn prompt(uuid: &str, parent: Option<&str>, text: &str) -> String {
    record("user", uuid, parent, &format!(r#","message":{{"role":"user","content":"{text}"}}"#))
}

fn says(uuid: &str, parent: &str, block: &str) -> String {
    let rest = format!(
        r#","message":{{"id":"m-{uuid}","role":"assistant","model":"claude-opus-4-5","content":[{block}]}}"#
    );
    record("assistant", uuid, Some(parent), &rest)
}

fn reads(uuid: &str, parent: &str, call: &str) -> String {
    says(
        uuid,
        parent,
        &format!(r#"{{"type":"tool_use","id":"{call}","name":"Read","input":{{"file_path":"/p/a"}}}}"#),
    )
}

fn result(uuid: &str, parent: &str, call: &str, text: &str, kind: &str) -> String {
    let rest = format!(
        r#","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{text}"}}]}},"toolUseResult":{{"type":"{kind}"}}"#
    );
    record("user", uuid, Some(parent), &rest)
}

/// The result of a second reading said only that the file was as it had been, and superseded the text that it referred to: the
/// model was shown nothing of the file.
#[test]
fn a_reading_answered_with_unchanged_leaves_the_text_it_refers_to() {
    let stub = "File unchanged since last read. Refer to the earlier result.";
    let (_home, store) = session(&[
        &prompt("u1", None, "Go"),
        &reads("a1", "u1", "c1"),
        &result("r1", "a1", "c1", "the whole text of the file", "text"),
        &reads("a2", "r1", "c2"),
        &result("r2", "a2", "c2", stub, "file_unchanged"),
        &says("a3", "r2", r#"{"type":"text","text":"Done."}"#),
        &prompt("u2", Some("a3"), "More"),
    ]);
    for selection in [Selection::Current, Selection::Recorded] {
        let body = body(&store, selection);
        assert!(body.contains("the whole text of the file"), "{body}");
        assert!(body.contains(stub) && !body.contains("is_error"), "{body}");
    }
}

/// A record of the system's whose parent was in no record was taken for a second beginning, and the prompt behind it threw
/// the whole context away.
#[test]
fn a_prompt_behind_a_record_without_a_known_parent_is_no_rewind() {
    let between = [
        record("system", "x1", Some("nowhere"), r#","subtype":"informational""#),
        record("system", "x1", None, r#","subtype":"local_command""#),
        record("attachment", "x1", None, r#","attachment":{"type":"hook_success"}"#),
        record("progress", "x1", Some("nowhere"), r#","data":{"type":"hook_progress"}"#),
    ];
    for between in between {
        let (_home, store) = session(&[
            &prompt("u1", None, "First"),
            &says("a1", "u1", r#"{"type":"text","text":"One."}"#),
            &between,
            &prompt("u2", Some("x1"), "Second"),
        ]);
        let body = body(&store, Selection::Recorded);
        assert!(
            body.contains("First") && body.contains("One.") && body.contains("Second"),
            "{between}: {body}"
        );
    }
    // A prompt that says itself that nothing is before it.
    let (_home, store) = session(&[
        &prompt("u1", None, "First"),
        &says("a1", "u1", r#"{"type":"text","text":"One."}"#),
        &prompt("u2", None, "Second"),
    ]);
    let body = body(&store, Selection::Recorded);
    assert!(!body.contains("First") && body.contains("Second"), "{body}");
}

/// The record behind a compaction hung on a message that the compaction had kept, which was taken for a rewind to before it.
#[test]
fn what_hangs_on_a_kept_message_does_not_undo_the_compaction() {
    let kept = r#","subtype":"compact_boundary","compactMetadata":{"preTokens":9,"preservedSegment":{"headUuid":"a2","anchorUuid":"s1","tailUuid":"a2"},"preservedMessages":{"anchorUuid":"s1","uuids":["a2"]}}"#;
    let summary = record(
        "user",
        "s1",
        Some("b1"),
        r#","isCompactSummary":true,"message":{"role":"user","content":"Summary"}"#,
    );
    let (_home, store) = session(&[
        &prompt("u1", None, "First"),
        &says("a1", "u1", r#"{"type":"text","text":"One."}"#),
        &says("a2", "a1", r#"{"type":"text","text":"Two."}"#),
        &record("system", "b1", None, kept),
        &summary,
        &prompt("u2", Some("a2"), "Second"),
    ]);
    let body = body(&store, Selection::Recorded);
    let places: Vec<_> = ["Summary", "Two.", "Second"].map(|text| body.find(text)).into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{body}");
    assert!(!body.contains("First") && !body.contains("One."), "{body}");
}

/// The host sweeps long results away; the model was shown their beginning only.
#[test]
fn a_long_result_is_kept_whole() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    let scene = folder().join("claude/more/recording");
    let mut program = std::process::Command::new(binary().unwrap());
    let run = program.arg("--db").arg(&store).arg("import").arg(&scene).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let store = Store::builder(&store).registry(acpdb_hosts::registry()).open().unwrap();
    let events = store.events(Seq::ZERO, Seq::MAX).unwrap().map(Result::unwrap);
    let kept: Vec<_> = events
        .filter_map(|it| match it.event.payload {
            Payload::HostRecorded(kept) if kept.record == "tool-result" => Some((it.seq, kept)),
            _ => None,
        })
        .collect();
    let [(seq, kept)] = kept.as_slice() else { panic!("{} results", kept.len()) };
    let text = store.body(kept.raw.unwrap().id(*seq)).unwrap();
    let expected: Vec<String> = (1..=12_000).map(|number| number.to_string()).collect();
    assert_eq!(String::from_utf8(text).unwrap().trim_end(), expected.join("\n"));
    assert!(kept.about.as_ref().unwrap().starts_with("toolu_"));
}

/// Codex packs its older recordings where they lie.
#[test]
fn a_packed_recording_is_the_same_session() {
    let home = tempfile::tempdir().unwrap();
    let sessions = home.path().join("codex/sessions/2026/11/22");
    std::fs::create_dir_all(&sessions).unwrap();
    let mut found = Vec::new();
    super::scenes::files("codex", &folder().join("codex/main/recording"), &mut found);
    let [(_, plain)] = found.as_slice() else { panic!("{found:?}") };
    let name = plain.file_name().unwrap().to_str().unwrap();
    let packed = zstd::encode_all(&std::fs::read(plain).unwrap()[..], 3).unwrap();
    std::fs::write(sessions.join(format!("{name}.zst")), packed).unwrap();
    let import = || {
        let mut program = std::process::Command::new(binary().unwrap());
        program.env("HOME", home.path()).env("CODEX_HOME", home.path().join("codex"));
        let run =
            program.arg("--db").arg(home.path().join("store")).args(["import", "--json"]).output().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        said["items"][0]["events_new"].as_u64().unwrap()
    };
    assert!(import() > 100);
    std::fs::copy(plain, sessions.join(name)).unwrap();
    assert_eq!(import(), 0);
}

/// Ten calls became seventy, as each fold wrote them again.
#[test]
fn a_fold_makes_no_calls() {
    let played = imported("claude/fold");
    let events = played.store.events(Seq::ZERO, Seq::MAX).unwrap().map(Result::unwrap);
    let mut calls: Vec<String> = events
        .filter_map(|it| match it.event.payload {
            Payload::ToolCallStarted(call) => Some(call.call),
            _ => None,
        })
        .collect();
    let count = calls.len();
    calls.sort();
    calls.dedup();
    assert_eq!((calls.len(), count), (14, 14));
}

/// A prompt that was typed while the model worked stood in a message of the system's, as its record says; since version 2.1.332 the
/// host sends it as the user's own text, without the tags, and says so in another member.
#[test]
fn what_was_typed_meanwhile_is_sent_as_its_record_says() {
    let typed = |member: &str| {
        let words = r"<system-reminder>\nThe user sent a new message:\nAnd this.\n</system-reminder>";
        let attachment = r#""type":"queued_command","prompt":"And this.","commandMode":"prompt""#;
        let rest = format!(
            r#","attachment":{{{attachment}{member}}},"rendered":[{{"content":"{words}"}}],"renderedRole":"system""#
        );
        let (_home, store) = session(&[
            &prompt("u1", None, "Go"),
            &reads("a1", "u1", "c1"),
            &result("r1", "a1", "c1", "the text of the file", "text"),
            &record("attachment", "q1", Some("r1"), &rest),
            &says("a2", "q1", r#"{"type":"text","text":"Done."}"#),
        ]);
        let body: serde_json::Value = serde_json::from_str(&body(&store, Selection::Recorded)).unwrap();
        let said =
            body["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap().to_owned());
        let text = "The user sent a new message:\nAnd this.";
        let alone = serde_json::json!({"type": "text", "text": text});
        let place = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .position(|message| message["content"].as_array().unwrap().last() == Some(&alone));
        (said.collect::<Vec<_>>(), place)
    };
    let (roles, place) = typed("");
    assert_eq!(
        (roles, place),
        (["user", "assistant", "user", "system", "assistant"].map(str::to_owned).to_vec(), Some(3))
    );
    for member in [r#","humanTurn":true"#, r#","hostsOwnTurn":true"#] {
        let (roles, place) = typed(member);
        assert_eq!(
            (roles, place),
            (["user", "assistant", "user", "assistant"].map(str::to_owned).to_vec(), Some(2)),
            "{member}"
        );
    }
}

/// Where the provider keeps the conversation, the host sends calls as the model made them, without the parameters that it adds
/// itself. Both stand in its record; the host's own were taken for those that the model sees.
#[test]
fn a_call_is_shown_as_the_model_made_it() {
    let call = reads("a1", "u1", "c1");
    let sent =
        call.replace(r#","version""#, r#","wireToolInputs":{"c1":{"file_path":"a"},"c9":{}},"version""#);
    for (line, path) in [(call, "/p/a"), (sent, "a")] {
        let (_home, store) =
            session(&[&prompt("u1", None, "Go"), &line, &result("r1", "a1", "c1", "the text", "text")]);
        let body: serde_json::Value = serde_json::from_str(&body(&store, Selection::Recorded)).unwrap();
        assert_eq!(body["messages"][1]["content"][0]["input"], serde_json::json!({"file_path": path}));
    }
}

/// Anthropic's compaction by the server was taken for the item of that name of `OpenAI`, and left out.
#[test]
fn a_compaction_of_the_server_goes_back_to_its_provider_alone() {
    let block = r#"{"type":"compaction","content":"In short: b.py waits."}"#;
    let (_home, store) = session(&[
        &prompt("u1", None, "Go on."),
        &says("a1", "u1", block),
        &says("a2", "a1", r#"{"type":"text","text":"Where were we?"}"#),
        &prompt("u2", Some("a2"), "At b.py."),
    ]);
    assert!(body(&store, Selection::Recorded).contains(block));
    assert!(body(&store, Selection::Current).contains(block));
    let session = store.stream_names().unwrap().into_iter().next().unwrap();
    let view = store.view(session.id).unwrap();
    for format in [Format::Responses, Format::Openai, Format::Gemini] {
        let body =
            String::from_utf8(export(&view, format, &ExportChoices::default()).unwrap().bytes).unwrap();
        assert!(!body.contains("compaction"), "{body}");
    }
}
