//! `acpdb export sqlite`: sessions, turns, items, states and edges as tables.
//!
//! The database is made anew, in one transaction and without a journal: it is a file under a temporary name until it is
//! whole.

use std::path::Path;

use acpdb_engine::store::SessionSummary;
use acpdb_query::export::ExportError;
use acpdb_query::export::tables::{ItemRecord, Sink, TurnRecord};
use rusqlite::{Connection, params};
use serde::Serialize;

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

/// A database in the making.
pub(super) struct Database {
    connection: Connection,
    stream: String,
}

fn failed(error: rusqlite::Error) -> ExportError {
    ExportError::Write(std::io::Error::other(error))
}

/// The name that a plain variant has in JSON.
fn word(value: &impl Serialize) -> Option<String> {
    // Plain variants can always be written.
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// SQLite counts to 2^63.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
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

    fn insert(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), ExportError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        statement.execute(values).map(|_| ()).map_err(failed)
    }
}

impl Sink for Database {
    fn session(&mut self, session: &SessionSummary, turns: &[TurnRecord]) -> Result<(), ExportError> {
        self.stream = session.name.id.to_hex();
        let name = &session.name;
        self.insert(
            "insert into sessions values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            params![
                self.stream,
                name.name,
                name.host,
                name.title,
                session.project,
                name.parent.map(|parent| parent.to_hex()),
                name.began.map(acpdb_engine::ids::Micros::get),
                session.ended.map(acpdb_engine::ids::Micros::get),
                session.turns.get(),
                session.prompts,
                number(session.calls),
                number(session.superseded),
                number(session.tokens),
                number(session.tokens_shown),
                number(session.tokens_freed),
            ],
        )?;
        for turn in turns {
            self.insert(
                "insert or replace into turns values (?,?,?,?,?,?)",
                params![
                    self.stream,
                    turn.turn,
                    number(turn.seq.get()),
                    number(turn.tokens_shown),
                    number(turn.tokens_whole),
                    number(turn.tokens_recorded),
                ],
            )?;
        }
        Ok(())
    }

    fn item(&mut self, item: &ItemRecord) -> Result<(), ExportError> {
        let row = &item.row;
        self.insert(
            "insert into items values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            params![
                self.stream,
                row.item,
                number(row.seq.get()),
                row.turn,
                word(&row.kind),
                word(&row.role),
                row.tool,
                row.call,
                row.hash,
                word(&row.status),
                serde_json::to_string(&row.keys)?,
                item.time.get(),
                item.finished_time.map(acpdb_engine::ids::Micros::get),
                word(&row.state),
                row.cause,
                row.rule.map(acpdb_engine::fold::RuleKind::label),
                row.superseded_by,
                row.in_context,
                row.pinned,
                number(row.tokens),
                number(row.tokens_shown),
                item.reason,
                item.input,
                item.output,
                item.problem,
            ],
        )?;
        for state in &item.states {
            self.insert(
                "insert into states values (?,?,?,?,?,?,?,?)",
                params![
                    self.stream,
                    row.item,
                    number(state.seq.get()),
                    state.in_context,
                    word(&state.input),
                    word(&state.output),
                    state.cause,
                    number(state.tokens_shown),
                ],
            )?;
        }
        for edge in &item.edges {
            self.insert(
                "insert into edges values (?,?,?,?,?,?,?,?,?)",
                params![
                    self.stream,
                    edge.old,
                    edge.new,
                    edge.rule.label(),
                    edge.key,
                    number(edge.seq.get()),
                    edge.turn,
                    edge.released,
                    number(edge.tokens_freed),
                ],
            )?;
        }
        Ok(())
    }
}
