//! The erasures that the new store will have on record, and whether these are all erasures that there were.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Error;
use crate::ids::{Digest, Position, Seq};
use crate::log::{Log, Shreds};
use crate::verify::{
    ErasedBody, SHREDDED_ROW, SHREDDED_SUBJECT_ROW, recorded_addresses, rows_at, shredded_streams,
};

use super::backups::{Backup, Held, Shortfall};

/// The erasures that the new store will have on record.
pub(super) struct Recorded {
    /// The bodies that the records name, by digest: each body has its own salt, so digests differ. Some may not be zeroed yet; none is copied.
    pub(super) erased: FxHashSet<Digest>,
    /// The streams that the records say are shredded.
    pub(super) shreds: Shreds,
    /// The commits that record zeroed bodies, by the segment of the body.
    commits: FxHashMap<u32, BTreeSet<Seq>>,
    /// For each backup, the last seq up to which it has the history of the store; `None` if the backup has records of erasures behind that seq.
    comparable: Vec<Option<Seq>>,
    /// Of each backup, the seqs of events in records that are about other events than those that the backup has there.
    foreign: Vec<BTreeSet<Seq>>,
    /// An erasure is under way in the store.
    is_pending: bool,
}

impl Recorded {
    /// `records`: of the source.
    pub(super) fn read(
        (source, records): (&Log, Vec<ErasedBody>),
        backups: &[Backup],
        shortfall: &Shortfall,
    ) -> Result<Self, Error> {
        let mut comparable = Vec::with_capacity(backups.len());
        let taken = Held::of(&shortfall.unconfirmed);
        // `None`: of the store itself; else the number of the backup.
        let mut records: Vec<(Option<usize>, ErasedBody)> =
            records.into_iter().map(|record| (None, record)).collect();
        for (number, (backup, confirmed)) in backups.iter().zip(&shortfall.confirmed).enumerate() {
            let last = confirmed.last();
            let theirs = recorded_addresses(&backup.log, Seq::ZERO)?;
            comparable.push(Some(last).filter(|_| theirs.iter().all(|erased| erased.commit <= last)));
            let is_copied = |commit: Seq| confirmed.has(commit) || taken.has(commit);
            let copied = theirs.into_iter().filter(|erased| is_copied(erased.commit));
            records.extend(copied.map(|record| (Some(number), record)));
        }
        // A seq that no link of the store confirms may be another event there.
        let is_shared = |number: Option<usize>, seq: Seq| {
            number.is_none_or(|number| shortfall.confirmed.get(number).is_some_and(|held| held.has(seq)))
        };
        let (mut erased, mut shreds) = (FxHashSet::default(), Shreds::default());
        let mut commits: FxHashMap<u32, BTreeSet<Seq>> = FxHashMap::default();
        let mut foreign = Vec::with_capacity(backups.len());
        let numbered = backups.iter().enumerate().map(|(number, backup)| (Some(number), &backup.log));
        for (number, log) in std::iter::once((None, source)).chain(numbered) {
            let (about, others): (Vec<_>, Vec<_>) = records.iter().partition(|(of, record)| {
                let seq = record.address.seq;
                *of == number || (is_shared(*of, seq) && is_shared(number, seq))
            });
            let about: Vec<ErasedBody> = about.into_iter().map(|(_, record)| record).collect();
            for (row, record) in rows_at(log, &about)?.into_iter().zip(&about) {
                let Some(row) = row else { continue };
                erased.insert(row.digest);
                if record.is_zeroed {
                    commits.entry(row.position.segment()).or_default().insert(record.commit);
                }
            }
            shreds.streams.extend(shredded_streams(log, &about, SHREDDED_ROW)?);
            shreds.with_subjects.extend(shredded_streams(log, &about, SHREDDED_SUBJECT_ROW)?);
            if number.is_some() {
                foreign.push(others.into_iter().map(|(_, record)| record.address.seq).collect());
            }
        }
        Ok(Self {
            erased,
            shreds,
            commits,
            comparable,
            foreign,
            is_pending: source.erasing_after()?.is_some(),
        })
    }

    /// Whether a record names an event in this range that is another one in this backup. In the new store the record would name that other event: it
    /// would pass for erased, or its session for shredded.
    pub(super) fn names_others(&self, backup: usize, first: Seq, last: Seq) -> bool {
        self.foreign.get(backup).is_some_and(|seqs| seqs.range(first..=last).next().is_some())
    }

    /// Whether all erasures in the segment of `place` since the backup are on record, by the segment's count of erasures. `None` if that cannot be
    /// told.
    pub(super) fn is_all(
        &self,
        source: &Log,
        backup: (usize, &Backup),
        place: Position,
    ) -> Result<Option<bool>, Error> {
        let (number, backup) = backup;
        let Some(after) = self.comparable.get(number).copied().flatten().filter(|_| !self.is_pending) else {
            return Ok(None);
        };
        let (Some(here), Some(there)) = (source.erasure_count(place)?, backup.log.erasure_count(place)?)
        else {
            return Ok(None);
        };
        let since = self.commits.get(&place.segment()).map(|commits| commits.range(after.next()..).count());
        // A segment without records has none since the backup.
        let known = u64::from(there) + since.unwrap_or_default() as u64;
        Ok(Some(u64::from(here) <= known))
    }
}
