//! Hits of a search, as people and programs get them.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::event::Face;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::store::StreamName;
use acpdb_query::search::SearchHit;

use super::super::lines::{clip, cut, one_line, standing, what};
use crate::commands::again::{opening, resuming};
use crate::commands::{EscapeLevel, Failure, Output, describe, escape};
use crate::several::{self, ReadStores};

/// Columns before a line of a text.
const INDENT: usize = 9;
/// Style of matches.
const MATCH: anstyle::Style =
    anstyle::Style::new().bold().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Red)));

/// A session of one of the stores.
#[derive(Clone)]
pub(super) struct SessionOfStore {
    pub(super) store: usize,
    pub(super) stream: StreamName,
}

/// A hit, with its session's title, and the ways on.
#[derive(serde::Serialize)]
struct TitledHit {
    title: Option<String>,
    /// The command by which the host opens the session.
    opens: Option<String>,
    /// The command that writes the session as it was at the hit.
    resumes: String,
    #[serde(flatten)]
    hit: SearchHit,
}

pub(super) struct HitView<'s> {
    stores: &'s ReadStores,
    titles: BTreeMap<(usize, StreamId), Option<String>>,
    /// By store, the events that gave sessions their newest titles, once they are asked for.
    changed: BTreeMap<usize, BTreeMap<StreamId, Seq>>,
    pub(super) json: Vec<serde_json::Value>,
    session: Option<(usize, StreamId)>,
    left: usize,
    /// There is a hit after the limit.
    pub(super) has_more: bool,
    pub(super) count: u64,
    pub(super) sessions: BTreeSet<(usize, StreamId)>,
    /// The ways on from the session whose hits are shown.
    ways: Option<String>,
}

impl<'s> HitView<'s> {
    /// Nothing was shown yet; at most `limit` hits are.
    pub(super) fn new(stores: &'s ReadStores, limit: Option<usize>) -> Self {
        Self {
            stores,
            titles: BTreeMap::new(),
            changed: BTreeMap::new(),
            json: Vec::new(),
            session: None,
            left: limit.unwrap_or(usize::MAX),
            has_more: false,
            count: 0,
            sessions: BTreeSet::new(),
            ways: None,
        }
    }

    /// Ends the hits of a session with the ways on from it.
    pub(super) fn end_session(&mut self, output: &mut Output) -> Result<(), Failure> {
        match self.ways.take() {
            Some(ways) => output.styled(describe::DIM, output.recorded(&ways, EscapeLevel::Line)),
            None => Ok(()),
        }
    }

    pub(super) fn hit(
        &mut self,
        place: &SessionOfStore,
        hit: SearchHit,
        output: &mut Output,
    ) -> Result<bool, Failure> {
        if self.left == 0 {
            self.has_more = true;
            return Ok(false);
        }
        self.left -= 1;
        self.count += 1;
        let SessionOfStore { store: place, stream } = place;
        let key = (*place, stream.id);
        if !self.titles.contains_key(&key) {
            let store = self.stores.store(*place)?;
            // As sessions lists them: a host may have given a title later.
            if !self.changed.contains_key(place) {
                self.changed.insert(*place, acpdb_query::cost::requests(&store, store.head()?)?.titles);
            }
            let changed = self.changed.get(place).and_then(|changed| changed.get(&stream.id)).copied();
            self.titles.insert(key, acpdb_query::titles::title_at(&store, stream, changed, None)?);
        }
        let title = self.titles.get(&key).cloned().flatten();
        let is_new = self.session.replace(key) != Some(key);
        self.sessions.insert(key);
        if output.json {
            let time = hit.time.map(describe::time);
            let (opens, resumes) = (opening(stream), resuming(stream, hit.seq.get()));
            let row = describe::timed(&TitledHit { title, opens, resumes, hit }, &[("time", time)])?;
            self.json.push(several::with_store(row, self.stores.label(*place)));
            return Ok(true);
        }
        if is_new {
            self.end_session(output)?;
            self.ways =
                opening(stream).map(|opens| format!("  {opens}  or  {}", resuming(stream, hit.seq.get())));
            if self.count > 1 {
                output.line("")?;
            }
            heading(
                &self.stores.qualified(*place, &one_line(&stream.name)),
                stream,
                title.as_deref(),
                output,
            )?;
        }
        lines(&hit, output)?;
        // The first hits are seen while the rest is searched; a program that reads them may stop after one.
        if output.terminal || self.count == 1 {
            output.flush()?;
        }
        // The next hit shows whether there are more.
        Ok(true)
    }
}

/// A session above what was found in it: its id, its host and its title.
pub(in crate::commands) fn heading(
    id: &str,
    stream: &StreamName,
    title: Option<&str>,
    output: &mut Output,
) -> Result<(), Failure> {
    let host = escape(&stream.host, EscapeLevel::Line);
    let used = id.chars().count() + host.chars().count() + 4;
    let title = clip(&one_line(title.unwrap_or_default()), output.room(used).max(8));
    output.line(cut(&format!("{}  {host}  {title}", output.paint(describe::BOLD, id)), output))
}

fn lines(hit: &SearchHit, output: &mut Output) -> Result<(), Failure> {
    let row = hit.row.as_ref();
    let turn = row.map(|row| format!("  t{}", row.turn)).unwrap_or_default();
    let what = row.map_or_else(|| hit.kind.replace('_', " "), what);
    let face = match (hit.face, row.is_some_and(|row| row.tool.is_some())) {
        (Face::Input, _) => " input",
        (Face::Output, true) => " output",
        (Face::Output, false) => "",
    };
    let stands = match row {
        _ if hit.visible => output.paint(describe::GOOD, "seen"),
        Some(row) => {
            let standing = standing(row);
            let why = if standing.is_empty() { String::new() } else { format!(": {standing}") };
            output.paint(describe::BAD, &format!("{}{why}", hit.seen.words()))
        }
        None => String::new(),
    };
    // A match over several lines has a mark on each line.
    let more = hit.matches.saturating_sub(shown_marks(hit));
    let more = if more > 0 { format!("  {more} more") } else { String::new() };
    let line = format!(
        "  {}{turn}  {}  {what}{face}  {stands}{more}",
        output.paint(describe::SEQ, &hit.item),
        describe::time_if_any(hit.time).trim_end()
    );
    output.line(cut(&line, output))?;
    for (number, excerpt) in hit.excerpts.iter().enumerate() {
        if number > 0 && excerpt.lines.len() > 1 {
            output.line("       --")?;
        }
        for line in &excerpt.lines {
            let text = painted(&line.text, &line.marks, output);
            let number = output.paint(describe::DIM, &format!("{:>6} ", line.number));
            output.line(format!("{number} {text}").trim_end())?;
        }
    }
    Ok(())
}

fn shown_marks(hit: &SearchHit) -> usize {
    hit.excerpts.iter().flat_map(|excerpt| &excerpt.lines).map(|line| line.marks.len()).sum()
}

/// A line with its matches painted, as wide as the room.
fn painted(text: &str, marks: &[(usize, usize)], output: &Output) -> String {
    let room = output.room(INDENT).max(20);
    // The first match stays in sight.
    let first = marks.first().map_or(0, |(from, _)| *from);
    let before = text.get(..first).map_or(0, |before| before.chars().count());
    // A narrow terminal has less before the match.
    let skip = if before + 12 > room { before.saturating_sub(room / 3) } else { 0 };
    let start = text.char_indices().nth(skip).map_or(0, |(place, _)| place);
    let mut out = if skip > 0 { "…".to_owned() } else { String::new() };
    let mut left = room - usize::from(skip > 0);
    let mut place = start;
    let piece =
        |from: usize, to: usize, style: Option<anstyle::Style>, left: &mut usize, out: &mut String| {
            let Some(piece) = text.get(from..to).filter(|piece| !piece.is_empty()) else { return };
            let shown = escape(piece, EscapeLevel::Text).replace('\t', "    ");
            let clipped = clip(&shown, *left);
            // A longer text was clipped to the room that was left.
            *left = left.saturating_sub(shown.chars().count());
            match style {
                Some(style) => out.push_str(&output.paint(style, &clipped)),
                None => out.push_str(&clipped),
            }
        };
    for (from, to) in marks.iter().filter(|(from, _)| *from >= start) {
        piece(place, *from, None, &mut left, &mut out);
        piece(*from, *to, Some(MATCH), &mut left, &mut out);
        place = *to;
        if left == 0 {
            return out;
        }
    }
    piece(place, text.len(), None, &mut left, &mut out);
    out
}
