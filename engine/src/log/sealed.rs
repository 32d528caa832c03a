//! Reading sealed segments: blocks out of their packed bytes, frames without their tables, and the check of a whole file.

use super::cursor::{Cursor, next_header};
use super::error::{Corruption, Fault, LogError};
use super::files::corruption;
use super::files::{SCAN_WINDOW_BYTES, SegmentFile, Segments, segment_begin};
use super::lookup::{Source, exactly};
use crate::codec::{
    BLOCK_ROW_BYTES, BlockRow, DIGESTED_RECORD_BYTES, FrameHeader, Invalid, Part, RECORD_BYTES,
    RECORD_OFFSET, RecordKind, SEAL_DOMAIN, SEGMENT_HEADER_BYTES, SealedLayout, is_zero,
};
use crate::ids::{Position, Seq};
use crate::storage::bytes_between;

/// As `recovery_scan::find_header`, in a sealed segment: `offset` and `until` are offsets of positions, not of the file.
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
            let rest = bytes_between(done, bytes);
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
        let position = segment_begin(layout.number);
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
    // A file as long as its layout says ends with the second record.
    let last = expected.saturating_sub(RECORD_BYTES as u64);
    let record = layout.encode(RecordKind::Sealed);
    let checks = (|| {
        let sum = digest(file.source(), layout)?;
        let second = exactly(file.source(), last, RECORD_BYTES)?;
        let stored_end = layout.stored_offset().saturating_add(layout.stored_bytes);
        let padding = bytes_between(stored_end, tables_at);
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
