//! Events and values in words: short forms shared by several commands.

use std::cell::RefCell;
use std::collections::BTreeMap;

use acpdb_engine::event::Recorded;
use acpdb_engine::ids::{Micros, StreamId};
pub(crate) use acpdb_engine::text::words::{count, tokens};
use acpdb_engine::{Store, store::StreamName};
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::output::{EscapeLevel, escape};

/// Style of seqs.
pub(crate) const SEQ: anstyle::Style =
    anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Cyan)));
/// Style of secondary texts.
pub(crate) const DIM: anstyle::Style = anstyle::Style::new().dimmed();
/// Style of important texts.
pub(crate) const BOLD: anstyle::Style = anstyle::Style::new().bold();
/// Style of sound or current things.
pub(crate) const GOOD: anstyle::Style =
    anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Green)));
/// Style of superseded or failed things.
pub(crate) const BAD: anstyle::Style =
    anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Yellow)));

/// The text in place of an unknown time.
pub(crate) const NO_TIME: &str = "no time";

/// Streams whose names are looked up one by one. After these, all names are read at once.
const NAMED_COUNT_MAX: usize = 16;

/// Names of streams, to print instead of their ids. A name is looked up when it is first printed, so that the first rows do not
/// wait for all names.
#[derive(Debug)]
pub(crate) struct StreamNames {
    store: Store,
    times: acpdb_query::EventTimes,
    names: RefCell<BTreeMap<StreamId, Option<StreamName>>>,
}

impl StreamNames {
    pub(crate) fn new(store: &Store) -> Self {
        Self { store: store.clone(), times: acpdb_query::EventTimes::new(store), names: RefCell::default() }
    }

    /// The host's name of a stream, whole.
    pub(crate) fn full(&self, stream: StreamId) -> String {
        if stream == StreamId::STORE {
            return "store".to_owned();
        }
        self.of(stream).map_or_else(|| stream.to_hex(), |name| name.name)
    }

    /// The time of an event, as far as it is known.
    pub(crate) fn time(&self, recorded: &Recorded) -> Option<Micros> {
        let name = if recorded.event.host_time.is_some() { None } else { self.of(recorded.event.stream) };
        self.times.of(recorded, name.as_ref())
    }

    fn of(&self, stream: StreamId) -> Option<StreamName> {
        let mut names = self.names.borrow_mut();
        if let Some(known) = names.get(&stream) {
            return known.clone();
        }
        // A stream that cannot be read has no name; its reader tells of the error.
        if names.len() == NAMED_COUNT_MAX {
            let all = self.store.stream_names().unwrap_or_default();
            names.extend(all.into_iter().map(|name| (name.id, Some(name))));
        // A stream that cannot be read has no name.
        } else if let Ok(Some(name)) = self.store.stream_name(stream) {
            names.insert(stream, Some(name));
        }
        names.entry(stream).or_default().clone()
    }

    /// At most 12 characters of the name.
    pub(crate) fn short(&self, stream: StreamId) -> String {
        // A host may name its sessions as it likes.
        escape(&self.full(stream), EscapeLevel::Line).chars().take(12).collect()
    }
}

/// A time as RFC 3339, seconds, UTC.
pub(crate) fn time(micros: Micros) -> String {
    jiff::Timestamp::from_microsecond(micros.get())
        .map_or_else(|_| "-".to_owned(), |time| format!("{time:.0}"))
}

/// The day of a time, in UTC, with the mark of UTC: it can be typed as it is printed.
pub(crate) fn day(micros: Micros) -> String {
    shortened(&time(micros), 10)
}

/// The minute of a time, of UTC, as [`day`].
pub(crate) fn minute(micros: Micros) -> String {
    shortened(&time(micros), 16)
}

/// The first `length` characters of an RFC 3339 time, with the mark of UTC. A time whose year has more than four digits stays
/// whole.
pub(crate) fn shortened(time: &str, length: usize) -> String {
    let cut = time.get(..length).filter(|_| time.starts_with(|first: char| first.is_ascii_digit()));
    cut.map_or_else(|| time.to_owned(), |cut| format!("{}Z", cut.replace('T', " ")))
}

/// A time as by [`time`], or a text of the same width if there is none.
pub(crate) fn time_if_any(micros: Option<Micros>) -> String {
    micros.map_or_else(|| format!("{NO_TIME:<20}"), time)
}

/// A count of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let mut value = count as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{count} B") } else { format!("{value:.1} {unit}") }
}

/// An event for programs. Bodies are named, not shown.
pub(crate) fn event_json(recorded: &Recorded, names: &StreamNames) -> Value {
    let event = &recorded.event;
    json!({
        "schema": "acpdb.event/1",
        "seq": recorded.seq,
        "stream": event.stream,
        "session": names.full(event.stream),
        "kind": event.payload.label(),
        "recorded_at": time(recorded.recorded_at),
        "host_time": event.host_time.map(time),
        "actor": event.stamp.actor,
        "origin": (!event.origin.is_zero()).then_some(event.origin),
        "payload": event.payload,
    })
}

/// A value for programs, with times as RFC 3339, as in every answer: inside the program they are microseconds.
pub(crate) fn timed(
    value: &impl serde::Serialize,
    times: &[(&str, Option<String>)],
) -> Result<Value, Failure> {
    let value = serde_json::to_value(value)
        .map_err(|error| Failure::new(Code::Failure, format!("cannot print JSON: {error}")))?;
    Ok(with(value, times.iter().map(|(name, time)| ((*name).to_owned(), json!(time))).collect()))
}

/// A value for programs with more members. A new member replaces the member of the same name.
pub(crate) fn with(mut value: Value, more: Value) -> Value {
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

/// Dollars for people, to the cent.
pub(crate) fn dollars(amount: f64) -> String {
    let size = amount.abs();
    if size == 0.0 {
        return "-".to_owned();
    }
    let sign = if amount < 0.0 { "-" } else { "" };
    if size < 0.005 {
        return format!("{sign}<$0.01");
    }
    let written = format!("{size:.2}");
    let (whole, rest) = written.split_once('.').unwrap_or((&written, "00"));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}${grouped}.{rest}")
}

/// As [`dollars`], within a sentence: a table has a dash where there is nothing.
pub(crate) fn dollars_in_words(amount: f64) -> String {
    if amount == 0.0 { "nothing".to_owned() } else { dollars(amount) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sessions` printed times of UTC without a mark, but typed times are local: a copied time meant another hour.
    #[test]
    fn a_time_that_is_cut_still_says_that_it_is_of_utc() {
        let noon = Micros(1_774_440_000_000_000);
        assert_eq!((time(noon), minute(noon), day(noon)).0, "2026-03-25T12:00:00Z");
        assert_eq!((minute(noon), day(noon)), ("2026-03-25 12:00Z".to_owned(), "2026-03-25Z".to_owned()));
        assert_eq!(shortened("-", 10), "-");
    }

    #[test]
    fn sizes_are_short_and_exact_where_they_are_small() {
        for (number, shown) in [(12, "12 B"), (2048, "2.0 KiB"), (5 << 30, "5.0 GiB")] {
            assert_eq!(bytes(number), shown);
        }
    }

    #[test]
    fn dollars_are_told_to_the_cent_and_less_is_said_to_be_less() {
        for (amount, text) in [
            (0.0, "-"),
            (0.004_99, "<$0.01"),
            (-0.000_000_4, "-<$0.01"),
            (0.009_996, "$0.01"),
            (-0.0813, "-$0.08"),
            (0.7541, "$0.75"),
            (0.9996, "$1.00"),
            (1.5, "$1.50"),
            (-12.345, "-$12.35"),
            (1234.5, "$1,234.50"),
            (1_234_567.0, "$1,234,567.00"),
        ] {
            assert_eq!(dollars(amount), text);
        }
    }
}
