//! One session: append, serve, act.

use acpdb_engine::command::memory::MemoryCommand;
use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry as EngineEntry, Fact, MemoryEntry, StreamInfo};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::store::{self as engine, ServeOptions};
use acpdb_engine::{Error, MemoryScope, Store};
use acpdb_hosts::export::Exporter;
use acpdb_query::when;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use crate::asks;
use crate::entry::{Entry, entries};
use crate::fault::invalid;
use crate::held::Held;
use crate::lines;
use crate::ticket::{Receipt, Ticket};
use crate::value::{dumped, point, shown, word};
use crate::view::{View, format};

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

    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&engine::Session) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.held.run(py, |store| work(&store.session(self.info.clone())))
    }
}

/// Targets by what an agent would call them; `#seq` is an item, the exact id of a call that call.
fn targets(session: &engine::Session, given: &[String]) -> Result<Vec<Target>, Error> {
    let view = session.view()?;
    let is_call = |text: &str| !view.read().state().calls_by_host_id(text, Seq::MAX).is_empty();
    let target = |text: &String| {
        let item = text.strip_prefix('#').and_then(|_| text.parse::<ItemId>().ok());
        match item {
            Some(item) => Target::Item(item),
            None if is_call(text) => Target::Call(text.clone()),
            None => Target::Auto(text.clone()),
        }
    };
    Ok(given.iter().map(target).collect())
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

    /// Id of its stream, in hex.
    #[getter]
    fn stream(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |session| Ok(session.id().to_string()))
    }

    fn append(&self, py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Receipt> {
        let entries = entries(given)?;
        Ok(self.ask(py, |session| session.append(entries))?.into())
    }

    fn submit(&self, py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Ticket> {
        let entries = entries(given)?;
        Ok(Ticket::new(self.ask(py, |session| session.submit(entries))?))
    }

    /// Appends lines of a host's own recording; how many events were new.
    fn append_lines(
        &self,
        py: Python<'_>,
        format: &str,
        lines: &Bound<'_, PyBytes>,
        prefix: &str,
        salt: &str,
    ) -> PyResult<u64> {
        let format = acpdb_hosts::import::Format::from_name(format)
            .ok_or_else(|| invalid(format!("there is no recording of kind {format:?}")))?;
        let bytes = lines.as_bytes();
        let read = py.detach(|| lines::read(format, bytes, &self.info, prefix, salt)).map_err(invalid)?;
        self.held.run(py, |store| lines::record(store, &read))
    }

    /// Begins the session, or says what its last host left open.
    fn resume<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let resumed = self.ask(py, engine::Session::open_or_resume)?;
        let calls: Vec<_> = resumed
            .calls
            .iter()
            .map(|call| json!({"seq": call.seq, "call": call.call, "tool": call.tool}))
            .collect();
        shown(py, &json!({"is_new": resumed.is_new, "calls": calls, "messages": resumed.messages}))
    }

    /// Ends what was left open, for this reason.
    fn give_up(&self, py: Python<'_>, why: &str) -> PyResult<Receipt> {
        let receipt = self.ask(py, |session| {
            let resumed = session.open_or_resume()?;
            session.give_up(&resumed, why)
        })?;
        Ok(receipt.into())
    }

    /// A frozen view.
    #[pyo3(signature = (at=None))]
    fn view(&self, py: Python<'_>, at: Option<&Bound<'_, PyAny>>) -> PyResult<View> {
        let at = point(at)?;
        let (view, stream) = self.held.ask(py, |store| {
            let session = store.session(self.info.clone());
            // What was acknowledged before its sync is seen, too.
            store.sync()?;
            let stream = store.stream_name(session.id())?;
            let Some(stream) = stream else {
                let (name, nearest) = (session.info().name.clone(), None);
                return Err(Error::NotFound { what: "session", name, nearest }.into());
            };
            let (view, _) = when::view(store, &stream, at.as_deref(), store.now())?;
            Ok::<_, when::WhenError>((view, stream))
        })?;
        Ok(View::new(self.held.clone(), view, stream))
    }

    fn begin_step(&self, py: Python<'_>, key: &str) -> PyResult<()> {
        self.ask(py, |session| session.step(key).map(drop))
    }

    /// The context of a step, recorded as sent.
    #[expect(clippy::too_many_arguments, reason = "called by the wrapper alone")]
    fn serve<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        name: &str,
        model: Option<String>,
        mode: Option<&str>,
        tokens_max: Option<u64>,
        cold: bool,
        prefix_tokens: u64,
        inject: bool,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyAny>)> {
        let mut exporter = Exporter::new(format(name)?);
        exporter.options.model = model;
        let mode = mode.map(|mode| word("mode", mode)).transpose()?;
        let options = ServeOptions { mode, tokens_max, cold, prefix_tokens, inject, price: None };
        let context = self.ask(py, |session| session.step(key)?.context(&exporter, &options))?;
        let facts = json!({
            "seq": context.seq,
            "tokens": context.tokens,
            "first_changed": context.first_changed,
            "rebased": context.rebased,
            "notes": context.notes,
            "over_budget": context.over_budget,
        });
        Ok((PyBytes::new(py, &context.bytes), shown(py, &facts)?))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.ask(py, engine::Session::flush)?.map(Seq::get))
    }

    /// Hides, hides behind a summary, or shows again.
    fn context_act<'py>(
        &self,
        py: Python<'py>,
        action: &str,
        given: Vec<(String, Option<String>)>,
        pin: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let action: ContextAction = word("action", action)?;
        let reply = self.held.run(py, |store| {
            let session = store.session(self.info.clone());
            let (names, summaries): (Vec<String>, Vec<Option<String>>) = given.into_iter().unzip();
            let targets = targets(&session, &names)?;
            if pin {
                return store.restore_pinned(session.id(), targets);
            }
            store.context(session.id(), action, targets.into_iter().zip(summaries).collect())
        })?;
        shown(py, &reply)
    }

    /// A call of the context tool, as a model makes it.
    fn context_tool<'py>(&self, py: Python<'py>, call: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let json = dumped("call", call)?;
        let json = String::from_utf8_lossy(&json).into_owned();
        let reply =
            self.held.run(py, |store| store.context_tool(store.session(self.info.clone()).id(), &json))?;
        shown(py, &reply)
    }

    fn pin<'py>(&self, py: Python<'py>, given: Vec<String>, pinned: bool) -> PyResult<Bound<'py, PyAny>> {
        let reply = self.held.run(py, |store| {
            let session = store.session(self.info.clone());
            let targets = targets(&session, &given)?;
            if pinned { store.pin(session.id(), targets) } else { store.unpin(session.id(), targets) }
        })?;
        shown(py, &reply)
    }

    /// Goes back to a seq: what came after leaves the context and stays in the log.
    fn rewind<'py>(&self, py: Python<'py>, to: u64) -> PyResult<Bound<'py, PyAny>> {
        let reply =
            self.held.run(py, |store| store.rewind(store.session(self.info.clone()).id(), Seq(to)))?;
        shown(py, &reply)
    }

    fn update_tasks<'py>(&self, py: Python<'py>, tasks: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let json = dumped("tasks", tasks)?;
        let reply =
            self.held.run(py, |store| store.update_tasks(store.session(self.info.clone()).id(), &json))?;
        shown(py, &reply)
    }

    /// Remembers what an entry made by `Entry.memory` says, at once, in the layer of its lifespan.
    fn remember<'py>(&self, py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyAny>> {
        let scope = |store: &Store| {
            let session = store.session(self.info.clone());
            // The session has to be there, for its project to be known.
            let _ = session.append([])?;
            Ok::<_, Error>(MemoryScope::session(session.id()))
        };
        let item = memory_entry(entry)?;
        let receipt = self.held.run(py, |store| store.remember(&scope(store)?, &MemoryCommand::Add(item)))?;
        shown(py, &receipt)
    }

    /// A command on one memory item: `retract`, `reinforce`, `restore`; or `supersede` by another.
    fn memory_act<'py>(
        &self,
        py: Python<'py>,
        act: &str,
        item: &str,
        other: Option<&str>,
        reason: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let command = memory_command(act, item, other, reason)?;
        let receipt = self.held.run(py, |store| {
            let scope = MemoryScope::session(store.session(self.info.clone()).id());
            store.remember(&scope, &command)
        })?;
        shown(py, &receipt)
    }

    fn __repr__(&self) -> String {
        format!("<acpdb session {} of {}>", self.info.name, self.info.host)
    }
}

/// What an entry made by `Entry.memory` remembers.
pub(crate) fn memory_entry(entry: &Entry) -> PyResult<MemoryEntry> {
    match entry.entries.as_slice() {
        [EngineEntry { fact: Fact::Memory(item), .. }] => Ok(item.clone()),
        _ => Err(invalid("what is remembered is made by Entry.memory")),
    }
}

/// The command of this name.
pub(crate) fn memory_command(
    act: &str,
    item: &str,
    other: Option<&str>,
    reason: Option<String>,
) -> PyResult<MemoryCommand> {
    let item = asks::memory_ref(item);
    Ok(match (act, other) {
        ("retract", None) => MemoryCommand::Retract { item, reason },
        ("reinforce", None) => MemoryCommand::Reinforce { item },
        ("restore", None) => MemoryCommand::Restore { item },
        ("supersede", Some(new)) => {
            MemoryCommand::Supersede { old: item, new: asks::memory_ref(new), reason }
        }
        _ => return Err(invalid(format!("there is no act {act:?} on memory"))),
    })
}
