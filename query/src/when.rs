//! Points in time as people write them.
//!
//! ```text
//! #812             after this event             t12          at the end of turn 12
//! -3t              three turns before the end   head, now    everything
//! 2026-01-31T12:00:00Z   2026-01-31   10m ago   yesterday 14:00   14:00
//! @compact-1       just before the newest compaction; @compact-2 before the one before it
//! @rewind-1        just before the newest rewind: the branch that was left
//! ```
//!
//! Reading a text ([`parse`]) and finding the point in a store ([`resolve`]) are two steps; the clock comes in as a value.
//! A seq or turn that is not there is an error. A time that is yet to come means the head, and says so. In a session a time
//! is one of its host's clock; in the whole store, which no host's clock orders, it is when things were recorded.

use std::sync::{Arc, Mutex, PoisonError};

use acpdb_engine::event::{Forked, Payload, ReplaceCause};
use acpdb_engine::ids::{Micros, Seq, StreamId, Turn};
use acpdb_engine::{At, Error, Glimpse, Store, StreamName, View};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

/// Number of the kind `context_replaced`.
const CONTEXT_REPLACED: u16 = 6;

/// A point in time, as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// Everything there is.
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
    Mark(Mark, u32),
}

/// What a host or user did to a whole context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The host summarised the context, or set a new one.
    Compact,
    /// A rewind.
    Rewind,
}

impl Mark {
    const fn label(self) -> &'static str {
        match self {
            Self::Compact => "compaction",
            Self::Rewind => "rewind",
        }
    }
}

/// Why a text or point means nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WhenError {
    /// The text is of no known form.
    #[error("{text:?} is no point in time")]
    Unreadable {
        /// What was written.
        text: String,
    },
    /// The log does not go that far.
    #[error("there is no event {seq} yet; the newest is {head}")]
    Beyond {
        /// What was asked for.
        seq: Seq,
        /// The newest seq.
        head: Seq,
    },
    /// The session has no such turn.
    #[error("session {session} has no turn {turn}; its newest is {newest}")]
    NoTurn {
        /// The session.
        session: String,
        /// What was asked for.
        turn: String,
        /// Its newest turn.
        newest: u32,
    },
    /// Turns and marks are a session's.
    #[error("{text} belongs to a session")]
    NeedsSession {
        /// What was written.
        text: String,
    },
    /// The session has fewer marks.
    #[error("session {session} has {count} {mark}(s), not {wanted}")]
    NoMark {
        /// The session.
        session: String,
        /// What was asked for.
        mark: &'static str,
        /// How many back.
        wanted: u32,
        /// How many there are.
        count: usize,
    },
    /// The session began later.
    #[error("session {session} began later, in {first}, not yet at {at}")]
    NotBegun {
        /// The session.
        session: String,
        /// Its first seq.
        first: Seq,
        /// What was asked for.
        at: Seq,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] Error),
}

/// A point that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The last seq that counts.
    pub seq: Seq,
    /// What a person should know about it.
    pub note: Option<String>,
}

/// Reads a point. Local time is that of the system's zone.
///
/// # Errors
/// [`WhenError::Unreadable`].
pub fn parse(text: &str, now: Micros) -> Result<Point, WhenError> {
    let plain = text.trim();
    let wrong = || WhenError::Unreadable { text: text.to_owned() };
    if matches!(plain, "head" | "now") {
        return Ok(Point::Head);
    }
    if let Some(seq) = plain.strip_prefix('#') {
        return number(seq).map(|seq| Point::Seq(Seq(seq))).ok_or_else(wrong);
    }
    if let Some(mark) = plain.strip_prefix('@') {
        let (name, count) = match mark.rsplit_once('-') {
            Some((name, count)) => (name, number(count).and_then(|count| u32::try_from(count).ok())),
            None => (mark, Some(1)),
        };
        let mark = match name {
            "compact" | "compaction" => Mark::Compact,
            "rewind" => Mark::Rewind,
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
    moment(plain, now, true).map(Point::Time).ok_or_else(wrong)
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Reads a time. A day alone means its end or its beginning.
pub fn moment(text: &str, now: Micros, is_end: bool) -> Option<Micros> {
    let text = text.trim();
    let now = Timestamp::from_microsecond(now.get()).ok()?;
    let micros = |time: Timestamp| Micros(time.as_microsecond());
    let here = || now.to_zoned(TimeZone::system());
    if let Some(span) = text.strip_suffix("ago") {
        let span: Span = span.trim().parse().ok()?;
        return here().checked_sub(span).ok().map(|then| micros(then.timestamp()));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(micros(time));
    }
    let local =
        |time: DateTime| time.to_zoned(TimeZone::system()).ok().map(|time: Zoned| micros(time.timestamp()));
    let of_day = |day: Date, time: Option<Time>| {
        let edge = if is_end { Time::new(23, 59, 59, 999_999_999).ok()? } else { Time::midnight() };
        local(day.to_datetime(time.unwrap_or(edge)))
    };
    let (day, time) = text.split_once(' ').map_or((text, None), |(day, time)| (day, Some(time.trim())));
    let clock = |text: &str| text.parse::<Time>().ok();
    let named = match day {
        "today" => Some(here().date()),
        "yesterday" => here().date().checked_sub(1.day()).ok(),
        _ => None,
    };
    match (named, time) {
        (Some(day), None) => return of_day(day, None),
        (Some(day), Some(time)) => return of_day(day, Some(clock(time)?)),
        (None, _) => {}
    }
    if text.contains(':')
        && let Some(time) = clock(text)
    {
        return of_day(here().date(), Some(time));
    }
    let time: DateTime = text.parse().ok()?;
    if text.contains(':') { local(time) } else { of_day(time.date(), None) }
}

/// Finds a point in the whole store.
///
/// # Errors
/// [`WhenError::Beyond`]; [`WhenError::NeedsSession`] for turns and marks; if the log cannot be read.
pub fn resolve(store: &Store, text: &str, now: Micros) -> Result<Found, WhenError> {
    let point = parse(text, now)?;
    match point {
        Point::Head | Point::Seq(_) | Point::Time(_) => anywhere(store, point, now),
        Point::Turn(_) | Point::TurnsBack(_) | Point::Mark(..) => {
            Err(WhenError::NeedsSession { text: text.trim().to_owned() })
        }
    }
}

fn anywhere(store: &Store, point: Point, now: Micros) -> Result<Found, WhenError> {
    let head = store.head()?;
    let plain = |seq| Found { seq, note: None };
    match point {
        Point::Seq(seq) if seq > head => Err(WhenError::Beyond { seq, head }),
        Point::Seq(seq) => Ok(plain(seq)),
        Point::Time(time) if time > now && Timestamp::from_microsecond(time.get()).is_ok() => {
            let time = Timestamp::from_microsecond(time.get()).unwrap_or_default();
            let note = format!("{time:.0} is yet to come; this is the head, {head}");
            Ok(Found { seq: head, note: Some(note) })
        }
        Point::Time(time) => Ok(plain(store.seq_at(time)?)),
        _ => Ok(plain(head)),
    }
}

/// A view of a session at a point.
///
/// # Errors
/// [`WhenError`], by what is not there.
pub fn view(
    store: &Store,
    stream: &StreamName,
    text: Option<&str>,
    now: Micros,
) -> Result<(View, Option<String>), WhenError> {
    let view = store.view_at(stream.id, &At::Head)?;
    at_point(store, view, stream, text, now)
}

/// As [`view`], of a fold that nobody keeps; see [`Store::view_once`].
///
/// # Errors
/// As [`view`].
pub fn view_once(
    store: &Store,
    stream: &StreamName,
    text: Option<&str>,
    now: Micros,
) -> Result<(View, Option<String>), WhenError> {
    let view = store.view_once(stream.id, &At::Head)?;
    at_point(store, view, stream, text, now)
}

fn at_point(
    store: &Store,
    view: View,
    stream: &StreamName,
    text: Option<&str>,
    now: Micros,
) -> Result<(View, Option<String>), WhenError> {
    let Some(text) = text else { return Ok((view, None)) };
    let found = within(store, &view, &stream.name, parse(text, now)?, now)?;
    let (first, is_fork) = {
        let reading = view.read();
        (reading.state().first(), !reading.state().forks(view.at()).is_empty())
    };
    // A fork reads what it shares as far back as that goes.
    if found.seq < first && !is_fork {
        return Err(WhenError::NotBegun { session: stream.name.clone(), first, at: found.seq });
    }
    Ok((view.with_at(found.seq), found.note))
}

/// Finds a point in a session, whose view at the head this is.
///
/// # Errors
/// As [`view`].
pub fn within(
    store: &Store,
    view: &View,
    session: &str,
    point: Point,
    now: Micros,
) -> Result<Found, WhenError> {
    let head = view.at();
    let reading = view.read();
    let state = reading.state();
    let newest = state.turn(head);
    let no_turn =
        |turn: String| WhenError::NoTurn { session: session.to_owned(), turn, newest: newest.get() };
    let plain = |seq| Ok(Found { seq, note: None });
    match point {
        Point::Turn(turn) => plain(state.turn_end(turn).ok_or_else(|| no_turn(turn.to_string()))?.min(head)),
        Point::TurnsBack(back) => {
            let turn = newest.get().checked_sub(back).ok_or_else(|| no_turn(format!("-{back}t")))?;
            plain(state.turn_end(Turn(turn)).ok_or_else(|| no_turn(turn.to_string()))?.min(head))
        }
        Point::Mark(mark, wanted) => {
            drop(reading);
            let marks = marks(store, view, mark)?;
            let place = marks.len().checked_sub(wanted as usize);
            let seq = place.and_then(|place| marks.get(place)).ok_or_else(|| WhenError::NoMark {
                session: session.to_owned(),
                mark: mark.label(),
                wanted,
                count: marks.len(),
            })?;
            plain(Seq(seq.get().saturating_sub(1)))
        }
        Point::Time(time) if time <= now => {
            let forks = state.forks(head).to_vec();
            drop(reading);
            plain(seq_of_session_at(store, view.stream(), &forks, time)?.unwrap_or(head).min(head))
        }
        Point::Head | Point::Seq(_) | Point::Time(_) => {
            drop(reading);
            anywhere(store, point, now)
        }
    }
}

/// The last seq of a session at a moment; `None` if all of it is older.
///
/// A session is dated by its host's clock: one that was imported today happened when its host says, not today. What bears no
/// time of the host counts from when it was recorded, unless the host's clock goes on behind it. Clocks of hosts run
/// backwards at times; the first event that is later than the moment ends the search.
fn seq_of_session_at(
    store: &Store,
    stream: StreamId,
    forks: &[(Seq, Forked)],
    moment: Micros,
) -> Result<Option<Seq>, Error> {
    let Some(later) = first_later(store, stream, Seq::MAX, moment)? else { return Ok(None) };
    let last = Seq(later.get().saturating_sub(1));
    // A fork began later than that, and reads what it shares.
    match forks.first().filter(|(began, _)| last < *began) {
        Some((_, forked)) => {
            let shared = first_later(store, forked.from, forked.at, moment)?;
            Ok(Some(shared.map_or(forked.at, |later| Seq(later.get().saturating_sub(1))).min(last)))
        }
        None => Ok(Some(last)),
    }
}

/// The first event of a stream, up to a seq, that is later than a moment.
fn first_later(store: &Store, stream: StreamId, to: Seq, moment: Micros) -> Result<Option<Seq>, Error> {
    // What is later by its recording, while nobody knows whether the host's clock goes on; and what surely is later.
    let later = Arc::new(Mutex::new((None::<Seq>, None::<Seq>)));
    let seen = Arc::clone(&later);
    // Events are looked at some way ahead of those that are handed out.
    let look = move |glimpse: &Glimpse<'_>| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (undecided, found) = &mut *seen;
        if found.is_some() {
            return false;
        }
        match glimpse.host_time() {
            Some(time) if time > moment => *found = Some(undecided.unwrap_or(glimpse.seq())),
            Some(_) => *undecided = None,
            None if glimpse.recorded_at() > moment => {
                undecided.get_or_insert(glimpse.seq());
            }
            None => {}
        }
        found.is_some()
    };
    let mut events = store.stream_events(stream, Seq(1), to.min(store.head()?))?.wanted(look);
    loop {
        match events.next() {
            Some(Ok(_)) | None => break,
            // Damage costs the time of what is damaged, not the answer.
            Some(Err(Error::Corrupt { .. })) => {}
            Some(Err(error)) => return Err(error),
        }
    }
    let (undecided, found) = *later.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(found.or(undecided))
}

/// The seqs of a session's marks, oldest first.
fn marks(store: &Store, view: &View, mark: Mark) -> Result<Vec<Seq>, Error> {
    if mark == Mark::Rewind {
        return Ok(view.read().state().rewinds(view.at()).iter().map(|(seq, _)| *seq).collect());
    }
    let replaced = store.stream_events(view.stream(), Seq(1), view.at())?;
    let mut marks = Vec::new();
    for recorded in replaced.wanted(|glimpse| glimpse.kind() == CONTEXT_REPLACED) {
        let recorded = recorded?;
        if matches!(&recorded.event.payload, Payload::ContextReplaced(by) if by.cause != ReplaceCause::Cleared)
        {
            marks.push(recorded.seq);
        }
    }
    Ok(marks)
}
