//! A fold as a section of a stream's snapshot, so that a long session opens without being folded from its beginning.
//!
//! ```text
//! section   streams that were folded, 16 each      the folded world, as `fold` lays it out
//!
//! open:  digest ok? the log has this link at this seq?  --yes--> fold on from there
//!                                                       --no---> remove, fold from the beginning
//! ```
//!
//! For most texts the section holds their address, not their words. Words that stand in events themselves (paths, tool names, keys,
//! ids) and short texts (titles, keys of memory) are in it, so a section from before an erasure is refused and removed.
//!
//! The digest finds accidents and careless hands. A program that can write to the folder can forge a snapshot as it can forge the
//! index: `verify` compares the link of each with the log, and `verify --deep` each as a whole with a fold made anew.

use super::Inner;
use super::kept::Loaded;
use super::snapshot_file::{Entry, Footing, Header, Part, Section};
use crate::fold::{Pieces, TAKEN_BYTES_MAX, World};
use crate::ids::StreamId;
use crate::storage::{StoredFile, bytes_between, expect_filled, read_up_to};

/// Longest fold that is written or read.
const FOLD_BYTES_MAX: usize = 1 << 30;
/// Bytes that are read and hashed at a time, with the rest of the piece before.
const PIECE_BYTES: usize = 256 << 10;
const _: () = assert!(STREAM_COUNT_MAX * 16 <= TAKEN_BYTES_MAX && TAKEN_BYTES_MAX <= PIECE_BYTES / 2);
/// Most streams of one fold that is saved: forks of forks, at most.
const STREAM_COUNT_MAX: usize = 4096;
/// In the second number of the entry, above the count of streams: whether beginnings of other sessions were looked at.
const BEGINNINGS: u64 = 1 << 32;

fn hasher() -> blake3::Hasher {
    blake3::Hasher::new_derive_key("acpdb 2026 snapshot v2")
}

/// A fold as bytes, and their entry in the header.
pub(super) struct SavedFold {
    entry: Entry,
    bytes: Vec<u8>,
}

impl SavedFold {
    pub(super) fn part(&self) -> Part<'_> {
        Part { section: Section::Fold, entry: self.entry, bytes: [&self.bytes, &[]] }
    }
}

/// A fold as bytes; `None` if it is too large to be saved, or must not be.
pub(super) fn encode(footing: Footing, loaded: &Loaded) -> Option<SavedFold> {
    // Events that were left out may be mended one day; a saved fold would hide that for ever.
    if loaded.has_gaps || loaded.bare {
        return None;
    }
    let streams = loaded.streams.as_deref().filter(|streams| streams.len() <= STREAM_COUNT_MAX)?;
    let mut bytes = Vec::new();
    for stream in streams {
        bytes.extend_from_slice(stream.as_bytes());
    }
    let bytes = loaded.world.save(bytes)?;
    if bytes.len() > FOLD_BYTES_MAX {
        return None;
    }
    let beginnings = if loaded.beginnings { BEGINNINGS } else { 0 };
    let entry = Entry {
        footing,
        numbers: [loaded.event_count, streams.len() as u64 | beginnings],
        bytes: bytes.len() as u64,
        digest: *hasher().update(&bytes).finalize().as_bytes(),
    };
    Some(SavedFold { entry, bytes })
}

/// The bytes of a saved fold, front to back: each is hashed once, and taken apart while it is in the processor's cache.
pub(super) struct Read<'a> {
    /// Reads at an offset of the section until the buffer is full or the file ends.
    source: &'a dyn Fn(&mut [u8], u64) -> std::io::Result<usize>,
    hasher: blake3::Hasher,
    /// Bytes that were read and hashed; those from `start` to `end` were not taken yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the section, and how many of them were read.
    length: u64,
    done: u64,
    failed: bool,
}

impl<'a> Read<'a> {
    fn new(source: &'a dyn Fn(&mut [u8], u64) -> std::io::Result<usize>, length: u64) -> Self {
        let (hasher, buffer) = (hasher(), vec![0; PIECE_BYTES]);
        Self { source, hasher, buffer, start: 0, end: 0, length, done: 0, failed: false }
    }

    /// Reads the next bytes behind those that are left of the buffer. `None` if the file got shorter.
    fn more(&mut self) -> Option<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        // Nothing is taken past the end of the bytes read.
        let kept = self.end.saturating_sub(self.start);
        let wanted = bytes_between(self.done, self.length);
        (self.start, self.end) = (0, PIECE_BYTES.min(kept.saturating_add(wanted)));
        let piece = self.buffer.get_mut(kept..self.end)?;
        match (self.source)(piece, self.done) {
            Ok(count) if count == piece.len() => {}
            read => {
                self.failed = read.is_err();
                return None;
            }
        }
        self.hasher.update(piece);
        self.done = self.done.saturating_add(piece.len() as u64);
        Some(())
    }
}

impl Pieces for Read<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let end = self.start.checked_add(count).filter(|_| count <= TAKEN_BYTES_MAX)?;
        if end > self.end {
            self.more()?;
        }
        let start = self.start;
        self.start = start.saturating_add(count);
        // Past the end lie bytes of an earlier piece.
        self.buffer.get(start..self.start).filter(|_| self.start <= self.end)
    }

    fn left(&self) -> u64 {
        // As in `more`.
        self.length.saturating_sub(self.done).saturating_add(self.end.saturating_sub(self.start) as u64)
    }

    fn expect(&self, start: *const u8, bytes: usize) {
        expect_filled(start, bytes);
    }
}

/// The fold that a section holds, if its digest fits. The digest is known in the end: if it does not fit, the fold is thrown away.
fn decode(read: &mut Read<'_>, entry: &Entry) -> Option<Loaded> {
    if read.length > FOLD_BYTES_MAX as u64 {
        // No program writes a fold so long, so this is none.
        return None;
    }
    let [event_count, streams] = entry.numbers;
    let beginnings = streams & BEGINNINGS != 0;
    let stream_count =
        usize::try_from(streams & !BEGINNINGS).ok().filter(|count| *count <= STREAM_COUNT_MAX)?;
    let streams = read.take(stream_count.checked_mul(16)?)?;
    let streams = streams.as_chunks().0.iter().map(|bytes| StreamId(*bytes)).collect();
    let world = World::restore(read)?;
    if *read.hasher.finalize().as_bytes() != entry.digest {
        return None;
    }
    Some(Loaded {
        world,
        streams: Some(streams),
        beginnings,
        bare: false,
        is_resumed: true,
        has_gaps: false,
        watermark: entry.footing.seq,
        event_count,
        saved_count: event_count,
    })
}

/// The saved fold in a file, if its digest holds; whether the log bears it out is for the caller to ask. An error: the file cannot be
/// read now.
pub(super) fn read_saved(
    file: &dyn StoredFile,
    header: &Header,
) -> std::io::Result<Option<(Footing, Loaded)>> {
    let Some(entry) = header.entry(Section::Fold) else { return Ok(None) };
    let first = header.offset(Section::Fold);
    let read_at = |buffer: &mut [u8], offset: u64| read_up_to(file, buffer, first.saturating_add(offset));
    let mut read = Read::new(&read_at, entry.bytes);
    let found = decode(&mut read, entry);
    if read.failed {
        return Err(std::io::ErrorKind::Other.into());
    }
    Ok(found.map(|loaded| (entry.footing, loaded)))
}

impl Inner {
    /// The saved fold of a stream, if there is one that this log bears out.
    pub(super) fn saved_fold(&self, stream: StreamId) -> Option<Loaded> {
        let (file, header) = self.snapshot_of(stream)?;
        header.entry(Section::Fold)?;
        // A saved fold that cannot be read is made of the log instead.
        let found = read_saved(&*file, &header).ok()?;
        let sound = found.and_then(|(footing, loaded)| {
            (self.footing_at(footing.position)? == footing).then_some((footing, loaded))
        });
        let Some((footing, loaded)) = sound else {
            self.snapshots.forget(stream);
            return None;
        };
        self.is_of_now(footing, stream).then_some(loaded)
    }
}

#[cfg(test)]
mod tests;
