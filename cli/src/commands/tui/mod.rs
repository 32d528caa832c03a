//! `acpdb tui`: sessions, timeline, chain, context at a turn and search, on the whole terminal.
//!
//! ```text
//! key -> App (which list, which row, which turn) -> questions (the program's own, as --json has them) -> rows
//!         '-> draw -> a frame of so many columns and lines
//! ```
//!
//! It asks the questions of the other verbs, and shows nothing of its own. It only reads. At every end the terminal gets back its
//! former state.

#[cfg(feature = "tui")]
mod app;
#[cfg(feature = "tui")]
mod draw;
#[cfg(feature = "tui")]
mod questions;
#[cfg(all(test, feature = "tui"))]
mod tests;

use super::{Code, Failure, Global, Output};

#[cfg(feature = "tui")]
pub(crate) fn run(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    use std::io::IsTerminal as _;
    super::at::refuse(global)?;
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(
            Failure::usage("this needs a terminal").hint("acpdb sessions, context and search print lines")
        );
    }
    let store = crate::store_path::read(global, output)?;
    let mut app = app::App::new(questions::Questions::new(store))?;
    let failed = Failure::io("use", "the terminal");
    let mut terminal = ratatui::try_init().map_err(&failed)?;
    let ended = shown(&mut terminal, &mut app);
    ratatui::restore();
    ended?;
    Ok(Code::Ok)
}

/// Draws and takes keys until the user ends it.
#[cfg(feature = "tui")]
fn shown(terminal: &mut ratatui::DefaultTerminal, app: &mut app::App) -> Result<(), Failure> {
    use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
    let failed = Failure::io("use", "the terminal");
    while !app.is_over() {
        let height = usize::from(terminal.size().map_err(&failed)?.height);
        app.prepare(height)?;
        terminal.draw(|frame| draw::draw(app, frame)).map_err(&failed)?;
        let Event::Key(key) = event::read().map_err(&failed)? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Ok(());
        }
        app.key(key.code)?;
    }
    Ok(())
}

#[cfg(not(feature = "tui"))]
pub(crate) fn run(_: &Global, _: &mut Output) -> Result<Code, Failure> {
    let failure = Failure::usage("this program was built without the full-screen browser");
    Err(failure.hint("build it with --features tui, or look with acpdb ui"))
}
