//! Limits of one input, the same for every importer, so that a small file cannot become an endless import.
//!
//! ```text
//! bytes -> ratio, bytes (while unpacking) -> record, elements (while values are looked for) -> facts (as they are handed out)
//! ```
//!
//! A value that is too long or has too many elements is left out, and a note says so; the rest of the input is read. Any
//! other limit ends the input: records that were handed out before stand, each as a whole.

use std::fmt;
use std::io;

use super::values::{DOCUMENT_BYTES_MAX, RECORD_BYTES_MAX};

/// Unpacked bytes to which the ratio is not applied: small files of repeated text are common.
pub(super) const RATIO_FREE_BYTES: u64 = 8 << 20;

/// The limits of one input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Unpacked bytes for each packed one, beyond the first 8 MiB.
    pub ratio: u64,
    /// Unpacked bytes.
    pub bytes: u64,
    /// Bytes of one record of a line-wise format.
    pub record: u64,
    /// Bytes of one JSON document.
    pub document: u64,
    /// Elements and members in one record or document, nested ones included.
    pub elements: u64,
    /// Facts that one input may yield.
    pub facts: u64,
    /// Facts at the beginning of an input, or of a session in it, of which none is understood as a message or a call; and, behind them, records of
    /// fewer than 64 bytes that are neither: a file of short lines is no session, and each line costs an event.
    pub unread: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ratio: 500,
            bytes: 4 << 30,
            record: 64 << 20,
            document: 64 << 20,
            elements: 1_000_000,
            facts: 400_000,
            unread: 20_000,
        }
    }
}

impl Limits {
    /// Names of the limits, with their values and the highest value of each.
    const fn table(&mut self) -> [(&'static str, &mut u64, u64); 7] {
        [
            ("ratio", &mut self.ratio, u64::MAX),
            ("bytes", &mut self.bytes, u64::MAX),
            // A record is one commit at most.
            ("record", &mut self.record, RECORD_BYTES_MAX as u64),
            ("document", &mut self.document, DOCUMENT_BYTES_MAX as u64),
            ("elements", &mut self.elements, u64::MAX),
            ("facts", &mut self.facts, u64::MAX),
            ("unread", &mut self.unread, u64::MAX),
        ]
    }

    /// Sets the limits that `NAME=N,..` names. Numbers may end in `k`, `M` or `G` (1024 each).
    ///
    /// # Errors
    /// The fault in the text, in a line.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        for pair in text.split(',') {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("{pair:?} is not NAME=N"))?;
            let number =
                number(value.trim()).ok_or_else(|| format!("{value:?} is no number, such as 64M"))?;
            let mut table = self.table();
            let names = table.each_ref().map(|(name, _, _)| *name).join(", ");
            let found = table.iter_mut().find(|(known, _, _)| *known == name.trim());
            let (name, place, max) =
                found.ok_or_else(|| format!("there is no limit {name:?}, only {names}"))?;
            if number > *max {
                return Err(format!("{name} can be {max} at most"));
            }
            **place = number;
        }
        Ok(())
    }

    pub(super) fn record_bytes(&self) -> usize {
        usize::try_from(self.record).unwrap_or(RECORD_BYTES_MAX).min(RECORD_BYTES_MAX)
    }

    pub(super) fn document_bytes(&self) -> usize {
        usize::try_from(self.document).unwrap_or(DOCUMENT_BYTES_MAX).min(DOCUMENT_BYTES_MAX)
    }
}

fn number(text: &str) -> Option<u64> {
    let units = [('k', 10), ('M', 20), ('G', 30)];
    let unit = units.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    // The caller refuses a text that is no number, and names it.
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// An input is more than a limit allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exceeded {
    /// The limit's name, as [`Limits::set`] takes it.
    pub limit: &'static str,
    /// Its value.
    pub max: u64,
    /// The amount that was found, as far as it was counted.
    pub found: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, max, found } = self;
        match *limit {
            "ratio" => write!(f, "it unpacks to {found} times its size, more than {max}"),
            "bytes" => write!(f, "it unpacks to {found} bytes and more, over {max}"),
            "record" => write!(f, "a record of {found} bytes and more, over {max}"),
            "document" => write!(f, "a document of {found} bytes and more, over {max}"),
            "elements" => write!(f, "a record of {found} elements and more, over {max}"),
            "unread" => write!(f, "{found} records that are neither a message nor a call, over {max}"),
            name => write!(f, "{found} {name} and more, over {max}"),
        }?;
        write!(f, "; --limits {limit}=N allows more")
    }
}

impl std::error::Error for Exceeded {}

impl From<Exceeded> for io::Error {
    fn from(exceeded: Exceeded) -> Self {
        Self::new(io::ErrorKind::InvalidData, exceeded)
    }
}

/// The limit that an error of reading stands for.
pub fn exceeded(error: &io::Error) -> Option<Exceeded> {
    error.get_ref()?.downcast_ref::<Exceeded>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_set_by_name() {
        let mut limits = Limits::default();
        limits.set("ratio=9,record=2M").unwrap();
        limits.set("facts=3k").unwrap();
        assert_eq!((limits.ratio, limits.record, limits.facts), (9, 2 << 20, 3 << 10));
        for (wrong, word) in [
            ("ratio", "NAME=N"),
            ("depth=3", "only ratio, bytes, record"),
            ("bytes=x", "no number"),
            ("bytes=18446744073709551615k", "no number"),
            ("record=1G", "at most"),
        ] {
            let error = limits.set(wrong).unwrap_err();
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }
}
