//! Every byte that a store keeps, packed bodies unpacked: to prove that a text is nowhere in it.
//!
//! Looks at files, not through a store's handle: bytes that no reader would be shown are found all the same.

use std::io;
use std::sync::Arc;

use crate::codec::{BLOCK_ROW_BYTES, BlockRow, SegmentHeader, unpack};
use crate::storage::{Access, Storage, read_up_to};

/// Folders of a store, the store's own first.
const FOLDERS: [&str; 6] = ["", "checkpoints", "keys", "log", "quarantine", "snap"];

/// Every file with its bytes, and every stretch of packed bytes in a sealed segment, unpacked.
///
/// # Errors
/// If the storage fails.
pub fn everything_in(storage: &Arc<dyn Storage>) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let names = match storage.list(folder) {
            Ok(names) => names,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        for name in names {
            // Tiles have folders of their own, and hold hashes alone.
            if folder.is_empty() && (FOLDERS.contains(&name.as_str()) || name == "tiles") {
                continue;
            }
            let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let file = storage.open(&name, Access::Read)?;
            let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
            let count = read_up_to(&*file, &mut bytes, 0)?;
            bytes.truncate(count);
            drop(file);
            for (number, body) in packed_bodies(&bytes).into_iter().enumerate() {
                found.push((format!("{name}, stretch {number}"), body));
            }
            found.push((name, bytes));
        }
    }
    Ok(found)
}

/// Where `text` occurs in [`everything_in`] a storage: names of files, in order.
///
/// # Errors
/// If the storage fails.
pub fn whereabouts(storage: &Arc<dyn Storage>, text: &[u8]) -> io::Result<Vec<String>> {
    let found = everything_in(storage)?.into_iter();
    Ok(found.filter(|(_, bytes)| memchr::memmem::find(bytes, text).is_some()).map(|(name, _)| name).collect())
}

/// The packed bodies of a file, if it is a sealed segment. Bytes that do not unpack are left out: they are looked at as they lie.
fn packed_bodies(bytes: &[u8]) -> Vec<Vec<u8>> {
    let Some(layout) = SegmentHeader::decode(bytes).ok().and_then(|header| header.sealed) else {
        return Vec::new();
    };
    let place = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let shape = layout.blocks();
    let table = place(layout.tables_offset().saturating_add(layout.frames().bytes()));
    let stored_at = place(layout.stored_offset());
    let mut found = Vec::new();
    for page in 0..shape.page_count() {
        let (offset, _) = shape.page(page);
        let rows = bytes.get(table.saturating_add(place(offset))..).unwrap_or_default();
        for row in rows.chunks_exact(BLOCK_ROW_BYTES).take(shape.rows_of(page)) {
            let Some(row) = BlockRow::decode(row) else { continue };
            let start = stored_at.saturating_add(row.stored_at as usize);
            let stored =
                bytes.get(start..start.saturating_add(row.stored_bytes as usize)).unwrap_or_default();
            found.extend(unpack(row.codec, stored, row.bytes as usize).ok());
        }
    }
    found
}
