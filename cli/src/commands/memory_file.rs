//! Memory as JSON lines: `acpdb memory export` and `import`.
//!
//! An export holds one item a line, with its edges; importing it again adds nothing. Lines written by hand need a kind and a value.
//! A line that cannot be recorded is named with the reason, and the exit code tells of it. Files of other programs (decisions that
//! replace each other, preferences over time) are read by their own importer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use acpdb_engine::command::memory::{MemoryCommand, MemoryRef, confidence_hundredths, parse_lifespan};
use acpdb_engine::entry::{Bytes, Entry, Fact, MemoryEntry, StreamInfo, fact};
use acpdb_engine::event::{Actor, Lifespan, MemoryKind};
use acpdb_engine::fold::memory::MemoryStatus;
use acpdb_engine::ids::Micros;
use acpdb_engine::store::MemoryScope;
use acpdb_engine::{Atomicity, Batch, Store};
use acpdb_hosts::import::{ImportFormat, ImportOptions};
use serde::Deserialize;
use serde_json::{Value, json};

use super::memory_rows::{ITEM_SCHEMA, RememberedItem};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::MemoryImport;
use crate::reader::{self, FileChoice, ImportFile, Recognised};

/// Longest line that is read.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Writes rows, one a line.
pub(crate) fn export(rows: &[RememberedItem], output: &mut Output) -> Result<Code, Failure> {
    for row in rows {
        let mut value = serde_json::to_value(row).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.insert("schema".to_owned(), ITEM_SCHEMA.into());
            // These fields are of this store and of this moment. An import takes a speaker from the source.
            for field in ["item", "stream", "confidence"] {
                object.remove(field);
            }
            if !row.shadowed {
                object.remove("shadowed");
            }
        }
        output.json_line(&value)?;
    }
    Ok(Code::Ok)
}

/// One exported line.
#[derive(Deserialize)]
struct MemoryLine {
    #[serde(default)]
    id: String,
    kind: MemoryKind,
    #[serde(default)]
    category: String,
    key: Option<String>,
    subject: Option<String>,
    #[serde(alias = "fact", alias = "description", alias = "text")]
    value: Option<String>,
    rationale: Option<String>,
    #[serde(default)]
    alternatives: Vec<String>,
    #[serde(default)]
    related_files: Vec<String>,
    #[serde(alias = "confidence")]
    confirmed: Option<f64>,
    lifespan: Option<String>,
    created: Option<jiff::Timestamp>,
    reinforced: Option<jiff::Timestamp>,
    standing: Option<String>,
    #[serde(default)]
    shadowed: bool,
    #[serde(default)]
    superseded_by: Vec<String>,
    #[serde(alias = "supersededAt")]
    superseded_at: Option<jiff::Timestamp>,
    #[serde(default)]
    #[serde(alias = "replaces")]
    supersedes: Vec<String>,
    status: Option<String>,
    extra: Option<Value>,
    source: Option<Value>,
    /// Fields of the file's format, and fields that have no place here.
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

impl MemoryLine {
    /// Fields without a place here stay with the item.
    fn extra(&mut self) -> Option<Bytes> {
        self.others.retain(|name, _| !matches!(name.as_str(), "schema" | "item" | "stream"));
        let others = std::mem::take(&mut self.others);
        let extra = match (self.extra.take(), others.is_empty()) {
            (extra, true) => extra?,
            (Some(Value::Object(mut extra)), false) => {
                extra.extend(others);
                Value::Object(extra)
            }
            (Some(extra), false) => json!({"extra": extra, "others": others}),
            (None, false) => Value::Object(others),
        };
        Some(Bytes::from(extra.to_string().into_bytes()))
    }

    /// The speaker, of an item that was told. An item that was learned from a text has no source in another store.
    fn speaker(&self) -> Option<Actor> {
        Some(match self.source.as_ref()?.as_str()? {
            "user" => Actor::User,
            "assistant" => Actor::Assistant,
            "tool" => Actor::Tool,
            _ => return None,
        })
    }

    /// Whether the item is of the user's memory, and the facts. `text` is the line.
    fn entries(mut self, text: &[u8]) -> Result<(bool, Vec<Entry>), String> {
        let extra = self.extra();
        let speaker = self.speaker();
        let micros = |time: Option<jiff::Timestamp>| time.map(|time| Micros(time.as_microsecond()));
        let created = micros(self.created);
        let lifespan = self.lifespan.as_deref().map(parse_lifespan).transpose();
        // An edge whose time is known is a fact of its own: an item's edges came about with the item.
        let at = micros(self.superseded_at).filter(|_| !self.id.is_empty());
        let by = if at.is_some() { std::mem::take(&mut self.superseded_by) } else { Vec::new() };
        let confidence = confidence_hundredths(self.confirmed.unwrap_or(0.8));
        let mut entries = Vec::new();
        // Without an id, equal lines are one item.
        let id = self.id.clone();
        let origin = if id.is_empty() {
            format!("memory:line:{}", String::from_utf8_lossy(text.trim_ascii()))
        } else {
            format!("memory:{id}")
        };
        let is_permanent = lifespan.as_ref().is_ok_and(|lifespan| *lifespan == Some(Lifespan::Permanent));
        if self.kind == MemoryKind::Preference && self.key.as_deref().unwrap_or_default().trim().is_empty() {
            return Err("a preference needs a key".to_owned());
        }
        let memory = MemoryEntry {
            id: self.id,
            kind: self.kind,
            category: self.category,
            key: self.key,
            subject: self.subject,
            value: (self.value.filter(|value| !value.trim().is_empty()))
                .ok_or("it has no value: what was erased cannot be imported")?,
            rationale: self.rationale,
            alternatives: self.alternatives,
            related_files: self.related_files,
            confidence: confidence.map_err(|error| error.to_string())?,
            lifespan: lifespan.map_err(|error| error.to_string())?,
            created,
            source: None,
            replaces: self.supersedes,
            superseded_by: self.superseded_by,
            status: self.status,
            extra,
        };
        let mut entry = Entry::from(Fact::Memory(memory)).origin(origin).at(created);
        entry.actor = speaker;
        entries.push(entry);
        for new in by {
            let origin = format!("memory:{id}:superseded:{new}");
            let fact = fact::MemorySuperseded { old: id.clone(), new, reason: None };
            entries.push(Entry::from(fact).origin(origin).at(at));
        }
        // Without an id, no further fact can refer to the item.
        if let Some(at) = micros(self.reinforced).filter(|_| !id.is_empty()) {
            // The confidence already includes the gain; this fact tells the confirmation and its time.
            let fact = fact::MemoryReinforced { id: id.clone(), amount: 0, at: Some(at) };
            entries.push(Entry::from(fact).origin(format!("memory:{id}:reinforced")).at(Some(at)));
        }
        if self.standing.as_deref() == Some("retracted") && !id.is_empty() {
            let fact = fact::MemoryRetracted { id: id.clone(), reason: None, at: None };
            entries.push(Entry::from(fact).origin(format!("memory:{id}:retracted")));
        }
        Ok((is_permanent, entries))
    }
}

/// Whether a line has this program's schema, or a kind, as lines written by hand have.
fn is_own(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct KindColumn {
        kind: Option<Value>,
    }
    let schema = ITEM_SCHEMA.as_bytes();
    line.windows(schema.len()).any(|window| window == schema)
        || serde_json::from_slice::<KindColumn>(line).is_ok_and(|line| line.kind.is_some())
}

pub(crate) fn import(
    global: &Global,
    project: Option<&str>,
    args: &MemoryImport,
    output: &mut Output,
) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let name = args.file.display().to_string();
    let failed = super::policy_file::unread(&name);
    let stem = args.file.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().unwrap_or_default().to_owned();
    let project = project.map_or(stem, str::to_owned);
    let stream = StreamInfo::project(&project);
    let mut file = BufReader::new(File::open(&args.file).map_err(&failed)?);
    // The bytes that were read to find the file's format: a pipe gives them only once.
    let mut begun = Vec::new();
    let mut start = 0;
    while begun.get(start..).unwrap_or_default().trim_ascii().is_empty() {
        start = begun.len();
        if file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut begun).map_err(&failed)? == 0 {
            break;
        }
    }
    let is_own = is_own(begun.get(start..).unwrap_or_default());
    let mut input = begun.as_slice().chain(file);
    let (added, known, skipped) = if is_own {
        own(global, &mut input, (stream, &project), output).map_err(|error| match error {
            OwnError::File(error) => failed(error),
            OwnError::Failure(failure) => failure,
        })?
    } else if args.file.is_file() {
        foreign(global, &args.file, stream, output)?
    } else {
        // A format is recognised by looking at a file more than once.
        let kept = reader::kept(&mut input).map_err(&failed)?;
        foreign(global, kept.path(), stream, output)?
    };
    if output.json {
        output.json_line(&json!({
            "schema": "acpdb.memory_import/1", "project": project, "events": added, "known": known, "skipped": skipped,
        }))?;
    } else {
        let was = if known > 0 { format!(", {known} known already") } else { String::new() };
        let text = format!("{} recorded in project {project}{was}", describe::count(added, "event"));
        output.line(crate::output::escape(&text, crate::output::EscapeLevel::Line))?;
    }
    Ok(if skipped > 0 { Code::Partial } else { Code::Ok })
}

enum OwnError {
    File(std::io::Error),
    Failure(Failure),
}

impl<F: Into<Failure>> From<F> for OwnError {
    fn from(failure: F) -> Self {
        Self::Failure(failure.into())
    }
}

/// Reads an export. All of it is checked before any line is recorded.
fn own(
    global: &Global,
    input: &mut impl BufRead,
    (stream, project): (StreamInfo, &str),
    output: &mut Output,
) -> Result<(u64, u64, u64), OwnError> {
    let (mut entries, mut permanent) = (Vec::new(), Vec::new());
    let mut values = Values::default();
    let mut skipped = 0;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = input.by_ref().take(LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut line).map_err(OwnError::File)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let parsed = serde_json::from_slice::<MemoryLine>(&line).map_err(|error| error.to_string());
        // A line that cannot be read is told of below.
        if let Ok(parsed) = &parsed {
            values.see(parsed);
        }
        match parsed.and_then(|parsed| parsed.entries(&line)) {
            Ok((true, more)) => permanent.extend(more),
            Ok((false, more)) => entries.extend(more),
            Err(message) => {
                skipped += 1;
                output.warn(format!("line {number} was not recorded: {message}"));
            }
        }
    }
    let store = store_path::open(global, output)?;
    let mut batches = vec![Batch { stream, entries }];
    if !permanent.is_empty() {
        batches.push(Batch { stream: StreamInfo::user(), entries: permanent });
    }
    let receipt = store.commit(&batches, Atomicity::Split).map_err(Failure::from)?;
    let restored =
        if receipt.event_count > 0 { values.restore(&store, &MemoryScope::project(project))? } else { 0 };
    Ok((receipt.event_count + restored, receipt.known_count, skipped))
}

/// The values of keys in a file. Of several that are current, the one holds that was restored; the newest is only shadowed.
#[derive(Default)]
struct Values {
    ids: BTreeSet<String>,
    /// Categories and keys that have a shadowed value.
    shadowed: BTreeSet<(String, String)>,
    /// The values that hold.
    current: Vec<((String, String), String)>,
}

impl Values {
    fn see(&mut self, line: &MemoryLine) {
        self.ids.insert(line.id.clone());
        let Some(key) = line.key.clone().filter(|_| line.kind == MemoryKind::Preference) else { return };
        let place = (line.category.clone(), key);
        if line.shadowed {
            self.shadowed.insert(place);
        } else if line.standing.as_deref() == Some("current") {
            self.current.push((place, line.id.clone()));
        }
    }

    /// Restores the values that held before a newer one of the file; returns the number of events.
    fn restore(self, store: &Store, scope: &MemoryScope) -> Result<u64, Failure> {
        let mut restored = 0;
        for (_, id) in self.current.iter().filter(|(place, _)| self.shadowed.contains(place)) {
            let rows = acpdb_query::memory::rows(store, &store.memory(scope, store.head()?)?, store.now());
            let row = rows.iter().rev().find(|row| row.id == *id && row.standing == MemoryStatus::Superseded);
            // A value that is not of the file took its place here: it stays.
            if let Some(row) = row.filter(|row| row.superseded_by.iter().all(|by| self.ids.contains(by))) {
                // The answer counts events, and names no items.
                let _ = store.remember(scope, &MemoryCommand::Restore { item: MemoryRef::Item(row.item) })?;
                restored += 1;
            }
        }
        Ok(restored)
    }
}

/// Reads a file of another program.
fn foreign(
    global: &Global,
    path: &Path,
    stream: StreamInfo,
    output: &mut Output,
) -> Result<(u64, u64, u64), Failure> {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let candidate = ImportFile { path: path.to_owned(), bytes, named: true };
    let format =
        match reader::recognise(&candidate, FileChoice { with_memory: true, ..FileChoice::sessions(None) }) {
            Recognised::Session(
                format @ (ImportFormat::MemoryDecisions | ImportFormat::MemoryPreferences),
            ) => format,
            Recognised::Session(format) => {
                let failure = Failure::usage(format!("{} is a {format} session, not memory", path.display()));
                return Err(failure.hint("acpdb import reads sessions"));
            }
            Recognised::Skipped(file) => {
                return Err(Failure::usage(format!("{}: {}", path.display(), file.reason)));
            }
            Recognised::Other => {
                return Err(Failure::usage(format!("{} holds no memory items", path.display())));
            }
        };
    let store = store_path::open(global, output)?;
    let options = ImportOptions { memory: Some(stream), ..ImportOptions::default() };
    let report = reader::read(&store, path, format, &options, &mut |_| {}).map_err(|error| match error {
        reader::ReadError::File(error) => Failure::io("read", path.display())(error),
        reader::ReadError::Import { error, .. } => {
            Failure::new(Code::Failure, format!("{}: {error}", path.display()))
        }
        reader::ReadError::Store(error) => error.into(),
    })?;
    let found = &report.report;
    let mut skipped = 0;
    for note in found.skipped.iter().chain(&found.kept_raw).chain(&found.cut) {
        skipped += 1;
        output.warn(format!("line {} was not recorded as memory: {}", note.line, note.reason));
    }
    if found.notes_left_out > 0 {
        output.warn(format!("{} further lines were not recorded as memory", found.notes_left_out));
    }
    Ok((report.event_count, report.known_count, skipped + found.notes_left_out))
}
