//! Waiting until a commit is durable: one syncs, for all processes and threads that wait.
//!
//! ```text
//! wake count -> epoch -> durable? acknowledge : my turn? sync, publish, end the turn, wake all : wait for a wake
//!      ^                                                                                             |
//!      +---------------------------------------------------------------------------------------------+
//! ```
//!
//! Nothing is lost between looking and waiting: the count is read before anything else, and it rises after every turn, so a
//! wait that began too late ends at once. Written over a small trait, so that a model checker can run the same code with
//! threads and a disk of its own.

/// Syncs of one's own after which what is written must be durable, or the page does not say what it should.
const SYNC_COUNT_MAX: usize = 4;

/// What all who wait for the log to become durable share.
pub(crate) trait Shore {
    /// The turn to sync; whoever drops it wakes all.
    type Turn;

    /// Rises whenever somebody's turn has ended.
    fn wake_count(&self) -> u32;
    /// Rises when a sync has failed.
    fn epoch(&self) -> u32;
    /// Everything before this is durable.
    fn durable(&self) -> u64;
    /// Everything before this is written.
    fn written(&self) -> u64;
    /// How many are written and wait, and how many did when the last sync ended, those included that it covered.
    fn waiting(&self) -> (u64, u64);
    /// The turn, if nobody has it; `alone`: no other process is asked, for want of others who wait or of an answer. Within a
    /// process it is always one at a time: of two syncs at once through one file, only one is told that writing failed.
    fn try_turn(&self, alone: bool) -> Option<Self::Turn>;
    /// Syncs all that is written, and says so. `false`: it failed, and that was said; or one had failed since `epoch`. Then
    /// a sync through the same file would cover nothing of what was lost, and would not fail: its error was told already.
    fn sync(&self, epoch: u32) -> bool;
    /// Ends a turn and wakes all who wait.
    fn end_turn(&self, turn: Self::Turn);
    /// Waits for a wake after the count was `seen`, or a little while. `false`: it has been far too long already.
    fn wait(&self, seen: u32) -> bool;
    /// Waits until all are here who are expected, not for long.
    fn gather(&self, all_here: impl FnMut() -> bool);
}

/// A stretch of the log that one write put there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The epoch when it was written.
    pub(crate) epoch: u32,
}

/// Waits until `stretch` is durable. `false`: a sync failed since it was written, so nobody can know.
pub(crate) fn settle(shore: &impl Shore, stretch: Stretch) -> bool {
    let mut sync_count = 0;
    while sync_count < SYNC_COUNT_MAX {
        let seen = shore.wake_count();
        if shore.epoch() != stretch.epoch {
            return false;
        }
        let durable = shore.durable();
        if durable >= stretch.end {
            return true;
        }
        let alone = durable == stretch.start && shore.written() == stretch.end;
        let turn = shore.try_turn(alone).or_else(|| {
            // Whoever has the turn may be a process that was stopped. Going before it costs a sync and nothing else.
            if shore.wait(seen) { None } else { shore.try_turn(true) }
        });
        let Some(turn) = turn else { continue };
        // The one before may have covered this one.
        let done = shore.durable() >= stretch.end || {
            // Without this those whom the last sync woke and the others settle into two waves of half the size.
            if !alone {
                shore.gather(|| {
                    let (waiting, expected) = shore.waiting();
                    waiting >= expected
                });
            }
            sync_count += 1;
            shore.sync(stretch.epoch)
        };
        shore.end_turn(turn);
        if !done {
            return false;
        }
    }
    false
}
