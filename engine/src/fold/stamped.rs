//! Lists whose entries are stamped with seqs that rise: the past is the beginning of a list.

use crate::ids::Seq;

/// The entries up to `at`.
pub(crate) fn until<T>(list: &[T], at: Seq, seq: impl Fn(&T) -> Seq) -> &[T] {
    list.get(..list.partition_point(|entry| seq(entry) <= at)).unwrap_or_default()
}

/// The last entry up to `at`.
pub(crate) fn last_until<T>(list: &[T], at: Seq, seq: impl Fn(&T) -> Seq) -> Option<&T> {
    until(list, at, seq).last()
}
