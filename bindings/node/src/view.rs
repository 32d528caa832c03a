//! A frozen view of one session, and the questions to it.

use std::sync::Arc;

use acpdb_bindings::Fault;
use acpdb_bindings::stores::Looked;
use acpdb_bindings::views::{Asked, Exporting};
use acpdb_engine::ids::Seq;
use acpdb_engine::{View, store::StreamName};
use napi::bindgen_prelude::{AsyncTask, Buffer, ToNapiValue, TypeName};
use napi_derive::napi;
use serde::Deserialize;

use crate::job::{Job, Told, arguments, promise, told};
use crate::store::Held;

/// A host's raw record, and its seq.
#[napi(object)]
pub struct Record {
    pub seq: f64,
    pub bytes: Buffer,
}

#[derive(Deserialize)]
struct Question {
    #[serde(default)]
    layer: String,
    last: Option<usize>,
    file: Option<String>,
    tool: Option<String>,
    #[serde(default)]
    filter: String,
    limit: Option<usize>,
    #[serde(default)]
    item: String,
    #[serde(default)]
    all: bool,
}

struct Frozen {
    view: View,
    stream: StreamName,
}

/// One session as of one seq.
#[napi]
pub struct NativeView {
    held: Arc<Held>,
    frozen: Arc<Frozen>,
}

impl NativeView {
    pub(crate) fn new(held: Arc<Held>, view: View, stream: StreamName) -> Self {
        Self { held, frozen: Arc::new(Frozen { view, stream }) }
    }

    fn asked<T: Send + ToNapiValue + TypeName + 'static>(
        &self,
        ask: impl FnOnce(&Asked<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> AsyncTask<Job<T>> {
        let (held, frozen) = (Arc::clone(&self.held), Arc::clone(&self.frozen));
        promise(move || ask(&Asked { store: &held.store()?, view: &frozen.view, stream: &frozen.stream }))
    }
}

/// A question by its name.
fn answer(asked: &Asked<'_>, question: &str, json: &str) -> Result<Told, Fault> {
    if question == "search" {
        return told(&asked.search(&arguments::<Looked>(json)?)?);
    }
    let it: Question = arguments(json)?;
    match question {
        "context" => told(&asked.context(&it.layer, it.last)?),
        "history" => told(&asked.history(it.file.as_deref(), it.tool.as_deref(), &it.filter, it.limit)?),
        "chain" => told(&asked.chain(&it.item)?),
        "explain" => told(&asked.explain(&it.item)?),
        "is_visible" => told(&asked.is_visible(&it.item)?),
        "tokens" => told(&asked.tokens()),
        "todos" => told(&asked.todos()?),
        "memory" => told(&asked.memory(it.all)?),
        "replaced" => told(&asked.replaced()?),
        "rewind_count" => told(&asked.rewind_count()),
        other => Err(Fault::new("error", format!("there is no question {other:?}"))),
    }
}

#[napi]
impl NativeView {
    /// The view's seq.
    #[napi(getter)]
    pub fn seq(&self) -> f64 {
        self.frozen.view.at().get() as f64
    }

    /// Asks a question; the answer is JSON.
    #[napi]
    pub fn ask(&self, question: String, json: String) -> AsyncTask<Job<Told>> {
        self.asked(move |asked| answer(asked, &question, &json))
    }

    /// The recorded bytes of an item.
    #[napi]
    pub fn body(&self, item: String, face: String) -> AsyncTask<Job<Buffer>> {
        self.asked(move |asked| Ok(asked.body(&item, &face)?.into()))
    }

    /// The body of a request, a transcript, a page or spans.
    #[napi]
    pub fn export(&self, json: String) -> AsyncTask<Job<Buffer>> {
        self.asked(move |asked| Ok(asked.export(arguments::<Exporting>(&json)?)?.into()))
    }

    /// The raw records of the host.
    #[napi]
    pub fn records(&self, after: i64) -> AsyncTask<Job<Vec<Record>>> {
        self.asked(move |asked| {
            let all = asked.records(Seq(after.unsigned_abs()))?.into_iter();
            let records = all.map(|(seq, bytes)| Record { seq: seq as f64, bytes: bytes.into() });
            Ok(records.collect())
        })
    }
}
