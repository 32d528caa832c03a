//! The cost of signing and proving: the tree over a recorded session, and tiles of a tree of ten million made-up leaves.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_proof::tree::{Hash, inclusion_ranges, leaf_hash, verify_inclusion};
use acpdb_proof::{
    Checkpoint, EventOpening, EventProof, RootBuilder, SignerKey, Tile, Tiled, Tiler, event, tiles,
};

use crate::measure::{float, median, spent, wall};
use crate::report::{Report, Target};
use crate::session::{Numbers, Session};
use crate::{Options, Outcome};

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let (calls, size) = if options.quick { (1_000, 200_000) } else { (9_200, 10_000_000) };
    let builder = Store::builder(folder.path().join("store")).registry(acpdb_hosts::registry());
    let store = builder.index(false).snapshots(false).open()?;
    Session::new("long").record(&store, calls)?;
    leaves(&store, report)?;
    signing(&store, report)?;
    let tiler = written(&store, size, report)?;
    let used = used_bytes(&folder.path().join("store/tiles"))?;
    let per_event = float(used) / float(usize::try_from(size)?);
    report.row("tiles on the disk, an event", per_event, "B", Target::AtMost(40.0));
    proving(&store, &tiler, report)?;
    let going_on = median(21, || {
        let (resumed, spent) = wall(|| Tiler::resume(size, |tile| read(&store, tile)));
        let is_same = resumed.is_some_and(|resumed| resumed.root() == tiler.root());
        is_same.then_some(spent).ok_or_else(|| "another tree went on".into())
    })?;
    report.row("a tree of that size goes on from its tiles", going_on * 1e3, "ms", Target::AtMost(1.0));
    Ok(())
}

fn read(store: &Store, tile: Tile) -> Option<Vec<Hash>> {
    tile.parse(&store.kept_tile(&tile.path())?)
}

/// The tree over recorded events: reading, hashing, tiles.
fn leaves(store: &Store, report: &mut Report) -> Outcome<()> {
    let head = store.head()?;
    let pass = median(5, || {
        let (tiler, spent) = spent(|| -> Outcome<Tiler> {
            let mut tiler = Tiler::default();
            for leaf in store.leaves(Seq(1), head)? {
                let leaf = leaf?;
                tiler.push(event::hash(&leaf.salt, &leaf.bytes));
            }
            Ok(tiler)
        });
        if tiler?.size() != head.get() {
            return Err("the tree ended before the log".into());
        }
        Ok(spent.cpu)
    })?;
    let per_event = pass / float(usize::try_from(head.get())?);
    report.row(
        "tree: an event read, hashed and added, processor",
        per_event * 1e6,
        "us",
        Target::AtMost(3.0),
    );
    report.row(
        "a pass over 10^7 such events, which proofs took without tiles",
        per_event * 1e7,
        "s",
        Target::None,
    );
    Ok(())
}

fn signing(store: &Store, report: &mut Report) -> Outcome<()> {
    let key = SignerKey::from_seed(&[7; 32]);
    let checkpoint = Checkpoint { store: store.id(), seq: Seq(1), root: leaf_hash(b""), time: 1 };
    let time = median(101, || {
        let (note, spent) = wall(|| checkpoint.sign(&key));
        note?;
        Ok(spent)
    })?;
    report.row("a checkpoint signed", time * 1e3, "ms", Target::AtMost(1.0));
    Ok(())
}

/// Tiles of a tree of made-up leaves, beside the log.
fn written(store: &Store, size: u64, report: &mut Report) -> Outcome<Tiler> {
    let (tiler, spent) = spent(|| -> Outcome<Tiler> {
        let mut tiler = Tiler::default();
        for number in 0..size {
            for (tile, hashes) in tiler.push(leaf_hash(&number.to_le_bytes())) {
                store.keep_tile(&tile.path(), &tiles::tile_bytes(&hashes))?;
            }
        }
        for (tile, hashes) in tiler.edge() {
            store.keep_tile(&tile.path(), &tiles::tile_bytes(hashes))?;
        }
        Ok(tiler)
    });
    let per_event = spent.cpu / float(usize::try_from(size)?);
    report.row(
        "tiles of made-up leaves hashed and written, an event, processor",
        per_event * 1e6,
        "us",
        Target::None,
    );
    tiler
}

fn proving(store: &Store, tiler: &Tiler, report: &mut Report) -> Outcome<()> {
    let (size, root) = (tiler.size(), tiler.root());
    let mut numbers = Numbers(7);
    let mut longest = 0;
    let time = median(101, || {
        let index = numbers.next() % size;
        let ranges = inclusion_ranges(index, size).ok_or("no such leaf")?;
        let (hashes, spent) = wall(|| Tiled::new(size, |tile| read(store, tile)).roots(&ranges));
        let hashes = hashes.ok_or("a tile is missing")?;
        if !verify_inclusion(index, size, leaf_hash(&index.to_le_bytes()), &hashes, root) {
            return Err("the proof is none".into());
        }
        longest = longest.max(hashes.len());
        Ok(spent)
    })?;
    report.row("an inclusion proof out of tiles", time * 1e3, "ms", Target::AtMost(5.0));
    let (gathered, spent) = spent(|| {
        let mut gather = RootBuilder::new(inclusion_ranges(size / 3, size).unwrap_or_default());
        (0..size).for_each(|number| gather.push(leaf_hash(&number.to_le_bytes())));
        gather.roots()
    });
    gathered.ok_or("the leaves ended")?;
    report.row("the same by a pass over made-up leaves", spent.cpu * 1e3, "ms", Target::None);
    // In the file's form: a line of base64 for each hash.
    report.row("the hashes of a proof, in its file", float(longest * 45), "B", Target::AtMost(1536.0));
    let leaf = store.leaf(Seq(100))?.ok_or("no such event")?;
    let opening = EventOpening { salt: leaf.salt, event: leaf.bytes, bodies: Vec::new() };
    let checkpoint = Checkpoint { store: store.id(), seq: Seq(size), root, time: 1_700_000_000 };
    let note = checkpoint.sign(&SignerKey::from_seed(&[7; 32]))?;
    let hashes = vec![root; longest];
    let file = EventProof { opening, index: 99, hashes, note }.to_text()?;
    report.row("the whole file, with the event and the note", float(file.len()), "B", Target::None);
    Ok(())
}

/// Bytes that a folder takes on the disk.
fn used_bytes(folder: &Path) -> Outcome<usize> {
    let mut used = usize::try_from(folder.metadata()?.blocks())?.saturating_mul(512);
    for entry in folder.read_dir()? {
        let entry = entry?;
        used = used.saturating_add(if entry.file_type()?.is_dir() {
            used_bytes(&entry.path())?
        } else {
            usize::try_from(entry.metadata()?.blocks())?.saturating_mul(512)
        });
    }
    Ok(used)
}
