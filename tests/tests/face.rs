//! What an embedder sees of the engine: names at its root, each with an example, and the same from the one crate that people add.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use expect_test::expect;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names that a file re-exports from anywhere, by `pub use path::{A, B};`.
fn re_exported(text: &str) -> BTreeSet<String> {
    let statements = text.split("\npub use ").skip(1);
    let named = statements.filter_map(|rest| rest.split_once(';')).flat_map(|(path, _)| {
        let list = path.split_once('{').map_or(path, |(_, list)| list.trim_end_matches(['}', '\n', ' ']));
        list.split(',')
            .map(|name| name.rsplit("::").next().unwrap_or(name).trim().to_owned())
            .collect::<Vec<_>>()
    });
    named.filter(|name| name.starts_with(char::is_uppercase)).collect()
}

/// All sources of a crate.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(read(&path));
        }
    }
}

/// A name that is added or taken away shows here: both are changes for all who build on it.
#[test]
fn names_at_the_root_are_these() {
    let names = re_exported(&read(&root().join("engine/src/lib.rs")));
    let listed = names.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    expect![[r#"
        ActReply
        At
        Atomicity
        Batch
        BodyId
        Builder
        Chain
        Commit
        Context
        ContextAction
        Durability
        Entry
        Error
        Explanation
        Face
        ItemId
        ItemView
        Memory
        MemoryCommand
        MemoryScope
        MessageStream
        Micros
        PartEntry
        PlainText
        Policy
        Receipt
        Recorded
        Redactor
        Registry
        Renderer
        Role
        Seq
        ServeOptions
        Session
        Step
        Store
        StreamId
        StreamInfo
        Subscription
        Target
        Ticket
        ToolFacts
        Turn
        Usage
        View"#]]
    .assert_eq(&listed);
    assert!(names.len() <= 45, "{} names: the next one belongs into `answers` or `settings`", names.len());
}

#[test]
fn the_crate_that_people_add_has_the_same_names() {
    let engine = re_exported(&read(&root().join("engine/src/lib.rs")));
    let facade = re_exported(&read(&root().join("cli/src/lib.rs")));
    assert_eq!(engine, facade);
}

/// An example runs with the tests of documents; that each name has one is asked here.
#[test]
fn each_name_has_an_example() {
    let mut texts = Vec::new();
    sources(&root().join("engine/src"), &mut texts);
    let has_example = |name: &str| {
        let kinds = ["struct", "enum", "trait", "type"];
        texts.iter().any(|text| {
            let lines: Vec<&str> = text.lines().collect();
            lines.iter().enumerate().any(|(number, line)| {
                let line = line.trim_start();
                // Ids are declared by a macro: `    StreamId, 16`.
                let declared = kinds.iter().any(|kind| {
                    line.strip_prefix("pub ").and_then(|line| line.strip_prefix(*kind)).is_some_and(|rest| {
                        rest.trim_start()
                            .strip_prefix(name)
                            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
                    })
                }) || line
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(", ") && rest[2..].parse::<u8>().is_ok());
                let above = lines[..number].iter().rev().map(|line| line.trim_start());
                let above =
                    above.take_while(|line| !line.is_empty() && !line.starts_with("pub ") && *line != "}");
                declared && above.filter(|line| line.starts_with("/// ```")).count() >= 2
            })
        })
    };
    let without: Vec<_> = re_exported(&read(&root().join("engine/src/lib.rs")))
        .into_iter()
        .filter(|name| !has_example(name))
        .collect();
    assert!(without.is_empty(), "without an example: {without:?}");
}
