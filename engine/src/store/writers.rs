//! What a handle knows of each stream to append to it: found, brought up to date, made durable before a commit rests on it, and saved, so
//! that the first commit of a process to a long session need not read the session.
//!
//! ```text
//! snap/<stream>.ledger   header 144: magic, layout, program, store, stream, seq, position, link, lengths, digest
//!                        root: what is no row, and the fence of the rows        rows: pages, read when one is asked for
//!
//! first commit:  digest of header and root ok? same program? the log has this link at this seq?
//!                     --yes--> the rest of the events         --no--> remove, all events
//! ```
//!
//! What is saved lies beside the saved folds and is as little: written whole under another name, not synced, removed by any
//! process at any time. The digest covers the header and the root, and the root holds a digest of each page of rows; so a look-up checks
//! the page it reads, and opening costs the same for any session. A page that is damaged, or gone because another process saved
//! anew, is found out when it is asked for: the ingest state then says that it is not sound, and everything that was made of it
//! since the last commit is thrown away and made anew, from a newer file or from the log.
//!
//! What is saved costs all rows, what is not costs the next process the events since. So a handle saves when it is closed,
//! once the events since the last time are as many as the square root of all: for a chain of processes of one commit each,
//! both costs are then some milliseconds at half a million events. A handle that had to read many events saves at once; it may never be closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use rkyv::util::AlignedVec;

use super::Inner;
use super::kept::{FOLDER, StreamWriter};
use super::snapshots::{Fields, Footing, Kind, header_start, put_in_place};
use crate::command::ingest_state::{IngestState, LAYOUT_VERSION, ReadRows, SavedIngestState};
use crate::error::Error;
use crate::event::{Payload, Recorded};
use crate::ids::{Seq, StoreId, StreamId};
use crate::locks::steady;
use crate::storage::{Access, Storage, StoredFile, read_up_to};

pub(super) const KIND: Kind = Kind { magic: b"acpdbLDG", layout: LAYOUT_VERSION };
const HEADER_BYTES: usize = 144;
/// Bytes of the header that the digest covers, before the root; it is the rest.
const COVERED_BYTES: usize = 112;
/// Longest root that is written or read.
const ROOT_BYTES_MAX: u64 = 1 << 28;
/// So many events are read as fast as what was saved of them.
const NEW_COUNT_MIN: u64 = 256;
/// Events that are so many to read that what was made of them is saved at once.
const READ_COUNT_MIN: u64 = 8192;
/// It is saved at once only if this share of it was not.
const NEW_SHARE: u64 = 8;

fn name(stream: StreamId) -> String {
    format!("{FOLDER}/{}.ledger", stream.to_hex())
}

fn digest(header: &[u8], root: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("acpdb 2026 ledger v1");
    hasher.update(header);
    hasher.update(root);
    *hasher.finalize().as_bytes()
}

/// The header before a root.
fn header_of(
    store: StoreId,
    stream: StreamId,
    footing: Footing,
    saved: &SavedIngestState,
) -> Option<[u8; HEADER_BYTES]> {
    if saved.root.len() as u64 > ROOT_BYTES_MAX {
        return None;
    }
    let mut header = header_start(KIND, store, stream, footing);
    header.extend_from_slice(&(saved.root.len() as u64).to_le_bytes());
    header.extend_from_slice(&(saved.rows.len() as u64).to_le_bytes());
    let digest = digest(&header, &saved.root);
    header.extend_from_slice(&digest);
    header.try_into().ok()
}

/// The saved ingest state of a stream, if it is whole but for its rows; whether the log bears it out is for the caller to ask.
pub(super) fn read_saved(
    storage: &Arc<dyn Storage>,
    store: StoreId,
    stream: StreamId,
) -> Option<(Footing, IngestState)> {
    // An ingest state that cannot be read is made of the log instead, here and below.
    let file = storage.open(&name(stream), Access::Read).ok()?;
    decode(storage, &*file, store, stream).map(|restored| (restored.footing, restored.ingest_state))
}

/// What a header says, if it is one of this program for this stream of this store.
struct Header {
    footing: Footing,
    root_bytes: u64,
    row_bytes: u64,
    digest: [u8; 32],
}

impl Header {
    fn decode(header: &[u8; HEADER_BYTES], store: StoreId, stream: StreamId) -> Option<Self> {
        let mut fields = Fields(header);
        let footing = fields.footing(KIND, store, stream)?;
        let mut number = || Some(u64::from_le_bytes(fields.take()?));
        let (root_bytes, row_bytes) = (number()?, number()?);
        let digest = fields.take()?;
        (root_bytes <= ROOT_BYTES_MAX).then_some(Self { footing, root_bytes, row_bytes, digest })
    }

    /// Bytes of the whole file.
    fn file_bytes(&self) -> Option<u64> {
        (HEADER_BYTES as u64).checked_add(self.root_bytes)?.checked_add(self.row_bytes)
    }
}

/// An ingest state that was read back.
struct Restored {
    footing: Footing,
    digest: [u8; 32],
    ingest_state: IngestState,
}

/// A file as an ingest state, if it is one, whole but for its rows.
fn decode(
    storage: &Arc<dyn Storage>,
    file: &dyn StoredFile,
    store: StoreId,
    stream: StreamId,
) -> Option<Restored> {
    let mut bytes = [0; HEADER_BYTES];
    // As above.
    if read_up_to(file, &mut bytes, 0).ok()? < HEADER_BYTES {
        return None;
    }
    let header = Header::decode(&bytes, store, stream)?;
    // As above.
    if header.file_bytes()? != file.len().ok()? {
        return None;
    }
    let mut root: AlignedVec<16> = AlignedVec::new();
    root.resize(usize::try_from(header.root_bytes).ok()?, 0);
    // As above.
    if read_up_to(file, &mut root, HEADER_BYTES as u64).ok()? < root.len()
        || digest(bytes.get(..COVERED_BYTES)?, &root) != header.digest
    {
        return None;
    }
    let first = (HEADER_BYTES as u64).checked_add(header.root_bytes)?;
    let storage = Arc::clone(storage);
    // Opened for each page: a process may know thousands of streams, and keeps no file open for one.
    let read: ReadRows = Box::new(move |offset, length| {
        // A page that cannot be read discards the drafts, and the state is made of the log, here and below.
        let file = storage.open(&name(stream), Access::Read).ok()?;
        let mut page = vec![0; length];
        // As above.
        let count = read_up_to(&*file, &mut page, first.checked_add(offset)?).ok()?;
        (count == length).then_some(page)
    });
    let ingest_state = IngestState::restore(&root, read)?;
    (ingest_state.row_bytes() == header.row_bytes).then_some(Restored {
        footing: header.footing,
        digest: header.digest,
        ingest_state,
    })
}

impl StreamWriter {
    /// Events that no file holds.
    const fn new_count(&self) -> u64 {
        // What was saved is a part of what is known.
        self.ingest_state.event_count.saturating_sub(self.saved_count)
    }

    /// Whether it is worth saving when the store is closed.
    const fn is_due(&self) -> bool {
        let new = self.new_count();
        new >= NEW_COUNT_MIN && new.saturating_mul(new) >= self.ingest_state.event_count
    }

    /// Whether all that is known of the stream is in memory, with nothing to be done before an append.
    pub(super) fn is_at_hand(&self) -> bool {
        let is_open = self.ingest_state.opened && self.signer.is_some();
        is_open && self.ingest_state.is_sound() && (self.placed.is_some() || !self.is_overdue())
    }

    /// Whether so much had to be read that it is worth saving at once.
    const fn is_overdue(&self) -> bool {
        let new = self.new_count();
        new >= READ_COUNT_MIN && new >= self.ingest_state.event_count / NEW_SHARE
    }
}

impl Inner {
    /// Takes up the saved ingest state of a stream that nothing is known of yet, if there is one that the log bears out.
    pub(super) fn take_saved_ingest_state(&self, stream: StreamId, writer: &mut StreamWriter) {
        let snapshots = &self.snapshots;
        if !snapshots.uses.reads {
            return;
        }
        let Ok(file) = snapshots.storage.open(&name(stream), Access::Read) else { return };
        let restored = decode(&snapshots.storage, &*file, snapshots.store, stream);
        let sound = restored.filter(|restored| {
            // The one that failed this handle fails it again.
            writer.restored != Some(restored.digest)
                && self.footing_at(restored.footing.position).map(|(footing, _)| footing)
                    == Some(restored.footing)
        });
        let Some(Restored { footing, digest, ingest_state }) = sound else {
            self.forget_ingest_state(stream);
            return;
        };
        if !self.is_of_now(footing, &name(stream)) {
            return;
        }
        writer.saved_count = ingest_state.event_count;
        writer.restored = Some(digest);
        writer.watermark = footing.seq;
        writer.ingest_state = ingest_state;
    }

    /// Locks what this handle knows of a stream. A panic while it was locked may have left it half done: it is thrown away, and the
    /// log is asked again.
    pub(super) fn lock_writer<'w>(
        &self,
        writer: &'w Mutex<StreamWriter>,
    ) -> Result<MutexGuard<'w, StreamWriter>, Error> {
        match writer.lock() {
            Ok(guard) => Ok(guard),
            Err(poisoned) => {
                let mut guard = poisoned.into_inner();
                self.start_over(&mut guard)?;
                writer.clear_poison();
                Ok(guard)
            }
        }
    }

    /// Throws away what a saved ingest state that is not sound led to. What is known of the stream is to be read anew.
    pub(super) fn start_over(&self, writer: &mut StreamWriter) -> Result<(), Error> {
        // The log only tells of what is durable.
        self.settle_known(writer)?;
        *writer = StreamWriter { restored: writer.restored, ..StreamWriter::default() };
        Ok(())
    }

    fn forget_ingest_state(&self, stream: StreamId) {
        if self.snapshots.uses.writes {
            // If it stays, it is refused again.
            let _ = self.snapshots.storage.remove(&name(stream));
        }
    }

    /// Saves what is known of a stream. `false` if it could not be, or is of no use yet.
    pub(super) fn save_ingest_state(&self, stream: StreamId, writer: &mut StreamWriter) -> bool {
        let Some(footing) = self.footing_to_save(writer.watermark) else { return false };
        let Some(saved) = writer.ingest_state.save() else { return false };
        let snapshots = &self.snapshots;
        let Some(header) = header_of(snapshots.store, stream, footing, &saved) else { return false };
        let parts = [header.as_slice(), &saved.root, &saved.rows];
        let written = put_in_place(&*snapshots.storage, &name(stream), &parts).is_ok();
        if written {
            writer.saved_count = writer.ingest_state.event_count;
        }
        written
    }

    /// Saves what was just read, if that was much, and goes on from what was saved: it takes less memory.
    pub(super) fn save_if_overdue(&self, stream: StreamId, writer: &mut StreamWriter) {
        let uses = self.snapshots.uses;
        // Commits of this handle that are not durable yet are in no file.
        let is_read = writer.placed.is_none();
        if uses.writes
            && uses.by_itself
            && is_read
            && writer.is_overdue()
            && self.save_ingest_state(stream, writer)
        {
            self.take_saved_ingest_state(stream, writer);
        }
    }

    /// Saves the ingest states that are due, now: the store is being closed.
    pub(super) fn save_ingest_states(&self) {
        let writers = steady(&self.writers).list();
        for (stream, writer) in writers {
            self.save_ingest_state_if_due(stream, &writer);
        }
    }

    /// Saves an ingest state now, if that is due: it leaves the memory.
    pub(super) fn save_ingest_state_if_due(&self, stream: StreamId, writer: &Mutex<StreamWriter>) {
        let uses = self.snapshots.uses;
        // One that a panic left half done is not saved.
        if uses.writes
            && uses.by_itself
            && let Ok(mut writer) = writer.lock()
            && writer.is_due()
        {
            self.save_ingest_state(stream, &mut writer);
        }
    }
}

impl Inner {
    /// Brings a stream's ingest state up to the durable head. It is sound then.
    pub(super) fn catch_up(&self, stream: StreamId, writer: &mut StreamWriter) -> Result<(), Error> {
        // It keeps titles and the like: what it was made of may be erased since.
        let is_outdated = writer.watermark != Seq::ZERO && writer.watermark < self.newest_erasure()?;
        if is_outdated || !writer.ingest_state.is_sound() {
            self.start_over(writer)?;
        }
        if writer.watermark == Seq::ZERO && writer.ingest_state.head == Seq::ZERO {
            self.take_saved_ingest_state(stream, writer);
        }
        self.observe_new(stream, writer)?;
        if !writer.ingest_state.is_sound() {
            self.start_over(writer)?;
            self.observe_new(stream, writer)?;
        }
        self.save_if_overdue(stream, writer);
        if writer.signer.is_none()
            && let Some(key) = writer.ingest_state.key
        {
            let bytes = match self.body(key) {
                Ok(bytes) => bytes,
                // The key is lost: no process recognises a text that was recorded before, or will be from here on.
                Err(Error::Erased { .. }) => self.entropy.array::<32>().to_vec(),
                Err(error) => return Err(error),
            };
            let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| {
                let found = bytes.len();
                let detail = format!("the signature key of stream {stream} has {found} bytes, expected 32");
                Error::damaged_event(key.seq, detail)
            })?;
            writer.signer = Some(self.signer_with(&key));
        }
        Ok(())
    }

    /// The key of a stream's signatures; `None` if it is lost.
    pub(super) fn key_of(&self, stream: StreamId) -> Result<Option<[u8; 32]>, Error> {
        let Some(recorded) = self.stream_opening(stream)? else { return Ok(None) };
        let Payload::SessionOpened(opened) = &recorded.event.payload else { return Ok(None) };
        match self.body(opened.key.id(recorded.seq)) {
            Ok(bytes) => Ok(bytes.as_slice().try_into().ok()),
            Err(Error::Erased { .. } | Error::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn stream_opening(&self, stream: StreamId) -> Result<Option<Recorded>, Error> {
        let (places, _) = self.frames_of(&[stream], Seq::ZERO)?;
        let Some(place) = places.first() else { return Ok(None) };
        let frame = self.first_part_of(place.position, stream)?;
        let event = frame.events().find(|event| event.envelope.stream == stream);
        event.map(|event| self.decode(&frame, &event)).transpose()
    }

    /// Takes note of the events of a stream that its ingest state does not know yet.
    fn observe_new(&self, stream: StreamId, writer: &mut StreamWriter) -> Result<(), Error> {
        self.observe_until(stream, writer, Seq::MAX)
    }

    /// As `observe_new`, up to a seq at which a commit ends.
    pub(super) fn observe_until(
        &self,
        stream: StreamId,
        writer: &mut StreamWriter,
        until: Seq,
    ) -> Result<(), Error> {
        let (mut places, watermark) = self.frames_of(&[stream], writer.watermark)?;
        places.retain(|place| place.last_seq <= until);
        for place in places {
            for frame in self.parts_of(place.position, &[stream], writer.ingest_state.head)? {
                for event in frame.events().filter(|event| event.envelope.stream == stream) {
                    if event.seq > writer.ingest_state.head {
                        writer.ingest_state.observe(&self.decode(&frame, &event)?);
                    }
                }
            }
        }
        writer.watermark = writer.watermark.max(watermark.min(until));
        Ok(())
    }
}

impl Inner {
    /// Makes durable what is known of a stream.
    pub(super) fn settle_known(&self, writer: &mut StreamWriter) -> Result<(), Error> {
        if let Some(placed) = &writer.placed {
            self.settle(placed)?;
            // Only now: were it cleared before a failed sync, the next caller would take the commit for durable.
            writer.placed = None;
        }
        Ok(())
    }

    /// The writers of these streams, to be locked in the order of the map.
    pub(super) fn writers_of(
        &self,
        streams: impl Iterator<Item = StreamId>,
    ) -> BTreeMap<StreamId, Arc<Mutex<StreamWriter>>> {
        streams.map(|id| (id, self.writer_of(id))).collect()
    }

    /// The writer of a stream. Others that were not used for long leave the memory, if they take too much.
    pub(super) fn writer_of(&self, stream: StreamId) -> Arc<Mutex<StreamWriter>> {
        let (writer, surplus) = {
            let mut all = steady(&self.writers);
            let writer = all.of(stream, |_| true, Mutex::default);
            // One that is in use is weighed the next time.
            if let Ok(writer) = writer.try_lock() {
                all.weigh(stream, writer.event_bytes());
            }
            // What is not durable yet is in no file: another writer of the stream would not know of it.
            let durable = self.log.head().seq;
            let is_durable = |writer: &Mutex<StreamWriter>| {
                writer.try_lock().is_ok_and(|writer| writer.placed.is_none() || writer.watermark <= durable)
            };
            let surplus = all.surplus(is_durable);
            (writer, surplus)
        };
        for (stream, writer) in surplus {
            self.save_ingest_state_if_due(stream, &writer);
        }
        writer
    }
}

#[cfg(test)]
mod tests;
