//! The house rules that a machine can check, each as a test that says how to mend its findings.
//!
//! Looks at the files of the repository itself: which crates import which, the names that pure modules may use, how
//! long files are, whether links in the documents lead anywhere, which words must not be there. Builds nothing, changes
//! nothing. Words that are banned are put together from pieces here, so that this file does not find itself.

#[path = "tidy/ignored.rs"]
mod ignored;
#[path = "tidy/kinds.rs"]
mod kinds;
#[path = "tidy/methods.rs"]
mod methods;
#[path = "tidy/profiles.rs"]
mod profiles;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/shortening.rs"]
mod shortening;
#[path = "tidy/silence.rs"]
mod silence;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/surroundings.rs"]
mod surroundings;
#[path = "tidy/type_names.rs"]
mod type_names;
#[path = "tidy/words.rs"]
mod words;

use methods::Methods;
use rooms::Room;
use source::{File, code, files, is_word, line_of, lines_with, root, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Files above this are fixtures that belong elsewhere.
const FILE_BYTES_MAX: u64 = 5 << 20;
/// No Rust file is longer.
const FILE_LINES_MAX: usize = 800;
/// Past this a file is to be split, or listed in [`LONG_FILES`] with its present length.
const FILE_LINES_SPLIT: usize = 600;
/// Files past [`FILE_LINES_SPLIT`] and the length that they may not exceed. This list only shrinks.
const LONG_FILES: &[(&str, usize)] =
    &[("hosts/src/export/turns.rs", 631), ("hosts/src/import/gemini_cli.rs", 609)];

/// Crate, and the crates of this workspace that it may name.
const CRATES: &[(&str, &[&str])] = &[
    ("engine", &[]),
    ("serve", &["acpdb-engine"]),
    ("query", &["acpdb-engine", "acpdb-serve"]),
    ("hosts", &["acpdb-engine", "acpdb-serve"]),
    ("live", &["acpdb-engine", "acpdb-hosts", "acpdb-query", "acpdb-serve"]),
    ("proof", &["acpdb-engine"]),
    ("remote", &["acpdb-engine"]),
    ("acpdb", &["acpdb-engine", "acpdb-hosts", "acpdb-query", "acpdb-remote", "acpdb-serve"]),
    (
        "cli",
        &[
            "acpdb-engine",
            "acpdb-hosts",
            "acpdb-live",
            "acpdb-proof",
            "acpdb-query",
            "acpdb-remote",
            "acpdb-serve",
        ],
    ),
];

/// Modules of the engine: each may use those before it.
const ENGINE_MODULES: &[&str] = &[
    "failpoints",
    "locks",
    "ids",
    "secret",
    "text",
    "event",
    "registry",
    "entry",
    "fold",
    "command",
    "codec",
    "storage",
    "vault",
    "log",
    "error",
    "index",
    "verify",
    "store",
    "answers",
    "settings",
    "keys",
    "testing",
];

/// Modules of the engine that do no IO.
const PURE_MODULES: &[&str] =
    &["ids", "secret", "text", "event", "registry", "entry", "fold", "command", "codec"];

/// Folders whose members must not form circles: a title, the folder, the crate's folder.
const ROOMS: &[(&str, &str, &str)] = &[
    ("the engine", "engine/src/", "engine/src/"),
    ("fold", "engine/src/fold/", "engine/src/"),
    ("command", "engine/src/command/", "engine/src/"),
    ("codec", "engine/src/codec/", "engine/src/"),
    ("storage", "engine/src/storage/", "engine/src/"),
    ("log", "engine/src/log/", "engine/src/"),
    ("index", "engine/src/index/", "engine/src/"),
    ("store", "engine/src/store/", "engine/src/"),
    ("the command line", "cli/src/", "cli/src/"),
];

/// Crates of a workspace of their own, whose folders have no circles either.
const BINDINGS: [&str; 3] = ["bindings/node/src/", "bindings/python/src/", "bindings/shared/src/"];

/// Circles inside folders that are left: the folder and its members. This list only shrinks.
const CIRCLES: &[(&str, &str)] = &[
    ("bindings/node/src/", "session, store, view"),
    ("bindings/python/src/", "fault, held"),
    ("bindings/shared/src/", "stores, views"),
    ("engine/src/storage/sim/", "clock, file, moment, process, schedule"),
    ("hosts/src/", "exchange, export, import, lint"),
    ("hosts/src/export/", "ahead, calls, dialect, prompt, provider, providers, source, thinking, turns"),
    ("hosts/src/import/", "claude_code, detect, json, limits, marks, report, torn, values, wire"),
    ("hosts/src/import/claude_code/", "line, names, rebuilt"),
    ("live/src/", "compaction, mcp, plugin, proxy"),
    ("query/src/", "cost, events, facts, kept, names, rows, sessions, simulate"),
    ("query/src/", "chain, items"),
];

/// Names that a pure module may not use: files, network, clocks, threads, environment, randomness, output.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::io",
    "std::thread",
    "std::env",
    "std::process",
    "SystemTime",
    "Instant",
    "rand",
    "getrandom",
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
];

/// Fails with every finding on a line of its own, and the way to mend them.
fn report(mut findings: Vec<String>, mend: &str) {
    findings.sort();
    assert!(findings.is_empty(), "\n{}\n\nTo mend: {mend}\n", findings.join("\n"));
}

/// Rust files below `folder`, as code without tests.
fn production(all: &[File], folder: &str) -> Vec<(String, String)> {
    let inside = |file: &&File| file.path.starts_with(folder) && file.is("rs") && !file.is_test();
    let stripped = |file: &File| Some((file.path.clone(), without_tests(&code(file.text.as_ref()?))));
    all.iter().filter(inside).filter_map(stripped).collect()
}

// --- who uses whom ---------------------------------------------------------------------------------------------------

/// Names of the dependencies in a manifest, from every kind of dependency table, with their lines.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_table = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (table, name) = match header.rsplit_once('.') {
                Some((table, name)) if table.ends_with("dependencies") => (table, Some(name)),
                _ => (header, None),
            };
            in_table = table.ends_with("dependencies") && name.is_none();
            found.extend(name.map(|name| (index + 1, name.to_owned())));
        } else if in_table && !line.starts_with('#') {
            let name: String = line.chars().take_while(|c| is_word(*c) || *c == '-').collect();
            if !name.is_empty() {
                found.push((index + 1, name));
            }
        }
    }
    found
}

#[test]
fn crates_depend_in_one_direction() -> io::Result<()> {
    let mut findings = Vec::new();
    for (name, allowed) in CRATES {
        let manifest = std::fs::read_to_string(root().join(name).join("Cargo.toml"))?;
        for (line, dependency) in dependencies(&manifest) {
            let own = dependency == format!("acpdb-{name}"); // a crate's tests may turn on its own features
            if dependency.starts_with("acpdb") && !own && !allowed.contains(&dependency.as_str()) {
                findings.push(format!("{name}/Cargo.toml:{line}: {name} depends on {dependency}"));
            }
        }
    }
    report(findings, "move what is shared down into the engine; arrows point cli -> hosts, query -> engine.");
    Ok(())
}

#[test]
fn every_dependency_has_a_reason_in_the_design() -> io::Result<()> {
    let design = std::fs::read_to_string(root().join("docs/DESIGN.md"))?;
    let table = design.split_once("\n## Dependencies").map_or("", |(_, section)| section);
    let mut findings = Vec::new();
    for (folder, _) in CRATES {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml"))?;
        let rows = table.lines().filter(|line| line.starts_with("| `"));
        let of_folder: Vec<&str> = rows
            .filter_map(|row| {
                let mut cells = row.split('|').skip(1);
                let (names, places) = (cells.next()?, cells.next()?);
                let is_here = places.contains(folder) || places.contains("all") || places.contains("tests");
                is_here.then_some(names)
            })
            .collect();
        for (line, dependency) in dependencies(&manifest) {
            let is_told = of_folder.iter().any(|names| names.contains(&format!("`{dependency}`")));
            if !is_told && dependency != "workspace" && !dependency.starts_with("acpdb") {
                findings.push(format!("{folder}/Cargo.toml:{line}: no row of {dependency} for {folder}"));
            }
        }
    }
    report(
        findings,
        "say in the table of docs/DESIGN.md, Dependencies, what the crate saves and how to leave it.",
    );
    Ok(())
}

/// Top-level names that `code` reaches through `crate::` or enough `super::`, with the offset of each.
///
/// `depth` is how many modules deep the file is; that many `super::` lead to the crate's root.
fn crate_names(code: &str, depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let heads = code.match_indices("crate::").map(|(at, head)| (at, head.len()));
    let supers = code.match_indices("super::").filter_map(|(at, head)| {
        let (before, chain) = (code.get(..at)?, code.get(at..)?);
        let count = (0..chain.len())
            .take_while(|n| chain.get(n * head.len()..).is_some_and(|c| c.starts_with(head)))
            .count();
        (!before.ends_with(head) && count >= depth).then_some((at, count * head.len()))
    });
    for (at, length) in heads.chain(supers) {
        if code.get(..at).is_some_and(|before| before.ends_with(is_word)) {
            continue; // as in `mycrate::`
        }
        let tail = code.get(at + length..).unwrap_or_default();
        for name in first_names(tail) {
            found.push((at, name));
        }
    }
    found
}

/// The names that a path or a `{group}` of paths begins with.
fn first_names(tail: &str) -> Vec<String> {
    let name = |text: &str| -> String { text.trim_start().chars().take_while(|c| is_word(*c)).collect() };
    let Some(group) = tail.strip_prefix('{') else { return vec![name(tail)] };
    let (mut depth, mut start, mut names) = (0_usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(group.get(start..at).unwrap_or_default()));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Exports of the crate's root by the module that they come from: `pub use store::{Store, View}` gives both to `store`.
fn exports(root_code: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in root_code.split(';') {
        let Some((_, path)) = statement.split_once("pub use ") else { continue };
        let path = path.trim_start_matches("crate::");
        let module: String = path.chars().take_while(|c| is_word(*c)).collect();
        for name in path.split(|c| !is_word(c)).filter(|name| !name.is_empty() && *name != module) {
            found.insert(name.to_owned(), module.clone());
        }
    }
    found
}

/// Uses of a module that stands at or after `module`'s own place in [`ENGINE_MODULES`].
fn back_arrows(path: &str, code: &str, exports: &BTreeMap<String, String>) -> Vec<String> {
    let inner = path.trim_start_matches("engine/src/").trim_end_matches(".rs").trim_end_matches("/mod");
    let module = inner.split('/').next().unwrap_or_default();
    let place = |name: &str| ENGINE_MODULES.iter().position(|known| *known == name);
    let Some(own) = place(module) else {
        return vec![format!("{path}: module `{module}` has no place in the order of modules")];
    };
    let mut findings = Vec::new();
    for (at, name) in crate_names(code, inner.split('/').count()) {
        let target = exports.get(&name).unwrap_or(&name);
        if place(target).is_some_and(|used| used > own) {
            findings.push(format!("{path}:{}: `{module}` uses `{target}`", line_of(code, at)));
        }
    }
    findings
}

#[test]
fn engine_modules_use_only_those_above_them() -> io::Result<()> {
    let sources = production(&files()?, "engine/src/");
    let lib = sources.iter().find(|(path, _)| path == "engine/src/lib.rs");
    let exports = lib.map(|(_, code)| exports(code)).unwrap_or_default();
    let modules = sources.iter().filter(|(path, _)| path != "engine/src/lib.rs");
    let findings = modules.flat_map(|(path, code)| back_arrows(path, code, &exports)).collect();
    report(
        findings,
        "move the shared piece into the upper of the two modules, or pass it in as a value or a trait. A new module \
         gets its place in ENGINE_MODULES (tests/tests/tidy.rs) and in docs/ARCHITECTURE.md.",
    );
    Ok(())
}

#[test]
fn a_back_arrow_is_seen_in_every_spelling() {
    let none = BTreeMap::new();
    for code in [
        "use crate::store::Store;",
        "use crate::{ids::Seq, log::{Log, Tail}};",
        "fn f() { crate::index::open() }",
        "use super::super::verify;",
    ] {
        assert_eq!(back_arrows("engine/src/fold/rules.rs", code, &none).len(), 1, "in {code:?}");
    }
    for code in
        ["use crate::{ids::Seq, event::{self, log_kind}};", "use super::store;", "use crate::fold::State;"]
    {
        assert_eq!(back_arrows("engine/src/fold/rules.rs", code, &none), [""; 0], "in {code:?}");
    }
    let exports = exports("mod store;\npub use store::{Store, View};\npub use ids::Seq;");
    assert_eq!(back_arrows("engine/src/fold/mod.rs", "use crate::View;", &exports).len(), 1);
    assert_eq!(back_arrows("engine/src/fold/mod.rs", "use crate::Seq;", &exports).len(), 0);
    assert_eq!(back_arrows("engine/src/misc.rs", "", &none).len(), 1, "a module without a place");
}

/// The methods that code below `crate_folder` may call: of its crate and of those that the crate may name.
fn methods_for(all: &[File], crate_folder: &str) -> Methods {
    let own = crate_folder.trim_end_matches("/src/");
    let named = CRATES.iter().find(|(name, _)| *name == own).map_or(&[][..], |(_, named)| named);
    let folders = named.iter().map(|package| format!("{}/src/", package.trim_start_matches("acpdb-")));
    let folders = folders.chain([crate_folder.to_owned()]);
    let sources: Vec<(String, String)> = folders.flat_map(|folder| production(all, &folder)).collect();
    Methods::of(sources.iter().map(|(path, code)| (path.as_str(), code.as_str())))
}

/// The rooms with their titles and folders.
fn rooms(all: &[File]) -> Vec<(&'static str, &'static str, Room)> {
    let mut known = BTreeMap::new();
    let read = |(title, folder, crate_folder): &(&'static str, &'static str, &'static str)| {
        let methods = known.entry(*crate_folder).or_insert_with(|| methods_for(all, crate_folder));
        (*title, *folder, Room::read(all, folder, crate_folder, methods))
    };
    ROOMS.iter().map(read).collect()
}

/// Every folder of code below a crate's sources, as a room of its own; the title is its path.
fn folders(all: &[File]) -> Vec<(String, Room)> {
    let mut rooms = Vec::new();
    for crate_folder in
        CRATES.iter().map(|(name, _)| format!("{name}/src/")).chain(BINDINGS.map(str::to_owned))
    {
        let below = all
            .iter()
            .filter(|file| file.path.starts_with(&crate_folder) && file.is("rs") && !file.is_test());
        let parents = below.filter_map(|file| Some(format!("{}/", file.path.rsplit_once('/')?.0)));
        let methods = methods_for(all, &crate_folder);
        let folders: BTreeSet<String> = parents.collect();
        rooms.extend(folders.into_iter().map(|folder| {
            let room = Room::read(all, &folder, &crate_folder, &methods);
            let is_drawn = ROOMS.iter().any(|(_, drawn, _)| *drawn == folder);
            (folder, if is_drawn { room } else { room.without_root() })
        }));
    }
    rooms
}

#[test]
fn there_is_no_circle_inside_a_folder() -> io::Result<()> {
    let mut findings = Vec::new();
    let all = files()?;
    let folders = folders(&all);
    assert!(folders.len() > 60, "the folders of the crates were not found");
    let mut listed = CIRCLES.to_vec();
    for (folder, room) in &folders {
        for circle in room.circles() {
            let members = circle.members.join(", ");
            let before = listed.len();
            listed.retain(|known| *known != (folder.as_str(), members.as_str()));
            if listed.len() == before {
                let arrows = circle.arrows.join("\n    ");
                findings.push(format!("{folder}: a circle of {members}:\n    {arrows}"));
            }
        }
    }
    let gone = |(folder, members): &(&str, &str)| {
        format!("{folder}: no circle of {members} is left: take it off the list")
    };
    findings.extend(listed.iter().map(gone));
    for (title, _, room) in rooms(&all) {
        let globs = room.globs.iter();
        findings.extend(globs.map(|path| format!("{title}: its root file imports all names of `{path}`")));
    }
    report(
        findings,
        "move the shared piece into a file that both may use: data below, what is done with it above. A root file imports \
         names one by one, so that it is seen whom a name belongs to.",
    );
    Ok(())
}

#[test]
fn each_name_that_is_passed_over_is_one_of_ours_as_well() -> io::Result<()> {
    // A name that a trait of one crate has is a method's of its own in the crates that do not see it.
    let all = files()?;
    let known = ["cli/src/", "engine/src/"].map(|folder| methods_for(&all, folder));
    let is_unknown = |name: &&str| !known.iter().any(|known| known.has(name));
    let unused: Vec<&str> = methods::OF_OTHERS.iter().copied().filter(is_unknown).collect();
    assert_eq!(unused, [""; 0], "take them out of OF_OTHERS (tests/tests/tidy/methods.rs)");
    Ok(())
}

/// The map of all rooms, as it stands in `tidy/map.txt`.
fn map(all: &[File]) -> String {
    let mut text = String::new();
    for (title, folder, room) in rooms(all) {
        text += &format!("{title} ({})\n{}\n\n", folder.trim_end_matches('/'), room.draw());
    }
    text.trim_end().to_owned() + "\n"
}

#[test]
fn the_map_is_what_the_sources_say() -> io::Result<()> {
    let path = root().join("tests/tests/tidy/map.txt");
    let written = std::fs::read_to_string(&path)?;
    let drawn = map(&files()?);
    if drawn != written && std::env::var_os("UPDATE_EXPECT").is_some() {
        return std::fs::write(&path, drawn);
    }
    let differs = |line: &str| format!("tests/tests/tidy/map.txt: the sources say: {line}");
    let findings =
        drawn.lines().filter(|line| !written.lines().any(|known| known == *line)).map(differs).collect();
    report(
        findings,
        "read what has changed; then UPDATE_EXPECT=1 cargo test -p acpdb-tests --test tidy the_map.",
    );
    assert_eq!(drawn, written, "tests/tests/tidy/map.txt: UPDATE_EXPECT=1 draws it anew");
    Ok(())
}

/// Lines of `code` that name something impure.
fn impurities(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for name in IMPURE {
        found.extend(lines_with(code, name).into_iter().map(|line| (line, (*name).to_owned())));
    }
    for (at, head) in code.match_indices("std::{") {
        for name in first_names(code.get(at + head.len() - 1..).unwrap_or_default()) {
            let path = format!("std::{name}");
            if IMPURE.contains(&path.as_str()) {
                found.push((line_of(code, at), path));
            }
        }
    }
    found
}

#[test]
fn pure_modules_do_no_io() -> io::Result<()> {
    let all = files()?;
    let mut findings = Vec::new();
    for module in PURE_MODULES {
        for (path, code) in production(&all, &format!("engine/src/{module}")) {
            let inside = [format!("engine/src/{module}.rs"), format!("engine/src/{module}/")];
            if path == inside[0] || path.starts_with(&inside[1]) {
                let named = impurities(&code).into_iter();
                findings.extend(named.map(|(line, name)| format!("{path}:{line}: names {name}")));
            }
        }
    }
    report(
        findings,
        "take the value as an argument (`now: Micros`, bytes, a seed) and leave the outside world to `storage` and \
         `store`.",
    );
    Ok(())
}

#[test]
fn impurity_is_seen_in_groups_and_not_in_longer_names() {
    assert_eq!(impurities("use std::{collections::BTreeMap, fs};").len(), 1);
    assert_eq!(impurities("let t = Instant::now();").len(), 1);
    assert_eq!(impurities("std::iter::empty(); operand::x(); Instantly"), []);
}

#[test]
fn storage_crates_are_named_where_they_belong() -> io::Result<()> {
    let all = files()?;
    let mut findings = Vec::new();
    for (path, code) in production(&all, "engine/src/") {
        let is_index = path.starts_with("engine/src/index");
        if !is_index {
            let named = lines_with(&code, "redb").into_iter();
            findings.extend(named.map(|line| format!("{path}:{line}: names redb")));
        }
    }
    for folder in ["serve/", "query/", "hosts/", "live/", "cli/"] {
        let mut texts = production(&all, folder);
        let manifest = all.iter().find(|file| file.path == format!("{folder}Cargo.toml"));
        texts.extend(manifest.and_then(|file| Some((file.path.clone(), file.text.clone()?))));
        for (path, text) in texts {
            for name in ["redb", "rkyv"] {
                let named = lines_with(&text, name).into_iter();
                findings.extend(named.map(|line| format!("{path}:{line}: names {name}")));
            }
        }
    }
    report(
        findings,
        "only engine::index knows redb, and only the engine knows redb and rkyv: give the engine a function \
         that answers the question in its own types.",
    );
    Ok(())
}

/// Files that name a format or a maker of models, with the reason: each is about one host or one verb, so a further
/// provider adds none.
/// provider adds none.
const NAMERS: &[(&str, &str)] = &[
    ("cli/src/commands/verify_host.rs", "compares with what Claude Code sent"),
    ("hosts/src/export/dialect.rs", "the habits of hosts, each in its own provider's format"),
    (
        "hosts/src/import/openai_messages/blocks.rs",
        "reads bodies whose calls are blocks, as one provider's are",
    ),
    ("hosts/src/resume/mod.rs", "the format that each host keeps its sessions in"),
];

/// The rows of a list such as `formats! { Gemini gemini ".." }`: name and folder.
fn rows<'a>(code: &'a str, list: &str) -> Vec<(&'a str, &'a str)> {
    let body = code.split_once(&format!("\n{list}! {{\n")).and_then(|(_, rest)| rest.split_once("\n}"));
    let lines = body.map_or("", |(body, _)| body).lines();
    lines
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(name, rest)| (name, first_word(rest)))
        .collect()
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

#[test]
fn a_provider_is_its_folder_and_its_row() -> io::Result<()> {
    let folder = "hosts/src/export/providers/";
    let table = std::fs::read_to_string(root().join(folder).join("mod.rs"))?;
    let (formats, makers) = (rows(&table, "formats"), rows(&table, "makers"));
    assert!(formats.len() >= 4 && makers.len() >= 3, "the lists in {folder}mod.rs were not found");
    let all = files()?;
    let mut findings = Vec::new();
    for crate_folder in ["hosts/src/", "live/src/", "cli/src/"] {
        for (path, code) in production(&all, crate_folder) {
            let inside = path.strip_prefix(folder).and_then(|below| below.split_once('/'));
            let named = [("Format", &formats), ("Provider", &makers)].into_iter().flat_map(|(of, rows)| {
                rows.iter().map(move |(name, own)| (format!("{of}::{name}"), *own, of == "Format"))
            });
            for (name, own, is_format) in named {
                // A maker of models belongs to several formats.
                let is_own = inside.is_some_and(|(found, _)| found == own || !is_format);
                let is_told = NAMERS.iter().any(|(namer, _)| *namer == path);
                let is_named = code.match_indices(&name).any(|(at, _)| {
                    !code.get(at + name.len()..).is_some_and(|after| after.starts_with(is_word))
                        && !code.get(..at).is_some_and(|before| before.ends_with(is_word))
                });
                if is_named && !is_own && !is_told {
                    findings.push(format!("{path} names {name}"));
                }
            }
        }
    }
    report(
        findings,
        "ask the format for its Form, in hosts/src/export/providers; or say in NAMERS why it is named.",
    );
    Ok(())
}

// --- files and words -------------------------------------------------------------------------------------------------

#[test]
fn files_stay_short() -> io::Result<()> {
    let mut findings = Vec::new();
    let mut listed: BTreeMap<&str, usize> = LONG_FILES.iter().copied().collect();
    for file in files()?.iter().filter(|file| file.is("rs")) {
        let lines = file.text.as_ref().map_or(0, |text| text.lines().count());
        let limit = match listed.remove(file.path.as_str()) {
            Some(allowed) if lines > FILE_LINES_SPLIT => allowed.min(FILE_LINES_MAX),
            Some(_) => 0, // short again: leave the list
            None if file.is_test() => FILE_LINES_MAX,
            None => FILE_LINES_SPLIT,
        };
        if lines > limit {
            findings.push(format!("{}: {lines} lines, at most {limit}", file.path));
        }
    }
    findings.extend(listed.keys().map(|path| format!("{path}: in LONG_FILES, but not in the repository")));
    report(
        findings,
        "split the file by concept. If that must wait, list it with its present length in LONG_FILES \
         (tests/tests/tidy.rs, up to 800); a listed file may not grow and leaves the list at 600 lines (limit 0).",
    );
    Ok(())
}

#[test]
fn files_stay_small() -> io::Result<()> {
    let large = files()?.into_iter().filter(|file| file.bytes > FILE_BYTES_MAX);
    let findings = large.map(|file| format!("{}: {} bytes", file.path, file.bytes)).collect();
    report(findings, "make the file when it is needed, or cut it; the repository holds files up to 5 MiB.");
    Ok(())
}

/// Relative targets of the links in a Markdown text, with their lines. Code, in fences or between backticks, is text.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for piece in outside.split("](").skip(1) {
            let target = piece.split([')', ' ']).next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((index + 1, path.to_owned()));
            }
        }
    }
    found
}

#[test]
fn links_in_documents_lead_somewhere() -> io::Result<()> {
    let mut findings = Vec::new();
    for file in files()?.iter().filter(|file| file.is("md")) {
        let place = root().join(&file.path);
        let folder = place.parent().unwrap_or(&place);
        for (line, target) in links(file.text.as_deref().unwrap_or_default()) {
            if !folder.join(&target).exists() {
                findings.push(format!("{}:{line}: no file {target}", file.path));
            }
        }
    }
    report(findings, "correct the path (it is relative to the document), or drop the link.");
    Ok(())
}

#[test]
fn links_are_found_outside_code_only() {
    let text = "[a](x.md#top) `[b](y.md)` [c](https://d/e) [f](#g)\n```\n[h](z.md)\n```\n![i](p/q.png \"r\")";
    assert_eq!(links(text), [(1, "x.md".to_owned()), (5, "p/q.png".to_owned())]);
}

/// A target without a corpus does not run: its kept inputs are replayed before it explores.
#[test]
fn every_fuzz_target_has_something_to_begin_with() -> io::Result<()> {
    let all = files()?;
    let manifest = all.iter().find(|file| file.path == "fuzz/Cargo.toml").and_then(|file| file.text.as_ref());
    let bins = manifest.map(|text| text.split("[[bin]]\nname = \"").skip(1)).into_iter().flatten();
    let names: Vec<&str> = bins.filter_map(|rest| rest.split('"').next()).collect();
    assert!(names.len() > 20, "targets that were found: {}", names.len());
    let kept = |name: &&str| {
        let folder = format!("fuzz/corpus/{name}/");
        all.iter().any(|file| file.path.starts_with(&folder))
    };
    let bare: Vec<String> = names.iter().filter(|name| !kept(name)).map(ToString::to_string).collect();
    report(bare, "write a few small inputs into fuzz/corpus/NAME.");
    Ok(())
}

#[test]
fn nothing_unfinished_is_left_in_the_code() -> io::Result<()> {
    let mut findings = Vec::new();
    for file in files()?.iter().filter(|file| file.is("rs")) {
        let text = file.text.as_deref().unwrap_or_default();
        let code = code(text);
        let macros = ["dbg!", "todo!", "unimplemented!"].map(|word| (word, &*code));
        let marks = [(concat!("FIX", "ME"), text), (concat!("XX", "X"), text)];
        for (word, text) in macros.into_iter().chain(marks) {
            let lines = lines_with(text, word).into_iter();
            findings.extend(lines.map(|line| format!("{}:{line}: {word}", file.path)));
        }
    }
    report(findings, "finish it, or refuse the case with an error that says what is not supported.");
    Ok(())
}

/// Lines of every text file that hold one of `words`, whatever their case.
fn lines_holding(words: &[&str]) -> io::Result<Vec<String>> {
    let mut findings = Vec::new();
    for file in &files()? {
        let text = file.text.as_deref().unwrap_or_default().to_lowercase();
        for word in words {
            let lines = lines_with(&text, word).into_iter();
            findings.extend(lines.map(|line| format!("{}:{line}: {word}", file.path)));
        }
    }
    Ok(findings)
}

#[test]
fn no_promise_is_made_that_a_digest_cannot_keep() -> io::Result<()> {
    let words = [concat!("tamper", "-proof"), concat!("tamper", "proof"), concat!("tamper", " proof")];
    report(lines_holding(&words)?, "a chain of digests makes tampering visible: write `tamper-evident`.");
    Ok(())
}

/// Lines that hold an absolute path below one of `folders`.
fn machine_paths(text: &str, folders: &[&str]) -> Vec<usize> {
    let mut lines = Vec::new();
    for folder in folders {
        for (at, _) in text.match_indices(folder) {
            let before = text.get(..at).and_then(|t| t.chars().next_back());
            if !before.is_some_and(|c| is_word(c) || matches!(c, '.' | '/' | '-' | '*')) {
                lines.push(line_of(text, at));
            }
        }
    }
    lines
}

#[test]
fn no_path_of_a_build_machine_is_written_down() -> io::Result<()> {
    let folders = [concat!("/wo", "rk/"), concat!("/fa", "rm/")];
    let mut findings = Vec::new();
    for file in &files()? {
        let lines = machine_paths(file.text.as_deref().unwrap_or_default(), &folders).into_iter();
        findings.extend(lines.map(|line| format!("{}:{line}", file.path)));
    }
    report(findings, "write the path relative to the repository, or make it an argument.");
    Ok(())
}

#[test]
fn a_machine_path_is_told_from_a_relative_one() {
    let folder = concat!("/wo", "rk/");
    assert_eq!(machine_paths(&format!("cd {folder}x"), &[folder]), [1]);
    assert_eq!(machine_paths(&format!("see net{folder}x and ..{folder}y"), &[folder]), [0_usize; 0]);
}
