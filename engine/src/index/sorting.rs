//! Rows put into the order of their keys, many at a time and close together: a rebuild fills a table from them.
//!
//! ```text
//! put(key, value) -> bytes, one after the other          each row: start of its key, where it is
//!                                  sort, the newest of equal keys stays -> each(key, value)
//! ```
//!
//! A map of byte vectors takes three times the memory, and most of a rebuild's time to make.

/// Rows that are being collected.
#[derive(Debug, Default)]
pub(super) struct Sorting {
    bytes: Vec<u8>,
    rows: Vec<Place>,
}

/// A row's place in the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    /// The first bytes of the key, so that most comparisons look no further.
    start: u64,
    offset: u32,
    key_bytes: u16,
    value_bytes: u16,
}

impl Sorting {
    /// How many bytes its rows take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len().saturating_add(self.rows.len().saturating_mul(size_of::<Place>()))
    }

    /// Takes a row, whose key is not empty. An earlier row of the same key is forgotten.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        let mut start = [0; 8];
        start.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        // Rows are short; their makers bound them. The proof would miss a row that does not fit.
        let fits = |length| u16::try_from(length).ok();
        let (Some(key_bytes), Some(value_bytes)) = (fits(key.len()), fits(value.len())) else { return };
        let Ok(offset) = u32::try_from(self.bytes.len()) else { return };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.rows.push(Place { start: u64::from_be_bytes(start), offset, key_bytes, value_bytes });
    }

    /// Gives all rows in the order of their keys, each key once, and is empty afterwards.
    pub(super) fn drain<E>(&mut self, mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
        let bytes = &self.bytes;
        let row = |place: &Place| {
            let rest = bytes.get(place.offset as usize..).unwrap_or_default();
            // Places were taken as the bytes were put in, so they are within.
            let (key, rest) = rest.split_at_checked(place.key_bytes.into()).unwrap_or_default();
            (key, rest.get(..place.value_bytes.into()).unwrap_or_default())
        };
        self.rows.sort_unstable_by(|left, right| {
            let by_start = left.start.cmp(&right.start);
            by_start.then_with(|| row(left).0.cmp(row(right).0)).then(left.offset.cmp(&right.offset))
        });
        let mut rows = self.rows.iter().map(row).peekable();
        while let Some((key, value)) = rows.next() {
            if rows.peek().is_none_or(|next| next.0 != key) {
                each(key, value)?;
            }
        }
        self.bytes.clear();
        self.rows.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_as_from_a_map(rows in prop::collection::vec(("[\0ab]{1,12}", "[xyz]{0,3}"), 0..60)) {
            let mut map = BTreeMap::new();
            let mut sorting = Sorting::default();
            for (key, value) in &rows {
                map.insert(key.as_bytes().to_vec(), value.as_bytes().to_vec());
                sorting.put(key.as_bytes(), value.as_bytes());
            }
            let mut found = Vec::new();
            let Ok(()) = sorting.drain(|key, value| {
                found.push((key.to_vec(), value.to_vec()));
                Ok::<(), Infallible>(())
            });
            prop_assert_eq!(found, map.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(sorting.bytes(), 0);
        }
    }
}
