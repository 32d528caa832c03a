//! A remote that loses answers, executes late or twice, tears objects and stops its callers, as a seed says.
//!
//! | fault | why it must be survived |
//! |---|---|
//! | no answer, executed or not | a connection breaks after the server was done, or before |
//! | executed later | a request waits in a proxy while its client gave up |
//! | executed twice | a library repeats a request by itself |
//! | torn | servers were seen that keep the first bytes of an object as one |
//! | the caller is stopped | a machine sleeps, or its process is killed |

use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use acpdb_engine::locks::steady;

use crate::memory::MemoryRemote;
use crate::remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped, read_exactly};

/// How often each fault happens, of 1,000 calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimRemoteFaults {
    /// The answer is lost; in half of the cases nothing was executed.
    pub lost: u32,
    /// The answer is lost, and the call is executed later.
    pub late: u32,
    /// The call is executed once more later.
    pub twice: u32,
    /// The answer is lost, and an object with the first bytes is there.
    pub torn: u32,
    /// The caller is stopped for up to 400 steps.
    pub stopped: u32,
    /// The caller is killed: the call ends with [`SimRemote::KILLED`], and was executed or not.
    pub killed: u32,
}

/// A change that may be executed again.
#[derive(Clone)]
enum SimChange {
    Create(String, Vec<u8>),
    Swap(String, Vec<u8>, ObjectTag),
    Put(String, Vec<u8>),
    Delete(String),
}

enum SimAnswer {
    Created(Created),
    Swapped(Swapped),
    Put(ObjectTag),
    Deleted,
}

struct SimState {
    random: u64,
    faults: SimRemoteFaults,
    /// Changes that are executed when as many more calls were made.
    late: Vec<(u32, SimChange)>,
    /// No fault happens any more, and callers do not wait for each other.
    is_settled: bool,
}

/// A simulated remote; clones share its objects.
#[derive(Clone)]
pub struct SimRemote {
    objects: Arc<MemoryRemote>,
    state: Arc<Mutex<SimState>>,
    /// Lets other callers go on.
    pause: Arc<dyn Fn() + Send + Sync>,
}

impl SimRemote {
    /// The text of a killed caller's error.
    pub const KILLED: &'static str = "the caller was killed";

    /// A remote without objects. `pause` is called where other callers may go on.
    pub fn new(seed: u64, faults: SimRemoteFaults, pause: Arc<dyn Fn() + Send + Sync>) -> Self {
        let state = SimState { random: seed, faults, late: Vec::new(), is_settled: false };
        Self { objects: Arc::default(), state: Arc::new(Mutex::new(state)), pause }
    }

    /// The objects, without faults.
    pub fn objects(&self) -> Arc<MemoryRemote> {
        Arc::clone(&self.objects)
    }

    /// Executes all that is late, and makes no more faults.
    pub fn settle(&self) {
        let late = {
            let mut state = self.state();
            state.faults = SimRemoteFaults::default();
            state.is_settled = true;
            std::mem::take(&mut state.late)
        };
        for (_, change) in late {
            // Its caller has given up.
            let _ = self.execute(&change);
        }
    }

    /// A number below `limit`, drawn from the seed.
    pub fn below(&self, limit: u32) -> u32 {
        let mut state = self.state();
        // SplitMix64.
        state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from((mixed ^ (mixed >> 31)) % u64::from(limit.max(1))).unwrap_or(0)
    }

    fn state(&self) -> MutexGuard<'_, SimState> {
        // Its fields stand alone: no panic leaves them half changed.
        steady(&self.state)
    }

    fn wait(&self, steps: u32) {
        for _ in 0..steps {
            (self.pause)();
        }
    }

    /// Lets time pass, and executes what is late.
    fn pass(&self) {
        if self.state().is_settled {
            return;
        }
        self.wait(1);
        let due = {
            let mut state = self.state();
            for (left, _) in &mut state.late {
                // At 0 it is due.
                *left = left.saturating_sub(1);
            }
            let (due, late) = std::mem::take(&mut state.late).into_iter().partition(|(left, _)| *left == 0);
            state.late = late;
            due
        };
        let due: Vec<(u32, SimChange)> = due;
        for (_, change) in due {
            // Its caller has given up.
            let _ = self.execute(&change);
        }
    }

    fn execute(&self, change: &SimChange) -> Result<SimAnswer, RemoteError> {
        let objects = &self.objects;
        match change {
            SimChange::Create(key, bytes) => objects.create(key, bytes).map(SimAnswer::Created),
            SimChange::Swap(key, bytes, was) => objects.swap(key, bytes, was).map(SimAnswer::Swapped),
            SimChange::Put(key, bytes) => {
                objects.put(key, &mut bytes.as_slice(), bytes.len() as u64).map(SimAnswer::Put)
            }
            SimChange::Delete(key) => objects.delete(key).map(|()| SimAnswer::Deleted),
        }
    }

    /// Which fault a call has; `None`: it has none.
    fn fault(&self) -> Option<SimFault> {
        let faults = self.state().faults;
        let mut drawn = self.below(1000);
        let kinds = [
            (faults.lost, SimFault::Lost),
            (faults.late, SimFault::Late),
            (faults.twice, SimFault::Twice),
            (faults.torn, SimFault::Torn),
            (faults.stopped, SimFault::Stopped),
            (faults.killed, SimFault::Killed),
        ];
        for (share, kind) in kinds {
            if drawn < share {
                return Some(kind);
            }
            // It is at least the share, as was asked above.
            drawn = drawn.saturating_sub(share);
        }
        None
    }

    fn later(&self, change: &SimChange) {
        let steps = self.below(60).saturating_add(1);
        self.state().late.push((steps, change.clone()));
    }

    fn change(&self, change: &SimChange) -> Result<SimAnswer, RemoteError> {
        self.pass();
        let doubt = || Err(RemoteError::Doubt { what: "a simulated call".to_owned() });
        let fault = self.fault();
        match fault {
            Some(SimFault::Lost | SimFault::Killed) if self.below(2) == 0 => {}
            Some(SimFault::Late) => self.later(change),
            Some(SimFault::Torn) => {
                if let SimChange::Create(key, bytes) | SimChange::Put(key, bytes) = change {
                    let count = self.below(u32::try_from(bytes.len()).unwrap_or(u32::MAX)) as usize;
                    let torn = bytes.get(..count).unwrap_or(&[]).to_vec();
                    let torn = match change {
                        SimChange::Create(..) => SimChange::Create(key.clone(), torn),
                        _ => SimChange::Put(key.clone(), torn),
                    };
                    // The answer is lost in any case.
                    let _ = self.execute(&torn);
                }
            }
            fault => {
                if fault == Some(SimFault::Stopped) {
                    let steps = self.below(350).saturating_add(50);
                    self.wait(steps);
                }
                let answer = self.execute(change);
                if fault == Some(SimFault::Twice) {
                    self.later(change);
                }
                self.pass();
                if !matches!(fault, Some(SimFault::Lost | SimFault::Killed)) {
                    return answer;
                }
            }
        }
        if fault == Some(SimFault::Killed) { Err(killed()) } else { doubt() }
    }

    /// Lets a call that changes nothing fail.
    fn look(&self) -> Result<(), RemoteError> {
        self.pass();
        match self.fault() {
            Some(SimFault::Lost | SimFault::Torn | SimFault::Late) if self.below(4) == 0 => {
                Err(RemoteError::Doubt { what: "a simulated look".to_owned() })
            }
            Some(SimFault::Killed) => Err(killed()),
            Some(SimFault::Stopped) => {
                let steps = self.below(350).saturating_add(50);
                self.wait(steps);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SimFault {
    Lost,
    Late,
    Twice,
    Torn,
    Stopped,
    Killed,
}

fn killed() -> RemoteError {
    RemoteError::Broken { what: SimRemote::KILLED.to_owned() }
}

/// For an answer of another call, which no execution gives.
fn strange<T>() -> Result<T, RemoteError> {
    Err(RemoteError::Broken { what: "another answer".to_owned() })
}

impl Remote for SimRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        match self.change(&SimChange::Create(key.to_owned(), bytes.to_vec()))? {
            SimAnswer::Created(created) => Ok(created),
            _ => strange(),
        }
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        match self.change(&SimChange::Swap(key.to_owned(), bytes.to_vec(), was.clone()))? {
            SimAnswer::Swapped(swapped) => Ok(swapped),
            _ => strange(),
        }
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        match self.change(&SimChange::Put(key.to_owned(), read_exactly(bytes, length)?))? {
            SimAnswer::Put(tag) => Ok(tag),
            _ => strange(),
        }
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        self.look()?;
        self.objects.get(key, range)
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.look()?;
        let mut found = self.objects.list(under, after)?;
        // No order is promised.
        found.reverse();
        Ok(found)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        match self.change(&SimChange::Delete(key.to_owned()))? {
            SimAnswer::Deleted => Ok(()),
            _ => strange(),
        }
    }
}
