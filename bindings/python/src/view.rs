//! A frozen view of one session, and the questions to it.

use acpdb_bindings::views::Asked;
use acpdb_bindings::{Fault, door};
use acpdb_engine::ids::Seq;
use acpdb_engine::{View as Engine, store::StreamName};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::held::{Held, Owned};
use crate::value::{arguments, named, shown};

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

#[pymethods]
impl View {
    /// The view's seq.
    #[getter]
    fn seq(&self) -> PyResult<u64> {
        Ok(self.frozen.get()?.at().get())
    }

    /// A question by its name.
    #[pyo3(signature = (operation, /, **given))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        operation: &str,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = named(given)?;
        shown(py, &*self.ask(py, |asked| door::of_view(asked, operation, &given))?)
    }

    /// The recorded bytes of an item: `input` of a call, else its content or output.
    fn body<'py>(&self, py: Python<'py>, item: &str, face: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.ask(py, |asked| asked.body(item, face))?))
    }

    fn records<'py>(&self, py: Python<'py>, after: u64) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
        let all = self.ask(py, |asked| asked.records(Seq(after)))?;
        Ok(all.into_iter().map(|(seq, bytes)| (seq, PyBytes::new(py, &bytes))).collect())
    }

    /// The body of a request, a transcript, a page or spans.
    #[pyo3(signature = (**given))]
    fn export<'py>(
        &self,
        py: Python<'py>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let given = arguments(given)?;
        Ok(PyBytes::new(py, &self.ask(py, |asked| asked.export(&given))?))
    }
}
