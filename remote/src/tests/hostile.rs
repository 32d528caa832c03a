//! A prefix that lies: whatever was done to its objects, the store that comes back is the one that was shipped or an older state of it, or
//! there is an error and no store.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use acpdb_engine::ids::StoreId;
use acpdb_engine::storage::{Entropy, SystemEntropy};
use acpdb_engine::{Entry, Role, Seq, Store, StreamInfo};

use super::world::SimEntropy;
use crate::head::RemoteHead;
use crate::names::{ObjectName, head_key, meta_key};
use crate::remote::{Created, ListedObject, ObjectTag, RemoteError, Swapped};
use crate::run::{LogRun, RUN_HEADER_BYTES};
use crate::sim::{SimRemote, SimRemoteFaults};
use crate::{
    ChainError, MemoryRemote, Remote, RemoteChain, RestoreOptions, ShipOptions, Shipper, repair, restore,
    status, stores,
};

type Objects = BTreeMap<String, Vec<u8>>;

/// A shipped store: its objects early and late, its id, and its last seqs at both times.
struct Victim {
    early: Objects,
    late: Objects,
    store: StoreId,
    early_head: Seq,
    late_head: Seq,
}

fn victim() -> Victim {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("store");
    let store = Store::builder(&at).any_file_system().segment_bytes_max(32 << 10).open().unwrap();
    let session = store.session(StreamInfo::session("test", "hostile"));
    let memory = Arc::new(MemoryRemote::new());
    let options = ShipOptions { chunk_bytes_max: 2000, ..ShipOptions::default() };
    let mut shipper = Shipper::open(&at, Arc::clone(&memory) as Arc<dyn Remote>, options).unwrap();
    let mut say = |from: usize, count: usize| {
        for number in from..from + count {
            let text = format!("message {number} ").repeat(20);
            let _ = session.append([Entry::message(format!("m{number}"), Role::User, text)]).unwrap();
        }
        let _ = shipper.ship(&mut |_| true).unwrap();
        (memory.all(), store.head().unwrap())
    };
    let (early, early_head) = say(0, 60);
    let (late, late_head) = say(60, 20);
    Victim { early, late, store: store.id(), early_head, late_head }
}

fn remote_of(objects: &Objects) -> MemoryRemote {
    let remote = MemoryRemote::new();
    for (key, bytes) in objects {
        remote.set(key, Some(bytes.clone()));
    }
    remote
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path().strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// Restores; the last seq of what came back. Nothing lies beside the folder.
fn attempt(remote: &dyn Remote, store: StoreId) -> Result<Seq, ChainError> {
    let folder = tempfile::tempdir().unwrap();
    let done = restore(remote, store, &folder.path().join("in/copy"), RestoreOptions::default());
    let outside: Vec<_> =
        files(folder.path()).into_iter().filter(|name| !name.starts_with("in/copy/")).collect();
    assert_eq!(outside, [""; 0], "written outside of the target");
    if done.is_err() {
        assert_eq!(files(folder.path()), [""; 0], "a part of a store is left");
    }
    done.map(|done| done.head)
}

/// An attack ends with an error, or with a store that is the one that was there at one of the two times, or between.
fn check(what: &str, victim: &Victim, objects: &Objects) -> Option<Seq> {
    let head = attempt(&remote_of(objects), victim.store).ok()?;
    assert!(head <= victim.late_head, "{what}: events that were never there");
    Some(head)
}

#[test]
fn what_was_shipped_comes_back() {
    let victim = victim();
    assert_eq!(check("as it is", &victim, &victim.late), Some(victim.late_head));
    assert_eq!(check("an older state", &victim, &victim.early), Some(victim.early_head));
    let kinds = ["/log/", "/seg/", "/meta/acpdb.json", "/meta/secret", "heads/"];
    for kind in kinds {
        assert!(victim.late.keys().any(|key| key.contains(kind)), "{kind}");
    }
}

#[test]
fn a_flipped_bit_in_any_object_that_is_read_is_refused() {
    let victim = victim();
    let chunks = victim.late.iter().filter(|(key, object)| key.contains("/log/") && object[10] == 1);
    let last = chunks.map(|(key, _)| key).max().cloned();
    let mut continued = 0;
    for key in victim.late.keys().filter(|key| *key != "acpdb-remote.json") {
        let length = victim.late[key].len();
        for at in [0, 9, 40, 130, length / 2, length - 1] {
            let mut objects = victim.late.clone();
            let object = objects.get_mut(key).unwrap();
            if at >= object.len() {
                continue;
            }
            object[at] ^= 4;
            let head = check(key, &victim, &objects);
            // The last entry may be missing: whether it counted is known by the newest checkpoint alone. One that others continue is missed.
            let is_entry = key.contains("/log/");
            let is_chunk = is_entry && victim.late[key][10] == 1;
            if is_chunk && Some(key) != last.as_ref() {
                assert_eq!(head, None, "{key} at {at}");
                continued += 1;
            }
            assert!(head.is_none() || is_entry || head == Some(victim.late_head), "{key} at {at}: {head:?}");
            if key.contains("/seg/") || key.starts_with("heads/") || key.ends_with("acpdb.json") {
                assert_eq!(head, None, "{key} at {at}");
            }
        }
    }
    assert!(continued > 0, "entries that others continue");
}

#[test]
fn objects_that_are_left_out_swapped_or_replayed_make_no_other_store() {
    let victim = victim();
    let keys: Vec<&String> = victim.late.keys().collect();
    for key in &keys {
        let mut objects = victim.late.clone();
        objects.remove(*key);
        let head = check(key, &victim, &objects);
        if key.contains("/seg/") || key.starts_with("heads/") || key.ends_with("acpdb.json") {
            assert_eq!(head, None, "{key} was left out");
        }
        for other in &keys {
            let mut objects = victim.late.clone();
            let (left, right) = (objects[*key].clone(), objects[*other].clone());
            objects.insert((*key).clone(), right);
            objects.insert((*other).clone(), left);
            check(&format!("{key} and {other} swapped"), &victim, &objects);
        }
    }
    for key in victim.early.keys() {
        let mut objects = victim.late.clone();
        objects.insert(key.clone(), victim.early[key].clone());
        check(&format!("{key} set back"), &victim, &objects);
    }
}

/// Headers can be forged so that they fit: the log's own links do not.
#[test]
fn forged_bytes_in_a_sound_object_are_refused() {
    let victim = victim();
    for (key, object) in &victim.late {
        let Ok(run) = LogRun::decode(victim.store, object) else { continue };
        for at in [0, 16, 200, 4100, 4300, run.bytes.len().saturating_sub(1)] {
            let mut forged = run.clone();
            let Some(byte) = forged.bytes.get_mut(at) else { continue };
            *byte ^= 1;
            let mut objects = victim.late.clone();
            objects.insert(key.clone(), forged.encode());
            let head = check(key, &victim, &objects);
            assert_ne!(head, Some(victim.late_head), "{key}: byte {at}");
        }
    }
}

#[test]
fn two_stores_that_are_mixed_are_told_apart() {
    let (victim, other) = (victim(), self::victim());
    for (key, object) in &other.late {
        let renamed = key.replace(&other.store.to_string(), &victim.store.to_string());
        let mut objects = victim.late.clone();
        objects.insert(renamed.clone(), object.clone());
        let head = check(&renamed, &victim, &objects);
        assert!(
            head.is_none()
                || key == "acpdb-remote.json"
                || renamed.contains("/seg/")
                || renamed.contains("/log/")
                || renamed.contains("secret"),
            "{renamed}: {head:?}"
        );
    }
    let mut both = victim.late.clone();
    both.extend(other.late.clone());
    let mut ids = [victim.store, other.store];
    ids.sort();
    assert_eq!(stores(&remote_of(&both)).unwrap(), ids);
    assert_eq!(check("two in one prefix", &victim, &both), Some(victim.late_head));
}

#[test]
fn names_and_lengths_that_lead_elsewhere_are_passed_over_or_refused() {
    let victim = victim();
    let mut objects = victim.late.clone();
    let own = format!("s/{}/", victim.store);
    for name in [
        "../../etc/passwd",
        "log/../../x",
        "seg/..",
        "log/0000000000000001/x",
        "pack/%2e%2e",
        "meta/../../tail",
    ] {
        objects.insert(format!("{own}{name}"), b"x".to_vec());
    }
    for name in ["heads/..", "heads/../../x", "heads/ABABABABABABABABABABABABABABABAB", "heads/"] {
        objects.insert(name.to_owned(), b"x".to_vec());
    }
    assert_eq!(check("strange names", &victim, &objects), Some(victim.late_head));
    assert_eq!(stores(&remote_of(&objects)).unwrap(), [victim.store]);
    // A head that is lost is made anew beside them.
    objects.remove(&head_key(victim.store));
    let remote = remote_of(&objects);
    let entropy: Arc<dyn Entropy> =
        Arc::new(SimEntropy(SimRemote::new(1, SimRemoteFaults::default(), Arc::new(|| ()))));
    assert!(matches!(attempt(&remote, victim.store), Err(ChainError::NoStore { .. })));
    assert!(repair(&remote, &entropy, victim.store).unwrap());
    assert_eq!(attempt(&remote, victim.store).unwrap(), victim.late_head);

    for (name, length) in [("acpdb.json", 5000), ("secret", 97), ("key", 513)] {
        let mut objects = victim.late.clone();
        objects.insert(meta_key(victim.store, name), vec![b' '; length]);
        assert_eq!(check(name, &victim, &objects), None, "{name} of {length} bytes");
    }
}

/// The payload of the first entry unpacks to a gigabyte; its header says what it has to say.
#[test]
fn a_payload_that_unpacks_to_a_gigabyte_is_no_entry() {
    let victim = victim();
    let bomb = zstd::bulk::compress(&vec![0; 1 << 28], 1).unwrap();
    for (key, object) in victim.late.iter().filter(|(key, _)| key.contains("/log/") || key.contains("/seg/"))
    {
        if object.len() == RUN_HEADER_BYTES {
            continue;
        }
        let mut forged = object[..RUN_HEADER_BYTES].to_vec();
        forged[11] = 1;
        forged[208..216].copy_from_slice(&(bomb.len() as u64).to_le_bytes());
        forged[216..248].copy_from_slice(blake3::hash(&bomb).as_bytes());
        acpdb_engine::codec::put_trailing_checksum(&mut forged);
        forged.extend_from_slice(&bomb);
        let mut objects = victim.late.clone();
        objects.insert(key.clone(), forged);
        assert_ne!(check(key, &victim, &objects), Some(victim.late_head), "{key}");
    }
}

/// A remote with a store and a million names beside it.
struct Crowd {
    inner: MemoryRemote,
    store: StoreId,
    count: u64,
}

const CROWD_COUNT: u64 = 1_000_000;

impl Remote for Crowd {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        self.inner.create(key, bytes)
    }
    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        self.inner.swap(key, bytes, was)
    }
    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        self.inner.put(key, bytes, length)
    }
    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        self.inner.get(key, range)
    }
    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.inner.delete(key)
    }
    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let mut page = self.inner.list(under, after)?;
        let begin = format!("s/{}/log/", self.store);
        if begin.starts_with(under) {
            let last = after.strip_prefix(&begin).and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let from = if after < begin.as_str() {
                1 << 32
            } else {
                last.map_or(u64::MAX, |last| last.max((1 << 32) - 1) + 1)
            };
            let numbers = (from..(1 << 32) + self.count).take(1000);
            page.extend(
                numbers
                    .map(|number| ListedObject { key: ObjectName::Entry(number).key(self.store), bytes: 0 }),
            );
        }
        page.sort_by(|left, right| left.key.cmp(&right.key));
        page.truncate(1000);
        Ok(page)
    }
}

#[test]
fn a_million_names_hide_no_store() {
    let victim = victim();
    let crowd = Crowd { inner: remote_of(&victim.late), store: victim.store, count: CROWD_COUNT };
    assert_eq!(stores(&crowd).unwrap(), [victim.store]);
    assert_eq!(attempt(&crowd, victim.store).unwrap(), victim.late_head);
    crowd.inner.set(&head_key(victim.store), None);
    let entropy: Arc<dyn Entropy> =
        Arc::new(SimEntropy(SimRemote::new(1, SimRemoteFaults::default(), Arc::new(|| ()))));
    assert!(repair(&crowd, &entropy, victim.store).unwrap());
    assert_eq!(attempt(&crowd, victim.store).unwrap(), victim.late_head);
}

/// Names without end filled the memory of a repair.
#[test]
fn more_than_a_million_names_are_an_error() {
    let victim = victim();
    let crowd = Crowd { inner: remote_of(&victim.late), store: victim.store, count: 1 << 21 };
    crowd.inner.set(&head_key(victim.store), None);
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    assert!(matches!(repair(&crowd, &entropy, victim.store), Err(ChainError::TooLarge { .. })));
}

/// A head whose boundary is the last number, and an object of that number: no number comes behind it, and it was read for ever.
#[test]
fn the_last_number_is_not_read_for_ever() {
    let victim = victim();
    let mut objects = victim.late.clone();
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    objects.insert(ObjectName::Entry(u64::MAX).key(victim.store), b"x".to_vec());
    assert_eq!(check("a last number that is not reached", &victim, &objects), Some(victim.late_head));

    for boundary in [u64::MAX, u64::MAX - 1] {
        let head = RemoteHead::decode(victim.store, &victim.late[&head_key(victim.store)]).unwrap();
        objects.insert(head_key(victim.store), RemoteHead { boundary, ..head }.encode());
        objects.insert(ObjectName::Entry(u64::MAX - 1).key(victim.store), b"x".to_vec());
        let remote = Arc::new(remote_of(&objects));
        let is_refused = |error: Option<ChainError>| matches!(error, Some(ChainError::TooLarge { .. }));
        assert!(is_refused(attempt(&*remote, victim.store).err()), "restored");
        assert!(is_refused(status(&*remote, victim.store, None).err()), "looked at");
        let taken = RemoteChain::take_over(remote, Arc::clone(&entropy), victim.store, "one");
        assert!(is_refused(taken.err()), "taken over");
    }
    // Where the head is lost, that object is none of the store.
    objects.remove(&ObjectName::Entry(u64::MAX - 1).key(victim.store));
    objects.remove(&head_key(victim.store));
    let remote = remote_of(&objects);
    assert!(repair(&remote, &entropy, victim.store).unwrap());
    assert_eq!(attempt(&remote, victim.store).unwrap(), victim.late_head);
}
