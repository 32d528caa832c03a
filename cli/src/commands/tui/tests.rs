//! The text on screens of two sizes, key by key, over the bundled session.
#![expect(clippy::unwrap_used, reason = "tests: helpers fail where they are")]

use acpdb_engine::Store;
use acpdb_engine::event::Scope;
use acpdb_hosts::import::{Format, Options, read};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;

use super::app::App;
use super::draw::draw;
use super::questions::Questions;

const BUNDLED: &[u8] = include_bytes!("../../../assets/demo-session.jsonl");

fn app() -> (tempfile::TempDir, App) {
    let folder = tempfile::tempdir().unwrap();
    let builder = Store::builder(folder.path().join("store")).registry(acpdb_hosts::registry());
    let store = builder.any_file_system().open().unwrap();
    let mut batches = Vec::new();
    let report = read(Format::ClaudeCode, "demo", BUNDLED, &Options::default(), &mut batches).unwrap();
    assert!(report.is_complete());
    for batch in batches {
        let _ = store.append(&batch.stream, batch.entries).unwrap();
    }
    assert!(store.stream_names().unwrap().iter().any(|name| name.scope == Scope::Session));
    (folder, App::new(Questions::new(store)).unwrap())
}

/// Presses keys, then returns the text on the screen.
fn screen(app: &mut App, keys: &str, width: u16, height: u16) -> String {
    for key in keys.chars() {
        app.prepare(usize::from(height)).unwrap();
        app.key(match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        })
        .unwrap();
    }
    app.prepare(usize::from(height)).unwrap();
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in 0..height {
        let line: String = (0..width).map(|column| buffer[(column, row)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Each step with its screen. Both sizes show the same, as far as there is room.
fn played(width: u16, height: u16) -> String {
    let (_folder, mut app) = app();
    let mut text = String::new();
    for (says, keys) in [
        ("the sessions", ""),
        ("enter: the timeline, at its end", "\n"),
        ("g: its beginning", "g"),
        ("c, [: the context a turn before the end", "c["),
        ("/ and a word: where it stands", "/cursor\n"),
        ("enter: the first place, in the timeline", "\n"),
        ("enter: its text", "\n"),
        ("esc: back", "\u{1b}"),
    ] {
        text.push_str(&format!("=== {says}\n{}\n", screen(&mut app, keys, width, height)));
    }
    text
}

#[test]
fn a_screen_of_80_columns() {
    snapbox::assert_data_eq!(played(80, 24), snapbox::file!["screens/80x24.txt"].raw());
}

#[test]
fn a_screen_of_120_columns() {
    snapbox::assert_data_eq!(played(120, 40), snapbox::file!["screens/120x40.txt"].raw());
}

#[test]
fn a_chain_is_shown_from_any_of_its_members() {
    let (_folder, mut app) = app();
    let mut text = screen(&mut app, "\ng", 120, 40);
    // The first item that something superseded.
    for _ in 0..200 {
        if text.lines().any(|line| line.starts_with('>') && line.contains("superseded by")) {
            break;
        }
        text = screen(&mut app, "j", 120, 40);
    }
    assert!(text.contains("superseded by"), "{text}");
    let chain = screen(&mut app, "h", 120, 40);
    assert!(chain.starts_with("acpdb  chain  turn "), "{chain}");
    let rows = chain.lines().skip(2).filter(|line| line.contains('#') || line.contains('t')).count();
    assert!(rows >= 2, "{chain}");
}

#[test]
fn keys_that_lead_nowhere_change_nothing_and_q_ends() {
    let (_folder, mut app) = app();
    let before = screen(&mut app, "", 80, 24);
    let after = screen(&mut app, "x]\u{1b}", 80, 24);
    assert_eq!(before.lines().next(), after.lines().next());
    assert!(screen(&mut app, "h", 80, 24).starts_with("acpdb  sessions"));
    assert!(screen(&mut app, "c", 80, 24).contains("open a session first"));
    let _ = screen(&mut app, "/nothing of this\n", 80, 24);
    assert!(!app.is_over());
    let _ = screen(&mut app, "qq", 80, 24);
    assert!(app.is_over());
}

#[test]
fn screens_of_any_size_are_drawn() {
    for (width, height) in [(1, 1), (2, 3), (10, 5), (40, 4), (300, 90)] {
        let (_folder, mut app) = app();
        for keys in ["", "\n", "c", "/a\n", "\n", "\n"] {
            let _ = screen(&mut app, keys, width, height);
        }
    }
}
