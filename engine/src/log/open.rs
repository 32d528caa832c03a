//! Opening a log, and bringing its handle to the durable end.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use super::commit_queue::{CommitDelay, CommitQueue};
use super::create::{
    StoreFileState, identify, identity_from_log, make, open_tail, read_secret, store_file_damage,
};
use super::cursor::FrameCursor;
use super::error::LogError;
use super::files::{SCAN_WINDOW_BYTES, SECRET, Segments};
use super::recovery_scan::{CheckpointFile, RecoveryScan, first_gap, is_anchored, read_checkpoint, torn};
use super::tail::TailState;
use super::{Head, LeaderState, Log, LogOptions, ReadState, Recovery};
use crate::codec::{FeatureBits, TailPage, WrittenPlace};
use crate::failpoints::failpoint;
use crate::ids::{Seq, StoreId};
use crate::locks::steady;
use crate::secret::Secret;
use crate::storage::{Bell, Clock, Entropy, KeyRing, Storage, SystemClock, SystemEntropy};
use crate::vault::{KeyUse, open_vault};

/// How often a reader looks again at bytes that may be damage, or the unfinished write of another process.
const LOOK_COUNT_MAX: usize = 50;

impl Log {
    /// Opens the log, making the store if there is none, and recovers it if its last writer did not end well.
    ///
    /// Durable when it returns: all events that it shows. Cost: a few reads if the store was left settled, else a walk over the frames that are not
    /// known to be durable.
    ///
    /// # Errors
    /// [`LogError::NewerFormat`], [`LogError::Io`], [`LogError::Locked`] if its key cannot be had, or [`LogError::NotAStore`] if it may not make a
    /// store. Damage is not an error: it is in the
    /// [`Recovery`], and appends are refused.
    pub fn create_or_open(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        options: LogOptions,
    ) -> Result<(Self, Recovery), LogError> {
        Self::open_or(storage, clock, entropy, options, true)
    }

    /// As [`Log::create_or_open`], or as [`Log::open`] if no store may be made.
    ///
    /// # Errors
    /// As these.
    pub(crate) fn open_or(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        options: LogOptions,
        create: bool,
    ) -> Result<(Self, Recovery), LogError> {
        let not_a_store = || LogError::NotAStore { path: storage.path("") };
        let mut created = false;
        let mut writes = Vec::new();
        // A lost store file does not make a store a plain one: headers of segments say it, too.
        let mut is_encrypted = false;
        let (store, damage) = match identify(&*storage)? {
            StoreFileState::Store(file) => {
                is_encrypted = file.is_encrypted();
                writes = file.writes;
                (file.store, None)
            }
            StoreFileState::Damaged(invalid) => {
                let store = identity_from_log(&storage, true)?.unwrap_or(StoreId::ZERO);
                (store, Some(store_file_damage(&*storage, Some(invalid))))
            }
            StoreFileState::Missing => match identity_from_log(&storage, false)? {
                // The store's file was lost, or another process is making the store right now.
                Some(store) => match identify(&*storage)? {
                    StoreFileState::Store(file) => {
                        is_encrypted = file.is_encrypted();
                        writes = file.writes;
                        (file.store, None)
                    }
                    _ => (store, Some(store_file_damage(&*storage, None))),
                },
                None if !create || options.read_only => return Err(not_a_store()),
                None => {
                    if let KeyUse::Ring(ring) = &options.keys {
                        return Err(key_without_store(&*storage, &**ring));
                    }
                    created = true;
                    let made = make(&storage, &*clock, &entropy, &options)?;
                    is_encrypted = made.is_encrypted();
                    writes = made.writes;
                    (made.store, None)
                }
            },
        };
        let mut segments = Segments::new(storage.clone(), store);
        let bits = segment_features(&segments)?;
        let is_encrypted = is_encrypted || bits.is_encrypted();
        let vault = open_vault(&*storage, is_encrypted, &options.keys);
        let vault = vault.map_err(|error| LogError::io("open the key of", storage.path(""), error))?;
        segments.vault = vault.map_err(|detail| LogError::Locked { detail })?;
        let newer = unknown_writes(&writes, bits.writes);
        let reads_only = options.read_only || damage.is_some() || newer.is_some();
        let (tail, on_read_only_disk) = open_tail(&*storage, reads_only)?;
        let tail = tail.map(|file| TailState::new(storage.clone(), file));
        let process = storage.process();
        let (secret, secret_fault) = match read_secret(&*storage, store, &segments.vault) {
            Ok(Ok(secret)) => (secret, None),
            Ok(Err(why)) => (Secret::missing(), Some(why)),
            // It may be read a moment later: a handle without it would refuse appends for as long as it lives.
            Err(error) if !reads_only => return Err(LogError::io("read", storage.path(SECRET), error)),
            Err(error) => (Secret::missing(), Some(format!("it cannot be read: {error}"))),
        };
        let read_only = tail.is_none();
        let log = Self {
            segments,
            newer,
            storage,
            clock,
            entropy,
            options,
            process,
            read_only,
            secret,
            secret_fault,
            shared: Mutex::new(ReadState { head: Head::default(), damage: damage.map(Box::new), met: None }),
            tail,
            reader_tail: Mutex::new(None),
            bell: Bell::default(),
            writer: Mutex::default(),
            queue: CommitQueue::default(),
            commit_delay: CommitDelay::default(),
            unpublished: Mutex::default(),
            poisoned: AtomicBool::new(false),
            looked_at: AtomicU64::new(u64::MAX),
            generation: AtomicU32::new(0),
            upgrades: AtomicU32::new(0),
            writes,
            withheld: RwLock::default(),
            withholds: AtomicBool::new(false),
            places: Mutex::default(),
            places_damage: Mutex::default(),
            places_broken: AtomicBool::new(false),
        };
        let mut recovery = log.recover(on_read_only_disk)?;
        recovery.created = created;
        Ok((log, recovery))
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
        Self::open_or(storage, clock, entropy, options, false)
    }

    /// Opens a store to read it as it lies there.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub(crate) fn open_to_read(storage: Arc<dyn Storage>, keys: KeyUse) -> Result<Self, LogError> {
        let options = LogOptions { read_only: true, keys, ..LogOptions::default() };
        let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
        let (log, _recovery) = Self::open(storage, clock, entropy, options)?;
        Ok(log)
    }

    /// Names the features that a program must know to read the store, or to write to it, from now on. Every handle, this one included, then has to be
    /// opened again. Durable when it returns.
    ///
    /// # Errors
    /// [`LogError::Busy`], [`LogError::Io`], [`LogError::NoSpace`].
    #[cfg(any(test, feature = "testing"))]
    pub fn name_features(&self, needs: &[&str], writes: &[&str]) -> Result<(), LogError> {
        use super::files::STORE_FILE;

        // The lock of a file does not tell threads apart.
        let _writer = self.writer()?;
        let tail = self.check_appendable()?;
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let StoreFileState::Store(mut file) = identify(&*self.storage)? else {
            return Err(LogError::NotAStore { path: self.storage.path("") });
        };
        for (list, names) in [(&mut file.needs, needs), (&mut file.writes, writes)] {
            list.extend(names.iter().map(ToString::to_string));
            list.sort_unstable();
            list.dedup();
        }
        // The count of upgrades comes first: a handle that misses the change would write bytes that the file does not announce.
        tail.raise_upgrades()?;
        crate::storage::write_file(&*self.storage, STORE_FILE, &file.encode())
            .map_err(|error| LogError::io("write", self.storage.path(STORE_FILE), error))
    }

    /// Brings a fresh handle to the durable end.
    fn recover(&self, on_read_only_disk: bool) -> Result<Recovery, LogError> {
        let mut writer = self.writer()?;
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
        self.upgrades.store(page.upgrades, Ordering::SeqCst);
        // The features are read after the count of upgrades: a feature that is named later raises the count.
        self.check_features()?;
        if let Some(place) = self.settled(&page)? {
            recovery.was_clean = true;
            writer.place = place;
            writer.epoch = Some(page.epoch);
            steady(&self.shared).head = place;
        } else if self.tail.is_none() {
            let found = self.scan_while_others_write(page)?;
            let shown = if on_read_only_disk { found.end } else { found.durable_place };
            // The end of a torn stretch is never before its start.
            recovery.torn_bytes = found.torn.map_or(0, |(start, end)| end.saturating_sub(start));
            recovery.unconfirmed_event_count = found.end.seq.since(shown.seq);
            steady(&self.shared).head = shown;
            if let Some(damage) = found.damage {
                self.note_damage(damage, found.durable)?;
            }
        } else {
            self.recover_locked(&mut writer, &mut recovery)?;
        }
        let head = steady(&self.shared).head;
        if self.tail.is_some() && head.seq == Seq::ZERO && !writer.postponed {
            // The process that made the store may have died before its names were durable.
            for directory in ["", ".."] {
                let synced = self.storage.sync_dir(directory);
                synced.map_err(|error| LogError::io("sync", self.storage.path(directory), error))?;
            }
        }
        writer.moved_from = head.seq;
        let shared = steady(&self.shared);
        recovery.head = shared.head;
        recovery.damage = shared.damage.as_deref().cloned();
        Ok(recovery)
    }

    /// Recovers under the write lock. If recovery cannot finish now, the next append tries again.
    fn recover_locked(&self, writer: &mut LeaderState, recovery: &mut Recovery) -> Result<(), LogError> {
        let Some(tail) = &self.tail else { return Ok(()) };
        let outcome = match tail.lock(&*self.clock, self.options.lock_wait) {
            Ok(_lock) => {
                let page = tail.read()?;
                match self.settled(&page)? {
                    Some(place) => {
                        writer.place = place;
                        writer.epoch = Some(page.epoch);
                        steady(&self.shared).head = place;
                        return Ok(());
                    }
                    None => self.repair(tail, &page, None),
                }
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(repaired) => {
                recovery.torn_bytes = repaired.torn_bytes;
                recovery.confirmed_event_count = repaired.confirmed_event_count;
                writer.place = repaired.place;
                writer.epoch = Some(repaired.epoch);
                Ok(())
            }
            Err(error @ (LogError::Busy { .. } | LogError::NoSpace { .. } | LogError::Poisoned { .. })) => {
                self.poisoned.fetch_or(matches!(error, LogError::Poisoned { .. }), Ordering::SeqCst);
                let page = tail.read()?;
                let found = self.recovery_scan(&page, false)?;
                steady(&self.shared).head = found.durable_place;
                writer.place = found.durable_place;
                writer.postponed = true;
                recovery.postponed = true;
                Ok(())
            }
            Err(LogError::Corrupt(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Scans the log without a lock. Other processes may write meanwhile. While they do, a stretch that looks like damage is scanned again, from the
    /// durable end on the newest tail page.
    fn scan_while_others_write(&self, mut page: TailPage) -> Result<RecoveryScan, LogError> {
        for _ in 0..LOOK_COUNT_MAX {
            let found = self.recovery_scan(&page, false);
            let is_sound = found.as_ref().is_ok_and(|found| found.damage.is_none());
            let again = self.read_page()?;
            if is_sound || again == page || failpoint!(ReaderLooksOnce) {
                return found;
            }
            page = again;
            self.segments.forget();
            std::thread::yield_now();
        }
        let mut found = self.recovery_scan(&page, false)?;
        // The writers are faster than this handle. They checked the log up to the durable end that they name.
        if let Some(durable) = page.durable
            && page.store == Some(self.segments.store)
            && is_anchored(&self.segments, &durable)?
        {
            (found.damage, found.durable_place) = (None, durable);
        }
        Ok(found)
    }

    /// The end of the log, if the tail page and the frame that it points to leave no doubt.
    fn settled(&self, page: &TailPage) -> Result<Option<WrittenPlace>, LogError> {
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
        let rest = torn(&mut FrameCursor::new(&self.segments, SCAN_WINDOW_BYTES), place)?;
        Ok(rest.is_none().then_some(*place))
    }
}

/// The features that the last segment requires.
fn segment_features(segments: &Segments) -> Result<FeatureBits, LogError> {
    let last = segments.numbers()?.last().copied();
    let header = last.map(|number| segments.header(number)).transpose()?.flatten();
    Ok(header.map_or_else(FeatureBits::default, |header| header.features))
}

/// The refusal of a key that was given for a store that is not there: a wrong path would get a store of its own, under that key or under none.
fn key_without_store(storage: &dyn Storage, ring: &dyn KeyRing) -> LogError {
    let (store, key) = (storage.path(""), ring.name());
    let detail = format!(
        "{} holds no store, and a key was given: {key}; leave the key out, or make an encrypted store there with acpdb init --encrypt",
        store.display()
    );
    LogError::Locked { detail }
}

/// A feature that this program does not know, and that the store's file or its last segment requires for writing.
fn unknown_writes(names: &[String], bits: u64) -> Option<String> {
    if !names.is_empty() {
        return Some(format!("is written to with the features {}", names.join(", ")));
    }
    (bits != 0).then(|| format!("is written to with features of the numbers {bits:#x}"))
}
