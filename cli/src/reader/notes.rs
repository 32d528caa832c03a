//! Notes on a file that was not imported whole.

use std::path::Path;

use super::{FileReport, ReadError, Skipped};
use crate::describe;
use crate::failure::Failure;

/// Parts of a file that were left out.
pub(crate) fn notes(report: &FileReport) -> Vec<Skipped> {
    let skip = |note: &acpdb_hosts::import::ImportNote| Skipped {
        path: report.path.clone(),
        // A database has no lines.
        line: Some(note.line).filter(|line| *line > 0),
        reason: note.reason.clone(),
    };
    let mut all: Vec<Skipped> =
        report.report.skipped.iter().chain(&report.report.kept_raw).map(skip).collect();
    if report.report.notes_left_out > 0 {
        let reason = format!("{} further notes of this kind", report.report.notes_left_out);
        all.push(Skipped { path: report.path.clone(), line: None, reason });
    }
    all.extend(report.report.cut.as_ref().map(skip));
    all
}

/// A file that could not be imported; an error of the store ends the import.
pub(crate) fn refused(path: &Path, error: ReadError) -> Result<Skipped, Failure> {
    let reason = match error {
        ReadError::Store(error) => return Err(error.into()),
        ReadError::File(error) => format!("cannot be read: {error}"),
        ReadError::Import { error, event_count } => {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            let before = match event_count {
                0 => "nothing of it is recorded".to_owned(),
                count => format!("{} from before that recorded", describe::count(count, "event")),
            };
            format!("{error}{cause}; {before}")
        }
    };
    Ok(Skipped { path: path.to_owned(), line: None, reason })
}
