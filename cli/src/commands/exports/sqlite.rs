//! `acpdb export sqlite`: sessions, turns, items, states and edges as tables.
//!
//! The database is made anew, in one transaction and without a journal: it is a file under a temporary name until it is
//! whole.

use std::path::Path;

use acpdb_engine::store::SessionSummary;
use acpdb_query::export::ExportError;
use acpdb_query::export::tables::{ItemRecord, Sink, TurnRecord};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};
use serde::Serialize;
use serde_json::Value;

const SCHEMA: &str = "
pragma journal_mode = off;
pragma synchronous = off;
pragma user_version = 1;
begin;
create table sessions (stream text primary key, id text, host text, title text, project text, parent text, began_us integer,
  ended_us integer, turns integer, prompts integer, calls integer, superseded integer, tokens integer, tokens_shown integer,
  tokens_freed integer);
create table turns (stream text, turn integer, seq integer, tokens_shown integer, tokens_whole integer, tokens_recorded integer,
  primary key (stream, turn));
create table items (stream text, item text, seq integer, turn integer, kind text, role text, tool text, call text, hash text,
  status text, keys text, time_us integer, finished_us integer, state text, cause text, rule text, superseded_by text,
  in_context integer, pinned integer, tokens integer, tokens_shown integer, reason text, input text, output text, problem text,
  primary key (stream, item));
create table states (stream text, item text, seq integer, in_context integer, input text, output text, cause text,
  tokens_shown integer);
create table edges (stream text, old text, new text, rule text, key text, seq integer, turn integer, released integer,
  tokens_freed integer);
";

const INDEXES: &str = "
create index items_by_tool on items (tool);
create index states_by_item on states (stream, item, seq);
create index edges_by_old on edges (stream, old);
create index edges_by_new on edges (stream, new);
commit;
";

/// Columns of a session behind its stream, by the names that its values have in JSON; so below.
const SESSION: &str = "
    id host title project parent began ended turns prompts calls superseded tokens tokens_shown
    tokens_freed";
const TURN: &str = "turn seq tokens_shown tokens_whole tokens_recorded";
const ITEM: &str = "
    item seq turn kind role tool call hash status keys time finished_time state cause rule superseded_by
    in_context pinned tokens tokens_shown reason input output problem";
/// Behind stream and item.
const STATE: &str = "seq in_context input output cause tokens_shown";
const EDGE: &str = "old new rule key seq turn released tokens_freed";

/// A database in the making.
pub(super) struct Database {
    connection: Connection,
    stream: String,
}

fn failed(error: rusqlite::Error) -> ExportError {
    ExportError::Write(std::io::Error::other(error))
}

/// A value of JSON as the database keeps it, which counts to 2^63.
fn cell(value: Option<&Value>) -> Cell {
    match value {
        None | Some(Value::Null) => Cell::Null,
        Some(Value::Bool(is_so)) => Cell::Integer(i64::from(*is_so)),
        Some(Value::Number(number)) => Cell::Integer(number.as_i64().unwrap_or(i64::MAX)),
        Some(Value::String(text)) => Cell::Text(text.clone()),
        Some(list) => Cell::Text(list.to_string()),
    }
}

impl Database {
    /// Makes the tables in an empty file.
    pub(super) fn create(path: &Path) -> Result<Self, ExportError> {
        let connection = Connection::open(path).map_err(failed)?;
        connection.execute_batch(SCHEMA).map_err(failed)?;
        Ok(Self { connection, stream: String::new() })
    }

    /// Adds the indexes and closes the file.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        self.connection.execute_batch(INDEXES).map_err(failed)?;
        self.connection.close().map_err(|(_, error)| failed(error))
    }

    /// Adds a row: the stream, what else comes first, and these columns of a record.
    fn insert(
        &self,
        into: &str,
        first: Option<&str>,
        columns: &str,
        record: &impl Serialize,
    ) -> Result<(), ExportError> {
        let record = serde_json::to_value(record)?;
        let first =
            std::iter::once(self.stream.as_str()).chain(first).map(|text| Cell::Text(text.to_owned()));
        let row: Vec<Cell> =
            first.chain(columns.split_whitespace().map(|name| cell(record.get(name)))).collect();
        let sql = format!("{into} values ({})", vec!["?"; row.len()].join(","));
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        statement.execute(params_from_iter(row)).map(|_| ()).map_err(failed)
    }
}

impl Sink for Database {
    fn session(&mut self, session: &SessionSummary, turns: &[TurnRecord]) -> Result<(), ExportError> {
        self.stream = session.name.id.to_hex();
        self.insert("insert into sessions", None, SESSION, session)?;
        turns.iter().try_for_each(|turn| self.insert("insert or replace into turns", None, TURN, turn))
    }

    fn item(&mut self, item: &ItemRecord) -> Result<(), ExportError> {
        self.insert("insert into items", None, ITEM, item)?;
        for state in &item.states {
            self.insert("insert into states", Some(&item.row.item), STATE, state)?;
        }
        item.edges.iter().try_for_each(|edge| self.insert("insert into edges", None, EDGE, edge))
    }
}
