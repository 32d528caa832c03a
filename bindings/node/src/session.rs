//! One session: append, serve, act; receipts and submitted commits.

use std::sync::{Arc, Mutex, PoisonError};

use acpdb_bindings::sessions::{self, Serving};
use acpdb_bindings::{ActAnswer, Described, Fault, keeping, lines, stores};
use acpdb_engine::Store;
use acpdb_engine::entry::{Bytes, StreamInfo};
use acpdb_engine::ids::Seq;
use acpdb_engine::store as engine;
use napi::bindgen_prelude::{AsyncTask, Buffer, Either, Uint8Array};
use napi_derive::napi;
use serde::Deserialize;

use crate::job::{Job, Told, arguments, promise, raise, spelled, told};
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
    ticket: Arc<Mutex<Option<engine::Ticket>>>,
    last_seq: Seq,
}

impl From<engine::Ticket> for NativeTicket {
    fn from(ticket: engine::Ticket) -> Self {
        let last_seq = ticket.receipt().last_seq;
        Self { ticket: Arc::new(Mutex::new(Some(ticket))), last_seq }
    }
}

#[napi]
impl NativeTicket {
    #[napi(getter)]
    pub fn last_seq(&self) -> f64 {
        self.last_seq.get() as f64
    }

    /// Waits until the commit is durable. Works once.
    #[napi]
    pub fn wait(&self) -> AsyncTask<Job<Receipt>> {
        let ticket = self.ticket.lock().unwrap_or_else(PoisonError::into_inner).take();
        promise(move || {
            let used =
                || Fault::new("closed", "this ticket was waited for already; keep the receipt that it gave");
            Ok(ticket.ok_or_else(used)?.wait()?.into())
        })
    }
}

/// A context that was recorded as sent: its bytes, and facts about them as JSON.
#[napi(object)]
pub struct Served {
    pub body: Buffer,
    pub facts: String,
}

#[derive(Deserialize)]
struct Acted {
    #[serde(default)]
    key: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    targets: Vec<(String, Option<String>)>,
    #[serde(default)]
    pin: bool,
    #[serde(default)]
    to: u64,
    #[serde(default)]
    json: String,
    #[serde(default)]
    item: String,
    other: Option<String>,
    reason: Option<String>,
}

/// An act by its name.
fn acted(store: &Store, info: &StreamInfo, act: &str, json: &str) -> Result<Told, Fault> {
    let session = store.session(info.clone());
    let it: Acted = arguments(json)?;
    let names = || it.targets.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    match act {
        "step" => told(&acpdb_serve::Step::begin(&session, &it.key).map(drop)?),
        "resume" => told(&sessions::resumed(&session)?),
        "flush" => told(&acpdb_serve::flush(&session)?),
        "context" => told(&sessions::act(store, &session, &it.action, it.targets, it.pin)?),
        "context_tool" => told(&ActAnswer::from(store.context_tool(session.id(), &it.json)?)),
        "pin" => told(&sessions::pin(store, &session, &names(), it.pin)?),
        "rewind" => told(&ActAnswer::from(store.rewind(session.id(), Seq(it.to))?)),
        "update_tasks" => told(&ActAnswer::from(store.update_tasks(session.id(), it.json.as_bytes())?)),
        "memory" => {
            let command = stores::memory_command(&it.action, &it.item, it.other.as_deref(), it.reason)?;
            told(&sessions::remembered(store, &session, &command)?)
        }
        other => Err(Fault::new("error", format!("there is no act {other:?} ({})", it.why))),
    }
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

    /// Submits entries in the order of the calls.
    fn submitted(
        &self,
        described: String,
        given: Vec<Bytes>,
    ) -> impl FnOnce() -> Result<engine::Ticket, Fault> + Send + use<> {
        let (held, info) = (Arc::clone(&self.held), Arc::clone(&self.info));
        self.held.lane.queued(move || {
            let entries = acpdb_bindings::entries(&arguments::<Vec<Described>>(&described)?, &given)?;
            let store = held.store()?;
            let entries = acpdb_bindings::sessions::all_placed(&store, &info, entries)?;
            Ok(store.submit(&info, entries)?)
        })
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

    /// Appends entries, in the order of the calls.
    #[napi]
    pub fn append(
        &self,
        described: String,
        given: Vec<Either<String, Uint8Array>>,
    ) -> AsyncTask<Job<Receipt>> {
        let given = texts(given);
        if self.held.is_durable {
            let ticket = self.submitted(described, given);
            return promise(move || Ok(ticket()?.wait()?.into()));
        }
        // A ticket waits until the commit is durable, which is not asked for here.
        let (held, info) = (Arc::clone(&self.held), Arc::clone(&self.info));
        promise(self.held.lane.queued(move || {
            let entries = acpdb_bindings::entries(&arguments::<Vec<Described>>(&described)?, &given)?;
            let store = held.store()?;
            let entries = acpdb_bindings::sessions::all_placed(&store, &info, entries)?;
            Ok(store.session((*info).clone()).append(entries)?.into())
        }))
    }

    /// Appends entries if the session has no event behind `head`, in the order of the calls.
    #[napi]
    pub fn append_expecting(
        &self,
        head: i64,
        described: String,
        given: Vec<Either<String, Uint8Array>>,
    ) -> AsyncTask<Job<Receipt>> {
        let (held, info, given) = (Arc::clone(&self.held), Arc::clone(&self.info), texts(given));
        promise(self.held.lane.queued(move || {
            let entries = acpdb_bindings::entries(&arguments::<Vec<Described>>(&described)?, &given)?;
            let store = held.store()?;
            let entries = acpdb_bindings::sessions::all_placed(&store, &info, entries)?;
            let session = store.session((*info).clone());
            Ok(session.append_expecting(Seq(head.unsigned_abs()), entries)?.into())
        }))
    }

    /// Submits entries, in the order of the calls.
    #[napi]
    pub fn submit(
        &self,
        described: String,
        given: Vec<Either<String, Uint8Array>>,
    ) -> AsyncTask<Job<NativeTicket>> {
        let ticket = self.submitted(described, texts(given));
        promise(move || Ok(ticket()?.into()))
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

    /// Does an act that records, in the order of the calls; the answer is JSON.
    #[napi]
    pub fn act(&self, act: String, json: String) -> AsyncTask<Job<Told>> {
        let (held, info) = (Arc::clone(&self.held), Arc::clone(&self.info));
        promise(self.held.lane.queued(move || acted(&held.store()?, &info, &act, &json)))
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
    pub fn remember(
        &self,
        described: String,
        given: Vec<Either<String, Uint8Array>>,
    ) -> AsyncTask<Job<Told>> {
        let (held, info, given) = (Arc::clone(&self.held), Arc::clone(&self.info), texts(given));
        promise(self.held.lane.queued(move || {
            let entries = acpdb_bindings::entries(&arguments::<Vec<Described>>(&described)?, &given)?;
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
            let (body, facts) = sessions::served(&session, arguments::<Serving>(&json)?)?;
            Ok(Served { body: body.into(), facts: spelled(&facts)? })
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
