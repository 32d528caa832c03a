//! Points in time as people write them.
//!
//! ```text
//! #812             after this event             t12          at the end of turn 12
//! -3t              three turns before the end   head, now    everything
//!                  of the branch
//! 2026-01-31T12:00:00Z   2026-01-31   10m ago   yesterday 14:00   14:00
//! @compact-1       just before the newest compaction; @compact-2 before the one before it
//! @rewind-1        just before the newest rewind: the branch that was left
//! ```
//!
//! Reading a text ([`parse`]) and finding the point in a store ([`resolve`]) are two steps; the clock comes in as a value.
//! Times are read by [`moment`], for points and for filters alike. A seq or turn that is not there is an error. A time that is
//! yet to come means the head, and says so. In a session a time is one of its host's clock (see `line`); in the whole store,
//! which no host's clock orders, it is the time of recording. A point that was found by a time says which of the two clocks was
//! used.

mod line;
mod moment;

use acpdb_engine::event::{Payload, ReplaceCause};
use acpdb_engine::fold::State;
use acpdb_engine::ids::{Micros, Seq, Turn};
use acpdb_engine::{At, Error, Store, View, store::StreamName};
use jiff::Timestamp;

use crate::kinds::CONTEXT_REPLACED;
use crate::lineage::lineage;

pub use line::SessionClock;
pub use moment::{TIME_FORMS, TimeRange};

/// A point in time, as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// The head.
    Head,
    /// After this seq.
    Seq(Seq),
    /// At the end of this turn.
    Turn(Turn),
    /// So many turns before the newest one ended.
    TurnsBack(u32),
    /// At this time.
    Time(Micros),
    /// Just before a mark, counted from the newest (1).
    Mark(WholeContextAct, u32),
}

/// An act of a host or user on a whole context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WholeContextAct {
    /// The host summarised the context.
    Compact,
    /// A rewind.
    Rewind,
}

impl WholeContextAct {
    const fn label(self) -> &'static str {
        match self {
            Self::Compact => "compaction",
            Self::Rewind => "rewind",
        }
    }
}

/// The reason why a text or point means nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WhenError {
    /// The text is of no known form.
    #[error("{text:?} is no point in time{}", because(reason))]
    Unreadable {
        /// The text as it was written.
        text: String,
        /// The reason; empty if there is no more to say.
        reason: String,
    },
    /// The log does not go that far.
    #[error("there is no event {seq} yet; the newest is {head}")]
    Beyond {
        /// The seq that was asked for.
        seq: Seq,
        /// The newest seq.
        head: Seq,
    },
    /// The session has no such turn.
    #[error("session {session} has no turn {turn}; its newest is {newest}")]
    NoTurn {
        /// The session.
        session: String,
        /// The turn that was asked for.
        turn: String,
        /// Its newest turn.
        newest: u32,
    },
    /// Turns and marks are a session's.
    #[error("{text} belongs to a session")]
    NeedsSession {
        /// The text as it was written.
        text: String,
    },
    /// The session has fewer marks.
    #[error("session {session} has {count} {mark}(s), not {wanted}")]
    NoMark {
        /// The session.
        session: String,
        /// The kind of mark that was asked for.
        mark: &'static str,
        /// Its number, counted back from the newest.
        wanted: u32,
        /// The number of marks that there are.
        count: usize,
    },
    /// The session began later.
    #[error("session {session} began later, in {first}, not yet at {at}")]
    NotBegun {
        /// The session.
        session: String,
        /// Its first seq.
        first: Seq,
        /// The seq that was asked for.
        at: Seq,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] Error),
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// A point that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundPoint {
    /// The last seq that counts.
    pub seq: Seq,
    /// A note on the point, for a person.
    pub note: Option<String>,
    /// For a time: the clock it was looked up on.
    pub clock: Option<SessionClock>,
}

impl FoundPoint {
    const fn at(seq: Seq) -> Self {
        Self { seq, note: None, clock: None }
    }
}

/// A time as RFC 3339 with its fraction, so that an export loses nothing; a year that it cannot spell is `-`.
pub(crate) fn precise(micros: Micros) -> String {
    let time = Timestamp::from_microsecond(micros.get());
    time.map_or_else(|_| "-".to_owned(), |time| time.to_string())
}

/// For programs: a time as RFC 3339, to the second and of UTC, as every answer has it; null if it is unknown.
///
/// # Errors
/// The errors of the serializer.
pub fn serialize<S: serde::Serializer>(time: &Option<Micros>, serializer: S) -> Result<S::Ok, S::Error> {
    let known = time.and_then(|time| Timestamp::from_microsecond(time.get()).ok());
    serde::Serialize::serialize(&known.map(|time| format!("{time:.0}")), serializer)
}

/// Reads a point. Local time is that of the system's zone.
///
/// # Errors
/// [`WhenError::Unreadable`].
pub fn parse(text: &str, now: Micros) -> Result<Point, WhenError> {
    let plain = text.trim();
    let because = |reason: String| WhenError::Unreadable { text: text.to_owned(), reason };
    let wrong = || because(String::new());
    if matches!(plain, "head" | "now") {
        return Ok(Point::Head);
    }
    if let Some(seq) = plain.strip_prefix('#') {
        return number(seq).map(|seq| Point::Seq(Seq(seq))).ok_or_else(wrong);
    }
    // A shell takes `#812` for a comment: `812` and `@812` are the same.
    let bare = plain.strip_prefix('@').unwrap_or(plain);
    if !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(bare).map(|seq| Point::Seq(Seq(seq))).ok_or_else(wrong);
    }
    if let Some(mark) = plain.strip_prefix('@') {
        let (name, count) = match mark.rsplit_once('-') {
            Some((name, count)) => (name, number(count).and_then(|count| u32::try_from(count).ok())),
            None => (mark, Some(1)),
        };
        let mark = match name {
            "compact" | "compaction" => WholeContextAct::Compact,
            "rewind" => WholeContextAct::Rewind,
            _ => return Err(wrong()),
        };
        return count.filter(|count| *count > 0).map(|count| Point::Mark(mark, count)).ok_or_else(wrong);
    }
    if let Some(turns) = plain.strip_prefix('-').and_then(|rest| rest.strip_suffix('t')) {
        let turns = number(turns).and_then(|turns| u32::try_from(turns).ok());
        return turns.map(Point::TurnsBack).ok_or_else(wrong);
    }
    if let Some(turn) = plain.strip_prefix('t').and_then(number) {
        return u32::try_from(turn).map(|turn| Point::Turn(Turn(turn))).map_err(|_| wrong());
    }
    moment(plain, now).map(|time| Point::Time(time.to)).map_err(because)
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Reads a time, in the zone of the system (or of `TZ`) if none is written. A length of time alone, as in `2d`, counts back.
///
/// # Errors
/// The reason why the text is no time; empty if there is no more to say. A `TZ` that cannot be read is an error of texts that need
/// it. [`TIME_FORMS`] lists the forms.
pub fn moment(text: &str, now: Micros) -> Result<TimeRange, String> {
    let time = moment::read(text, now, &moment::local());
    // For a text that is one unknown word there is no reason to tell.
    time.map_err(|reason| {
        if text.trim().contains(' ') || !reason.ends_with("is not known") { reason } else { String::new() }
    })
}

/// Finds a point in the whole store.
///
/// # Errors
/// [`WhenError::Beyond`]; [`WhenError::NeedsSession`] for turns and marks; if the log cannot be read.
pub fn resolve(store: &Store, text: &str, now: Micros) -> Result<FoundPoint, WhenError> {
    let point = parse(text, now)?;
    match point {
        Point::Head | Point::Seq(_) | Point::Time(_) => anywhere(store, point, now),
        Point::Turn(_) | Point::TurnsBack(_) | Point::Mark(..) => {
            Err(WhenError::NeedsSession { text: text.trim().to_owned() })
        }
    }
}

fn anywhere(store: &Store, point: Point, now: Micros) -> Result<FoundPoint, WhenError> {
    let head = store.head()?;
    match point {
        Point::Seq(seq) if seq > head => Err(WhenError::Beyond { seq, head }),
        Point::Seq(seq) => Ok(FoundPoint::at(seq)),
        Point::Time(time) if time > now && Timestamp::from_microsecond(time.get()).is_ok() => {
            let time = Timestamp::from_microsecond(time.get()).unwrap_or_default();
            let note = format!("{time:.0} is yet to come; this is the head, {head}");
            Ok(FoundPoint { seq: head, note: Some(note), clock: None })
        }
        Point::Time(time) => {
            Ok(FoundPoint { clock: Some(SessionClock::Recorded), ..FoundPoint::at(store.seq_at(time)?) })
        }
        _ => Ok(FoundPoint::at(head)),
    }
}

/// A view of a session at a point.
///
/// # Errors
/// [`WhenError`], by the part that is not there.
pub fn view(
    store: &Store,
    stream: &StreamName,
    text: Option<&str>,
    now: Micros,
) -> Result<(View, FoundPoint), WhenError> {
    let view = store.view_at(stream.id, &At::Head)?;
    at_point(store, view, stream, text, now)
}

/// As [`view`], of a fold that is not kept; see [`Store::view_once`].
///
/// # Errors
/// As [`view`].
pub fn view_once(
    store: &Store,
    stream: &StreamName,
    text: Option<&str>,
    now: Micros,
) -> Result<(View, FoundPoint), WhenError> {
    let view = store.view_once(stream.id, &At::Head)?;
    at_point(store, view, stream, text, now)
}

fn at_point(
    store: &Store,
    view: View,
    stream: &StreamName,
    text: Option<&str>,
    now: Micros,
) -> Result<(View, FoundPoint), WhenError> {
    let Some(text) = text else {
        let head = view.at();
        return Ok((view, FoundPoint::at(head)));
    };
    let found = within(store, &view, &stream.name, parse(text, now)?, now)?;
    let (first, is_fork) = (view.state().first(), !view.state().forks(view.at()).is_empty());
    // A fork also has the history that it shares with its parent.
    if found.seq < first && !is_fork {
        return Err(WhenError::NotBegun { session: stream.name.clone(), first, at: found.seq });
    }
    Ok((view.with_at(found.seq), found))
}

/// Finds a point in a session; `view` is the session's view at the head.
///
/// # Errors
/// As [`view`].
pub fn within(
    store: &Store,
    view: &View,
    session: &str,
    point: Point,
    now: Micros,
) -> Result<FoundPoint, WhenError> {
    let head = view.at();
    let state = view.state();
    let newest = state.turn(head);
    let no_turn =
        |turn: String| WhenError::NoTurn { session: session.to_owned(), turn, newest: newest.get() };
    let plain = |seq| Ok(FoundPoint::at(seq));
    match point {
        Point::Turn(turn) => plain(state.turn_end(turn).ok_or_else(|| no_turn(turn.to_string()))?.min(head)),
        Point::TurnsBack(back) => {
            plain(turns_back(state, head, back).ok_or_else(|| no_turn(format!("-{back}t")))?)
        }
        Point::Mark(mark, wanted) => {
            let marks = marks(store, view, mark)?;
            let place = marks.len().checked_sub(wanted as usize);
            let seq = place.and_then(|place| marks.get(place)).ok_or_else(|| WhenError::NoMark {
                session: session.to_owned(),
                mark: mark.label(),
                wanted,
                count: marks.len(),
            })?;
            plain(seq.before())
        }
        Point::Time(time) if time <= now => {
            let (seq, clock) = line::seq_at(store, view.stream(), time)?;
            Ok(FoundPoint { clock: Some(clock), ..FoundPoint::at(seq.unwrap_or(head).min(head)) })
        }
        Point::Head | Point::Seq(_) | Point::Time(_) => anywhere(store, point, now),
    }
}

/// The point before the last `back` turns of the branch. A turn that a rewind took off does not count.
fn turns_back(state: &State, head: Seq, back: u32) -> Option<Seq> {
    let (mut end, mut left) = (state.head().min(head), back);
    while left > 0 {
        end = state.turn_end(Turn(state.turn(end).get().checked_sub(1)?))?;
        left -= u32::from(!state.is_left(end.next(), head));
    }
    Some(end)
}

/// The seqs of a session's marks, oldest first.
fn marks(store: &Store, view: &View, mark: WholeContextAct) -> Result<Vec<Seq>, Error> {
    if mark == WholeContextAct::Rewind {
        return Ok(view.state().rewinds(view.at()).iter().map(|(seq, _)| *seq).collect());
    }
    let mut marks = Vec::new();
    for part in lineage(store, view.stream(), view.at())? {
        let replaced = store.stream_events(part.stream, Seq(1), part.to)?;
        for recorded in replaced.wanted(|glimpse| glimpse.kind() == CONTEXT_REPLACED) {
            let recorded = recorded?;
            // A host may tell the order of what it kept as well, or set a context of its own making.
            if matches!(&recorded.event.payload, Payload::ContextReplaced(by) if by.cause == ReplaceCause::Compaction)
            {
                marks.push(recorded.seq);
            }
        }
    }
    Ok(marks)
}
