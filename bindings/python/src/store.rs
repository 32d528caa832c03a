//! The store: open, sessions, questions over all of them.

use std::path::PathBuf;

use acpdb_bindings::stores::Naming;
use acpdb_bindings::{Fault, Opening, Reading, keeping, stores};
use acpdb_engine::ids::Seq;
use acpdb_engine::{Error, Store as Engine, store::Stores as Several};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::entry::Entry;
use crate::fault::OrRaise as _;
use crate::feed::Subscription;
use crate::held::{Held, Owned};
use crate::session::Session;
use crate::value::{dumped, point, shown};
use crate::view::Looked;

/// An open store.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct Store {
    held: Held,
}

#[pymethods]
impl Store {
    #[new]
    #[expect(clippy::fn_params_excessive_bools, reason = "called by the wrapper alone")]
    #[expect(clippy::too_many_arguments, reason = "called by the wrapper alone")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        create: bool,
        durability: &str,
        lock_wait: f64,
        index: bool,
        redact: bool,
        any_file_system: bool,
        key_file: Option<PathBuf>,
        passphrase: Option<String>,
    ) -> PyResult<Self> {
        let durability = durability.to_owned();
        let opening = Opening {
            path,
            read_only,
            create,
            durability,
            lock_wait,
            index,
            redact,
            any_file_system,
            key_file,
            passphrase,
        };
        Ok(Self { held: Held::new(py.detach(|| opening.open()).or_raise()?) })
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

    fn head(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.held.run(py, Engine::head)?.get())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.held.run(py, Engine::sync)
    }

    #[pyo3(signature = (key, host, project, cwd, title, parent, parent_call))]
    #[expect(clippy::too_many_arguments, reason = "called by the wrapper alone")]
    fn session(
        &self,
        key: String,
        host: String,
        project: Option<String>,
        cwd: Option<String>,
        title: Option<String>,
        parent: Option<String>,
        parent_call: Option<String>,
    ) -> PyResult<Session> {
        self.held.store()?;
        let naming = Naming { key, host, project, cwd, title, parent, parent_call };
        let info = stores::session(naming).or_raise()?;
        Ok(Session::new(self.held.clone(), info))
    }

    /// Rows of sessions, in order of first events.
    fn sessions<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.held.run(py, |store| stores::sessions(store, text))?;
        shown(py, &rows)
    }

    /// Names of all streams.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let names = self.held.run(py, Engine::stream_names)?;
        shown(py, &names)
    }

    /// Key and host of the session that a text names.
    fn find_session(&self, py: Python<'_>, name: &str) -> PyResult<(String, String)> {
        let found = self.held.run(py, |store| store.find_stream(name))?;
        Ok((found.name, found.host))
    }

    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let info = self.held.run(py, Engine::info)?;
        shown(py, &info)
    }

    fn search<'py>(&self, py: Python<'py>, looked: Looked) -> PyResult<Bound<'py, PyAny>> {
        let looked = looked.into();
        shown(py, &self.held.run(py, |store| stores::found(store, &looked))?)
    }

    fn memory<'py>(
        &self,
        py: Python<'py>,
        project: Option<String>,
        at: Option<&Bound<'_, PyAny>>,
        all: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let at = point(at)?;
        shown(py, &self.held.run(py, |store| stores::memory(store, project, at.as_deref(), all))?)
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

    /// The newest event that a project's memory may rest on.
    fn memory_head(&self, py: Python<'_>, project: Option<String>) -> PyResult<u64> {
        self.held.run(py, |store| stores::memory_head(store, project)).map(Seq::get)
    }

    fn memory_act<'py>(
        &self,
        py: Python<'py>,
        project: Option<String>,
        act: &str,
        item: &str,
        other: Option<&str>,
        reason: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let command = stores::memory_command(act, item, other, reason).or_raise()?;
        let receipt = self.held.run(py, |store| stores::remembered_by(store, project, &command))?;
        shown(py, &receipt)
    }

    fn subscribe(&self, after: u64) -> PyResult<Subscription> {
        let store = self.held.store()?;
        Ok(Subscription::new(self.held.clone(), store.subscribe(Seq(after).next())))
    }

    /// An event in a line; `None` if there is none.
    fn event<'py>(&self, py: Python<'py>, seq: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row = self.held.run(py, |store| {
            Ok::<_, Error>(store.event(Seq(seq))?.map(|event| stores::event_row(store, &event)))
        })?;
        row.map(|row| shown(py, &row)).transpose()
    }

    /// The cost of one session or all under policies and modes.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        session: Option<&str>,
        policies: Vec<String>,
        modes: Vec<String>,
        price: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.held.run(py, |store| stores::simulated(store, session, policies, &modes, price))?;
        shown(py, &rows)
    }

    /// The policy in force, as JSON.
    fn policy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.held.run(py, stores::policy)?)
    }

    fn set_policy(&self, py: Python<'_>, policy: &Bound<'_, PyAny>, reason: Option<&str>) -> PyResult<u64> {
        let policy = if let Ok(name) = policy.extract::<String>() {
            stores::preset(&name).or_raise()?
        } else {
            stores::policy_of(&dumped("policy", policy)?).or_raise()?
        };
        self.held.run(py, |store| stores::set_policy(store, &policy, reason))
    }

    /// Checks every digest and link.
    fn verify<'py>(&self, py: Python<'py>, deep: bool) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.held.run(py, |store| stores::verified(store, deep))?)
    }

    /// Erases what an item holds, with all equal content.
    fn erase<'py>(
        &self,
        py: Python<'py>,
        item: &str,
        by: &str,
        reason: &str,
        dry_run: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.held.run(py, |store| keeping::erased(store, item, by, reason, dry_run))?)
    }

    /// Erases host's records by the seqs of their events.
    fn erase_records<'py>(
        &self,
        py: Python<'py>,
        seqs: Vec<u64>,
        by: &str,
        reason: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.held.run(py, |store| keeping::records_erased(store, &seqs, by, reason))?)
    }

    /// Packs complete segments; with `active` all.
    fn seal<'py>(&self, py: Python<'py>, active: bool) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.held.run(py, |store| keeping::sealed(store, active))?)
    }

    /// Copies the store to a folder, verified.
    fn backup<'py>(&self, py: Python<'py>, folder: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        shown(py, &self.held.run(py, |store| keeping::backup(store, &folder))?)
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
    fn new(
        py: Python<'_>,
        folders: Vec<PathBuf>,
        any_file_system: bool,
        key_file: Option<PathBuf>,
        passphrase: Option<String>,
    ) -> PyResult<Self> {
        let opening =
            Opening::reading(Reading { path: PathBuf::new(), any_file_system, key_file, passphrase });
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
