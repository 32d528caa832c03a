//! The places of connections. Where all are taken, the connection that has asked for nothing for the longest time makes room for a new one: a
//! browser opens more than it needs, and a program may open many and say nothing.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;

use acpdb_engine::locks::steady;
use hyper::body::{Body, Bytes, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::body::ResponseBody;

/// Most connections at a time. If all have answers under way, further ones wait.
const CONNECTION_COUNT_MAX: usize = 64;

/// The answers that a connection has under way.
pub(super) struct Doing {
    /// Answers under way.
    count: AtomicUsize,
    /// Since when there are as many.
    since: Mutex<Instant>,
}

impl Doing {
    pub(super) fn nothing() -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), since: Mutex::new(Instant::now()) })
    }

    /// An answer begins; it ends when the result is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> AnswerUnderWay {
        self.count.fetch_add(1, Ordering::SeqCst);
        AnswerUnderWay(Arc::clone(self))
    }

    /// Since when nothing was asked; `None`: an answer is under way.
    fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.count.load(Ordering::SeqCst) == 0;
        is_idle.then(|| *steady(&self.since))
    }
}

/// An answer that is being made or read.
pub(super) struct AnswerUnderWay(Arc<Doing>);

impl Drop for AnswerUnderWay {
    fn drop(&mut self) {
        *steady(&self.0.since) = Instant::now();
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The body of an answer, which is under way until it was read.
pub(super) struct BodyUnderWay {
    body: ResponseBody,
    _until_dropped: AnswerUnderWay,
}

impl BodyUnderWay {
    pub(super) const fn new(body: ResponseBody, under_way: AnswerUnderWay) -> Self {
        Self { body, _until_dropped: under_way }
    }
}

impl Body for BodyUnderWay {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
}

/// The connections that have places.
pub(super) struct ConnectionPlaces {
    room: Arc<Semaphore>,
    taken: Mutex<Vec<(Arc<Doing>, AbortHandle)>>,
}

impl ConnectionPlaces {
    pub(super) fn new() -> Self {
        Self { room: Arc::new(Semaphore::new(CONNECTION_COUNT_MAX)), taken: Mutex::default() }
    }

    /// A place for a new connection: a free one, or that of the one that is ended for it.
    pub(super) async fn place(&self) -> std::io::Result<OwnedSemaphorePermit> {
        if self.room.available_permits() == 0 {
            self.end_the_idlest();
        }
        Arc::clone(&self.room).acquire_owned().await.map_err(std::io::Error::other)
    }

    /// Keeps in mind who has a place.
    pub(super) fn take(&self, doing: Arc<Doing>, connection: AbortHandle) {
        let mut taken = steady(&self.taken);
        taken.retain(|(_, connection)| !connection.is_finished());
        taken.push((doing, connection));
    }

    fn end_the_idlest(&self) {
        let taken = steady(&self.taken);
        let idle = taken.iter().filter(|(_, connection)| !connection.is_finished());
        let idle = idle.filter_map(|(doing, connection)| Some((doing.idle_since()?, connection)));
        if let Some((_, connection)) = idle.min_by_key(|(since, _)| *since) {
            connection.abort();
        }
    }
}
