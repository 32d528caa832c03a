//! The tail page, by which processes tell each other where the log ends, and the checkpoint, its durable witness.
//!
//! ```text
//! word  0..8       8..16     16, 17    18, 19   20            21                      23      24..32   32..160
//!       identity | written | durable | busy   | wake, epoch | poisoned, generation  | count | synced | slots
//! ```
//!
//! The page is read and written as bytes, or shared as 512 little-endian words of 64 bits; two numbers of 32 bits share a
//! word, the first one in its low half. Records that take more than a word carry a checksum: one that is caught half
//! written reads as missing.

use super::fields::{Fields, Put, is_zero, put_trailing_checksum, trailing_checksum};
use super::{CHECKPOINT_BYTES, FORMAT_VERSION, Invalid, Part, TAIL_BYTES};
use crate::ids::{Link, Micros, Position, Seq, StoreId, StreamId};

const TAIL_MAGIC: [u8; 8] = *b"acpdbtl1";
const CHECKPOINT_MAGIC: [u8; 8] = *b"acpdbck1";
/// Makes the check word of a position; any fixed pattern other than zeros will do.
const CHECK_PATTERN: u64 = 0x6163_7064_6275_7230;
const RECORD_BYTES: usize = 64;
/// How many slots there are for "newest seq by stream".
const SLOT_COUNT: usize = 64;
const SLOT_BYTES: usize = 16;
const _: () = assert!(TailPage::SLOTS_OFFSET == (word::SLOTS * 8) as u64);
const _: () = assert!(TailPage::SYNCED_OFFSET == (word::SYNCED * 8) as u64);
const _: () = assert!(TailPage::STATE_OFFSET == (word::WRITTEN * 8) as u64);
const _: () = assert!(TailPage::EPOCH_OFFSET == (word::WAKE * 8 + 4) as u64);
const _: () = assert!(word::SLOTS * 8 + SLOT_COUNT * SLOT_BYTES <= TAIL_BYTES);

/// The words of the tail page that are used one by one.
pub mod word {
    /// First of the eight words of the written record; its position.
    pub const WRITTEN: usize = 8;
    /// Seq of the last event written; the second word of that record.
    pub const WRITTEN_SEQ: usize = 9;
    /// The durable position.
    pub const DURABLE: usize = 16;
    /// The check word of the durable position.
    pub const DURABLE_CHECK: usize = 17;
    /// First of the two words of the busy record.
    pub const BUSY: usize = 18;
    /// Wake count (low half) and epoch (high half).
    pub const WAKE: usize = 20;
    /// Poisoned (low half) and generation (high half).
    pub const POISONED: usize = 21;
    /// How many seqs waited when the last sync ended, those included that it covered.
    pub const SYNC_COUNT: usize = 23;
    /// First of the eight words of the synced record.
    pub const SYNCED: usize = 24;
    /// Seq of the last event that the synced record covers; its second word.
    pub const SYNCED_SEQ: usize = 25;
    /// First word of the slots, two words each.
    pub const SLOTS: usize = 32;
}

/// A place in the log and what a writer must know to go on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
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

/// Whether a write has begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Busy {
    /// Nobody is writing.
    #[default]
    Idle,
    /// Process `process` is writing, or died doing so.
    Writing {
        /// Where the log ends once it is done.
        end: Position,
        /// Which process does it.
        process: u32,
    },
    /// The record is torn, so somebody was.
    Torn,
}

/// The tail page. Every record stands for itself: one that fails its check reads as `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TailPage {
    /// The store, if the page is one of format 1.
    pub store: Option<StoreId>,
    /// The end of what was written.
    pub written: Option<Written>,
    /// The end of what is durable.
    pub durable: Option<Position>,
    /// Whether somebody is writing.
    pub busy: Busy,
    /// Rises at each failed sync.
    pub epoch: u32,
    /// A sync failed; nobody may append until the store is reopened.
    pub poisoned: bool,
    /// Rises when files of the log were replaced by others that say the same.
    pub generation: u32,
    /// A place that was durable: the last one, if nobody died between telling of it here and in `durable`.
    pub synced: Option<Written>,
    /// The poison was put there together with [`TailPage::durable`] as it stands here. If not, the page is a mix of two
    /// moments, and what lies behind its durable end may well have been acknowledged.
    pub poison_is_whole: bool,
}

impl TailPage {
    /// Where the state records begin.
    pub const STATE_OFFSET: u64 = 64;
    /// Where the busy record begins.
    pub const BUSY_OFFSET: u64 = 144;
    /// Where epoch and the word of poison begin.
    pub const EPOCH_OFFSET: u64 = 164;
    /// Where the synced record begins.
    pub const SYNCED_OFFSET: u64 = 192;
    /// Where the slots begin.
    pub const SLOTS_OFFSET: u64 = 256;

    /// A whole new page.
    pub fn encode(store: StoreId, written: &Written) -> Vec<u8> {
        let mut bytes = vec![0; TAIL_BYTES];
        let mut identity = [0; RECORD_BYTES];
        Put(&mut identity).bytes(&TAIL_MAGIC).u32(FORMAT_VERSION).u32(0).bytes(store.as_bytes());
        put_trailing_checksum(&mut identity);
        let state = state_records(written);
        Put(&mut bytes)
            .bytes(&identity)
            .bytes(&state)
            .skip(32)
            .bytes(&written_record(written))
            .bytes(&slots(written.seq));
        bytes
    }

    /// The slot of a stream: its newest event, or that of another stream with the same slot, has the seq found there,
    /// as far as events go that were written since the reader opened the store.
    pub fn slot_of(stream: &StreamId) -> usize {
        usize::from(stream.as_bytes().first().copied().unwrap_or(0)) % SLOT_COUNT
    }

    /// Where a slot begins.
    pub fn slot_offset(slot: usize) -> u64 {
        Self::SLOTS_OFFSET.saturating_add(slot.saturating_mul(SLOT_BYTES) as u64)
    }

    /// The word that a slot begins with.
    pub fn slot_word(slot: usize) -> usize {
        word::SLOTS.saturating_add(slot.saturating_mul(SLOT_BYTES / 8))
    }

    /// Reads a page. Never fails: what cannot be trusted is left out.
    pub fn decode(bytes: &[u8]) -> Self {
        let identity = record(bytes, 0).filter(|identity| identity.starts_with(&TAIL_MAGIC));
        let store = identity.and_then(|identity| {
            let mut fields = Fields(identity);
            let (_, version, _) = (fields.u64(), fields.u32(), fields.u32());
            (version == FORMAT_VERSION).then(|| StoreId(fields.array()))
        });
        let written = place(bytes, RECORD_BYTES);
        let mut fields = Fields(bytes.get(2 * RECORD_BYTES..).unwrap_or(&[]));
        let (durable, check) = (fields.u64(), fields.u64());
        let durable = (durable != 0 && check == check_word(durable)).then_some(Position(durable));
        let busy_bytes = fields.array::<16>();
        let busy = if is_zero(&busy_bytes) {
            Busy::Idle
        } else {
            let (computed, stored) = trailing_checksum(&busy_bytes);
            let mut fields = Fields(&busy_bytes);
            let busy = Busy::Writing { end: Position(fields.u64()), process: fields.u32() };
            if computed == stored { busy } else { Busy::Torn }
        };
        let (_wake, epoch, poisoned, generation) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
        let poison_is_whole = durable.is_some_and(|durable| poisoned == poison_word(durable));
        let synced = place(bytes, 3 * RECORD_BYTES);
        let poisoned = poisoned != 0;
        Self { store, written, durable, busy, epoch, poisoned, generation, synced, poison_is_whole }
    }

    /// The end of the log, if nothing about the page asks for a repair.
    pub fn clean(&self) -> Option<&Written> {
        let written = self.written.as_ref()?;
        let settled = self.durable == Some(written.position) && self.busy == Busy::Idle && !self.poisoned;
        settled.then_some(written)
    }
}

/// What stands beside a durable position to tell it from chance.
pub fn check_word(position: u64) -> u64 {
    position.rotate_left(32) ^ CHECK_PATTERN
}

/// What poisons a store whose durable end this is; never 0.
pub fn poison_word(durable: Position) -> u32 {
    crc32c::crc32c(&durable.0.to_le_bytes()) | 1
}

fn record(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let record = bytes.get(at..at.checked_add(RECORD_BYTES)?)?;
    let (computed, stored) = trailing_checksum(record);
    (computed == stored && !is_zero(record)).then_some(record)
}

/// The record of a place that begins at byte `at`, if it is sound.
fn place(bytes: &[u8], at: usize) -> Option<Written> {
    let mut fields = Fields(record(bytes, at)?);
    Some(Written {
        position: Position(fields.u64()),
        seq: Seq(fields.u64()),
        time: Micros(fields.i64()),
        link: Link(fields.array()),
        last_frame: fields.u32(),
    })
}

/// A place as a record, for the written or the synced one.
pub fn written_record(written: &Written) -> [u8; RECORD_BYTES] {
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

/// The records from [`TailPage::STATE_OFFSET`] up to the wake count, when all that is written is durable and nobody
/// writes.
pub fn state_records(written: &Written) -> [u8; 96] {
    let mut bytes = [0; 96];
    let durable = written.position.0;
    Put(&mut bytes).bytes(&written_record(written)).u64(durable).u64(check_word(durable));
    bytes
}

/// All slots, when any stream may have moved up to `seq`.
pub fn slots(seq: Seq) -> [u8; SLOT_COUNT * SLOT_BYTES] {
    let mut bytes = [0; SLOT_COUNT * SLOT_BYTES];
    let mut put = Put(&mut bytes);
    for _ in 0..SLOT_COUNT {
        put.u64(seq.0).u64(0);
    }
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
pub struct Checkpoint {
    /// The store it is about.
    pub store: StoreId,
    /// The end of the log when it was made.
    pub written: Written,
}

impl Checkpoint {
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
    /// [`Part::Checkpoint`] for anything that [`Checkpoint::encode`] could not have written.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let fail = |offset, expected: &str, found: String| {
            Err(Invalid::new(Part::Checkpoint, offset, expected, found))
        };
        if bytes.len() != CHECKPOINT_BYTES {
            return fail(0, "128 bytes", format!("{} bytes", bytes.len()));
        }
        let (computed, stored) = trailing_checksum(bytes);
        if computed != stored {
            return fail(124, "a matching checksum", format!("{stored:08x}, not {computed:08x}"));
        }
        let mut fields = Fields(bytes);
        let (magic, version) = (fields.array(), fields.u32());
        if magic != CHECKPOINT_MAGIC || version != FORMAT_VERSION {
            return fail(0, "a checkpoint of format 1", "other bytes".to_owned());
        }
        let last_frame = fields.u32();
        let store = StoreId(fields.array());
        let written = Written {
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
