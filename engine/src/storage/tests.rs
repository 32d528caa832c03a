//! Both storages keep the promises of the trait; the simulated one forgets as it should.

use super::*;

fn conforms(storage: &dyn Storage) {
    storage.create_dir("").unwrap();
    storage.create_dir("log").unwrap();
    storage.create_dir("log").unwrap();
    assert_eq!(storage.open("a", Access::Read).err().unwrap().kind(), io::ErrorKind::NotFound);
    let file = storage.open("a", Access::Create).unwrap();
    write_all(&*file, b"hello", 3, &mut 0).unwrap();
    let mut buffer = [9; 12];
    assert_eq!(read_up_to(&*file, &mut buffer, 0).unwrap(), 8);
    assert_eq!(&buffer[..8], b"\0\0\0hello");
    assert_eq!(storage.open("a", Access::CreateNew).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
    file.set_len(4).unwrap();
    assert_eq!(file.len().unwrap(), 4);
    sync(&*file).unwrap();
    let other = storage.open("a", Access::Write).unwrap();
    assert!(file.try_lock().unwrap());
    assert!(!other.try_lock().unwrap(), "a lock belongs to one open file");
    file.unlock().unwrap();
    assert!(other.try_lock().unwrap());
    drop(other);
    assert!(file.try_lock().unwrap(), "a lock dies with its file");
    write_file(storage, "log/b", b"one").unwrap();
    write_file(storage, "log/b", b"two").unwrap();
    assert_eq!(read_file(storage, "log/b", 10).unwrap().unwrap(), b"two");
    assert_eq!(read_file(storage, "log/c", 10).unwrap(), None);
    assert_eq!(read_file(storage, "log/b", 2).err().unwrap().kind(), io::ErrorKind::InvalidData);
    assert_eq!(storage.list("log").unwrap(), ["b"]);
    assert!(file.is_current().unwrap() && file.is_linked().unwrap());
    storage.rename("log/b", "a").unwrap();
    assert!(!file.is_current().unwrap());
    storage.remove("a").unwrap();
    assert!(!file.is_current().unwrap() && !file.is_linked().unwrap());
    for directory in ["", "log", ".."] {
        storage.sync_dir(directory).unwrap();
    }
}

#[test]
fn files_conform() {
    let directory = tempfile::tempdir().unwrap();
    conforms(&FileStorage::new(directory.path().join("deep/store")));
}

#[test]
fn the_simulation_conforms() {
    conforms(&SimWorld::new(1).process(1));
}

#[test]
fn a_power_cut_keeps_what_was_synced_and_any_part_of_the_rest() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        let file = storage.open("a", Access::Create).unwrap();
        file.write_at(&[1; 1024], 0).unwrap();
        sync(&*file).unwrap();
        storage.sync_dir("").unwrap();
        file.write_at(&[2; 1024], 512).unwrap();
        drop(storage.open("b", Access::Create).unwrap());
        world.cut_power();
        assert!(storage.is_dead());
        let bytes = world.file("a").unwrap();
        assert_eq!(bytes[..512], [1; 512], "what was synced");
        let sector = |start: usize| bytes.get(start..start + 512).map(|sector| (sector[0], sector[511]));
        outcomes.insert((sector(512), sector(1024), world.file("b").is_some()));
    }
    let both = Some((2, 2));
    assert!(outcomes.contains(&(Some((1, 1)), None, false)), "nothing");
    assert!(outcomes.contains(&(both, both, true)), "everything");
    assert!(outcomes.contains(&(Some((1, 1)), both, false)), "the second sector only");
    assert!(outcomes.contains(&(Some((2, 1)), None, false)), "a torn sector");
}

#[test]
fn a_failed_sync_makes_pages_clean_that_were_never_written() {
    let mut lost = 0;
    for seed in 0..20 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        let file = storage.open("a", Access::Create).unwrap();
        storage.sync_dir("").unwrap();
        file.write_at(&[7; 512], 0).unwrap();
        storage.plant(Fault { kind: FaultKind::SyncError, after: 0, once: true });
        assert!(sync(&*file).is_err());
        assert_eq!(world.file("a").unwrap(), [7; 512], "the cache still shows it");
        sync(&*file).unwrap();
        world.cut_power();
        lost += usize::from(world.file("a").unwrap() != [7; 512]);
    }
    assert!(lost > 5, "{lost}");
}

#[test]
fn a_killed_process_frees_its_locks_and_its_writes_stay() {
    let world = SimWorld::new(1);
    let (one, two) = (world.process(1), world.process(2));
    let file = one.open("a", Access::Create).unwrap();
    file.write_at(b"kept", 0).unwrap();
    assert!(file.try_lock().unwrap());
    let other = two.open("a", Access::Write).unwrap();
    assert!(!other.try_lock().unwrap());
    one.kill();
    assert!(file.write_at(b"late", 0).is_err());
    assert!(other.try_lock().unwrap());
    assert_eq!(world.file("a").unwrap(), b"kept");
}

#[test]
fn fixed_sources_repeat() {
    let draw = |seed| {
        let mut bytes = [0; 24];
        FixedEntropy::new(seed).fill(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let clock = FixedClock::new(crate::ids::Micros(5), 2);
    assert_eq!((clock.now().0, clock.now().0), (5, 7));
    clock.sleep(std::time::Duration::from_micros(10));
    assert_eq!(clock.now().0, 19);
    let mut bytes = [0; 32];
    SystemEntropy.fill(&mut bytes).unwrap();
    assert_ne!(bytes, [0; 32]);
    assert!(SystemClock::new().now().0 > 1_600_000_000_000_000);
}

/// Two handles that made the map of one segment at the same time wrote one temporary file.
#[test]
fn a_file_that_is_being_put_in_place_is_left_to_its_writer() {
    let process = SimWorld::new(1).process(1);
    let put = |bytes: &[u8]| put_file(&process, "a", &|file| write_all(file, bytes, 0, &mut 0)).unwrap();
    let is_put = put_file(&process, "a", &|file| {
        write_all(file, b"wh", 0, &mut 0)?;
        assert!(!put(b"another"));
        write_all(file, b"ole", 2, &mut 0)
    });
    assert!(is_put.unwrap());
    assert_eq!(read_file(&process, "a", 100).unwrap().unwrap(), b"whole");
    assert!(put(b"new"));
    assert_eq!(read_file(&process, "a", 100).unwrap().unwrap(), b"new");
}
