//! A secret that is taken out is nowhere: not in the log, the index, a view, or the output of the program.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests: a failed step is a failed test"
)]

use std::path::Path;
use std::sync::Arc;

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, PartEntry, StreamInfo, fact};
use acpdb_engine::event::{Payload, Role};
use acpdb_hosts::import::ImportFormat;
use acpdb_hosts::redact::Rules;
use acpdb_tests::support::{events, import_bytes};

/// A secret of a known form, and one that only an own rule knows.
fn canaries() -> [String; 2] {
    [format!("sk-ant-{}", "cAnArY01".repeat(5)), "canary-7731-secret".to_owned()]
}

fn is_in(folder: &Path, needle: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in(&path, needle);
        }
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
    })
}

fn open(folder: &Path, redacting: bool) -> Store {
    let builder = Store::builder(folder).registry(acpdb_hosts::registry());
    let rules = Rules::usual().unwrap().with("mine", "canary-[0-9]{4}-secret").unwrap();
    if redacting { builder.redactor(Arc::new(rules)).open().unwrap() } else { builder.open().unwrap() }
}

fn entries([one, two]: &[String; 2]) -> Vec<Entry> {
    let set = fact::PromptSet {
        system: Some(format!("use {one}").into_bytes().into()),
        tools: None,
        model: None,
        params: Some(format!(r#"{{"key":"{two}"}}"#).into_bytes().into()),
    };
    vec![
        set.into(),
        Entry::message("u", Role::User, format!("my key is {one}, not {one}")).origin("msg:u"),
        Entry::tool_started("c", "bash", format!(r#"{{"command":"curl -H {one}","n":1}}"#)).origin("c:start"),
        Entry::tool_completed("c", format!("ok {two}")).details(format!(r#"{{"stderr":"{one}"}}"#)),
        // A provider's own field stays to the byte: it would be refused otherwise.
        Entry::message_parts("a", Role::Assistant, vec![PartEntry::reasoning("hm", Some(b"sig=="))]),
    ]
}

#[test]
fn a_secret_is_nowhere_once_it_is_taken_out() {
    let canaries = canaries();
    let home = tempfile::tempdir().unwrap();
    for (folder, redacting) in [("clean", true), ("dirty", false)] {
        let folder = home.path().join(folder);
        let store = open(&folder, redacting);
        let info = StreamInfo::session("my-agent", "s");
        let receipt = store.append(&info, entries(&canaries)).unwrap();
        assert_eq!(receipt.items.len(), 5);
        // Records of a host repeat their texts: an import with its wire.
        let line = format!(
            r#"{{"type":"user","uuid":"0b1c2d3e-0000-4000-8000-000000000001","sessionId":"x","cwd":"/w","message":{{"role":"user","content":"{} {}"}}}}"#,
            canaries[0],
            "long enough to be a body of its own. ".repeat(8)
        );
        import_bytes(&store, ImportFormat::ClaudeCode, "x", line.as_bytes()).unwrap();
        let again = import_bytes(&store, ImportFormat::ClaudeCode, "x", line.as_bytes()).unwrap();
        assert_eq!(again.event_count, 0, "imported again, it is the same");
        let told: Vec<String> = events(&store)
            .unwrap()
            .iter()
            .filter_map(|recorded| match &recorded.event.payload {
                Payload::HostRecorded(it) if it.record == "redaction" => {
                    let raw = store.body(it.raw.unwrap().id(recorded.seq)).unwrap();
                    Some(format!(
                        "{} {}",
                        it.about.clone().unwrap_or_default(),
                        String::from_utf8(raw).unwrap()
                    ))
                }
                _ => None,
            })
            .collect();
        drop(store);
        for canary in &canaries {
            assert_eq!(is_in(&folder, canary), !redacting, "{canary} in {}", folder.display());
        }
        let expected: &[&str] = if redacting {
            &[
                r#" {"anthropic-key":1,"mine":1}"#,
                r#"msg:u {"anthropic-key":2}"#,
                r#"c:start {"anthropic-key":1}"#,
                r#" {"anthropic-key":1,"mine":1}"#,
                r#"msg:0b1c2d3e-0000-4000-8000-000000000001#0 {"anthropic-key":1}"#,
            ]
        } else {
            &[]
        };
        assert_eq!(told, expected);
        assert_eq!(scan(&folder, &canaries), !redacting);
    }
}

/// Whether `acpdb scan` finds something; never the thing itself.
fn scan(folder: &Path, canaries: &[String; 2]) -> bool {
    let program = acpdb_tests::binary::binary().unwrap();
    let run = |json: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args([
            "--db",
            folder.to_str().unwrap(),
            "scan",
            "--redact-rule",
            "mine=canary-[0-9]{4}-secret",
        ]);
        command.args(json).output().unwrap()
    };
    let (text, json) = (run(&[]), run(&["--json"]));
    for output in [&text, &json] {
        let said = [output.stdout.as_slice(), &output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        for canary in canaries {
            assert!(!said.contains(canary.as_str()), "{said}");
        }
    }
    let found = text.status.code() == Some(1);
    assert_eq!(String::from_utf8_lossy(&text.stdout).contains("acpdb erase '#"), found);
    assert_eq!(json.status.code(), text.status.code());
    found
}
