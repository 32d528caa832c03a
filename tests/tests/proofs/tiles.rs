//! Tiles beside the log are a cache: with them, without them, and with anything in their place, all signatures and proofs are the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use acpdb_engine::ids::Seq;
use acpdb_proof::tree::{Frontier, Hash, leaf_hash, node_hash};
use acpdb_proof::{Checkpoint, Note, event};

use super::world::World;
use super::{both, contents, key, said, tells};

/// A store with two whole tiles and some more, signed twice.
fn tiled() -> World {
    let world = World::fed();
    world.run(&["key", "new"]).ok();
    world.run_with(&["append", "--stdin"], many("a", 120)).ok();
    world.run(&["checkpoint", "sign"]).ok();
    std::fs::write(world.path("old.note"), world.run(&["checkpoint", "export"]).ok()).unwrap();
    world.run_with(&["append", "--stdin"], many("b", 150)).ok();
    world.run(&["checkpoint", "sign"]).ok();
    world
}

fn many(key: &str, count: u32) -> String {
    (0..count).fold(String::new(), |mut all, number| {
        let _ = write!(all, "{}", said(&format!("{key}{number}"), &format!("message {number}")));
        all
    })
}

/// The tiles by their paths.
fn tiles(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = world.path("store/tiles");
    let own = |path: PathBuf| path.strip_prefix(&folder).unwrap().to_owned();
    contents(&folder).into_iter().map(|(path, bytes)| (own(path), bytes)).collect()
}

/// A proof of each kind.
fn proofs(world: &World) -> Vec<(&'static str, String)> {
    let lines = [
        "checkpoint prove #1",
        "checkpoint prove #256",
        "checkpoint prove #257",
        "checkpoint prove #560",
        "checkpoint prove #300 --with-body",
        "checkpoint prove #10..#20",
        "checkpoint prove --session s1",
        "checkpoint prove --from old.note",
    ];
    let made = |line: &'static str| {
        let words: Vec<&str> = line.split(' ').collect();
        (line, world.run(&words).ok())
    };
    lines.map(made).into()
}

#[test]
#[ignore = "needs python3"]
fn proofs_are_the_same_with_tiles_without_them_and_with_wrong_ones() {
    let world = tiled();
    let key = key(&world);
    let mut with = proofs(&world);
    for (line, text) in &with {
        world.write("proof", text);
        both(&world, "proof", &key, true);
        assert!(!text.is_empty(), "{line}");
    }
    let whole = tiles(&world);
    let names: Vec<String> = whole.keys().map(|path| path.display().to_string()).collect();
    let head = world.run(&["checkpoint", "show", "--json"]).ok();
    assert!(names.contains(&"0/000".to_owned()) && names.contains(&"0/001".to_owned()), "{names:?}");
    // Those of the smaller tree that were not whole are gone.
    assert_eq!(names.len(), 4, "{names:?} {head}");
    std::fs::remove_dir_all(world.path("store/tiles")).unwrap();
    assert_eq!(proofs(&world), with);
    let put = |path: &Path, bytes: &[u8]| {
        let path = world.path("store/tiles").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    for path in whole.keys() {
        for (other, bytes) in &whole {
            put(other, bytes);
        }
        let bytes = &whole[path];
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        let mut swapped = bytes.clone();
        swapped.rotate_left(32);
        for wrong in [&flipped, &swapped, &bytes[..bytes.len() - 1].to_vec(), &Vec::new(), &vec![0; 1 << 20]]
        {
            put(path, wrong);
            assert_eq!(proofs(&world), with, "{}", path.display());
        }
        // Reading left the wrong tile as it is; signing makes it anew.
        world.run(&["checkpoint", "sign"]).ok();
        assert_eq!(tiles(&world), whole, "{}", path.display());
        // The note has another time now.
        std::fs::remove_dir_all(world.path("store/tiles")).unwrap();
        with = proofs(&world);
    }
}

/// A folder that leads elsewhere is not followed, and nothing waits for a path that is no file.
#[test]
fn what_lies_in_the_place_of_tiles_is_neither_followed_nor_waited_for() {
    let world = tiled();
    let with = proofs(&world);
    let folder = world.path("store/tiles");
    std::fs::rename(&folder, world.path("outside")).unwrap();
    symlink(world.path("outside"), &folder).unwrap();
    let before = contents(&world.path("outside"));
    assert_eq!(proofs(&world), with);
    world.run_with(&["append", "--stdin"], said("z", "more")).ok();
    tells(&world.run(&["checkpoint", "sign"]), 0, &["signed with default", "their tiles were not kept"]);
    assert_eq!(contents(&world.path("outside")), before);
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir_all(folder.join("0")).unwrap();
    assert_eq!(world.shell(&format!("mkfifo '{}'", folder.join("0/000").display())).code, 0);
    tells(&world.run(&["checkpoint", "prove", "#5"]), 0, &["c2sp.org/tlog-proof"]);
    world.run(&["verify"]).ok();
}

/// Signing by itself reads the last tiles and the new events. It signs the same tree as a pass over all events.
#[test]
fn what_is_signed_by_itself_is_what_a_pass_over_all_events_signs() {
    let world = tiled();
    world.run(&["config", "set", "sign", "1 events"]).ok();
    for (round, count) in [1, 3, 200, 256, 1].into_iter().enumerate() {
        // Tiles as they are, wrong, cut and gone.
        let path = world.path("store/tiles/1/000.p");
        let last = || path.read_dir().unwrap().next().unwrap().unwrap().path();
        match round {
            1 => std::fs::write(last(), [7; 64]).unwrap(),
            2 => std::fs::write(last(), []).unwrap(),
            4 => std::fs::remove_dir_all(world.path("store/tiles")).unwrap(),
            _ => {}
        }
        let ran = world.run_with(&["append", "--stdin"], many(&format!("r{round}"), count));
        tells(&ran, 0, &["signed with default, as set"]);
        tells(&world.run(&["verify"]), 0, &["agrees"]);
        let kept = tiles(&world);
        std::fs::remove_dir_all(world.path("store/tiles")).unwrap();
        let text = world.run(&["checkpoint", "export"]).ok();
        world.run(&["checkpoint", "sign"]).ok();
        let again = world.run(&["checkpoint", "export"]).ok();
        // The time may be another.
        assert_eq!(text.lines().take(3).collect::<Vec<_>>(), again.lines().take(3).collect::<Vec<_>>());
        assert_eq!(tiles(&world), kept, "round {round}");
    }
    // A log that was set back is found out, tiles or not.
    let backup = world.path("backup");
    super::copy(&world.path("store"), &backup);
    world.run_with(&["append", "--stdin"], said("y", "last")).ok();
    let ran = world.run_with(&["--db", "backup", "append", "--stdin"], said("x", "another"));
    tells(&ran, 0, &["nothing was signed"]);
}

/// The root by the definition of RFC 6962.
fn root(hashes: &[Hash]) -> Hash {
    if let [only] = hashes {
        return *only;
    }
    let split = 1_usize << (hashes.len() - 1).ilog2();
    node_hash(&root(&hashes[..split]), &root(&hashes[split..]))
}

/// The tiles that a reader finds in the folder by the standard alone.
#[test]
fn a_folder_of_tiles_is_read_by_the_standard_alone() {
    let world = tiled();
    let said = world.run(&["checkpoint", "export", "--tiles", "served"]).ok();
    assert!(said.contains("served: the tree up to #") && said.contains("tiles"), "{said}");
    let file = |path: &str| std::fs::read(world.path("served").join(path)).unwrap();
    let note = String::from_utf8(file("checkpoint")).unwrap();
    let checkpoint = Checkpoint::parse(Note::parse(&note).unwrap().text_unchecked()).unwrap();
    let size = usize::try_from(checkpoint.seq.get()).unwrap();
    assert!(size > 512 && size < 768, "{size}");
    let rest = size - 512;
    let named = ["000".to_owned(), "001".to_owned(), format!("002.p/{rest}")];
    let hashes: Vec<Hash> = named
        .iter()
        .flat_map(|name| file(&format!("tile/0/{name}")))
        .collect::<Vec<u8>>()
        .chunks(32)
        .map(|hash| Hash(hash.try_into().unwrap()))
        .collect();
    assert_eq!(hashes.len(), size);
    assert_eq!(root(&hashes), checkpoint.root);
    assert_eq!(file("tile/1/000.p/2"), [root(&hashes[..256]).0, root(&hashes[256..512]).0].concat());
    let entries: Vec<u8> = named.iter().flat_map(|name| file(&format!("tile/entries/{name}"))).collect();
    let entries: Vec<&[u8]> = entries.chunks(34).collect();
    assert_eq!(entries.len(), size);
    for (entry, hash) in entries.iter().zip(&hashes) {
        assert_eq!(entry[..2], [0, 32]);
        assert_eq!(leaf_hash(&entry[2..]), *hash);
    }
    assert_eq!(contents(&world.path("served")).len(), 8);
    // And it is the log's own.
    let store = acpdb_engine::Store::builder(world.path("store")).read_only().open().unwrap();
    let mut frontier = Frontier::default();
    for leaf in store.leaves(Seq(1), checkpoint.seq).unwrap() {
        let leaf = leaf.unwrap();
        frontier.push(event::hash(&leaf.salt, &leaf.bytes));
    }
    assert_eq!(frontier.root(), checkpoint.root);
    // An older one, and one that is there already.
    world.run(&["checkpoint", "export", "--tiles", "served"]).ok();
    tells(&world.run(&["checkpoint", "export", "#7", "--tiles", "other"]), 7, &["no checkpoint"]);
}
