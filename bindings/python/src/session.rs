//! One session: append, serve, act.

use acpdb_bindings::{Fault, door, keeping, lines, sessions, stores};
use acpdb_engine::Error;
use acpdb_engine::entry::StreamInfo;
use acpdb_engine::ids::Seq;
use acpdb_engine::store as engine;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::entry::{Entry, entries};
use crate::fault::{OrRaise as _, invalid};
use crate::held::Held;
use crate::ticket::{Receipt, Ticket};
use crate::value::{arguments, named, point, read, shown};
use crate::view::View;

/// One session of a store.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct Session {
    held: Held,
    info: StreamInfo,
}

impl Session {
    pub(crate) fn new(held: Held, info: StreamInfo) -> Self {
        Self { held, info }
    }

    fn ask<T: Send, E: Send + Into<Fault>>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&engine::Session) -> Result<T, E> + Send,
    ) -> PyResult<T> {
        self.held.run(py, |store| work(&store.session(self.info.clone())))
    }

    /// The entries given, those of memory in the category of their key.
    fn placed(&self, py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Vec<acpdb_engine::entry::Entry>> {
        let entries = entries(given)?;
        self.held.run(py, |store| sessions::all_placed(store, &self.info, entries))
    }
}

#[pymethods]
impl Session {
    #[getter]
    fn key(&self) -> &str {
        &self.info.name
    }

    #[getter]
    fn host(&self) -> &str {
        &self.info.host
    }

    /// Id of the session's stream, in hex.
    #[getter]
    fn stream(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |session| Ok::<_, Error>(session.id().to_string()))
    }

    fn append(&self, py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Receipt> {
        let entries = self.placed(py, given)?;
        Ok(self.ask(py, |session| session.append(entries))?.into())
    }

    fn append_expecting(&self, py: Python<'_>, head: u64, given: &Bound<'_, PyAny>) -> PyResult<Receipt> {
        let entries = self.placed(py, given)?;
        Ok(self.ask(py, |session| session.append_expecting(Seq(head), entries))?.into())
    }

    fn submit(&self, py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Ticket> {
        let entries = self.placed(py, given)?;
        Ok(Ticket::new(self.ask(py, |session| session.submit(entries))?))
    }

    /// Appends lines of a host's own recording. Returns the number of new events.
    fn append_lines(
        &self,
        py: Python<'_>,
        format: &str,
        lines: &Bound<'_, PyBytes>,
        prefix: &str,
        salt: &str,
    ) -> PyResult<u64> {
        let format = acpdb_hosts::import::ImportFormat::from_name(format)
            .ok_or_else(|| invalid(format!("there is no recording of kind {format:?}")))?;
        let bytes = lines.as_bytes();
        let read = py.detach(|| lines::read(format, bytes, &self.info, prefix, salt)).map_err(invalid)?;
        self.held.run(py, |store| lines::record(store, &read))
    }

    /// An operation by its name.
    #[pyo3(signature = (operation, /, **given))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        operation: &str,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = named(given)?;
        shown(py, &*self.held.run(py, |store| door::of_session(store, &self.info, operation, &given))?)
    }

    /// Ends the calls that were left open, for the given reason.
    fn give_up(&self, py: Python<'_>, why: &str) -> PyResult<Receipt> {
        Ok(self.ask(py, |session| sessions::give_up(session, why))?.into())
    }

    /// A frozen view.
    #[pyo3(signature = (at=None))]
    fn view(&self, py: Python<'_>, at: Option<&Bound<'_, PyAny>>) -> PyResult<View> {
        let at = point(at)?;
        let (view, stream) = self.held.run(py, |store| sessions::view(store, &self.info, at.as_deref()))?;
        Ok(View::new(self.held.clone(), view, stream))
    }

    /// The context of a step, recorded as sent: its bytes, and facts about them.
    #[pyo3(signature = (**given))]
    fn serve<'py>(
        &self,
        py: Python<'py>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyAny>)> {
        let given = arguments(given)?;
        let (body, facts) = self.ask(py, |session| sessions::served(session, &given))?;
        Ok((PyBytes::new(py, &body), read(py, &facts)?))
    }

    /// Begins a session that continues this one.
    #[pyo3(signature = (key, at, title))]
    fn fork(
        &self,
        py: Python<'_>,
        key: Option<String>,
        at: Option<&Bound<'_, PyAny>>,
        title: Option<String>,
    ) -> PyResult<Self> {
        let at = point(at)?;
        let info =
            self.held.run(py, |store| keeping::forked(store, &self.info, at.as_deref(), key, title))?;
        Ok(Self::new(self.held.clone(), info))
    }

    /// Records the memory item of an entry made by `Entry.memory`, at once, in the layer of its lifespan.
    fn remember<'py>(&self, py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyAny>> {
        let item = stores::memory_entry(&entry.entries).or_raise()?;
        let receipt = self.held.run(py, |store| {
            let session = store.session(self.info.clone());
            sessions::remember(store, &session, item)
        })?;
        shown(py, &receipt)
    }

    /// Whether another handle is of the same session of the same open store.
    fn same_as(&self, other: &Self) -> bool {
        self.held.is_same(&other.held)
            && self.info.host == other.info.host
            && self.info.name == other.info.name
    }

    fn __repr__(&self) -> String {
        format!("<acpdb session {} of {}>", self.info.name, self.info.host)
    }
}
