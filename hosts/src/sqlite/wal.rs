//! The write-ahead log: which pages it holds, up to its last commit.
//!
//! ```text
//! header   magic 4 | version 4 | page bytes 4 | checkpoint 4 | salt 8 | checksum 8
//! frame    page 4 | pages after this commit 4, or 0 | salt 8 | checksum 8 | the page
//! ```
//!
//! A frame counts if its salt is the header's and its checksum goes on from the one before. Frames behind the last commit do
//! not count. A checksum is two sums over words, in the byte order that the magic names.

use std::collections::HashMap;
use std::io;

use super::Source;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAGIC: u32 = 0x377f_0682;
/// Most frames that are read: a log of 64 GiB of pages of 4 KiB.
const FRAME_COUNT_MAX: u64 = 1 << 24;

/// A number of two bytes.
pub(super) fn number16(bytes: &[u8], at: usize) -> u16 {
    let bytes = at.checked_add(2).and_then(|end| bytes.get(at..end));
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_be_bytes)
}

/// A number of four bytes.
pub(super) fn number32(bytes: &[u8], at: usize) -> u32 {
    let bytes = at.checked_add(4).and_then(|end| bytes.get(at..end));
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The pages that a log holds.
#[derive(Debug, Default)]
pub(super) struct Wal {
    /// Offset of each page's newest committed version.
    pages: HashMap<u32, u64>,
    header: [u8; HEADER_BYTES],
    frames: u64,
}

impl Wal {
    pub(super) fn read(log: &dyn Source, page_bytes: usize) -> io::Result<Self> {
        let mut wal = Self::default();
        let mut header = [0; HEADER_BYTES];
        // A log that is shorter, or of another form, holds nothing yet.
        if !log.fill(0, &mut header)? {
            return Ok(wal);
        }
        wal.header = header;
        let magic = number32(&header, 0);
        let fits = magic & !1 == MAGIC && number32(&header, 8) as usize == page_bytes;
        let is_big = magic & 1 == 1;
        let mut sums = checksum((0, 0), header.get(..24).unwrap_or_default(), is_big);
        if !fits || sums != (number32(&header, 24), number32(&header, 28)) {
            return Ok(wal);
        }
        let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
        let mut pending = Vec::new();
        for number in 0..FRAME_COUNT_MAX {
            let offset = HEADER_BYTES as u64 + number * frame.len() as u64;
            if !log.fill(offset, &mut frame)? {
                break;
            }
            sums = checksum(sums, frame.get(..8).unwrap_or_default(), is_big);
            sums = checksum(sums, frame.get(FRAME_HEADER_BYTES..).unwrap_or_default(), is_big);
            let is_own = frame.get(8..16) == header.get(16..24);
            if !is_own || sums != (number32(&frame, 16), number32(&frame, 20)) {
                break;
            }
            pending.push((number32(&frame, 0), offset + FRAME_HEADER_BYTES as u64));
            if number32(&frame, 4) != 0 {
                wal.pages.extend(pending.drain(..));
                wal.frames = number + 1;
            }
        }
        Ok(wal)
    }

    /// Offset of a page in the log, if the log has it.
    pub(super) fn page(&self, number: u32) -> Option<u64> {
        self.pages.get(&number).copied()
    }

    /// Whether the log holds the same frames as when it was read.
    pub(super) fn is_unmoved(&self, log: &dyn Source, page_bytes: usize) -> io::Result<bool> {
        let now = Self::read(log, page_bytes)?;
        Ok(now.header == self.header && now.frames == self.frames)
    }
}

/// Takes `bytes` into a checksum.
fn checksum((mut one, mut two): (u32, u32), bytes: &[u8], is_big: bool) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let word = bytes.try_into().unwrap_or([0; 4]);
        if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    for pair in bytes.chunks_exact(8) {
        let (first, second) = pair.split_at(4);
        one = one.wrapping_add(word(first)).wrapping_add(two);
        two = two.wrapping_add(word(second)).wrapping_add(one);
    }
    (one, two)
}
