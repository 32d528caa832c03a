//! Following a store: every commit from a seq on, in order, each once, as it becomes durable.
//!
//! ```text
//! Subscription { next seq, where to read on } -- next_within --> log.frames -> Commit
//!                                   ^---- wait_for_commit ----'
//! ```
//!
//! A subscription pulls: it holds a place in the log, not a queue. A slow reader slows no writer and costs no memory, and
//! a reader that stops just drops it. It sees commits of every process, and only durable ones.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::codec::Frame;
use crate::error::Error;
use crate::event::Recorded;
use crate::ids::{Micros, Position, Seq};
use crate::log::LogError;

use super::{Store, StoreInner};

/// Most bytes of spines that are read ahead.
const READ_BYTES_MAX: usize = 256 << 10;

/// One commit, whole: events that became durable together.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use std::time::Duration;
///
/// use acpdb_engine::Seq;
///
/// let mut subscription = store.subscribe(Seq::ZERO);
/// let first = subscription.next_within(Duration::ZERO)?.ok_or("the store's own")?;
/// let second = subscription.next_within(Duration::ZERO)?.ok_or("one is there")?;
/// assert_eq!(second.last_seq(), store.head()?);
/// assert_eq!(second.events.len(), 4); // the session, the step, the call and its end: they became durable together
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// When it was recorded.
    pub recorded_at: Micros,
    /// Its events in order; of the first commit of a subscription those from its seq on. Never empty.
    pub events: Vec<Recorded>,
}

impl Commit {
    /// The seq of its last event.
    pub fn last_seq(&self) -> Seq {
        self.events.last().map_or(Seq::ZERO, |event| event.seq)
    }
}

/// Follows a store; made by [`Store::subscribe`]. Keeps the store open.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use std::time::Duration;
///
/// let mut subscription = store.subscribe(store.head()?);
/// while let Some(commit) = subscription.next_within(Duration::ZERO)? {
///     println!("{} events", commit.events.len()); // of this process and of others, each commit once, in order
/// }
/// let next = subscription.next_seq(); // where another subscription goes on
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Subscription {
    inner: Arc<StoreInner>,
    /// The first seq that was not handed out.
    next: Seq,
    /// Where to read on; `None`: to be looked for.
    place: Option<Position>,
    ready: VecDeque<Result<Frame, Error>>,
}

impl Store {
    /// Follows the store from `from` on: first the commits that are there, then the later ones. [`Seq::ZERO`] means from
    /// the beginning; a seq that is not there yet is waited for.
    pub fn subscribe(&self, from: Seq) -> Subscription {
        let inner = Arc::clone(&self.inner);
        Subscription { inner, next: from.max(Seq(1)), place: None, ready: VecDeque::new() }
    }
}

impl Subscription {
    /// The first seq that was not handed out: where another subscription would go on.
    pub const fn next_seq(&self) -> Seq {
        self.next
    }

    /// The next commit; `None` if none came within `limit`. A limit of zero only looks.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for damage, once for each place: the next call goes on behind it. [`Error::Io`] if the log or a key
    /// cannot be read now, [`Error::Locked`] if the key ring does not open a key: the next call tries the same commit again.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<Commit>, Error> {
        if self.ready.is_empty() {
            self.read_on()?;
        }
        if self.ready.is_empty() && !limit.is_zero() {
            self.inner.log.wait_for_commit(self.next.before(), limit)?;
            self.read_on()?;
        }
        while let Some(frame) = self.ready.pop_front() {
            let frame = frame?;
            let handed = self.decoded(&frame);
            if matches!(&handed, Err(error) if !matches!(error, Error::Corrupt { .. })) {
                // A frame keeps what its keys were when it was read, so it is read again.
                self.ready.clear();
                self.place = None;
                return handed;
            }
            // A damaged commit is not handed out again.
            self.next = self.next.max(frame.last_seq().next());
            if let Some(commit) = handed? {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }

    /// The events of a frame that were not handed out.
    fn decoded(&self, frame: &Frame) -> Result<Option<Commit>, Error> {
        let events = frame
            .events()
            .filter(|event| event.seq >= self.next)
            .map(|event| self.inner.decode(frame, &event));
        let events: Vec<Recorded> = events.collect::<Result<_, _>>()?;
        Ok((!events.is_empty()).then_some(Commit { recorded_at: frame.header().time, events }))
    }

    /// Reads frames that are durable and were not read, a bounded number of bytes.
    fn read_on(&mut self) -> Result<(), Error> {
        let until = self.inner.log.refresh()?;
        if until.seq < self.next {
            return Ok(());
        }
        let log = &self.inner.log;
        let frames = match self.place {
            Some(place) => log.frames(place, until),
            None => log.frames_from(self.next, until)?,
        };
        let mut bytes = 0_usize;
        for frame in frames.skip_before(self.next) {
            match frame {
                Ok(frame) => {
                    bytes = bytes.saturating_add(frame.content_bytes());
                    self.place = Some(frame.header().end());
                    self.ready.push_back(Ok(frame));
                }
                Err(error @ LogError::Corrupt(_)) => self.ready.push_back(Err(error.into())),
                // Frames that were read are handed out first.
                Err(_) if !self.ready.is_empty() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if bytes >= READ_BYTES_MAX {
                return Ok(());
            }
        }
        // All of it was read: damage at its end is not told of again.
        self.place = Some(until.position);
        if self.ready.iter().all(Result::is_err) {
            self.next = self.next.max(until.seq.next());
        }
        Ok(())
    }
}
