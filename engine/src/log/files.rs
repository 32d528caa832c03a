//! Names of the files, segments opened for reading, and the one that commits are written to.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::error::{Corruption, FrameFault, LogError};
use super::places_file::{CompletePlaces, PlacesFile, keep_places};
use super::unpacked::{KeptChunks, Unpacked, is_sealed_file};
use crate::codec::{
    DamagedPart, FrameHeader, Invalid, SEGMENT_HEADER_BYTES, SegmentHeader, TailPage, WrittenPlace,
};
use crate::failpoints::failpoint;
use crate::ids::{Position, Seq, StoreId};
use crate::locks::steady;
use crate::storage::{Access, Storage, StoredFile, list_if_there, read_up_to};
use crate::vault::Vault;

pub(crate) const STORE_FILE: &str = "acpdb.json";
/// The file of the store's secret.
pub(crate) const SECRET: &str = "secret";
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const TAIL: &str = "tail";
/// Its lock is the sync lock.
pub(crate) const SYNC: &str = "SYNC";
/// Its lock guards every change of a complete segment.
pub(crate) const SEAL: &str = "SEAL";
pub(crate) const LOG_DIR: &str = "log";
pub(crate) const QUARANTINE_DIR: &str = "quarantine";
/// Snapshots of folds: other modules write them, and they are removed when a body is erased.
pub(crate) const SNAP_DIR: &str = "snap";

/// The limit of positions in a segment: no segment file is longer.
const SEGMENT_BYTES_MAX: u64 = (u32::MAX as u64 + 1) * Position::GRAIN_BYTES;
/// Segments kept open for reading at a time.
const OPEN_SEGMENT_COUNT_MAX: usize = 64;
/// The first window of any reading; windows grow as reading goes on.
pub(super) const FIRST_WINDOW_BYTES: usize = 8 << 10;
/// Bytes that a scan reads at a time.
pub(crate) const SCAN_WINDOW_BYTES: usize = 256 << 10;
/// Bytes that a look at one frame reads at first: its header, its spine, and in most cases its bodies.
pub(crate) const POINT_WINDOW_BYTES: usize = 4 << 10;
/// The same for a caller that wants no bodies.
pub(crate) const SPINE_WINDOW_BYTES: usize = 2 << 10;
/// Bytes that looks at neighbouring frames read at a time, at most.
pub(crate) const LOOK_WINDOW_BYTES_MAX: usize = 64 << 10;

/// How often a page that looks torn is read again: another process may be in the middle of writing it.
const READ_COUNT_MAX: u32 = 20;

/// Reads the tail page. Reads again while it is torn.
pub(crate) fn read_page(file: &dyn StoredFile) -> io::Result<TailPage> {
    let mut page = TailPage::default();
    for round in 0..READ_COUNT_MAX {
        let mut bytes = [0; TailPage::READ_BYTES];
        let count = read_up_to(file, &mut bytes, 0)?;
        page = TailPage::decode(bytes.get(..count).unwrap_or(&[]));
        if count < bytes.len() || !page.is_torn() {
            break;
        }
        if round > 0 {
            std::thread::yield_now();
        }
    }
    Ok(page)
}

/// The name of a segment file.
pub(crate) fn segment_name(number: u32) -> String {
    format!("{LOG_DIR}/{number:012}.seg")
}

/// The name of the file of places of a segment.
pub(crate) fn places_name(number: u32) -> String {
    format!("{LOG_DIR}/{number:012}.places")
}

/// Whether the store may have put a file of this name into the folder of bytes that were set aside, or of snapshots.
pub(crate) fn is_copy_name(directory: &str, file_name: &str) -> bool {
    let is_number = |text: &str, digits_min: usize| {
        text.len() >= digits_min && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    match directory {
        QUARANTINE_DIR => {
            let parts: Vec<&str> = file_name.strip_suffix(".torn").unwrap_or("").split('-').collect();
            matches!(parts.as_slice(), [segment, start, copy]
                if is_number(segment, 12) && is_number(start, 12) && is_number(copy, 1))
        }
        SNAP_DIR => {
            let name = file_name.strip_suffix(".tmp").unwrap_or(file_name);
            let name = name.strip_suffix(".ingest").unwrap_or(name);
            name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        }
        _ => false,
    }
}

/// The number of the segment that a file holds, by its name.
pub(crate) fn segment_number(file_name: &str) -> Option<u32> {
    let digits = file_name.strip_suffix(".seg").filter(|digits| digits.len() == 12)?;
    digits.parse().ok().filter(|number| *number > 0)
}

/// A segment open for reading.
pub(crate) struct SegmentFile {
    /// The segment, sealed or not.
    pub(crate) file: Arc<dyn StoredFile>,
    pub(crate) path: PathBuf,
    /// Its header, or why it has none.
    pub(crate) header: Result<SegmentHeader, Invalid>,
    /// The file as it is, if the segment is sealed.
    pub(crate) sealed: Option<Arc<Unpacked>>,
}

/// The segments of a store, opened as they are needed.
pub(crate) struct Segments {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) store: StoreId,
    /// Opens frames that are read, and seals those that are written.
    pub(crate) vault: Vault,
    open: Mutex<BTreeMap<u32, Arc<SegmentFile>>>,
    places: Mutex<BTreeMap<u32, Arc<CompletePlaces>>>,
    chunks: Arc<KeptChunks>,
}

impl Segments {
    pub(crate) fn new(storage: Arc<dyn Storage>, store: StoreId) -> Self {
        let (open, places, chunks) = (Mutex::default(), Mutex::default(), Arc::default());
        Self { storage, store, vault: Vault::Plain, open, places, chunks }
    }

    /// Numbers of the segments that exist, rising.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, LogError> {
        let names = list_if_there(&*self.storage, LOG_DIR);
        let names = names.map_err(|error| LogError::io("list", self.storage.path(LOG_DIR), error))?;
        Ok(names.iter().filter_map(|name| segment_number(name)).collect())
    }

    pub(crate) fn path(&self, number: u32) -> PathBuf {
        self.storage.path(&segment_name(number))
    }

    /// Segment `number`, or `None` if there is no such file.
    pub(crate) fn get(&self, number: u32) -> Result<Option<Arc<SegmentFile>>, LogError> {
        let mut open = steady(&self.open);
        if let Some(segment) = open.get(&number) {
            return Ok(Some(segment.clone()));
        }
        let Some(segment) = self.open_named(number, segment_name(number))?.map(Arc::new) else {
            return Ok(None);
        };
        let sound = segment.header.is_ok();
        if sound {
            if open.len() >= OPEN_SEGMENT_COUNT_MAX {
                open.pop_first();
            }
            open.insert(number, segment.clone());
        }
        Ok(Some(segment))
    }

    /// Opens a file that holds segment `number`, sealed or not, and reads its header.
    pub(crate) fn open_named(&self, number: u32, name: String) -> Result<Option<SegmentFile>, LogError> {
        let path = self.storage.path(&name);
        let fail = |action| {
            let path = path.clone();
            move |error| LogError::io(action, path, error)
        };
        let file = match self.storage.open(&name, Access::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail("open")(error)),
        };
        let mut sealed = None;
        let file: Arc<dyn StoredFile> = if is_sealed_file(&*file).map_err(fail("read"))? {
            let (storage, chunks) = (Arc::clone(&self.storage), Arc::clone(&self.chunks));
            let unpacked = Unpacked::open(storage, name, file, chunks).map_err(fail("read"))?;
            let unpacked = sealed.insert(Arc::new(unpacked));
            Arc::<Unpacked>::clone(unpacked)
        } else {
            Arc::from(file)
        };
        let length = file.len().map_err(fail("inspect"))?;
        if length > SEGMENT_BYTES_MAX {
            let text =
                format!("it has {length} bytes, and no position in a segment is beyond {SEGMENT_BYTES_MAX}");
            return Err(fail("read")(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let count = read_up_to(&*file, &mut bytes, 0).map_err(fail("read"))?;
        let header = SegmentHeader::decode(bytes.get(..count).unwrap_or(&[])).and_then(|header| {
            if header.store == self.store && header.number == number {
                return Ok(header);
            }
            let found = format!("segment {} of store {}", header.number, header.store);
            let expected = format!("segment {number} of store {}", self.store);
            Err(Invalid { part: DamagedPart::SegmentHeader, offset: 12, expected, found })
        });
        Ok(Some(SegmentFile { file, path, header, sealed }))
    }

    /// The header of segment `number`, if the file and its header are sound.
    pub(crate) fn header(&self, number: u32) -> Result<Option<SegmentHeader>, LogError> {
        Ok(self.get(number)?.and_then(|segment| segment.header.clone().ok()))
    }

    /// The file of places of segment `number`, which ends as `next` says; `None`: there is none to be used.
    pub(crate) fn places_file(
        &self,
        number: u32,
        next: &SegmentHeader,
    ) -> Result<Option<PlacesFile>, LogError> {
        let header = self.header(number)?;
        Ok(header.and_then(|header| PlacesFile::open(&*self.storage, &places_name(number), &header, next)))
    }

    /// The places of a complete segment, if they are at hand.
    pub(crate) fn known_places(&self, number: u32) -> Option<Arc<CompletePlaces>> {
        steady(&self.places).get(&number).cloned()
    }

    /// Keeps the places of a complete segment at hand.
    pub(crate) fn keep_places(&self, number: u32, places: &Arc<CompletePlaces>) {
        keep_places(&mut steady(&self.places), number, Arc::clone(places), OPEN_SEGMENT_COUNT_MAX);
    }

    /// Forgets the places of a complete segment, because there is a new file.
    pub(crate) fn forget_places(&self, number: u32) {
        steady(&self.places).remove(&number);
    }

    /// Forgets one open file, because it was replaced.
    pub(crate) fn forget_one(&self, number: u32) {
        steady(&self.open).remove(&number);
        steady(&self.places).remove(&number);
    }

    /// Forgets open files, so that replaced ones are seen.
    pub(crate) fn forget(&self) {
        self.chunks.forget();
        steady(&self.open).clear();
        steady(&self.places).clear();
    }
}

/// The place right after a segment's header.
pub(crate) fn segment_start(header: &SegmentHeader) -> WrittenPlace {
    WrittenPlace {
        position: SegmentHeader::start(header.number),
        seq: header.first_seq.before(),
        time: header.previous_time,
        link: header.previous,
        last_frame: 0,
    }
}

/// Where a segment begins.
pub(crate) const fn segment_begin(number: u32) -> Position {
    Position((number as u64) << 32)
}

/// The grain of a position: its offset in a segment, in units of 16 bytes. The lower half of the position, so it always fits.
pub(crate) fn grain_of(position: Position) -> u32 {
    u32::try_from(position.0 & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

/// The place right after a frame.
pub(crate) fn after(header: &FrameHeader) -> WrittenPlace {
    WrittenPlace {
        position: header.end(),
        seq: header.last_seq(),
        time: header.time_max,
        link: header.link(),
        last_frame: grain_of(header.position),
    }
}

/// Whether `header` continues the log at `place`.
pub(crate) fn continues(place: &WrittenPlace, header: &FrameHeader) -> Result<(), Invalid> {
    let fail = |offset, expected: String, found: String| {
        Err(Invalid { part: DamagedPart::Link, offset, expected, found })
    };
    if failpoint!(AcceptZeroLength) && header.event_count == 0 {
        return Ok(());
    }
    if header.first_seq != place.seq.next() {
        return fail(32, format!("seq {}", place.seq.next()), format!("seq {}", header.first_seq));
    }
    if header.previous != place.link {
        return fail(72, format!("previous link {}", place.link), header.previous.to_string());
    }
    let highest = place.time.max(header.time);
    if header.time_max != highest {
        return fail(64, format!("the highest time {}", highest.0), header.time_max.0.to_string());
    }
    Ok(())
}

/// A frame without events, for [`Failpoint::AcceptZeroLength`].
pub(super) fn nothing_at(position: Position, store: StoreId) -> FrameHeader {
    FrameHeader {
        event_count: 0,
        stream_count: 0,
        row_count: 0,
        spine_bytes: 0,
        bodies_bytes: 0,
        content_checksum: 0,
        first_seq: Seq::ZERO,
        position,
        durable: Position::default(),
        time: crate::ids::Micros(0),
        time_max: crate::ids::Micros(0),
        previous: crate::ids::Link::ZERO,
        content_digest: crate::ids::Digest::ZERO,
        cipher: crate::codec::CIPHER_NONE,
        tag: 0,
        store,
    }
}

/// A report that something at `position` is wrong. The caller fills in the events that it costs.
pub(crate) fn corruption(segments: &Segments, position: Position, fault: FrameFault) -> Corruption {
    let segment = position.segment();
    let mut report = Corruption {
        part: DamagedPart::Missing,
        path: segments.path(segment),
        segment,
        offset: position.offset(),
        seq_first: None,
        seq_last: None,
        expected: "a frame".to_owned(),
        found: "nothing".to_owned(),
    };
    if let FrameFault::Invalid(invalid, header) = fault {
        report.part = invalid.part;
        report.offset = report.offset.saturating_add(invalid.offset);
        report.expected = invalid.expected;
        report.found = invalid.found;
        report.seq_first = header.as_ref().map(|header| header.first_seq);
        report.seq_last = header.map(|header| header.last_seq());
    }
    report
}

/// The error of a fault at a position: damage, unless the storage failed.
pub(crate) fn damaged(segments: &Segments, position: Position, fault: FrameFault) -> LogError {
    match fault {
        FrameFault::Error(error) => error,
        fault => LogError::corrupt(corruption(segments, position, fault)),
    }
}

/// The segment that is being written.
pub(crate) struct WriteSegment {
    pub(crate) number: u32,
    pub(crate) file: Box<dyn StoredFile>,
    /// Its length, at least.
    pub(super) length: AtomicU64,
}

impl WriteSegment {
    pub(crate) fn open(storage: &dyn Storage, number: u32) -> Result<Self, LogError> {
        let name = segment_name(number);
        let fail = |action| LogError::of(action, &*storage, &name);
        let file = storage.open(&name, Access::Write).map_err(fail("open"))?;
        if is_sealed_file(&*file).map_err(fail("read"))? {
            let text = "it is sealed, so there was a segment after it, which is missing";
            return Err(fail("append to")(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        Ok(Self { number, file, length: AtomicU64::new(0) })
    }

    /// Cuts off preallocated zeros. If it fails they just stay.
    pub(crate) fn give_back(&self, end: u64) {
        if self.file.len().is_ok_and(|length| length > end) {
            self.length.store(0, Ordering::Relaxed);
            // Zeros that stay cost space alone.
            let _ = self.file.set_len(end);
        }
    }
}
