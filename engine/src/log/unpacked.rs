//! A sealed segment, read as the segment that it was: by position and length.
//!
//! ```text
//! position, length -> seek table -> chunks that hold it -> unpacked, checked -> bytes
//!                     (lost: made anew from the chunks)    (damaged: filling, which no check takes for events or texts)
//! ```
//!
//! Each read asks whether the name still leads to the open file. If another process put a new file there, such as one without the
//! texts that were erased, that file is opened, and nothing of the old one is served. Chunks that were unpacked serve their neighbours; their memory is
//! filled with zeros when they go.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use zeroize::Zeroizing;

use crate::codec::{
    ChunkUnpacker, Invalid, SEAL_HEAD_BYTES, SEEK_FOOTER_BYTES, SealHead, SeekEntry, chunk_at, claimed_bytes,
    decode_seek_table, is_sealed, next_chunk_magic, packed_bytes_max, seek_table_bytes,
};
use crate::locks::steady;
use crate::storage::{Access, Storage, StoredFile, bytes_between, read_up_to};

/// Chunks that are kept unpacked, for all segments: 4 MiB at most.
const KEPT_COUNT: usize = 64;
/// Unpackers that are kept for the next reads.
const UNPACKER_COUNT_MAX: usize = 4;
/// The byte that stands for those of a damaged chunk. Zeros would say that a text was erased.
const FILLING: u8 = 0xdb;
/// How often a file is opened anew during one read.
const REOPEN_COUNT_MAX: u32 = 8;

/// Where a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its first byte in the segment.
    pub(crate) start: u64,
    /// Its first byte in the file.
    pub(crate) place: u64,
    pub(crate) entry: SeekEntry,
}

impl Chunk {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.entry.unpacked))
    }

    fn place_end(&self) -> u64 {
        self.place.saturating_add(u64::from(self.entry.packed))
    }
}

/// An open file.
struct OpenSegment {
    /// Distinguishes it from all other files that were opened here.
    id: u64,
    file: Box<dyn StoredFile>,
    /// `None`: the segment is not sealed, after all.
    head: Option<Result<SealHead, Invalid>>,
    chunks: OnceLock<Arc<Vec<Chunk>>>,
}

type Kept = (u64, u64, Arc<Zeroizing<Vec<u8>>>);

/// Unpacked chunks that may be asked for again, and unpackers.
#[derive(Default)]
pub(crate) struct KeptChunks {
    next_id: AtomicU64,
    /// By file and start; the newest is last.
    kept: Mutex<VecDeque<Kept>>,
    unpackers: Mutex<Vec<ChunkUnpacker>>,
}

impl KeptChunks {
    fn get(&self, id: u64, start: u64) -> Option<Arc<Zeroizing<Vec<u8>>>> {
        let mut kept = steady(&self.kept);
        let at = kept.iter().position(|(file, first, _)| (*file, *first) == (id, start))?;
        let found = kept.remove(at)?;
        let bytes = Arc::clone(&found.2);
        kept.push_back(found);
        Some(bytes)
    }

    fn keep(&self, id: u64, start: u64, bytes: Arc<Zeroizing<Vec<u8>>>) {
        let mut kept = steady(&self.kept);
        if kept.len() >= KEPT_COUNT {
            kept.pop_front();
        }
        kept.push_back((id, start, bytes));
    }

    /// Lets go of all chunks.
    pub(crate) fn forget(&self) {
        steady(&self.kept).clear();
    }

    fn unpack(&self, packed: &[u8], out: &mut [u8]) -> io::Result<bool> {
        let known = steady(&self.unpackers).pop();
        let unpacker = known.or_else(ChunkUnpacker::new);
        let mut unpacker = unpacker.ok_or(io::ErrorKind::OutOfMemory)?;
        let is_sound = unpacker.unpack(packed, out);
        let mut unpackers = steady(&self.unpackers);
        if is_sound && unpackers.len() < UNPACKER_COUNT_MAX {
            unpackers.push(unpacker);
        }
        Ok(is_sound)
    }
}

/// A sealed segment open for reading.
pub(crate) struct Unpacked {
    storage: Arc<dyn Storage>,
    name: String,
    chunks: Arc<KeptChunks>,
    current: Mutex<Arc<OpenSegment>>,
}

/// Whether the file is a sealed segment.
pub(crate) fn is_sealed_file(file: &dyn StoredFile) -> io::Result<bool> {
    Ok(read_head(file)?.is_some())
}

/// The head of a sealed segment, or the reason why it cannot be read; `None`: the file is not sealed.
fn read_head(file: &dyn StoredFile) -> io::Result<Option<Result<SealHead, Invalid>>> {
    let mut first = [0; SEAL_HEAD_BYTES + 4];
    let count = read_up_to(file, &mut first, 0)?;
    let first = first.get(..count).unwrap_or(&[]);
    Ok(is_sealed(first).then(|| SealHead::decode(first)))
}

impl OpenSegment {
    fn new(file: Box<dyn StoredFile>, kept: &KeptChunks) -> io::Result<Self> {
        let id = kept.next_id.fetch_add(1, Ordering::Relaxed);
        let head = read_head(&*file)?;
        Ok(Self { id, file, head, chunks: OnceLock::new() })
    }

    /// Where the chunks are: from the seek table, else from the chunks themselves.
    fn chunk_list(&self) -> io::Result<&Arc<Vec<Chunk>>> {
        if let Some(chunks) = self.chunks.get() {
            return Ok(chunks);
        }
        let entries = self.listed()?;
        let chunks = match entries {
            Some(entries) => {
                let (mut start, mut place) = (0_u64, SEAL_HEAD_BYTES as u64);
                let placed = entries.into_iter().map(|entry| {
                    let chunk = Chunk { start, place, entry };
                    start = chunk.end();
                    place = place.saturating_add(u64::from(entry.packed));
                    chunk
                });
                placed.collect()
            }
            None => self.walked()?,
        };
        Ok(self.chunks.get_or_init(|| Arc::new(chunks)))
    }

    /// The entries of the seek table, if it is one.
    fn listed(&self) -> io::Result<Option<Vec<SeekEntry>>> {
        let length = self.file.len()?;
        let Some(footer_at) = length.checked_sub(SEEK_FOOTER_BYTES as u64) else { return Ok(None) };
        let footer = self.bytes(footer_at, SEEK_FOOTER_BYTES)?;
        let Some(bytes) = seek_table_bytes(&footer) else { return Ok(None) };
        let Some(start) = length.checked_sub(bytes as u64) else { return Ok(None) };
        let entries = decode_seek_table(&self.bytes(start, bytes)?, length);
        let ends_at = |entries: &Vec<SeekEntry>| {
            entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(u64::from(entry.unpacked)))
        };
        // Where the head is damaged the table alone serves.
        let expected = self.head.as_ref().and_then(|head| head.as_ref().ok()).map(|head| head.length);
        Ok(entries.filter(|entries| expected.is_none_or(|expected| expected == ends_at(entries))))
    }

    /// The chunks that are found one behind the other. A damaged one may hide how long it is: then the next sound one is looked for,
    /// and the beginning of the damaged one says how many bytes of the segment lie between.
    fn walked(&self) -> io::Result<Vec<Chunk>> {
        let length = self.file.len()?;
        let (mut chunks, mut start, mut place) = (Vec::new(), 0_u64, SEAL_HEAD_BYTES as u64);
        while place < length {
            let bytes = self.bytes(place, packed_bytes_max())?;
            if let Some(entry) = chunk_at(&bytes) {
                let chunk = Chunk { start, place, entry };
                start = chunk.end();
                place = place.saturating_add(u64::from(entry.packed).max(1));
                chunks.push(chunk);
                continue;
            }
            let behind = bytes.get(1..).unwrap_or(&[]);
            let mut skipped = 0;
            let next = loop {
                let Some(at) = next_chunk_magic(behind.get(skipped..).unwrap_or(&[])) else { break None };
                skipped = skipped.saturating_add(at);
                if behind.get(skipped..).and_then(chunk_at).is_some() {
                    break Some(skipped.saturating_add(1));
                }
                skipped = skipped.saturating_add(1);
            };
            let Some(unpacked) = claimed_bytes(&bytes) else { break };
            let next = next.unwrap_or(bytes.len());
            let packed = u32::try_from(next).unwrap_or(u32::MAX);
            let chunk = Chunk { start, place, entry: SeekEntry { packed, unpacked, checksum: 0 } };
            start = chunk.end();
            place = place.saturating_add(next as u64);
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    /// Bytes of the file; fewer at its end. Callers bound the length, by that of a chunk or of the file.
    fn bytes(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let count = read_up_to(&*self.file, &mut bytes, at)?;
        bytes.truncate(count);
        Ok(bytes)
    }
}

impl Unpacked {
    /// Opens a file that is sealed.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        name: String,
        file: Box<dyn StoredFile>,
        chunks: Arc<KeptChunks>,
    ) -> io::Result<Self> {
        let opened = Arc::new(OpenSegment::new(file, &chunks)?);
        Ok(Self { storage, name, chunks, current: Mutex::new(opened) })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.storage.path(&self.name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file that has the name now.
    fn opened(&self) -> io::Result<Arc<OpenSegment>> {
        let known = steady(&self.current).clone();
        // If the disk does not say it, the open file serves on, as that of a segment that is not sealed does.
        if known.file.is_current().unwrap_or(true) {
            return Ok(known);
        }
        let file = match self.storage.open(&self.name, Access::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(known),
            Err(error) => return Err(error),
        };
        let opened = Arc::new(OpenSegment::new(file, &self.chunks)?);
        *steady(&self.current) = Arc::clone(&opened);
        Ok(opened)
    }

    /// The head, or the reason why it cannot be read; `None`: the file is not sealed any more.
    pub(crate) fn head(&self) -> io::Result<Option<Result<SealHead, Invalid>>> {
        Ok(self.opened()?.head.clone())
    }

    /// Where all chunks are.
    pub(crate) fn chunk_list(&self) -> io::Result<Arc<Vec<Chunk>>> {
        Ok(Arc::clone(self.opened()?.chunk_list()?))
    }

    /// Whether the seek table is there and fits the file.
    pub(crate) fn has_table(&self) -> io::Result<bool> {
        Ok(self.opened()?.listed()?.is_some())
    }

    /// Bytes of the file.
    pub(crate) fn packed_bytes(&self) -> io::Result<u64> {
        self.opened()?.file.len()
    }

    /// Bytes of the file as they are; fewer at its end.
    pub(crate) fn packed(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        self.opened()?.bytes(at, length)
    }

    /// Whether any byte of a chunk was ever written: a file of many gigabytes may hold a few bytes.
    pub(crate) fn is_written(&self, chunk: &Chunk) -> io::Result<bool> {
        let data = self.opened()?.file.data_from(chunk.place)?;
        Ok(data.is_some_and(|data| data < chunk.place_end()))
    }

    /// The first byte of the file at or after `at` that is in no hole.
    pub(crate) fn packed_data_from(&self, at: u64) -> io::Result<Option<u64>> {
        self.opened()?.file.data_from(at)
    }

    /// The bytes of a chunk; `None`: it is damaged.
    pub(crate) fn unpacked(&self, chunk: &Chunk) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let mut out = Zeroizing::new(vec![0; chunk.entry.unpacked as usize]);
        let packed = self.packed(chunk.place, chunk.entry.packed as usize)?;
        Ok(self.chunks.unpack(&packed, &mut out)?.then_some(out))
    }

    /// Fills `out` with the part of a chunk from `skip` on; says whether the chunk is sound.
    fn read_chunk(
        &self,
        opened: &OpenSegment,
        chunk: &Chunk,
        skip: usize,
        out: &mut [u8],
    ) -> io::Result<bool> {
        let known = self.chunks.get(opened.id, chunk.start);
        let bytes = if let Some(bytes) = known {
            bytes
        } else {
            let packed = opened.bytes(chunk.place, chunk.entry.packed as usize)?;
            if skip == 0 && out.len() == chunk.entry.unpacked as usize {
                // A scan comes by once.
                return self.chunks.unpack(&packed, out);
            }
            let mut bytes = Zeroizing::new(vec![0; chunk.entry.unpacked as usize]);
            if !self.chunks.unpack(&packed, &mut bytes)? {
                return Ok(false);
            }
            let bytes = Arc::new(bytes);
            self.chunks.keep(opened.id, chunk.start, Arc::clone(&bytes));
            bytes
        };
        let part = bytes.get(skip..).unwrap_or(&[]);
        // The part ends in this chunk.
        let length = out.len().min(part.len());
        if let (Some(to), Some(from)) = (out.get_mut(..length), part.get(..length)) {
            to.copy_from_slice(from);
        }
        Ok(true)
    }
}

impl StoredFile for Unpacked {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut opened = self.opened()?;
        let mut reopened = 0;
        let mut done = 0_usize;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            if opened.head.is_none() {
                return if done == 0 { opened.file.read_at(rest, offset) } else { Ok(done) };
            }
            let at = offset.saturating_add(done as u64);
            let chunks = opened.chunk_list()?;
            let index = chunks.partition_point(|chunk| chunk.end() <= at);
            let Some(chunk) = chunks.get(index).copied() else { break };
            let length = bytes_between(at, chunk.end()).min(rest.len());
            let skip = bytes_between(chunk.start, at);
            let Some(out) = rest.get_mut(..length) else { break };
            if !self.read_chunk(&opened, &chunk, skip, out)? {
                // Zeros or damage: perhaps the file was replaced while it was read.
                if !opened.file.is_current().unwrap_or(true) && reopened < REOPEN_COUNT_MAX {
                    if done > 0 {
                        return Ok(done);
                    }
                    opened = self.opened()?;
                    reopened += 1;
                    continue;
                }
                out.fill(FILLING);
            }
            done = done.saturating_add(length);
        }
        Ok(done)
    }

    fn len(&self) -> io::Result<u64> {
        let opened = self.opened()?;
        match &opened.head {
            None => opened.file.len(),
            Some(Ok(head)) => Ok(head.length),
            Some(Err(_)) => Ok(opened.chunk_list()?.last().map_or(0, Chunk::end)),
        }
    }

    /// Chunks in a hole of the file are passed over: no frame is there.
    fn data_from(&self, offset: u64) -> io::Result<Option<u64>> {
        let opened = self.opened()?;
        if opened.head.is_none() {
            return opened.file.data_from(offset);
        }
        let chunks = opened.chunk_list()?;
        let mut index = chunks.partition_point(|chunk| chunk.end() <= offset);
        while let Some(chunk) = chunks.get(index) {
            let Some(data) = opened.file.data_from(chunk.place)? else { return Ok(None) };
            if data < chunk.place_end() {
                return Ok(Some(chunk.start.max(offset)));
            }
            index = chunks.partition_point(|chunk| chunk.place_end() <= data).max(index + 1);
        }
        Ok(None)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    fn is_current(&self) -> io::Result<bool> {
        steady(&self.current).file.is_current()
    }
}
