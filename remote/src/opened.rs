//! A store that lives at a remote and is written in a folder of this machine, by one worker at a time.
//!
//! ```text
//! open     take the chain over -> bring the folder up to it -> ship what the folder alone has -> the store
//! append   durable in the folder -> chunk created at the remote -> acknowledged
//! ```
//!
//! PLACE/STORE holds `lock` (one worker a folder), `store`, and `aside-EPOCH`: a former `store` whose last events are not in the chain. Such events were
//! never acknowledged. Opening *is* taking over: the worker that had the store before finds a fence where it would go on, and is told so.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use acpdb_engine::codec::SecretFile;
use acpdb_engine::ids::{Position, Seq, StoreId};
use acpdb_engine::locks::steady;
use acpdb_engine::log::{Head, Log, LogOptions};
use acpdb_engine::storage::{Entropy, FileStorage, SystemClock, SystemEntropy};
use acpdb_engine::store::{Acknowledge, Builder, Unacknowledged, identity_of, is_store};
use acpdb_engine::vault::KeyUse;
use acpdb_engine::{Error, Store};

use crate::ahead::AheadRemote;
use crate::chain::{ChainClaim, RemoteChain};
use crate::error::ChainError;
use crate::mirror::{failed, lock_file, remove};
use crate::names::{head_key, meta_key};
use crate::objects::{create_settled, has_objects, head_of, swap_settled};
use crate::remote::{Remote, RemoteError};
use crate::repair::with_head;
use crate::restore::{RestoreOptions, made_from};
use crate::ship::{ShipOptions, Shipped, Shipper};
use crate::small::SmallThere;
use crate::status::is_of_encrypted;

/// How often the secret of a new store is looked at while others make it.
const TRY_COUNT: u32 = 16;

/// How a store is opened at a remote.
pub struct RemoteOptions {
    folder: PathBuf,
    owner: String,
    create: bool,
    builder: Box<dyn FnOnce(Builder) -> Builder + Send>,
}

impl std::fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteOptions").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl RemoteOptions {
    /// Stores are written below `folder`, each in a folder of its own, which may be lost: what was acknowledged is at the remote. It has to be on a local disk.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            owner: "acpdb".to_owned(),
            create: true,
            builder: Box::new(|builder| builder),
        }
    }

    /// The worker's name, for people. Default: `acpdb`.
    #[must_use]
    pub fn owner(self, owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), ..self }
    }

    /// Whether a store is made that the remote does not have. Default: yes.
    #[must_use]
    pub fn create(self, create: bool) -> Self {
        Self { create, ..self }
    }

    /// Further settings of the store, such as its tools or its keys; those of a former call stay.
    #[must_use]
    pub fn store(self, set: impl FnOnce(Builder) -> Builder + Send + 'static) -> Self {
        let before = self.builder;
        Self { builder: Box::new(move |builder| set(before(builder))), ..self }
    }

    /// Settings that those of [`RemoteOptions::store`] override.
    #[must_use]
    #[doc(hidden)]
    pub fn by_default(self, set: impl FnOnce(Builder) -> Builder + Send + 'static) -> Self {
        let after = self.builder;
        Self { builder: Box::new(move |builder| after(set(builder))), ..self }
    }
}

/// The id of the store that a name stands for, such as that of a session: the same in all workers.
pub fn store_of(name: &str) -> StoreId {
    let digest = blake3::derive_key("acpdb 2026 id of a store by its name v1", name.as_bytes());
    let mut id = [0; 16];
    id.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    StoreId(id)
}

/// A store that was opened at a remote: each of its answers waits until what was recorded is there.
#[derive(Debug)]
pub struct RemoteStore {
    store: Store,
    shipping: Arc<Shipping>,
    epoch: u64,
    aside: Option<PathBuf>,
}

impl RemoteStore {
    /// The store. Clones of it acknowledge in the same way.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How often the store was taken over, this time included.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The last seq that is known to be at the remote.
    pub fn there(&self) -> Seq {
        Seq(self.shipping.there.load(Ordering::SeqCst))
    }

    /// The epoch of the worker that took the store over, if this one was told of that.
    pub fn fenced(&self) -> Option<u64> {
        self.shipping.fenced.get().copied()
    }

    /// The store that the folder held when it was opened, if its last events are not at the remote: they were never acknowledged. It may be removed.
    pub fn aside(&self) -> Option<&Path> {
        self.aside.as_deref()
    }

    /// Ships what is to be shipped beside commits: segments that were completed, or of which bodies were erased.
    ///
    /// # Errors
    /// As [`Shipper::ship`].
    pub fn ship(&self) -> Result<Shipped, ChainError> {
        self.shipping.ship()
    }
}

/// Keeps commits at the remote before they are acknowledged.
struct Shipping {
    shipper: Mutex<Shipper>,
    /// The last seq that is there.
    there: AtomicU64,
    fenced: OnceLock<u64>,
    /// Held as long as the store is open.
    _held: File,
}

impl std::fmt::Debug for Shipping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shipping").field("there", &self.there).finish_non_exhaustive()
    }
}

impl Shipping {
    fn is_there(&self, seq: Seq) -> bool {
        self.there.load(Ordering::SeqCst) >= seq.0
    }

    fn ship(&self) -> Result<Shipped, ChainError> {
        self.ship_by(&mut steady(&self.shipper))
    }

    fn ship_by(&self, shipper: &mut Shipper) -> Result<Shipped, ChainError> {
        if let Some(epoch) = self.fenced.get() {
            return Err(ChainError::Fenced { epoch: *epoch });
        }
        let shipped = shipper.ship(&mut |_| true);
        match &shipped {
            Ok(shipped) => _ = self.there.fetch_max(shipped.there.0, Ordering::SeqCst),
            Err(ChainError::Fenced { epoch }) => _ = self.fenced.set(*epoch),
            Err(_) => {}
        }
        shipped
    }
}

impl Acknowledge for Shipping {
    fn acknowledge(&self, seq: Seq) -> Result<(), Unacknowledged> {
        if self.is_there(seq) {
            return Ok(());
        }
        let mut shipper = steady(&self.shipper);
        // Who held it before may have shipped this, too.
        if self.is_there(seq) {
            return Ok(());
        }
        let shipped = self.ship_by(&mut shipper);
        match shipped {
            // A segment that was shipped, or erased bodies, may have failed behind it.
            _ if self.is_there(seq) => Ok(()),
            Ok(shipped) => Err(Unacknowledged::Unshipped { detail: format!("it ends at {}", shipped.there) }),
            Err(ChainError::Fenced { epoch }) => Err(Unacknowledged::Fenced { epoch }),
            Err(error) => Err(Unacknowledged::Unshipped { detail: error.to_string() }),
        }
    }

    fn refusal(&self) -> Option<Unacknowledged> {
        self.fenced.get().map(|epoch| Unacknowledged::Fenced { epoch: *epoch })
    }
}

/// Opens a store at a remote, and takes it over from the worker that has it. When an append of it returns, the commit is at the remote, for every later owner.
///
/// A commit costs one request, and each 64th some more. Commits of several threads share one. Commits that were not acknowledged may be at the remote or not. One that
/// failed with [`Error::Unshipped`] is tried again by the next one; after [`Error::Fenced`] nothing can be recorded until the store is opened again.
///
/// Cost of opening: four round trips, the entries that no pack has, and, if the folder does not have it, the store.
///
/// # Errors
/// [`ChainError::NoStore`] if it is not there and not to be made, [`ChainError::SecretMissing`], [`ChainError::Fenced`] and [`ChainError::Contended`] if others
/// take it over at the same time, those of [`crate::restore`]; [`ChainError::Store`] for the folder: [`Error::Busy`] if another worker has it.
pub fn open(
    remote: Arc<dyn Remote>,
    store: StoreId,
    options: RemoteOptions,
) -> Result<RemoteStore, ChainError> {
    let place = options.folder.join(store.to_hex());
    DirBuilder::new().mode(0o700).recursive(true).create(&place).map_err(failed("create", &place))?;
    let held = hold(&place.join("lock"))?;
    if !options.create && matches!(head_of(&*remote, store), Ok(None)) && !has_objects(&*remote, store)? {
        return Err(ChainError::NoStore { store: store.to_string() });
    }
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    let (mut claim, real) = (ChainClaim::default(), Arc::clone(&remote));
    let ahead = AheadRemote::new(&*real, store);
    ahead.expect_keys(std::iter::once(head_key(store)).chain(SmallThere::keys(store)).collect());
    let take = || {
        claim = ChainClaim::default();
        let (remote, entropy) = (Arc::clone(&remote), Arc::clone(&entropy));
        RemoteChain::take_over_as(&ahead, remote, entropy, &options.owner, &mut claim)
    };
    let chain = with_head(&*remote, store, || {}, take)?;
    let mut small = SmallThere::read_expected(&ahead)?;
    let (folder, epoch) = (place.join("store"), chain.epoch());
    let aside = bring(&ahead, &chain, &mut small, &place)?;
    let is_encrypted = identity_of(&folder)?.is_some_and(|found| found.is_encrypted);
    // A key that was kept elsewhere stays there.
    let key = is_encrypted && small.get(&meta_key(store, "key")).is_some();
    let ship = ShipOptions { owner: options.owner, key, ..ShipOptions::default() };
    let mut shipper = Shipper::open(&folder, remote, ship)?;
    shipper.hold(chain, claim, &small)?;
    let shipping = Arc::new(Shipping {
        shipper: Mutex::new(shipper),
        there: AtomicU64::default(),
        fenced: OnceLock::new(),
        _held: held,
    });
    let _shipped = shipping.ship()?;
    let elsewhere: Arc<dyn Acknowledge> = Arc::<Shipping>::clone(&shipping);
    let builder = (options.builder)(Store::builder(&folder)).create(false).acknowledge(elsewhere);
    let store = builder.open()?;
    // Recovery may have found a commit that was written and not confirmed.
    let _shipped = shipping.ship()?;
    Ok(RemoteStore { store, shipping, epoch, aside })
}

/// Takes the lock of a place, or refuses.
fn hold(path: &Path) -> Result<File, ChainError> {
    let file = lock_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            let detail = format!("another worker has {}", path.display());
            Err(Error::Busy { detail }.into())
        }
        Err(std::fs::TryLockError::Error(error)) => Err(failed("lock", path)(error)),
    }
}

/// Opens the log in a folder to read it; `None`: there is none of this store.
fn log_of(folder: &Path, store: StoreId) -> Option<Log> {
    if !is_store(folder) {
        return None;
    }
    let storage = Arc::new(FileStorage::new(folder).read_only());
    let options = LogOptions { read_only: true, keys: KeyUse::Bytes, ..LogOptions::default() };
    // One that cannot be read is made anew from the remote, and kept aside.
    let (log, _) = Log::open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options).ok()?;
    (log.store() == store).then_some(log)
}

/// Brings the folder of a place up to the end of a chain. Returns where the former one is, if it has more than the chain, or another history.
fn bring(
    ahead: &AheadRemote<'_>,
    chain: &RemoteChain,
    small: &mut SmallThere,
    place: &Path,
) -> Result<Option<PathBuf>, ChainError> {
    let store = ahead.store();
    let (folder, beside) = (place.join("store"), place.join("new"));
    let there = chain.place();
    let is_empty = there.position == Position::default();
    let secret = secret_of(ahead, small, &folder, is_empty)?;
    let log = log_of(&folder, store);
    let has_secret = || secret_in(&folder, store) == secret;
    if let Some(log) = &log
        && has_secret()
        && (is_empty || there.position <= log.head().position && log.holds(&there)?)
    {
        return Ok(None);
    }
    remove(&beside)?;
    if is_empty {
        let secret = secret.ok_or_else(|| ChainError::SecretMissing { store: store.to_string() })?;
        // The caller's settings are asked when the store is opened for it.
        let made = Store::builder(&beside).any_file_system().identity(store, secret).open()?;
        made.close()?;
    } else {
        let options = RestoreOptions::default();
        let _verified = made_from(small.parts(store)?, &beside, options, |visit| chain.read(ahead, visit))?;
    }
    let mut aside = None;
    if folder.symlink_metadata().is_ok() {
        let head = log.as_ref().map(Log::head);
        let is_known =
            |head: Head| log_of(&beside, store).is_some_and(|made| made.holds(&head).unwrap_or(false));
        if !is_empty && head.is_some_and(is_known) {
            remove(&folder)?;
        } else {
            let to = place.join(format!("aside-{}", chain.epoch()));
            std::fs::rename(&folder, &to).map_err(failed("rename", &folder))?;
            aside = Some(to);
        }
    }
    std::fs::rename(&beside, &folder).map_err(failed("rename", &beside))?;
    Ok(aside)
}

/// The secret in a folder.
fn secret_in(folder: &Path, store: StoreId) -> Option<[u8; 32]> {
    // One that cannot be read is none.
    let bytes = std::fs::read(folder.join("secret")).ok()?;
    // As above.
    SecretFile::decode(&bytes, store).ok().map(|file| file.key)
}

/// The secret that a store has at the remote; of a store of which nothing is there yet, the first one that was put there. `None`: it is encrypted.
fn secret_of(
    remote: &AheadRemote<'_>,
    small: &mut SmallThere,
    folder: &Path,
    is_empty: bool,
) -> Result<Option<[u8; 32]>, ChainError> {
    let store = remote.store();
    let key = meta_key(store, "secret");
    for _ in 0..TRY_COUNT {
        let found = small.get(&key).cloned();
        // One that is torn is none.
        if let Some(file) = found.as_ref().and_then(|(bytes, _)| SecretFile::decode(bytes, store).ok()) {
            return Ok(Some(file.key));
        }
        if !is_empty {
            if small.parts(store).is_ok_and(|parts| is_of_encrypted(&parts.store_file)) {
                return Ok(None);
            }
            return Err(ChainError::SecretMissing { store: store.to_string() });
        }
        let mut drawn = [0; 32];
        SystemEntropy
            .fill(&mut drawn)
            .map_err(|error| RemoteError::Broken { what: format!("drawing random bytes: {error}") })?;
        let file = SecretFile { store, key: secret_in(folder, store).unwrap_or(drawn) };
        match found {
            None => {
                let _is_mine = create_settled(remote, &key, &file.encode())?; // Read below.
            }
            // Its creation was torn.
            Some((_, tag)) => {
                let _tag = swap_settled(remote, &key, &file.encode(), &tag)?; // As above.
            }
        }
        *small = SmallThere::read(remote)?;
    }
    Err(ChainError::Contended)
}
