//! Backups of the store that is salvaged: events and texts that damage took and a backup has go back to their places.
//!
//! ```text
//! another store          -> refused: its seqs mean other events
//! another history        -> refused: at a place where the log names a link, the backup has another one
//! events that are lost   -> the backup's events with these seqs
//! a text that is lost    -> the backup's bytes, if they have the digest that the damaged store names
//! ```
//!
//! A link confirms its commit and every commit before it. The store names links in three places: in headers of frames, also damaged ones, each with
//! the link before it; in headers of segments; and in its witnesses. So events of the backup up to such a place are confirmed. Events behind the last
//! such place may come from a copy that was written to by itself: they are taken, and named as unconfirmed.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::path::PathBuf;
use std::sync::Arc;

use crate::codec::{BodyRow, FrameCheck, FrameHeader};
use crate::error::Error;
use crate::ids::{Link, Seq, StoreId, StreamId};
use crate::log::{Head, Log, LogError, LogReport, Opening, Standing, Stretch, Stretches, Witness};
use crate::storage::Storage;

/// A backup that is open for reading.
pub(super) struct Backup {
    pub(super) log: Log,
    pub(super) head: Head,
    /// Streams that the store has on record as shredded.
    shredded: BTreeSet<StreamId>,
}

impl Backup {
    /// Opens all backups. If the store that is salvaged has lost its id, all backups have to be of one store.
    pub(super) fn open_all(
        storages: Vec<Arc<dyn Storage>>,
        source: &Log,
        opening: &Opening,
        shredded: &BTreeSet<StreamId>,
    ) -> Result<Vec<Self>, Error> {
        let mut backups: Vec<Self> = Vec::with_capacity(storages.len());
        for storage in storages {
            let known = backups.first().map_or(source.store(), |backup| backup.log.store());
            let log = opened(storage, known, source.is_encrypted(), opening)?;
            let head = log.refresh()?;
            backups.push(Self { log, head, shredded: shredded.clone() });
        }
        Ok(backups)
    }

    fn path(&self) -> PathBuf {
        self.log.storage().path("")
    }

    /// The backup's frames from `from` on; whole frames are checked by their digests.
    pub(super) fn stretches(&self, from: Seq) -> Result<Stretches<'_>, LogError> {
        self.log.stretches(from, self.head, FrameCheck::Digest, &self.shredded)
    }

    /// The bytes of a body, if the backup has them: a body has the same position in the store and the backup.
    pub(super) fn body(&self, lost: &BodyRow) -> Result<Option<Vec<u8>>, LogError> {
        if lost.position >= self.head.position {
            return Ok(None);
        }
        match self.log.body(lost) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(LogError::Corrupt(_) | LogError::Erased { .. } | LogError::Locked { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The log of a backup, which has to be of this store.
fn opened(
    storage: Arc<dyn Storage>,
    store: StoreId,
    is_encrypted: bool,
    opening: &Opening,
) -> Result<Log, Error> {
    let path = storage.path("");
    // Opens without a key at first: the key would not fit a backup of another store.
    let mut log = Log::open_to_read(Arc::clone(&storage), &Opening::default())?;
    if store != StoreId::ZERO && log.store() != store {
        return Err(refused(path, format!("it holds store {}, not {store}", log.store())));
    }
    match (log.is_encrypted(), is_encrypted) {
        (true, false) => {
            return Err(refused(path, "it is encrypted, and the damaged store is not".to_owned()));
        }
        (false, true) => {
            return Err(refused(path, "it is not encrypted, and the damaged store is".to_owned()));
        }
        (true, true) => log = Log::open_to_read(storage, opening)?,
        (false, false) => {}
    }
    Ok(log)
}

fn refused(path: PathBuf, why: String) -> Error {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
    Error::Io { action: "salvage with the backup in", path, source }
}

/// The events that the new store will lack, or may have wrong. Found before anything is copied.
pub(super) struct Shortfall {
    /// For each backup, the seqs that links of the store confirm.
    pub(super) confirmed: Vec<Held>,
    /// Events that neither the store nor a backup has, as ranges of seqs, in order.
    pub(super) lost: Vec<(Seq, Seq)>,
    /// Events of backups that no link of the store confirms, as ranges of seqs, in order.
    pub(super) unconfirmed: Vec<(Seq, Seq)>,
    /// Witnesses that contradict the store and that no backup bears out.
    pub(super) contradicting: Vec<Witness>,
    /// Streams of which an event in the store or in a backup did not open.
    pub(super) locked: BTreeSet<StreamId>,
}

/// Goes through the store and its backups, side by side.
///
/// # Errors
/// [`Error::Io`] if a backup has another history than the store.
pub(super) fn shortfall(
    source: &Log,
    until: Head,
    backups: &[Backup],
    (found, end): (&LogReport, Seq),
    shredded: &BTreeSet<StreamId>,
) -> Result<Shortfall, Error> {
    let mut beside = Vec::with_capacity(backups.len());
    for backup in backups {
        beside.push(Beside::new(backup)?);
    }
    let mut told = told_by(&found.witnesses).into_iter().peekable();
    let (mut here, mut locked) = (Held::default(), BTreeSet::new());
    for stretch in source.stretches(Seq(1), until, FrameCheck::Checksum, shredded)? {
        let Stretch { header, parts, locked: streams, .. } = stretch?;
        locked.extend(streams);
        for own in [Named::by_log(header.first_seq.before(), header.previous), Named::by(&header)] {
            while let Some(named) = told.next_if(|named| named.seq <= own.seq) {
                beside.iter_mut().try_for_each(|beside| beside.pass(&named))?;
            }
            beside.iter_mut().try_for_each(|beside| beside.pass(&own))?;
        }
        for part in parts {
            here.add(part.first_seq(), part.last_seq());
        }
    }
    for named in told {
        beside.iter_mut().try_for_each(|beside| beside.pass(&named))?;
    }
    let mut contradicting: Vec<Witness> =
        found.witnesses.iter().filter(|witness| is_contradiction(witness)).cloned().collect();
    let (mut held, mut confirmed) = (Vec::new(), Vec::new());
    for beside in beside {
        let mut kept = Vec::with_capacity(contradicting.len());
        for witness in contradicting {
            if !beside.backup.bears_out(&witness)? {
                kept.push(witness);
            }
        }
        contradicting = kept;
        let (all, sure) = beside.finish(&mut locked)?;
        confirmed.push(Held { ranges: all.within(&sure.ranges) });
        held.push(all);
    }
    let mut lost = here.taken_from(&[(Seq(1), end)]);
    for confirmed in &confirmed {
        lost = confirmed.taken_from(&lost);
    }
    let mut unconfirmed = Vec::new();
    for held in &held {
        unconfirmed.extend(held.within(&lost));
        lost = held.taken_from(&lost);
    }
    unconfirmed.sort_unstable();
    Ok(Shortfall { confirmed, lost, unconfirmed, contradicting, locked })
}

/// A place whose link the store names: the last event of a commit.
struct Named {
    seq: Seq,
    link: Link,
    /// Whether the log itself names the link. A file beside the log may be of another time: it can confirm a backup, and never refuses one.
    is_of_the_log: bool,
}

impl Named {
    fn by_log(seq: Seq, link: Link) -> Self {
        Self { seq, link, is_of_the_log: true }
    }

    fn by(header: &FrameHeader) -> Self {
        Self::by_log(header.last_seq(), header.link())
    }
}

/// The places that witnesses name, in order. Witnesses that the log contradicts are left out.
fn told_by(witnesses: &[Witness]) -> Vec<Named> {
    let named = |witness: &Witness| {
        let is_of_the_log = witness.kind.is_of_the_log();
        let is_asked =
            (is_of_the_log || witness.kind.is_kept_apart()) && witness.standing != Standing::Forked;
        let (seq, link) = witness.acknowledged().zip(witness.link).filter(|_| is_asked)?;
        Some(Named { seq, link, is_of_the_log })
    };
    let mut told: Vec<Named> = witnesses.iter().filter_map(named).collect();
    told.sort_by_key(|named| named.seq);
    told
}

/// A backup on a walk beside the store.
struct Beside<'a> {
    backup: &'a Backup,
    stretches: Peekable<Stretches<'a>>,
    held: Held,
    /// Runs of commits, each of which names the link of the commit before.
    runs: Vec<Run>,
    locked: BTreeSet<StreamId>,
}

struct Run {
    first: Seq,
    /// The header of the run's last commit.
    last: FrameHeader,
    /// The last event that a link of the store confirms; all events of the run before it are confirmed too.
    confirmed: Option<Seq>,
    /// A place, behind all confirmed ones, for which the store names another link.
    other: Option<Seq>,
}

impl<'a> Beside<'a> {
    fn new(backup: &'a Backup) -> Result<Self, Error> {
        let stretches = backup.stretches(Seq(1))?.peekable();
        Ok(Self { backup, stretches, held: Held::default(), runs: Vec::new(), locked: BTreeSet::new() })
    }

    /// Goes on up to a place, and compares.
    fn pass(&mut self, named: &Named) -> Result<(), Error> {
        let is_due = |stretch: &Result<Stretch, LogError>| {
            stretch.as_ref().map_or(true, |stretch| stretch.header.first_seq <= named.seq)
        };
        while let Some(stretch) = self.stretches.next_if(is_due) {
            self.take(&stretch?);
        }
        // The store may name a place before the run's last commit, and a backup may have a gap there.
        let is_there = |run: &&mut Run| named.seq >= run.last.first_seq && named.seq <= run.last.last_seq();
        let Some(run) = self.runs.last_mut().filter(is_there) else { return Ok(()) };
        if run.last.link() == named.link {
            run.confirmed = Some(run.last.last_seq());
            // The link confirms all before it, so the store's other link was wrong itself.
            run.other = None;
        } else if named.is_of_the_log {
            run.other = run.other.or(Some(named.seq));
        }
        Ok(())
    }

    fn take(&mut self, stretch: &Stretch) {
        self.locked.extend(&stretch.locked);
        let header = stretch.header;
        match self.runs.last_mut() {
            Some(run) if run.last.link() == header.previous => run.last = header,
            _ => {
                self.runs.push(Run { first: header.first_seq, last: header, confirmed: None, other: None });
            }
        }
        for part in &stretch.parts {
            self.held.add(part.first_seq(), part.last_seq());
        }
    }

    /// The seqs that the backup has, and the confirmed ones.
    fn finish(mut self, locked: &mut BTreeSet<StreamId>) -> Result<(Held, Held), Error> {
        while let Some(stretch) = self.stretches.next() {
            self.take(&stretch?);
        }
        locked.append(&mut self.locked);
        let mut confirmed = Held::default();
        for run in &self.runs {
            if let Some(seq) = run.other {
                let why = format!("it has another history than the store, up to {seq} at the latest");
                return Err(refused(self.backup.path(), why));
            }
            if let Some(last) = run.confirmed {
                confirmed.add(run.first, last);
            }
        }
        Ok((self.held, confirmed))
    }
}

impl Backup {
    /// Whether the backup has the event that a contradicting witness names: the store may have lost that event.
    fn bears_out(&self, witness: &Witness) -> Result<bool, Error> {
        let Some(seq) = witness.seq else { return Ok(false) };
        match self.log.locate(seq) {
            Ok(Some(frame)) => Ok(match witness.link {
                Some(link) => frame.header().link() == link,
                None => witness.standing == Standing::Ahead,
            }),
            Ok(None) | Err(LogError::Corrupt(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a witness of the log, or one that is kept apart, contradicts the log. The map of a segment does not count: it is a cache.
fn is_contradiction(witness: &Witness) -> bool {
    witness.contradicts() && (witness.kind.is_of_the_log() || witness.kind.is_kept_apart())
}

/// Seqs of events, as ranges in order.
#[derive(Default)]
pub(super) struct Held {
    ranges: Vec<(Seq, Seq)>,
}

impl Held {
    /// Adds a range. Calls come in the order of the log.
    fn add(&mut self, first: Seq, last: Seq) {
        match self.ranges.last_mut() {
            Some((_, before)) if before.next() >= first => *before = last.max(*before),
            _ => self.ranges.push((first, last)),
        }
    }

    pub(super) fn of(ranges: &[(Seq, Seq)]) -> Self {
        Self { ranges: ranges.to_vec() }
    }

    pub(super) fn has(&self, seq: Seq) -> bool {
        !self.within(&[(seq, seq)]).is_empty()
    }

    pub(super) fn last(&self) -> Seq {
        self.ranges.last().map_or(Seq::ZERO, |(_, last)| *last)
    }

    /// The seqs of `ranges` that are also here.
    pub(super) fn within(&self, ranges: &[(Seq, Seq)]) -> Vec<(Seq, Seq)> {
        let mut both = Vec::new();
        for &(first, last) in ranges {
            let begins = self.ranges.partition_point(|(_, held)| *held < first);
            for &(from, to) in self.ranges.iter().skip(begins).take_while(|(from, _)| *from <= last) {
                both.push((from.max(first), to.min(last)));
            }
        }
        both
    }

    /// The seqs of some ranges that are not here.
    pub(super) fn taken_from(&self, ranges: &[(Seq, Seq)]) -> Vec<(Seq, Seq)> {
        let mut left = Vec::new();
        for &(first, last) in ranges {
            let mut next = first;
            let begins = self.ranges.partition_point(|(_, held)| *held < first);
            for &(from, to) in self.ranges.iter().skip(begins).take_while(|(from, _)| *from <= last) {
                if from > next {
                    left.push((next, from.before()));
                }
                next = next.max(to.next());
            }
            if next <= last {
                left.push((next, last));
            }
        }
        left
    }
}
