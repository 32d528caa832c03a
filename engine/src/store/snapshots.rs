//! Saved folds, so that a long session opens without being folded from its beginning.
//!
//! ```text
//! snap/<stream>   header 144: magic, layout, program, store, stream, seq, position, link, lengths, digest
//!                 streams that were folded, 16 each      the folded world, as `fold` lays it out
//!
//! open:  digest ok? same program? the log has this link at this seq?  --yes--> fold on from there
//!                                                                     --no---> remove, fold from the beginning
//! ```
//!
//! A snapshot may be deleted at any time, by any process. It never decides anything: the link in it commits to the whole log up
//! to its seq, and it holds only what a fold of that made. It is written behind an answer, never before one; whole, under
//! another name first; and not synced, since one that a crash garbled fails its digest. Of most texts it has the place, not what they
//! say. What events themselves spell out (paths, tool names, keys, ids) and short texts (titles, keys of memory) are in it, so one from before
//! an erasure is refused and removed.
//!
//! The digest finds accidents and careless hands. Who can write the folder can forge a snapshot as they can forge the index:
//! `verify` compares the link of each with the log, and `verify --deep` each as a whole with a fold made anew.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::fold::{LAYOUT_VERSION, Pieces, RuleKind, ShortenKind, TAKEN_BYTES_MAX, World};
use crate::ids::{Link, Position, Seq, StoreId, StreamId};
use crate::locks::steady;
use crate::storage::{Access, Storage, bytes_between, expect_filled, give_back, read_up_to, write_all};

use super::kept::{FOLDER, Loaded, fold_name};

pub(super) const KIND: Kind = Kind { magic: b"acpdbSNP", layout: LAYOUT_VERSION };
const HEADER_BYTES: usize = 144;
/// Bytes of the header that the digest covers; it is the rest.
const COVERED_BYTES: usize = 112;
/// Longest snapshot that is written or read.
const SNAPSHOT_BYTES_MAX: usize = 1 << 30;
/// What is read and hashed at a time, with what is left of the piece before.
const PIECE_BYTES: usize = 256 << 10;
const _: () = assert!(STREAM_COUNT_MAX * 16 <= TAKEN_BYTES_MAX && TAKEN_BYTES_MAX <= PIECE_BYTES / 2);
/// Most streams of one fold that is saved: forks of forks, at most.
const STREAM_COUNT_MAX: usize = 4096;
/// A fold of fewer new events is not saved: saving these takes half a millisecond, folding them about as long.
const EVENT_COUNT_MIN: u64 = 512;
/// It is saved anew when this share of it is new: so all saving together costs no more than this many times the last one.
const NEW_SHARE: u64 = 8;

/// The end of a frame: what a fold up to there rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Footing {
    pub(super) seq: Seq,
    pub(super) position: Position,
    pub(super) link: Link,
}

/// What a handle does with snapshots.
#[derive(Clone, Copy)]
pub(super) struct Uses {
    /// Opens sessions from them.
    pub(super) reads: bool,
    /// May write and remove them.
    pub(super) writes: bool,
    /// Writes them without being asked, in a thread of its own. Not on storage that is given: a simulated world has no
    /// threads that it does not know of.
    pub(super) by_itself: bool,
}

/// Writes and reads snapshots.
pub(super) struct Snapshots {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) store: StoreId,
    pub(super) uses: Uses,
    pub(super) running: Mutex<Option<JoinHandle<()>>>,
}

impl Snapshots {
    pub(super) fn new(storage: Arc<dyn Storage>, store: StoreId, uses: Uses) -> Self {
        Self { storage, store, uses, running: Mutex::default() }
    }

    /// Waits for the thread that writes, if there is one.
    pub(super) fn finish(&self) {
        let running = steady(&self.running).take();
        if let Some(thread) = running {
            // If it panicked, there is one saved fold less.
            let _ = thread.join();
        }
    }

    /// Empties and removes a file that may hold what was erased: another program may have it open.
    pub(super) fn empty(&self, name: &str) {
        if self.uses.writes
            && let Ok(file) = self.storage.open(name, Access::Write)
        {
            // What erases removes it, too. If it stays, it is refused again.
            give_back(&*self.storage, &*file, name);
        }
    }

    pub(super) fn forget(&self, stream: StreamId) {
        if self.uses.writes {
            // If it stays, it is refused again.
            let _ = self.storage.remove(&fold_name(stream));
        }
    }
}

/// A kind of file that is kept here.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) magic: &'static [u8; 8],
    pub(super) layout: u32,
}

/// This program, as far as the layout, and what a fold concludes, may depend on it: its version and its rules.
fn program() -> u32 {
    let rules = RuleKind::all().map(RuleKind::label).chain(ShortenKind::all().map(ShortenKind::label));
    program_of(env!("CARGO_PKG_VERSION"), rules)
}

/// A program with one more rule is another one: it concludes what a fold that was saved without the rule lacks, and it saves
/// numbers that the other does not know.
fn program_of(version: &str, rules: impl Iterator<Item = &'static str>) -> u32 {
    let add = |sum: u32, rule: &str| crc32c::crc32c_append(crc32c::crc32c_append(sum, b","), rule.as_bytes());
    rules.fold(crc32c::crc32c(version.as_bytes()), add)
}

fn hasher() -> blake3::Hasher {
    blake3::Hasher::new_derive_key("acpdb 2026 snapshot v1")
}

/// A fold as a snapshot; `None` if it is too large for one.
pub(super) fn encode(store: StoreId, stream: StreamId, footing: Footing, loaded: &Loaded) -> Option<Vec<u8>> {
    // What was left out may be mended one day; a saved fold would hide that for ever.
    if loaded.has_gaps || loaded.bare {
        return None;
    }
    let streams = loaded.streams.as_deref().filter(|streams| streams.len() <= STREAM_COUNT_MAX)?;
    let mut bytes = vec![0; HEADER_BYTES];
    for stream in streams {
        bytes.extend_from_slice(stream.as_bytes());
    }
    let mut bytes = loaded.world.save(bytes)?;
    if bytes.len() > SNAPSHOT_BYTES_MAX {
        return None;
    }
    let mut header = header_start(KIND, store, stream, footing);
    header.extend_from_slice(&loaded.event_count.to_le_bytes());
    header.extend_from_slice(&u32::from(loaded.beginnings).to_le_bytes());
    header.extend_from_slice(&u32::try_from(streams.len()).ok()?.to_le_bytes());
    bytes.get_mut(..COVERED_BYTES)?.copy_from_slice(&header);
    let mut hasher = hasher();
    hasher.update(&header);
    hasher.update(bytes.get(HEADER_BYTES..)?);
    bytes.get_mut(COVERED_BYTES..HEADER_BYTES)?.copy_from_slice(hasher.finalize().as_bytes());
    Some(bytes)
}

/// How the header of a file in the folder begins.
pub(super) fn header_start(kind: Kind, store: StoreId, stream: StreamId, footing: Footing) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(kind.magic);
    header.extend_from_slice(&kind.layout.to_le_bytes());
    header.extend_from_slice(&program().to_le_bytes());
    header.extend_from_slice(store.as_bytes());
    header.extend_from_slice(stream.as_bytes());
    header.extend_from_slice(&footing.seq.0.to_le_bytes());
    header.extend_from_slice(&footing.position.0.to_le_bytes());
    header.extend_from_slice(footing.link.as_bytes());
    header
}

/// Fields in order.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    /// What the content rests on, if the header begins as that of a file of this program for this stream of this store.
    pub(super) fn footing(&mut self, kind: Kind, store: StoreId, stream: StreamId) -> Option<Footing> {
        let ours = self.take()? == *kind.magic
            && self.take()? == kind.layout.to_le_bytes()
            && self.take()? == program().to_le_bytes()
            && self.take()? == store.0
            && self.take()? == stream.0;
        let seq = Seq(u64::from_le_bytes(self.take()?));
        let position = Position(u64::from_le_bytes(self.take()?));
        let footing = Footing { seq, position, link: Link(self.take()?) };
        ours.then_some(footing)
    }
}

/// The bytes of a snapshot, front to back: each is hashed once, and taken apart while it is in the processor's cache.
pub(super) struct Read<'a> {
    /// Reads at an offset until the buffer is full or the file ends.
    source: &'a dyn Fn(&mut [u8], u64) -> std::io::Result<usize>,
    hasher: blake3::Hasher,
    /// What was read and hashed: from `start` to `end` it was not taken yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the file, and how many of them were read.
    length: u64,
    done: u64,
    pub(super) failed: bool,
}

impl<'a> Read<'a> {
    pub(super) fn new(source: &'a dyn Fn(&mut [u8], u64) -> std::io::Result<usize>, length: u64) -> Self {
        let (hasher, buffer) = (hasher(), vec![0; PIECE_BYTES]);
        Self { source, hasher, buffer, start: 0, end: 0, length, done: 0, failed: false }
    }

    /// Reads the next bytes behind those that are left of the buffer. `None` if the file got shorter.
    fn more(&mut self) -> Option<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        // Nothing is taken past the end of what was read.
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
        if self.done == 0 {
            self.hasher.update(piece.get(..COVERED_BYTES)?);
            self.hasher.update(piece.get(HEADER_BYTES..)?);
        } else {
            self.hasher.update(piece);
        }
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
        // Past the end lies what was there before.
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

/// What a snapshot says, if it is one of this program, whole, for this stream of this store. Whatever was made of its bytes
/// is thrown away if in the end the digest does not fit.
pub(super) fn decode(read: &mut Read<'_>, store: StoreId, stream: StreamId) -> Option<(Footing, Loaded)> {
    if read.length > SNAPSHOT_BYTES_MAX as u64 || read.length < HEADER_BYTES as u64 {
        // No program writes such a one, so it is not one.
        return None;
    }
    let header: [u8; HEADER_BYTES] = *read.take(HEADER_BYTES)?.first_chunk()?;
    let mut header = Fields(&header);
    let footing = header.footing(KIND, store, stream)?;
    let event_count = u64::from_le_bytes(header.take()?);
    let beginnings = u32::from_le_bytes(header.take()?) != 0;
    let stream_count = u32::from_le_bytes(header.take()?) as usize;
    let digest: [u8; 32] = header.take()?;
    if stream_count > STREAM_COUNT_MAX {
        return None;
    }
    let streams = read.take(stream_count.checked_mul(16)?)?;
    let streams = streams.as_chunks().0.iter().map(|bytes| StreamId(*bytes)).collect();
    let world = World::restore(read)?;
    if *read.hasher.finalize().as_bytes() != digest {
        return None;
    }
    let loaded = Loaded {
        world,
        streams: Some(streams),
        beginnings,
        bare: false,
        is_resumed: true,
        has_gaps: false,
        watermark: footing.seq,
        end: None,
        event_count,
        saved_count: event_count,
    };
    Some((footing, loaded))
}

/// Puts a file in place, its parts one after the other. Whatever happens, the name holds nothing, an old one or this one.
pub(super) fn put_in_place(storage: &dyn Storage, name: &str, parts: &[&[u8]]) -> std::io::Result<()> {
    storage.create_dir(FOLDER)?;
    let temporary = format!("{name}.tmp");
    let file = storage.open(&temporary, Access::Create)?;
    // Another one who saves the same: theirs is as good.
    if !file.try_lock()? || !file.is_current()? {
        return Ok(());
    }
    let put = || {
        file.set_len(0)?;
        let mut offset = 0_u64;
        for part in parts {
            write_all(&*file, part, offset, &mut 0)?;
            offset = offset.saturating_add(part.len() as u64);
        }
        storage.rename(&temporary, name)
    };
    put().inspect_err(|_| give_back(storage, &*file, &temporary))
}

/// Puts a snapshot in place.
pub(super) fn write(storage: &dyn Storage, stream: StreamId, bytes: &[u8]) -> std::io::Result<()> {
    put_in_place(storage, &fold_name(stream), &[bytes])
}

/// Whether so much of a fold is new that it is worth saving.
pub(super) const fn is_due(loaded: &Loaded) -> bool {
    // What was saved is a part of what was folded.
    let new = loaded.event_count.saturating_sub(loaded.saved_count);
    new >= EVENT_COUNT_MIN && new >= loaded.event_count / NEW_SHARE
}

/// The saved fold of a stream, if its digest holds; whether the log bears it out is for the caller to ask.
pub(super) fn read_saved(
    storage: &dyn Storage,
    store: StoreId,
    stream: StreamId,
) -> Option<(Footing, Loaded)> {
    // A saved fold that cannot be read is made of the log instead, here and below.
    let file = storage.open(&fold_name(stream), Access::Read).ok()?;
    let read_at = |buffer: &mut [u8], offset| read_up_to(&*file, buffer, offset);
    // As above.
    decode(&mut Read::new(&read_at, file.len().ok()?), store, stream)
}

#[cfg(test)]
mod tests;
