//! Reading bodies: one, or thousands at a time.
//!
//! ```text
//! rows --> in the order of their places --> neighbours in one read --> unpacked, digests checked, on two threads --> as asked
//! ```
//!
//! One body of a segment as written is one read; of a sealed one, two, and a look at its table. Many at a time share reads
//! with their neighbours: the bytes between two bodies are read, too, where that is cheaper than another call to the system.
//! Every read of a body checks its digest.
//!
//! Reading is done by the caller's thread alone, so that a simulated disk sees the same calls in the same order every time.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::error::{Corruption, Fault, LogError};
use super::files::SegmentFile;
use super::keys::KeyChain;
use super::lookup::exactly;
use super::parallel_verify::beside;
use super::{Log, sealed_blocks};
use crate::codec::{
    BODY_CHUNK_BYTES_MAX, BlockRow, BodyRow, Frame, Invalid, Part, SALT_BYTES, STORED_BYTES_MAX,
    SealedLayout, check_body, check_stored, is_zero, unpack,
};
use crate::locks::{steady_read, steady_write};
use crate::storage::{bytes_between, read_up_to};

/// Most bytes that are read before they are checked.
const BATCH_BYTES: usize = 4 << 20;
/// Most bytes of one read of neighbours.
const STRETCH_BYTES: u64 = 256 << 10;
/// Most bytes between two neighbours.
const GAP_BYTES: u64 = 2 << 10;

/// The stored bytes and the salt of a body.
struct Piece<'r> {
    /// The row's number among the rows that were asked for.
    number: usize,
    row: &'r BodyRow,
    salt: [u8; SALT_BYTES],
    stored: Stored<'r>,
    /// The packing and the checksum of the packed bytes; `None`: not packed.
    packed: Option<(u8, u32)>,
}

/// Where the stored bytes of a body are.
enum Stored<'r> {
    /// They were read with the frame.
    AtHand(&'r [u8]),
    /// In the stretch of this number.
    Stretch(usize, Range<usize>),
}

type Read = Result<Vec<u8>, Fault>;

/// The body, unpacked, checked, and opened.
fn checked_body(
    keys: Option<&KeyChain>,
    row: &BodyRow,
    salt: &[u8; SALT_BYTES],
    stored: &[u8],
    packed: Option<(u8, u32)>,
) -> Read {
    let laid = laid_body(row, salt, stored, packed).map_err(invalid)?;
    match keys.filter(|_| row.is_sealed()) {
        Some(keys) => keys.open_body(row, salt, &laid),
        None => Ok(laid),
    }
}

/// The body as its frame has it, unpacked and checked.
fn laid_body(
    row: &BodyRow,
    salt: &[u8; SALT_BYTES],
    stored: &[u8],
    packed: Option<(u8, u32)>,
) -> Result<Vec<u8>, Invalid> {
    let length = row.stored_bytes as usize;
    let check = if row.is_sealed() { check_stored } else { check_body };
    let Some((codec, checksum)) = packed else {
        check_length(row, stored)?;
        check(salt, stored, row)?;
        return Ok(stored.to_vec());
    };
    // Erased, in place or before it was sealed.
    let body = if is_zero(stored) {
        vec![0; length]
    } else {
        let found = crc32c::crc32c(stored);
        if found != checksum {
            let (expected, found) = (format!("checksum {checksum:08x}"), format!("{found:08x}"));
            return Err(Invalid::new(Part::Body, 0, expected, found));
        }
        let unpacked = unpack(codec, stored, length);
        unpacked.map_err(|found| Invalid::new(Part::Body, 0, "a packed body", found))?
    };
    check(salt, &body, row)?;
    Ok(body)
}

/// A short read gives no body.
fn check_length(row: &BodyRow, bytes: &[u8]) -> Result<(), Invalid> {
    if bytes.len() == row.stored_bytes as usize {
        return Ok(());
    }
    Err(Invalid::new(Part::Body, 0, format!("{} bytes", row.stored_bytes), format!("{} bytes", bytes.len())))
}

/// Unpacks and checks each piece, on two threads if that is worth it.
fn settle(keys: Option<&KeyChain>, pieces: &[Piece<'_>], stretches: &[Vec<u8>]) -> Vec<Read> {
    let checked = |piece: &Piece<'_>| {
        let stored = match &piece.stored {
            Stored::AtHand(stored) => stored,
            Stored::Stretch(stretch, at) => {
                let stretch = stretches.get(*stretch).map_or(&[][..], Vec::as_slice);
                // A short read ends where the file ends; the digest's check reports it.
                stretch.get(at.start.min(stretch.len())..at.end.min(stretch.len())).unwrap_or(&[])
            }
        };
        checked_body(keys, piece.row, &piece.salt, stored, piece.packed)
    };
    let all = pieces.iter().map(|piece| piece.row.stored_bytes as usize).sum();
    beside(pieces, all, checked, || ()).0
}

/// A row and the place of its bytes in the file.
struct Placed<'r> {
    number: usize,
    row: &'r BodyRow,
    offset: u64,
    bytes: u64,
    /// In a sealed segment: the ordinal and the row of its block.
    sealed: Option<(u32, BlockRow)>,
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
        let at_hand = block.map(|(salt, stored)| checked_body(self.segments.keys(), row, salt, stored, None));
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
                    let stored = Stored::AtHand(stored);
                    at_hand.push(Piece { number, row, salt: *salt, stored, packed: None });
                }
                None => order.push((number, row)),
            }
        }
        for (piece, read) in at_hand.iter().zip(settle(self.segments.keys(), &at_hand, &[])) {
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
        order.sort_unstable_by_key(|(number, row)| (row.position, *number));
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            // A batch of one segment, of so many bytes.
            let segment = rest.first().map(|(_, row)| row.position.segment());
            let mut bytes = 0_usize;
            let count = rest.iter().take_while(|(_, row)| {
                let fits = bytes < BATCH_BYTES && Some(row.position.segment()) == segment;
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
        let unread = |row: &BodyRow| self.body_error(row, Fault::Nothing);
        let answers = answers.into_iter().zip(wanted);
        answers.map(|(answer, (_, row))| answer.unwrap_or_else(|| Err(unread(row)))).collect()
    }

    /// Takes bodies as erased if their erasure is on record and they are not zeros yet: the erasing process may have been killed in between.
    pub(crate) fn withhold(&self, rows: impl Iterator<Item = BodyRow>) {
        steady_write(&self.withheld).extend(rows.map(|row| row.position));
        self.withholds.store(true, Ordering::Release);
    }

    fn check_withheld(&self, row: &BodyRow) -> Result<(), LogError> {
        // Few stores have such bodies; without them this costs no lock.
        if self.withholds.load(Ordering::Acquire) && steady_read(&self.withheld).contains(&row.position) {
            return Err(LogError::Erased { position: row.position });
        }
        Ok(())
    }

    fn read_body(&self, row: &BodyRow) -> Result<([u8; SALT_BYTES], Vec<u8>), Fault> {
        let Some(file) = self.segment_of(row)? else { return Err(Fault::Nothing) };
        if let Some((ordinal, block)) = sealed_block(&file, row)? {
            let Some(tables) = &file.sealed else { return Err(Fault::Nothing) };
            let found = sealed_blocks::stored_block(file.source(), &tables.layout, ordinal, &block)?;
            let packed = Some((block.codec, block.checksum));
            let body = checked_body(self.segments.keys(), row, &found.salt, &found.stored, packed)?;
            return Ok((found.salt, body));
        }
        let mut block = vec![0; SALT_BYTES.saturating_add(row.stored_bytes as usize)];
        let count = read_up_to(&*file.file, &mut block, row.position.offset());
        let count = count.map_err(|error| Fault::Error(LogError::io("read", file.path.clone(), error)))?;
        block.truncate(count);
        let Some((salt, bytes)) = block.split_first_chunk::<SALT_BYTES>() else { return Err(Fault::Nothing) };
        if row.is_sealed() {
            return Ok((*salt, checked_body(self.segments.keys(), row, salt, bytes, None)?));
        }
        check_length(row, bytes).and_then(|()| check_body(salt, bytes, row)).map_err(invalid)?;
        let salt = *salt;
        block.drain(..SALT_BYTES);
        Ok((salt, block))
    }

    /// The segment that a row points into, if its length is one that a body may have.
    fn segment_of(&self, row: &BodyRow) -> Result<Option<Arc<SegmentFile>>, Fault> {
        if row.bytes as usize > BODY_CHUNK_BYTES_MAX || row.stored_bytes as usize > STORED_BYTES_MAX {
            let found = format!("{} bytes, {} stored", row.bytes, row.stored_bytes);
            return Err(invalid(Invalid::new(Part::Body, 0, "a body within the limits", found)));
        }
        self.segments.get(row.position.segment()).map_err(Fault::Error)
    }

    /// Reads bodies of one segment, in the order of their positions; calls `tell` with the outcome of each.
    fn read_batch<'r>(
        &self,
        batch: &[(usize, &'r BodyRow)],
        tell: &mut dyn FnMut(usize, &'r BodyRow, Result<Vec<u8>, Fault>),
    ) {
        let mut placed = Vec::with_capacity(batch.len());
        let mut open = None;
        for (number, row) in batch.iter().copied() {
            match self.segment_of(row).and_then(|file| file.map(|file| place(file, row)).transpose()) {
                Ok(Some((file, offset, bytes, sealed))) => {
                    placed.push(Placed { number, row, offset, bytes, sealed });
                    open = Some(file);
                }
                Ok(None) => tell(number, row, Err(Fault::Nothing)),
                Err(fault) => tell(number, row, Err(fault)),
            }
        }
        let Some(file) = open else { return };
        // Sealed bodies that were equal lie where the first of them did.
        placed.sort_unstable_by_key(|placed| placed.offset);
        let (mut stretches, mut pieces) = (Vec::new(), Vec::with_capacity(placed.len()));
        let mut salts = Salts::of_all(&placed);
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
                        tell(placed.number, placed.row, Err(Fault::Error(error)));
                    }
                    continue;
                }
            }
            for placed in near {
                let start = bytes_between(first.offset, placed.offset);
                let end = start.saturating_add(usize::try_from(placed.bytes).unwrap_or(usize::MAX));
                let salt = match &placed.sealed {
                    Some((ordinal, _)) => salts.of(&file, *ordinal),
                    None => Ok(stretch.get(start..).and_then(<[u8]>::first_chunk).copied()),
                };
                let (number, row) = (placed.number, placed.row);
                let salt = match salt {
                    Ok(Some(salt)) => salt,
                    Ok(None) => {
                        tell(number, row, Err(Fault::Nothing));
                        continue;
                    }
                    Err(fault) => {
                        tell(number, row, Err(fault));
                        continue;
                    }
                };
                let packed = placed.sealed.as_ref().map(|(_, block)| (block.codec, block.checksum));
                let at = if packed.is_some() { start..end } else { start.saturating_add(SALT_BYTES)..end };
                let stored = Stored::Stretch(stretches.len(), at);
                pieces.push(Piece { number, row, salt, stored, packed });
            }
            stretches.push(stretch);
        }
        for (piece, read) in pieces.iter().zip(settle(self.segments.keys(), &pieces, &stretches)) {
            tell(piece.number, piece.row, read);
        }
    }

    /// A fault of a body as an error.
    fn body_error(&self, row: &BodyRow, fault: Fault) -> LogError {
        let (segment, offset) = (row.position.segment(), row.position.offset());
        let (expected, found) = match fault {
            Fault::Error(error) => return error,
            Fault::Invalid(invalid, _) if invalid.part == Part::BodyZeroed => {
                return LogError::Erased { position: row.position };
            }
            Fault::Invalid(invalid, _) => (invalid.expected, invalid.found),
            Fault::Nothing => (format!("{} bytes and a salt", row.stored_bytes), "too few".to_owned()),
        };
        LogError::corrupt(Corruption {
            part: Part::Body,
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
fn is_unfit(fault: &Fault) -> bool {
    matches!(fault, Fault::Invalid(invalid, _) if invalid.part == Part::Body)
}

fn invalid(invalid: Invalid) -> Fault {
    Fault::Invalid(invalid, None)
}

/// The block that a row points to, if the segment is sealed.
fn sealed_block(file: &SegmentFile, row: &BodyRow) -> Result<Option<(u32, BlockRow)>, Fault> {
    if file.sealed.is_none() {
        return Ok(None);
    }
    sealed_blocks::block_row(file, row.position).map(Some)
}

/// A file, and where in it a body lies: with its salt, or packed.
type Place = (Arc<SegmentFile>, u64, u64, Option<(u32, BlockRow)>);

fn place(file: Arc<SegmentFile>, row: &BodyRow) -> Result<Place, Fault> {
    let Some((ordinal, block)) = sealed_block(&file, row)? else {
        let bytes = u64::from(row.stored_bytes).saturating_add(SALT_BYTES as u64);
        return Ok((file, row.position.offset(), bytes, None));
    };
    let Some(tables) = &file.sealed else { return Err(Fault::Nothing) };
    let offset = sealed_blocks::stored_place(&tables.layout, &block)?;
    let bytes = u64::from(block.stored_bytes);
    Ok((file, offset, bytes, Some((ordinal, block))))
}

/// Salts of the wanted blocks; the salts of neighbours come in one read.
struct Salts {
    /// The ordinals that are wanted, rising.
    wanted: Vec<u32>,
    /// The first ordinal of the last read.
    first: u32,
    bytes: Vec<u8>,
}

/// Most salts that are read at a time, and most unwanted ones that may lie between two of them: 1 KiB.
const SALT_COUNT_MAX: u32 = 1024;
const SALT_GAP_COUNT: u32 = 64;

impl Salts {
    fn of_all(placed: &[Placed<'_>]) -> Self {
        let sealed = placed.iter().filter_map(|placed| placed.sealed.as_ref());
        let mut wanted: Vec<u32> = sealed.map(|(ordinal, _)| *ordinal).collect();
        wanted.sort_unstable();
        Self { wanted, first: 0, bytes: Vec::new() }
    }

    fn of(&mut self, file: &SegmentFile, ordinal: u32) -> Result<Option<[u8; SALT_BYTES]>, Fault> {
        let Some(tables) = &file.sealed else { return Ok(None) };
        let layout: &SealedLayout = &tables.layout;
        let held = |salts: &Self| {
            let at = usize::try_from(ordinal.checked_sub(salts.first)?).ok()?.checked_mul(SALT_BYTES)?;
            salts.bytes.get(at..)?.first_chunk().copied()
        };
        if let Some(salt) = held(self) {
            return Ok(Some(salt));
        }
        let mut last = ordinal;
        let next = self.wanted.partition_point(|wanted| *wanted <= ordinal);
        // They are in order, and behind `ordinal`.
        for wanted in self.wanted.get(next..).unwrap_or(&[]) {
            if wanted - last > SALT_GAP_COUNT || wanted - ordinal >= SALT_COUNT_MAX {
                break;
            }
            last = *wanted;
        }
        let count = last - ordinal + 1;
        // An ordinal past the last block has no salt.
        let count = count.min(layout.block_count.saturating_sub(ordinal));
        let at = layout.salts_offset().saturating_add(u64::from(ordinal).saturating_mul(SALT_BYTES as u64));
        self.bytes = exactly(file.source(), at, (count as usize).saturating_mul(SALT_BYTES))?;
        self.first = ordinal;
        Ok(held(self))
    }
}
