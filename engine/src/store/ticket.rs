//! Commits that are on their way: written, in their place, and not durable yet.
//!
//! ```text
//! append   place -> settle in the caller's thread -> receipt
//! submit   place -> Ticket --wait---> settle in the caller's thread -> receipt
//!             |        '----await--> woken by the thread behind
//!             '-> thread behind: settles all that were handed to it with one sync (also those without a waiting thread)
//! Os       place -> receipt; the thread behind settles soon, all of a few milliseconds together
//! ```
//!
//! The settler starts with the first ticket or the first append under `Durability::Os`; a caller of `append` alone never has
//! one. Its queue is bounded: if the queue is full, the submitting thread waits for the sync itself. The settler never writes
//! to the log, it only makes placed commits durable, and everything before them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::ids::{Seq, StreamId};
use crate::log::PlacedCommit;

use super::behind::{CommitProgress, SettleJob};
use super::{Receipt, Store};

/// A commit that was submitted: it has its place in the log, and becomes durable whether a thread waits for it or not.
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
    /// `None`: nothing was to be recorded, or the commit is durable.
    placed: Option<PlacedCommit>,
    progress: Arc<CommitProgress>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("last_seq", &self.receipt.last_seq).finish_non_exhaustive()
    }
}

impl Ticket {
    /// The receipt; certain only once the ticket was waited for.
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
            let Some(outcome) = known.outcome.clone() else {
                known.waker = Some(context.waker().clone());
                return Poll::Pending;
            };
            outcome?;
        }
        Poll::Ready(Ok(std::mem::take(&mut self.receipt)))
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
        self.submit_if(super::Batch { stream: stream.clone(), entries }, None)
    }

    /// As [`Store::submit`], if the stream of a condition has no event behind its head.
    pub(super) fn submit_if(
        &self,
        batch: super::Batch,
        condition: Option<(StreamId, Seq)>,
    ) -> Result<Ticket, Error> {
        let (receipt, placed) =
            self.inner.commit(&self.routed(&[batch])?, super::Atomicity::One, condition)?;
        self.ticket(receipt, placed)
    }

    fn ticket(&self, receipt: Receipt, placed: Option<PlacedCommit>) -> Result<Ticket, Error> {
        let progress = Arc::<CommitProgress>::default();
        let mut ticket = Ticket { store: self.clone(), receipt, placed, progress };
        if ticket.placed.is_none() {
            self.inner.acknowledge_known()?;
        }
        if let Some(placed) = &ticket.placed {
            let job = SettleJob { placed: placed.clone(), progress: Some(Arc::clone(&ticket.progress)) };
            if !self.inner.hand_over(job) {
                self.inner.settle(placed)?;
                ticket.placed = None;
            }
        }
        Ok(ticket)
    }

    /// Makes commits that this handle acknowledged under [`Durability::Os`](crate::Durability) durable, and visible. Costs a sync if anything
    /// is not durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if a sync failed.
    #[cfg_attr(
        feature = "tracing",
        tracing::instrument(name = "acpdb.sync", level = "debug", skip_all, err(level = "debug"))
    )]
    pub fn sync(&self) -> Result<(), Error> {
        self.inner.sync()
    }
}
