//! Every byte that a store keeps, sealed segments unpacked: to prove that a text is nowhere in it.
//!
//! Looks at files, not through a store's handle: bytes that no reader would be shown are found all the same.

use std::io;
use std::sync::Arc;

use crate::codec::{ChunkUnpacker, SEAL_HEAD_BYTES, chunk_at, is_sealed, next_chunk_magic};
use crate::storage::{Access, Storage, read_up_to};

/// Folders of a store, the store's own first.
const FOLDERS: [&str; 6] = ["", "checkpoints", "keys", "log", "quarantine", "snap"];

/// Every file with its bytes, and every chunk of a sealed segment, unpacked.
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
            for (number, body) in chunks(&bytes).into_iter().enumerate() {
                found.push((format!("{name}, chunk {number}"), body));
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

/// The segment that a sealed file unpacks to, in chunks. Bytes that do not unpack are left out: they are looked at as they lie.
fn chunks(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    if !is_sealed(bytes) {
        return found;
    }
    let mut rest = bytes.get(SEAL_HEAD_BYTES..).unwrap_or_default();
    let Some(mut unpacker) = ChunkUnpacker::new() else { return found };
    while let Some(at) = next_chunk_magic(rest) {
        rest = rest.get(at..).unwrap_or_default();
        let entry = chunk_at(rest);
        let packed = entry.map_or(1, |entry| entry.packed as usize);
        if let Some(entry) = entry {
            let mut out = vec![0; entry.unpacked as usize];
            if unpacker.unpack(rest.get(..packed).unwrap_or_default(), &mut out) {
                found.push(out);
            }
        }
        rest = rest.get(packed..).unwrap_or_default();
    }
    found
}
