//! Values that are made of the log and saved beside it, so that the next process need not make them again.
//!
//! ```text
//! snap/<stream>          a fold of the stream, with the streams that its view needs
//! snap/<stream>.ingest   its ingest state, which appending needs
//! snap/<name>.aside      bytes of a program above the store
//!
//! each   head 96     magic 8 (which of the three), stamp 8, store 16, owner 16, footing: seq 8, position 8, link 32
//!        digest 32   BLAKE3 of head and archive
//!        archive     to the end of the file: of rkyv, or the program's bytes
//! ```
//!
//! A file counts if its digest holds, if the head is of this build for this owner in this store, if the log has the link of the footing at
//! its position and, if it may hold texts, if nothing was erased since. Any difference: it is removed, and the value is made of the log. The stamp is made by the build
//! from the engine's sources, so it stands for the layout and for the rules.
//!
//! For most texts a fold holds their address, not their words. Words that stand in events themselves (paths, tool names, keys, ids) and short
//! texts (titles, keys of memory) are in it, so a file from before an erasure is emptied before it is removed: another program may have it
//! open.
//!
//! A file may be deleted at any time, by any process. It never decides anything: the link in a footing commits to the whole log up to its
//! seq, and the value follows from that log. It is written behind an answer, never before one; whole, under another name first; and not
//! synced, since a file that a crash garbled fails its digest.
//!
//! The digest finds accidents and careless hands. A program that can write to the folder can forge a file as it can forge the index: archives are
//! checked before they are read, and `verify --deep` compares each with a value made anew.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rkyv::Archive;
use rkyv::api::high::{HighDeserializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Failure;
use rkyv::util::AlignedVec;

use super::kept::FOLDER;
use crate::ids::{Link, Position, Seq, StoreId, StreamId};
use crate::locks::steady;
use crate::storage::{
    Access, Storage, bytes_between, expect_filled, give_back, put_file, read_up_to, write_all,
};

/// The build's mark of everything that a layout or a conclusion depends on.
const STAMP: u64 = match u64::from_str_radix(env!("SOURCES_STAMP"), 16) {
    Ok(stamp) => stamp,
    Err(_) => panic!("the build made no stamp"),
};
const ASIDE_MAGIC: [u8; 8] = *b"acpdbASD";
const HEAD_BYTES: usize = 96;
/// Where the archive begins.
pub(super) const ARCHIVE_AT: usize = HEAD_BYTES + 32;
/// Bytes of an archive that are read at a time.
const PIECE_BYTES: usize = 128 << 10;
/// Longest file that is written or read.
const FILE_BYTES_MAX: usize = 1 << 30;

/// The end of a frame: the commit that a value rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Footing {
    pub(super) seq: Seq,
    pub(super) position: Position,
    pub(super) link: Link,
}

/// A file's name, and what its head has to say of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SavedName {
    magic: [u8; 8],
    owner: [u8; 16],
    pub(super) path: String,
}

impl SavedName {
    pub(super) fn fold(stream: StreamId) -> Self {
        Self { magic: *b"acpdbFLD", owner: stream.0, path: format!("{FOLDER}/{}", stream.to_hex()) }
    }

    pub(super) fn ingest_state(stream: StreamId) -> Self {
        let path = format!("{FOLDER}/{}.ingest", stream.to_hex());
        Self { magic: *b"acpdbING", owner: stream.0, path }
    }

    /// Bytes that a program above the store keeps.
    pub(super) fn aside(name: &str) -> Self {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let mut owner = [0; 16];
        blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut owner);
        Self { magic: ASIDE_MAGIC, owner, path: format!("{FOLDER}/{plain}.aside") }
    }

    /// Whether the value may hold texts of the log. Values that programs keep aside hold none, and are judged by them after an erasure.
    pub(super) fn may_hold_texts(&self) -> bool {
        self.magic != ASIDE_MAGIC
    }

    fn head(&self, store: StoreId, footing: Footing) -> Vec<u8> {
        let mut head = Vec::with_capacity(ARCHIVE_AT);
        head.extend_from_slice(&self.magic);
        head.extend_from_slice(&STAMP.to_le_bytes());
        head.extend_from_slice(store.as_bytes());
        head.extend_from_slice(&self.owner);
        head.extend_from_slice(&footing.seq.0.to_le_bytes());
        head.extend_from_slice(&footing.position.0.to_le_bytes());
        head.extend_from_slice(footing.link.as_bytes());
        head
    }

    /// The footing in a head, if the rest of it is as it has to be.
    fn footing(&self, store: StoreId, head: &[u8]) -> Option<Footing> {
        let (_, footing) = head.split_at_checked(HEAD_BYTES - 48)?;
        let (seq, rest) = footing.split_first_chunk()?;
        let (position, link) = rest.split_first_chunk()?;
        let (seq, position) = (Seq(u64::from_le_bytes(*seq)), Position(u64::from_le_bytes(*position)));
        let footing = Footing { seq, position, link: Link(*link.first_chunk()?) };
        (self.head(store, footing) == head).then_some(footing)
    }
}

fn hasher() -> blake3::Hasher {
    blake3::Hasher::new_derive_key("acpdb 2026 saved value v1")
}

fn digest(head: &[u8], archive: &[u8]) -> [u8; 32] {
    *hasher().update(head).update(archive).finalize().as_bytes()
}

/// The bytes of a file whose digest and head are as they have to be. Whether the log bears them out is for the caller to ask.
pub(super) struct SavedBytes {
    pub(super) footing: Footing,
    pub(super) archive: AlignedVec<16>,
}

impl SavedBytes {
    /// The value in the archive. `None` if there is none.
    pub(super) fn value<T>(&self) -> Option<T>
    where
        T: Archive<Archived: rkyv::Deserialize<T, HighDeserializer<Failure>>>,
        T::Archived: for<'a> CheckBytes<HighValidator<'a, Failure>>,
    {
        // A value that cannot be read is made of the log.
        rkyv::from_bytes::<T, Failure>(&self.archive).ok()
    }
}

/// A value as an archive; `None` if it is too large to be saved.
pub(super) fn archived<T>(value: &T) -> Option<AlignedVec<16>>
where
    T: for<'a> rkyv::Serialize<
            rkyv::api::high::HighSerializer<AlignedVec<16>, rkyv::ser::allocator::ArenaHandle<'a>, Failure>,
        >,
{
    // A value that cannot be laid out is not saved.
    let archive = rkyv::api::high::to_bytes_in::<_, Failure>(value, AlignedVec::new()).ok()?;
    (archive.len() <= FILE_BYTES_MAX - ARCHIVE_AT).then_some(archive)
}

/// The file of a name: `Ok(None)` if it is no file that was saved under this name in this store by this build.
///
/// # Errors
/// If it is not there, or cannot be read.
pub(super) fn read(
    storage: &dyn Storage,
    store: StoreId,
    name: &SavedName,
) -> io::Result<Option<SavedBytes>> {
    let opened = storage.open(&name.path, Access::Read)?;
    let length = bytes_between(0, opened.len()?);
    if length > FILE_BYTES_MAX {
        return Ok(None);
    }
    let mut head = [0; ARCHIVE_AT];
    if read_up_to(&*opened, &mut head, 0)? < ARCHIVE_AT {
        return Ok(None);
    }
    let Some((head, stored)) = head.split_at_checked(HEAD_BYTES) else { return Ok(None) };
    let Some(footing) = name.footing(store, head) else { return Ok(None) };
    let mut hasher = hasher();
    hasher.update(head);
    // Piece by piece: each is hashed and moved while it is in the processor's cache.
    let length = length.saturating_sub(ARCHIVE_AT);
    let mut archive: AlignedVec<16> = AlignedVec::with_capacity(length);
    expect_filled(archive.as_ptr(), length);
    let mut piece = vec![0; PIECE_BYTES.min(length)];
    while archive.len() < length {
        // No more is read than the length says.
        let wanted = piece.len().min(length.saturating_sub(archive.len()));
        let part = piece.get_mut(..wanted).unwrap_or_default();
        if read_up_to(&*opened, part, (ARCHIVE_AT as u64).saturating_add(archive.len() as u64))? < wanted {
            return Ok(None);
        }
        hasher.update(part);
        archive.extend_from_slice(part);
    }
    Ok((*hasher.finalize().as_bytes() == *stored).then_some(SavedBytes { footing, archive }))
}

/// Puts a file in place. `false`: another process or thread is saving under this name, and this was not saved.
pub(super) fn put(
    storage: &dyn Storage,
    store: StoreId,
    name: &SavedName,
    footing: Footing,
    archive: &[u8],
) -> io::Result<bool> {
    let mut head = name.head(store, footing);
    let digest = digest(&head, archive);
    head.extend_from_slice(&digest);
    storage.create_dir(FOLDER)?;
    put_file(storage, &name.path, &|file| {
        write_all(file, &head, 0, &mut 0)?;
        write_all(file, archive, ARCHIVE_AT as u64, &mut 0)
    })
}

/// How a handle uses saved values.
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

/// Writes and reads saved values.
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

    /// Whether values are written without being asked for.
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
    pub(super) fn empty(&self, name: &SavedName) {
        if self.uses.writes
            && let Ok(file) = self.storage.open(&name.path, Access::Write)
        {
            // An erasure removes it, too. If it stays, it is refused again.
            give_back(&*self.storage, &*file, &name.path);
        }
    }

    pub(super) fn forget(&self, name: &SavedName) {
        if self.uses.writes {
            // If it stays, it is refused again.
            let _ = self.storage.remove(&name.path);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
