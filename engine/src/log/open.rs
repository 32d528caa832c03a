//! Opening, bringing a handle to the durable end, refreshing and closing.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::create::{Identity, identify, identity_from_log, make, open_tail, store_file_damage};
use super::error::{Corruption, LogError};
use super::files::{CHECKPOINT, Cursor, Fault, SCAN_WINDOW_BYTES, Segments, TAIL, after, segment_start};
use super::gather::Patience;
use super::handoff::Handoff;
use super::survey::{CheckpointFile, Survey, first_gap, is_anchored, read_checkpoint, strict, survey, torn};
use super::tail::{Tail, read_shared};
use super::wait::low_half;
use super::{Head, Log, LogOptions, Recovery, Shared, Writer, locked};
use crate::codec::{Busy, Checkpoint, FrameCheck, FrameHeader, SegmentHeader, TailPage, Written, word};
use crate::ids::{Position, Seq, StoreId};
use crate::storage::{Access, Clock, Entropy, Storage, write_file};

/// How far beyond the last sound event the head of a damaged log may be, where only a witness beside it says so.
const CLAIMED_COUNT_MAX: u64 = 1 << 16;

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
        let read_only = tail.is_none();
        let log = Self {
            segments: Segments::new(storage.clone(), store),
            storage,
            clock,
            entropy,
            options,
            process,
            read_only,
            shared: Mutex::new(Shared { head: Head::default(), damage: damage.map(Box::new), met: None }),
            tail,
            reader_page: OnceLock::new(),
            writer: Mutex::default(),
            queue: Handoff::default(),
            patience: Patience::default(),
            poisoned: AtomicBool::new(false),
            opened_at: AtomicU64::new(0),
            generation: AtomicU32::new(0),
            outlines: Mutex::default(),
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
            read_only: self.tail.is_none(),
            head: Head::default(),
            torn_bytes: 0,
            confirmed_event_count: 0,
            unconfirmed_event_count: 0,
            was_erasing: self.is_erasing()?,
            postponed: false,
            damage: None,
        };
        let page = self.read_page()?;
        if let Some(place) = self.settled(&page)? {
            recovery.was_clean = true;
            writer.place = place;
            locked(&self.shared).head = place;
        } else if self.tail.is_none() {
            let found = self.survey(&page, false)?;
            let shown = if on_read_only_disk { found.end } else { found.durable_place };
            recovery.torn_bytes = found.torn.map_or(0, |(start, end)| end.saturating_sub(start));
            recovery.unconfirmed_event_count = found.end.seq.0.saturating_sub(shown.seq.0);
            locked(&self.shared).head = shown;
            if let Some(damage) = found.damage {
                self.note_damage(damage, found.durable)?;
            }
        } else {
            self.recover_locked(&mut writer, &mut recovery)?;
        }
        let head = locked(&self.shared).head;
        if self.tail.is_some() && head.seq == Seq::ZERO && !writer.postponed {
            // Whoever made the store may have died before its names were durable.
            for directory in ["", ".."] {
                let synced = self.storage.sync_dir(directory);
                synced.map_err(|error| LogError::io("sync", self.storage.path(directory), error))?;
            }
        }
        writer.moved_from = head.seq;
        self.opened_at.store(head.seq.0, Ordering::Relaxed);
        let shared = locked(&self.shared);
        recovery.head = shared.head;
        recovery.damage = shared.damage.as_deref().cloned();
        Ok(recovery)
    }

    /// Recovers under W. Whatever stops it now is left to the next append.
    fn recover_locked(&self, writer: &mut Writer, recovery: &mut Recovery) -> Result<(), LogError> {
        let Some(tail) = &self.tail else { return Ok(()) };
        let outcome = match tail.lock(&*self.clock, self.options.lock_wait) {
            Ok(_lock) => {
                let page = tail.read()?;
                match self.settled(&page)? {
                    Some(place) => {
                        writer.place = place;
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
                Ok(())
            }
            Err(error @ (LogError::Busy { .. } | LogError::NoSpace { .. } | LogError::Poisoned { .. })) => {
                self.poisoned.fetch_or(matches!(error, LogError::Poisoned { .. }), Ordering::SeqCst);
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
        if let Some(page) = self.shared_page() {
            return Ok(read_shared(page));
        }
        if let Some(tail) = &self.tail {
            return tail.read();
        }
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

    pub(crate) fn survey(&self, page: &TailPage, confirmed_only: bool) -> Result<Survey, LogError> {
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
    pub(crate) fn note_damage(&self, damage: Corruption, durable: Position) -> Result<(), LogError> {
        let mut head = locked(&self.shared).head;
        let mut until = Head { position: durable.max(head.position), ..head };
        let mut sound = head.seq;
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
                super::frames::Step::Frame(frame) => sound = sound.max(frame.header().last_seq()),
                super::frames::Step::Damage(_) => {}
                super::frames::Step::End => break,
            }
        }
        head.position = until.position;
        // A witness may claim anything: its checksum is no proof, and whoever goes through all seqs would be on the way for
        // ever. `verify` tells what it says in full.
        let believed = Seq(sound.0.saturating_add(CLAIMED_COUNT_MAX));
        head.seq = sound.max(until.seq.min(believed));
        let mut shared = locked(&self.shared);
        shared.head = head;
        shared.damage.get_or_insert_with(|| Box::new(damage));
        Ok(())
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
        if let Some(page) = self.shared_page() {
            self.see_generation(low_half(page.load(word::POISONED) >> 32));
            if Self::durable_past(page, head.position).is_none() {
                return Ok(head);
            }
        }
        let page = self.read_page()?;
        self.see_generation(page.generation);
        let own = page.store == Some(self.segments.store);
        let Some(durable) = page.durable.filter(|durable| own && *durable > head.position) else {
            return Ok(head);
        };
        let known = [page.written, page.synced].into_iter().flatten().find(|place| place.position == durable);
        let place = match known {
            Some(place) => place,
            None => self.walk_heads(head, durable)?,
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
        place: Head,
        until: Position,
        mut each: impl FnMut(&crate::codec::Frame),
    ) -> Result<Head, LogError> {
        self.walk(place, until, |cursor, header| {
            each(&cursor.frame(header.position, FrameCheck::Checksum)?);
            Ok(())
        })
    }

    /// The same, reading headers only.
    fn walk_heads(&self, place: Head, until: Position) -> Result<Head, LogError> {
        self.walk(place, until, |_, _| Ok(()))
    }

    fn walk(
        &self,
        mut place: Head,
        until: Position,
        mut each: impl FnMut(&mut Cursor<'_>, &FrameHeader) -> Result<(), Fault>,
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
            let header = strict(&mut cursor, &place, false)
                .and_then(|header| each(&mut cursor, &header).map(|()| header));
            match header {
                Ok(header) => {
                    self.remember(header.first_seq, header.position);
                    place = after(&header);
                }
                Err(Fault::Error(error)) => return Err(error),
                Err(fault) => {
                    let damage = super::frames::corruption(&self.segments, place.position, fault);
                    return self.met(Err(LogError::corrupt(damage)));
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
        let Ok(tail) = self.check_appendable() else { return Ok(()) };
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        // If another process left things unsettled, its recovery will write the next checkpoint.
        if page.store != Some(self.segments.store)
            || page.busy != Busy::Idle
            || page.written.is_none()
            || page.poisoned
            || writer.postponed
        {
            return Ok(());
        }
        self.catch_up(tail, writer, &page)?;
        self.make_durable(tail, writer)?;
        let place = writer.place;
        if let CheckpointFile::Sound(known) = read_checkpoint(&self.segments)?
            && known.written.position >= place.position
        {
            return Ok(());
        }
        self.write_segment(tail, writer)?.give_back(place.position.offset());
        let checkpoint = Checkpoint { store: self.segments.store, written: place };
        write_file(&*self.storage, CHECKPOINT, &checkpoint.encode())
            .map_err(|error| LogError::io("write", self.storage.path(CHECKPOINT), error))
    }
}
