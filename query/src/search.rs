//! Search: words, phrases and regular expressions in everything that was recorded.
//!
//! ```text
//! events of a session -> bodies, many at a time -> bytes that match -> item, where it stands -> filter -> excerpts
//! ```
//!
//! There is no index: stored bytes are read, checked against their digests and searched as they are, at the speed of
//! reading them; see `docs/DESIGN.md` for the figures. So erased texts are found nowhere, and nothing has to be built. Only
//! items whose texts match are looked up in the fold, and only then is a filter asked.

use std::cell::OnceCell;

use acpdb_engine::event::{Body, Face, Payload, Recorded};
use acpdb_engine::fold::Ix;
use acpdb_engine::ids::{BodyId, ItemId, Micros, Seq};
use acpdb_engine::{At, Error, Store, View, store::StreamName};
use regex::bytes::{Match, Regex, RegexBuilder};
use serde::Serialize;

use crate::bodies::{Scanned, telling};
use crate::filter::{Filter, Term};
use crate::items::{ItemRow, spell};
use crate::sound::{or_lost, sound};
use crate::times::EventTimes;
use crate::{lineage, params, rows};

mod excerpt;

pub use excerpt::{Excerpt, ExcerptLine};

/// Bytes of texts that are read at once; the first reading is small, so that the first hit is there at once.
const READ_BYTES_FIRST: u64 = 256 << 10;
const READ_BYTES_MAX: u64 = 8 << 20;
/// Bytes that a text takes in memory beside its own: its event, its ids, its place in lists.
const HELD_BYTES: u64 = 400;
/// Bytes that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 16 << 20;

/// The way in which patterns are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternSyntax {
    /// They are regular expressions.
    pub regex: bool,
    /// They stand for whole words.
    pub word: bool,
    /// Capitals count. Else they count only in patterns that have any.
    pub case: bool,
}

/// A pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{pattern:?} is no regular expression: {reason}")]
pub struct PatternError {
    /// The pattern as it was written.
    pub pattern: String,
    /// The fault in it.
    pub reason: String,
}

/// Patterns; an item has to hold all of them.
#[derive(Clone, Debug)]
pub struct Patterns {
    all: Vec<Regex>,
    /// Whether a match may depend on the signs around it.
    looks_around: bool,
    /// Whether lines begin or end in one.
    has_lines: bool,
}

impl Patterns {
    /// Reads patterns.
    ///
    /// # Errors
    /// [`PatternError`] with the first that is no regular expression, or too large a one.
    pub fn new(patterns: &[String], reading: PatternSyntax) -> Result<Self, PatternError> {
        let all = patterns.iter().map(|pattern| compiled(pattern, reading));
        let all = all.collect::<Result<_, _>>()?;
        let has_lines = reading.regex && patterns.iter().any(|pattern| pattern.contains(['^', '$']));
        Ok(Self { all, looks_around: reading.regex || reading.word, has_lines })
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn are_in(&self, bytes: &[u8]) -> bool {
        self.all.iter().all(|pattern| pattern.is_match(bytes))
    }

    /// Whether they are in the parameters of a call, each as JSON or in one of the values.
    fn are_in_params(&self, json: &[u8]) -> bool {
        let has_escapes = memchr::memchr(b'\\', json).is_some();
        // Words and phrases are looked for with the escapes that JSON needs.
        let may_differ =
            self.has_lines || self.looks_around && has_escapes || params::is_escaped_freely(json);
        let values = OnceCell::new();
        self.all.iter().all(|pattern| {
            let mut may_differ = may_differ;
            let mut is_whole = |found: Match<'_>| {
                let is_cut = params::cuts_an_escape(json, found.start(), found.end());
                may_differ |= is_cut;
                !is_cut
            };
            let is_in_json =
                if has_escapes { pattern.find_iter(json).any(&mut is_whole) } else { pattern.is_match(json) };
            // Parameters that are no JSON are read as they stand.
            let is_in_values = || {
                let text = values.get_or_init(|| params::readable(json));
                pattern.is_match(text.as_ref().map_or(json, |text| text.as_bytes()))
            };
            is_in_json || may_differ && is_in_values()
        })
    }

    /// The matches in a text: from and to, in order, without overlaps.
    pub(crate) fn marks(&self, text: &str) -> Vec<(usize, usize)> {
        let mut marks: Vec<(usize, usize)> = self
            .all
            .iter()
            .flat_map(|pattern| pattern.find_iter(text.as_bytes()))
            .map(|found| (found.start(), found.end()))
            .filter(|(from, to)| from < to && text.is_char_boundary(*from) && text.is_char_boundary(*to))
            .collect();
        marks.sort_unstable();
        let mut apart: Vec<(usize, usize)> = Vec::with_capacity(marks.len());
        for (from, to) in marks {
            match apart.last_mut() {
                Some(last) if from < last.1 => last.1 = last.1.max(to),
                _ => apart.push((from, to)),
            }
        }
        apart
    }
}

fn compiled(pattern: &str, reading: PatternSyntax) -> Result<Regex, PatternError> {
    let mut source = if reading.regex {
        format!("(?:{pattern})")
    } else {
        // Parameters are JSON, which writes a quotation mark or a line feed in another way.
        let plain = regex::escape(pattern);
        let json = serde_json::to_string(pattern).unwrap_or_default();
        let json = regex::escape(json.trim_start_matches('"').strip_suffix('"').unwrap_or_default());
        if json == plain || json.is_empty() { plain } else { format!("(?:{plain}|{json})") }
    };
    if reading.word {
        source = format!(r"\b(?:{source})\b");
    }
    let has_capitals =
        if reading.regex { has_plain_capital(pattern) } else { pattern.chars().any(char::is_uppercase) };
    RegexBuilder::new(&source)
        .case_insensitive(!reading.case && !has_capitals)
        .multi_line(true)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| PatternError { pattern: pattern.to_owned(), reason: said(&error) })
}

/// Whether a regular expression has a capital that is not part of a class such as `\S`.
fn has_plain_capital(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let counts = !escaped && c.is_uppercase();
        escaped = !escaped && c == '\\';
        counts
    })
}

/// The last line of the library's message tells the fault.
fn said(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// A question for a search.
#[derive(Clone, Debug)]
pub struct SearchQuestion {
    /// The patterns that an item's text must hold.
    pub patterns: Patterns,
    /// The filter that the item must match besides.
    pub filter: Filter,
    /// Nothing after this seq; items are judged as they stand at it.
    pub at: Seq,
    /// Lines before and behind each match.
    pub context: usize,
    /// At most so many lines of a text that match.
    pub places: usize,
}

/// An item whose texts match.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchHit {
    /// The item, or the event if it recorded no item.
    pub item: String,
    /// The event whose text matches.
    pub seq: Seq,
    /// The host's id of its session.
    pub session: String,
    /// The host.
    pub host: String,
    /// The time of the event, as far as it is known.
    pub time: Option<Micros>,
    /// The face whose text matches.
    pub face: Face,
    /// Whether the model still sees this text, whole or shortened.
    pub visible: bool,
    /// How the model saw it, in a word.
    pub seen: ModelVisibility,
    /// The item and how it stands; absent if the text is of no item, such as memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<ItemRow>,
    /// Kind of the event.
    pub kind: &'static str,
    /// The number of matches in the text.
    pub matches: usize,
    /// The first matches, with the lines around.
    pub excerpts: Vec<Excerpt>,
}

/// Searches the events of a session, in the order of recording. `found` gets each hit, and says whether to go on. The history that
/// a fork shares is of another session; [`search_whole`] searches it, too.
///
/// Cost: the bytes of its texts; where anything matches, a fold of the session.
///
/// # Errors
/// If the log cannot be read. Damaged and erased texts are passed over; the store notes damage.
pub fn search(
    store: &Store,
    stream: &StreamName,
    question: &SearchQuestion,
    scanned: &mut Scanned,
    found: &mut dyn FnMut(SearchHit) -> bool,
) -> Result<(), Error> {
    let events = sound(store.stream_events(stream.id, Seq(1), question.at)?);
    search_in(events, store, stream, question, scanned, found)
}

/// As [`search`], with the history that the session shares as a fork.
///
/// # Errors
/// As [`search`].
pub fn search_whole(
    store: &Store,
    stream: &StreamName,
    question: &SearchQuestion,
    scanned: &mut Scanned,
    found: &mut dyn FnMut(SearchHit) -> bool,
) -> Result<(), Error> {
    let events = lineage::events(store, stream.id, question.at)?;
    search_in(events, store, stream, question, scanned, found)
}

fn search_in(
    events: impl Iterator<Item = Result<Recorded, Error>>,
    store: &Store,
    stream: &StreamName,
    question: &SearchQuestion,
    scanned: &mut Scanned,
    found: &mut dyn FnMut(SearchHit) -> bool,
) -> Result<(), Error> {
    let mut search = StreamSearch { store, stream, question, times: EventTimes::new(store), view: None };
    let mut held: Vec<(Recorded, Vec<Body>)> = Vec::new();
    let (mut bytes, mut room) = (0_u64, READ_BYTES_FIRST);
    for recorded in events {
        let recorded = recorded?;
        if search.is_ruled_out(&recorded) {
            continue;
        }
        let bodies = telling(&recorded.event.payload);
        if bodies.is_empty() {
            continue;
        }
        scanned.events += 1;
        let weigh = |body: &Body| body.bytes.saturating_add(HELD_BYTES);
        bytes = bodies.iter().fold(bytes, |sum, body| sum.saturating_add(weigh(body)));
        held.push((recorded, bodies));
        if bytes >= room {
            if !search.through(&mut held, scanned, found)? {
                return Ok(());
            }
            (bytes, room) = (0, room.saturating_mul(4).min(READ_BYTES_MAX));
        }
    }
    search.through(&mut held, scanned, found)?;
    Ok(())
}

/// How the model saw a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelVisibility {
    /// It is in the context.
    Seen,
    /// Its host sent it, and a newer item made it stale: acpdb would hide it.
    Stale,
    /// Its host sent it: acpdb would hide it, by a request or with its task.
    WouldBeHidden,
    /// It left the context, by a compaction.
    Gone,
    /// It is not seen.
    Hidden,
}

impl ModelVisibility {
    /// The words for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Stale => "stale, seen",
            Self::WouldBeHidden => "seen, would be hidden",
            Self::Gone => "gone",
            Self::Hidden => "not seen",
        }
    }

    /// How the model saw the content of an item. `is_sent`: as for [`Self::of`].
    pub fn of_row(row: &ItemRow, is_sent: bool) -> Self {
        Self::of(row, row.is_visible(), is_sent)
    }

    /// `is_sent`: contexts of the session were recorded as sent. Without them, the model saw what its host sent.
    fn of(row: &ItemRow, visible: bool, is_sent: bool) -> Self {
        match row.cause {
            _ if visible => Self::Seen,
            Some("left") => Self::Gone,
            Some("erased" | "lost" | "off_branch" | "abandoned" | "cleared_by_host") | None => Self::Hidden,
            Some(_) if is_sent || !row.in_context => Self::Hidden,
            Some(cause) if row.rule.is_some_and(|rule| rule.label() == cause) => Self::Stale,
            Some(_) => Self::WouldBeHidden,
        }
    }
}

struct StreamSearch<'s> {
    store: &'s Store,
    stream: &'s StreamName,
    question: &'s SearchQuestion,
    times: EventTimes,
    view: Option<View>,
}

impl StreamSearch<'_> {
    /// Looks through the texts of some events.
    fn through(
        &mut self,
        held: &mut Vec<(Recorded, Vec<Body>)>,
        scanned: &mut Scanned,
        found: &mut dyn FnMut(SearchHit) -> bool,
    ) -> Result<bool, Error> {
        let ids: Vec<BodyId> = held
            .iter()
            .flat_map(|(recorded, bodies)| bodies.iter().map(|body| body.id(recorded.seq)))
            .collect();
        let mut texts = self.store.bodies(&ids).into_iter();
        for (recorded, bodies) in held.drain(..) {
            for (place, body) in bodies.iter().enumerate() {
                let Some(Ok(bytes)) = texts.next().map(or_lost).transpose()? else { continue };
                scanned.bodies += 1;
                scanned.bytes += bytes.len() as u64;
                let patterns = &self.question.patterns;
                let is_match = match recorded.event.payload {
                    Payload::ToolCallStarted(_) => patterns.are_in_params(&bytes),
                    _ => patterns.are_in(&bytes),
                };
                if !is_match {
                    continue;
                }
                if let Some(hit) = self.hit(&recorded, place, *body, &bytes)?
                    && !found(hit)
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The hit for a text that matches, if its item matches too.
    fn hit(
        &mut self,
        recorded: &Recorded,
        place: usize,
        body: Body,
        bytes: &[u8],
    ) -> Result<Option<SearchHit>, Error> {
        let view = match &self.view {
            Some(view) => view.clone(),
            None => self.store.view_once(self.stream.id, &At::Seq(self.question.at))?,
        };
        self.view = Some(view.clone());
        let ix = item_of(&view, recorded, place, body);
        let face = if matches!(recorded.event.payload, Payload::ToolCallStarted(_)) {
            Face::Input
        } else {
            Face::Output
        };
        let (row, visible, is_sent) = match ix {
            Some(ix) => self.row(&view, ix, face),
            None => (None, false, false),
        };
        if !self.passes(recorded, row.as_ref()) {
            return Ok(None);
        }
        let values = if face == Face::Input { params::readable(bytes) } else { None };
        // Parameters that are no JSON are shown as they stand.
        let text = values.unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned());
        let mut marks = self.question.patterns.marks(&text);
        let text = if marks.is_empty() {
            // The match is in the JSON around the texts.
            let text = String::from_utf8_lossy(bytes).into_owned();
            marks = self.question.patterns.marks(&text);
            marks.retain(|(from, to)| !params::cuts_an_escape(text.as_bytes(), *from, *to));
            text
        } else {
            text
        };
        let item = row.as_ref().map_or_else(|| recorded.seq.to_string(), |row| row.item.clone());
        Ok(Some(SearchHit {
            item,
            seq: recorded.seq,
            session: self.stream.name.clone(),
            host: self.stream.host.clone(),
            time: self.times.of(recorded, Some(self.stream)),
            face,
            visible,
            seen: row
                .as_ref()
                .map_or(ModelVisibility::Hidden, |row| ModelVisibility::of(row, visible, is_sent)),
            row,
            kind: recorded.event.payload.label(),
            matches: marks.len().max(1),
            excerpts: excerpt::excerpts(&text, &marks, self.question.context, self.question.places),
        }))
    }

    fn row(&self, view: &View, ix: Ix, face: Face) -> (Option<ItemRow>, bool, bool) {
        let (mut row, visible, is_sent) = {
            let (state, at) = (view.state(), view.at());
            let Some(item) = state.item(ix, at) else { return (None, false, false) };
            let shown = if face == Face::Input { &item.input } else { &item.output };
            let is_shown = matches!(
                shown.state,
                acpdb_engine::fold::FaceState::Whole | acpdb_engine::fold::FaceState::Shortened
            );
            let visible = item.in_context && !item.hidden_from_model && is_shown;
            (ItemRow::of(state, &item, &self.stream.name, at), visible, !state.served(at).is_empty())
        };
        // The row is spelled in place; only sentences and edges need the returned words.
        let _ = spell(view, &mut [&mut row]);
        (Some(row), visible, is_sent)
    }

    /// Whether the filter leaves out an event however its item stands, so that its texts need not be read.
    fn is_ruled_out(&self, recorded: &Recorded) -> bool {
        let known = |term: &Term| rows::of_event(term, Some(recorded), self.stream, &self.times);
        self.question.filter.judge(&known) == Some(false)
    }

    /// Whether an item matches the filter. A text without an item is judged by its event alone.
    fn passes(&self, recorded: &Recorded, row: Option<&ItemRow>) -> bool {
        if self.question.filter.is_empty() {
            return true;
        }
        let verdict = self.question.filter.judge(&|term: &Term| {
            let known = match row {
                Some(row) => rows::known(term, row, self.stream),
                None => rows::known_of_session(term, self.stream),
            };
            known.or_else(|| rows::of_event(term, Some(recorded), self.stream, &self.times))
        });
        verdict == Some(true)
    }
}

/// The item that a text of an event belongs to.
fn item_of(view: &View, recorded: &Recorded, place: usize, body: Body) -> Option<Ix> {
    let (state, at, seq) = (view.state(), view.at(), recorded.seq);
    match &recorded.event.payload {
        Payload::ToolCallFinished(_) => state.finished_by(seq, at),
        Payload::ItemRevised(revised) => state.find(revised.item),
        Payload::MessageRecorded(_) | Payload::MessageContinued(_) => {
            let parts = match &recorded.event.payload {
                Payload::MessageRecorded(message) => &message.parts,
                Payload::MessageContinued(message) => &message.parts,
                _ => return None,
            };
            // Empty parts have no text; each other part keeps its own number.
            let part = parts.iter().position(|part| part.body == body).unwrap_or(place);
            let part = u32::try_from(part).ok()?.checked_add(1)?;
            state.find(ItemId { seq, part }).or_else(|| state.find(ItemId { seq, part: 1 }))
        }
        _ => state.find(ItemId { seq, part: 1 }),
    }
}

#[cfg(test)]
mod tests;
