//! The parts of a handle: the log, and everything that is made from the log and can be thrown away.
//!
//! All that a handle does is done by `impl` blocks in the files above this one.

use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, RwLock};

use crate::error::Error;
use crate::ids::{Micros, Seq, StoreId};
use crate::locks::{renewed, steady};
use crate::log::{Log, PlacedCommit, Recovery};
use crate::registry::Registry;
use crate::text::Signer;

use super::acknowledge::Acknowledge;
use super::behind::{Durability, Settler, Upkeep};
use super::erasure_list::Erasures;
use super::index_use::IndexUse;
use super::kept::{Bounded, FoldSlot, FrameCache, Salts, StreamWriter};
use super::redact::Redactor;
use super::saved::Snapshots;

/// An open store.
///
/// ```
/// use acpdb_engine::{Entry, Role, Store, StreamInfo};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let store = Store::builder(folder.path().join("store")).open()?; // cheap to clone, for all threads
/// let session = store.session(StreamInfo::session("my-agent", "run-1"));
/// let _ = session.append([Entry::message("m1", Role::User, "hello")])?;
/// assert_eq!(store.stream_names()?.len(), 1);
/// store.close()?; // what is behind (index, snapshots) is done
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) inner: Arc<StoreInner>,
}

/// The state that all clones of a handle share.
pub(super) struct StoreInner {
    pub(super) log: Arc<Log>,
    pub(super) root: PathBuf,
    pub(super) registry: Arc<dyn Registry>,
    pub(super) entropy: Salts,
    pub(super) redactor: Option<Arc<dyn Redactor>>,
    pub(super) read_only: bool,
    pub(super) recovery: Recovery,
    pub(super) names: RwLock<IndexUse>,
    pub(super) writers: Mutex<Bounded<Mutex<StreamWriter>>>,
    pub(super) folds: Mutex<Bounded<FoldSlot>>,
    pub(super) moves: Mutex<(Seq, Arc<crate::text::ProjectMoves>)>,
    pub(super) frames: Mutex<FrameCache>,
    pub(super) erasures: Mutex<Erasures>,
    pub(super) damage: Mutex<Vec<String>>,
    pub(super) snapshots: Snapshots,
    pub(super) upkeep: Upkeep,
    /// The segment that this handle last appended to; 0 if it appended to none.
    pub(super) segment: AtomicU32,
    pub(super) durability: Durability,
    /// Keeps commits elsewhere before they are acknowledged.
    pub(super) elsewhere: Option<Arc<dyn Acknowledge>>,
    pub(super) settler: Settler,
    /// The last commit that was acknowledged without a sync.
    pub(super) unsettled: Mutex<Option<PlacedCommit>>,
}

/// Most damaged places that are told of; `verify` tells of all.
const DAMAGE_COUNT_MAX: usize = 16;

impl std::fmt::Debug for StoreInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Store {
    /// Id of the store.
    pub fn id(&self) -> StoreId {
        self.inner.log.store()
    }

    /// The folder it lies in.
    pub fn root(&self) -> &std::path::Path {
        &self.inner.root
    }

    /// The findings of opening: whether the store was closed cleanly, and which bytes were set aside.
    pub fn recovery(&self) -> &Recovery {
        &self.inner.recovery
    }

    /// Damage that reads of this handle met and left out of their answers, each place in a line; at most 16. An empty
    /// list says nothing about unread parts of the log: `verify` reads everything.
    pub fn damage_met(&self) -> Vec<String> {
        steady(&self.inner.damage).clone()
    }

    /// The newest durable seq, of any process.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Corrupt`] if the log cannot be read on.
    pub fn head(&self) -> Result<Seq, Error> {
        self.inner.refresh()
    }

    /// The time of the store's clock, at which memory is to be read now.
    pub fn now(&self) -> Micros {
        self.inner.now()
    }
}

impl StoreInner {
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        if let Some(found) = self.log.newer() {
            return Err(Error::NewerFormat { path: self.root.clone(), found: found.to_owned() });
        }
        if self.read_only {
            return Err(Error::ReadOnly {
                path: self.root.clone(),
                detail: "it was opened for reading".to_owned(),
            });
        }
        self.log.check_process()?;
        if let Some(refused) = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.refusal()) {
            return Err(refused.into());
        }
        if let Some(why) = self.log.secret_fault() {
            return Err(Error::ReadOnly {
                path: self.root.clone(),
                detail: format!(
                    "its file `secret` cannot be used ({why}); put it back from a backup, or make a new store of this \
                     one with `acpdb doctor salvage`"
                ),
            });
        }
        Ok(())
    }

    /// The signer of a stream with this key.
    pub(super) fn signer_with(&self, stream_key: &[u8; 32]) -> Signer {
        Signer::new(self.log.secret().signer_key(stream_key))
    }

    /// The time of the store's clock.
    pub(super) fn now(&self) -> Micros {
        self.log.clock().now()
    }

    /// Takes note of damage that an answer leaves out.
    pub(super) fn note_damage(&self, detail: String) {
        let mut met = steady(&self.damage);
        if met.len() < DAMAGE_COUNT_MAX && !met.contains(&detail) {
            met.push(detail);
        }
    }

    /// Reads the commits that other processes made durable, and returns the head.
    pub(super) fn refresh(&self) -> Result<Seq, Error> {
        Ok(self.log.refresh()?.seq)
    }

    /// Frames that are kept. Never held while the log is read.
    pub(super) fn cache(&self) -> std::sync::MutexGuard<'_, FrameCache> {
        renewed(&self.frames, FrameCache::forget_all)
    }
}
