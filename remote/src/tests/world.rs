//! Several workers and a reader of one store, at a remote that fails: what each of them was told is compared with what is there at last.
//!
//! ```text
//! worker   take over -> commits, packs, complete segments -> fenced, killed, in doubt: take over again
//! reader   read -> more than before, all that was acknowledged before it began
//! end      acknowledged: each once, in the order in which it was acknowledged; the head is lost and repaired: the same
//! ```
//!
//! A commit is 16 bytes with a number that no other commit has. Who is in doubt about a commit makes no second try: it would be a second commit.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use acpdb_engine::codec::WrittenPlace;
use acpdb_engine::ids::{Link, Position, StoreId};
use acpdb_engine::log::{LogPiece, piece_offset};
use acpdb_engine::storage::Entropy;

use super::flawed::{Flaw, FlawedRemote};
use crate::ahead::AheadRemote;
use crate::error::ChainError;
use crate::read::read_chain;
use crate::sim::{SimRemote, SimRemoteFaults};
use crate::{Remote, RemoteChain, repair};

pub(super) const STORE: StoreId = StoreId([7; 16]);
const COMMIT_BYTES: u64 = 16;
/// Bytes of a segment.
const SEGMENT_BYTES: u64 = 4 * COMMIT_BYTES;
const WORKER_COUNT: u64 = 3;
const TAKE_COUNT: u32 = 4;

/// Randomness that the seed of a simulated remote gives.
pub(super) struct SimEntropy(pub(super) SimRemote);

impl Entropy for SimEntropy {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        bytes.fill_with(|| u8::try_from(self.0.below(256)).unwrap());
        Ok(())
    }
}

/// A commit that its worker was told of.
#[derive(Debug, Clone, Copy)]
struct Acked {
    commit: u64,
    began: u64,
    ended: u64,
}

/// The figures of a schedule.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    pub(super) acked: u64,
    pub(super) taken_over: u64,
    pub(super) fenced: u64,
    pub(super) packed: u64,
    pub(super) completed: u64,
    pub(super) read: u64,
}

pub(super) struct World {
    remote: SimRemote,
    flaw: Flaw,
    clock: AtomicU64,
    next_commit: AtomicU64,
    acked: Mutex<Vec<Acked>>,
    pub(super) figures: Mutex<Figures>,
    /// All that was seen and must not be.
    pub(super) faults: Mutex<Vec<String>>,
}

/// The commits of a chain, in order.
pub(super) fn read_commits(remote: &dyn Remote, store: StoreId) -> Vec<u64> {
    let (bytes, end) = read(remote, store).unwrap();
    let found = commits(&bytes);
    assert_eq!(end.seq.0, found.len() as u64);
    found
}

fn read(remote: &dyn Remote, store: StoreId) -> Result<(Bytes, WrittenPlace), ChainError> {
    let mut found = Bytes::new();
    let end = read_chain(&AheadRemote::new(remote, store), &mut |segment, _, bytes, _| {
        found.entry(segment).or_default().extend_from_slice(bytes);
        Ok(())
    })?;
    Ok((found, end.place))
}

/// The next commit behind a place; a segment that is full is left.
pub(super) fn piece_behind(before: WrittenPlace, commit: u64) -> LogPiece {
    let full = before.position.segment() == 0 || before.position.offset() >= SEGMENT_BYTES;
    let segment = before.position.segment() + u32::from(full);
    let from = piece_offset(&before, segment);
    let mut bytes = commit.to_le_bytes().to_vec();
    bytes.extend_from_slice(&before.seq.next().0.to_le_bytes());
    let link = Link(*blake3::hash(&[before.link.as_bytes().as_slice(), &bytes].concat()).as_bytes());
    let position = Position::new(segment, from + COMMIT_BYTES).unwrap();
    let behind = WrittenPlace { position, seq: before.seq.next(), link, last_frame: 1, ..before };
    LogPiece { before, behind, bytes }
}

/// The bytes of a chain by segment, and its end.
type Bytes = BTreeMap<u32, Vec<u8>>;

fn commits(bytes: &Bytes) -> Vec<u64> {
    let chunks = bytes.values().flat_map(|bytes| bytes.as_chunks::<16>().0);
    chunks.map(|chunk| u64::from_le_bytes(chunk[..8].try_into().unwrap())).collect()
}

impl World {
    pub(super) fn new(
        seed: u64,
        faults: SimRemoteFaults,
        flaw: Flaw,
        pause: Arc<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            remote: SimRemote::new(seed, faults, pause),
            flaw,
            clock: AtomicU64::new(0),
            next_commit: AtomicU64::new(1),
            acked: Mutex::default(),
            figures: Mutex::default(),
            faults: Mutex::default(),
        })
    }

    pub(super) fn worker_count() -> u64 {
        WORKER_COUNT
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    fn count(&self, change: impl FnOnce(&mut Figures)) {
        change(&mut self.figures.lock().unwrap());
    }

    fn wrong(&self, what: String) {
        self.faults.lock().unwrap().push(what);
    }

    fn take_over(&self, flaw: Flaw) -> Result<RemoteChain, ChainError> {
        let entropy = Arc::new(SimEntropy(self.remote.clone()));
        // That rule is one of readers.
        let flaw = if flaw == Flaw::OneHead { Flaw::None } else { flaw };
        let remote = Arc::new(FlawedRemote::new(self.remote.clone(), flaw));
        RemoteChain::take_over(remote, entropy, STORE, "worker")
    }

    fn read(&self, flaw: Flaw) -> Result<(Bytes, WrittenPlace), ChainError> {
        read(&FlawedRemote::new(self.remote.clone(), flaw), STORE)
    }

    /// Whether an error is one that a caller may get from a remote that fails.
    fn check(&self, error: &ChainError) {
        match error {
            ChainError::Fenced { .. } => self.count(|figures| figures.fenced += 1),
            ChainError::Remote(_) | ChainError::Contended | ChainError::Missing { .. } => {}
            error => self.wrong(format!("a worker was told: {error}")),
        }
    }

    pub(super) fn work(&self) {
        for _ in 0..TAKE_COUNT {
            match self.take_over(self.flaw) {
                Ok(mut chain) => {
                    self.count(|figures| figures.taken_over += 1);
                    if let Err(error) = self.write(&mut chain) {
                        self.check(&error);
                    }
                }
                Err(error) => self.check(&error),
            }
        }
    }

    fn write(&self, chain: &mut RemoteChain) -> Result<(), ChainError> {
        for _ in 0..self.remote.below(8) {
            let commit = self.next_commit.fetch_add(1, SeqCst);
            let began = self.now();
            chain.append(&piece_behind(chain.place(), commit))?;
            let ended = self.now();
            self.acked.lock().unwrap().push(Acked { commit, began, ended });
            self.count(|figures| figures.acked += 1);
            if self.remote.below(3) == 0 && chain.pack()? {
                self.count(|figures| figures.packed += 1);
            }
            let segment = u32::try_from(chain.segments().count()).unwrap() + 1;
            if chain.place().position.segment() > segment && self.remote.below(3) > 0 {
                self.complete(chain, segment)?;
            }
        }
        Ok(())
    }

    fn complete(&self, chain: &mut RemoteChain, segment: u32) -> Result<(), ChainError> {
        let (mut found, _) = self.read(Flaw::None)?;
        let mut place = chain.place_before(segment).unwrap();
        let bytes = found.remove(&segment).unwrap_or_default();
        for chunk in bytes.as_chunks::<16>().0 {
            place = piece_behind(place, u64::from_le_bytes(chunk[..8].try_into().unwrap())).behind;
        }
        chain.complete(segment, 0, bytes, place)?;
        self.count(|figures| figures.completed += 1);
        Ok(())
    }

    /// Reads again and again; what is seen only grows.
    pub(super) fn observe(&self) {
        let mut before = Vec::new();
        for _ in 0..4 {
            let acked: Vec<u64> = self.acked.lock().unwrap().iter().map(|acked| acked.commit).collect();
            match self.read(self.flaw) {
                Ok((found, _)) => {
                    self.count(|figures| figures.read += 1);
                    let seen = commits(&found);
                    if !seen.starts_with(&before) {
                        self.wrong(format!("a reader saw {before:?}, then {seen:?}"));
                    }
                    if let Some(commit) = acked.iter().find(|commit| !seen.contains(commit)) {
                        self.wrong(format!("a reader did not see {commit}, which was acknowledged before"));
                    }
                    before = seen;
                }
                Err(ChainError::Remote(_) | ChainError::Contended) => {}
                // The creation of the first head was torn, or has not happened yet.
                Err(ChainError::NoStore { .. } | ChainError::HeadLost { .. }) if acked.is_empty() => {}
                Err(error) => self.wrong(format!("a reader was told: {error}")),
            }
        }
    }

    /// Looks at what is there once no fault happens any more.
    pub(super) fn judge(&self) {
        self.remote.settle();
        let chain = self.take_over(Flaw::None);
        let Ok((found, end)) = self.read(Flaw::None) else {
            return self.wrong("the chain cannot be read".to_owned());
        };
        let seen = commits(&found);
        if seen.iter().collect::<BTreeSet<_>>().len() != seen.len() {
            self.wrong(format!("a commit is there twice: {seen:?}"));
        }
        let mut place = WrittenPlace::default();
        for commit in &seen {
            place = piece_behind(place, *commit).behind;
        }
        if place != end {
            self.wrong("the bytes are not those of the links".to_owned());
        }
        let acked = self.acked.lock().unwrap().clone();
        let at = |acked: &Acked| seen.iter().position(|commit| *commit == acked.commit);
        for one in &acked {
            let Some(place) = at(one) else {
                self.wrong(format!("{} was acknowledged and is lost", one.commit));
                continue;
            };
            let later = acked.iter().filter(|other| one.ended < other.began);
            for other in later.filter(|other| at(other).is_some_and(|at| at < place)) {
                self.wrong(format!("{} was acknowledged before {} began", one.commit, other.commit));
            }
        }
        match chain.and_then(|mut chain| chain.append(&piece_behind(chain.place(), u64::MAX))) {
            Ok(()) => {}
            Err(error) => self.wrong(format!("the chain cannot go on: {error}")),
        }
        self.lose_head();
    }

    /// The head is lost; repaired, it names the same chain.
    fn lose_head(&self) {
        let before = self.read(Flaw::None).map(|(found, _)| found);
        self.remote.objects().set(&crate::names::head_key(STORE), None);
        if !matches!(self.take_over(Flaw::None), Err(ChainError::HeadLost { .. })) {
            self.wrong("a lost head was taken for a new store".to_owned());
        }
        let entropy: Arc<dyn Entropy> = Arc::new(SimEntropy(self.remote.clone()));
        let repaired = repair(&self.remote, &entropy, STORE);
        let after = self.read(Flaw::None).map(|(found, _)| found);
        match (before, after, repaired) {
            (Ok(before), Ok(after), Ok(true)) if before == after => {}
            (before, after, repaired) => {
                self.wrong(format!(
                    "repaired ({repaired:?}): {:?}, before: {:?}",
                    after.map(|found| commits(&found)),
                    before.map(|found| commits(&found))
                ));
            }
        }
    }
}
