//! The engine as an embedder sees it: names at its root, each with an example, and the same from the one crate that people add.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use expect_test::{expect, expect_file};

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

/// The crates whose names `acpdb` shows at its root.
fn behind_the_face() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["engine/src", "serve/src"] {
        sources(&root().join(folder), &mut texts);
    }
    texts
}

/// A name that is added or taken away shows here: both are changes for all users.
#[test]
fn names_at_the_root_are_these() {
    let names = re_exported(&read(&root().join("acpdb/src/lib.rs")));
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

/// A block of a file, and which of its lines are members.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    Impl,
    Struct,
    Enum,
    Trait,
}

/// The type that a line at the left margin begins a block of.
fn block(line: &str) -> Option<(Block, &str)> {
    let (kind, rest) = [
        ("pub struct ", Block::Struct),
        ("pub enum ", Block::Enum),
        ("pub trait ", Block::Trait),
        ("impl", Block::Impl),
    ]
    .into_iter()
    .find_map(|(start, kind)| Some((kind, line.strip_prefix(start)?)))?;
    if kind == Block::Impl && (line.contains(" for ") || !line.ends_with('{')) {
        return None;
    }
    let rest = rest.strip_prefix('<').map_or(rest, |rest| rest.split_once('>').map_or("", |(_, rest)| rest));
    let name = rest.trim_start().split(|next: char| !next.is_alphanumeric()).next()?;
    Some((kind, name)).filter(|(_, name)| !name.is_empty())
}

/// A file with the items of `numbers!` at the left margin, as they would stand without it.
fn unwrapped(text: &str) -> String {
    let mut is_inside = false;
    let mut whole = String::new();
    for line in text.lines() {
        is_inside = if line.ends_with("numbers! {") { true } else { is_inside && line != "}" };
        whole += line.strip_prefix("    ").filter(|_| is_inside).unwrap_or(line);
        whole.push('\n');
    }
    whole
}

/// Adds the members of types that a file shows to all users, as rustfmt writes them: hidden members are left out.
fn members(text: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let text = unwrapped(text);
    let mut of: Option<(Block, &str)> = None;
    let mut is_hidden = false;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(member) = line.strip_prefix("    ").filter(|rest| !rest.starts_with([' ', '}'])) else {
            if line.starts_with('}') {
                of = None;
            } else if !line.is_empty() && !line.starts_with([' ', '#', '/']) {
                // A line between two members ends no block.
                of = block(line);
            }
            continue;
        };
        let Some((kind, name)) = of else { continue };
        if member.starts_with('#') {
            is_hidden |= ["doc(hidden)", "cfg(test", "cfg(any(test", "feature = \"testing\""]
                .iter()
                .any(|mark| member.contains(mark));
            continue;
        }
        if member.starts_with("//") || member.is_empty() {
            continue;
        }
        let is_member = match kind {
            Block::Impl | Block::Struct => member.starts_with("pub ") && !member.starts_with("pub("),
            Block::Enum => member.starts_with(char::is_uppercase),
            Block::Trait => member.starts_with("fn "),
        };
        let mut whole = member.to_owned();
        // A signature ends where its body begins, a variant where its fields end.
        let is_open = |whole: &str| match kind {
            Block::Struct => false,
            Block::Enum => {
                whole.ends_with(['{', '(']) || whole.matches('{').count() > whole.matches('}').count()
            }
            Block::Impl | Block::Trait => !whole.ends_with(['{', ';']) && !whole.ends_with('}'),
        };
        while is_member && is_open(&whole) {
            let Some(next) = lines.next().map(str::trim) else { break };
            if !next.starts_with("//") && !next.starts_with('#') {
                whole = format!("{whole} {next}");
            }
        }
        if is_member && !is_hidden {
            let whole = whole.trim_end_matches([' ', '{', ',', ';']).to_owned();
            found.entry(name.to_owned()).or_default().insert(whole);
        }
        is_hidden = false;
    }
}

/// A line between two functions ended the block: of each block the first function was listed alone.
#[test]
fn all_members_of_a_block_are_found() {
    let text = "impl Store {\n    /// One.\n    pub fn one(&self) -> u8 {\n        1\n    }\n\n    pub fn two(\n        &self,\n    ) {\n    }\n\n    \
                #[doc(hidden)]\n    pub fn three() {}\n\n    fn four() {}\n}\n\nfn free() {}\n\n#[derive(\n    Clone,\n)]\npub enum Kind {\n    /// A.\n    A,\n\n    \
                B { c: u8 },\n}\n";
    let mut found = BTreeMap::new();
    members(text, &mut found);
    let found: Vec<String> =
        found.iter().flat_map(|(name, of)| of.iter().map(move |one| format!("{name}: {one}"))).collect();
    assert_eq!(
        found,
        ["Kind: A", "Kind: B { c: u8 }", "Store: pub fn one(&self) -> u8", "Store: pub fn two( &self, )"]
    );
}

/// A signature, a field or a variant that changes is a change for all users: it shows in the diff of the listing.
#[test]
fn their_functions_fields_and_variants_are_these() {
    let mut found = BTreeMap::new();
    for text in &behind_the_face() {
        members(text, &mut found);
    }
    let mut names = re_exported(&read(&root().join("acpdb/src/lib.rs")));
    for of_crate in ["engine/src/lib.rs", "engine/src/answers.rs", "serve/src/lib.rs"] {
        names.extend(re_exported(&read(&root().join(of_crate))));
    }
    let mut listed = String::new();
    for name in &names {
        // Ids are declared by a macro, and some types have nothing to be seen.
        for member in found.get(name).into_iter().flatten() {
            listed.push_str(&format!("{name}: {member}\n"));
        }
    }
    expect_file!["face/signatures.txt"].assert_eq(&listed);
}

#[test]
fn the_crate_that_people_add_has_the_same_names() {
    let facade = re_exported(&read(&root().join("acpdb/src/lib.rs")));
    let missing: Vec<_> = re_exported(&read(&root().join("engine/src/lib.rs")))
        .into_iter()
        .filter(|name| !facade.contains(name))
        .collect();
    assert!(missing.is_empty(), "at the root of the engine, and not of acpdb: {missing:?}");
}

/// An example runs with the tests of documents; that each name has one is asked here.
#[test]
fn each_name_has_an_example() {
    let texts = behind_the_face();
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
    let without: Vec<_> = re_exported(&read(&root().join("acpdb/src/lib.rs")))
        .into_iter()
        .filter(|name| !has_example(name))
        .collect();
    assert!(without.is_empty(), "without an example: {without:?}");
}

/// Functions of the inner crate that no document shows: `#[doc(hidden)]` above them.
fn hidden(text: &str) -> BTreeSet<String> {
    let after = text.split("#[doc(hidden)]").skip(1);
    let signatures =
        after.filter_map(|rest| rest.lines().map(str::trim).find(|line| line.starts_with("pub ")));
    let named =
        signatures.filter_map(|line| line.split_once("fn ")?.1.split(['(', '<']).next().map(str::to_owned));
    named.collect()
}

/// An embedder who copies an example, and meets a method that the documents do not have, cannot go on.
#[test]
fn no_example_calls_a_hidden_method() {
    let engine = behind_the_face();
    let hidden: BTreeSet<String> = engine.iter().flat_map(|text| hidden(text)).collect();
    assert!(hidden.contains("view_once"), "the hidden methods are found: {hidden:?}");
    let mut shown = BTreeMap::new();
    for text in &engine {
        members(text, &mut shown);
    }
    let shown: Vec<&String> = shown.values().flatten().collect();
    let is_shown = |name: &str| shown.iter().any(|member| member.contains(&format!("fn {name}(")));
    let mut examples = vec![read(&root().join("README.md")), read(&root().join("docs/EMBEDDING.md"))];
    sources(&root().join("hosts/examples"), &mut examples);
    let calls = |name: &&String| examples.iter().any(|text| text.contains(&format!(".{name}(")));
    let called: Vec<_> = hidden.iter().filter(|name| !is_shown(name)).filter(calls).collect();
    assert!(called.is_empty(), "hidden, and called by an example: {called:?}");
}
