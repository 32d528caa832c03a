//! `SQLite` with acpdb's promises on top: the code that is needed if a database does this work.
//!
//! ```text
//! a call = step, start, end --> repeats skipped by origin --> parameters parsed, a key of the file, tokens estimated
//!        --> salted digests of bodies, a link over each event --> rows --> rules: the calls that this one supersedes, with the reason
//! ```
//!
//! It is written as well as we could: WAL, `synchronous=FULL`, a large cache and a map, cached statements, one transaction a
//! commit, rules by one indexed lookup each. It still does less than acpdb: one kind of rule key, no policy, no forks, no restore,
//! no redaction of secrets, no times of hosts, no snapshot of a fold, no salvage of a damaged file.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, LAST_COUNT, Salts, Sink};

const TABLES: &str = "
    create table if not exists event (seq integer primary key, session integer not null, kind integer not null,
        origin blob not null unique, time integer not null, payload blob not null, link blob not null);
    create table if not exists body (id integer primary key, seq integer not null, digest blob not null, salt blob not null,
        bytes blob not null);
    create table if not exists item (id integer primary key, number integer not null unique, session integer not null,
        key text not null, params blob not null, output integer, tokens integer not null,
        hidden_by integer, rule integer);
    create index if not exists item_key on item (session, key, id);
    create index if not exists item_params on item (session, params) where hidden_by is null;
    create table if not exists reason (item integer not null, by_item integer not null, rule integer not null,
        seq integer not null, freed integer not null, primary key (item, by_item)) without rowid;
    create table if not exists session (id integer primary key, items integer not null, tokens integer not null,
        shown integer not null);";

/// The rules that act in this work, as numbers.
const RULE_FILE: i64 = 1;
const RULE_REPEAT: i64 = 2;

struct Promises {
    connection: Connection,
    seq: i64,
    link: [u8; 32],
    salts: Salts,
}

pub(super) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let connection = super::sqlite::tuned(folder, "promises.sqlite", TABLES)?;
    connection.set_prepared_statement_cache_capacity(64);
    let newest = connection
        .query_row("select seq, link from event order by seq desc limit 1", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 32]>(1)?))
        })
        .optional()?;
    let (seq, link) = newest.unwrap_or((0, [0; 32]));
    Ok(Box::new(Promises { connection, seq, link, salts: Salts::default() }))
}

/// An event that is about to be written.
struct Draft<'d> {
    kind: i64,
    origin: String,
    payload: serde_json::Value,
    body: Option<&'d [u8]>,
}

/// The end of the log within a commit.
struct Tip {
    seq: i64,
    link: [u8; 32],
}

fn salted(salt: &[u8; 16], bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(salt).update(bytes);
    *hasher.finalize().as_bytes()
}

/// Appends one event with its body; `None` if its origin was recorded before. Returns the row of the body.
fn event(
    transaction: &Transaction<'_>,
    tip: &mut Tip,
    session: u32,
    draft: &Draft<'_>,
    salt: [u8; 16],
) -> Outcome<Option<i64>> {
    let origin = blake3::hash(draft.origin.as_bytes());
    let origin = origin.as_bytes().first_chunk::<16>().ok_or("no origin")?;
    let known = transaction.prepare_cached("select 1 from event where origin = ?")?.exists([origin])?;
    if known {
        return Ok(None);
    }
    tip.seq += 1;
    let payload = serde_json::to_vec(&draft.payload)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&tip.link).update(&tip.seq.to_le_bytes()).update(&session.to_le_bytes());
    hasher.update(&draft.kind.to_le_bytes()).update(origin).update(&payload);
    let mut body_row = 0;
    if let Some(body) = draft.body {
        let digest = salted(&salt, body);
        hasher.update(&digest);
        transaction
            .prepare_cached("insert into body (seq, digest, salt, bytes) values (?, ?, ?, ?)")?
            .execute(params![tip.seq, digest, salt, body])?;
        body_row = transaction.last_insert_rowid();
    }
    tip.link = *hasher.finalize().as_bytes();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    transaction.prepare_cached("insert into event values (?, ?, ?, ?, ?, ?, ?)")?.execute(params![
        tip.seq,
        session,
        draft.kind,
        origin,
        i64::try_from(now.as_micros())?,
        payload,
        tip.link
    ])?;
    Ok(Some(body_row))
}

/// A step of the model, its call and the result, and the calls that they supersede.
fn call(
    transaction: &Transaction<'_>,
    tip: &mut Tip,
    given: &Event<'_>,
    salts: [[u8; 16]; 2],
) -> Outcome<()> {
    let number = given.number;
    // In the form that acpdb gets: text of JSON, which has to be parsed.
    let text = format!(r#"{{"file_path":"/src/chain-{}.rs"}}"#, given.chain);
    let parsed: serde_json::Value = serde_json::from_str(&text)?;
    let path = parsed.get("file_path").and_then(serde_json::Value::as_str).ok_or("no path")?;
    let key = format!("file:{path}");
    let asked = serde_json::to_vec(&parsed)?;
    let repeat = blake3::hash(&[b"Read\0".as_slice(), &asked].concat());
    let [first, second] = salts;
    let step = Draft {
        kind: 1,
        origin: format!("{}/step-{number}", given.session),
        payload: serde_json::json!({ "step": format!("step-{number}") }),
        body: None,
    };
    let _ = event(transaction, tip, given.session, &step, first)?;
    let start = Draft {
        kind: 2,
        origin: format!("{}/call-{number}:start", given.session),
        payload: serde_json::json!({ "call": format!("call-{number}"), "tool": "Read", "key": key }),
        body: Some(&asked),
    };
    if event(transaction, tip, given.session, &start, first)?.is_none() {
        return Ok(());
    }
    let item = tip.seq;
    let end = Draft {
        kind: 3,
        origin: format!("{}/call-{number}:end", given.session),
        payload: serde_json::json!({ "call": format!("call-{number}"), "status": "completed" }),
        body: Some(given.body.as_bytes()),
    };
    let output = event(transaction, tip, given.session, &end, second)?;
    let tokens = i64::try_from((asked.len() + given.body.len()) / 4)?;
    let stale = [
        (RULE_REPEAT, "select id, tokens from item where session = ? and params = ? and hidden_by is null"),
        (
            RULE_FILE,
            "select id, tokens from item where session = ? and key = ? and hidden_by is null order by id desc limit 1",
        ),
    ];
    let mut freed = 0;
    for (rule, sql) in stale {
        let mut statement = transaction.prepare_cached(sql)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let found = if rule == RULE_FILE {
            statement.query_row(params![given.session, key], read)
        } else {
            statement.query_row(params![given.session, repeat.as_bytes()], read)
        };
        let Some((old, old_tokens)) = found.optional()? else { continue };
        transaction
            .prepare_cached("update item set hidden_by = ?, rule = ? where id = ?")?
            .execute(params![item, rule, old])?;
        transaction
            .prepare_cached("insert into reason values (?, ?, ?, ?, ?)")?
            .execute(params![old, item, rule, tip.seq, old_tokens])?;
        freed += old_tokens;
    }
    transaction.prepare_cached("insert into item values (?, ?, ?, ?, ?, ?, ?, null, null)")?.execute(
        params![item, number.cast_signed(), given.session, key, repeat.as_bytes(), output, tokens],
    )?;
    transaction
        .prepare_cached(
            "insert into session values (?1, 1, ?2, ?2) on conflict (id) do update set items = items + 1,
             tokens = tokens + ?2, shown = shown + ?2 - ?3",
        )?
        .execute(params![given.session, tokens, freed])?;
    Ok(())
}

/// Gives a body once its digest is checked.
fn checked(row: &rusqlite::Row<'_>, sink: &mut Sink) -> Outcome<()> {
    let bytes = row.get_ref(0)?.as_blob()?;
    let (salt, digest): ([u8; 16], [u8; 32]) = (row.get(1)?, row.get(2)?);
    if salted(&salt, bytes) != digest {
        return Err("a body is not what its digest says".into());
    }
    sink.take(bytes);
    Ok(())
}

impl Engine for Promises {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        let salts = events
            .iter()
            .map(|_| Ok([self.salts.next()?, self.salts.next()?]))
            .collect::<Outcome<Vec<_>>>()?;
        let mut tip = Tip { seq: self.seq, link: self.link };
        let transaction = self.connection.transaction()?;
        for (event, salts) in events.iter().zip(salts) {
            call(&transaction, &mut tip, event, salts)?;
        }
        transaction.commit()?;
        (self.seq, self.link) = (tip.seq, tip.link);
        Ok(())
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        const BODY: &str = "b.bytes, b.salt, b.digest from item i join body b on b.id = i.output";
        let (sql, about, limit) = match ask {
            Ask::Get(number) => {
                (format!("select {BODY} where i.number = ?1 limit ?2"), number.cast_signed(), 1)
            }
            Ask::Last(session) => (
                format!(
                    "select {BODY} where i.id in (select id from item where session = ?1 and output is not null \
                     order by id desc limit ?2) order by i.id"
                ),
                i64::from(session),
                i64::try_from(LAST_COUNT)?,
            ),
            Ask::Chain(chain) => {
                let session = i64::from(chain) % i64::try_from(crate::compare::work::SESSION_COUNT)?;
                let sql = format!("select {BODY} where i.session = ?1 and i.key = ?2 order by i.id");
                let mut statement = self.connection.prepare_cached(&sql)?;
                let mut rows = statement.query(params![session, format!("file:/src/chain-{chain}.rs")])?;
                while let Some(row) = rows.next()? {
                    checked(row, sink)?;
                }
                return Ok(true);
            }
            Ask::Digest(_) => return Ok(false),
        };
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![about, limit])?;
        while let Some(row) = rows.next()? {
            checked(row, sink)?;
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        let sql = "select b.bytes, b.salt, b.digest from item i join body b on b.id = i.output order by i.id";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            checked(row, sink)?;
        }
        Ok(true)
    }
}
