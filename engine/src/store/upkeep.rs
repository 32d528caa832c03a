//! Sealing in the background: what a handle that writes much does for the store when it has nothing else to do.
//!
//! A thread is started when this handle's commits complete a segment, and ends when there is nothing left to seal. It makes the
//! maps that readers without an index need, then seals one segment at a time, in seconds without commits or when many wait. It never
//! holds up an append: a complete segment belongs to the sealer alone, and dropping the handle stops it where it is.
//!
//! A process that lives shortly never gets that far. When many segments wait, it seals one as it goes, within a time budget.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::ids::Seq;
use crate::locks::steady;
use crate::log::{Log, SealOutcome};

/// How often the thread looks; a store without commits for that long is idle.
const TICK: Duration = Duration::from_secs(1);
/// Complete segments from which on one is sealed beside appends.
const BACKLOG_BUSY: usize = 16;
/// Complete segments from which on a process seals one when it goes.
const BACKLOG_LEAVING: usize = 8;
/// How long that may take.
const LEAVING_BUDGET: Duration = Duration::from_secs(2);

/// The background work of a handle.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    enabled: bool,
    /// The segment that this handle last appended to.
    segment: AtomicU32,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Upkeep {
    pub(super) fn new(enabled: bool) -> Self {
        Self { enabled, ..Self::default() }
    }

    /// Called after each commit: starts the thread when a segment was completed. Cost: two loads.
    pub(super) fn note(&self, log: &Arc<Log>) {
        let segment = log.head().position.segment();
        let before = self.segment.swap(segment, Ordering::Relaxed);
        if !self.enabled || before == segment || before == 0 {
            return;
        }
        let mut thread = steady(&self.thread);
        if thread.as_ref().is_some_and(|thread| !thread.is_finished())
            || self.shared.stopped.load(Ordering::Relaxed)
        {
            return;
        }
        let (log, shared) = (Arc::clone(log), Arc::clone(&self.shared));
        // Without a thread the segments wait for another process.
        *thread =
            std::thread::Builder::new().name("acpdb-seal".to_owned()).spawn(move || work(&log, &shared)).ok();
    }

    /// Ends the thread; a process that leaves many segments behind seals one.
    pub(super) fn finish(&self, log: &Log) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        {
            let _held = steady(&self.shared.lock);
            self.shared.changed.notify_all();
        }
        let thread = steady(&self.thread).take();
        if let Some(thread) = thread {
            // It stops between two bodies; if it panicked it left the old file in place.
            let _ = thread.join();
            return;
        }
        let segment = self.segment.load(Ordering::Relaxed) as usize;
        if !self.enabled || segment <= BACKLOG_LEAVING {
            return;
        }
        let Ok(waiting) = log.unsealed() else { return };
        if let Some(first) = waiting.first().filter(|_| waiting.len() > BACKLOG_LEAVING) {
            let began = Instant::now();
            // A segment that is not sealed now is sealed later.
            let _ = log.seal(*first, &|| began.elapsed() > LEAVING_BUDGET);
        }
    }
}

fn work(log: &Log, shared: &Shared) {
    let stopped = || shared.stopped.load(Ordering::Relaxed);
    let mut refused: BTreeSet<u32> = BTreeSet::new();
    let mut seen = Seq::ZERO;
    // Maps are made again when they are asked for.
    let _ = log.write_maps(BACKLOG_BUSY);
    loop {
        {
            let held = steady(&shared.lock);
            if stopped() {
                return;
            }
            // Whether time passed or it was woken, it looks again.
            let _ = shared.changed.wait_timeout(held, TICK);
        }
        if stopped() {
            return;
        }
        let Ok(mut waiting) = log.unsealed() else { return };
        waiting.retain(|number| !refused.contains(number));
        let Some(number) = waiting.first().copied() else { return };
        let head = log.head().seq;
        let idle = std::mem::replace(&mut seen, head) == head;
        if !idle && waiting.len() < BACKLOG_BUSY {
            continue;
        }
        match log.seal(number, &stopped) {
            Ok(SealOutcome::Sealed(_) | SealOutcome::Busy) => {}
            Ok(SealOutcome::Stopped) => return,
            // Damaged, or no room: `acpdb seal` says what is wrong.
            Ok(SealOutcome::NotNeeded) | Err(_) => {
                refused.insert(number);
            }
        }
    }
}
