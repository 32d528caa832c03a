//! A frozen view of one session, and the questions to it.
//!
//! Even questions without arguments are closures: the bare method has one fixed lifetime, and the caller needs any.

#![allow(clippy::redundant_closure_for_method_calls)]

use acpdb_bindings::views::{Asked, Exporting};
use acpdb_bindings::{Fault, stores};
use acpdb_engine::ids::Seq;
use acpdb_engine::{View as Engine, store::StreamName};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::held::{Held, Owned};
use crate::value::shown;

/// One session as of one seq. The view does not show later appends.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct View {
    held: Held,
    frozen: Owned<Engine>,
    stream: StreamName,
}

impl View {
    pub(crate) fn new(held: Held, view: Engine, stream: StreamName) -> Self {
        Self { held, frozen: Owned::new(view), stream }
    }

    /// Asks without the interpreter's lock.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Asked<'_>) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        let view = self.frozen.get()?;
        self.held.run(py, |store| work(&Asked { store, view, stream: &self.stream }))
    }
}

/// The query of a search.
#[derive(Clone, FromPyObject)]
pub(crate) struct Looked {
    patterns: Vec<String>,
    filter: String,
    regex: bool,
    word: bool,
    case: bool,
    lines: usize,
    limit: usize,
}

impl From<Looked> for stores::Looked {
    fn from(it: Looked) -> Self {
        let Looked { patterns, filter, regex, word, case, lines, limit } = it;
        Self { patterns, filter, regex, word, case, lines, limit }
    }
}

#[pymethods]
impl View {
    /// The view's seq.
    #[getter]
    fn seq(&self) -> PyResult<u64> {
        Ok(self.frozen.get()?.at().get())
    }

    fn context<'py>(&self, py: Python<'py>, layer: &str, last: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.ask(py, |asked| asked.context(layer, last))?)
    }

    fn history<'py>(
        &self,
        py: Python<'py>,
        file: Option<&str>,
        tool: Option<&str>,
        text: &str,
        limit: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.ask(py, |asked| asked.history(file, tool, text, limit))?)
    }

    fn chain<'py>(&self, py: Python<'py>, item: &str) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.ask(py, |asked| asked.chain(item))?)
    }

    fn explain<'py>(&self, py: Python<'py>, item: &str) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.ask(py, |asked| asked.explain(item))?)
    }

    /// The recorded bytes of an item: `input` of a call, else its content or output.
    fn body<'py>(&self, py: Python<'py>, item: &str, face: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.ask(py, |asked| asked.body(item, face))?))
    }

    fn todos<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.ask(py, |asked| asked.todos())?)
    }

    fn memory<'py>(&self, py: Python<'py>, all: bool) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.ask(py, |asked| asked.memory(all))?)
    }

    /// The outputs of calls that are not shown whole: the event that ended each call, and the text in the output's place.
    fn replaced(&self, py: Python<'_>) -> PyResult<Vec<(u64, String)>> {
        self.ask(py, |asked| asked.replaced())
    }

    /// How often the session went back to an earlier point.
    fn rewind_count(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |asked| Ok(asked.rewind_count()))
    }

    fn search<'py>(&self, py: Python<'py>, looked: Looked) -> PyResult<Bound<'py, PyAny>> {
        let looked = looked.into();
        shown(py, &self.ask(py, |asked| asked.search(&looked))?)
    }

    fn records<'py>(&self, py: Python<'py>, after: u64) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
        let all = self.ask(py, |asked| asked.records(Seq(after)))?;
        Ok(all.into_iter().map(|(seq, bytes)| (seq, PyBytes::new(py, &bytes))).collect())
    }

    /// The body of a request, or a transcript.
    fn export<'py>(
        &self,
        py: Python<'py>,
        format: String,
        selection: String,
        model: Option<String>,
        synthetic_results: bool,
        server_side: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let exporting = Exporting { format, selection, model, synthetic_results, server_side };
        Ok(PyBytes::new(py, &self.ask(py, |asked| asked.export(exporting))?))
    }

    fn tokens(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.ask(py, |asked| Ok(asked.tokens()))
    }

    /// Whether an item can be read in the current context.
    fn is_visible(&self, py: Python<'_>, item: &str) -> PyResult<bool> {
        self.ask(py, |asked| asked.is_visible(item))
    }
}
