//! opencode's database: each session as the document that an export of it is.
//!
//! ```text
//! table session    id, project_id, parent_id, directory, title, version, time_created   -> info
//! table message    id, session_id, time_created, data                                  -> messages[].info
//! table part       id, message_id, session_id, data                                    -> messages[].parts[]
//! ```
//!
//! `data` is the record without its ids, as the host wrote it. So an export and the database give the same facts, but for
//! white space. A version of a table that lacks one of these columns is named, and the rest imported.
//!
//! Rows are found in one pass over each table, which keeps their ids; their texts are read session by session.

use std::collections::BTreeMap;

use super::{Context, ImportError, ImportReport, Options, Sink, json, opencode};
use crate::import::Format;
use crate::sqlite::{Database, Source, Table, Unreadable, Value};

/// How often a database is read again because its host wrote meanwhile.
const TRIES: usize = 3;

/// Whether a database is opencode's.
///
/// # Errors
/// If it cannot be read.
pub fn is_opencode(file: &dyn Source, log: Option<&dyn Source>) -> Result<bool, Unreadable> {
    let tables = Database::open(file, log)?.tables()?;
    Ok(["session", "message", "part"].iter().all(|name| tables.iter().any(|table| table.name == *name)))
}

/// Imports a database, with its write-ahead log if there is one. Neither is locked or changed.
///
/// # Errors
/// It cannot be read, is of another program, or the sink stopped.
pub fn read_database(
    file: &dyn Source,
    log: Option<&dyn Source>,
    name: &str,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<ImportReport, ImportError> {
    let mut context =
        Context { name, options, sink, report: ImportReport::new(Format::Opencode), offset: 0, facts: 0 };
    let mut tries = 0;
    let (database, rows) = loop {
        tries += 1;
        let database = Database::open(file, log).map_err(unreadable)?;
        let rows = Rows::of(&database);
        // What was found while the host wrote may be half of it.
        let is_still = database.is_unmoved().map_err(|error| unreadable(error.into()))?;
        if is_still || tries == TRIES {
            break (database, rows.map_err(unreadable)?);
        }
    };
    for (id, session) in &rows.sessions {
        let document = rows.document(&database, id, session).map_err(unreadable)?;
        opencode::read(Box::new(document.as_slice()), &mut context)?;
    }
    Ok(context.report)
}

fn unreadable(why: Unreadable) -> ImportError {
    match why {
        Unreadable::Io(source) => ImportError::Io { offset: 0, source },
        Unreadable::Foreign(reason) | Unreadable::Damaged { what: reason, .. } => {
            ImportError::OtherFormat { format: Format::Opencode, line: 1, offset: 0, reason }
        }
    }
}

/// A message: when it came, its id, its row.
type MessageRow = (i64, String, i64);

/// Where the rows of sessions are.
struct Rows {
    message: Columns,
    part: Columns,
    /// What a session's info says, as JSON, by its id.
    sessions: BTreeMap<String, String>,
    messages: BTreeMap<String, Vec<MessageRow>>,
    /// Ids and rows of parts, by the message.
    parts: BTreeMap<String, Vec<(String, i64)>>,
}

/// A table of records, and where its `data` is.
struct Columns {
    table: Table,
    data: usize,
}

impl Columns {
    fn of(table: &Table) -> Result<Self, Unreadable> {
        let [data] = table.places(["data"]);
        let data = data.ok_or(Unreadable::Foreign("a table of opencode's has no column data"))?;
        Ok(Self { table: table.clone(), data })
    }
}

fn text(row: &[Value], place: Option<usize>) -> Option<&str> {
    row.get(place?)?.text()
}

fn integer(row: &[Value], place: Option<usize>) -> Option<i64> {
    row.get(place?)?.integer()
}

impl Rows {
    fn of(database: &Database<'_>) -> Result<Self, Unreadable> {
        let tables = database.tables()?;
        let table = |name: &str| {
            let found = tables.iter().find(|table| table.name == name);
            found.ok_or(Unreadable::Foreign("it lacks one of the tables session, message and part"))
        };
        let (session, message, part) = (table("session")?, table("message")?, table("part")?);
        let mut rows = Self {
            message: Columns::of(message)?,
            part: Columns::of(part)?,
            sessions: BTreeMap::new(),
            messages: BTreeMap::new(),
            parts: BTreeMap::new(),
        };
        let [id, project, parent, directory, title, version, created, updated] = session.places([
            "id",
            "project_id",
            "parent_id",
            "directory",
            "title",
            "version",
            "time_created",
            "time_updated",
        ]);
        database.rows(session, &mut |_, row| {
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
            out.extend_from_slice(times.as_bytes());
            rows.sessions.insert(own.to_owned(), String::from_utf8(out).unwrap_or_default());
            Ok(())
        })?;
        let [id, of, created] = message.places(["id", "session_id", "time_created"]);
        database.rows(message, &mut |row_id, row| {
            if let (Some(own), Some(of)) = (text(&row, id), text(&row, of)) {
                let at = integer(&row, created).unwrap_or_default();
                rows.messages.entry(of.to_owned()).or_default().push((at, own.to_owned(), row_id));
            }
            Ok(())
        })?;
        let [id, of] = part.places(["id", "message_id"]);
        database.rows(part, &mut |row_id, row| {
            if let (Some(own), Some(of)) = (text(&row, id), text(&row, of)) {
                rows.parts.entry(of.to_owned()).or_default().push((own.to_owned(), row_id));
            }
            Ok(())
        })?;
        rows.messages.values_mut().for_each(|list| list.sort());
        rows.parts.values_mut().for_each(|list| list.sort());
        Ok(rows)
    }

    /// A session as an export writes it.
    fn document(&self, database: &Database<'_>, id: &str, info: &str) -> Result<Vec<u8>, Unreadable> {
        let mut out = format!(r#"{{"info":{info},"messages":["#).into_bytes();
        let messages = self.messages.get(id).map(Vec::as_slice).unwrap_or_default();
        let mut first = true;
        for (_, message, row) in messages {
            let Some(data) = data(database, &self.message, *row)? else { continue };
            if !std::mem::replace(&mut first, false) {
                out.push(b',');
            }
            out.extend_from_slice(br#"{"info":"#);
            record(&mut out, &data, &[("id", message), ("sessionID", id)]);
            out.extend_from_slice(br#","parts":["#);
            let parts = self.parts.get(message).map(Vec::as_slice).unwrap_or_default();
            let mut first = true;
            for (part, row) in parts {
                let Some(data) = self::data(database, &self.part, *row)? else { continue };
                if !std::mem::replace(&mut first, false) {
                    out.push(b',');
                }
                record(&mut out, &data, &[("id", part), ("sessionID", id), ("messageID", message)]);
            }
            out.extend_from_slice(b"]}");
        }
        out.extend_from_slice(b"]}");
        Ok(out)
    }
}

/// What a row holds, if it is a JSON object and still there.
fn data(database: &Database<'_>, columns: &Columns, row: i64) -> Result<Option<String>, Unreadable> {
    let found = database.row(&columns.table, row)?.unwrap_or_default();
    let data = text(&found, Some(columns.data)).map(str::trim).filter(|data| json::members(data).is_some());
    Ok(data.map(str::to_owned))
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
fn record(out: &mut Vec<u8>, data: &str, ids: &[(&str, &str)]) {
    out.push(b'{');
    for (name, value) in ids {
        member(out, name, value);
    }
    let rest = data.get(1..).unwrap_or("}");
    if !rest.trim_start().starts_with('}') {
        out.push(b',');
    }
    out.extend_from_slice(rest.as_bytes());
}
