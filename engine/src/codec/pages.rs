//! The tail page, by which processes tell each other where the log ends, and the checkpoint, its durable witness.

use super::fields::{Fields, Put, is_zero, put_trailing_checksum, trailing_checksum};
use super::{CHECKPOINT_BYTES, FORMAT_VERSION, Invalid, Part, TAIL_BYTES};
use crate::ids::{Link, Micros, Position, Seq, StoreId};

const TAIL_MAGIC: [u8; 8] = *b"acpdbtl1";
const CHECKPOINT_MAGIC: [u8; 8] = *b"acpdbck1";
/// Makes the check word of a position; any fixed pattern other than zeros will do.
const CHECK_PATTERN: u64 = 0x6163_7064_6275_7230;
const RECORD_BYTES: usize = 64;

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
    /// The poison was put there together with [`TailPage::durable`] as it stands here. If not, the page is a mix of two
    /// moments, and what lies behind its durable end may well have been acknowledged.
    pub poison_is_whole: bool,
}

impl TailPage {
    /// Where the state records begin.
    pub const STATE_OFFSET: u64 = 64;
    /// Where the busy record begins.
    pub const BUSY_OFFSET: u64 = 144;

    /// A whole new page.
    pub fn encode(store: StoreId, written: &Written) -> Vec<u8> {
        let mut bytes = vec![0; TAIL_BYTES];
        let mut identity = [0; RECORD_BYTES];
        Put(&mut identity).bytes(&TAIL_MAGIC).u32(FORMAT_VERSION).u32(0).bytes(store.as_bytes());
        put_trailing_checksum(&mut identity);
        Put(&mut bytes).bytes(&identity).bytes(&state_records(written, 0, false));
        bytes
    }

    /// Reads a page. Never fails: what cannot be trusted is left out.
    pub fn decode(bytes: &[u8]) -> Self {
        let identity = record(bytes, 0).filter(|identity| identity.starts_with(&TAIL_MAGIC));
        let store = identity.and_then(|identity| {
            let mut fields = Fields(identity);
            let (_, version, _) = (fields.u64(), fields.u32(), fields.u32());
            (version == FORMAT_VERSION).then(|| StoreId(fields.array()))
        });
        let written = record(bytes, RECORD_BYTES).map(|record| {
            let mut fields = Fields(record);
            Written {
                position: Position(fields.u64()),
                seq: Seq(fields.u64()),
                time: Micros(fields.i64()),
                link: Link(fields.array()),
                last_frame: fields.u32(),
            }
        });
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
        let (_wake, epoch, poisoned) = (fields.u32(), fields.u32(), fields.u32());
        let poison_is_whole = durable.is_some_and(|durable| poisoned == poison_word(durable));
        Self { store, written, durable, busy, epoch, poisoned: poisoned != 0, poison_is_whole }
    }

    /// The end of the log, if nothing about the page asks for a repair.
    pub fn clean(&self) -> Option<&Written> {
        let written = self.written.as_ref()?;
        let settled = self.durable == Some(written.position) && self.busy == Busy::Idle && !self.poisoned;
        settled.then_some(written)
    }
}

fn check_word(position: u64) -> u64 {
    position.rotate_left(32) ^ CHECK_PATTERN
}

/// What poisons a store whose durable end this is; never 0.
pub(super) fn poison_word(durable: Position) -> u32 {
    crc32c::crc32c(&durable.0.to_le_bytes()) | 1
}

fn record(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let record = bytes.get(at..at.checked_add(RECORD_BYTES)?)?;
    let (computed, stored) = trailing_checksum(record);
    (computed == stored && !is_zero(record)).then_some(record)
}

/// The records from [`TailPage::STATE_OFFSET`] on, when all that is written is durable and nobody writes.
pub fn state_records(written: &Written, epoch: u32, poisoned: bool) -> [u8; 112] {
    let mut record = [0; RECORD_BYTES];
    Put(&mut record)
        .u64(written.position.0)
        .u64(written.seq.0)
        .i64(written.time.0)
        .bytes(written.link.as_bytes())
        .u32(written.last_frame);
    put_trailing_checksum(&mut record);
    let mut bytes = [0; 112];
    let durable = written.position.0;
    let mut put = Put(&mut bytes);
    put.bytes(&record).u64(durable).u64(check_word(durable)).skip(16);
    put.u32(0).u32(epoch).u32(if poisoned { poison_word(written.position) } else { 0 });
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
