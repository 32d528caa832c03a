//! Tiles of the tree, beside the log: a cache from which proofs are made, and from which the tree goes on for automatic signing.
//!
//! ```text
//! checkpoint sign      a pass over all events anyway: each tile that is missing or wrong is written anew
//! signing by itself    the last tiles, whose root has to be that of the checkpoint that was seen last; then the events since
//! prove, push          some eight tiles, if the proof leads to the signed root; else a pass over all events
//! ```
//!
//! A tile is never believed without a check, so that the folder may be removed, cut or forged at any time. Without tiles nothing
//! fails: all only takes longer.

use std::ops::Range;

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_proof::{Checkpoint, Hash, Note, RootBuilder, Tile, Tiled, Tiler, event, tiles};

use crate::claims;
use crate::failure::Failure;
use crate::keys;
use crate::output::Output;

/// The size of the tree whose tiles lie beside the log: that of the newest checkpoint.
fn kept_size(store: &Store) -> Option<u64> {
    store.checkpoint_seqs().ok()?.last().map(|seq| seq.get())
}

/// Reads the hashes of a tile of the kept tree, or of a smaller tree: its tile is the beginning of the kept one.
fn read(store: &Store, kept: u64, tile: Tile) -> Option<Vec<Hash>> {
    let wider = Tile::of(kept, tile.level, tile.index)?;
    tile.parse(&store.kept_tile(&wider.path())?)
}

/// Roots over ranges of the first `size` events, which the caller checks. `None`: the tiles for them are missing.
pub(crate) fn roots(store: &Store, size: u64, ranges: &[Range<u64>]) -> Option<Vec<Hash>> {
    let kept = kept_size(store).filter(|kept| size <= *kept)?;
    Tiled::new(size, |tile| read(store, kept, tile)).roots(ranges)
}

/// Roots over ranges of events: from tiles if `is_true` holds for them, else in one pass over all events.
pub(crate) fn hashes(
    store: &Store,
    ranges: Vec<Range<u64>>,
    to: Seq,
    is_true: impl Fn(&[Hash]) -> bool,
) -> Result<Vec<Hash>, Failure> {
    match roots(store, to.get(), &ranges).filter(|hashes| is_true(hashes)) {
        Some(hashes) => Ok(hashes),
        None => gather(store, ranges, to),
    }
}

/// Roots over ranges of events, in one pass.
fn gather(store: &Store, ranges: Vec<Range<u64>>, to: Seq) -> Result<Vec<Hash>, Failure> {
    let mut gather = RootBuilder::new(ranges);
    for leaf in store.leaves(Seq(1), to)? {
        let leaf = leaf?;
        gather.push(event::hash(&leaf.salt, &leaf.bytes));
    }
    gather.roots().ok_or_else(|| claims::cut(to))
}

/// The tiles of a tree as a pass over all events completes them, compared with the kept tiles.
pub(crate) struct TilePass {
    tiler: Tiler,
    /// Tiles that are missing or differ.
    wrong: Vec<(Tile, Vec<u8>)>,
}

impl TilePass {
    pub(crate) fn new() -> Self {
        Self { tiler: Tiler::default(), wrong: Vec::new() }
    }

    /// Takes the hash of the next leaf.
    pub(crate) fn push(&mut self, store: &Store, leaf: Hash) {
        for (tile, hashes) in self.tiler.push(leaf) {
            let bytes = tiles::tile_bytes(&hashes);
            if store.kept_tile(&tile.path()).as_deref() != Some(&bytes) {
                self.wrong.push((tile, bytes));
            }
        }
    }

    /// Writes the missing tiles, once a checkpoint over all of them was signed. `before`: the size of the tree whose tiles were
    /// kept until now.
    pub(crate) fn keep(self, store: &Store, before: Option<u64>, output: &Output) {
        let edge: Vec<_> =
            self.tiler.edge().map(|(tile, hashes)| (tile, tiles::tile_bytes(hashes))).collect();
        let mut all = self.wrong.iter().chain(&edge);
        if let Err(error) = all.try_for_each(|(tile, bytes)| store.keep_tile(&tile.path(), bytes)) {
            let failure = Failure::from(error);
            output.warn(format!(
                "proofs will take longer, since their tiles were not kept: {}",
                failure.message
            ));
            return;
        }
        // Narrower tiles are of no use any more.
        let size = self.tiler.size();
        for tile in before.into_iter().flat_map(edge_of) {
            if Tile::of(size, tile.level, tile.index) != Some(tile) {
                store.remove_tile(&tile.path());
            }
        }
    }
}

/// The tiles of a tree that are not whole: the last one of a level, if any.
fn edge_of(size: u64) -> impl Iterator<Item = Tile> {
    let last = move |level: u8| {
        let count = size.checked_shr(u32::from(level) * 8).unwrap_or(0);
        Tile::of(size, level, count / u64::from(tiles::TILE_HASH_COUNT))
    };
    (0..8).filter_map(last)
}

/// The size of the tree whose tiles are kept, taken before another checkpoint is.
pub(crate) fn before(store: &Store) -> Option<u64> {
    kept_size(store)
}

/// The last checkpoint that was seen, and a tree that goes on from it up to the head. `None`: only a pass over all events can tell,
/// since the tiles or the checkpoint are not those that were signed, or a later event claims an earlier time.
pub(crate) fn grown(store: &Store) -> Result<Option<(Checkpoint, TilePass)>, Failure> {
    let Some((_, pin)) = keys::pinned(store.id())? else { return Ok(None) };
    let Some(newest) = claims::seqs(store)?.last().copied() else { return Ok(None) };
    let Some(kept) = claims::note_of(store, newest)? else { return Ok(None) };
    let keys = keys::known(store.id())?;
    let signed = |note: &str| {
        // A note that no known key has signed proves nothing; a pass over all events then decides.
        let note = Note::parse(note).ok()?;
        // Not signed by a known key.
        note.signed_by(&keys).ok()?;
        // No checkpoint: a pass over all events decides.
        Checkpoint::parse(note.text_unchecked()).ok()
    };
    // Known keys signed both notes, and both say the same; witnesses may have signed one of them since.
    let (Some(pinned), Some(kept)) = (signed(&pin), signed(&kept)) else { return Ok(None) };
    if pinned != kept || pinned.store != store.id() || pinned.seq != newest {
        return Ok(None);
    }
    let size = pinned.seq.get();
    let Some(tiler) = Tiler::resume(size, |tile| read(store, size, tile)) else { return Ok(None) };
    if tiler.root() != pinned.root {
        return Ok(None);
    }
    let mut made = TilePass { tiler, wrong: Vec::new() };
    let head = store.head()?;
    for leaf in store.leaves(pinned.seq.next(), head)? {
        let leaf = leaf?;
        made.push(store, event::hash(&leaf.salt, &leaf.bytes));
    }
    Ok((made.tiler.size() == head.get()).then_some((pinned, made)))
}

impl TilePass {
    /// The last event of the tree.
    pub(crate) fn seq(&self) -> Seq {
        Seq(self.tiler.size())
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> Hash {
        self.tiler.root()
    }
}
