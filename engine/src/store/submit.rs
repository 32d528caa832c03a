//! Commits that nobody has to stand and wait for.
//!
//! ```text
//! submit -> queue of its stream -> a worker commits it -> Ticket: wait, or await, or drop
//!                                    workers of other streams share its sync
//! ```
//!
//! What is submitted to one stream is committed in that order, each submission whole or not at all. Streams do not wait
//! for each other; their commits go to the log together. A worker is a thread that begins when there is something to
//! commit and ends when there is nothing: a store at rest has none. A worker keeps the store open, so dropping a ticket,
//! or the store, loses nothing; only a process that ends does.
//!
//! A ticket is a plain [`Future`]: it needs no runtime, and any will do.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rustc_hash::FxHashMap;

use crate::entry::{Entry, StreamInfo};
use crate::error::Error;
use crate::ids::StreamId;

use super::{Atomicity, Batch, Inner, Receipt, Session, Store};

/// Threads that commit for one handle at a time; further streams wait for their turn.
const WORKER_COUNT_MAX: usize = 16;

/// A commit under way. Wait for it, await it, or drop it: the commit goes on.
///
/// As a future it yields its receipt once; polled again after that, it stays pending.
#[derive(Debug)]
#[must_use = "a ticket that is dropped says nothing about whether its commit was refused"]
pub struct Ticket {
    promise: Arc<Promise>,
}

impl Ticket {
    /// Waits until the commit is durable, or was refused.
    ///
    /// # Errors
    /// As [`Store::append`]; nothing was recorded then.
    pub fn wait(self) -> Result<Receipt, Error> {
        let mut state = locked(&self.promise.state);
        loop {
            if let Some(outcome) = state.outcome.take() {
                return outcome;
            }
            state = self.promise.kept.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether waiting would return at once.
    pub fn is_done(&self) -> bool {
        locked(&self.promise.state).outcome.is_some()
    }
}

impl Future for Ticket {
    type Output = Result<Receipt, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = locked(&self.promise.state);
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// What a worker tells a ticket.
#[derive(Debug, Default)]
struct Promise {
    state: Mutex<Kept>,
    kept: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    outcome: Option<Result<Receipt, Error>>,
    waker: Option<Waker>,
}

impl Promise {
    fn keep(&self, outcome: Result<Receipt, Error>) {
        let waker = {
            let mut state = locked(&self.state);
            state.outcome = Some(outcome);
            state.waker.take()
        };
        self.kept.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What was submitted and is not committed.
struct Submission {
    batch: Batch,
    promise: Arc<Promise>,
}

/// The queues of a handle.
#[derive(Default)]
pub(super) struct Submissions(Mutex<Queues>);

#[derive(Default)]
struct Queues {
    /// Of each stream that has something to commit, or is being committed to.
    streams: FxHashMap<StreamId, VecDeque<Submission>>,
    /// Streams that no worker is at, first come first served.
    ready: VecDeque<StreamId>,
    worker_count: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Records facts of one stream as one commit, without waiting for it: as [`Store::append`], whose outcome the ticket
    /// brings. Commits of one stream keep the order in which they were submitted; an [`append`](Store::append) meanwhile
    /// waits for none of them.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # use acpdb_engine::{Store, entry::{Entry, StreamInfo}, event::Role};
    /// let store = Store::builder(folder.path().join("store")).open()?;
    /// let session = store.session(StreamInfo::session("my-agent", "run-1"));
    /// let ticket = session.submit([Entry::message("msg-1", Role::User, "hello")]);
    /// // .. something else meanwhile ..
    /// assert_eq!(ticket.wait()?.items.len(), 1); // or `ticket.await?`
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(&self, stream: &StreamInfo, entries: Vec<Entry>) -> Ticket {
        let promise = Arc::new(Promise::default());
        let submission =
            Submission { batch: Batch { stream: stream.clone(), entries }, promise: Arc::clone(&promise) };
        let id = stream.id();
        let is_worker_wanted = {
            let mut queues = locked(&self.inner.submissions.0);
            let is_idle = !queues.streams.contains_key(&id);
            queues.streams.entry(id).or_default().push_back(submission);
            if is_idle {
                queues.ready.push_back(id);
            }
            let is_wanted = is_idle && queues.worker_count < WORKER_COUNT_MAX;
            queues.worker_count += usize::from(is_wanted);
            is_wanted
        };
        if is_worker_wanted {
            let inner = Arc::clone(&self.inner);
            let work = move || work(&inner);
            if std::thread::Builder::new().name("acpdb commit".to_owned()).spawn(work).is_err() {
                // No thread to be had: the caller does it.
                self::work(&self.inner);
            }
        }
        Ticket { promise }
    }
}

impl Session {
    /// As [`Store::submit`], to this session.
    pub fn submit(&self, entries: impl IntoIterator<Item = Entry>) -> Ticket {
        self.store().submit(self.info(), entries.into_iter().collect())
    }
}

/// Commits until nothing is left to commit.
fn work(inner: &Inner) {
    let mut done: Option<StreamId> = None;
    loop {
        let next = {
            let mut queues = locked(&inner.submissions.0);
            if let Some(id) = done.take() {
                queues.leave(id);
            }
            queues.next()
        };
        let Some((id, Submission { batch, promise })) = next else { return };
        promise.keep(inner.commit(&[batch], Atomicity::One));
        done = Some(id);
    }
}

impl Queues {
    /// What is to be committed next; if nothing is, one worker less.
    fn next(&mut self) -> Option<(StreamId, Submission)> {
        while let Some(id) = self.ready.pop_front() {
            if let Some(submission) = self.streams.get_mut(&id).and_then(VecDeque::pop_front) {
                return Some((id, submission));
            }
            self.streams.remove(&id);
        }
        self.worker_count = self.worker_count.saturating_sub(1);
        None
    }

    /// A worker is done with a submission to this stream.
    fn leave(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(|queue| !queue.is_empty()) {
            self.ready.push_back(id);
        } else {
            self.streams.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests;
