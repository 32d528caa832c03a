//! Bodies of sealed segments: from the row of a block to its stored bytes and back to the block.

use super::error::Fault;
use super::files::SegmentFile;
use super::lookup::{Source, exactly};
use crate::codec::{BlockRow, Invalid, Part, SALT_BYTES, STORED_BYTES_MAX, SealedLayout, is_zero, unpack};
use crate::ids::Position;

/// The salt and the stored bytes of a block, as they are in the file; only their length was checked.
pub(crate) struct StoredBlock {
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) stored: Vec<u8>,
}

/// Where the stored bytes of a block begin in the file.
pub(crate) fn stored_place(layout: &SealedLayout, row: &BlockRow) -> Result<u64, Fault> {
    let end = u64::from(row.stored_at).saturating_add(u64::from(row.stored_bytes));
    // Packed bytes are never longer than the body; sealed bytes may be a little longer.
    if end > layout.stored_bytes || row.stored_bytes as usize > STORED_BYTES_MAX {
        let found = format!("{} bytes up to {end}", row.stored_bytes);
        let invalid =
            Invalid::new(Part::Footer, 0, format!("at most {} stored bytes", layout.stored_bytes), found);
        return Err(Fault::Invalid(invalid, None));
    }
    Ok(layout.stored_offset().saturating_add(u64::from(row.stored_at)))
}

/// The row of the block that had been at `position`, and its ordinal.
pub(crate) fn block_row(file: &SegmentFile, position: Position) -> Result<(u32, BlockRow), Fault> {
    let invalid = |part, expected: String, found: String| {
        Err(Fault::Invalid(Invalid::new(part, 0, expected, found), None))
    };
    let Some(tables) = &file.sealed else { return Err(Fault::Nothing) };
    let Some((ordinal, row)) = tables.block(file.source(), position)? else {
        return invalid(Part::Body, format!("a body at {position}"), "none".to_owned());
    };
    let Some(row) = BlockRow::decode(&row) else {
        return invalid(Part::Footer, "a row of a block".to_owned(), "other bytes".to_owned());
    };
    Ok((ordinal, row))
}

/// Reads the salt and the stored bytes of block `ordinal`.
pub(crate) fn stored_block(
    source: Source<'_>,
    layout: &SealedLayout,
    ordinal: u32,
    row: &BlockRow,
) -> Result<StoredBlock, Fault> {
    let stored_at = stored_place(layout, row)?;
    let at = layout.salts_offset().saturating_add(u64::from(ordinal).saturating_mul(SALT_BYTES as u64));
    let salt = exactly(source, at, SALT_BYTES)?;
    let Some(salt) = salt.first_chunk::<SALT_BYTES>().copied() else { return Err(Fault::Nothing) };
    let stored = exactly(source, stored_at, row.stored_bytes as usize)?;
    Ok(StoredBlock { salt, stored })
}

/// The block that had been at `position`: salt, body, zeros, at most `length` bytes of it.
pub(crate) fn block(file: &SegmentFile, position: Position, length: usize) -> Result<Vec<u8>, Fault> {
    let invalid = |part, expected: String, found: String| {
        Err(Fault::Invalid(Invalid::new(part, 0, expected, found), None))
    };
    let Some(tables) = &file.sealed else { return Err(Fault::Nothing) };
    let (ordinal, row) = block_row(file, position)?;
    let StoredBlock { salt, stored } = stored_block(file.source(), &tables.layout, ordinal, &row)?;
    let mut block = Vec::with_capacity(row.block_bytes());
    block.extend_from_slice(&salt);
    if is_zero(&stored) {
        // Erased, in place or before it was sealed.
        block.resize(SALT_BYTES.saturating_add(row.bytes as usize), 0);
    } else {
        let checksum = crc32c::crc32c(&stored);
        if checksum != row.checksum {
            return invalid(Part::Body, format!("checksum {:08x}", row.checksum), format!("{checksum:08x}"));
        }
        match unpack(row.codec, &stored, row.bytes as usize) {
            Ok(body) => block.extend_from_slice(&body),
            Err(found) => return invalid(Part::Body, "a packed body".to_owned(), found),
        }
    }
    block.resize(row.block_bytes(), 0);
    block.truncate(length);
    Ok(block)
}
