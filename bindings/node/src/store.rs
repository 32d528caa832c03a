//! The store: open, close, questions over all sessions.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use acpdb_bindings::{Arguments, Fault, Opening, door, keeping, opened_beyond, stores};
use acpdb_engine::ids::Seq;
use acpdb_engine::{Store, store::Stores};
use napi::bindgen_prelude::{AsyncTask, Buffer, Either, Uint8Array};
use napi_derive::napi;

use crate::job::{Job, Told, described, promise, raise, told};
use crate::lane::Lane;
use crate::session::{NativeSession, texts};

/// A store that is shared by handles and may be closed.
pub(crate) struct Held {
    store: RwLock<Option<Store>>,
    pub(crate) lane: Arc<Lane>,
    /// An append waits for the disk, in the queue, so that several share one sync.
    pub(crate) is_durable: bool,
}

impl Held {
    pub(crate) fn store(&self) -> Result<Store, Fault> {
        self.store.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(Fault::closed)
    }

    /// Closes the store after all queued work. A second call does nothing.
    fn close(&self) -> Result<(), Fault> {
        self.lane.run();
        let taken = self.store.write().unwrap_or_else(PoisonError::into_inner).take();
        taken.map_or(Ok(()), stores::close)
    }
}

/// Opens the store in the folder of `options`.
#[napi]
pub fn open_store(options: String) -> AsyncTask<Job<NativeStore>> {
    promise(move || {
        let it = Arguments::read(&options)?;
        let opening = Opening::of(it.text("path")?.into(), &it)?;
        let is_durable = opening.durability == "sync";
        Ok(NativeStore::new(opening.open()?, is_durable))
    })
}

/// Opens the store of a name at a URL, as `options` say.
#[napi]
pub fn open_remote(options: String) -> AsyncTask<Job<NativeStore>> {
    promise(move || {
        let it = Arguments::read(&options)?;
        Ok(NativeStore::new(opened_beyond(it.text("folder")?.into(), &it)?, true))
    })
}

fn reading(options: &str) -> Result<Opening, Fault> {
    let it = Arguments::read(options)?;
    Opening::reading(it.text("path")?.into(), &it)
}

/// Makes a store in a folder from a backup, which `options` opens.
#[napi]
pub fn restore_backup(options: String, folder: String) -> AsyncTask<Job<Told>> {
    promise(move || told(&keeping::restored(reading(&options)?, Path::new(&folder))?))
}

/// The stores in a folder.
#[napi]
pub fn stores_in(folder: String) -> AsyncTask<Job<Told>> {
    promise(move || told(&keeping::stores_below(Path::new(&folder))?))
}

/// Several stores that are read as one, each opened as `options` says.
#[napi]
pub fn open_stores(folders: Vec<String>, options: String) -> AsyncTask<Job<NativeStores>> {
    promise(move || {
        let folders = folders.into_iter().map(PathBuf::from).collect();
        let stores = keeping::several(folders, reading(&options)?)?;
        Ok(NativeStores { stores: Arc::new(stores) })
    })
}

/// Several stores that are read as one.
#[napi]
pub struct NativeStores {
    stores: Arc<Stores<Fault>>,
}

#[napi]
impl NativeStores {
    /// The members, the copies that are left out, and the forks, as JSON.
    #[napi]
    pub fn members(&self) -> napi::Result<Told> {
        told(&keeping::members(&self.stores)).map_err(raise)
    }

    #[napi]
    pub fn get(&self, label: String) -> AsyncTask<Job<NativeStore>> {
        let stores = Arc::clone(&self.stores);
        promise(move || Ok(NativeStore::new(keeping::member(&stores, &label)?, true)))
    }

    #[napi]
    pub fn release(&self) -> AsyncTask<Job<()>> {
        let stores = Arc::clone(&self.stores);
        promise(move || {
            stores.release();
            Ok(())
        })
    }
}

/// Checks the store in a folder, without opening it.
#[napi]
pub fn verify_store(path: String, deep: bool) -> AsyncTask<Job<Told>> {
    promise(move || told(&stores::verified_at(Path::new(&path), deep)?))
}

/// The objections of a provider to the body of a request.
#[napi]
pub fn lint_request(
    body: Either<String, Uint8Array>,
    format: String,
    model: Option<String>,
    previous: Option<Uint8Array>,
) -> AsyncTask<Job<Told>> {
    let body = texts(vec![body]).pop().unwrap_or_default();
    let previous = previous.map(|bytes| bytes.to_vec());
    promise(move || {
        serde_json::from_slice::<&serde_json::value::RawValue>(&body)
            .map_err(|error| Fault::invalid(format!("body is no JSON: {error}")))?;
        told(&stores::linted(&body, &format, model.as_deref(), previous.as_deref())?)
    })
}

/// An open store.
#[napi]
pub struct NativeStore {
    held: Arc<Held>,
    path: String,
    id: String,
}

impl NativeStore {
    fn new(store: Store, is_durable: bool) -> Self {
        let (path, id) = (store.root().to_string_lossy().into_owned(), store.id().to_string());
        let held = Held { store: RwLock::new(Some(store)), lane: Arc::default(), is_durable };
        Self { held: Arc::new(held), path, id }
    }
}

#[napi]
impl NativeStore {
    #[napi(getter)]
    pub fn path(&self) -> String {
        self.path.clone()
    }

    #[napi(getter)]
    pub fn id(&self) -> String {
        self.id.clone()
    }

    #[napi(getter)]
    pub fn closed(&self) -> bool {
        self.held.store().is_err()
    }

    #[napi]
    pub fn close(&self) -> AsyncTask<Job<()>> {
        let held = Arc::clone(&self.held);
        promise(move || held.close())
    }

    /// As `close`, but before it returns: for `using`.
    #[napi]
    pub fn close_now(&self) -> napi::Result<()> {
        crate::job::caught(|| self.held.close()).map_err(raise)
    }

    #[napi]
    pub fn session(&self, options: String) -> napi::Result<NativeSession> {
        let made = || {
            self.held.store()?;
            stores::session(&Arguments::read(&options)?)
        };
        Ok(NativeSession::new(Arc::clone(&self.held), made().map_err(raise)?))
    }

    /// An operation by its name; the answer is JSON. Those that record are done in the order of the calls.
    #[napi]
    pub fn call(&self, operation: String, json: String) -> AsyncTask<Job<Told>> {
        let held = Arc::clone(&self.held);
        let is_recorded = door::records(&operation);
        let work = move || told(&*door::of_store(&held.store()?, &operation, &json)?);
        if is_recorded { promise(self.held.lane.queued(work)) } else { promise(work) }
    }

    /// Records a memory item of a project.
    #[napi]
    pub fn remember(
        &self,
        facts: String,
        given: Vec<Either<String, Uint8Array>>,
        project: Option<String>,
    ) -> AsyncTask<Job<Told>> {
        let (held, given) = (Arc::clone(&self.held), texts(given));
        promise(self.held.lane.queued(move || {
            let entries = described(&facts, &given)?;
            told(&stores::remember(&held.store()?, project, stores::memory_entry(&entries)?)?)
        }))
    }

    /// The items of all sessions as JSON lines.
    #[napi]
    pub fn export(&self) -> AsyncTask<Job<Buffer>> {
        let held = Arc::clone(&self.held);
        promise(move || Ok(stores::exported(&held.store()?)?.into()))
    }

    /// Follows the store after a seq.
    #[napi]
    pub fn subscribe(&self, after: i64) -> napi::Result<NativeSubscription> {
        let store = self.held.store().map_err(raise)?;
        let feed = store.subscribe(Seq(after.unsigned_abs()).next());
        let next_seq = feed.next_seq();
        Ok(NativeSubscription {
            held: Arc::clone(&self.held),
            feed: Arc::new(Mutex::new(feed)),
            next_seq: Arc::new(Mutex::new(next_seq)),
        })
    }
}

/// Follows a store. It only looks and never waits: timers of JavaScript wait, so that no thread of the pool is held.
#[napi]
pub struct NativeSubscription {
    held: Arc<Held>,
    feed: Arc<Mutex<acpdb_engine::Subscription>>,
    next_seq: Arc<Mutex<Seq>>,
}

#[napi]
impl NativeSubscription {
    #[napi(getter)]
    pub fn next_seq(&self) -> f64 {
        self.next_seq.lock().unwrap_or_else(PoisonError::into_inner).get() as f64
    }

    /// The next commit as JSON, if there is one.
    #[napi]
    pub fn look(&self) -> AsyncTask<Job<Option<Told>>> {
        let (held, feed, next_seq) =
            (Arc::clone(&self.held), Arc::clone(&self.feed), Arc::clone(&self.next_seq));
        promise(move || {
            let store = held.store()?;
            let mut feed = feed.lock().unwrap_or_else(PoisonError::into_inner);
            let commit = feed.next_within(Duration::ZERO)?;
            *next_seq.lock().unwrap_or_else(PoisonError::into_inner) = feed.next_seq();
            commit.map(|commit| told(&stores::commit(&store, &commit))).transpose()
        })
    }
}
