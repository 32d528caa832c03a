//! The documents are true: commands are played, code is compiled, data is parsed, and the book is whole.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::format_collect, reason = "helpers of tests")]

#[path = "docs/examples.rs"]
mod examples;
#[path = "cli/transcript.rs"]
mod transcript;
#[allow(dead_code, reason = "not every helper is used here")]
#[path = "cli/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::path::PathBuf;

use acpdb_engine::text::Json;
use acpdb_tests::binary::root;
use world::World;

/// README, changelog and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let folders = ["docs", "docs/adapters"].map(|folder| root().join(folder).read_dir().unwrap());
    let pages = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        pages.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// Fenced blocks of a page: the words behind the fence, the first line's number, the text.
fn blocks(text: &str) -> Vec<(String, usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(String, usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.to_owned(), number + 1, String::new())),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.2 = format!("{}{line}\n", block.2),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// Each page is a world of its own: later commands see the results of earlier ones.
#[test]
fn every_command_of_a_transcript_prints_what_the_page_shows() {
    let mut pages = pages();
    pages.retain(|page| std::fs::read_to_string(page).unwrap().contains("```console"));
    assert!(pages.len() >= 5, "pages with transcripts: {}", pages.len());
    std::thread::scope(|scope| {
        for page in &pages {
            scope.spawn(move || {
                let world = World::new();
                // Where it lies in a clone of the repository.
                std::fs::create_dir_all(world.path("cli/assets")).unwrap();
                let session = world.path(world::SESSION);
                std::fs::rename(session, world.path("cli/assets/demo-session.jsonl")).unwrap();
                transcript::play_file(&world, page);
            });
        }
    });
}

/// A reader's shell has to know the commands of a page.
#[test]
fn commands_of_transcripts_use_what_a_shell_has() {
    let known = regex::Regex::new(r"\| (head -n \d+|acpdb .*)$").unwrap();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (_, line, block) in blocks(&text).into_iter().filter(|(language, ..)| language == "console") {
            for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
                let is_piped = command.contains(" | ");
                assert!(!is_piped || known.is_match(command), "{}:{line}: {command}", page.display());
            }
        }
    }
}

/// A block that is not a transcript is code that is compiled, data that parses, shell that the program's own test reads, or a
/// drawing.
#[test]
fn every_block_is_of_a_kind_that_is_checked() {
    let compiled = std::fs::read_to_string(root().join("tests/src/lib.rs")).unwrap();
    for page in pages() {
        let name = page.strip_prefix(root()).unwrap().display().to_string();
        let text = std::fs::read_to_string(&page).unwrap();
        for (language, line, block) in blocks(&text) {
            match language.as_str() {
                "rust" => {
                    let included = format!("include_str!(\"../../{name}\")");
                    assert!(compiled.contains(&included), "{name}:{line}: code that nothing compiles");
                }
                "json" => {
                    for value in serde_json::Deserializer::from_str(&block).into_iter::<serde_json::Value>() {
                        value.unwrap_or_else(|error| panic!("{name}:{line}: {error}"));
                    }
                }
                "toml" => {
                    toml::from_str::<toml::Table>(&block)
                        .unwrap_or_else(|error| panic!("{name}:{line}: {error}"));
                }
                "python" => {
                    let run =
                        std::fs::read_to_string(root().join("bindings/python/tests/test_docs.py")).unwrap();
                    assert!(run.contains(&format!("\"{name}\"")), "{name}:{line}: Python that nothing runs");
                }
                "js" => {
                    let run =
                        std::fs::read_to_string(root().join("bindings/node/tests/docs.test.mjs")).unwrap();
                    assert!(
                        run.contains(&format!("\"{name}\"")),
                        "{name}:{line}: JavaScript that nothing runs"
                    );
                }
                "console" | "sh" | "text" => {}
                other => panic!("{name}:{line}: a block of kind {other:?}, which nothing checks"),
            }
        }
    }
}

/// Bytes of README and book. It may only be lowered: a page that grows takes its room from another.
const BOOK_BYTES_MAX: usize = 326_500;

#[test]
fn the_readme_is_read_in_minutes_and_the_book_does_not_grow() {
    let texts: Vec<String> = pages().iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let words = readme.split_whitespace().count();
    assert!(words <= 900, "README.md has {words} words");
    let bytes: usize = texts.iter().map(String::len).sum();
    assert!(bytes <= BOOK_BYTES_MAX, "README and book have {bytes} bytes");
}

/// Every page has its place in the book, and every place a page.
#[test]
fn the_book_has_every_page_once() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let links: Vec<String> = regex::Regex::new(r"\]\(([^)]+)\)")
        .unwrap()
        .captures_iter(&summary)
        .map(|found| found[1].to_owned())
        .collect();
    let listed: BTreeSet<String> = links.iter().cloned().collect();
    assert_eq!(listed.len(), links.len(), "a page is there twice");
    let book = root().join("docs");
    let own =
        pages().into_iter().filter_map(|page| Some(page.strip_prefix(&book).ok()?.display().to_string()));
    let own: BTreeSet<String> = own.filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(listed, own);
    let settings = std::fs::read_to_string(book.join("book.toml")).unwrap();
    let settings: toml::Table = toml::from_str(&settings).unwrap();
    assert_eq!(settings["book"]["src"].as_str(), Some("."));
}

/// The words in the first column of a page's table, which has this heading.
fn first_column(page: &str, heading: &str) -> Vec<String> {
    let rows = page.lines().skip_while(|line| !line.starts_with(&format!("| {heading} |"))).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// The page named a state that the query language does not have.
#[test]
fn conditions_and_points_of_the_page_on_questions_are_read() {
    let page = std::fs::read_to_string(root().join("docs/QUESTIONS.md")).unwrap();
    let now = acpdb_engine::Micros(1_774_440_000_000_000);
    let conditions = first_column(&page, "condition");
    assert!(conditions.len() > 20, "{conditions:?}");
    for condition in conditions {
        acpdb_query::Filter::parse(&condition, now).unwrap_or_else(|error| panic!("{condition}: {error}"));
    }
    let points = first_column(&page, "point");
    assert!(points.len() > 10, "{points:?}");
    for point in points {
        // A point with a blank is quoted for the shell.
        acpdb_query::when::parse(point.trim_matches('"'), now)
            .unwrap_or_else(|error| panic!("{point}: {error}"));
    }
}

/// The table of names for agents of one's own: the first column's names are known with the second one's parameters, and are all there are.
#[test]
fn the_names_of_tools_of_ones_own_are_those_of_the_registry() {
    let page = std::fs::read_to_string(root().join("docs/EMBEDDING.md")).unwrap();
    let names =
        |column: &str| -> Vec<String> { column.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = page.lines().skip_while(|line| !line.starts_with("| tools |")).skip(2);
    let rows: Vec<Vec<&str>> =
        rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').collect()).collect();
    let registry = acpdb_hosts::registry();
    let mut told = BTreeSet::new();
    let files = names(rows[0][2]);
    for row in &rows {
        let is_as_read = row[2].contains("as `read`");
        let params = if is_as_read { files.clone() } else { names(row[2]) };
        for tool in names(row[1]) {
            let given = |param: &str| match param {
                "paths" => r#"["a"]"#.to_owned(),
                "todos" => r#"[{"content":"a"}]"#.to_owned(),
                "command" => r#""view""#.to_owned(),
                _ => r#""a""#.to_owned(),
            };
            // Each parameter of a file is enough by itself; others are given together.
            let calls: Vec<Vec<&str>> = if is_as_read || row[2] == rows[0][2] {
                params.iter().map(|param| vec![param.as_str()]).collect()
            } else {
                vec![params.iter().map(String::as_str).collect()]
            };
            for call in calls {
                let fields: Vec<String> =
                    call.iter().map(|param| format!(r#""{param}":{}"#, given(param))).collect();
                let json = format!("{{{}}}", fields.join(","));
                let facts = registry.tool("my-agent", &tool, &Json::parse(json.as_bytes()).unwrap());
                let told = facts.todos.is_some() || facts.tasks.is_some();
                assert!(!facts.keys.is_empty() || told, "{tool} {json}");
            }
            told.insert(tool);
        }
    }
    let tables = std::fs::read_to_string(root().join("hosts/src/registry/tables.rs")).unwrap();
    let table = tables.split("const GENERAL").nth(1).unwrap().split("];").next().unwrap();
    let lines = table.lines().filter(|line| line.contains("tool(\"") || line.contains("shown(\""));
    let known: BTreeSet<String> = lines.map(|line| line.split('"').nth(1).unwrap().to_owned()).collect();
    assert!(known.len() > 20, "{known:?}");
    assert_eq!(told, known);
}
