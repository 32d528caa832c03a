//! Signed checkpoints: made by threads beside all else, and held against the events at the end.

use std::ops::Range;

use acpdb_engine::ids::Seq;
use acpdb_engine::{Error, Store};
use acpdb_proof::tiles::tile_bytes;
use acpdb_proof::tree::{consistency_ranges, inclusion_ranges, verify_consistency, verify_inclusion};
use acpdb_proof::{Checkpoint, Frontier, SignerKey, Tile, Tiled, Tiler, event, origin};

use super::diary::Note;
use super::thread::Hand;
use super::told;

/// The key that all threads sign with.
fn key() -> SignerKey {
    SignerKey::from_seed(&[9; 32])
}

/// The root over all events up to each of these seqs, which rise.
fn roots(store: &Store, seqs: &[Seq]) -> Result<Vec<[u8; 32]>, Error> {
    let Some(last) = seqs.last() else { return Ok(Vec::new()) };
    let (mut tree, mut roots) = (Frontier::default(), Vec::new());
    for leaf in store.leaves(Seq(1), *last)? {
        let leaf = leaf?;
        tree.push(event::hash(&leaf.salt, &leaf.bytes));
        if seqs.contains(&leaf.seq) {
            roots.push(tree.root().0);
        }
    }
    Ok(roots)
}

impl Hand<'_> {
    /// Signs all events up to now.
    pub(super) fn signs(&mut self) -> Result<(), String> {
        let made = self.does("sign", |store| {
            let head = store.head()?;
            let root = roots(store, &[head])?.pop().unwrap_or_default();
            let checkpoint =
                Checkpoint { store: store.id(), seq: head, root: acpdb_proof::Hash(root), time: head.get() };
            let note = checkpoint.sign(&key()).unwrap_or_default();
            store.keep_checkpoint(head, &note)?;
            Ok((head, root, store.kept_checkpoint(head)?, note))
        })?;
        let Some((head, root, kept, note)) = made else { return Ok(()) };
        if kept.as_ref() != Some(&note) {
            return Err(format!("the checkpoint of {head} was kept as {kept:?}"));
        }
        self.diary.note(&Note::Signed(head.get(), root))
    }
}

impl Hand<'_> {
    /// Keeps tiles of the tree of all events, as others do, and proves from tiles that an event and an earlier tree are in it.
    pub(super) fn proves(&mut self) -> Result<(), String> {
        let (event, earlier) = (self.dice.roll(), self.dice.roll());
        let is_wrong = self.does("prove", |store| {
            let head = store.head()?;
            let (mut tiler, mut old, mut tiles) = (Tiler::default(), Frontier::default(), Vec::new());
            let (size, mut shown) = (head.get(), None);
            let (index, old_size) = (event % size, 1 + earlier % size);
            for leaf in store.leaves(Seq(1), head)? {
                let leaf = leaf?;
                let hash = event::hash(&leaf.salt, &leaf.bytes);
                if leaf.seq.get() <= old_size {
                    old.push(hash);
                }
                if leaf.seq.get() == index + 1 {
                    shown = Some(hash);
                }
                tiles.extend(tiler.push(hash));
            }
            let edge = tiler.edge().map(|(tile, hashes)| (tile, hashes.to_vec()));
            for (tile, hashes) in tiles.into_iter().chain(edge) {
                store.keep_tile(&tile.path(), &tile_bytes(&hashes))?;
            }
            let read = |tile: Tile| tile.parse(&store.kept_tile(&tile.path())?);
            // A tile that another thread puts in place just now may not be there: then there is no proof.
            let prove = |ranges: Option<Vec<Range<u64>>>| Tiled::new(size, read).roots(&ranges?);
            let root = tiler.root();
            let included = prove(inclusion_ranges(index, size)).zip(shown);
            let included = included.map(|(proof, shown)| verify_inclusion(index, size, shown, &proof, root));
            let grown = prove(consistency_ranges(old_size, size));
            let grown = grown.map(|proof| verify_consistency(old_size, size, old.root(), root, &proof));
            Ok(included == Some(false) || grown == Some(false))
        })?;
        if is_wrong == Some(true) { Err("tiles do not prove what is recorded".to_owned()) } else { Ok(()) }
    }
}

/// Holds signed checkpoints, and those that lie beside the log, against the events.
///
/// # Errors
/// The first that is not kept, or not borne out.
pub(super) fn judge(store: &Store, signed: &[(u64, [u8; 32])]) -> Result<(), String> {
    let fail = |error: Error| format!("checkpoints: {}", told(&error));
    let seqs = store.checkpoint_seqs().map_err(fail)?;
    let roots = roots(store, &seqs).map_err(fail)?;
    if roots.len() != seqs.len() {
        return Err(format!("checkpoints of {seqs:?} are kept, and {} of them have events", roots.len()));
    }
    let keys = [key().verifier(&origin(store.id())).map_err(|error| error.to_string())?];
    for (seq, root) in seqs.iter().zip(&roots) {
        let note = store.kept_checkpoint(*seq).map_err(fail)?.unwrap_or_default();
        let (found, _) =
            Checkpoint::open(&note, &keys).map_err(|error| format!("checkpoint {seq}: {error}: {note:?}"))?;
        if found.seq != *seq || found.root.0 != *root {
            return Err(format!("checkpoint {seq} was signed for other events"));
        }
    }
    for (seq, root) in signed {
        let kept = seqs.iter().zip(&roots).find(|(kept, _)| kept.get() == *seq);
        if kept.map(|(_, kept)| kept) != Some(root) {
            return Err(format!("the checkpoint of {seq} was kept, and is gone or says something else"));
        }
    }
    Ok(())
}
