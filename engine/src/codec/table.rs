//! Tables of fixed rows in a file: found by halving, checked page by page.
//!
//! ```text
//! page 0: up to 64 rows, checksum | page 1 .. | fence: first 8 bytes of each page, checksum
//! ```
//!
//! Rows rise by their first bytes. A reader keeps the fence in memory and reads one page for a look-up.

use super::fields::trailing_checksum;

/// Rows of a whole page.
pub(crate) const PAGE_ROW_COUNT: usize = 64;
/// The fence's entry for a page: the beginning of its first row.
pub(crate) const FENCE_KEY_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 4;

/// Where the parts of a table are, from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableShape {
    /// Bytes of a row, at least [`FENCE_KEY_BYTES`].
    pub(crate) row_bytes: usize,
    /// How many rows.
    pub(crate) row_count: u32,
}

impl TableShape {
    pub(crate) fn new(row_bytes: usize, row_count: u32) -> Self {
        Self { row_bytes, row_count }
    }

    pub(crate) fn page_count(self) -> usize {
        (self.row_count as usize).div_ceil(PAGE_ROW_COUNT)
    }

    fn full_page_bytes(self) -> usize {
        self.row_bytes.saturating_mul(PAGE_ROW_COUNT).saturating_add(CHECKSUM_BYTES)
    }

    /// How many rows page `page` has.
    pub(crate) fn rows_of(self, page: usize) -> usize {
        let before = page.saturating_mul(PAGE_ROW_COUNT);
        // A page past the last row has none.
        (self.row_count as usize).saturating_sub(before).min(PAGE_ROW_COUNT)
    }

    /// Offset and length of a page with its checksum.
    pub(crate) fn page(self, page: usize) -> (u64, usize) {
        let offset = page.saturating_mul(self.full_page_bytes());
        let bytes = self.rows_of(page).saturating_mul(self.row_bytes).saturating_add(CHECKSUM_BYTES);
        (offset as u64, bytes)
    }

    fn pages_bytes(self) -> u64 {
        let rows = u64::from(self.row_count).saturating_mul(self.row_bytes as u64);
        rows.saturating_add((self.page_count() as u64).saturating_mul(CHECKSUM_BYTES as u64))
    }

    /// Offset and length of the fence.
    pub(crate) fn fence(self) -> (u64, usize) {
        let keys = self.page_count().saturating_mul(FENCE_KEY_BYTES);
        (self.pages_bytes(), keys.saturating_add(CHECKSUM_BYTES))
    }

    /// Length of the whole table; one without rows takes no space.
    pub(crate) fn bytes(self) -> u64 {
        if self.row_count == 0 {
            return 0;
        }
        let (offset, bytes) = self.fence();
        offset.saturating_add(bytes as u64)
    }
}

fn put_checked(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
}

/// A whole table. `rows` are its rows, one after the other.
pub(crate) fn encode_table(row_bytes: usize, rows: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len().saturating_add(rows.len() / 64).saturating_add(4096));
    let mut fence = Vec::new();
    if rows.is_empty() || row_bytes == 0 {
        return out;
    }
    for page in rows.chunks(row_bytes.saturating_mul(PAGE_ROW_COUNT)) {
        fence.extend_from_slice(page.get(..FENCE_KEY_BYTES).unwrap_or(page));
        put_checked(&mut out, page);
    }
    put_checked(&mut out, &fence);
    out
}

/// Bytes that end in their own checksum, without it; `None` if it does not match.
pub(crate) fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (computed, stored) = trailing_checksum(bytes);
    (bytes.len() >= CHECKSUM_BYTES && computed == stored).then(|| {
        let end = bytes.len() - CHECKSUM_BYTES;
        bytes.get(..end).unwrap_or(&[])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_length_that_its_shape_says() {
        for count in [0_u32, 1, 63, 64, 65, 128, 1000] {
            let rows: Vec<u8> =
                (0..count).flat_map(|row| [u64::from(row).to_le_bytes(), [7; 8]].concat()).collect();
            let bytes = encode_table(16, &rows);
            let shape = TableShape::new(16, count);
            assert_eq!(bytes.len() as u64, shape.bytes(), "{count}");
            for page in 0..shape.page_count() {
                let (offset, length) = shape.page(page);
                let start = usize::try_from(offset).unwrap();
                let found = checked(&bytes[start..start + length]).unwrap();
                assert_eq!(found, &rows[page * 1024..][..shape.rows_of(page) * 16], "{count} {page}");
            }
            if count > 0 {
                let (offset, length) = shape.fence();
                let start = usize::try_from(offset).unwrap();
                assert_eq!(checked(&bytes[start..start + length]).unwrap().len(), shape.page_count() * 8);
            }
        }
    }
}
