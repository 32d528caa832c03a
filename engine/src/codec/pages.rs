//! The tail page, which shares the end of the log between processes, and the checkpoint, its durable witness.
//!
//! ```text
//! byte  0..64      64..576  576..640  640..656  656..672  704..768    768..776         776..848, 848..920    960          964
//!       identity | slots  | written | busy    | entered | confirmed | epoch, poison | two claims          | generation | upgrades
//!                 '---------------- write lock ------------------' '---------- sync lock -------------'  lock of SEAL  write lock
//! ```
//!
//! The page is part of a file that several processes read and write. Bytes that lie together are written with one call, under
//! the lock that covers them. A record of more than a word carries a checksum; a half-written record reads as missing.

use super::fields::{FieldReader, Put, is_zero, put_trailing_checksum, trailing_checksum};
use super::{CHECKPOINT_BYTES, DamagedPart, FORMAT_VERSION, Invalid, TAIL_BYTES};
use crate::ids::{Link, Micros, Position, Seq, StoreId, StreamId};

const TAIL_MAGIC: [u8; 8] = *b"acpdbtl2";
const CHECKPOINT_MAGIC: [u8; 8] = *b"acpdbck1";
const RECORD_BYTES: usize = 64;
/// How many slots there are for "newest seq by stream".
const SLOT_COUNT: usize = 64;
const WRITTEN_OFFSET: usize = 576;
const CONFIRMED_BYTE: usize = 704;
/// Bytes that are written under the write lock: up to and with the count of rows, and up to and with the confirmed record.
const COMMIT_BYTES: usize = 608;
/// Where the count of rows of places is.
const ENTERED_OFFSET: usize = 656;
const ENTERED_BYTES: usize = 16;
const SETTLED_BYTES: usize = 704;
/// Bytes of a claim: the hint, the record.
const CLAIM_BYTES: usize = 72;
const _: () = assert!(TailPage::SLOTS_OFFSET + SLOT_COUNT as u64 * 8 == WRITTEN_OFFSET as u64);
const _: () = assert!(WRITTEN_OFFSET as u64 + RECORD_BYTES as u64 == TailPage::BUSY_OFFSET);
const _: () = assert!(ENTERED_OFFSET as u64 == TailPage::BUSY_OFFSET + 16);
const _: () =
    assert!(TailPage::SLOTS_OFFSET + COMMIT_BYTES as u64 == (ENTERED_OFFSET + ENTERED_BYTES) as u64);
const _: () =
    assert!(TailPage::SLOTS_OFFSET + SETTLED_BYTES as u64 == (CONFIRMED_BYTE + RECORD_BYTES) as u64);
const _: () = assert!(TailPage::UPGRADES_OFFSET + 4 <= TailPage::READ_BYTES as u64);
const _: () = assert!(TailPage::READ_BYTES <= TAIL_BYTES);

/// A place in the log, with the facts that a writer needs to go on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrittenPlace {
    /// Where the next frame goes.
    pub position: Position,
    /// Seq of the last event before it.
    pub seq: Seq,
    /// Time of the last frame before it.
    pub time: Micros,
    /// Link of the last frame before it.
    pub link: Link,
    /// Offset / 16 of the last frame in the same segment; 0 if the segment has none.
    pub last_frame: u32,
}

/// How far the file of places beside the last segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entered {
    /// All frames of the segment up to here have their rows.
    pub end: Position,
    /// How many rows these are.
    pub rows: u32,
}

/// Whether a write has begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteMark {
    /// No process is writing.
    #[default]
    Idle,
    /// Process `process` is writing, or died doing so.
    Writing {
        /// Where the log ends once it is done.
        end: Position,
        /// The process.
        process: u32,
    },
    /// The record is torn, so a process was writing.
    Torn,
}

/// The counters of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageCounts {
    /// Failed syncs.
    pub epoch: u32,
    /// Files of the log that were replaced.
    pub generation: u32,
    /// Features that were added.
    pub upgrades: u32,
}

/// The tail page. Every record stands for itself: one that fails its check reads as `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailPage {
    /// The store, if the page is one of format 3. Without it nothing else was read.
    pub store: Option<StoreId>,
    /// Newest seq of the streams of each slot.
    pub slots: [Seq; SLOT_COUNT],
    /// The end of the written part of the log.
    pub written: Option<WrittenPlace>,
    /// The rows of places of the segment in which `written` lies; `None`: it has to be found out.
    pub entered: Option<Entered>,
    /// The end of the durable part of the log: the furthest of the durable records.
    pub durable: Option<WrittenPlace>,
    /// The durable records, each with its name.
    pub durable_records: [(&'static str, Option<WrittenPlace>); 3],
    /// Whether a process is writing.
    pub busy: WriteMark,
    /// Rises at each failed sync.
    pub epoch: u32,
    /// A sync failed; no process may append until the store is reopened.
    pub poisoned: bool,
    /// Rises when files of the log were replaced by others with the same content.
    pub generation: u32,
    /// Rises when the store's file names a new feature: a handle that was opened before has to be opened again.
    pub upgrades: u32,
    /// How many seqs waited when the last sync ended, with the seqs that the sync covered.
    pub waiting: u64,
    /// The poison was put there together with [`TailPage::durable`] as it stands here. If not, the page is a mix of two
    /// moments, and events behind its durable end may well have been acknowledged.
    pub poison_is_whole: bool,
    /// Where the next claim goes: over the lower of the two claims, so that the other one stands if this write is torn.
    pub claim_offset: u64,
}

impl Default for TailPage {
    fn default() -> Self {
        Self {
            store: None,
            slots: [Seq::ZERO; SLOT_COUNT],
            written: None,
            entered: None,
            durable: None,
            durable_records: [("confirmed", None), ("claim 1", None), ("claim 2", None)],
            busy: WriteMark::Idle,
            epoch: 0,
            poisoned: false,
            generation: 0,
            upgrades: 0,
            waiting: 0,
            poison_is_whole: false,
            claim_offset: Self::CLAIM_OFFSETS[0],
        }
    }
}

impl TailPage {
    /// The end of the durable part. If no record says so, it is the log's beginning: then nothing counts as durable by this page.
    pub fn durable_end(&self) -> WrittenPlace {
        // As the text above says.
        self.durable.unwrap_or_default()
    }

    /// The end of the written part. If no record says so, it is the log's beginning.
    pub fn written_end(&self) -> WrittenPlace {
        // As the text above says.
        self.written.unwrap_or_default()
    }

    /// How much of the page is read: all that is used.
    pub const READ_BYTES: usize = 1024;
    /// Where the slots begin, and with them the bytes that are written under the write lock.
    pub const SLOTS_OFFSET: u64 = 64;
    /// Where the busy record begins.
    pub const BUSY_OFFSET: u64 = 640;
    /// Where the confirmed record is.
    pub const CONFIRMED_OFFSET: u64 = CONFIRMED_BYTE as u64;
    /// Where epoch and poison begin; the poison is the second half.
    pub const EPOCH_OFFSET: u64 = 768;
    /// Where the generation is.
    pub const GENERATION_OFFSET: u64 = 960;
    /// Where the count of upgrades is.
    pub const UPGRADES_OFFSET: u64 = 964;
    const CLAIM_OFFSETS: [u64; 2] = [776, 848];

    /// A whole new page, with the counts of the one before, if they are known.
    pub fn encode(store: StoreId, written: &WrittenPlace, counts: PageCounts) -> Vec<u8> {
        let mut bytes = vec![0; TAIL_BYTES];
        let mut identity = [0; RECORD_BYTES];
        Put(&mut identity).bytes(&TAIL_MAGIC).u32(FORMAT_VERSION).u32(0).bytes(store.as_bytes());
        put_trailing_checksum(&mut identity);
        Put(&mut bytes)
            .bytes(&identity)
            .bytes(&settled(written, &[written.seq; SLOT_COUNT], None))
            .u32(counts.epoch)
            .u32(0)
            .skip(184)
            .u32(counts.generation)
            .u32(counts.upgrades);
        bytes
    }

    /// The slot of a stream: the seq found there is that of its newest event, or of a newer one of another stream in the slot.
    /// This holds for events that were written since the reader opened the store.
    pub fn slot_of(stream: &StreamId) -> usize {
        usize::from(stream.as_bytes().first().copied().unwrap_or(0)) % SLOT_COUNT
    }

    /// The newest seq that a stream may have; more if another one shares its slot.
    pub fn slot(&self, stream: &StreamId) -> Seq {
        self.slots.get(Self::slot_of(stream)).copied().unwrap_or(Seq::MAX)
    }

    /// Takes note that a stream has an event of this seq.
    pub fn raise_slot(&mut self, stream: &StreamId, seq: Seq) {
        if let Some(slot) = self.slots.get_mut(Self::slot_of(stream)) {
            *slot = seq.max(*slot);
        }
    }

    /// Takes note that any stream may have moved up to `seq`.
    pub fn raise_slots(&mut self, seq: Seq) {
        self.slots = [seq; SLOT_COUNT];
    }

    /// Reads a page. Never fails: records that cannot be trusted are left out.
    pub fn decode(bytes: &[u8]) -> Self {
        let mut page = Self::default();
        let identity = record(bytes, 0).filter(|identity| identity.starts_with(&TAIL_MAGIC));
        page.store = identity.and_then(|identity| {
            let mut fields = FieldReader(identity);
            let (_, version, _) = (fields.u64(), fields.u32(), fields.u32());
            (version == FORMAT_VERSION).then(|| StoreId(fields.array()))
        });
        if page.store.is_none() || bytes.len() < Self::READ_BYTES {
            return Self::default();
        }
        let (slots, _) = bytes.get(RECORD_BYTES..).unwrap_or(&[]).as_chunks::<8>();
        for (slot, bytes) in page.slots.iter_mut().zip(slots) {
            *slot = Seq(u64::from_le_bytes(*bytes));
        }
        page.written = place(bytes, WRITTEN_OFFSET);
        let mut fields = FieldReader(bytes.get(WRITTEN_OFFSET + RECORD_BYTES..).unwrap_or(&[]));
        let busy_bytes = fields.array::<16>();
        if !is_zero(&busy_bytes) {
            let (computed, stored) = trailing_checksum(&busy_bytes);
            let mut fields = FieldReader(&busy_bytes);
            let busy = WriteMark::Writing { end: Position(fields.u64()), process: fields.u32() };
            page.busy = if computed == stored { busy } else { WriteMark::Torn };
        }
        page.entered = entered(bytes);
        let mut fields = FieldReader(bytes.get(CONFIRMED_BYTE + RECORD_BYTES..).unwrap_or(&[]));
        page.epoch = fields.u32();
        let poison = fields.u32();
        let [one, two] = Self::CLAIM_OFFSETS;
        let (first, second) = (claim(bytes, one), claim(bytes, two));
        let at = |claim: &Option<(u64, WrittenPlace)>| claim.map(|(_, place)| place.position);
        let (last, next) = if at(&first) > at(&second) { (first, two) } else { (second, one) };
        page.claim_offset = next;
        page.waiting = last.map_or(0, |(waiting, _)| waiting);
        let records =
            [place(bytes, CONFIRMED_BYTE), first.map(|(_, place)| place), second.map(|(_, place)| place)];
        for ((_, record), found) in page.durable_records.iter_mut().zip(records) {
            *record = found;
        }
        page.durable = records.into_iter().flatten().max_by_key(|place| place.position);
        page.poisoned = poison != 0;
        page.poison_is_whole = page.durable.is_some_and(|durable| poison == poison_word(durable.position));
        let at = usize::try_from(Self::GENERATION_OFFSET).unwrap_or(usize::MAX);
        let mut fields = FieldReader(bytes.get(at..).unwrap_or(&[]));
        page.generation = fields.u32();
        page.upgrades = fields.u32();
        page
    }

    /// Whether something of the page is being written just now, or was left half written.
    pub fn is_torn(&self) -> bool {
        self.written.is_none() || self.durable.is_none() || self.busy == WriteMark::Torn
    }

    /// The end of the log, if nothing about the page asks for a repair.
    pub fn clean(&self) -> Option<&WrittenPlace> {
        let written = self.written.as_ref()?;
        let durable = self.durable.map(|durable| durable.position);
        let settled = durable == Some(written.position) && self.busy == WriteMark::Idle && !self.poisoned;
        settled.then_some(written)
    }
}

/// The word that poisons a store with this durable end; never 0.
pub fn poison_word(durable: Position) -> u32 {
    crc32c::crc32c(&durable.0.to_le_bytes()) | 1
}

fn record(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let record = bytes.get(at..at.checked_add(RECORD_BYTES)?)?;
    let (computed, stored) = trailing_checksum(record);
    (computed == stored && !is_zero(record)).then_some(record)
}

/// The record of a place that begins at byte `at`, if it is sound.
fn place(bytes: &[u8], at: usize) -> Option<WrittenPlace> {
    let mut fields = FieldReader(record(bytes, at)?);
    Some(WrittenPlace {
        position: Position(fields.u64()),
        seq: Seq(fields.u64()),
        time: Micros(fields.i64()),
        link: Link(fields.array()),
        last_frame: fields.u32(),
    })
}

/// The count of rows of places, if it is sound.
fn entered(bytes: &[u8]) -> Option<Entered> {
    let record = bytes.get(ENTERED_OFFSET..ENTERED_OFFSET + ENTERED_BYTES)?;
    let (computed, stored) = trailing_checksum(record);
    let mut fields = FieldReader(record);
    (computed == stored).then(|| Entered { end: Position(fields.u64()), rows: fields.u32() })
}

/// The claim that begins at byte `at`, if it is sound: the hint, and the place.
fn claim(bytes: &[u8], at: u64) -> Option<(u64, WrittenPlace)> {
    let at = usize::try_from(at).ok()?;
    Some((FieldReader(bytes.get(at..)?).u64(), place(bytes, at.checked_add(8)?)?))
}

/// The place that a record holds, if the record is sound.
pub fn read_place(record: &[u8]) -> Option<WrittenPlace> {
    place(record, 0)
}

/// A place as a record.
pub fn place_record(written: &WrittenPlace) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    Put(&mut record)
        .u64(written.position.0)
        .u64(written.seq.0)
        .i64(written.time.0)
        .bytes(written.link.as_bytes())
        .u32(written.last_frame);
    put_trailing_checksum(&mut record);
    record
}

/// The bytes at [`TailPage::SLOTS_OFFSET`] after a commit: the slots, the end of the log, no writer, the rows of places.
pub fn committed(
    written: &WrittenPlace,
    slots: &[Seq; SLOT_COUNT],
    entered: Option<Entered>,
) -> [u8; COMMIT_BYTES] {
    let mut bytes = [0; COMMIT_BYTES];
    let mut put = Put(&mut bytes);
    for slot in slots {
        put.u64(slot.0);
    }
    put.bytes(&place_record(written)).skip(ENTERED_OFFSET - WRITTEN_OFFSET - RECORD_BYTES);
    if let Some(entered) = entered {
        let mut record = [0; ENTERED_BYTES];
        Put(&mut record).u64(entered.end.0).u32(entered.rows);
        put_trailing_checksum(&mut record);
        put.bytes(&record);
    }
    bytes
}

/// The same, when all of it is durable.
pub fn settled(
    written: &WrittenPlace,
    slots: &[Seq; SLOT_COUNT],
    entered: Option<Entered>,
) -> [u8; SETTLED_BYTES] {
    let mut bytes = [0; SETTLED_BYTES];
    Put(&mut bytes).bytes(&committed(written, slots, entered)).skip(32).bytes(&place_record(written));
    bytes
}

/// A claim that all before `durable` is durable, for [`TailPage::claim_offset`]; `waiting` seqs waited for it or behind it.
pub fn claim_record(durable: &WrittenPlace, waiting: u64) -> [u8; CLAIM_BYTES] {
    let mut bytes = [0; CLAIM_BYTES];
    Put(&mut bytes).u64(waiting).bytes(&place_record(durable));
    bytes
}

/// The busy record, for [`TailPage::BUSY_OFFSET`].
pub fn busy_record(end: Position, process: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    Put(&mut bytes).u64(end.0).u32(process);
    put_trailing_checksum(&mut bytes);
    bytes
}

/// The checkpoint: this seq with this link was durable here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurablePoint {
    /// The store it is about.
    pub store: StoreId,
    /// The end of the log when it was made.
    pub written: WrittenPlace,
}

impl DurablePoint {
    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; CHECKPOINT_BYTES];
        Put(&mut bytes)
            .bytes(&CHECKPOINT_MAGIC)
            .u32(FORMAT_VERSION)
            .u32(self.written.last_frame)
            .bytes(self.store.as_bytes())
            .u64(self.written.position.0)
            .u64(self.written.seq.0)
            .i64(self.written.time.0)
            .bytes(self.written.link.as_bytes());
        put_trailing_checksum(&mut bytes);
        bytes
    }

    /// Reads and checks the file.
    ///
    /// # Errors
    /// [`DamagedPart::Checkpoint`] for anything that [`DurablePoint::encode`] could not have written.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let fail = |offset, expected: &str, found: String| {
            Err(Invalid::new(DamagedPart::Checkpoint, offset, expected, found))
        };
        if bytes.len() != CHECKPOINT_BYTES {
            return fail(0, "128 bytes", format!("{} bytes", bytes.len()));
        }
        let (computed, stored) = trailing_checksum(bytes);
        if computed != stored {
            return fail(124, "a matching checksum", format!("{stored:08x}, not {computed:08x}"));
        }
        let mut fields = FieldReader(bytes);
        let (magic, version) = (fields.array(), fields.u32());
        if magic != CHECKPOINT_MAGIC || version != FORMAT_VERSION {
            return fail(0, "a checkpoint of format 3", "other bytes".to_owned());
        }
        let last_frame = fields.u32();
        let store = StoreId(fields.array());
        let written = WrittenPlace {
            position: Position(fields.u64()),
            seq: Seq(fields.u64()),
            time: Micros(fields.i64()),
            link: Link(fields.array()),
            last_frame,
        };
        if !fields.zeros(36) {
            return fail(88, "zeros", "other bytes".to_owned());
        }
        Ok(Self { store, written })
    }
}
