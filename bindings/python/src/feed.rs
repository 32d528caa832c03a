//! Following a store: commits as they become durable.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use acpdb_bindings::stores;
use acpdb_engine::Subscription as Engine;
use pyo3::prelude::*;

use crate::fault::{OrRaise as _, invalid};
use crate::held::{Held, Owned};
use crate::value::shown;

/// Longest wait in one call. After each, signals are checked.
const SLICE: Duration = Duration::from_millis(100);

/// Follows a store.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct Subscription {
    held: Held,
    feed: Owned<Mutex<Engine>>,
}

impl Subscription {
    pub(crate) fn new(held: Held, feed: Engine) -> Self {
        Self { held, feed: Owned::new(Mutex::new(feed)) }
    }
}

#[pymethods]
impl Subscription {
    /// The seq of the next event to give.
    #[getter]
    fn next_seq(&self, py: Python<'_>) -> PyResult<u64> {
        let feed = self.feed.get()?;
        Ok(py.detach(|| feed.lock().unwrap_or_else(PoisonError::into_inner).next_seq().get()))
    }

    /// The next commit; `None` if none came within `seconds`. Ctrl-C and `close` end the wait.
    fn next_within<'py>(&self, py: Python<'py>, seconds: f64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let limit = Duration::try_from_secs_f64(seconds)
            .map_err(|_| invalid(format!("a wait is 0 seconds or more, not {seconds}")))?;
        let feed = self.feed.get()?;
        let mut left = limit;
        loop {
            // Another thread may have closed the store.
            let store = self.held.store()?;
            let slice = left.min(SLICE);
            let commit = py.detach(|| {
                let commit = feed.lock().unwrap_or_else(PoisonError::into_inner).next_within(slice);
                let told = commit.map(|commit| commit.map(|commit| stores::commit(&store, &commit)));
                drop(store);
                told
            });
            if let Some(commit) = commit.or_raise()? {
                return Ok(Some(shown(py, &commit)?));
            }
            py.check_signals()?;
            left = left.saturating_sub(slice);
            if left.is_zero() {
                return Ok(None);
            }
        }
    }
}
