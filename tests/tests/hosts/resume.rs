//! A session that is written back is the same conversation when it is read again: at steps of the model, and at its end.

use acpdb_engine::event::Scope;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::{At, Store};
use acpdb_hosts::export::{ExportChoices, Format, Selection, export};
use acpdb_hosts::import::{self, json};
use acpdb_hosts::resume::{Origin, ResumeHost, ResumeOptions, write};

use super::law::steps;
use super::lines;
use super::scenes::imported;

const ID: &str = "00000000-0000-4000-8000-00000000000a";

fn words() -> ResumeOptions {
    ResumeOptions {
        id: ID.to_owned(),
        folder: "/somewhere/else".to_owned(),
        time: "2026-11-23T00:00:00.000Z".to_owned(),
        pruned: false,
    }
}

/// A session's context at a point, in the form of a host's provider.
fn said(store: &Store, stream: StreamId, at: At, host: ResumeHost) -> Vec<String> {
    let view = store.view_at(stream, &at).unwrap();
    let options = ExportChoices { selection: Selection::Recorded, ..ExportChoices::default() };
    let (format, name, each): (_, _, fn(&str, &mut Vec<String>)) = match host {
        ResumeHost::ClaudeCode => (Format::Anthropic, "messages", lines::anthropic),
        ResumeHost::Codex => (Format::Responses, "input", lines::responses),
    };
    let body = String::from_utf8(export(&view, format, &options).unwrap().bytes).unwrap();
    let mut out = Vec::new();
    for message in json::member(Some(&body), name).and_then(json::elements).unwrap() {
        each(message, &mut out);
    }
    out
}

/// A store with a file that was written back; the stream of its session.
fn again(bytes: &[u8], host: ResumeHost) -> (tempfile::TempDir, Store, StreamId) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::builder(home.path().join("store")).registry(acpdb_hosts::registry()).open().unwrap();
    let format = match host {
        ResumeHost::ClaudeCode => import::ImportFormat::ClaudeCode,
        ResumeHost::Codex => import::ImportFormat::Codex,
    };
    let path = host.place(&words());
    let name = path.rsplit('/').next().unwrap().split('.').next().unwrap().to_owned();
    let mut batches = Vec::new();
    let report = import::read(format, &name, bytes, &import::ImportOptions::default(), &mut batches).unwrap();
    assert!(report.is_complete(), "{report:?}");
    for batch in batches {
        let _ = store.append(&batch.stream, batch.entries).unwrap();
    }
    let stream = store.find_stream(ID).unwrap_or_else(|error| panic!("{error}")).id;
    (home, store, stream)
}

/// Writes every session of a scene back at steps of it and at its end; compares the results.
fn holds(scene: &str, host: ResumeHost, origin: Origin) {
    let played = imported(scene);
    let streams = played.store.stream_names().unwrap();
    let mut count = 0;
    for name in streams.iter().filter(|it| it.scope == Scope::Session && it.parent.is_none()) {
        let head = played.store.head().unwrap();
        // Some of its steps: each is a store of its own.
        let ends = steps(&played, &name.name).into_iter().step_by(4).chain([head]);
        for at in ends {
            let view = played.store.view_at(name.id, &At::Seq(at)).unwrap();
            let expected = said(&played.store, name.id, At::Seq(at), host);
            if expected.is_empty() {
                continue;
            }
            let written = write(&played.store, &view, host, &words()).unwrap();
            assert_eq!(written.origin, origin, "{scene}");
            let text = String::from_utf8(written.bytes.clone()).unwrap();
            assert_eq!(text.lines().count(), written.lines, "{scene}");
            let own = format!("\"{}\"", name.name);
            assert!(!text.contains(&own) || name.host != host.name(), "{scene}: the old id is in it");
            let (_home, store, stream) = again(&written.bytes, host);
            let is = said(&store, stream, At::Head, host);
            assert_eq!(is, expected, "{scene} at {at}");
            count += 1;
        }
    }
    assert!(count > 0, "{scene}: nothing was compared");
}

#[test]
fn a_session_of_the_same_host_is_its_own_records_again() {
    for scene in ["main", "more", "hooks", "compact", "rewind", "meanwhile"] {
        holds(&format!("claude/{scene}"), ResumeHost::ClaudeCode, Origin::Records);
    }
    for scene in ["main", "more", "hooks", "compact", "find"] {
        holds(&format!("codex/{scene}"), ResumeHost::Codex, Origin::Records);
    }
}

#[test]
fn a_session_of_another_host_is_made_of_its_conversation() {
    for scene in ["codex/main", "codex/more", "gemini/main", "opencode/main"] {
        holds(scene, ResumeHost::ClaudeCode, Origin::Conversation);
    }
    for scene in ["claude/main", "claude/more", "claude/rewind", "gemini/main", "opencode/main"] {
        holds(scene, ResumeHost::Codex, Origin::Conversation);
    }
}

#[test]
fn a_pruned_session_says_what_acpdb_would_send() {
    let played = imported("claude/main");
    let names = played.store.stream_names().unwrap();
    let name = names.iter().find(|it| it.scope == Scope::Session && it.parent.is_none()).unwrap();
    let view = played.store.view_at(name.id, &At::Seq(Seq::MAX)).unwrap();
    let words = ResumeOptions { pruned: true, ..words() };
    let written = write(&played.store, &view, ResumeHost::ClaudeCode, &words).unwrap();
    assert_eq!(written.origin, Origin::Conversation);
    let (_home, store, stream) = again(&written.bytes, ResumeHost::ClaudeCode);
    let body = export(&view, Format::Anthropic, &ExportChoices::default()).unwrap();
    let mut expected = Vec::new();
    let body = String::from_utf8(body.bytes).unwrap();
    for message in json::member(Some(&body), "messages").and_then(json::elements).unwrap() {
        lines::anthropic(message, &mut expected);
    }
    assert_eq!(said(&store, stream, At::Head, ResumeHost::ClaudeCode), expected);
}
