//! Engines of other makers, each set to make every commit durable before it answers.

mod fjall;
mod lmdb;
mod promises;
mod quipu;
mod redb;
mod salamander;
mod sqlite;
mod varve;
mod weavatrix;

use super::engine::Kind;
use super::work::Event;

pub(super) fn all() -> Vec<Kind> {
    let kind = |name, open| Kind { name, open, limit: None };
    vec![
        kind("SQLite", sqlite::open_default),
        kind("SQLite tuned", sqlite::open_tuned),
        kind("SQLite, same promises", promises::open),
        kind("redb alone", redb::open),
        kind("LMDB", lmdb::open),
        kind("fjall", fjall::open),
        Kind {
            limit: Some((10_000, "each commit rewrites its catalog of streams")),
            ..kind("salamander-db", salamander::open)
        },
        Kind {
            limit: Some((100_000, "it holds every event in memory")),
            ..kind("weavatrix-memory", weavatrix::open)
        },
        kind("varvedb", varve::open),
        Kind { limit: Some((100_000, "no lookup by number")), ..kind("quipu-core", quipu::open) },
    ]
}

/// The value in the key-value engines: session, chain, digest, body.
fn value(event: &Event<'_>, into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(&event.session.to_le_bytes());
    into.extend_from_slice(&event.chain.to_le_bytes());
    into.extend_from_slice(&event.hash);
    into.extend_from_slice(event.body.as_bytes());
}

/// The body within a value.
fn body(value: &[u8]) -> &[u8] {
    value.get(40..).unwrap_or_default()
}

/// A key of an index: the indexed bytes, then the number, so that rows of the same bytes lie together in order.
fn key(about: &[u8], number: u64) -> Vec<u8> {
    [about, &number.to_be_bytes()].concat()
}

/// The number at the end of a key.
fn number(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
