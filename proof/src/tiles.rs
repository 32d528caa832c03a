//! Tiles of a tree, as C2SP tlog-tiles has them: hashes of every eighth level, 256 to a file.
//!
//! ```text
//! level 0   hashes of leaves            tile 0/000, 0/001, ..  256 each; the last one is 0/002.p/17 if it has 17
//! level 1   roots over 256 leaves       tile 1/000: one hash of each whole tile below
//! level 2   roots over 65,536 leaves
//! ```
//!
//! With tiles, a root over any range costs some eight reads; without them, a pass over all leaves. Tiles are a cache: hashes
//! that are read from them have to lead to a signed root, else the tiles count as missing. The caller, which has the root,
//! checks: the proof itself, or for [`Tiler::resume`] the root of the tree that goes on.
//!
//! Pure: closures of the caller read files, and the caller writes them.

use std::collections::HashMap;
use std::ops::Range;

use crate::tree::{Frontier, Hash};

/// Hashes of a whole tile.
pub const TILE_HASH_COUNT: u16 = 256;
/// Bytes of a whole tile.
pub const TILE_BYTES_MAX: usize = TILE_HASH_COUNT as usize * HASH_BYTES;
const HASH_BYTES: usize = 32;
/// Levels of the tree from one level of tiles to the next.
const TILE_LEVELS: u32 = 8;

/// A tile: where it is, and how many hashes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tile {
    /// Its level: each of its hashes is a root over 256 to the power of this level of leaves.
    pub level: u8,
    /// Its place among the tiles of its level, from 0.
    pub index: u64,
    /// 1 to 256 hashes. Fewer than 256: the last one of its level.
    pub width: u16,
}

impl Tile {
    /// The tile of a tree of `size` at this place; `None` if there is none.
    pub fn of(size: u64, level: u8, index: u64) -> Option<Self> {
        let count = size.checked_shr(u32::from(level) * TILE_LEVELS).unwrap_or(0);
        let before = index.checked_mul(TILE_HASH_COUNT.into())?;
        let width = count.checked_sub(before).filter(|left| *left > 0)?;
        let width = u16::try_from(width.min(TILE_HASH_COUNT.into())).ok()?;
        Some(Self { level, index, width })
    }

    /// All tiles of a tree of `size`, level by level, the lowest level first.
    pub fn all(size: u64) -> impl Iterator<Item = Self> {
        let of_level = move |level| (0..).map_while(move |index| Self::of(size, level, index));
        (0..8).flat_map(of_level)
    }

    /// Whether it will not change when the tree grows.
    pub fn is_whole(&self) -> bool {
        self.width == TILE_HASH_COUNT
    }

    /// Its path below the folder of tiles: `0/x001/234`, or `0/x001/234.p/17`.
    pub fn path(&self) -> String {
        let partial = if self.is_whole() { String::new() } else { format!(".p/{}", self.width) };
        format!("{}/{}{partial}", self.level, index_path(self.index))
    }

    /// Its hashes, from the bytes of its file or of a wider tile's file. `None`: there are too few, or a part of a hash.
    pub fn parse(&self, bytes: &[u8]) -> Option<Vec<Hash>> {
        let (all, rest) = bytes.as_chunks::<HASH_BYTES>();
        let own = all.get(..self.width.into()).filter(|_| rest.is_empty())?;
        Some(own.iter().map(|hash| Hash(*hash)).collect())
    }
}

/// A number as paths have it: groups of three digits, `x` before all but the last.
pub fn index_path(index: u64) -> String {
    let mut path = format!("{:03}", index % 1000);
    let mut rest = index / 1000;
    while rest > 0 {
        path = format!("x{:03}/{path}", rest % 1000);
        rest /= 1000;
    }
    path
}

/// The bytes of a tile.
pub fn tile_bytes(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// Makes the tiles of a tree that grows. Holds only the tiles that are not whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tiler {
    levels: Vec<Level>,
}

/// The last tile of a level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Level {
    /// Whole tiles before it.
    index: u64,
    hashes: Vec<Hash>,
}

impl Tiler {
    /// Goes on from a tree of `size`, whose last tiles `read` gives. `None`: a tile is missing. The caller compares
    /// [`Tiler::root`] with a signed root: every hash that was read goes into it.
    pub fn resume(size: u64, mut read: impl FnMut(Tile) -> Option<Vec<Hash>>) -> Option<Self> {
        let mut levels = Vec::new();
        for level in 0..8_u8 {
            let count = size.checked_shr(u32::from(level) * TILE_LEVELS).unwrap_or(0);
            if count == 0 {
                break;
            }
            let index = count / u64::from(TILE_HASH_COUNT);
            let hashes = match Tile::of(size, level, index) {
                Some(tile) => read(tile).filter(|hashes| hashes.len() == usize::from(tile.width))?,
                None => Vec::new(),
            };
            levels.push(Level { index, hashes });
        }
        Some(Self { levels })
    }

    /// Adds the hash of a leaf. Returns the tiles that it completes, mostly none, each with its hashes.
    pub fn push(&mut self, leaf: Hash) -> Vec<(Tile, Vec<Hash>)> {
        let mut done = Vec::new();
        let mut hash = leaf;
        for number in 0..8_u8 {
            if self.levels.len() <= number.into() {
                self.levels.push(Level::default());
            }
            let Some(level) = self.levels.get_mut(usize::from(number)) else { break };
            level.hashes.push(hash);
            if level.hashes.len() < TILE_HASH_COUNT.into() {
                break;
            }
            let tile = Tile { level: number, index: level.index, width: TILE_HASH_COUNT };
            let hashes = std::mem::take(&mut level.hashes);
            level.index = level.index.saturating_add(1);
            hash = root_of(&hashes);
            done.push((tile, hashes));
        }
        done
    }

    /// The last tile of each level, if it is not whole.
    pub fn edge(&self) -> impl Iterator<Item = (Tile, &[Hash])> {
        let tile = |(number, level): (u8, &Level)| Tile {
            level: number,
            index: level.index,
            width: u16::try_from(level.hashes.len()).unwrap_or_default(),
        };
        let levels = (0..).zip(&self.levels).filter(|(_, level)| !level.hashes.is_empty());
        levels.map(move |(number, level)| (tile((number, level)), level.hashes.as_slice()))
    }

    /// How many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |level| {
            level.index.saturating_mul(TILE_HASH_COUNT.into()).saturating_add(level.hashes.len() as u64)
        })
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        // The highest level has the largest subtrees.
        let whole = self.levels.iter().rev().flat_map(|level| frontier(&level.hashes).into_whole());
        Frontier::joined(&whole.collect::<Vec<_>>())
    }
}

fn frontier(hashes: &[Hash]) -> Frontier {
    let mut frontier = Frontier::default();
    for hash in hashes {
        frontier.push(*hash);
    }
    frontier
}

fn root_of(hashes: &[Hash]) -> Hash {
    frontier(hashes).root()
}

/// Roots over ranges of leaves of a tree, from its tiles. The caller has to check the roots: a tile may hold anything.
pub struct Tiled<R> {
    size: u64,
    read: R,
    known: HashMap<Tile, Option<Vec<Hash>>>,
}

impl<R> std::fmt::Debug for Tiled<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tiled").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<R: FnMut(Tile) -> Option<Vec<Hash>>> Tiled<R> {
    /// Roots of a tree of `size`, whose tiles `read` gives.
    pub fn new(size: u64, read: R) -> Self {
        Self { size, read, known: HashMap::new() }
    }

    /// The root over a range that a split of the tree gives. `None`: no split gives it, or a tile is missing. Cost: at most two tiles a level.
    pub fn root(&mut self, range: Range<u64>) -> Option<Hash> {
        let (mut low, mut whole) = (range.start, Vec::new());
        if range.end > self.size {
            return None;
        }
        while let Some(left) = range.end.checked_sub(low).filter(|left| *left > 0) {
            let height = left.ilog2();
            let width = 1_u64 << height;
            if !low.is_multiple_of(width) {
                return None;
            }
            whole.push(self.subtree(height, low >> height)?);
            low += width;
        }
        Some(Frontier::joined(&whole))
    }

    /// The roots over ranges, in their order.
    pub fn roots(&mut self, ranges: &[Range<u64>]) -> Option<Vec<Hash>> {
        ranges.iter().map(|range| self.root(range.clone())).collect()
    }

    /// The root over 2 to the power of `height` leaves, the `index`th such subtree.
    fn subtree(&mut self, height: u32, index: u64) -> Option<Hash> {
        let level = u8::try_from(height / TILE_LEVELS).ok()?;
        let width = 1_u64 << (height % TILE_LEVELS);
        let first = index.checked_mul(width)?;
        let tile = Tile::of(self.size, level, first / u64::from(TILE_HASH_COUNT))?;
        let read = &mut self.read;
        let hashes = self
            .known
            .entry(tile)
            .or_insert_with(|| read(tile).filter(|hashes| hashes.len() == usize::from(tile.width)));
        let from = usize::try_from(first % u64::from(TILE_HASH_COUNT)).ok()?;
        let own = hashes.as_ref()?.get(from..from.checked_add(usize::try_from(width).ok()?)?)?;
        Some(root_of(own))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;
    use crate::tree::{
        RootBuilder, consistency_ranges, inclusion_ranges, leaf_hash, verify_consistency, verify_inclusion,
    };

    fn leaf(number: u64) -> Hash {
        leaf_hash(&number.to_le_bytes())
    }

    /// The files of a tree, as they lie after each of these sizes was written.
    fn written(sizes: &[u64]) -> (Tiler, BTreeMap<String, Vec<u8>>) {
        let (mut tiler, mut files) = (Tiler::default(), BTreeMap::new());
        for size in sizes {
            while tiler.size() < *size {
                for (tile, hashes) in tiler.push(leaf(tiler.size())) {
                    files.insert(tile.path(), tile_bytes(&hashes));
                }
            }
            for (tile, hashes) in tiler.edge() {
                files.insert(tile.path(), tile_bytes(hashes));
            }
        }
        (tiler, files)
    }

    /// The roots by a pass over the leaves, as the definition of the tree has them.
    fn slow(ranges: &[Range<u64>]) -> Vec<Hash> {
        let of = |range: &Range<u64>| {
            let mut gather = RootBuilder::new(std::iter::once(0..range.end - range.start));
            range.clone().for_each(|number| gather.push(leaf(number)));
            gather.roots().unwrap()[0]
        };
        ranges.iter().map(of).collect()
    }

    #[test]
    fn paths_are_those_of_the_standard() {
        for (level, index, width, path) in [
            (0, 0, 256, "0/000"),
            (0, 0, 1, "0/000.p/1"),
            (1, 67, 255, "1/067.p/255"),
            (0, 999, 256, "0/999"),
            (0, 1234, 256, "0/x001/234"),
            (2, 1_234_067, 112, "2/x001/x234/067.p/112"),
        ] {
            assert_eq!(Tile { level, index, width }.path(), path);
        }
    }

    /// Sizes around each border of a tile and of a level.
    const SIZES: [u64; 16] =
        [0, 1, 2, 3, 255, 256, 257, 511, 512, 513, 1000, 65_535, 65_536, 65_537, 65_792, 66_000];

    #[test]
    fn tiles_are_those_that_a_tree_of_the_size_has() {
        for size in SIZES {
            let (tiler, files) = written(&[size]);
            let named: Vec<String> = Tile::all(size).map(|tile| tile.path()).collect();
            let mut sorted = named.clone();
            sorted.sort();
            assert_eq!(files.keys().cloned().collect::<Vec<_>>(), sorted, "{size}");
            let frontier = (0..size).fold(Frontier::default(), |mut frontier, number| {
                frontier.push(leaf(number));
                frontier
            });
            assert_eq!(tiler.root(), frontier.root(), "{size}");
            assert_eq!(tiler.size(), size);
        }
    }

    #[test]
    fn a_tree_goes_on_from_its_last_tiles_as_if_it_had_never_stopped() {
        for size in SIZES {
            let (tiler, files) = written(&[size]);
            let read = |tile: Tile| tile.parse(files.get(&tile.path())?);
            assert_eq!(Tiler::resume(size, read), Some(tiler.clone()), "{size}");
            // A wider tile serves, since it begins with the same hashes.
            let (_, later) = written(&[size + 3]);
            let wider = |tile: Tile| {
                let grown = Tile::of(size + 3, tile.level, tile.index)?;
                tile.parse(later.get(&grown.path())?)
            };
            assert_eq!(Tiler::resume(size, wider), Some(tiler), "{size}");
            if size > 0 {
                assert_eq!(
                    Tiler::resume(size, |_| None).is_none(),
                    Tile::all(size).any(|tile| !tile.is_whole())
                );
            }
        }
    }

    /// The law: tiles give the same roots as a pass over the leaves, for proofs of both kinds.
    #[test]
    fn roots_out_of_tiles_are_those_of_a_pass_over_the_leaves() {
        for size in SIZES.into_iter().filter(|size| *size > 0) {
            let (tiler, files) = written(&[size]);
            let mut tiled = Tiled::new(size, |tile: Tile| tile.parse(files.get(&tile.path())?));
            for index in [0, 1, 254, 255, 256, size / 3, size / 2, size - 1] {
                let Some(ranges) = inclusion_ranges(index, size) else { continue };
                let hashes = tiled.roots(&ranges).unwrap();
                assert_eq!(hashes, slow(&ranges), "{index} of {size}");
                assert!(verify_inclusion(index, size, leaf(index), &hashes, tiler.root()));
            }
            for old in [1, 2, 255, 256, 257, size / 2, size - 1, size] {
                let Some(ranges) = consistency_ranges(old, size) else { continue };
                let hashes = tiled.roots(&ranges).unwrap();
                let old_root = slow(std::slice::from_ref(&(0..old)))[0];
                assert!(verify_consistency(old, size, old_root, tiler.root(), &hashes), "{old} of {size}");
            }
            assert_eq!(tiled.root(0..size), Some(tiler.root()));
            assert_eq!(tiled.root(0..size + 1), None);
        }
    }

    /// For any content of a tile, a proof made from it passes only if it is true.
    #[test]
    fn a_wrong_tile_makes_a_wrong_proof_and_never_a_false_one() {
        let size = 66_000;
        let (tiler, files) = written(&[size]);
        let of = |index: u64| (index, inclusion_ranges(index, size).unwrap());
        let proofs: Vec<_> = [0, 1, 7, 255, 256, 300, 65_535, 65_536, 65_999].map(of).into();
        let proofs: Vec<_> =
            proofs.into_iter().map(|(index, ranges)| (index, slow(&ranges), ranges)).collect();
        for path in ["0/000", "0/001", "0/255", "0/257.p/208", "1/000", "1/001.p/1", "2/000.p/1"] {
            for at in [0, 31, 32 * 200] {
                let mut files = files.clone();
                let bytes = files.get_mut(path).unwrap();
                let at = at % bytes.len();
                bytes[at] ^= 1;
                let read = RefCell::new(Vec::new());
                let mut tiled = Tiled::new(size, |tile: Tile| {
                    read.borrow_mut().push(tile.path());
                    tile.parse(files.get(&tile.path())?)
                });
                let mut refused = 0;
                for (index, slow, ranges) in &proofs {
                    let hashes = tiled.roots(ranges).unwrap();
                    let is_true = hashes == *slow;
                    let passes = verify_inclusion(*index, size, leaf(*index), &hashes, tiler.root());
                    assert_eq!(is_true, passes, "{path} byte {at}, leaf {index}");
                    refused += usize::from(!passes);
                }
                assert!(refused > 0 || !read.borrow().iter().any(|read| read == path), "{path} byte {at}");
            }
        }
        // A tile that is cut or gone gives nothing.
        for cut in [None, Some(0), Some(31), Some(32 * 100)] {
            let mut files = files.clone();
            let bytes = files.remove("0/000").unwrap();
            files.extend(cut.map(|cut| ("0/000".to_owned(), bytes[..cut].to_vec())));
            let mut tiled = Tiled::new(size, |tile: Tile| tile.parse(files.get(&tile.path())?));
            assert_eq!(tiled.roots(&inclusion_ranges(3, size).unwrap()), None);
        }
    }
}
