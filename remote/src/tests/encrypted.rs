//! Stores whose objects are sealed: nothing of them can be read at the remote, and the chain is as it is elsewhere.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use acpdb_engine::ids::StoreId;
use acpdb_engine::storage::{KeyRing, RawKeyRing};
use acpdb_engine::{Entry, Role, Store, StreamInfo};

use super::conformance::conforms;
use crate::{
    ChainError, Created, EncryptedRemote, ListedObject, MemoryRemote, ObjectTag, Remote, RemoteError,
    RemoteOptions, RestoreOptions, ShipOptions, Shipper, Swapped, check, mirror, open, restore, status,
    with_head,
};

const WORDS: &str = "words that no bucket may read";
const STORE: StoreId = StoreId([0xab; 16]);

fn ring(byte: u8) -> Arc<dyn KeyRing> {
    Arc::new(RawKeyRing::new("a ring", &[byte; 32]))
}

fn sealed(memory: &Arc<MemoryRemote>, byte: u8) -> Arc<EncryptedRemote> {
    let remote: Arc<dyn Remote> = Arc::<MemoryRemote>::clone(memory);
    Arc::new(EncryptedRemote::new(remote).ring(ring(byte)).seal_new(Box::new(move || Ok(ring(byte)))))
}

fn reading(memory: &Arc<MemoryRemote>, byte: u8) -> Arc<dyn Remote> {
    Arc::new(EncryptedRemote::new(Arc::<MemoryRemote>::clone(memory)).ring(ring(byte)))
}

/// All keys below those of one store.
struct Below(Arc<EncryptedRemote>);

impl Below {
    fn key(key: &str) -> String {
        format!("s/{STORE}/{key}")
    }
}

impl Remote for Below {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        self.0.create(&Self::key(key), bytes)
    }
    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        self.0.swap(&Self::key(key), bytes, was)
    }
    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        self.0.put(&Self::key(key), bytes, length)
    }
    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        self.0.get(&Self::key(key), range)
    }
    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let own = Self::key("");
        let after = if after.is_empty() { String::new() } else { Self::key(after) };
        let listed = self.0.list(&Self::key(under), &after)?;
        let plain = |found: ListedObject| {
            Some(ListedObject { key: found.key.strip_prefix(&own)?.to_owned(), ..found })
        };
        Ok(listed.into_iter().filter_map(plain).filter(|found| !found.key.starts_with("meta/")).collect())
    }
    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.0.delete(&Self::key(key))
    }
}

/// A store with some messages, and its folder.
struct World {
    folder: tempfile::TempDir,
    store: Store,
    memory: Arc<MemoryRemote>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
        let world = Self { folder, store, memory: Arc::new(MemoryRemote::new()) };
        world.say("m1");
        world
    }

    fn say(&self, id: &str) {
        let info = StreamInfo::session("test", "one");
        // The texts are looked for below.
        let _ = self.store.append(&info, vec![Entry::message(id, Role::User, WORDS)]).unwrap();
    }

    fn ship(&self, remote: Arc<dyn Remote>) -> Result<(), ChainError> {
        let mut shipper = Shipper::open(self.store.root(), remote, ShipOptions::default())?;
        shipper.ship(&mut |_| true).map(|_| ())
    }

    /// Texts that a restored store shows.
    fn restored(&self, remote: &dyn Remote, name: &str) -> Result<usize, ChainError> {
        let to = self.folder.path().join(name);
        let _ = restore(remote, self.store.id(), &to, RestoreOptions::default())?;
        let store = Store::builder(&to).any_file_system().read_only().open()?;
        Ok(store.view(StreamInfo::session("test", "one").id())?.current().len())
    }

    fn object_key(&self) -> String {
        format!("s/{}/meta/object-key", self.store.id())
    }
}

fn is_locked(error: &ChainError) -> bool {
    matches!(error, ChainError::Remote(RemoteError::Locked { .. }))
}

#[test]
fn a_remote_of_sealed_objects_conforms() {
    conforms(&Below(sealed(&Arc::new(MemoryRemote::new()), 1)), 20);
}

#[test]
fn nothing_of_a_sealed_store_can_be_read_there_and_all_of_it_with_its_ring() {
    let world = World::new();
    world.ship(sealed(&world.memory, 1)).unwrap();
    world.say("m2");
    // A ring for new keys is needed by the first shipping alone.
    world.ship(reading(&world.memory, 1)).unwrap();
    for (key, object) in world.memory.all() {
        let is_open = key == "acpdb-remote.json" || key == world.object_key();
        assert_eq!(object.starts_with(b"acpdbenc"), !is_open, "{key}");
        for told in [WORDS.as_bytes(), b"acpdbrun", b"acpdbrhd"] {
            assert!(!object.windows(told.len()).any(|some| some == told), "{key}");
        }
    }
    let ours = reading(&world.memory, 1);
    assert_eq!(world.restored(&*ours, "again").unwrap(), 2);
    assert_eq!(
        status(&*ours, world.store.id(), None).unwrap().unwrap().there,
        world.store.info().unwrap().head
    );
    assert!(check(&*ours, world.store.id(), false).unwrap().is_sound);
    let place = world.folder.path().join("mirror");
    assert!(mirror(&*ours, world.store.id(), &place).unwrap().is_new);
    assert!(!mirror(&*ours, world.store.id(), &place).unwrap().is_new);
}

#[test]
fn who_has_another_ring_or_none_is_told_so_and_writes_nothing() {
    let world = World::new();
    world.ship(sealed(&world.memory, 1)).unwrap();
    world.say("m2");
    let before = world.memory.all();
    let plain: Arc<dyn Remote> = Arc::<MemoryRemote>::clone(&world.memory);
    let none: Arc<dyn Remote> = Arc::new(EncryptedRemote::new(Arc::<MemoryRemote>::clone(&world.memory)));
    for remote in [reading(&world.memory, 2), none, sealed(&world.memory, 2)] {
        assert!(is_locked(&world.ship(Arc::clone(&remote)).unwrap_err()));
        assert!(is_locked(&world.restored(&*remote, "again").unwrap_err()));
    }
    // So is who has no such layer.
    assert!(is_locked(&world.ship(Arc::clone(&plain)).unwrap_err()));
    assert!(is_locked(&world.restored(&*plain, "again").unwrap_err()));
    assert!(world.memory.all() == before, "something was written");
}

#[test]
fn a_store_without_its_wrapped_key_is_noise_and_is_not_begun_anew() {
    let world = World::new();
    world.ship(sealed(&world.memory, 1)).unwrap();
    world.memory.delete(&world.object_key()).unwrap();
    world.say("m2");
    let before = world.memory.all();
    for remote in [reading(&world.memory, 1), sealed(&world.memory, 1)] {
        assert!(is_locked(&world.ship(Arc::clone(&remote)).unwrap_err()));
        let error = world.restored(&*remote, "again").unwrap_err();
        assert!(error.to_string().contains("its key is gone"), "{error}");
    }
    assert!(world.memory.all() == before, "something was written");
}

#[test]
fn a_store_stays_as_it_began() {
    let world = World::new();
    world.ship(reading(&world.memory, 1)).unwrap();
    assert!(world.memory.all().values().any(|object| object.starts_with(b"acpdbrun")));
    world.say("m2");
    let error = world.ship(sealed(&world.memory, 1)).unwrap_err();
    assert!(error.to_string().contains("stays so"), "{error}");
    world.ship(reading(&world.memory, 1)).unwrap();
    assert_eq!(world.restored(&*reading(&world.memory, 1), "again").unwrap(), 2);
}

/// A bucket that puts a plain object, an object of another name, or a changed one there, changes nothing that is believed.
#[test]
fn no_object_that_the_key_did_not_seal_under_its_name_is_believed() {
    let world = World::new();
    world.ship(sealed(&world.memory, 1)).unwrap();
    world.say("m2");
    let twin = Arc::new(MemoryRemote::new());
    world.ship(Arc::<MemoryRemote>::clone(&twin)).unwrap();
    let store = world.store.id();
    let next = |number: u64| format!("s/{store}/log/{number:016x}");
    let first = world.memory.find(&next(2)).unwrap();
    let mut changed = first.clone();
    *changed.last_mut().unwrap() ^= 1;
    // A plain chunk that continues the chain, as only a copy of the store's own log makes it.
    let plain = twin.find(&next(2)).unwrap();
    assert!(plain.starts_with(b"acpdbrun"));
    for other in [plain, first, changed, b"acpdbenc\x01\0".to_vec(), Vec::new()] {
        let _ = world.memory.put(&next(3), &mut &*other, other.len() as u64).unwrap();
        assert_eq!(world.restored(&*reading(&world.memory, 1), "again").unwrap(), 1);
        std::fs::remove_dir_all(world.folder.path().join("again")).unwrap();
    }
    // It is passed over by who goes on.
    world.ship(reading(&world.memory, 1)).unwrap();
    assert_eq!(world.restored(&*reading(&world.memory, 1), "again").unwrap(), 2);
    let _ = world.memory.put(&next(9), &mut &b"acpdbenc\x02\0 of a newer program"[..], 29).unwrap();
    let newer = reading(&world.memory, 1).get(&next(9), None).unwrap_err();
    assert!(newer.to_string().contains("a newer acpdb"), "{newer}");
}

#[test]
fn a_torn_key_is_made_anew_and_a_lost_head_is_found_again() {
    let world = World::new();
    let _ = world.memory.put(&world.object_key(), &mut &b"acpdbv"[..], 6).unwrap();
    world.ship(sealed(&world.memory, 1)).unwrap();
    let store = world.store.id();
    world.memory.delete(&format!("heads/{store}")).unwrap();
    let remote = sealed(&world.memory, 1);
    world.say("m2");
    with_head(&*remote, store, || {}, || world.ship(Arc::<EncryptedRemote>::clone(&remote))).unwrap();
    assert_eq!(world.restored(&*reading(&world.memory, 1), "again").unwrap(), 2);
}

#[test]
fn workers_hand_a_sealed_store_over() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryRemote::new());
    let at = |name: &str| {
        RemoteOptions::new(folder.path().join(name)).store(acpdb_engine::store::Builder::any_file_system)
    };
    let info = StreamInfo::session("test", "one");
    for (number, worker) in ["a", "b", "c"].into_iter().enumerate() {
        let opened = open(sealed(&memory, 1), STORE, at(worker)).unwrap();
        let message = Entry::message(format!("m{number}"), Role::User, WORDS);
        let _ = opened.store().append(&info, vec![message]).unwrap();
        assert_eq!(opened.store().view(info.id()).unwrap().current().len(), number + 1);
    }
    assert!(memory.all().values().all(|object| !object.windows(8).any(|some| some == b"acpdbrun")));
    let error = open(sealed(&memory, 2), STORE, at("stranger")).unwrap_err();
    assert!(is_locked(&error), "{error}");
}
