//! The same answer, for a reader and for a program: tables of any width, cells with tabs, pages in folders, standard input.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn session() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo-session.jsonl")).unwrap()
}

/// Runs the program with something on its standard input, at a width or at none.
fn run(folder: &Path, args: &[&str], columns: Option<usize>, input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command
        .current_dir(folder)
        .args(args)
        .env("ACPDB_PATH", "store")
        .env("ACPDB_ANY_FILE_SYSTEM", "1")
        .env_remove("COLUMNS");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns.to_string());
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// The bundled session, read from standard input.
fn world() -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    let done = run(folder.path(), &["import", "-"], None, &session());
    assert!(done.status.success(), "{done:?}");
    folder
}

fn out(done: &Output) -> String {
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout.clone()).unwrap()
}

#[test]
fn nothing_on_standard_input_is_no_session() {
    let folder = tempfile::TempDir::new().unwrap();
    let done = run(folder.path(), &["import", "-"], None, b"");
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert!(!folder.path().join("store").exists(), "and makes no store");
    let followed = run(folder.path(), &["import", "-", "--follow"], None, b"{}");
    assert_eq!(followed.status.code(), Some(2), "{followed:?}");
}

/// Columns were wrapped, so that a host read "claude-co/de" over two lines.
#[test]
fn tables_have_a_line_a_row_at_any_width() {
    let world = world();
    for verb in [&["sessions", "--all"][..], &["cost"], &["stats"], &["info", "--hosts"]] {
        let rows = |columns| out(&run(world.path(), verb, Some(columns), b"")).lines().count();
        let whole = rows(200);
        for columns in [40, 80, 120] {
            assert_eq!(rows(columns), whole, "{verb:?} at {columns}");
        }
    }
    for columns in [80, 120, 200] {
        let text = out(&run(world.path(), &["sessions", "--all"], Some(columns), b""));
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > columns).collect();
        assert!(wide.is_empty(), "{columns}: {wide:?}");
    }
}

/// Titles were cut on their way to `grep`.
#[test]
fn programs_get_whole_cells_between_tabs() {
    let world = world();
    let text = out(&run(world.path(), &["sessions", "--all"], None, b""));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    assert_eq!(rows[0][..3], ["id", "host", "title"]);
    assert!(rows.iter().any(|row| row[0] == "e38a074a-4e13-5065-90bf-50e0880d827b"), "whole ids: {text}");
    assert!(rows[1..].iter().all(|row| !row[2].ends_with('…') || row[2].len() > 100), "{text}");
}

#[test]
fn bare_and_marked_numbers_are_ids_and_points() {
    let world = world();
    let shown = out(&run(world.path(), &["show", "#297"], Some(100), b""));
    for id in ["297", "@297"] {
        assert_eq!(out(&run(world.path(), &["show", id], Some(100), b"")), shown, "{id}");
    }
    let then = out(&run(world.path(), &["context", "--at", "#236"], Some(100), b""));
    for point in ["236", "@236"] {
        assert_eq!(out(&run(world.path(), &["context", "--at", point], Some(100), b"")), then, "{point}");
    }
}

#[test]
fn an_index_leads_to_the_pages_beside_it() {
    let world = world();
    let args = ["export", "html", "--all", "--pages", "pages", "--redact", "-o", "index.html", "--json"];
    let said: serde_json::Value = serde_json::from_str(&out(&run(world.path(), &args, None, b""))).unwrap();
    assert_eq!((&said["sessions"], &said["subagents"]), (&2.into(), &1.into()));
    let index = std::fs::read_to_string(world.path().join("index.html")).unwrap();
    let pages: Vec<_> =
        world.path().join("pages").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(pages.len(), 1, "the subagent is within its parent's: {pages:?}");
    assert!(index.contains(&format!("pages/{}", pages[0].to_string_lossy())));
    let outside =
        run(world.path(), &["export", "html", "--all", "--pages", "../up", "-o", "i.html"], None, b"");
    assert_eq!(outside.status.code(), Some(2), "{outside:?}");
    let picture = out(&run(world.path(), &["export", "poster", "-o", "-"], None, b""));
    assert!(picture.starts_with("<svg") && picture.contains(" % was stale") && !picture.contains("/home/"));
    // A name that promises points is refused before anything is written.
    let points = run(world.path(), &["export", "poster", "-o", "tokens.png"], None, b"");
    assert_eq!(
        (points.status.code(), world.path().join("tokens.png").exists()),
        (Some(2), false),
        "{points:?}"
    );
}

#[test]
fn topics_are_told_and_verbs_stand_in_groups() {
    let folder = tempfile::TempDir::new().unwrap();
    let help = out(&run(folder.path(), &["--help"], Some(100), b""));
    assert!(help.contains("Start here:") && help.contains("Secrets and proofs:"), "{help}");
    for topic in ["ids", "points", "filters", "codes", "output"] {
        assert!(out(&run(folder.path(), &["help", topic], None, b"")).lines().count() > 4, "{topic}");
    }
    assert!(out(&run(folder.path(), &["help", "cost"], None, b"")).contains("--by"), "verbs as before");
}
