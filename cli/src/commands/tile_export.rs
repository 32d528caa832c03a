//! `acpdb checkpoint export --tiles FOLDER`: the tree up to a checkpoint in the format C2SP tlog-tiles, for any server of files.
//!
//! ```text
//! FOLDER/checkpoint              the signed note; put there last
//! FOLDER/tile/0/x001/234         hashes
//! FOLDER/tile/entries/x001/234   the hashed data of leaves: 32 bytes for each event, which show nothing of it
//! ```

use std::io::Write as _;
use std::path::Path;

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_proof::tree::leaf_hash;
use acpdb_proof::{Checkpoint, Tile, Tiler, commitment, tiles};

use super::Failure;

/// Writes a file as a whole: readers of the folder see the former file, or this one.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let written = acpdb_live::files::make_folder(folder).and_then(|()| {
        let mut file = tempfile::Builder::new();
        // The file is for others to read.
        file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
        let mut file = file.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    });
    written.map_err(Failure::io("write", path.display()))
}

/// Writes a tile unless the same is there: a whole tile never changes.
fn write_tile(folder: &Path, tile: Tile, bytes: &[u8]) -> Result<(), Failure> {
    let path = folder.join("tile").join(tile.path());
    if std::fs::read(&path).is_ok_and(|found| found == bytes) { Ok(()) } else { write(&path, bytes) }
}

/// Writes entries of leaves in the form of their file.
fn write_entries(folder: &Path, tile: Tile, entries: &mut Vec<u8>) -> Result<(), Failure> {
    let path = tile.path();
    let path = path.strip_prefix("0/").unwrap_or(&path);
    let bytes = std::mem::take(entries);
    let path = folder.join("tile/entries").join(path);
    if std::fs::read(&path).is_ok_and(|found| found == bytes) { Ok(()) } else { write(&path, &bytes) }
}

/// Writes the tree of a checkpoint; returns the number of its tiles. Cost: a pass over its events.
pub(crate) fn run(store: &Store, checkpoint: &Checkpoint, note: &str, folder: &Path) -> Result<u64, Failure> {
    let (mut tiler, mut entries, mut count) = (Tiler::default(), Vec::new(), 0_u64);
    for leaf in store.leaves(Seq(1), checkpoint.seq)? {
        let leaf = leaf?;
        let entry = commitment(&leaf.salt, &leaf.bytes);
        let length = u16::try_from(entry.len()).unwrap_or_default();
        entries.extend_from_slice(&length.to_be_bytes());
        entries.extend_from_slice(&entry);
        for (tile, hashes) in tiler.push(leaf_hash(&entry)) {
            write_tile(folder, tile, &tiles::tile_bytes(&hashes))?;
            if tile.level == 0 {
                write_entries(folder, tile, &mut entries)?;
            }
            count += 1;
        }
    }
    if tiler.size() != checkpoint.seq.get() {
        return Err(crate::claims::cut(checkpoint.seq));
    }
    if tiler.root() != checkpoint.root {
        return Err(crate::claims::rewritten(checkpoint));
    }
    for (tile, hashes) in tiler.edge() {
        write_tile(folder, tile, &tiles::tile_bytes(hashes))?;
        if tile.level == 0 {
            write_entries(folder, tile, &mut entries)?;
        }
        count += 1;
    }
    write(&folder.join("checkpoint"), note.as_bytes())?;
    Ok(count)
}
