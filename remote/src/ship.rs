//! Shipping a store that lives: what is durable and not there yet becomes chunks, packs and segments.
//!
//! ```text
//! log: durable head -- complete segments, then pieces --> chain
//! ```
//!
//! The log is opened for reading alone, in any process: writers neither wait for a shipper nor know of it. If nothing is new, no request is made but those that
//! find that out when a shipper begins. Erased bodies reach the remote as segments of the next generation, and small files, such as a key that is wrapped anew,
//! whenever they change.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acpdb_engine::Error;
use acpdb_engine::ids::{Position, Seq, StoreId};
use acpdb_engine::log::{Head, Log, LogOptions, follow};
use acpdb_engine::storage::{Entropy, FileStorage, Storage, SystemClock, SystemEntropy, read_file};
use acpdb_engine::vault::KeyUse;

use crate::ahead::AheadRemote;
use crate::chain::{ChainClaim, PACK_COUNT, RemoteChain};
use crate::error::ChainError;
use crate::look::{look, trash_left};
use crate::names::{PREFIX_MARK, PREFIX_TEXT, meta_key};
use crate::objects::{Settled, create_settled, put_whole};
use crate::remote::Remote;
use crate::small::{SMALL_FILES, SmallThere};
use crate::status::{RemoteStatus, lacks_secret, status};

/// Longest pause after a failure that may pass.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Longest time for which a follower does not ask whether to go on.
const ASK_MAX: Duration = Duration::from_secs(1);

/// How a store is shipped.
#[derive(Debug, Clone)]
pub struct ShipOptions {
    /// The shipper's name, for people. Default: `acpdb`.
    pub owner: String,
    /// Bytes of a chunk, at most; a longer commit is a chunk of its own. Default: 1 MiB.
    pub chunk_bytes_max: usize,
    /// Ship the store's secret, too: without it nothing can be appended to what is restored. Default: `true`.
    pub secret: bool,
    /// Ship the wrapped key of an encrypted store, too. Default: `false`.
    pub key: bool,
}

impl Default for ShipOptions {
    fn default() -> Self {
        Self { owner: "acpdb".to_owned(), chunk_bytes_max: 1 << 20, secret: true, key: false }
    }
}

/// How far shipping is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShipProgress {
    /// The last seq that is there.
    pub there: Seq,
    /// The last seq that is to be there.
    pub until: Seq,
    /// The failure that passes while following, if there was one: how often in a row.
    pub failed_count: u32,
    /// Segments that were replaced since bodies of them were erased: of this call, or since following began.
    pub erased: u64,
}

/// The outcome of [`Shipper::ship`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[must_use]
pub struct Shipped {
    /// The last seq that is there.
    pub there: Seq,
    /// Chunks that were made.
    pub chunks: u64,
    /// Complete segments that were made, or replaced because bodies were erased.
    pub segments: u64,
    /// Segments among them of which bodies were erased: what took their place before is deleted.
    pub erased: u64,
    /// Bytes of the log in them.
    pub bytes: u64,
}

/// Ships one store to one remote.
pub struct Shipper {
    log: Log,
    remote: Arc<dyn Remote>,
    options: ShipOptions,
    chain: Option<RemoteChain>,
    /// The take-overs so far of a shipper that takes its store from no other; `None`: it takes it from any.
    claim: Option<ChainClaim>,
    /// All up to here was there, and no erasure was under way, when it was last looked at.
    settled: Option<Seq>,
    /// The digests of the small files that are there.
    put: SmallFiles<[u8; 32]>,
}

/// Small files of a store, by name.
type SmallFiles<T> = BTreeMap<&'static str, T>;

impl Shipper {
    /// Opens the store in a folder to ship it. Makes no request.
    ///
    /// # Errors
    /// [`ChainError::Store`].
    pub fn open(folder: &Path, remote: Arc<dyn Remote>, options: ShipOptions) -> Result<Self, ChainError> {
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder).read_only());
        let log_options = LogOptions { read_only: true, keys: KeyUse::Bytes, ..LogOptions::default() };
        let (log, _recovery) =
            Log::open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), log_options)?;
        Ok(Self { log, remote, options, chain: None, claim: None, settled: None, put: BTreeMap::new() })
    }

    /// Gives it a chain that was taken over, which it takes from no other from here on.
    pub(crate) fn hold(
        &mut self,
        chain: RemoteChain,
        claim: ChainClaim,
        there: &SmallThere,
    ) -> Result<(), ChainError> {
        let here = self.log.refresh()?;
        self.check(&chain.place(), &here)?;
        self.put_small_files(there)?;
        (self.chain, self.claim) = (Some(chain), Some(claim));
        Ok(())
    }

    /// Whether the store's secret is neither here nor at the remote: nothing can be appended to what is restored. An encrypted store has none, and needs none.
    /// Makes no request if it is here.
    ///
    /// # Errors
    /// [`ChainError::Store`] if its file cannot be read, [`ChainError::Remote`].
    pub fn lacks_secret(&self) -> Result<bool, ChainError> {
        Ok(!self.log.is_encrypted()
            && !self.small_files()?.contains_key("secret")
            && lacks_secret(&*self.remote, self.store())?)
    }

    /// The store.
    pub fn store(&self) -> StoreId {
        self.log.store()
    }

    /// Says how far the remote is behind. Changes nothing.
    ///
    /// # Errors
    /// As [`status`].
    pub fn status(&self) -> Result<Option<RemoteStatus>, ChainError> {
        let here = self.log.refresh()?.seq;
        status(&*self.remote, self.store(), Some(here))
    }

    /// Ships what is durable now and not there yet. After each object `keep_on` says whether to go on.
    ///
    /// # Errors
    /// [`ChainError::Diverged`] if the folder does not hold what is there; [`ChainError::Fenced`] if another shipper took the store over; others of
    /// [`ChainError`]. The next call begins where this one ended.
    pub fn ship(&mut self, keep_on: &mut dyn FnMut(&ShipProgress) -> bool) -> Result<Shipped, ChainError> {
        let head = self.log.refresh()?;
        let are_put = self.are_small_files_put()?;
        if are_put && self.settled == Some(head.seq) {
            return Ok(Shipped { there: head.seq, ..Shipped::default() });
        }
        self.settled = None;
        // Small files are put by who begins, once it is known that the store there is the one of this folder.
        let mut chain = match self.chain.take().filter(|_| are_put) {
            Some(chain) => chain,
            None => match self.begin()? {
                ControlFlow::Continue(chain) => chain,
                ControlFlow::Break(there) => return Ok(Shipped { there, ..Shipped::default() }),
            },
        };
        let (head, is_erasing) = self.look_here()?;
        // An error leaves open what is there: then the chain is dropped, and taken over by the next call.
        let (shipped, is_all) = self.ship_to(&mut chain, head, keep_on)?;
        self.settled = Some(head.seq).filter(|_| is_all && !is_erasing);
        self.chain = Some(chain);
        Ok(shipped)
    }

    /// Where the log ends now, and whether an erasure is under way. It is asked after the remote: what is there may have been recorded and
    /// shipped by another one meanwhile.
    fn look_here(&self) -> Result<(Head, bool), ChainError> {
        let head = self.log.refresh()?;
        // An erasure is noted before its event is there, and until its segments have another generation. So what is looked at from here on is
        // of after it, or it is noted still.
        Ok((head, self.log.is_erasing()?))
    }

    /// Takes the chain over, or says the last seq of all, which is there.
    fn begin(&mut self) -> Result<ControlFlow<Seq, RemoteChain>, ChainError> {
        let remote = Arc::clone(&self.remote);
        let ahead = AheadRemote::new(&*remote, self.store());
        let found = match look(&ahead) {
            // The creation of the first head may have been torn: taking over tells that from a loss.
            Err(ChainError::HeadLost { .. }) => None,
            found => found?,
        };
        if let Some((there, tail)) = found {
            if self.claim.as_ref().is_some_and(|claim| !claim.allows(&there)) {
                return Err(ChainError::Fenced { epoch: there.epoch });
            }
            let (head, is_erasing) = self.look_here()?;
            self.check(&tail.place, &head)?;
            let kept: Vec<_> =
                there.segments.iter().map(|kept| (kept.name.number, kept.name.generation)).collect();
            if tail.place.position == head.position
                && self.outdated(&kept)?.is_none()
                && self.next_complete(&kept)?.is_none()
                && trash_left(&*self.remote, &there)? == 0
            {
                self.put_small_files(&SmallThere::read(&ahead)?)?;
                self.settled = Some(head.seq).filter(|_| !is_erasing);
                return Ok(ControlFlow::Break(head.seq));
            }
        }
        self.put_small_files(&SmallThere::read(&ahead)?)?;
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
        let (real, owner) = (Arc::clone(&remote), &self.options.owner);
        let mut alone = ChainClaim::default();
        let claim = self.claim.as_mut().unwrap_or(&mut alone);
        RemoteChain::take_over_as(&ahead, real, entropy, owner, claim).map(ControlFlow::Continue)
    }

    /// Whether the folder, whose log ends at `here`, holds what is there.
    fn check(&self, there: &Head, here: &Head) -> Result<(), ChainError> {
        let is_ours = there.position == Position::default()
            || there.position <= here.position && self.log.holds(there)?;
        if is_ours {
            return Ok(());
        }
        Err(ChainError::Diverged { there: there.seq.0, here: here.seq.0 })
    }

    /// The first segment of which bodies were erased since it was kept.
    fn outdated(&self, kept: &[(u32, u32)]) -> Result<Option<u32>, ChainError> {
        for (number, generation) in kept {
            if self.log.segment_facts(*number)?.is_some_and(|facts| facts.generation > *generation) {
                return Ok(Some(*number));
            }
        }
        Ok(None)
    }

    /// The segment behind those that are kept, if it is complete.
    fn next_complete(&self, kept: &[(u32, u32)]) -> Result<Option<u32>, ChainError> {
        let next = kept.last().map_or(1, |(number, _)| number.saturating_add(1));
        Ok(self.log.segment_facts(next)?.map(|facts| facts.number))
    }

    /// Ships up to `head`. Says whether nothing is left to be done.
    fn ship_to(
        &self,
        chain: &mut RemoteChain,
        head: Head,
        keep_on: &mut dyn FnMut(&ShipProgress) -> bool,
    ) -> Result<(Shipped, bool), ChainError> {
        self.check(&chain.place(), &head)?;
        let mut shipped = Shipped::default();
        // First what was erased, then what is new.
        let mut is_erased = true;
        loop {
            let kept: Vec<_> = chain.segments().collect();
            let outdated = if is_erased { self.outdated(&kept)? } else { None };
            is_erased = outdated.is_some();
            let complete = if is_erased { outdated } else { self.next_complete(&kept)? };
            let done = complete.map(|number| self.complete(chain, number)).transpose()?.flatten();
            let piece = if done.is_some() || is_erased {
                None
            } else {
                self.log.piece(chain.place(), head, self.options.chunk_bytes_max)?
            };
            if let Some((bytes, generation)) = done {
                shipped.erased = shipped.erased.saturating_add(u64::from(generation > 0));
                shipped.segments = shipped.segments.saturating_add(1);
                shipped.bytes = shipped.bytes.saturating_add(bytes);
            } else if let Some(piece) = &piece {
                chain.append(piece)?;
                shipped.chunks = shipped.chunks.saturating_add(1);
                shipped.bytes = shipped.bytes.saturating_add(piece.bytes.len() as u64);
                if chain.chunk_count() >= PACK_COUNT {
                    chain.pack()?;
                }
            }
            shipped.there = chain.place().seq;
            // A segment that is being changed just now is found by the next call.
            if done.is_none() && piece.is_none() {
                return Ok((shipped, complete.is_none()));
            }
            let Shipped { there, erased, .. } = shipped;
            if !keep_on(&ShipProgress { there, until: head.seq, failed_count: 0, erased }) {
                return Ok((shipped, false));
            }
        }
    }

    /// Ships a complete segment as one object, and returns its length and generation. `None`: it is being changed just now.
    fn complete(&self, chain: &mut RemoteChain, number: u32) -> Result<Option<(u64, u32)>, ChainError> {
        let Some((facts, bytes)) = self.log.segment_bytes(number)? else { return Ok(None) };
        let Some(before) = chain.place_before(number) else { return Ok(None) };
        let length = bytes.len() as u64;
        let behind = follow(self.store(), &before, number, &bytes).map_err(|invalid| {
            let what = format!("{}: expected {}, found {}", invalid.part, invalid.expected, invalid.found);
            ChainError::Unsound { key: format!("segment {number} of the store"), what }
        })?;
        chain.complete(number, facts.generation, bytes, behind)?;
        Ok(Some((length, facts.generation)))
    }

    /// The small files that the remote is to have, as they are now.
    fn small_files(&self) -> Result<SmallFiles<Vec<u8>>, ChainError> {
        let storage = self.log.storage();
        let mut files = BTreeMap::new();
        for (name, bytes_max) in SMALL_FILES {
            if name == "secret" && !self.options.secret || name == "key" && !self.options.key {
                continue;
            }
            let read = read_file(&**storage, name, bytes_max);
            let read =
                read.map_err(|source| Error::Io { action: "read", path: storage.path(name), source })?;
            if let Some(bytes) = read {
                files.insert(name, bytes);
            }
        }
        Ok(files)
    }

    /// Whether the remote has the small files as they are now, as far as this shipper knows. Makes no request.
    fn are_small_files_put(&self) -> Result<bool, ChainError> {
        let files = self.small_files()?;
        Ok(files.iter().all(|(name, bytes)| self.put.get(name) == Some(blake3::hash(bytes).as_bytes())))
    }

    /// Puts the mark of the prefix there, and the small files of the store; what is there already is left.
    fn put_small_files(&mut self, there: &SmallThere) -> Result<(), ChainError> {
        let (remote, store) = (&*self.remote, self.store());
        match there.get(PREFIX_MARK) {
            Some((found, _)) if found == PREFIX_TEXT => {}
            _ => match create_settled(remote, PREFIX_MARK, PREFIX_TEXT)? {
                Settled::Mine => {}
                // It was torn.
                Settled::Other(found) if PREFIX_TEXT.starts_with(&found) => {
                    put_whole(remote, PREFIX_MARK, PREFIX_TEXT)?;
                }
                Settled::Other(_) => return Err(ChainError::Newer { key: PREFIX_MARK.to_owned() }),
            },
        }
        for (name, bytes) in self.small_files()? {
            let key = meta_key(store, name);
            match there.get(&key) {
                Some((found, _)) if *found == bytes => {}
                // A store file gets features, a key is wrapped anew, a file may be torn: it is small, and this store's alone.
                _ => put_whole(remote, &key, &bytes)?,
            }
            self.put.insert(name, *blake3::hash(&bytes).as_bytes());
        }
        Ok(())
    }

    /// Whether there was nothing to ship when it was last looked at, and nothing is new since.
    fn is_idle(&self) -> bool {
        // A file that cannot be read is an error of the next call that ships.
        self.settled == Some(self.log.head().seq) && self.are_small_files_put().unwrap_or(false)
    }

    /// Ships what is new every `every`, until `keep_on` says no; it is asked at least every second. Failures that may pass are tried again, with pauses of up to a minute.
    ///
    /// # Errors
    /// Those of [`Shipper::ship`] that do not pass, such as [`ChainError::Fenced`] and [`ChainError::Diverged`].
    pub fn follow(
        &mut self,
        every: Duration,
        keep_on: &mut dyn FnMut(&ShipProgress) -> bool,
    ) -> Result<(), ChainError> {
        let (mut failed_count, mut pause) = (0_u32, every);
        let mut there = Seq::ZERO;
        let mut erased = 0_u64;
        loop {
            let mut goes_on = true;
            // A call that fails at last has replaced what it told of.
            let mut replaced = erased;
            let shipped = self.ship(&mut |progress| {
                replaced = erased.saturating_add(progress.erased);
                goes_on = keep_on(&ShipProgress { erased: replaced, ..*progress });
                goes_on
            });
            erased = replaced;
            match shipped {
                Ok(shipped) => (there, failed_count, pause) = (shipped.there, 0, every),
                Err(ChainError::Remote(error)) if error.may_pass() => {
                    failed_count = failed_count.saturating_add(1);
                    pause = pause.saturating_mul(2).min(PAUSE_MAX.max(every));
                }
                Err(ChainError::Contended) => failed_count = failed_count.saturating_add(1),
                Err(error) => return Err(error),
            }
            let begun = Instant::now();
            // News are collected for a while; without news nothing is asked of the remote. A commit ends a wait, and not the while.
            while goes_on && (begun.elapsed() < pause || self.is_idle()) {
                // Past the pause nothing is left of it.
                let rest = pause.saturating_sub(begun.elapsed());
                let step = if rest.is_zero() { every } else { rest };
                let until = self.log.wait_for_commit(self.log.head().seq, step.min(ASK_MAX))?.seq;
                goes_on = keep_on(&ShipProgress { there, until, failed_count, erased });
            }
            if !goes_on {
                return Ok(());
            }
        }
    }
}
