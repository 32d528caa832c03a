//! A prefix that lies: objects of a shipped store are changed as the bytes say, with checksums that fit if they say so. A store that is restored or mirrored from it is
//! that one, as it was at some time, or there is an error; nothing is written elsewhere.
#![no_main]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::StoreId;
use acpdb_engine::storage::{Entropy, SystemEntropy};
use acpdb_engine::{Seq, Store};
use acpdb_remote::{
    MemoryRemote, Remote, RestoreOptions, ShipOptions, Shipper, mirror, repair, restore, status, stores,
};
use libfuzzer_sys::fuzz_target;

/// Bytes of the header of a run, of which the last four are its checksum.
const HEADER_BYTES: usize = 256;
/// Names that no object has.
const NAMES: &[&str] = &[
    "../escaped",
    "meta/../../escaped",
    "log/ffffffffffffffff",
    "log/0",
    "seg/x",
    "pack/1-2-3-4",
    "meta/key",
];

struct Victim {
    objects: BTreeMap<String, Vec<u8>>,
    store: StoreId,
    head: Seq,
}

/// A small store with a complete segment, a pack and entries, shipped.
fn victim() -> &'static Victim {
    static VICTIM: OnceLock<Victim> = OnceLock::new();
    VICTIM.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = folder.path().join("store");
        let store = Store::builder(&at).any_file_system().index(false).segment_bytes_max(4096 + 6000).open();
        let store = store.expect("a temporary folder takes a store");
        let session = store.session(StreamInfo::session("fuzz", "prefix"));
        let remote = Arc::new(MemoryRemote::new());
        let options = ShipOptions { chunk_bytes_max: 1, ..ShipOptions::default() };
        let mut shipper =
            Shipper::open(&at, Arc::<MemoryRemote>::clone(&remote), options).expect("it is there");
        for number in 0..80 {
            let text = format!("message {number}");
            let _ =
                session.append([Entry::message(text.clone(), Role::User, text)]).expect("it takes a message");
            if number % 40 > 30 {
                let _ = shipper.ship(&mut |_| true).expect("memory does not fail");
            }
        }
        let _ = shipper.ship(&mut |_| true).expect("memory does not fail");
        Victim { objects: remote.all(), store: store.id(), head: store.head().expect("it has a head") }
    })
}

fn set(object: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(part) = object.get_mut(at..at + bytes.len()) {
        part.copy_from_slice(bytes);
    }
}

/// Gives a run the digest and the checksums of what is in it now; a head its checksum.
fn forge(key: &str, object: &mut [u8]) {
    if key.starts_with("heads/") {
        let end = object.len().saturating_sub(4);
        let sum = crc32c::crc32c(&object[..end]).to_le_bytes();
        return set(object, end, &sum);
    }
    if object.len() >= HEADER_BYTES {
        let digest = *blake3::hash(&object[HEADER_BYTES..]).as_bytes();
        set(object, 216, &digest);
        let sum = crc32c::crc32c(&object[..HEADER_BYTES - 4]).to_le_bytes();
        set(object, HEADER_BYTES - 4, &sum);
    }
}

/// Changes the objects as five bytes say.
fn change(victim: &Victim, objects: &mut BTreeMap<String, Vec<u8>>, step: &[u8; 5]) {
    let [index, act, high, low, value] = *step;
    let keys: Vec<&String> = victim.objects.keys().collect();
    let key = keys[usize::from(index) % keys.len()].clone();
    let number = usize::from(u16::from_be_bytes([high, low]));
    let Some(object) = objects.get_mut(&key) else { return };
    match act % 9 {
        0 | 1 => {
            let at = number % object.len().max(1);
            if let Some(byte) = object.get_mut(at) {
                *byte ^= value.max(1);
            }
        }
        2 => {
            // Headers are more than they are long.
            let at = number % HEADER_BYTES;
            if let Some(byte) = object.get_mut(at) {
                *byte = value;
            }
        }
        3 => object.truncate(number),
        4 => object.extend(std::iter::repeat_n(value, number)),
        5 => drop(objects.remove(&key)),
        6 => {
            let other = victim.objects[keys[number % keys.len()]].clone();
            objects.insert(key.clone(), other);
        }
        7 => {
            let name = NAMES[number % NAMES.len()];
            let object = object.clone();
            objects.insert(format!("s/{}/{name}", victim.store), object.clone());
            objects.insert(format!("heads/{name}"), object);
        }
        _ => forge(&key, object),
    }
    if value & 1 == 1
        && let Some(object) = objects.get_mut(&key)
    {
        forge(&key, object);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned()).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let victim = victim();
    let mut objects = victim.objects.clone();
    for step in bytes.as_chunks::<5>().0.iter().take(16) {
        change(victim, &mut objects, step);
    }
    let remote = MemoryRemote::new();
    for (key, object) in &objects {
        remote.set(key, Some(object.clone()));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).expect("a folder");
    let restored = restore(&remote, victim.store, &inside.join("copy"), RestoreOptions::default());
    if let Ok(done) = &restored {
        assert!(done.head <= victim.head, "events that were never there");
    } else {
        assert!(names(&inside).is_empty(), "a part of a store is left");
    }
    for _ in 0..2 {
        let mirrored = mirror(&remote, victim.store, &inside.join("mirror"));
        assert_eq!(mirrored.is_ok(), restored.is_ok(), "a mirror is what is restored");
    }
    let _listed = stores(&remote);
    let _status = status(&remote, victim.store, Some(victim.head));
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    if let Ok(true) = repair(&remote as &dyn Remote, &entropy, victim.store)
        && let Ok(done) = restore(&remote, victim.store, &inside.join("repaired"), RestoreOptions::default())
    {
        assert!(done.head <= victim.head, "events that were never there");
    }
    assert_eq!(names(folder.path()), ["inside"], "written elsewhere");
});
