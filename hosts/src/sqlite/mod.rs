//! Reads tables of a `SQLite` database, and nothing else: no locks, no queries, no writing.
//!
//! ```text
//! file, its write-ahead log  ->  Database: pages as of the log's last commit
//!                                  '-> tables (names, columns)  ->  rows, in the order of their row ids
//! ```
//!
//! A host that runs keeps its database open. So nothing is locked and nothing is created beside it: the log's committed frames
//! are looked up first, and a page is read from there, else from the file. [`Database::is_unmoved`] tells afterwards whether
//! the host has written meanwhile; a caller that wants to be sure reads again. The worst effect of such a write is a missing or
//! older row: each row is checked for its form, and the next reading sees it.
//!
//! Lengths and numbers come from a file that any program may have written: each is checked before it is used, trees have a
//! limited depth, and no page of a tree is read twice. Not read: indices, tables without row ids, texts that are not UTF-8.
//!
//! The format is described at <https://www.sqlite.org/fileformat2.html>.

mod record;
mod tables;
mod wal;

use std::cell::{Cell, RefCell};
use std::io;

pub use record::SqlValue;
pub use tables::{RowAddress, Table};

use wal::Wal;

/// First bytes of a database.
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Bytes of the header of a database.
const HEADER_BYTES: usize = 100;

/// A file that can be read at any offset.
pub trait Source {
    /// Fills `buffer` with the bytes from `offset` on; false if the file is shorter.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool>;
}

impl Source for &[u8] {
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(buffer.len());
        let Some(bytes) = self.get(start..end) else { return Ok(false) };
        buffer.copy_from_slice(bytes);
        Ok(true)
    }
}

/// Why a database cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The file system refused.
    #[error("cannot read the database")]
    Io(#[from] io::Error),
    /// It is no `SQLite` database, or of a kind that is not read.
    #[error("it is no SQLite database that can be read: {0}")]
    Foreign(&'static str),
    /// It is damaged.
    #[error("page {page} of the database is damaged: {what}")]
    Damaged {
        /// The page, from 1.
        page: u32,
        /// The fault.
        what: &'static str,
    },
}

/// A database as of one moment.
pub struct Database<'s> {
    file: &'s dyn Source,
    log: Option<&'s dyn Source>,
    header: [u8; HEADER_BYTES],
    page_bytes: usize,
    /// Bytes of a page that are used.
    usable: usize,
    wal: Wal,
    /// Bytes of rows that may still be read from further pages. In a sound database each of these pages belongs to one row, so that reading all rows
    /// a few times takes a few times the file; pages that many rows share would take the product of both.
    further: Cell<u64>,
    /// The page that was read last: rows that are read one by one often lie on the same page.
    last: RefCell<(u32, Vec<u8>)>,
}

impl std::fmt::Debug for Database<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Database").field("page_bytes", &self.page_bytes).finish_non_exhaustive()
    }
}

impl<'s> Database<'s> {
    /// Opens a database, with its write-ahead log if there is one.
    ///
    /// Cost: the log is read once, since its checksums tell which frames count.
    ///
    /// # Errors
    /// [`Unreadable`], by cause.
    pub fn open(file: &'s dyn Source, log: Option<&'s dyn Source>) -> Result<Self, Unreadable> {
        let mut header = [0; HEADER_BYTES];
        if !file.fill(0, &mut header)? || !header.starts_with(MAGIC) {
            return Err(Unreadable::Foreign("it does not begin like one"));
        }
        let page_bytes = match wal::number16(&header, 16) {
            1 => 65_536,
            bytes => usize::from(bytes),
        };
        if !page_bytes.is_power_of_two() || page_bytes < 512 {
            return Err(Unreadable::Foreign("the size of its pages is none"));
        }
        let reserved = header.get(20).copied().map_or(0, usize::from);
        // The smallest page has 512 bytes, and a byte says how many are reserved.
        let usable = page_bytes - reserved;
        if usable < 480 {
            return Err(Unreadable::Foreign("nothing of its pages is used"));
        }
        if wal::number32(&header, 56) > 1 {
            return Err(Unreadable::Foreign("its texts are not UTF-8"));
        }
        let wal = log.map_or_else(|| Ok(Wal::default()), |log| Wal::read(log, page_bytes))?;
        let bytes = length(file)?.saturating_add(log.map_or(Ok(0), length)?);
        let further = Cell::new(bytes.saturating_mul(FURTHER_SHARE).saturating_add(FURTHER_BYTES_MIN));
        Ok(Self { file, log, header, page_bytes, usable, wal, further, last: RefCell::default() })
    }

    /// Whether nothing was written since the database was opened.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn is_unmoved(&self) -> io::Result<bool> {
        let mut header = [0; HEADER_BYTES];
        if !self.file.fill(0, &mut header)? || header != self.header {
            return Ok(false);
        }
        self.log.map_or(Ok(true), |log| self.wal.is_unmoved(log, self.page_bytes))
    }

    /// Hands over a page, which is not read again if it was the last.
    fn with_page<T>(
        &self,
        number: u32,
        with: impl FnOnce(&[u8]) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        let mut last = self.last.borrow_mut();
        if last.0 != number {
            last.0 = 0;
            self.page(number, &mut last.1)?;
            last.0 = number;
        }
        with(&last.1)
    }

    /// Reads a page, numbered from 1, into `buffer`.
    fn page(&self, number: u32, buffer: &mut Vec<u8>) -> Result<(), Unreadable> {
        buffer.resize(self.page_bytes, 0);
        let missing = || Unreadable::Damaged { page: number, what: "it is not in the file" };
        let before = number.checked_sub(1).ok_or_else(missing)?;
        let there = match (self.wal.page(number), self.log) {
            (Some(offset), Some(log)) => log.fill(offset, buffer)?,
            _ => self.file.fill(u64::from(before) * self.page_bytes as u64, buffer)?,
        };
        if there { Ok(()) } else { Err(missing()) }
    }
}

/// How often all further pages of a database's rows may be read, and the bytes that may be read at least.
const FURTHER_SHARE: u64 = 8;
const FURTHER_BYTES_MIN: u64 = 1 << 20;

/// The length of a source, which only says whether it has bytes at an offset.
fn length(source: &dyn Source) -> io::Result<u64> {
    let has = |count: u64| match count.checked_sub(1) {
        Some(offset) => source.fill(offset, &mut [0]),
        None => Ok(true),
    };
    let (mut low, mut high) = (0, 1_u64);
    while high < 1 << 48 && has(high)? {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if has(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

/// Pages of a tree that have been read: none is read twice.
type Seen = std::collections::HashSet<u32>;
