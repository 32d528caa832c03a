//! The report of a file whose facts were gathered.

use std::path::Path;

use acpdb_hosts::import::{ImportError, ImportReport, Note};
use acpdb_live::gather::Gather;

use super::{FileReport, ReadError};

/// Records the remaining facts, and reports on the file at `path`.
pub(crate) fn report(
    gather: &mut Gather<'_>,
    path: &Path,
    bytes: u64,
    result: Result<ImportReport, ImportError>,
) -> Result<FileReport, ReadError> {
    if gather.error.is_none() {
        gather.flush();
    }
    if let Some(error) = gather.error.take() {
        return Err(ReadError::Store(error));
    }
    // All before the error is recorded, as whole records: importing again, with more allowed, adds the rest.
    let mut report = result.map_err(|error| ReadError::Import { error, event_count: gather.events })?;
    if let Some(reason) = gather.left_out() {
        report.skipped.push(Note { line: 0, offset: 0, reason });
    }
    Ok(FileReport {
        path: path.to_owned(),
        report,
        event_count: gather.events,
        known_count: gather.known,
        shredded_count: gather.shredded_count(),
        bytes,
        is_unchanged: false,
    })
}
