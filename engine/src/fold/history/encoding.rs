//! Rows and totals as they are kept: without the fields that few of them need.
//!
//! ```text
//! Rows   one of 32 bytes each   + the ends of those that have ended
//! Totals one of 16 bytes each while numbers fit, then of 32
//! ```
//!
//! A session of 200,000 calls has 400,000 rows and as many totals, and a fold costs as much as the memory that it touches.
//! Rows are handed out by value, whole. Edges are few beside them.

use std::collections::BTreeMap;

use super::super::number::{Ix, NONE, index};
use super::rows::{Cause, CauseRow, Evicted, ShortenKind, TokenTotal};
use crate::event::Face;
use crate::ids::{Seq, Turn};

/// A row without its ends.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct PackedRow {
    since: Seq,
    ix: Ix,
    turn: Turn,
    prev: u32,
    /// The act, edge or finish that the cause names.
    first: u32,
    second: u32,
    cause: u8,
    /// A further detail of the cause.
    detail: u8,
    face: Face,
    /// `ends` has an entry for the row.
    has_ended: bool,
}

const _: () = assert!(size_of::<PackedRow>() == 32);

/// A cause as its number, a detail, and the two numbers that it holds.
const fn pack(cause: Cause) -> (u8, u8, u32, u32) {
    match cause {
        Cause::Erased { lost } => (0, lost as u8, NONE, 0),
        Cause::OffBranch => (1, 0, NONE, 0),
        Cause::Left => (2, 0, NONE, 0),
        Cause::Cleared { act } => (3, 0, act, 0),
        Cause::Distilled { act, at } => (4, 0, act, at),
        Cause::Evicted { eviction, how, last } => (5, how as u8, eviction, last as u32),
        Cause::Superseded { edge } => (6, 0, edge, 0),
        Cause::Discarded { act, at } => (7, 0, act, at),
        Cause::Shortened { rule, leaves_some } => (8, rule.number(), NONE, leaves_some as u32),
        Cause::Answered { finish } => (9, 0, finish, 0),
        Cause::Revised { revision } => (10, 0, revision, 0),
        Cause::Pinned => (11, 0, NONE, 0),
    }
}

const fn evicted(how: u8) -> Evicted {
    match how {
        0 => Evicted::Output,
        1 => Evicted::Assistant,
        2 => Evicted::Dropped,
        _ => Evicted::Rolling,
    }
}

const fn unpack(cause: u8, detail: u8, first: u32, second: u32) -> Cause {
    match cause {
        0 => Cause::Erased { lost: detail != 0 },
        1 => Cause::OffBranch,
        2 => Cause::Left,
        3 => Cause::Cleared { act: first },
        4 => Cause::Distilled { act: first, at: second },
        5 => Cause::Evicted { eviction: first, how: evicted(detail), last: second != 0 },
        6 => Cause::Superseded { edge: first },
        7 => Cause::Discarded { act: first, at: second },
        8 => Cause::Shortened { rule: ShortenKind::numbered(detail), leaves_some: second != 0 },
        9 => Cause::Answered { finish: first },
        10 => Cause::Revised { revision: first },
        _ => Cause::Pinned,
    }
}

/// Causes of faces, in the order in which they came about.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Causes {
    packed: Vec<PackedRow>,
    /// `until` and `undone` by number.
    #[rkyv(with = rkyv::with::AsVec)]
    ends: BTreeMap<u32, (Seq, Seq)>,
}

impl Causes {
    pub(crate) fn len(&self) -> u32 {
        index(self.packed.len())
    }

    pub(crate) fn push(&mut self, row: &CauseRow) {
        let number = self.len();
        let (cause, detail, first, second) = pack(row.cause);
        let CauseRow { ix, face, since, until, undone, turn, prev, .. } = *row;
        let has_ended = (until, undone) != (Seq::MAX, Seq::MAX);
        if has_ended {
            self.ends.insert(number, (until, undone));
        }
        self.packed.push(PackedRow { since, ix, turn, prev, first, second, cause, detail, face, has_ended });
    }

    fn whole(&self, number: u32, packed: &PackedRow) -> CauseRow {
        let PackedRow { since, ix, turn, prev, first, second, cause, detail, face, has_ended } = *packed;
        let ends = if has_ended { self.ends.get(&number).copied() } else { None };
        let (until, undone) = ends.unwrap_or((Seq::MAX, Seq::MAX));
        CauseRow { ix, face, cause: unpack(cause, detail, first, second), since, until, undone, turn, prev }
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<CauseRow> {
        Some(self.whole(number, self.packed.get(number as usize)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = CauseRow> {
        (0..).zip(&self.packed).map(|(number, packed)| self.whole(number, packed))
    }

    /// Ends a row.
    pub(super) fn end(&mut self, number: u32, until: Seq, undone: Seq) {
        if let Some(packed) = self.packed.get_mut(number as usize) {
            packed.has_ended = true;
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

    fn cause() -> impl Strategy<Value = Cause> {
        (0_u8..12, 0_u8..4, any::<u32>(), any::<u32>())
            .prop_map(|(cause, detail, first, second)| unpack(cause, detail, first, second))
    }

    #[test]
    fn every_cause_is_itself_again() {
        for detail in 0..4 {
            let how = evicted(detail);
            let cause = Cause::Evicted { eviction: 3, how, last: detail == 0 };
            assert_eq!(how as u8, detail);
            let rule = ShortenKind::numbered(detail);
            for cause in [cause, Cause::Shortened { rule, leaves_some: detail == 0 }] {
                let (number, detail, first, second) = pack(cause);
                assert_eq!(unpack(number, detail, first, second), cause);
            }
        }
        let act = Cause::Discarded { act: 1, at: 2 };
        for cause in [
            act,
            Cause::Distilled { act: 1, at: 2 },
            Cause::Cleared { act: 1 },
            Cause::Superseded { edge: 1 },
        ] {
            let (number, detail, first, second) = pack(cause);
            assert_eq!(unpack(number, detail, first, second), cause);
        }
        for cause in [
            Cause::Erased { lost: true },
            Cause::OffBranch,
            Cause::Left,
            Cause::Pinned,
            Cause::Answered { finish: 1 },
        ] {
            let (number, detail, first, second) = pack(cause);
            assert_eq!(unpack(number, detail, first, second), cause);
        }
    }

    proptest! {
        /// A row is read as it was put in.
        #[test]
        fn a_row_is_kept_whole(cause in cause(), ends in prop::option::of((0_u64..9, 0_u64..9)), numbers in any::<[u32; 3]>()) {
            let [ix, turn, prev] = numbers;
            let (until, undone) = ends.map_or((Seq::MAX, Seq::MAX), |(until, undone)| (Seq(until), Seq(undone)));
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
