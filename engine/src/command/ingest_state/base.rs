//! The facts of a saved ingest state: rows of fixed length in pages, looked up where they lie.
//!
//! ```text
//! row    48: origin 16, seq 8, revision 8, item 8, parts 4, flags 4 (1: has a wire form)      rising by origin
//! page   64 rows, the last fewer
//! fence  of each page: its first origin 16, its digest 16                                      kept in memory
//! ```
//!
//! Restoring reads the fence; a look-up reads the one page that may have the row; nothing is made of the rest. A caller that
//! asks for many rows gets the pages beside theirs read along. A page whose digest is not the fence's breaks the whole base:
//! from then on no row is found in it, and the caller has to say so.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::ids::{Origin, Seq};

use super::Seen;

/// Reads so many bytes of the rows, from an offset on; `None` or other bytes if they cannot be read.
pub(crate) type ReadRows = Box<dyn Fn(u64, usize) -> Option<Vec<u8>> + Send + Sync>;

/// Bytes of a row.
pub(super) const ROW_BYTES: usize = 48;
/// Rows of a page.
pub(super) const PAGE_ROW_COUNT: usize = 64;
const PAGE_BYTES: usize = ROW_BYTES * PAGE_ROW_COUNT;
/// Bytes of the fence for each page.
pub(super) const POST_BYTES: usize = 32;
/// Pages that are read at a time when all pages are read.
const PIECE_PAGE_COUNT: usize = 128;
/// Pages are read one by one until this share of all pages, and at least this number, were asked for. Then pages are read in groups of
/// this size: a caller that asks for a quarter goes on to ask for nearly all. Other callers pay only for the rows that they ask for.
const SINGLE_SHARE: usize = 4;
const SINGLE_PAGE_COUNT_MIN: usize = 32;
const GROUP_PAGE_COUNT: usize = 16;
const HAS_WIRE: u32 = 1;
/// More parts than any event can have: each part takes some of its bytes. A row that tells of more is not from an ingest state.
pub(super) const PART_COUNT_MAX: u32 = 1 << 16;

type Row = [u8; ROW_BYTES];
/// A page's first origin and digest.
pub(super) type Post = [u8; POST_BYTES];

/// Rows that were saved.
pub(super) struct Base {
    /// The first origin of each page, as a number. They lie close together, since a look-up costs misses of the processor's caches.
    firsts: Vec<u128>,
    digests: Vec<[u8; 16]>,
    row_count: usize,
    pages: Vec<OnceLock<Page>>,
    /// How many pages were asked for.
    asked: AtomicUsize,
    read: ReadRows,
    broken: AtomicBool,
}

/// A page that was read.
struct Page {
    origins: Vec<u128>,
    bytes: Vec<u8>,
}

impl Page {
    fn new(bytes: &[u8]) -> Self {
        let rows = bytes.as_chunks::<ROW_BYTES>().0;
        let origins = rows.iter().map(|row| u128::from_be_bytes(origin_of(row).0)).collect();
        Self { origins, bytes: bytes.to_vec() }
    }

    /// The number of the row with this origin. Origins are digests, so a row is near the number that the origin's value
    /// suggests: a look-up misses the processor's caches once or twice instead of at each halving.
    fn find(&self, origin: u128) -> Option<usize> {
        let (first, last) = (*self.origins.first()?, *self.origins.last()?);
        let (span, from) = (last.checked_sub(first)?, origin.checked_sub(first)?);
        if from > span {
            return None;
        }
        let scale = span.leading_zeros();
        let [span, from] = [span, from].map(|number| number.checked_shl(scale).unwrap_or(0) >> 96);
        let [span, from] = [span, from].map(|number| u64::try_from(number).unwrap_or(u64::MAX));
        // There is a first one, so there is a last.
        let last = self.origins.len().saturating_sub(1);
        let guess = from.saturating_mul(last as u64).checked_div(span).unwrap_or(0);
        let guess = usize::try_from(guess).unwrap_or(last).min(last);
        let (before, after) = self.origins.split_at_checked(guess)?;
        if after.first().is_some_and(|at| *at <= origin) {
            let place = after.iter().position(|at| *at >= origin)?;
            (after.get(place) == Some(&origin)).then(|| guess.saturating_add(place))
        } else {
            let place = before.iter().rposition(|at| *at <= origin)?;
            (before.get(place) == Some(&origin)).then_some(place)
        }
    }
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Base").field("row_count", &self.row_count).finish_non_exhaustive()
    }
}

fn digest(page: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("acpdb 2026 ledger page v1");
    hasher.update(page);
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    digest
}

fn origin_of(row: &Row) -> Origin {
    let (origin, _) = row.split_first_chunk().unwrap_or((&[0; 16], &[]));
    Origin(*origin)
}

/// A fact as a row.
pub(super) fn row_of(origin: Origin, seen: &Seen) -> Row {
    let flags = if seen.has_wire { HAS_WIRE } else { 0 };
    let numbers = [seen.seq.0, seen.revision, seen.item.0].map(u64::to_le_bytes);
    let halves = [seen.parts, flags].map(u32::to_le_bytes);
    let mut row = [0; ROW_BYTES];
    let bytes = origin.0.iter().chain(numbers.as_flattened()).chain(halves.as_flattened());
    row.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    row
}

fn seen_of(row: &Row) -> Option<Seen> {
    let (_, rest) = row.split_first_chunk::<16>()?;
    let (numbers, halves) = rest.as_chunks::<8>().0.split_first_chunk::<3>()?;
    let [seq, revision, item] = numbers.map(u64::from_le_bytes);
    let [parts, flags] = <[[u8; 4]; 2]>::try_from(halves.as_flattened().as_chunks().0).ok()?;
    Some(Seen {
        seq: Seq(seq),
        revision,
        item: Seq(item),
        parts: u32::from_le_bytes(parts).min(PART_COUNT_MAX),
        has_wire: u32::from_le_bytes(flags) & HAS_WIRE != 0,
    })
}

/// The fence of rows that are laid out one after the other, rising.
pub(super) fn fence_of(rows: &[u8]) -> Vec<Post> {
    let post = |page: &[u8]| {
        let mut post = [0; POST_BYTES];
        let bytes = page.iter().take(16).copied().chain(digest(page));
        post.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        post
    };
    rows.chunks(PAGE_BYTES).map(post).collect()
}

impl Base {
    /// Rows with this fence; `None` if the fence does not fit the number of rows.
    pub(super) fn new(fence: &[Post], row_count: u64, read: ReadRows) -> Option<Self> {
        let row_count = usize::try_from(row_count).ok()?;
        if fence.len() != row_count.div_ceil(PAGE_ROW_COUNT) {
            return None;
        }
        let mut base = Self {
            firsts: Vec::with_capacity(fence.len()),
            digests: Vec::with_capacity(fence.len()),
            row_count,
            pages: fence.iter().map(|_| OnceLock::new()).collect(),
            asked: AtomicUsize::new(0),
            read,
            broken: AtomicBool::new(false),
        };
        for post in fence {
            let (first, digest) = post.split_first_chunk()?;
            base.firsts.push(u128::from_be_bytes(*first));
            base.digests.push(*digest.first_chunk()?);
        }
        Some(base)
    }

    /// Whether a page that was asked for was missing or damaged.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// How many rows there are.
    pub(super) const fn row_count(&self) -> usize {
        self.row_count
    }

    /// The fact with this origin.
    pub(super) fn get(&self, origin: Origin) -> Option<Seen> {
        let origin = u128::from_be_bytes(origin.0);
        let after = self.firsts.partition_point(|first| *first <= origin);
        let page = self.page(after.checked_sub(1)?)?;
        let place = page.find(origin)?;
        page.bytes.as_chunks().0.get(place).and_then(seen_of)
    }

    /// A page. It is read first, if it was not read yet.
    fn page(&self, number: usize) -> Option<&Page> {
        let slot = self.pages.get(number)?;
        if slot.get().is_none() {
            let single_max = (self.pages.len() / SINGLE_SHARE).max(SINGLE_PAGE_COUNT_MIN);
            let single = self.asked.fetch_add(1, Ordering::Relaxed) < single_max;
            let count = if single { 1 } else { GROUP_PAGE_COUNT };
            let first = number / count * count;
            let pages = first..first.saturating_add(count).min(self.pages.len());
            let bytes = self.read_pages(pages.clone())?;
            for (slot, bytes) in self.pages.get(pages)?.iter().zip(bytes.chunks(PAGE_BYTES)) {
                slot.get_or_init(|| Page::new(bytes));
            }
        }
        slot.get()
    }

    /// Pages that follow each other, each checked; `None` breaks the base.
    fn read_pages(&self, pages: Range<usize>) -> Option<Vec<u8>> {
        let sound = || {
            let row = |page: usize| page.saturating_mul(PAGE_ROW_COUNT).min(self.row_count);
            let (start, end) = (row(pages.start), row(pages.end));
            let offset = start.checked_mul(ROW_BYTES)?;
            let length = end.checked_sub(start)?.checked_mul(ROW_BYTES)?;
            let bytes = (self.read)(offset as u64, length).filter(|bytes| bytes.len() == length)?;
            let digests = self.digests.get(pages.clone())?;
            let whole = |(page, expected): (&[u8], &[u8; 16])| digest(page) == *expected;
            bytes.chunks(PAGE_BYTES).zip(digests).all(whole).then_some(bytes)
        };
        if self.is_broken() {
            return None;
        }
        let bytes = sound();
        if bytes.is_none() {
            self.broken.store(true, Ordering::Relaxed);
        }
        bytes
    }

    /// All rows, rising; `None` if some cannot be read. Reads everything, keeps nothing.
    pub(super) fn for_each(&self, mut each: impl FnMut(Origin, &Row)) -> Option<()> {
        let mut first = 0;
        while first < self.pages.len() {
            let end = first.saturating_add(PIECE_PAGE_COUNT).min(self.pages.len());
            let bytes = self.read_pages(first..end)?;
            for row in bytes.as_chunks::<ROW_BYTES>().0 {
                each(origin_of(row), row);
            }
            first = end;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any origins, a page has its own origins and no other.
    #[test]
    fn a_row_is_found_where_halving_finds_it() {
        let spread = |seed: u128| (0..64).map(move |at| seed.wrapping_mul(at * at + 1) >> (seed % 120));
        let mut pages: Vec<Vec<u128>> = vec![
            vec![7],
            vec![0, u128::MAX],
            vec![u128::MAX - 1, u128::MAX],
            (0..64).collect(),
            (0..64).map(|at| 1 << (at * 2)).collect(),
            (0..64).map(|at| u128::MAX - (1 << (at * 2))).collect(),
        ];
        pages.extend((1..200).map(|seed| {
            spread(u128::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)).collect()
        }));
        for mut origins in pages {
            origins.sort_unstable();
            origins.dedup();
            let page = Page { origins: origins.clone(), bytes: Vec::new() };
            let near = |at: &u128| [at.saturating_sub(1), *at, at.saturating_add(1)];
            for origin in origins.iter().flat_map(near).chain([0, u128::MAX / 2, u128::MAX]) {
                assert_eq!(page.find(origin), origins.binary_search(&origin).ok(), "{origin} of {origins:?}");
            }
        }
    }
}
