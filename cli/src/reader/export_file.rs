//! A file that `export jsonl` wrote: the events of another store.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use acpdb_engine::Error;
use acpdb_engine::store::{ParcelSource, Take};
use acpdb_hosts::import::{self, ImportError, Limits, ParcelReader};

/// A file that `export jsonl` wrote; it can be read several times.
pub(crate) struct ExportFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) limits: Limits,
    /// The error that ended the last reading.
    pub(crate) error: Option<ImportError>,
}

impl ParcelSource for ExportFile<'_> {
    fn tell(&mut self, take: Take<'_>) -> Result<(), Error> {
        let failed = |source| Error::Io { action: "read", path: self.path.to_owned(), source };
        let file = BufReader::with_capacity(256 << 10, File::open(self.path).map_err(failed)?);
        let input = import::decompressed(file, &self.limits).map_err(failed)?;
        let mut reader = ParcelReader::new(input, &self.limits);
        loop {
            match reader.next_piece() {
                Ok(Some(piece)) => take(piece)?,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let source = std::io::Error::other(error.to_string());
                    self.error = Some(error);
                    return Err(Error::Io { action: "read", path: self.path.to_owned(), source });
                }
            }
        }
    }
}
