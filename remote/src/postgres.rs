//! Objects as rows of a table of Postgres, for hosts that run one anyway.
//!
//! ```text
//! create   INSERT .. ON CONFLICT DO NOTHING      no row: taken
//! swap     UPDATE .. WHERE tag = ..              no row: moved
//! ```
//!
//! A tag is drawn from a sequence for each content, so no two contents have the same. Each call is one statement, which is committed alone and waits for the
//! disk. A connection that fails leaves its call in doubt; the next call makes another one.

mod place;
mod settings;

use std::io::Read;
use std::ops::Range;
use std::sync::Mutex;

use acpdb_engine::locks::steady;
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Row};

pub use self::place::PostgresPlace;
pub use self::settings::PostgresSettings;
use crate::remote::{
    Created, LISTED_COUNT_MAX, ListedObject, ObjectTag, Remote, RemoteError, Swapped, is_key, read_exactly,
};

/// Most connections that are kept open while none is needed.
const IDLE_COUNT_MAX: usize = 8;
/// Longest object: a value has at most 1 GiB, and so has a message.
const OBJECT_BYTES_MAX: usize = (1 << 30) - (1 << 20);
/// Bytes are stored as they are: they are packed, or encrypted, already.
const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS acpdb_objects (
        prefix text COLLATE \"C\" NOT NULL,
        key text COLLATE \"C\" NOT NULL,
        tag bigserial NOT NULL,
        bytes bytea STORAGE EXTERNAL NOT NULL,
        PRIMARY KEY (prefix, key)
    )";

/// Objects below a prefix of a database.
pub struct PostgresRemote {
    place: PostgresPlace,
    settings: PostgresSettings,
    idle: Mutex<Vec<Client>>,
}

impl std::fmt::Debug for PostgresRemote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresRemote").field("place", &self.place).finish_non_exhaustive()
    }
}

impl PostgresRemote {
    /// Objects of a place, by the settings of the user. Makes no connection.
    pub fn new(place: PostgresPlace, settings: PostgresSettings) -> Self {
        Self { place, settings, idle: Mutex::default() }
    }

    /// A connection that is ready, for one call.
    fn client(&self) -> Result<Client, RemoteError> {
        loop {
            let kept = steady(&self.idle).pop();
            match kept {
                Some(client) if client.is_closed() => {}
                Some(client) => return Ok(client),
                None => return self.connected(),
            }
        }
    }

    fn connected(&self) -> Result<Client, RemoteError> {
        let failed = |error: &postgres::Error| failed("connecting", "", error);
        let mut client = self.settings.connect(&self.place)?;
        // An answer is a promise of the disk, whatever the server does for others.
        client
            .batch_execute("SET synchronous_commit = on; SET statement_timeout = '120s'")
            .map_err(|error| failed(&error))?;
        let row = client.query_one("SHOW fsync", &[]).map_err(|error| failed(&error))?;
        if row.try_get::<_, &str>(0).map_err(|error| failed(&error))? != "on" {
            return Err(RemoteError::Unable {
                what: "keep what it acknowledges: fsync is off in that database".to_owned(),
            });
        }
        Ok(client)
    }

    /// One statement. `what` and `key` name it in errors.
    fn rows(
        &self,
        (what, key): (&str, &str),
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, RemoteError> {
        let mut client = self.client()?;
        let mut done = client.query(statement, values);
        if done.as_ref().is_err_and(|error| error.code() == Some(&SqlState::UNDEFINED_TABLE)) {
            if what == "reading" || what == "listing" || what == "deleting" {
                return Ok(Vec::new());
            }
            client.batch_execute(TABLE).or_else(made_meanwhile).map_err(|error| failed(what, key, &error))?;
            done = client.query(statement, values);
        }
        let rows = done.map_err(|error| failed(what, key, &error))?;
        let mut idle = steady(&self.idle);
        if idle.len() < IDLE_COUNT_MAX {
            idle.push(client);
        }
        Ok(rows)
    }

    /// [`Self::rows`] of one object.
    fn one(
        &self,
        named: (&str, &str),
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, RemoteError> {
        if !is_key(named.1) {
            return Err(RemoteError::Refused { what: format!("the key {:?}", named.1) });
        }
        Ok(self.rows(named, statement, values)?.into_iter().next())
    }
}

impl Remote for PostgresRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        check_length(key, bytes)?;
        let statement = "INSERT INTO acpdb_objects (prefix, key, bytes) VALUES ($1, $2, $3)
            ON CONFLICT DO NOTHING RETURNING tag";
        let row = self.one(("creating", key), statement, &[&self.place.prefix(), &key, &bytes])?;
        row.map_or(Ok(Created::Taken), |row| tag_of(key, &row, 0).map(Created::Here))
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        check_length(key, bytes)?;
        // A tag of another kind of remote is none of these.
        let Ok(was) = was.0.parse::<i64>() else { return Ok(Swapped::Moved) };
        let statement = "UPDATE acpdb_objects SET bytes = $3, tag = DEFAULT
            WHERE prefix = $1 AND key = $2 AND tag = $4 RETURNING tag";
        let row = self.one(("swapping", key), statement, &[&self.place.prefix(), &key, &bytes, &was])?;
        row.map_or(Ok(Swapped::Moved), |row| tag_of(key, &row, 0).map(Swapped::Here))
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        let bytes = read_exactly(bytes, length)?;
        check_length(key, &bytes)?;
        let statement = "INSERT INTO acpdb_objects (prefix, key, bytes) VALUES ($1, $2, $3)
            ON CONFLICT (prefix, key) DO UPDATE SET bytes = $3, tag = DEFAULT RETURNING tag";
        let row = self.one(("putting", key), statement, &[&self.place.prefix(), &key, &bytes])?;
        let row = row.ok_or_else(|| RemoteError::Broken { what: format!("putting {key}: no row") })?;
        tag_of(key, &row, 0)
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        let part = |offset: u64| i32::try_from(offset).unwrap_or(i32::MAX);
        let range = range.map(|range| (part(range.start), part(range.end)));
        let row = match range {
            None => {
                let statement = "SELECT bytes, tag FROM acpdb_objects WHERE prefix = $1 AND key = $2";
                self.one(("reading", key), statement, &[&self.place.prefix(), &key])?
            }
            Some((start, end)) => {
                // An end before the start is a range of nothing.
                let count = end.saturating_sub(start).max(0);
                // Places count from 1.
                let from = start.saturating_add(1);
                let statement = "SELECT substring(bytes FROM $3 FOR $4), tag FROM acpdb_objects
                    WHERE prefix = $1 AND key = $2";
                self.one(("reading", key), statement, &[&self.place.prefix(), &key, &from, &count])?
            }
        };
        let Some(row) = row else { return Ok(None) };
        let bytes: Vec<u8> = row.try_get(0).map_err(|error| failed("reading", key, &error))?;
        Ok(Some((bytes, tag_of(key, &row, 1)?)))
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        // No letter of a key comes behind `~`.
        let end = format!("{under}~");
        let limit = i64::try_from(LISTED_COUNT_MAX).unwrap_or(i64::MAX);
        let statement = "SELECT key, octet_length(bytes) FROM acpdb_objects
            WHERE prefix = $1 AND key >= $2 AND key > $3 AND key < $4 ORDER BY key LIMIT $5";
        let values: [&(dyn ToSql + Sync); 5] = [&self.place.prefix(), &under, &after, &end, &limit];
        let listed = |row: Row| {
            let failed = |error: postgres::Error| failed("listing", under, &error);
            let bytes: i32 = row.try_get(1).map_err(failed)?;
            Ok(ListedObject {
                key: row.try_get(0).map_err(failed)?,
                // The server says no length below 0.
                bytes: u64::try_from(bytes).unwrap_or_default(),
            })
        };
        self.rows(("listing", ""), statement, &values)?.into_iter().map(listed).collect()
    }

    fn calls_at_once(&self) -> usize {
        IDLE_COUNT_MAX
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        let statement = "DELETE FROM acpdb_objects WHERE prefix = $1 AND key = $2";
        self.one(("deleting", key), statement, &[&self.place.prefix(), &key]).map(|_| ())
    }
}

fn check_length(key: &str, bytes: &[u8]) -> Result<(), RemoteError> {
    if bytes.len() <= OBJECT_BYTES_MAX {
        return Ok(());
    }
    let what = format!("{key} has {} bytes, and {OBJECT_BYTES_MAX} fit into a row", bytes.len());
    Err(RemoteError::Broken { what })
}

fn tag_of(key: &str, row: &Row, column: usize) -> Result<ObjectTag, RemoteError> {
    let tag: i64 = row.try_get(column).map_err(|error| failed("reading", key, &error))?;
    Ok(ObjectTag(tag.to_string()))
}

/// Two callers that make the table at the same time: the second one finds it made.
fn made_meanwhile(error: postgres::Error) -> Result<(), postgres::Error> {
    let is_there = matches!(
        error.code(),
        Some(&SqlState::UNIQUE_VIOLATION | &SqlState::DUPLICATE_TABLE | &SqlState::DUPLICATE_OBJECT)
    );
    if is_there { Ok(()) } else { Err(error) }
}

/// The error of a call, by what its caller can do. The server's own words name no password.
fn failed(what: &str, key: &str, error: &postgres::Error) -> RemoteError {
    let call = format!("{what} {key}").trim_end().to_owned();
    let Some(told) = error.as_db_error() else {
        // No answer came, or one that broke off.
        let is_connecting = what == "connecting";
        let text = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        return if is_connecting {
            RemoteError::Broken { what: format!("{call}: {text}") }
        } else {
            RemoteError::Doubt { what: call }
        };
    };
    let said = format!("{call}: {}", told.message());
    match told.code().code() {
        "53100" => RemoteError::Full { what: said },
        "53200" | "53300" | "55P03" | "57P03" | "40001" | "40P01" | "57014" => {
            RemoteError::Slow { what: said }
        }
        // The server ends; the call may have been committed.
        "57P01" | "57P02" | "58000" => RemoteError::Doubt { what: call },
        "25006" | "42501" | "3D000" => RemoteError::Refused { what: said },
        code if code.starts_with("28") => RemoteError::Refused { what: said },
        _ => RemoteError::Broken { what: said },
    }
}
