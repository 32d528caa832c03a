//! Events as lines, with all data that another store needs to make them: see `acpdb_engine::travel`.

use std::io::Write;

use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::travel::{END, GAP, HEADING, PARCEL, Piece};
use acpdb_engine::{Error, Store};
use serde::Serialize;

use super::ExportError;

/// A line, told from others by its schema.
#[derive(Serialize)]
struct Line<'a, T: Serialize> {
    schema: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

fn line(out: &mut dyn Write, schema: &'static str, body: &impl Serialize) -> Result<(), ExportError> {
    serde_json::to_writer(&mut *out, &Line { schema, body })?;
    Ok(out.write_all(b"\n")?)
}

/// Writes the events of these streams, or of all, and returns the number of events. `rows` writes the lines between the heading and
/// the events.
///
/// # Errors
/// If the log cannot be read or the writer fails.
pub fn parcels(
    store: &Store,
    only: Option<&[StreamId]>,
    out: &mut dyn Write,
    mut rows: impl FnMut(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<u64, ExportError> {
    // The closure can only return the engine's errors; the error of a write is kept beside it.
    let mut failed = None;
    let told = store.parcels(only, Seq::MAX, &mut |piece| {
        let written = match &piece {
            Piece::Heading(heading) => line(out, HEADING, heading).and_then(|()| rows(&mut *out)),
            Piece::Parcel(parcel) => line(out, PARCEL, &**parcel),
            Piece::Gap(gap) => line(out, GAP, gap),
            Piece::End(end) => line(out, END, end),
        };
        written.map_err(|error| {
            failed = Some(error);
            Error::Poisoned
        })
    });
    match (told, failed) {
        (_, Some(error)) => Err(error),
        (told, None) => Ok(told?),
    }
}
