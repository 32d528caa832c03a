//! acpdb for Python: the engine in the interpreter's process, without a server.
//!
//! ```text
//! acpdb (Python: names, iterators, await, `with`)  ->  acpdb._acpdb (this crate: types across the border)  ->  acpdb-bindings  ->  engine, query, hosts
//! ```
//!
//! - Calls that wait or fold do so without the interpreter's lock. No thread of the engine ever takes that lock.
//! - A handle knows the process that made it, and fails in a child process.
//! - Answers are dicts with the names of the program's JSON. Nothing here decides anything.

mod entry;
mod fault;
mod feed;
mod held;
mod session;
mod store;
mod ticket;
mod value;
mod view;

use std::path::PathBuf;

use acpdb_bindings::{Opening, keeping, stores};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyDict};

use fault::OrRaise as _;

/// Checks every digest and link of the store in a folder, without opening it.
#[pyfunction]
fn verify_store(py: Python<'_>, path: PathBuf, deep: bool) -> PyResult<Bound<'_, PyAny>> {
    let report = py.detach(|| stores::verified_at(&path, deep)).or_raise()?;
    value::shown(py, &report)
}

/// Makes a store in a folder from a backup.
#[pyfunction]
#[pyo3(signature = (backup, folder, **given))]
fn restore_backup<'py>(
    py: Python<'py>,
    backup: PathBuf,
    folder: PathBuf,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let opening = Opening::reading(backup, &value::arguments(given)?).or_raise()?;
    let done = py.detach(|| keeping::restored(opening, &folder)).or_raise()?;
    value::shown(py, &done)
}

/// A point in time as the command line spells it.
#[pyfunction]
fn point(at: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    value::point(at)
}

/// The stores in a folder.
#[pyfunction]
fn stores_in(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
    py.detach(|| keeping::stores_below(&folder)).or_raise()
}

/// The objections of a provider to the body of a request.
#[pyfunction]
fn lint_request<'py>(
    py: Python<'py>,
    body: &Bound<'py, PyAny>,
    format: &str,
    model: Option<&str>,
    previous: Option<&Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyAny>> {
    let body = value::json_bytes("body", body)?;
    let previous = previous.map(|bytes| bytes.as_bytes().to_vec());
    let findings = py.detach(|| stores::linted(&body, format, model, previous.as_deref())).or_raise()?;
    value::shown(py, &findings)
}

/// The engine, for the package `acpdb`.
#[pymodule(gil_used = false)]
mod _acpdb {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::fault::loaded_as(module.name()?.to_str()?);
        Ok(())
    }

    #[pymodule_export]
    use super::entry::{Entry, Part};
    #[pymodule_export]
    use super::feed::Subscription;
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::store::{Store, Stores};
    #[pymodule_export]
    use super::ticket::{Bell, Receipt, Ticket};
    #[pymodule_export]
    use super::view::View;
    #[pymodule_export]
    use super::{lint_request, point, restore_backup, stores_in, verify_store};
}
