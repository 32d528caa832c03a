//! A frozen view of one session, and the questions to it.

use std::sync::Arc;

use acpdb_bindings::views::Asked;
use acpdb_bindings::{Arguments, Fault, door};
use acpdb_engine::ids::Seq;
use acpdb_engine::{View, store::StreamName};
use napi::bindgen_prelude::{AsyncTask, Buffer, ToNapiValue, TypeName};
use napi_derive::napi;

use crate::job::{Job, Told, promise, told};
use crate::store::Held;

/// A host's raw record, and its seq.
#[napi(object)]
pub struct Record {
    pub seq: f64,
    pub bytes: Buffer,
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

#[napi]
impl NativeView {
    /// The view's seq.
    #[napi(getter)]
    pub fn seq(&self) -> f64 {
        self.frozen.view.at().get() as f64
    }

    /// A question by its name; the answer is JSON.
    #[napi]
    pub fn call(&self, operation: String, json: String) -> AsyncTask<Job<Told>> {
        self.asked(move |asked| told(&*door::of_view(asked, &operation, &json)?))
    }

    /// The recorded bytes of an item.
    #[napi]
    pub fn body(&self, item: String, face: String) -> AsyncTask<Job<Buffer>> {
        self.asked(move |asked| Ok(asked.body(&item, &face)?.into()))
    }

    /// The body of a request, a transcript, a page or spans.
    #[napi]
    pub fn export(&self, json: String) -> AsyncTask<Job<Buffer>> {
        self.asked(move |asked| Ok(asked.export(&Arguments::read(&json)?)?.into()))
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
