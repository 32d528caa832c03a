//! Times as people type them; one reader reads all of them.
//!
//! ```text
//! 2026-01-31   2026-01-31 14:05   2026-01-31T14:05:09.25+01:00   20260131T140509Z   14:05   2pm   noon
//! today   yesterday 14:05   Tuesday   last Tuesday   last week   this month   2026-01
//! Jul 29   29 Jul 2025   July 29th, 2025 14:05   Tue, 29 Jul 2025 14:05:09 +0200   Jul 29 14:05 Europe/Berlin
//! 10m ago   2 days ago   an hour ago   2d
//! ```
//!
//! A text names a stretch of time: a day, week or month from its first microsecond to its last, a time to the second that whole
//! second (times are shown to the second, and a user that copies one means the shown time), any other time a moment. A question
//! with `since` takes the beginning, a question with `until` takes the end.
//!
//! Every word of a text counts. A word that is not understood, or could mean two things, is refused; nothing is left aside. Where
//! no zone is written, the zone of the system (or of `TZ`) holds. The clock and the zone come in as values.

use acpdb_engine::ids::Micros;
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

/// The forms that can be typed, for hints.
pub const TIME_FORMS: &str = "2026-01-31, \"2026-01-31 14:05\", 2026-01-31T14:05:09Z, 14:05, \"yesterday 14:05\", \
                              \"last Tuesday\", \"last week\", \"Jul 29\", \"29 Jul 2025\", \"10m ago\" or \"2 days ago\"";

/// A stretch of time, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeRange {
    /// Its first microsecond.
    pub from: Micros,
    /// Its last microsecond.
    pub to: Micros,
}

/// The reason why a text is no time; empty if no reason can be told.
pub(super) type Reason = String;

/// Reads a time in a zone.
///
/// `local` holds if no zone is written. If the zone of the place is not known, a text that needs it is refused.
pub(super) fn read(text: &str, now: Micros, local: &Result<TimeZone, Reason>) -> Result<TimeRange, Reason> {
    let now = Timestamp::from_microsecond(now.get()).map_err(|error| error.to_string())?;
    let plain = text.trim();
    if plain.contains('[') {
        let zoned: Zoned = plain.parse().map_err(|_| String::new())?;
        return Ok(stretch(&zoned, Fine::Moment));
    }
    let lower = plain.to_lowercase().replace(',', " ");
    let mut words: Vec<&str> = lower.split_whitespace().collect();
    if words == ["now"] {
        return Ok(TimeRange { from: micros(now), to: micros(now) });
    }
    if words.last() == Some(&"ago") {
        words.pop();
        let span = span(&words).ok_or_else(|| format!("{:?} is no length of time", words.join(" ")))?;
        return back(now, span, local);
    }
    if let Some(span) = span(&words) {
        return back(now, span, local);
    }
    let mut parts = Parts::default();
    let mut rest = words.into_iter().peekable();
    while let Some(word) = rest.next() {
        match word {
            "last" | "this" => {
                let unit = rest.next().ok_or_else(|| format!("{word} what?"))?;
                parts.relative(word == "last", unit)?;
            }
            "at" | "on" if parts.any && rest.peek().is_some() => {}
            "am" | "pm" => parts.half(word)?,
            word => parts.word(word)?,
        }
        parts.any = true;
    }
    parts.stretch(now, local)
}

fn micros(time: Timestamp) -> Micros {
    Micros(time.as_microsecond())
}

/// A length of time: `10m`, `2 days`, `an hour`, `1h 30m`.
fn span(words: &[&str]) -> Option<Span> {
    let one = |word: &&&str| !matches!(**word, "and");
    let words: Vec<&str> = words
        .iter()
        .filter(one)
        .map(|word| if matches!(*word, "a" | "an" | "one") { "1" } else { word })
        .collect();
    let text = words.join(" ");
    // `14:05:09` is a length of time to others, and a time of day to people.
    if !text.starts_with(|first: char| first.is_ascii_digit()) || text.contains(':') {
        return None;
    }
    // A text that is no length of time may be a moment: the caller tries that.
    text.parse::<Span>().ok().filter(|span| !span.is_negative())
}

fn back(now: Timestamp, span: Span, local: &Result<TimeZone, Reason>) -> Result<TimeRange, Reason> {
    let has_days = [span.get_years().into(), span.get_months(), span.get_weeks(), span.get_days()] != [0; 4];
    // Hours are equally long everywhere; days are not.
    let zone = if has_days { local.clone()? } else { TimeZone::UTC };
    let then = now.to_zoned(zone).checked_sub(span).map_err(|_| "that is before all time".to_owned())?;
    Ok(stretch(&then, Fine::Moment))
}

/// The precision with which a time was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fine {
    Second,
    Moment,
}

fn stretch(time: &Zoned, fine: Fine) -> TimeRange {
    let from = micros(time.timestamp());
    let width = if fine == Fine::Second { 999_999 } else { 0 };
    TimeRange { from, to: Micros(from.get().saturating_add(width)) }
}

/// Whole days, the last one included.
fn days(first: Date, last: Date, zone: &TimeZone) -> Result<TimeRange, Reason> {
    let start = |day: Date| day.to_zoned(zone.clone()).map_err(|_| "that is beyond all time".to_owned());
    let next = last.tomorrow().map_err(|_| "that is beyond all time".to_owned())?;
    let (from, to) = (micros(start(first)?.timestamp()), micros(start(next)?.timestamp()));
    Ok(TimeRange { from, to: Micros(to.get().saturating_sub(1)) })
}

/// A stretch that is told by its place before today.
#[derive(Clone, Copy)]
enum Period {
    Week,
    Month,
    Year,
}

/// The parts of a time that the words of a text gave so far.
#[derive(Default)]
struct Parts {
    any: bool,
    /// Days from today.
    near: Option<i32>,
    /// The week, month or year; `true`: the one before the present one.
    period: Option<(Period, bool)>,
    /// The day of the week; `true`: today does not count.
    weekday: Option<(Weekday, bool)>,
    date: Option<Date>,
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    time: Option<(Time, Fine)>,
    zone: Option<TimeZone>,
}

/// Sets a part that may be given once.
fn once<T>(place: &mut Option<T>, value: T, what: &str) -> Result<(), Reason> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("it names {what} twice")),
    }
}

impl Parts {
    fn relative(&mut self, is_last: bool, unit: &str) -> Result<(), Reason> {
        let period = match unit {
            "week" => Period::Week,
            "month" => Period::Month,
            "year" => Period::Year,
            _ => {
                let day = weekday(unit).ok_or_else(|| format!("last or this {unit:?} is not known"))?;
                return once(&mut self.weekday, (day, is_last), "a day of the week");
            }
        };
        once(&mut self.period, (period, is_last), "a stretch of days")
    }

    /// `2 pm`, `2:30 pm`.
    fn half(&mut self, half: &str) -> Result<(), Reason> {
        let (time, fine) = match (self.time.take(), self.day.take()) {
            (Some(found), day) => {
                self.day = day;
                found
            }
            (None, Some(hour)) => (clock(hour, 0, 0, 0)?, Fine::Moment),
            (None, None) => return Err(format!("{half} of what?")),
        };
        self.time = Some((of_half(time, half)?, fine));
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Reason> {
        let near = match word {
            "today" => Some(0),
            "yesterday" => Some(-1),
            "tomorrow" => Some(1),
            _ => None,
        };
        if let Some(near) = near {
            return once(&mut self.near, near, "a day");
        }
        match word {
            "noon" => return once(&mut self.time, (clock(12, 0, 0, 0)?, Fine::Moment), "a time of day"),
            "midnight" => return once(&mut self.time, (clock(0, 0, 0, 0)?, Fine::Moment), "a time of day"),
            _ => {}
        }
        if let Some(day) = weekday(word) {
            return once(&mut self.weekday, (day, false), "a day of the week");
        }
        if let Some(month) = month(word) {
            return once(&mut self.month, month, "a month");
        }
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            return self.number(word);
        }
        let zone = zone(word).ok_or_else(|| {
            if word.contains('/') { no_zone(word) } else { format!("{word:?} is not known") }
        })?;
        if self.time.is_none() && self.date.is_none() && self.day.is_none() && self.near.is_none() {
            return Err(format!("{word:?} says a zone, and no time before it"));
        }
        once(&mut self.zone, zone, "a zone")
    }

    /// A word that begins with a digit.
    fn number(&mut self, word: &str) -> Result<(), Reason> {
        // `2026-01-31T14:05`, and the same without signs.
        if let Some((day, time)) = word.split_once('t').filter(|(day, _)| day.len() >= 8) {
            self.number(day)?;
            if self.date.is_none() {
                return Err(String::new());
            }
            return self.clock(time);
        }
        if let Some(day) = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)) {
            return once(&mut self.day, small(day)?, "a day");
        }
        if word.contains(':') || word.ends_with("am") || word.ends_with("pm") {
            return self.clock(word);
        }
        let signs: Vec<&str> = word.split(['-', '/', '.']).collect();
        match signs.as_slice() {
            [one] if one.len() == 8 && digits(one).is_some() => {
                let cut = |from: usize, to: usize| one.get(from..to).unwrap_or_default();
                self.date(cut(0, 4), cut(4, 6), cut(6, 8))
            }
            [one] if one.len() == 4 => {
                let year = i16::try_from(digits(one).ok_or_else(String::new)?).map_err(|_| String::new())?;
                once(&mut self.year, year, "a year")
            }
            [one] => once(&mut self.day, small(one)?, "a day"),
            [year, at_month] if year.len() == 4 && word.contains('-') => {
                once(
                    &mut self.year,
                    i16::try_from(digits(year).ok_or_else(String::new)?).unwrap_or_default(),
                    "a year",
                )?;
                once(&mut self.month, small(at_month)?, "a month")
            }
            // `2026-01-31Z` and `2026-01-31+02:00` say a zone.
            [year, at_month, day] if year.len() == 4 => {
                let end = day.find(|c: char| !c.is_ascii_digit()).unwrap_or(day.len());
                let (day, suffix) = day.split_at(end);
                self.date(year, at_month, day)?;
                self.suffix(suffix)
            }
            [day, name, year] if month(name).is_some() => {
                once(&mut self.day, small(day)?, "a day")?;
                once(&mut self.month, month(name).unwrap_or_default(), "a month")?;
                self.number(year)
            }
            [_, _] | [_, _, _] if signs.iter().all(|sign| digits(sign).is_some()) => {
                Err("which number is the day and which the month is not said; write year-month-day, as in 2026-01-31"
                    .to_owned())
            }
            _ => Err(String::new()),
        }
    }

    fn date(&mut self, year: &str, month: &str, day: &str) -> Result<(), Reason> {
        let year = digits(year).and_then(|year| i16::try_from(year).ok()).ok_or_else(String::new)?;
        let (month, day) = (small(month)?, small(day)?);
        once(&mut self.date, date(year, month, day)?, "a day")
    }

    /// `14:05`, `14:05:09.25`, `2pm`, `140509`; then a zone, if one is written behind it.
    fn clock(&mut self, word: &str) -> Result<(), Reason> {
        let end = word.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.'))).unwrap_or(word.len());
        let (plain, suffix) = word.split_at(end);
        let (whole, fraction) =
            plain.split_once('.').map_or((plain, None), |(whole, part)| (whole, Some(part)));
        let pieces: Vec<&str> = match whole.split(':').collect::<Vec<_>>().as_slice() {
            [one] if matches!(one.len(), 4 | 6) => {
                [0, 2, 4].iter().filter_map(|at| one.get(*at..at + 2)).collect()
            }
            many => many.to_vec(),
        };
        let is_half = suffix.starts_with("am") || suffix.starts_with("pm");
        let (hour, minute, second) = match pieces.as_slice() {
            [hour] if is_half || self.date.is_some() => (small(hour)?, 0, None),
            [hour, minute] if minute.len() == 2 => (small(hour)?, small(minute)?, None),
            [hour, minute, second] if minute.len() == 2 && second.len() == 2 => {
                (small(hour)?, small(minute)?, Some(small(second)?))
            }
            _ => return Err(format!("{word:?} is no time of day")),
        };
        let part = match fraction {
            None => 0,
            Some(part)
                if second.is_some() && !part.is_empty() && part.len() <= 9 && digits(part).is_some() =>
            {
                let padded = format!("{part:0<9}");
                i32::try_from(digits(&padded).unwrap_or_default()).unwrap_or_default()
            }
            Some(_) => return Err(format!("{word:?} is no time of day")),
        };
        let fine = if second.is_some() && fraction.is_none() { Fine::Second } else { Fine::Moment };
        // A leap second belongs to the minute that it ends.
        let mut time =
            clock(hour, minute, second.map_or(0, |second| if second == 60 { 59 } else { second }), part)?;
        let mut suffix = suffix;
        for half in ["am", "pm"] {
            if let Some(rest) = suffix.strip_prefix(half) {
                time = of_half(time, half)?;
                suffix = rest;
            }
        }
        once(&mut self.time, (time, fine), "a time of day")?;
        self.suffix(suffix)
    }

    /// A zone, directly behind a date or time.
    fn suffix(&mut self, suffix: &str) -> Result<(), Reason> {
        if suffix.is_empty() {
            return Ok(());
        }
        let zone = zone(suffix).ok_or_else(|| format!("{suffix:?} is not known"))?;
        once(&mut self.zone, zone, "a zone")
    }

    fn stretch(self, now: Timestamp, local: &Result<TimeZone, Reason>) -> Result<TimeRange, Reason> {
        let zone = self.zone.clone().map_or_else(|| local.clone(), Ok)?;
        let today = now.to_zoned(zone.clone()).date();
        let named = usize::from(self.near.is_some())
            + usize::from(self.period.is_some())
            + usize::from(self.date.is_some())
            + usize::from(self.day.is_some() || self.month.is_some() || self.year.is_some());
        if named > 1 {
            return Err("it names a day twice".to_owned());
        }
        if let Some((period, is_last)) = self.period {
            if self.time.is_some() || self.weekday.is_some() {
                return Err("a week, month or year has no day and time of its own".to_owned());
            }
            let (first, last) = around(today, period, is_last)?;
            return days(first, last, &zone);
        }
        if self.day.is_none()
            && let Some(month) = self.month
        {
            let year = self.year.unwrap_or_else(|| newest_year(today, month, 1));
            if self.time.is_some() || self.weekday.is_some() {
                return Err("it names a month, and no day of it".to_owned());
            }
            let first = date(year, month, 1)?;
            return days(first, first.last_of_month(), &zone);
        }
        let Some(day) = self.named_day(today, now, &zone)? else {
            return match self.time {
                Some((time, fine)) => Ok(stretch(&zoned(today.to_datetime(time), &zone)?, fine)),
                None => Err(String::new()),
            };
        };
        match self.time {
            Some((time, fine)) => Ok(stretch(&zoned(day.to_datetime(time), &zone)?, fine)),
            None => days(day, day, &zone),
        }
    }

    /// The day that is named, if one is.
    fn named_day(&self, today: Date, now: Timestamp, zone: &TimeZone) -> Result<Option<Date>, Reason> {
        let day = match (self.near, self.date, self.day) {
            (Some(near), ..) => Some(shifted(today, near)?),
            (_, Some(date), _) => Some(date),
            (.., Some(day)) => {
                let month = self.month.ok_or_else(|| format!("the day {day} of which month?"))?;
                Some(date(self.year.unwrap_or_else(|| newest_year(today, month, day)), month, day)?)
            }
            _ if self.year.is_some() => return Err("a year alone is no day".to_owned()),
            _ => None,
        };
        let Some((weekday, is_past)) = self.weekday else { return Ok(day) };
        if let Some(day) = day {
            if is_past || day.weekday() != weekday {
                return Err(format!("{day} is a {}", name(day.weekday())));
            }
            return Ok(Some(day));
        }
        let mut back = i32::from(today.weekday().since(weekday));
        // If the day is today, a time that is yet to come was meant of the week before.
        let is_later = |(time, _): (Time, Fine)| {
            zoned(today.to_datetime(time), zone).is_ok_and(|time| time.timestamp() > now)
        };
        if back == 0 && (is_past || self.time.is_some_and(is_later)) {
            back = 7;
        }
        shifted(today, -back).map(Some)
    }
}

fn zoned(time: DateTime, zone: &TimeZone) -> Result<Zoned, Reason> {
    time.to_zoned(zone.clone()).map_err(|_| "that is beyond all time".to_owned())
}

fn shifted(day: Date, by: i32) -> Result<Date, Reason> {
    day.checked_add(by.days()).map_err(|_| "that is beyond all time".to_owned())
}

fn around(today: Date, period: Period, is_last: bool) -> Result<(Date, Date), Reason> {
    let far = |_| "that is beyond all time".to_owned();
    Ok(match period {
        Period::Week => {
            let monday = shifted(today, -i32::from(today.weekday().to_monday_zero_offset()))?;
            let monday = if is_last { shifted(monday, -7)? } else { monday };
            (monday, shifted(monday, 6)?)
        }
        Period::Month => {
            let first = today.first_of_month();
            let first = if is_last { first.checked_sub(1.month()).map_err(far)? } else { first };
            (first, first.last_of_month())
        }
        Period::Year => {
            let first = today.first_of_year();
            let first = if is_last { first.checked_sub(1.year()).map_err(far)? } else { first };
            (first, first.last_of_year())
        }
    })
}

/// The newest year in which this day is not yet to come. A 29 February comes once in eight years at worst.
fn newest_year(today: Date, month: i8, day: i8) -> i16 {
    // The calendar begins with the year -9999.
    let back = (0..=8).map(|back| today.year().saturating_sub(back));
    let found = back.into_iter().find(|year| Date::new(*year, month, day).is_ok_and(|date| date <= today));
    found.unwrap_or_else(|| today.year())
}

fn date(year: i16, month: i8, day: i8) -> Result<Date, Reason> {
    Date::new(year, month, day).map_err(|_| format!("there is no day {year:04}-{month:02}-{day:02}"))
}

fn clock(hour: i8, minute: i8, second: i8, nanosecond: i32) -> Result<Time, Reason> {
    Time::new(hour, minute, second, nanosecond)
        .map_err(|_| format!("there is no time {hour:02}:{minute:02}:{second:02}"))
}

/// A time of twelve hours in the morning or after noon.
fn of_half(time: Time, half: &str) -> Result<Time, Reason> {
    let hour = time.hour();
    if !(1..=12).contains(&hour) {
        return Err(format!("there is no {hour} {half}"));
    }
    let hour = hour % 12 + if half == "pm" { 12 } else { 0 };
    clock(hour, time.minute(), time.second(), time.subsec_nanosecond())
}

/// The number, if a text is all digits.
fn digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|digit| digit.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// A number of one or two digits.
fn small(text: &str) -> Result<i8, Reason> {
    let number = digits(text).filter(|_| text.len() <= 2).and_then(|number| i8::try_from(number).ok());
    number.ok_or_else(|| format!("{text:?} is no day, month or hour"))
}

/// The reason why a name is no zone here.
fn no_zone(name: &str) -> Reason {
    if jiff::tz::db().is_definitively_empty() {
        return format!(
            "this machine has no table of time zones (tzdata) to find {name:?} in; write an offset, as in +01:00"
        );
    }
    format!("there is no time zone {name:?}")
}

/// The zone of the system, or of `TZ`. A name in `TZ` that no table has is not UTC.
pub(super) fn local() -> Result<TimeZone, Reason> {
    const HINT: &str = "write one behind the time, as in 14:05Z or 14:05 +01:00, or set TZ, as in TZ=UTC";
    match (TimeZone::try_system(), std::env::var_os("TZ")) {
        (Ok(zone), _) => Ok(zone),
        (Err(_), Some(name)) => Err(format!("{} (from TZ); {HINT}", no_zone(&name.to_string_lossy()))),
        // If nothing names a zone, all programs of the system go by UTC.
        (Err(_), None) => Ok(TimeZone::UTC),
    }
}

/// `z`, `utc`, `+02:00`, `-0500`, `+01`, `europe/berlin`.
fn zone(text: &str) -> Option<TimeZone> {
    if matches!(text, "z" | "utc" | "gmt") {
        return Some(TimeZone::UTC);
    }
    if let Some(sign) = text.chars().next().filter(|sign| matches!(sign, '+' | '-')) {
        let rest: String = text.chars().skip(1).filter(|c| *c != ':').collect();
        let (hours, minutes) = match rest.len() {
            1 | 2 => (digits(&rest)?, 0),
            4 => (digits(rest.get(..2)?)?, digits(rest.get(2..)?)?),
            _ => return None,
        };
        if minutes > 59 {
            return None;
        }
        let seconds = i32::try_from(hours * 3600 + minutes * 60).ok()?;
        // More than a day off is no zone.
        let offset = Offset::from_seconds(if sign == '-' { -seconds } else { seconds }).ok()?;
        return Some(TimeZone::fixed(offset));
    }
    // A name that no table of zones has is no zone, and told as that with the text.
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) { TimeZone::get(text).ok() } else { None }
}

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

fn name(day: Weekday) -> &'static str {
    WEEKDAYS.iter().find(|(_, known)| *known == day).map_or("", |(name, _)| name)
}

/// Three letters of a name are enough, and no letter may be wrong.
fn named<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<usize> {
    let word = word.strip_suffix('.').unwrap_or(word);
    let mut names = names.enumerate();
    if word.len() < 3 { None } else { names.find(|(_, name)| name.starts_with(word)).map(|(place, _)| place) }
}

fn weekday(word: &str) -> Option<Weekday> {
    let place = named(word, WEEKDAYS.iter().map(|(name, _)| *name))?;
    WEEKDAYS.get(place).map(|(_, day)| *day)
}

fn month(word: &str) -> Option<i8> {
    const MONTHS: &str = "
        january february march april may june july august september october november december";
    let place =
        named(word, MONTHS.split_whitespace()).or_else(|| named(word, ["sept"].into_iter()).map(|_| 8))?;
    i8::try_from(place + 1).ok()
}

#[cfg(test)]
mod tests;
