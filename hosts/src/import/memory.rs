//! Memory files: decisions that replace each other, and preferences over time, one JSON record a line.
//!
//! ```text
//! {id, title, status, category, created, replaces[], superseded_by[], ..}   -> MemoryRecorded, kind decision
//! {ts, category, key, value, previous, ..}     value given                  -> MemoryRecorded, kind preference
//!                                              the value that already holds -> MemoryReinforced
//!                                              value null                   -> MemoryRetracted
//! ```
//!
//! A preference's id is `category/key@time`, so that it is the same in every file that holds it; without a time, the number of the
//! value stands there. Fields without a place of their own (`previous`, `commit`, `topic` ..) are kept in `extra`, as written.
//!
//! Links are taken as recorded: an end may be missing, and no `status` decides which record is current.

use std::collections::HashMap;

use acpdb_engine::entry::{Entry, Fact, MemoryEntry, StreamInfo, fact};
use acpdb_engine::event::{Lifespan, MemoryKind};
use acpdb_engine::ids::Micros;

use super::json::{count, elements, members, owned, pick, quote};
use super::lines::{LineImporter, RecordOutcome, read_lines};
use super::turns::{Occurrences, digest};
use super::{ImportContext, ImportError, Input};

/// Confidence of a note that a person wrote down, in hundredths.
const RECORDED: u8 = 100;

/// Confidence that a repeated value adds, in hundredths.
const REINFORCED: u8 = 10;

#[derive(Debug)]
struct MemoryFile {
    stream: StreamInfo,
    lines: Occurrences,
    values: HashMap<(String, String), PreferenceSlot>,
}

/// The values of a category and key so far.
#[derive(Debug, Default)]
struct PreferenceSlot {
    count: u32,
    times: Vec<String>,
    /// The value that holds, and the id of the last one.
    value: Option<String>,
    last: Option<String>,
}

/// Reads a file of decisions or preferences, or both.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let stream = context.options.memory.clone().unwrap_or_else(|| StreamInfo::project(context.name));
    let mut memory =
        MemoryFile { stream: stream.clone(), lines: Occurrences::default(), values: HashMap::new() };
    read_lines(input, context, &mut memory, &stream)
}

impl LineImporter for MemoryFile {
    fn record(&mut self, line: &str, out: &mut Vec<Entry>) -> RecordOutcome {
        let Some([id, key]) = pick(line, ["id", "key"]) else {
            return RecordOutcome::Unfit("not a JSON object");
        };
        let origin = self.lines.origin("line", &digest(line));
        let entry = match (owned(id), owned(key)) {
            (_, Some(key)) => self.preference(line, key),
            (Some(id), None) => decision(line, id),
            (None, None) => None,
        };
        match entry {
            Some(entry) => {
                out.push(entry.origin(origin));
                RecordOutcome::Known
            }
            None => RecordOutcome::Unfit("neither a decision nor a preference"),
        }
    }

    fn stream(&self) -> Option<&StreamInfo> {
        Some(&self.stream)
    }
}

impl MemoryFile {
    fn preference(&mut self, line: &str, key: String) -> Option<Entry> {
        let [ts, category, value] = pick(line, ["ts", "category", "value"])?;
        let category = owned(category).unwrap_or_default();
        let at = date(ts);
        let slot = self.values.entry((category.clone(), key.clone())).or_default();
        let Some(value) = value.map(|value| owned(Some(value)).unwrap_or_else(|| value.to_string())) else {
            // Removed, or never there: the id of the value that held last; if this file has none, the key, for the store to find one.
            let held = slot.last.clone().unwrap_or_else(|| format!("{category}/{key}"));
            let fact = fact::MemoryRetracted { id: held, reason: None, at };
            slot.value = None;
            return Some(Entry::from(fact).at(at));
        };
        if let Some(id) = slot.last.clone()
            && slot.value.as_deref().is_some_and(|held| held.to_lowercase() == value.to_lowercase())
        {
            let fact = fact::MemoryReinforced { id, amount: REINFORCED, at };
            return Some(Entry::from(fact).at(at));
        }
        slot.count = slot.count.saturating_add(1);
        // The time names a value in every file that holds it; a second one of that time has its number, too.
        let time = ts.map(|ts| owned(Some(ts)).unwrap_or_else(|| ts.to_owned())).filter(|_| at.is_some());
        let same = slot.times.iter().filter(|known| Some(*known) == time.as_ref()).count();
        let id = match &time {
            Some(time) if same == 0 => format!("{category}/{key}@{time}"),
            Some(time) => format!("{category}/{key}@{time}#{}", same + 1),
            None => format!("{category}/{key}@{}", slot.count),
        };
        slot.times.extend(time);
        (slot.value, slot.last) = (Some(value.clone()), Some(id.clone()));
        let memory = MemoryEntry {
            id,
            kind: MemoryKind::Preference,
            category: category.clone(),
            value,
            confidence: RECORDED,
            lifespan: Some(Lifespan::Project),
            created: at,
            extra: rest(line, &["ts", "category", "key", "value"]),
            key: Some(key),
            ..MemoryEntry::default()
        };
        Some(Entry::from(Fact::Memory(memory)).at(at))
    }
}

fn decision(line: &str, id: String) -> Option<Entry> {
    let names = ["title", "status", "category", "created", "replaces", "superseded_by", "rationale"];
    let [title, status, category, created, replaces, superseded_by, rationale] = pick(line, names)?;
    let ids = |list: Option<&str>| -> Vec<String> {
        list.and_then(elements).unwrap_or_default().into_iter().filter_map(|id| owned(Some(id))).collect()
    };
    let at = date(created);
    let memory = MemoryEntry {
        id,
        kind: MemoryKind::Decision,
        category: owned(category).unwrap_or_default(),
        value: owned(title)?,
        rationale: owned(rationale),
        confidence: RECORDED,
        lifespan: Some(Lifespan::Permanent),
        created: at,
        replaces: ids(replaces),
        superseded_by: ids(superseded_by),
        status: owned(status),
        extra: rest(
            line,
            &["id", "title", "status", "category", "created", "replaces", "superseded_by", "rationale"],
        ),
        ..MemoryEntry::default()
    };
    Some(Entry::from(Fact::Memory(memory)).at(at))
}

/// The members that are not `known`, as an object; `None` if there are none.
fn rest(line: &str, known: &[&str]) -> Option<std::sync::Arc<[u8]>> {
    let mut out = Vec::new();
    for (name, value) in members(line)? {
        if known.contains(&name.as_str()) {
            continue;
        }
        out.push(if out.is_empty() { b'{' } else { b',' });
        quote(&mut out, &name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    if out.is_empty() {
        return None;
    }
    out.push(b'}');
    Some(out.into())
}

/// A time (`2025-05-30T18:25:47-07:00`, or seconds or milliseconds since 1970) or a day (`2025-05-30`, `13-Jun-2000`), which begins at
/// midnight UTC.
fn date(value: Option<&str>) -> Option<Micros> {
    // So many seconds are five thousand years; so few are a day, written without dashes.
    const SECONDS: std::ops::Range<u64> = 100_000_000..160_000_000_000;
    if let Some(since) = count(value).filter(|since| *since >= SECONDS.start) {
        let unit = if SECONDS.contains(&since) { 1_000_000 } else { 1000 };
        return i64::try_from(since).ok()?.checked_mul(unit).map(Micros);
    }
    let text = owned(value)?;
    let text = text.trim();
    // A text that is neither a time nor a day stays in the entry's own record; the time of the entry is not known then.
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(Micros(time.as_microsecond()));
    }
    // As above.
    let day =
        text.parse::<jiff::civil::Date>().or_else(|_| jiff::civil::Date::strptime("%d-%b-%Y", text)).ok()?;
    // Days past the end of the calendar, likewise.
    let time = day.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some(Micros(time.as_microsecond()))
}
