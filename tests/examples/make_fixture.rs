//! Makes the golden store of the present format: `cargo run --example make_fixture -p acpdb-tests -- FOLDER [encrypted]`.
//!
//! FOLDER must not exist; `store/`, `expect.txt` and `digests.txt` are made in it. Clock and random bytes are fixed, so
//! the same program makes the same bytes, encrypted or not. A fixture that is in the repository is never made again: it stands for the
//! stores that users have.

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, Fact, MemoryEntry, PartEntry, StreamInfo};
use acpdb_engine::event::{MemoryKind, Role};
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::ItemId;
use acpdb_engine::{Builder, Store};
use acpdb_tests::support::{Failure, described, fixed, fold_digests, golden_ring};
use std::path::PathBuf;

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    let is_encrypted = std::env::args().nth(2).is_some_and(|word| word == "encrypted");
    std::fs::create_dir(&folder)?;
    let builder = || Store::builder(folder.join("store")).registry(acpdb_hosts::registry());
    make(if is_encrypted { builder().encrypt(golden_ring()) } else { builder() })?;
    let builder = builder().read_only();
    let store = if is_encrypted { builder.keys(golden_ring()) } else { builder }.open()?;
    std::fs::write(folder.join("expect.txt"), described(&store)?)?;
    std::fs::write(folder.join("digests.txt"), fold_digests(&store)?)?;
    Ok(())
}

fn make(builder: Builder) -> Result<(), Failure> {
    let store = fixed(builder.index(false).segment_bytes_max(4096 + 6500), 2026).open()?;
    let session = StreamInfo {
        project: Some("shop".to_owned()),
        cwd: Some("/w".to_owned()),
        title: Some("A golden session".to_owned()),
        ..StreamInfo::session("opencode", "ses_golden")
    };
    let params = |path: &str| format!(r#"{{"filePath":"{path}"}}"#);
    let text = |what: &str| format!("{what}: a line that is long enough to be worth hiding\n").repeat(8);
    let mut calls: Vec<ItemId> = Vec::new();
    let mut call = |tool: &str, params: String, output: String| -> Result<(), Failure> {
        let name = format!("call_{}", calls.len() + 1);
        let entries = vec![
            Entry::step(format!("step_{name}")),
            Entry::tool_started(&name, tool, params).origin(format!("call:{name}#1:start")),
            Entry::tool_completed(&name, output).origin(format!("call:{name}#1:finish")).details("{\"n\":1}"),
        ];
        let receipt = store.append(&session, entries)?;
        calls.push(receipt.items.get(1).copied().flatten().ok_or("no item")?);
        Ok(())
    };
    let hello = Entry::message("m1", Role::User, "Grüße, please mend a.rs").origin("msg:m1");
    let _ = store.append(&session, vec![Entry::prompt("p1"), hello])?;
    call("read", params("/w/a.rs"), text("a"))?;
    call("read", params("a.rs"), text("a again"))?;
    call("edit", r#"{"filePath":"b.rs","oldString":"x","newString":"y"}"#.to_owned(), "edited".to_owned())?;
    call("read", params("/w/.env"), text("secret"))?;
    let todos = |status: &str| format!(r#"[{{"content":"mend","status":"{status}","priority":"high"}}]"#);
    call("todowrite", format!(r#"{{"todos":{}}}"#, todos("pending")), todos("pending"))?;
    call("todowrite", format!(r#"{{"todos":{}}}"#, todos("completed")), todos("completed"))?;
    call("grep", r#"{"pattern":"fn main","path":null,"n":1.0}"#.to_owned(), text("found"))?;
    let parts = vec![
        PartEntry::reasoning("It is the parser.", Some(b"sig")),
        PartEntry::text("I mended the parser."),
        PartEntry::media([0x89, 0x50, 0x4e, 0x47], Some("image/png".to_owned())),
    ];
    let failed = vec![
        Entry::message_parts("m2", Role::Assistant, parts).origin("msg:m2"),
        Entry::step("step_failed"),
        Entry::tool_started("call_bad", "bash", r#"{"command":"false"}"#),
        Entry::tool_failed("call_bad", "exit code 1"),
        Entry::tool_started("call_open", "bash", r#"{"command":"sleep 1"}"#),
    ];
    let _ = store.append(&session, failed)?;
    let target = |at: usize| calls.get(at).copied().map(Target::Item).ok_or("no call");
    let stream = session.id();
    let _ = store.context(stream, ContextAction::Discard, vec![(target(2)?, None)])?;
    let _ = store.context(stream, ContextAction::Distill, vec![(target(6)?, Some("one hit".to_owned()))])?;
    let _ = store.context(stream, ContextAction::Discard, vec![(target(3)?, None)])?;
    let _ = store.restore_pinned(stream, vec![target(3)?])?;
    let _ = store
        .append(&session, vec![Entry::message("m1", Role::User, "Grüße, mend b.rs").origin("msg:m1")])?;
    let _ =
        store.set_policy(Some(stream), &Policy::preset("balanced").ok_or("no preset")?, Some("calmer"))?;

    let project = StreamInfo::project("shop");
    let preference = |id: &str, value: &str, replaces: &[&str]| {
        Fact::Memory(MemoryEntry {
            id: id.to_owned(),
            kind: MemoryKind::Preference,
            category: "tooling".to_owned(),
            key: Some("package_manager".to_owned()),
            value: value.to_owned(),
            confidence: 90,
            replaces: replaces.iter().map(|id| (*id).to_owned()).collect(),
            ..MemoryEntry::default()
        })
        .into()
    };
    let memory = vec![preference("p1", "npm", &[]), preference("p2", "pnpm", &["p1"])];
    let _ = store.append(&project, memory)?;
    let lines = (0..3).map(|n| Entry::message("", Role::User, text(&format!("other {n}")))).collect();
    let _ = store.append(&StreamInfo::session("codex", "ses_other"), lines)?;
    store.close()?;
    Ok(())
}
