//! The erasures that the store which is made will have on record, and whether they are all that there were.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Error;
use crate::ids::{Digest, Position, Seq};
use crate::log::{Log, Shreds};
use crate::verify::{SHREDDED_ROW, SHREDDED_SUBJECT_ROW, recorded_addresses, rows_at, shredded_streams};

use super::backups::{Backup, Held, Shortfall};

/// The erasures that the new store will have on record.
pub(super) struct Recorded {
    /// The bodies that they name, by digest: each body has a salt of its own, so no other one has it. Some may not be zeroed yet; none is copied.
    pub(super) erased: FxHashSet<Digest>,
    /// The streams that they say are shredded.
    pub(super) shreds: Shreds,
    /// The commits that record them, by the segment in which something was zeroed.
    commits: FxHashMap<u32, BTreeSet<Seq>>,
    /// Of each backup, the last seq up to which it has the history of the store; none if it has erasures behind it.
    comparable: Vec<Option<Seq>>,
    /// An erasure is under way in the store.
    is_pending: bool,
}

impl Recorded {
    pub(super) fn read(source: &Log, backups: &[Backup], shortfall: &Shortfall) -> Result<Self, Error> {
        let mut records = recorded_addresses(source, Seq::ZERO)?;
        let mut comparable = Vec::with_capacity(backups.len());
        let taken = Held::of(&shortfall.unconfirmed);
        for (backup, confirmed) in backups.iter().zip(&shortfall.confirmed) {
            let last = confirmed.last();
            let theirs = recorded_addresses(&backup.log, Seq::ZERO)?;
            comparable.push(Some(last).filter(|_| theirs.iter().all(|erased| erased.commit <= last)));
            let is_copied = |commit: Seq| confirmed.has(commit) || taken.has(commit);
            records.extend(theirs.into_iter().filter(|erased| is_copied(erased.commit)));
        }
        let (mut erased, mut shreds) = (FxHashSet::default(), Shreds::default());
        let mut commits: FxHashMap<u32, BTreeSet<Seq>> = FxHashMap::default();
        for log in std::iter::once(source).chain(backups.iter().map(|backup| &backup.log)) {
            for (row, record) in rows_at(log, &records)?.into_iter().zip(&records) {
                let Some(row) = row else { continue };
                erased.insert(row.digest);
                if record.is_zeroed {
                    commits.entry(row.position.segment()).or_default().insert(record.commit);
                }
            }
            shreds.streams.extend(shredded_streams(log, &records, SHREDDED_ROW)?);
            shreds.with_subjects.extend(shredded_streams(log, &records, SHREDDED_SUBJECT_ROW)?);
        }
        Ok(Self { erased, shreds, commits, comparable, is_pending: source.erasing_after()?.is_some() })
    }

    /// Whether all that was erased in a segment since a backup is on record: the segment counts. `None` if that cannot be told.
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
        // None is on record.
        let known = u64::from(there) + since.unwrap_or_default() as u64;
        Ok(Some(u64::from(here) <= known))
    }
}
