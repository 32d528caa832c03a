//! Scenes as the laboratory left them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use acpdb_hosts::import::{ImportFormat, ImportOptions, json, read, read_database};
use acpdb_hosts::sqlite::MAGIC;
use acpdb_tests::support::bytes_of;

/// A request as a host sent it.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) api: String,
    pub(super) kind: String,
    /// The host's id of the session, where it says one.
    pub(super) session: Option<String>,
    pub(super) model: String,
    /// The provider's usage for it, as JSON.
    pub(super) usage: String,
    /// Its messages, as JSON.
    pub(super) messages: Vec<String>,
}

/// The folder of all scenes.
pub(super) fn folder() -> PathBuf {
    std::env::var_os("ACPDB_HOSTS_FIXTURES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hosts"), PathBuf::from)
}

/// The requests of a scene, in the order in which they came.
pub(super) fn requests(scene: &str) -> Vec<Request> {
    let text = std::fs::read_to_string(folder().join(scene).join("requests.jsonl")).unwrap();
    let mut before: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let [api, kind, session, model, usage, keep, messages] =
            json::pick(line, ["api", "kind", "session", "model", "usage", "keep", "messages"]).unwrap();
        let session = json::owned(session);
        let keep = usize::try_from(json::count(keep).unwrap()).unwrap();
        let held = before.entry(session.clone()).or_default();
        held.truncate(keep);
        held.extend(messages.and_then(json::elements).unwrap().into_iter().map(str::to_owned));
        all.push(Request {
            api: json::owned(api).unwrap(),
            kind: json::owned(kind).unwrap(),
            model: json::owned(model).unwrap(),
            usage: usage.unwrap().to_owned(),
            messages: held.clone(),
            session,
        });
    }
    all
}

/// A store with a scene's recording.
pub(super) struct Played {
    _home: tempfile::TempDir,
    pub(super) store: Store,
}

/// Files of a recording that are sessions, by format.
pub(super) fn files(host: &str, folder: &Path, out: &mut Vec<(ImportFormat, PathBuf)>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(host, &path, out);
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let format = match host {
            "claude" if name.ends_with(".jsonl") => ImportFormat::ClaudeCode,
            "codex" if name.ends_with(".jsonl") => ImportFormat::Codex,
            "gemini" if name.starts_with("session-") => ImportFormat::GeminiCli,
            "copilot" if name == "events.jsonl" => ImportFormat::CopilotCli,
            "pi" if name.ends_with(".jsonl") => ImportFormat::Pi,
            "opencode" if name == "opencode.db" => ImportFormat::Opencode,
            _ => continue,
        };
        out.push((format, path));
    }
}

/// Imports the recording of a scene.
pub(super) fn imported(scene: &str) -> Played {
    let home = tempfile::tempdir().unwrap();
    let store = Store::builder(home.path().join("store")).registry(acpdb_hosts::registry()).open().unwrap();
    let mut found = Vec::new();
    let host = scene.split('/').next().unwrap();
    files(host, &folder().join(scene).join("recording"), &mut found);
    assert!(!found.is_empty(), "{scene}: nothing to import");
    for (format, path) in found {
        let name = path.file_name().unwrap().to_string_lossy().split('.').next().unwrap().to_owned();
        let mut batches = Vec::new();
        let bytes = bytes_of(&path).unwrap();
        let report = if bytes.starts_with(MAGIC) {
            read_database(&&bytes[..], None, &name, &ImportOptions::default(), &mut batches).unwrap()
        } else {
            read(format, &name, &bytes[..], &ImportOptions::default(), &mut batches).unwrap()
        };
        assert!(report.is_complete(), "{}", path.display());
        for batch in batches {
            let _ = store.append(&batch.stream, batch.entries).unwrap();
        }
    }
    Played { _home: home, store }
}
