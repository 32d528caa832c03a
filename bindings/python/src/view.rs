//! A frozen view of one session, and what may be asked of it.

use acpdb_engine::event::Face;
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::{Error, MemoryScope, Store, StreamName, View as Engine};
use acpdb_hosts::export::{Format, Options, Selection, Unfinished, export, export_served};
use acpdb_query::export::{ExportError, otlp, page};
use acpdb_query::search::{Patterns, Reading, SearchQuestion};
use acpdb_query::{Filter, FindError, ItemsQuestion, Layer, Which, Window};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::asks;
use crate::fault::{self, invalid, raise};
use crate::held::{Held, Owned};
use crate::value::shown;

/// One session as of one seq. Later appends do not show through it.
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
    fn ask<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store, &Engine, &StreamName) -> Result<T, E> + Send,
    ) -> PyResult<T>
    where
        Result<T, E>: fault::Fault<T>,
    {
        let view = self.frozen.get()?;
        self.held.ask(py, |store| work(store, view, &self.stream))
    }
}

/// The format of this name.
pub(crate) fn format(name: &str) -> PyResult<Format> {
    Format::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        invalid(format!("there is no format {name:?}; there are {}", known.join(", ")))
    })
}

/// The filter of this text.
pub(crate) fn filter(store: &Store, text: &str) -> PyResult<Filter> {
    Filter::parse(text, store.now()).map_err(|error| {
        let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        invalid(format!("{error}{hint}"))
    })
}

/// What is looked for.
#[derive(Clone, FromPyObject)]
pub(crate) struct Looked {
    pub(crate) patterns: Vec<String>,
    pub(crate) filter: String,
    pub(crate) regex: bool,
    pub(crate) word: bool,
    pub(crate) case: bool,
    pub(crate) lines: usize,
    pub(crate) limit: usize,
}

impl Looked {
    pub(crate) fn question(&self, store: &Store, at: Seq) -> PyResult<SearchQuestion> {
        if self.patterns.iter().all(String::is_empty) {
            return Err(invalid("there is nothing to look for: give a text"));
        }
        let reading = Reading { regex: self.regex, word: self.word, case: self.case };
        let patterns = Patterns::new(&self.patterns, reading).map_err(|error| invalid(error.to_string()))?;
        let filter = fault::Fault::or_raise(acpdb_query::settled(store, filter(store, &self.filter)?))?;
        Ok(SearchQuestion { patterns, filter, at, context: self.lines, places: 3 })
    }
}

#[pymethods]
impl View {
    /// The seq it is as of.
    #[getter]
    fn seq(&self) -> PyResult<u64> {
        Ok(self.frozen.get()?.at().get())
    }

    fn context<'py>(&self, py: Python<'py>, layer: &str, last: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        let layer = match layer {
            "current" => Layer::Current,
            "recorded" => Layer::Recorded,
            other => return Err(invalid(format!("layer is 'current' or 'recorded', not {other:?}"))),
        };
        let context = self.ask(py, |store, view, _| {
            acpdb_query::context(store, view, Window { last, layer }, store.now())
        })?;
        shown(py, &context)
    }

    fn history<'py>(
        &self,
        py: Python<'py>,
        file: Option<&str>,
        tool: Option<&str>,
        text: &str,
        limit: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let store = self.held.store()?;
        let filter = filter(&store, text)?;
        let which = match (file, tool) {
            (Some(path), None) => Which::File(path),
            (None, Some(tool)) => Which::Tool(tool),
            (None, None) => Which::All,
            (Some(_), Some(_)) => return Err(invalid("give file or tool, or put both into filter")),
        };
        let rows = self.ask(py, |store, view, stream| {
            let filter = acpdb_query::settled(store, filter)?;
            let chosen: Option<std::collections::BTreeSet<String>> = match which {
                Which::All => None,
                _ => Some(
                    acpdb_query::items(view, &stream.name, which).into_iter().map(|row| row.item).collect(),
                ),
            };
            let question = ItemsQuestion { filter, ..ItemsQuestion::default() };
            let rows = acpdb_query::item_rows(store, view, stream, question)?;
            let is_chosen = |row: &Result<acpdb_query::ItemRow, Error>| {
                row.as_ref()
                    .map_or(true, |row| chosen.as_ref().is_none_or(|chosen| chosen.contains(&row.item)))
            };
            rows.filter(is_chosen).take(limit.unwrap_or(usize::MAX)).collect::<Result<Vec<_>, Error>>()
        })?;
        shown(py, &rows)
    }

    fn chain<'py>(&self, py: Python<'py>, item: &str) -> PyResult<Bound<'py, PyAny>> {
        let chain = self.ask(py, |store, view, stream| {
            let ix = asks::item(store, view, stream, item)?;
            Ok::<_, FindError>(acpdb_query::chain(view, &stream.name, ix))
        })?;
        shown(py, &chain.ok_or_else(|| self.miss(item))?)
    }

    fn explain<'py>(&self, py: Python<'py>, item: &str) -> PyResult<Bound<'py, PyAny>> {
        let explained = self.ask(py, |store, view, stream| {
            let ix = asks::item(store, view, stream, item)?;
            Ok::<_, FindError>(acpdb_query::explain(view, &stream.name, ix))
        })?;
        shown(py, &explained.ok_or_else(|| self.miss(item))?)
    }

    /// The recorded bytes of an item: `input` of a call, else its content or output.
    fn body<'py>(&self, py: Python<'py>, item: &str, face: &str) -> PyResult<Bound<'py, PyBytes>> {
        let face = match face {
            "input" => Face::Input,
            "output" => Face::Output,
            other => return Err(invalid(format!("face is 'input' or 'output', not {other:?}"))),
        };
        let bytes = self.ask(py, |store, view, stream| {
            let ix = asks::item(store, view, stream, item)?;
            let found = view.read().state().item(ix, view.at());
            let bodies = found.map(|item| match face {
                Face::Input => item.params.into_iter().collect(),
                Face::Output => item.content.iter().map(|part| part.body).collect::<Vec<_>>(),
            });
            let mut all = Vec::new();
            for body in view.bodies(&bodies.unwrap_or_default()) {
                all.extend(body?);
            }
            Ok::<_, FindError>(all)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn todos<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let todos = self.ask(py, |_, view, stream| asks::todos(view, &stream.name))?;
        shown(py, &todos)
    }

    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.ask(py, |store, view, stream| {
            asks::memory(store, &MemoryScope::session(stream.id), view.at(), store.now())
        })?;
        shown(py, &rows)
    }

    fn search<'py>(&self, py: Python<'py>, looked: Looked) -> PyResult<Bound<'py, PyAny>> {
        let store = self.held.store()?;
        let question = looked.question(&store, self.frozen.get()?.at())?;
        let found = self
            .ask(py, |store, _, stream| asks::hits(store, Some(stream.clone()), &question, looked.limit))?;
        shown(py, &found)
    }

    fn records<'py>(&self, py: Python<'py>, after: u64) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
        let all = self.ask(py, |store, view, _| asks::records(store, view, Seq(after)))?;
        Ok(all.into_iter().map(|(seq, bytes)| (seq, PyBytes::new(py, &bytes))).collect())
    }

    /// The body of a request, or a transcript.
    fn export<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        selection: &str,
        model: Option<String>,
        synthetic_results: bool,
        server_side: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if name == "html" || name == "otlp" {
            let bytes = self.ask(py, |store, view, _| {
                let mut out = Vec::new();
                if name == "html" {
                    page::page(store, view, store.now(), &mut out)?;
                } else {
                    let options = otlp::SpanOptions::default();
                    otlp::spans(store, view, options, &mut out, &mut otlp::SpansReport::default())?;
                }
                Ok::<_, ExportError>(out)
            })?;
            return Ok(PyBytes::new(py, &bytes));
        }
        let format = format(name)?;
        let mut is_served = false;
        let selection = match selection {
            "current" => Selection::Current,
            "whole" => Selection::Whole,
            "recorded" => Selection::Recorded,
            "history" => Selection::History,
            "served" => {
                is_served = true;
                Selection::Current
            }
            other => {
                return Err(invalid(format!(
                    "selection is current, served, whole, recorded or history, not {other:?}"
                )));
            }
        };
        let unfinished = if synthetic_results { Unfinished::Synthetic } else { Unfinished::LeaveOut };
        let options = Options { selection, unfinished, model, server_side, ..Options::default() };
        let export = self.ask(py, |_, view, _| {
            if is_served {
                export_served(&view.to_send()?, format, &options)
            } else {
                export(view, format, &options)
            }
        })?;
        Ok(PyBytes::new(py, &export.bytes))
    }

    fn tokens(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let stats = self.ask(py, |_, view, _| {
            let tokens = view.read().state().tokens(view.at());
            Ok::<_, Error>((tokens.shown, tokens.whole))
        })?;
        Ok(stats)
    }

    /// Whether an item can be read in the current context.
    fn is_visible(&self, py: Python<'_>, item: &str) -> PyResult<bool> {
        self.ask(py, |store, view, stream| {
            let ix = asks::item(store, view, stream, item)?;
            let id: Option<ItemId> = view.read().state().item_id(ix);
            Ok::<_, FindError>(id.and_then(|id| view.visible(id)).is_some_and(|seen| seen.visible))
        })
    }
}

impl View {
    fn miss(&self, item: &str) -> PyErr {
        raise("NotFoundError", format!("{item} was not recorded yet in session {}", self.stream.name))
    }
}
