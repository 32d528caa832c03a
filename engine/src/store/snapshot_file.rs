//! The file of a stream beside the log: its fold and its ingest state, so that the next process need not make them again.
//!
//! ```text
//! snap/<stream>   head 48        magic, program, store, stream
//!                 sections 224   of each: layout, footing (seq, position, link), two numbers, bytes, digest
//!                 digest 32      of all that
//!                 ingest state   root, rows: pages, read when one is asked for      see `saved_ingest_state`
//!                 fold           streams, world, as `fold` lays it out              see `saved_fold`
//! ```
//!
//! A section rests on a commit of its own, and is used alone. Saving one copies the other, unless something was erased behind the other's
//! footing. The ingest state comes first, so its rows stay at their offsets when a fold is saved.
//!
//! The file may be deleted at any time, by any process. It never decides anything: the link in a footing commits to the whole log
//! up to its seq, and a section holds only data that follows from that log. The file is written behind an answer, never before
//! one; whole, under another name first; and not synced, since a file that a crash garbled fails its digests. A file that holds an erased
//! text is emptied before it is removed: another program may have it open.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::kept::FOLDER;
use crate::command::ingest_state;
use crate::fold::{self, RuleKind, ShortenKind};
use crate::ids::{Link, Position, Seq, StoreId, StreamId};
use crate::locks::steady;
use crate::storage::{
    Access, Storage, StoredFile, bytes_between, give_back, put_file, read_up_to, write_all,
};

const MAGIC: &[u8; 8] = b"acpdbSNP";
const HEAD_BYTES: usize = 48;
const ENTRY_BYTES: usize = 112;
const DIGEST_BYTES: usize = 32;
/// Bytes before the first section.
pub(super) const HEADER_BYTES: usize = HEAD_BYTES + 2 * ENTRY_BYTES + DIGEST_BYTES;
/// Bytes of a section that are copied at a time.
const COPY_BYTES: usize = 256 << 10;

/// The name of a stream's file.
pub(super) fn snapshot_name(stream: StreamId) -> String {
    format!("{FOLDER}/{}", stream.to_hex())
}

/// The end of a frame: the commit that a section rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Footing {
    pub(super) seq: Seq,
    pub(super) position: Position,
    pub(super) link: Link,
}

impl Footing {
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.seq.0.to_le_bytes());
        into.extend_from_slice(&self.position.0.to_le_bytes());
        into.extend_from_slice(self.link.as_bytes());
    }
}

/// The sections, in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Section {
    /// The ingest state, which appending to the stream needs.
    IngestState,
    /// The stream folded, with the streams that its view needs.
    Fold,
}

impl Section {
    pub(super) const ALL: [Self; 2] = [Self::IngestState, Self::Fold];

    /// The layout that this program writes and reads.
    const fn layout(self) -> u32 {
        match self {
            Self::IngestState => ingest_state::LAYOUT_VERSION,
            Self::Fold => fold::LAYOUT_VERSION,
        }
    }
}

/// The entry of a section in the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Entry {
    pub(super) footing: Footing,
    /// Numbers of the section beside its bytes.
    pub(super) numbers: [u64; 2],
    pub(super) bytes: u64,
    /// Digest of the bytes, as far as the section does not check them itself.
    pub(super) digest: [u8; DIGEST_BYTES],
}

/// A section that is to be saved: its bytes in two parts.
pub(super) struct Part<'a> {
    pub(super) section: Section,
    pub(super) entry: Entry,
    pub(super) bytes: [&'a [u8]; 2],
}

/// A number for this program, as far as a layout or conclusions may depend on it: from its version and its rules.
pub(super) fn program() -> u32 {
    let rules = RuleKind::all().map(RuleKind::label).chain(ShortenKind::all().map(ShortenKind::label));
    program_of(env!("CARGO_PKG_VERSION"), rules)
}

/// A program with one more rule is another one: a fold that was saved without the rule lacks the rule's conclusions, and the
/// program saves numbers that the other does not know.
fn program_of(version: &str, rules: impl Iterator<Item = &'static str>) -> u32 {
    let add = |sum: u32, rule: &str| crc32c::crc32c_append(crc32c::crc32c_append(sum, b","), rule.as_bytes());
    rules.fold(crc32c::crc32c(version.as_bytes()), add)
}

/// Fields in order.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take()?))
    }

    pub(super) fn footing(&mut self) -> Option<Footing> {
        let (seq, position) = (Seq(self.number()?), Position(self.number()?));
        Some(Footing { seq, position, link: Link(self.take()?) })
    }
}

/// The beginning of a file: which sections it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Header {
    entries: [Option<Entry>; 2],
    /// Bytes of each section, also of one of another layout.
    lengths: [u64; 2],
}

impl Header {
    /// The header of a file, if it is one of this program for this stream of this store, and the file is as long as it says.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn read(file: &dyn StoredFile, store: StoreId, stream: StreamId) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEADER_BYTES];
        if read_up_to(file, &mut bytes, 0)? < HEADER_BYTES {
            return Ok(None);
        }
        let header = Self::decode(&bytes, store, stream);
        let length = file.len()?;
        Ok(header.filter(|header| header.file_bytes() == Some(length)))
    }

    fn file_bytes(&self) -> Option<u64> {
        self.lengths.iter().try_fold(HEADER_BYTES as u64, |sum, bytes| sum.checked_add(*bytes))
    }

    /// The entry of a section, if the file has one of this program's layout.
    pub(super) fn entry(&self, section: Section) -> Option<&Entry> {
        self.entries.get(section as usize)?.as_ref()
    }

    /// Where a section begins.
    pub(super) fn offset(&self, section: Section) -> u64 {
        let before = self.lengths.iter().take(section as usize);
        // The sum of all is the length of a file, or of one that is to be written.
        before.fold(HEADER_BYTES as u64, |sum, bytes| sum.saturating_add(*bytes))
    }

    fn set(&mut self, section: Section, entry: Entry) {
        if let (Some(known), Some(length)) =
            (self.entries.get_mut(section as usize), self.lengths.get_mut(section as usize))
        {
            (*known, *length) = (Some(entry), entry.bytes);
        }
    }

    fn encode(&self, store: StoreId, stream: StreamId) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&program().to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(store.as_bytes());
        bytes.extend_from_slice(stream.as_bytes());
        for section in Section::ALL {
            let entry = self.entry(section);
            bytes.extend_from_slice(&entry.map_or(0, |_| section.layout()).to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            // A section that is not there is zeros.
            let entry = entry.copied().unwrap_or_default();
            entry.footing.encode(&mut bytes);
            for number in entry.numbers.iter().chain([&entry.bytes]) {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&entry.digest);
        }
        let digest = digest(&bytes);
        bytes.extend_from_slice(&digest);
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES], store: StoreId, stream: StreamId) -> Option<Self> {
        let (covered, stored) = bytes.split_at_checked(HEADER_BYTES - DIGEST_BYTES)?;
        let mut fields = Fields(covered);
        let is_ours = fields.take()? == *MAGIC
            && fields.take()? == program().to_le_bytes()
            && fields.take()? == [0; 4]
            && fields.take()? == store.0
            && fields.take()? == stream.0
            && digest(covered) == *stored;
        if !is_ours {
            return None;
        }
        let mut header = Self::default();
        let rows = header.entries.iter_mut().zip(&mut header.lengths);
        for (section, (entry, length)) in Section::ALL.into_iter().zip(rows) {
            let is_known = fields.take()? == section.layout().to_le_bytes();
            fields.take::<4>()?;
            let footing = fields.footing()?;
            let numbers = [fields.number()?, fields.number()?];
            let (bytes, digest) = (fields.number()?, fields.take()?);
            *length = bytes;
            *entry = is_known.then_some(Entry { footing, numbers, bytes, digest });
        }
        Some(header)
    }
}

fn digest(header: &[u8]) -> [u8; DIGEST_BYTES] {
    blake3::derive_key("acpdb 2026 snapshot header v1", header)
}

/// Puts sections in place. The other section of the file stays, if it rests on nothing before `not_before`. `false`: another
/// process or thread is saving this stream, and these were not saved.
pub(super) fn put(
    storage: &dyn Storage,
    store: StoreId,
    stream: StreamId,
    parts: &[Part<'_>],
    not_before: Seq,
) -> io::Result<bool> {
    let name = snapshot_name(stream);
    put_in_place(storage, &name, &|file| {
        let old = open(storage, &name, store, stream);
        let mut header = Header::default();
        let mut copied = None;
        for section in Section::ALL {
            if let Some(part) = parts.iter().find(|part| part.section == section) {
                header.set(section, part.entry);
            } else if let Some((file, before)) = &old
                && let Some(entry) = before.entry(section).filter(|entry| entry.footing.seq >= not_before)
            {
                header.set(section, *entry);
                copied = Some((&**file, section, before.offset(section), entry.bytes));
            }
        }
        write_parts(file, &[&header.encode(store, stream)], 0)?;
        for part in parts {
            write_parts(file, &part.bytes, header.offset(part.section))?;
        }
        if let Some((old, section, from, bytes)) = copied {
            copy(old, from, file, header.offset(section), bytes)?;
        }
        Ok(())
    })
}

/// A file and its header; `None`: it is no snapshot of that stream, or cannot be read.
pub(super) fn open(
    storage: &dyn Storage,
    name: &str,
    store: StoreId,
    stream: StreamId,
) -> Option<(Box<dyn StoredFile>, Header)> {
    // Callers make an unreadable snapshot anew, or tell of it, here and below.
    let file = storage.open(name, Access::Read).ok()?;
    // As above.
    let header = Header::read(&*file, store, stream).ok()??;
    Some((file, header))
}

fn copy(old: &dyn StoredFile, from: u64, new: &dyn StoredFile, to: u64, bytes: u64) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BYTES.min(bytes_between(0, bytes))];
    let mut done = 0_u64;
    while done < bytes {
        let wanted = buffer.len().min(bytes_between(done, bytes));
        let piece = buffer.get_mut(..wanted).unwrap_or_default();
        if read_up_to(old, piece, from.saturating_add(done))? < piece.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_all(new, piece, to.saturating_add(done), &mut 0)?;
        done = done.saturating_add(piece.len() as u64);
    }
    Ok(())
}

/// Writes parts one after the other.
pub(super) fn write_parts(file: &dyn StoredFile, parts: &[&[u8]], offset: u64) -> io::Result<()> {
    let mut offset = offset;
    for part in parts {
        write_all(file, part, offset, &mut 0)?;
        offset = offset.saturating_add(part.len() as u64);
    }
    Ok(())
}

/// As [`put_file`], in the folder of snapshots.
pub(super) fn put_in_place(
    storage: &dyn Storage,
    name: &str,
    fill: &dyn Fn(&dyn StoredFile) -> io::Result<()>,
) -> io::Result<bool> {
    storage.create_dir(FOLDER)?;
    put_file(storage, name, fill)
}

/// How a handle uses snapshots.
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

    /// Whether snapshots are written without being asked for.
    pub(super) const fn are_kept(&self) -> bool {
        self.uses.writes && self.uses.by_itself
    }

    /// Waits for the thread that writes, if there is one.
    pub(super) fn finish(&self) {
        let running = steady(&self.running).take();
        if let Some(thread) = running {
            // If it panicked, there is one saved fold less.
            let _ = thread.join();
        }
    }

    /// Empties and removes a file that may hold an erased text: another program may have it open.
    pub(super) fn empty(&self, stream: StreamId) {
        let name = snapshot_name(stream);
        if self.uses.writes
            && let Ok(file) = self.storage.open(&name, Access::Write)
        {
            // An erasure removes it, too. If it stays, it is refused again.
            give_back(&*self.storage, &*file, &name);
        }
    }

    pub(super) fn forget(&self, stream: StreamId) {
        if self.uses.writes {
            // If it stays, it is refused again.
            let _ = self.storage.remove(&snapshot_name(stream));
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
