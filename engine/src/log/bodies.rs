//! Reading bodies: one, or thousands at a time.
//!
//! ```text
//! rows --> in the order of their places --> neighbours in one read --> digests checked, on two threads --> as asked
//! ```
//!
//! One body is one read. Many at a time share reads
//! with their neighbours: the bytes between two bodies are read, too, where that is cheaper than another call to the system.
//! Every read of a body checks its digest.
//!
//! Reading is done by the caller's thread alone, so that a simulated disk sees the same calls in the same order every time.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Log;
use super::error::{Corruption, FrameFault, LogError};
use super::files::SegmentFile;
use super::parallel_verify::beside;
use crate::codec::{
    BODY_CHUNK_BYTES_MAX, BodyRow, DamagedPart, Frame, Invalid, SALT_BYTES, TAG_BYTES, check_body,
};
use crate::locks::{steady_read, steady_write};
use crate::storage::{bytes_between, read_up_to};
use crate::vault::Vault;

/// Most bytes that are read before they are checked.
const BATCH_BYTES: usize = 4 << 20;
/// Most bytes of one read of neighbours.
const STRETCH_BYTES: u64 = 256 << 10;
/// Most bytes between two neighbours.
const GAP_BYTES: u64 = 2 << 10;

/// Most bytes that a thread keeps to read a body into.
const BLOCK_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// Memory to read a body into, so that it is not filled with zeros each time.
    static BLOCK: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The stored bytes and the salt of a body.
struct StoredBody<'r> {
    /// The row's number among the rows that were asked for.
    number: usize,
    row: &'r BodyRow,
    salt: [u8; SALT_BYTES],
    stored: BodyLocation<'r>,
}

/// Where the stored bytes of a body are.
enum BodyLocation<'r> {
    /// They were read with the frame.
    AtHand(&'r [u8]),
    /// In the stretch of this number.
    Stretch(usize, Range<usize>),
}

type Read = Result<Vec<u8>, FrameFault>;

/// The body, checked.
fn checked_body(vault: &Vault, row: &BodyRow, salt: &[u8; SALT_BYTES], stored: &[u8]) -> Read {
    check_length(row, stored).and_then(|()| check_body(salt, stored, row)).map_err(invalid)?;
    vault.body(row, stored).map_err(invalid)
}

/// A short read gives no body.
fn check_length(row: &BodyRow, bytes: &[u8]) -> Result<(), Invalid> {
    if bytes.len() == row.stored_bytes as usize {
        return Ok(());
    }
    Err(Invalid::new(
        DamagedPart::Body,
        0,
        format!("{} bytes", row.stored_bytes),
        format!("{} bytes", bytes.len()),
    ))
}

/// Checks each piece, on two threads if that is worth it.
fn settle(vault: &Vault, pieces: &[StoredBody<'_>], stretches: &[Vec<u8>]) -> Vec<Read> {
    let checked = |piece: &StoredBody<'_>| {
        let stored = match &piece.stored {
            BodyLocation::AtHand(stored) => stored,
            BodyLocation::Stretch(stretch, at) => {
                let stretch = stretches.get(*stretch).map_or(&[][..], Vec::as_slice);
                // A short read ends where the file ends; the digest's check reports it.
                stretch.get(at.start.min(stretch.len())..at.end.min(stretch.len())).unwrap_or(&[])
            }
        };
        checked_body(vault, piece.row, &piece.salt, stored)
    };
    let all = pieces.iter().map(|piece| piece.row.stored_bytes as usize).sum();
    beside(pieces, all, checked, || ()).0
}

/// A row and the place of its bytes in the file.
struct BodyInFile<'r> {
    number: usize,
    row: &'r BodyRow,
    offset: u64,
    bytes: u64,
}

impl Log {
    /// The bytes of a body, checked against their digest.
    ///
    /// # Errors
    /// [`LogError::Erased`] if salt and bytes are zeroed, [`LogError::Corrupt`] if they do not fit the digest.
    pub fn body(&self, row: &BodyRow) -> Result<Vec<u8>, LogError> {
        self.salted_body(row).map(|(_, body)| body)
    }

    /// The salt and the bytes of a body, checked against their digest.
    ///
    /// # Errors
    /// As [`Log::body`].
    pub fn salted_body(&self, row: &BodyRow) -> Result<([u8; SALT_BYTES], Vec<u8>), LogError> {
        self.check_withheld(row)?;
        let read = self.read_body(row);
        if !read.as_ref().is_err_and(is_unfit) {
            return self.met(read.map_err(|fault| self.body_error(row, fault)));
        }
        // An erasure that is under way, or was cut short, leaves half of it zeroed, which is no damage; or it has ended since.
        let is_erasing = self.is_erasing()?;
        let read = self.read_body(row).map_err(|fault| self.body_error(row, fault));
        if is_erasing { read } else { self.met(read) }
    }

    /// As [`Log::body`], of a body of `frame`: without a read if its bytes came with the frame.
    ///
    /// # Errors
    /// As [`Log::body`].
    pub(crate) fn body_of(&self, frame: &Frame, row: &BodyRow) -> Result<Vec<u8>, LogError> {
        self.check_withheld(row)?;
        let block = frame.block_at_hand(row).and_then(<[u8]>::split_first_chunk::<SALT_BYTES>);
        let at_hand = block.map(|(salt, stored)| checked_body(&self.segments.vault, row, salt, stored));
        // A read of the file tells the reason: the body may have been erased by now.
        at_hand.and_then(Result::ok).map_or_else(|| self.body(row), Ok)
    }

    /// The bytes of many bodies, in the order of `rows`, each as from [`Log::body`].
    ///
    /// Cost: one read for neighbours; many bytes are checked on two threads. In memory at a time: the answer and some
    /// 4 MiB beside it.
    pub fn bodies(&self, rows: &[BodyRow]) -> Vec<Result<Vec<u8>, LogError>> {
        self.bodies_of(&rows.iter().map(|row| (None, *row)).collect::<Vec<_>>())
    }

    /// As [`Log::bodies`], each row perhaps with its frame: bytes that came with the frame are not read again.
    pub(crate) fn bodies_of(&self, wanted: &[(Option<Frame>, BodyRow)]) -> Vec<Result<Vec<u8>, LogError>> {
        let mut answers: Vec<Option<Result<Vec<u8>, LogError>>> = Vec::new();
        answers.resize_with(wanted.len(), || None);
        let mut order: Vec<(usize, &BodyRow)> = Vec::with_capacity(wanted.len());
        let mut at_hand = Vec::new();
        for (number, (frame, row)) in wanted.iter().enumerate() {
            if let Err(error) = self.check_withheld(row) {
                if let Some(place) = answers.get_mut(number) {
                    *place = Some(Err(error));
                }
                continue;
            }
            let block = frame.as_ref().and_then(|frame| frame.block_at_hand(row));
            match block.and_then(<[u8]>::split_first_chunk::<SALT_BYTES>) {
                Some((salt, stored)) => {
                    let stored = BodyLocation::AtHand(stored);
                    at_hand.push(StoredBody { number, row, salt: *salt, stored });
                }
                None => order.push((number, row)),
            }
        }
        for (piece, read) in at_hand.iter().zip(settle(&self.segments.vault, &at_hand, &[])) {
            match read {
                Ok(body) => {
                    if let Some(place) = answers.get_mut(piece.number) {
                        *place = Some(Ok(body));
                    }
                }
                // A read of the file tells the reason: the body may have been erased by now.
                Err(_) => order.push((piece.number, piece.row)),
            }
        }
        order.sort_unstable_by_key(|(number, row)| (row.place, *number));
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            // A batch of one segment, of so many bytes.
            let segment = rest.first().map(|(_, row)| row.place.segment);
            let mut bytes = 0_usize;
            let count = rest.iter().take_while(|(_, row)| {
                let fits = bytes < BATCH_BYTES && Some(row.place.segment) == segment;
                bytes = bytes.saturating_add(row.stored_bytes as usize);
                fits
            });
            let (batch, after) = rest.split_at_checked(count.count()).unwrap_or((rest, &[]));
            rest = after;
            self.read_batch(batch, &mut |number, row, read| {
                let answer = match read {
                    Err(fault) if is_unfit(&fault) => self.body(row),
                    read => self.met(read.map_err(|fault| self.body_error(row, fault))),
                };
                if let Some(place) = answers.get_mut(number) {
                    *place = Some(answer);
                }
            });
        }
        let unread = |row: &BodyRow| self.body_error(row, FrameFault::Nothing);
        let answers = answers.into_iter().zip(wanted);
        answers.map(|(answer, (_, row))| answer.unwrap_or_else(|| Err(unread(row)))).collect()
    }

    /// Takes bodies as erased if their erasure is on record and they are not zeros yet: the erasing process may have been killed in between.
    pub(crate) fn withhold(&self, rows: impl Iterator<Item = BodyRow>) {
        steady_write(&self.withheld).extend(rows.map(|row| row.place));
        self.withholds.store(true, Ordering::Release);
    }

    fn check_withheld(&self, row: &BodyRow) -> Result<(), LogError> {
        // Few stores have such bodies; without them this costs no lock.
        if self.withholds.load(Ordering::Acquire) && steady_read(&self.withheld).contains(&row.place) {
            return Err(LogError::Erased { place: row.place });
        }
        Ok(())
    }

    fn read_body(&self, row: &BodyRow) -> Result<([u8; SALT_BYTES], Vec<u8>), FrameFault> {
        let Some(file) = self.segment_of(row)? else { return Err(FrameFault::Nothing) };
        let length = SALT_BYTES.saturating_add(row.stored_bytes as usize);
        // Taken out, and not borrowed: a simulated disk may let another reader run meanwhile.
        let is_small = length <= BLOCK_BYTES_MAX;
        let mut memory = if is_small { BLOCK.take() } else { Vec::new() };
        if memory.len() < length {
            memory.resize(length, 0);
        }
        let block = memory.get_mut(..length).unwrap_or_default();
        let read = read_up_to(&*file.file, block, row.place.offset)
            .map_err(|error| FrameFault::Error(LogError::io("read", file.path.clone(), error)))
            .and_then(|count| {
                let block = block.get(..count).and_then(<[u8]>::split_first_chunk::<SALT_BYTES>);
                let (salt, stored) = block.ok_or(FrameFault::Nothing)?;
                Ok((*salt, checked_body(&self.segments.vault, row, salt, stored)?))
            });
        if is_small {
            BLOCK.set(memory);
        }
        read
    }

    /// The segment that a row points into, if its length is one that a body may have.
    fn segment_of(&self, row: &BodyRow) -> Result<Option<Arc<SegmentFile>>, FrameFault> {
        let added = if row.unit.is_some() { TAG_BYTES } else { 0 };
        if row.bytes as usize > BODY_CHUNK_BYTES_MAX
            || row.stored_bytes as usize > BODY_CHUNK_BYTES_MAX.saturating_add(added)
        {
            let found = format!("{} bytes, {} stored", row.bytes, row.stored_bytes);
            return Err(invalid(Invalid::new(DamagedPart::Body, 0, "a body within the limits", found)));
        }
        self.segments.get(row.place.segment).map_err(FrameFault::Error)
    }

    /// Reads bodies of one segment, in the order of their positions; calls `tell` with the outcome of each.
    fn read_batch<'r>(
        &self,
        batch: &[(usize, &'r BodyRow)],
        tell: &mut dyn FnMut(usize, &'r BodyRow, Result<Vec<u8>, FrameFault>),
    ) {
        let mut placed = Vec::with_capacity(batch.len());
        let mut open = None;
        for (number, row) in batch.iter().copied() {
            match self.segment_of(row) {
                Ok(Some(file)) => {
                    let bytes = u64::from(row.stored_bytes).saturating_add(SALT_BYTES as u64);
                    placed.push(BodyInFile { number, row, offset: row.place.offset, bytes });
                    open = Some(file);
                }
                Ok(None) => tell(number, row, Err(FrameFault::Nothing)),
                Err(fault) => tell(number, row, Err(fault)),
            }
        }
        let Some(file) = open else { return };
        let (mut stretches, mut pieces) = (Vec::new(), Vec::with_capacity(placed.len()));
        let mut rest = placed.as_slice();
        while let Some(first) = rest.first() {
            let mut end = first.offset.saturating_add(first.bytes);
            let near = rest.iter().take_while(|next| {
                let until = next.offset.saturating_add(next.bytes).max(end);
                // They are in order of their offsets, so none is before the first.
                let joins = next.offset <= end.saturating_add(GAP_BYTES)
                    && (until.saturating_sub(first.offset) <= STRETCH_BYTES || until == end);
                if joins {
                    end = until;
                }
                joins
            });
            let count = near.count().max(1);
            let (near, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = after;
            let length = bytes_between(first.offset, end);
            let mut stretch = vec![0; length];
            match read_up_to(&*file.file, &mut stretch, first.offset) {
                Ok(count) => stretch.truncate(count),
                Err(error) => {
                    let kind = error.kind();
                    for placed in near {
                        let error = LogError::io("read", file.path.clone(), kind.into());
                        tell(placed.number, placed.row, Err(FrameFault::Error(error)));
                    }
                    continue;
                }
            }
            for placed in near {
                let start = bytes_between(first.offset, placed.offset);
                let end = start.saturating_add(usize::try_from(placed.bytes).unwrap_or(usize::MAX));
                let (number, row) = (placed.number, placed.row);
                let Some(salt) = stretch.get(start..).and_then(<[u8]>::first_chunk).copied() else {
                    tell(number, row, Err(FrameFault::Nothing));
                    continue;
                };
                let stored = BodyLocation::Stretch(stretches.len(), start.saturating_add(SALT_BYTES)..end);
                pieces.push(StoredBody { number, row, salt, stored });
            }
            stretches.push(stretch);
        }
        for (piece, read) in pieces.iter().zip(settle(&self.segments.vault, &pieces, &stretches)) {
            tell(piece.number, piece.row, read);
        }
    }

    /// A fault of a body as an error.
    fn body_error(&self, row: &BodyRow, fault: FrameFault) -> LogError {
        let (segment, offset) = (row.place.segment, row.place.offset);
        let (expected, found) = match fault {
            FrameFault::Error(error) => return error,
            FrameFault::Invalid(invalid, _) if invalid.part == DamagedPart::BodyZeroed => {
                return LogError::Erased { place: row.place };
            }
            FrameFault::Invalid(invalid, _) => (invalid.expected, invalid.found),
            FrameFault::Nothing => (format!("{} bytes and a salt", row.stored_bytes), "too few".to_owned()),
        };
        LogError::corrupt(Corruption {
            part: DamagedPart::Body,
            path: self.segments.path(segment),
            segment,
            offset,
            seq_first: None,
            seq_last: None,
            expected,
            found,
        })
    }
}

/// Whether a body is there and does not fit its digest. Half of it may be zeros: [`Log::salted_body`] tells.
fn is_unfit(fault: &FrameFault) -> bool {
    matches!(fault, FrameFault::Invalid(invalid, _) if invalid.part == DamagedPart::Body)
}

fn invalid(invalid: Invalid) -> FrameFault {
    FrameFault::Invalid(invalid, None)
}
