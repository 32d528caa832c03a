//! A store that is read through a folder of this machine: what it costs, and a remote that changes under it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use acpdb_engine::{Entry, Role, Seq, Store, StreamInfo};

use super::counted::CountedRemote;
use crate::names::{ObjectName, head_key};
use crate::{ChainError, Mirrored, ShipOptions, Shipper, mirror};

struct Bench {
    folder: tempfile::TempDir,
    store: Store,
    remote: Arc<CountedRemote>,
    shipper: Shipper,
    said: usize,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("store");
        let store = Store::builder(&at).any_file_system().segment_bytes_max(128 << 10).open().unwrap();
        let remote = Arc::new(CountedRemote::default());
        let options = ShipOptions { chunk_bytes_max: 1000, ..ShipOptions::default() };
        let shipper = Shipper::open(&at, Arc::<CountedRemote>::clone(&remote), options).unwrap();
        Self { folder, store, remote, shipper, said: 0 }
    }

    /// Records messages and ships them.
    fn say(&mut self, count: usize) {
        let session = self.store.session(StreamInfo::session("test", "mirrors"));
        for _ in 0..count {
            self.said += 1;
            let text = format!("message {} ", self.said).repeat(60);
            let _ = session.append([Entry::message(format!("m{}", self.said), Role::User, text)]).unwrap();
        }
        let _ = self.shipper.ship(&mut |_| true).unwrap();
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("place")
    }

    fn mirror(&self) -> Result<Mirrored, ChainError> {
        mirror(&*self.remote, self.store.id(), &self.place())
    }

    /// Mirrors, and says at what number of requests, and which seq is the last.
    fn look(&self) -> (Mirrored, u64, Seq) {
        let before = self.remote.count.load(SeqCst);
        let mirrored = self.mirror().unwrap();
        let count = self.remote.count.load(SeqCst) - before;
        let copy = Store::builder(&mirrored.folder).any_file_system().read_only().open().unwrap();
        (mirrored, count, copy.head().unwrap())
    }
}

#[test]
fn an_answer_costs_what_changed_since_the_last() {
    let mut bench = Bench::new();
    bench.say(30);
    let (first, all, end) = bench.look();
    assert!(first.is_new && end == bench.store.head().unwrap() && all > 30, "{all}");
    for _ in 0..2 {
        let (same, count, _) = bench.look();
        assert!(!same.is_new && !same.is_set_back && count <= 3, "{count}");
    }
    for _ in 0..8 {
        bench.say(1);
        let (new, count, end) = bench.look();
        assert!(new.is_new && end == bench.store.head().unwrap());
        // The head three times, two entries, three small files, what is new.
        assert!(count <= 12, "{count}");
    }
    // Packs and complete segments take the place of what was fetched; the rest of it is let go.
    bench.say(400);
    let (_, _, end) = bench.look();
    assert_eq!(end, bench.store.head().unwrap());
    let kept = std::fs::read_dir(bench.place().join("objects")).unwrap().count();
    let there = bench.remote.real.all().keys().filter(|key| !key.contains("/meta/")).count();
    assert!(kept <= there, "{kept} of {there}");
    assert!(!bench.place().join("new").exists());
}

#[test]
fn a_remote_that_was_set_back_is_said_to_be_and_what_it_had_is_shown() {
    let mut bench = Bench::new();
    bench.say(20);
    let early = bench.remote.real.all();
    bench.say(5);
    let (_, _, end) = bench.look();
    let late = bench.remote.real.all();
    // The last entries are gone; then all is as it was before.
    let entries: Vec<_> = late.keys().filter(|key| key.contains("/log/")).cloned().collect();
    bench.remote.real.set(entries.last().unwrap(), None);
    let (told, _, seen) = bench.look();
    assert!(told.is_set_back && seen == end);
    for key in late.keys().filter(|key| !early.contains_key(*key)) {
        bench.remote.real.set(key, None);
    }
    for (key, bytes) in early {
        bench.remote.real.set(&key, Some(bytes));
    }
    let (told, _, seen) = bench.look();
    assert!(told.is_set_back && seen == end);
    bench.remote.real.set(&head_key(bench.store.id()), None);
    assert!(matches!(bench.mirror(), Err(ChainError::NoStore { .. })));
}

#[test]
fn what_was_fetched_is_not_believed_and_a_broken_place_is_made_anew() {
    let mut bench = Bench::new();
    bench.say(10);
    let (made, _, end) = bench.look();
    for entry in std::fs::read_dir(bench.place().join("objects")).unwrap() {
        std::fs::write(entry.unwrap().path(), "junk").unwrap();
    }
    bench.say(1);
    let (again, _, later) = bench.look();
    assert!(again.is_new && later > end);
    for broken in ["state", "lock"] {
        std::fs::write(bench.place().join(broken), "junk").unwrap();
        assert_eq!(bench.look().2, later, "{broken}");
    }
    std::fs::remove_dir_all(&made.folder).unwrap();
    std::fs::create_dir_all(bench.place().join("new/left/from/a/kill")).unwrap();
    assert_eq!(bench.look().2, later);
}

/// An object that is damaged there leaves what was mirrored before.
#[test]
fn damage_is_an_error_and_the_mirror_stays() {
    let mut bench = Bench::new();
    bench.say(10);
    let (made, _, end) = bench.look();
    bench.say(3);
    let next = bench.remote.real.all().into_keys().rfind(|key| key.contains("/log/")).unwrap();
    let number = u64::from_str_radix(next.rsplit('/').next().unwrap(), 16).unwrap();
    let before = ObjectName::Entry(number - 1).key(bench.store.id());
    bench.remote.real.set(&before, Some(b"junk".to_vec()));
    assert!(matches!(bench.mirror(), Err(ChainError::Unsound { .. })));
    let copy = Store::builder(&made.folder).any_file_system().read_only().open().unwrap();
    assert_eq!(copy.head().unwrap(), end);
}

/// A name of a prefix is never one of a file here, whatever it is.
#[test]
fn a_hostile_prefix_writes_nothing_elsewhere() {
    let mut bench = Bench::new();
    bench.say(3);
    let own = format!("s/{}/", bench.store.id());
    for name in ["../../escaped", "/etc/escaped", "seg/../../../escaped", "log/..", "meta/../escaped"] {
        bench.remote.real.set(&format!("{own}{name}"), Some(b"x".to_vec()));
        bench.remote.real.set(&format!("heads/{name}"), Some(b"x".to_vec()));
    }
    let (made, ..) = bench.look();
    assert!(made.folder.starts_with(bench.place()));
    let names: Vec<_> =
        std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
