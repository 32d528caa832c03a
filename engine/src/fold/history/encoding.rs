//! Rows and totals as they are kept: without the fields that few of them need.
//!
//! ```text
//! Rows   one of 40 bytes each   + the ends of those that have ended
//! Totals one of 16 bytes each while numbers fit, then of 32
//! ```
//!
//! A session of 200,000 calls has 400,000 rows and as many totals, and a fold costs as much as the memory that it touches.
//! Rows are handed out by value, whole. Edges are few beside them.

use std::collections::BTreeMap;

use super::super::number::{Ix, NONE, index};
use super::rows::{Cause, CauseRow, TokenTotal};
use crate::event::Face;
use crate::ids::{Seq, Turn};

/// A row without its ends.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct KeptCause {
    since: Seq,
    ix: Ix,
    turn: Turn,
    prev: u32,
    cause: Cause,
    face: Face,
    /// `ends` has an entry for the row.
    has_ended: bool,
}

const _: () = assert!(size_of::<KeptCause>() == 40);

/// Causes of faces, in the order in which they came about.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Causes {
    kept: Vec<KeptCause>,
    /// `until` and `undone` by number.
    #[rkyv(with = rkyv::with::AsVec)]
    ends: BTreeMap<u32, (Seq, Seq)>,
}

impl Causes {
    pub(crate) fn len(&self) -> u32 {
        index(self.kept.len())
    }

    pub(crate) fn push(&mut self, row: &CauseRow) {
        let CauseRow { ix, face, cause, since, until, undone, turn, prev } = *row;
        let has_ended = (until, undone) != (Seq::MAX, Seq::MAX);
        if has_ended {
            self.ends.insert(self.len(), (until, undone));
        }
        self.kept.push(KeptCause { since, ix, turn, prev, cause, face, has_ended });
    }

    fn whole(&self, number: u32, kept: &KeptCause) -> CauseRow {
        let KeptCause { since, ix, turn, prev, cause, face, has_ended } = *kept;
        let ends = if has_ended { self.ends.get(&number).copied() } else { None };
        let (until, undone) = ends.unwrap_or((Seq::MAX, Seq::MAX));
        CauseRow { ix, face, cause, since, until, undone, turn, prev }
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<CauseRow> {
        Some(self.whole(number, self.kept.get(number as usize)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = CauseRow> {
        (0..).zip(&self.kept).map(|(number, kept)| self.whole(number, kept))
    }

    /// Ends a row.
    pub(super) fn end(&mut self, number: u32, until: Seq, undone: Seq) {
        if let Some(kept) = self.kept.get_mut(number as usize) {
            kept.has_ended = true;
            self.ends.insert(number, (until, undone));
        }
    }
}

/// Tokens after each event that changed any.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Totals {
    /// Seq, whole, shown and recorded, as long as all of them fit.
    small: Vec<[u32; 4]>,
    large: Vec<TokenTotal>,
}

const fn total([seq, whole, shown, recorded]: [u32; 4]) -> TokenTotal {
    TokenTotal { seq: Seq(seq as u64), whole: whole as u64, shown: shown as u64, recorded: recorded as u64 }
}

impl Totals {
    pub(crate) fn push(&mut self, total: TokenTotal) {
        let TokenTotal { seq, whole, shown, recorded } = total;
        let small = [seq.0, whole, shown, recorded].map(|number| u32::try_from(number).unwrap_or(NONE));
        if self.large.is_empty() && !small.contains(&NONE) {
            self.small.push(small);
        } else {
            self.large.push(total);
        }
    }

    /// The last total, or a total of zero.
    pub(crate) fn last(&self) -> TokenTotal {
        let small = || self.small.last().map(|numbers| total(*numbers));
        self.large.last().copied().or_else(small).unwrap_or_default()
    }

    /// The last total up to `at`, or a total of zero.
    pub(crate) fn at(&self, at: Seq) -> TokenTotal {
        let count = self.large.partition_point(|total| total.seq <= at);
        if let Some(found) = count.checked_sub(1).and_then(|last| self.large.get(last)) {
            return *found;
        }
        let count = self.small.partition_point(|[seq, ..]| u64::from(*seq) <= at.0);
        let found = count.checked_sub(1).and_then(|last| self.small.get(last));
        found.map_or_else(TokenTotal::default, |numbers| total(*numbers))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A row is read as it was put in.
        #[test]
        fn a_row_is_kept_whole(act: u32, ends in prop::option::of((0_u64..9, 0_u64..9)), numbers in any::<[u32; 3]>()) {
            let [ix, turn, prev] = numbers;
            let (until, undone) = ends.map_or((Seq::MAX, Seq::MAX), |(until, undone)| (Seq(until), Seq(undone)));
            let cause = Cause::Discarded { act, at: 7 };
            let row = CauseRow { ix: Ix(ix), face: Face::Input, cause, since: Seq(5), until, undone, turn: Turn(turn), prev };
            let mut rows = Causes::default();
            rows.push(&CauseRow { until: Seq::MAX, ..row });
            rows.push(&row);
            prop_assert_eq!(format!("{:?}", rows.get(1)), format!("{:?}", Some(row)));
            rows.end(0, until, undone);
            prop_assert_eq!(format!("{:?}", rows.get(0)), format!("{:?}", Some(row)));
        }

        /// Numbers that do not fit into small ones change nothing but the room they take.
        #[test]
        fn totals_are_found_whatever_their_size(steps in prop::collection::vec((1_u64..4, any::<bool>()), 0..12), at in 0_u64..30) {
            let (mut totals, mut all, mut seq) = (Totals::default(), vec![TokenTotal::default()], 0);
            for (step, is_large) in steps {
                seq += step;
                let whole = if is_large { u64::from(u32::MAX) + seq } else { seq };
                let total = TokenTotal { seq: Seq(seq), whole, shown: 2, recorded: 3 };
                totals.push(total);
                all.push(total);
            }
            prop_assert_eq!(Some(&totals.last()), all.last());
            prop_assert_eq!(Some(&totals.at(Seq(at))), all.iter().rfind(|total| total.seq.0 <= at));
        }
    }
}
