//! The store: open, sessions, questions over all of them.

use std::path::PathBuf;

use acpdb_bindings::{Fault, Opening, door, keeping, opened_beyond, stores};
use acpdb_engine::ids::Seq;
use acpdb_engine::store::Stores as Several;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::entry::Entry;
use crate::fault::OrRaise as _;
use crate::feed::Subscription;
use crate::held::{Held, Owned};
use crate::session::Session;
use crate::value::{arguments, named, shown};

/// An open store.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct Store {
    held: Held,
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (path, **given))]
    fn new(py: Python<'_>, path: PathBuf, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let opening = Opening::of(path, &arguments(given)?).or_raise()?;
        Ok(Self { held: Held::new(py.detach(|| opening.open()).or_raise()?) })
    }

    /// The store of a name at a URL, which is written below a folder.
    #[staticmethod]
    #[pyo3(signature = (folder, **given))]
    fn beyond(py: Python<'_>, folder: PathBuf, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = arguments(given)?;
        Ok(Self { held: Held::new(py.detach(|| opened_beyond(folder, &given)).or_raise()?) })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.held.close(py)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.held.is_closed()
    }

    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        Ok(self.held.store()?.root().to_owned())
    }

    #[getter]
    fn id(&self) -> PyResult<String> {
        Ok(self.held.store()?.id().to_string())
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
        shown(py, &*self.held.run(py, |store| door::of_store(store, operation, &given))?)
    }

    #[pyo3(signature = (**given))]
    fn session(&self, given: Option<&Bound<'_, PyDict>>) -> PyResult<Session> {
        self.held.store()?;
        let info = stores::session(&arguments(given)?).or_raise()?;
        Ok(Session::new(self.held.clone(), info))
    }

    fn remember<'py>(
        &self,
        py: Python<'py>,
        project: Option<String>,
        entry: &Entry,
    ) -> PyResult<Bound<'py, PyAny>> {
        let item = stores::memory_entry(&entry.entries).or_raise()?;
        shown(py, &self.held.run(py, |store| stores::remember(store, project, item))?)
    }

    fn subscribe(&self, after: u64) -> PyResult<Subscription> {
        let store = self.held.store()?;
        Ok(Subscription::new(self.held.clone(), store.subscribe(Seq(after).next())))
    }

    /// The items of all sessions as JSON lines, with their texts and states.
    fn export<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.held.run(py, stores::exported)?))
    }
}

/// Several stores that are read as one.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct Stores {
    stores: Owned<Several<Fault>>,
}

#[pymethods]
impl Stores {
    #[new]
    #[pyo3(signature = (folders, **given))]
    fn new(py: Python<'_>, folders: Vec<PathBuf>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let opening = Opening::reading(PathBuf::new(), &arguments(given)?).or_raise()?;
        let stores = py.detach(|| keeping::several(folders, opening)).or_raise()?;
        Ok(Self { stores: Owned::new(stores) })
    }

    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &keeping::members(self.stores.get()?))
    }

    fn get(&self, py: Python<'_>, label: &str) -> PyResult<Store> {
        let stores = self.stores.get()?;
        let found = py.detach(|| keeping::member(stores, label)).or_raise()?;
        Ok(Store { held: Held::new(found) })
    }

    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let stores = self.stores.get()?;
        py.detach(|| stores.release());
        Ok(())
    }
}
