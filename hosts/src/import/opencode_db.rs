//! opencode's database: each session as the document that an export of it is.
//!
//! ```text
//! table session            id, project_id, parent_id, directory, title, version, time_created   -> info
//! table message            id, session_id, time_created, data                                  -> messages[].info
//! table part               id, message_id, session_id, data                                    -> messages[].parts[]
//! table event              id, aggregate_id, seq, type, data      -> states of parts that are no longer there (see `states`)
//! table session_v2         as session, of version 2
//! table session_message    id, session_id, type, seq, data        -> messages of version 2 (see `next`)
//! ```
//!
//! `data` is the record without its ids, as the host wrote it. So an export and the database give the same facts, but for
//! white space. A version of a table that lacks one of these columns is named, and the rest imported; tables that are not
//! known are named, too. A row that holds no JSON object is kept as it is (see `broken`), and rows without an owner are
//! counted.
//!
//! Rows are found in one pass over each table, which keeps their ids and their places (see `group`), and reads no `data`;
//! their texts are read message by message. When a database is read again, only sessions with a changed row are read: a row
//! has changed if its time of change or its length has.

pub(super) mod broken;
pub(super) mod group;
mod next;
mod states;

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash as _, Hasher as _};

use super::report::Admitted;
use super::values::{JsonSpan, Shape, ValueReader};
use super::{ImportContext, ImportError, ImportOptions, ImportReport, Sink, json, opencode};
use crate::import::ImportFormat;
use crate::is_among;
use crate::sqlite::{self, Database, Source, Table, Unreadable};
use broken::Broken;
use group::{ColumnNames, OwnedRow, OwnerRows};

/// How often a database is read again because its host wrote meanwhile.
const TRIES: usize = 3;

/// Tables that are known, and hold nothing of a session that is not read elsewhere.
const KNOWN_TABLES: &str = "
    session message part event session_v2 session_message event_sequence session_input
    session_context_epoch session_share todo project project_directory workspace permission account
    account_state control_account credential migration data_migration __drizzle_migrations";

/// Marks of a database's sessions, as they were when they were read last.
#[derive(Debug, Default)]
pub struct ReadSessions(HashMap<String, u64>);

/// Whether a database is opencode's.
///
/// # Errors
/// If it cannot be read.
pub fn is_opencode(file: &dyn Source, log: Option<&dyn Source>) -> Result<bool, Unreadable> {
    let tables = Database::open(file, log)?.tables()?;
    let has = |names: &[&str]| names.iter().all(|name| tables.iter().any(|table| table.name == *name));
    Ok(has(&["session", "message", "part"]) || has(&["session_v2", "session_message"]))
}

/// The ids of the sessions of which a database has messages.
///
/// # Errors
/// If it cannot be read, or is of another program.
pub fn session_ids(
    file: &dyn Source,
    log: Option<&dyn Source>,
) -> Result<std::collections::BTreeSet<String>, Unreadable> {
    let rows = SessionRows::of(&Database::open(file, log)?)?;
    let has_messages =
        |id: &&String| !rows.messages.of(id).is_empty() || !rows.next_messages.of(id).is_empty();
    Ok(rows.sessions.keys().filter(has_messages).cloned().collect())
}

/// Imports a database, with its write-ahead log if there is one. Neither is locked or changed.
///
/// # Errors
/// It cannot be read, is of another program, or the sink stopped.
pub fn read_database(
    file: &dyn Source,
    log: Option<&dyn Source>,
    name: &str,
    options: &ImportOptions,
    sink: &mut dyn Sink,
) -> Result<ImportReport, ImportError> {
    read_changed(file, log, name, options, &mut ReadSessions::default(), sink)
}

/// As [`read_database`], without the sessions that are as they were when `read` was filled. The report counts those that were
/// read.
///
/// # Errors
/// As [`read_database`].
pub fn read_changed(
    file: &dyn Source,
    log: Option<&dyn Source>,
    name: &str,
    options: &ImportOptions,
    read: &mut ReadSessions,
    sink: &mut dyn Sink,
) -> Result<ImportReport, ImportError> {
    let mut context = ImportContext::new(ImportFormat::Opencode, name, options, sink);
    let mut tries = 0;
    let (database, rows, is_still) = loop {
        tries += 1;
        let database = Database::open(file, log).map_err(unreadable)?;
        let rows = SessionRows::of(&database);
        // Rows that were found while the host wrote may be half of a change.
        let is_still = database.is_unmoved().map_err(|error| unreadable(error.into()))?;
        if is_still || tries == TRIES {
            break (database, rows.map_err(unreadable)?, is_still);
        }
    };
    context.report.unknown_tables.clone_from(&rows.unknown);
    for missing in &rows.missing {
        context.report.keep_raw(0, 0, missing.clone());
    }
    // While a database is written to, a row and its owner may be found on both sides of a change.
    if is_still {
        rows.count_strays(&mut context.report);
    }
    // Calls name the sessions that they start.
    let is_child = |info: &str| json::member(Some(info), "parentID").is_some();
    let (children, others): (Vec<_>, Vec<_>) = rows.sessions.iter().partition(|(_, info)| is_child(info));
    for (id, session) in others.into_iter().chain(children) {
        let mark = rows.mark(id, session);
        if read.0.get(id) == Some(&mark) {
            continue;
        }
        let (session, end) = rows.import(&database, id, session, &mut context)?;
        // The document names all its records: told again with each of them, it would outgrow them. Once is enough to put an
        // export together; the records that came since are there by their own ids.
        if read.0.insert(id.clone(), mark).is_none() {
            session.close(end, &mut context)?;
        }
        context.part_ends();
    }
    Ok(context.finish())
}

fn unreadable(why: Unreadable) -> ImportError {
    match why {
        Unreadable::Io(source) => ImportError::Io { offset: 0, source },
        Unreadable::Foreign(reason) | Unreadable::Damaged { what: reason, .. } => {
            ImportError::OtherFormat { format: ImportFormat::Opencode, line: 1, offset: 0, reason }
        }
    }
}

const MESSAGE: ColumnNames = ColumnNames {
    table: "message",
    owner: "session_id",
    order: "time_created",
    changed: "time_updated",
    has_ids: true,
    kinds: &[],
};
const PART: ColumnNames = ColumnNames {
    table: "part",
    owner: "message_id",
    order: "",
    changed: "time_updated",
    has_ids: true,
    kinds: &[],
};
const EVENT: ColumnNames = ColumnNames {
    table: "event",
    owner: "aggregate_id",
    order: "seq",
    changed: "seq",
    has_ids: false,
    kinds: states::KINDS,
};
const NEXT_MESSAGE: ColumnNames = ColumnNames {
    table: "session_message",
    owner: "session_id",
    order: "seq",
    changed: "time_updated",
    has_ids: true,
    kinds: &[],
};

/// The places of sessions' rows.
#[derive(Debug, Default)]
struct SessionRows {
    /// Each session's info as JSON, by its id.
    sessions: BTreeMap<String, String>,
    messages: OwnerRows,
    parts: OwnerRows,
    events: OwnerRows,
    next_messages: OwnerRows,
    unknown: std::collections::BTreeSet<String>,
    /// Tables that lack columns, in words.
    missing: Vec<String>,
}

fn text(row: &[sqlite::SqlValue], place: Option<usize>) -> Option<&str> {
    row.get(place?)?.text()
}

fn integer(row: &[sqlite::SqlValue], place: Option<usize>) -> Option<i64> {
    row.get(place?)?.integer()
}

impl SessionRows {
    fn of(database: &Database<'_>) -> Result<Self, Unreadable> {
        let tables = database.tables()?;
        let mut rows = Self::default();
        for table in &tables {
            let is_known = is_among(KNOWN_TABLES, &table.name) || table.name.starts_with("sqlite_");
            if !is_known && rows.unknown.len() < 100 {
                rows.unknown.insert(table.name.chars().take(64).collect());
            }
            if matches!(table.name.as_str(), "session" | "session_v2") {
                sessions(database, table, &mut rows.sessions)?;
            }
        }
        rows.messages = rows.group(database, &tables, &MESSAGE)?;
        rows.parts = rows.group(database, &tables, &PART)?;
        rows.events = rows.group(database, &tables, &EVENT)?;
        rows.next_messages = rows.group(database, &tables, &NEXT_MESSAGE)?;
        if rows.messages.table().is_none() && rows.next_messages.table().is_none() {
            return Err(Unreadable::Foreign("it has no table of opencode's that holds messages"));
        }
        Ok(rows)
    }

    /// The rows of a table. A table that is not there, or lacks a column, has none; a lack of columns is noted.
    fn group(
        &mut self,
        database: &Database<'_>,
        tables: &[Table],
        names: &ColumnNames,
    ) -> Result<OwnerRows, Unreadable> {
        let Some(table) = tables.iter().find(|table| table.name == names.table) else {
            return Ok(OwnerRows::default());
        };
        let group = OwnerRows::read(database, table, names)?;
        if group.is_none() {
            let name = names.table;
            self.missing
                .push(format!("table {name} has not the columns that it is read by; its rows are left out"));
        }
        Ok(group.unwrap_or_default())
    }

    /// A number that differs if any row of a session does.
    fn mark(&self, id: &str, info: &str) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        info.hash(&mut hasher);
        for group in [&self.messages, &self.next_messages, &self.events] {
            group.hash_of(id, &mut hasher);
        }
        for message in self.messages.of(id) {
            self.parts.hash_of(self.messages.id(message), &mut hasher);
        }
        hasher.finish()
    }

    /// Imports a session, as an export writes it, message by message.
    fn import(
        &self,
        database: &Database<'_>,
        id: &str,
        info: &str,
        context: &mut ImportContext<'_>,
    ) -> Result<(opencode::SessionReader, u64), ImportError> {
        let mut session = opencode::SessionReader::open(info, context);
        let stream = std::sync::Arc::clone(&session.stream);
        session.literal(&format!(r#"{{"info":{info},"messages":["#));
        let mut end = 0_u64;
        let mut is_first = true;
        let mut out = Vec::new();
        let mut broken = Broken::default();
        let own = self.messages.of(id).iter().map(|row| {
            let message = self.messages.id(row);
            let parts = self.parts.of(message).iter().map(|part| self.parts.id(part).to_owned());
            (message.to_owned(), Some(parts.collect()))
        });
        let next = self.next_messages.of(id).iter().map(|row| (self.next_messages.id(row).to_owned(), None));
        session.present(own.chain(next), context);
        for message in self.messages.of(id) {
            // Each row is looked at only if they make no document together.
            for is_strict in [false, true] {
                broken.begin(is_strict);
                out.clear();
                let is_there =
                    self.message(database, id, message, &mut out, &mut broken).map_err(unreadable)?;
                // Its depth and its size are looked at as those of any input.
                let mut values = ValueReader::documents(out.as_slice(), &context.options.limits);
                let value = if is_there { values.read()? } else { None };
                if !is_strict && value.is_some_and(|value| !is_one(&value, &out)) {
                    continue;
                }
                end = end.saturating_add(out.len() as u64);
                broken.hand_out(&stream, end, context)?;
                if let Some(Admitted::Text(text)) = value.map(|value| context.admit(&value)) {
                    if !std::mem::replace(&mut is_first, false) {
                        session.literal(",");
                    }
                    session.message(text, end, context)?;
                }
                break;
            }
        }
        session.literal("]}");
        next::import(self, database, id, &mut session, end, context)?;
        session.revert(context);
        states::import(self, database, id, &stream, end, context)?;
        Ok((session, end))
    }

    /// Writes a message as an export does; false if it is not there, or is broken.
    fn message(
        &self,
        database: &Database<'_>,
        id: &str,
        message: &OwnedRow,
        out: &mut Vec<u8>,
        broken: &mut Broken,
    ) -> Result<bool, Unreadable> {
        let own = self.messages.id(message);
        let Some(data) = broken.object("message", own, self.messages.data(database, message)?) else {
            // Nothing can be told of its parts without it.
            for part in self.parts.of(own) {
                broken.keep("part", self.parts.id(part), self.parts.data(database, part)?);
            }
            return Ok(false);
        };
        out.extend_from_slice(br#"{"info":"#);
        record(out, &data, &[("id", own), ("sessionID", id)]);
        out.extend_from_slice(br#","parts":["#);
        let mut first = true;
        for part in self.parts.of(own) {
            let found = self.parts.data(database, part)?;
            let Some(data) = broken.object("part", self.parts.id(part), found) else { continue };
            if !std::mem::replace(&mut first, false) {
                out.push(b',');
            }
            record(out, &data, &[("id", self.parts.id(part)), ("sessionID", id), ("messageID", own)]);
        }
        out.extend_from_slice(b"]}");
        Ok(true)
    }

    /// Notes rows that are left out, for they have no owner.
    fn count_strays(&self, report: &mut ImportReport) {
        let messages: std::collections::HashSet<&str> = self.messages.ids().collect();
        let is_session = |owner: &str| self.sessions.contains_key(owner);
        let counts = [
            ("message", self.messages.stray_counts(is_session)),
            ("part", self.parts.stray_counts(|owner| messages.contains(owner))),
            ("session_message", self.next_messages.stray_counts(is_session)),
        ];
        for (table, [unnamed, stray]) in counts {
            if unnamed > 0 {
                report.skip(
                    0,
                    0,
                    format!("table {table}: rows without an id or an owner are left out: {unnamed}"),
                );
            }
            if stray > 0 {
                report.skip(
                    0,
                    0,
                    format!("table {table}: rows whose owner is not there are left out: {stray}"),
                );
            }
        }
    }
}

/// Whether a value is all of `bytes`, or too much to tell.
fn is_one(value: &JsonSpan<'_>, bytes: &[u8]) -> bool {
    match value.shape {
        Shape::Whole | Shape::Mended(_) => value.bytes.len() == bytes.trim_ascii().len(),
        Shape::TooMuch(_) => true,
        Shape::Cut | Shape::Broken(_) => false,
    }
}

/// Adds the sessions of a table.
fn sessions(
    database: &Database<'_>,
    table: &Table,
    found: &mut BTreeMap<String, String>,
) -> Result<(), Unreadable> {
    let [id, project, parent, directory, title, version, created, updated, revert] = table.places([
        "id",
        "project_id",
        "parent_id",
        "directory",
        "title",
        "version",
        "time_created",
        "time_updated",
        "revert",
    ]);
    database.rows(table, &mut |_, row| {
        let Some(own) = text(&row, id) else { return Ok(()) };
        let mut out = b"{".to_vec();
        for (name, place) in [
            ("id", id),
            ("projectID", project),
            ("parentID", parent),
            ("directory", directory),
            ("title", title),
            ("version", version),
        ] {
            if let Some(value) = text(&row, place) {
                member(&mut out, name, value);
            }
        }
        let time = |place| integer(&row, place).unwrap_or_default();
        let times = format!(r#""time":{{"created":{},"updated":{}}}}}"#, time(created), time(updated));
        if out.len() > 1 {
            out.push(b',');
        }
        if let Some(revert) = text(&row, revert).filter(|text| json::pick(text, ["messageID"]).is_some()) {
            out.extend_from_slice(format!(r#""revert":{},"#, revert.trim()).as_bytes());
        }
        out.extend_from_slice(times.as_bytes());
        found.insert(own.to_owned(), String::from_utf8(out).unwrap_or_default());
        Ok(())
    })
}

/// Writes a member with a text.
fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    json::quote(out, name);
    out.push(b':');
    json::quote(out, value);
}

/// Writes an object with these members before its own.
pub(super) fn record(out: &mut Vec<u8>, data: &str, ids: &[(&str, &str)]) {
    out.push(b'{');
    for (name, value) in ids {
        member(out, name, value);
    }
    let data = data.trim();
    let rest = data.get(1..).unwrap_or("}");
    if !rest.trim_start().starts_with('}') {
        out.push(b',');
    }
    out.extend_from_slice(rest.as_bytes());
}
