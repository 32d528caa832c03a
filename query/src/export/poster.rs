//! The tokens of a session as a picture to be shown to others: an SVG without any text of the session.
//!
//! It says which share of the context was stale, and draws the size of the context over the turns. No title, path, name or prompt
//! is in it, so there is nothing to take out before it is shared.

use std::fmt::Write as _;
use std::io::Write;

use acpdb_engine::View;
use acpdb_engine::fold::TurnTokens;
use serde::Serialize;

use super::{ExportError, html_text};
use crate::cost::float;

const WIDTH: usize = 1200;
const HEIGHT: usize = 630;
const TOP: f64 = 250.0;
const BOTTOM: f64 = 570.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 1140.0;

/// The figures of a poster.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PosterReport {
    /// Turns.
    pub turns: usize,
    /// Tokens that the contexts at the ends of all turns would have held, had nothing been hidden.
    pub tokens_whole: u64,
    /// Those of these tokens that were superseded or hidden.
    pub tokens_hidden: u64,
    /// The share in percent.
    pub percent: f64,
}

/// Writes the picture of a session. `host` is the program that it ran in.
///
/// # Errors
/// If `out` fails.
pub fn poster(view: &View, host: &str, out: &mut dyn Write) -> Result<PosterReport, ExportError> {
    let turns = view.state().tokens_by_turn(view.at());
    let report = report(&turns);
    let peak = turns.iter().map(|turn| turn.whole).max().unwrap_or_default();
    let facts = format!(
        "{host}, {} turns, at most {} tokens, {} of them shown at the end",
        report.turns,
        thousands(peak),
        thousands(turns.last().map_or(0, |turn| turn.shown)),
    );
    let host = html_text(&facts);
    write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"system-ui, sans-serif\">\n<title>{percent:.0} % of the context was stale</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#14171c\"/>\n\
         <text x=\"{LEFT}\" y=\"130\" font-size=\"92\" font-weight=\"700\" fill=\"#e3e7ec\">{percent:.0} % was stale</text>\n\
         <text x=\"{LEFT}\" y=\"182\" font-size=\"26\" fill=\"#98a3b1\">{host}</text>\n\
         <path d=\"{whole}\" fill=\"#c98a2b\"/>\n<path d=\"{shown}\" fill=\"#3f8fe0\"/>\n\
         <rect x=\"{LEFT}\" y=\"590\" width=\"16\" height=\"16\" fill=\"#3f8fe0\"/>\
         <text x=\"84\" y=\"604\" font-size=\"20\" fill=\"#98a3b1\">still true</text>\n\
         <rect x=\"190\" y=\"590\" width=\"16\" height=\"16\" fill=\"#c98a2b\"/>\
         <text x=\"214\" y=\"604\" font-size=\"20\" fill=\"#98a3b1\">superseded or hidden, of each turn's context</text>\n\
         <text x=\"{RIGHT}\" y=\"604\" font-size=\"20\" text-anchor=\"end\" fill=\"#98a3b1\">acpdb</text>\n</svg>\n",
        percent = report.percent,
        whole = area(&turns, peak, |turn| turn.whole),
        shown = area(&turns, peak, |turn| turn.shown),
    )?;
    Ok(report)
}

fn report(turns: &[TurnTokens]) -> PosterReport {
    let sum = |of: fn(&TurnTokens) -> u64| turns.iter().map(of).fold(0, u64::saturating_add);
    let whole = sum(|turn| turn.whole);
    // A turn whose summaries are longer than the texts that they replace hides nothing.
    let hidden = sum(|turn| turn.whole.saturating_sub(turn.shown));
    let percent = if whole == 0 { 0.0 } else { float(hidden) * 100.0 / float(whole) };
    PosterReport { turns: turns.len(), tokens_whole: whole, tokens_hidden: hidden, percent }
}

/// The outline of an area from the bottom up to a value of each turn.
fn area(turns: &[TurnTokens], peak: u64, of: impl Fn(&TurnTokens) -> u64) -> String {
    let steps = float((turns.len().max(2) - 1) as u64);
    let mut path = format!("M{LEFT} {BOTTOM}");
    for (number, turn) in turns.iter().enumerate() {
        let x = LEFT + (RIGHT - LEFT) * float(number as u64) / steps;
        let y = BOTTOM - (BOTTOM - TOP) * float(of(turn)) / float(peak.max(1));
        let _ = write!(path, "L{x:.1} {y:.1}");
        if turns.len() == 1 {
            let _ = write!(path, "L{RIGHT} {y:.1}");
        }
    }
    let _ = write!(path, "L{RIGHT} {BOTTOM}Z");
    path
}

fn thousands(tokens: u64) -> String {
    if tokens < 1000 { tokens.to_string() } else { format!("{:.1}k", float(tokens) / 1000.0) }
}
