//! Creating, opening, recovering, refreshing and closing.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex};

use super::append::{Queue, WriteSegment};
use super::error::{Corruption, LogError};
use super::files::{
    CHECKPOINT, Cursor, Fault, LOG_DIR, QUARANTINE_DIR, SCAN_WINDOW_BYTES, STORE_FILE, Segments, TAIL, after,
    segment_name, segment_start,
};
use super::survey::{CheckpointFile, Survey, first_gap, is_anchored, read_checkpoint, strict, survey, torn};
use super::tail::Tail;
use super::{Head, Log, LogOptions, Recovery, Shared, Writer, locked};
use crate::codec::{
    Checkpoint, FrameCheck, Invalid, Part, SEGMENT_HEADER_BYTES, STORE_FILE_BYTES_MAX, SegmentHeader,
    StoreFile, StoreFileError, TailPage, Written,
};
use crate::ids::{Link, Position, Seq, StoreId};
use crate::storage::{Access, Clock, Entropy, Storage, read_file, read_up_to, sync, write_all, write_file};

/// What the store file says.
pub(crate) enum Identity {
    Store(StoreFile),
    Missing,
    Damaged(Invalid),
}

/// Reads the store file.
pub(crate) fn identify(storage: &dyn Storage) -> Result<Identity, LogError> {
    let path = || storage.path(STORE_FILE);
    let bytes = match read_file(storage, STORE_FILE, STORE_FILE_BYTES_MAX) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Identity::Missing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Identity::Missing),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let invalid = Invalid {
                part: Part::StoreFile,
                offset: 0,
                expected: format!("at most {STORE_FILE_BYTES_MAX} bytes"),
                found: error.to_string(),
            };
            return Ok(Identity::Damaged(invalid));
        }
        Err(error) => return Err(LogError::io("read", path(), error)),
    };
    match StoreFile::decode(&bytes) {
        Ok(file) => Ok(Identity::Store(file)),
        Err(StoreFileError::Newer { found }) => Err(LogError::newer(found, path())),
        Err(StoreFileError::Invalid(invalid)) => Ok(Identity::Damaged(invalid)),
    }
}

/// The store id that the other files agree on, if the log holds anything worth keeping.
fn identity_from_log(storage: &Arc<dyn Storage>, even_if_empty: bool) -> Result<Option<StoreId>, LogError> {
    let segments = Segments::new(storage.clone(), StoreId::ZERO);
    let mut holds_frames = even_if_empty;
    let mut store = None;
    for number in segments.numbers()? {
        let Some(file) = segments.get(number)? else { continue };
        let mut bytes = vec![0; SEGMENT_HEADER_BYTES + 16];
        let count = read_up_to(&*file.file, &mut bytes, 0);
        let count = count.map_err(|error| LogError::io("read", segments.path(number), error))?;
        holds_frames |= count > SEGMENT_HEADER_BYTES || number > 1;
        if store.is_none() {
            store = SegmentHeader::decode(bytes.get(..count).unwrap_or(&[])).ok().map(|header| header.store);
        }
    }
    let checkpoint = read_file(&**storage, CHECKPOINT, 4096).ok().flatten();
    if let Some(checkpoint) = checkpoint.and_then(|bytes| Checkpoint::decode(&bytes).ok()) {
        holds_frames |= checkpoint.written.seq > Seq::ZERO;
        store = store.or(Some(checkpoint.store));
    }
    Ok(if holds_frames { store.or(Some(StoreId::ZERO)) } else { None })
}

pub(crate) fn store_file_damage(storage: &dyn Storage, invalid: Option<Invalid>) -> Corruption {
    let missing = Invalid {
        part: Part::StoreFile,
        offset: 0,
        expected: "the file".to_owned(),
        found: "no file".to_owned(),
    };
    let invalid = invalid.unwrap_or(missing);
    Corruption {
        part: Part::StoreFile,
        path: storage.path(STORE_FILE),
        segment: 0,
        offset: invalid.offset,
        seq_first: None,
        seq_last: None,
        expected: invalid.expected,
        found: invalid.found,
    }
}

impl Log {
    /// Opens the log, making the store if there is none, and recovers it if its last writer did not end well.
    ///
    /// Durable when it returns: whatever it shows. Cost: a few reads if the store was left settled, else a walk
    /// over what is not known to be durable.
    ///
    /// # Errors
    /// [`LogError::NewerFormat`], [`LogError::Io`], or [`LogError::NotAStore`] if it may not make one. Damage is no
    /// error: it is in the [`Recovery`], and appends are refused.
    pub fn create_or_open(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        options: LogOptions,
    ) -> Result<(Self, Recovery), LogError> {
        Self::begin(storage, clock, entropy, options, true)
    }

    /// As [`Log::create_or_open`], but the store must exist.
    ///
    /// # Errors
    /// [`LogError::NotAStore`] if it does not.
    pub fn open(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        options: LogOptions,
    ) -> Result<(Self, Recovery), LogError> {
        Self::begin(storage, clock, entropy, options, false)
    }

    fn begin(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        options: LogOptions,
        create: bool,
    ) -> Result<(Self, Recovery), LogError> {
        let not_a_store = || LogError::NotAStore { path: storage.path("") };
        let mut created = false;
        let (store, damage) = match identify(&*storage)? {
            Identity::Store(file) => (file.store, None),
            Identity::Damaged(invalid) => {
                let store = identity_from_log(&storage, true)?.unwrap_or(StoreId::ZERO);
                (store, Some(store_file_damage(&*storage, Some(invalid))))
            }
            Identity::Missing => match identity_from_log(&storage, false)? {
                // A store whose file was lost; or one that another process is making right now.
                Some(store) => match identify(&*storage)? {
                    Identity::Store(file) => (file.store, None),
                    _ => (store, Some(store_file_damage(&*storage, None))),
                },
                None if !create || options.read_only => return Err(not_a_store()),
                None => {
                    created = true;
                    (make(&storage, &*clock, &*entropy, &options)?, None)
                }
            },
        };
        let (tail, on_read_only_disk) = open_tail(&*storage, options.read_only || damage.is_some())?;
        let tail = tail.map(|file| Tail::new(storage.clone(), file));
        let process = storage.process();
        let writer = Writer {
            tail,
            segment: None,
            place: Head::default(),
            postponed: false,
            poisoned: false,
            moved: HashMap::new(),
            moved_from: Seq::ZERO,
            buffer: Vec::new(),
            append_count: 0,
            epoch: 0,
        };
        let log = Self {
            segments: Segments::new(storage.clone(), store),
            storage,
            clock,
            entropy,
            options,
            process,
            shared: Mutex::new(Shared { head: Head::default(), damage: damage.map(Box::new) }),
            writer: Mutex::new(writer),
            queue: Queue::default(),
            map: Mutex::new(BTreeMap::new()),
        };
        let mut recovery = log.recover(on_read_only_disk)?;
        recovery.created = created;
        Ok((log, recovery))
    }

    /// Brings a fresh handle to the durable end.
    fn recover(&self, on_read_only_disk: bool) -> Result<Recovery, LogError> {
        let mut writer = locked(&self.writer);
        let mut recovery = Recovery {
            created: false,
            was_clean: false,
            read_only: writer.tail.is_none(),
            head: Head::default(),
            torn_bytes: 0,
            confirmed_event_count: 0,
            postponed: false,
            damage: None,
        };
        let page = match &writer.tail {
            Some(tail) => tail.read()?,
            None => self.read_page()?,
        };
        if let Some(place) = self.settled(&page)? {
            recovery.was_clean = true;
            writer.place = place;
            writer.epoch = page.epoch;
            locked(&self.shared).head = place;
        } else if writer.tail.is_none() {
            let found = self.survey(&page, false)?;
            let shown = if on_read_only_disk { found.end } else { found.durable_place };
            recovery.torn_bytes = found.torn.map_or(0, |(start, end)| end.saturating_sub(start));
            locked(&self.shared).head = shown;
            if let Some(damage) = found.damage {
                self.note_damage(damage, found.durable)?;
            }
        } else {
            self.recover_locked(&mut writer, &mut recovery)?;
        }
        let head = locked(&self.shared).head;
        if writer.tail.is_some() && head.seq == Seq::ZERO && !writer.postponed {
            // Whoever made the store may have died before its names were durable.
            for directory in ["", ".."] {
                let synced = self.storage.sync_dir(directory);
                synced.map_err(|error| LogError::io("sync", self.storage.path(directory), error))?;
            }
        }
        writer.moved_from = head.seq;
        let shared = locked(&self.shared);
        recovery.head = shared.head;
        recovery.damage = shared.damage.as_deref().cloned();
        Ok(recovery)
    }

    /// Recovers under W. Whatever stops it now is left to the next append.
    fn recover_locked(&self, writer: &mut Writer, recovery: &mut Recovery) -> Result<(), LogError> {
        let Some(tail) = &writer.tail else { return Ok(()) };
        let outcome = match tail.lock(&*self.clock, self.options.lock_wait) {
            Ok(_lock) => {
                let page = tail.read()?;
                match self.settled(&page)? {
                    Some(place) => {
                        writer.place = place;
                        writer.epoch = page.epoch;
                        locked(&self.shared).head = place;
                        return Ok(());
                    }
                    None => self.repair(tail, &page),
                }
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(repaired) => {
                recovery.torn_bytes = repaired.torn_bytes;
                recovery.confirmed_event_count = repaired.confirmed_event_count;
                writer.place = repaired.place;
                writer.epoch = repaired.epoch;
                Ok(())
            }
            Err(error @ (LogError::Busy { .. } | LogError::NoSpace { .. } | LogError::Poisoned { .. })) => {
                writer.poisoned = matches!(error, LogError::Poisoned { .. });
                let page = tail.read()?;
                let found = self.survey(&page, false)?;
                locked(&self.shared).head = found.durable_place;
                writer.place = found.durable_place;
                writer.postponed = true;
                recovery.postponed = true;
                Ok(())
            }
            Err(LogError::Corrupt(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn read_page(&self) -> Result<TailPage, LogError> {
        match self.storage.open(TAIL, Access::Read) {
            Ok(file) => Tail::new(self.storage.clone(), file).read(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TailPage::default()),
            Err(error) => Err(LogError::io("open", self.storage.path(TAIL), error)),
        }
    }

    /// The end of the log, if the tail page and what it points to leave no doubt.
    fn settled(&self, page: &TailPage) -> Result<Option<Written>, LogError> {
        let Some(place) = page.clean().filter(|_| page.store == Some(self.segments.store)) else {
            return Ok(None);
        };
        let numbers = self.segments.numbers()?;
        let last = numbers.last().copied() == Some(place.position.segment()) && first_gap(&numbers).is_none();
        let witnessed = match read_checkpoint(&self.segments)? {
            CheckpointFile::Sound(checkpoint) => checkpoint.written.position <= place.position,
            CheckpointFile::Missing | CheckpointFile::Damaged(_) => true,
        };
        if !last || !witnessed || !is_anchored(&self.segments, place)? {
            return Ok(None);
        }
        // The page is not synced: after a power cut it may name an earlier end, with acknowledged frames behind it.
        let rest = torn(&mut Cursor::new(&self.segments, SCAN_WINDOW_BYTES), place)?;
        Ok(rest.is_none().then_some(*place))
    }

    fn survey(&self, page: &TailPage, confirmed_only: bool) -> Result<Survey, LogError> {
        let own = page.store == Some(self.segments.store);
        let page = if own { *page } else { TailPage::default() };
        let checkpoint = match read_checkpoint(&self.segments)? {
            CheckpointFile::Sound(checkpoint) => Some(checkpoint),
            CheckpointFile::Missing | CheckpointFile::Damaged(_) => None,
        };
        let numbers = self.segments.numbers()?;
        survey(&self.segments, &numbers, &page, checkpoint.as_ref(), confirmed_only)
    }

    /// Remembers that the log is damaged, and finds how far reading can go.
    fn note_damage(&self, damage: Corruption, durable: Position) -> Result<(), LogError> {
        let mut head = locked(&self.shared).head;
        let mut until = Head { position: durable.max(head.position), ..head };
        if let CheckpointFile::Sound(checkpoint) = read_checkpoint(&self.segments)? {
            until.seq = until.seq.max(checkpoint.written.seq);
        }
        if let Some(written) = self.read_page()?.clean() {
            until.seq = until.seq.max(written.seq);
        }
        let from = SegmentHeader::start(damage.segment.max(1));
        let mut walk = super::frames::Walk::new(
            &self.segments,
            from,
            until,
            FrameCheck::Checksum,
            false,
            SCAN_WINDOW_BYTES,
        );
        loop {
            match walk.step()? {
                super::frames::Step::Frame(frame) => until.seq = until.seq.max(frame.header().last_seq()),
                super::frames::Step::Damage(_) => {}
                super::frames::Step::End => break,
            }
        }
        head.position = until.position;
        head.seq = head.seq.max(until.seq);
        let mut shared = locked(&self.shared);
        shared.head = head;
        shared.damage.get_or_insert_with(|| Box::new(damage));
        Ok(())
    }

    /// Makes the tail of the log whole again. Call under W.
    ///
    /// Rules 10 to 12 of the recovery in `docs/FORMAT.md`.
    pub(crate) fn repair(&self, tail: &Tail, page: &TailPage) -> Result<Repaired, LogError> {
        self.segments.forget();
        let found = self.survey(page, page.poisoned)?;
        if let Some(damage) = found.damage {
            locked(&self.shared).head = found.durable_place;
            self.note_damage(damage.clone(), found.durable)?;
            return Err(LogError::corrupt(damage));
        }
        let mut place = found.end;
        let number = place.position.segment();
        let name = segment_name(number);
        let fail = |action| move |error| LogError::io(action, self.segments.path(number), error);
        let file = self.storage.open(&name, Access::Write).map_err(fail("open"))?;
        let mut torn_bytes = 0;
        if let Some((start, end)) = found.torn {
            torn_bytes = end.saturating_sub(start);
            self.quarantine(number, start, end)?;
            let zeroed = zero(&*file, start, end);
            // After a failed sync the disk may refuse this too; the next segment says to ignore what is left.
            if !page.poisoned {
                zeroed.map_err(fail("zero the torn end of"))?;
            }
        }
        let epoch = page.epoch;
        if page.poisoned {
            // Best effort: nothing below relies on it.
            let _ = sync(&*file);
            place = self.start_segment(&place, true)?;
        } else {
            let start = if found.durable.segment() == number { found.durable.offset() } else { 0 };
            let start = start.max(SEGMENT_HEADER_BYTES as u64);
            rewrite(&*file, start, place.position.offset()).map_err(fail("rewrite the end of"))?;
            if start < place.position.offset() || torn_bytes > 0 {
                sync(&*file).map_err(|_| self.sync_failed(tail, &found.durable_place, epoch))?;
            }
            self.storage
                .sync_dir(LOG_DIR)
                .map_err(|error| LogError::io("sync", self.storage.path(LOG_DIR), error))?;
        }
        if tail.is_whole()? && page.store == Some(self.segments.store) {
            tail.publish(&place, epoch)?;
        } else {
            tail.write_page(self.segments.store, &place)?;
        }
        self.segments.forget();
        locked(&self.shared).head = place;
        let confirmed_event_count = found.unconfirmed_event_count;
        Ok(Repaired { place, epoch, torn_bytes, confirmed_event_count })
    }

    /// Marks the store as poisoned after a failed sync.
    pub(crate) fn sync_failed(&self, tail: &Tail, durable: &Written, epoch: u32) -> LogError {
        // If even the page cannot be written this handle still refuses appends.
        let _ = tail.poison(durable, epoch.wrapping_add(1));
        LogError::Poisoned { path: self.storage.path("") }
    }

    /// Keeps a copy of bytes that are about to be zeroed.
    fn quarantine(&self, segment: u32, start: u64, end: u64) -> Result<(), LogError> {
        let fail = |error| LogError::io("write to", self.storage.path(QUARANTINE_DIR), error);
        self.storage.create_dir(QUARANTINE_DIR).map_err(fail)?;
        let mut copy = 0_u32;
        let file = loop {
            let name = format!("{QUARANTINE_DIR}/{segment:012}-{start:012}-{copy}.torn");
            match self.storage.open(&name, Access::CreateNew) {
                Ok(file) => break file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => copy = copy.saturating_add(1),
                Err(error) => return Err(fail(error)),
            }
        };
        let mut cursor = Cursor::new(&self.segments, SCAN_WINDOW_BYTES);
        let mut offset = start;
        while offset < end {
            let rest = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
            let bytes = cursor.bytes(segment, offset, rest.min(SCAN_WINDOW_BYTES))?;
            if bytes.is_empty() {
                break;
            }
            write_all(&*file, bytes, offset.saturating_sub(start), &mut 0).map_err(fail)?;
            offset = offset.saturating_add(bytes.len() as u64);
        }
        sync(&*file).map_err(fail)?;
        self.storage.sync_dir(QUARANTINE_DIR).map_err(fail)?;
        self.storage.sync_dir("").map_err(fail)
    }

    /// Makes the segment after the one that holds `place`, durably, and returns where its first frame goes.
    pub(crate) fn start_segment(&self, place: &Written, abandoned: bool) -> Result<Written, LogError> {
        let number = place.position.segment().saturating_add(1);
        let header = SegmentHeader {
            store: self.segments.store,
            number,
            first_seq: place.seq.next(),
            previous_end: place.position,
            previous_time: place.time,
            previous: place.link,
            abandoned,
        };
        let name = segment_name(number);
        write_file(&*self.storage, &name, &header.encode())
            .map_err(|error| LogError::io("create", self.storage.path(&name), error))?;
        Ok(segment_start(&header))
    }

    /// Looks for commits of other processes that became durable, and returns the head.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if what they wrote does not continue the log; the head stays where it was.
    pub fn refresh(&self) -> Result<Head, LogError> {
        self.check_process()?;
        let head = self.head();
        if locked(&self.shared).damage.is_some() {
            return Ok(head);
        }
        let page = self.read_page()?;
        let own = page.store == Some(self.segments.store);
        let Some(durable) = page.durable.filter(|durable| own && *durable > head.position) else {
            return Ok(head);
        };
        let place = match page.written.filter(|written| written.position == durable) {
            Some(written) => written,
            None => self.walk_to(head, durable, |_| ())?,
        };
        let mut shared = locked(&self.shared);
        if place.position > shared.head.position {
            shared.head = place;
        }
        Ok(shared.head)
    }

    /// Follows sound, linked frames from `place` to `until` exactly.
    pub(crate) fn walk_to(
        &self,
        mut place: Head,
        until: Position,
        mut each: impl FnMut(&crate::codec::Frame),
    ) -> Result<Head, LogError> {
        let mut cursor = Cursor::new(&self.segments, SCAN_WINDOW_BYTES);
        while place.position < until {
            let segment = place.position.segment();
            if segment < until.segment()
                && let Some(next) = self.segments.header(segment.saturating_add(1))?
                && next.previous_end == place.position
                && next.previous == place.link
            {
                place = segment_start(&next);
                continue;
            }
            let frame = strict(&mut cursor, &place, false)
                .and_then(|header| cursor.frame(header.position, FrameCheck::Checksum));
            match frame {
                Ok(frame) => {
                    each(&frame);
                    self.remember(frame.header().first_seq, frame.position());
                    place = after(frame.header());
                }
                Err(Fault::Error(error)) => return Err(error),
                Err(fault) => {
                    return Err(LogError::corrupt(super::frames::corruption(
                        &self.segments,
                        place.position,
                        fault,
                    )));
                }
            }
        }
        Ok(place)
    }

    /// Ends the use of this handle: gives back preallocated space and writes the checkpoint that witnesses the end.
    ///
    /// Everything acknowledged is durable without it; after it, `verify` notices the loss of any event.
    ///
    /// # Errors
    /// [`LogError::Busy`], [`LogError::NoSpace`], [`LogError::Io`]; the log is sound all the same.
    pub fn close(self) -> Result<(), LogError> {
        self.write_checkpoint()
    }

    /// What [`Log::close`] does, for a handle that goes on.
    ///
    /// # Errors
    /// As [`Log::close`].
    pub fn write_checkpoint(&self) -> Result<(), LogError> {
        self.check_process()?;
        let mut writer = locked(&self.writer);
        let writer = &mut *writer;
        let Some(tail) = &writer.tail else { return Ok(()) };
        if writer.poisoned || locked(&self.shared).damage.is_some() {
            return Ok(());
        }
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        // If another process left things unsettled, its recovery will write the next checkpoint.
        let Some(place) = page.clean().copied().filter(|_| page.store == Some(self.segments.store)) else {
            return Ok(());
        };
        if let CheckpointFile::Sound(known) = read_checkpoint(&self.segments)?
            && known.written.position >= place.position
        {
            return Ok(());
        }
        let number = place.position.segment();
        if writer.segment.as_ref().is_none_or(|segment| segment.number != number) {
            writer.segment = Some(WriteSegment::open(&*self.storage, number)?);
        }
        if let Some(segment) = &writer.segment {
            segment.give_back(place.position.offset());
        }
        let checkpoint = Checkpoint { store: self.segments.store, written: place };
        write_file(&*self.storage, CHECKPOINT, &checkpoint.encode())
            .map_err(|error| LogError::io("write", self.storage.path(CHECKPOINT), error))
    }
}

/// What a repair did.
pub(crate) struct Repaired {
    pub(crate) place: Written,
    pub(crate) epoch: u32,
    torn_bytes: u64,
    confirmed_event_count: u64,
}

/// Overwrites a stretch with zeros.
pub(crate) fn zero(file: &dyn crate::storage::StoredFile, start: u64, end: u64) -> io::Result<()> {
    let zeros = vec![0; SCAN_WINDOW_BYTES];
    let mut offset = start;
    while offset < end {
        let rest = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = zeros.get(..rest.min(zeros.len())).unwrap_or(&zeros);
        write_all(file, bytes, offset, &mut 0)?;
        offset = offset.saturating_add(bytes.len() as u64);
    }
    Ok(())
}

/// Writes a stretch again as it is. A sync counts only for bytes made dirty since the file was opened here: the
/// error of an earlier, failed write-back may have been reported to a process that is gone.
fn rewrite(file: &dyn crate::storage::StoredFile, start: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; SCAN_WINDOW_BYTES];
    let mut offset = start;
    while offset < end {
        let rest = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = rest.min(buffer.len());
        let Some(bytes) = buffer.get_mut(..length) else { break };
        let count = read_up_to(file, bytes, offset)?;
        if count == 0 {
            break;
        }
        write_all(file, bytes.get(..count).unwrap_or(&[]), offset, &mut 0)?;
        offset = offset.saturating_add(count as u64);
    }
    Ok(())
}

type OpenedTail = (Option<Box<dyn crate::storage::StoredFile>>, bool);

/// Opens the tail for writing; `None` if that is not wanted or not allowed, and whether the disk is read-only.
fn open_tail(storage: &dyn Storage, read_only: bool) -> Result<OpenedTail, LogError> {
    let access = if read_only { Access::Write } else { Access::Create };
    match storage.open(TAIL, access) {
        Ok(_) if read_only => Ok((None, false)),
        Ok(file) => Ok((Some(file), false)),
        Err(error) => match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Ok((None, true)),
            io::ErrorKind::PermissionDenied => Ok((None, false)),
            _ if read_only => Ok((None, false)),
            _ => Err(LogError::io("open", storage.path(TAIL), error)),
        },
    }
}

/// Makes a store. The store file comes last: while it is missing and the log is empty, making can begin again.
fn make(
    storage: &Arc<dyn Storage>,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
    options: &LogOptions,
) -> Result<StoreId, LogError> {
    let fail = |action, name: &str| {
        let path = storage.path(name);
        move |error| LogError::io(action, path, error)
    };
    storage.create_dir("").map_err(fail("create", ""))?;
    storage.create_dir(LOG_DIR).map_err(fail("create", LOG_DIR))?;
    let file = storage.open(TAIL, Access::Create).map_err(fail("create", TAIL))?;
    let tail = Tail::new(storage.clone(), file);
    let _lock = tail.lock(clock, options.lock_wait)?;
    if let Identity::Store(file) = identify(&**storage)? {
        return Ok(file.store);
    }
    let mut id = [0; 16];
    entropy.fill(&mut id).map_err(fail("draw random bytes for", ""))?;
    let store = StoreId(id);
    let now = clock.now();
    let header = SegmentHeader {
        store,
        number: 1,
        first_seq: Seq(1),
        previous_end: Position::default(),
        previous_time: now,
        previous: Link::ZERO,
        abandoned: false,
    };
    let start = segment_start(&header);
    write_file(&**storage, &segment_name(1), &header.encode()).map_err(fail("create", &segment_name(1)))?;
    tail.write_page(store, &start)?;
    let checkpoint = Checkpoint { store, written: start };
    write_file(&**storage, CHECKPOINT, &checkpoint.encode()).map_err(fail("create", CHECKPOINT))?;
    write_file(&**storage, STORE_FILE, &StoreFile { store, created: now }.encode())
        .map_err(fail("create", STORE_FILE))?;
    // The name of the store itself.
    storage.sync_dir("..").map_err(fail("sync the directory of", ""))?;
    Ok(store)
}
