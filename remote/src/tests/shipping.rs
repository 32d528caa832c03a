//! A store that lives, shipped into a folder, and made anew from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use acpdb_engine::log::{Log, LogOptions};
use acpdb_engine::storage::{FileStorage, PassphraseKeyRing, SystemClock, SystemEntropy};
use acpdb_engine::store::{Backup, VerifyOptions, rotate_key, verify_store};
use acpdb_engine::verify::Verdict;
use acpdb_engine::{Entry, ItemId, Micros, Role, Seq, Store, StreamInfo};

use super::counted::CountedRemote;
use crate::sim::{SimRemote, SimRemoteFaults};
use crate::{
    ChainError, FolderRemote, MemoryRemote, Remote, RestoreOptions, RestoreUntil, ShipOptions, Shipper,
    restore, status, stores,
};

/// A store in a folder of its own, and a place beside it.
struct Bench {
    folder: tempfile::TempDir,
    store: Store,
    said: usize,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("store"));
        Self { folder, store, said: 0 }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records `count` messages; the item of the last one.
    fn say(&mut self, count: usize) -> ItemId {
        let mut last = None;
        for _ in 0..count {
            let text = format!("message {} of some length", self.said).repeat(30);
            last = self.message(&text);
        }
        last.unwrap()
    }

    fn message(&mut self, text: &str) -> Option<ItemId> {
        self.said += 1;
        let session = self.store.session(StreamInfo::session("test", "shipping"));
        session.append([Entry::message(format!("m{}", self.said), Role::User, text)]).unwrap().items[0]
    }

    fn shipper(&self, remote: &Arc<dyn Remote>) -> Shipper {
        // Small chunks, so that packs are made.
        let options = ShipOptions { chunk_bytes_max: 1000, ..ShipOptions::default() };
        Shipper::open(&self.at("store"), Arc::clone(remote), options).unwrap()
    }

    fn restore(&self, remote: &dyn Remote, name: &str) -> Result<Backup, ChainError> {
        restore(remote, self.store.id(), &self.at(name), RestoreOptions::default())
    }
}

fn open(folder: &Path) -> Store {
    Store::builder(folder).any_file_system().segment_bytes_max(128 << 10).open().unwrap()
}

fn ship(shipper: &mut Shipper) -> crate::Shipped {
    shipper.ship(&mut |_| true).unwrap()
}

fn head(folder: &Path) -> acpdb_engine::log::Head {
    let storage = Arc::new(FileStorage::new(folder).read_only());
    let options = LogOptions { read_only: true, ..LogOptions::default() };
    let (log, _) =
        Log::open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options).unwrap();
    log.head()
}

#[test]
fn what_is_restored_is_the_store_that_was_shipped() {
    let mut bench = Bench::new();
    let remote: Arc<dyn Remote> = Arc::new(FolderRemote::new(bench.at("remote")));
    let mut shipper = bench.shipper(&remote);
    assert_eq!(shipper.status().unwrap(), None);
    let mut packs = 0;
    for (round, count) in [0, 1, 70, 40, 300].into_iter().enumerate() {
        bench.say(count + 1);
        let shipped = ship(&mut shipper);
        assert_eq!(shipped.there, bench.store.head().unwrap());
        assert_eq!(ship(&mut shipper).bytes, 0, "nothing is new");
        packs += shipper.status().unwrap().unwrap().packs;
        if round % 2 == 1 {
            // Another process goes on.
            let epoch = shipper.status().unwrap().unwrap().epoch;
            shipper = bench.shipper(&remote);
            assert_eq!(ship(&mut shipper).bytes, 0, "nothing is new");
            assert_eq!(shipper.status().unwrap().unwrap().epoch, epoch, "nothing was taken over for nothing");
        }
        let name = format!("copy-{round}");
        let done = bench.restore(&*remote, &name).unwrap();
        assert_eq!((done.head, done.report.verdict()), (shipped.there, Verdict::Sound));
        assert_eq!(head(&bench.at(&name)), head(&bench.at("store")), "the same place, seq and link");
        let deep = VerifyOptions { deep: true, ..VerifyOptions::default() };
        assert_eq!(verify_store(&bench.at(&name), &deep).unwrap().verdict(), Verdict::Sound);
    }
    let found = shipper.status().unwrap().unwrap();
    assert_eq!((found.behind, found.trash), (0, 0));
    assert!(found.segments >= 2 && packs > 0, "{found:?}");
    assert_eq!(stores(&*remote).unwrap(), [bench.store.id()]);
    // The copy is a store: it goes on.
    let copy = open(&bench.at("copy-4"));
    let session = copy.session(StreamInfo::session("test", "shipping"));
    let _ = session.append([Entry::message("more", Role::User, "it goes on")]).unwrap();
}

#[test]
fn a_shipper_that_follows_ends_when_it_is_told_to() {
    let mut bench = Bench::new();
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    bench.say(5);
    let mut shipper = bench.shipper(&remote);
    let wanted = Seq(bench.store.head().unwrap().0 + 3);
    let store = bench.store.clone();
    let mut said = 0;
    let followed = shipper.follow(Duration::from_millis(1), &mut |progress| {
        if progress.there == progress.until && said < 3 {
            said += 1;
            let session = store.session(StreamInfo::session("test", "shipping"));
            let _ = session.append([Entry::message(format!("n{said}"), Role::User, "news")]).unwrap();
        }
        progress.there < wanted
    });
    followed.unwrap();
    let found = status(&*remote, bench.store.id(), None).unwrap().unwrap();
    assert!(found.there >= wanted, "{found:?}");
    assert_eq!(found.epoch, 1, "it was taken over once");
}

/// Answers are lost, objects torn, requests executed late: what is there at last is the store.
#[test]
fn a_shipper_that_follows_goes_on_through_failures() {
    for seed in 0..4 {
        let mut bench = Bench::new();
        let faults =
            SimRemoteFaults { lost: 100, late: 40, twice: 40, torn: 40, ..SimRemoteFaults::default() };
        let sim = SimRemote::new(seed, faults, Arc::new(|| ()));
        let remote: Arc<dyn Remote> = Arc::new(sim.clone());
        bench.say(30);
        let mut shipper = bench.shipper(&remote);
        let wanted = bench.store.head().unwrap();
        shipper.follow(Duration::from_micros(1), &mut |progress| progress.there < wanted).unwrap();
        sim.settle();
        let done = bench.restore(&*remote, "copy").unwrap();
        assert_eq!((done.head, done.report.verdict()), (wanted, Verdict::Sound), "seed {seed}");
    }
}

#[test]
fn an_erased_text_leaves_the_remote() {
    let mut bench = Bench::new();
    let memory = Arc::new(MemoryRemote::new());
    let remote: Arc<dyn Remote> = Arc::clone(&memory) as Arc<dyn Remote>;
    bench.say(10);
    let item = bench.message("swordfish 7319").unwrap();
    bench.say(200);
    let late = bench.message("swordfish 8428").unwrap();
    let mut shipper = bench.shipper(&remote);
    let _ = ship(&mut shipper);
    let holds = |name: &str| {
        let copy = bench.folder.path().join(name);
        let done = restore(&*remote, bench.store.id(), &copy, RestoreOptions::default()).unwrap();
        assert_eq!(done.report.verdict(), Verdict::Sound);
        let files = std::fs::read_dir(copy.join("log"))
            .unwrap()
            .map(|file| std::fs::read(file.unwrap().path()).unwrap());
        files.into_iter().any(|bytes| bytes.windows(9).any(|window| window == b"swordfish"))
    };
    assert!(holds("before"));
    for item in [item, late] {
        let _ = bench.store.erase(item, "ada", "it leaked").unwrap();
    }
    let shipped = ship(&mut shipper);
    assert!(shipped.segments >= 1);
    assert!(!holds("after"), "no object has it");
    // Each object, not only those that are named.
    for (key, object) in memory.all() {
        let Ok(run) = crate::run::LogRun::decode(bench.store.id(), &object) else { continue };
        assert!(!run.bytes.windows(9).any(|window| window == b"swordfish"), "{key}");
    }
}

/// Each commit ended the pause of a follower: a bucket was paid for one object a commit, and the disk was shared with all of them.
#[test]
fn news_are_collected_for_as_long_as_was_asked() {
    let mut bench = Bench::new();
    let memory = Arc::new(MemoryRemote::new());
    let remote: Arc<dyn Remote> = Arc::<MemoryRemote>::clone(&memory);
    let mut shipper = Shipper::open(&bench.at("store"), remote, ShipOptions::default()).unwrap();
    bench.say(1);
    let _ = ship(&mut shipper);
    let entries = || {
        memory
            .all()
            .keys()
            .filter_map(|key| key.split_once("/log/").map(|(_, number)| number.to_owned()))
            .max()
    };
    let number = |last: Option<String>| last.map_or(0, |last| u64::from_str_radix(&last, 16).unwrap());
    let before = number(entries());
    let every = Duration::from_millis(100);
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for _ in 0..150 {
                bench.message("x");
            }
        });
        shipper
            .follow(every, &mut |progress| !writing.is_finished() || progress.there < progress.until)
            .unwrap();
    });
    let made = number(entries()) - before;
    let turns = begun.elapsed().as_millis() / every.as_millis() + 1;
    assert!(u128::from(made) <= turns + 1, "{made} objects in {turns} turns");
}

#[test]
fn a_follower_tells_of_the_segments_that_an_erasure_replaced() {
    let mut bench = Bench::new();
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    let item = bench.message("swordfish 7319").unwrap();
    bench.say(200);
    let mut shipper = bench.shipper(&remote);
    let _ = ship(&mut shipper);
    let _ = bench.store.erase(item, "ada", "it leaked").unwrap();
    let (mut asked, mut told) = (0, Vec::new());
    let followed = shipper.follow(Duration::from_millis(1), &mut |progress| {
        asked += 1;
        if progress.there == progress.until {
            told.push(progress.erased);
        }
        // It is told again while nothing is new.
        asked < 2000 && told.len() < 5
    });
    followed.unwrap();
    assert_eq!(told.last(), Some(&1), "{told:?}");
}

#[test]
fn a_folder_that_was_set_back_or_went_on_elsewhere_ships_nothing() {
    let mut bench = Bench::new();
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    bench.say(5);
    let _ = bench.store.backup(&bench.at("older"), &mut |_| {}).unwrap();
    bench.say(5);
    let _ = ship(&mut bench.shipper(&remote));
    let older = |remote: &Arc<dyn Remote>| {
        Shipper::open(&bench.at("older"), Arc::clone(remote), ShipOptions::default())
            .unwrap()
            .ship(&mut |_| true)
    };
    assert!(matches!(older(&remote), Err(ChainError::Diverged { .. })), "it was set back");
    {
        let copy = open(&bench.at("older"));
        let session = copy.session(StreamInfo::session("test", "shipping"));
        for number in 0..20 {
            let _ = session
                .append([Entry::message(format!("o{number}"), Role::User, "another history")])
                .unwrap();
        }
    }
    assert!(matches!(older(&remote), Err(ChainError::Diverged { .. })), "it went on");
    assert_eq!(bench.restore(&*remote, "copy").unwrap().head, bench.store.head().unwrap());
}

#[test]
fn a_second_shipper_fences_the_first() {
    let mut bench = Bench::new();
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    bench.say(2);
    let (mut first, mut second) = (bench.shipper(&remote), bench.shipper(&remote));
    let _ = ship(&mut first);
    bench.say(2);
    let _ = ship(&mut second);
    bench.say(2);
    assert!(matches!(first.ship(&mut |_| true), Err(ChainError::Fenced { epoch: 2 })));
    let _ = ship(&mut second);
    assert_eq!(bench.restore(&*remote, "copy").unwrap().head, bench.store.head().unwrap());
}

#[test]
fn an_encrypted_store_is_shipped_and_restored_without_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let ring = PassphraseKeyRing::new("a passphrase of some length").unwrap();
    let builder = || Store::builder(at("store")).any_file_system().segment_bytes_max(64 << 10);
    let store = builder().encrypt(Arc::new(ring)).open().unwrap();
    let session = store.session(StreamInfo::session("test", "shipping"));
    for number in 0..100 {
        let _ = session
            .append([Entry::message(format!("m{number}"), Role::User, "of some length ".repeat(40))])
            .unwrap();
    }
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    let options = ShipOptions { key: true, ..ShipOptions::default() };
    let mut shipper = Shipper::open(&at("store"), Arc::clone(&remote), options).unwrap();
    let _ = ship(&mut shipper);
    let done = restore(&*remote, store.id(), &at("copy"), RestoreOptions::default()).unwrap();
    assert_eq!((done.head, done.report.verdict()), (store.head().unwrap(), Verdict::Sound));
}

/// A store and its remote, looked at one after the other, were taken for a copy that was set back if another shipper was quick.
#[test]
fn what_another_one_ships_meanwhile_is_no_copy_that_was_set_back() {
    for number in 0.. {
        let mut bench = Bench::new();
        bench.say(3);
        let remote = Arc::new(CountedRemote::default());
        let plain: Arc<dyn Remote> = Arc::<MemoryRemote>::clone(&remote.real);
        let _ = ship(&mut bench.shipper(&plain));
        bench.say(3);
        let mut shipper = bench.shipper(&(Arc::<CountedRemote>::clone(&remote) as Arc<dyn Remote>));
        let mut other = bench.shipper(&plain);
        let session = bench.store.session(StreamInfo::session("test", "shipping"));
        let act = move || {
            let _ = session.append([Entry::message("meanwhile", Role::User, "a text")]).unwrap();
            let _ = ship(&mut other);
        };
        *remote.meanwhile.lock().unwrap() = Some((number, Box::new(act)));
        match shipper.ship(&mut |_| true) {
            Ok(_) | Err(ChainError::Fenced { .. } | ChainError::Contended) => {}
            failed => panic!("request {number}: {failed:?}"),
        }
        let is_done = remote.meanwhile.lock().unwrap().take().is_some();
        let _ = ship(&mut shipper);
        let last = bench.store.head().unwrap();
        assert_eq!(shipper.status().unwrap().unwrap().there, last, "request {number}");
        let done = bench.restore(&*plain, "copy").unwrap();
        assert_eq!(done.report.verdict(), Verdict::Sound, "request {number}");
        if is_done {
            assert!(number > 5, "{number} requests");
            return;
        }
    }
}

const PASSPHRASES: [&str; 4] = [
    "a passphrase of some length",
    "another of some length",
    "a third of some length",
    "the last of some length",
];

/// The log was there, so that a key that was wrapped anew, or asked for later, was not shipped, and never again: the copy could not be opened.
#[test]
fn small_files_that_change_are_shipped_though_the_log_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("store");
    let ring = |text: &str| Arc::new(PassphraseKeyRing::new(text).unwrap());
    let store = Store::builder(&at).any_file_system().encrypt(ring(PASSPHRASES[0])).open();
    let store = store.unwrap();
    let session = store.session(StreamInfo::session("test", "shipping"));
    let _ = session.append([Entry::message("m1", Role::User, "a text")]).unwrap();
    let remote = Arc::new(CountedRemote::default());
    let shipper = |key| {
        let options = ShipOptions { key, ..ShipOptions::default() };
        Shipper::open(&at, Arc::<CountedRemote>::clone(&remote) as Arc<dyn Remote>, options).unwrap()
    };
    let there = |name: &str| remote.real.all().remove(&crate::names::meta_key(store.id(), name));
    let here = || Some(std::fs::read(at.join("key")).unwrap());

    let _ = ship(&mut shipper(false));
    assert_eq!(there("key"), None, "it was not asked for");
    let mut following = shipper(true);
    let _ = ship(&mut following);
    assert_eq!(there("key"), here(), "asked for later");
    let epoch = following.status().unwrap().unwrap().epoch;
    assert_eq!(epoch, 1, "the log is there: nothing was taken over");

    // Once by a shipper that took nothing over, once by one that holds the chain.
    for round in 0..2 {
        let _ = rotate_key(&at, &*ring(PASSPHRASES[round]), &*ring(PASSPHRASES[round + 1])).unwrap();
        let _ = ship(&mut following);
        assert_eq!(there("key"), here(), "wrapped anew, round {round}");
        let count = remote.count.load(SeqCst);
        let _ = ship(&mut following);
        assert_eq!(remote.count.load(SeqCst), count, "nothing is new: nothing is asked");
        let _ = session.append([Entry::message(format!("n{round}"), Role::User, "more")]).unwrap();
        let _ = ship(&mut following);
    }

    // While it follows and no commit comes.
    let (mut asked, mut changed, mut count) = (0, None, 0);
    let followed = following.follow(Duration::from_millis(1), &mut |_| {
        asked += 1;
        if asked == 20 {
            count = remote.count.load(SeqCst);
        }
        if asked == 40 {
            assert_eq!(remote.count.load(SeqCst), count, "it waits without a request");
            let _ = rotate_key(&at, &*ring(PASSPHRASES[2]), &*ring(PASSPHRASES[3])).unwrap();
            changed = here();
        }
        asked < 2000 && (changed.is_none() || there("key") != changed)
    });
    followed.unwrap();
    assert_eq!(there("key"), here());
    assert_eq!(there("key"), changed);
}

#[test]
fn a_secret_that_is_asked_for_later_is_shipped() {
    let mut bench = Bench::new();
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    bench.say(2);
    let key = crate::names::meta_key(bench.store.id(), "secret");
    for secret in [false, true] {
        let options = ShipOptions { secret, ..ShipOptions::default() };
        let _ = ship(&mut Shipper::open(&bench.at("store"), Arc::clone(&remote), options).unwrap());
        assert_eq!(remote.get(&key, None).unwrap().is_some(), secret);
    }
}

#[test]
fn what_is_restored_up_to_a_point_is_the_store_as_it_was() {
    let mut bench = Bench::new();
    let remote: Arc<dyn Remote> = Arc::new(FolderRemote::new(bench.at("remote")));
    let mut shipper = bench.shipper(&remote);
    let mut ends = Vec::new();
    for _ in 0..4 {
        bench.say(40);
        ends.push(head(&bench.at("store")));
        let _ = ship(&mut shipper);
    }
    let until = |until: RestoreUntil, name: &str| {
        let options = RestoreOptions { until: Some(until), ..RestoreOptions::default() };
        restore(&*remote, bench.store.id(), &bench.at(name), options)
    };
    for (number, end) in ends.iter().enumerate() {
        // Between two commits the earlier one is the last.
        let within = if number % 2 == 0 { end.seq } else { Seq(end.seq.0 - 1) };
        let made = until(RestoreUntil::Seq(within), &format!("seq-{number}")).unwrap();
        assert_eq!((made.report.verdict(), made.head.0 <= within.0), (Verdict::Sound, true));
        assert!(number % 2 == 1 || head(&bench.at(&format!("seq-{number}"))) == *end, "{number}");
        let made = until(RestoreUntil::Time(end.time), &format!("time-{number}")).unwrap();
        assert!(made.head >= end.seq, "commits of one microsecond are of one time");
        // It goes on by itself, and what it was made of refuses it.
        let folder = bench.at(&format!("seq-{number}"));
        let store = open(&folder);
        let session = store.session(StreamInfo::session("test", "shipping"));
        let _ = session.append([Entry::message("later", Role::User, "later")]).unwrap();
        drop(store);
        let mut other = Shipper::open(&folder, Arc::clone(&remote), ShipOptions::default()).unwrap();
        assert!(
            number + 1 == ends.len() || matches!(other.ship(&mut |_| true), Err(ChainError::Diverged { .. }))
        );
    }
    let last = ends.last().unwrap();
    for none in [RestoreUntil::Seq(Seq(0)), RestoreUntil::Seq(last.seq.next()), RestoreUntil::Time(Micros(1))]
    {
        assert!(matches!(until(none, "none"), Err(ChainError::NoCommit)), "{none:?}");
        assert!(!bench.at("none").exists());
    }
}

/// An erasure reaches back behind the point that is asked for: what is left is a text that is gone without a word.
#[test]
fn a_point_before_an_erasure_is_told_of_what_was_erased() {
    let mut bench = Bench::new();
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    let item = bench.message("swordfish 7319").unwrap();
    bench.say(200);
    let before = head(&bench.at("store")).seq;
    let _ = bench.store.erase(item, "ada", "it leaked").unwrap();
    let mut shipper = bench.shipper(&remote);
    let _ = ship(&mut shipper);
    let options = RestoreOptions { until: Some(RestoreUntil::Seq(before)), ..RestoreOptions::default() };
    let made = restore(&*remote, bench.store.id(), &bench.at("past"), options);
    assert!(matches!(made, Err(ChainError::Damaged(_))), "{made:?}");
    assert!(bench.restore(&*remote, "whole").is_ok());
}
