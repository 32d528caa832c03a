//! Reading sealed segments: blocks out of their packed bytes, frames without their tables, and the check of a whole file.

use super::error::{Corruption, LogError};
use super::files::{Cursor, Fault, SCAN_WINDOW_BYTES, SegmentFile, Segments};
use super::frames::corruption;
use super::lookup::{Source, Tables, exactly};
use crate::codec::{
    BLOCK_ROW_BYTES, BODY_CHUNK_BYTES_MAX, BlockRow, DIGESTED_RECORD_BYTES, FRAME_HEADER_BYTES, FRAME_MAGIC,
    FrameHeader, Invalid, Part, RECORD_BYTES, RECORD_OFFSET, RecordKind, SALT_BYTES, SEAL_DOMAIN,
    SEGMENT_HEADER_BYTES, SealedLayout, is_zero, unpack,
};
use crate::ids::{Position, Seq, StoreId};

/// The record at the end of a file, if it is that of this sealed segment: what is left when the header is damaged.
pub(crate) fn last_record(
    source: Source<'_>,
    number: u32,
    store: StoreId,
) -> Result<Option<SealedLayout>, LogError> {
    let length = source.file.len();
    let length = length.map_err(|error| LogError::io("inspect", source.path.to_owned(), error))?;
    let Some(start) = length.checked_sub(RECORD_BYTES as u64) else { return Ok(None) };
    let bytes = match exactly(source, start, RECORD_BYTES) {
        Ok(bytes) => bytes,
        Err(Fault::Error(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let layout = SealedLayout::decode(&bytes, RecordKind::Sealed).ok();
    Ok(layout
        .filter(|layout| layout.number == number && layout.store == store && layout.file_bytes() == length))
}

/// What a row says that is stored, and the salt: as they are in the file, the stored bytes checked by their length only.
pub(crate) struct StoredBlock {
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) stored: Vec<u8>,
}

/// Where the stored bytes of a block begin in the file.
pub(crate) fn stored_place(layout: &SealedLayout, row: &BlockRow) -> Result<u64, Fault> {
    let end = u64::from(row.stored_at).saturating_add(u64::from(row.stored_bytes));
    // What is packed is no longer than what it was.
    if end > layout.stored_bytes || row.stored_bytes as usize > BODY_CHUNK_BYTES_MAX {
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
    let salt = salt.first_chunk::<SALT_BYTES>().copied().unwrap_or_default();
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

/// Looks through headers and spines for the frame of `position`, when the tables cannot say where it is.
pub(crate) fn find_place(
    cursor: &mut Cursor<'_>,
    tables: &Tables,
    position: Position,
) -> Result<Option<u64>, LogError> {
    let mut at = SEGMENT_HEADER_BYTES as u64;
    while let Some((place, header)) = next_header(cursor, &tables.layout, at)? {
        if header.position == position {
            return Ok(Some(place));
        }
        at = place.saturating_add(Position::GRAIN_BYTES);
    }
    Ok(None)
}

/// The first sound header of this segment at byte `at` of the file or after it, and where it is.
fn next_header(
    cursor: &mut Cursor<'_>,
    layout: &SealedLayout,
    mut at: u64,
) -> Result<Option<(u64, FrameHeader)>, LogError> {
    let end = layout.salts_offset();
    while at < end {
        let bytes = cursor.rest(layout.number, at, FRAME_HEADER_BYTES)?;
        let rest = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        let bytes = bytes.get(..rest).unwrap_or(bytes);
        if bytes.len() < FRAME_HEADER_BYTES {
            return Ok(None);
        }
        let grains = bytes.len().saturating_sub(FRAME_HEADER_BYTES) / 16 + 1;
        let candidate = bytes.chunks(16).take(grains).position(|chunk| chunk.starts_with(&FRAME_MAGIC));
        let Some(grain) = candidate else {
            at = at.saturating_add(grains as u64 * Position::GRAIN_BYTES);
            continue;
        };
        at = at.saturating_add(grain as u64 * Position::GRAIN_BYTES);
        let bytes = cursor.bytes(layout.number, at, FRAME_HEADER_BYTES)?;
        if let Ok(header) = FrameHeader::decode(bytes)
            && header.store == layout.store
            && header.position.segment() == layout.number
            && header.position < layout.end
        {
            return Ok(Some((at, header)));
        }
        at = at.saturating_add(Position::GRAIN_BYTES);
    }
    Ok(None)
}

/// As `recovery_scan::find_header`, in a sealed segment: `offset` and `until` are those of positions.
pub(crate) fn find_header(
    cursor: &mut Cursor<'_>,
    file: &SegmentFile,
    offset: u64,
    until: u64,
    after_seq: Seq,
) -> Result<Option<FrameHeader>, LogError> {
    let Some(tables) = &file.sealed else { return Ok(None) };
    let known = cursor.places.iter().filter(|(position, place)| *place > 0 && position.offset() <= offset);
    let mut at = known.map(|(_, place)| *place).max().unwrap_or(SEGMENT_HEADER_BYTES as u64);
    while let Some((place, header)) = next_header(cursor, &tables.layout, at)? {
        let position = header.position;
        if position.offset() >= until {
            return Ok(None);
        }
        if position.offset() >= offset && header.first_seq > after_seq {
            cursor.places = [(position, place); 2];
            return Ok(Some(header));
        }
        at = place.saturating_add(Position::GRAIN_BYTES);
    }
    Ok(None)
}

/// The digest of a sealed file as it is: over header, record, headers and spines, and tables.
pub(crate) fn digest(source: Source<'_>, layout: &SealedLayout) -> Result<[u8; 32], Fault> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(SEAL_DOMAIN);
    let header = exactly(source, 0, SEGMENT_HEADER_BYTES)?;
    hasher.update(header.get(..RECORD_OFFSET).unwrap_or(&[]));
    let record = layout.encode(RecordKind::Sealed);
    hasher.update(record.get(..DIGESTED_RECORD_BYTES).unwrap_or(&[]));
    for (start, bytes) in
        [(SEGMENT_HEADER_BYTES as u64, layout.spines_bytes), (layout.tables_offset(), layout.tables_bytes())]
    {
        let mut done = 0_u64;
        while done < bytes {
            let rest = usize::try_from(bytes.saturating_sub(done)).unwrap_or(usize::MAX);
            let piece = exactly(source, start.saturating_add(done), rest.min(SCAN_WINDOW_BYTES))?;
            hasher.update(&piece);
            done = done.saturating_add(piece.len() as u64);
        }
    }
    Ok(*hasher.finalize().as_bytes())
}

/// Everything about a sealed file that its frames do not show: its length, digest, both records, and that stored bytes lie
/// without gaps. Bodies are checked with their frames.
pub(crate) fn check_file(segments: &Segments, file: &SegmentFile) -> Result<Vec<Corruption>, LogError> {
    let Some(tables) = &file.sealed else { return Ok(Vec::new()) };
    let layout = &tables.layout;
    let mut found = Vec::new();
    let mut report = |part, offset: u64, expected: String, actual: String| {
        let position = Position::new(layout.number, 0).unwrap_or_default();
        let invalid = Invalid { part, offset: 0, expected, found: actual };
        let mut damage = corruption(segments, position, Fault::Invalid(invalid, None));
        damage.offset = offset;
        found.push(damage);
    };
    let length = file.file.len().map_err(|error| LogError::io("inspect", file.path.clone(), error))?;
    let expected = layout.file_bytes();
    if length != expected {
        let part = if length > expected { Part::Rubbish } else { Part::Footer };
        report(part, length.min(expected), format!("{expected} bytes"), format!("{length} bytes"));
    }
    let tables_at = layout.tables_offset();
    let last = expected.saturating_sub(RECORD_BYTES as u64);
    let record = layout.encode(RecordKind::Sealed);
    let checks = (|| {
        let sum = digest(file.source(), layout)?;
        let second = exactly(file.source(), last, RECORD_BYTES)?;
        let stored_end = layout.stored_offset().saturating_add(layout.stored_bytes);
        let padding = usize::try_from(tables_at.saturating_sub(stored_end)).unwrap_or(0);
        let padding = exactly(file.source(), stored_end, padding)?;
        let rows = tables.blocks.rows(file.source(), 0, u32::MAX)?;
        Ok::<_, Fault>((sum, second, padding, rows))
    })();
    match checks {
        Ok((sum, second, padding, rows)) => {
            if sum != layout.digest {
                let text = |digest: &[u8; 32]| crate::ids::Digest(*digest).to_string();
                report(Part::Footer, tables_at, format!("digest {}", text(&layout.digest)), text(&sum));
            }
            if second != record {
                report(Part::Footer, last, "the record of the header".to_owned(), "another".to_owned());
            }
            if !is_zero(&padding) {
                report(Part::Rubbish, tables_at, "zeros".to_owned(), "other bytes".to_owned());
            }
            if !tiles(&rows, layout.stored_bytes) {
                let expected = format!("blocks for {} stored bytes", layout.stored_bytes);
                report(Part::Footer, tables_at, expected, "others".to_owned());
            }
        }
        Err(Fault::Error(error)) => return Err(error),
        Err(Fault::Invalid(invalid, _)) => report(Part::Footer, tables_at, invalid.expected, invalid.found),
        Err(Fault::Nothing) => report(Part::Footer, tables_at, "tables".to_owned(), "nothing".to_owned()),
    }
    Ok(found)
}

/// Whether the stored bytes of all rows lie one after the other, without gaps, up to `stored_bytes`.
fn tiles(rows: &[u8], stored_bytes: u64) -> bool {
    let mut next = 0_u64;
    let mut shared = std::collections::HashSet::new();
    for row in rows.chunks_exact(BLOCK_ROW_BYTES) {
        let Some(row) = BlockRow::decode(row) else { return false };
        let stretch = (row.stored_at, row.stored_bytes, row.checksum, row.codec);
        if row.stored_bytes == 0 || shared.contains(&stretch) {
            continue;
        }
        if u64::from(row.stored_at) != next {
            return false;
        }
        shared.insert(stretch);
        next = next.saturating_add(u64::from(row.stored_bytes));
    }
    next == stored_bytes
}
