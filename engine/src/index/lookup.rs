//! The questions, answered from sorted rows; one code for redb and for memory.

use crate::ids::{Digest, Seq};

use super::layout::{IndexFault, NameKey};
use super::{NameEntry, NameKind};

/// Sees a row; says whether to go on.
pub(super) type Visit<'v> = &'v mut dyn FnMut(&NameKey, Seq) -> Result<bool, IndexFault>;

/// Rows of names in the order of their keys, frozen.
pub(super) trait NameRows {
    /// Visits rows from `from` on, ascending.
    fn scan(&self, from: &NameKey, visit: Visit<'_>) -> Result<(), IndexFault>;
}

/// Visits all rows.
pub(super) fn each(rows: &dyn NameRows, mut visit: impl FnMut(&NameKey, Seq)) -> Result<(), IndexFault> {
    let first = NameKey::of(0, &[], crate::ids::StreamId([0; 16]));
    rows.scan(&first, &mut |key, seq| {
        visit(key, seq);
        Ok(true)
    })
}

/// The streams that know a name, and the seq at which each last used it.
pub(super) fn names(
    rows: &dyn NameRows,
    kind: NameKind,
    text: &str,
    prefix: bool,
    limit: usize,
) -> Result<Vec<NameEntry>, IndexFault> {
    let whole = NameKey::new(kind, text, crate::ids::StreamId([0; 16]));
    let from = if prefix { NameKey::before(kind, text) } else { whole };
    let mut found = Vec::new();
    rows.scan(&from, &mut |key, seq| {
        let is_meant = if prefix { key.begins_with(&from) } else { key.kept() == whole.kept() };
        if !is_meant || key.kind != from.kind || found.len() >= limit {
            return Ok(false);
        }
        if !prefix || key.may_begin(text) {
            found.push(NameEntry { stream: key.stream, seq });
        }
        Ok(true)
    })?;
    Ok(found)
}

/// Digest over all rows in order, and their tally.
pub(super) fn summary(rows: &dyn NameRows) -> Result<(Digest, RowDigest), IndexFault> {
    let mut hasher = blake3::Hasher::new_derive_key("acpdb 2026 index rows v2");
    let mut tally = RowDigest::default();
    each(rows, |key, seq| {
        tally.add(key, seq);
        hasher.update(&row_digest(key, seq));
    })?;
    Ok((Digest(*hasher.finalize().as_bytes()), tally))
}

fn row_digest(key: &NameKey, seq: Seq) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let length = u8::try_from(key.kept().len()).unwrap_or_default();
    hasher.update(&[key.kind, length]).update(key.kept()).update(key.stream.as_bytes());
    *hasher.update(&seq.0.to_le_bytes()).finalize().as_bytes()
}

/// A digest of rows that does not depend on their order and can be kept while rows are put in and replaced: the sum of
/// the digests of each. It finds accidents; a forger that chooses rows could make two sums equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RowDigest {
    count: u64,
    sums: [u64; 4],
}

impl RowDigest {
    /// How many rows it counts.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn add(&mut self, key: &NameKey, seq: Seq) {
        self.count = self.count.wrapping_add(1);
        self.sum(key, seq, u64::wrapping_add);
    }

    pub(super) fn take_away(&mut self, key: &NameKey, seq: Seq) {
        self.count = self.count.wrapping_sub(1);
        self.sum(key, seq, u64::wrapping_sub);
    }

    fn sum(&mut self, key: &NameKey, seq: Seq, with: fn(u64, u64) -> u64) {
        let digest = row_digest(key, seq);
        let (words, _) = digest.as_chunks::<8>();
        for (sum, word) in self.sums.iter_mut().zip(words) {
            *sum = with(*sum, u64::from_le_bytes(*word));
        }
    }
}
