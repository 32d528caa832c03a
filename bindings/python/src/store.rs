//! The store: open, sessions, questions over all of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::command::memory::MemoryCommand;
use acpdb_engine::entry::StreamInfo;
use acpdb_engine::event::Scope;
use acpdb_engine::fold::Policy;
use acpdb_engine::fold::serving::ServeMode;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::store::MergeOptions;
use acpdb_engine::{Durability, Error, MemoryScope, Store as Engine, VerifyOptions, verify_store};
use acpdb_query::export::{ExportError, parcels};
use acpdb_query::simulate::{self, PriceList, Recording, Setup};
use acpdb_query::when;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::asks;
use crate::entry::Entry;
use crate::fault::{Fault as _, invalid};
use crate::feed::{Subscription, event_row};
use crate::held::Held;
use crate::session::{Session, memory_command, memory_entry};
use crate::value::{dumped, point, shown};
use crate::view::{Looked, filter};

/// Policies that are compared if none is named.
const POLICIES: [&str; 4] = ["acp", "balanced", "careful", "economy"];

/// An open store.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct Store {
    held: Held,
}

impl Store {
    /// Whose memory is meant: the project that is named, else the only one there is.
    fn scope(&self, py: Python<'_>, project: Option<String>) -> PyResult<MemoryScope> {
        if let Some(project) = project {
            return Ok(MemoryScope::project(project));
        }
        let projects = self.held.run(py, |store| {
            let names = store.stream_names()?.into_iter();
            Ok(names.filter(|name| name.scope == Scope::Project).map(|name| name.name).collect::<Vec<_>>())
        })?;
        match projects.as_slice() {
            [only] => Ok(MemoryScope::project(only)),
            many => Err(invalid(format!(
                "there are {} projects in this store; say whose memory is meant with project=..",
                many.len()
            ))),
        }
    }
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
    ) -> PyResult<Self> {
        let durability = match durability {
            "sync" => Durability::Sync,
            "os" => Durability::Os,
            other => return Err(invalid(format!("durability is 'sync' or 'os', not {other:?}"))),
        };
        let lock_wait = Duration::try_from_secs_f64(lock_wait)
            .map_err(|_| invalid(format!("lock_wait is 0 seconds or more, not {lock_wait}")))?;
        let mut builder = Engine::builder(path)
            .registry(acpdb_hosts::registry())
            .create(create)
            .durability(durability)
            .lock_wait(lock_wait)
            .index(index);
        if read_only {
            builder = builder.read_only();
        }
        if any_file_system {
            builder = builder.any_file_system();
        }
        if redact {
            let rules = acpdb_hosts::redact::Rules::usual().map_err(|error| invalid(error.to_string()))?;
            builder = builder.redactor(Arc::new(rules));
        }
        Ok(Self { held: Held::new(py.detach(|| builder.open()).or_raise()?) })
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
        parent: Option<&str>,
        parent_call: Option<String>,
    ) -> PyResult<Session> {
        self.held.store()?;
        if key.is_empty() {
            return Err(invalid("a session's key is empty; give the id that your host has for it"));
        }
        let parent = parent.map(|parent| {
            let id: StreamId = acpdb_engine::event::stream_id(Scope::Session, &host, parent);
            (id, parent_call)
        });
        let info = StreamInfo { project, cwd, title, parent, ..StreamInfo::session(host, key) };
        Ok(Session::new(self.held.clone(), info))
    }

    /// Rows of sessions, in order of first events.
    fn sessions<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        let filter = filter(&self.held.store()?, text)?;
        let rows = self.held.run(py, |store| {
            let filter = acpdb_query::settled(store, filter)?;
            acpdb_query::sessions(store, store.head()?, &filter)?.collect::<Result<Vec<_>, Error>>()
        })?;
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
        let store = self.held.store()?;
        let head = self.held.run(py, Engine::head)?;
        let question = looked.question(&store, head)?;
        let found = self.held.run(py, |store| asks::hits(store, None, &question, looked.limit))?;
        shown(py, &found)
    }

    fn memory<'py>(
        &self,
        py: Python<'py>,
        project: Option<String>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let scope = self.scope(py, project)?;
        let at = point(at)?;
        let rows = self.held.ask(py, |store| {
            let seq = match &at {
                Some(text) => when::resolve(store, text, store.now())?.seq,
                None => Seq::MAX,
            };
            Ok::<_, when::WhenError>(asks::memory(store, &scope, seq, store.now())?)
        })?;
        shown(py, &rows)
    }

    fn remember<'py>(
        &self,
        py: Python<'py>,
        project: Option<String>,
        entry: &Entry,
    ) -> PyResult<Bound<'py, PyAny>> {
        let scope = self.scope(py, project)?;
        let mut item = memory_entry(entry)?;
        // Without a session there is none that could end.
        item.lifespan = item.lifespan.or(Some(acpdb_engine::event::Lifespan::Project));
        let receipt = self.held.run(py, |store| store.remember(&scope, &MemoryCommand::Add(item)))?;
        shown(py, &receipt)
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
        let scope = self.scope(py, project)?;
        let command = memory_command(act, item, other, reason)?;
        let receipt = self.held.run(py, |store| store.remember(&scope, &command))?;
        shown(py, &receipt)
    }

    fn subscribe(&self, after: u64) -> PyResult<Subscription> {
        let store = self.held.store()?;
        Ok(Subscription::new(self.held.clone(), store.subscribe(Seq(after).next())))
    }

    /// An event in a line; `None` if there is none.
    fn event<'py>(&self, py: Python<'py>, seq: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row =
            self.held.run(py, |store| Ok(store.event(Seq(seq))?.map(|event| event_row(store, &event))))?;
        row.map(|row| shown(py, &row)).transpose()
    }

    /// What policies and modes would have cost, of one session or of all.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        session: Option<&str>,
        policies: Vec<String>,
        modes: Vec<String>,
        price: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let list = PriceList::built_in(price).map_err(|error| invalid(error.to_string()))?;
        let prices = list.prices().map_err(|error| invalid(error.to_string()))?;
        let modes: Vec<ServeMode> = if modes.is_empty() {
            ServeMode::ALL.to_vec()
        } else {
            modes.iter().map(|mode| crate::value::word("mode", mode)).collect::<PyResult<_>>()?
        };
        let named = if policies.is_empty() { POLICIES.map(str::to_owned).to_vec() } else { policies };
        let mut setups = Vec::new();
        for name in named {
            let policy = match name.as_str() {
                "recorded" => None,
                text => Some(Arc::new(preset(text)?)),
            };
            setups.extend(modes.iter().map(|mode| Setup {
                name: name.clone(),
                policy: policy.clone(),
                mode: Some(*mode),
                prices: Some(prices),
            }));
        }
        let rows = self.held.run(py, |store| {
            let streams: Vec<StreamId> = if let Some(name) = session {
                vec![store.find_stream(name)?.id]
            } else {
                let names = store.stream_names()?.into_iter();
                names.filter(|name| name.scope == Scope::Session).map(|name| name.id).collect()
            };
            let mut outcomes = Vec::new();
            for stream in streams {
                let recording = Recording::read(store, stream)?;
                let nothing = simulate::run(&recording, &Setup::nothing(Some(prices)));
                let each: Vec<_> = setups.iter().map(|setup| simulate::run(&recording, setup)).collect();
                outcomes.push((nothing, each));
            }
            let rows = setups.iter().enumerate().map(|(place, setup)| {
                let of_setup =
                    outcomes.iter().filter_map(|(nothing, each)| Some((each.get(place)?, nothing)));
                simulate::row(&setup.name, setup.mode.unwrap_or_default(), of_setup)
            });
            Ok(rows.collect::<Vec<_>>())
        })?;
        shown(py, &rows)
    }

    /// The policy in force, as JSON.
    fn policy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let policy = self.held.run(py, |store| store.policy(None, Seq::MAX))?;
        let value: serde_json::Value = serde_json::from_str(&policy.to_json()).unwrap_or_default();
        crate::value::from_json(py, &value)
    }

    fn set_policy(&self, py: Python<'_>, policy: &Bound<'_, PyAny>, reason: Option<&str>) -> PyResult<u64> {
        let policy = if let Ok(name) = policy.extract::<String>() {
            preset(&name)?
        } else {
            let json = dumped("policy", policy)?;
            Policy::from_json(&String::from_utf8_lossy(&json)).map_err(|error| invalid(error.to_string()))?
        };
        Ok(self.held.run(py, |store| store.set_policy(None, &policy, reason))?.get())
    }

    /// Every digest and link, checked.
    fn verify<'py>(&self, py: Python<'py>, deep: bool) -> PyResult<Bound<'py, PyAny>> {
        let report = self.held.run(py, |store| {
            store.sync()?;
            verify_store(store.root(), &VerifyOptions { deep, expected: Vec::new() })
        })?;
        shown(py, &report)
    }

    fn merge<'py>(&self, py: Python<'py>, path: PathBuf, erase: bool) -> PyResult<Bound<'py, PyAny>> {
        let report = self.held.run(py, |store| {
            let mut other = Engine::builder(path).registry(acpdb_hosts::registry()).read_only().open()?;
            store.merge(&mut other, MergeOptions { erase })
        })?;
        shown(py, &report)
    }

    /// All events as JSON lines, with all bytes: what `merge` and `acpdb import` read again.
    fn export<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.held.ask(py, |store| {
            let mut out = Vec::new();
            store.sync()?;
            parcels::parcels(store, None, &mut out, |_| Ok(()))?;
            Ok::<_, ExportError>(out)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// A policy by its preset's name.
fn preset(name: &str) -> PyResult<Policy> {
    Policy::preset(name).map_or_else(
        || {
            let presets = acpdb_engine::fold::policy::PRESETS.join(", ");
            Policy::from_json(name)
                .map_err(|_| invalid(format!("there is no policy {name:?}; there are {presets}")))
        },
        Ok,
    )
}
