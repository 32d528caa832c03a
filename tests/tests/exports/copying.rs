//! A scripted model that copies what it sees: it writes a file again with the parameters of the call in its context.
//!
//! A placeholder that stands where text stood would come into the file. So a file's text is sent whole, or a call cannot be
//! copied at all.

use std::collections::BTreeMap;

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, PartEntry, StreamInfo};
use acpdb_engine::event::{Outcome, Role};
use acpdb_engine::fold::Policy;
use acpdb_engine::store::Session;
use acpdb_hosts::export::{Exporter, Format};
use acpdb_serve::{ServeOptions, Step};
use serde_json::{Value, json};

/// Presets under which acpdb decides by itself what is sent. The others repeat what the plug-ins do that they are named after.
const PRESETS: [&str; 6] = ["acp", "balanced", "careful", "economy", "calm", "safe"];

fn record(session: &Session, call: &str, tool: &str, params: &Value, ended: (Outcome, &str)) {
    let _ = session
        .append([
            Entry::step(call),
            Entry::message(format!("m-{call}"), Role::Assistant, format!("Now {tool}.")),
            Entry::tool_started(call, tool, params.to_string()),
            Entry::tool_finished(call, ended.0, vec![PartEntry::text(ended.1)]),
        ])
        .unwrap();
}

/// A text of a file that no rule leaves alone for being short.
fn text_of(name: &str) -> String {
    (0..120).map(|line| format!("fn {name}_{line}() {{ println!(\"line {line} of {name}\"); }}\n")).collect()
}

/// The calls in the bytes of a request, by id: their parameters.
fn calls_seen(request: &[u8]) -> BTreeMap<String, Value> {
    let body: Value = serde_json::from_slice(request).unwrap();
    let blocks = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let calls = blocks.filter(|block| block["type"] == "tool_use");
    calls.map(|block| (block["id"].as_str().unwrap().to_owned(), block["input"].clone())).collect()
}

#[test]
fn a_model_that_copies_its_calls_writes_no_placeholder_into_a_file() {
    for preset in PRESETS {
        let folder = tempfile::tempdir().unwrap();
        let builder = Store::builder(folder.path()).registry(acpdb_hosts::registry()).any_file_system();
        let store = builder.open().unwrap();
        let _ = store.set_policy(None, &Policy::from_json(&format!("\"{preset}\"")).unwrap(), None).unwrap();
        let session = store.session(StreamInfo::session("claude-code", "s"));
        let _ = session.append([Entry::message("u", Role::User, "Write the modules.")]).unwrap();

        let (whole, old, new) = (text_of("a"), text_of("b"), text_of("c"));
        let write = json!({"file_path": "/p/a.rs", "content": whole});
        let edit = json!({"file_path": "/p/b.rs", "old_string": old, "new_string": new});
        record(&session, "write", "Write", &write, (Outcome::Completed, "ok"));
        record(&session, "edit", "Edit", &edit, (Outcome::Completed, "ok"));
        record(
            &session,
            "failed",
            "Write",
            &json!({"file_path": "/p/c.rs", "content": new}),
            (Outcome::Failed, "no such folder"),
        );
        // Time passes, the files are read and written again: every rule that could touch the calls has had its turn.
        for step in 0..130 {
            let path = if step % 40 == 39 { "/p/a.rs".to_owned() } else { format!("/p/other{step}.rs") };
            record(
                &session,
                &format!("r{step}"),
                "Read",
                &json!({"file_path": path}),
                (Outcome::Completed, "text of a file\n"),
            );
        }
        record(&session, "again", "Write", &write, (Outcome::Completed, "ok"));

        let step = Step::begin(&session, "k").unwrap();
        let options = ServeOptions { cold: true, ..ServeOptions::default() };
        let context = step.context(&Exporter::new(Format::Anthropic), &options).unwrap();
        let seen = calls_seen(&context.bytes);
        let mut disk = BTreeMap::new();
        for (id, required) in [
            ("write", vec!["file_path", "content"]),
            ("failed", vec!["file_path", "content"]),
            ("edit", vec!["file_path", "old_string", "new_string"]),
        ] {
            let Some(params) = seen.get(id) else { continue };
            for name in required {
                let value =
                    params[name].as_str().unwrap_or_else(|| panic!("{preset}: {id} is sent without {name}"));
                disk.insert((id, name), value.to_owned());
            }
        }
        // The host's tool writes down what the copied call gives it.
        for ((id, name), text) in disk.iter().filter(|((_, name), _)| *name != "file_path") {
            let known = [&whole, &old, &new].into_iter().any(|known| known == text);
            assert!(known, "{preset}: {name} of {id} came into a file as {text:.200}");
        }
        assert!(disk.len() >= 5, "{preset}: the model saw {:?}", seen.keys());
    }
}
