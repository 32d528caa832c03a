//! One session: append, serve, act; receipts and submitted commits.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use acpdb_bindings::{Arguments, Fault, door, keeping, lines, sessions, stores};
use acpdb_engine::Error;
use acpdb_engine::entry::{Bytes, Entry, StreamInfo};
use acpdb_engine::ids::Seq;
use acpdb_engine::store as engine;
use napi::bindgen_prelude::{AsyncTask, Buffer, Either, Object, ToNapiValue, TypeName, Uint8Array};
use napi::{Env, JsDeferred};
use napi_derive::napi;

use crate::job::{Job, Told, described, promise, raise, told};
use crate::store::Held;
use crate::view::NativeView;

/// Texts and bytes as the engine takes them: one copy each.
pub(crate) fn texts(given: Vec<Either<String, Uint8Array>>) -> Vec<Bytes> {
    let each = given.into_iter().map(|text| match text {
        Either::A(text) => Bytes::from(text.into_bytes()),
        Either::B(bytes) => Bytes::from(bytes.as_ref()),
    });
    each.collect()
}

/// The receipt of a commit.
#[napi(object)]
pub struct Receipt {
    pub first_seq: f64,
    pub last_seq: f64,
    pub event_count: f64,
    pub known_count: f64,
    pub recorded_at: f64,
    pub items: Vec<Option<String>>,
}

impl From<engine::Receipt> for Receipt {
    fn from(receipt: engine::Receipt) -> Self {
        Self {
            first_seq: receipt.first_seq.get() as f64,
            last_seq: receipt.last_seq.get() as f64,
            event_count: receipt.event_count as f64,
            known_count: receipt.known_count as f64,
            recorded_at: receipt.recorded_at.0 as f64,
            items: receipt.items.iter().map(|item| item.map(|item| item.to_string())).collect(),
        }
    }
}

/// A commit that was submitted.
#[napi]
pub struct NativeTicket {
    ticket: Mutex<Option<engine::Ticket>>,
    last_seq: Seq,
}

impl From<engine::Ticket> for NativeTicket {
    fn from(ticket: engine::Ticket) -> Self {
        let last_seq = ticket.receipt().last_seq;
        Self { ticket: Mutex::new(Some(ticket)), last_seq }
    }
}

#[napi]
impl NativeTicket {
    #[napi(getter)]
    pub fn last_seq(&self) -> f64 {
        self.last_seq.get() as f64
    }

    /// Waits until the commit is durable. Works once.
    #[napi(ts_return_type = "Promise<Receipt>")]
    pub fn wait<'env>(&self, env: &'env Env) -> napi::Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred()?;
        match self.ticket.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(ticket) => Waiting::begin(ticket, deferred),
            None => deferred.reject(raise(Fault::new(
                "closed",
                "this ticket was waited for already; keep the receipt that it gave",
            ))),
        }
        Ok(promise)
    }
}

type Deferred = JsDeferred<Receipt, Box<dyn FnOnce(Env) -> napi::Result<Receipt>>>;

/// A promise for a commit that is on its way. No thread of Node's pool waits for the disk: the thread of the engine that made the commit durable
/// settles its promise.
struct Waiting(Mutex<Option<(engine::Ticket, Deferred)>>);

impl Waiting {
    fn begin(ticket: engine::Ticket, deferred: Deferred) {
        Arc::new(Self(Mutex::new(Some((ticket, deferred))))).look();
    }

    /// Settles the promise, or is woken once it can.
    fn look(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((mut ticket, deferred)) = held.take() else { return };
        match Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => *held = Some((ticket, deferred)),
            Poll::Ready(Ok(receipt)) => deferred.resolve(Box::new(move |_| Ok(receipt.into()))),
            Poll::Ready(Err(error)) => deferred.reject(raise(error.into())),
        }
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

/// A context that was recorded as sent: its bytes, and facts about them as JSON.
#[napi(object)]
pub struct Served {
    pub body: Buffer,
    pub facts: String,
}

/// One session of a store.
#[napi]
pub struct NativeSession {
    held: Arc<Held>,
    info: Arc<StreamInfo>,
}

impl NativeSession {
    pub(crate) fn new(held: Arc<Held>, info: StreamInfo) -> Self {
        Self { held, info: Arc::new(info) }
    }

    /// Records entries, in the order of the calls.
    fn recorded<T, R: From<T> + Send + ToNapiValue + TypeName + 'static>(
        &self,
        facts: String,
        given: Vec<Either<String, Uint8Array>>,
        record: impl FnOnce(&engine::Session, Vec<Entry>) -> Result<T, Error> + Send + 'static,
    ) -> AsyncTask<Job<R>> {
        let (held, info, given) = (Arc::clone(&self.held), Arc::clone(&self.info), texts(given));
        promise(self.held.lane.queued(move || {
            let store = held.store()?;
            let entries = sessions::all_placed(&store, &info, described(&facts, &given)?)?;
            Ok(record(&store.session((*info).clone()), entries)?.into())
        }))
    }
}

#[napi]
impl NativeSession {
    #[napi(getter)]
    pub fn key(&self) -> String {
        self.info.name.clone()
    }

    #[napi(getter)]
    pub fn host(&self) -> String {
        self.info.host.clone()
    }

    /// Id of the session's stream, in hex.
    #[napi(getter)]
    pub fn stream(&self) -> String {
        self.info.id().to_string()
    }

    /// Whether an append waits for the disk: it is then submitted, and its ticket waited for.
    #[napi(getter)]
    pub fn durable(&self) -> bool {
        self.held.is_durable
    }

    /// Appends entries, in the order of the calls; with `head` only if the session has no event behind it.
    #[napi]
    pub fn append(
        &self,
        facts: String,
        given: Vec<Either<String, Uint8Array>>,
        head: Option<i64>,
    ) -> AsyncTask<Job<Receipt>> {
        self.recorded(facts, given, move |session, entries| {
            Ok(match head {
                Some(head) => session.append_expecting(Seq(head.unsigned_abs()), entries)?,
                None => session.append(entries)?,
            })
        })
    }

    /// Submits entries, as [`Self::append`].
    #[napi]
    pub fn submit(
        &self,
        facts: String,
        given: Vec<Either<String, Uint8Array>>,
        head: Option<i64>,
    ) -> AsyncTask<Job<NativeTicket>> {
        self.recorded(facts, given, move |session, entries| {
            Ok(match head {
                Some(head) => session.submit_expecting(Seq(head.unsigned_abs()), entries)?,
                None => session.submit(entries)?,
            })
        })
    }

    /// Appends lines of a host's own recording. Returns the number of new events.
    #[napi]
    pub fn append_lines(
        &self,
        format: String,
        given: Uint8Array,
        prefix: String,
        salt: String,
    ) -> AsyncTask<Job<f64>> {
        let (held, info, given) = (Arc::clone(&self.held), Arc::clone(&self.info), given.to_vec());
        promise(self.held.lane.queued(move || {
            let format = acpdb_hosts::import::ImportFormat::from_name(&format)
                .ok_or_else(|| Fault::invalid(format!("there is no recording of kind {format:?}")))?;
            let read = lines::read(format, &given, &info, &prefix, &salt).map_err(Fault::invalid)?;
            Ok(lines::record(&held.store()?, &read)? as f64)
        }))
    }

    /// An operation by its name, in the order of the calls; the answer is JSON.
    #[napi]
    pub fn call(&self, operation: String, json: String) -> AsyncTask<Job<Told>> {
        let (held, info) = (Arc::clone(&self.held), Arc::clone(&self.info));
        promise(
            self.held
                .lane
                .queued(move || told(&*door::of_session(&held.store()?, &info, &operation, &json)?)),
        )
    }

    /// Begins a session that continues this one.
    #[napi]
    pub fn fork(
        &self,
        key: Option<String>,
        at: Option<String>,
        title: Option<String>,
    ) -> AsyncTask<Job<NativeSession>> {
        let (held, info) = (Arc::clone(&self.held), Arc::clone(&self.info));
        promise(self.held.lane.queued(move || {
            let forked = keeping::forked(&held.store()?, &info, at.as_deref(), key, title)?;
            Ok(Self::new(held, forked))
        }))
    }

    #[napi]
    pub fn give_up(&self, why: String) -> AsyncTask<Job<Receipt>> {
        let (held, info) = (Arc::clone(&self.held), Arc::clone(&self.info));
        promise(self.held.lane.queued(move || {
            let store = held.store()?;
            Ok(sessions::give_up(&store.session((*info).clone()), &why)?.into())
        }))
    }

    #[napi]
    pub fn remember(&self, facts: String, given: Vec<Either<String, Uint8Array>>) -> AsyncTask<Job<Told>> {
        let (held, info, given) = (Arc::clone(&self.held), Arc::clone(&self.info), texts(given));
        promise(self.held.lane.queued(move || {
            let entries = described(&facts, &given)?;
            let store = held.store()?;
            let session = store.session((*info).clone());
            told(&sessions::remember(&store, &session, stores::memory_entry(&entries)?)?)
        }))
    }

    /// The context of a step, recorded as sent.
    #[napi]
    pub fn serve(&self, json: String) -> AsyncTask<Job<Served>> {
        let (held, info) = (Arc::clone(&self.held), Arc::clone(&self.info));
        promise(self.held.lane.queued(move || {
            let store = held.store()?;
            let session = store.session((*info).clone());
            let (body, facts) = sessions::served(&session, &Arguments::read(&json)?)?;
            Ok(Served { body: body.into(), facts })
        }))
    }

    /// A frozen view.
    #[napi]
    pub fn view(&self, at: Option<String>) -> napi::Result<AsyncTask<Job<NativeView>>> {
        let (held, info) = (Arc::clone(&self.held), Arc::clone(&self.info));
        held.store().map_err(raise)?;
        Ok(promise(move || {
            let (view, stream) = sessions::view(&held.store()?, &info, at.as_deref())?;
            Ok(NativeView::new(held, view, stream))
        }))
    }
}
