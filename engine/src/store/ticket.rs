//! Commits that are on their way: written, in their place, and not durable yet.
//!
//! ```text
//! append   place -> settle in the caller's thread -> receipt
//! submit   place -> Ticket --wait---> settle in the caller's thread -> receipt
//!             |        '----await--> woken by the thread behind
//!             '-> thread behind: settles all that were handed to it with one sync (also what nobody waits for)
//! Os       place -> receipt; the thread behind settles soon, all of a few milliseconds together
//! ```
//!
//! The thread behind starts with the first ticket or the first append under [`Durability::Os`]; whoever only calls `append`
//! never has one. What it is handed is bounded: past that, whoever submits waits for the sync itself. It never writes to
//! the log, it only makes durable what is written, and everything before it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::error::Error;
use crate::log::{Log, LogError, Placed};

use super::{Inner, Receipt, Store};

/// Commits that may wait for the thread behind.
const WAITING_COUNT_MAX: usize = 1024;
/// How long what nobody waits for may wait for more of its kind.
const OS_GATHER: Duration = Duration::from_millis(5);

/// When an append is acknowledged.
///
/// ```
/// use acpdb_engine::{Durability, Entry, Role, Store, StreamInfo};
///
/// # let folder = tempfile::tempdir()?;
/// let store = Store::builder(folder.path().join("store")).durability(Durability::Os).open()?;
/// let session = store.session(StreamInfo::session("my-agent", "run-1"));
/// let _ = session.append([Entry::message("m1", Role::User, "hello")])?; // survives this process
/// store.sync()?; // survives the machine
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Once it is on the disk: what was acknowledged survives a crash of the machine. One flush a commit, shared with all
    /// commits that come at the same time.
    #[default]
    Sync,
    /// Once the operating system has it: what was acknowledged survives the death of the process, and may be lost with
    /// the machine's, from its end, in whole commits. Seen by reads, views and other processes only after the next sync,
    /// which follows within milliseconds, or at once with [`Store::sync`]. Commands (discard, restore, tasks) and contexts that
    /// are served wait for the disk all the same, since they answer from what is durable.
    Os,
}

/// A commit that was submitted: it has its place in the log, and becomes durable whether anyone waits for it or not.
///
/// Wait with [`Ticket::wait`], or `await` it in any runtime. Keeps the store open.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::{Entry, Role};
///
/// let ticket = session.submit([Entry::message("m1", Role::User, "hello")])?; // has its place in the log
/// println!("as {}", ticket.receipt().last_seq);
/// let receipt = ticket.wait()?; // durable; in async code: ticket.await
/// assert_eq!(receipt.event_count, 2);
/// # Ok(())
/// # }
/// ```
#[must_use = "a commit is recorded for good only once its ticket was waited for"]
pub struct Ticket {
    store: Store,
    receipt: Receipt,
    /// `None`: nothing was to be recorded, or it is durable.
    placed: Option<Placed>,
    progress: Arc<Progress>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("last_seq", &self.receipt.last_seq).finish_non_exhaustive()
    }
}

/// What became of a commit, and who wants to know.
#[derive(Default)]
struct Progress(Mutex<Known>);

#[derive(Default)]
struct Known {
    outcome: Option<Result<(), LogError>>,
    waker: Option<Waker>,
}

impl Progress {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, outcome: Result<(), LogError>) {
        let waker = {
            let mut known = self.known();
            known.outcome = Some(outcome);
            known.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The outcome, if there is one.
    fn outcome(&self) -> Option<Result<(), LogError>> {
        self.known().outcome.as_ref().map(again)
    }
}

fn again(outcome: &Result<(), LogError>) -> Result<(), LogError> {
    outcome.as_ref().copied().map_err(LogError::again)
}

impl Ticket {
    /// What was recorded; certain only once the ticket was waited for.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Waits until the commit is durable. Takes part in the sync: no slower than `append`.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if the sync failed: the next open may find the commit whole, or not.
    pub fn wait(mut self) -> Result<Receipt, Error> {
        if let Some(placed) = self.placed.take()
            && self.progress.outcome().is_none_or(|outcome| outcome.is_err())
        {
            self.store.inner.settle(&placed)?;
        }
        Ok(std::mem::take(&mut self.receipt))
    }
}

impl Future for Ticket {
    type Output = Result<Receipt, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.placed.is_some() {
            let mut known = self.progress.known();
            let Some(outcome) = known.outcome.as_ref().map(again) else {
                known.waker = Some(context.waker().clone());
                return Poll::Pending;
            };
            outcome?;
        }
        Poll::Ready(Ok(std::mem::take(&mut self.receipt)))
    }
}

/// What is handed to the thread behind.
struct Job {
    placed: Placed,
    /// Who waits; `None`: nobody, so it may wait for more of its kind.
    progress: Option<Arc<Progress>>,
}

/// The thread behind.
#[derive(Default)]
pub(super) struct Settler(Mutex<Option<(Sender<Job>, JoinHandle<()>)>>);

impl Settler {
    /// Hands over a job; `false`: it cannot be, and the caller has to see to it.
    fn hand_over(&self, store: &Store, job: Job) -> bool {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            let (sender, receiver) = bounded(WAITING_COUNT_MAX);
            let (log, inner) = (Arc::clone(&store.inner.log), Arc::downgrade(&store.inner));
            let thread = std::thread::Builder::new().name("acpdb-settle".to_owned());
            let Ok(thread) = thread.spawn(move || work(&log, &inner, &receiver)) else { return false };
            *running = Some((sender, thread));
        }
        running.as_ref().is_some_and(|(sender, _)| sender.try_send(job).is_ok())
    }

    /// Settles what was handed over, and ends the thread.
    pub(super) fn finish(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sender, thread)) = running {
            drop(sender);
            // A task that it woke may have dropped the last handle there.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn work(log: &Log, inner: &Weak<Inner>, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        let deadline = Instant::now().checked_add(OS_GATHER);
        group.extend(jobs.try_iter().take(WAITING_COUNT_MAX));
        while group.iter().all(|job| job.progress.is_none())
            && let Some(deadline) = deadline
            && let Ok(job) = jobs.recv_deadline(deadline)
        {
            // One that covers the others stands for them.
            group.push(job);
            if group.len() > WAITING_COUNT_MAX {
                break;
            }
        }
        let last = group.iter().map(|job| &job.placed).reduce(|last, next| last.later(next));
        let all = last.map_or(Ok(()), |last| log.settle(last));
        for job in &group {
            if let Some(progress) = &job.progress {
                // A sync that failed says nothing about those that were durable before.
                progress.tell(if all.is_ok() { Ok(()) } else { log.settle(&job.placed) });
            }
        }
        if let Some(inner) = inner.upgrade() {
            inner.after_sync();
        }
    }
}

impl Store {
    /// Records facts as [`Store::append`] does, without waiting for the disk: when it returns, the commit has its seqs and
    /// its place, behind everything submitted before. Wait for the ticket to know that it is durable; drop it, and it
    /// becomes durable all the same.
    ///
    /// For hosts that must not block, and for threads that have more to do: commits that are submitted while a sync runs
    /// share the next one. May wait for another process's write lock, and for the sync when very many are on their way.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// use acpdb_engine::Store;
    /// use acpdb_engine::entry::{Entry, StreamInfo};
    /// use acpdb_engine::event::Role;
    ///
    /// let store = Store::builder(folder.path().join("store")).open()?;
    /// let session = StreamInfo::session("my-agent", "run-1");
    /// let ticket = store.submit(&session, vec![Entry::message("msg-1", Role::User, "what does main do?")])?;
    /// // .. other work, while the disk is written ..
    /// let receipt = ticket.wait()?; // or `ticket.await?`
    /// assert_eq!(receipt.event_count, 2); // the session's opening, and the message
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn submit(
        &self,
        stream: &crate::entry::StreamInfo,
        entries: Vec<crate::entry::Entry>,
    ) -> Result<Ticket, Error> {
        let batch = super::Batch { stream: stream.clone(), entries };
        let (receipt, placed) = self.inner.commit(&self.routed(&[batch])?, super::Atomicity::One)?;
        let progress = Arc::<Progress>::default();
        let mut ticket = Ticket { store: self.clone(), receipt, placed, progress };
        if let Some(placed) = &ticket.placed {
            let job = Job { placed: placed.clone(), progress: Some(Arc::clone(&ticket.progress)) };
            if !self.inner.settler.hand_over(self, job) {
                self.inner.settle(placed)?;
                ticket.placed = None;
            }
        }
        Ok(ticket)
    }

    /// Makes durable, and visible, what this handle was acknowledged under [`Durability::Os`]. Costs a sync if anything is
    /// not durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if a sync failed.
    pub fn sync(&self) -> Result<(), Error> {
        self.inner.sync()
    }

    /// Ends a commit as this handle's durability asks.
    pub(super) fn complete(&self, placed: Option<Placed>) -> Result<(), Error> {
        let Some(placed) = placed else { return Ok(()) };
        match self.inner.durability {
            Durability::Sync => self.inner.settle(&placed),
            Durability::Os => {
                // What another thread was told of meanwhile may lie behind it.
                let mut unsettled = self.inner.unsettled();
                *unsettled = Some(unsettled.as_ref().map_or(&placed, |known| known.later(&placed)).bare());
                drop(unsettled);
                let job = Job { placed: placed.clone(), progress: None };
                if self.inner.settler.hand_over(self, job) { Ok(()) } else { self.inner.settle(&placed) }
            }
        }
    }
}

impl Inner {
    /// Waits until what was placed, and all before it, is durable.
    pub(super) fn settle(&self, placed: &Placed) -> Result<(), Error> {
        self.log.settle(placed)?;
        if let Some(frame) = &placed.frame {
            self.take_own_frame(frame);
        }
        self.after_sync();
        Ok(())
    }

    /// See [`Store::sync`].
    pub(super) fn sync(&self) -> Result<(), Error> {
        let last = self.unsettled().clone();
        last.map_or(Ok(()), |placed| self.settle(&placed))
    }

    /// The last commit that was acknowledged before its sync.
    fn unsettled(&self) -> std::sync::MutexGuard<'_, Option<Placed>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work that may be late, for what has become durable.
    fn after_sync(&self) {
        self.nudge_index();
        self.upkeep.note(&self.log);
    }
}
