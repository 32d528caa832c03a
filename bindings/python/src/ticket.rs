//! Receipts, and submitted commits.
//!
//! ```text
//! Ticket.wait   takes part in the sync, without the interpreter's lock
//! Ticket.poll   leaves a `Bell` behind: the engine's thread rings it (one byte into a socket) when the commit is durable
//! ```
//!
//! So no thread of the engine ever waits for the interpreter, even while the interpreter ends.

use std::future::Future as _;
use std::io::Write as _;
use std::os::fd::IntoRawFd as _;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use acpdb_engine::store as engine;
use pyo3::prelude::*;

use crate::fault::{OrRaise as _, raise};
use crate::held::Owned;

/// The receipt of a commit. The commit is durable and atomic once the receipt exists.
#[pyclass(frozen, module = "acpdb")]
pub(crate) struct Receipt {
    receipt: engine::Receipt,
}

impl From<engine::Receipt> for Receipt {
    fn from(receipt: engine::Receipt) -> Self {
        Self { receipt }
    }
}

#[pymethods]
impl Receipt {
    /// First seq of the commit; 0 if everything was known already.
    #[getter]
    fn first_seq(&self) -> u64 {
        self.receipt.first_seq.get()
    }

    /// Last seq of the commit.
    #[getter]
    fn last_seq(&self) -> u64 {
        self.receipt.last_seq.get()
    }

    /// Events recorded.
    #[getter]
    fn event_count(&self) -> u64 {
        self.receipt.event_count
    }

    /// Entries that were known already and were skipped.
    #[getter]
    fn known_count(&self) -> u64 {
        self.receipt.known_count
    }

    /// The time at which the commit was recorded: microseconds since 1970.
    #[getter]
    fn recorded_at(&self) -> i64 {
        self.receipt.recorded_at.0
    }

    /// First item of each entry, in order; `None` for entries that were known.
    #[getter]
    fn items(&self) -> Vec<Option<String>> {
        self.receipt.items.iter().map(|item| item.map(|item| item.to_string())).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "<acpdb.Receipt #{}..#{}, {} events>",
            self.receipt.first_seq.get(),
            self.receipt.last_seq.get(),
            self.receipt.event_count
        )
    }
}

/// A bell that the engine rings when a commit is durable. Made for an event loop, which reads the other end.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct Bell {
    ringer: Arc<Ringer>,
    /// The other end, until it is taken.
    reader: Mutex<Option<UnixStream>>,
}

struct Ringer {
    stream: UnixStream,
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A full socket has unread bytes, so that the reader wakes up anyway.
        let _ = (&self.stream).write(&[1]);
    }
}

#[pymethods]
impl Bell {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, stream) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { ringer: Arc::new(Ringer { stream }), reader: Mutex::new(Some(reader)) })
    }

    /// The file descriptor of the other end, for the caller to keep and to close. Works once.
    fn take_reader(&self) -> PyResult<i32> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = reader.ok_or_else(|| raise("Error", "the bell's other end was taken".to_owned()))?;
        Ok(reader.into_raw_fd())
    }
}

/// A commit that was submitted.
#[pyclass(frozen, module = "acpdb._acpdb")]
pub(crate) struct Ticket {
    ticket: Mutex<Option<Owned<engine::Ticket>>>,
    last_seq: u64,
}

impl Ticket {
    pub(crate) fn new(ticket: engine::Ticket) -> Self {
        let last_seq = ticket.receipt().last_seq.get();
        Self { ticket: Mutex::new(Some(Owned::new(ticket))), last_seq }
    }

    fn used() -> PyErr {
        raise("ClosedError", "this ticket was waited for already; keep the receipt that it gave".to_owned())
    }
}

#[pymethods]
impl Ticket {
    /// The seq of the commit's last event.
    #[getter]
    fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Waits until the commit is durable.
    fn wait(&self, py: Python<'_>) -> PyResult<Receipt> {
        let owned = self.ticket.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ticket = owned.ok_or_else(Self::used)?.take()?.ok_or_else(Self::used)?;
        Ok(py.detach(move || ticket.wait()).or_raise()?.into())
    }

    /// The receipt, if the commit is durable; else `bell` rings once it is.
    fn poll(&self, bell: &Bell) -> PyResult<Option<Receipt>> {
        let mut slot = self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        let waker = Waker::from(Arc::clone(&bell.ringer));
        let mut context = Context::from_waker(&waker);
        let ticket = slot.as_mut().ok_or_else(Self::used)?.get_mut()?;
        let polled = Pin::new(ticket).poll(&mut context);
        match polled {
            Poll::Pending => Ok(None),
            Poll::Ready(done) => {
                let owned = slot.take();
                drop(slot);
                drop(owned);
                Ok(Some(done.or_raise()?.into()))
            }
        }
    }
}
