//! How a store is opened.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use zeroize::Zeroizing;

use crate::command::draft::EventDraft;
use crate::error::{ANY_FILE_SYSTEM_VARIABLE, Error};
use crate::event::{Actor, PolicySet};
use crate::fold::Policy;
use crate::ids::{Seq, StoreId};
use crate::locks::steady_mut;
use crate::log::{Log, LogOptions};
use crate::registry::{NoTools, Registry};
use crate::storage::{
    Access, Clock, Entropy, FileStorage, KeyRing, Storage, SystemClock, SystemEntropy, untrusted, write_file,
};
use crate::vault::KeyUse;

use super::acknowledge::Acknowledge;
use super::behind::{Durability, Settler, Upkeep};
use super::erasure_list::Erasures;
use super::identity::{PROJECT_FOLDER, is_store};
use super::index_use::IndexUse;
use super::kept::{Bounded, FrameCache, Salts};
use super::saved::{Snapshots, Uses};
use super::{Redactor, Store, StoreInner};

/// Bytes of sessions that stay in memory, by default.
const MEMORY_BYTES: u64 = 256 << 20;
/// The file by which a store keeps itself out of a project's versions: `git add` would take the log and the secret.
const IGNORE_LIST: &str = ".gitignore";

/// Settings for [`Store::builder`].
///
/// ```
/// use acpdb_engine::{Durability, Store};
///
/// # let folder = tempfile::tempdir()?;
/// let folder = folder.path().join("store");
/// let store = Store::builder(&folder).durability(Durability::Os).open()?; // is created if there is none
/// let beside = Store::builder(&folder).read_only().open()?; // changes nothing on the disk
/// assert_eq!(store.id(), beside.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[expect(clippy::struct_excessive_bools, reason = "one a setting")]
pub struct Builder {
    root: PathBuf,
    registry: Arc<dyn Registry>,
    redactor: Option<Arc<dyn Redactor>>,
    storage: Option<Arc<dyn Storage>>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    options: LogOptions,
    create: bool,
    index: bool,
    sealing: bool,
    snapshots: bool,
    any_file_system: bool,
    durability: Durability,
    memory_max: u64,
    elsewhere: Option<Arc<dyn Acknowledge>>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            registry: Arc::new(NoTools),
            redactor: None,
            storage: None,
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy),
            options: LogOptions::default(),
            create: true,
            index: true,
            sealing: true,
            snapshots: true,
            any_file_system: false,
            durability: Durability::default(),
            memory_max: MEMORY_BYTES,
            elsewhere: None,
        }
    }

    /// The registry of known tools. Default: no tool is known.
    #[must_use]
    pub fn registry(mut self, registry: Arc<dyn Registry>) -> Self {
        self.registry = registry;
        self
    }

    /// The redactor that takes secrets out of facts before they are recorded. Default: none.
    #[must_use]
    pub fn redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Opens for reading only: nothing in the folder changes, whatever state it is in, and the store must exist. An unfinished
    /// write stays where it is and is not shown, an erasure that was interrupted is not resumed; [`Store::recovery`] tells of
    /// both. An index is used if it is there and no process owns it.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.options.read_only = true;
        self
    }

    /// Whether a folder without a store becomes one. Default: yes.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// About how many bytes of folds and ingest states stay in memory between calls. Default: 256 MiB, enough for some seven hundred
    /// sessions of 300 calls. The session that was used longest ago leaves first, and is read again when a call needs it: from a snapshot
    /// if one is due, else from the log. Not counted are the folds that views hold, frames (an eighth of this size, and at most 16 MiB) and
    /// the index.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let store = acpdb_engine::Store::builder(folder.path().join("store")).memory_max(32 << 20).open()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory_max(mut self, bytes: u64) -> Self {
        self.memory_max = bytes;
        self
    }

    /// Whether `index.redb` is used and kept. Default: yes. Answers are the same either way.
    #[must_use]
    pub fn index(mut self, index: bool) -> Self {
        self.index = index;
        self
    }

    /// Whether this handle seals complete segments in the background. Default: yes, on files of its own. Reads give the same
    /// either way; see [`Store::seal`].
    #[must_use]
    pub fn sealing(mut self, sealing: bool) -> Self {
        self.sealing = sealing;
        self
    }

    /// Whether folds of long sessions are saved, and read again, under `snap/`. Default: yes. Answers are the same either
    /// way.
    #[must_use]
    pub fn snapshots(mut self, snapshots: bool) -> Self {
        self.snapshots = snapshots;
        self
    }

    /// Opens the store even on a network or user-space file system, where a crash may cost acknowledged events and two
    /// processes may write at once. Default: only if the environment has `ACPDB_ANY_FILE_SYSTEM=1`.
    #[must_use]
    pub fn any_file_system(mut self) -> Self {
        self.any_file_system = true;
        self
    }

    /// When appends are acknowledged. Default: [`Durability::Sync`], once they are on the disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long an append waits for another process's lock. Default: 5 s.
    #[must_use]
    pub fn lock_wait(mut self, wait: Duration) -> Self {
        self.options.lock_wait = wait;
        self
    }

    /// Size at which a segment is full. Default: 64 MiB.
    #[must_use]
    pub fn segment_bytes_max(mut self, bytes: u64) -> Self {
        self.options.segment_bytes_max = bytes;
        self
    }

    /// The key ring that opens the store. The store must be there and be encrypted: a key that is given in vain is refused, since the caller
    /// takes the store for an encrypted one. Default: none; an encrypted store is refused.
    #[must_use]
    pub fn keys(mut self, ring: Arc<dyn KeyRing>) -> Self {
        self.options.keys = KeyUse::Ring(ring);
        self
    }

    /// As [`Builder::keys`]; a store that is made is encrypted under a fresh key, which the ring wraps.
    ///
    /// An encrypted store keeps no caches: neither an index nor saved folds, and no segment is packed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use acpdb_engine::{Error, Store, keys::PassphraseKeyRing};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let folder = folder.path().join("store");
    /// let ring = Arc::new(PassphraseKeyRing::new("correct horse battery")?);
    /// let store = Store::builder(&folder).encrypt(ring.clone()).open()?;
    /// assert!(store.is_encrypted());
    /// assert!(matches!(Store::builder(&folder).open(), Err(Error::Locked { .. })));
    /// assert_eq!(Store::builder(&folder).keys(ring).open()?.id(), store.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn encrypt(mut self, ring: Arc<dyn KeyRing>) -> Self {
        self.options.keys = KeyUse::Make(ring);
        self
    }

    /// Keeps commits elsewhere before they are acknowledged. With it [`Durability::Os`] waits for the disk, too.
    #[must_use]
    #[doc(hidden)]
    pub fn acknowledge(mut self, elsewhere: Arc<dyn Acknowledge>) -> Self {
        self.elsewhere = Some(elsewhere);
        self
    }

    /// The id and the secret of a store that is made, instead of random ones.
    #[must_use]
    #[doc(hidden)]
    pub fn identity(mut self, store: StoreId, secret: [u8; 32]) -> Self {
        self.options.identity = Some((store, Zeroizing::new(secret)));
        self
    }

    /// The storage of the bytes, instead of files in the folder.
    #[must_use]
    #[doc(hidden)]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// The clock, instead of the machine's.
    #[must_use]
    #[doc(hidden)]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The source of random bytes, instead of the machine's.
    #[must_use]
    #[doc(hidden)]
    pub fn entropy(mut self, entropy: Arc<dyn Entropy>) -> Self {
        self.entropy = entropy;
        self
    }

    /// Opens the store, making or recovering it as needed.
    ///
    /// # Errors
    /// [`Error::UntrustedFileSystem`], [`Error::NotAStore`], [`Error::NewerFormat`], [`Error::Locked`], [`Error::Busy`] (another process recovers and does not end),
    /// [`Error::NoSpace`], [`Error::Io`]. Damage inside the log is no error here: see [`Store::recovery`] and `verify`.
    #[cfg_attr(
        feature = "tracing",
        tracing::instrument(name = "acpdb.open", level = "debug", skip_all, err(level = "debug"))
    )]
    pub fn open(self) -> Result<Store, Error> {
        // redb's file is one of the folder's: a store on other storage does without.
        let real_files = self.storage.is_none();
        let own_files = real_files && !self.options.read_only;
        if own_files && !self.any_file_system && !insisted() {
            let found = untrusted(&self.root).map_err(|source| Error::Io {
                action: "find the file system of",
                path: self.root.clone(),
                source,
            })?;
            if let Some(file_system) = found {
                return Err(Error::UntrustedFileSystem { path: self.root, file_system });
            }
        }
        let is_new_in_project = own_files
            && self.root.file_name().is_some_and(|name| name == PROJECT_FOLDER)
            && !is_store(&self.root);
        let read_only = self.options.read_only;
        let storage = self.storage.unwrap_or_else(|| {
            let files = FileStorage::new(&self.root);
            Arc::new(if read_only { files.read_only() } else { files })
        });
        let mut seed = [0; 32];
        self.entropy.fill(&mut seed).map_err(|source| Error::Io {
            action: "draw random bytes for",
            path: self.root.clone(),
            source,
        })?;
        let (log, recovery) = Log::open_or(storage, self.clock, self.entropy, self.options, self.create)?;
        if is_new_in_project && log.storage().open(IGNORE_LIST, Access::Read).is_err() {
            // Without it all works; `acpdb doctor` tells that git would take the store.
            let _ = write_file(&**log.storage(), IGNORE_LIST, b"*\n");
        }
        // A store that only newer programs may write to is opened for reading only.
        let read_only = read_only || log.newer().is_some();
        let own_files = own_files && !read_only;
        // Caches would hold in plain what the log has sealed.
        let is_plain = !log.is_encrypted();
        let index = self.index && real_files && is_plain;
        let keeps = self.snapshots && is_plain;
        let snapshots = Snapshots::new(
            Arc::clone(log.storage()),
            log.store(),
            Uses { reads: keeps, writes: keeps && !read_only, by_itself: own_files && is_plain },
        );
        let inner = StoreInner {
            root: self.root,
            registry: self.registry,
            redactor: self.redactor,
            entropy: Salts::new(seed),
            read_only,
            recovery,
            names: RwLock::new(IndexUse::new(index, read_only)),
            writers: Mutex::new(Bounded::new(self.memory_max / 4)),
            folds: Mutex::new(Bounded::new(self.memory_max / 4 * 3)),
            moves: Mutex::default(),
            frames: Mutex::new(FrameCache::new(self.memory_max / 8)),
            erasures: Mutex::new(Erasures::new(log.secret().clone())),
            damage: Mutex::default(),
            upkeep: Upkeep::new(own_files && self.sealing),
            segment: AtomicU32::default(),
            snapshots,
            durability: self.durability,
            elsewhere: self.elsewhere,
            settler: Settler::default(),
            unsettled: Mutex::default(),
            log: Arc::new(log),
        };
        if !read_only && inner.refresh()? == Seq::ZERO {
            inner.begin()?;
        }
        if inner.log.is_erasing()? {
            if !read_only {
                // If the erasure cannot be ended now, the next opening tries again.
                let _ = inner.resume_erasing();
            }
            inner.withhold_pending()?;
        }
        Ok(Store { inner: Arc::new(inner) })
    }
}

impl Store {
    /// Opens or makes the store in `folder` with [`Builder`]'s defaults.
    pub fn builder(folder: impl Into<PathBuf>) -> Builder {
        Builder::new(folder)
    }
}

/// Whether the environment allows any file system.
fn insisted() -> bool {
    std::env::var_os(ANY_FILE_SYSTEM_VARIABLE).is_some_and(|value| value == "1")
}

impl StoreInner {
    /// Records the first event of a new store: its policy, so that a later default never rewrites the past.
    fn begin(&self) -> Result<(), Error> {
        let payload = PolicySet { policy: Policy::default().to_json(), reason: Some("store created".into()) };
        self.append_first(EventDraft::of_store(payload, Actor::Policy))
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        if self.log.check_process().is_err() {
            // In a forked child: the store and the threads are the parent's. The child waits for nothing, writes nothing and
            // removes nothing. The index is left open, since closing its index would write to the file.
            std::mem::forget(std::mem::take(steady_mut(&mut self.names)));
            return;
        }
        self.settler.finish();
        self.save_all();
        // Nothing becomes durable here: a checkpoint only witnesses durable commits.
        self.upkeep.finish(&self.log, self.segment.load(Ordering::Relaxed));
        // As above: without a checkpoint the next opening looks at the log.
        let _ = self.log.write_checkpoint();
    }
}
