//! The thread that feeds the index, after the acknowledgement.
//!
//! ```text
//! commit -> nudge (never waits) -> gather for 50 ms -> frames_after -> rows_of -> apply, not yet on disk
//!                                                                       |
//!                    each 8k events, after 2 s of quiet, on stop:  apply, on disk
//! ```
//!
//! Only frames that the log has made durable are read, so the index never knows more than the log after a power cut.
//! Memory is bounded by one read. No caller waits for this thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::locks::steady;

use super::frames::{FrameSource, SourceFault};
use super::rows::{IndexRows, rows_of};
use super::{Bypassed, Index, IndexDurability};

/// When the thread works. The defaults come from measured runs: small transactions cost 10 to 14 us an event, large ones
/// half; nothing waits for them. After a crash, events since the last durable
/// transaction are indexed again: with one each 8k events, that takes 100 ms at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexerOptions {
    /// A process younger than `settle` leaves the index alone unless so many events are not indexed.
    pub backlog_min: u64,
    /// The age from which a process indexes everything.
    pub settle: Duration,
    /// How long after a commit the thread waits for more.
    pub gather: Duration,
    /// Events per transaction while the store is in use; with so many the thread waits no longer.
    pub commit_event_count: u64,
    /// Events per transaction with at least as many to go.
    pub bulk_event_count: u64,
    /// Events after which a transaction goes to disk.
    pub flush_event_count: u64,
    /// Quiet time after which everything goes to disk.
    pub flush_idle: Duration,
    /// Most bytes of frames that are read at once.
    pub read_bytes_max: usize,
    /// How long the thread leaves alone a log that it could not read.
    pub retry: Duration,
}

impl Default for IndexerOptions {
    fn default() -> Self {
        Self {
            backlog_min: 512,
            settle: Duration::from_secs(1),
            gather: Duration::from_millis(50),
            commit_event_count: 2048,
            bulk_event_count: 4096,
            flush_event_count: 8192,
            flush_idle: Duration::from_secs(2),
            read_bytes_max: 4 << 20,
            retry: Duration::from_secs(5),
        }
    }
}

/// The running thread. Dropping it, or [`Indexer::stop`], puts its work on disk and ends it.
///
/// The source must not own the indexer, or neither is ever dropped.
#[derive(Debug)]
pub struct Indexer {
    calls: Arc<Nudges>,
    thread: Option<JoinHandle<()>>,
    stalled: Arc<Mutex<Option<Bypassed>>>,
}

/// Nudges to the thread: there are new frames, or it is to end.
#[derive(Debug, Default)]
struct Nudges {
    made: Mutex<Nudged>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Nudged {
    is_nudged: bool,
    is_stopped: bool,
}

impl Nudges {
    /// Waits until `is_over`, but for at most `time`.
    fn wait(&self, time: Duration, is_over: impl Fn(&Nudged) -> bool) -> MutexGuard<'_, Nudged> {
        let waited = self.changed.wait_timeout_while(steady(&self.made), time, |made| !is_over(made));
        // A thread that panicked with the lock left a whole value: it is taken again.
        waited.ok().map_or_else(|| steady(&self.made), |(made, _)| made)
    }
}

impl Indexer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system gives no thread; the index then stays as it is.
    pub fn start(
        index: Arc<Index>,
        source: Arc<dyn FrameSource>,
        options: IndexerOptions,
    ) -> std::io::Result<Self> {
        let calls = Arc::<Nudges>::default();
        let stalled = Arc::new(Mutex::new(None));
        let worker = Worker {
            index,
            source,
            options,
            calls: Arc::clone(&calls),
            stalled: Arc::clone(&stalled),
            unflushed_count: 0,
        };
        let thread =
            std::thread::Builder::new().name("acpdb-index".to_owned()).spawn(move || worker.run())?;
        Ok(Self { calls, thread: Some(thread), stalled })
    }

    /// Says that there are new durable frames. Never waits; costs nothing while the thread has not come to the last
    /// nudge yet.
    pub fn nudge(&self) {
        let mut made = steady(&self.calls.made);
        if !made.is_nudged {
            made.is_nudged = true;
            drop(made);
            self.calls.changed.notify_one();
        }
    }

    /// The reason why the index does not go on, if it does not: it was put aside, or the log cannot be read.
    pub fn stalled(&self) -> Option<Bypassed> {
        steady(&self.stalled).clone()
    }

    /// Puts all indexed events on disk and ends the thread. Takes one transaction at most, even if much is left.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        steady(&self.calls.made).is_stopped = true;
        self.calls.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in the source ended the thread early: the index stays where it is.
            let _ = thread.join();
        }
    }
}

struct Worker {
    index: Arc<Index>,
    source: Arc<dyn FrameSource>,
    options: IndexerOptions,
    calls: Arc<Nudges>,
    stalled: Arc<Mutex<Option<Bypassed>>>,
    /// Events applied since the last durable transaction.
    unflushed_count: u64,
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextStep {
    GoOn,
    Stop,
}

impl Worker {
    fn run(mut self) {
        if let Err(bypassed) = self.work() {
            self.stall(Some(bypassed));
        }
    }

    fn stall(&self, reason: Option<Bypassed>) {
        *steady(&self.stalled) = reason;
    }

    /// # Errors
    /// If the index is put aside.
    fn work(&mut self) -> Result<(), Bypassed> {
        if self.settle() == NextStep::GoOn {
            while self.gather() == NextStep::GoOn {
                if self.catch_up()? == NextStep::Stop || self.rest()? == NextStep::Stop {
                    break;
                }
            }
        }
        self.finish()
    }

    /// Events that are durable and not indexed.
    fn backlog(&self) -> u64 {
        self.source.durable_head().0.since(self.index.watermark().seq)
    }

    /// Waits for at most `time`.
    fn pause(&self, time: Duration) -> NextStep {
        if self.calls.wait(time, |made| made.is_stopped).is_stopped { NextStep::Stop } else { NextStep::GoOn }
    }

    /// Waits until the process is worth an index.
    fn settle(&self) -> NextStep {
        let started = Instant::now();
        loop {
            // Past that time none is left.
            let left = self.options.settle.saturating_sub(started.elapsed());
            if left.is_zero() || self.backlog() >= self.options.backlog_min {
                return NextStep::GoOn;
            }
            if self.pause(left.min(Duration::from_millis(50))) == NextStep::Stop {
                return NextStep::Stop;
            }
        }
    }

    /// Waits while events trickle in, until there are enough for a transaction or none come.
    fn gather(&self) -> NextStep {
        let mut seen = self.backlog();
        while seen > 0 && seen < self.options.commit_event_count {
            if self.pause(self.options.gather) == NextStep::Stop {
                return NextStep::Stop;
            }
            let now = self.backlog();
            if now == seen {
                break;
            }
            seen = now;
        }
        NextStep::GoOn
    }

    /// Indexes all there is.
    fn catch_up(&mut self) -> Result<NextStep, Bypassed> {
        while self.backlog() > 0 {
            match self.step(u64::MAX) {
                Ok(0) => break,
                Ok(_) => self.stall(None),
                Err(Stall::Index(bypassed)) => return Err(bypassed),
                Err(Stall::Source(fault)) => {
                    self.stall(Some(fault.into()));
                    return Ok(self.pause(self.options.retry));
                }
            }
            if self.pause(Duration::ZERO) == NextStep::Stop {
                return Ok(NextStep::Stop);
            }
        }
        Ok(NextStep::GoOn)
    }

    /// Reads once and applies up to `event_count_max` events of the frames that were read, or a little more: a frame is not split.
    /// Returns how many.
    fn step(&mut self, event_count_max: u64) -> Result<u64, Stall> {
        let (durable, _) = self.source.durable_head();
        let watermark = self.index.watermark();
        let backlog = durable.since(watermark.seq);
        let frames =
            self.source.frames_after(watermark.end, self.options.read_bytes_max).map_err(Stall::Source)?;
        let bulk = backlog >= self.options.bulk_event_count;
        let full = if bulk { self.options.bulk_event_count } else { self.options.commit_event_count };
        let (mut batch, mut batch_count, mut total) = (Vec::new(), 0, 0);
        for frame in frames.iter().filter(|frame| frame.header().last_seq() <= durable) {
            let rows = rows_of(frame, &self.source.secret());
            batch_count += rows.event_count();
            batch.push(rows);
            if batch_count >= full {
                total += self.apply(&mut batch, &mut batch_count).map_err(Stall::Index)?;
                if total >= event_count_max {
                    return Ok(total);
                }
            }
        }
        if !batch.is_empty() {
            total += self.apply(&mut batch, &mut batch_count).map_err(Stall::Index)?;
        }
        Ok(total)
    }

    fn apply(&mut self, batch: &mut Vec<IndexRows>, batch_count: &mut u64) -> Result<u64, Bypassed> {
        let due = self.unflushed_count.saturating_add(*batch_count) >= self.options.flush_event_count;
        let durability = if due { IndexDurability::Immediate } else { IndexDurability::None };
        self.index.apply(batch, durability)?;
        self.unflushed_count = if due { 0 } else { self.unflushed_count.saturating_add(*batch_count) };
        batch.clear();
        Ok(std::mem::take(batch_count))
    }

    fn flush(&mut self) -> Result<(), Bypassed> {
        if self.unflushed_count > 0 {
            self.index.apply(&[], IndexDurability::Immediate)?;
            self.unflushed_count = 0;
        }
        Ok(())
    }

    /// Waits for a nudge. Puts everything on disk when none comes for a while.
    fn rest(&mut self) -> Result<NextStep, Bypassed> {
        loop {
            let quiet = if self.unflushed_count == 0 { Duration::MAX } else { self.options.flush_idle };
            {
                let mut made = self.calls.wait(quiet, |made| made.is_nudged || made.is_stopped);
                if made.is_stopped {
                    return Ok(NextStep::Stop);
                }
                if std::mem::take(&mut made.is_nudged) {
                    return Ok(NextStep::GoOn);
                }
            }
            self.flush()?;
        }
    }

    /// One more transaction if it is worth it, and everything on disk.
    fn finish(&mut self) -> Result<(), Bypassed> {
        let backlog = self.backlog();
        if backlog >= self.options.backlog_min || (self.unflushed_count > 0 && backlog > 0) {
            match self.step(self.options.bulk_event_count) {
                Ok(_) | Err(Stall::Source(_)) => {}
                Err(Stall::Index(bypassed)) => return Err(bypassed),
            }
        }
        self.flush()
    }
}

/// Why a step ended.
enum Stall {
    Index(Bypassed),
    Source(SourceFault),
}
