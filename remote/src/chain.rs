//! The chain of a store, as its one writer has it: take-over, append, pack, complete segments, trash.
//!
//! ```text
//! take over   swap head (epoch + 1) -> read entries -> create fence at the first missing number -> head still mine?
//! append      create log/n -> created: done. else read log/n: mine: done; higher epoch: fenced; other: n + 1; none: again
//! pack        put pack -> swap head (boundary, trash) -> delete chunks
//! ```
//!
//! Any error but [`ChainError::NotNext`] and [`ChainError::TooLarge`] leaves open what is there: drop the chain and take it over again.

use std::sync::Arc;

use acpdb_engine::codec::WrittenPlace;
use acpdb_engine::ids::StoreId;
use acpdb_engine::log::LogPiece;
use acpdb_engine::storage::Entropy;

use crate::ahead::{AheadRemote, at_a_time, both};
use crate::error::ChainError;
use crate::head::{HEAD_BYTES_MAX, KeptSegment, OWNER_BYTES_MAX, RemoteHead};
use crate::names::{ObjectName, PackName, SegmentName, head_key};
use crate::objects::{
    FoundHead, Settled, create_settled, find_head, has_objects, head_of, put_whole, replace_head,
    required_run, swap_settled,
};
use crate::read::{VisitRun, read_own};
use crate::remote::{ObjectTag, Remote, RemoteError};
use crate::run::{CHUNK_BYTES_MAX, LogRun, LogRunKind, RUN_BYTES_MAX};
use crate::tail::{Accepted, ChainTail, entry};

/// As many chunks become one pack, and as many packs one larger pack.
pub(crate) const PACK_COUNT: usize = 64;
/// How often a head that others change is tried again.
const TRY_COUNT: u32 = 16;

/// The chain of a store, held by its writer.
pub struct RemoteChain {
    remote: Arc<dyn Remote>,
    entropy: Arc<dyn Entropy>,
    store: StoreId,
    epoch: u64,
    nonce: u64,
    head: RemoteHead,
    tag: ObjectTag,
    tail: ChainTail,
}

/// The take-overs of one writer that lives: who takes a chain over with one takes it from itself alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChainClaim {
    nonces: Vec<u64>,
}

impl ChainClaim {
    /// Whether a head is of this writer, or this writer had none yet.
    pub(crate) fn allows(&self, head: &RemoteHead) -> bool {
        self.nonces.is_empty() || self.nonces.contains(&head.owner_nonce)
    }
}

/// Eight random bytes.
pub(crate) fn random(entropy: &dyn Entropy) -> Result<u64, ChainError> {
    let mut bytes = [0; 8];
    let drawn = entropy.fill(&mut bytes);
    drawn.map_err(|error| RemoteError::Broken { what: format!("drawing random bytes: {error}") })?;
    Ok(u64::from_le_bytes(bytes))
}

impl RemoteChain {
    /// Takes the chain of a store over from its writer, or begins it. `owner` is for people. Cost: four round trips, and the entries that no pack has.
    ///
    /// # Errors
    /// [`ChainError::Fenced`] and [`ChainError::Contended`] if others take it over at the same time, [`ChainError::HeadLost`], [`ChainError::Newer`],
    /// [`ChainError::Remote`].
    pub fn take_over(
        remote: Arc<dyn Remote>,
        entropy: Arc<dyn Entropy>,
        store: StoreId,
        owner: &str,
    ) -> Result<Self, ChainError> {
        let real = Arc::clone(&remote);
        Self::take_over_as(
            &AheadRemote::new(&*real, store),
            remote,
            entropy,
            owner,
            &mut ChainClaim::default(),
        )
    }

    /// [`RemoteChain::take_over`], by a writer that had it before: from itself alone. Objects that `ahead` is told to expect are read with the last look at the
    /// head, behind all that the writer before can have put there; entries stay in it.
    pub(crate) fn take_over_as(
        ahead: &AheadRemote<'_>,
        remote: Arc<dyn Remote>,
        entropy: Arc<dyn Entropy>,
        owner: &str,
        claim: &mut ChainClaim,
    ) -> Result<Self, ChainError> {
        let (store, nonce, before) = (ahead.store(), random(&*entropy)?, claim.clone());
        // Before the swap: if no answer comes, the head may be of this take-over.
        claim.nonces.push(nonce);
        let mut cut = owner.len().min(OWNER_BYTES_MAX);
        while !owner.is_char_boundary(cut) {
            // 0 is a boundary of every text.
            cut = cut.saturating_sub(1);
        }
        let owner = owner.get(..cut).unwrap_or_default().to_owned();
        for _ in 0..TRY_COUNT {
            let found = find_head(&*remote, store)?;
            let was = match &found {
                FoundHead::Sound(head, _) => (**head).clone(),
                _ if has_objects(&*remote, store)? => {
                    // The first writer may have been at work between the two looks.
                    if matches!(find_head(&*remote, store)?, FoundHead::Sound(..)) {
                        continue;
                    }
                    return Err(ChainError::HeadLost { store: store.to_string() });
                }
                _ => RemoteHead::empty(store),
            };
            if !before.allows(&was) {
                return Err(ChainError::Fenced { epoch: was.epoch });
            }
            let epoch = was.epoch.saturating_add(1);
            let head = RemoteHead {
                epoch,
                owner_nonce: nonce,
                nonce: random(&*entropy)?,
                owner: owner.clone(),
                ..was
            };
            let swap = || replace_head(&*remote, &head, &found);
            // It is kept for the fence, which looks whether there is more.
            let (tag, _read) = both(&*remote, swap, || {
                ahead.read_ahead(&head);
                Ok(())
            });
            let Some(tag) = tag? else { continue };
            let tail = ChainTail::of(&head);
            let real = Arc::clone(&remote);
            let mut chain = Self { remote, entropy, store, epoch, nonce, head, tag, tail };
            let trash = std::mem::take(&mut chain.head.trash);
            let (fenced, emptied) =
                both(&*real, || chain.fence(ahead), || empty_trash(&*real, store, &trash));
            fenced?;
            emptied?;
            return Ok(chain);
        }
        Err(ChainError::Contended)
    }

    /// The place behind all that is in the chain.
    pub const fn place(&self) -> WrittenPlace {
        self.tail.place
    }

    /// The epoch of this writer.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many chunks no pack has.
    pub fn chunk_count(&self) -> usize {
        self.tail.accepted.len()
    }

    /// Number and generation of the complete segments that are kept as such.
    pub fn segments(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.head.segments.iter().map(|segment| (segment.name.number, segment.name.generation))
    }

    /// The place before a segment: the end of the one before it, if that is kept as such.
    pub fn place_before(&self, segment: u32) -> Option<WrittenPlace> {
        match segment.checked_sub(2) {
            None => Some(WrittenPlace::default()),
            Some(index) => self.head.segments.get(index as usize).map(|segment| segment.behind),
        }
    }

    fn run(&self, kind: LogRunKind, before: WrittenPlace, behind: WrittenPlace, bytes: Vec<u8>) -> LogRun {
        let (store, epoch, nonce, segment) = (self.store, self.epoch, self.nonce, behind.position.segment());
        let (first, next) = (self.tail.next, self.tail.next.saturating_add(1));
        LogRun { kind, generation: 0, store, epoch, nonce, first, next, before, behind, segment, bytes }
    }

    fn key(&self, name: ObjectName) -> String {
        name.key(self.store)
    }

    /// Reads what is there, and puts a fence where the writer before would go on.
    fn fence(&mut self, ahead: &AheadRemote<'_>) -> Result<(), ChainError> {
        loop {
            while let Some(object) = ahead.entry(self.tail.next)? {
                self.absorb(&object)?;
            }
            let place = self.tail.place;
            let object = self.run(LogRunKind::Fence, place, place, Vec::new()).encode();
            let key = self.key(ObjectName::Entry(self.tail.next));
            match create_settled(&*self.remote, &key, &object)? {
                Settled::Mine => {
                    self.tail.take(&object)?;
                    break;
                }
                Settled::Other(found) => self.absorb(&found)?,
            }
        }
        // A writer that took over after this head was swapped in may have read the chain before the fence was there.
        self.check_mine_at(ahead)
    }

    /// Looks whether the head is still that of this writer.
    pub(crate) fn check_mine(&self) -> Result<(), ChainError> {
        self.check_mine_at(&*self.remote)
    }

    fn check_mine_at(&self, remote: &dyn Remote) -> Result<(), ChainError> {
        match head_of(remote, self.store)? {
            Some((head, _)) if (head.epoch, head.owner_nonce) == (self.epoch, self.nonce) => Ok(()),
            found => Err(ChainError::Fenced { epoch: found.map_or(0, |(head, _)| head.epoch) }),
        }
    }

    /// Reads all that is in the chain, from its beginning.
    pub(crate) fn read(
        &self,
        ahead: &AheadRemote<'_>,
        visit: VisitRun<'_>,
    ) -> Result<WrittenPlace, ChainError> {
        let read = read_own(ahead, &self.head, &self.tail, visit);
        if read.is_err() {
            // The next writer may have packed it.
            self.check_mine()?;
        }
        read
    }

    fn absorb(&mut self, object: &[u8]) -> Result<(), ChainError> {
        self.tail.take(object)?;
        if self.tail.epoch > self.epoch {
            return Err(ChainError::Fenced { epoch: self.tail.epoch });
        }
        Ok(())
    }

    /// Adds frames to the chain. When it returns, they are there for every reader, and stay there, whichever writer is next.
    ///
    /// # Errors
    /// [`ChainError::NotNext`], [`ChainError::TooLarge`]: nothing was added. [`ChainError::Fenced`]: another writer has the chain now, and decided whether
    /// the frames are in it. [`ChainError::Remote`]: it is unknown whether they are.
    pub fn append(&mut self, piece: &LogPiece) -> Result<(), ChainError> {
        self.check_next(&piece.before, piece.bytes.len() as u64, CHUNK_BYTES_MAX)?;
        loop {
            let object =
                self.run(LogRunKind::Chunk, piece.before, piece.behind, piece.bytes.clone()).encode();
            let number = self.tail.next;
            let key = self.key(ObjectName::Entry(number));
            let Settled::Other(found) = create_settled(&*self.remote, &key, &object)? else {
                self.tail.take(&object)?;
                return Ok(());
            };
            if let Some(other) = entry(self.store, number, &found)?
                && other.epoch >= self.epoch
            {
                return Err(ChainError::Fenced { epoch: other.epoch });
            }
            self.tail.pass()?;
        }
    }

    fn check_next(&self, before: &WrittenPlace, bytes: u64, limit: u64) -> Result<(), ChainError> {
        if *before != self.tail.place {
            let said = |place: &WrittenPlace| format!("{} ({}, {})", place.seq, place.position, place.link);
            return Err(ChainError::NotNext { there: said(&self.tail.place), given: said(before) });
        }
        check_length("what was given", bytes, limit)
    }

    /// Makes one pack of the chunks, and one of the packs if there are many. `false`: there are no chunks, or a segment before them has to be
    /// completed first.
    ///
    /// # Errors
    /// As [`RemoteChain::append`].
    pub fn pack(&mut self) -> Result<bool, ChainError> {
        let names: Vec<_> = self.tail.accepted.iter().map(|chunk| ObjectName::Entry(chunk.number)).collect();
        let Some(last) = self.tail.accepted.last() else { return Ok(false) };
        // All packs are of one segment, since that segment takes their place once it is complete.
        let (inside, kept) = (last.behind.position.segment() as usize, self.head.segments.len());
        let is_inside = |chunk: &Accepted| chunk.behind.position.segment() as usize == inside;
        if inside != kept.saturating_add(1) || !self.tail.accepted.iter().all(is_inside) {
            return Ok(false);
        }
        let (first, next) = (self.head.boundary, self.tail.next);
        let head = RemoteHead {
            boundary: next,
            floor: self.tail.epoch,
            place: self.tail.place,
            ..self.head.clone()
        };
        self.put_pack(names, first, next, head)?;
        self.tail.accepted.clear();
        // The limit is one of entries behind the boundary, not of a writer's life.
        self.tail.first = next;
        if self.head.packs.len() >= PACK_COUNT
            && let (Some(first), Some(last)) =
                (self.head.packs.first().copied(), self.head.packs.last().copied())
        {
            let names = self.head.packs.iter().map(|pack| ObjectName::Pack(*pack)).collect();
            let head = RemoteHead { packs: Vec::new(), ..self.head.clone() };
            self.put_pack(names, first.first, last.next, head)?;
        }
        Ok(true)
    }

    /// Puts the bytes of these objects there as one, and swaps in a head that names it in place of them.
    fn put_pack(
        &mut self,
        names: Vec<ObjectName>,
        first: u64,
        next: u64,
        mut head: RemoteHead,
    ) -> Result<(), ChainError> {
        let (mut pack, nonce) = (None::<LogRun>, random(&*self.entropy)?);
        let remote = Arc::clone(&self.remote);
        let ahead = AheadRemote::new(&*remote, self.store);
        ahead.expect(names.iter().copied());
        for name in &names {
            let run = required_run(&ahead, self.store, *name);
            if run.is_err() {
                // The next writer may have packed it, and a third one, before it knew of that, put a fence there.
                self.check_mine()?;
            }
            let run = run?;
            let Some(pack) = &mut pack else {
                pack = Some(LogRun { kind: LogRunKind::Pack, epoch: self.epoch, nonce, first, next, ..run });
                continue;
            };
            if pack.behind != run.before {
                let what = "it does not continue the one before".to_owned();
                return Err(ChainError::Unsound { key: self.key(*name), what });
            }
            pack.behind = run.behind;
            pack.bytes.extend_from_slice(&run.bytes);
            check_length("a pack", pack.bytes.len() as u64, RUN_BYTES_MAX)?;
        }
        let Some(pack) = pack else { return Ok(()) };
        let name = PackName { first, next, epoch: self.epoch, nonce };
        head.packs.push(name);
        let key = self.key(ObjectName::Pack(name));
        put_whole(&*self.remote, &key, &pack.encode())?;
        self.swap_head(head, names)
    }

    /// Keeps a complete segment as one object, in place of its chunks and packs, or of the object of a lower generation. The segment is the next one, or one
    /// that is kept already. `behind` is its end.
    ///
    /// # Errors
    /// As [`RemoteChain::append`].
    pub fn complete(
        &mut self,
        number: u32,
        generation: u32,
        bytes: Vec<u8>,
        behind: WrittenPlace,
    ) -> Result<(), ChainError> {
        check_length("a segment", bytes.len() as u64, RUN_BYTES_MAX)?;
        // 0 is no segment; it ends in no place.
        let index = (number as usize).saturating_sub(1);
        let before = self.place_before(number);
        let Some(before) =
            before.filter(|_| index <= self.head.segments.len() && behind.position.segment() == number)
        else {
            let (there, given) =
                (format!("segment {}", self.head.segments.len()), format!("segment {number}"));
            return Err(ChainError::NotNext { there, given });
        };
        let (nonce, digest) = (self.nonce, *blake3::hash(&bytes).as_bytes());
        let name = SegmentName { number, generation, nonce, digest };
        let length = bytes.len() as u64;
        let mut head = self.head.clone();
        let mut tail = self.tail.clone();
        let mut trash = Vec::new();
        let kept = if let Some(former) = head.segments.get_mut(index) {
            if former.behind != behind {
                let (there, given) = (former.behind.position.to_string(), behind.position.to_string());
                return Err(ChainError::NotNext { there, given });
            }
            if (former.name.generation, former.name.digest) == (generation, digest) {
                return Ok(());
            }
            trash.push(ObjectName::Segment(former.name));
            *former = KeptSegment { name, length, ..*former };
            *former
        } else {
            trash.extend(head.packs.drain(..).map(ObjectName::Pack));
            let is_inside = |chunk: &&Accepted| chunk.behind.position.segment() <= number;
            let count = tail.accepted.iter().take_while(is_inside).count();
            let mut floor = head.floor;
            for chunk in tail.accepted.drain(..count) {
                floor = chunk.epoch;
                trash.push(ObjectName::Entry(chunk.number));
            }
            head.place = behind;
            head.boundary = tail.accepted.first().map_or(tail.next, |chunk| chunk.number);
            head.floor = if tail.accepted.is_empty() { tail.epoch } else { floor };
            if tail.place.position < behind.position {
                tail.place = behind;
            }
            let (boundary, floor) = (head.boundary, head.floor);
            tail.first = boundary;
            let kept = KeptSegment { name, length, behind, boundary, floor };
            head.segments.push(kept);
            kept
        };
        let run = self.run(LogRunKind::Segment, before, behind, bytes);
        let run = LogRun { generation, first: kept.floor, next: kept.boundary, ..run };
        put_whole(&*self.remote, &self.key(ObjectName::Segment(name)), &run.encode())?;
        self.swap_head(head, trash)?;
        self.tail = tail;
        Ok(())
    }

    /// Swaps in a head, then deletes what it has no use for.
    fn swap_head(&mut self, head: RemoteHead, trash: Vec<ObjectName>) -> Result<(), ChainError> {
        let head = RemoteHead { nonce: random(&*self.entropy)?, trash, ..head };
        let bytes = head.encode();
        check_length("the head", bytes.len() as u64, HEAD_BYTES_MAX as u64)?;
        let Some(tag) = swap_settled(&*self.remote, &head_key(self.store), &bytes, &self.tag)? else {
            let found = head_of(&*self.remote, self.store)?;
            return Err(ChainError::Fenced { epoch: found.map_or(0, |(head, _)| head.epoch) });
        };
        (self.head, self.tag) = (head, tag);
        Ok(empty_trash(&*self.remote, self.store, &std::mem::take(&mut self.head.trash))?)
    }
}

/// Deletes what the trash of a head names. The list stays there until the next head.
fn empty_trash(remote: &dyn Remote, store: StoreId, names: &[ObjectName]) -> Result<(), RemoteError> {
    at_a_time(remote, names, |name| remote.delete(&name.key(store))).into_iter().collect()
}

fn check_length(what: &str, bytes: u64, limit: u64) -> Result<(), ChainError> {
    if bytes <= limit { Ok(()) } else { Err(ChainError::TooLarge { what: what.to_owned(), bytes, limit }) }
}
