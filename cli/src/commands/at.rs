//! `--at`: which seq a point in time means for a whole store.

use acpdb_engine::Store;
use acpdb_engine::ids::{Micros, Seq};

use crate::failure::Failure;

/// A point as it was typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Point {
    Seq(Seq),
    Turn(u32),
    Time(Micros),
}

/// Reads `#812`, `t12`, an RFC 3339 time, a date, or `10m ago`.
pub(crate) fn parse(text: &str, now: jiff::Timestamp) -> Result<Point, Failure> {
    let text = text.trim();
    let wrong = || {
        Failure::usage(format!("--at: {text:?} is no point in time"))
            .hint("give #812, t12, 2026-01-31T12:00:00Z, 2026-01-31 or \"10m ago\"")
    };
    if let Some(seq) = text.strip_prefix('#') {
        return seq.parse().map(|seq| Point::Seq(Seq(seq))).map_err(|_| wrong());
    }
    if let Some(turn) = text.strip_prefix('t')
        && let Ok(turn) = turn.parse()
    {
        return Ok(Point::Turn(turn));
    }
    let micros = |time: jiff::Timestamp| Point::Time(Micros(time.as_microsecond()));
    if let Some(span) = text.strip_suffix("ago") {
        let span: jiff::Span = span.trim().parse().map_err(|_| wrong())?;
        let zoned = now.to_zoned(jiff::tz::TimeZone::system());
        return zoned.checked_sub(span).map(|then| micros(then.timestamp())).map_err(|_| wrong());
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(micros(time));
    }
    // Without an offset: local time; without a time: the end of that day.
    if let Ok(time) = text.parse::<jiff::civil::DateTime>() {
        let date_only = text.parse::<jiff::civil::Date>().is_ok() && !text.contains(':');
        let time = if date_only { time.date().at(23, 59, 59, 999_999_999) } else { time };
        let zoned = time.to_zoned(jiff::tz::TimeZone::system()).map_err(|_| wrong())?;
        return Ok(micros(zoned.timestamp()));
    }
    Err(wrong())
}

/// Commands that record something act now.
pub(crate) fn refuse(global: &crate::args::Global) -> Result<(), Failure> {
    match &global.at {
        Some(_) => Err(Failure::usage("--at is for reading; what is recorded is recorded now")),
        None => Ok(()),
    }
}

/// The last seq at a point, for commands that read the whole store. Turns belong to a session.
pub(crate) fn seq(store: &Store, text: &str) -> Result<Seq, Failure> {
    match parse(text, jiff::Timestamp::now())? {
        Point::Seq(seq) => Ok(seq),
        Point::Turn(_) => {
            Err(Failure::usage("--at: a turn belongs to a session; name the session, or give #SEQ or a time"))
        }
        Point::Time(time) => Ok(store.seq_at(time)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_seqs_turns_and_times() {
        let now: jiff::Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let at = |text: &str| parse(text, now).ok();
        let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_microsecond();
        assert_eq!(at("#812"), Some(Point::Seq(Seq(812))));
        assert_eq!(at("t12"), Some(Point::Turn(12)));
        assert_eq!(at("2026-01-31T11:00:00Z"), Some(Point::Time(Micros(time("2026-01-31T11:00:00Z")))));
        assert_eq!(at("10m ago"), Some(Point::Time(Micros(time("2026-01-31T11:50:00Z")))));
        assert_eq!([at("soon"), at("#x"), at(""), at("ago")], [None; 4]);
    }
}
