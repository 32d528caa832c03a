//! Writing a sealed file: chunks one after the other, the seek table, and at last the head.

use std::io;

use super::error::LogError;
use super::files::{SCAN_WINDOW_BYTES, SegmentFile};
use crate::codec::{ChunkPacker, SEAL_HEAD_BYTES, SealHead, SeekEntry, encode_seek_table};
use crate::ids::StoreId;
use crate::storage::{StoredFile, bytes_between, read_up_to, sync, write_all};

/// A sealed file that is being written.
pub(super) struct SealWriter<'a> {
    file: &'a dyn StoredFile,
    at: u64,
    buffer: Vec<u8>,
    packer: ChunkPacker,
    chunks: Vec<SeekEntry>,
    length: u64,
    unpacked: blake3::Hasher,
    packed: blake3::Hasher,
}

fn no_memory() -> io::Error {
    io::ErrorKind::OutOfMemory.into()
}

impl<'a> SealWriter<'a> {
    /// A writer to an empty file.
    pub(super) fn new(file: &'a dyn StoredFile) -> io::Result<Self> {
        Ok(Self {
            file,
            at: SEAL_HEAD_BYTES as u64,
            buffer: Vec::new(),
            packer: ChunkPacker::new().ok_or_else(no_memory)?,
            chunks: Vec::new(),
            length: 0,
            unpacked: blake3::Hasher::new(),
            packed: blake3::Hasher::new(),
        })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.packed.update(bytes);
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= SCAN_WINDOW_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        write_all(self.file, &self.buffer, self.at, &mut 0)?;
        self.at = self.at.saturating_add(self.buffer.len() as u64);
        self.buffer.clear();
        Ok(())
    }

    /// Adds the next bytes of the segment as one chunk.
    pub(super) fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (packed, entry) = self.packer.pack(bytes).ok_or_else(no_memory)?;
        self.copy(&packed, entry, bytes)
    }

    /// Adds a chunk as it is, with its unpacked bytes as readers see them.
    pub(super) fn copy(&mut self, packed: &[u8], entry: SeekEntry, bytes: &[u8]) -> io::Result<()> {
        self.unpacked.update(bytes);
        self.length = self.length.saturating_add(bytes.len() as u64);
        self.chunks.push(entry);
        self.put(packed)
    }

    /// Writes the rest. Durable when it returns, but for the name.
    pub(super) fn finish(mut self, store: StoreId, segment: u32, generation: u32) -> io::Result<()> {
        let table = encode_seek_table(&self.chunks);
        self.put(&table)?;
        self.flush()?;
        let head = SealHead {
            store,
            segment,
            generation,
            length: self.length,
            unpacked: *self.unpacked.finalize().as_bytes(),
            packed: *self.packed.finalize().as_bytes(),
        };
        write_all(self.file, &head.encode(), 0, &mut 0)?;
        sync(self.file)
    }
}

/// Where the new file first differs from what it must say; `None`: nowhere. `expected` gives the bytes from an offset on, at least one up
/// to `length`.
pub(super) fn first_difference(
    made: &SegmentFile,
    length: u64,
    mut expected: impl FnMut(u64, usize) -> Result<Vec<u8>, LogError>,
) -> Result<Option<u64>, LogError> {
    let fail = |action| {
        let path = made.path.clone();
        move |error| LogError::io(action, path, error)
    };
    if made.file.len().map_err(fail("inspect"))? != length {
        return Ok(Some(0));
    }
    let mut at = 0_u64;
    while at < length {
        let rest = bytes_between(at, length);
        let wanted = expected(at, rest.min(SCAN_WINDOW_BYTES))?;
        let mut found = vec![0; wanted.len()];
        let count = read_up_to(&*made.file, &mut found, at).map_err(fail("read"))?;
        if wanted.is_empty() || count < wanted.len() || found != wanted {
            return Ok(Some(at));
        }
        at = at.saturating_add(count as u64);
    }
    Ok(None)
}
