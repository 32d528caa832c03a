//! The answer of an erasure, as programs read it.

use acpdb_engine::answers::EraseReport;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::store::ErasedWhy;
use acpdb_engine::{Error, Store};
use serde::Serialize;

/// An erasure, or one that would be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErasureAnswer {
    /// The item that was asked for.
    pub item: String,
    /// Nothing was changed.
    pub dry_run: bool,
    /// The event that records it.
    pub recorded: Option<Seq>,
    /// The content that was hit.
    pub hit: Vec<ErasureRow>,
    /// Keys of preferences, which stay.
    pub keys_kept: Vec<String>,
    /// Blocks that were written anew.
    pub blocks: u64,
    /// Segments that were written to.
    pub segments: u64,
    /// Derived files that were removed.
    pub files_removed: u64,
}

/// Content that an erasure hit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErasureRow {
    /// The event that named it.
    pub seq: Seq,
    /// Its item.
    pub item: Option<String>,
    /// Its session.
    pub session: String,
    /// Why it was hit.
    pub why: ErasedWhy,
    /// Number of bodies.
    pub bodies: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl ErasureAnswer {
    /// The answer for a report.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn new(store: &Store, report: &EraseReport, dry_run: bool) -> Result<Self, Error> {
        let session = |stream: StreamId| -> Result<String, Error> {
            if stream == StreamId::STORE {
                return Ok("store".to_owned());
            }
            Ok(store.stream_name(stream)?.map_or_else(|| stream.to_hex(), |name| name.name))
        };
        let rows = report.hit.iter().map(|content| {
            Ok::<_, Error>(ErasureRow {
                seq: content.seq,
                item: content.item.map(|item| item.to_string()),
                session: session(content.stream)?,
                why: content.why,
                bodies: content.bodies,
                bytes: content.bytes,
            })
        });
        Ok(Self {
            item: report.item.to_string(),
            dry_run,
            recorded: report.recorded,
            hit: rows.collect::<Result<_, Error>>()?,
            keys_kept: report.keys_kept.clone(),
            blocks: report.figures.blocks,
            segments: report.figures.segments,
            files_removed: report.figures.files_removed,
        })
    }
}
