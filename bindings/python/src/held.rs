//! A store that is shared by handles, may be closed, and belongs to one process.
//!
//! - Every use first checks that the handle is not closed, and that this process opened it.
//! - Dropping a value may close files and join threads, so it happens without the interpreter's lock.
//! - A child after a fork drops nothing: a thread that the child does not have may hold a lock.

use std::sync::{Arc, PoisonError, RwLock};

use acpdb_bindings::{Fault, stores};
use acpdb_engine::{Error, Store};
use pyo3::prelude::*;

use crate::fault::{self, OrRaise as _, raise};

/// A value of the engine that is dropped without the interpreter's lock, and not at all in a child process.
pub(crate) struct Owned<T: Send> {
    value: Option<T>,
    process: u32,
}

impl<T: Send> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    /// The value. Fails in another process than the one that made it.
    pub(crate) fn get(&self) -> PyResult<&T> {
        self.check()?;
        self.value.as_ref().ok_or_else(closed)
    }

    /// As [`Owned::get`], for changes.
    pub(crate) fn get_mut(&mut self) -> PyResult<&mut T> {
        self.check()?;
        self.value.as_mut().ok_or_else(closed)
    }

    /// The value, moved out.
    pub(crate) fn take(mut self) -> PyResult<Option<T>> {
        self.check()?;
        Ok(self.value.take())
    }

    fn check(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(fault::of(&Error::Forked { owner: self.process }.into()))
    }
}

impl<T: Send> Drop for Owned<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        if self.process != std::process::id() {
            std::mem::forget(value);
            return;
        }
        let mut value = Some(value);
        // While the interpreter ends there is no lock to release; no thread of the engine ever takes it.
        let _ = Python::try_attach(|py| {
            let value = value.take();
            py.detach(move || drop(value));
        });
    }
}

pub(crate) fn closed() -> PyErr {
    raise("ClosedError", "the store was closed; open it again with acpdb.open".to_owned())
}

/// The store behind all handles that came from one `open`.
#[derive(Clone)]
pub(crate) struct Held(Arc<Shared>);

struct Shared {
    store: RwLock<Option<Owned<Store>>>,
    process: u32,
}

impl Held {
    pub(crate) fn new(store: Store) -> Self {
        Self(Arc::new(Shared { store: RwLock::new(Some(Owned::new(store))), process: std::process::id() }))
    }

    /// The store.
    pub(crate) fn store(&self) -> PyResult<Store> {
        if self.0.process != std::process::id() {
            return Err(fault::of(&Error::Forked { owner: self.0.process }.into()));
        }
        let store = self.0.store.read().unwrap_or_else(PoisonError::into_inner);
        Ok(store.as_ref().ok_or_else(closed)?.get()?.clone())
    }

    /// Runs `work` on the store without the interpreter's lock.
    pub(crate) fn run<T: Send, E: Send + Into<Fault>>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store) -> Result<T, E> + Send,
    ) -> PyResult<T> {
        let store = self.store()?;
        let done = py.detach(move || {
            let done = work(&store);
            drop(store);
            done
        });
        done.or_raise()
    }

    /// Closes the store for all handles. A second call does nothing.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.0.process != std::process::id() {
            return Ok(());
        }
        let store = self.0.store.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(owned) = store else { return Ok(()) };
        let store = owned.get()?.clone();
        let done = py.detach(move || {
            let done = stores::close(store.clone());
            drop(store);
            done
        });
        drop(owned);
        done.or_raise()
    }

    /// Whether both are of one `open`.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the store was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.process == std::process::id()
            && self.0.store.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}
